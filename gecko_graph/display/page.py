"""A rehearsal as an HTML table, for notebooks. Everything that tools and models wrote is cleaned and escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ..state import Rehearsal
from . import words
from .tree import STATUS_SIGNS

CELL_CHARS = 600

_COLOURS = {
    "ok": "#1a7f37", "success": "#1a7f37", "accepted": "#1a7f37",
    "error": "#cf222e", "failed": "#cf222e",
    "refused": "#9a6700", "unknown": "#9a6700", "needs_user": "#9a6700", "not_asked_for": "#57606a",
    "made up": "#9a6700", "unclear": "#9a6700", "unasked": "#9a6700", "supposed": "#9a6700",
}  # fmt: skip
_CELL = "text-align:left;vertical-align:top;padding:2px 8px;overflow-wrap:anywhere"
_CODE = "font-family:monospace;white-space:pre-wrap"
_HEADS = ("", "call", "result", "", "change of the state")


def rehearsal_page(rehearsal: Rehearsal) -> str:
    """A rehearsal as one HTML table and a line on what it cost."""
    head = "".join(f'<th style="{_CELL}">{escape(title)}</th>' for title in _HEADS)
    body = "".join(_whole_row(_note(*note)) for note in words.tell_supposed(rehearsal))
    body += "".join(_attempt(attempt, chosen=rehearsal["chosen"]) for attempt in rehearsal["attempts"])
    cost = _small(words.tell_usage(rehearsal["usage"]))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{cost}</p>"


def _attempt(attempt: words.Record, *, chosen: int) -> str:
    verdict = attempt["verdict"]
    colour = "made up" if verdict["word"] == "accepted" and verdict.get("made_up") else verdict["word"]
    word = _coloured(words.tell_verdict(verdict, plan=words.plan_of(attempt)), colour, bold=True)
    mark = " (chosen)" if attempt["number"] == chosen else ""
    early = f" {_small('ended early: ' + attempt['stop_reason'])}" if words.is_early(attempt["stop_reason"]) else ""
    title = f"<b>Attempt {int(attempt['number'])}</b>{mark}: {word}{early}{_items(attempt)}"
    rows = [_whole_row(title)]
    rows += [_step(number, step, attempt.get("origins", {})) for number, step in enumerate(attempt["steps"], 1)]
    if attempt["answer"]:
        rows.append(_whole_row(f"<i>{_lines(words.prose(attempt['answer']))}</i>"))
    return "".join(rows)


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
    if outcome is None:
        status, source, change = "refused", "", ""
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
    lines = [_plain(f"{mark.sign} {mark.place} {mark.value}".rstrip()) for mark in _marks(outcome["patch"] or [])]
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
    return f'<span style="color:{_COLOURS[word]}{weight}">{_lines(words.prose(text))}</span>'
