"""What LangGraph's `ToolNode` injects into tools, from the graph that runs: runtime, state, store, config, call id."""

from __future__ import annotations

import types
import typing
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple
from uuid import uuid4

from ..errors import NotMade
from ..state import JsonObject

CALL_ID: ContextVar[str] = ContextVar("gecko_call_id", default="")
"""Id of the call that is made."""


_KNOWN = {
    "ToolRuntime": "", "RunnableConfig": "config", "InjectedToolCallId": "tool_call_id", "InjectedState": "state",
    "InjectedStore": "store", "BaseStore": "store",
}  # fmt: skip
"""Classes that mark a parameter, and what of the call's `ToolRuntime` it gets."""


class Source(NamedTuple):
    """What is injected: a part of the call's `ToolRuntime`, or of that part a field; no part is all of it."""

    part: str
    field: str | None


def find_injected(hints: Mapping[str, Any]) -> dict[str, Source | None]:
    """Return the parameters that a framework fills, and with what; None for what is not known here."""
    from langchain_core.tools import InjectedToolArg

    found: dict[str, Source | None] = {"run_manager": None, "callbacks": None}
    for name, hint in ((key, one) for key, one in hints.items() if key != "return"):
        members = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
        for part in (
            p for one in members for p in (*getattr(one, "__metadata__", ()), getattr(one, "__origin__", one))
        ):
            kind = part if isinstance(part, type) else type(part)
            if issubclass(kind, InjectedToolArg) or (kind is part and is_from_framework(part)):
                known = kind.__name__ in _KNOWN and is_from_framework(kind)
                source = Source(_KNOWN[kind.__name__], getattr(part, "field", None)) if known else None
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
            given[name] = _read(runtime, source)
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


def _read(runtime: Any, source: Source) -> Any:
    if runtime is None:
        raise LookupError("no graph is running")
    value = getattr(runtime, source.part) if source.part else runtime
    if value is None:
        raise LookupError(f"the graph was compiled without a {source.part}")
    if source.field and source.field not in value:
        raise LookupError(f"the graph's {source.part} has no {source.field!r}")
    return value[source.field] if source.field else value
