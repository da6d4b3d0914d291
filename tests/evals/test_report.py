"""Figures, what they refuse and say, and the report as it is written."""

from __future__ import annotations

import io
import json
import re
from html.parser import HTMLParser
from math import nan

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from evals.harness import cells, terminal
from evals.harness.figures import (
    Bars,
    Lines,
    Measured,
    MixedTools,
    Published,
    Table,
    mean,
    mean_of,
    median_of,
    rate,
    share,
)
from evals.harness.options import Options
from evals.harness.progress import Bar, progress, span
from evals.harness.progress import Lines as PlainLines
from evals.harness.rehearsed import rehearsed
from evals.harness.report import page, write_report
from evals.harness.report_plots import bars, lines
from evals.harness.result import Result, failures, format_rungs
from evals.harness.suite import Case, Expectation, Record, Suite, Summary

NASTY = "</script><img src=x onerror=alert(1)> & \u2028 \ud83e [red]"


def record(name, *, status="done", tools="simulated", seconds=0.25, group="g", **values):
    reason = "" if status == "done" else f"ValueError: {NASTY}"
    return Record(name, group, {"fact": NASTY}, status, reason, seconds, tools, values)


# -- figures -----------------------------------------------------------------------------------------------------------


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


def test_where_is_asked_of_all_records():
    some = [record("a", ok=True), record("b", status="failed"), record("c", group="other", ok=True)]
    measured = rate(some, lambda each: each.values["ok"], where=lambda each: each.group == "g")
    assert (measured.hits, measured.n) == (1, 2)


def test_rates_know_their_rungs():
    some = [record("a", ok=True, rungs={"contract": 2}), record("b", ok=True, rungs={"contract": 1, "model": 1})]
    assert rate(some, lambda each: each.values["ok"]).rungs == {"contract": 3, "model": 1}
    assert format_rungs({"contract": 3, "model": 1}) == "4 answers: contract 75 %, model 25 %"


REAL, SIMULATED, NEITHER = (share(1, 2, tools=tools) for tools in ("real", "simulated", "none"))


def test_real_and_simulated_never_mix():
    with pytest.raises(MixedTools, match="real and simulated"):
        rate([record("a", ok=True, tools="real"), record("b", ok=True)], lambda each: each.values["ok"])
    table = Table("Verdicts", ["", "rate"])
    table.add("neither", NEITHER)
    table.add("real", REAL)
    with pytest.raises(MixedTools, match="figure 'Verdicts': scores from real and simulated tools"):
        table.add("simulated", SIMULATED)
    assert len(table.rows) == 2
    assert table.tools == "real"
    with pytest.raises(MixedTools):
        Bars("B", ["a"], {"real": [REAL], "simulated": [SIMULATED]})
    with pytest.raises(MixedTools):
        Lines("L", {"real": [(1, REAL)], "simulated": [(1, SIMULATED)]}, x="x", y="y")


def test_a_bare_number_is_no_figure():
    with pytest.raises(TypeError, match=r"0\.97 says neither n nor interval"):
        Table("T", ["", "rate"]).add("all", 0.97)
    with pytest.raises(ValueError, match="1 cells in a row of 2"):
        Table("T", ["", "rate"]).add("all")
    with pytest.raises(ValueError, match="1 values for 2 categories"):
        Bars("B", ["a", "b"], {"ours": [REAL]})


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (share(390, 400, tools="none"), "97.5 % [95.5, 98.6] 390/400"),
        (share(0, 0, tools="none"), "none n=0"),
        (mean_of([1.0, 2.0, 3.0], form="seconds"), "2.00 s [0, 4.48] n=3"),
        (mean_of([2.0]), "2.00 n=1"),
        (Published(0.812, "paper, table 1"), "81.2 % (paper, table 1)"),
        (12345, "12,345"),
        (None, ""),
        (True, "True"),
    ],
)
def test_cells_say_value_interval_and_n(cell, told):
    assert cells.format_cell(cell) == told


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
@example(0.0015)
@example(0.0995)
def test_significant_digits_keep_the_value(value):
    told = cells.significant(value)
    assert float(told.replace(",", "")) == pytest.approx(value, rel=0.051, abs=1e-12)


def test_a_median_has_an_interval():
    median = median_of([1, 2, 3, 4, 100], form="seconds")
    assert (median.value, median.n) == (3, 5)
    assert 1 <= median.low <= 3 <= median.high <= 100


# -- the report --------------------------------------------------------------------------------------------------------


