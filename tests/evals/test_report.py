"""Measured values, what they refuse and say, and the report as it is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evals.harness.figures import (
    Case,
    MixedTools,
    Record,
    Table,
    format_cell,
    mean,
    mean_of,
    rate,
    share,
)
from evals.harness.options import Options
from evals.harness.report import Result, one_line, publish, write_report
from evals.harness.suite import Expectation, Suite, Summary

NASTY = "</script><img src=x> & \u2028 \ud83e [red] a | b"


def record(name, *, status="done", tools="simulated", seconds=0.25, group="g", **values):
    reason = "" if status == "done" else f"ValueError: {NASTY}"
    return Record(name, group, {"fact": NASTY}, status, reason, seconds, tools, values)


def test_a_case_that_is_not_done_is_a_miss_but_has_no_mean():
    some = [
        record("a", ok=True, x=1),
        record("b", ok=True, x=3),
        record("c", status="failed"),
        record("d", status="unreached"),
    ]
    measured = rate(some, lambda each: each.values["ok"])
    assert (measured.hits, measured.n, measured.value) == (2, 4, 0.5)
    assert mean(some, lambda each: each.values["x"]).n == 2
    assert mean(some, lambda each: each.values["x"]).value == 2


REAL, SIMULATED, NEITHER = (share(1, 2, tools=tools) for tools in ("real", "simulated", "none"))


def test_real_and_simulated_never_mix():
    with pytest.raises(MixedTools, match="real and simulated"):
        rate([record("a", ok=True, tools="real"), record("b", ok=True)], lambda each: each.values["ok"])
    table = Table("Verdicts", ["", "rate"])
    table.add("neither", NEITHER)
    table.add("real", REAL)
    with pytest.raises(MixedTools, match="Verdicts"):
        table.add("simulated", SIMULATED)
    assert len(table.rows) == 2
    assert table.tools == "real"


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (share(390, 400, tools="none"), "97.5 % [95.5, 98.6] 390/400"),
        (share(0, 0, tools="none"), "none n=0"),
        (mean_of([1.0, 2.0, 3.0], form="seconds"), "2.00 s [0, 4.48] n=3"),
        (mean_of([2.0]), "2.00 n=1"),
        (12345, "12,345"),
        (None, ""),
        (True, "True"),
    ],
)
def test_cells_say_value_interval_and_n(cell, told):
    assert format_cell(cell) == told


class Nasty(Suite):
    """Text that must keep to its cell."""

    name = "nasty"
    tools = "simulated"

    def cases(self):
        return [Case("a")]

    def run_case(self, case):
        return {}

    def summarise(self, records):
        table = Table(NASTY, ["group", f"rate {NASTY}"], note=NASTY)
        table.add(NASTY, rate(records, lambda each: each.values["ok"]))
        return Summary([table], [Expectation(NASTY, holds=False)], [NASTY])


HEAD = {
    "suite": "nasty", "options": {"seed": 4, "own": NASTY, "unset": None}, "planner": "ground-truth",
    "models": {"judge": "openai:j"}, "command": "python -m evals nasty", "commit": "abc",
    "date": "2026-01-02 03:04:05Z",
}  # fmt: skip


@pytest.fixture
def made():
    usage = {"judge": {"calls": 1, "input_tokens": 5, "output_tokens": 5, "cost": None}}
    done = [record(f"case {NASTY} {n}", ok=n % 3 > 0, text=NASTY, rungs={"contract": n}, usage=usage) for n in range(9)]
    records = [*done, record("lost", status="failed"), record("away", status="unreached")]
    return Result.of_run(Nasty(Options()), records, of=50, head=HEAD, command="python -m evals nasty --x '<'")


def test_the_report_is_markdown_with_every_case(made, tmp_path):
    write_report(made, tmp_path)
    text = (tmp_path / "report.md").read_text()
    for word in (
        "`python -m evals nasty --x '<'`",
        "54.5 % [",
        "6/11 |",
        "n = 11 of 50 cases",
        "unknown price",
        "36 answers: contract",
    ):
        assert word in text
    cases = text.splitlines()[-11:]
    assert [line.split(" | ")[2] for line in cases[:3]] == ["failed", "unreached", "done"]
    assert one_line("a | b\nc") == "a \\| b c"


def test_a_page_keeps_what_was_written_by_hand(made, tmp_path):
    page = tmp_path / "reports" / "nasty.md"
    publish(made, page)
    text = page.read_text()
    assert text.startswith("# nasty\n")
    page.write_text(text.replace("of 50 cases", "of 9,999 cases") + "\nNotes by hand.\n")
    publish(made, page)
    assert page.read_text() == f"{text}\nNotes by hand.\n"
    publish(replace(made, command="python -m evals nasty --other"), page)
    assert page.read_text().startswith(f"{text}\nNotes by hand.\n")
