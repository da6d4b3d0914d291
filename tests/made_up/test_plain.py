"""Made-up values: the same in every process, identifiers of their own, arguments and examples repeated, no errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gecko_graph.schemas.complaints import find_faults
from gecko_graph.schemas.made_up.maker import make_value

ROOT = Path(__file__).resolve().parents[2]
TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def obj(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


def listed(**properties):
    return {"type": "array", "minItems": 3, "items": obj(**properties)}


def result(name, schema, args):
    made = make_value(schema, seed=0, key=f"{name} {json.dumps(args)}", hints=args, subject=name)
    assert find_faults(schema, made) == []
    return made


@pytest.mark.slow
def test_in_every_process():
    moment = {**TEXT, "format": "date-time"}
    rows = listed(id=TEXT, n=WHOLE, at=moment, k={"enum": ["a", "b", "c"]}, p={"pattern": "^[A-Z]{4}$"})
    code = (
        "import json, sys; from gecko_graph.schemas.made_up.maker import make_value\n"
        "print(json.dumps(make_value(json.loads(sys.argv[1]), seed=7, key='k', subject='rows')))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code, json.dumps(rows)],
        env={**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(other.stdout) == make_value(rows, seed=7, key="k", subject="rows")


def test_what_is_asked_for_by_its_identifier_has_that_identifier():
    assert result("get_user", obj(id=TEXT), {"user_id": "u1"}) == {"id": "u1"}
    assert result("list_users", listed(id=TEXT), {"user_id": "u1"})[0] != {"id": "u1"}


def test_different_entities_have_different_identifiers():
    schema = obj(order_id=TEXT, invoice_number=WHOLE, uuid={"type": "string", "format": "uuid"})
    orders = [result("open_order", schema, {"customer": name}) for name in ("a", "b", "c", "d")]
    for key in schema["properties"]:
        assert len({order[key] for order in orders}) == 4


@pytest.mark.parametrize(
    "rule", [TEXT, WHOLE, {"type": "string", "pattern": "^[A-Z]{2}[0-9]{4}$"}, {"type": "integer", "maximum": 9}]
)
def test_items_of_one_answer_do_not_share_theirs(rule):
    rows = result("list_orders", listed(id=rule, user_id=TEXT), {"id": "o1", "user_id": "u7"})
    assert len({row["id"] for row in rows}) == len(rows)
    assert {row["user_id"] for row in rows} == {"u7"}


def test_items_that_can_only_have_one_identifier_share_it():
    assert result("list_orders", listed(id={"const": 1}), {}) == [{"id": 1}] * 3


@pytest.mark.parametrize(
    ("args", "schema", "expected"),
    [
        ({"userId": "u1"}, obj(user_id=TEXT), {"user_id": "u1"}),
        ({"email": "a@example.com"}, obj(data=obj(email=TEXT)), {"data": {"email": "a@example.com"}}),
        ({"lines": [{"sku": "a"}]}, obj(lines={"type": "array"}), {"lines": [{"sku": "a"}]}),
    ],
)
def test_an_argument_is_repeated_in_a_field_of_its_name(args, schema, expected):
    assert result("get_user", schema, args) == expected


@pytest.mark.parametrize("value", ["not a number", 1 << 70, [1] * 2_000])
def test_one_that_does_not_fit_is_not(value):
    assert result("get_user", obj(user_id={"type": ["integer", "array"]}), {"user_id": value})["user_id"] != value


def test_a_success_tells_of_no_error():
    schema = {"type": "object", "properties": {"error": TEXT, "id": TEXT, "password": {**TEXT, "writeOnly": True}}}
    assert list(result("get_user", schema, {})) == ["id"]
    state = {"enum": ["deleted", "failed", "open"]}
    made = result("get_user", obj(ok={"type": "boolean"}, failed={"type": "boolean"}, state=state), {})
    assert made == {"ok": True, "failed": False, "state": "open"}


def test_examples_and_defaults_are_used():
    schema = obj(title={**TEXT, "examples": ["Tea"]}, size={**WHOLE, "default": 7}, flight_number={"example": "HAT001"})
    one, other = (result("get_flight", schema, {"n": number}) for number in (1, 2))
    assert (one["title"], one["size"]) == ("Tea", 7)
    assert one["flight_number"].startswith("HAT")
    assert one["flight_number"] != other["flight_number"]


def test_other_texts_say_that_they_are_examples():
    assert result("get_post", obj(postTitle=TEXT), {})["postTitle"].startswith("example post title ")


def test_a_text_that_was_not_found_is_not_null():
    assert result("get_post", {"pattern": "^a(?=b)c$"}, {}) is not None
