"""Attempts as rich trees, for a terminal and as text. All content is `Text`, never markup."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from . import words

STYLES = {
    "ok": "green", "error": "red", "refused": "yellow", "accepted": "bold green", "failed": "bold red",
    "needs_user": "bold yellow", "success": "green", "unknown": "yellow", "not_asked_for": "dim", "dim": "dim",
    "made up": "bold yellow", "unclear": "yellow", "unasked": "bold yellow", "supposed": "yellow",
    "in doubt": "bold yellow", "started": "yellow", "skipped": "yellow", "departed": "bold red", "drift": "bold yellow",
    "left": "yellow", "broken": "yellow", "stale": "yellow", "observed": "cyan",
    "unsimulated": "yellow", "undocumented": "yellow", "may be refused": "yellow",
    "+": "cyan", "-": "magenta", "~": "cyan", ">": "cyan", "=": "cyan", "?": "dim", "…": "dim",
}  # fmt: skip
STATUS_SIGNS = {"success": "✓", "failed": "✗", "unknown": "?", "not_asked_for": "~"}

Row = tuple[Text, Text]
"""A label and its text."""


def rehearsal_tree(rehearsal: words.Record, *, waiting: str = "") -> RenderableType:
    """Return a rehearsal, finished or not, as a tree: its attempts, then its result."""
    attempts = [attempt_tree(attempt, waiting=waiting or "going on") for attempt in rehearsal["attempts"]]
    result = [result_block(rehearsal)] if "verdict" in rehearsal else []
    supposed = [_row(word, text) for word, text in words.format_supposed(rehearsal)]
    return Group(*_rows(supposed), *attempts, *result, *follow_up_trees(rehearsal))


def follow_up_trees(record: words.Record) -> Iterator[RenderableType]:
    """Yield what followed a rehearsal: calls that a person is asked about (`asked`), real ones (`execution`)."""
    if asked := record.get("asked"):
        tree = Tree(Text(f"waiting for a decision on {words.counted(len(asked), 'call')}", "bold yellow"))
        for action in asked:
            tree.add(Group(_call(action), Text(words.format_description(action), "dim")))
        yield Group(Text(""), tree)
    if execution := record.get("execution"):
        tree = Tree(Text(words.format_execution(execution), "bold"), guide_style="dim")
        for entry in execution["calls"]:
            lines = [_row(word, text) for word, text in words.format_real_call(entry)]
            tree.add(Group(_call(entry["call"]).append("  for real", "not bold dim"), *_rows(lines)))
        for call in execution["left"]:
            tree.add(_grid([(_word("left"), _call(call))]))
        yield Group(Text(""), tree)


def opening_row(word: str, text: str) -> RenderableType:
    """Return a line on a turn that stands before its attempts: `given    balance: 500.0`."""
    return _grid([(Text(f"{word:<8}", "dim"), Text(words.clean(text), "dim"))])


def attempt_tree(attempt: words.Record, *, waiting: str = "") -> Tree:
    """Return one attempt as a tree: a record, or a draft (`Drafts`) with what it waits for."""
    tree = Tree(attempt_head(attempt), guide_style="dim")
    for step in attempt["steps"]:
        tree.add(Group(step_head(step), *_rows([*answer_rows(step), *change_rows(step)])))
    if attempt.get("answer"):
        tree.add(_grid([(Text("answer", "bold"), Text(words.prose(attempt["answer"])))]))
    if "verdict" in attempt:
        head = _verdict(attempt["verdict"], words.plan_of(attempt))
        tree.add(Group(head, *_rows(verdict_rows(attempt))))
    elif waiting:
        tree.add(Text(f"{words.clean(waiting)} …", "dim"))
    return tree


def answer_rows(step: words.Record) -> list[Row]:
    """Return the rows of a call's result: complaints, or the result, the rungs that passed, and its marks."""
    rows = [_row("refused", words.format_complaint(complaint)) for complaint in step.get("complaints", [])]
    outcome = step.get("outcome") or {}
    if "status" in outcome:
        rows.append((_word(outcome["status"]), Text(words.format_result(outcome["result"]))))
        rows += [(Text(""), Text(reason, "dim")) for reason in words.format_passed(outcome["passed"])]
    return rows + [_row(label, text) for label, text in words.format_marks(outcome)]


def change_rows(step: words.Record) -> list[Row]:
    """Return the rows of a call's state change, why it was refused, and its races."""
    outcome = step.get("outcome") or {}
    refusal = words.refusal_of(outcome)
    rows = [_row("refused", f"the change was not made: {refusal}")] if refusal else []
    rows += mark_rows(words.format_patch(outcome.get("patch") or []))
    rows += [
        _row("observed", f"{place} {value}") for _, place, value in words.format_patch(outcome.get("observed") or [])
    ]
    return rows + [_row("race", words.clean(race), style="refused") for race in outcome.get("race", [])]


