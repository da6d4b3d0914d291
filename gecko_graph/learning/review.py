"""Proposals in a file of learned contracts, and what a person decides of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ..contracts.contract import Contract
from ..errors import GeckoError, did_you_mean
from ..state import JsonObject
from ..values.documents import format_document
from .readers import read_result

PERHAPS = "perhaps refused: "
PARTS = ("effects", "returns")
Word = Literal["accept", "drop"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What rows or a model propose and nobody has decided.

    Args:
        id: `TOOL/CLAUSE`, or `TOOL/effects`, `TOOL/returns`.
        contract: The contract that it is part of.
        part: The clause; None for effects and result.
    """

    id: str
    contract: JsonObject
    clause: JsonObject | None = None

    @property
    def part(self) -> str:
        """`requires`, `effects` or `returns`."""
        return "requires" if self.clause is not None else self.id.rpartition("/")[2]

    @property
    def evidence(self) -> JsonObject:
        """What speaks for and against it."""
        found: JsonObject = self.clause["evidence"] if self.clause is not None else self.contract["evidence"][self.part]
        return found

    def shown(self) -> str:
        """Return the rule as it stands in the file, as YAML, without its evidence."""
        rule = self.clause or {self.part: self.contract[self.part]}
        said = {key: value for key, value in rule.items() if key not in ("id", "evidence")}
        return format_document(said, ".yaml").strip()


def find_proposals(document: Any) -> list[Proposal]:
    """Return the proposals of a file of contracts. Raises GeckoError where it is none."""
    contracts = document.get("contracts") if isinstance(document, dict) else None
    if not isinstance(contracts, dict) or not all(isinstance(one, dict) for one in contracts.values()):
        raise GeckoError("no file of contracts: it has no `contracts`")
    return [one for tool, contract in contracts.items() for one in _proposals(tool, contract)]


def _proposals(tool: str, contract: JsonObject) -> Iterator[Proposal]:
    for clause in contract.get("requires", ()):
        if isinstance(clause, dict) and clause.get("evidence", {}).get("status") == "proposed":
            yield Proposal(f"{tool}/{clause.get('id', '')}", contract, clause)
    for part in PARTS:
        if part in contract and contract.get("evidence", {}).get(part, {}).get("status") == "proposed":
            yield Proposal(f"{tool}/{part}", contract)


def pick(proposals: list[Proposal], id_: str) -> Proposal:
    """Return the proposal of this id. Raises GeckoError."""
    known = {one.id: one for one in proposals}
    if id_ not in known:
        raise GeckoError(f"{id_}: no such proposal{did_you_mean(id_, known)}")
    return known[id_]


def decide(one: Proposal, word: Word, *, by: str, check: str = "") -> None:
    """Put a decision into the contract: what is accepted is established by a name, what is dropped is gone.

    `check` takes the place of a clause's own. Raises ContractError where it cannot be loaded.
    """
    if one.clause is not None:
        rivals = f"{one.clause.get('id')}-rivals"
        if word == "accept":
            text = str(one.clause.get("pass", ""))
            error = one.clause.get("error", read_result(text.removeprefix(PERHAPS)))
            changed = {**one.clause, "check": check or one.clause["check"], "error": error}
            changed.pop("pass", None)
            Contract.load({"requires": [changed]}, where=one.id)
            one.clause.clear()
            one.clause.update(changed)
        gone = [each for each in one.contract["requires"] if each is one.clause and word == "drop"]
        gone += [each for each in one.contract["requires"] if each.get("id") == rivals and (check or word == "drop")]
        one.contract["requires"] = [each for each in one.contract["requires"] if not any(each is old for old in gone)]
    elif word == "drop":
        del one.contract[one.part]
    one.evidence.update(status="established" if word == "accept" else "dropped", by=by)
