"""What tools share is shared: in a document that is written, and in memory when it is read."""

from __future__ import annotations

import json

from gecko_graph.errors import ToolkitError
from gecko_graph.tools import Toolkit, ToolSpec
from gecko_graph.values.documents import read_document
from tests.tools.round_trip import check, own_words
from tests.tools.small_documents import answering, document


def size(value):
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def test_an_export_is_about_as_large_as_its_source(shared_data):
    measured = 0
    for path in sorted((shared_data / "openapi").iterdir()):
        source = read_document(path)
        try:
            toolkit = Toolkit.from_openapi(path)
        except ToolkitError:
            continue
        assert size(toolkit.to_openapi()) <= 1.1 * size(source), path.name
        measured += 1
    assert measured >= 20


def test_definitions_that_differ_far_away_are_kept_apart():
    def chain(end):
        steps = {f"c{one}": {"properties": {"next": {"$ref": f"#/$defs/c{one + 1}"}}} for one in range(9)}
        return {"$ref": "#/$defs/c0", "$defs": {**steps, "c9": {"properties": {"c0": {"$ref": "#/$defs/c0"}, **end}}}}

    tools = [ToolSpec(name="a", result=chain({})), ToolSpec(name="b", result=chain({"x": {"type": "string"}}))]
    assert own_words(check(Toolkit(tools))) == {"binding": 2}


def test_definitions_of_results_keep_their_own_names():
    parts = [
        {"Node": {"properties": {"kids": {"items": {"$ref": f"#/paths/~1{name}/x-{name}/Node"}}}, "x": {}}}
        for name in "ab"
    ]
    paths = {
        f"/{name}": {"get": answering({"$ref": f"#/paths/~1{name}/x-{name}/Node"}), f"x-{name}": part}
        for name, part in zip("ab", parts, strict=True)
    }
    toolkit = Toolkit.from_openapi(document(paths))
    assert all(tool.result["$defs"].keys() == {"Node"} for tool in toolkit)


def test_tools_share_their_definitions_in_memory():
    reference = {"$ref": "#/components/schemas/Node"}
    node = {"properties": {"kids": {"items": reference}, "leaf": {"$ref": "#/components/schemas/Leaf"}}}
    item = {"get": answering({"properties": {"n": reference}})}
    schemas = {"Node": node, "Leaf": {"type": "string"}}
    one, other = Toolkit.from_openapi(document({"/a": item, "/b": item}, components={"schemas": schemas}))
    assert one.result["$defs"]["Node"] is other.result["$defs"]["Node"]
