"""Notes: the record of doubts about an outcome, a verdict, a planned or a real call, and the closed list of kinds.

A note is plain JSON. Code branches on its `kind` and reads its `data`; its `text` is only for people and models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast

from ..state import Note, NoteKind, Outcome, Step
from .places import bare


class KindOfNote(NamedTuple):
    """A kind of note, as shown by faces; docs/python.md explains each."""

    label: str
    noun: str
    """Its name in a count, `1 point`; "" if a verdict's line does not count it."""
    rest: str
    """The words after the noun in a count: `1 point could not be checked`."""
    inside: str
    """The value that `where` points into: `arguments`, `result`, `state`; "" if `where` is always ""."""


KINDS: Mapping[NoteKind, KindOfNote] = MappingProxyType({
    "made_up": KindOfNote("made up", "made-up value", "", "arguments"),
    "may_refuse": KindOfNote("may be refused", "rule", " for which a call may be refused", ""),
    "overruled": KindOfNote("refused by a learned rule", "overruled rule", "", ""),
    "unclear": KindOfNote("not checked", "point", " could not be checked", "arguments"),
    "unsimulated": KindOfNote("unsimulated", "write", " that nothing simulates", ""),
    "undocumented": KindOfNote("undocumented", "undocumented answer", "", ""),
    "stale": KindOfNote("stale", "stale read", "", ""),
    "race": KindOfNote("race", "race", "", "state"),
    "refused": KindOfNote("refused", "refused change", "", ""),
    "unasked": KindOfNote("unasked", "unasked change", "", "state"),
    "unsupported": KindOfNote("unsupported", "unsupported value", " in the answer", ""),
    "simulated": KindOfNote("simulated", "", "", ""),
    "ambiguous": KindOfNote("ambiguous", "ambiguous date", "", "arguments"),
    "unanswered": KindOfNote("unanswered", "", "", ""),
})  # fmt: skip
"""The closed list of kinds, in display order."""

STALE = "run for real: its result may lack the attempt's earlier changes"
Noted = TypeVar("Noted", bound=Mapping[str, Any])


def note(kind: NoteKind, text: str, where: str = "", **data: Any) -> Note:
    return {"kind": kind, "where": where, "text": text, **({"data": data} if data else {})}  # type: ignore[typeddict-item]


def warning(rule: str) -> Note:
    """Return the note on a rule by which the tool may refuse a call."""
    return note("may_refuse", rule, rule=rule)


def notes_of(record: Mapping[str, Any] | Sequence[Note], *kinds: NoteKind) -> list[Note]:
    found = record.get("notes", ()) if isinstance(record, Mapping) else record
    return [each for each in found if each["kind"] in kinds] if kinds else [*found]


def gather_notes(steps: Iterable[Step], *kinds: NoteKind) -> list[Note]:
    noted = ((step["call"], step["outcome"]) for step in steps if "outcome" in step)
    return [on_call(each, call) for call, outcome in noted for each in notes_of(outcome, *kinds)]


def with_notes(record: Noted, notes: Iterable[Note]) -> Noted:
    """Return a record with further notes, without duplicates; without any notes the record itself."""
    found = [*record.get("notes", ())]
    found += [each for each in notes if each not in found]
    return cast("Noted", {**record, "notes": found}) if found else record


def join(record: Noted, more: Mapping[str, Any]) -> Noted:
    """Return a record with the keys of another one, and the notes of both."""
    beside = {key: value for key, value in more.items() if key != "notes"}
    return with_notes(cast("Noted", {**record, **beside}), notes_of(more))


def by_kind(notes: Iterable[Note]) -> list[Note]:
    return sorted(notes, key=lambda each: [*KINDS].index(each["kind"]))


def without_change(outcome: Outcome, reason: str) -> Outcome:
    """Return an outcome whose change was not committed, with the reason."""
    unchanged: Outcome = {**outcome, "patch": []}
    return with_notes(unchanged, [note("refused", reason)])


def on_call(found: Note, call: Mapping[str, Any]) -> Note:
    """Return an outcome's note as a note of a verdict, which names the call."""
    return {**found, "data": {**found.get("data", {}), "call": call["id"], "tool": call["name"]}}


def place_of(found: Note) -> str:
    """Return a note's argument as people write it, `order/id` for `/order/id`; "" if it concerns no argument."""
    is_argument = KINDS[found["kind"]].inside == "arguments"
    return bare(found["where"]) if is_argument else ""


def tell(found: Note, *, named: bool = True) -> str:
    """Return a note as every face shows it: its tool (if `named`), the argument, and its text."""
    tool = found.get("data", {}).get("tool", "") if named else ""
    about = f"{tool} {place_of(found)}".strip()  # a text on the state names the place itself
    return f"{about}: {found['text'].strip() or KINDS[found['kind']].label}".removeprefix(": ")
