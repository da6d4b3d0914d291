"""The list of labelled rows that every view shows, built from the records of a finished or running run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..errors import PatchConflict
from ..real.description import APPROVE, PLAN
from ..real.preview import describe_undo
from ..schemas.complaints import describe_finding
from ..state import Json
from ..values.difference import Change, net_changes
from ..values.digest import digest
from ..values.media import list_references, picture_of
from ..values.notes import KINDS, by_kind, notes_of
from ..values.patch import apply_patch
from . import words
from .words import Record, ValueView, clean, prose

OPERATIONS_SHOWN = 6
"""Operations of a patch that are shown; the others are counted."""

TONES = {
    **dict.fromkeys(("ok", "success", "accepted", "done"), "good"),
    **dict.fromkeys(("error", "failed", "departed"), "bad"),
    **dict.fromkeys(("change", "state", "observed"), "info"),
    **dict.fromkeys(("note", "given", "expected", "feedback", "not_asked_for"), "note"),
    **dict.fromkeys(("", "task", "attempt", "call", "real", "plan", "answer", "asks", "cost", "verdict"), ""),
}
"""The tone of each label; labels that are not listed are warnings."""

SIGNS = {"add": "+", "replace": "~", "remove": "-", "shrink": "-", "move": ">", "copy": "="}
ITEM_SIGNS = {"success": "✓", "failed": "✗", "unknown": "?", "unsure": "?", "not_asked_for": "~"}


@dataclass(frozen=True, slots=True)
class ViewRow:
    """One line of a view; its texts are clean (`words.clean`).

    Args:
        label: The kind of line, such as `ok`, `change`, `item`.
        text: The line's text.
        tone: `good`, `bad`, `warn`, `note`, `info` or empty; by default the tone of the label.
        sign: A sign before the text.
        place: A path before the text.
        note: A remark after the text, less prominent.
        whole: The uncut text if `text` is cut; for an item, its check.
        picture: The data URL of a picture.
        call: The call that the line is about, with `origins` of its arguments.
        rows: The lines below this one.
    """

    label: str
    text: str = ""
    tone: str | None = None
    sign: str = ""
    place: str = ""
    note: str = ""
    whole: str = ""
    picture: str = ""
    call: Record | None = None
    origins: Record = field(default_factory=dict)
    rows: Sequence[ViewRow] = ()

    @property
    def meant(self) -> str:
        """The tone to show: the row's own, or that of its label."""
        return TONES.get(self.label, "warn") if self.tone is None else self.tone


def list_rows(record: Record, *, waiting: str = "") -> Iterator[ViewRow]:
    """Yield the rows of a finished or unfinished rehearsal: opening rows, attempts, result, follow-up."""
    yield from list_supposed(record)
    for attempt in record["attempts"]:
        yield build_attempt(attempt, waiting=waiting)
    yield from list_results(record)


def list_results(record: Record) -> Iterator[ViewRow]:
    """Yield the result, the calls that wait for a decision (`asked`) and the calls made (`execution`)."""
    if record.get("verdict"):
        yield build_result(record)
    if asked := record.get("asked"):
        shown = [ViewRow("asks", call=each, rows=list(_list_question(each))) for each in asked]
        text = f"{words.counted(len(asked), 'call')} wait{'s' * (len(asked) == 1)} for a decision"
        yield ViewRow("waiting", text, "warn", rows=shown)
    if execution := record.get("execution"):
        left = [ViewRow("left", call=call) for call in execution["left"]]
        tone = {"done": "good", "": "note"}.get(execution["status"], "warn")
        ways = {each["call"]["id"]: {"undo": each} for each in execution.get("undo", ())}
        done = [*(build_real({**each, **ways.get(each["call"].get("id"), {})}) for each in execution["calls"]), *left]
        yield ViewRow("carried out", words.format_execution(execution), tone, rows=done)


def list_supposed(record: Record) -> Iterator[ViewRow]:
    """Yield the supposed state's keys, and the conditions that are unclear in it."""
    supposed = record.get("supposed_state") or {}
    yield from list_state(supposed.get("state", {}), "supposed")
    yield from list_notes(supposed)


def list_state(state: Record, label: str = "given") -> Iterator[ViewRow]:
    for key, value in state.items():
        short, whole = words.fold_value(value, key)
        yield ViewRow(label, short, place=f"{clean(key)}:", whole=whole)


