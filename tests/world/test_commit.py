"""What may change the task state, and what may not (ToolGate, section 3.4); invariants by what a change touches."""

import random
from dataclasses import replace

import pytest

from gecko_graph import GeckoContext, Models, Tool, Toolkit, World
from gecko_graph.contracts.invariant import Invariant
from gecko_graph.errors import EvaluationFailed, PatchConflict
from gecko_graph.testing import recorded
from gecko_graph.values.patch import apply_patch
from gecko_graph.world.calls import fold_snapshot
from gecko_graph.world.commit import category_of, commit, mark_race
from gecko_graph.world.state_rules import StateRules
from tests.doubts import texts
from tests.schemas.test_strict import random_patch, random_value

ADD = [{"op": "add", "path": "/trays/bills", "value": []}]


def outcome(patch=None, *, status="ok", result="done", rung="python"):
    return {"status": status, "result": result, "patch": patch, "rung": rung, "simulated": True, "passed": []}


def invariant(check, error="the rule is broken"):
    return Invariant.load({"check": check, "error": error}, where="test")


def test_no_patch_changes_nothing_and_of_a_write_it_stays_known_that_none_was_proposed(question, state):
    booked = commit(question(), outcome(None))
    assert booked.state is state
    assert booked.outcome["patch"] is None
    assert commit(question(effect="read"), outcome(None)).outcome["patch"] == []


@pytest.mark.parametrize(
    "patch",
    [
        [*ADD, {"op": "remove", "path": "/none"}],
        [*ADD, {"op": "test", "path": "/count", "value": 5}],
        [{"op": "add", "path": "", "value": []}],
        [{"op": "add", "path": "/x", "value": float("nan")}],
        [{"op": "add", "path": "/x", "value": 2**70}],
        [{"op": "add", "path": "no pointer", "value": 1}],
        [{"op": "fly", "path": "/x"}],
        ["nonsense"],
    ],
)
def test_a_change_that_does_not_apply_is_refused_whole(question, state, patch):
    booked = commit(question(), outcome(patch))
    assert booked.state is state
    assert booked.outcome["status"] == "error"
    assert booked.outcome["patch"] == []
    assert texts(booked.outcome, "refused")[0].startswith("the change does not apply: ")
    assert booked.outcome["result"] == f"refused: {texts(booked.outcome, 'refused')[0]}"


ENSURES = {"ensures": [{"check": "'bills' in state.trays and result == 'done'", "error": "no tray was added"}]}


def test_a_postcondition_gates_the_commit_and_one_that_cannot_be_evaluated_is_not_relied_on(question, state):
    assert commit(question(contract=ENSURES), outcome(ADD)).state["trays"]["bills"] == []
    for refused in (outcome([]), outcome(ADD, result="else")):
        booked = commit(question(contract=ENSURES), refused)
        assert booked.state is state
        assert booked.outcome["result"] == "refused: no tray was added"
    booked = commit(question(contract={"ensures": [{"check": "1 / state.count", "error": "no"}]}), outcome(ADD))
    assert booked.state is state
    assert texts(booked.outcome, "refused")[0].startswith("a postcondition cannot be evaluated: ")


def test_invariants_gate_every_change_and_no_standing_still(question, state, monkeypatch):
    few = invariant("len(state.trays) < 2", "a desk has one tray")
    booked = commit(question(), outcome(ADD), rules=StateRules(None, [invariant("True"), few]))
    assert booked.state is state
    assert texts(booked.outcome, "refused")[0] == "a desk has one tray"
    broken = invariant("1 / state.count")
    assert commit(question(), outcome([]), rules=StateRules(None, [broken])).outcome["status"] == "ok"
    booked = commit(question(), outcome(ADD), rules=StateRules(None, [broken]))
    assert texts(booked.outcome, "refused")[0].startswith("an invariant cannot be evaluated: ")
    monkeypatch.setattr("gecko_graph.world.state_rules.INVARIANT_SECONDS", -1.0)
    booked = commit(question(), outcome(ADD), rules=StateRules(None, [invariant("True")] * 3))
    assert (booked.outcome["status"], booked.state) == ("error", state)
    assert texts(booked.outcome, "refused")[0] == "the invariants take too long: 3 of 3 were not checked"


FUNDED = {"check": "state.accounts[args.id].balance >= 50", "error": "not enough"}
ONCE = {"check": "len([one for one in calls if one.name == 'charge']) == 0", "error": "only once"}
KNOWN = {"check": "trusted(['accounts', args.id, 'balance'])", "error": "ask for the balance first"}
BOOKED = {"effects": [{"op": "add", "path": ["ledger", "-"], "value": 50}], "returns": "charged"}
UNCLEAR = "requires[0].check: state.accounts[args.id] is undefined, in `state.accounts[args.id].balance >= 50`"


