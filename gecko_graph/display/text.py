"""Rows as text: rich trees for a terminal and `format_run`, single lines for a pipe. No content is read as markup."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from .rows import ITEM_SIGNS, ViewRow
from .words import Record, clean, format_call, list_arguments

STYLES = {"good": "green", "bad": "red", "warn": "yellow", "note": "dim", "info": "cyan"}
SIGNED = ("attempt", "change", "data", "feedback", "item")
"""Labels that a tree does not show, because the row's sign says the same."""

_LABEL = re.compile(r"[a-z]+(?: [a-z]+)? {2,}")
ITEM_WORDS = {sign: f"{status.replace('_', ' ')}:" for status, sign in ITEM_SIGNS.items()}


class TextLine(NamedTuple):
    """A row as one line, with the id of its call."""

    call: str
    label: str
    text: str


def list_lines(row: ViewRow, above: ViewRow | None = None) -> Iterator[TextLine]:
    """Yield a row and the rows below it as single lines; rows below a call repeat the call's name."""
    call = row.call or (above.call if above else None) or {}
    label, note = row.label, row.note
    if above and above.call:
        note = above.note if above.label == "call" and label in ("ok", "error") else note
        parts = [f"{call['name']}:", *([row.sign] if row.label == "change" else []), row.place, row.text]
    elif row.call:
        note = ""
        parts = [row.sign, format_call(row.call, origins=row.origins if label == "plan" else {})]
    else:
        sign = ITEM_WORDS[row.sign] if label == "item" else "" if label in SIGNED else row.sign
        parts = [sign, row.place, row.text]
    if label or row.text:
        text = " ".join(filter(None, [*parts, note and f"({note})"]))
        yield TextLine(str(call.get("id", "")), label, clean(text))
    for each in row.rows:
        yield from list_lines(each, row)


def draw(row: ViewRow) -> RenderableType:
    """Return a row and the rows below it: an attempt or the follow-up as a tree, anything else as a block."""
    if row.label == "result":
        return Group(Text(""), _head(row), *_grid(row.rows))
    if not row.rows and row.label != "attempt":
        return _opening(row)
    tree = Tree(_head(row), guide_style="dim")
    for each in row.rows:
        is_head = each.rows or (each.call and each.label != "left")
        tree.add(Group(_head(each), *_grid(each.rows)) if is_head else Group(*_grid([each])))
    return tree if row.label == "attempt" else Group(Text(""), tree)


def as_text(rows: Iterable[ViewRow], *, width: int) -> str:
    """Return rows as plain text, at most `width` columns wide, without trailing spaces."""
    out = io.StringIO()
    console = Console(
        file=out, width=width, color_system=None, legacy_windows=False, emoji=False, force_terminal=False,
        force_jupyter=False,
    )  # fmt: skip
    for row in rows:
        console.print(draw(row))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _opening(row: ViewRow) -> RenderableType:
    """Return a row of the turn that precedes its attempts: `given    balance: 500.0`."""
    return _table([(Text(f"{row.label:<8}", STYLES.get(row.meant, "")), _body(row))])


def _head(row: ViewRow) -> Text:
    """Return the heading of a block: a call, an attempt or a verdict."""
    if row.call:
        head = _call(row.call)
    elif row.label == "attempt":
        head = Text(row.sign, "bold").append(f"  {row.text}" if row.text else "", "not bold dim")
    else:
        head = Text(row.text, f"bold {STYLES.get(row.meant, '')}")
    return head.append(f"  {row.note}" if row.note else "", "not bold dim")


def _grid(rows: Sequence[ViewRow]) -> list[RenderableType]:
    """Return the rows of a block as a table, or nothing for no rows; plan and change rows show their label once."""
    cells, before = [], ""
    for row in rows:
        label = row.sign if row.label in SIGNED else "" if row.label == before else row.label
        before = row.label if row.label in ("plan", "state") else ""
        cells.append((Text(label, STYLES.get(row.meant, "") if row.meant else "bold"), _body(row)))
    return [_table(cells)] if cells else []


def _body(row: ViewRow) -> Text:
    if row.label == "waiting":
        return Text(row.text, "dim")
    body = Text("" if row.label in SIGNED or not row.sign else f"{row.sign} ")
    if row.call:
        return body.append(_call(row.call, row.origins))
    body.append(f"{row.place} " if row.place else "", "bold").append(row.text, "dim" if row.meant == "note" else "")
    return body.append(f"  ({row.note})" if row.note else "", "dim")


def _call(call: Record, origins: Record | None = None) -> Text:
    head = Text(clean(call["name"]), "bold").append("(", "not bold")
    for number, each in enumerate(list_arguments(call, origins or {})):
        head.append(f"{', ' if number else ''}{each}", "not bold")
        head.append(f" ({each.origin})" if each.origin else "", "not bold yellow" if each.made_up else "not bold dim")
    return head.append(")", "not bold")


def hang(text: Text) -> RenderableType:
    """Return a text as a table of its label (ended by two spaces) and the rest, or unchanged if it has no label."""
    label = _LABEL.match(text.plain)
    return _table([(text[: label.end() - 1], text[label.end() :])]) if label else text


def _table(rows: Sequence[tuple[Text, Text]]) -> Table:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid
