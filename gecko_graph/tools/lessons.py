"""Lessons of real calls on one tool while agents run: its refusals, and the faults of its written contract.

Shared by all runs of a process, and by all processes if there is a store: counts are of different calls, so that
a lesson noted twice counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..contracts.contract import Contract
from ..masking import mask
from ..state import Call, JsonObject, Note, Outcome
from ..values.digest import digest
from ..values.observation import kind_of
from ..values.places import excerpt

WARNS = 3
"""Refusals of one kind, of different calls, from which it is spoken of."""

MOST, MOST_CALLS = 100, 50
REFUSED = "refused before: "
PARTS = {"status": "requires", "value": "returns", "schema": "returns", "state": "effects"}
"""Kind of drift to the part of a contract that it speaks against."""


def place_of(tool: str, parameters: JsonObject) -> str:
    """Return the place of a tool's lessons in a store: another tool of the same name has its own."""
    return digest([tool, parameters])[:16]


@dataclass(slots=True, eq=False)
class Lessons:
    """A tool's lessons from real calls: proposals, each under a key of its own, as a store keeps them.

    Args:
        place: The tool's place in a store.
        is_learned: Whether something of the tool's contract was learned.
        items: `{"v", "tool", "part", "says", "status", "calls"}`: what is proposed of which part of its contract, or
            (`rule`, `may_refuse`) which rule a real call has `refuted`, `confirmed` or `closed`; digests of the calls'
            arguments.
        unsaved: Keys that no store has yet.
    """

    place: str
    is_learned: bool = False
    items: dict[str, JsonObject] = field(default_factory=dict)
    unsaved: set[str] = field(default_factory=set)

    def warnings(self, args: JsonObject) -> list[str]:
        """Return the refusals that a call may meet: of the very same call, foreseen ones, and kinds met often."""
        own, kept = digest(args), [each for each in self.items.values() if each["part"] == "requires"]
        open_ = [each for each in kept if each["status"] == "proposed" and each["says"].startswith(REFUSED)]
        met = (each for each in open_ if own in each["calls"] or each.get("rule") or len(each["calls"]) >= WARNS)
        return [each["says"] for each in met]

    def of(self, args: JsonObject) -> list[JsonObject]:
        """Return the lessons of calls with these arguments, as their rows have them: without the calls."""
        own = digest(args)
        kept = ("part", "says", "status", "rule")
        return [{key: each[key] for key in kept if key in each} for each in self.items.values() if own in each["calls"]]

    def leave_open(self, notes: Iterable[Note]) -> list[Note]:
        """Return the notes without those on a rule that a real call has closed."""
        closed = {each["says"] for each in self.items.values() if each["status"] == "closed"}
        return [each for each in notes if each["kind"] != "may_refuse" or each["data"]["rule"] not in closed]

    def note(
        self,
        call: Call,
        outcome: Outcome,
        *,
        notes: Sequence[Note] = (),
        drift: Iterable[Mapping[str, Any]] = (),
        refuted: Iterable[str] = (),
        confirmed: Iterable[str] = (),
    ) -> None:
        """Learn from a real call: `notes` on rules for which it might be refused; learned ones that it decides on."""
        rules = [each["data"]["rule"] for each in notes]
        if outcome["status"] == "error":
            foreseen = {"rule": rules[0]} if rules else {}
            says = REFUSED + mask(kind_of(outcome["result"], call["args"]))
            self._add(call, "requires", says, "proposed", **foreseen)
        else:
            for item in list(self.items.values()):
                if item["says"] in rules and item["status"] == "proposed":
                    self._add(call, item["part"], item["says"], "closed")
            for found in self.leave_open(notes):
                self._add(call, "may_refuse", found["data"]["rule"], "closed")
        for rule in refuted:
            self._add(call, "rule", rule, "refuted")
        for rule in confirmed:
            self._add(call, "rule", rule, "confirmed")
        for each in (each for each in drift if outcome["status"] == "ok" or each["kind"] != "status"):
            place = each["path"] or each["kind"]
            told = f"{place}: foreseen {excerpt(each['predicted'])}, really {excerpt(each['real'])}"
            self._add(call, PARTS[each["kind"]], mask(told), "proposed")

    def settle(self, contract: Contract | None, *, may_refuse: bool) -> None:
        """Have rules of a learned contract refuse, or refuse no more, as real calls have confirmed or refuted them."""
        for rule in (each for each in self.items.values() if each["part"] == "rule"):
            if contract is None or not self.is_learned:
                return
            if rule["status"] == "refuted":
                contract.withdraw(rule["says"])
            elif may_refuse:
                contract.confirm(rule["says"], len(rule["calls"]))

    def _add(self, call: Call, part: str, says: str, status: str, **more: str) -> None:
        key = f"{part}-{digest(says)[:16]}"
        known = self.items.get(key, {"v": 1, "tool": call["name"], "part": part, "says": says, "calls": []})
        status = "refuted" if known.get("status") == "refuted" else status
        calls = list(dict.fromkeys([*known["calls"], digest(call["args"])]))[-MOST_CALLS:]
        if key in self.items or len(self.items) < MOST:
            self.items[key] = {**known, **more, "status": status, "calls": calls}
            self.unsaved.add(key)
