"""Templates: JSON values with `{{ }}` filled in, lists made by `for_each`, choices made by `cases`."""

from __future__ import annotations

import pytest

from gecko_graph.contracts.language.expression import Scope
from gecko_graph.contracts.language.location import Location
from gecko_graph.contracts.language.template import Template
from gecko_graph.errors import ContractError, EvaluationFailed

STATE = {"cwd": ["a"], "names": ["Bob", "alice"], "_id": "k1", "text": "one\ntwo", "none": None, "flag": True}


def fill(data, **values):
    scope = Scope({"state": STATE, **values})
    return Template.load(data, Location("f: tool t: here", dict.fromkeys(scope.values))).fill(scope)


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
        ({1: 2}, "the key 1 is not a text"),
        ({"for_each": "state.names"}, "'value' is missing"),
        ({"for_each": ["a"], "value": 1}, "expected an expression as a text, got list"),
        ({"for_each": "[1]", "as": "no name", "value": 1}, "must be a name"),
        ({"for_each": "[1]", "as": "state", "value": 1}, "already taken"),
        ({"for_each": "[1]", "as": "a", "value": "{{ item }}"}, "unknown name 'item'"),
        ({"for_each": "[1]", "valu": 1, "value": 1}, "unknown key 'valu' (did you mean value?)"),
        ({"cases": []}, "must be a list of {when, value}"),
        ({"cases": [{"value": 1}, {"value": 2}]}, "here.cases[0]: `when` is missing"),
        ({"cases": [{"when": "1"}]}, "'value' is missing"),
        ({"cases": [1]}, "expected an object"),
        ({"cases": [{"when": "1", "value": 1}], "else": 2}, "unknown key 'else'"),
        ({1, 2}, "set is not a JSON value"),
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
        ({"cases": [{"when": "false", "value": 1}]}, "when none is true"),
        ({"{{ state.names }}": 1}, "a key needs a text, not a list"),
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
