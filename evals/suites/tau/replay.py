"""A recorded conversation through the rehearsal's graph: its calls planned, its results in place of the tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models import BaseChatModel

from gecko_graph import GeckoContext, Toolkit, create_gecko
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.state import Json, JsonObject, Role
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.values.patch import json_equal
from gecko_graph.world.turn import states_of

FAILED = "Error"
"""How the result of a call begins that the real tool has refused."""

_RECORDS = {"reservation_id": "reservations", "user_id": "users", "order_id": "orders"}
_READS = ("get_reservation_details", "get_user_details", "get_order_details")


@dataclass(frozen=True, slots=True)
class RealCall:
    """A call that was really made, and what the real tool answered."""

    name: str
    args: JsonObject
    result: str

    @property
    def succeeded(self) -> bool:
        """Return false where the real tool answered with an error."""
        return not self.result.startswith(FAILED)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A recorded conversation: the user's messages, and the calls in their order."""

    id: str
    text: str
    calls: Sequence[RealCall]


def conversation_of(row: Mapping[str, Any]) -> Conversation:
    """Return the conversation of a row of the shared file. A call's result is the tool message that comes next."""
    calls, waiting = [], list[Mapping[str, Any]]()
    for message in row["messages"]:
        waiting += message.get("tool_calls") or ()
        if message["role"] == "tool":
            call = waiting.pop(0)
            calls.append(RealCall(call["name"], call["arguments"], str(message["content"])))
    text = "\n".join(message["content"] for message in row["messages"] if message["role"] == "user")
    return Conversation(f"{row['domain']}:{row['task_id']}:{row['trial']}", text, calls)


def replay(
    conversation: Conversation, toolkit: Toolkit, *, models: Mapping[Role, BaseChatModel], context: GeckoContext
) -> JsonObject:
    """Plan a conversation's calls once more, and see which are refused and what the task state comes to.

    Args:
        conversation: The user's messages and the recorded calls.
        toolkit: The domain's tools, by their schemas.
        models: Who is asked besides the recorded planner.
        context: The knobs.

    Returns:
        `succeeded`, `failed`: real calls; `refused`, `refused_failed`: those of them that the validator refuses, as
        text; `spoilt`, `found`, `missed`: calls spoilt on purpose; `records`, `held`, `differing`: records that the
        real tools gave, and whether the task state holds them as they were given last; `rungs`, `usage`.
    """
    planned = [{"call": call.name, "args": call.args} for call in conversation.calls]
    planner = RecordedModel(turns=[{"planner": [[*planned, {"say": "That is all."}]]}])
    desk = Desk(conversation.calls)
    gecko = create_gecko(
        Toolkit(map(desk.answering, toolkit)),
        models={**models, "planner": planner},
        context=context.model_copy(update={"max_steps": len(planned) + 1, "ladder": ("python",)}),
    )
    given: JsonObject = {"users": {}, "reservations": {}, "orders": {}, "runtime_state": {}}
    messages = [("user", conversation.text)]
    run = gecko.invoke({"messages": messages, "task_state": given}, {"recursion_limit": 5 * len(planned) + 100})
    (attempt,) = run["rehearsal"]["attempts"]
    steps = attempt["steps"]
    if len(steps) != len(planned):
        raise RuntimeError(f"{len(planned)} calls were planned, {len(steps)} had a step: {attempt['stop_reason']}")
    pairs = list(zip(conversation.calls, steps, strict=True))
    refused = [(call, step["complaints"]) for call, step in pairs if step.get("complaints")]
    outcomes = [step["outcome"] for _, step in pairs if "outcome" in step]
    usage = {role: cost for role, cost in run["rehearsal"]["usage"].items() if role != "planner"}
    return {
        "succeeded": sum(call.succeeded for call in conversation.calls),
        "failed": sum(not call.succeeded for call in conversation.calls),
        "refused": [_refusal(call, found) for call, found in refused if call.succeeded],
        "refused_failed": [_refusal(call, found) for call, found in refused if not call.succeeded],
        **spoil(conversation.calls, toolkit),
        **_held(states_of(given, attempt)[1], conversation.calls),
        "rungs": {"python": len(outcomes)},
        "usage": usage,
    }


class Desk:
    """Answers calls with what was recorded for them, in their order, and books the records that the results are."""

    def __init__(self, calls: Sequence[RealCall]) -> None:
        self._calls, self._at = calls, 0

    def answering(self, tool: ToolSpec) -> ToolSpec:
        """Return the tool, answered from the recording."""
        return replace(tool, simulate=self._simulate(tool.name), result=None, effect="write")

    def _simulate(self, name: str) -> Callable[..., Json]:
        def run(state: JsonObject, /, **args: Any) -> Json:
            call = self._next(name, args)
            if not call.succeeded:
                raise RuntimeError(call.result)
            result = plain(call.result)
            if place := record_place(call, result):
                state[place[0]][place[1]] = result
            return result

        return run

    def _next(self, name: str, args: JsonObject) -> RealCall:
        """Return the next recorded call of this name and arguments; those between were refused."""
        for place in range(self._at, len(self._calls)):
            call = self._calls[place]
            if call.name == name and call.args == args:
                self._at = place + 1
                return call
        raise LookupError(f"{name}({args}) was not recorded after call {self._at}")


def record_place(call: RealCall, result: Json) -> tuple[str, str] | None:
    """Return where a result is booked: under its own id, or without one under the id that was asked for."""
    if not isinstance(result, dict):
        return None
    for key, shelf in _RECORDS.items():
        if key in result or (key in call.args and call.name in _READS):
            return shelf, str(result.get(key, call.args.get(key)))
    return None


def _held(state: JsonObject, calls: Sequence[RealCall]) -> JsonObject:
    """Return whether a state holds each record as the real tools gave it last, and no other."""
    last: dict[tuple[str, str], Json] = {}
    for call in calls:
        result = plain(call.result)
        if call.succeeded and (place := record_place(call, result)):
            last[place] = result
    have = {(shelf, name): record for shelf in _RECORDS.values() for name, record in state[shelf].items()}
    differing = [place for place in {**last, **have} if not json_equal(have.get(place), last.get(place))]
    places = ["/".join(place) for place in differing]
    return {"records": len(last), "held": len(last) - len(set(differing) & set(last)), "differing": places}


def spoil(calls: Sequence[RealCall], toolkit: Toolkit) -> JsonObject:
    """Spoil calls and see whether the rules refuse them: an argument gone, of a wrong type, or one too many."""
    missed, spoilt = [], 0
    for call in calls:
        tool = toolkit[call.name]
        for how, args in _spoilt(call.args, tool.parameters):
            spoilt += 1
            if not find_complaints(tool, args):
                missed.append(f"{call.name}({json.dumps(args)}): {how}")
    return {"spoilt": spoilt, "found": spoilt - len(missed), "missed": missed}


def _spoilt(args: JsonObject, parameters: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    yield "an argument that there is not", {**args, "surely_no_argument": 1}
    for name in parameters.get("required", ())[:1]:
        yield f"without {name}", {key: value for key, value in args.items() if key != name}
        yield f"{name} of another type", {**args, name: {"no": ["such", "value"]}}


def plain(text: str) -> Json:
    """Return a real result as JSON; what is none stays a text."""
    try:
        made: Json = json.loads(text)
    except ValueError:
        return text
    return made


def _refusal(call: RealCall, found: Sequence[Mapping[str, Any]]) -> str:
    first = found[0]
    return f"{call.name}({json.dumps(call.args)}): {first['path']}: expected {first['expected']} ({first['source']})"
