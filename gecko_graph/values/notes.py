"""Notes: the one record of doubt on an outcome, a verdict, a planned call or a real one, and the closed list of kinds.

A note is plain JSON. Code branches on its `kind` and reads its `data`; its `text` is for people and models alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast

from ..state import Note, NoteKind, Outcome, Step
from .places import bare


class KindOfNote(NamedTuple):
    """A kind of note, as faces show it and the documentation explains it."""

    label: str
    noun: str
    """Its name in a count: `1 point`; empty if a verdict's line does not count it."""
    rest: str
    """The words after the noun in a count: `1 point could not be checked`."""
    inside: str
    """The value that `where` points into: `arguments`, `result`, `state`; empty if it is always ""."""
    means: str
    do: str


KINDS: Mapping[NoteKind, KindOfNote] = MappingProxyType({
    "made_up": KindOfNote("made up", "made-up value", "", "arguments",
        "Nothing real holds this argument: planner, model or simulation chose it (`value`, `origin`).",
        "State the value in the task, or check it."),
    "may_refuse": KindOfNote("may be refused", "rule", " for which a call may be refused", "",
        "The real tool may refuse the call for this `rule`.",
        "Check the rule, or write it into the contract."),
    "overruled": KindOfNote("refused by a learned rule", "overruled rule", "", "",
        "A learned rule refuses the call; the planner insisted.",
        "Approve only if the rule is wrong here."),
    "unclear": KindOfNote("not checked", "point", " could not be checked", "arguments",
        "A condition could not be evaluated, or a decision model is unsure of an argument.",
        "Complete the state or the contract, or check the point."),
    "unsimulated": KindOfNote("unsimulated", "write", " that nothing simulates", "",
        "The changes of a write are not known, or the simulator failed.",
        "Give the tool a contract, or `simulate`."),
    "undocumented": KindOfNote("undocumented", "undocumented answer", "", "",
        "A real or written answer breaks its schema, or that of the state.",
        "Correct the document, or tell the service's owner."),
    "stale": KindOfNote("stale", "stale read", "", "",
        "A real read may lack earlier changes of the attempt.",
        "Read again after the real writes, as an agent does."),
    "race": KindOfNote("race", "race", "", "state",
        "Another `call` of the message changes the same place.",
        "Use `parallel_calls=\"strict\"`, or one call a message."),
    "refused": KindOfNote("refused", "refused change", "", "",
        "The change was not committed: it breaks a postcondition, an invariant or its patch.",
        "Correct the call, or what answered it."),
    "unasked": KindOfNote("unasked", "unasked change", "", "state",
        "The plan changes what nobody asked for, or makes one write twice.",
        "Reject it, or add the change to the checklist."),
    "unsupported": KindOfNote("unsupported", "unsupported value", " in the answer", "",
        "The answer states something (`value`, `origin`) that nothing real holds.",
        "Trust it only after a real call."),
    "simulated": KindOfNote("simulated", "", "", "",
        "A sentence of the answer rests on made-up results of `calls`.",
        "Trust it only after the real calls."),
    "ambiguous": KindOfNote("ambiguous", "ambiguous date", "", "arguments",
        "A date of the task can be read in two ways.",
        "Ask which one is meant."),
    "unanswered": KindOfNote("unanswered", "", "", "",
        "The model for checklist or judgement did not answer.",
        "Check its address, key and name; run again."),
})  # fmt: skip
"""The closed list of kinds, in the order in which faces show them."""

STALE = "run for real: its result may lack the attempt's earlier changes"
Noted = TypeVar("Noted", bound=Mapping[str, Any])


def note(kind: NoteKind, text: str, where: str = "", **data: Any) -> Note:
    return {"kind": kind, "where": where, "text": text, **({"data": data} if data else {})}  # type: ignore[typeddict-item]


def warning(rule: str) -> Note:
    """Return the note on a rule for which the tool may refuse a call."""
    return note("may_refuse", rule, rule=rule)


def notes_of(record: Mapping[str, Any] | Sequence[Note], *kinds: NoteKind) -> list[Note]:
    """Return the notes of a record, or of a list, all of them or those of these kinds."""
    found = record.get("notes", ()) if isinstance(record, Mapping) else record
    return [each for each in found if each["kind"] in kinds] if kinds else [*found]


def gather_notes(steps: Iterable[Step], *kinds: NoteKind) -> list[Note]:
    noted = ((step["call"], step["outcome"]) for step in steps if "outcome" in step)
    return [on_call(each, call) for call, outcome in noted for each in notes_of(outcome, *kinds)]


def with_notes(record: Noted, notes: Iterable[Note]) -> Noted:
    """Return a record with the notes that it does not have yet; the record itself if there are none at all."""
    found = [*record.get("notes", ())]
    found += [each for each in notes if each not in found]
    return cast("Noted", {**record, "notes": found}) if found else record


def join(record: Noted, more: Mapping[str, Any]) -> Noted:
    """Return a record with the keys of another one; its notes are those of both."""
    beside = {key: value for key, value in more.items() if key != "notes"}
    return with_notes(cast("Noted", {**record, **beside}), notes_of(more))


def by_kind(notes: Iterable[Note]) -> list[Note]:
    return sorted(notes, key=lambda each: [*KINDS].index(each["kind"]))


def without_change(outcome: Outcome, reason: str) -> Outcome:
    """Return an outcome whose change was not committed, and why."""
    unchanged: Outcome = {**outcome, "patch": []}
    return with_notes(unchanged, [note("refused", reason)])


def on_call(found: Note, call: Mapping[str, Any]) -> Note:
    """Return a note of an outcome as one of a verdict, which names the call."""
    return {**found, "data": {**found.get("data", {}), "call": call["id"], "tool": call["name"]}}


def place_of(found: Note) -> str:
    """Return the argument of a note as people write it, `order/id` of `/order/id`; empty if it is on no argument."""
    is_argument = KINDS[found["kind"]].inside == "arguments"
    return bare(found["where"]) if is_argument else ""


def tell(found: Note, *, named: bool = True) -> str:
    """Return a note as every face shows it: its tool, if it is `named`, the argument, and its text."""
    tool = found.get("data", {}).get("tool", "") if named else ""
    about = f"{tool} {place_of(found)}".strip()  # a text on the state names the place itself
    return f"{about}: {found['text'].strip() or KINDS[found['kind']].label}".removeprefix(": ")