def list_expected(items: Iterable[Record], failure: str = "") -> Iterator[ViewRow]:
    """Yield the items of a checklist, or why there is none."""
    yield from (
        ViewRow("expected", prose(text)) for text in [*(item["description"] for item in items), failure] if text
    )


def build_attempt(attempt: Record, *, state: Json = None, waiting: str = "") -> ViewRow:
    """Return the row of an attempt, or of an unfinished one (`records.Draft`) with what it is waiting for.

    If `state`, the task state before the attempt, is given, changes show old values.
    """
    start = attempt.get("start_digest", "")
    if state is not None and digest(state) != start:
        state = None
    rows: list[ViewRow] = []
    for step in attempt["steps"]:
        row, state = build_step(step, attempt.get("origins", {}), state)
        rows.append(row)
    rows += list_end(attempt)
    if "verdict" not in attempt and waiting:
        rows.append(ViewRow("waiting", f"{clean(waiting)} …", "note"))
    return ViewRow(
        "attempt", f"from state {start[:8]}" if start else "", sign=f"Attempt {attempt.get('number', '')}", rows=rows
    )


def list_end(attempt: Record) -> Iterator[ViewRow]:
    """Yield how an attempt ended: its answer, why it stopped, its verdict."""
    if attempt.get("answer"):
        yield ViewRow("answer", prose(attempt["answer"]))
    if is_early(reason := attempt.get("stop_reason", "")):
        yield ViewRow("stopped", prose(reason))
    if verdict := attempt.get("verdict"):
        plan = [each for each in attempt["steps"] if (each.get("outcome") or {}).get("status") == "ok"]
        text = words.format_verdict(verdict, plan=plan)
        yield ViewRow("verdict", text, tone_of(verdict), rows=list(list_verdict(verdict, reason)))


def is_early(stop_reason: str) -> bool:
    """Return whether an attempt ended before the planner's answer."""
    return stop_reason not in ("", "answered")


def tone_of(verdict: Record) -> str:
    """Return the tone of a verdict; an accepted one with a doubtful note is a warning."""
    doubtful = any(KINDS[each["kind"]].noun for each in notes_of(verdict))
    return "warn" if doubtful and verdict["status"] == "accepted" else TONES.get(verdict["status"], "warn")


# calls -----------------------------------------------------------------------------------------------


def build_step(step: Record, origins: Record, state: Json = None) -> tuple[ViewRow, Json]:
    """Return the row of a call with its outcome, and the state after it if the state before is known."""
    outcome = step.get("outcome") or {}
    rows = []
    for each in step.get("complaints", ()):
        text = describe_finding(each["path"], each["expected"], words.cut(each["got"], words.VALUE_CHARS))
        rows.append(ViewRow("refused", clean(f"{text} ({each['source']})")))
    if "status" in outcome:
        short, whole = words.fold_result(outcome["result"])
        rows += [
            ViewRow(outcome["status"], short, whole=whole),
            *_list_media([outcome["result"], outcome.get("media")]),
        ]
    # the reason of a rung that did not apply has no colon and is not shown
    passed = [each for each in outcome.get("passed", ()) if ":" in each["reason"]]
    rows += [ViewRow("note", f"not by {clean(each['rung'])}: {prose(each['reason'])}") for each in passed]
    rows += _list_broken(outcome.get("violations", ()))
    rows += list_notes(outcome)
    for label, patch in (("change", outcome.get("patch")), ("observed", outcome.get("observed"))):
        found, state = _list_changes(label, patch or [], state)
        rows += found
    call, (note, tone) = step["call"], _find_source(outcome)
    return ViewRow(
        "call", "", tone, note=note, call=call, origins=origins.get(call.get("id", ""), {}), rows=rows
    ), state


def _list_media(result: Json) -> Iterator[ViewRow]:
    """Yield a row for each image, sound or file of a result; pages draw the pictures that this process still has."""
    for each in list_references(result):
        size = each.get("placeholder") or f"{each.get('bytes', 0):,} bytes"
        text = f"{each['mime_type']} {each.get('name') or each.get('filename') or each.get('uri') or ''}".strip()
        yield ViewRow("media", clean(text), "note", note=clean(str(size)), picture=picture_of(each))


