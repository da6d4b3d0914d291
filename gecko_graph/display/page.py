"""A rehearsal as an HTML table, for notebooks. Everything that tools and models wrote is cleaned and escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from . import words
from .story import waits_for
from .tree import STATUS_SIGNS

CELL_CHARS = 600

_COLOURS = {
    "ok": "#1a7f37", "success": "#1a7f37", "accepted": "#1a7f37",
    "error": "#cf222e", "failed": "#cf222e",
    "refused": "#9a6700", "unknown": "#9a6700", "needs_user": "#9a6700", "not_asked_for": "#57606a",
    "made up": "#9a6700", "unclear": "#9a6700", "unasked": "#9a6700", "supposed": "#9a6700",
}  # fmt: skip
_CELL = "text-align:left;vertical-align:top;padding:2px 8px;white-space:normal;overflow-wrap:break-word"
_CODE = "font-family:monospace;white-space:pre-wrap"
_TABLE = "table-layout:fixed;width:100%;min-width:52em;border-collapse:collapse"
_HEADS = {"": "3%", "call": "24%", "result": "35%", "source": "12%", "change of the state": "26%"}
"""Titles of the columns, and how wide they are: where the browser chooses, narrow ones break words in mid-letter."""


def rehearsal_page(rehearsal: words.Record, *, waiting: str = "") -> str:
    """A rehearsal, whole or in the making, as one HTML table and a line on what it cost.

    Args:
        rehearsal: A `Rehearsal` record, or one with drafts of attempts (`Story`), and without what is not known yet.
        waiting: What unfinished attempts wait for, where that is not the result of a call.
    """
    head = "".join(f'<th style="{_CELL};width:{width}">{escape(title)}</th>' for title, width in _HEADS.items())
    body = "".join(_whole_row(_note(*note)) for note in words.tell_supposed(rehearsal))
    for attempt in rehearsal["attempts"]:
        body += _attempt(attempt, chosen=rehearsal.get("chosen"), waiting=waiting)
    cost = f"<p>{_small(words.tell_usage(rehearsal['usage']))}</p>" if "usage" in rehearsal else ""
    table = f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div style="overflow-x:auto">{table}</div>{cost}'


def _attempt(attempt: words.Record, *, chosen: int | None, waiting: str) -> str:
    mark = " (chosen)" if attempt["number"] == chosen else ""
    told = _judged(attempt) if "verdict" in attempt else _small(f"{waiting or _doing(attempt)} …")
    rows = [_whole_row(f"<b>Attempt {int(attempt['number'])}</b>{mark}: {told}")]
    rows += [_step(number, step, attempt.get("origins", {})) for number, step in enumerate(attempt["steps"], 1)]
    if attempt.get("answer"):
        rows.append(_whole_row(f"<i>{_lines(words.prose(attempt['answer']))}</i>"))
    return "".join(rows)


def _doing(attempt: words.Record) -> str:
    call = waits_for(attempt)
    return f"waiting for {call}" if call else "thinking"


def _judged(attempt: words.Record) -> str:
    verdict = attempt["verdict"]
    word = _coloured(words.tell_verdict(verdict, plan=words.plan_of(attempt)), words.style_of(verdict), bold=True)
    early = f" {_small('ended early: ' + attempt['stop_reason'])}" if words.is_early(attempt["stop_reason"]) else ""
    return f"{word}{early}{_items(attempt)}"


def _items(attempt: words.Record) -> str:
    verdict, told = attempt["verdict"], []
    for item in verdict["items"]:
        reason, judged_by = words.tell_judged(item, attempt["stop_reason"])
        note = f"{reason} ({judged_by})".strip()
        sign = _coloured(STATUS_SIGNS[item["status"]], item["status"])
        told.append(f"{sign} {_lines(words.prose(item['description']))} {_small(note)}")
    told += [_note(*note) for note in words.tell_notes(verdict)]
    if feedback := words.tell_feedback(verdict, attempt["stop_reason"]):
        told.append(f"» {_lines(feedback)}")
    return "".join(f"<br>{line}" for line in told)


def _note(word: str, text: str) -> str:
    return f"{_coloured(word, word, bold=True)} {_lines(text)}"


def _call(call: words.Record, origins: words.Record) -> str:
    told = []
    for text, origin, made_up in words.arguments(call, origins=origins, room=CELL_CHARS):
        note = _coloured(f"({origin})", "made up", bold=True) if made_up else _small(f"({origin})" if origin else "")
        told.append(f"{_plain(text)} {note}".rstrip())
    return f"<b>{_safe(call['name'])}</b>({', '.join(told)})"


def _step(number: int, step: words.Record, origins: words.Record) -> str:
    call, outcome = step["call"], step.get("outcome")
    said = _call(call, origins.get(call["id"], {}))
    if not outcome or "status" not in outcome:  # refused, not answered yet, or its answer was not seen
        status, source, change = "refused" if step.get("complaints") else "", "", _change(outcome or {})
        result = "<br>".join(_plain(words.tell_complaint(each)) for each in step.get("complaints", []))
    else:
        status, source, change = outcome["status"], words.tell_source(outcome), _change(outcome)
        result = _plain(words.tell_result(outcome["result"], room=CELL_CHARS))
        result += "".join(f"<br>{_small(told)}" for told in words.tell_passed(outcome["passed"]))
        result += "".join(f"<br>{_note('unclear', words.prose(why))}" for why in outcome.get("unclear", ()))
    cells = [
        str(number),
        f'<span style="{_CODE}">{said}</span>',
        f'{_coloured(status, status)} <span style="{_CODE}">{result}</span>',
        _small(source),
        f'<span style="{_CODE}">{change}</span>',
    ]
    return _row(f'<td style="{_CELL}">{cell}</td>' for cell in cells)


def _change(outcome: words.Record) -> str:
    lines = [_plain(f"{mark.sign} {mark.place} {mark.value}".rstrip()) for mark in _marks(outcome.get("patch") or [])]
    if refusal := words.refusal_of(outcome):
        lines.insert(0, _coloured(f"the change was not made: {refusal}", "refused"))
    lines += [_coloured(f"race: {race}", "refused") for race in outcome.get("race", [])]
    return "<br>".join(lines)


def _marks(patch: Sequence[words.Record]) -> list[words.Mark]:
    return words.tell_patch(patch, room=CELL_CHARS)


def _whole_row(content: str) -> str:
    return _row([f'<td colspan="{len(_HEADS)}" style="{_CELL}">{content}</td>'])


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _safe(text: str) -> str:
    """Text that others wrote, harmless in HTML."""
    return escape(words.clean(text), quote=True)


def _plain(text: str) -> str:
    """Text that `words` has cleaned, escaped."""
    return escape(text, quote=True)


def _lines(text: str) -> str:
    return _plain(text).replace("\n", "<br>")


def _small(text: str) -> str:
    return f'<small style="opacity:.7">{_lines(words.prose(text))}</small>' if text else ""


def _coloured(text: str, word: str, *, bold: bool = False) -> str:
    weight = ";font-weight:bold" if bold else ""
    if not text:
        return ""
    return f'<span style="color:{_COLOURS[word]}{weight}">{_lines(words.prose(text))}</span>'