def charge_after(first, requirement, mode, *, contract=BOOKED, **knobs):
    """Return what comes of a charge beside another call in one message, the first by these effects or this model."""
    parameters = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    tools = [{"name": name, "description": name, "parameters": parameters} for name in ("close", "charge")]
    close = {"close": {"effects": first, "returns": "closed"}} if isinstance(first, list) else {}
    toolkit = (
        Toolkit.from_tools(tools)
        .with_contracts({"contracts": {**close, "charge": {**contract, "requires": [requirement]}}})
        .declare(Tool("charge", effect="write"))
    )
    state = {"accounts": {"A1": {"balance": 100}}, "ledger": []}
    models = {} if isinstance(first, list) else {"model": Models(simulator=recorded(simulator=[first]))}
    world = World(toolkit, state=state, context=GeckoContext(parallel_calls=mode, **knobs), **models)
    names = ("charge", "charge") if requirement is ONCE else ("close", "charge")
    return world.call_all([{"name": name, "args": {"id": "A1"}} for name in names])[1]["outcome"]


@pytest.mark.parametrize("mode", ["serial", "snapshot", "strict"])
def test_a_condition_that_the_calls_before_have_made_unclear_does_not_pass_unmarked(mode):
    closed = [{"op": "remove", "path": ["accounts", "{{ args.id }}"]}]
    refused = charge_after(closed, FUNDED, mode)
    assert refused["status"] == "error"
    assert texts(refused, "unclear") == [UNCLEAR]
    passed = charge_after(closed, FUNDED, mode, unclear="pass")
    assert (passed["status"], texts(passed, "unclear")) == ("ok", [UNCLEAR])


@pytest.mark.parametrize("contract", [BOOKED, {"returns": "charged"}])
def test_a_condition_on_the_calls_sees_those_of_its_own_message(contract):
    assert charge_after([], ONCE, "snapshot", contract=contract)["violations"][0]["error"] == "only once"


@pytest.mark.parametrize("mode", ["serial", "snapshot", "strict"])
def test_what_a_model_has_written_in_the_same_message_is_not_trusted(mode):
    patch = [{"op": "replace", "path": "/accounts/A1/balance", "value": 7_000}]
    found = charge_after({"status": "ok", "result": "closed", "patch": patch}, KNOWN, mode)
    assert found["violations"][0]["error"] == "ask for the balance first"


def test_a_call_is_committed_to_the_state_that_others_left_but_answers_for_itself_only(question, state):
    one_more = {"ensures": [{"check": "len(state.trays) == len(before.trays) + 1", "error": "not one more"}]}
    now = apply_patch(state, [{"op": "add", "path": "/trays/other", "value": []}])
    booked = commit(question(contract=one_more), outcome(ADD), later=question(contract=one_more, given=now))
    assert set(booked.state["trays"]) == {"letters", "other", "bills"}
    few = invariant("len(state.trays) < 3", "two are enough")
    later = question(contract=one_more, given=now)
    assert commit(question(contract=one_more), outcome(ADD), later=later, rules=StateRules(None, [few])).state is now


A = {"id": "a", "name": "put", "args": {}}


@pytest.mark.parametrize(("result", "category"), [(0, "semantic"), ("no", "semantic"), (None, "empty"), ([], "empty")])
def test_a_refused_result_is_wrong_where_it_has_content_and_else_empty(result, category):
    assert category_of(result) == category


def test_what_a_read_shows_is_stale_where_a_call_before_it_in_its_message_has_changed_it(question, state):
    read = question(effect="read")
    later = replace(read, state={**state, "count": 7})
    shows = {**outcome(rung="real"), "observed": [{"op": "replace", "path": "/count", "value": 1}]}
    booked = commit(read, shows, later=later)
    assert booked.state["count"] == 7
    assert texts(booked.outcome, "stale")
    assert "observed" not in booked.outcome


@pytest.mark.parametrize(("first", "races"), [(0, True), ("-", True), (None, False)])
def test_calls_of_one_message_that_change_one_list_race(question, first, races):
    def append(place):
        return outcome([{"op": "add", "path": f"/trays/letters/{place}", "value": 1}] if place is not None else ADD)

    done = [{"v": 1, "call": A, "outcome": append(first)}]
    marked = mark_race(question(), append(0), done)
    assert [each.partition(" at ")[0] for each in texts(marked, "race")] == (["put (a)"] if races else [])
    strict = mark_race(question(parallel_calls="strict"), append(0), done)
    assert bool(texts(strict, "refused")) is races


