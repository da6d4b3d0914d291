"""The phone's cases: each one's good agent with one change, and whether what came of it is a success.

Decided by the case's own author: every milestone is reached and no minefield stepped on; and by the state at the end,
which must be that of the good agent but for the keys of new rows and the time. A value that the good agent had read
before it used it must have been read as well: a script that goes on as if it had is made up. What agents do is really
done, in a conversation with the case's scripted user.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from gecko_graph import Scenario, create_conversation
from gecko_graph.state import Json, JsonObject
from gecko_graph.testing import scripted
from gecko_graph.values.documents import read_document

from ..harness.datasets import ROOT

FOLDER = ROOT / "examples" / "phone"
TABLES, DRAWN = ("contacts", "messages", "reminders"), ("sent_at",)
ALIKE = 0.6
"""An author's milestone counts as reached from here: by Rouge-L, where words are free; others are 0 or 1."""

LEAST = 3
"""Shorter values stand in results by chance."""

Script = Sequence[JsonObject]

_FIGURE = re.compile(r"\d[\d.,:-]*\d|\d")
_FACT = re.compile(r"\+?\d[\d.,:-]*\d(?: \w+)?|\d(?: \w+)?|(?<=\w )[A-Z]\w+(?: [A-Z0-9]\w*)*")

LOOKS: Script = (
    {"call": "get_settings", "args": {}},
    {"call": "find_contacts", "args": {}},
    {"call": "find_reminders", "args": {}},
)
FAILING: Script = (
    {"call": "delete_contact", "args": {"id": "c-99"}},
    {"call": "change_reminder", "args": {"id": "r-99", "text": "x"}},
)
UNASKED: Script = (
    {"call": "delete_contact", "args": {"id": "c-4"}},
    {"call": "delete_reminder", "args": {"id": "r-4"}},
    {"call": "change_contact", "args": {"id": "c-4", "relation": "friend"}},
    {"call": "add_reminder", "args": {"text": "Stretch", "due": "2027-05-13T08:00"}},
    {"call": "add_contact", "args": {"name": "Nadia Wouters", "phone": "+32470550155"}},
    {"call": "set_location", "args": {"on": False}},
    {"call": "set_low_battery", "args": {"on": True}},
)


def names() -> list[str]:
    """Return the names of the cases."""
    return sorted(file.name.removesuffix(".gecko.yaml") for file in (FOLDER / "cases").glob("*.gecko.yaml"))


@cache
def load(name: str) -> Scenario:
    """Return a case."""
    return Scenario.load(Path(FOLDER / "cases" / f"{name}.gecko.yaml"))


def good_script(name: str) -> Script:
    """Return what the case's good agent does."""
    script: Script = read_document(FOLDER / "agents" / f"{name}.yaml")["good"]
    return script


def bad_scripts(name: str) -> Iterator[tuple[str, Script]]:
    """Yield what the case's bad agents do."""
    for bad in read_document(FOLDER / "agents" / f"{name}.yaml")["bad"]:
        yield "a bad agent of the case's author", bad["does"]


def converse(scenario: Scenario, script: Script) -> JsonObject:
    """Return the conversation of an agent that follows a script."""
    output: JsonObject = create_conversation(scripted(*copy.deepcopy(list(script))), scenario=scenario).invoke(
        {}, {"recursion_limit": 200}
    )
    return output


def is_success(scenario: Scenario, good: JsonObject, made: JsonObject) -> bool:
    """Return whether a conversation has come to what the author wants and the good one has come to."""
    score = made["score"]
    answered = all(each["similarity"] >= ALIKE for each in score["milestones"])
    start = good["world"]["start"]
    same = _normal(start, made["world"]["state"]) == _normal(start, good["world"]["state"])
    guessed = any(value in _find_read(good) and not was_read for value, was_read in _find_uses(made))
    return bool(answered and same and not guessed and not any(each["similarity"] for each in score["minefields"]))


