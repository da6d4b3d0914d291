"""Generate dialogues from tools: planned, played with a simulated user, verified in two tiers (LoopTool, 3.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

from langchain_core.messages import convert_to_openai_messages

from ..conversation.agent import AgentLike, read_agent
from ..conversation.channels import read_envelope
from ..conversation.graph import create_conversation
from ..errors import GeckoError
from ..models.ask import Dialogue, ModelAsk
from ..models.cache import of_item
from ..models.factory import Models, ModelsLike
from ..models.formatting import format_json, text_of
from ..models.roles import PlannedDialogue
from ..models.usage import add_all, no_usage
from ..scenario.cases.draft import draft_case
from ..state import JsonObject, RoleUsage
from ..tools import Toolkit
from ..values.digest import digest
from ..values.mapping import Map, Work
from ..world.provenance import is_planned
from ..world.state_rules import StateRules
from .checks import tell as reason
from .files import once, storable, write_text
from .shards import Shards, forget, name_of
from .tool_writer import ask_twice
from .verify import verify_samples
from .words import find_lacks

SAMPLES, SHARD = "samples.jsonl", 50
"""The file of rows; kept dialogues of a part of it that is not made again."""
MEASURED, TRIES = 2, 2
"""Dialogues after which costs are reported, and most dialogues planned per requested one."""
KINDS = ("call", "missing_argument", "no_tool", "several_calls", "correction")
_MOST_TOOLS, _MOST_TURNS, _TOOLS, _MESSAGES_A_TURN = 6, 4, 12_000, 10


class Draw(NamedTuple):
    """The random draft of a dialogue: the names of its tools, and the kinds of its turns."""

    names: list[str]
    kinds: list[str]

    @classmethod
    def of(cls, toolkit: Toolkit, seed: int, number: int) -> Draw:
        """Return the draft of a dialogue's number, which depends on seed and number only."""
        rng = Random(f"{seed}/{number}")
        names = rng.sample(toolkit.names, min(len(toolkit), rng.randint(2, _MOST_TOOLS)))
        kinds = [rng.choice(KINDS) for _ in range(rng.randint(1, _MOST_TURNS))]
        return cls(names, ["call", *kinds[1:]] if "correction" in kinds else kinds)  # needs an earlier call


