"""A contract that follows from a document alone, loaded when it is first needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..errors import ContractError
from ..state import JsonObject
from .contract import Contract


@dataclass(frozen=True)
class DerivedContract:
    """A contract that follows from a document alone; it is checked when it is first needed."""

    data: JsonObject
    where: str

    @cached_property
    def contract(self) -> Contract:
        """The contract itself; one that says nothing if it is beyond the language's limits."""
        try:
            return Contract.load(self.data, where=self.where)
        except ContractError:  # a file of contracts was checked before
            return Contract.load({"evidence": self.data["evidence"]}, where=self.where)

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
