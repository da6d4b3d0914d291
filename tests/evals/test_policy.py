"""The airline's written policy as contracts: violations by hand, a part of the recorded conversations, the suite."""

from __future__ import annotations

import json
from types import SimpleNamespace

from evals.policy.gate import CONTRACTS, EXAMPLE, LOOK_UP, RULES, Gate, broken_clauses, read_violations, without_rules
from evals.suites.policy import Policy, expected
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


def test_a_part_of_the_conversations(shared_data, run, capsys, tmp_path):
    words = ("22:*", "34:0", "37:0", "45:0", "4:3", "ground truth:34")
    options = [part for word in words for part in ("--only", word)]
    assert run(Policy, *options, "--data", shared_data) == 0
    records = [json.loads(line) for line in (tmp_path / "out" / "cases.jsonl").read_text("utf-8").splitlines()]
    values = {record["id"]: record["values"] for record in records if "values" in record}
    stopped = {
        id_: [(write["tool"], write["clauses"], write.get("right")) for write in one["writes"] if write["clauses"]]
        for id_, one in values.items()
    }
    change, cancel = "update_reservation_flights", "cancel_reservation"
    assert stopped["22:1"] == [(change, ["basic-economy"], False)]
    assert stopped["34:0"] == [(cancel, ["cancellable"], True)]
    assert stopped["37:0"] == [("send_certificate", ["changed-first"], False)]
    assert [clauses for _, clauses, _ in stopped["4:3"]] == [["right-bags"]] * 2
    assert all(not one.get("differing") and one.get("errors") == one.get("errors_same") for one in values.values())
    assert (
        "holds: right writes are refused only where they are known to break the written policy"
        in capsys.readouterr().out
    )


def test_each_clause_shows_a_call_that_it_stops_and_one_that_it_allows(shared_data, run, tmp_path):
    assert run(Policy, "--data", shared_data, "--only", "by hand:*") == 0
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    (_, table) = report.split("Each clause: a call that it stops, and one that it allows")
    rows = [line.split("|")[1:4] for line in table.split("\n\n")[1].splitlines()[2:]]
    assert {clause.strip() for clause, _, _ in rows} == {one.clause for one in VIOLATIONS}
    assert all(stopped.strip() != allowed.strip() for _, stopped, allowed in rows)


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
