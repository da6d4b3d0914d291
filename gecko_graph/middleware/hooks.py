"""The common part of the middleware's hooks: sync and async versions, checks of the thread, traces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any
from warnings import warn

from langchain_core.messages import AnyMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.types import TracePolicy, omit_payload

from ..errors import StateError
from ..models.answer import AT_ONCE, AWAITED, finish
from ..models.node import require_whole
from ..state import LOST, Json
from ..tools import Toolkit
from ..values.observation import mask_values

LEFT_OUT = TracePolicy(process_inputs=omit_payload, process_outputs=omit_payload)
"""The default: a tracer would store the whole agent state, with world and journal, for each hook."""


def both(hook: Callable[..., Any]) -> tuple[Any, Any]:
    """Return a hook's sync and async versions for LangChain; the first argument is the state, or a request with it."""

    def at_once(self: Any, state: Any, runtime: Any) -> Any:
        check_thread(state)
        return finish(hook(self, state, runtime, AT_ONCE))

    async def awaited(self: Any, state: Any, runtime: Any) -> Any:
        check_thread(state)
        return await hook(self, state, runtime, AWAITED)

    at_once.__doc__ = awaited.__doc__ = hook.__doc__
    return at_once, awaited


def check_thread(given: Any) -> None:
    """Raise StateError if a thread has lost its world, which would ignore the changes of its real calls."""
    state = getattr(given, "state", given)
    is_emptied = state.get("gecko_journal") and not state.get("gecko")
    require_whole({"gecko": {LOST: "gecko"}} if is_emptied else state)


def check_history(messages: Sequence[AnyMessage], toolkit: Toolkit, config: RunnableConfig) -> None:
    """Raise StateError if a world would start after real writes of this thread, as if there were none.

    `update_state` as the graph's input copies a thread's messages without its world. Within a parent graph each turn
    starts a world, as nothing else is possible without a checkpointer.
    """
    at = config.get("configurable", {})
    answers = [each for each in messages if isinstance(each, ToolMessage) and not toolkit.is_read(str(each.name))]
    marks = [each.additional_kwargs.get("gecko", {}) for each in answers]
    if at.get("__pregel_checkpointer") and "|" not in at.get("checkpoint_ns", "") and any(map(is_made, marks)):
        raise StateError(
            "this thread's messages contain real calls, but it has no world with their changes: it was copied by its "
            "values. Copy all checkpoints and writes of a thread, give `state` as a function, or start without these "
            "messages"
        )


def is_made(marks: Mapping[str, Any]) -> bool:
    return marks.get("rung") == "real" and not marks.get("simulated")


def warn_unknown(tools: Iterable[Any], toolkit: Toolkit, excluded: Collection[str]) -> None:
    """Warn of an agent's tools, such as those of other middleware, that the toolkit lacks: their calls are refused."""
    names = [each.name for each in tools if isinstance(each, BaseTool)]  # a dict is a provider's own tool
    if unknown := [name for name in names if toolkit.resolve(name) not in toolkit and name not in excluded]:
        warn(
            f"calls of {', '.join(unknown)} are refused, since the toolkit lacks these tools: add them to it, or let "
            f"them run unchanged with exclude_tools={unknown}",
            stacklevel=1,
        )


def with_masks(policy: TracePolicy) -> TracePolicy:
    def masked(process: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
        return lambda value: mask_values(as_plain(process(value) if process else value))

    return TracePolicy(process_inputs=masked(policy.process_inputs), process_outputs=masked(policy.process_outputs))


def as_plain(value: Any) -> Json:
    """Return a hook's input or output as JSON; other objects, such as functions and runtimes, as their type."""
    if isinstance(value, BaseMessage):
        value = value.model_dump()
    if is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else f"<{type(value).__name__}>"
