"""The suite `plausibility`: what its rules find odd, and what they leave alone."""

from __future__ import annotations

import pytest

from evals.suites.plausibility import Reader
from gecko_graph.toolkit.spec import ToolSpec

TOOL = ToolSpec(name="get_card", description="A card: `debit` or `credit`.", result={"type": "object"}, effect="read")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({}, "empty"),
        ({"last4": "valley"}, "a number"),
        ({"binding": "valley"}, "a noise word"),
        ({"labels": {"key_a1b2": 1}}, "a noise name"),
        ({"created": 26}, "a date"),
        ({"created_at": "harbor"}, "a date"),
        ({"email": "Golden Valley"}, "an address"),
        ({"country_code": "Boston"}, "a code"),
        ({"kind": "Basic"}, "a kind"),
        ({"users": [{"id": "1"}], "total": 55}, "a count"),
        ({"start": "2025-01-02", "end": "2025-01-01"}, "an order"),
        ({"status": "active", "deleted": True}, "a contradiction"),
        ({"success": True, "error": "No."}, "a contradiction"),
        ({"id": "c9"}, "another than asked"),
        ({"id": "c1", "items": [{"id": "c1"}]}, "an identity"),
        ({"rows": [{"id": 5}, {"id": 5}]}, "an identity"),
    ],
)
def test_what_a_person_notices(answer, kind):
    assert kind in {found for found, _ in Reader(TOOL, {"card_id": "c1"}).read(answer)}


def test_what_nobody_notices():
    answer = {
        "id": "c1",
        "kind": "debit",
        "last4": "4242",
        "holder": {"full_name": "Ada Chen", "email": "ada.chen@example.com", "status": "active"},
        "created": 1_750_000_000,
        "updated": 1_750_000_000,
        "uses": [{"id": "u1", "at": "2025-01-01T10:00:00Z"}, {"id": "u2", "at": "2025-01-02T10:00:00Z"}],
        "total_count": 2,
        "deleted": False,
    }
    assert Reader(TOOL, {"card_id": "c1"}).read(answer) == []
