"""The expression language: what it can say, what it refuses at load, what it fails on."""

from __future__ import annotations

import time

import pytest

from gecko_graph.contracts.language.expression import CHECK_NAMES, Expression, Limits, Scope, check_expression
from gecko_graph.contracts.language.sandbox import MAX_DEPTH, Fault, copy_json
from gecko_graph.errors import ContractError, EvaluationFailed

STATE = {
    "cwd": ["a"],
    "items": {"1": {"qty": 2, "price": 1.5, "tags": ["x"]}, "7": {"qty": 1, "price": 10, "tags": []}},
    "names": ["Bob", "alice", "Carol"],
    "keys": "a key that is also a filter's name",
    "_id": "k1",
    "text": "one\ntwo three\n",
    "none": None,
    "flag": True,
    "deep": {"a": {"b": [{"c": 1}, {"c": 2}]}},
}


def evaluate(source: str, **values):
    scope = Scope({"state": STATE, **values})
    return Expression.compile(source, names=scope.values, where="f: tool t: here").evaluate(scope)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("[1] + [2, 3]", [1, 2, 3]),
        ("1 == 1.0 and not 1 == '1'", True),
        ("{'a': [1, {'b': 2}]} == {'a': [1, {'b': 2}]}", True),
        ("{'a': 1} == {'a': 2} or {'a': 1} == {'b': 1} or [1] == {'a': 1} or [1, 2] == [1]", False),
        ("(1, 2)", [1, 2]),
        ("'ne' in state.text and 'items' in state", True),
        ("1 in state['items'] and state['items'][7].qty == 1", True),
        ("state.names[0] ~ state.names[-1]", "BobCarol"),
        ("state._id", "k1"),
        ("at(state, ['deep', ['a', 'b'], 1, 'c'])", 2),
        ("at(state, ['no', 'where'], 5)", 5),
        ("at(state, ['no', 'where']) is defined", False),
        ("walk({'a': {'b': 1}, 'c': [2]}) | map(attribute='path')", [["a"], ["a", "b"], ["c"], ["c", 0]]),
        ("zip([1, 2], ['a', 'b', 'c'])", [[1, "a"], [2, "b"]]),
        ("object([['a', 1], [2, 'b'], ['a', 3]])", {"a": 3, "2": "b"}),
        ("index(state.names, 'alice')", 1),
        ("[index('abc', 'a'), index('abc', 'c'), index('abc', 'x') is defined]", [0, 2, False]),
        ("range(1, 8, 3) + range(3, 0, -1) + range(5, 2)", [1, 4, 7, 3, 2, 1]),
        ("money(1.005)", 1.01),
        ("(3 * 0.1) | money", 0.3),
        ("' a b '.strip().split()", ["a", "b"]),
        ("'xxaxx'.strip('x') ~ 'a//'.rstrip('/')", "aa"),
        ("'ab'.startswith('a') and '12'.isdigit()", True),
        ("state.no | default(state.nothing) | default(1)", 1),
        ("state.names | length + (state | length) - state.text | length", 3 + len(STATE) - 14),
        ("state['items'] | values | sort(attribute='qty') | map(attribute='qty')", [1, 2]),
        ("[] | max is undefined", True),
        ("'12' | int + 3.9 | int + true | int", 16),
        ("'1.5' | float + 2 | float", 3.5),
        ("1.005 | fixed ~ ' ' ~ 2 | fixed(1) ~ ' ' ~ 2.5 | fixed(0)", "1.00 2.0 2"),
        ("['a', 1, none] | join('-')", "a-1-None"),
        ("{'a': [1, 'ä']} | tojson", '{"a": [1, "ä"]}'),
        ("'äb' | bytes", 3),
        ("state['items'] | keys", ["1", "7"]),
        ("{'a': 1} | items", [{"key": "a", "value": 1}]),
        ("['a', 'b', 'c'] | interleave('contents')", ["a", "contents", "b", "contents", "c"]),
        ("['a', 'b'] | select('in', [{'k': 'a'}] | selectattr('k', 'in', ['a'] | list) | map(attribute='k'))", ["a"]),
        ("['a', 'a'] | map('replace', 'a', new_id('n')) | unique | length", 1),
        ("range(6) | select('odd') + range(6) | reject('odd')", [1, 3, 5, 0, 2, 4]),
        ("['abc', 'xb'] | select('containing', 'b') | reject('startingwith', 'x')", ["abc"]),
        ("state['items'] | items | selectattr('value.qty', 'eq', 1) | map(attribute='key')", ["7"]),
        ("[{'a': 1}, {}] | selectattr('a', 'defined') | length", 1),
        ("state.no.such.thing is defined", False),
        ("'{{ 7*7 }}'", "{{ 7*7 }}"),
        ("'x__y' in ['x__y']", True),
    ],
)  # fmt: skip
def test_what_it_can_say(source, value):
    got = evaluate(source)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("", "unexpected end"),
        ("1 +", "unexpected"),
        ("{{ state }}", "leave out {{ }}"),
        ("nme", "unknown name 'nme' (did you mean name?)"),
        ("state | lenght", "unknown filter 'lenght' (did you mean length?)"),
        ("state | round(1, 2, 3)", "round: too many positional arguments"),
        ("state | map('replace', 'a')", "replace: missing"),
        ("state | select(name)", "select's test must be written as a literal text"),
        ("state | selectattr", "selectattr needs an attribute"),
        ("1e999", "not finite"),
        ("a" * 10_001, "more than 10,000 characters"),
        ("(" * 500 + "1" + ")" * 500, "nested too deeply"),
        ("[" + "1, " * 600 + "1]", "more than 500 parts"),
    ],
)
def test_what_is_refused_at_load_says_where_and_why(source, why):
    with pytest.raises(ContractError) as caught:
        Expression.compile(source, names=("state", "name"), where="f.yaml: tool t: requires[0].check")
    assert str(caught.value).startswith("f.yaml: tool t: requires[0].check: ")
    assert why in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("state.no", "state.no is undefined"),
        ("state.deep.a.x.y", "state.deep.a.x is undefined"),
        ("[{}] | map(attribute='a')", "the item.a is undefined"),
        ("1 if false", "without `else` is undefined"),
        ("1 / 0", "division by zero"),
        ("'a' + 1", "+ cannot add a number to a text"),
        ("1 in 2", "`in` needs a text, a list or an object"),
        ("'abc' | int", "int cannot read 'abc'"),
        ("'1e400' | float", "not finite"),
        ("state | sort", "needs a list, not an object"),
        ("[1, 'a'] | sort", "only numbers or only texts have an order"),
        ("[[1]] | unique", "unique needs texts or numbers"),
        ("object([1])", "object needs a list of [key, value]"),
        ("at(state, 'cwd' | lower)", "a path needs a list, not a text"),
        ("state.names.lower()", "lower needs a text, not a list"),
        ("range(1, 2, 0)", "must not be zero"),
        ("[1][::0]", "step 0"),
        ("4611686018427387904 * 1000", "64 bits"),
    ],
)
def test_what_fails_says_where_and_why(source, why):
    with pytest.raises(EvaluationFailed) as caught:
        evaluate(source)
    assert str(caught.value).startswith("f: tool t: here: ")
    assert why in str(caught.value)
    assert str(caught.value).endswith(f"in `{source}`")