def make_dialogues(  # noqa: PLR0913 - every one is a choice of its own, by keyword
    toolkit: Toolkit,
    folder: str | Path,
    n: int = 100,
    *,
    tools: str,
    model: ModelsLike,
    assistant: AgentLike | None = None,
    seed: int = 0,
    map: Map = map,
    shards: int | None = None,
    costs: Callable[[RoleUsage], bool] = lambda spent: True,
    tell: Callable[[int, int], None] = lambda kept, made: None,
) -> Counter[str]:
    """Plan and play dialogues, and keep those in which every step passes both tiers of the verification.

    `samples.jsonl` has all rows with their verdicts, also of dropped dialogues; each kept one is a case beside it. With
    `shards` the rows are in the folder `samples`. The same call goes on where it was stopped.

    Args:
        toolkit: The tools. Contracts and functions answer if they can, then examples and schemas; a model only if
            `model` has the role `simulator`.
        folder: The folder of rows and cases.
        n: Dialogues to keep; at most twice as many are planned.
        tools: The cases' reference to the tools.
        model: The models of `dialogue_planner`, `user` and `label_judge`.
        assistant: The assistant; by default the model of the role `planner`.
        seed: Seed of the drafts.
        map: The `map` that runs the work (`gecko_graph.values.mapping`); it does not change the result.
        shards: So many files, with a manifest, of as many kept dialogues each.
        costs: Called with the cost of the first two dialogues, if others follow; False stops.
        tell: Called with the numbers of kept and of played dialogues.

    Returns:
        The numbers of `kept` dialogues, of `rows`, and of dropped dialogues by cause.

    Raises:
        GeckoError: No tool, no model for a role, a folder with other dialogues, or `costs` returned False; finished
            work is kept.
    """
    place, models = Path(folder), Models.of(model)
    if not len(toolkit):
        raise GeckoError("expected a document with at least one tool")
    models.require("dialogue_planner", "user", "label_judge")
    if assistant is None:
        models.require("planner")

    def work(replies: Path) -> Counter[str]:
        play = PlayDialogue(toolkit, models.caching(replies), assistant, tools, seed)
        with Shards(place / name, digest(inputs), shards) as done:
            counts = Counter[str]()
            for each in done.done.values():
                counts.update(each["dialogues"])
            made = _make_all(n, lambda wave: map(play, wave), counts, costs, tell)
            while first := next(made, None):
                part = Counter[str]()
                rows = _take(chain([first], made), size, place, part)
                done.write(len(done.done), rows, lambda number: {"dialogues": part, "rows": number})  # noqa: B023
            done.save()
            counts["rows"] = sum(each["rows"] for each in done.done.values())
            return counts

    named = [each if isinstance(each, str) else "" for each in (model, assistant)]
    inputs = {"tools": toolkit.to_openapi(), "n": n, "seed": seed, "models": named}
    inputs |= {"shards": shards} if shards else {}
    name, size = name_of(SAMPLES, shards), -(-n // shards) if shards else SHARD
    counts = Counter(once(place, "dialogues", [name], inputs, work, anew=False))
    forget(place / name)
    return counts


@dataclass
class PlayDialogue(Work[int, JsonObject]):
    """The work: a dialogue's number to its record."""

    toolkit: Toolkit
    models: Models
    assistant: AgentLike | None
    tools: str
    seed: int

    def begin(self) -> Callable[[int], JsonObject]:
        """Build the assistant; its replies are cached as all others are."""
        agent = self.models.get("planner") if self.assistant is None else read_agent(self.assistant, self.models)
        return partial(self._play, self.models.keeping(agent))

    def _play(self, agent: AgentLike, number: int) -> JsonObject:
        with of_item(f"dialogue {number}"):
            return cast("JsonObject", storable(Course(self, agent, number).make()))


def _take(entries: Iterator[JsonObject], most: int, folder: Path, counts: Counter[str]) -> Iterator[JsonObject]:
    """Yield the rows of dialogues until so many are kept; these are counted, the case of each kept one is written."""
    while counts["kept"] < most and (entry := next(entries, None)):
        counts[entry["dropped"] or "kept"] += 1
        if entry["case"]:
            write_text(folder / f"{entry['name']}.gecko.yaml", entry["case"])
        yield from entry["rows"]


def _make_all(
    n: int,
    play: Callable[[Iterable[int]], Iterator[JsonObject]],
    counts: Counter[str],
    costs: Callable[[RoleUsage], bool],
    tell: Callable[[int, int], None],
) -> Iterator[JsonObject]:
    """Yield dialogues behind those that are counted, in waves of which all may be kept, until so many are."""
    spent = no_usage()
    while (left := min(n - counts["kept"], n * TRIES - counts.total())) > 0:
        number = counts.total()
        if number == MEASURED and spent["calls"] and not costs(spent):
            raise GeckoError("stopped before the other dialogues; rerun the same command to resume")
        for entry in play(range(number, number + (left if number else min(left, MEASURED)))):
            spent = add_all([spent, entry["usage"]])
            counts[entry["dropped"] or "kept"] += 1
            tell(counts["kept"], counts.total())
            yield entry


class Course:
    """One dialogue: planned, played and verified, with its cost."""

    def __init__(self, work: PlayDialogue, agent: AgentLike, number: int) -> None:
        self._work, self._agent, self._number = work, agent, number
        self._draw = Draw.of(work.toolkit, work.seed, number)
        self._toolkit = work.toolkit.select(names=self._draw.names)
        self._models, self._spent = work.models.listening(self._listen), list[RoleUsage]()

    def _listen(self, ask: ModelAsk, dialogue: Dialogue) -> Dialogue:
        reply = yield from dialogue
        self._spent.append(reply.usage)
        return reply

    def make(self) -> JsonObject:
        """Return the dialogue's record: name, rows with verdicts, case, the cause if it was dropped, cost."""
        name = f"dialogue-{self._number:05}"
        made: JsonObject = {"name": name, "rows": [], "case": "", "dropped": ""}
        plan = self._plan()
        if isinstance(plan, str):
            return made | {"dropped": f"plan: {cause_of(plan)}", "usage": add_all(self._spent)}
        found = self._play(plan)
        faults = [*find_departures(found, self._draw.kinds, plan)]
        rows = self._verify(found, name, is_over=bool(faults))
        bad = next((row for row in rows if row["verdict"]["status"] != "keep"), None)
        if faults:
            made["dropped"] = f"dialogue: {cause_of(faults[0])}"
        elif bad:
            made["dropped"] = bad["verdict"]["reasons"][-1]["code"]
        else:
            case = draft_case(self._toolkit, found, goal=plan.goal, tools=self._work.tools)
            made["case"] = case._replace(head={**case.head, "name": name}).format()
        told = [
            reason("dialogue", ("messages",), why) for why in faults or ([f"{bad['id']} did not pass"] if bad else [])
        ]
        source = {"dialogue": name, "seed": self._work.seed, "kinds": self._draw.kinds, "tools": self._draw.names}
        for row in rows:
            row["from"] = [source]
            if told:
                row["verdict"] = {**row["verdict"], "status": "drop", "reasons": [*row["verdict"]["reasons"], *told]}
        return made | {"rows": rows, "usage": add_all(self._spent)}

    def _plan(self) -> PlannedDialogue | str:
        """Return a plan for the draft, or its faults after one repair."""
        tools = format_json([each["function"] for each in self._toolkit.as_openai()], budget=_TOOLS)
        shown = {"tools": tools, "kinds": "\n".join(self._draw.kinds)}
        check = partial(find_plan_faults, draw=self._draw, toolkit=self._toolkit)
        return ask_twice("dialogue_planner", shown, PlannedDialogue, check, self._models, self._number)

    def _play(self, plan: PlannedDialogue) -> JsonObject:
        """Return the played conversation, as `create_conversation` does."""
        wishes = "\n".join(f"{at}. {turn.outline}" for at, turn in enumerate(plan.turns, 1))
        goal = f"{plan.goal}\nAsk for this, one thing after the other, and end when all was dealt with:\n{wishes}"
        user = {"goal": goal, "knows": plan.knows, "max_messages": 2 + _MESSAGES_A_TURN * len(plan.turns)}
        graph = create_conversation(self._agent, self._toolkit, user=user, model=self._models.replace(auditor=None))
        found: JsonObject = graph.invoke({"task_state": plan.state})
        self._spent += [found["score"]["usage"]["planner"]] if "planner" in found["score"]["usage"] else []
        return found

    def _verify(self, found: JsonObject, name: str, *, is_over: bool) -> list[JsonObject]:
        """Return the conversation's rows with verdicts: by rules first, and by the judge if the rules pass."""
        messages = [each for each in found["messages"] if each.type in ("human", "ai", "tool")]
        if not any(each.type == "ai" for each in messages):
            return []
        row = {"id": name, "messages": convert_to_openai_messages(messages), "tools": self._toolkit.as_openai()}
        row["state"] = found["world"]["start"]
        rows = verify_samples([row], toolkit=self._toolkit).rows
        if is_over or any(each["verdict"]["status"] == "drop" for each in rows):
            return rows
        return verify_samples([row], toolkit=self._toolkit, model=self._models.replace(planner=None)).rows


def cause_of(fault: str) -> str:
    """Return a fault's cause, by which faults are counted: the words before its colon."""
    return fault.partition(":")[0]


def find_plan_faults(plan: PlannedDialogue, draw: Draw, toolkit: Toolkit) -> Iterator[str]:
    """Yield a plan's deviations from the draft and faults of its state, each as `cause: detail`."""
    yield from (f"the tools refuse its state: {each}" for each in StateRules.of(toolkit).broken(plan.state))
    if (kinds := [turn.kind for turn in plan.turns]) != draw.kinds:
        yield f"other kinds of turns: expected the kinds {', '.join(draw.kinds)}, got {', '.join(kinds)}"
    for at, turn in enumerate(plan.turns, 1):
        if unknown := {*turn.tools} - {*draw.names}:
            yield f"unknown tool: in turn {at} there is no tool {', '.join(sorted(unknown))}"
        if bool(turn.tools) is (turn.kind == "no_tool"):
            yield f"tools that do not fit the kind: turn {at} is {turn.kind} with {len(turn.tools)} tools"
    texts = "\n".join([plan.goal, *(turn.outline for turn in plan.turns)])
    if named := find_lacks(texts, (), [name for name in draw.names if "_" in name]):
        yield f"a tool's name in its words: goal or outline names the tool {', '.join(named)}"


def find_departures(found: Mapping[str, Any], kinds: Sequence[str], plan: PlannedDialogue) -> Iterator[str]:
    """Yield a conversation's deviations from the plan, each as `cause: detail`."""
    score = found["score"]
    if score["end"] != "ended":
        yield f"it ended early: {score['end']}: {score['reason']}"
        return
    parts = _split(found["messages"])
    if len(parts) < len(plan.turns):
        yield f"turns are missing: the user spoke {len(parts)} times for {len(plan.turns)} turns"
    calls = [[call for each in part for call in getattr(each, "tool_calls", ())] for part in parts]
    if odd := {call["name"] for part in calls for call in part} - {name for turn in plan.turns for name in turn.tools}:
        yield f"a call that is not needed: called {', '.join(sorted(odd))}, which no turn needs"
    if refused := {step["call"]["name"] for step in found["world"]["log"] if not is_planned(step)}:
        yield f"a call was refused or failed: {', '.join(sorted(refused))}"
    asked = sum("?" in text_of(part[-1]) for part, made in zip(parts, calls, strict=True) if part and not made)
    seen = {
        "missing_argument": asked,
        "no_tool": sum(not made for made in calls) - (asked if "missing_argument" in kinds else 0),
        "several_calls": sum(len(made) > 1 for made in calls),
        "correction": _count_corrections(calls),
    }
    for kind, number in seen.items():
        if number < kinds.count(kind):
            yield f"no {kind}: planned {kinds.count(kind)} times, found {max(number, 0)}"


def _split(messages: Sequence[Any]) -> list[list[Any]]:
    """Return the agent's messages after each message of the user."""
    parts: list[list[Any]] = []
    for each in messages:
        sender = read_envelope(each)["sender"]
        if sender == "user":
            parts.append([])
        elif parts and sender == "agent":
            parts[-1].append(each)
    return parts


def _count_corrections(calls: Sequence[Sequence[Mapping[str, Any]]]) -> int:
    """Return the number of parts in which a tool of an earlier part is called with other arguments."""
    before, count = list[Mapping[str, Any]](), 0
    for part in calls:
        count += any(one["name"] == old["name"] and one["args"] != old["args"] for one in part for old in before)
        before += part
    return count
