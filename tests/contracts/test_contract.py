"""Contracts: their form, their moments, what they refuse at load, and the traps of the language."""

from __future__ import annotations

import copy
import gc
import json
from functools import partial

import pytest

from gecko_graph import Toolkit
from gecko_graph.contracts.contract import Invariant
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


# the form -----------------------------------------------------------------------------------------------------------


def test_the_design_s_contract():
    run = opened(MKDIR, LETS, name="y")
    assert run.refusal() is None
    assert run.answer() == ContractAnswer({"created": "y"}, [{"op": "add", "path": "/tree/a/y", "value": {}}])
    after = apply_patch(STATE, run.answer().patch)
    assert run.violations({"created": "y"}, after) == []
    assert [each["error"] for each in run.violations({"created": "y"}, STATE)] == ["the folder is not there"]


def test_a_requirement_that_fails_is_the_tool_s_own_error():
    assert opened(MKDIR, LETS, name="x").refusal()[:2] == ("mkdir: cannot create 'x': it exists", [])


def test_requirements_are_looked_at_in_order_and_when_they_apply():
    data = {
        "requires": [
            {"when": "args.n == 1", "check": "false", "error": "one"},
            {"check": "args.n > 2", "error": {"code": "{{ args.n }}", "text": "n is {{ args.n }}"}},
            {"check": "state.nowhere", "error": "never reached"},
        ]
    }
    assert opened(data, n=1).refusal().error == "one"
    assert opened(data, n=2).refusal().error == {"code": 2, "text": "n is 2"}
    run = opened(data, n=3)
    assert run.refusal() is None
    assert run.unclear == ["requires[2].check: state.nowhere is undefined, in `state.nowhere`"]


def test_an_error_may_change_the_state():
    data = {
        "requires": [
            {
                "check": "args.pin == 1234",
                "error": "wrong, {{ state.tries + 1 }} times now",
                "effects": [{"op": "replace", "path": ["tries"], "value": "{{ state.tries + 1 }}"}],
            }
        ]
    }
    refusal = opened(data, state={"tries": 1}, pin=1).refusal()
    assert refusal[:2] == ("wrong, 2 times now", [{"op": "replace", "path": "/tries", "value": 2}])


def test_a_contract_may_only_guard():
    guard = {"requires": [{"check": "true", "error": "x"}], "ensures": [{"check": "result.ok", "error": "not ok"}]}
    run = opened(guard)
    assert (run.refusal(), run.answer()) == (None, None)
    assert [each["error"] for each in run.violations({"ok": False}, STATE)] == ["not ok"]
    assert opened({}).answer() is None


def test_effects_without_a_result_and_a_result_without_effects():
    assert opened({"effects": []}).answer() == ContractAnswer(None, [])
    assert opened({"returns": None}).answer() == ContractAnswer(None, [])
    assert opened({"returns": "{{ state.cwd }}"}).answer() == ContractAnswer(["a"], [])


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


def test_arguments_have_their_defaults_and_absent_ones_are_none():
    parameters = {"properties": {"a": {"default": [1]}, "b": {"type": "string"}, "c": True}}
    assert opened({"returns": "{{ args }}"}, parameters=parameters).answer().result == {"a": [1], "b": None, "c": None}
    assert opened({"returns": "{{ args.a }}"}, parameters=parameters, a=2).answer().result == 2
    assert opened({"returns": "{{ args }}"}, parameters={"type": "object"}).answer().result == {}


def test_call_and_clock_are_in_scope():
    data = {"returns": ["{{ call.id }}", "{{ call.name }}", "{{ call.args.x }}", "{{ now }}"]}
    assert opened(data, now="2024-05-01T00:00:00Z", x=1).answer().result == ["c1", "t", 1, "2024-05-01T00:00:00Z"]
    assert opened({"returns": "{{ now is defined }}"}).answer().result is False


def test_a_clock_that_the_state_does_not_have_is_never_written_as_null():
    with pytest.raises(EvaluationFailed, match="the state has no clock"):
        opened({"returns": {"at": "{{ now }}"}}).answer()


