"""A contract derived from a document alone, loaded on demand."""

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
    """A contract derived from a document alone; it is checked on demand."""

    data: JsonObject
    where: str
    _followed: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The last rules, the names of their effects, and the contract with these effects."""

    @cached_property
    def contract(self) -> Contract:
        """The contract itself; an empty one if it exceeds the language's limits."""
        try:
            return Contract.load(self.data, where=self.where)
        except ContractError:  # not from a file of contracts, which was checked before
            return Contract.load({"evidence": self.data["evidence"]}, where=self.where)

    def following(self, rules: Contract | None) -> Contract:
        """Return the contract with learned effects of a success on other collections."""
        if rules is None or not (follows := rules.follows):
            return self.contract
        known = self._followed
        if known.get("rules") is not rules or known["names"] != [*follows]:
            known |= {"rules": rules, "names": [*follows], "contract": self._with([*follows.values()])}
        made: Contract = known["contract"]
        return made

    def _with(self, follows: Sequence[JsonObject]) -> Contract:
        more, own = [{"do": each["do"]} for each in follows], self.data.get("effects", [])
        effects = [*more, *own] if self.kind == "remove" else [*own, *more]  # removed things must not stay open
        try:
            return Contract.load({**self.data, "effects": effects}, where=self.where)
        except ContractError:  # the document has changed
            return self.contract

    @cached_property
    def place(self) -> Contract:
        """A contract whose result is the place of the call's thing: the keys of its collection, and its own."""
        return Contract.load({"let": self.data.get("let", {}), "returns": "{{ place }}"}, where=self.where)

    @property
    def kind(self) -> str:
        return str(self.data["evidence"].get("kind", ""))

    def rules(self) -> Contract | None:
        """Return its requirements as proposed rules in a contract of their own; None if it has none.

        Rules on existence refuse after ten refusals without a counterexample; others never, since documents are rarely
        right.
        """
        rules, blank = list[JsonObject](), {"by": "document", "status": "proposed", "for": 0, "against": []}
        for each in (each for each in self.contract.data.get("requires", ()) if "error" in each):
            is_trusted = each["check"].removeprefix("not ").startswith("exists_at(")
            kind: JsonObject = {"kind": "existence", "lacks": 10} if is_trusted else {"kind": "conjunction"}
            rules.append({**each, "evidence": {**blank, **kind}})
        return Contract.load({"let": self.data.get("let", {}), "requires": rules}, where=self.where) if rules else None
