"""The expression language: what it can say, what it refuses at load, what it fails on."""

from __future__ import annotations

import contextlib
import string
from itertools import pairwise

import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph.errors import ContractError, EvaluationFailed
from gecko_graph.world.expression import CHECK_NAMES, Expression, Limits, Scope, check_expression
from gecko_graph.world.value import Place, Value

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


def fill(data, **values):
    scope = Scope({"state": STATE, **values})
    return Value.load(data, Place("f: tool t: here", frozenset(scope.values))).fill(scope)


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
        ("index(state.names, 'alice')", 1),
        ("index('abc', 'c')", 2),
        ("index(state.names, 'x') is defined", False),
        ("range(3)", [0, 1, 2]),
        ("range(1, 8, 3) + range(3, 0, -1) + range(5, 2)", [1, 4, 7, 3, 2, 1]),
        ("money(1.005)", 1.01),
        ("money(0.1 + 0.2)", 0.3),
        ("money(-2.675)", -2.68),
        ("(3 * 0.1) | money", 0.3),
        ("' a b '.strip().split()", ["a", "b"]),
        ("'a,b,c'.split(',', 1)", ["a", "b,c"]),
        ("'xxaxx'.lstrip('x') ~ 'a//'.rstrip('/')", "axxa"),
        ("'Ab'.lower() ~ 'Ab'.upper()", "abAB"),
        ("'ab'.startswith('a') and 'ab'.endswith('b') and '12'.isdigit()", True),
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
        ("state['items'] | values | sort(attribute='price,qty') | map(attribute='qty')", [2, 1]),
        ("['a', 'A', 'b'] | unique", ["a", "b"]),
        ("['a', 'A', 'b'] | unique(case_sensitive=true) | length", 3),
        ("state['items'] | values | unique(attribute='qty') | length", 2),
        ("[2, 1.5, 3] | min + [2, 1.5, 3] | max", 4.5),
        ("['b', 'A'] | min", "A"),
        ("state['items'] | values | max(attribute='price') == state['items']['7']", True),
        ("[] | max is undefined", True),
        ("[1, 2.5] | sum", 3.5),
        ("state['items'] | values | sum(attribute='qty', start=10)", 13),
        ("-3 | abs + 3", 6),
        ("(-3) | abs", 3),
        ("2.567 | round(2) + 2.5 | round + 2.1 | round(0, 'ceil') + 2.9 | round(method='floor')", 2.57 + 2.0 + 3.0 + 2),
        ("7 | round", 7),
        ("'12' | int + 3.9 | int + true | int", 16),
        ("' -7 ' | int", -7),
        ("'x' | int(0)", 0),
        ("'1.5' | float + 2 | float", 3.5),
        ("'x' | float(none)", None),
        ("1.005 | fixed ~ ' ' ~ 2 | fixed(1) ~ ' ' ~ 2.5 | fixed(0)", "1.00 2.0 2"),
        ("['a', 1, none] | join('-')", "a-1-None"),
        ("state['items'] | values | join(',', attribute='qty')", "2,1"),
        ("{'a': [1, 'ä']} | tojson", '{"a": [1, "ä"]}'),
        ("{'a': [1, 'x', none, true]} | string", "{'a': [1, 'x', None, True]}"),
        ("'aXbX' | replace('X', '--') ~ 'aXbX' | replace('X', '', 1)", "a--b--abX"),
        ("state.text | lines", ["one", "two three"]),
        ("'äb' | bytes", 3),
        ("state['items'] | keys", ["1", "7"]),
        ("{'a': 1} | items", [{"key": "a", "value": 1}]),
        ("['a', 'b', 'c'] | interleave('contents')", ["a", "contents", "b", "contents", "c"]),
        ("[] | interleave('x')", []),
        ("state.names | map('upper')", ["BOB", "ALICE", "CAROL"]),
        ("['a-b', 'c-d'] | map('replace', '-', '+') | join", "a+bc+d"),
        ("[[1, 2], [3]] | map('map', 'string') | map('join')", ["12", "3"]),
        ("state.deep.a.b | map(attribute='c')", [1, 2]),
        ("[{'a': [5]}, {}] | map(attribute='a.0', default=0)", [5, 0]),
        ("[[1, 2], [3, 4]] | map(attribute=1)", [2, 4]),
        ("range(6) | select('odd') + range(6) | reject('odd')", [1, 3, 5, 0, 2, 4]),
        ("[0, 1, '', 'a', none] | select", [1, "a"]),
        ("[0, 1] | reject", [0]),
        ("range(5) | select('>', 2) | list", [3, 4]),
        ("['abc', 'xb'] | select('containing', 'b') | reject('startingwith', 'x')", ["abc"]),
        ("['abc', 'xb'] | select('endingwith', 'b')", ["xb"]),
        ("['a', 'b'] | select('in', ['b'])", ["b"]),
        ("state['items'] | items | selectattr('value.qty', 'eq', 1) | map(attribute='key')", ["7"]),
        ("state['items'] | values | rejectattr('tags') | length", 1),
        ("[{'a': 1}, {}] | selectattr('a', 'defined') | length", 1),
        ("2 is even and 3 is odd and 9 is divisibleby 3 and 9 is not divisibleby(2)", True),
        ("1 is integer and 1.0 is float and 1 is number and 'a' is string and {} is mapping", True),
        ("true is boolean and true is true and false is false and none is none and true is not integer", True),
        ("[] is sequence and 'a' is iterable and 'a' is lower and 'A' is upper", True),
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
        ("nme", "unknown name 'nme'; did you mean 'name'?"),
        ("self", "unknown name 'self'"),
        ("loop.index", "unknown name 'loop'"),
        ("state | lenght", "unknown filter 'lenght'; did you mean 'length'?"),
        ("state is definde", "unknown test 'definde'; did you mean 'defined'?"),
        ("wlak(state)", "unknown function 'wlak'; did you mean 'walk'?"),
        ("'a'.title()", "unknown text method 'title'"),
        ("state | round(1, 2, 3)", "round: too many positional arguments"),
        ("state | replace('a')", "replace: missing a required argument: 'new'"),
        ("state | join(seperator='x')", "join: got an unexpected keyword argument"),
        ("walk()", "walk: missing a required argument"),
        ("2 ** 3", "there are no powers"),
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
        ("[{}] | map(attribute='a')", "the item's a is undefined"),
        ("[{}] | selectattr('a')", "the item's a is undefined"),
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
        ("'abc' | map('upper')", "needs a list, not a text; `| list` gives its letters"),
        ("state | sort", "needs a list, not an object; use `| keys`"),
        ("[1, 'a'] | sort", "only numbers or only texts have an order"),
        ("[none] | min", "only numbers or only texts"),
        ("[[1]] | unique", "unique needs texts or numbers"),
        ("[1, 'a'] | sum", "sum needs a number"),
        ("'abc' | sum", "sum needs a list"),
        ("at(state, 'cwd')", "a path needs a list, not a text"),
        ("at(state, [1.5])", "a path needs texts and whole numbers"),
        ("at(state, [state.no])", "state.no is undefined"),
        ("state.names.upper()", "upper needs a text, not a list"),
        ("state.split()", "split needs a text, not an object"),
        ("'a'.split('')", "separator"),
        ("range(1, 2, 0)", "must not be zero"),
        ("range()", "one to three"),
        ("range('a')", "whole number"),
        ("[1][::0]", "step 0"),
        ("[1]['a':]", "a slice needs whole numbers"),
        ("5[1:]", "the value needs a list or a text"),
        ("money('5')", "money needs a number"),
        ("1 | round(1, 'up')", "round knows"),
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


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("plain", "plain"),
        ("{{ state.cwd }}", ["a"]),
        ("{{ 1 }}", 1),
        ("{{- 1 -}}", 1),
        ("{{ none }}", None),
        (" {{ 1 }}", " 1"),
        ("{{ 1 }}{{ 2 }}", "12"),
        ("{{ {'a': {'b': 1}} }}", {"a": {"b": 1}}),
        ("{{ '{{' }}x}}", "{{x}}"),
        ("50 {{ '{%' }} off", "50 {% off"),
        ("a\n{{ 1 }}\n", "a\n1\n"),
        (["{{ 1 }}", {"{{ state._id }}": "{{ 2 }}"}, 3, None, True, 1.5], [1, {"k1": 2}, 3, None, True, 1.5]),
        ({"for_each": "range(3)", "value": "{{ item * 2 }}"}, [0, 2, 4]),
        ({"for_each": "range(6)", "when": "n > 3", "as": "n", "value": {"n": "{{ n }}"}}, [{"n": 4}, {"n": 5}]),
        ({"for_each": "[[1, 2], [3]]", "value": {"for_each": "item", "value": "{{ item }}"}}, [[1, 2], [3]]),
        (
            {"for_each": "[1, 2]", "as": "x", "value": {"for_each": "[10, 20]", "as": "y", "value": "{{ x + y }}"}},
            [[11, 21], [12, 22]],
        ),
        ({"cases": [{"when": "state.none", "value": 1}, {"when": "state.flag", "value": 2}, {"value": 3}]}, 2),
        ({"cases": [{"when": "state.none", "value": 1}, {"value": {"x": "{{ state._id }}"}}]}, {"x": "k1"}),
        ({"a": {"cases": [{"value": {"for_each": "[1]", "value": "{{ item }}"}}]}}, {"a": [1]}),
        ("{{ {'cases': 1} }}", {"cases": 1}),
        ({}, {}),
        ([], []),
    ],
)  # fmt: skip
def test_values_are_filled_in(data, value):
    assert fill(data) == value


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"a": ["x", "{{ nope }}"]}, "here.a[1]: unknown name 'nope'"),
        ("{% set x = 1 %}", "only {{ }} is filled in"),
        ("{{ 1 }}{% raw %}x{% endraw %}", "only {{ }} is filled in"),
        ("{# note #}", "only {{ }} is filled in"),
        ("{{ 1 ", "unexpected end"),
        ("{{ 1 }}{{", "unexpected end"),
        ({"{{ x }}": 1}, "unknown name 'x'"),
        ({1: 2}, "the key 1 is no text"),
        ({"for_each": "state.names"}, "'value' is missing"),
        ({"for_each": ["a"], "value": 1}, "must be an expression, written as a text, not list"),
        ({"for_each": "[1]", "as": "no name", "value": 1}, "must be a name"),
        ({"for_each": "[1]", "as": "state", "value": 1}, "already the name"),
        ({"for_each": "[1]", "as": "a", "value": "{{ item }}"}, "unknown name 'item'"),
        ({"for_each": "[1]", "valu": 1, "value": 1}, "unknown key 'valu'; did you mean 'value'?"),
        ({"cases": []}, "must be a list of {when, value}"),
        ({"cases": [{"value": 1}, {"value": 2}]}, "here.cases[0]: `when` is missing"),
        ({"cases": [{"when": "1"}]}, "'value' is missing"),
        ({"cases": [1]}, "must be an object"),
        ({"cases": [{"when": "1", "value": 1}], "else": 2}, "unknown key 'else'"),
        ({1, 2}, "set is no JSON value"),
        ("{{ " + "1 + " * 60 + "1 }}", "nested more than 50 levels"),
    ],
)
def test_values_that_are_refused_at_load(data, why):
    with pytest.raises(ContractError) as caught:
        fill(data)
    assert str(caught.value).startswith("f: tool t: here")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("{{ state.no }}", "state.no is undefined"),
        ("x {{ state.no }}", "state.no is undefined"),
        ({"a": {"b": "{{ state.no }}"}}, "here.a.b: state.no is undefined"),
        (["{{ state.no }}"], "here[0]: state.no is undefined"),
        ({"cases": [{"when": "false", "value": 1}]}, "when none holds"),
        ({"{{ state.names }}": 1}, "a key must be a text"),
        ({"for_each": "state.text", "value": 1}, "for_each needs a list, not a text"),
        ({"for_each": "state", "value": 1}, "use `| keys`, `| values` or `| items`"),
        ({"for_each": "state.no", "value": 1}, "state.no is undefined"),
    ],
)
def test_values_that_cannot_be_filled_in(data, why):
    with pytest.raises(EvaluationFailed) as caught:
        fill(data)
    assert str(caught.value).startswith("f: tool t: here")
    assert why in str(caught.value)


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
    with pytest.raises(EvaluationFailed, match="answer is not given"):
        check_expression("answer", where="t").evaluate(Scope({}))


