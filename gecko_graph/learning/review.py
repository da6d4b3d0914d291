"""List the proposals in a file of learned contracts, and apply a person's decisions on them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from ..contracts.contract import Contract
from ..contracts.words import describe_check
from ..errors import ContractError, GeckoError
from ..state import JsonObject
from ..tools.lessons import REFUSED
from ..values.documents import format_document
from .explain import escape
from .readers import read_result
from .rules import PERHAPS, refused_by

PARTS, EVIDENCE = ("effects", "returns"), ("for", "status", "by")


class ContractProposal(NamedTuple):
    """An undecided proposal, by rows or a model.

    Args:
        id: `TOOL/CLAUSE`, `TOOL/effects` or `TOOL/returns`; `TOOL/agent-NUMBER` for an agent's proposal on a part.
        contract: The contract that it is part of.
        rule: The clause, or the contract's effects or result by name; `part` and `says` of an agent's proposal.
        evidence: The counts for and against it.
    """

    id: str
    contract: JsonObject
    rule: JsonObject
    evidence: JsonObject

    @property
    def is_clause(self) -> bool:
        """Whether it is a reason to refuse, or may become one."""
        return "check" in self.rule or self.rule.get("part") == "requires"

    def shown(self) -> str:
        """Return the rule in words, and as YAML as in the file, without its evidence."""
        said = {key: value for key, value in self.rule.items() if key not in ("id", "evidence", *EVIDENCE)}
        parts = [format_document({key: value}, ".yaml").strip() for key, value in said.items()]
        words = describe_check(str(said.get("check", "")))
        parts = [part[1:-1] if part.startswith("{") else part for part in parts]  # one key per line
        return "\n".join([*([f"# lawful if {words}"] if words else []), *parts])

    def decide(self, word: Literal["accept", "drop"], *, by: str, check: str = "") -> None:
        """Apply a decision to the contract: an accepted proposal is established by a name, a dropped one is removed.

        `check` replaces a clause's own. Raises ContractError if it cannot be loaded.
        """
        if "says" in self.rule:
            if word == "accept" and self.is_clause:
                self._add_clause(check, by)
        elif self.is_clause:
            self._decide_clause(word, check)
        elif word == "drop":
            self.contract.pop(*self.rule)
        self.evidence.update(status="established" if word == "accept" else "dropped", by=by)

    def _add_clause(self, check: str, by: str) -> None:
        """Add a clause for a refusal that agents met. Raises ContractError without a valid check."""
        if not (check and self.contract):
            why = "only its error is known: edit it, and write the condition"
            raise ContractError(f"{self.id}: {why if self.contract else 'the contract of its tool is in another file'}")
        evidence = {"kind": "person", "for": self.rule["for"], "status": "established", "by": by}
        error = escape(str(self.rule["says"]).removeprefix(REFUSED))  # a service's text is not a template
        clause = {"id": self.id.rpartition("/")[2], "check": check, **refused_by(error)}
        Contract.load({"requires": [clause]}, where=self.id)
        self.contract.setdefault("requires", []).append({**clause, "evidence": evidence})

    def _decide_clause(self, word: str, check: str) -> None:
        if word == "accept":
            made = {**self.rule, **({"check": check} if check else {})}
            if "pass" in made:
                made |= refused_by(read_result(made.pop("pass").removeprefix(PERHAPS)))
            Contract.load({"requires": [made]}, where=self.id)
            self.rule.clear()
            self.rule.update(made)
        own = self.rule.get("id")
        gone = {f"{own}-rivals"} if check else {f"{own}-rivals", own} if word == "drop" else set()
        self.contract["requires"] = [each for each in self.contract["requires"] if each.get("id") not in gone]


def find_proposals(document: Any) -> list[ContractProposal]:
    """Return the proposals of a file of contracts. Raises GeckoError if it is not one."""
    contracts = document.get("contracts") if isinstance(document, dict) else None
    if not isinstance(contracts, dict) or not all(isinstance(one, dict) for one in contracts.values()):
        raise GeckoError("no file of contracts: it has no `contracts`")
    found: list[ContractProposal] = []
    for tool, one in contracts.items():
        clauses = [(each.get("id", ""), each, each.get("evidence", {})) for each in one.get("requires", ())]
        parts = [(each, {each: one[each]}, one.get("evidence", {}).get(each, {})) for each in PARTS if each in one]
        found += [
            ContractProposal(f"{tool}/{name}", one, rule, evidence) for name, rule, evidence in (*clauses, *parts)
        ]
    for tool, some in document.get("proposals", {}).items():
        said = ((f"{tool}/agent-{number}", one) for number, one in enumerate(some, 1))
        found += [ContractProposal(name, contracts.get(tool, {}), one, one) for name, one in said]
    return [each for each in found if each.evidence.get("status") == "proposed"]
