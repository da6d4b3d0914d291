"""Contracts: their form, their moments, what they refuse at load, and the traps of the language."""

from __future__ import annotations

import copy
import gc
import json
from functools import partial

import pytest

from gecko_graph.contracts.invariant import Invariant
from gecko_graph.contracts.run import ContractAnswer
from gecko_graph.errors import ContractError, EvaluationFailed, ToolkitError
from gecko_graph.values.patch import apply_patch
from tests.contracts import one_contract
from tests.contracts.one_contract import effect, load

STATE = {
    "tree": {"a": {"x": {}}},
    "cwd": ["a"],
    "orders": {"7": {"qty": 2, "open": True}, "9": {"qty": 1, "open": False}},
}
opened, change = (partial(each, state=STATE) for each in (one_contract.opened, one_contract.change))
LETS = {"here": "{{ at(state.tree, state.cwd) }}"}

MKDIR = """
let: {name: "{{ args.name }}"}
requires:
  - check: name not in here
    error: "mkdir: cannot create '{{ name }}': it exists"
effects:
  - {op: add, path: [tree, "{{ state.cwd }}", "{{ name }}"], value: {}}
returns: {created: "{{ name }}"}
ensures:
  - {check: "name in at(state.tree, state.cwd)", error: the folder is not there}
"""


def test_the_design_s_contract():
    run = opened(MKDIR, LETS, name="y")
    assert run.refusal() is None
    assert run.answer() == ContractAnswer({"created": "y"}, [{"op": "add", "path": "/tree/a/y", "value": {}}])
    after = apply_patch(STATE, run.answer().patch)
    assert run.violations({"created": "y"}, after) == []
    assert [each["error"] for each in run.violations({"created": "y"}, STATE)] == ["the folder is not there"]


def test_requirements_are_looked_at_in_order_and_when_they_apply():
    data = {
        "requires": [
            {"when": "args.n == 1", "check": "False", "error": "one"},
            {"check": "args.n > 2", "error": {"code": "{{ args.n }}", "text": "n is {{ args.n }}"}},
            {"check": "state.nowhere", "error": "never reached"},
        ]
    }
    assert opened(data, n=1).refusal().error == "one"
    assert opened(data, n=2).refusal().error == {"code": 2, "text": "n is 2"}
    run = opened(data, n=3)
    assert run.refusal() is None
    assert run.unclear == ["requires[2].check: state.nowhere is undefined, in `state.nowhere`"]


def test_a_contract_may_only_guard():
    guard = {"requires": [{"check": "True", "error": "x"}], "ensures": [{"check": "result.ok", "error": "not ok"}]}
    run = opened(guard)
    assert (run.refusal(), run.answer()) == (None, None)
    assert [each["error"] for each in run.violations({"ok": False}, STATE)] == ["not ok"]
    assert opened({}).answer() is None
    assert opened({"effects": []}).answer() == opened({"returns": None}).answer() == ContractAnswer(None, [])


def test_state_is_before_in_lets_so_far_in_effects_and_after_in_returns():
    data = {
        "let": {"then": "{{ state.n }}"},
        "effects": [
            {"op": "replace", "path": ["n"], "value": "{{ state.n + 1 }}"},
            {"op": "replace", "path": ["n"], "value": "{{ state.n * 10 + then }}"},
        ],
        "returns": {"before": "{{ before.n }}", "then": "{{ then }}", "after": "{{ state.n }}"},
        "ensures": [{"check": "before.n == then and state.n == result.after", "error": "{{ [before.n, state.n] }}"}],
    }
    run = opened(data, state={"n": 1})
    answer = run.answer()
    assert answer.result == {"before": 1, "then": 1, "after": 21}
    assert [operation["value"] for operation in answer.patch] == [2, 21]
    assert run.violations(answer.result, {"n": 21}) == []
    assert [each["error"] for each in run.violations(answer.result, {"n": 3})] == ["[1, 3]"]


