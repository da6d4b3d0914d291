"""What rules say of a sample: tools and arguments by schema, its calls made in a `World`, values without a source.

Rules never take a label for wrong because they could not follow it: what cannot be made or compared is `undecided`.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, NotRequired, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from typing_extensions import TypedDict

from ..context import GeckoContext
from ..conversation.changed import find_differences
from ..conversation.derive import score_conversation
from ..conversation.milestones.format import MilestoneEntry, build_goal
from ..conversation.score import find_status
from ..errors import GeckoError
from ..learning.readers import fails, read_result
from ..models.formatting import cut
from ..schemas.complaints import find_complaints
from ..state import Json, JsonObject, Step
from ..tools import Toolkit
from ..tools.real import Answer
from ..tools.spec import ToolSpec
from ..values.difference import json_equal
from ..values.digest import digest
from ..values.patch import same_value
from ..values.places import Place, excerpt, json_path
from ..world.provenance import trace_with
from ..world.rung import DECIDING
from ..world.world import World
from .calls import read_call
from .env import as_conversation
from .samples import LabelCall, Sample

Code = Literal[
    "tool",
    "arguments",
    "refused",
    "result",
    "goal",
    "undecided",
    "context",
    "chosen",
    "judged",
    "no_reply",
    "replaced",
    "dialogue",
]
DROPPING = frozenset({"tool", "arguments", "refused", "result", "goal"})
OPEN = frozenset({"undecided", "context", "chosen", "no_reply"})
KNOBS = GeckoContext(semantic_validation=False)
_KEPT = 64
"""Tools of rows, and worlds of start states, that are kept."""


class Reason(TypedDict):
    """One thing that speaks against a label, or that leaves it open."""

    code: Code
    path: str
    """JSON path in the sample: `$.label[0].arguments.id`."""
    message: str


class Verdict(TypedDict):
    """What is made of a sample's label, and by whom: rules, the calls made in a world, a model, or nobody."""

    status: Literal["keep", "drop", "fix", "open"]
    by: Literal["rules", "world", "model", "nobody"]
    reasons: list[Reason]
    wrong: NotRequired[list[LabelCall]]
    """Of a fix: the label that it replaces."""
    truth: NotRequired[bool]
    """Whether the label is right, as the column says that `verify` was told of."""


def tell(code: Code, place: Sequence[str | int], message: str) -> Reason:
    """Build a reason."""
    return {"code": code, "path": json_path(place), "message": cut(message, budget=400)}


@dataclass(slots=True)
class Checker:
    """Checks samples one after the other; tools and worlds that stay the same are kept.

    Args:
        toolkit: The tools that answer the calls of samples with a state; None leaves these to the schemas.
        sources: Whether values without a source are also looked for where the world has decided.
    """

    toolkit: Toolkit | None = None
    sources: bool = False
    _tools: OrderedDict[str, Toolkit | None] = field(default_factory=OrderedDict)
    _worlds: OrderedDict[str, World | str] = field(default_factory=OrderedDict)

    def check(self, sample: Sample, later: Sequence[Sample] = ()) -> Verdict:
        """Return the rules' verdict; `later` are the samples that continue its conversation, for a goal at its end."""
        tools = self._tools_of(sample["tools"])
        reasons = list(_find_complaints(sample, tools)) if sample["label"] else []
        made = False
        if not reasons and self.toolkit is not None and sample.get("state") is not None:
            reasons, made = _Play(self, sample).run(later)
        is_left = (self.sources or not made) and not any(each["code"] in DROPPING for each in reasons)
        if is_left and sample["label"] and tools is not None:
            reasons += _find_chosen(sample, tools)
        return decide(reasons, made=made)

    def _tools_of(self, tools: list[JsonObject]) -> Toolkit | None:
        """Return a row's tools; where it names none, those that were given."""
        if not tools:
            return self.toolkit
        key = json.dumps(tools)
        if key not in self._tools:
            self._tools[key] = Toolkit(_specs_of(tools))
            if len(self._tools) > _KEPT:
                self._tools.popitem(last=False)
        return self._tools[key]

    def world_at(self, sample: Sample) -> World | str:
        """Return a world at the point before the label, or why there is none; the messages' calls are booked in it."""
        past = [each for each in sample["messages"] if each["role"] in ("assistant", "tool")]
        key = digest([sample.get("state"), past])
        if key not in self._worlds:
            self._worlds[key] = self._build_world(sample)
            if len(self._worlds) > _KEPT:
                self._worlds.popitem(last=False)
        found = self._worlds[key]
        return found if isinstance(found, str) else found.fork(by_rules=True)

    def _build_world(self, sample: Sample) -> World | str:
        try:
            world = World(cast("Toolkit", self.toolkit), state=sample["state"], context=KNOBS)
        except GeckoError as error:
            return str(error)
        results = {each["tool_call_id"]: each["content"] for each in sample["messages"] if each["role"] == "tool"}
        for message in sample["messages"]:
            for call in message.get("tool_calls", ()):
                if call["id"] not in results:
                    return f"the call {call['id']} has no result"
                made = make(world, read_call(call), [read_result(results[call["id"]])])
                if made.problem or not made.is_decided:
                    return f"{made.step['call']['name']} of the messages: {made.problem or 'nothing decides it'}"
                world = made.world
        return world


