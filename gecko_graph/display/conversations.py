"""Conversations as one page for a browser: the tables, and each as a chat beside its changes and milestones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..scenario.cases.report import Report
from ..scenario.cases.result import CaseResult, is_passed
from . import words
from .html import render
from .page import fold_text

MESSAGE_CHARS = 600


def conversations_page(report: Report, records: Sequence[Mapping[str, Any]], *, title: str) -> str:
    """Return one HTML document that loads nothing and runs no script; all texts are masked and escaped."""
    return render("conversations.html", title=words.clean(title), report=report, cases=list(map(_view, records)))


def _view(record: Mapping[str, Any]) -> dict[str, Any]:
    reached: dict[int, list[tuple[str, str]]] = {}
    for part, word in (("milestones", "good"), ("minefields", "bad")):
        for each in record["score"][part]:
            if each["snapshot"] is not None and each["similarity"] > 0:
                text = f"{'' if word == 'good' else 'minefield '}{each['id']} {each['similarity']:.2f}"
                reached.setdefault(each["snapshot"], []).append((word, text))
    shown = [{**message, "text": fold_text(message["text"], MESSAGE_CHARS)} for message in record["messages"]]
    return {
        "record": record,
        "passed": is_passed(record),
        "messages": [(each, reached.get(number, [])) for number, each in enumerate(shown)],
        "explained": CaseResult(dict(record)).explain().partition("\n\n")[0].splitlines(),
    }
