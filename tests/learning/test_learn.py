"""Contracts learned from calls: what they may refuse, what they warn of, and that nothing depends on the order."""

from dataclasses import replace
from random import Random

import pytest

from gecko_graph import GeckoContext, GeckoError, Toolkit, World
from gecko_graph.learning import learn, sample
from gecko_graph.learning.learn import Learned, learn_contracts
from gecko_graph.values.mapping import threads
from gecko_graph.values.observation import Observation

from .shop import rows, toolkit, write_rows


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


def test_every_kind_of_refusal_is_explained_and_a_written_file_is_loaded(learned, tmp_path):
    found = {clause["evidence"]["kind"]: clause["evidence"]["status"] for clause in clauses(learned)}
    assert found == dict.fromkeys(("flag", "membership", "comparison"), "established")
    assert len(clauses(learned)) == 3
    assert learned.unknown["buy"] == []
    learned.write(tmp_path / "shop.contracts.yaml")
    assert toolkit().with_contracts(tmp_path / "shop.contracts.yaml")["buy"].contract.data == learned.contracts["buy"]


@pytest.mark.parametrize("given", [("x", []), (toolkit(), [1])])
def test_what_is_no_toolkit_or_no_row_is_a_mistake_that_says_so(given):
    with pytest.raises(GeckoError, match="expected"):
        learn_contracts(*given)


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


def refusals(count: int) -> list[Observation]:
    """Return lawful calls, and so many refusals of unknown items."""
    every = rows(600)
    unknown = [row for row in every if row.status == "error" and "no item" in str(row.result)]
    return [row for row in every if row.status == "ok"] + unknown[:count]


@pytest.mark.parametrize(("count", "status"), [(2, None), (3, "proposed"), (9, "proposed"), (10, "established")])
def test_trust_grows_with_the_rows(count, status):
    found = clauses(learn_contracts(toolkit(), refusals(count)))
    assert [clause["evidence"]["status"] for clause in found] == ([status] if status else [])
    assert all(("error" in clause) == (status == "established") for clause in found)


def test_a_message_that_is_not_wholly_explained_is_open_and_refuses_all_the_same():
    made = refusals(12)
    told = [
        replace(row, result={"error": f"no item '{row.args['item']}', ask at desk '{name}'"})
        for row, name in zip((one for one in made if one.status == "error"), "ab" * 6, strict=True)
    ]
    some = [*(row for row in made if row.status == "ok"), *told]
    learned = learn_contracts(toolkit(), some)
    (clause,) = clauses(learned)
    assert ("error" in clause, clause["open"]["error"]) == (False, "no item …, ask at desk …")
    known = learned.apply(toolkit())
    outcome = World(known, state=told[0].before).call({"name": "buy", "args": told[0].args})["outcome"]
    assert (outcome["status"], outcome["rung"], outcome["filled"]["rung"]) == ("error", "contract", "none")
    assert "ask at desk" in outcome["result"]
    assert learn_contracts(known, some).contradicted == []


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
        Observation("buy", {"item": item, "count": 1}, status, {"error": "not sold"}, {"n": n}, [])
        for n in range(40)
        for item, status in (("pen", "ok"), ("map", "error"))
    ]
    (clause,) = clauses(learn_contracts(toolkit(), made))
    assert clause["evidence"]["kind"] in ("constant", "set")
    assert clause["evidence"]["status"] == "proposed"
    assert "error" not in clause


def test_rows_that_no_tool_takes_are_counted_by_cause_and_contradictions_in_one_state_named():
    row = next(each for each in rows(20) if each.status == "ok")
    other = replace(row, status="error", result={"error": "closed"}, change=[], source="another version")
    unfit = [replace(row, tool="sell"), replace(row, args={"item": 7, "count": 1})]
    learned = learn_contracts(toolkit(), [*unfit, row, other])
    assert sorted(learned.bad.counts.values()) == [1, 1]
    assert "another version" in learned.notes[0]


def test_a_branch_is_sampled_within_bounds(monkeypatch):
    monkeypatch.setattr(sample, "PER_BRANCH", 20)
    known = sample.Sampler(toolkit())
    known.add(rows(500))
    kept = known.rows("buy")
    assert len(kept) <= 20 * len({branch for branch, _ in kept})
    again = sample.Sampler(toolkit())
    again.add(reversed(rows(500)))
    assert [row.digest for _, row in again.rows("buy")] == [row.digest for _, row in kept]


def test_more_kinds_than_are_kept_are_one_branch_in_any_order(monkeypatch):
    monkeypatch.setattr(sample, "BRANCHES", 3)
    words = [a + b for a in "abcd" for b in "efgh"]
    odd = [
        replace(row, status="error", result={"error": f"no {words[n % 16]} today"}) for n, row in enumerate(rows(60))
    ]
    kept = []
    for seed in range(3):
        Random(seed).shuffle(odd)
        known = sample.Sampler(toolkit())
        known.add([*odd, *rows(20)])
        kept.append([(branch, row.digest) for branch, row in known.rows("buy")])
    assert kept[0] == kept[1] == kept[2]
    assert len({branch for branch, _ in kept[0]}) == 5
    assert sample.OTHER in {branch for branch, _ in kept[0]}