def test_arguments_have_their_defaults_and_call_and_clock_are_in_scope():
    parameters = {"properties": {"a": {"default": [1]}, "b": {"type": "string"}, "c": True}}
    assert opened({"returns": "{{ args }}"}, parameters=parameters).answer().result == {"a": [1], "b": None, "c": None}
    assert opened({"returns": "{{ args.a }}"}, parameters=parameters, a=2).answer().result == 2
    assert opened({"returns": "{{ args }}"}, parameters={"type": "object"}).answer().result == {}
    data = {"returns": ["{{ call.id }}", "{{ call.name }}", "{{ call.args.x }}", "{{ now }}"]}
    assert opened(data, now="2024-05-01T00:00:00Z", x=1).answer().result == ["c1", "t", 1, "2024-05-01T00:00:00Z"]
    assert opened({"returns": "{{ defined(now) }}"}).answer().result is False
    with pytest.raises(EvaluationFailed, match="the state has no clock"):
        opened({"returns": {"at": "{{ now }}"}}).answer()


@pytest.mark.parametrize(("effects", "after"), [
    ([{"op": "add", "path": ["a/b", "{{ 'c~d' }}"], "value": 1}], {"a/b": {"c~d": 1}, "l": [1, 2], "n": 0}),
    ([{"op": "replace", "path": ["{{ ['l'] }}", [["{{ 0 }}"]]], "value": "x"}], {"a/b": {}, "l": ["x", 2], "n": 0}),
    ([{"op": "move", "from": ["l", 0], "path": ["m"]}], {"a/b": {}, "l": [2], "n": 0, "m": 1}),
    ([{"when": "state.n", "op": "remove", "path": ["l"]}], {"a/b": {}, "l": [1, 2], "n": 0}),
    ([{"for_each": "state.l", "when": "item > 1", "op": "add", "path": ["a/b", "{{ item }}"], "value": 2}],
     {"a/b": {"2": 2}, "l": [1, 2], "n": 0}),
    ([{"when": "state.n == 0",
       "do": [{"op": "replace", "path": ["n"], "value": 5}, {"op": "remove", "path": ["l"]}]}],
     {"a/b": {}, "n": 5}),
    ([{"for_each": "[1, 2, 3]", "op": "replace", "path": ["n"], "value": "{{ state.n + item }}"}],
     {"a/b": {}, "l": [1, 2], "n": 6}),
    ([{"for_each": "state.l", "as": "one",
       "do": [{"for_each": "['x', 'y']", "as": "two", "op": "add", "path": ["a/b", "{{ f'{two}{one}' }}"],
               "value": 0}]}], {"a/b": {"x1": 0, "y1": 0, "x2": 0, "y2": 0}, "l": [1, 2], "n": 0}),
])  # fmt: skip
def test_effects(effects, after):
    state = {"a/b": {}, "l": [1, 2], "n": 0}
    untouched = copy.deepcopy(state)
    assert change(effects, state=state) == after
    assert state == untouched


@pytest.mark.parametrize(("data", "why"), [
    (effect(op="add", path=["{{ args.p }}"], value=1), "effects[0].path[0]: args.p is undefined"),
    (effect(op="add", path=["{{ state }}"], value=1), "a path needs texts and whole numbers, not an object"),
    (effect(op="add", path=["x"], value=["{{ state.no }}"]), "effects[0].value[0]: state.no is undefined"),
    ({"let": {"a": "{{ state.no.no }}"}, "returns": "{{ a + 1 }}"}, "state.no is undefined"),
    ({"returns": {"a": ["{{ args.x }}"]}}, "args.x is undefined"), ({"returns": "x{{ args.x }}"}, "is undefined"),
])  # fmt: skip
def test_a_contract_that_cannot_be_evaluated_is_no_tool_error(data, why):
    with pytest.raises(EvaluationFailed) as caught:
        opened(data).answer()
    assert str(caught.value).startswith("f.yaml: tool t: ")
    assert why in str(caught.value)