def _specs_of(tools: Sequence[JsonObject]) -> list[ToolSpec]:
    plain = {each["function"]["name"]: each["function"] for each in tools}
    return [
        ToolSpec(name=name, description=each.get("description") or "", parameters=each.get("parameters") or {})
        for name, each in plain.items()
    ]


def decide(reasons: list[Reason], *, made: bool) -> Verdict:
    """Return what reasons of rules come to; `made` where a world has answered every call as the sample has it."""
    codes = {each["code"] for each in reasons}
    by_world = made or codes & {"refused", "result", "goal"}
    if codes & DROPPING:
        return {"status": "drop", "by": "world" if by_world else "rules", "reasons": reasons}
    if codes & OPEN and not made:
        return {"status": "open", "by": "nobody", "reasons": reasons}
    return {"status": "keep", "by": "world" if made else "rules", "reasons": reasons}


def _find_complaints(sample: Sample, tools: Toolkit | None) -> Iterator[Reason]:
    for at, call in enumerate(sample["label"]):
        tool = tools.get(call["name"]) if tools is not None else None
        if tool is None:
            yield tell("tool", ("label", at, "name"), f"{excerpt(call['name'])} is none of the row's tools")
            continue
        for each in find_complaints(tool, call["arguments"]):
            path = json_path(("label", at, "arguments")) + each["path"].removeprefix("$")
            yield {"code": "arguments", "path": path, "message": f"expected {each['expected']}, got {each['got']}"}


def _find_chosen(sample: Sample, tools: Toolkit) -> Iterator[Reason]:
    """Yield the values of a label that stand nowhere in what was known before it."""
    steps = [_as_step(call, at) for at, call in enumerate(sample["label"])]
    known = {"conversation": to_langchain(sample["messages"]), "state": sample.get("state") or {}}
    for each in trace_with(tools, steps, **known).made_up:
        path = json_path(("label", int(each["call"]), "arguments")) + each["argument"].removeprefix("$")
        yield {"code": "chosen", "path": path, "message": f"{excerpt(each['value'])} has no source"}


def _as_step(call: LabelCall, at: int) -> Step:
    outcome: Any = {"status": "ok", "result": None, "patch": [], "rung": "real", "simulated": False, "passed": []}
    return {"v": 1, "call": {"id": str(at), "name": call["name"], "args": call["arguments"]}, "outcome": outcome}


def to_langchain(messages: Sequence[Mapping[str, Any]]) -> list[AnyMessage]:
    """Return a sample's messages as LangChain's."""
    found: list[AnyMessage] = []
    for at, each in enumerate(messages):
        calls = [{"id": call["id"], **read_call(call)} for call in each.get("tool_calls", ())]
        made = [{"id": call["id"], "name": call["name"], "args": call["arguments"]} for call in calls]
        kind, text = each["role"], each["content"]
        if kind == "assistant":
            found.append(AIMessage(text, tool_calls=made, id=f"m{at}"))
        elif kind == "tool":
            found.append(ToolMessage(text, tool_call_id=each["tool_call_id"], id=f"m{at}"))
        else:
            found.append((HumanMessage if kind == "user" else SystemMessage)(text, id=f"m{at}"))
    return found


class Made(NamedTuple):
    """A call made beside what a row has recorded of it: the world after it, its step, how they differ ("" if not)."""

    world: World
    step: Step
    problem: str = ""

    @property
    def is_decided(self) -> bool:
        """Whether contract or function has answered, without a doubt."""
        outcome = self.step.get("outcome")
        return outcome is not None and outcome["rung"] in DECIDING and not outcome.get("unclear")


def make(world: World, call: Mapping[str, Any], recorded: Sequence[Json] = ()) -> Made:
    """Make a call in a fork of a world; what is recorded is its one result.

    Where that is another one, the fork goes on as the row says: values that the world draws, such as new identifiers,
    are the recorded ones, and are no difference.
    """
    name, trial = world.toolkit.resolve(call["name"]), world.fork(by_rules=True)
    step = trial.call({"name": name, "args": call["arguments"]})
    outcome = step.get("outcome")
    if not recorded or outcome is None or json_equal(outcome["result"], recorded[0]):
        return Made(trial, step)
    is_error = fails(recorded[0])
    status = outcome["status"] if fails(outcome["result"]) == is_error else "error" if is_error else "ok"
    after = world.fork(by_rules=True)
    after.record({**step["call"], "args": call["arguments"]}, Answer(status, recorded[0]))
    again = World.restore(world.toolkit, world.snapshot(), context=KNOBS.model_copy(update={"seed": 1}))
    other = again.call({"name": name, "args": call["arguments"]}).get("outcome", outcome)
    drawn = {place for place, old, new in find_differences(outcome["result"], other["result"])}
    found = (each for each in _compare(outcome["result"], recorded[0]) if each[0] not in drawn)
    shown = (f"at {json_path(place)}: {excerpt(real)}, not {excerpt(ours)}" for place, ours, real in found)
    return Made(after, step, next(shown, ""))