def mark_rows(marks: Iterable[words.Mark]) -> list[Row]:
    """Return the rows of a state change, one an operation."""
    return [(_word(mark.sign), Text(mark.place, "bold").append(f" {mark.value}", "not bold")) for mark in marks]


def verdict_rows(attempt: words.Record) -> list[Row]:
    """Return the rows of a verdict: items, notes, feedback."""
    verdict = attempt["verdict"]
    rows: list[Row] = []
    for item in verdict["items"]:
        text = Text(words.prose(item["description"]))
        reason, judged_by = words.format_judgement(item, attempt.get("stop_reason", ""))
        note = f"{reason} ({judged_by})".strip()
        rows.append((Text(STATUS_SIGNS[item["status"]], STYLES[item["status"]]), text.append(f"  {note}", "dim")))
    rows += [_row(word, text) for word, text in words.format_notes(verdict)]
    if feedback := words.format_feedback(verdict, attempt.get("stop_reason", "")):
        rows.append((Text("»", "dim"), Text(feedback)))
    return rows


def result_block(rehearsal: words.Record) -> RenderableType:
    """Return the result of a rehearsal: verdict, plan, change, cost."""
    head, origins = _verdict(rehearsal["verdict"], rehearsal["plan"]), rehearsal.get("origins", {})
    head.append(f"  attempt {rehearsal['chosen']} of {len(rehearsal['attempts'])}", "not bold dim")
    rows: list[Row] = []
    for number, call in enumerate(rehearsal["plan"], 1):
        planned = Text(f"{number}. ").append(_call(call, origins.get(call["id"], {})))
        rows.append((Text("plan" if number == 1 else "", "bold"), planned))
    for number, (mark, change) in enumerate(mark_rows(words.format_changes(rehearsal))):
        rows.append((Text("" if number else "state", "bold"), Text.assemble(mark, " ", change)))
    if rehearsal["answer"] and rehearsal["verdict"]["status"] == "needs_user":
        rows.append((Text("asks", "bold"), Text(words.prose(rehearsal["answer"]))))
    rows.append((Text("cost", "bold"), Text(words.format_usage(rehearsal["usage"]), "dim")))
    return Group(Text(""), head, *_rows(rows))


def as_text(*renderables: RenderableType, width: int) -> str:
    """Return renderables as plain text, at most `width` columns wide, without trailing spaces."""
    out = io.StringIO()
    console = Console(
        file=out, width=width, color_system=None, legacy_windows=False, emoji=False, force_terminal=False,
        force_jupyter=False,
    )  # fmt: skip
    for renderable in renderables:
        console.print(renderable)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def attempt_head(attempt: words.Record) -> Text:
    """Return an attempt's number, start state, and why it ended early."""
    head = Text(f"Attempt {attempt['number']}", "bold")
    if digest := attempt.get("start_digest"):
        head.append(f"  from state {digest[:8]}", "not bold dim")
    if words.is_early(attempt.get("stop_reason", "")):
        head.append(f"  ended early: {words.prose(attempt['stop_reason'])}", "not bold yellow")
    return head


def step_head(step: words.Record) -> Text:
    """Return a call and the rung that answered."""
    head = _call(step["call"])
    outcome = step.get("outcome") or {}
    return head.append(f"  {words.format_source(outcome)}", "not bold dim") if "rung" in outcome else head


def _call(call: words.Record, origins: words.Record = MappingProxyType({})) -> Text:
    head = Text(words.clean(call["name"]), "bold").append("(", "not bold")
    for number, (text, origin, made_up) in enumerate(words.list_arguments(call, origins=origins)):
        head.append(f"{', ' if number else ''}{text}", "not bold")
        head.append(f" ({origin})" if origin else "", "not bold yellow" if made_up else "not bold dim")
    return head.append(")", "not bold")


def _verdict(verdict: words.Record, plan: Sequence[words.Record]) -> Text:
    return Text(words.format_verdict(verdict, plan=plan), STYLES[words.style_of(verdict)])


def _word(word: str) -> Text:
    return Text(word, STYLES.get(word, ""))


def _row(word: str, text: str, *, style: str = "") -> Row:
    return Text(word, STYLES[style or word]), Text(text)


def _rows(rows: Iterable[Row]) -> list[RenderableType]:
    listed = list(rows)
    return [_grid(listed)] if listed else []


def _grid(rows: Sequence[Row]) -> Table:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid
