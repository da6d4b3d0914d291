"""The traps of the contract language that a first version fell into, one test or more for each."""

from __future__ import annotations

import json
from functools import partial

import pytest

from gecko_graph.contracts.run import ContractAnswer
from gecko_graph.errors import ContractError, EvaluationFailed, ToolkitError
from gecko_graph.values.patch import apply_patch
from tests.contracts import one_contract
from tests.contracts.one_contract import load

STATE = {"cwd": ["a"], "orders": {"7": {"qty": 2, "open": True}, "9": {"qty": 1, "open": False}}}
opened, change = (partial(each, state=STATE) for each in (one_contract.opened, one_contract.change))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("returns: cd: no such file", "f.yaml:1:12"),
        ("requires:\n  - check: 'x' in s\n    error: x", "f.yaml:2:16"),
        ("returns: {{ x }}", "f.yaml:1:1"),
        ("let: {a: 1, a: 2}", "f.yaml:1:13"),
    ],
)
def test_trap_1_yaml_that_means_something_else_is_refused_with_its_place(text, place):
    with pytest.raises(ToolkitError) as caught:
        load(text)
    assert str(caught.value).startswith(place)


def test_trap_1_scalars_stay_what_they_look_like():
    answer = opened("returns: {on: on, day: 2024-09-01, no: no, time: 12:30}").answer()
    assert answer.result == {"on": "on", "day": "2024-09-01", "no": "no", "time": "12:30"}
    assert opened("requires: [{check: true, error: x}, {check: 1, error: y}]").refusal() is None
    with pytest.raises(ContractError, match="unexpected end"):
        load("requires:\n  - check: args.a ==  # args.b\n    error: x")


def test_trap_2_a_path_is_never_read_letter_by_letter():
    with pytest.raises(EvaluationFailed, match="a path needs a list, not a text"):
        change([{"op": "remove", "path": "{{ state.cwd[0] }}"}])
    with pytest.raises(EvaluationFailed, match="for_each needs a list, not a text"):
        opened({"returns": {"for_each": "state.cwd[0]", "value": 1}}).answer()


def test_trap_3_filters_give_lists_that_can_be_read_twice():
    data = {
        "let": {"odd": "{{ args.n | select('odd') }}"},
        "requires": [{"check": "odd", "error": "none is odd"}],
        "returns": ["{{ odd }}", "{{ odd | length }}", "{{ odd }}"],
    }
    assert opened(data, n=[2, 4]).refusal().error == "none is odd"
    assert opened(data, n=[1, 2]).answer().result == [[1], 1, [1]]


def test_trap_4_numbers_are_read_strictly_and_order_ignores_case_unless_told():
    with pytest.raises(EvaluationFailed, match="int cannot read 'abc'"):
        opened({"returns": "{{ args.n | int }}"}, n="abc").answer()
    assert opened({"returns": "{{ ['b', 'A'] | sort }}"}).answer().result == ["A", "b"]
    assert opened({"returns": "{{ ['b', 'A', 'a'] | sort(case_sensitive=true) }}"}).answer().result == ["A", "a", "b"]


@pytest.mark.parametrize(
    "value", ["{{ args.x }}", "{{ [args.x] }}", ["{{ args.x }}"], {"a": "{{ args.x }}"}, "x{{ args.x }}"]
)
def test_trap_5_nothing_undefined_leaves_a_contract(value):
    for data in ({"returns": value}, {"effects": [{"op": "add", "path": ["x"], "value": value}]}):
        with pytest.raises(EvaluationFailed, match=r"args\.x is undefined"):
            opened(data).answer()


def test_trap_6_a_whole_number_names_the_key_with_its_digits():
    data = {
        "requires": [{"check": "args.id in state.orders", "error": "no order {{ args.id }}"}],
        "effects": [{"op": "replace", "path": ["orders", "{{ args.id }}", "qty"], "value": 3}],
        "returns": ["{{ state.orders[args.id].qty }}", "{{ at(state, ['orders', args.id, 'qty']) }}"],
    }
    for id_ in (7, "7"):
        run = opened(data, id=id_)
        assert run.refusal() is None
        assert run.answer() == ContractAnswer([3, 3], [{"op": "replace", "path": "/orders/7/qty", "value": 3}])
    assert opened(data, id=8).refusal().error == "no order 8"
    assert opened({"returns": "{{ 7 in ['7'] }}"}).answer().result is False


def test_trap_7_underscores_are_data_and_two_of_them_are_not_asked_for():
    assert opened({"returns": "{{ state._id ~ state._a_b }}"}, state={"_id": 1, "_a_b": 2}).answer().result == "12"
    with pytest.raises(ContractError, match="two underscores"):
        load({"returns": "{{ state.__id }}"})


def test_trap_8_a_let_is_evaluated_once_and_on_the_state_before():
    data = {
        "let": {"id": "{{ new_id('o_') }}", "other": "{{ new_id('o_') }}", "count": "{{ state.orders | length }}"},
        "requires": [{"check": "id != other", "error": "x"}],
        "effects": [{"op": "add", "path": ["orders", "{{ id }}"], "value": {"other": "{{ other }}"}}],
        "returns": {"id": "{{ id }}", "count": "{{ count }}", "now": "{{ state.orders | length }}"},
        "ensures": [{"check": "result.id == id and state.orders[id].other == other", "error": "{{ id }}"}],
    }
    run = opened(data)
    assert run.refusal() is None
    answer = run.answer()
    assert answer.patch[0]["path"] == f"/orders/{answer.result['id']}"
    assert (answer.result["count"], answer.result["now"]) == (2, 3)
    after = apply_patch(STATE, answer.patch)
    assert run.violations(answer.result, after) == []
    assert opened(data).violations(answer.result, after) == []  # opened anew, other lets first: the same identifiers
    assert opened(data, seed=1).answer().result["id"] != answer.result["id"]


def test_trap_8_a_let_that_nobody_asks_for_is_never_evaluated():
    data = {"let": {"bad": "{{ 1 / 0 }}", "gone": "{{ state.no.where }}"}, "returns": "{{ gone is defined }}"}
    assert opened(data).answer().result is False


@pytest.mark.parametrize("check", ["[args.n] | select('contains')", "[args.n] | map('uper')", "args.n is emty"])
def test_trap_9_names_of_filters_and_tests_are_checked_at_load(check):
    with pytest.raises(ContractError, match=r"unknown (filter|test)"):
        load({"requires": [{"check": check, "error": "x"}]})


def test_trap_10_a_check_that_names_a_small_part_of_a_large_state_is_fast(count_steps):
    """Steps here; `python -m evals contracts` prints microseconds at 1 kB and at 1 MB."""

    def rows(count: int) -> dict:
        return {str(n): {"name": f"row {n}", "tags": ["x"] * 5} for n in range(count)}

    large = {"user": {"name": "a"}, "rows": rows(15_000)}
    assert len(json.dumps(large)) > 900_000
    data = {"requires": [{"check": "state.user.name == args.name and '77' in state.rows", "error": "x"}]}
    contract = load(data)

    def steps(state: dict) -> int:
        run = opened(contract, state=state, name="a")
        assert run.refusal() is None
        return count_steps(opened(contract, state=state, name="a").refusal)

    assert steps(large) == steps({**large, "rows": rows(78)}) < 100