@pytest.mark.parametrize(
    ("effects", "after"),
    [
        ([{"op": "add", "path": ["a/b", "{{ 'c~d' }}"], "value": 1}], {"a/b": {"c~d": 1}, "l": [1, 2], "n": 0}),
        ([{"op": "add", "path": ["l", "-"], "value": 3}], {"a/b": {}, "l": [1, 2, 3], "n": 0}),
        ([{"op": "remove", "path": ["l", 0]}], {"a/b": {}, "l": [2], "n": 0}),
        ([{"op": "remove", "path": "{{ ['l', 1] }}"}], {"a/b": {}, "l": [1], "n": 0}),
        ([{"op": "replace", "path": ["{{ ['l'] }}", [["{{ 0 }}"]]], "value": "x"}], {"a/b": {}, "l": ["x", 2], "n": 0}),
        ([{"op": "move", "from": ["l", 0], "path": ["m"]}], {"a/b": {}, "l": [2], "n": 0, "m": 1}),
        ([{"op": "copy", "from": ["l"], "path": ["a/b", "l"]}], {"a/b": {"l": [1, 2]}, "l": [1, 2], "n": 0}),
        ([{"op": "test", "path": ["n"], "value": 0}], {"a/b": {}, "l": [1, 2], "n": 0}),
        ([{"when": "state.n", "op": "remove", "path": ["l"]}], {"a/b": {}, "l": [1, 2], "n": 0}),
        (
            [{"for_each": "state.l", "when": "item > 1", "op": "add", "path": ["a/b", "{{ item }}"], "value": 2}],
            {"a/b": {"2": 2}, "l": [1, 2], "n": 0},
        ),
        (
            [{"when": "state.n == 0", "do": [
                {"op": "replace", "path": ["n"], "value": 5}, {"op": "remove", "path": ["l"]}
            ]}],
            {"a/b": {}, "n": 5},
        ),
        (
            [{"for_each": "[1, 2, 3]", "op": "replace", "path": ["n"], "value": "{{ state.n + item }}"}],
            {"a/b": {}, "l": [1, 2], "n": 6},
        ),
        (
            [{"for_each": "state.l", "as": "one", "do": [
                {"for_each": "['x', 'y']", "as": "two", "op": "add", "path": ["a/b", "{{ two ~ one }}"], "value": 0}
            ]}],
            {"a/b": {"x1": 0, "y1": 0, "x2": 0, "y2": 0}, "l": [1, 2], "n": 0},
        ),
        (
            [{"for_each": "[[1, 2], [3]]", "do": [
                {"for_each": "item", "op": "add", "path": ["l", "-"], "value": "{{ item }}"}
            ]}],
            {"a/b": {}, "l": [1, 2, 1, 2, 3], "n": 0},
        ),
        ([{"for_each": "[]", "op": "remove", "path": ["nowhere"]}], {"a/b": {}, "l": [1, 2], "n": 0}),
    ],
)  # fmt: skip
def test_effects(effects, after):
    state = {"a/b": {}, "l": [1, 2], "n": 0}
    untouched = copy.deepcopy(state)
    assert change(effects, state=state) == after
    assert state == untouched


def test_the_inner_item_hides_the_outer_one_and_gives_it_back():
    value = {
        "for_each": "[1, 2]",
        "value": {"a": "{{ item }}", "b": {"for_each": "[9]", "value": "{{ item }}"}, "c": "{{ item }}"},
    }
    assert opened({"returns": value}).answer().result == [{"a": 1, "b": [9], "c": 1}, {"a": 2, "b": [9], "c": 2}]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (effect(op="remove", path=["nowhere"]), "effects[0]: the change does not apply"),
        (effect(op="test", path=["cwd"], value=[]), "effects[0]: the change does not apply"),
        (effect(op="add", path=["{{ args.p }}"], value=1), "effects[0].path[0]: args.p is undefined"),
        (effect(op="add", path=["{{ state }}"], value=1), "a path needs texts and whole numbers, not an object"),
        (effect(op="add", path="{{ 'cwd' }}", value=1), "effects[0].path: a path needs a list, not a text"),
        (effect(op="add", path=["x"], value=["{{ state.no }}"]), "effects[0].value[0]: state.no is undefined"),
        (effect(for_each="state.cwd[0]", op="remove", path=[]), "for_each needs a list, not a text"),
        ({"returns": "{{ 1 / 0 }}"}, "returns: division by zero"),
        ({"let": {"a": "{{ state.no.no }}"}, "returns": "{{ a + 1 }}"}, "state.no is undefined"),
        ({"let": {"a": "{{ 1 / 0 }}"}, "returns": "{{ a }}"}, "let.a: division by zero"),
    ],
)  # fmt: skip
def test_a_contract_that_cannot_be_evaluated_is_no_tool_error(data, why):
    with pytest.raises(EvaluationFailed) as caught:
        opened(data).answer()
    assert str(caught.value).startswith("f.yaml: tool t: ")
    assert why in str(caught.value)


def test_a_change_that_does_not_apply_leaves_nothing_behind():
    state = {"n": 1}
    with pytest.raises(EvaluationFailed):
        change([{"op": "replace", "path": ["n"], "value": 2}, {"op": "remove", "path": ["x"]}], state=state)
    assert state == {"n": 1}


def test_results_and_patches_share_nothing_with_the_state():
    state = {"a": {"b": [1]}}
    answer = opened(
        {"effects": [{"op": "add", "path": ["c"], "value": "{{ state.a }}"}], "returns": "{{ state.a }}"}, state=state
    ).answer()
    answer.result["b"].append(2)
    answer.patch[0]["value"]["b"].append(3)
    assert state == {"a": {"b": [1]}}