def test_what_an_expression_mentions():
    source = "state.a.b ~ before['c'] ~ at(state, ['d', name]) ~ args.x ~ state[name] ~ at(state, name)"
    found = Expression.compile(source, names=("state", "before", "args", "name"), where="t")
    assert (found.state_keys, found.arguments) == ({"a", "c", "d"}, {"x"})
    assert found.names == {"state", "before", "args", "name"}


def test_checks_of_a_checklist():
    scope = Scope({"state": {"n": 1}, "before": {"n": 0}, "calls": [{"name": "ls"}], "answer": "Done."})
    assert check_expression("state.n > before.n and calls | length == 1 and 'Done' in answer", where="t").holds(scope)
    assert not check_expression("'rm' in calls | map(attribute='name')", where="t").holds(scope)
    with pytest.raises(ContractError, match="item 3: unknown name 'args'; known here: answer, before, calls, state"):
        check_expression("args.x", where="item 3")
    assert CHECK_NAMES == ("state", "before", "calls", "answer")


def test_a_check_that_is_undefined_is_a_failure_and_not_false():
    with pytest.raises(EvaluationFailed, match=r"state\.user is undefined, in `state\.user\.premium`"):
        check_expression("state.user.premium", where="t").holds(Scope({"state": {}}))


def test_limits_can_be_set():
    small = Limits(memory=1000, items=10)
    for source, why in [("range(11)", "more than 10 items"), ("'x' ~ state.text", "more than 0.001 MB")]:
        with pytest.raises(EvaluationFailed, match=why):
            Expression.compile(source, names=("state",), where="t").evaluate(
                Scope({"state": {"text": "y" * 2000}}, small)
            )


