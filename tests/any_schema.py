"""Strategies for the tests: JSON Schemas that can be fulfilled, values that fit them, and values that do not."""

from __future__ import annotations

import string
from typing import Any

from hypothesis import strategies as st

from gecko_graph.schemas.specimens import vocabulary

NAMES = st.sampled_from(
    ["id", "name", "user_id", "start_date", "end_date", "price", "tags", "odd name", "x.y", "status", "é"]
)
TEXT = st.text(string.ascii_letters + string.digits + " -_é中", max_size=12)
PATTERNS = [r"^[A-Z]{3}$", r"^\d{3}-\d{4}$", r"^(red|blue)+$", r"^[a-z0-9]+(?:-[a-z0-9]+)*$", r"\S", r"^#[0-9a-f]{6}$"]
EXAMPLES = {
    "date": "2024-02-29", "date-time": "2024-02-29T10:00:00Z", "email": "ann@example.com",
    "uuid": "2eb8aa08-aa98-11ea-b4aa-73b441d16380", "ipv4": "192.0.2.1", "uri": "https://example.com/a",
    "duration": "PT4H", "time": "09:30:00Z", "hostname": "shop.example.com",
}  # fmt: skip
WRONG_KIND: dict[str, list[Any]] = {
    "string": [7, True, None, ["a"]], "integer": [10.5, "7", True, None, 0.5], "number": ["1.5", True, None, [1]],
    "boolean": [0, "true", None], "array": ["a,b", {"0": 1}, None], "object": ["{}", ["a"], None],
}  # fmt: skip


KEYWORDS = vocabulary(
    "type enum const minimum maximum multipleOf minLength maxLength pattern format items prefixItems contains minItems "
    "maxItems uniqueItems properties required additionalProperties patternProperties propertyNames minProperties "
    "dependentRequired dependentSchemas allOf anyOf oneOf not if then else $ref $defs $id $schema $anchor default "
    "examples unevaluatedProperties unevaluatedItems description definitions"
)
SCRAPS = st.one_of(
    st.sampled_from(
        ["string", "integer", "object", "array", "dict", "#", "#/$defs/a", "#/properties/a", "#x", "^a+$", "(", "date"]
    ),
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=3),
)
JUNK = st.recursive(
    SCRAPS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(sorted(KEYWORDS)), st.sampled_from(["a", "b"])), inner, max_size=4),
    ),
    max_leaves=14,
)
"""What somebody might write for a schema: keywords in places of their own, with whatever value."""


def strings() -> st.SearchStrategy[dict]:
    lengths = st.tuples(st.integers(0, 5), st.integers(5, 12)).map(
        lambda two: {"minLength": two[0], "maxLength": two[1]}
    )
    return st.one_of(
        st.just({}),
        lengths,
        st.sampled_from(sorted(EXAMPLES)).map(lambda name: {"format": name}),
        st.sampled_from(PATTERNS).map(lambda source: {"pattern": source}),
    ).map(lambda more: {"type": "string", **more})


def numbers() -> st.SearchStrategy[dict]:
    bounds = st.tuples(st.integers(-50, 0), st.integers(1, 50)).map(lambda two: {"minimum": two[0], "maximum": two[1]})
    whole = st.one_of(st.just({}), bounds, st.just({"multipleOf": 3}), st.just({"exclusiveMinimum": 7}))
    broken = st.one_of(st.just({}), bounds, st.just({"multipleOf": 0.1, "minimum": 0}))
    return st.one_of(
        whole.map(lambda more: {"type": "integer", **more}), broken.map(lambda more: {"type": "number", **more})
    )


def scalars() -> st.SearchStrategy[dict]:
    listed = st.lists(TEXT, min_size=1, max_size=4, unique=True).map(lambda values: {"type": "string", "enum": values})
    return st.one_of(strings(), numbers(), listed, st.just({"type": "boolean"}))


def objects(inner: st.SearchStrategy[dict]) -> st.SearchStrategy[dict]:
    @st.composite
    def build(draw):
        properties = draw(st.dictionaries(NAMES, inner, max_size=4))
        required = [name for name in properties if draw(st.booleans())]
        schema = {"type": "object", "properties": properties, "required": required}
        return schema | draw(st.sampled_from([{}, {"additionalProperties": False}]))

    return build()