def test_contracts_that_say_the_same_are_equal():
    assert load(MKDIR, LETS) == load(MKDIR, LETS)
    assert load(MKDIR, LETS) != load(MKDIR, {**LETS, "other": 1})
    assert load({"returns": 1}) != load({"returns": 2})
    assert repr(load(MKDIR, LETS)) == "Contract(let, requires, effects, returns, ensures)"


def test_what_a_contract_needs_of_the_state():
    contract = load(MKDIR, {**LETS, "unused": "{{ state.elsewhere }}"})
    assert contract.state_keys == {"tree", "cwd"}
    guarded = load({"requires": [{"check": "true", "error": "x", "effects": [{"op": "remove", "path": ["log", 0]}]}]})
    assert guarded.state_keys == {"log"}


# errors at load -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("requires: [{check: nme in here, error: x}]", "requires[0].check: unknown name 'nme'"),
        ("requires: [{check: 1 +, error: x}]", "requires[0].check: unexpected end"),
        ("requires: [{check: state | lenght, error: x}]", "unknown filter 'lenght' (did you mean length?)"),
        ("requires: [{check: '{{ here }}', error: x}]", "got '}'; this is a bare expression"),
        ("requires: [{check: here}]", "requires[0]: 'error' is missing"),
        ("requires: [{error: x}]", "requires[0]: 'check' is missing"),
        ("requires: [{check: here, error: '{{ nme }}'}]", "requires[0].error: unknown name 'nme'"),
        ("requires: [{check: here, error: x, wehn: y}]", "requires[0]: unknown key 'wehn' (did you mean when?)"),
        ("requires: [{check: result, error: x}]", "requires[0].check: unknown name 'result'"),
        ("requires: {check: here, error: x}", "requires: expected a list, got dict"),
        ("requires: [check]", "requires[0]: expected an object"),
        ("requires: [{check: [here], error: x}]", "requires[0].check: expected an expression as a text"),
        ("requires: [{check: here, error: x, effects: [{op: remove}]}]", "requires[0].effects[0]: 'path' is missing"),
        ("effects: [{op: remove, path: /tree/x}]", "effects[0].path: expected a list of tokens like"),
        ("effects: [{op: remove, path: '/tree/{{ args.x }}'}]", "effects[0].path: expected a list of tokens like"),
        ("effects: [{op: remove, path: '{{ here }}{{ here }}'}]", "effects[0].path: expected a list of tokens like"),
        ("effects: [{op: remove, path: [1.5]}]", "effects[0].path[0]: expected a token"),
        ("effects: [{op: remove, path: [true]}]", "effects[0].path[0]: expected a token"),
        ("effects: [{op: remove, path: [[x, {}]]}]", "effects[0].path[0][1]: expected a token"),
        ("effects: [{op: remove, path: {a: b}}]", "effects[0].path: expected a list of tokens or one expression"),
        ("effects: [{op: remove}]", "effects[0]: 'path' is missing"),
        ("effects: [{op: add, path: [a]}]", "effects[0]: 'value' is missing"),
        ("effects: [{op: move, path: [a]}]", "effects[0]: 'from' is missing"),
        ("effects: [{op: remove, path: [a], value: 1}]", "effects[0]: unknown key 'value'"),
        ("effects: [{op: delete, path: [a]}]", "effects[0].op: expected one of add, remove"),
        ("effects: [{op: [add], path: [a]}]", "effects[0].op: expected one of"),
        ("effects: [{path: [a]}]", "effects[0]: expected an object with `op`"),
        ("effects: [{do: [{op: delete}]}]", "effects[0].do[0].op: expected one of"),
        ("effects: [{do: [], op: add}]", "effects[0]: unknown key 'op'"),
        ("effects: [{op: remove, path: [a], as: x}]", "effects[0].as: only with `for_each`"),
        ("effects: [{op: remove, path: [a], for_each: here, as: here}]", "effects[0].as: the name 'here' is"),
        ("effects: [{op: remove, path: ['{{ item }}']}]", "effects[0].path[0]: unknown name 'item'"),
        ("effects: [{op: remove, path: ['{{ item }}'], for_each: item}]", "effects[0].for_each: unknown name 'item'"),
        ("effects: {op: remove}", "effects: expected a list"),
        ("returns: '{% if x %}'", "returns: only {{ }} is filled in"),
        ("returns: {a: [1, '{{ x }}']}", "returns.a[1]: unknown name 'x'"),
        ("returns: {cases: [{value: 1}, {value: 2}]}", "returns.cases[0]: `when` is missing"),
        ("ensures: [{check: result, error: x, effects: []}]", "ensures[0]: unknown key 'effects'"),
        ("reqires: []", "unknown key 'reqires' (did you mean requires?)"),
        ("let: [a]", "let: expected an object"),
        ("let: {a: '{{ b }}', b: '{{ c }}', c: '{{ a }}'}", "let.a: lets use one another in a cycle: a -> b -> c"),
        ("let: {a: '{{ a }}'}", "let.a: lets use one another in a cycle: a -> a"),
        ("let: {a: {cases: [{when: b, value: 1}]}, b: {for_each: a, value: 2}}", "in a cycle: a -> b -> a"),
        ("let: {state: 1}", "let.state: 'state' is reserved"),
        ("let: {item: 1}", "let.item: 'item' is reserved"),
        ("let: {walk: 1}", "let.walk: 'walk' is reserved"),
        ("let: {not: 1}", "let.not: 'not' is not a valid name"),
        ("let: {a b: 1}", "let.a b: 'a b' is not a valid name"),
        ("let: {a__b: 1}", "'a__b' is not a valid name"),
        ("let: {here: 1}", "let.here: the name is already used in x-contract-let"),
        ("let: {a: '{{ item }}'}", "let.a: unknown name 'item'"),
        ("let: {a: '{{ result }}'}", "let.a: unknown name 'result'"),
        ("[]", "expected an object with at, let, requires"),
    ],
)  # fmt: skip
def test_an_error_at_load_names_file_tool_and_place(text, why):
    with pytest.raises(ContractError) as caught:
        load(text, LETS)
    assert str(caught.value).startswith("f.yaml: tool t: ")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("lets", "why"),
    [
        ({"a": "{{ nowhere }}"}, "x-contract-let.a: unknown name 'nowhere'"),
        ({"a": "{{ b }}", "b": "{{ a }}"}, "x-contract-let.a: lets use one another in a cycle"),
        ({"args": 1}, "x-contract-let.args: 'args' is reserved"),
    ],
)
def test_shared_lets_are_checked_too(lets, why):
    with pytest.raises(ContractError, match=r"f\.yaml: tool t: ") as caught:
        load({}, lets)
    assert why in str(caught.value)


