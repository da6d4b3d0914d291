"""What an expression mentions, what the language has in common with Jinja2, and sources and values at random."""

from __future__ import annotations

import contextlib
from itertools import pairwise

import jinja2
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph.contracts.contract import Invariant
from gecko_graph.contracts.language.expression import Expression, Scope
from gecko_graph.errors import ContractError


def test_what_an_expression_mentions():
    source = "state.a.b ~ before['c'] ~ at(state, ['d', name]) ~ args.x ~ state[name] ~ at(state, name)"
    found = Expression.compile(source, names=("state", "before", "args", "name"), where="t")
    assert {path[0] for path in found.code.paths if path} == {"a", "c", "d"}
    assert found.names == {"state", "before", "args", "name"}


# The grammar is Jinja2's, and so is the meaning of what both have.

literals = st.one_of(
    st.integers(-50, 50), st.booleans(), st.none(), st.sampled_from(["a", "B", "a-b", "", "12"]),
    st.lists(st.integers(0, 9), max_size=4), st.lists(st.sampled_from(["x", "Y", "z"]), max_size=4),
)  # fmt: skip
shared_forms = st.sampled_from(
    [
        "a ~ b", "a == b", "a != b", "a and b", "a or b", "not a", "a if b else c", "a in [b, c]", "[a, b, c] | length",
        "a | string", "[a, b] | map('string') | join(',')", "{'k': a}.k", "[a, b, c][1:]", "[a, b][-1]",
        "a is none", "a is string", "a is number", "a is mapping", "a is sequence", "a is integer",
        "a | default(b)", "a | default(b, true)", "[a, b, c] | select | list", "[a, b, c] | reject | list",
        "[[a, 1], [b, 2]] | map(attribute=0) | list", "[{'x': a}, {'x': b}] | selectattr('x') | list",
        "[{'x': a}, {'x': b}] | map(attribute='x') | list", "[a, b, c] | first", "[a, b, c] | last",
        "[a, b, c] | select('eq', a) | list", "[a, b, c] | reject('in', [b]) | list", "n + m * 2 - n // 3", "n % 7",
        "n < m", "n >= m > 0", "-n", "n | abs", "[n, m, 3] | sort | list", "[n, m] | sum", "[n, m] | max",
        "[n, m] | min", "n | round(1)", "n is odd",
        "s.lower() ~ s | lower", "s.split('-')", "s | replace('a', 'bc')", "s.startswith('a')", "s[::2]", "s[0:1]",
        "t | sort | list", "t | sort(reverse=true) | list", "t | unique | list", "t | join('+')",
        "t | map('lower') | list",
        "t | sort(case_sensitive=true) | list", "'x' in t", "'-' in s",
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
    for is_text in (False, True):
        with contextlib.suppress(ContractError):
            Expression.compile(source, names=("a", "b"), where="f: t", is_text=is_text)


def test_braces_in_a_text_literal_hide_nothing_that_an_invariant_reads():
    check = "state.note != '{{ state.a }}' and state.n > 0"
    invariant = Invariant.load({"check": check, "error": "none left"}, where="t")
    assert invariant.is_touched({"note": "", "n": 1}, {"note": "", "n": 0})
