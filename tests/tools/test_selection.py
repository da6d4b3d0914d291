"""Choosing some tools of many, and the warning where there are too many."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import tool as langchain_tool

from gecko_graph.errors import ToolkitError
from gecko_graph.tools import Toolkit, ToolSpec, selection
from gecko_graph.tools.spec import HttpBinding
from tests.tools.round_trip import check
from tests.tools.small_documents import document


def tool(name, path, *tags):
    return ToolSpec(name=name, binding=HttpBinding("get", path), tags=tags, effect="read")


GITHUB = Toolkit(
    [
        tool("issues_list", "/repos/{owner}/issues", "issues"),
        tool("issues_get", "/repos/{owner}/issues/{number}", "issues"),
        tool("repos_get", "/repos/{owner}", "repos"),
        tool("orgs_issues", "/orgs/{org}/issues", "issues", "orgs"),
        ToolSpec(name="local"),
    ],
    title="GitHub",
)


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ({"names": ["local", "repos_get"]}, ["repos_get", "local"]),
        ({"names": "local"}, ["local"]),
        ({"match": "issues_*"}, ["issues_list", "issues_get"]),
        ({"match": ["issues_*", "repos_get"]}, ["issues_list", "issues_get", "repos_get"]),
        ({"tags": ["issues"]}, ["issues_list", "issues_get", "orgs_issues"]),
        ({"tags": ["orgs", "repos"]}, ["repos_get", "orgs_issues"]),
        ({"paths": ["/repos/**"]}, ["issues_list", "issues_get", "repos_get"]),
        ({"paths": ["/repos/*"]}, ["repos_get"]),
        ({"paths": ["/*/*/issues"]}, ["issues_list", "orgs_issues"]),
        ({"paths": ["/repos/{owner}/issues"]}, ["issues_list"]),
        ({"tags": ["issues"], "paths": ["/repos/**"], "match": "*_get"}, ["issues_get"]),
        ({}, list(GITHUB.names)),
    ],
)
def test_tools_are_chosen_in_their_order(chosen, names):
    assert list(GITHUB.select(**chosen).names) == names


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"names": ["issues_lst"]}, r"names: 'issues_lst' matches nothing \(did you mean issues_list\?\)"),
        ({"match": "issue_*"}, r"match: 'issue_\*' matches nothing"),
        ({"match": ["issues_*", "list*"]}, r"'list\*' matches nothing \(did you mean issues_list\?\)"),
        ({"tags": ["issue"]}, r"tags: 'issue' matches nothing \(did you mean issues\?\)"),
        ({"tags": ["zzz"]}, "there are issues, repos, orgs"),
        ({"names": [3]}, "names: expected text, got int"),
        ({"paths": ["/nowhere/**"]}, "paths: '/nowhere"),
        ({"tags": ["repos"], "match": "orgs_*"}, "no tool matches all of"),
    ],
)
def test_what_matches_nothing_is_an_error_with_near_names(chosen, message):
    with pytest.raises(ToolkitError, match=message):
        GITHUB.select(**chosen)


def test_an_operation_that_is_left_out_says_why():
    paths = {"/a": {"get": {"operationId": "good"}}, "/b": {"get": {"operationId": "bad", "parameters": 3}}}
    toolkit = Toolkit.from_openapi(document(paths))
    with pytest.raises(ToolkitError, match=r"'bad' matches nothing; left out: .*must be a list"):
        toolkit.select(names=["bad"])
    assert [one.kind for one in toolkit.select(names=["good"]).problems if one.kind == "broken"] == []


def test_contracts_invariants_and_title_stay():
    toolkit = Toolkit.from_tools(
        [{"name": "a"}, {"name": "b"}],
        contracts={"a": {"returns": "{{ here }}"}},
        lets={"here": "{{ state.tree }}"},
        invariants=[{"check": "here is mapping", "error": "gone"}],
        title="T",
    )
    chosen = toolkit.select(names="a")
    assert (chosen["a"].contract, chosen.lets, chosen.title) == (toolkit["a"].contract, toolkit.lets, "T")
    assert chosen.invariants == toolkit.invariants
    assert chosen.as_openai() == toolkit.as_openai()[:1]


@given(st.sets(st.sampled_from(GITHUB.names), min_size=1))
def test_names_choose_exactly_themselves(names):
    chosen = GITHUB.select(names=names)
    assert {*chosen.names} == names
    assert chosen.select(names=names).names == chosen.names


def test_tags_come_from_every_source_and_survive_an_export(shared_data):
    @langchain_tool
    def look() -> str:
        """Look."""
        return ""

    look.tags = ["seen"]
    toolkit = Toolkit.from_tools([look, {"name": "b", "tags": ["x", "x", 3]}, {"name": "c", "tags": "x"}])
    assert [one.tags for one in toolkit] == [("seen",), ("x",), ()]
    petstore = Toolkit.from_openapi(shared_data / "openapi" / "schemathesis_petstore_v3.yaml")
    assert petstore["getPetById"].tags == ("pet",)
    assert [one.tags for one in Toolkit.from_openapi(check(petstore))] == [one.tags for one in petstore]


# too many ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def without_extra(monkeypatch):
    monkeypatch.setattr(selection, "find_spec", lambda name: None)


def sizes(toolkit):
    return [problem.message for problem in toolkit.problems if problem.kind == "size"]


def test_more_tools_than_a_provider_takes_are_a_problem_with_numbers(without_extra):
    many = [ToolSpec(name=f"t{number}", tags=("few",) if number < 3 else ("most",)) for number in range(129)]
    (message,) = sizes(Toolkit(many))
    assert message.startswith("129 tools, and providers take 128 at most")
    assert "pip install 'gecko-graph[retrieval]'" in message
    assert "most (126), few (3)" in message
    assert sizes(Toolkit(many[1:])) == []


def test_with_the_extra_they_are_found_and_no_problem(monkeypatch):
    monkeypatch.setattr(selection, "find_spec", lambda name: name)
    assert sizes(Toolkit(ToolSpec(name=f"t{number}") for number in range(129))) == []


def test_without_tags_the_largest_paths_are_named(without_extra):
    many = [tool(f"t{number}", f"/v1/{'charges' if number % 3 else 'refunds'}/{number}") for number in range(130)]
    (message,) = sizes(Toolkit(many))
    assert "the largest paths are /v1/charges/** (86), /v1/refunds/** (44)" in message
    assert len(Toolkit(many).select(paths="/v1/refunds/**")) == 44


def test_more_than_half_of_a_context_window_is_a_problem_with_its_estimate(without_extra):
    long = {"type": "object", "properties": {"a": {"description": "d" * 200_000}}}
    toolkit = Toolkit([ToolSpec(name="a", parameters=long), ToolSpec(name="b", parameters=long)])
    (message,) = sizes(toolkit)
    tokens = len(json.dumps(toolkit.as_openai())) // 4000
    assert f"about {tokens}k tokens (estimated: characters / 4)" in message
    assert "78 % of a context window of 128k" in message
    assert sizes(toolkit.select(names="a")) == []