def test_in_a_toolkit_the_document_and_the_tool_are_named(tmp_path):
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "paths": {"/ls": {"get": {"operationId": "ls", "responses": {}, "x-contract": {"returns": "{{ stat.cwd }}"}}}},
    }
    path = tmp_path / "files.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ToolkitError) as caught:
        Toolkit.from_openapi(path)
    assert "files.json" in str(caught.value)
    assert "ls" in str(caught.value)
    assert "returns: unknown name 'stat' (did you mean state?)" in str(caught.value)


# invariants ---------------------------------------------------------------------------------------------------------


def test_an_invariant_holds_of_every_state():
    invariant = Invariant.load(
        {"check": "state.balance >= 0", "error": "overdrawn by {{ -state.balance }}"}, where="f.yaml: invariant 0"
    )
    assert invariant.violation({"balance": 5}, {"balance": 0}) is None
    assert invariant.violation({"balance": 5}, {"balance": -3}) == "overdrawn by 3"
    with pytest.raises(EvaluationFailed, match=r"invariant 0\.check: state\.balance is undefined"):
        invariant.violation({}, {})
    assert repr(invariant) == "Invariant(state.balance >= 0)"
    assert invariant == Invariant.load(dict(invariant.data), where="elsewhere")


def test_an_invariant_sees_the_state_before_and_lets_of_the_state_after():
    grows = Invariant.load({"check": "here | length >= before.log | length", "error": "the log shrank"},
                           lets={"here": "{{ state.log }}", "unused": "{{ args.x }}"}, where="f")  # fmt: skip
    assert grows.violation({"log": [1]}, {"log": [1, 2]}) is None
    assert grows.violation({"log": [1]}, {"log": []}) == "the log shrank"


def test_an_invariant_cannot_use_a_let_about_a_call():
    lets = {"who": "{{ args.user }}", "them": "{{ [who] }}"}
    with pytest.raises(ContractError, match="f: the let 'who' uses 'args', not available in an invariant"):
        Invariant.load({"check": "them", "error": "x"}, lets=lets, where="f")
    with pytest.raises(ContractError, match="f: unknown key 'effects'"):
        Invariant.load({"check": "true", "error": "x", "effects": []}, where="f")
    with pytest.raises(ContractError, match=r"f\.check: unknown name 'args'"):
        Invariant.load({"check": "args.x", "error": "x"}, where="f")


def test_a_call_leaves_nothing_for_the_garbage_collector():
    contract = load(MKDIR, LETS)
    gc.collect()
    run = opened(contract, name="b")
    assert run.refusal() is None
    assert run.violations({}, apply_patch(STATE, run.answer().patch)) == []
    del run
    assert gc.collect() == 0
