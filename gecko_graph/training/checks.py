"""Rules on a sample: tools and arguments by schema, calls executed in a `World`, values without a source.

Rules never reject a label because they cannot check it: a call that cannot be executed or compared is `undecided`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, NotRequired, cast

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, convert_to_messages
from typing_extensions import TypedDict

from ..context import GeckoContext
from ..conversation.changed import find_differences
from ..conversation.derive import score_conversation
from ..conversation.milestones.format import build_goal
from ..conversation.played import as_conversation
from ..conversation.score import find_status
from ..errors import GeckoError
from ..learning.readers import fails, read_result
from ..models.formatting import cut
from ..schemas.complaints import find_complaints
from ..state import Complaint, Json, Step
from ..tools import Toolkit
from ..tools.real import Answer
from ..tools.spec import ToolSpec
from ..values.difference import json_equal
from ..values.digest import pack, unpack
from ..values.notes import notes_of
from ..values.notes import tell as tell_note
from ..values.patch import same_value
from ..values.places import Place, excerpt, pointer
from ..world.provenance import trace_with
from ..world.rung import DECIDING
from ..world.world import World
from .samples import LabelCall, Sample, read_call

Code = Literal[
    "tool", "arguments", "refused", "result", "goal", "undecided", "context", "chosen", "judged", "no_reply",
    "replaced", "dialogue",
]  # fmt: skip
DROPPING = frozenset({"tool", "arguments", "refused", "result", "goal"})
OPEN = frozenset({"undecided", "context", "chosen", "no_reply"})
KNOBS = GeckoContext(semantic_validation=False)
_TOLD = re.compile(r"""\b(?:parameters|api_name|api_list|input_?schema)["']?\s*[:=]""", re.IGNORECASE)
"""Signs of tool descriptions in a prompt."""
_KEPT, _KEPT_TOOLS = 64, 4_096
"""Cache sizes: worlds after a start state and calls, and tools; many rows share them."""


class Reason(TypedDict):
    """One objection to a label, or one reason why it is undecided."""

    code: Code
    path: str
    """JSON Pointer into the sample: `/label/0/arguments/id`."""
    message: str


class SampleVerdict(TypedDict):
    """The verdict on a sample's label.

    `by` names the source: rules, calls executed in a world, a model, or nobody.
    """

    status: Literal["keep", "drop", "fix", "open"]
    by: Literal["rules", "world", "model", "nobody"]
    reasons: list[Reason]
    wrong: NotRequired[list[LabelCall]]
    """For `fix`: the label that was replaced."""
    truth: NotRequired[bool]
    """Whether the label is right by the `truth` column of `verify_samples`."""


def tell(code: Code, place: Sequence[str | int], message: str) -> Reason:
    return {"code": code, "path": pointer(place), "message": cut(message, budget=400)}


@dataclass(frozen=True, slots=True)
class Checker:
    """Checks samples one by one.

    Args:
        toolkit: The tools that execute the calls of samples with a state; with None only schemas are checked.
        sources: Whether values without a source are searched even if the world has decided.
    """

    toolkit: Toolkit | None = None
    sources: bool = False

    def check(self, sample: Sample, later: Sequence[Sample] = ()) -> SampleVerdict:
        """Return the rules' verdict; `later` are later samples of the same conversation, for a goal at its end."""
        tools = _read_called(sample) if sample["tools"] else self.toolkit
        reasons = [reason for at, call in enumerate(sample["label"]) for reason in _find_complaints(call, at, tools)]
        if tools is None and (sample["label"] or any(_TOLD.search(str(one["content"])) for one in sample["messages"])):
            reasons = [tell("undecided", ("tools",), "the row has no tools, or none that were read")]
        made = False
        if not reasons and self.toolkit is not None and sample.get("state") is not None:
            reasons, made = self._play(sample, later)
        codes = {each["code"] for each in reasons}
        if (self.sources or not made) and not codes & DROPPING and sample["label"] and tools is not None:
            reasons += _find_chosen(sample, tools)
        return _decide(reasons, made=made)

    def world_at(self, sample: Sample) -> World | str:
        """Return a world after the calls of the messages, before the label; or the reason why there is none."""
        past = [each for each in sample["messages"] if each["role"] in ("assistant", "tool")]
        found = _build_world(cast("Toolkit", self.toolkit), pack([sample.get("state"), past]))
        return found if isinstance(found, str) else found.fork(by_rules=True)

    def _play(self, sample: Sample, later: Sequence[Sample]) -> tuple[list[Reason], bool]:
        """Return the objections to a label, and whether the world confirmed all recorded results."""
        world, results, reasons = self.world_at(sample), sample.get("results"), list[Reason]()
        if isinstance(world, str):
            return [tell("context", ("messages",), world)], False
        for at, call in enumerate(sample["label"]):
            made = go_on(world, call, results[at : at + 1] if results else ())
            reasons += _judge(made, at, compared=results is not None)
        compared = results is not None or not sample["label"]
        if "goal" in sample and not reasons:
            reached = _reach(world, sample, later)
            compared = compared or bool(reached)
            reasons += [tell("goal", ("goal",), "not met once the calls are made")] if reached is False else []
        return reasons, compared and not reasons


