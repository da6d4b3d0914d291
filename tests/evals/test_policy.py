"""The airline's written policy as contracts: violations by hand, a part of the recorded conversations, the suite."""

from __future__ import annotations

from types import SimpleNamespace

from evals.policy.gate import CONTRACTS, EXAMPLE, LOOK_UP, RULES, Gate, broken_clauses, read_violations, without_rules
from evals.suites.policy import expected
from gecko_graph.scenario import read_toolkit
from gecko_graph.values.documents import read_document

VIOLATIONS = list(read_violations())
TOOLS = read_toolkit(EXAMPLE / "airline.tools.yaml")


def clauses_of(kinds):
    """Return the clauses of these kinds that each writing tool has, by the contracts' own texts."""
    document = read_document(CONTRACTS)
    shared = document["requires"]
    found = set()
    for tool, contract in document["contracts"].items():
        for one in contract.get("requires", []):
            parts = shared[one["use"]] if "use" in one else one
            for part in parts if isinstance(parts, list) else [parts]:
                if part.get("kind", "tool") in kinds and tool not in LOOK_UP.values():
                    found.add((tool, part.get("id", one.get("use"))))
    return found


def test_every_clause_has_a_violation():
    assert clauses_of(["tool", *RULES]) == {(one.tool, one.clause) for one in VIOLATIONS}
    assert len(VIOLATIONS) >= 100


def test_violations_are_refused_by_their_own_clause_alone_and_their_twins_are_not():
    kit = TOOLS.with_contracts(CONTRACTS)
    wrong = [
        (one.id, broken, twin)
        for one in VIOLATIONS
        for broken, twin in [(broken_clauses(kit, one.unlawful), broken_clauses(kit, one.lawful))]
        if twin is not None or set(broken or ()) - one.also != {one.clause}
    ]
    assert wrong == []


def test_without_the_policy_the_booking_system_carries_violations_out():
    kit = TOOLS.with_contracts(without_rules(read_document(CONTRACTS)))
    rules = clauses_of(RULES)
    passed = {one.id: broken_clauses(kit, one.unlawful) for one in VIOLATIONS if (one.tool, one.clause) in rules}
    assert len(passed) >= 60
    assert {id_: broken for id_, broken in passed.items() if broken} == {}


def test_what_cannot_be_evaluated_is_refused():
    gate = Gate(TOOLS.with_contracts(CONTRACTS), TOOLS)
    looked_up = {"name": "get_reservation_details", "args": {"reservation_id": "X"}, "status": "ok", "result": {}}
    bare = {"reservations": {"X": {"cabin": "economy"}}}
    refused = gate.check({"name": "cancel_reservation", "args": {"reservation_id": "X"}}, bare, [looked_up])
    assert refused is not None
    assert "could not be evaluated" in str(refused["error"])


def test_a_lawful_write_that_is_refused_is_no_success():
    values = {"writes": [{"right": True, "clauses": ["trip"]}], "differing": [], "errors": 0, "errors_same": 0}
    talk = SimpleNamespace(facts={"task": 5, "reward": 1.0}, values=values)
    first, *others = expected([talk], [], [])
    assert not first.holds
    assert all(one.holds for one in others)