def _find_source(outcome: Record) -> tuple[str, str]:
    """Return the rung that answered, and a tone: good for a real answer, a warning for a made-up one."""
    if "rung" not in outcome:
        return "", ""
    if outcome["simulated"]:
        made = outcome.get("filled", {})
        places = ", ".join(clean(each) or "its result" for each in made.get("places", ()))
        rest = f"; {places} by {clean(made['rung'])}" if places and made["rung"] != "none" else ""
        rests = f", {outcome['evidence']}" if "evidence" in outcome else ""
        doubtful = outcome.get("invented") or made.get("invented")
        return f"simulated by {clean(str(outcome['rung']))}{rests}{rest}", "warn" if doubtful else "note"
    return "run for real", "good"


def build_real(entry: Record) -> ViewRow:
    """Return the row of a real call: its result, or why it was not made; its departure from the plan; its drift."""
    departure = prose(entry["departure"]["message"]) if "departure" in entry else ""
    short, whole = words.fold_result(entry["result"]) if "result" in entry else (departure or "no answer yet", "")
    by = "a person's words" if entry.get("by") == "person" else ""
    rows = [ViewRow(entry["status"].replace("_", " "), short, whole=whole, note=by), *_list_media(entry.get("result"))]
    if "result" in entry and departure and entry["departure"]["code"] != "error":  # the result row shows an error
        rows.append(ViewRow("departed", departure))
    rows += list_notes(entry)
    rows += _list_changes("change", entry.get("patch") or [], None)[0]
    rows += [ViewRow("drift", _format_drift(drift)) for drift in entry.get("drift", ())]
    rows += [ViewRow("way back", prose(describe_undo(entry["undo"])))] if "undo" in entry else []
    return ViewRow("real", call=entry["call"], note="for real", rows=rows)


def _format_drift(drift: Record) -> str:
    if drift["kind"] == "schema":
        return f"the result breaks its schema: {prose(str(drift['real']))}"
    values = f"{words.format_value(drift['predicted'])} → {words.format_value(drift['real'])}"
    return f"{' '.join(filter(None, [drift['kind'], clean(drift['path'])]))}: predicted → real {values}"


def _list_question(action: Record) -> Iterator[ViewRow]:
    """Yield the lines of a question about a call, fenced data as `data`.

    The plan is left out: all calls are shown anyway.
    """
    fence, is_plan = "", False
    for line in str(action.get("description", "")).split("\n"):  # not splitlines(): data may contain other line ends
        if line == fence or (not fence and set(line) == {"`"}):
            fence, is_plan = "" if fence else line, is_plan and not fence
        elif fence and not is_plan:
            yield ViewRow("data", clean(line), "")
        elif not fence and line.startswith(PLAN):
            is_plan = True
        elif not fence and line and line != APPROVE.format(action.get("name")):
            yield ViewRow("", clean(line), "note")


def _list_broken(violations: Sequence[Record]) -> list[ViewRow]:
    """Return rows for the broken clauses of a call.

    None for a single clause of the tool itself, whose error is the call's result.
    """
    named = [f"{clean(each['clause'])} ({clean(each['kind'])})" for each in violations]
    if len(named) == 1 and named[0].endswith("] (tool)"):
        return []
    others = zip(named[1:], violations[1:], strict=True)
    texts = [*named[:1], *(f"{name}: {words.fold_result(each['error']).short}" for name, each in others)]
    return [ViewRow("broken", text) for text in texts]


def _list_changes(label: str, patch: Sequence[Record], state: Json) -> tuple[list[ViewRow], Json]:
    """Return the rows of a patch, with old values if the state is known, and the state after the patch."""
    try:
        after = None if state is None else apply_patch(state, [dict(operation) for operation in patch])
        changes = None if after is None else net_changes(state, after)
    except PatchConflict:
        after = changes = None
    if changes is None:
        rows = [_build_operation(label, each) for each in patch]
    else:
        rows = [_build_change(label, each) for each in changes]
    return _limit(rows), after


def _limit(rows: list[ViewRow]) -> list[ViewRow]:
    if not (left := len(rows) - OPERATIONS_SHOWN) > 0:
        return rows
    label = rows[0].label
    more = "\n".join(f"{row.sign} {row.place} {row.text}" for row in rows[OPERATIONS_SHOWN:])
    return [*rows[:OPERATIONS_SHOWN], ViewRow(label, words.counted(left, "more change"), sign="…", whole=more)]


def _build_operation(label: str, operation: Record) -> ViewRow:
    place = clean(words.cut(str(operation.get("path", "")), words.VALUE_CHARS)) or "/"
    sign = "" if label == "observed" else SIGNS.get(operation["op"], "?")
    if operation["op"] in ("move", "copy"):
        source = clean(words.cut(str(operation.get("from", "")), words.VALUE_CHARS))
        return ViewRow(label, f"from {source}", sign=sign, place=place)
    name = str(operation.get("path", "")).rpartition("/")[2]
    short, whole = words.fold_value(operation["value"], name) if "value" in operation else ("", "")
    return ViewRow(label, short, sign=sign, place=place, whole=whole)


