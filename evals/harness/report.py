"""The report of a run: one HTML file that opens offline, and loads nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from markupsafe import Markup

from gecko_graph.display.html import render

from .cells import format_cell, format_count, format_interval, format_number
from .figures import Bars, Cell, Figure, Lines, Measured, Published, Table
from .report_plots import bars, lines
from .result import Result, format_rungs
from .suite import Record
from .terminal import markdown

DETAIL_CHARS = 6_000
LINE_CHARS = 300

# of all cases together, so that the file stays well under 20 MB
ALL_DETAILS_BYTES, ALL_LINES_CHARS = 10_000_000, 2_000_000

_HERE = Path(__file__).resolve().parent


def write_report(result: Result, pages: Iterable[Path]) -> None:
    """Write the report to each file, and the summary beside the first as `summary.json` and `summary.md`."""
    files = list(pages)
    whole = page(result)
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(whole, encoding="utf-8", errors="replace")  # half a surrogate pair kills some browsers
    text = json.dumps(result.as_json(), ensure_ascii=False, indent=1)
    text_below = "\n".join(markdown(result))
    for name, content in (("summary.json", text), ("summary.md", text_below)):
        files[0].with_name(name).write_text(content + "\n", encoding="utf-8", errors="backslashreplace")


def page(result: Result) -> str:
    """Return the report as one HTML document."""
    return render(
        "report.html",
        folder=_HERE,
        title=result.suite,
        result=result,
        holds=result.exit_code == 0,
        head=_head(result),
        figures=[(figure, *_draw(figure)) for figure in result.figures],
        records=Markup(_json(list(_rows(result))).replace("<", "\\u003c")),
    )


def _head(result: Result) -> dict[str, str]:
    head = result.sessions[-1]
    options = ", ".join(f"{name} {value}" for name, value in head["options"].items() if value not in (None, {}, []))
    return {
        "cases": f"{len(result.records):,} of {result.of:,}",
        "planner": head["planner"],
        "models": ", ".join(f"{role}: {name}" for role, name in head["models"].items()) or "none",
        "begun (UTC)": "; ".join(f"{session['date']}, commit {session['commit']}" for session in result.sessions),
        "options": options,
    }


def _draw(figure: Figure) -> tuple[Markup, list[list[Any]]]:
    """Return a plot's drawing, or a table's rows."""
    if isinstance(figure, Table):
        return Markup(), [[_cell(cell) for cell in row] for row in figure.rows]
    if isinstance(figure, Bars):
        return Markup(bars(figure)), []
    assert isinstance(figure, Lines)
    return Markup(lines(figure)), []


def _cell(cell: Cell) -> Any:
    """Return a cell's text; of a measured or published value a mapping of the value, and what stands below it."""
    if isinstance(cell, Measured) and cell.n:
        below = f"{format_interval(cell)} {format_count(cell)}".strip()
        return {"value": format_number(cell.value, cell.form), "below": below, "title": format_rungs(cell.rungs)}
    if isinstance(cell, Published):
        return {"value": format_number(cell.value, cell.form), "below": cell.source, "title": ""}
    return format_cell(cell)


def _rows(result: Result) -> Iterator[list[Any]]:
    """Yield id, group, status, seconds, line, details; where space is short, details of those not done come first."""
    room = ALL_DETAILS_BYTES
    line_chars = min(LINE_CHARS, ALL_LINES_CHARS // max(1, len(result.records)))
    details: dict[str, str] = {}
    for record in sorted(result.records, key=lambda record: record.done):
        detail = _detail(record)
        size = len(_json(detail).encode("utf-8", "backslashreplace"))
        if size <= room:
            details[record.id] = detail
            room -= size
    for record, line in zip(result.records, result.told, strict=True):
        seconds = f"{record.seconds:.3g}"
        yield [record.id, record.group, record.status, seconds, line[:line_chars], details.get(record.id, "")]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _detail(record: Record) -> str:
    whole = {"reason": record.reason, "tools": record.tools, "facts": record.facts, "values": record.values}
    text = json.dumps({key: value for key, value in whole.items() if value}, ensure_ascii=False, indent=1)
    return text if len(text) <= DETAIL_CHARS else f"{text[:DETAIL_CHARS]}\n… the rest is in cases.jsonl"