class Nasty(Suite):
    """Text <b>that</b> must be escaped."""

    name = "nasty"
    tools = "simulated"

    def cases(self):
        return [Case("a")]

    def run_case(self, case):
        return {}

    def summarise(self, records):
        table = Table(NASTY, ["group", f"rate {NASTY}"], note=NASTY)
        table.add(NASTY, rate(records, lambda each: each.values["ok"]))
        published = Published(0.5, NASTY)
        some = rate(records, lambda each: each.values["ok"])
        grown = [(x, mean_of([x * 0.9, x * 1.1], form="seconds")) for x in (1, 10, 100)]
        return Summary(
            [
                table,
                Bars(NASTY, [NASTY, "b"], {NASTY: [some, None], "paper": [published, published]}),
                Lines(NASTY, {NASTY: grown, "paper": [(1, published)]}, x=NASTY, y=NASTY, log=True),
                Lines("flat", {"one": [(0, some)]}, x="x", y="y"),
                Lines("empty", {"one": []}, x="x", y="y"),
            ],
            [Expectation(NASTY, holds=False)],
            [NASTY],
        )


HEAD = {
    "v": 1, "suite": "nasty", "options": {"seed": 4, "own": NASTY, "unset": None}, "planner": "ground-truth",
    "models": {"judge": "openai:j"}, "command": "python -m evals nasty", "commit": "abc", "code": "c",
    "date": "2026-01-02 03:04:05Z",
}  # fmt: skip


def result(records, suite=Nasty, of=None, sessions=(HEAD,)):
    made = suite(Options())
    return Result.of_run(
        made, records, of=of or len(records), sessions=sessions, command="python -m evals nasty --x '<'"
    )


def some_records():
    usage = {"judge": {"calls": 1, "input_tokens": 5, "output_tokens": 5, "cost": None}}
    done = [record(f"case {NASTY} {n}", ok=n % 3 > 0, text=NASTY, rungs={"contract": n}, usage=usage) for n in range(9)]
    return [*done, record("lost", status="failed"), record("away", status="unreached")]