def arrays(inner: st.SearchStrategy[dict]) -> st.SearchStrategy[dict]:
    sizes = st.sampled_from([{}, {"minItems": 1}, {"maxItems": 2}, {"minItems": 2, "maxItems": 3}])
    return st.tuples(inner, sizes).map(lambda two: {"type": "array", "items": two[0], **two[1]})


def composed(inner: st.SearchStrategy[dict]) -> st.SearchStrategy[dict]:
    return st.lists(inner, min_size=1, max_size=3).map(lambda options: {"anyOf": options})


SCHEMAS = st.recursive(scalars(), lambda inner: st.one_of(objects(inner), arrays(inner), composed(inner)), max_leaves=8)
"""Schemas that some value fits."""

PARAMETERS = objects(SCHEMAS)
"""Schemas of argument objects."""

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-60, 60), st.floats(-60, 60).filter(lambda x: x != int(x)), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
"""Any JSON; no floats without a fraction."""


def fitting(schema: dict) -> st.SearchStrategy[Any]:
    """Values that fit a schema of `SCHEMAS`, written without the package's own generator."""
    if "anyOf" in schema:
        return st.sampled_from(schema["anyOf"]).flatmap(fitting)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    return {
        "string": _string,
        "integer": _integer,
        "number": _number,
        "boolean": lambda _: st.booleans(),
        "array": _array,
        "object": _object,
    }[schema["type"]](schema)


def _string(schema: dict) -> st.SearchStrategy[str]:
    if "format" in schema:
        return st.just(EXAMPLES[schema["format"]])
    if "pattern" in schema:
        return st.from_regex(
            schema["pattern"].replace(r"\d", "[0-9]"), fullmatch=schema["pattern"].startswith("^")
        ).map(lambda text: text.removesuffix("\n"))
    return st.text(string.ascii_letters, min_size=schema.get("minLength", 0), max_size=schema.get("maxLength", 12))


def _integer(schema: dict) -> st.SearchStrategy[int]:
    step = schema.get("multipleOf", 1)
    low = schema.get("minimum", schema.get("exclusiveMinimum", -101) + 1)
    return st.integers(-(-low // step), schema.get("maximum", 100) // step).map(lambda count: count * step)


def _number(schema: dict) -> st.SearchStrategy[float]:
    if "multipleOf" in schema:
        return st.integers(0, 10_000).map(lambda tenths: float(f"{tenths // 10}.{tenths % 10}"))
    return st.floats(schema.get("minimum", -1e9), schema.get("maximum", 1e9))


def _array(schema: dict) -> st.SearchStrategy[list]:
    return st.lists(fitting(schema["items"]), min_size=schema.get("minItems", 0), max_size=schema.get("maxItems", 3))


def _object(schema: dict) -> st.SearchStrategy[dict]:
    rules = {name: fitting(rule) for name, rule in schema["properties"].items()}
    required = {name: rules[name] for name in schema["required"]}
    return st.fixed_dictionaries(required, optional={name: rules[name] for name in rules if name not in required})


@st.composite
def spoiled(draw, parameters: dict, args: dict) -> tuple[dict, str]:
    """The arguments with one thing made wrong, and the name of the argument that it is in."""
    ways = [("unknown", "nowhere")]
    ways += [("missing", name) for name in parameters["required"]]
    ways += [("kind", name) for name in args if "type" in parameters["properties"][name]]
    ways += [("listed", name) for name in args if "enum" in parameters["properties"][name]]
    ways += [("bound", name) for name in args if "maximum" in parameters["properties"][name]]
    way, name = draw(st.sampled_from(ways))
    changed = {key: value for key, value in args.items() if (way, key) != ("missing", name)}
    if way == "unknown":
        changed[name] = draw(JSON)
    elif way == "kind":
        changed[name] = draw(st.sampled_from(WRONG_KIND[parameters["properties"][name]["type"]]))
    elif way == "listed":
        changed[name] = "none of these values"
    elif way == "bound":
        changed[name] = parameters["properties"][name]["maximum"] + 1
    return changed, name
