"""Any tools at all, written as OpenAPI and read back: properties over generated tools."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gecko_graph.contracts.contract import Contract
from gecko_graph.tools import ToolExample, Toolkit, ToolSpec
from gecko_graph.tools.spec import HttpBinding
from tests.tools.round_trip import check

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, 1e30, "", "a", "[1]", '{"a": 1}']),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "$ref"]), inner, max_size=2),
    max_leaves=4,
)
WORDS = st.sampled_from(["a", "b", "id", "body", "x-y", "$ref", "a b", "ü", "nullable", "required", ""])
ANNOTATIONS = {
    "title": st.sampled_from(["", "T"]),
    "description": st.sampled_from(["", " d ", "d"]),
    "default": JSON,
    "examples": st.lists(JSON, max_size=2),
    "deprecated": st.booleans(),
    "readOnly": st.booleans(),
    "x-own": JSON,
}
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        **ANNOTATIONS,
        "type": st.sampled_from(["string", "integer", "number", "boolean", "null", ["string", "null"], ["integer"]]),
        "enum": st.lists(JSON, min_size=1, max_size=3),
        "const": JSON,
        "minimum": st.integers(-3, 3),
        "exclusiveMaximum": st.floats(1, 9),
        "maxLength": st.integers(0, 9),
        "pattern": st.sampled_from(["^a", r"\p{L}", "(?<n>a)", "("]),
        "format": st.sampled_from(["date", "email", "int32"]),
        "nullable": st.booleans(),
        "example": JSON,
        "multipleOf": st.sampled_from([1, 0.5]),
    },
)
REFERENCES = st.sampled_from([{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B b", "description": "d"}, {"$ref": "#"}])


def _around(inner):
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(WORDS, inner, max_size=3)},
        optional={
            **ANNOTATIONS,
            "required": st.lists(WORDS, unique=True, max_size=2),
            "additionalProperties": inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^x", r"\p{L}"]), inner, max_size=1),
            "minProperties": st.integers(0, 2),
        },
    )
    lists = st.fixed_dictionaries(
        {"type": st.just("array")}, optional={"items": inner, "prefixItems": st.lists(inner, min_size=1, max_size=2)}
    )
    several = st.sampled_from(["allOf", "anyOf", "oneOf"])
    choices = st.builds(lambda key, parts: {key: parts}, several, st.lists(inner, min_size=1, max_size=2))
    return objects | lists | choices | st.builds(lambda one: {"not": one}, inner)


def _schemas(*, references):
    leaves = LEAVES | st.booleans()
    return st.recursive(leaves | REFERENCES if references else leaves, _around, max_leaves=4)


PLAIN = _schemas(references=False)
DEFS = st.fixed_dictionaries(
    {
        "A": PLAIN,
        "B b": st.builds(
            lambda one, two: {
                "type": "object",
                "properties": {"kids": {"items": {"$ref": "#/$defs/B b"}}, "a": one, "b": two},
            },
            PLAIN,
            st.just({"$ref": "#/$defs/A"}) | PLAIN,
        ),
    }
)
PARAMETERS = st.builds(
    lambda properties, required, more, defs: {
        "type": "object",
        "properties": properties,
        **({"required": required} if required is not None else {}),
        **more,
        "$defs": defs,
    },
    st.dictionaries(WORDS, _schemas(references=True), max_size=4),
    st.none() | st.lists(WORDS, unique=True, max_size=2),
    st.fixed_dictionaries(
        {}, optional={"additionalProperties": st.booleans(), "description": st.just("d"), "minProperties": st.just(1)}
    ),
    DEFS,
)
RESULTS = st.none() | st.builds(
    lambda schema, defs: {**(schema if isinstance(schema, dict) else {}), "$defs": defs},
    _schemas(references=True),
    DEFS,
)
SCHEME = {"type": "apiKey", "in": "header", "name": "X-Key"}
BINDINGS = st.none() | st.builds(
    HttpBinding,
    st.sampled_from(["get", "put", "post", "delete", "trace", "PATCH"]),
    st.sampled_from(["/", "/x", "/x/{id}", "/x/{id}/{a}", "/tools/a", "x", "/{"]),
    st.dictionaries(
        WORDS, st.tuples(st.sampled_from(["path", "query", "header", "cookie", "body"]), WORDS), max_size=4
    ),
    st.dictionaries(
        WORDS,
        st.sampled_from([{"style": "deepObject"}, {"explode": False}, {"style": "form"}, {"content": "text/plain"}]),
        max_size=2,
    ),
    st.sampled_from([{}, {"media": "text/plain"}, {"required": True}, {"encoding": {"a": {"explode": False}}}]),
    st.sampled_from([None, {"url": "/v1"}, {"url": "https://a.test"}]),
    st.sampled_from([(), ({},), ({"k": {"type": "http", "scheme": "basic"}},), ({"k": SCHEME, "l": SCHEME}, {})]),
)
EXAMPLES = st.lists(st.builds(ToolExample, st.dictionaries(WORDS, JSON, max_size=2), JSON), max_size=2).map(tuple)
LETS = {"here": "{{ state.a }}"}
CONTRACTS = st.sampled_from(
    [
        None,
        Contract.load({}, where="t"),
        Contract.load({"returns": {"a": "{{ args }}"}}, where="t"),
        Contract.load({"requires": [{"check": "here == 1", "error": "no"}]}, lets=LETS, where="t"),
    ]
)
SPECS = st.builds(
    ToolSpec,
    name=st.sampled_from(["a", "a_b", "a.b", "ü", "a b", "b" * 70, "A/{x}"]),
    description=st.sampled_from(["", "d", " d\n", "Two.\n\nParts."]),
    parameters=PARAMETERS,
    result=RESULTS,
    effect=st.sampled_from([None, "read", "write"]),
    contract=CONTRACTS,
    examples=EXAMPLES,
    binding=BINDINGS,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(SPECS, max_size=3, unique_by=lambda one: one.name), st.sampled_from([{}, LETS]), st.sampled_from(["", "T"])
)
def test_any_tools_survive(specs, lets, title):
    check(Toolkit(specs, lets=lets, title=title), validate=False)


SOBER = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "boolean", "null", ["string", "null"]]),
        "description": st.just("d"),
        "enum": st.lists(JSON, min_size=1, max_size=3),
        "default": JSON,
        "pattern": st.sampled_from(["^a", r"\p{L}", "("]),
        "format": st.sampled_from(["date", "email", "int32"]),
        "minimum": st.integers(-3, 3),
    },
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(
        st.builds(
            ToolSpec,
            name=st.sampled_from(["a", "b", "a.b", "c"]),
            parameters=st.builds(
                lambda properties, required: {"type": "object", "properties": properties, "required": required},
                st.dictionaries(WORDS.filter(bool), SOBER | _around(SOBER), max_size=4),
                st.lists(WORDS, unique=True, max_size=2),
            ),
            result=st.none() | SOBER | _around(SOBER),
            effect=st.sampled_from([None, "read", "write"]),
            examples=EXAMPLES,
            binding=BINDINGS,
        ),
        max_size=3,
        unique_by=lambda one: one.name,
    )
)
def test_any_tools_are_written_as_a_validator_wants_them(specs):
    check(Toolkit(specs))