class Reader(HTMLParser):
    """Tags, their attributes, and the text of the records."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.records, self._inside = [], [], "", False

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self._inside = ("id", "records") in attrs

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        self.records += data if self._inside else ""


def read(text):
    reader = Reader()
    reader.feed(text)
    return reader


def test_the_report_is_one_file_that_loads_nothing_and_runs_nothing_foreign(tmp_path):
    file = tmp_path / "new" / "report.html"
    write_report(result(some_records()), [file, tmp_path / "copy.html"])
    text = file.read_text()
    assert text == (tmp_path / "copy.html").read_text()
    reader = read(text)
    assert not {"img", "link", "iframe", "object", "embed"} & set(reader.tags)
    assert reader.tags.count("script") == 2
    assert not [name for name, _ in reader.attributes if name in {"src", "href", "action"} or name.startswith("on")]
    assert "http://" not in text
    assert "https://" not in text
    assert "default-src 'none'" in text
    assert reader.tags.count("svg") == 3
    assert "<td>&lt;/script&gt;&lt;img" in text


def test_the_report_lists_every_case(tmp_path):
    rows = json.loads(read(page(result(some_records()))).records)
    assert len(rows) == 11
    assert rows[0][0] == f"case {NASTY} 0"
    assert [row[2] for row in rows[-2:]] == ["failed", "unreached"]
    assert NASTY in rows[-1][4]
    assert json.loads(rows[0][5])["values"]["text"] == NASTY


@pytest.mark.parametrize("letter", ["x", "\u20ac", '"'])
def test_a_report_of_many_large_cases_stays_small(letter):
    many = [record(f"case_{n}", ok=True, text=letter * 20_000) for n in range(3_000)]
    many.append(record("lost", status="failed"))
    text = page(result(many))
    assert len(text.encode("utf-8", "backslashreplace")) < 20_000_000
    rows = json.loads(read(text).records)
    assert len(rows) == 3_001
    assert rows[-1][5]  # the failed case's details were kept
    assert "the rest is in cases.jsonl" in rows[0][5]


def test_every_figure_carries_where_it_comes_from():
    other = {**HEAD, "commit": "def"}
    made = result(some_records(), of=50, sessions=(HEAD, other))
    told = made.carried("simulated")
    for word in (
        "n = 11 of 50 cases", "seed 4", "planner ground-truth", "judge openai:j", "2026-01-02", "commit abc, def",
        "simulated tools", "36 answers: contract 100 %",
    ):  # fmt: skip
        assert word in told
    assert page(made).count(told.replace("&", "&amp;")) >= 2
    assert all(each["carries"] for each in made.as_json()["figures"])


def test_the_summary_is_plain_json_and_markdown(tmp_path):
    file = tmp_path / "report.html"
    made = result(some_records())
    write_report(made, [file])
    summary = json.loads((tmp_path / "summary.json").read_text(), parse_constant=pytest.fail)
    assert summary["cases"] == {"of": 11, "n": 11, "done": 9, "failed": 1, "unreached": 1}
    assert not summary["holds"]
    assert summary["figures"][0]["rows"][0][1]["n"] == 11
    assert summary["figures"][0]["rows"][0][1]["rungs"] == {"contract": 36}
    text = (tmp_path / "summary.md").read_text()
    assert "`python -m evals nasty --x '<'`" in text
    assert "54.5 % [" in text
    assert "unknown price" in text


def test_markdown_cells_keep_to_their_cell():
    assert terminal.cell("a | b\nc") == "a \\| b c"


def test_a_terminal_gets_tables_and_a_pipe_markdown(tmp_path):
    made = result(some_records())
    for is_terminal in (True, False):
        out = io.StringIO()
        console = Console(file=out, force_terminal=is_terminal, width=160, color_system=None)
        terminal.show(made, console, where=tmp_path / "report.html")
        shown = out.getvalue().encode("utf-8", "replace").decode()
        assert ("| group |" in shown) is not is_terminal
        assert "6/11" in shown
        assert "[red]" in shown  # text of cases is not read as markup
        assert re.search(r"does not hold", shown, re.IGNORECASE)
        assert "report:" in shown


def test_failures_are_told_by_reason():
    some = [Record(f"c{n}", "", {}, "failed", f"reason {n // 5}", 0.0, "none", {}) for n in range(60)]
    told = list(failures(some))
    assert told[0] == "5 failed: reason 0 (c0, c1, c2, ...)"
    assert told[-1] == "4 more reasons of failures are in the report's list of cases"
    assert list(failures([record("a")])) == []


def test_plots_draw_what_can_be_drawn():
    odd = Measured(nan, nan, nan, 0, "none")
    assert "nothing to draw" in lines(Lines("l", {"a": [(0, share(1, 2, tools="none"))]}, x="x", y="y", log=True))
    drawn = bars(Bars("b", ["one", "two"], {"a": [odd, share(1, 2, tools="none")]}))
    assert drawn.count("<rect") == 1
    assert "nan" not in drawn
    grown = lines(Lines("l", {"a": [(x, mean_of([x**2, x**2])) for x in (1, 10, 100)]}, x="x", y="y", log=True))
    assert "grows with x to the power of 2.00 [2.00, 2.00], 3 points" in grown
    assert "nan" not in grown


@given(st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9)), max_size=6), st.booleans())
def test_any_points_can_be_drawn(points, log):
    drawn = lines(Lines("l", {"a": [(x, mean_of([y, y + 1])) for x, y in points]}, x="x", y="y", log=log))
    assert "nan" not in drawn
    assert "inf" not in drawn
    assert len(drawn) < 20_000


# -- progress ----------------------------------------------------------------------------------------------------------


def test_progress_is_a_bar_on_a_terminal_and_few_lines_in_a_pipe():
    for is_terminal, kind in ((True, Bar), (False, PlainLines)):
        out = io.StringIO()
        shown = progress(Console(file=out, force_terminal=is_terminal, width=120), "suite", total=40, settled=10)
        assert isinstance(shown, kind)
        with shown:
            for number in range(30):
                shown.begin(Case(str(number)))
                shown.end(record(str(number), status="failed" if number == 3 else "done"))
        text = out.getvalue()
        assert "40" in text
        assert "1 failed" in text
        if not is_terminal:
            assert text.count("\n") == 1
            assert "suite: 40 of 40 cases" in text


def test_a_span_of_time():
    assert span(3725.4) == "1:02:05"


def test_a_record_of_a_rehearsal_counts_its_steps():
    step = {"v": 1, "call": {}, "outcome": {"rung": "contract", "simulated": True}}
    usage = {"judge": {"calls": 1, "input_tokens": 2, "output_tokens": 3, "cost": 0.5}}
    turn = {
        "attempts": [{"steps": [step, {"v": 1, "call": {}, "complaints": [{}, {}]}]}, {"steps": [step]}],
        "verdict": {"status": "accepted", "score": 1.0},
        "usage": usage,
    }
    told = rehearsed(turn, turn)
    assert told["verdicts"] == ["accepted", "accepted"]
    assert (told["attempts"], told["tool_calls"], told["complaints"]) == (4, 4, 4)
    assert told["rungs"] == {"contract": 4}
    assert told["usage"]["judge"] == {"calls": 2, "input_tokens": 4, "output_tokens": 6, "cost": 1.0}
