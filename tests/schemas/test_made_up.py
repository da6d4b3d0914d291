"""Made-up values fit their schema, or are said to be impossible; the same in every process, and plainly made up."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph import Toolkit
from gecko_graph.schemas.complaints import find_complaints, find_faults
from gecko_graph.schemas.formats import FORMATS
from gecko_graph.schemas.made_up import Impossible, make_value
from tests.any_schema import SCHEMAS
from tests.tools.small_documents import real_toolkits

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def obj(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


@pytest.mark.parametrize("schema", [
    {"const": {"a": [1]}}, {"type": "number", "multipleOf": 0.05, "minimum": 0.12},
    {"type": "integer", "format": "int32", "minimum": (1 << 31) - 1},
    {"type": "string", "minLength": 300},
    {"type": "string", "pattern": "^(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9]{8,}$"},
    {"type": "string", "pattern": "^[a-z]+$", "minLength": 30, "maxLength": 30},
    {"type": "array", "uniqueItems": True, "minItems": 3, "items": {"enum": ["a", "b", "c"]}},
    {"type": "array", "prefixItems": [WHOLE, TEXT], "items": False, "minItems": 2},
    {"type": "array", "contains": {"const": 7}, "minContains": 2, "items": WHOLE},
    {"type": "object", "propertyNames": {"pattern": "^x_"}, "minProperties": 2},
    {"type": "object", "patternProperties": {"^S_": WHOLE}, "additionalProperties": False, "minProperties": 1},
    {"type": "object", "additionalProperties": WHOLE},
    {"type": "object", "properties": {"a": {}}, "required": ["a"], "dependentRequired": {"a": ["b"]}},
    {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "maxProperties": 1},
    {"anyOf": [False, {"type": "boolean"}]},
    {"allOf": [{"type": ["integer", "string"]}, {"type": ["number", "null"]}, {"minimum": 3}, {"maximum": 3}]},
    {"if": {"properties": {"k": {"const": 1}}}, "then": {"required": ["z"]}, **obj(k={"enum": [1, 2]})},
    {"unevaluatedProperties": False, "allOf": [obj(a=WHOLE)], "type": "object"},
    {"$ref": "#/$defs/tree",
     "$defs": {"tree": {**obj(v=WHOLE),
                        "properties": {"v": WHOLE, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
                                       "up": {"$ref": "#/$defs/tree"}}}}},
    {"type": "object", "additionalProperties": {"$ref": "#"}},
    {"$ref": "#/$defs/pet",
     "$defs": {"pet": {"oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}]},
               "cat": obj(kind={"const": "cat"}), "dog": obj(kind={"const": "dog"})}},
    {}, True,
])  # fmt: skip
def test_every_kind_of_rule_is_met(schema):
    for key in ("a", "b", "c"):
        assert find_faults(schema, make_value(schema, seed=0, key=key, subject="get_thing")) == []


@pytest.mark.parametrize("schema", [
    False, {"type": "integer", "minimum": 5, "maximum": 3}, {"not": {}},
    {"type": "array", "uniqueItems": True, "minItems": 5, "items": {"enum": [1, 2]}},
    {"type": "string", "minLength": 10**9},
    {"$ref": "#/$defs/a", "$defs": {"a": obj(a={"$ref": "#/$defs/a"}, b={"$ref": "#/$defs/a"})}},
    {"type": "array", "items": {"$ref": "#"}, "minItems": 2}, {"allOf": [TEXT, WHOLE]},
])  # fmt: skip
def test_what_cannot_be_met_is_impossible_and_costs_little(schema, count_steps):
    def make():
        with pytest.raises(Impossible):
            make_value(schema, seed=0, key="k")

    assert count_steps(make) < 3_000_000


@given(SCHEMAS, st.text(max_size=4), st.integers(0, 3))
def test_any_schema_that_can_be_met_is_met(schema, key, seed):
    made = make_value(schema, seed=seed, key=key)
    assert find_faults(schema, made) == []
    assert json.loads(json.dumps(made)) == made
    assert made == make_value(schema, seed=seed, key=key)


STRANGE = [
    r"^\p{Lu}é[^a-zA-Z0-9]{3}$", r"^[\u4e00-\u9fff]{2}$", r"^(?!foo)[a-z]{4,8}$", r"^[\x00-\x1f]$",
    r"^(a|(?=b)[a-c])+$",
]  # fmt: skip


@pytest.mark.parametrize("rule", [*({"pattern": one} for one in STRANGE), *({"format": one} for one in FORMATS)])
def test_texts_match_patterns_and_formats(rule):
    for key in "abcdef":
        assert find_faults({**TEXT, **rule}, make_value({**TEXT, **rule}, seed=0, key=key)) == []


def test_every_real_result_and_argument_schema_is_met(shared_data):
    results = 0
    toolkits = {path.name: each for path, each in real_toolkits(shared_data).items() if isinstance(each, Toolkit)}
    for document, tool in ((name, tool) for name, toolkit in toolkits.items() for tool in toolkit):
        if tool.result is not None:
            made = make_value(tool.result, seed=1, key=tool.name, subject=tool.name)
            assert find_faults(tool.result, made) == [], (document, tool.name)
            results += 1
        made = make_value(tool.parameters, seed=1, key=tool.name, subject=tool.name)
        assert find_faults(tool.parameters, made) == [], (document, tool.name)
        assert find_complaints(tool, made) == [], (document, tool.name)
    assert results > 150


def listed(**properties):
    return {"type": "array", "minItems": 3, "items": obj(**properties)}


def result(name, schema, args):
    made = make_value(schema, seed=0, key=f"{name} {json.dumps(args)}", hints=args, subject=name)
    assert find_faults(schema, made) == []
    return made


def test_in_every_process():
    moment = {**TEXT, "format": "date-time"}
    rows = listed(id=TEXT, n=WHOLE, at=moment, k={"enum": ["a", "b", "c"]}, p={"pattern": "^[A-Z]{4}$"})
    made = make_value(rows, seed=7, key="k", subject="rows")
    ends = {"id": "row_0be6c448", "n": 73, "at": "2025-03-12T19:31:00Z", "k": "a", "p": "KANB"}, "FIYO"
    assert (made[0], made[2]["p"]) == ends


@pytest.mark.parametrize("rule", [TEXT, WHOLE, {"type": "string", "pattern": "^[A-Z]{2}[0-9]{4}$"}])
def test_items_of_one_answer_do_not_share_theirs(rule):
    rows = result("list_orders", listed(id=rule, user_id=TEXT), {"id": "o1", "user_id": "u7"})
    assert len({row["id"] for row in rows}) == len(rows)
    assert {row["user_id"] for row in rows} == {"u7"}


@pytest.mark.parametrize(("args", "schema", "expected"), [
    ({"userId": "u1"}, obj(user_id=TEXT), {"user_id": "u1"}),
    ({"email": "a@example.com"}, obj(data=obj(email=TEXT)), {"data": {"email": "a@example.com"}}),
    ({"lines": [{"sku": "a"}]}, obj(lines={"type": "array"}), {"lines": [{"sku": "a"}]}),
])  # fmt: skip
def test_an_argument_is_repeated_in_a_field_of_its_name_if_it_fits(args, schema, expected):
    assert result("get_user", schema, args) == expected
    for value in ("not a number", 1 << 70, [1] * 2_000):
        assert result("get_user", obj(user_id={"type": ["integer", "array"]}), {"user_id": value})["user_id"] != value


def test_a_success_tells_of_no_error():
    schema = {"type": "object", "properties": {"error": TEXT, "id": TEXT}}
    assert list(result("get_user", schema, {})) == ["id"]
    state = {"enum": ["deleted", "failed", "open"]}
    made = result("get_user", obj(ok={"type": "boolean"}, failed={"type": "boolean"}, state=state), {})
    assert made == {"ok": True, "failed": False, "state": "open"}


def test_examples_and_defaults_are_used_whatever_their_kind():
    schema = obj(
        running={"type": "boolean", "examples": [False]},
        paused={"type": "boolean", "default": False},
        exit_code={**WHOLE, "examples": [0]},
        price={"type": "number", "examples": [0.0]},
        id={**WHOLE, "examples": [7]},
        device_id={**WHOLE, "examples": [42]},
        tags={"type": "array", "items": TEXT, "examples": [["a", "b"]]},
        owner={**obj(name=TEXT), "examples": [{"name": "Ann"}]},
        either={"anyOf": [{"type": "null"}, {"type": "boolean", "default": False}]},
        wrong={**WHOLE, "examples": ["no number"]},
    )
    made = result("get_device", schema, {})
    assert isinstance(made.pop("wrong"), int)
    assert made == {
        "running": False, "paused": False, "exit_code": 0, "price": 0.0, "id": 7, "device_id": 42,
        "tags": ["a", "b"], "owner": {"name": "Ann"}, "either": False,
    }  # fmt: skip
    items = result("list_devices", {"type": "array", "minItems": 3, "items": obj(id={**WHOLE, "examples": [42]})}, {})
    assert items[0] == {"id": 42}
    assert len({item["id"] for item in items}) == 3


def test_what_a_call_says_of_an_id_wins_over_an_example():
    schema = {**obj(id=WHOLE, name=TEXT), "examples": [{"id": 7, "name": "Lorry"}]}
    assert result("get_device", schema, {"id": 4}) == {"id": 4, "name": "Lorry"}
    assert result("get_device", obj(data=schema), {"device_id": 4}) == {"data": {"id": 4, "name": "Lorry"}}
    assert result("get_device", schema, {}) == {"id": 7, "name": "Lorry"}


def test_an_argument_is_not_repeated_in_what_belongs_to_another_thing():
    lists = {"type": "array", "items": obj(id=WHOLE, name=TEXT)}
    made = result("create_user", obj(data=obj(id=WHOLE, name=TEXT, lists=lists)), {"name": "Ann", "id": 3})["data"]
    assert (made["id"], made["name"]) == (3, "Ann")
    assert all(item["name"] != "Ann" and item["id"] != 3 for item in made["lists"])
    order = result(
        "get_order", obj(id=WHOLE, customer=obj(id=WHOLE), address=obj(city=TEXT)), {"id": 3, "city": "Bonn"}
    )
    assert order["id"] == 3 != order["customer"]["id"]
    assert order["address"] == {"city": "Bonn"}