def _read_called(sample: Sample) -> Toolkit:
    called = {each["name"] for each in sample["label"]}
    plain = {name: one["function"] for one in sample["tools"] if (name := one["function"]["name"]) in called}
    return Toolkit(map(_read_tool, map(pack, plain.values())))


@lru_cache(_KEPT_TOOLS)
def _read_tool(function: bytes) -> ToolSpec:
    name, about, parameters = map(unpack(function).get, ("name", "description", "parameters"))
    return ToolSpec(name=name, description=about or "", parameters=parameters or {})


@lru_cache(_KEPT)
def _build_world(toolkit: Toolkit, begun: bytes) -> World | str:
    """Return the world after a start state, calls and results (packed), or the reason why there is none."""
    state, past = unpack(begun)
    results = {each["tool_call_id"]: each["content"] for each in past if each["role"] == "tool"}
    try:
        world = World(toolkit, state=state, context=KNOBS, derive=False)
    except GeckoError as error:
        return str(error)
    for call in (call for message in past for call in message.get("tool_calls", ())):
        if call["id"] not in results:
            return f"the call {call['id']} has no result"
        made = go_on(world, read_call(call), [read_result(results[call["id"]])])
        if made.problem or not made.is_decided:
            return f"{made.step['call']['name']} of the messages: {made.problem or 'nothing decides it'}"
    return world


def _decide(reasons: list[Reason], *, made: bool) -> SampleVerdict:
    """Return the verdict for the rules' reasons; `made`: a world confirmed every call."""
    codes = {each["code"] for each in reasons}
    if not codes & DROPPING and codes & OPEN and not made:
        return {"status": "open", "by": "nobody", "reasons": reasons}
    by_world = made or codes & {"refused", "result", "goal"}
    status: Literal["keep", "drop"] = "drop" if codes & DROPPING else "keep"
    return {"status": status, "by": "world" if by_world else "rules", "reasons": reasons}


def _find_complaints(call: LabelCall, at: int, tools: Toolkit | None) -> Iterator[Reason]:
    tool = tools.get(call["name"]) if tools is not None else None
    if tool is None:
        yield tell("tool", ("label", at, "name"), f"{excerpt(call['name'])} is none of the row's tools")
    else:
        yield from _tell_all(find_complaints(tool, call["arguments"]), at)


def _tell_all(complaints: Iterable[Complaint], at: int) -> Iterator[Reason]:
    for each in complaints:
        path = pointer(("label", at, "arguments")) + each["path"]
        yield {"code": "arguments", "path": path, "message": f"expected {each['expected']}, got {each['got']}"}


def _find_chosen(sample: Sample, tools: Toolkit) -> Iterator[Reason]:
    """Yield the values of a label that occur in no earlier message, result or state."""
    outcome: Any = {"status": "ok", "result": None, "patch": [], "rung": "real", "simulated": False, "passed": []}
    calls = [{"name": each["name"], "args": each["arguments"]} for each in sample["label"]]
    steps: Any = [{"v": 1, "call": {"id": str(at), **each}, "outcome": outcome} for at, each in enumerate(calls)]
    known = {"conversation": to_langchain(sample["messages"]), "state": sample.get("state") or {}}
    for each in notes_of(trace_with(tools, steps, origins=False, **known).notes, "made_up"):
        path = pointer(("label", int(each["data"]["call"]), "arguments")) + each["where"]
        yield {"code": "chosen", "path": path, "message": f"{excerpt(each['data']['value'])} has no source"}


def to_langchain(messages: Sequence[Mapping[str, Any]]) -> list[AnyMessage]:
    found = convert_to_messages([{**each, "id": f"m{at}"} for at, each in enumerate(messages)])
    return cast("list[AnyMessage]", found)


class Made(NamedTuple):
    """An executed call, compared with its recorded result: the world after it, its step, the difference or ""."""

    world: World
    step: Step
    problem: str = ""

    @property
    def is_decided(self) -> bool:
        """Whether a contract or a function answered without doubt."""
        outcome = self.step.get("outcome")
        return outcome is not None and outcome["rung"] in DECIDING and not notes_of(outcome, "unclear")


