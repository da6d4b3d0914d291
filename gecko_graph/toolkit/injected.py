"""What LangGraph's `ToolNode` injects into tools, from the graph that runs: runtime, state, store, config, call id."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeAlias
from uuid import uuid4

from ..errors import NotMade
from ..state import JsonObject

CALL_ID: ContextVar[str] = ContextVar("gecko_call_id", default="")
"""Id of the call that is made."""


Source: TypeAlias = Callable[[Any], Any]
"""What is injected of a call's `ToolRuntime`; raises LookupError."""


def find_injected(hints: Mapping[str, Any]) -> dict[str, Source | None]:
    """Return the parameters that a framework fills, and with what; None for what is not known here."""
    from langchain_core.tools import InjectedToolArg

    found: dict[str, Source | None] = {"run_manager": None, "callbacks": None}
    for name, hint in hints.items():
        members = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
        for part in (
            p for one in members for p in (*getattr(one, "__metadata__", ()), getattr(one, "__origin__", one))
        ):
            kind = part if isinstance(part, type) else type(part)
            if issubclass(kind, InjectedToolArg) or (kind is part and is_from_framework(part)):
                known = _SOURCES.get(kind.__name__) if is_from_framework(kind) else None
                source = partial(known, getattr(part, "field", None)) if known is _read_state else known
                found[name] = found.get(name) or source
    return found


def is_from_framework(annotation: Any) -> bool:
    """Return whether a type is LangChain's or LangGraph's."""
    return str(getattr(annotation, "__module__", "")).startswith(("langchain", "langgraph"))


def fill(tool: str, sources: Mapping[str, Source], optional: Collection[str], args: JsonObject) -> dict[str, Any]:
    """Return a call's arguments with what the running graph has for the tool's other parameters. Raises NotMade."""
    given, runtime = {name: value for name, value in args.items() if name not in sources}, _read_runtime()
    for name, source in sources.items():
        try:
            given[name] = source(runtime)
        except LookupError as error:
            if name not in optional:
                raise NotMade(f"{tool} was not called: {name!r} cannot be injected: {error.args[0]}") from None
    return given


def _read_runtime() -> Any:
    """Return the runtime of a call in the running graph, as `ToolNode` makes it; None outside of a graph."""
    from langgraph.config import get_config
    from langgraph.prebuilt import ToolRuntime
    from langgraph.runtime import get_runtime

    try:
        config, runtime = get_config(), get_runtime()
    except (RuntimeError, KeyError):
        return None
    if runtime is None:  # in a chain alone
        return None
    read = config["configurable"].get("__pregel_read")
    state = read(list(read.args[1]), True) if read else {}
    shared = {name: getattr(runtime, name) for name in ("context", "store", "stream_writer")}
    return ToolRuntime(state=state, config=config, tool_call_id=CALL_ID.get() or uuid4().hex, **shared)


def _whole(runtime: Any) -> Any:
    if runtime is None:
        raise LookupError("no graph is running")
    return runtime


def read_config(runtime: Any) -> Any:
    """Return the node's config."""
    return _whole(runtime).config


def read_call_id(runtime: Any) -> Any:
    """Return the call's id."""
    return _whole(runtime).tool_call_id


def _read_state(field: str | None, runtime: Any) -> Any:
    state = _whole(runtime).state
    if field and field not in state:
        raise LookupError(f"the graph's state has no {field!r}")
    return state[field] if field else state


def _read_store(runtime: Any) -> Any:
    if _whole(runtime).store is None:
        raise LookupError("the graph was compiled without a store")
    return runtime.store


_SOURCES: dict[str, Callable[..., Any]] = {
    **{"ToolRuntime": _whole, "RunnableConfig": read_config, "InjectedToolCallId": read_call_id},
    **{"InjectedState": _read_state, "InjectedStore": _read_store, "BaseStore": _read_store},
}
