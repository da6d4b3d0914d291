"""A rehearsal as an HTML table, for notebooks: what the tree shows, in cells, escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from io import StringIO

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from . import tree, words
from .drafts import pending_calls

CELL_CHARS = 600

_CELL = "text-align:left;vertical-align:top;padding:2px 8px;white-space:pre-wrap;overflow-wrap:break-word"
_TABLE = "table-layout:fixed;width:100%;min-width:52em;border-collapse:collapse"
_HEADS = {"": "3%", "call": "27%", "result": "40%", "change of the state": "30%"}
"""Titles of the columns, and how wide they are: where the browser chooses, narrow ones break words in mid-letter."""

_CONSOLE = Console(file=StringIO(), force_jupyter=False)
_GREYS = (127, 127, 127)
_NORMAL = [(36, 41, 47), (207, 34, 46), (26, 127, 55), (154, 103, 0), (9, 105, 218), (130, 80, 223), (27, 124, 131)]
_THEME = TerminalTheme(_GREYS, _GREYS, [*_NORMAL, _GREYS])  # to be read on light and on dark pages


def rehearsal_page(rehearsal: words.Record, *, waiting: str = "") -> str:
    """A rehearsal, whole or in the making, as one HTML table and a line on what it cost.

    Args:
        rehearsal: A `Rehearsal` record, or one with drafts of attempts (`Drafts`), and without what is not known yet.
        waiting: What unfinished attempts wait for, where that is not the result of a call.
    """
    head = "".join(f'<th style="{_CELL};width:{width}">{escape(title)}</th>' for title, width in _HEADS.items())
    supposed = list(tree.supposed_rows(rehearsal))
    body = _whole_row(_lines(supposed)) if supposed else ""
    for attempt in rehearsal["attempts"]:
        body += _attempt(
            attempt, mark=" (chosen)" if attempt["number"] == rehearsal.get("chosen") else "", waiting=waiting
        )
    cost = f"<p>{_html(Text(words.format_usage(rehearsal['usage']), 'dim'))}</p>" if "usage" in rehearsal else ""
    table = f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div style="overflow-x:auto">{table}</div>{cost}'


def _attempt(attempt: words.Record, *, mark: str, waiting: str) -> str:
    title = _html(tree.attempt_head(attempt, mark=mark))
    if "verdict" in attempt:
        title += f"<br>{_lines([(tree.attempt_verdict(attempt), Text('')), *tree.verdict_rows(attempt)])}"
    else:
        call = pending_calls(attempt)
        title += _html(Text(f"  {waiting or (f'waiting for {call}' if call else 'thinking')} …", "dim"))
    rows = [_whole_row(title)]
    for number, step in enumerate(attempt["steps"], 1):
        call_, source = tree.step_head(step, attempt.get("origins", {})), tree.answer_rows(step, room=CELL_CHARS)
        rows.append(_row([str(number), _html(call_), _lines(source), _lines(tree.change_rows(step, room=CELL_CHARS))]))
    if attempt.get("answer"):
        rows.append(_whole_row(f"<i>{_html(Text(words.prose(attempt['answer'])))}</i>"))
    return "".join(rows)


def _row(cells: Iterable[str]) -> str:
    told = (f'<td style="{_CELL};font-family:monospace">{cell}</td>' for cell in cells)
    return f"<tr>{''.join(told)}</tr>"


def _whole_row(content: str) -> str:
    return f'<tr><td colspan="{len(_HEADS)}" style="{_CELL}">{content}</td></tr>'


def _lines(rows: Iterable[tree.Row]) -> str:
    return "<br>".join(_html(Text.assemble(word, " " if word and text else "", text)) for word, text in rows)


def _html(text: Text) -> str:
    told = ""
    for part in Text.assemble(text).render(_CONSOLE):  # a style of the whole text is left out by render
        style, shown = part.style.get_html_style(_THEME) if part.style else "", escape(part.text, quote=True)
        told += f'<span style="{style}">{shown}</span>' if style else shown
    return told.replace("\n", "<br>")
