"""Only what a change touches is checked, and the verdict is that of the whole check."""

import json
import random

import pytest

from gecko_graph.errors import ContractError, PatchConflict
from gecko_graph.schemas.rules import accepts, rules_of
from gecko_graph.schemas.strict import check_change, check_schema
from gecko_graph.values.patch import apply_patch
from gecko_graph.values.places import pointer
from tests.every_place import every_place

NAMES = ("a", "b", "ab", "c")
KINDS = {str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
SCALARS = (None, True, 0, 1, 2, 1.5, "a", "bb", "")


def random_value(chance, depth=0):
    kind = chance.random()
    if depth > 2 or kind < 0.4:
        return chance.choice(SCALARS)
    if kind < 0.7:
        return {name: random_value(chance, depth + 1) for name in NAMES if chance.random() < 0.5}
    return [random_value(chance, depth + 1) for _ in range(chance.randrange(4))]


def random_schema(chance, value, depth=0):
    """A schema that is likely to accept the value, of a few keywords of every kind."""
    if depth > 3 or (depth and chance.random() < 0.1):
        return chance.choice([True, {"not": {"const": 2}}, {"$ref": "#/$defs/d"}])
    if not isinstance(value, dict | list):
        return chance.choice([{"type": KINDS[type(value)]}, {"enum": [value, 1, "a"]}, {"type": ["number", "string"]}])

    def inner(key=None):
        known = value if isinstance(value, list) else list(value.values())
        return random_schema(chance, value[key] if key is not None else chance.choice(known or [1]), depth + 1)

    if isinstance(value, dict):
        makers = {
            "properties": lambda: {name: inner(name) for name in value},
            "patternProperties": lambda: {"^a": inner("a") if "a" in value else inner()},
            "additionalProperties": lambda: chance.choice([inner(), {"type": "number"}]),
            "propertyNames": lambda: {"maxLength": 1},
            "required": lambda: sorted(value)[:2],
            "dependentRequired": lambda: {"a": ["b"]},
            "dependentSchemas": lambda: {"a": {"required": ["b"]}},
            "maxProperties": lambda: len(value),
            "minProperties": lambda: len(value),
            "if": lambda: {"required": ["a"]},
            "then": lambda: {"properties": {"a": inner()}},
            "else": lambda: {"maxProperties": 2},
        }
    else:
        makers = {
            "items": inner,
            "prefixItems": lambda: [inner(index) for index in range(len(value))][:2] or [True],
            "uniqueItems": lambda: True,
            "contains": inner,
            "maxItems": lambda: len(value),
            "minItems": lambda: len(value),
        }
    again = lambda: random_schema(chance, value, depth + 1)  # noqa: E731
    both = {
        "allOf": lambda: [again(), again()],
        "anyOf": lambda: [again(), inner()],
        "oneOf": lambda: [again(), {"const": 1}],
    }
    makers |= both | {
        "not": lambda: {"const": []},
        "enum": lambda: [value, {}, []],
        "unevaluatedProperties": lambda: False,
    }
    chosen = chance.sample(sorted(makers), chance.choice([2, 3, 4]))
    schema = {key: makers[key]() for key in chosen}
    return schema | ({"$ref": "#/$defs/d"} if chance.random() < 0.1 else {})


def random_patch(chance, state, make):
    """One to three operations at places of the state; some do not apply."""
    known = [(path, value) for path, value in every_place(state) if path or isinstance(value, dict | list)]
    patch = []
    for _ in range(chance.choice([1, 1, 2, 3])):
        path, value = chance.choice(known) if known else (("a",), {})
        name = chance.choice(["add", "replace", "remove", "move", "copy", "add"])
        if name == "add" and isinstance(value, dict | list):
            path = (*path, "-" if isinstance(value, list) and chance.random() < 0.5 else chance.choice(NAMES))
        if not path:
            continue
        operation = {"op": name, "path": pointer(path)}
        if name in ("move", "copy"):
            operation["from"] = pointer(chance.choice(known)[0]) if known else "/a"
        patch.append(operation | ({"value": make()} if name in ("add", "replace") else {}))
    return patch


def compare(chance, schema, state, make, patches):
    """Return how many changed states fitted and how many did not, after comparing both checks on each."""
    rules, count = rules_of(check_schema(schema, where="test")), [0, 0]
    assert accepts(rules, state)
    for _ in range(patches):
        try:
            after = apply_patch(state, random_patch(chance, state, make))
        except PatchConflict:
            continue
        fits = accepts(rules, after)
        assert (next(check_change(rules, state, after), None) is None) == fits, (schema, state, after)
        count[fits] += 1
        state = after if fits and sum(1 for _ in every_place(after)) > 3 else state
    return count


def test_on_random_schemas_the_verdict_is_that_of_the_whole_check():
    chance, seen = random.Random(0), [0, 0]
    while sum(seen) < 500:
        value = random_value(chance)
        schema = {"allOf": [random_schema(chance, value)], "$defs": {"d": {"type": ["object", "array", "number"]}}}
        if "patternProperties" in json.dumps(schema):  # both together are refused
            schema = json.loads(json.dumps(schema).replace("unevaluatedProperties", "x-other"))
        if isinstance(value, dict | list) and len(value) > 1 and accepts(rules_of(schema), value):
            counts = compare(chance, schema, value, lambda: random_value(chance, 1), 40)
            seen = [a + b for a, b in zip(seen, counts, strict=True)]
    assert min(seen) > 75, seen


def test_what_is_shared_is_not_checked():
    """A fault that was there before, in a place that the change leaves alone, is not found: the state before fitted."""
    rules = rules_of({"properties": {"a": {"additionalProperties": {"type": "number"}}}})
    before = {"a": {"x": "no number", "y": 1}, "b": 1}
    after = apply_patch(before, [{"op": "add", "path": "/a/z", "value": "no number"}])
    (error,) = check_change(rules, before, after)
    assert list(error.absolute_path) == ["a", "z"]
    assert not list(check_change(rules, before, apply_patch(before, [{"op": "remove", "path": "/a/y"}])))


BROKEN = [
    ({"type": "strng"}, 'shop.yaml#/x-state/type: expected one of the 7 values that the schema lists, got "strng"'),
    ({"properties": {"a": {"required": "x"}}}, "shop.yaml#/x-state/properties/a/required: expected an array"),
    ({"minimum": float("nan")}, "shop.yaml#/x-state/minimum: expected a finite number"),
    ({"items": {"$ref": "https://example.com/x"}}, "shop.yaml#/x-state/items/$ref: 'https://example.com/x' is outside"),
    ({"$ref": "#/$defs/nothing"}, "shop.yaml#/x-state/$ref: '#/$defs/nothing' has no target"),
    ({"$defs": {"a": {"$id": "https://example.com/x"}}}, "shop.yaml#/x-state/$defs/a/$id: only the whole schema"),
    ({"allOf": [{"pattern": r"(a)\1"}]}, "shop.yaml#/x-state/allOf/0/pattern: this pattern cannot be checked"),
    (
        {"patternProperties": {"a": {}}, "unevaluatedProperties": False},
        "patternProperties and unevaluatedProperties together cannot be checked",
    ),
]


@pytest.mark.parametrize(("schema", "message"), BROKEN)
def test_what_cannot_be_checked_is_refused_with_its_place(schema, message):
    with pytest.raises(ContractError) as caught:
        check_schema(schema, where="shop.yaml#/x-state")
    assert message in str(caught.value)


@pytest.mark.parametrize("fault", [{"type": "nothing"}, {"$ref": "#/$defs/lacks"}])
@pytest.mark.parametrize("name", ["a", "a/b", "a~1", ""])
def test_a_fault_is_found_in_its_file_whatever_its_key(fault, name):
    (keyword,) = fault
    lines = {("properties", name, keyword): 7}
    with pytest.raises(ContractError, match=r"\(line 7\)$"):
        check_schema({"properties": {name: fault}}, where="x", line_of=lambda place: lines.get(place[:3]))
