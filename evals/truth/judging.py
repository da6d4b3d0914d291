"""The validator's questions: recorded ones, asked again with today's rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gecko_graph.state import JsonObject

from ..harness.figures import Table
from ..harness.options import find, read_jsonl
from ..harness.suite import Expectation
from ..suites.validation import Rules, read_rows
from .questions import TWINS, missed_twins, places_asked, read_questions

MOST_QUESTIONS = 20
WRONG_VALUES_FOUND = 1_398
"""Number of BFCL's 2,118 answers with a wrong value that 1b17d493 refused by rule, or asked about."""
_WRONG = re.compile(r"Invalid value for parameter \\?'(\w+)\\?'")


class Part(NamedTuple):
    """One part of the suite `truth`: its measurement on the data's folder, its tables, expectations and notes."""

    name: str
    measure: Callable[[Path], JsonObject]
    tables: Callable[[JsonObject], Sequence[Table]]
    expectations: Callable[[JsonObject], Sequence[Expectation]] = lambda values: ()
    notes: Callable[[JsonObject], Sequence[str]] = lambda values: ()


def measure_validator(folder: Path) -> JsonObject:
    """Repeat the recorded questions, their wrong twins, and BFCL's answers with a wrong value."""
    questions = list(read_questions(list(read_jsonl(find("live_replies_3.jsonl.gz", folder)))))
    left = [(each, asked) for each in questions if (asked := each.ask())]
    found, total = 0, 0
    for row in read_rows(folder, rules := Rules()):
        if row.is_semantic:
            total += 1
            wrong = {*_WRONG.findall(str(row.answer["official"]["error"]))}
            names = {re.split(r"[.\[]", each[2:])[0] for each in _asked_of(row)}
            found += bool(rules.against(row)) or not wrong.isdisjoint(names)
    return {
        "questions": len(questions),
        "left": [f"{each.number} {each.tool.name}: {', '.join(asked)}" for each, asked in left],
        "twins": len(TWINS),
        "missed": missed_twins(questions),
        "wrong values": total,
        "wrong values found": found,
    }


def _asked_of(row: Any) -> list[str]:
    calls = enumerate(row.answer["calls"])
    pending = [{"id": f"call-{number}", "name": each["name"], "args": each["arguments"]} for number, each in calls]
    text = "\n".join(each["content"] for each in row.task["question"] if each["role"] == "user")
    return places_asked({"pending": pending, "task": text, "number": 1, "turn": 0}, row.tools)


def tell_validator(values: JsonObject) -> list[Table]:
    """Return how many questions are still asked."""
    table = Table("The validator's recorded questions, put again", ["what", "now", "of"])
    table.add("still asked", len(values["left"]), values["questions"])
    table.add("wrong twins refused or asked about", values["twins"] - len(values["missed"]), values["twins"])
    table.add("wrong values (BFCL) refused or asked about", values["wrong values found"], values["wrong values"])
    return [table]


def expect_validator(values: JsonObject) -> list[Expectation]:
    """Return the expectations on the questions."""
    return [
        Expectation(f"at most {MOST_QUESTIONS} questions are still asked", len(values["left"]) <= MOST_QUESTIONS),
        Expectation(f"no wrong twin is let through: {values['missed']}", not values["missed"]),
        Expectation(
            f"of BFCL's wrong values no fewer are found than at 1b17d493 ({WRONG_VALUES_FOUND})",
            values["wrong values found"] >= WRONG_VALUES_FOUND,
        ),
    ]


PARTS: Sequence[Part] = (
    Part("validator", measure_validator, tell_validator, expect_validator, lambda values: values["left"]),
)
