"""Dialogues from nothing but tools: planned, played with a simulated user, verified in two tiers (LoopTool, 3.2)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from langchain_core.messages import convert_to_openai_messages

from ..conversation.agent import AgentLike
from ..conversation.channels import read_envelope
from ..conversation.graph import create_conversation
from ..errors import GeckoError
from ..models.answer import answer
from ..models.ask import Ask, Dialogue, ModelAsk, Where
from ..models.factory import Models, ModelsLike
from ..models.formatting import format_json, text_of
from ..models.roles import PlannedDialogue
from ..models.usage import add_all
from ..scenario.cases.draft import draft_case
from ..state import JsonObject, RoleUsage
from ..tools import Toolkit
from ..world.provenance import is_planned
from ..world.state_rules import StateRules
from .checks import tell as reason
from .formats import FORMATS
from .journal import Journal
from .rows import write_rows
from .steps import once, read_rows, write_text
from .verify import describe_tools, verify_samples
from .words import find_lacks

SAMPLES = "samples.jsonl"
MEASURED, TRIES = 2, 2
"""Dialogues after which costs are told, and how many are planned at most for each that is wanted."""
KINDS = ("call", "missing_argument", "no_tool", "several_calls", "correction")
_MOST_TOOLS, _MOST_TURNS, _TOOLS, _MESSAGES_A_TURN = 6, 4, 12_000, 10


class Draw(NamedTuple):
    """What a dialogue is planned from: the names of its tools, and the kinds of its turns."""

    names: list[str]
    kinds: list[str]

    @classmethod
    def of(cls, toolkit: Toolkit, seed: int, number: int) -> Draw:
        """Return what is drawn for the dialogue of this number: the same for the same seed, in whatever order."""
        rng = Random(f"{seed}/{number}")
        names = rng.sample(toolkit.names, min(len(toolkit), rng.randint(2, _MOST_TOOLS)))
        kinds = [rng.choice(KINDS) for _ in range(rng.randint(1, _MOST_TURNS))]
        first = ["call" if kinds[0] == "correction" else kinds[0]]  # which corrects a call of before
        return cls(names, first + kinds[1:] if "correction" not in kinds[1:] else ["call", *kinds[1:]])


def make_dialogues(  # noqa: PLR0913 - every one is a choice of its own, by keyword
    toolkit: Toolkit,
    folder: str | Path,
    n: int = 100,
    *,
    tools: str,
    model: ModelsLike,
    assistant: AgentLike | None = None,
    seed: int = 0,
    to: str | None = None,
    costs: Callable[[RoleUsage, int], bool] = lambda spent, left: True,
    tell: Callable[[int, int], None] = lambda kept, made: None,
) -> Counter[str]:
    """Have dialogues planned and played, and keep those whose every step passes both tiers of the verification.

    `samples.jsonl` has all rows with their verdicts, also of dropped dialogues; each kept one is a case beside it.
    The same call goes on where it was stopped, after the last whole dialogue.

    Args:
        toolkit: The tools; contracts and functions answer where they can, then examples and schemas, and a model where
            `model` names the role `simulator`.
        folder: Where rows and cases are written.
        n: How many are to be kept; twice as many are planned at most.
        tools: How the cases name the tools.
        model: The models of `dialogue_planner`, `user` and `label_judge`.
        assistant: The assistant; the model of the role `planner` where left out.
        seed: Another one draws other tools and turns.
        to: Also rows of another shape (`formats.FORMATS`), as `SHAPE.jsonl`.
        costs: Called after two dialogues with what one costs in the mean, and how many may follow; False stops.
        tell: Called with how many dialogues are kept, of how many.

    Raises:
        GeckoError: There is no tool or no model for a role, or `costs` has stopped it; what is done is kept.
    """
    place = Path(folder)
    maker = Maker(toolkit, tools, Models.of(model), assistant, seed)
    files = [SAMPLES, *([f"{to}.jsonl"] if to else [])]
    named = [each if isinstance(each, str) else "" for each in (model, assistant)]
    inputs = {"tools": describe_tools(toolkit), "n": n, "seed": seed, "models": named, "to": to}

    def work(of: str) -> Counter[str]:
        counts = _make_all(maker, place, of, n, costs, tell)
        if to:
            write_rows(place / f"{to}.jsonl", (made for row in read_rows(place / SAMPLES) for made in FORMATS[to](row)))
        return counts

    return Counter(once(place, "dialogues", files, inputs, work))


def _make_all(
    maker: Maker,
    place: Path,
    of: str,
    n: int,
    costs: Callable[[RoleUsage, int], bool],
    tell: Callable[[int, int], None],
) -> Counter[str]:
    """Make the dialogues that the journal does not have yet, and write rows and cases; return how many came to what."""
    counts, spent = Counter[str](), list[RoleUsage]()
    with Journal(place / SAMPLES, of) as journal:
        for entry in journal.read():
            spent.append(_count(counts, entry))
        while counts["kept"] < n and counts.total() < n * TRIES:
            if len(spent) == MEASURED and not costs(_mean(spent), n - counts["kept"]):
                raise GeckoError("stopped before the other dialogues; the same command goes on")
            entry = maker.make(counts.total())
            journal.write(json.dumps(entry, ensure_ascii=False))
            journal.flush()
            spent.append(_count(counts, entry))
            tell(counts["kept"], counts.total())
        for entry in journal.read():
            if entry["case"]:
                write_text(place / f"{entry['name']}.gecko.yaml", entry["case"])
        counts["rows"] = journal.finish(lambda entry: entry["rows"])
    return counts


def _count(counts: Counter[str], entry: Mapping[str, Any]) -> RoleUsage:
    counts[entry["dropped"] or "kept"] += 1
    spent: RoleUsage = entry["usage"]
    return spent


def _mean(spent: Sequence[RoleUsage]) -> RoleUsage:
    whole, number = add_all(spent), len(spent)
    cost = None if whole["cost"] is None else whole["cost"] / number
    calls, given, written = (round(whole[key] / number) for key in ("calls", "input_tokens", "output_tokens"))
    return {"calls": calls, "input_tokens": given, "output_tokens": written, "cost": cost}


class Maker:
    """Makes one dialogue after the other, with what they cost."""

    def __init__(self, toolkit: Toolkit, tools: str, models: Models, assistant: AgentLike | None, seed: int) -> None:
        if not len(toolkit):
            raise GeckoError("expected a document with at least one tool")
        models.require("dialogue_planner", "user", "label_judge")
        if assistant is None:
            models.require("planner")
        self._toolkit, self._tools, self._seed, self._spent = toolkit, tools, seed, list[RoleUsage]()
        self._models = models.listening(self._listen)
        self._agent: Any = models.get("planner") if assistant is None else assistant

    def _listen(self, ask: ModelAsk, dialogue: Dialogue) -> Dialogue:
        reply = yield from dialogue
        self._spent.append(reply.usage)
        return reply

    def make(self, number: int) -> JsonObject:
        """Return the dialogue of this number: name, rows with verdicts, case, why it was dropped, what it cost."""
        self._spent.clear()
        draw, name = Draw.of(self._toolkit, self._seed, number), f"dialogue-{number:05}"
        made: JsonObject = {"name": name, "rows": [], "case": "", "dropped": "", "why": ""}
        toolkit = self._toolkit.select(names=draw.names)
        plan = self._plan(toolkit, draw, number)
        if isinstance(plan, str):
            return made | {"dropped": "plan", "why": plan, "usage": add_all(self._spent)}
        found = self._play(toolkit, plan)
        rows = self._verify(toolkit, found, name, draw, plan)
        if not rows:
            made |= {"dropped": "dialogue", "why": f"the assistant has said nothing: {found['score']['reason']}"}
        elif bad := next((row for row in rows if row["verdict"]["status"] != "keep"), None):
            made |= {"dropped": bad["verdict"]["reasons"][-1]["code"], "why": bad["verdict"]["reasons"][-1]["message"]}
        else:
            case = draft_case(toolkit, found, goal=plan.goal, tools=self._tools)
            made["case"] = case._replace(head={**case.head, "name": name}).format()
        return made | {"rows": rows, "usage": add_all(self._spent)}

    def _plan(self, toolkit: Toolkit, draw: Draw, number: int) -> PlannedDialogue | str:
        """Return a plan for what was drawn, or what is wrong with it after one repair."""
        shown = {"tools": format_json([each["function"] for each in toolkit.as_openai()], budget=_TOOLS)}
        faults = ""
        for again in range(2):
            variables = {**shown, "kinds": "\n".join(draw.kinds), "faults": faults}
            where = Where(question=2 * number + again)
            (reply,) = answer([Ask("dialogue_planner", variables, PlannedDialogue, where)], self._models)
            if not isinstance(reply.value, PlannedDialogue):
                faults = f"no plan in the reply: {reply.failure}"
            elif not (faults := "\n".join(find_plan_faults(reply.value, draw, toolkit))):
                return reply.value
        return faults

    def _play(self, toolkit: Toolkit, plan: PlannedDialogue) -> JsonObject:
        """Return the conversation, as `create_conversation` does."""
        wishes = "\n".join(f"{at}. {turn.outline}" for at, turn in enumerate(plan.turns, 1))
        goal = f"{plan.goal}\nAsk for this, one thing after the other, and end when all was dealt with:\n{wishes}"
        most = 2 + _MESSAGES_A_TURN * len(plan.turns)
        user = {"goal": goal, "knows": plan.knows, "max_messages": most}
        graph = create_conversation(self._agent, toolkit, user=user, model=self._models.replace(auditor=None))
        found: JsonObject = graph.invoke({"task_state": plan.state})
        self._spent += [found["score"]["usage"]["planner"]] if "planner" in found["score"]["usage"] else []
        return found

    def _verify(
        self, toolkit: Toolkit, found: JsonObject, name: str, draw: Draw, plan: PlannedDialogue
    ) -> list[JsonObject]:
        """Return the conversation's rows with verdicts: rules first, the judge only where these refuse nothing."""
        messages = [each for each in found["messages"] if each.type in ("human", "ai", "tool")]
        row = {"messages": convert_to_openai_messages(messages), "tools": toolkit.as_openai()}
        start = {"id": name, "state": found["world"]["start"]}
        faults = [*find_departures(found, draw.kinds, plan)]
        if not any(each.type == "ai" for each in messages):
            return []
        rows = verify_samples([{**row, **start}], toolkit=toolkit).rows
        if not faults and all(each["verdict"]["status"] != "drop" for each in rows):
            rows = verify_samples([{**row, **start}], toolkit=toolkit, model=self._models.replace(planner=None)).rows
        dropped = [each["id"] for each in rows if each["verdict"]["status"] != "keep"]
        told = faults or ([f"{', '.join(dropped)} of this dialogue did not pass"] if dropped else [])
        for each in rows:
            each["from"] = [{"dialogue": name, "seed": self._seed, "kinds": draw.kinds, "tools": draw.names}]
            verdict = each["verdict"]
            if told and verdict["status"] in ("keep", "open") and not (each["id"] in dropped and not faults):
                reasons = [*verdict["reasons"], *(reason("dialogue", ("messages",), why) for why in told)]
                each["verdict"] = {**verdict, "status": "drop", "reasons": reasons}
        return rows


