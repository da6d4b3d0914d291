"""References in replies: filled in from the run; a text that holds `{{` itself is escaped."""

from __future__ import annotations

import pytest

from gecko_graph.errors import EvaluationFailed
from gecko_graph.models.node import NODE_STATE
from gecko_graph.scenario.references import check_references, fill

ID = "ord_83f1"
STEP = {"call": {"id": "c", "name": "order", "args": {}}}
STEP |= {"outcome": {"status": "ok", "result": {"id": ID, "number": 7}, "patch": [], "rung": "schema"}}


@pytest.fixture(autouse=True)
def state():
    token = NODE_STATE.set({"steps": [STEP]})
    yield
    NODE_STATE.reset(token)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{{ calls[0].result.id }}", ID),
        ("{{ calls[0].result.number }}", 7),
        ("Order {{ calls[0].result.id }}, {{{ calls[0].result.number }}}", f"Order {ID}, {{7}}"),
        ('{{ "{{" }} calls }}', "{{ calls }}"),
        ({"{{ calls[0].result.id }}": ["{{ calls | length }}", None]}, {ID: [1, None]}),
    ],
)
def test_references_are_filled_in(written, meant):
    assert list(check_references(written, "here")) == []
    assert fill(written, "here", 1) == meant


def test_one_that_leads_nowhere_fails():
    with pytest.raises(EvaluationFailed, match=r"calls\[3\]"):
        fill("{{ calls[3].result.id }}", "here", 1)
