"""Made-up values look like what they stand for: identities, order in time, names, and the same in every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.generator.maker import make_value
from gecko_graph.schemas.complaints import find_faults

ROOT = Path(__file__).resolve().parents[2]
TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
MOMENT = {"type": "string", "format": "date-time"}
MILLISECONDS = {"type": "integer", "description": "unix time in milliseconds"}
DATE = {"type": "string", "format": "date"}


def obj(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


def listed(**properties):
    return {"type": "array", "minItems": 3, "items": obj(**properties)}


def result(name, schema, args):
    made = make_value(schema, seed=0, key=f"{name} {json.dumps(args)}", hints=args, subject=name)
    assert find_faults(schema, made) == []
    return made


USER = obj(user_id=TEXT, name=TEXT, email=TEXT, phone=TEXT, city=TEXT, joined_at=MOMENT)


@pytest.mark.slow
def test_in_every_process():
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
    assert json.loads(other.stdout) == [make_value(schema, seed=7, key="k", subject="rows") for schema in (USER, rows)]


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
        made = result("create_comment", obj(id=TEXT, post_id=TEXT, text=TEXT), {"post_id": "p1", "text": "hi"})
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

    def test_no_noise_where_a_name_has_a_meaning(self):
        channel = {**TEXT, "description": "One of `sms`, `voice` or `push-note`."}
        labels = {"type": "object", "additionalProperties": TEXT}
        for n in range(5):
            made = result(
                "get_card", obj(last4=TEXT, created=WHOLE, channel=channel, binding=TEXT, labels=labels), {"n": n}
            )
            assert made["last4"].isdigit()
            assert made["created"] > 1_500_000_000
            assert made["channel"] in ("sms", "voice", "push-note")
            assert made["binding"].startswith("binding ")
            assert all(name.startswith("label_") for name in made["labels"])
