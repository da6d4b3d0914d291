"""Which calls are asked about: the words, rules in their order, and what nothing real supports."""

from __future__ import annotations

from typing import Any

import pytest

from gecko_graph import GeckoError, Toolkit
from gecko_graph.real.policy import ReviewPolicy

EFFECTS = {"look": "read", "order": "write", "cancel": "write"}
BOUND = {"argument": "$.id", "sources": []}
MADE_UP = {"argument": "$.phone", "value": "555-0199-22"}


def toolkit() -> Toolkit:
    def look() -> str: ...
    def order(amount: int = 0) -> str: ...
    def cancel(id: str = "") -> str: ...
    def odd() -> str: ...

    tools: list[Any] = [look, order, cancel, odd]
    return Toolkit.from_tools([*tools, {"name": "unreal", "description": "", "parameters": {}}], effects=EFFECTS)


def word(review: Any, name: str, *, state: dict | None = None, args: dict | None = None, **rests: Any) -> str:
    tools = toolkit()
    planned: Any = {"call": {"id": "c", "name": name, "args": args or {}}, "ambiguous": [], "made_up": [], **rests}
    return ReviewPolicy.load(review, tools).word(planned, tools[name], state or {})[0]


@pytest.mark.parametrize(
    ("review", "expected"),
    [("writes", "allow ask ask"), ("all", "ask ask ask"), ("none", "allow allow allow")],
)
def test_the_words(review, expected):
    assert [word(review, name) for name in ("look", "order", "odd")] == expected.split()
    assert word(review, "unreal") == "refuse"


def test_the_last_rule_that_applies_decides_and_without_one_it_is_asked():
    rules = [
        {"tool": "*", "then": "refuse"},
        {"tool": "c*", "then": "allow"},
        {"tool": "cancel", "when": "args.id == state.last", "then": "ask"},
    ]
    assert word(rules, "order") == "refuse"
    assert word(rules, "cancel", args={"id": "1"}, state={"last": "2"}) == "allow"
    assert word(rules, "cancel", args={"id": "1"}, state={"last": "1"}) == "ask"
    assert word(rules[1:], "order") == "ask"


@pytest.mark.parametrize("when", ["state.gone.deeper > 1", "args.missing == 1", "args.amount | length > 2"])
def test_a_condition_that_cannot_be_evaluated_asks(when):
    rules = [{"tool": "order", "then": "allow"}, {"tool": "order", "when": when, "then": "allow"}]
    assert word(rules, "order", args={"amount": 3}) == "ask"


def test_what_nothing_real_supports_is_asked_about_and_refused_where_nobody_is():
    for doubt in ({"made_up": [MADE_UP]}, {"unclear": ["state.x is undefined"]}):
        assert word("writes", "order", **doubt) == "ask"
        assert word("none", "order", **doubt) == "refuse"
        assert word("none", "look", **doubt) == "allow"
        assert word([{"tool": "order", "then": "allow"}], "order", **doubt) == "allow"


@pytest.mark.parametrize("review", ["none", "writes", [{"then": "allow"}]])
def test_an_uncertain_source_is_asked_about_whatever_the_policy(review):
    assert word(review, "look", ambiguous=[BOUND]) == "ask"


@pytest.mark.parametrize(
    ("review", "why"),
    [
        ("writs", "did you mean writes"),
        (True, "one of writes, all, none"),
        ([], "rules such as"),
        (["writes"], "rule 1: expected a rule"),
        ([{"tool": "order"}], "rule 1: expected `then`"),
        ([{"tool": "order", "then": "deny"}], "allow, ask, refuse"),
        ([{"then": "ask"}, {"tol": "order", "then": "ask"}], "rule 2: unknown key 'tol'.*did you mean tool"),
        ([{"tool": "ordr", "then": "refuse"}], "no tool matches 'ordr'.*did you mean order"),
        ([{"tool": 3, "then": "refuse"}], "`tool` to be a text"),
        ([{"tool": "order", "when": "args.x >", "then": "ask"}], "rule 1, `when`"),
        ([{"tool": "order", "when": "before.x", "then": "ask"}], "before"),
        ([{"tool": "order", "when": True, "then": "ask"}], "`when` to be a text"),
        ({"rules": "writes", "max_age": 0}, "max_age"),
        ({"rules": "writes", "max_age": True}, "max_age"),
        ({"rule": "writes"}, "unknown key 'rule'"),
    ],
)
def test_a_policy_that_cannot_be_used_says_why(review, why):
    with pytest.raises(GeckoError, match=why):
        ReviewPolicy.load(review, toolkit())