@pytest.mark.parametrize("how", [map, threads(2)], ids=["map", "threads"])
def test_what_workers_have_read_is_learned_as_if_one_had_read_all(tmp_path, monkeypatch, how):
    """Within the bounds of the sample, in batches and files."""
    monkeypatch.setattr(sample, "PER_BRANCH", 30)
    some = [*rows(200), replace(rows(1)[0], tool="sell")]
    monkeypatch.setattr(learn, "BATCH", 500)
    whole = learn_contracts(toolkit(), some)
    monkeypatch.setattr(learn, "BATCH", 7)
    write_rows(tmp_path / "rows.jsonl", some[100:])
    found = learn_contracts(toolkit(), [*some[:100], tmp_path / "rows.jsonl"], map=how)
    assert (found.contracts, found.bad.counts) == (whole.contracts, whole.bad.counts)
    assert (found.notes, found.unknown) == (whole.notes, whole.unknown)


@pytest.mark.parametrize("odd", ["another version", "a clock", "a random id", "a secret"])
def test_odd_rows_lose_nothing_and_are_named(odd):
    every = rows(400)
    some = [row for row in every if row.status == "ok"][:6]
    if odd == "another version":
        changed = [replace(row, status="error", result={"error": "gone"}, change=[], source="v2") for row in some]
    elif odd == "a secret":
        changed = [replace(row, args={**row.args, "item": "…"}) for row in some]
    else:
        told = "2026-11-23T10:00:0{}" if odd == "a clock" else "{}f3ac"
        changed = [
            replace(row, result={**row.result, "note": told.format(n)}) if row.status == "ok" else row
            for n, row in enumerate(every)
        ]
        every = []
    learned = learn_contracts(toolkit(), [*every, *changed])
    statuses = {clause["evidence"]["kind"]: clause["evidence"]["status"] for clause in clauses(learned)}
    assert statuses.items() >= dict.fromkeys(("flag", "membership", "comparison"), "established").items()
    assert len(learned.contracts["buy"]["effects"]) == 2
    if odd == "another version":
        assert "v2" in learned.notes[0]
    elif odd != "a secret":
        assert learned.unknown["buy"] == ["what it returns"]


def test_a_prediction_stays_while_exceptions_are_few_and_names_each():
    every = rows(400)
    refused = [row for row in every if row.status == "error" and "no item" in str(row.result)]
    odd = [
        replace(row, status="ok", result={"item": "?"}, change=[], before={**row.before, "sold": 1000 + n})
        for n, row in enumerate(refused[:2])
    ]
    found = next(c for c in clauses(learn_contracts(toolkit(), [*every, *odd])) if "pass" in c)
    assert found["evidence"]["kind"] == "membership"
    assert set(found["evidence"]["against"]) == {row.digest[:12] for row in odd}


def test_a_written_contract_stays_and_is_held_beside_the_rows(learned):
    right = learned.apply(toolkit())
    data = {**learned.contracts["buy"], "effects": learned.contracts["buy"]["effects"][:1]}
    wrong = toolkit().with_contracts({"contracts": {"buy": data}})
    some = [row for row in rows(100, seed=4) if said(right, row) != "unknown"]
    assert learn_contracts(right, some).contradicted == []
    found = learn_contracts(wrong, some)
    assert found.contracts == {}
    assert "effects" in {one.part for one in found.contradicted}
    assert {(one.part, one.branch) for one in found.contradicted} == {
        (one["part"], one["says"]) for one in found.proposals["buy"]
    }


@pytest.mark.parametrize(
    ("part", "refusing", "answered"), [("fact", 3, True), ("requires", 0, True), ("effects", 3, False)]
)
def test_what_a_written_contract_does_not_speak_of_is_learned(learned, part, refusing, answered):
    own = {"requires": learned.contracts["buy"]["requires"][:1], "effects": [], "fact": "sale"}[part]
    written = toolkit().with_contracts({"contracts": {"buy": {part: own}}})
    found = learn_contracts(written, rows(400))
    data = found.contracts["buy"]
    assert data[part][: len(own)] == own
    assert sum("error" in each for each in data["requires"][len(own) if part == "requires" else 0 :]) == refusing
    assert ("returns" in data) is answered
    assert bool(found.contradicted) is (part != "fact")  # requirements that are missing, no effects
    known = found.apply(written)
    assert ("refused", "ok") not in {(said(known, row), row.status) for row in rows(100, seed=5)}
    assert found.apply(known)["buy"].contract.data == known["buy"].contract.data


@pytest.mark.parametrize("effect", [None, "read", "write"])
def test_a_function_dict_says_by_effect_whether_it_only_reads(effect):
    said = {"name": "buy", "description": "Buy.", "parameters": {"type": "object"}} | (
        {"effect": effect} if effect else {}
    )
    known = Toolkit.from_tools([{"type": "function", "function": said}])
    found = learn_contracts(known, [Observation("buy", {}, "ok", {"left": 1})] * 12)
    assert ("give buy an `effect`, read or write" in "; ".join(found.notes)) is (effect is None)


def test_results_that_contradict_others_lose_nothing_and_are_named():
    every = rows(400)
    odd = [replace(row, result={**row.result, "left": 99}) for row in every if row.status == "ok"][:3]
    evidence = learn_contracts(toolkit(), [*every, *odd]).contracts["buy"]["evidence"]
    assert (evidence["returns"]["status"], evidence["effects"]["status"]) == ("established", "established")
    assert set(evidence["returns"]["against"]) == {row.digest[:12] for row in odd}
