"""A run's summary on the terminal: tables and expectations; in a pipe plain Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from .cells import format_cell
from .figures import Table
from .result import Result


def show(result: Result, console: Console, *, where: Path) -> None:
    """Print the summary.

    Args:
        result: The run.
        console: Where to.
        where: Where the report lies.
    """
    if not console.is_terminal:
        console.out("\n".join(markdown(result)), highlight=False)
        console.out(f"\nreport: {where}", highlight=False)
        return
    for figure in result.figures:
        if isinstance(figure, Table):
            console.print(_table(figure))
            console.print(escape(_below(result, figure)) + "\n", style="dim", highlight=False)
    for each in result.expectations:
        sign = "[green]holds[/]" if each.holds else "[red bold]does not hold[/]"
        console.print(f"{sign}  {escape(each.text)}", highlight=False)
    for note in result.notes:
        console.print(f"• {escape(note)}", highlight=False)
    console.print(f"report: {escape(str(where))}", style="dim", highlight=False)


def markdown(result: Result) -> Iterator[str]:
    """Yield the summary as lines of Markdown: command, tables, expectations, notes."""
    yield f"`{result.command}`"
    for figure in result.figures:
        if isinstance(figure, Table):
            yield f"\n**{cell(figure.title)}**\n"
            yield f"| {' | '.join(map(cell, figure.columns))} |"
            yield "|---" * len(figure.columns) + "|"
            yield from (f"| {' | '.join(cell(format_cell(each)) for each in row)} |" for row in figure.rows)
            yield f"\n{_below(result, figure)}"
    if result.expectations or result.notes:
        yield ""
    yield from (f"- {'holds' if each.holds else 'DOES NOT HOLD'}: {each.text}" for each in result.expectations)
    yield from (f"- {note}" for note in result.notes)


def cell(text: str) -> str:
    """Return text that keeps to its cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def _below(result: Result, figure: Table) -> str:
    return " ".join(filter(None, [figure.note, result.carried_by(figure)]))


def _table(figure: Table) -> RichTable:
    table = RichTable(title=escape(figure.title), title_justify="left", header_style="bold")
    for number, name in enumerate(figure.columns):
        table.add_column(escape(name), justify="left" if number == 0 else "right", overflow="fold")
    for row in figure.rows:
        table.add_row(*(escape(format_cell(each)) for each in row))
    return table
