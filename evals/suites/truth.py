"""The evidence behind a rehearsal's words: recorded turns and replies of a strong model, evaluated without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gecko_graph.state import JsonObject

from ..harness.figures import Case, Record, Table
from ..harness.options import find, read_jsonl
from ..harness.suite import Expectation, Suite, Summary
from ..truth.marks import measure_marks, tell_marks
from ..truth.questions import TWINS, missed_twins, places_asked, read_questions
from .validation import Rules, read_rows

MOST_QUESTIONS = 20
WRONG_VALUES_FOUND = 1_398
"""Number of BFCL's 2,118 answers with a wrong value that 1b17d493 refused by rule, or asked about."""
_WRONG = re.compile(r"Invalid value for parameter \\?'(\w+)\\?'")


class Truth(Suite):
    """The validator's questions, and the marks of verdicts.

    From 125 rehearsed turns and 1,313 replies of a strong model in every role. A case is a part (--only PART).
    """

    name = "truth"
    asks = False
    planner = None
    examples = ("", "--only validator")

    def cases(self) -> Iterator[Case]:
        yield from (Case(name, measure) for name, (measure, _) in PARTS.items())

    def run_case(self, case: Case) -> JsonObject:
        values: JsonObject = case.data(self.options.data)
        return values

    def summarise(self, records: Sequence[Record]) -> Summary:
        parts = [PARTS[record.id][1](record.values) for record in records if record.done]
        return Summary(
            [table for part in parts for table in part.figures],
            [each for part in parts for each in part.expectations],
            [note for part in parts for note in part.notes],
        )


def measure_validator(folder: Path) -> JsonObject:
    """Repeat the recorded questions, their wrong twins, and BFCL's answers with a wrong value."""
    questions = list(read_questions(list(read_jsonl(find("live_replies_3.jsonl.gz", folder)))))
    left = [(each, asked) for each in questions if (asked := each.ask())]
    found, total = 0, 0
    for row in read_rows(folder, rules := Rules()):
        if row.is_semantic:
            total += 1
            wrong = {*_WRONG.findall(str(row.answer["official"]["error"]))}
            names = {re.split(r"[.\[]", each[2:])[0] for each in places_asked(row.question, row.tools)}
            found += bool(rules.against(row)) or not wrong.isdisjoint(names)
    return {
        "questions": len(questions),
        "left": [f"{each.number} {each.tool.name}: {', '.join(asked)}" for each, asked in left],
        "twins": len(TWINS),
        "missed": missed_twins(questions),
        "wrong values": total,
        "wrong values found": found,
    }


def tell_validator(values: JsonObject) -> Summary:
    left, missed, found = values["left"], values["missed"], values["wrong values found"]
    table = Table("The validator's recorded questions, put again", ["what", "now", "of"])
    table.add("still asked", len(left), values["questions"])
    table.add("wrong twins refused or asked about", values["twins"] - len(missed), values["twins"])
    table.add("wrong values (BFCL) refused or asked about", found, values["wrong values"])
    text = f"of BFCL's wrong values no fewer are found than at 1b17d493 ({WRONG_VALUES_FOUND})"
    expected = [
        Expectation(f"at most {MOST_QUESTIONS} questions are still asked", len(left) <= MOST_QUESTIONS),
        Expectation(f"no wrong twin is let through: {missed}", not missed),
        Expectation(text, found >= WRONG_VALUES_FOUND),
    ]
    return Summary([table], expected, left)


PARTS = {"validator": (measure_validator, tell_validator), "marks": (measure_marks, tell_marks)}

SUITE = Truth
