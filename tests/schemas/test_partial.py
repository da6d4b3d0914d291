"""Values known in part: what is told of them stays wrong whatever the rest turns out to be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.schemas.complaints import find_faults
from gecko_graph.schemas.findings import Finding
from gecko_graph.schemas.partial import Partial, sure_findings
from tests.any_schema import JSON, SCHEMAS
from tests.every_place import every_place

FOLDER = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}


def known(value, *unknown, open_=()):
    return Partial(value, frozenset(unknown), frozenset(open_))


@pytest.mark.parametrize(
    ("schema", "partial", "expected"),
    [
        (FOLDER, known(None), "an object"),
        (FOLDER, known({"size": None}, ("size",)), "a string; it is required"),
        (FOLDER, known({"name": None, "nmae": None}, ("name",), ("nmae",)), "nothing of this name"),
        (FOLDER, known({"name": None, "size": -1}, ("name",)), "a number of at least 0"),
        (FOLDER, known({"name": None, "size": ""}, ("name",), open_=[("size",)]), "an integer"),
        (FOLDER, known([], open_=[()]), "an object"),
        ({"minItems": 2}, known([None], (0,)), "an array of at least 2 items"),
        ({"anyOf": [FOLDER, {"type": "null"}]}, known({"size": None}, ("size",)), "a string; it is required"),
        ({"const": {"a": 1}}, known({"a": 2}), "the one value that the schema fixes"),
    ],
)
def test_what_is_surely_wrong(schema, partial, expected):
    assert [finding.expected for finding in sure_findings(schema, partial)] == [expected]


@pytest.mark.parametrize(
    ("schema", "partial"),
    [
        (FOLDER, known(None, ())),
        (FOLDER, known({}, open_=[()])),
        (FOLDER, known({"name": None}, ("name",))),
        ({"minItems": 2}, known([], open_=[()])),
        ({"minLength": 2}, known("", open_=[()])),
        ({"const": {"a": 1}}, known({"a": None}, ("a",))),
        ({"contains": {"const": 1}}, known([2, None], (1,))),
        ({"uniqueItems": True}, known([None, None], (0,), (1,))),
        ({"anyOf": [FOLDER, {"type": "array"}]}, known({"name": None}, ("name",))),
        ({"anyOf": [{"type": "integer"}, FOLDER]}, known({"name": None, "size": None}, ("name",), ("size",))),
        ({"oneOf": [{}, {"properties": {"a": {"type": "null"}}}]}, known({"a": None}, ("a",))),
        ({"if": {"properties": {"a": {"const": None}}}, "then": {"required": ["b"]}}, known({"a": None}, ("a",))),
        ({"not": {"required": ["a"], "properties": {"a": {"const": None}}}}, known({"a": None}, ("a",))),
    ],
)
def test_what_may_still_fit(schema, partial):
    assert sure_findings(schema, partial) == []


def test_the_place_is_told():
    partial = known({"items": [{"name": None}, {"name": 7}]}, ("items", 0, "name"))
    schema = {"properties": {"items": {"items": FOLDER}}}
    assert sure_findings(schema, partial) == [Finding("$.items[1].name", "a string", "7")]


def without(value, path):
    if not path:
        return None
    if isinstance(value, dict):
        return {key: without(one, path[1:]) if key == path[0] else one for key, one in value.items()}
    return [without(one, path[1:]) if index == path[0] else one for index, one in enumerate(value)]


@given(st.data())
def test_a_value_that_fits_has_no_sure_fault_whatever_is_hidden_of_it(data):
    schema, value = data.draw(SCHEMAS), data.draw(JSON)
    hidden = data.draw(st.sampled_from([path for path, _ in every_place(value)]))
    if find_faults(schema, value) == []:
        assert sure_findings(schema, known(without(value, hidden), hidden)) == []