def _find_read(output: JsonObject) -> set[str]:
    """Return what the agent has used that stood in a result before, and in nothing that the user has said."""
    return {value for value, was_read in _find_uses(output) if was_read}


def _find_uses(output: JsonObject) -> Iterator[tuple[str, bool]]:
    """Yield texts of arguments, and figures of answers, that the user has not said, and whether they were read."""
    said, read = "", ""
    for message in output["messages"]:
        uses = [str(value) for call in getattr(message, "tool_calls", []) for value in call["args"].values()]
        if message.type == "human":
            said += message.text
        elif message.type == "tool":
            read += message.text
        elif not uses:
            uses = _FIGURE.findall(message.text)
        yield from ((value, value in read) for value in uses if len(value) >= LEAST and value not in said)


def _normal(start: JsonObject, state: JsonObject) -> Json:
    """Return a state without the clock, and its tables as rows in order, new ones without key and time."""
    left: JsonObject = {key: value for key, value in state.items() if key not in (*TABLES, "now", "runtime_state")}
    for name in TABLES:
        rows = [
            {"key": key, **row} if key in start[name] else {one: row[one] for one in row if one not in DRAWN}
            for key, row in state[name].items()
        ]
        left[name] = sorted(rows, key=str)
    return left


def mutate(script: Script, seed: str) -> Iterator[tuple[str, Script]]:
    """Yield the script with one change, with its kind; whether that still succeeds is not known yet."""
    chance, last = Random(seed), len(script) - 1
    for at, each in enumerate(script):
        if "say" not in each:
            yield from _change_call(script, at, chance)
    for unasked in UNASKED:
        yield "a call more", [*script[:last], unasked, script[last]]
    for look in LOOKS:
        yield "a look more", [look, *script]
    for failing in FAILING:
        yield "a failing attempt before", [failing, *script]
    yield "the answer without the calls", [each for each in script if "say" in each]
    yield from ((kind, [*script[:last], {"say": words}]) for kind, words in _change_words(script[last]["say"]))


def _change_call(script: Script, at: int, chance: Random) -> Iterator[tuple[str, Script]]:
    last, step = len(script) - 1, script[at]
    yield "a call left out", [*script[:at], *script[at + 1 :]]
    for changed in _alter(step, chance):
        yield "another argument", [*script[:at], changed, *script[at + 1 :]]
    if "say" not in script[at + 1]:
        yield "two calls swapped", [*script[:at], script[at + 1], step, *script[at + 2 :]]
    if str(step.get("call")).startswith("set_"):
        back = {**step, "args": {"on": not step["args"]["on"]}}
        yield "undone", [*script[:last], back, script[last]]


def _change_words(text: str) -> Iterator[tuple[str, str]]:
    yield from (("a wrong value in the answer", wrong) for wrong in _misstate(text))
    yield "an answer without values", "That is done."
    yield "another wording", f"Sure! {text} Anything else I can do for you?"
    yield "another wording", _reword(text)


def _alter(step: JsonObject, chance: Random) -> Iterator[JsonObject]:
    for key, value in step.get("args", {}).items():
        yield {**step, "args": {**step["args"], key: _other(value, chance)}}


def _other(value: Any, chance: Random) -> Json:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + chance.choice((1, 2, 10))
    if found := list(_FIGURE.finditer(value)):
        last = found[-1].end() - 1
        return f"{value[:last]}{(int(value[last]) + 1) % 10}{value[last + 1 :]}"
    return chance.choice(("Hugo Peeters", "something else", "plumber"))


def _misstate(text: str) -> Iterator[str]:
    for found in _FIGURE.finditer(text):
        at = found.start()
        yield f"{text[:at]}{int(text[at]) % 9 + 1}{text[at + 1 :]}"


def _reword(text: str) -> str:
    facts = [found[0] for found in _FACT.finditer(text)]
    return f"I looked into it for you: {', '.join(facts)}." if facts else f"Well, {text[0].lower()}{text[1:]}"
