"""What an expression has in common with Python; sources and values at random; templates."""

import contextlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph.contracts.language.expression import Expression, Location, Scope
from gecko_graph.contracts.language.template import Template
from gecko_graph.errors import ContractError, EvaluationFailed
from tests.any_schema import JSON

FORMS = [
    "f'{a}{b}'", "a == b", "a != b", "a and b", "a or b", "not a", "a if b else c", "a in [b, c]", "len([a, b, c])",
    "str(a)", "','.join(str(x) for x in [a, b])", "{'k': a}['k']", "[a, b, c][1:]", "[a, b][-1]", "a is None",
    "isinstance(a, str)", "isinstance(a, (int, float))", "isinstance(a, dict)", "isinstance(a, list)",
    "isinstance(a, bool)", "[x for x in [a, b, c] if x]", "[x for x in [a, b, c] if not x]", "a and b and c or n",
    "[x for x, y in [[a, 1], [b, 2]] if y > 1]", "{x: y for x, y in zip(t, range(9))}", "bool(a)",
    "[x for x in [a, b, c] if x == a]", "n + m * 2 - n // 3", "n % 7", "n < m", "n >= m > 0", "-n", "+n", "abs(n)",
    "sorted([n, m, 3])", "sum([n, m])", "max([n, m])", "min(n, m)", "round(n / m, 1)", "round(n / m)", "n % 2 == 1",
    "s.lower() + s.upper()", "s.split('-')", "s.replace('a', 'bc')", "s.startswith('a')", "s.endswith('c')", "s[::2]",
    "s[0:1]", "sorted(t)", "sorted(t, reverse=True)", "'+'.join(t)", "[x.lower() for x in t]", "'x' in t", "'-' in s",
    "sorted(t, key=lambda x: x.lower())", "max(t, key=lambda x: x.lower(), default='')", "min([], default=a)",
    "any(x == 'x' for x in t)", "all(x != 'x' for x in t)", "any([a, b, c])", "all([a, b, c])", "sum(1 for x in t)",
    "[x + y for x in t for y in t if x < y]", "[[x for y in range(n % 3)] for x in t]", "int(n / m)", "float(n)",
    "list({'k': a}.values())", "list({'k': a}.keys())", "[[k, v] for k, v in {'k': a}.items()]", "{'k': a}.get('z', b)",
    "{'k': a}.get('z')", "s.strip('a')", "s.lstrip('a') + s.rstrip('a')", "'a\\nb'.splitlines()", "s.isdigit()",
    "list(range(n % 5, m, 2))", "a is not None and a not in [b]", "list(s)", "{'a': {'b': n}}",
]  # fmt: skip


VALUES = [
    {"a": 3, "b": 0, "c": -7, "n": 5, "m": 2, "s": "a-b", "t": ["x", "Y", "z"]},
    {"a": "a", "b": "B", "c": "", "n": -13, "m": 7, "s": "Abc", "t": []},
    {"a": [0, 1], "b": [], "c": ["x", "Y"], "n": 20, "m": 20, "s": "xyz-a", "t": ["z", "y", "x", "x"]},
    {"a": None, "b": True, "c": False, "n": 0, "m": 1, "s": "", "t": ["Y", "y"]},
    {"a": True, "b": "a", "c": True, "n": 7, "m": 14, "s": "12", "t": ["y"]},
]


@pytest.mark.parametrize("source", FORMS)
def test_an_expression_means_what_it_means_in_python(source):
    for values in VALUES:
        expected = eval(source, dict(values))
        got = Expression.compile(source, names=values, where="t").evaluate(Scope(values))
        assert got == expected
        assert type(got) is type(expected)


@given(JSON)
def test_a_state_comes_out_as_it_went_in(value):
    scope = Scope({"state": value})
    same = Expression.compile("state == other", names=("state", "other"), where="t")
    assert Expression.compile("state", names=("state",), where="t").evaluate(scope) == value
    assert same.evaluate(
        Scope({"state": value, "other": Expression.compile("state", names=("state",), where="t").evaluate(scope)})
    )
    assert Expression.compile("str(state)", names=("state",), where="t").evaluate(scope) == str(value)