def _build_change(label: str, change: Change) -> ViewRow:
    if change.kind == "shrink":
        values = [ValueView(words.counted(number, "item"), "") for number in (change.old, change.new)]
    else:
        name = change.path.rpartition("/")[2]
        both = {"add": [change.new], "remove": [change.old]}.get(change.kind, [change.old, change.new])
        values = [words.fold_value(value, name) for value in both]
    whole = "\n→\n".join(each.whole or each.short for each in values) if any(each.whole for each in values) else ""
    sign = "" if label == "observed" else SIGNS[change.kind]
    text = " → ".join(each.short for each in values)
    return ViewRow(label, text, sign=sign, place=clean(change.path) or "/", whole=whole)


# verdicts --------------------------------------------------------------------------------------------


def list_verdict(verdict: Record, stop_reason: str = "", checks: Record | None = None) -> Iterator[ViewRow]:
    """Yield a verdict's items, with their `checks` by id, its notes and its feedback."""
    for item in verdict["items"]:
        reason = "" if item["reason"] == stop_reason else prose(item["reason"])
        if item["status"] == "not_asked_for":
            reason = f"not asked for, not counted: {reason}".removesuffix(": ")
        by = "not judged" if item["by"] == "nobody" else item["by"]
        note = "; ".join(filter(None, [reason, by]))
        tone, sign = TONES.get(item["status"], "warn"), ITEM_SIGNS[item["status"]]
        check = prose((checks or {}).get(item["id"], ""))
        yield ViewRow("item", prose(item["description"]), tone, sign=sign, note=note, whole=check)
    yield from list_notes(verdict)
    # leave out what other rows show: items, unasked changes and the stop reason
    shown = (*(f"- {item['description']}: " for item in verdict["items"]), "Not asked for: ")
    why = stop_reason if is_early(stop_reason) else "\n"
    lines = [line for line in verdict["feedback"].splitlines() if why not in line and not line.startswith(shown)]
    if feedback := prose("\n".join(lines)):
        yield ViewRow("feedback", feedback, sign="»")


def list_notes(record: Record) -> Iterator[ViewRow]:
    """Yield the notes of a record, ordered by kind, without those that its result already contains."""
    told = record.get("result")
    for each in by_kind(notes_of(record)):
        kind = KINDS[each["kind"]]
        if not (each["kind"] == "refused" and isinstance(told, str) and told.endswith(each["text"])):
            yield ViewRow(kind.label, words.format_note(each), None if kind.noun else "note")


def build_result(record: Record) -> ViewRow:
    """Return the result of a rehearsal: verdict, plan and changes, a question of the planner, cost.

    Plan and changes are left out if its calls wait for a decision (`asked`).
    """
    verdict, plan, origins = record["verdict"], record["plan"], record.get("origins", {})
    rows = []
    for number, call in enumerate(() if record.get("asked") else plan, 1):
        rows.append(ViewRow("plan", sign=f"{number}.", call=call, origins=origins.get(call["id"], {})))
    if verdict["status"] == "accepted" and not record.get("asked"):
        changes = [line for line in record["changes"] if " " in line]  # "unchanged" is one word
        largest_first = sorted(changes, key=lambda line: not line.startswith("shrink"))
        rows += _limit([_read_change(*line.split(" ", 2)) for line in largest_first])
    if record["answer"] and verdict["status"] == "needs_user":
        rows.append(ViewRow("asks", prose(record["answer"])))
    if rests := verdict.get("rests_on"):
        rows.append(ViewRow("rests on", ", ".join(f"{count} {kind}" for kind, count in rests.items()), "note"))
    rows.append(ViewRow("cost", words.format_usage(record["usage"]), "note"))
    note = f"attempt {record['chosen']} of {len(record['attempts'])}"
    return ViewRow("result", words.format_verdict(verdict, plan=plan), tone_of(verdict), note=note, rows=rows)


def _read_change(kind: str, place: str, value: str = "") -> ViewRow:
    text = clean(words.cut(value, 2 * words.VALUE_CHARS))
    return ViewRow("state", text, sign=SIGNS.get(kind, "…"), place=clean(place))