CHECKS = [
    "not defined(state.a) or not isinstance(state.a, str)", "not state.a or not state.b", "'ab' not in state",
    "not isinstance(state.a, dict) or 'b' not in state.a", "at(state, ['b', 'c'], None) != 1",
    "not defined(state['c']) or len(str(state['c'])) < 9", "len(state) < 4",
    "not isinstance(state.b if state.a else state.c, (list, str, dict))", "many(state.a) < 3", "size < 4",
    "not any(x == state.b for x in (state.c if isinstance(state.c, list) else []))", "len(state) >= len(before)",
    "1 / (state.c if isinstance(state.c, (int, float)) else 1) > 0",
]  # fmt: skip
LETS = {"size": "{{ len(str(default(state.ab, ''))) }}", "many(x)": "{{ len(str(default(x, ''))) }}"}


@pytest.mark.parametrize("seed", range(4))
def test_the_verdict_is_that_of_all_invariants(seed):
    chance, seen = random.Random(seed), [0, 0]
    invariants = [Invariant.load({"check": check, "error": check}, lets=LETS, where="test") for check in CHECKS]
    while sum(seen) < 600:
        rules = StateRules({}, chance.sample(invariants, 3))
        state = {name: random_value(chance, 1) for name in ("a", "b", "ab", "c") if chance.random() < 0.6}
        if rules.broken(state):
            continue
        for _ in range(20):
            try:
                after = apply_patch(state, random_patch(chance, state, lambda: random_value(chance, 1)))
            except PatchConflict:
                continue
            if not isinstance(after, dict):
                continue
            whole = [one.data["check"] for one in rules.invariants if is_broken(one, state, after)]
            found = [one["error"] for one in rules.violations(state, after)]
            assert bool(found) == bool(whole), (state, after, found, whole)
            seen[bool(whole)] += 1
            state = state if whole else after
    assert min(seen) > 60, seen


def is_broken(invariant, before, after):
    try:
        return invariant.violation(before, after) is not None
    except EvaluationFailed:
        return True


def test_a_snapshot_is_the_last_whole_one_with_what_came_after_it():
    whole = {"start": {}, "state": {"a": 1}, "log": [], "facts": {}, "notes": [], "usage": {}}
    step = {"call": {}, "outcome": {"patch": [{"op": "add", "path": "/b", "value": 2}]}}
    more = {"records": [{"step": step, "note": {}}], "usage": {"simulator": {"calls": 1}}}
    assert fold_snapshot({"start": {}, "state": {}}, [whole]) is whole
    assert fold_snapshot({}, [whole, more]) == whole | {
        "state": {"a": 1, "b": 2}, "log": [step], "notes": [{}], "usage": more["usage"]
    }  # fmt: skip


@pytest.mark.parametrize(("size", "status"), [(100, "ok"), (1_500_000, "error")])
def test_copies_that_are_too_much_together_change_nothing_also_where_a_contract_has_made_each_of_them(size, status):
    effects = [{"op": "copy", "from": ["a"], "path": [key]} for key in "bcd"]
    function = {"name": "spread", "parameters": {"type": "object", "properties": {}}}
    tool = Tool(function, effect="write", contract={"effects": effects, "returns": None})
    world = World(Toolkit.from_tools([tool]), state={"a": "x" * size})
    outcome = world.call({"name": "spread", "args": {}})["outcome"]
    assert outcome["status"] == status
    assert len(world.state) == (4 if status == "ok" else 1)
    assert apply_patch({"a": "x" * size}, outcome["patch"]) == world.state


def test_a_contracts_change_in_several_steps_is_committed_as_its_patch_gives_it():
    effects = [
        {"op": "add", "path": ["orders", "{{ args.id }}"], "value": {"lines": []}},
        {"op": "add", "path": ["orders", "{{ args.id }}", "lines", "-"], "value": "{{ args.id }}"},
        {"op": "move", "from": ["next"], "path": ["last"]},
    ]
    function = {"name": "order", "parameters": {"type": "object", "properties": {"id": {"type": "string"}}}}
    tool = Tool(function, effect="write", contract={"effects": effects, "returns": "{{ args.id }}"})
    start = {"orders": {"b": {}}, "next": 7}
    world = World(Toolkit.from_tools([tool]), state=start)
    outcome = world.call({"name": "order", "args": {"id": "a"}})["outcome"]
    assert world.state == apply_patch(start, outcome["patch"])
    assert world.state == {"orders": {"b": {}, "a": {"lines": ["a"]}}, "last": 7}
    outcome["patch"][0]["value"]["lines"].append("changed")
    assert world.state["orders"]["a"] == {"lines": ["a"]}