@given(JSON)
def test_walk_finds_everything_in_order_and_at_finds_it_again(value):
    scope = Scope({"state": value})
    found = Expression.compile("walk(state)", names=("state",), where="t").raw(scope)
    at = Expression.compile("at(state, path)", names=("state", "path"), where="t")
    for one in found:
        assert at.raw(Scope({"state": value, "path": one["path"]})) is one["value"]
        assert one["path"][-1] == one["key"]
    parents = [one["path"] for one in found]
    assert all(len(after) <= len(before) + 1 for before, after in pairwise(parents))


@settings(max_examples=80)
@given(st.text(st.sampled_from(list("{}%#|.()[]'\"_, +-*/~=<>!inabos123 ")), max_size=30))
def test_any_source_is_an_expression_or_a_clear_refusal(source):
    for is_text in (False, True):
        with contextlib.suppress(ContractError):
            Expression.compile(source, names=("a", "b"), where="f: t", is_text=is_text)


STATE = {"cwd": ["a"], "names": ["Bob", "alice"], "_id": "k1", "text": "one\ntwo", "none": None, "flag": True}


def fill(data, **values):
    scope = Scope({"state": STATE, **values})
    return Template(data, Location("f: tool t: here", dict.fromkeys(scope.values))).fill(scope)


@pytest.mark.parametrize(("data", "value"), [
    ("{{ state.cwd }}", ["a"]), ("{{ 1 }}{{ 2 }}", "12"), ("{{ '{{' }}x}}", "{{x}}"),
    (["{{ 1 }}", {"{{ state._id }}": "{{ 2 }}"}, 3, None, True, 1.5], [1, {"k1": 2}, 3, None, True, 1.5]),
    ({"for_each": "range(3)", "value": "{{ item * 2 }}"}, [0, 2, 4]),
    ({"for_each": "range(6)", "when": "n > 3", "as": "n", "value": {"n": "{{ n }}"}}, [{"n": 4}, {"n": 5}]),
    (
        {"for_each": "[1, 2]", "as": "x", "value": {"for_each": "[10, 20]", "as": "y", "value": "{{ x + y }}"}},
        [[11, 21], [12, 22]],
    ),
    ({"cases": [{"when": "state.none", "value": 1}, {"when": "state.flag", "value": 2}, {"value": 3}]}, 2),
    ({"a": {"cases": [{"value": {"for_each": "[1]", "value": "{{ item }}"}}]}}, {"a": [1]}),
])  # fmt: skip
def test_values_are_filled_in(data, value):
    assert fill(data) == value


@pytest.mark.parametrize(("data", "why"), [
    ({"a": ["x", "{{ nope }}"]}, "here.a[1]: unknown name 'nope'"),
    ("{{ 1 }}{% raw %}x{% endraw %}", "only {{ }} is filled in"),
    ({"{{ x }}": 1}, "unknown name 'x'"), ({1: 2}, "the key 1 is not a text"),
    ({"for_each": "state.names"}, "'value' is missing"),
    ({"for_each": "[1]", "as": "no name", "value": 1}, "must be a name"),
    ({"for_each": "[1]", "as": "a", "value": "{{ item }}"}, "unknown name 'item'"),
    ({"cases": []}, "must be a list of {when, value}"),
    ({"cases": [{"value": 1}, {"value": 2}]}, "here.cases[0]: `when` is missing"),
])  # fmt: skip
def test_values_that_are_refused_at_load(data, why):
    with pytest.raises(ContractError) as caught:
        fill(data)
    assert str(caught.value).startswith("f: tool t: here")
    assert why in str(caught.value)


@pytest.mark.parametrize(("data", "why"), [
    ({"a": {"b": "{{ state.no }}"}}, "here.a.b: state.no is undefined"),
    ({"cases": [{"when": "False", "value": 1}]}, "when none is true"),
    ({"{{ state.names }}": 1}, "a key needs a text, not a list"),
    ({"for_each": "state.text", "value": 1}, "for_each needs a list, not a text"),
])  # fmt: skip
def test_values_that_cannot_be_filled_in(data, why):
    with pytest.raises(EvaluationFailed) as caught:
        fill(data)
    assert str(caught.value).startswith("f: tool t: here")
    assert why in str(caught.value)