# The grammar is Jinja2's, and so is the meaning of what both have.

literals = st.one_of(
    st.integers(-50, 50), st.booleans(), st.none(), st.sampled_from(["a", "B", "a-b", "", "12"]),
    st.lists(st.integers(0, 9), max_size=4), st.lists(st.sampled_from(["x", "Y", "z"]), max_size=4),
)  # fmt: skip
shared_forms = st.sampled_from(
    [
        "a ~ b", "a == b", "a != b", "a and b", "a or b", "not a", "a if b else c", "a in [b, c]", "[a, b, c] | length",
        "a | string", "[a, b] | map('string') | join(',')", "{'k': a}.k", "[a, b, c][1:]", "[a, b][-1]",
        "a is none", "a is string", "a is number", "a is mapping", "a is sequence", "a is boolean", "a is integer",
        "a | default(b)", "a | default(b, true)", "[a, b, c] | select | list", "[a, b, c] | reject | list",
        "[[a, 1], [b, 2]] | map(attribute=0) | list", "[{'x': a}, {'x': b}] | selectattr('x') | list",
        "[{'x': a}, {'x': b}] | map(attribute='x') | list", "[a, b, c] | first", "[a, b, c] | last",
        "[a, b, c] | select('eq', a) | list", "[a, b, c] | reject('in', [b]) | list", "n + m * 2 - n // 3", "n % 7",
        "n < m", "n >= m > 0", "-n", "n | abs", "[n, m, 3] | sort | list", "[n, m] | sum", "[n, m] | max",
        "[n, m] | min", "n | round(1)", "(n / 4) | round(1, 'floor')", "n is even", "n is divisibleby 3",
        "s.upper() ~ s | lower", "s.split('-')", "s | replace('a', 'bc')", "s.startswith('a')", "s[::2]", "s[0:1]",
        "t | sort | list", "t | sort(reverse=true) | list", "t | unique | list", "t | join('+')",
        "t | map('upper') | list",
        "t | sort(case_sensitive=true) | list", "'x' in t", "'-' in s", "s is lower",
    ]
)  # fmt: skip


