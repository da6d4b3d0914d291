"""Marks on recorded turns: on right and wrong turns, planted values, sentences based on simulated reads.

The turns were rehearsed at 1b17d493 with a strong model in every role, which also simulated each tool; provenance is
traced again. `may_refuse` comes from the steps, and from simulator replies that that commit had dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage

from gecko_graph import Toolkit
from gecko_graph.models.memory import answer_message, open_rules, recall_calls
from gecko_graph.nodes.checks import find_may_refuse
from gecko_graph.state import Attempt, JsonObject, Rehearsal, Step
from gecko_graph.tools.descriptions import PROSE_WORDS, Offered
from gecko_graph.values.notes import note, notes_of
from gecko_graph.values.origins import find_untrusted
from gecko_graph.values.places import Place, pointer, scalars
from gecko_graph.world.provenance import Traced, is_planned, trace_with

from ..harness.figures import Table, share
from ..harness.options import find, read_jsonl
from ..harness.suite import Expectation, Summary

TURNS, REPLIES = "live_turns.jsonl.gz", "live_replies_3.jsonl.gz"
DOCUMENTS = "bfcl_multiturn_func_docs.json"
PLANTED, SEED = 300, 39
BUDGET = 20_000
"""Characters of remembered calls: the default of `view_chars`."""

_CALL = re.compile(r"<call[^>]*>\s*(.*?)\s*</call", re.DOTALL)
_NAMES = ("Orsolya", "Thaddeus", "Quillon", "Ravensburg", "Ystad", "Zoraida", "Mbeki", "Halvorsen", "Xanthe", "Brno")


@dataclass(frozen=True, slots=True)
class Turn:
    """A recorded turn, with the conversation before it, and the made-up parts of its state."""

    row: JsonObject
    messages: Sequence[AnyMessage]
    supposed: Sequence[str]
    rules: Sequence[str] = ()
    """Rules that may refuse its plan."""

    @property
    def name(self) -> str:
        return f"{self.row['task']}, turn {self.row['turn']}"

    @property
    def is_right(self) -> bool:
        return bool(self.row["officially_right"])

    @property
    def attempt(self) -> Attempt:
        rehearsal: Rehearsal = self.row["rehearsal"]
        return next(each for each in rehearsal["attempts"] if each["number"] == rehearsal["chosen"])

    def trace(self, toolkit: Toolkit, steps: Sequence[Step] | None = None) -> Traced:
        """Trace its plan, or the same plan with other arguments."""
        attempt = self.attempt
        earlier = [each for each in self.row["rehearsal"]["attempts"] if each["number"] < attempt["number"]]
        return trace_with(
            toolkit,
            attempt["steps"] if steps is None else steps,
            answer=attempt["answer"],
            conversation=recall_calls(self.messages),
            state=self.row["before"],
            supposed=self.supposed,
            lesson=earlier[-1] if earlier else None,
        )


def read_toolkit(folder: Path) -> Toolkit:
    """Return the documented tools of all tasks, which have no effects."""
    return Toolkit.from_tools([*json.loads(find(DOCUMENTS, folder).read_text(encoding="utf-8")).values()])


def read_turns(folder: Path, *, arm: str = "model") -> list[Turn]:
    """Return the accepted turns of an arm, each in the conversation as the graph would have kept it."""
    dropped, turns, key = _dropped_rules(folder), list[Turn](), ""
    messages, supposed = list[AnyMessage](), list[str]()
    for row in (row for row in read_jsonl(find(TURNS, folder)) if row["arm"] == arm):
        if row["task"] != key:
            key, messages, supposed = row["task"], [], []
        messages = [*messages, HumanMessage(row["message"][1])]
        turn = Turn(_with_notes(row), messages, supposed)
        attempt = turn.attempt
        known = find_may_refuse(attempt["steps"], open_rules(messages))
        rules = [each["data"]["rule"] for each in known]
        for step in attempt["steps"]:
            if is_planned(step) and not notes_of(step["outcome"], "may_refuse"):
                rules += dropped.get(_key(step["call"]), ())
        turns.append(Turn(row, messages, supposed, tuple(dict.fromkeys(rules))))
        if row["status"] == "accepted":
            supposed = find_untrusted(row["before"], supposed, attempt["steps"])
        answer = answer_message(
            attempt["answer"], attempt["verdict"], attempt["steps"], budget=BUDGET, supposed=supposed
        )
        messages = [*messages, *([answer] if answer else [])]
    return [turn for turn in turns if turn.row["status"] == "accepted"]


def _with_notes(row: JsonObject) -> JsonObject:
    """Return a recorded turn with its rules, which it has under a separate key, as notes."""
    for attempt in row["rehearsal"]["attempts"]:
        outcomes = [step["outcome"] for step in attempt["steps"] if "outcome" in step]
        for record in [attempt["verdict"], *outcomes]:
            rules = [each if isinstance(each, dict) else {"rule": each} for each in record.pop("may_refuse", ())]
            record |= {"notes": [note("may_refuse", each["rule"], **each) for each in rules]} if rules else {}
    return row


def _key(call: Mapping[str, Any]) -> str:
    return json.dumps([call["name"], call["args"]], sort_keys=True)


def _dropped_rules(folder: Path) -> dict[str, list[str]]:
    """Return, by call, the rules that a simulator has named for a call without changes."""
    found: dict[str, list[str]] = {}
    for row in read_jsonl(find(REPLIES, folder)):
        reply = row["reply"].get("json") if row["role"] == "simulator" else None
        if isinstance(reply, dict) and reply.get("may_refuse") and not reply.get("patch"):
            shown = _CALL.search(row["request"]["messages"][-1]["content"])
            if shown:
                found.setdefault(_key(json.loads(shown[1])), []).append(reply["may_refuse"])
    return found


class Planted(NamedTuple):
    """An invented value instead of an argument of a recorded plan."""

    turn: Turn
    number: int
    """The index of the step."""
    place: Place
    value: str | int | float

    def steps(self) -> list[Step]:
        """Return the attempt's steps with the invented value."""
        steps = deepcopy([*self.turn.attempt["steps"]])
        at: Any = steps[self.number]["call"]["args"]
        for token in self.place[:-1]:
            at = at[token]
        at[self.place[-1]] = self.value
        return steps

    def is_marked(self, toolkit: Toolkit) -> bool:
        """Return whether provenance marks the value as made up."""
        call, path = self.turn.attempt["steps"][self.number]["call"]["id"], pointer(self.place)
        made_up = notes_of(self.turn.trace(toolkit, self.steps()).notes, "made_up")
        return any(each["data"]["call"] == call and each["where"] == path for each in made_up)


