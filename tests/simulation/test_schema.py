"""The schema rung: valid, plausible, and the same in every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph import GeckoContext, Toolkit
from gecko_graph.errors import ToolkitError
from gecko_graph.generator.maker import Impossible, make_value
from gecko_graph.models.ask import Where
from gecko_graph.schemas.complaints import complaints, faults
from gecko_graph.simulation.rung import Answer, Pass, Question
from gecko_graph.simulation.schema import schema_rung
from gecko_graph.toolkit.spec import ToolSpec
from tests.any_schema import JUNK, PATTERNS, SCHEMAS

ROOT = Path(__file__).resolve().parents[2]
TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
MOMENT = {"type": "string", "format": "date-time"}
MILLISECONDS = {"type": "integer", "description": "unix time in milliseconds"}
DATE = {"type": "string", "format": "date"}


def obj(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


def listed(**properties):
    return {"type": "array", "minItems": 3, "items": obj(**properties)}


def answer(name, result, args, *, effect="read", seed=0, state=None):
    tool = ToolSpec(name=name, result=result, effect=effect)
    call = {"id": "1", "name": name, "args": args}
    context = GeckoContext(seed=seed)
    return schema_rung(Question(tool=tool, call=call, state=state or {}, facts={}, context=context, where=Where()))


def result(name, schema, args, **more):
    said = answer(name, schema, args, **more)
    assert isinstance(said, Answer)
    assert said.status == "ok"
    assert faults(schema, said.result) == []
    return said.result


USER = obj(user_id=TEXT, name=TEXT, email=TEXT, phone=TEXT, city=TEXT, joined_at=MOMENT)


class TestAlike:
    def test_equal_arguments_whatever_their_order_and_the_state(self):
        one = result("get_user", USER, {"user_id": "u1", "full": True})
        assert one == result("get_user", USER, {"full": True, "user_id": "u1"}, state={"now": "2031-01-01", "a": [1]})

    def test_other_arguments_seeds_and_tools_make_other_answers(self):
        one = result("get_user", USER, {"user_id": "u1"})
        for other in (
            result("get_user", USER, {"user_id": "u2"}),
            result("get_user", USER, {"user_id": "u1"}, seed=1),
            result("find_user", USER, {"user_id": "u1"}),
        ):
            assert one != other

    def test_in_every_process(self):
        rows = listed(id=TEXT, n=WHOLE, at=MOMENT, k={"enum": ["a", "b", "c"]}, p={"pattern": "^[A-Z]{4}$"})
        code = (
            "import json, sys; from gecko_graph.generator.maker import make_value\n"
            "print(json.dumps([make_value(s, seed=7, key='k', subject='rows') for s in json.loads(sys.argv[1])]))"
        )
        other = subprocess.run(
            [sys.executable, "-c", code, json.dumps([USER, rows])],
            env={**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(other.stdout) == [
            make_value(schema, seed=7, key="k", subject="rows") for schema in (USER, rows)
        ]


class TestIdentity:
    def test_different_entities_have_different_identifiers(self):
        schema = obj(order_id=TEXT, invoice_number=WHOLE, uuid={"type": "string", "format": "uuid"})
        orders = [result("open_order", schema, {"customer": name}) for name in ("a", "b", "c", "d")]
        for key in schema["properties"]:
            assert len({order[key] for order in orders}) == 4

    def test_items_of_one_answer_do_not_share_theirs(self):
        for rule in (
            TEXT,
            WHOLE,
            {"type": "string", "pattern": "^[A-Z]{2}[0-9]{4}$"},
            {"type": "integer", "maximum": 9},
        ):
            rows = result("list_orders", listed(id=rule, user_id=TEXT), {"user_id": "u7"})
            assert len({row["id"] for row in rows}) == len(rows)
            assert {row["user_id"] for row in rows} == {"u7"}

    @pytest.mark.parametrize(
        ("args", "schema", "expected"),
        [
            ({"user_id": "john_doe_001"}, obj(user_id=TEXT), {"user_id": "john_doe_001"}),
            ({"userId": "u1"}, obj(id=TEXT), {"id": "u1"}),
            ({"user_id": 42}, obj(id=TEXT), {"id": "42"}),
            ({"user_id": "42"}, obj(id=WHOLE), {"id": 42}),
            ({"user_id": "u1"}, obj(data=obj(id=TEXT)), {"data": {"id": "u1"}}),
            ({"user_id": "u1", "comment_id": "c1"}, obj(id=TEXT), {"id": "u1"}),
            ({"email": "a@example.com", "age": 7}, obj(email=TEXT, age=WHOLE), {"email": "a@example.com", "age": 7}),
        ],
    )
    def test_what_was_asked_for_is_said_again(self, args, schema, expected):
        assert result("get_user", schema, args) == expected

    def test_what_does_not_fit_is_not(self):
        assert result("get_user", obj(user_id=WHOLE), {"user_id": "not a number"})["user_id"] != "not a number"

    def test_something_new_has_an_identity_of_its_own(self):
        made = result(
            "create_comment", obj(id=TEXT, post_id=TEXT, text=TEXT), {"post_id": "p1", "text": "hi"}, effect="write"
        )
        assert made["id"] != "p1"
        assert (made["post_id"], made["text"]) == ("p1", "hi")

    def test_a_name_spelled_out_by_an_identifier(self):
        user = result("get_user", USER, {"user_id": "john_doe_001"})
        assert user["name"] == "John Doe"
        assert user["email"] == "john.doe@example.com"

    def test_fields_of_one_person_agree(self):
        person = result("get_customer", obj(first_name=TEXT, last_name=TEXT, email=TEXT), {"q": 1})
        assert person["email"] == f"{person['first_name']}.{person['last_name']}@example.com".lower()


PAIRS = [
    (obj(start=MOMENT, end=MOMENT), "start", "end"),
    (obj(check_in=DATE, check_out=DATE), "check_in", "check_out"),
    (obj(departure_time=MOMENT, arrival_time=MOMENT), "departure_time", "arrival_time"),
    (obj(start_date=TEXT, end_date=TEXT), "start_date", "end_date"),
    (obj(startTime=TEXT, endTime=TEXT), "startTime", "endTime"),
    (obj(created_at=WHOLE, updated_at=WHOLE), "created_at", "updated_at"),
    (obj(createdAt=MOMENT, modifiedAt=MOMENT), "createdAt", "modifiedAt"),
    (obj(updated=MOMENT, created=MOMENT), "created", "updated"),
    (obj(date_of_birth=DATE, created_at=DATE), "date_of_birth", "created_at"),
    (obj(issued_at=DATE, expires_at=DATE), "issued_at", "expires_at"),
    (
        obj(pickup_time={**TEXT, "description": "HH:MM"}, dropoff_time={**TEXT, "description": "HH:MM"}),
        "pickup_time",
        "dropoff_time",
    ),
    (obj(from_ts=MILLISECONDS, to_ts=MILLISECONDS), "from_ts", "to_ts"),
    (obj(min_price={"type": "number"}, max_price={"type": "number"}), "min_price", "max_price"),
    (obj(begin_index=WHOLE, end_index=WHOLE), "begin_index", "end_index"),
]


class TestTime:
    @pytest.mark.parametrize(("schema", "first", "second"), PAIRS)
    @given(key=st.text(max_size=5))
    def test_ends_come_after_starts(self, schema, first, second, key):
        made = make_value(schema, seed=0, key=key)
        assert made[first] < made[second]

    def test_nested_ends_too(self):
        event = result("create_event", obj(start=obj(dateTime=MOMENT), end=obj(dateTime=MOMENT), created=MOMENT), {})
        assert event["created"] < event["start"]["dateTime"] < event["end"]["dateTime"]

    @pytest.mark.parametrize("given_start", ["2024-05-20", "2024-05-20T22:30:00Z", "2024-05-20T22:30:00-08:00"])
    def test_after_the_start_that_the_arguments_give(self, given_start):
        schema = obj(departure=MOMENT, arrival=MOMENT)
        for flight in result(
            "search_flights", {"type": "array", "items": schema, "minItems": 2}, {"departure": given_start}
        ):
            assert "2024-05-20" <= flight["departure"] < flight["arrival"] < "2024-05-22"
        one = result("book", obj(start_date=TEXT, end=MOMENT, end_date=TEXT), {"start_date": given_start})
        assert one["start_date"] == given_start
        assert one["end_date"] > "2024-05-20"

    def test_before_the_end_that_the_arguments_give(self):
        made = result("report", obj(start_date=DATE, end_date=DATE), {"end_date": "2024-05-20"})
        assert made["end_date"] == "2024-05-20"
        assert made["start_date"] < "2024-05-20"


class TestPlausible:
    def test_by_name(self):
        made = result(
            "get_place",
            obj(
                city=TEXT,
                country_code=TEXT,
                url=TEXT,
                currency=TEXT,
                latitude={"type": "number"},
                rating=WHOLE,
                price={"type": "number"},
                zip_code=TEXT,
                phone_number=TEXT,
                success={"type": "boolean"},
                ip_address=TEXT,
            ),
            {},
        )
        assert made["url"].startswith("https://example.com/")
        assert -60 <= made["latitude"] <= 60
        assert 1 <= made["rating"] <= 5
        assert made["price"] == round(made["price"], 2)
        assert len(made["currency"]) == 3
        assert len(made["country_code"]) == 2
        assert "555-01" in made["phone_number"]
        assert made["success"] is True

    def test_counts_count(self):
        made = result("list_users", obj(users={"type": "array", "items": obj(id=TEXT)}, total_count=WHOLE), {})
        assert made["total_count"] == len(made["users"])

    def test_a_page_is_not_longer_than_asked(self):
        for number in range(8):
            assert len(result("list_users", {"type": "array", "items": TEXT}, {"limit": 1, "n": number})) <= 1

    def test_a_success_tells_of_no_error(self):
        schema = {"type": "object", "properties": {"error": TEXT, "id": TEXT, "password": {**TEXT, "writeOnly": True}}}
        assert list(result("get_user", schema, {})) == ["id"]

    def test_most_optional_members_are_there(self):
        schema = {"type": "object", "properties": {f"field_{index}": TEXT for index in range(100)}}
        assert 75 < len(make_value(schema, seed=0, key="k")) < 100

    def test_an_identifier_in_the_manner_of_its_example(self):
        schema = obj(flight_number={**TEXT, "example": "HAT001"}, code={**TEXT, "examples": ["ab-CD"]})
        one, other = (result("get_flight", schema, {"n": number}) for number in (1, 2))
        assert one["flight_number"].startswith("HAT")
        assert len(one["flight_number"]) == 6
        assert one["flight_number"] != other["flight_number"]
        assert one["code"][2] == "-"
        assert one["code"][3:].isupper()


@pytest.mark.parametrize(
    "schema",
    [
        {"const": {"a": [1]}},
        {"enum": [None]},
        {"type": "number", "minimum": 0.001, "maximum": 0.0015},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1e-9},
        {"type": "number", "multipleOf": 0.05, "minimum": 0.12},
        {"type": "integer", "multipleOf": 2.5, "minimum": 6},
        {"type": "integer", "minimum": 1 << 60},
        {"type": "integer", "format": "int32", "minimum": (1 << 31) - 1},
        {"type": "number", "minimum": 1e300},
        {"type": "number", "maximum": -1e300},
        {"type": "string", "minLength": 300},
        {"type": "string", "maxLength": 1},
        {"type": "string", "maxLength": 0},
        {"type": "string", "pattern": "^(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9]{8,}$"},
        {"type": "string", "pattern": "^[a-z]+$", "minLength": 30, "maxLength": 30},
        {"type": "string", "format": "email", "maxLength": 40},
        {"type": "array", "uniqueItems": True, "minItems": 3, "items": {"enum": ["a", "b", "c"]}},
        {"type": "array", "prefixItems": [WHOLE, TEXT], "items": False, "minItems": 2},
        {"type": "array", "contains": {"const": 7}, "minContains": 2, "items": WHOLE},
        {"type": "array", "maxItems": 0},
        {"type": "object", "minProperties": 3},
        {"type": "object", "propertyNames": {"pattern": "^x_"}, "minProperties": 2},
        {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "minProperties": 2},
        {"type": "object", "patternProperties": {"^S_": WHOLE}, "additionalProperties": False, "minProperties": 1},
        {"type": "object", "additionalProperties": WHOLE},
        {"type": "object", "properties": {"a": {}}, "required": ["a"], "dependentRequired": {"a": ["b"]}},
        {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "maxProperties": 1},
        {"oneOf": [{"type": "number"}, WHOLE]},
        {"not": TEXT},
        {"anyOf": [False, {"type": "boolean"}]},
        {"allOf": [{"type": ["integer", "string"]}, {"type": ["number", "null"]}, {"minimum": 3}, {"maximum": 3}]},
        {"allOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]},
        {"if": {"properties": {"k": {"const": 1}}}, "then": {"required": ["z"]}, **obj(k={"enum": [1, 2]})},
        {"unevaluatedProperties": False, "allOf": [obj(a=WHOLE)], "type": "object"},
        {
            "$ref": "#/$defs/tree",
            "$defs": {
                "tree": {
                    **obj(v=WHOLE),
                    "properties": {
                        "v": WHOLE,
                        "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
                        "up": {"$ref": "#/$defs/tree"},
                    },
                }
            },
        },
        {"type": "object", "additionalProperties": {"$ref": "#"}},
        {
            "$ref": "#/$defs/pet",
            "$defs": {
                "pet": {"oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}]},
                "cat": obj(kind={"const": "cat"}),
                "dog": obj(kind={"const": "dog"}),
            },
        },
        {},
        True,
    ],
)
def test_every_kind_of_rule_is_met(schema):
    for key in ("a", "b", "c"):
        assert faults(schema, make_value(schema, seed=0, key=key, subject="get_thing")) == []


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "integer", "minimum": 5, "maximum": 3},
        {"type": "string", "enum": [1]},
        {"not": {}},
        {"type": "array", "uniqueItems": True, "minItems": 5, "items": {"enum": [1, 2]}},
        {"type": "array", "minItems": 10**9},
        {"type": "string", "minLength": 10**9},
        {"type": "object", "minProperties": 10**6},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"$ref": "#/$defs/a", "$defs": {"a": obj(a={"$ref": "#/$defs/a"}, b={"$ref": "#/$defs/a"})}},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 2},
        {"type": "string", "pattern": "^a$", "minLength": 4_000},
        {"allOf": [TEXT, WHOLE]},
    ],
)
def test_what_cannot_be_met_is_passed_on_quickly(schema):
    started = time.process_time()
    said = answer("get_thing", schema, {})
    assert isinstance(said, Pass)
    assert said.reason.startswith("no made-up result fits the result schema: ")
    with pytest.raises(Impossible):
        make_value(schema, seed=0, key="k")
    assert time.process_time() - started < 60  # seconds; nothing here may hang


@given(SCHEMAS, st.text(max_size=4), st.integers(0, 3))
def test_any_schema_that_can_be_met_is_met(schema, key, seed):
    made = make_value(schema, seed=seed, key=key)
    assert faults(schema, made) == []
    assert json.loads(json.dumps(made)) == made
    assert made == make_value(schema, seed=seed, key=key)


@given(JUNK, st.text(max_size=2))
def test_no_schema_breaks_a_run(schema, key):
    said = answer("get_thing", schema, {"a": key})
    assert isinstance(said, Answer | Pass)
    if isinstance(said, Answer) and schema is not None:
        assert faults(schema, said.result) == []


STRANGE = [
    r"^\p{Lu}é[^a-zA-Z0-9]{3}$",
    r"^[\u4e00-\u9fff]{2}$",
    r"^(?!foo)[a-z]{4,8}$",
    r"^[\x00-\x1f]$",
    r"^(a|(?=b)[a-c])+$",
]


@given(st.sampled_from([*PATTERNS, *STRANGE]), st.text(max_size=4))
def test_texts_match_patterns(source, key):
    schema = {"type": "string", "pattern": source}
    assert faults(schema, make_value(schema, seed=0, key=key)) == []


INNER = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8))
ARGUMENTS = st.dictionaries(st.text(max_size=8), st.one_of(INNER, st.lists(INNER, max_size=3)), max_size=5)


@given(
    ARGUMENTS,
    st.sampled_from(["get_thing", "list_things", "create_thing", "is_thing", "count_things", "", "é"]),
    st.sampled_from(["read", "write", None]),
)
def test_any_arguments_are_fine(args, name, effect):
    assert isinstance(answer(name, None, args, effect=effect), Answer)
    assert isinstance(answer(name, USER, args, effect=effect), Answer)


class TestWithoutAResultSchema:
    def test_a_write_says_ok_and_repeats_its_arguments(self):
        said = answer("send_mail", None, {"to": "a@example.com", "count": 2, "blob": {"a": 1}}, effect="write")
        assert said == Answer("ok", {"status": "ok", "to": "a@example.com", "count": 2}, None)

    def test_an_unknown_effect_is_a_write(self):
        assert answer("mail", None, {}, effect=None).patch is None

    def test_a_read_changes_nothing_and_finds_something(self):
        said = answer("get_weather", None, {"city": "Rome"})
        assert isinstance(said, Answer)
        assert said.patch == []
        assert said.result["city"] == "Rome"
        assert said.result["weather"]["id"]

    @pytest.mark.parametrize(
        ("name", "key", "kind"),
        [("search_cars", "items", list), ("is_open", "result", bool), ("calculate_area", "result", float)],
    )
    def test_reads_of_other_kinds(self, name, key, kind):
        assert isinstance(answer(name, None, {}).result[key], kind)


@pytest.fixture(scope="module")
def real_tools(shared_data):
    found = []
    for path in sorted((shared_data / "openapi").iterdir()):
        try:
            found += [(path.name, tool) for tool in Toolkit.from_openapi(path)]
        except ToolkitError:
            continue
    return found


def test_every_real_result_schema_is_met(real_tools):
    with_result = [(document, tool) for document, tool in real_tools if tool.result is not None]
    assert len(with_result) > 150
    for document, tool in with_result:
        made = make_value(tool.result, seed=1, key=tool.name, subject=tool.name)
        assert faults(tool.result, made) == [], (document, tool.name)


def test_every_real_argument_schema_is_met(real_tools):
    for document, tool in real_tools:
        made = make_value(tool.parameters, seed=1, key=tool.name, subject=tool.name)
        assert faults(tool.parameters, made) == [], (document, tool.name)
        assert complaints(tool, made) == [], (document, tool.name)


def test_every_response_of_the_benchmark_tools_is_met(shared_data):
    documents = json.loads((shared_data / "bfcl_multiturn_func_docs.json").read_text(encoding="utf-8"))
    toolkit = Toolkit.from_tools(list(documents.values()))
    with_result = [tool for tool in toolkit if tool.result is not None]
    assert len(with_result) > 100
    for tool in with_result:
        said = answer(tool.name, tool.result, {"name": "a"})
        assert isinstance(said, Answer), tool.name
        assert faults(tool.result, said.result) == [], tool.name
