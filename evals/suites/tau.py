"""The airline of tau-bench: recorded conversations through the graph, with recorded results instead of tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from gecko_graph import GeckoContext, Models, Toolkit, create_gecko
from gecko_graph.models.formatting import text_of
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.state import Json, JsonObject, Role
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.values.difference import json_equal
from gecko_graph.world.turn import states_of

from ..harness.figures import Case, Record, Table, share
from ..harness.options import Options, read_jsonl
from ..harness.suite import Expectation, Suite, Summary, by_group

CONVERSATIONS = "tau_airline_gpt4o.jsonl.gz"
TOOLS = "tau_tools.json"
FAILED = "Error"
"""The start of a result with which the real tool refused a call."""

_RECORDS = {"reservation_id": "reservations", "user_id": "users", "order_id": "orders"}
_READS = ("get_reservation_details", "get_user_details", "get_order_details")


@dataclass(frozen=True, slots=True)
class RealCall:
    """A call that was really made, and the real tool's answer."""

    name: str
    args: JsonObject
    result: str

    @property
    def succeeded(self) -> bool:
        return not self.result.startswith(FAILED)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A recorded conversation: the user's messages, and the calls in order."""

    id: str
    text: str
    calls: Sequence[RealCall]


def conversation_of(row: Mapping[str, Any]) -> Conversation:
    """Return the conversation of a row of the shared file, or of OpenAI messages.

    A call's result is the tool message with its id; without ids it is the next tool message.
    """
    calls, waiting = [], list[Mapping[str, Any]]()
    for message in row["messages"]:
        waiting += message.get("tool_calls") or ()
        if message["role"] == "tool" and waiting:
            named = (at for at, each in enumerate(waiting) if each.get("id") == message.get("tool_call_id"))
            call = waiting.pop(next(named, 0))
            made = call.get("function", call)
            args = made["arguments"] if isinstance(made["arguments"], dict) else plain(made["arguments"])
            calls.append(RealCall(made["name"], args if isinstance(args, dict) else {}, _said(message)))
    text = "\n".join(_said(message) for message in row["messages"] if message["role"] == "user")
    return Conversation(":".join(str(row.get(key, "")) for key in ("domain", "task_id", "trial")), text, calls)


def _said(message: Mapping[str, Any]) -> str:
    return text_of(HumanMessage(message.get("content") or ""))


