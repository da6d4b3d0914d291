"""Pickle tools for another process: functions by name, closures by the call that rebuilds them."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from inspect import unwrap
from types import FunctionType
from typing import Any

from langchain_core.tools import BaseTool

from ..errors import ToolkitError
from .spec import ToolSpec

_MADE = (FunctionType, partial)


def made_by(make: Callable[..., Any], *args: Any) -> Any:
    """Return `make(*args)`; a function gets a recipe by which pickle rebuilds it in another process."""
    made: Any = make(*args)
    if isinstance(made, _MADE) and made not in args:
        made.__dict__["made_by"] = (made_by, (make, *args))
    return made


def place_of(tool: BaseTool) -> tuple[BaseTool | str, str]:
    """Return module and name of a LangChain tool that replaced its function there (`@tool`); else the tool and ""."""
    function: Any = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    module, name = str(getattr(function, "__module__", "")), str(getattr(function, "__qualname__", ""))
    return (module, name) if getattr(sys.modules.get(module), name, None) is tool else (tool, "")


def find_tool(tool: BaseTool | str, name: str) -> BaseTool:
    """Return the tool that `place_of` has described."""
    found: BaseTool = getattr(import_module(tool), name) if isinstance(tool, str) else tool
    return found


class _Packer(pickle.Pickler):
    """Pickles tools; a module's own list or dict, which its functions may change, by its name."""

    def __init__(self, file: Any, tools: Iterable[ToolSpec]) -> None:
        super().__init__(file, protocol=5)
        functions = (getattr(tool.simulate, "function", None) for tool in tools)  # of `own_data.OwnAnswer`
        own = {unwrap(each).__module__ for each in functions if each is not None}
        known = ((name, key, each) for name in own for key, each in vars(sys.modules[name]).items())
        self._known = {id(each): (name, key) for name, key, each in known if type(each) in (dict, list)}

    def persistent_id(self, obj: Any) -> Any:
        return self._known.get(id(obj))

    def reducer_override(self, obj: Any) -> Any:
        return obj.__dict__.get("made_by", NotImplemented) if isinstance(obj, _MADE) else NotImplemented


class _Unpacker(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> Any:
        return getattr(import_module(pid[0]), pid[1])


class Crossing:
    """Tools that are pickled as a list.

    Raises:
        ToolkitError: While pickling, if another process cannot import a tool's function; the message names the tool.
    """

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        self._tools = list(tools)

    def __reduce__(self) -> Any:
        try:
            return _unpack, (_pack(self._tools),)
        except _UNPACKED as error:
            for tool in self._tools:
                _pack_alone(tool)
            raise ToolkitError(f"the tools cannot be sent to another process: {error}") from None


_UNPACKED = (pickle.PicklingError, AttributeError, TypeError)


def _pack_alone(tool: ToolSpec) -> None:
    try:
        _pack([tool])
    except _UNPACKED as error:
        hint = "write its function with def at the top of a module that other processes can import"
        raise ToolkitError(f"{tool.name}: it cannot be sent to another process: {hint} ({error})") from None


def _pack(tools: list[ToolSpec]) -> bytes:
    file = io.BytesIO()
    _Packer(file, tools).dump(tools)
    return file.getvalue()


def _unpack(packed: bytes) -> list[ToolSpec]:
    tools: list[ToolSpec] = _Unpacker(io.BytesIO(packed)).load()
    return tools
