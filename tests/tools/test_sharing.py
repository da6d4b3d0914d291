"""What tools share is shared: in a document that is written, and in memory when it is read."""

from __future__ import annotations

import json

import pytest

from gecko_graph.errors import ToolkitError
from gecko_graph.tools import Toolkit, ToolSpec
from gecko_graph.values.documents import read_document
from tests.tools.round_trip import check, own_words
from tests.tools.small_documents import answering, document


def size(value):
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def test_an_export_is_at_most_half_as_large_again_as_its_source(shared_data):
    measured = 0
    for path in sorted((shared_data / "openapi").iterdir()):
        source = read_document(path)
        try:
            toolkit = Toolkit.from_openapi(path)
        except ToolkitError:
            continue
        assert size(toolkit.to_openapi()) <= 1.5 * size(source), path.name
        measured += 1
    assert measured >= 20


POD = {"type": "object", "properties": {f"part{number}": {"type": "string"} for number in range(60)}, "required": ["a"]}


def pods(number=10):
    """Tools that answer with the same object, described differently."""
    return [
        ToolSpec(name=f"t{one}", result={"type": "object", "properties": {"pod": {"description": f"{one}", **POD}}})
        for one in range(number)
    ]


def test_equal_parts_stand_once_whatever_their_descriptions():
    written = check(Toolkit(pods()))
    (component,) = written["components"]["schemas"].values()
    assert component["x-gecko-inline"] is True
    assert written["components"]["schemas"].keys() == {"pod"}
    result = written["paths"]["/tools/t3"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert result["properties"]["pod"] == {"$ref": "#/components/schemas/pod", "description": "3"}
    assert size(written) < 3 * size(POD) + 10 * 600


def test_what_stands_once_or_is_short_stays_where_it_is():
    assert "components" not in check(Toolkit(pods(1)))
    tools = [
        ToolSpec(name=f"t{one}", result={"type": "object", "properties": {"a": {"type": "string"}}}) for one in "abc"
    ]
    assert "components" not in check(Toolkit(tools))


def test_definitions_that_differ_far_away_are_kept_apart():
    def chain(end):
        steps = {f"c{one}": {"properties": {"next": {"$ref": f"#/$defs/c{one + 1}"}}} for one in range(9)}
        return {"$ref": "#/$defs/c0", "$defs": {**steps, "c9": {"properties": {"c0": {"$ref": "#/$defs/c0"}, **end}}}}

    tools = [ToolSpec(name="a", result=chain({})), ToolSpec(name="b", result=chain({"x": {"type": "string"}}))]
    assert own_words(check(Toolkit(tools))) == {"x-gecko-binding": 2}


@pytest.mark.parametrize("required", [[], ["a", "b"]])
def test_what_is_required_without_a_property_needs_no_key_of_ours(required):
    tools = [ToolSpec(name="t", result={"type": "object", "properties": {"a": {}}, "required": required})]
    assert own_words(check(Toolkit(tools))) == {"x-gecko-binding": 1}
    assert own_words(check(Toolkit([ToolSpec(name="t", result={"required": ["b"]})]))) == {"x-gecko-binding": 1}


def test_definitions_of_results_keep_their_own_names():
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}}}}
    twin = {"x-gecko-name": "Node", "properties": {"twin": {"$ref": "#/components/schemas/Twin"}}}
    paths = {"/a": {"get": answering(node)}, "/b": {"get": answering({"$ref": "#/components/schemas/Twin"})}}
    toolkit = Toolkit.from_openapi(document(paths, components={"schemas": {"Node": node, "Twin": twin}}))
    assert all(tool.result["$defs"].keys() == {"Node"} for tool in toolkit)


def test_tools_share_their_definitions_in_memory():
    reference = {"$ref": "#/components/schemas/Node"}
    node = {"properties": {"kids": {"items": reference}, "leaf": {"$ref": "#/components/schemas/Leaf"}}}
    item = {"get": answering({"properties": {"n": reference}})}
    schemas = {"Node": node, "Leaf": {"type": "string"}}
    one, other = Toolkit.from_openapi(document({"/a": item, "/b": item}, components={"schemas": schemas}))
    assert one.result["$defs"]["Node"] is other.result["$defs"]["Node"]