@pytest.mark.parametrize(("text", "why"), [
    ("requires: [{check: nme in here, error: x}]", "requires[0].check: unknown name 'nme'"),
    ("requires: [{check: here, error: x, wehn: y}]", "requires[0]: unknown key 'wehn' (did you mean when?)"),
    ("requires: [{check: [here], error: x}]", "requires[0].check: expected an expression as a text"),
    ("requires: [{check: here}]", "requires[0]: 'error' is missing"), ("let: {state: 1}", "'state' is reserved"),
    ("let: {a: {cases: [{when: b, value: 1}]}, b: {for_each: a, value: 2}}", "in a cycle: a -> b -> a"),
    ("effects: [{path: [a]}]", "effects[0]: expected an object with `op`"),
    ("effects: [{op: remove, path: /tree/x}]", "effects[0].path: expected a list of tokens like"),
    ("effects: [{op: remove, path: [a], value: 1}]", "effects[0]: unknown key 'value'"),
    ("effects: [{op: remove, path: [a], as: x}]", "effects[0].as: only with `for_each`"),
    ("effects: [{op: remove, path: [a], for_each: here, as: here}]", "effects[0].as: the name 'here' is"),
    ("effects: [{op: remove, path: ['{{ item }}']}]", "effects[0].path[0]: unknown name 'item'"),
    ("ensures: [{check: result, error: x, effects: []}]", "ensures[0]: unknown key 'effects'"),
    ("let: {a: '{{ b }}', b: '{{ c }}', c: '{{ a }}'}", "let.a: lets use one another in a cycle: a -> b -> c"),
    ("let: {here: 1}", "let.here: the name is already used in x-contract-let"),
    ("[]", "expected an object with at, let, requires"),
])  # fmt: skip
def test_an_error_at_load_names_file_tool_and_place(text, why):
    with pytest.raises(ContractError) as caught:
        load(text, LETS)
    assert str(caught.value).startswith("f.yaml: tool t: ")
    assert why in str(caught.value)


@pytest.mark.parametrize(("text", "place"), [
    ("returns: cd: no such file", "f.yaml:1:12"),
    ("requires:\n  - check: 'x' in s\n    error: x", "f.yaml:2:16"),
    ("returns: {{ x }}", "f.yaml:1:1"), ("let: {a: 1, a: 2}", "f.yaml:1:13"),
])  # fmt: skip
def test_trap_1_yaml_that_means_something_else_is_refused_with_its_place(text, place):
    with pytest.raises(ToolkitError) as caught:
        load(text)
    assert str(caught.value).startswith(place)


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


def test_trap_8_a_let_is_evaluated_once_and_on_the_state_before():
    data = {
        "let": {"id": "{{ new_id('o_') }}", "other": "{{ new_id('o_') }}", "count": "{{ len(state.orders) }}"},
        "requires": [{"check": "id != other", "error": "x"}],
        "effects": [{"op": "add", "path": ["orders", "{{ id }}"], "value": {"other": "{{ other }}"}}],
        "returns": {"id": "{{ id }}", "count": "{{ count }}", "now": "{{ len(state.orders) }}"},
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


def test_an_invariant_holds_of_every_state_and_sees_the_one_before():
    invariant = Invariant.load(
        {"check": "state.balance >= 0", "error": "overdrawn by {{ -state.balance }}"}, where="f.yaml: invariant 0"
    )
    assert invariant.violation({"balance": 5}, {"balance": 0}) is None
    assert invariant.violation({"balance": 5}, {"balance": -3}) == "overdrawn by 3"
    with pytest.raises(EvaluationFailed, match=r"invariant 0\.check: state\.balance is undefined"):
        invariant.violation({}, {})
    grows = Invariant.load({"check": "len(here) >= len(before.log)", "error": "the log shrank"},
                           lets={"here": "{{ state.log }}", "unused": "{{ args.x }}"}, where="f")  # fmt: skip
    assert grows.violation({"log": [1]}, {"log": [1, 2]}) is None
    assert grows.violation({"log": [1]}, {"log": []}) == "the log shrank"


def test_an_invariant_cannot_use_a_let_about_a_call():
    lets = {"who": "{{ args.user }}", "them": "{{ [who] }}"}
    with pytest.raises(ContractError, match="f: the let 'who' uses 'args', not available in an invariant"):
        Invariant.load({"check": "them", "error": "x"}, lets=lets, where="f")
    with pytest.raises(ContractError, match="f: unknown key 'effects'"):
        Invariant.load({"check": "True", "error": "x", "effects": []}, where="f")
    with pytest.raises(ContractError, match=r"f\.check: unknown name 'args'"):
        Invariant.load({"check": "args.x", "error": "x"}, where="f")


def test_a_call_leaves_nothing_for_the_garbage_collector():
    contract = load(MKDIR, LETS)
    gc.freeze()  # what was there before is not searched
    run = opened(contract, name="b")
    assert run.refusal() is None
    assert run.violations({}, apply_patch(STATE, run.answer().patch)) == []
    del run
    assert gc.collect() == 0
