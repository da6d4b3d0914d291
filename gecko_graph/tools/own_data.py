"""Tools whose own functions answer for the world: on the dict that they keep their data in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, MutableMapping
from copy import deepcopy
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any

from ..errors import ToolkitError
from ..state import JsonObject
from .declaration import Tool
from .spec import ToolSpec

_ONE_AT_A_TIME = RLock()


def with_data(tools: Iterable[Any], data: MutableMapping[str, Any]) -> list[Tool]:
    """Return tools that are simulated by their own functions, for `Toolkit.from_tools`.

    For a call the dict holds a copy of the task state; then it holds again what it held. So no call leaves a trace
    there, and a contract is needed only for what should be checked. Only for tools that touch nothing but this dict:
    whatever else they do is really done.

    Args:
        tools: As `Toolkit.from_tools` takes them; each has a function.
        data: The dict that the functions read and change, or one made of their dicts and lists by names: the task state
            has these keys. What it holds is JSON.

    Raises:
        ToolkitError: A tool has no function that its arguments can run, or an async one.
    """
    from .functions import read_tools  # here, because it is slow to import

    (specs, declared), run = read_tools(tools), dict[str, Any]()
    for spec in specs:
        if spec.real is None or inspect.iscoroutinefunction(spec.real):
            why = "an async function" if spec.real else "no function that its arguments can run"
            raise ToolkitError(f"with_data: {spec.name!r} has {why}: write Tool(..., simulate=...)")
        run[spec.name] = _OwnAnswer(spec.real, data)
    pairs = zip(specs, declared, strict=True)
    return [replace(one, source=spec, simulate=one.simulate or run[spec.name]) for spec, one in pairs]


@dataclass(frozen=True, slots=True)
class _OwnAnswer:
    """A `simulate` that runs a tool's own function, while its data is the task state's."""

    function: Callable[..., Any]
    data: MutableMapping[str, Any]

    def __call__(self, state: JsonObject, /, **args: Any) -> Any:
        with _ONE_AT_A_TIME:
            held, content = dict(self.data), deepcopy(dict(self.data))
            _fill(self.data, held, state)
            try:
                return self.function(**args)
            finally:
                state.clear()
                state.update(deepcopy(dict(self.data)))
                _fill(self.data, held, content)


def find_own_data(tools: Iterable[ToolSpec]) -> JsonObject:
    """Return what the dicts of `with_data` hold now: a start for a task state; a copy."""
    own = (tool.simulate.data for tool in tools if isinstance(tool.simulate, _OwnAnswer))
    return deepcopy({key: value for data in own for key, value in data.items()})


def _fill(data: MutableMapping[str, Any], held: JsonObject, values: JsonObject) -> None:
    """Let a dict hold these values; lists and dicts in it stay the objects that functions may know by other names."""
    filled = dict(values)
    for key, value in values.items():
        known = held.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            known.clear()
            known.update(value)
            filled[key] = known
        elif isinstance(known, list) and isinstance(value, list):
            known[:] = value
            filled[key] = known
    data.clear()
    data.update(filled)