def plant(turns: Sequence[Turn], toolkit: Toolkit, *, most: int = PLANTED, seed: int = SEED) -> list[Planted]:
    """Return invented values, drawn by seed, for arguments of the plans.

    Arguments whose value the tool itself offers, and booleans, are not replaced.
    """
    random, offered = Random(seed), {tool.name: Offered(tool.parameters) for tool in toolkit}
    places = [
        (turn, number, place, value)
        for turn in turns
        for number, step in enumerate(turn.attempt["steps"])
        if is_planned(step)
        for place, value in scalars(step["call"]["args"])
        if not isinstance(value, bool | None) and not offered[step["call"]["name"]].holds(value)
    ]
    drawn = (random.choice(places) for _ in range(most))
    return [Planted(turn, number, place, invent(value, random)) for turn, number, place, value in drawn]


def invent(value: str | float, random: Random) -> str | int | float:
    """Return another value of the same kind, which nothing has stated."""
    if isinstance(value, int):
        digits = max(2, len(str(abs(value))))
        return random.randrange(10 ** (digits - 1), 10**digits)
    if isinstance(value, float):
        return round(random.uniform(0.5, 2.0) * max(abs(value), 10.0), 2)
    if re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        return f"{random.randrange(2027, 2034)}-{random.randrange(1, 13):02}-{random.randrange(1, 29):02}"
    if len(value.split()) >= PROSE_WORDS:
        return f"{value} for {random.choice(_NAMES)}, {random.randrange(1_000, 99_999) / 100:,.2f}"
    if any(map(str.isdigit, value)):
        return "".join(str(random.randrange(10)) if each.isdigit() else each for each in value)
    return random.choice(_NAMES) + random.choice(("", f"-{random.randrange(100, 999)}", f" {random.choice(_NAMES)}"))


def find_lost(planted: Sequence[Planted], toolkit: Toolkit) -> list[Planted]:
    """Return the planted values that provenance takes for known."""
    return [each for each in planted if not each.is_marked(toolkit)]


_MARKS: Mapping[str, Callable[[tuple[Turn, Traced]], bool]] = {
    "made_up": lambda each: bool(notes_of(each[1].notes, "made_up")),
    "may_refuse": lambda each: bool(each[0].rules),
    "made_up or may_refuse": lambda each: bool(notes_of(each[1].notes, "made_up") or each[0].rules),
    "unsupported": lambda each: bool(notes_of(each[1].notes, "unsupported")),
    "a sentence on a simulated result": lambda each: bool(notes_of(each[1].notes, "simulated")),
}


def measure_marks(folder: Path, *, most: int = PLANTED) -> JsonObject:
    """Return how many right and wrong turns have each mark, and what keeps its mark."""
    toolkit, turns = read_toolkit(folder), read_turns(folder)
    traced = [(turn, turn.trace(toolkit)) for turn in turns]
    sides = [[each for each in traced if each[0].is_right is right] for right in (True, False)]
    planted = plant(turns, toolkit, most=most)
    differing = [each for turn, each in sides[0] if turn.row["differs"]]
    return {
        "turns": [len(some) for some in sides],
        "marks": {name: [sum(map(has, some)) for some in sides] for name, has in _MARKS.items()},
        "planted": len(planted),
        "kept": len(planted) - len(find_lost(planted, toolkit)),
        "differing": len(differing),
        "told": sum(bool(notes_of(each.notes, "simulated")) for each in differing),
    }


def tell_marks(values: JsonObject) -> Summary:
    marks = Table("Accepted turns with a mark, every tool simulated by a model", ["mark", "right turns", "wrong turns"])
    for name, counts in values["marks"].items():
        pairs = zip(counts, values["turns"], strict=True)
        marks.add(name, *(share(hits, n, tools="simulated") for hits, n in pairs))
    plants = Table("Invented values in the place of arguments", ["values", "keep their mark"])
    plants.add(values["planted"], share(values["kept"], values["planted"], tools="simulated"))
    heads = ["turns", "with a sentence marked as resting on one"]
    rests = Table("Right turns whose results are not the real ones", heads)
    rests.add(values["differing"], share(values["told"], values["differing"], tools="simulated"))
    right, wrong = values["marks"]["made_up or may_refuse"]
    is_told = values["told"] == values["differing"]
    expected = [
        Expectation("at least 12 wrong turns are marked made_up or may_refuse", wrong >= 12),
        Expectation("at most 8 right ones are", right <= 8),
        Expectation("at least 95 % of the planted values keep their mark", values["kept"] >= 0.95 * values["planted"]),
        Expectation("each right turn that tells of another result has a sentence marked", is_told),
    ]
    return Summary([marks, plants, rests], expected)
