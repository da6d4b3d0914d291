"""Simulate tools by their own functions, on the dict in which they keep their data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from copy import deepcopy
from dataclasses import dataclass, replace
from inspect import iscoroutinefunction
from threading import RLock
from typing import Any

from ..errors import ToolkitError
from ..state import JsonObject
from .declaration import Tool
from .spec import ToolSpec

_ONE_AT_A_TIME = RLock()


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """A `simulate` that runs the tool's own function while its data dict contains the task state."""

    function: Callable[..., Any]
    data: MutableMapping[str, Any]

    def __call__(self, state: JsonObject, /, **args: Any) -> Any:
        """Run the function, and write its changed data back to the state."""
        with _ONE_AT_A_TIME:
            held = deepcopy(dict(self.data))
            _fill(self.data, state)
            try:
                return self.function(**args)
            finally:
                state.clear()
                state.update(deepcopy(dict(self.data)))
                _fill(self.data, held)


def with_data(tools: Iterable[Any], data: MutableMapping[str, Any]) -> list[Tool]:
    """Return tools that are simulated by their own functions, for `Toolkit.from_tools`.

    During a call the dict contains the task state, and its own content again afterwards. A world's start state is the
    dict's content, overridden by a given state. Use it only for tools without other side effects: those really happen.

    Args:
        tools: As for `Toolkit.from_tools`; each has a function.
        data: The functions' data: their dict, or their dicts and lists by name. It contains JSON.

    Raises:
        ToolkitError: A tool has no function that its arguments can call, or an async one.
    """
    from .functions import read_tools  # here, because it is slow to import

    made = []
    for spec, said in zip(*read_tools(tools), strict=True):
        if spec.real is None or iscoroutinefunction(spec.real):
            raise ToolkitError(
                f"with_data: {spec.name!r} has no function to run at once: write Tool(..., simulate=...)"
            )
        made.append(replace(said, source=spec, simulate=said.simulate or OwnAnswer(spec.real, data)))
    return made


def starting_state(tools: Iterable[ToolSpec], given: Any) -> Any:
    """Return the start state of a world: the data of tools that have their own, overridden by the given state."""
    own = [tool.simulate.data for tool in tools if isinstance(tool.simulate, OwnAnswer)]
    if not own or not isinstance(given, dict):
        return given
    with _ONE_AT_A_TIME:  # during a call the dict contains another state
        return {**deepcopy({key: one for data in own for key, one in data.items()}), **given}


def _fill(data: MutableMapping[str, Any], values: JsonObject) -> None:
    """Replace the dict's content; lists and dicts are changed in place, since functions may have other references."""
    for key in [*data]:
        if key not in values:
            del data[key]
    for key, value in values.items():
        if isinstance(known := data.get(key), list) and isinstance(value, list):
            known[:] = value
        elif isinstance(known, dict) and isinstance(value, dict):
            known.clear()
            known.update(value)
        else:
            data[key] = value