def replay(
    conversation: Conversation, toolkit: Toolkit, *, models: Mapping[Role, BaseChatModel], context: GeckoContext
) -> JsonObject:
    """Plan a conversation's calls again, and return which are refused and the resulting task state.

    Returns:
        `succeeded`, `failed`: real calls; `refused`, `refused_failed`: those of them that the validator refuses, as
        text; `spoilt`, `found`, `missed`: intentionally corrupted calls; `records`, `held`, `differing`: records that
        the real tools returned, and whether the task state has their last versions; `rungs`, `usage`.
    """
    planned = [{"call": call.name, "args": call.args} for call in conversation.calls]
    planner = RecordedModel(turns=[{"planner": [[*planned, {"say": "That is all."}]]}])
    desk = Desk(conversation.calls)
    gecko = create_gecko(
        Toolkit(map(desk.answering, toolkit)),
        model=Models().replace(**{**models, "planner": planner}),
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
    """Answers calls with their recorded results, in order, and stores the records of these results in the state."""

    def __init__(self, calls: Sequence[RealCall]) -> None:
        self._calls, self._at = calls, 0

    def answering(self, tool: ToolSpec) -> ToolSpec:
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
        """Return the next recorded call of this name and arguments; calls in between were refused."""
        for place in range(self._at, len(self._calls)):
            call = self._calls[place]
            if call.name == name and call.args == args:
                self._at = place + 1
                return call
        raise LookupError(f"{name}({args}) was not recorded after call {self._at}")


def record_place(call: RealCall, result: Json) -> tuple[str, str] | None:
    """Return the place of a result in the state: under its own id, else under the requested one."""
    if not isinstance(result, dict):
        return None
    for key, shelf in _RECORDS.items():
        if key in result or (key in call.args and call.name in _READS):
            return shelf, str(result.get(key, call.args.get(key)))
    return None


def _held(state: JsonObject, calls: Sequence[RealCall]) -> JsonObject:
    """Return whether a state has the last version of each record that the real tools returned, and no other record."""
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
    """Corrupt calls and return whether the rules refuse them: a missing, wrongly typed, or unknown argument."""
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
    """Return a real result as JSON, or unchanged if it is not JSON."""
    try:
        made: Json = json.loads(text)
    except ValueError:
        return text
    return made


def _refusal(call: RealCall, found: Sequence[Mapping[str, Any]]) -> str:
    first = found[0]
    return f"{call.name}({json.dumps(call.args)}): {first['path']}: expected {first['expected']} ({first['source']})"


class Tau(Suite):
    """tau-bench: real calls of gpt-4o through validator and state.

    A case is a recorded airline conversation (retail has tools but no recordings): its calls are planned again, the
    validator checks them, recorded results answer them, and their users and reservations are stored in the task state.
    No call that really succeeded may be refused. With --model or --role-model validator=MODEL the validator's model is
    asked too. Each call is also corrupted in up to three ways, which the rules must refuse.
    """

    name = "tau"
    tools = "real"
    planner = None
    examples = ("", "--role-model validator=openai:gpt-5-mini")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        tools = json.loads(options.dataset(TOOLS).read_text(encoding="utf-8"))
        self._kits = {domain: Toolkit.from_tools(tools[domain]) for domain in tools}

    def cases(self) -> Iterator[Case]:
        for row in read_jsonl(self.options.dataset(CONVERSATIONS)):
            conversation = conversation_of(row)
            facts = {"reward": row["reward"], "calls": len(conversation.calls)}
            yield Case(conversation.id, conversation, group=row["domain"], facts=facts)

    def run_case(self, case: Case) -> JsonObject:
        models: dict[Role, BaseChatModel] = {
            role: each for role, each in self.options.speakers().items() if role == "validator"
        }
        return replay(case.data, self._kits[case.group], models=models, context=self.options.context(max_retries=0))

    def summarise(self, records: Sequence[Record]) -> Summary:
        done = [record.values for record in records if record.done]
        heads = [
            "refused though they succeeded",
            "refused of those that failed",
            "spoilt calls refused",
            "records held",
        ]
        note = "Records held: users and reservations in the task state as the real tools gave them last."
        table = Table("Recorded gpt-4o calls through validator and state", ["domain", *heads], note=note)
        for domain, some in by_group(records).items():
            values = [record.values for record in some if record.done]
            succeeded, failed, spoilt, found, kept, held = (
                sum(each[key] for each in values)
                for key in ("succeeded", "failed", "spoilt", "found", "records", "held")
            )
            refused, lost = (sum(len(each[key]) for each in values) for key in ("refused", "refused_failed"))
            pairs = ((refused, succeeded), (lost, failed), (found, spoilt), (held, kept))
            table.add(domain, *(share(hits, n, tools="real") for hits, n in pairs))
        tools = Table("Tools of the domains", ["domain", "tools", "problems"])
        for domain, kit in self._kits.items():
            tools.add(domain, len(kit), len(kit.problems))
        refused_calls, missed, differing = (
            [text for each in done for text in each[key]] for key in ("refused", "missed", "differing")
        )
        expectations = [
            Expectation(f"no call that really succeeded is refused ({len(refused_calls)} are)", not refused_calls),
            Expectation(
                f"the task state holds what the real tools gave ({len(differing)} records differ)", not differing
            ),
            Expectation(f"every spoilt call is refused ({len(missed)} are not)", not missed),
        ]
        notes = [*(f"refused: {text}" for text in refused_calls), *(f"passed: {text}" for text in missed)]
        return Summary([table, tools], expectations, [*notes, *(f"state: {text}" for text in differing)])


SUITE = Tau
