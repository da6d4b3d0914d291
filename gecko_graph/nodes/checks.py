"""Findings on an attempt by rules: items that hold, changes without a check, and parts that nothing could check."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ..contracts.language.expression import Scope, check_expression
from ..contracts.language.syntax import Reads, StatePath, reads_of
from ..errors import EvaluationFailed
from ..models.formatting import format_call, format_single_change
from ..retrieval.index import split_words
from ..state import ChecklistItem, Json, JsonObject, Note, Outcome, Step, UnjudgedAttempt, Verdict, VerdictStatus
from ..tools.spec import ToolSpec
from ..values.difference import net_changes
from ..values.notes import gather_notes, note, on_call, warning, with_notes
from ..values.patch import tokens
from ..values.places import scalars_of
from ..world.channels import GeckoState
from ..world.provenance import is_planned
from ..world.rung import NO_ANSWER, answered_calls

CHANGE_CHARS = 160
UNKNOWN = "its changes are not known: nothing here simulates it"
NO_KEYS: Mapping[str, Collection[str]] = MappingProxyType({})
CIRCUMSTANCES = (("runtime_state",), ("now",))
"""Places of the state that may change without a request: runtime variables and the clock."""

_ENQUIRY = re.compile(r"(?i)\s*(?:how|what|why|when|where|who|which|is|are|was|were|do|does|did|has|have|had)\b")


class WantedWrites(NamedTuple):
    """Tools that may write, by the words of a task and its checklist.

    `writes` are known to write, or are in `named`. `named` have most words of their names in the text, as
    `start_engine` in "Start the engine if every door is locked". `related` share any word of their name or description
    with it.
    """

    writes: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    related: frozenset[str] = frozenset()


NOTHING = WantedWrites()


def find_wanted(tools: Iterable[ToolSpec], task: str, items: Iterable[ChecklistItem] = ()) -> WantedWrites:
    """Return the tools that a task asks for; a question ("How do I pay?") names none."""
    words = {*split_words("\n".join([task, *(item["description"] for item in items)]))}
    names = [(tool, {*split_words(tool.name)}) for tool in tools if not tool.reads]
    named = frozenset(tool.name for tool, own in names if 2 * len(own & words) > len(own))
    writes = named.union(tool.name for tool, _ in names if tool.effect)
    related = (tool.name for tool, own in names if words & {*own, *split_words(tool.description)})
    return WantedWrites(writes, frozenset() if _ENQUIRY.match(task) else named, frozenset(related))


def judge_by_rule(
    items: Iterable[ChecklistItem], *, before: JsonObject, after: JsonObject, steps: Sequence[Step], answer: str,
    wanted: WantedWrites = NOTHING,
) -> dict[str, tuple[bool, str]]:  # fmt: skip
    """Return for each item with a check, by id, whether it holds, and the reason if not.

    Each check has its own budget. While a tool named in the task has not succeeded, an invented change by a tool
    without relation to the task makes no check true.
    """
    values = {"state": after, "before": before, "calls": answered_calls(steps), "answer": answer}
    is_open = not wanted.named <= {step["call"]["name"] for step in steps if is_planned(step)}
    ruled: dict[str, tuple[bool, str]] = {}
    for item in (item for item in items if "check" in item):
        holds, reason = _check(item, values)
        if holds and is_open and not _check(item, {**values, "state": before})[0]:
            read = _Near(_places(reads_of(item["check"]), (before, after)))
            by = {step["call"]["name"]: step for step in steps if any(place in read for place in _changed(step))}
            if not wanted.related & by.keys() and all(step["outcome"].get("invented") for step in by.values()):
                holds, reason = not by, f"it holds only because of made-up changes by {', '.join(by)}" if by else ""
        ruled[item["id"]] = (holds, reason)
    return ruled


def _check(item: ChecklistItem, values: JsonObject) -> tuple[bool, str]:
    try:
        holds = check_expression(item["check"], where=f"checklist item {item['id']}").is_true(Scope(values))
    except EvaluationFailed as error:
        return False, f"its check cannot be evaluated: {error}"
    return holds, "" if holds else "its check does not hold"


def find_unmet(items: Iterable[ChecklistItem], steps: Sequence[Step], wanted: WantedWrites) -> dict[str, str]:
    """Return the items that need a write although none succeeded, each with the reason; no model can pass them.

    Without any call these are all items if the task names a tool that writes. If all tried writes failed, these are the
    items that share words with such a call, and all items if nothing was read.
    """
    tried = [step for step in steps if step["call"]["name"] in wanted.writes]
    if any(map(is_planned, tried)) or (any("outcome" in step for step in steps) and not tried):
        return {}
    names = ", ".join(dict.fromkeys([step["call"]["name"] for step in tried] or sorted(wanted.named)))
    reason = f"no write has succeeded: {names}" if tried else f"no call was made: {names}"
    given = [str(each) for step in tried for each in (step["call"]["name"], *scalars_of(step["call"]["args"]))]
    tried_words, is_read = {*split_words(" ".join(given))}, any(map(is_planned, steps))
    meant = (item for item in items if not is_read or tried_words & {*split_words(item["description"])})
    return {item["id"]: reason for item in meant} if names else {}


def find_repeated(steps: Iterable[Step]) -> list[Note]:
    """Return the writes that were made more than once with the same arguments and changed something each time."""
    acts = (step["call"] for step in steps if is_planned(step) and _changed(step))
    made = Counter(format_call(call, share=CHANGE_CHARS) for call in acts)
    return [note("unasked", f"{call} was made {count} times") for call, count in made.items() if count > 1]


def find_may_refuse(steps: Sequence[Step], earlier: Mapping[str, Sequence[str]]) -> list[Note]:
    """Return the rules that the attempt's simulated writes may violate, including those of `earlier` turns, by tool.

    A real call of a tool settles the rules of earlier turns.
    """
    settled = {step["call"]["name"] for step in steps if "outcome" in step and not step["outcome"]["simulated"]}
    found: list[Note] = []
    for step in steps:
        name, outcome = step["call"]["name"], step.get("outcome")
        if outcome and outcome["simulated"] and is_planned(step):
            known = earlier.get(name, ()) if outcome.get("invented") and name not in settled else ()
            noted = with_notes(outcome, map(warning, known))
            found += gather_notes([{**step, "outcome": noted}], "may_refuse")
    return found


def mark(verdict: Verdict, steps: Sequence[Step], notes: Iterable[Note]) -> Verdict:
    """Return a verdict with further notes and counts of the kinds of evidence for its simulated results."""
    found = [*notes, *gather_notes(steps, "unclear", "undocumented", "stale"), *find_unsimulated(steps)]
    outcomes = [step["outcome"] for step in steps if "outcome" in step and is_planned(step)]
    if any("evidence" in one or "filled" in one for one in outcomes):
        verdict["rests_on"] = dict(Counter(_branch(one) for one in outcomes if one["simulated"]))
    return with_notes(verdict, found)


def _branch(outcome: Outcome) -> str:
    is_made = outcome.get("invented") or "filled" in outcome
    return "unknown" if is_made else outcome.get("evidence", "written")


def unasked_changes(
    items: Sequence[ChecklistItem],
    *,
    before: JsonObject,
    after: JsonObject,
    steps: Sequence[Step],
    keys: Mapping[str, Collection[str]] = NO_KEYS,
) -> list[Note]:
    """Return a note on each net change at a place that no check reads; none if an item has no check.

    A call that the checks ask for (by its name, position, an argument or one of its effects) may have all effects of
    its tool; if a rung invented the effects, only those that a check reads. A call before it is also excused if it
    changed only root keys that its tool's contract names (`keys`, by tool) and that it did not change itself, such as a
    working folder or a session.
    """
    if not items or any("check" not in item for item in items):
        return []
    reads = [reads_of(item["check"]) for item in items]
    asked = _Near(place for each in reads for place in _places(each, (before, after)))
    changes = [(tuple(tokens(change.path)), change) for change in net_changes(before, after)]
    left = [(place, each) for place, each in changes if place[:1] not in CIRCUMSTANCES and place not in asked]
    effects = _excused_effects(steps, reads, asked, keys) if left else set()
    excused = _Near(_above_lists(place, (before, after)) for place in effects)
    unasked = [change for place, change in left if place not in excused]
    return [note("unasked", format_single_change(each, share=CHANGE_CHARS), each.path) for each in unasked]


def find_unsimulated(steps: Sequence[Step]) -> list[Note]:
    """Return the writes with unknown changes, and those for which the simulator gave no usable answer."""
    found = [(UNKNOWN, step["call"]) for step in steps if is_planned(step) and step["outcome"]["patch"] is None]
    done = {step["call"]["name"] for step in steps if is_planned(step)}
    simulated = (step for step in steps if step.get("outcome", {}).get("simulated"))
    mute = {each["call"]["name"]: each["call"] for each in simulated if each["outcome"]["result"] == NO_ANSWER}
    found += [(NO_ANSWER, mute[name]) for name in sorted(mute.keys() - done)]
    return [on_call(note("unsimulated", text), call) for text, call in found]


def _places(reads: Reads, states: Sequence[JsonObject]) -> set[StatePath]:
    return {
        (*place, member)
        if member is not None and any(isinstance(_at(state, place), dict) for state in states)
        else place
        for place, member in reads.places
    }


def _at(value: Json, place: StatePath) -> Json:
    for key in place:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _above_lists(place: StatePath, states: Sequence[JsonObject]) -> StatePath:
    """Return a place, or the outermost list around it, since positions in lists shift."""
    lists = (n for n in range(len(place)) if any(isinstance(_at(state, place[:n]), list) for state in states))
    return place[: next(lists, len(place))]


class _Near:
    """A set of places; contains any place equal to, inside or around one of them, in constant time."""

    def __init__(self, places: Iterable[StatePath]) -> None:
        self._places = set(places)
        self._around = {place[:end] for place in self._places for end in range(len(place))}

    def __contains__(self, place: StatePath) -> bool:
        return place in self._around or any(place[:end] in self._places for end in range(len(place) + 1))


def _excused_effects(
    steps: Sequence[Step],
    reads: Sequence[Reads],
    asked: _Near,
    keys: Mapping[str, Collection[str]],
) -> set[StatePath]:
    """Return the places changed by calls that the checks ask for, or that such a call needed."""
    made = {step["call"]["name"] for step in steps}
    excused, needed = set[StatePath](), set[str]()
    ran = [step["call"]["id"] for step in steps if "outcome" in step]
    for step in reversed(steps):
        places = _changed(step)
        roots = {place[0] for place in places if place}
        own = "outcome" in step and not step["outcome"].get("invented") and any(each in asked for each in places)
        if own or (roots and _is_named(step, reads, made, ran)):
            excused |= places
            needed |= {*keys.get(step["call"]["name"], ())} - roots
        elif roots <= needed:
            excused |= places
    return excused


def _changed(step: Step) -> set[StatePath]:
    patch = (step["outcome"]["patch"] if "outcome" in step else None) or ()
    return {tuple(tokens(operation[key])) for operation in patch for key in ("path", "from") if key in operation}


def _is_named(step: Step, reads: Sequence[Reads], made: set[str], ran: Sequence[str]) -> bool:
    """Return whether a check asks for a call by its name or, if it names no tool, by its position or a string argument.

    The number of calls, or that all succeeded, asks for none of them.
    """
    call = step["call"]
    given = {each for each in scalars_of(call["args"]) if isinstance(each, str)}
    for each in (each for each in reads if each.calls):
        by_position = any(ran[number : number + 1] == [call["id"]] for number in each.positions)
        if call["name"] in each.texts or (not each.texts & made and (by_position or each.texts & given)):
            return True
    return False


def settle(
    attempt: UnjudgedAttempt, state: GeckoState, reads: Collection[str], wanted: WantedWrites
) -> VerdictStatus | None:
    """Return the verdict that a rule gives if reads are real and the caller has no checklist, else None.

    If nothing was written and the task names no tool that writes, the planner's answer counts. A question that leaves
    everything unchanged goes to the user. So does what remains if the last real write was refused: only a replacement
    for it is judged.
    """
    own = any(item.get("by") != "model" for item in state["items"] or ())
    if own or not state["bookkeeping"]["real"] or attempt["stop_reason"] != "answered" or not attempt["answer"]:
        return None
    asks = "?" in attempt["answer"].splitlines()[-1]
    writes = [step for step in attempt["steps"] if step["call"]["name"] not in reads]
    failed = [step.get("outcome", {}).get("status") != "ok" for step in writes]
    if not failed:
        return "needs_user" if asks else "accepted" if state["items"] is None and not wanted.named else None
    made = sum(step["call"]["name"] not in reads for step in state["bookkeeping"]["replayed"])
    return "needs_user" if (failed[-1] if made == len(failed) else asks and all(failed)) else None
