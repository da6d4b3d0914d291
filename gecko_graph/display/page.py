"""Rows as HTML: runs or test conversations as a self-contained page, a run as part of a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import Any

from jinja2 import Environment, FileSystemLoader

from ..conversation.milestones.constraints import is_reached
from ..conversation.result import Report, build_report, find_fault, format_missed, is_passed, read_conversation
from ..state import JsonObject
from ..world.turn import task_of
from . import RunText, rows, words
from .records import PageTurn, is_conversation, pending_calls, rehearsal_of

_PAGES = [Path(__file__).resolve().parent / "pages", Path(__file__).resolve().parents[1]]


def html_page(*runs: PageTurn | Mapping[str, Any], title: str = "", start_state: JsonObject | None = None) -> str:
    """Return a page about a run: verdict, plan with its evidence, checklist, and every attempt with its calls.

    Args:
        runs: The graph's outputs, one per turn; or their `rehearsal`; or `PageTurn`s; or outputs of conversations.
        title: Name of the run.
        start_state: Task state before the first turn; if given, changes show old values.

    Returns:
        One HTML document that loads nothing and runs no script. All texts are masked and escaped.

    Raises:
        GeckoError: One of `runs` contains no rehearsal.
    """
    if runs and all(map(is_conversation, runs)):
        records = [read_conversation(run).record for run in runs if isinstance(run, Mapping)]
        return conversations_page(build_report(records), records, title=title)
    turns: list[PageTurn] = []
    for run in runs:
        turns.append(run if isinstance(run, PageTurn) else _read_turn(run, start_state))
        start_state = run.get("task_state") if isinstance(run, Mapping) else None
    return render("run.html", turns=list(map(_view, turns)), title=words.clean(title))


def html_part(record: words.Record, *, waiting: str = "") -> str:
    """Return a rehearsal as HTML for a notebook's cell; its attempts may be unfinished (`Drafts`).

    `waiting` says what unfinished attempts wait for; by default a call's result or a model.
    """
    return render("part.html", turn=_view(PageTurn(record), waiting=waiting))


def conversations_page(report: Report, records: Sequence[Mapping[str, Any]], *, title: str) -> str:
    """Return conversations as one HTML document: the tables, then each case as chats, its newest trial first."""
    cases: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for record in sorted(records, key=lambda record: -record["trial"]):
        cases.setdefault((record["file"], record["case"], record["augmentation"]), []).append(record)
    trials = [cases[key] for key in sorted(cases)]
    return render("conversations.html", title=words.clean(title), report=report, cases=trials)


class ConversationText(RunText):
    """A readable conversation; `rehearsal` is the output of the conversation's graph."""

    def __str__(self) -> str:
        result = read_conversation(self.rehearsal)
        lines = [*result.explain().partition("\n\n")[0].splitlines(), "", *result.lines()]
        return "\n".join(fill(words.clean(line), self.width, subsequent_indent=" " * 6) for line in lines)

    def _repr_html_(self) -> str:
        return render("chat.html", record=read_conversation(self.rehearsal).record)


def render(template: str, **values: Any) -> str:
    """Render a template of the `pages` folder; all values but `Markup` are escaped."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(loader=FileSystemLoader(_PAGES), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.globals.update({each.__name__: each for each in (find_fault, format_missed, is_passed, is_reached)})
    environment.globals["words"] = words
    return environment


def _read_turn(run: Mapping[str, Any], start_state: JsonObject | None) -> PageTurn:
    values = getattr(run, "value", run)
    messages = values.get("messages") if isinstance(values, Mapping) else None
    return PageTurn(rehearsal_of(run), task_of(messages) if messages else "", start_state)


def _view(turn: PageTurn, *, waiting: str = "") -> JsonObject:
    record, start = turn.record, turn.start_state
    supposed = (record.get("supposed_state") or {}).get("state", {})
    given = {key: value for key, value in (start or {}).items() if key not in supposed}
    view: JsonObject = {
        "record": record,
        "task": words.fold_text(turn.task, words.PROSE_CHARS),
        "note": turn.note,
        "start": [*rows.list_state(given), *rows.list_supposed(record)],
        "attempts": [
            rows.build_attempt(each, state=start, waiting=waiting or f"waiting for {pending_calls(each) or 'a model'}")
            for each in record["attempts"]
        ],
        "follow_up": {row.label: row for row in rows.list_results({**record, "verdict": None})},
    }
    if verdict := record.get("verdict"):
        checks = {item["id"]: item.get("check", "") for item in record.get("checklist", ())}
        chosen: words.Record = next((each for each in record["attempts"] if each["number"] == record["chosen"]), {})
        checked = list(rows.list_verdict(verdict, chosen.get("stop_reason", ""), checks))
        view["result"] = rows.build_result({**record, "asked": ()})
        view["checked"] = [row for row in checked if row.label in ("item", "feedback")]
        view["notes"] = [row for row in checked if row not in view["checked"]]
    return view
