"""The report of a run: one HTML file that opens offline, and loads nothing from anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any

from .cells import tell, tell_interval, tell_n, tell_value
from .figures import Bars, Cell, Figure, Lines, Measured, Published, Table
from .report_plots import bars, lines
from .result import Result, tell_rungs
from .suite import Record
from .terminal import markdown

DETAIL_CHARS = 6_000
TOLD_CHARS = 300

# of all cases together, so that the file stays well under 20 MB
ALL_DETAILS_BYTES, ALL_TOLD_CHARS = 10_000_000, 2_000_000

_HERE = Path(__file__).resolve().parent
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def write_report(result: Result, pages: Iterable[Path]) -> None:
    """Write the report to each of these files, and the summary beside the first as `summary.json` and `summary.md`."""
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
    """The report as one HTML document."""
    body = [_head(result), _expectations(result), *(_figure(result, each) for each in result.figures)]
    body += [_notes(result), _cases(result)]
    style, script = ((_HERE / f"report.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(result.suite)}</title>\n<style>\n{style}</style>\n"
        f"<body>\n{''.join(body)}\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _head(result: Result) -> str:
    head = result.sessions[-1]
    models = ", ".join(f"{role}: {name}" for role, name in head["models"].items()) or "none"
    sessions = "; ".join(f"{each['date']}, commit {each['commit']}" for each in result.sessions)
    options = ", ".join(f"{name} {value}" for name, value in head["options"].items() if value not in (None, {}, []))
    told = {
        "cases": f"{len(result.records):,} of {result.of:,}",
        "planner": head["planner"],
        "models": models,
        "begun (UTC)": sessions,
        "options": options,
    }
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in told.items())
    kind, word = ("holds", "all holds") if result.exit_code == 0 else ("broken", "something does not hold")
    return (
        f'<h1>{escape(result.suite)} <span class="badge {kind}">{word}</span></h1>\n<p>{escape(result.about)}</p>\n'
        f"<pre>{escape(result.command)}</pre>\n<dl>{listed}</dl>\n"
    )


def _expectations(result: Result) -> str:
    if not result.expectations:
        return ""
    lines_ = (
        f'<li><span class="{"holds" if each.holds else "broken"}">{"✓" if each.holds else "✗ does not hold:"}</span> '
        f"{escape(each.text)}</li>"
        for each in result.expectations
    )
    return f'<h2>What must hold</h2>\n<ul class="plain">{"".join(lines_)}</ul>\n'


def _notes(result: Result) -> str:
    if not result.notes:
        return ""
    return f"<h2>Notes</h2>\n<ul>{''.join(f'<li>{escape(note)}</li>' for note in result.notes)}</ul>\n"


def _figure(result: Result, figure: Figure) -> str:
    if isinstance(figure, Table):
        drawn = _table(figure)
    elif isinstance(figure, Bars):
        drawn = bars(figure)
    else:
        assert isinstance(figure, Lines)
        drawn = lines(figure)
    note = f'<p class="note">{escape(figure.note)}</p>' if figure.note else ""
    carried = f'<p class="carried">{escape(result.carried_by(figure))}</p>'
    return f"<section>\n<h2>{escape(figure.title)}</h2>\n{drawn}{note}{carried}\n</section>\n"


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in table.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>'


def _cell(cell: Cell) -> str:
    if isinstance(cell, Measured) and cell.n:
        below = f"{tell_interval(cell)} {tell_n(cell)}".strip()
        title = f' title="{escape(tell_rungs(cell.rungs))}"' if cell.rungs else ""
        return f"<td{title}>{tell_value(cell.value, cell.form)}<br><small>{below}</small></td>"
    if isinstance(cell, Published):
        return f"<td>{tell_value(cell.value, cell.form)}<br><small>{escape(cell.source)}</small></td>"
    return f"<td>{escape(tell(cell))}</td>"


def _cases(result: Result) -> str:
    rows = _json(list(_rows(result))).replace("<", "\\u003c")
    shell = (_HERE / "report_cases.html").read_text(encoding="utf-8")
    return f'{shell}<script type="application/json" id="records">{rows}</script>\n'


def _rows(result: Result) -> Iterator[list[Any]]:
    """Id, group, status, seconds, one line, details; where space is short, details of those not done come first."""
    room = ALL_DETAILS_BYTES
    told_chars = min(TOLD_CHARS, ALL_TOLD_CHARS // max(1, len(result.records)))
    details: dict[str, str] = {}
    for record in sorted(result.records, key=lambda record: record.done):
        detail = _detail(record)
        size = len(_json(detail).encode("utf-8", "backslashreplace"))
        if size <= room:
            details[record.id] = detail
            room -= size
    for record, told in zip(result.records, result.told, strict=True):
        seconds = f"{record.seconds:.3g}"
        yield [record.id, record.group, record.status, seconds, told[:told_chars], details.get(record.id, "")]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _detail(record: Record) -> str:
    whole = {"reason": record.reason, "tools": record.tools, "facts": record.facts, "values": record.values}
    text = json.dumps({key: value for key, value in whole.items() if value}, ensure_ascii=False, indent=1)
    return text if len(text) <= DETAIL_CHARS else f"{text[:DETAIL_CHARS]}\n… the rest is in cases.jsonl"
