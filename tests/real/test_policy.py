"""Which calls are asked about, and how the answers of people and programs are read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph import GeckoError, Tool, Toolkit
from gecko_graph.real.decisions import read_decisions
from gecko_graph.real.policy import DECISIONS, ReviewPolicy
from gecko_graph.real.preview import fence
from gecko_graph.values.digest import open_json
from gecko_graph.values.notes import note

EFFECTS = {"look": "read", "order": "write", "cancel": "write"}
BOUND = {"argument": "/id", "sources": []}
MADE_UP = note("made_up", "nothing real supports it", "/phone", value="555-0199-22")


def toolkit() -> Toolkit:
    def look() -> str: ...
    def order(amount: int = 0) -> str: ...
    def cancel(id: str = "") -> str: ...
    def odd() -> str: ...

    tools: list[Any] = [look, order, cancel, odd, {"name": "unreal", "description": "", "parameters": {}}]
    return Toolkit.from_tools(tools).declare(*(Tool(name, effect=effect) for name, effect in EFFECTS.items()))


def word(interrupt_on: Any, name: str, *, state: dict | None = None, args: dict | None = None, **rests: Any) -> str:
    tools = toolkit()
    planned: Any = {"call": {"id": "c", "name": name, "args": args or {}}, "ambiguous": [], **rests}
    return ReviewPolicy.load(interrupt_on, tools).word(planned, tools[name], state or {})[0]


@pytest.mark.parametrize(
    ("interrupt_on", "expected"), [("writes", "allow ask ask"), ("all", "ask ask ask"), ("none", "allow allow allow")]
)
def test_the_words(interrupt_on, expected):
    assert [word(interrupt_on, name) for name in ("look", "order", "odd")] == expected.split()
    assert word(interrupt_on, "unreal") == "refuse"


def test_langchains_dict():
    given = {"order": {"allowed_decisions": ["approve", "reject"], "description": "Is it in budget?"}, "odd": True}
    policy = ReviewPolicy.load({"rules": {**given, "cancel": False}, "max_age": 60}, toolkit())
    assert [word(given, name) for name in ("look", "order", "cancel", "odd")] == ["allow", "ask", "allow", "ask"]
    assert word(given, "cancel", notes=[MADE_UP]) == "ask", "also where LangChain would make the call"
    assert (policy.max_age, policy.allowed("order")) == (60, ["approve", "reject"])
    assert [*policy.allowed("odd")] == [*policy.allowed("look")] == [*DECISIONS]


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


@pytest.mark.parametrize("when", ["state.gone.deeper > 1", "args.missing == 1", "len(args.amount) > 2"])
def test_a_condition_that_cannot_be_evaluated_asks(when):
    rules = [{"tool": "order", "then": "allow"}, {"tool": "order", "when": when, "then": "allow"}]
    assert word(rules, "order", args={"amount": 3}) == "ask"


def test_what_nothing_real_supports_is_asked_about_and_refused_where_nobody_is():
    for found in (MADE_UP, note("unclear", "state.x is undefined")):
        doubt = {"notes": [found]}
        assert word("writes", "order", **doubt) == "ask"
        assert word("none", "order", **doubt) == "refuse"
        assert word("none", "look", **doubt) == "allow"
        assert word([{"tool": "order", "then": "allow"}], "order", **doubt) == "allow"


@pytest.mark.parametrize("interrupt_on", ["none", "writes", [{"then": "allow"}]])
def test_an_uncertain_source_is_asked_about_whatever_the_policy(interrupt_on):
    assert word(interrupt_on, "look", ambiguous=[BOUND]) == "ask"


@pytest.mark.parametrize(
    ("interrupt_on", "why"),
    [
        ("writs", "expected 'writes', 'all', 'none'"),
        ([], "rules such as"),
        ({}, "LangChain's dict such as"),
        (["writes"], "rule 1:"),
        ([{"tool": "order", "then": "deny"}], "'allow', 'ask' or 'refuse', got 'deny'"),
        ([{"then": "ask"}, {"tol": "order", "then": "ask"}], "rule 2: 'tol'"),
        ([{"tool": "ordr", "then": "refuse"}], "no tool matches 'ordr'.*did you mean order"),
        ([{"tool": "order", "when": "args.x >", "then": "ask"}], "rule 1, `when`"),
        ([{"tool": "order", "when": "before.x", "then": "ask"}], "before"),
        ({"rules": "writes", "max_age": 0}, "max_age"),
        ({"rules": "writes", "order": True}, "'order'"),
        ({"ordr": True}, "did you mean order"),
        ({"order": {"allowed_decisions": ["approve", "ignore"]}}, "allowed_decisions"),
        ({"order": {"allowed_decisions": ["approve"], "when": print}}, "write a rule"),
        ({"order": {"allowed_decisions": ["approve"], "description": print}}, "description"),
    ],
)
def test_a_policy_that_cannot_be_used_says_why(interrupt_on, why):
    with pytest.raises(GeckoError, match=why):
        ReviewPolicy.load(interrupt_on, toolkit())


def place(item: str, quantity: int) -> str:
    """Order an item."""
    return item


TOOLS = Toolkit.from_tools([Tool(place, effect="write")])
CALL = {"id": "c1", "name": "place", "args": {"item": "pen", "quantity": 3}}
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(DECISIONS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
actions = st.fixed_dictionaries({"name": st.just("place") | st.text(max_size=5), "args": values}) | values
decisions = st.fixed_dictionaries(
    {"type": st.sampled_from(DECISIONS) | values}, optional={"message": values, "edited_action": actions}
)


@given(values | st.fixed_dictionaries({"decisions": st.lists(decisions | values, max_size=3) | values}))
def test_any_answer_is_read_or_refused_with_why(answer):
    read, problem = read_decisions(answer, [CALL], TOOLS, [DECISIONS])
    assert bool(problem) != (len(read) == 1)
    if read and read[0]["type"] == "edit":
        assert read[0]["edited_action"]["name"] == "place"


@pytest.mark.parametrize(
    ("text", "words"), [("[1]", [1]), ('{"a": 1}', {"a": 1}), ("12", "12"), ("{", "{"), ('"a"', '"a"'), ("", "")]
)
def test_words_that_spell_an_object_or_list_are_one(text, words):
    assert open_json(text) == words


@given(st.text(alphabet="`a\n", max_size=20))
def test_nothing_in_a_text_ends_its_fence(text):
    first, *lines, last = fence(text).split("\n")
    assert first == last
    assert not any(line.startswith(first) for line in lines)
