"""What rules find in an attempt: which items hold, changes that no check looks at, and what nothing could check."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from .contracts.language.expression import Scope, check_expression
from .contracts.language.reads import Reads, StatePath, reads_of
from .errors import EvaluationFailed
from .leaves import scalars_of
from .models.formatting import format_single_change
from .simulation.ladder import INVENTING
from .simulation.rung import answered_calls
from .state import ChecklistItem, Json, JsonObject, Step
from .task_state.changes import net_changes
from .task_state.patch import tokens

CHANGE_CHARS = 160
UNKNOWN = "what it changes is not known: its answer was made up, without a change"
NO_KEYS: Mapping[str, Collection[str]] = MappingProxyType({})
CIRCUMSTANCES = (("runtime_state",), ("now",))
"""Places of the state that may change unasked: runtime variables, the clock."""


def judge_by_rule(
    items: Iterable[ChecklistItem], *, before: JsonObject, after: JsonObject, steps: Sequence[Step], answer: str
) -> dict[str, tuple[bool, str]]:
    """Return item id to whether its check holds, with the reason where it does not.

    Each check has a budget of its own.
    """
    values = {"state": after, "before": before, "calls": answered_calls(steps), "answer": answer}
    ruled: dict[str, tuple[bool, str]] = {}
    for item in items:
        if "check" not in item:
            continue
        try:
            holds = check_expression(item["check"], where=f"checklist item {item['id']}").is_true(Scope(values))
            ruled[item["id"]] = (holds, "" if holds else "its check does not hold")
        except EvaluationFailed as error:
            ruled[item["id"]] = (False, f"its check cannot be evaluated: {error}")
    return ruled


def unasked_changes(
    items: Sequence[ChecklistItem],
    *,
    before: JsonObject,
    after: JsonObject,
    steps: Sequence[Step],
    inventing: Collection[str] = INVENTING,
    keys: Mapping[str, Collection[str]] = NO_KEYS,
) -> list[str]:
    """Return the net changes at places that no check reads, in words; none where an item has no check.

    A call that the checks ask for, by its name, its position, an argument or one of its effects, may have all effects
    that its tool has; where a rung has invented them (`inventing`), only those that a check reads. So may a call before
    it that changed only root keys which its tool's contract names (`keys`, by tool) and it did not change: a working
    folder, a session.
    """
    if not items or any("check" not in item for item in items):
        return []
    reads = [reads_of(item["check"]) for item in items]
    asked = _Near(place for each in reads for place in _places(each, (before, after)))
    changes = [(tuple(tokens(change.path)), change) for change in net_changes(before, after)]
    left = [(place, each) for place, each in changes if place[:1] not in CIRCUMSTANCES and place not in asked]
    effects = _excused_effects(steps, reads, asked, inventing, keys) if left else set()
    excused = _Near(_above_lists(place, (before, after)) for place in effects)
    return [format_single_change(change, share=CHANGE_CHARS) for place, change in left if place not in excused]


def find_unclear(steps: Sequence[Step], reads: Collection[str]) -> list[str]:
    """Return what could not be evaluated of the steps, and the writes of which nothing says what they change.

    `reads` are the names of the tools that change nothing.
    """
    found: list[str] = []
    for step in steps:
        if outcome := step.get("outcome"):
            name, reasons = step["call"]["name"], list(outcome.get("unclear", ()))
            if outcome.get("invented") and outcome["status"] == "ok" and not outcome["patch"] and name not in reads:
                reasons.append(UNKNOWN)
            found += [f"{name}: {each}" for each in reasons]
    return found


def _places(reads: Reads, states: Sequence[JsonObject]) -> set[StatePath]:
    """Return the places that are read: of `'a' in place` the member a, where the place is an object."""
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
    """Return a place, or the list that it lies in: positions in lists shift."""
    lists = (n for n in range(len(place)) if any(isinstance(_at(state, place[:n]), list) for state in states))
    return place[: next(lists, len(place))]


class _Near:
    """A set of places that holds what is one of them, in one, or around one; looked up in constant time."""

    def __init__(self, places: Iterable[StatePath]) -> None:
        self._places = set(places)
        self._around = {place[:end] for place in self._places for end in range(len(place))}

    def __contains__(self, place: StatePath) -> bool:
        return place in self._around or any(place[:end] in self._places for end in range(len(place) + 1))


def _excused_effects(
    steps: Sequence[Step],
    reads: Sequence[Reads],
    asked: _Near,
    inventing: Collection[str],
    keys: Mapping[str, Collection[str]],
) -> set[StatePath]:
    """Return the places changed by calls that the checks ask for, or that such a call needed."""
    made = {step["call"]["name"] for step in steps}
    excused, needed = set[StatePath](), set[str]()
    ran = [step["call"]["id"] for step in steps if "outcome" in step]
    for step in reversed(steps):
        places = _changed(step)
        roots = {place[0] for place in places if place}
        own = "outcome" in step and step["outcome"]["rung"] not in inventing and any(each in asked for each in places)
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
    """Return whether a check asks for a call by its name, or naming none by its position or a text of its arguments.

    How many calls there are, or that all went well, asks for none of them.
    """
    call = step["call"]
    given = {each for each in scalars_of(call["args"]) if isinstance(each, str)}
    for each in (each for each in reads if each.calls):
        by_position = any(ran[number : number + 1] == [call["id"]] for number in each.positions)
        if call["name"] in each.texts or (not each.texts & made and (by_position or each.texts & given)):
            return True
    return False