def find_plan_faults(plan: PlannedDialogue, draw: Draw, toolkit: Toolkit) -> Iterator[str]:
    """Yield where a plan is not what was drawn, or its state not one of the tools."""
    yield from (f"state: {each}" for each in StateRules.of(toolkit).broken(plan.state))
    if [turn.kind for turn in plan.turns] != draw.kinds:
        yield f"turns: expected the kinds {', '.join(draw.kinds)}, got {', '.join(turn.kind for turn in plan.turns)}"
    for at, turn in enumerate(plan.turns, 1):
        if unknown := set(turn.tools) - {*draw.names}:
            yield f"turn {at}: there is no tool {', '.join(sorted(unknown))}"
        if bool(turn.tools) is (turn.kind == "no_tool"):
            yield f"turn {at}: {turn.kind} with {len(turn.tools)} tools"
    texts = "\n".join([plan.goal, *(turn.outline for turn in plan.turns)])
    if named := find_lacks(texts, (), [name for name in draw.names if "_" in name]):
        yield f"goal or outline names the tool {', '.join(named)}"


def find_departures(found: Mapping[str, Any], kinds: Sequence[str], plan: PlannedDialogue) -> Iterator[str]:
    """Yield where a conversation did not come to what was planned, by rule."""
    score = found["score"]
    if score["end"] != "ended":
        yield f"the dialogue ended early: {score['end']}: {score['reason']}"
        return
    parts = _split(found["messages"])
    if len(parts) < len(plan.turns):
        yield f"the user spoke {len(parts)} times for {len(plan.turns)} turns"
    planned = {name for turn in plan.turns for name in turn.tools}
    calls = [
        [(call["name"], call["args"]) for each in part for call in getattr(each, "tool_calls", ())] for part in parts
    ]
    if odd := {name for part in calls for name, _ in part} - planned:
        yield f"called {', '.join(sorted(odd))}, which no turn needs"
    refused = [step["call"]["name"] for step in found["world"]["log"] if not is_planned(step)]
    if refused:
        yield f"{', '.join(sorted(set(refused)))}: a call was refused or failed"
    asked = sum("?" in text_of(part[-1]) for part, made in zip(parts, calls, strict=True) if part and not made)
    seen = {
        "missing_argument": asked,
        "no_tool": sum(not made for made in calls) - (asked if "missing_argument" in kinds else 0),
        "several_calls": sum(len(made) > 1 for made in calls),
        "correction": _count_corrections(calls),
    }
    for kind, number in seen.items():
        if number < kinds.count(kind):
            yield f"{kind}: planned {kinds.count(kind)} times, found {max(number, 0)}"


def _split(messages: Sequence[Any]) -> list[list[Any]]:
    """Return what follows each message of the user."""
    parts: list[list[Any]] = []
    for each in messages:
        sender = read_envelope(each)["sender"]
        if sender == "user":
            parts.append([])
        elif parts and sender == "agent":
            parts[-1].append(each)
    return parts


def _count_corrections(calls: Sequence[Sequence[tuple[str, Any]]]) -> int:
    """Return in how many parts a tool of an earlier part is called with other arguments."""
    return sum(
        any(name == old and args != before for name, args in part for earlier in calls[:at] for old, before in earlier)
        for at, part in enumerate(calls)
    )
