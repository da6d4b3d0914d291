"""What may change the task state, and what may not (ToolGate, section 3.4)."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph import GeckoContext, Toolkit, World
from gecko_graph.contracts.contract import Invariant
from gecko_graph.testing import recorded
from gecko_graph.values.patch import apply_patch
from gecko_graph.world.commit import category_of, commit, race_of, refuse
from gecko_graph.world.state_rules import StateRules

ADD = [{"op": "add", "path": "/trays/bills", "value": []}]


def outcome(patch=None, *, status="ok", result="done", rung="python"):
    return {"status": status, "result": result, "patch": patch, "rung": rung, "simulated": True, "passed": []}


def invariant(check, error="the rule is broken"):
    return Invariant.load({"check": check, "error": error}, where="test")


def test_a_change_is_committed_and_the_state_that_was_given_stays(question, state):
    before = copy.deepcopy(state)
    booked = commit(question(), outcome(ADD))
    assert booked.state["trays"] == {"letters": ["from mum"], "bills": []}
    assert booked.outcome == outcome(ADD)
    assert state == before


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
    assert booked.outcome["refused"].startswith("the change does not apply: ")
    assert booked.outcome["result"] == f"not done: {booked.outcome['refused']}"


def test_a_read_changes_nothing_whoever_answered(question, state):
    booked = commit(question(effect="read"), outcome(ADD, rung="contract"))
    assert booked.state is state
    assert booked.outcome["status"] == "ok"
    assert booked.outcome["patch"] == []
    assert booked.outcome["refused"] == "a read changes nothing: 1 operations were dropped"


def test_an_error_changes_what_the_contract_declares(question):
    assert commit(question(), outcome(ADD, status="error", rung="contract")).state["trays"]["bills"] == []


ENSURES = {"ensures": [{"check": "'bills' in state.trays and result == 'done'", "error": "no tray was added"}]}


def test_a_postcondition_gates_the_commit(question, state):
    assert commit(question(contract=ENSURES), outcome(ADD)).state["trays"]["bills"] == []
    for refused in (outcome([]), outcome(ADD, result="else")):
        booked = commit(question(contract=ENSURES), refused)
        assert booked.state is state
        assert booked.outcome["result"] == "not done: no tray was added"


def test_a_postcondition_is_not_asked_of_an_error(question):
    booked = commit(question(contract=ENSURES), outcome([], status="error", result="locked"))
    assert booked.outcome == outcome([], status="error", result="locked")


def test_a_postcondition_that_cannot_be_evaluated_is_not_relied_on(question, state):
    booked = commit(question(contract={"ensures": [{"check": "1 / state.count", "error": "no"}]}), outcome(ADD))
    assert booked.state is state
    assert booked.outcome["refused"].startswith("a postcondition cannot be evaluated: ")


def test_invariants_gate_every_change_and_no_standing_still(question, state):
    few = invariant("(state.trays | length) < 2", "a desk has one tray")
    booked = commit(question(), outcome(ADD), rules=StateRules(None, [invariant("true"), few]))
    assert booked.state is state
    assert booked.outcome["refused"] == "a desk has one tray"
    broken = invariant("1 / state.count")
    assert commit(question(), outcome([]), rules=StateRules(None, [broken])).outcome["status"] == "ok"
    booked = commit(question(), outcome(ADD), rules=StateRules(None, [broken]))
    assert booked.outcome["refused"].startswith("an invariant cannot be evaluated: ")


def test_invariants_that_take_too_long_refuse_the_change_and_say_so(question, monkeypatch):
    monkeypatch.setattr("gecko_graph.world.state_rules.INVARIANT_SECONDS", -1.0)
    booked = commit(question(), outcome(ADD), rules=StateRules(None, [invariant("true")] * 3))
    assert booked.outcome["status"] == "error"
    assert booked.outcome["refused"] == "the invariants take too long: 3 of 3 were not checked"


def test_what_the_state_before_breaks_already_is_not_blamed_on_the_call(question):
    never = invariant("(state.trays | length) == 0", "a desk has no trays")
    assert commit(question(), outcome(ADD), rules=StateRules(None, [never])).outcome["status"] == "ok"


def test_an_invariant_sees_the_state_before(question):
    grows = invariant("(state.trays | length) >= (before.trays | length)", "trays stay")
    removal = outcome([{"op": "remove", "path": "/trays/letters"}])
    assert commit(question(), removal, rules=StateRules(None, [grows])).outcome["refused"] == "trays stay"


FUNDED = {"check": "state.accounts[args.id].balance >= 50", "error": "not enough"}
ONCE = {"check": "calls | selectattr('name', 'eq', 'charge') | length == 0", "error": "only once"}
KNOWN = {"check": "trusted(['accounts', args.id, 'balance'])", "error": "ask for the balance first"}
BOOKED = {"effects": [{"op": "add", "path": ["ledger", "-"], "value": 50}], "returns": "charged"}
UNCLEAR = "requires[0].check: state.accounts[args.id] is undefined, in `state.accounts[args.id].balance >= 50`"


def charge_after(first, requirement, mode, *, contract=BOOKED, **knobs):
    """Return what comes of a charge beside another call in one message, the first by these effects or this model."""
    parameters = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    tools = [{"name": name, "description": name, "parameters": parameters} for name in ("close", "charge")]
    close = {"close": {"effects": first, "returns": "closed"}} if isinstance(first, list) else {}
    toolkit = Toolkit.from_tools(
        tools, contracts={**close, "charge": {**contract, "requires": [requirement]}}, effects={"charge": "write"}
    )
    state = {"accounts": {"A1": {"balance": 100}}, "ledger": []}
    models = {} if isinstance(first, list) else {"models": {"simulator": recorded(simulator=[first])}}
    world = World(toolkit, state=state, context=GeckoContext(parallel_calls=mode, **knobs), **models)
    names = ("charge", "charge") if requirement is ONCE else ("close", "charge")
    return world.call_all([{"name": name, "args": {"id": "A1"}} for name in names])[1]["outcome"]


@pytest.mark.parametrize("mode", ["serial", "snapshot", "strict"])
def test_a_condition_that_the_calls_before_have_made_unclear_does_not_pass_unmarked(mode):
    closed = [{"op": "remove", "path": ["accounts", "{{ args.id }}"]}]
    refused = charge_after(closed, FUNDED, mode)
    assert refused["status"] == "error"
    assert refused["unclear"] == [UNCLEAR]
    passed = charge_after(closed, FUNDED, mode, unclear="pass")
    assert (passed["status"], passed["unclear"]) == ("ok", [UNCLEAR])


@pytest.mark.parametrize("contract", [BOOKED, {"returns": "charged"}])
def test_a_condition_on_the_calls_sees_those_of_its_own_message(contract):
    assert charge_after([], ONCE, "snapshot", contract=contract)["violations"][0]["error"] == "only once"


@pytest.mark.parametrize("mode", ["serial", "snapshot", "strict"])
def test_what_a_model_has_written_in_the_same_message_is_not_trusted(mode):
    patch = [{"op": "replace", "path": "/accounts/A1/balance", "value": 7_000}]
    found = charge_after({"status": "ok", "result": "closed", "patch": patch}, KNOWN, mode)
    assert found["violations"][0]["error"] == "ask for the balance first"


def test_an_invariant_holds_of_an_error_s_own_effects_too(question, state):
    few = invariant("(state.trays | length) < 2", "a desk has one tray")
    booked = commit(question(), outcome(ADD, status="error", rung="contract"), rules=StateRules(None, [few]))
    assert booked.state is state


def test_a_call_is_committed_to_the_state_that_others_left_but_answers_for_itself_only(question, state):
    one_more = {
        "ensures": [{"check": "(state.trays | length) == (before.trays | length) + 1", "error": "not one more"}]
    }
    now = apply_patch(state, [{"op": "add", "path": "/trays/other", "value": []}])
    booked = commit(question(contract=one_more), outcome(ADD), later=question(contract=one_more, given=now))
    assert set(booked.state["trays"]) == {"letters", "other", "bills"}
    few = invariant("(state.trays | length) < 3", "two are enough")
    later = question(contract=one_more, given=now)
    assert commit(question(contract=one_more), outcome(ADD), later=later, rules=StateRules(None, [few])).state is now


def test_what_was_refused_keeps_its_rung():
    assert refuse(outcome(ADD, rung="model"), "why", "semantic")["rung"] == "model"


A = {"id": "a", "name": "put", "args": {}}


@pytest.mark.parametrize(
    ("result", "category"),
    [
        (0, "semantic"),
        (False, "semantic"),
        ("no", "semantic"),
        (None, "empty"),
        ([], "empty"),
        ({}, "empty"),
        ("", "empty"),
    ],
)
def test_a_refused_result_is_wrong_where_it_has_content_and_else_empty(result, category):
    assert category_of(result) == category


def test_what_a_read_shows_is_stale_where_a_call_before_it_in_its_message_has_changed_it(question, state):
    read = question(effect="read")
    later = replace(read, state={**state, "count": 7})
    shows = {**outcome(rung="real"), "observed": [{"op": "replace", "path": "/count", "value": 1}]}
    booked = commit(read, shows, later=later)
    assert booked.state["count"] == 7
    assert booked.outcome["stale"] is True
    assert "observed" not in booked.outcome


def test_races_name_call_and_places(state):
    append = [{"op": "add", "path": "/trays/letters/-", "value": 1}]
    assert race_of([(A, append)], append, state=state) == ["put (a) at /trays/letters/-"]
    assert race_of([(A, append)], ADD, state=state) == []
    assert race_of([(A, [])], append, state=state) == []


def test_items_of_one_list_race(state):
    first, second = ([{"op": "add", "path": f"/trays/letters/{index}", "value": 1}] for index in (0, 1))
    assert race_of([(A, first)], second, state=state)


def test_a_patch_that_is_none_races_with_nothing(state):
    assert race_of([(A, ADD)], [{"op": "add", "path": "x", "value": 1}], state=state) == []
    assert race_of([(A, ADD)], [{"op": "add"}], state=state) == []


OPERATIONS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "remove", "replace", "test", "move", "copy", "x"]),
        "path": st.sampled_from(
            ["", "/trays", "/trays/letters", "/trays/letters/-", "/trays/letters/0", "/count", "/z", "q"]
        ),
    },
    optional={
        "value": st.sampled_from([1, [], {}, None, "x"]),
        "from": st.sampled_from(["/trays", "/count", "/none", ""]),
    },
)


@given(
    patch=st.lists(OPERATIONS, max_size=4),
    status=st.sampled_from(["ok", "error"]),
    effect=st.sampled_from(["read", "write"]),
)
def test_any_patch_is_committed_whole_or_not_at_all(patch, status, effect):
    from gecko_graph import GeckoContext
    from gecko_graph.models.ask import Where
    from gecko_graph.tools.spec import ToolSpec
    from gecko_graph.world.rung import RungRequest

    state = {"trays": {"letters": ["from mum"]}, "count": 0}
    asked = RungRequest(
        tool=ToolSpec(name="put", effect=effect), call=A, state=state, facts={}, context=GeckoContext(), where=Where()
    )
    booked = commit(asked, outcome(patch, status=status))
    assert state == {"trays": {"letters": ["from mum"]}, "count": 0}
    assert isinstance(booked.state, dict)
    assert booked.state == apply_patch(state, booked.outcome["patch"])
    if "refused" in booked.outcome or effect == "read":
        assert booked.state is state
    else:
        assert booked.outcome["patch"] == patch


@pytest.mark.parametrize("mode", ["snapshot", "strict"])
def test_what_calls_of_the_same_message_have_made_inadmissible_is_refused(mode):
    book = {
        "requires": [{"check": "state.orders | length < 1", "error": "one order only", "id": "single"}],
        "effects": [{"op": "add", "path": ["orders", "{{ args.id }}"], "value": {}}],
        "returns": "booked",
    }
    count = {
        "effects": [{"op": "add", "path": ["counts", "{{ args.id }}"], "value": "{{ state.counts | length }}"}],
        "returns": "counted",
        "ensures": [{"check": "state.counts[args.id] == before.counts | length", "error": "counted twice"}],
    }
    parameters = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    tools = [{"name": name, "description": name, "parameters": parameters} for name in ("book", "count")]
    toolkit = Toolkit.from_tools(tools, contracts={"book": book, "count": count})
    world = World(toolkit, state={"orders": {}, "counts": {}}, context=GeckoContext(parallel_calls=mode))
    calls = [{"name": name, "args": {"id": id_}} for name in ("book", "count") for id_ in "ab"]
    first, second, third, fourth = (step["outcome"] for step in world.call_all(calls))
    assert [first["status"], third["status"]] == ["ok", "ok"]
    assert second["result"] == 'not done: after the calls before it in its message: "one order only"'
    assert second["violations"][0]["clause"] == "single"
    assert fourth["refused"] == "counted twice"
    assert world.state == {"orders": {"a": {}}, "counts": {"a": 0}}