def test_a_result_shares_nothing_with_the_state():
    got = evaluate("state.deep")
    got["a"]["b"].append(1)
    assert STATE["deep"]["a"]["b"] == [{"c": 1}, {"c": 2}]
    names = evaluate("state.names | sort(case_sensitive=true)")
    names.clear()
    assert STATE["names"] == ["Bob", "alice", "Carol"]


def test_checks_of_a_checklist():
    scope = Scope({"state": {"n": 1}, "before": {"n": 0}, "calls": [{"name": "ls"}], "answer": "Done."})
    assert check_expression("state.n > before.n and calls | length == 1 and 'Done' in answer", where="t").is_true(scope)
    assert not check_expression("'rm' in calls | map(attribute='name')", where="t").is_true(scope)
    with pytest.raises(ContractError, match="item 3: unknown name 'args'; available: answer, before, calls, state"):
        check_expression("args.x", where="item 3")
    assert CHECK_NAMES == ("state", "before", "calls", "answer")


def test_time_is_the_thread_s_own():
    scope = Scope({"state": STATE}, Limits(seconds=0.02))
    slow = Expression.compile(
        "range(90000) | map('string') | select('in', range(9000) | map('string'))", names=(), where="t"
    )
    with pytest.raises(EvaluationFailed, match="it takes longer than 20 ms"):
        slow.evaluate(scope)
    assert Expression.compile("1", names=(), where="t").evaluate(scope) == 1
    scope.start()
    time.sleep(0.03)  # as if other threads had the processor
    assert Expression.compile("range(10) | length", names=(), where="t").raw(scope) == 10


def test_values_cannot_be_nested_without_end():
    deep: list = []
    for _ in range(150):
        deep = [deep]
    for source, why in [
        ("deep", "more than 100 levels"),
        ("deep | string", "more than 100 levels"),
        ("walk(deep)", "100 levels"),
        ("at({}, deep)", "a path needs texts"),
        ("at({}, range(101))", "a path of more than 100 tokens"),
    ]:
        with pytest.raises(EvaluationFailed, match=why):
            Expression.compile(source, names=("deep",), where="t").evaluate(Scope({"deep": deep}))


CHECK = Expression.compile("state.a == 1", names=["state"], where="test")


def burn(seconds):
    start = time.thread_time()
    while time.thread_time() - start < seconds:
        pass


def test_one_pause_as_of_a_collection_of_garbage_is_no_fault_of_the_evaluation_s():
    scope = Scope({"state": {"a": 1}})
    burn(0.25)
    assert CHECK.test(scope)
    burn(0.05)
    with pytest.raises(EvaluationFailed, match="takes longer than"):
        CHECK.test(scope)
    assert CHECK.is_true(scope), "the next evaluation has time of its own"


@pytest.mark.parametrize("nest", [lambda value: [value], lambda value: {"a": value}])
def test_a_value_leaves_the_sandbox_with_as_many_levels_as_the_limit_says_and_no_more(nest):
    value = 1
    for _ in range(MAX_DEPTH):
        value = nest(value)
    assert copy_json(Scope({}), value) == value
    with pytest.raises(Fault, match=str(MAX_DEPTH)):
        copy_json(Scope({}), nest(value))
