"""A contract that follows from a document alone, loaded when it is first needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..errors import ContractError
from ..state import JsonObject
from .contract import Contract


@dataclass(frozen=True)
class DerivedContract:
    """A contract that follows from a document alone; it is checked when it is first needed."""

    data: JsonObject
    where: str
    _followed: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The last rules, the names of what follows by them, and the contract with it."""

    @cached_property
    def contract(self) -> Contract:
        """The contract itself; one that says nothing if it is beyond the language's limits."""
        try:
            return Contract.load(self.data, where=self.where)
        except ContractError:  # a file of contracts was checked before
            return Contract.load({"evidence": self.data["evidence"]}, where=self.where)

    def following(self, rules: Contract | None) -> Contract:
        """Return the contract with what real calls have shown to follow a success: things elsewhere go, or come."""
        if rules is None or not (follows := rules.follows):
            return self.contract
        known = self._followed
        if known.get("rules") is not rules or known["names"] != [*follows]:
            known |= {"rules": rules, "names": [*follows], "contract": self._with([*follows.values()])}
        made: Contract = known["contract"]
        return made

    def _with(self, follows: Sequence[JsonObject]) -> Contract:
        more, own = [{"do": each["do"]} for each in follows], self.data.get("effects", [])
        effects = [*more, *own] if self.kind == "remove" else [*own, *more]  # what goes is not open
        try:
            return Contract.load({**self.data, "effects": effects}, where=self.where)
        except ContractError:  # the document is another one since
            return self.contract

    @cached_property
    def place(self) -> Contract:
        """A contract whose result is the place of the thing that a call is about: its collection's keys, its own."""
        return Contract.load({"let": self.data.get("let", {}), "returns": "{{ place }}"}, where=self.where)

    @property
    def kind(self) -> str:
        """The kind of its operation, in a word."""
        return str(self.data["evidence"].get("kind", ""))

    def rules(self) -> Contract | None:
        """Return its requirements as rules that refuse nothing yet, in a contract of their own; None if it has none.

        Those of existence refuse after ten refusals, none against them; of others a document is hardly ever right.
        """
        rules, blank = list[JsonObject](), {"by": "document", "status": "proposed", "for": 0, "against": []}
        for each in (each for each in self.contract.data.get("requires", ()) if "error" in each):
            is_trusted = each["check"].removeprefix("not ").startswith("exists_at(")
            kind: JsonObject = {"kind": "existence", "lacks": 10} if is_trusted else {"kind": "conjunction"}
            rules.append({**each, "evidence": {**blank, **kind}})
        return Contract.load({"let": self.data.get("let", {}), "requires": rules}, where=self.where) if rules else None