@settings(max_examples=300)
@given(shared_forms, literals, literals, literals, st.integers(-20, 20), st.integers(1, 20), st.data())
def test_what_jinja2_has_means_what_it_means_there(source, a, b, c, n, m, data):
    values = {"a": a, "b": b, "c": c, "n": n, "m": m}
    values["s"] = data.draw(st.sampled_from(["a-b", "Abc", "", "xyz-a"]))
    values["t"] = data.draw(st.lists(st.sampled_from(["x", "Y", "z", "y"]), max_size=4))
    expected = jinja2.Environment().compile_expression(source, undefined_to_none=False)(**values)
    got = Expression.compile(source, names=values, where="t").evaluate(Scope(values))
    assert got == expected
    assert type(got) is type(expected)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60)
@given(json_values)
def test_a_state_comes_out_as_it_went_in(value):
    scope = Scope({"state": value})
    same = Expression.compile("state == other", names=("state", "other"), where="t")
    assert Expression.compile("state", names=("state",), where="t").evaluate(scope) == value
    assert same.evaluate(
        Scope({"state": value, "other": Expression.compile("state", names=("state",), where="t").evaluate(scope)})
    )
    assert Expression.compile("state | string", names=("state",), where="t").evaluate(scope) == str(value)


@settings(max_examples=60)
@given(json_values)
def test_walk_finds_everything_in_order_and_at_finds_it_again(value):
    scope = Scope({"state": value})
    found = Expression.compile("walk(state)", names=("state",), where="t").raw(scope)
    at = Expression.compile("at(state, path)", names=("state", "path"), where="t")
    for one in found:
        assert at.raw(Scope({"state": value, "path": one["path"]})) is one["value"]
        assert one["path"][-1] == one["key"]
    parents = [one["path"] for one in found]
    assert all(len(after) <= len(before) + 1 for before, after in pairwise(parents))


@settings(max_examples=150)
@given(st.text(st.sampled_from(list("{}%#|.()[]'\"_, +-*/~=<>!inabos123 ")), max_size=30))
def test_any_source_is_an_expression_or_a_clear_refusal(source):
    for compile_source in (Expression.compile, Expression.compile_text):
        with contextlib.suppress(ContractError):
            compile_source(source, names=("a", "b"), where="f: t")
