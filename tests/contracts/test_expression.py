"""The expression language: what it can say, what it refuses at load, what it fails on."""

from __future__ import annotations

import string
import time

import pytest

from gecko_graph.contracts.language.expression import CHECK_NAMES, Expression, Limits, Scope, check_expression
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
        ("1 + 2 * 3 - 4 // 3 + 7 % 4", 9),
        ("7 / 2", 3.5),
        ("1.5 + 1", 2.5),
        ("-(2) + +3", 1),
        ("'a' ~ 1 ~ none ~ true ~ [1]", "a1NoneTrue[1]"),
        ("'a' + 'b'", "ab"),
        ("[1] + [2, 3]", [1, 2, 3]),
        ("1 < 2 <= 2 != 3 > 1 >= 1", True),
        ("'a' < 'b' and 'b' > 'a'", True),
        ("1 == 1.0 and not 1 == '1'", True),
        ("{'a': [1, {'b': 2}]} == {'a': [1, {'b': 2}]}", True),
        ("{'a': 1} == {'a': 2} or {'a': 1} == {'b': 1} or [1] == {'a': 1} or [1, 2] == [1]", False),
        ("(1, 2)", [1, 2]),
        ("{1: 'x', 'y': none}", {"1": "x", "y": None}),
        ("state.cwd or 'x'", ["a"]),
        ("state.none or 'x'", "x"),
        ("'x' if state.flag else 'y'", "x"),
        ("not state.none", True),
        ("'a' in state.cwd and 'b' not in state.cwd", True),
        ("'ne' in state.text and 'items' in state", True),
        ("[1] in [[1], [2]]", True),
        ("1 in state['items'] and state['items'][7].qty == 1", True),
        ("state.names[0] ~ state.names[-1]", "BobCarol"),
        ("state.names[1:]", ["alice", "Carol"]),
        ("'abcd'[::2]", "ac"),
        ("state._id", "k1"),
        ("state.keys", "a key that is also a filter's name"),
        ("state['none'] is none", True),
        ("at(state, ['deep', ['a', 'b'], 1, 'c'])", 2),
        ("at(state, ['deep', 'a', 'b', '0', 'c'])", 1),
        ("at(state, ['items', 1, 'qty'])", 2),
        ("at(state, ['no', 'where'], 5)", 5),
        ("at(state, ['no', 'where']) is defined", False),
        ("at(state.no, ['where'], none)", None),
        ("at(state.names, [])", ["Bob", "alice", "Carol"]),
        ("walk({'a': {'b': 1}, 'c': [2]}) | map(attribute='path')", [["a"], ["a", "b"], ["c"], ["c", 0]]),
        ("walk({'a': [1]}) | last", {"path": ["a", 0], "key": 0, "value": 1}),
        ("zip([1, 2], ['a', 'b', 'c'])", [[1, "a"], [2, "b"]]),
        ("zip()", []),
        ("object([['a', 1], [2, 'b'], ['a', 3]])", {"a": 3, "2": "b"}),
        ("object([])", {}),
        ("index(state.names, 'alice')", 1),
        ("[index('abc', 'a'), index('abc', 'c'), index('abc', 'x') is defined]", [0, 2, False]),
        ("index(state.names, 'x') is defined", False),
        ("range(3)", [0, 1, 2]),
        ("range(1, 8, 3) + range(3, 0, -1) + range(5, 2)", [1, 4, 7, 3, 2, 1]),
        ("money(1.005)", 1.01),
        ("money(0.1 + 0.2)", 0.3),
        ("money(-2.675)", -2.68),
        ("(3 * 0.1) | money", 0.3),
        ("' a b '.strip().split()", ["a", "b"]),
        ("'xxaxx'.strip('x') ~ 'a//'.rstrip('/')", "aa"),
        ("'Ab'.lower()", "ab"),
        ("'ab'.startswith('a') and '12'.isdigit()", True),
        ("state.no | default('d')", "d"),
        ("'' | default('d', true)", "d"),
        ("state.no | default(state.nothing) | default(1)", 1),
        ("state.names | length + (state | length) - state.text | length", 3 + len(STATE) - 14),
        ("state.names | first ~ state.names | last", "BobCarol"),
        ("[] | first is defined", False),
        ("'abc' | list | length", 3),
        ("state.names | sort", ["alice", "Bob", "Carol"]),
        ("state.names | sort(case_sensitive=true)", ["Bob", "Carol", "alice"]),
        ("[3, 1, 2] | sort(reverse=true)", [3, 2, 1]),
        ("state['items'] | values | sort(attribute='qty') | map(attribute='qty')", [1, 2]),
        ("['a', 'A', 'b'] | unique", ["a", "b"]),
        ("['a', 'A', 'b'] | unique(case_sensitive=true) | length", 3),
        ("[2, 1.5, 3] | min + [2, 1.5, 3] | max", 4.5),
        ("['b', 'A'] | min", "A"),
        ("[] | max is undefined", True),
        ("[1, 2.5] | sum", 3.5),
        ("state['items'] | values | sum(attribute='qty')", 3),
        ("-3 | abs + 3", 6),
        ("(-3) | abs", 3),
        ("2.567 | round(2) + 2.5 | round", 2.57 + 2.0),
        ("7 | round", 7),
        ("'12' | int + 3.9 | int + true | int", 16),
        ("' -7 ' | int", -7),
        ("'x' | int(0)", 0),
        ("'1.5' | float + 2 | float", 3.5),
        ("'x' | float(none)", None),
        ("1.005 | fixed ~ ' ' ~ 2 | fixed(1) ~ ' ' ~ 2.5 | fixed(0)", "1.00 2.0 2"),
        ("['a', 1, none] | join('-')", "a-1-None"),
        ("{'a': [1, 'ä']} | tojson", '{"a": [1, "ä"]}'),
        ("{'a': [1, 'x', none, true]} | string", "{'a': [1, 'x', None, True]}"),
        ("'aXbX' | replace('X', '--')", "a--b--"),
        ("state.text | lines", ["one", "two three"]),
        ("'äb' | bytes", 3),
        ("state['items'] | keys", ["1", "7"]),
        ("{'a': 1} | items", [{"key": "a", "value": 1}]),
        ("['a', 'b', 'c'] | interleave('contents')", ["a", "contents", "b", "contents", "c"]),
        ("[] | interleave('x')", []),
        ("state.names | map('lower')", ["bob", "alice", "carol"]),
        ("['a-b', 'c-d'] | map('replace', '-', '+') | join", "a+bc+d"),
        ("[[1, 2], [3]] | map('map', 'string') | map('join')", ["12", "3"]),
        ("[[1, 2], [3]] | map('select', 'gt', [0, 1] | max)", [[2], [3]]),
        ("['a', 'b'] | select('in', [{'k': 'a'}] | selectattr('k', 'in', ['a'] | list) | map(attribute='k'))", ["a"]),
        ("['a', 'a'] | map('replace', 'a', new_id('n')) | unique | length", 1),
        ("state.deep.a.b | map(attribute='c')", [1, 2]),
        ("[{'a': [5]}] | map(attribute='a.0')", [5]),
        ("[[1, 2], [3, 4]] | map(attribute=1)", [2, 4]),
        ("range(6) | select('odd') + range(6) | reject('odd')", [1, 3, 5, 0, 2, 4]),
        ("[0, 1, '', 'a', none] | select", [1, "a"]),
        ("[0, 1] | reject", [0]),
        ("range(5) | select('gt', 2) | list", [3, 4]),
        ("['abc', 'xb'] | select('containing', 'b') | reject('startingwith', 'x')", ["abc"]),
        ("['a', 'b'] | select('in', ['b'])", ["b"]),
        ("state['items'] | items | selectattr('value.qty', 'eq', 1) | map(attribute='key')", ["7"]),
        ("[{'a': 1}, {}] | selectattr('a', 'defined') | length", 1),
        ("3 is odd and 2 is not odd", True),
        ("1 is integer and 1.0 is number and 'a' is string and {} is mapping", True),
        ("none is none and true is not integer", True),
        ("[] is sequence and 'a' is sequence", True),
        ("1 is eq 1 and 1 is ne(2) and 1 is lt 2 and 2 is ge 2 and 1 is in [1]", True),
        ("state.no.such.thing is defined", False),
        ("'a' 'b'", "ab"),
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
        ("1 2", "one expression ends before 2"),
        ("1, 2", "one expression ends before"),
        ("{{ state }}", "leave out {{ }}"),
        ("'open", "unexpected char"),
        ("nme", "unknown name 'nme' (did you mean name?)"),
        ("self", "unknown name 'self'"),
        ("loop.index", "unknown name 'loop'"),
        ("state | lenght", "unknown filter 'lenght' (did you mean length?)"),
        ("state is definde", "unknown test 'definde' (did you mean defined?)"),
        ("wlak(state)", "unknown function 'wlak' (did you mean walk?)"),
        ("'a'.title()", "unknown text method 'title'"),
        ("state | round(1, 2, 3)", "round: too many positional arguments"),
        ("state | replace('a')", "replace: missing a required argument: 'new'"),
        ("state | join(seperator='x')", "join: got an unexpected keyword argument"),
        ("walk()", "walk: missing a required argument"),
        ("2 ** 3", "powers are not supported"),
        ("1 if", "unexpected"),
        ("state | map", "map needs a filter's name"),
        ("state | map(name)", "map's filter must be written as a literal text"),
        ("state | map('nope')", "unknown filter 'nope'"),
        ("state | map('replace', 'a')", "replace: missing"),
        ("state | select(name)", "select's test must be written as a literal text"),
        ("state | select('nope')", "unknown test 'nope'"),
        ("state | selectattr", "selectattr needs an attribute"),
        ("state | selectattr(name)", "an attribute must be written as a literal text"),
        ("walk(*[state])", "cannot be spread"),
        ("walk(**{'a': 1})", "cannot be spread"),
        ("state.x()", "unknown text method 'x'"),
        ("(state)(1)", "unknown function 'state'"),
        ("state[0](1)", "only functions and text methods can be called"),
        ("1e999", "not finite"),
        ("99999999999999999999999", "64 bits"),
        ("'\\ud800'", "surrogate"),
        ("a" * 10_001, "more than 10,000 characters"),
        ("(" * 500 + "1" + ")" * 500, "nested too deeply"),
        ("1" + " + 1" * 60, "nested more than 50 levels"),
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
        ("state.names[9]", "state.names[9] is undefined"),
        ("[state.no]", "state.no is undefined"),
        ("{'a': state.no}", "state.no is undefined"),
        ("state.no == 1", "state.no is undefined"),
        ("1 if state.no", "state.no is undefined"),
        ("state.no and 1", "state.no is undefined"),
        ("'x' ~ state.no", "state.no is undefined"),
        ("state.no | length", "state.no is undefined"),
        ("[1] | join(state.no)", "state.no is undefined"),
        ("[{}] | map(attribute='a')", "the item.a is undefined"),
        ("[{}] | selectattr('a')", "the item.a is undefined"),
        ("1 if false", "without `else` is undefined"),
        ("1 / 0", "division by zero"),
        ("1 // 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("'a' + 1", "+ cannot add a number to a text"),
        ("true + 1", "+ cannot add a number to true or false"),
        ("'a' * 3", "* needs a number, not a text"),
        ("[1] * 3", "* needs a number, not a list"),
        ("'%s' % 1", "% needs a number, not a text"),
        ("1 < 'a'", "< cannot compare a number with a text"),
        ("[1] < [2]", "< cannot compare a list with a list"),
        ("none > 1", "> cannot compare none with a number"),
        ("-'a'", "- needs a number"),
        ("1 in 2", "`in` needs a text, a list or an object"),
        ("1 in 'abc'", "`in` a text needs a text"),
        ("'abc' | int", "int cannot read 'abc'"),
        ("'12.0' | int", "int cannot read '12.0'"),
        ("none | int", "int cannot read none"),
        ("'nan' | float", "float cannot read 'nan'"),
        ("'1e400' | float", "not finite"),
        ("'abc' | map('lower')", "needs a list, not a text; `| list` gives its letters"),
        ("state | sort", "needs a list, not an object; use `| keys`"),
        ("[1, 'a'] | sort", "only numbers or only texts have an order"),
        ("[none] | min", "only numbers or only texts"),
        ("[[1]] | unique", "unique needs texts or numbers"),
        ("object([1])", "object needs a list of [key, value]"),
        ("object([[1.5, 1]])", "a key needs a text"),
        ("[1, 'a'] | sum", "sum needs a number"),
        ("'abc' | sum", "sum needs a list"),
        ("at(state, 'cwd' | lower)", "a path needs a list, not a text"),
        ("at(state, [1.5])", "a path needs texts and whole numbers"),
        ("at(state, [state.no])", "state.no is undefined"),
        ("state.names.lower()", "lower needs a text, not a list"),
        ("state.split()", "split needs a text, not an object"),
        ("'a'.split('')", "separator"),
        ("range(1, 2, 0)", "must not be zero"),
        ("range()", "one to three"),
        ("range('a')", "whole number"),
        ("[1][::0]", "step 0"),
        ("[1]['a':]", "a slice needs whole numbers"),
        ("5[1:]", "the value needs a list or a text"),
        ("money('5')", "money needs a number"),
        ("5 | length", "length needs"),
        ("5 | keys", "keys needs an object"),
        ("{state.names: 1}", "a key needs a text"),
        ("4611686018427387904 * 1000", "64 bits"),
        ("1e308 * 10", "not finite"),
        ("'a' is odd", "odd needs a whole number"),
        ("5 is containing 'a'", "`in` needs"),
        ("'a' is startingwith 1", "startswith needs a text"),
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


def test_new_id_is_stable_and_never_the_same_twice():
    def ids(seed, call):
        scope = Scope({}, seed=seed, call_id=call)
        ask = Expression.compile("[new_id('o_'), new_id('o_'), new_id()]", names=(), where="t")
        return ask.evaluate(scope)

    assert ids(1, "a") == ids(1, "a")
    every = ids(1, "a") + ids(2, "a") + ids(1, "b")
    assert len(set(every)) == 9
    assert all(one.startswith("o_") and len(one) == 14 for one in every if "_" in one)
    assert set("".join(every)) <= set(string.ascii_lowercase + string.digits + "_")


def test_names_that_a_scope_does_not_give_are_a_failure():
    with pytest.raises(EvaluationFailed, match="answer is not available"):
        check_expression("answer", where="t").evaluate(Scope({}))


def test_checks_of_a_checklist():
    scope = Scope({"state": {"n": 1}, "before": {"n": 0}, "calls": [{"name": "ls"}], "answer": "Done."})
    assert check_expression("state.n > before.n and calls | length == 1 and 'Done' in answer", where="t").is_true(scope)
    assert not check_expression("'rm' in calls | map(attribute='name')", where="t").is_true(scope)
    with pytest.raises(ContractError, match="item 3: unknown name 'args'; available: answer, before, calls, state"):
        check_expression("args.x", where="item 3")
    assert CHECK_NAMES == ("state", "before", "calls", "answer")


def test_a_check_that_is_undefined_is_a_failure_and_not_false():
    with pytest.raises(EvaluationFailed, match=r"state\.user is undefined, in `state\.user\.premium`"):
        check_expression("state.user.premium", where="t").is_true(Scope({"state": {}}))


def test_messages_stay_short_whatever_they_are_about():
    for source in (
        "at(state, [state.text])",
        "state" + ".aaaaaaaaaaaaaaaaaaaaaaaaaaa" * 40,
        "state[state.text]",
        "state.text | int",
    ):
        with pytest.raises(EvaluationFailed) as caught:
            Expression.compile(source, names=("state",), where="t").evaluate(Scope({"state": {"text": "x" * 100_000}}))
        assert len(str(caught.value)) < 500


def test_limits_can_be_set():
    small = Limits(memory=1000, items=10)
    for source, why in [("range(11)", "more than 10 items"), ("'x' ~ state.text", "more than 0.001 MB")]:
        with pytest.raises(EvaluationFailed, match=why):
            Expression.compile(source, names=("state",), where="t").evaluate(
                Scope({"state": {"text": "y" * 2000}}, small)
            )


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


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("'x' * 0 if false else ('x ' ~ 'y ').split()", "more than 1 items"),
        ("'xyz'.split('y')", "more than 1 items"),
        ("'x' | interleave(1) if false else 'ab' | list", "more than 1 items"),
        ('"a\nb" | lines', "more than 1 items"),
        ("walk({'a': 1, 'b': 2})", "more than 1"),
        ("[1] + [2]", "more than 1 items"),
        ("'a'.strip('" + "a" * 101 + "')", "at most 100 characters"),
        ("money(1e300)", "at most 26 digits"),
        ("1 < 2 < 1 or [] + [] == 5 | list", "list needs"),
        ("1 - 'a'", "- needs a number, not a text"),
        ("state.no[1:]", "state.no is undefined"),
    ],
)
def test_small_limits(source, why):
    with pytest.raises(EvaluationFailed, match=why):
        Expression.compile(source, names=("state",), where="t").evaluate(Scope({"state": {}}, Limits(items=1)))
