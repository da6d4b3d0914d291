"""Contracts learned from calls: what they may refuse, what they warn of, and that nothing depends on the order."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from gecko_graph import GeckoContext, Toolkit, World
from gecko_graph.learning import sample
from gecko_graph.learning.learn import Learned, learn_contracts
from gecko_graph.learning.observation import Observation

from .shop import rows, toolkit


@pytest.fixture(scope="module")
def learned() -> Learned:
    return learn_contracts(toolkit(), rows(400))


def clauses(learned: Learned) -> list[dict]:
    return [clause for clause in learned.contracts["buy"]["requires"] if "evidence" in clause]


def said(known: Toolkit, row: Observation) -> str:
    """Return what a contract says of a call: refused, lawful or unknown."""
    tool, call = known["buy"], {"id": "1", "name": "buy", "args": row.args}
    run = tool.contract.open(args=row.args, parameters=tool.parameters, state=row.before, call=call, now=None, seed=0)
    return "refused" if run.refusal() else "unknown" if run.unknown or run.unclear else "lawful"


def test_every_kind_of_refusal_is_explained(learned):
    kinds = {clause["evidence"]["kind"] for clause in clauses(learned)}
    assert kinds == {"flag", "membership", "comparison"}
    assert all(clause["evidence"]["status"] == "established" for clause in clauses(learned))
    assert learned.unknown["buy"] == []


def test_new_calls_are_foreseen_and_no_lawful_one_is_refused(learned):
    known = learned.apply(toolkit())
    words = [(said(known, row), row.status) for row in rows(400, seed=1)]
    assert ("refused", "ok") not in words
    assert ("lawful", "error") not in words
    assert sum(word != "unknown" for word, _ in words) >= 0.9 * len(words)


def test_a_world_answers_as_the_service(learned):
    known = learned.apply(toolkit())
    for row in [each for each in rows(60, seed=2) if said(known, each) != "unknown"]:
        world = World(known, state=row.before, context=GeckoContext(semantic_validation=False))
        outcome = world.call({"name": "buy", "args": row.args})["outcome"]
        assert (outcome["rung"], outcome["status"], outcome["result"]) == ("contract", row.status, row.result)
        assert world.state == row.after


def test_the_same_rows_in_any_order_give_the_same_contracts():
    some = rows(120)
    other = [*some]
    Random(3).shuffle(other)
    assert learn_contracts(toolkit(), some).contracts == learn_contracts(toolkit(), other).contracts


def test_a_written_file_is_loaded(learned, tmp_path):
    file = tmp_path / "shop.contracts.yaml"
    learned.write(file)
    known = toolkit().with_contracts(file)
    assert known["buy"].contract.data == learned.contracts["buy"]


def refusals(count: int) -> list[Observation]:
    """Return lawful calls, and so many refusals of unknown items."""
    every = rows(600)
    return [row for row in every if row.status == "ok"] + [
        row for row in every if row.status == "error" and "no item" in str(row.result)
    ][:count]


@pytest.mark.parametrize(("count", "status"), [(2, None), (3, "proposed"), (9, "proposed"), (10, "established")])
def test_trust_grows_with_the_rows(count, status):
    found = clauses(learn_contracts(toolkit(), refusals(count)))
    assert [clause["evidence"]["status"] for clause in found] == ([status] if status else [])
    assert all(("error" in clause) == (status == "established") for clause in found)


def test_one_lawful_call_takes_the_right_to_refuse():
    found = refusals(20)
    odd = next(row for row in found if row.status == "error")
    odd = replace(odd, args={**odd.args, "count": 1}, status="ok", result={"item": "?"}, change=[])
    clause = clauses(learn_contracts(toolkit(), [*found, odd]))[0]
    assert clause["evidence"]["status"] == "refuted"
    assert clause["evidence"]["against"] == [odd.digest[:12]]
    assert "pass" in clause


def test_constants_and_sets_never_refuse():
    made = [
        Observation(
            "buy", {"item": item, "count": 1}, "error" if item == "map" else "ok", {"error": "not sold"}, {"n": n}, []
        )
        for n in range(40)
        for item in ("pen", "map")
    ]
    (clause,) = clauses(learn_contracts(toolkit(), made))
    assert clause["evidence"]["kind"] in ("constant", "set")
    assert clause["evidence"]["status"] == "proposed"
    assert "error" not in clause


def test_rows_that_no_tool_takes_are_counted_by_cause():
    row = rows(1)[0]
    bad = learn_contracts(toolkit(), [replace(row, tool="sell"), replace(row, args={"item": 7, "count": 1}), row]).bad
    assert sorted(bad.counts.values()) == [1, 1]


def test_calls_answered_and_refused_in_one_state_are_named():
    row = next(each for each in rows(20) if each.status == "ok")
    other = replace(row, status="error", result={"error": "closed"}, change=[], source="another version")
    (note, *_) = learn_contracts(toolkit(), [row, other]).notes
    assert "another version" in note


def test_a_branch_is_sampled_within_bounds(monkeypatch):
    monkeypatch.setattr(sample, "PER_BRANCH", 20)
    known = sample.Sampler(toolkit())
    known.add(rows(500))
    kept = known.rows("buy")
    assert len(kept) <= 20 * len({branch for branch, _ in kept})
    again = sample.Sampler(toolkit())
    again.add(reversed(rows(500)))
    assert [row.digest for _, row in again.rows("buy")] == [row.digest for _, row in kept]


def test_a_written_contract_stays_and_is_held_beside_the_rows(learned):
    right = learned.apply(toolkit())
    data = {**learned.contracts["buy"], "effects": learned.contracts["buy"]["effects"][:1]}
    wrong = toolkit().with_contracts({"contracts": {"buy": data}})
    some = [row for row in rows(100, seed=4) if said(right, row) != "unknown"]
    assert learn_contracts(right, some).contradicted == []
    found = learn_contracts(wrong, some)
    assert found.contracts == {}
    assert "effects" in {one.part for one in found.contradicted}
