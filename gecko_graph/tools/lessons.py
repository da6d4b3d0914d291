"""Lessons from real calls of one tool: its refusals, and contradictions of its contract.

All runs of a process share them, and all processes if there is a store. Each lesson keeps the digests of its calls, so
that a lesson from the same call counts once.
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
"""Distinct refused calls from which a kind of refusal is reported."""

MOST, MOST_CALLS = 100, 50
REFUSED = "refused before: "
PARTS = {"status": "requires", "value": "returns", "schema": "returns", "state": "effects"}
"""Maps a kind of drift to the contract part that it contradicts."""


def place_of(tool: str, parameters: JsonObject) -> str:
    """Return the key of a tool's lessons in a store; a tool with other parameters has its own."""
    return digest([tool, parameters])[:16]


@dataclass(slots=True, eq=False)
class Lessons:
    """A tool's lessons from real calls: proposals by their keys, as a store keeps them.

    Args:
        place: The tool's key in a store.
        is_learned: Whether a part of the tool's contract was learned.
        items: `{"v", "tool", "part", "says", "status", "calls"}`: a proposal on a part of the contract, or (`rule`,
            `may_refuse`) a rule that real calls have `refuted`, `confirmed` or `closed`; `calls`: digests of args.
        unsaved: Keys that are in no store yet.
    """

    place: str
    is_learned: bool = False
    items: dict[str, JsonObject] = field(default_factory=dict)
    unsaved: set[str] = field(default_factory=set)

    def warnings(self, args: JsonObject) -> list[str]:
        """Return the refusals that a call may meet: of the same call, predicted ones, and frequent kinds."""
        own, kept = digest(args), [each for each in self.items.values() if each["part"] == "requires"]
        open_ = [each for each in kept if each["status"] == "proposed" and each["says"].startswith(REFUSED)]
        met = (each for each in open_ if own in each["calls"] or each.get("rule") or len(each["calls"]) >= WARNS)
        return [each["says"] for each in met]

    def of(self, args: JsonObject) -> list[JsonObject]:
        """Return the lessons of calls with these arguments, as the ledger keeps them (without `calls`)."""
        own = digest(args)
        kept = ("part", "says", "status", "rule")
        return [{key: each[key] for key in kept if key in each} for each in self.items.values() if own in each["calls"]]

    def leave_open(self, notes: Iterable[Note]) -> list[Note]:
        """Return the notes, without those on a rule that a real call has closed."""
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
        """Learn from a real call.

        Args:
            call: The real call.
            outcome: Its outcome.
            notes: Notes on rules that might have refused it (`may_refuse`).
            drift: Differences from the prediction.
            refuted: Learned rules that the call contradicts.
            confirmed: Learned rules that the call confirms.
        """
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
        """Enable or disable rules of a learned contract, as real calls have confirmed or refuted them."""
        for rule in (each for each in self.items.values() if each["part"] == "rule"):
            if contract is None or not self.is_learned:
                return
            if rule["status"] == "refuted":
                contract.withdraw(rule["says"])
            elif may_refuse:
                contract.confirm(rule["says"], len(rule["calls"]))

    def _add(self, call: Call, part: str, text: str, status: str, **more: str) -> None:
        key = f"{part}-{digest(text)[:16]}"
        known = self.items.get(key, {"v": 1, "tool": call["name"], "part": part, "says": text, "calls": []})
        status = "refuted" if known.get("status") == "refuted" else status
        calls = list(dict.fromkeys([*known["calls"], digest(call["args"])]))[-MOST_CALLS:]
        if key in self.items or len(self.items) < MOST:
            self.items[key] = {**known, **more, "status": status, "calls": calls}
            self.unsaved.add(key)