def _make_all(world: World, label: Sequence[LabelCall], results: Sequence[Json] | None) -> Iterator[Made]:
    """Yield the calls of a label as `make` makes them: at once where that comes to what is recorded."""
    trial = world.fork(by_rules=True)
    steps = trial.call_all({"name": world.toolkit.resolve(one["name"]), "args": one["arguments"]} for one in label)
    same = (
        "outcome" in step and json_equal(step["outcome"]["result"], result)
        for step, result in zip(steps, results or (), strict=results is not None)
    )
    if all(same):
        yield from (Made(trial, step) for step in steps)
        return
    for call, result in zip(label, results or (), strict=True):
        made = make(world, call, [result])
        world = made.world
        yield made


def _compare(ours: Json, real: Json, place: Place = ()) -> Iterator[tuple[Place, Json, Json]]:
    """Yield where two results differ; 1 is 1.0."""
    if isinstance(ours, dict) and isinstance(real, dict) and ours.keys() == real.keys():
        for key, each in ours.items():
            yield from _compare(each, real[key], (*place, key))
    elif isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        for at, pair in enumerate(zip(ours, real, strict=True)):
            yield from _compare(*pair, (*place, at))
    elif not same_value(ours, real):
        yield place, ours, real


class _Play:
    """The calls of one label, made in a world at the point before them."""

    def __init__(self, checker: Checker, sample: Sample) -> None:
        self._sample, self._checker = sample, checker
        self._messages = to_langchain(sample["messages"])
        self._reasons: list[Reason] = []

    def run(self, later: Sequence[Sample]) -> tuple[list[Reason], bool]:
        """Return the reasons against the label, and whether the world has answered all of it as the sample says."""
        world = self._checker.world_at(self._sample)
        if isinstance(world, str):
            return [tell("context", ("messages",), world)], False
        results = self._sample.get("results")
        for at, made in enumerate(_make_all(world, self._sample["label"], results)):
            self._reasons += _judge(made, at, compared=results is not None)
            world = made.world
        compared = results is not None or not self._sample["label"]
        if "goal" in self._sample and not self._reasons:
            reached = self._reach(world, later)
            compared = compared or bool(reached)
            if reached is False:
                self._reasons.append(tell("goal", ("goal",), "not met once the calls are made"))
        return self._reasons, compared and not self._reasons

    def _reach(self, world: World, later: Sequence[Sample]) -> bool | None:
        """Return whether the goal is met at the end of the conversation.

        None where its end is not known, or a later label breaks its schema: that says nothing of this one.
        """
        last: Any = self._sample["from"][-1] if self._sample["from"] else None
        missing = last.get("steps", 0) - last.get("step", 0) if isinstance(last, dict) else 0
        if missing > len(later):
            return None
        for each in later:
            label = ({"name": world.toolkit.resolve(one["name"]), "args": one["arguments"]} for one in each["label"])
            if any("outcome" not in step for step in world.call_all(label)):
                return None
        text = (later[-1] if later else self._sample).get("text", "")
        return reaches(world, self._sample["goal"], self._messages, text)


def _judge(made: Made, at: int, *, compared: bool) -> Iterator[Reason]:
    """Yield what speaks against one call of a label that was made."""
    outcome, place = made.step.get("outcome"), ("label", at)
    if made.step["call"]["name"] not in made.world.toolkit:
        yield tell("undecided", (*place, "name"), "no tool of the toolkit")
    elif outcome is None:
        for each in made.step["complaints"]:
            path = json_path((*place, "arguments")) + each["path"].removeprefix("$")
            yield {"code": "arguments", "path": path, "message": f"expected {each['expected']}, got {each['got']}"}
    elif not made.is_decided:
        why = "; ".join(outcome.get("unclear", ())) or "neither contract nor function answers"
        yield tell("undecided", place, why)
    elif made.problem:
        yield tell("result", ("results", at), made.problem)
    elif outcome["status"] == "error" and not compared:
        yield tell("refused", place, excerpt(outcome["result"]))


def reaches(world: World, goal: Mapping[str, Any], messages: Sequence[AnyMessage], text: str = "") -> bool:
    """Return whether a world's calls, after what was said, come to a goal; `text` is what is said at the end."""
    said = [each for each in messages if isinstance(each, HumanMessage | SystemMessage)]
    conversation = as_conversation(world, said, text)
    milestones, minefields = (
        [MilestoneEntry.model_validate(each) for each in goal.get(key, ())] for key in ("milestones", "minefields")
    )
    built = build_goal(milestones, minefields, conversation["world"]["start"])
    return find_status(score_conversation(built, world.toolkit, conversation), "ended", []) == "passed"