def make(world: World, call: Mapping[str, Any], recorded: Sequence[Json] = ()) -> Made:
    """Execute a call in a fork of a world, as `go_on` does in the world itself."""
    return go_on(world.fork(by_rules=True), call, recorded)


def go_on(world: World, call: Mapping[str, Any], recorded: Sequence[Json] = ()) -> Made:
    """Execute a call in a world and compare the result with the recorded one, if any.

    If they differ, the world continues with the recorded result. Values that the world draws at random, such as new
    identifiers, do not count as differences.
    """
    (step,) = _call_all(world, [call])
    if not recorded or "outcome" not in step or json_equal(step["outcome"]["result"], recorded[0]):
        return Made(world, step)
    world.undo()
    return _follow(world, call, step, recorded[0])


def _follow(world: World, call: Mapping[str, Any], step: Step, real: Json) -> Made:
    """Continue the world with a recorded result that differs from its own; randomly drawn values are ignored."""
    ours, status = step["outcome"]["result"], step["outcome"]["status"]
    if fails(ours) != fails(real):
        status = "error" if fails(real) else "ok"
    (again,) = _call_all(world.fork(by_rules=True), [call], id="again")  # a call with another id draws other values
    world.record({**step["call"], "args": call["arguments"]}, Answer(status, real))
    other = again["outcome"]["result"] if "outcome" in again else ours
    drawn = {place for place, _, _ in find_differences(ours, other)}
    found = (each for each in _compare(ours, real) if each[0] not in drawn)
    shown = (f"at {pointer(place)}: {excerpt(theirs)}, not {excerpt(mine)}" for place, mine, theirs in found)
    return Made(world, step, next(shown, "").removeprefix("at : "))


def _call_all(world: World, calls: Sequence[Mapping[str, Any]], **more: str) -> list[Step]:
    resolve = world.toolkit.resolve
    return world.call_all({"name": resolve(each["name"]), "args": each["arguments"], **more} for each in calls)


def _compare(ours: Json, real: Json, place: Place = ()) -> Iterator[tuple[Place, Json, Json]]:
    """Yield the places where two results differ; 1 equals 1.0."""
    if isinstance(ours, dict) and isinstance(real, dict) and ours.keys() == real.keys():
        for key, each in ours.items():
            yield from _compare(each, real[key], (*place, key))
    elif isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        for at, pair in enumerate(zip(ours, real, strict=True)):
            yield from _compare(*pair, (*place, at))
    elif not same_value(ours, real):
        yield place, ours, real


def _reach(world: World, sample: Sample, later: Sequence[Sample]) -> bool | None:
    """Return whether the goal is met at the end of the conversation.

    None if the end is unknown, or a later label violates its schema, which says nothing about this label.
    """
    last: Any = sample["from"][-1] if sample["from"] else None
    missing = last.get("steps", 0) - last.get("step", 0) if isinstance(last, dict) else 0
    if missing > len(later):
        return None
    for each in later:
        if any("outcome" not in step for step in _call_all(world, each["label"])):
            return None
    text = (later[-1] if later else sample).get("text", "")
    return reaches(world, sample["goal"], to_langchain(sample["messages"]), text)


def _judge(made: Made, at: int, *, compared: bool) -> Iterator[Reason]:
    """Yield the objections to one executed call of a label."""
    outcome, place = made.step.get("outcome"), ("label", at)
    if made.step["call"]["name"] not in made.world.toolkit:
        yield tell("undecided", (*place, "name"), "no tool of the toolkit")
    elif outcome is None:
        yield from _tell_all(made.step["complaints"], at)
    elif not made.is_decided:
        why = "; ".join(map(tell_note, notes_of(outcome, "unclear"))) or "neither contract nor function answers"
        yield tell("undecided", place, why)
    elif made.problem:
        yield tell("result", ("results", at), made.problem)
    elif outcome["status"] == "error" and not compared:
        yield tell("refused", place, excerpt(outcome["result"]))


def reaches(world: World, goal: Mapping[str, Any], messages: Sequence[AnyMessage], text: str = "") -> bool:
    """Return whether a world's calls and a conversation reach a goal; `text` is the final answer."""
    said = [each for each in messages if isinstance(each, HumanMessage | SystemMessage)]
    conversation = as_conversation(world, said, text)
    built = build_goal(goal.get("milestones", ()), goal.get("minefields", ()), conversation["world"]["start"])
    return find_status(score_conversation(built, world.toolkit, conversation), "ended", []) == "passed"
