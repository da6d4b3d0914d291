"""The question to a person: names, what a prediction rests on, and what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from gecko_graph import Tool, Toolkit
from gecko_graph.real.description import describe_calls, describe_dependencies
from gecko_graph.real.names import Names
from gecko_graph.real.policy import ReviewPolicy
from gecko_graph.real.preview import describe_undo, finish_preview, plan_call
from gecko_graph.values.notes import warning

STATE = {"pets": {"P7": {"name": "Flocke", "owner_id": "O4"}}, "owners": {"4": {"name": "Tom"}}}
BY = {"by contract": {"rung": "contract"}, "seen in real calls": {"rung": "contract", "evidence": "established"}}
BY |= {"a model supposes": {"rung": "model", "invented": True}}


def book(pet_id: str, vet_id: str) -> dict:
    """Book a visit. It can be moved."""
    raise AssertionError


def step_of(**outcome: Any) -> Any:
    call = {"id": "1", "name": "book", "args": {"pet_id": "P7", "vet_id": "V1"}}
    patch = [{"op": "add", "path": "/visits", "value": {"A1": {"pet_id": "P7"}}}]
    common = {"status": "ok", "result": {"id": "A1"}, "patch": patch, "simulated": True, "passed": []}
    return {"v": 1, "call": call, "outcome": {**common, **outcome}}


def asked(**outcome: Any) -> tuple[str, dict]:
    """Return the text and the data of a question."""
    tools = Toolkit.from_tools([Tool(book, effect="write")])
    calls, policy = [plan_call(step_of(**outcome), tools)], ReviewPolicy.load("writes", tools)
    read = {"result": [{"id": "V1", "name": "Dr. Lund"}], "rung": "real"}
    done: Any = [{"call": {"name": "listVets"}, "outcome": read}]
    found = describe_calls(finish_preview(calls, STATE, toolkit=tools, policy=policy), calls, STATE, done)
    return found.texts["1"], found.data["1"]


@pytest.mark.parametrize("basis", BY)
def test_it_says_on_what_result_and_change_rest(basis):
    text, data = asked(**BY[basis])
    assert f'Returns, {basis}:\n```\n{{"id": "A1"}}' in text
    assert f"Changes, {basis}:" in text
    assert (data["result_rests_on"], data["changes_rest_on"]) == (basis, basis)


@pytest.mark.parametrize("outcome", [{"rung": "schema", "invented": True}, {"rung": "none", "patch": None}])
def test_what_nothing_but_a_schema_has_made_up_is_not_shown_as_its_effect(outcome):
    text, data = asked(**outcome)
    assert "Its effect is not known here." in text
    assert "A1" not in text
    assert (data["result"], data["changes"]) == (None, [])


@pytest.mark.parametrize(
    ("argument", "path", "line"),
    [
        ("/id", "", '- id: its value is the real result of step 1 (make), predicted "A-1".'),
        ("/", "/", '- /: its value is the real / in the result of step 1 (make), predicted "A-1".'),
        ("/a\nb", "/c\rd", '- a\\nb: its value is the real c\\rd in the result of step 1 (make), predicted "A-1".'),
    ],
)
def test_a_hole_is_one_line_that_names_its_place(argument, path, line):
    hole = {"argument": argument, "call": "c1", "path": path, "predicted": "A-1"}
    planned: Any = {"bindings": [hole], "ambiguous": [], "call": {"id": "c2", "name": "use", "args": {"id": "A-1"}}}
    assert [*describe_dependencies(planned, {"c1": "step 1 (make)"})] == [line]
    undo: Any = {"status": "found", "calls": [{"name": "use", "args": {argument[1:]: 1}, "bindings": [hole]}]}
    assert ("<the real result>" in describe_undo(undo)) == (path == "")
    assert len(describe_undo(undo).splitlines()) == 1


def test_it_speaks_of_things_by_the_names_that_state_and_real_reads_have():
    text, data = asked(rung="contract", notes=[warning("The vet may be away.")])
    assert data["about"] == ["Flocke (pet_id P7)", "Dr. Lund (vet_id V1)"]
    assert "About: Flocke (pet_id P7), Dr. Lund (vet_id V1)" in text.splitlines()
    assert data["changes"] == ['visits: new {"A1": {"pet_id": "P7"}} (Flocke)']
    lines = text.splitlines()
    assert lines[1] == "Book a visit."
    assert "- may be refused: The vet may be away." in lines
    assert lines[-1] == "Approve, and book is called for real."


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [("owner_id", 4, "Tom"), ("quantity", 4, ""), ("vet_id", 4, ""), ("pet", "P7", "Flocke"), ("pet_id", True, "")],
)
def test_a_name_is_given_only_where_the_id_means_one_thing(field, value, name):
    assert Names(STATE).of(field, value) == name


def test_an_id_of_two_things_has_the_name_of_the_field_s_noun_or_none():
    names = Names({"pets": [{"id": "X1", "name": "Flocke"}], "vets": [{"id": "X1", "name": "Dr. Lund"}]})
    assert [names.of(field, "X1") for field in ("vet_id", "pet_id", "ref")] == ["Dr. Lund", "Flocke", ""]
