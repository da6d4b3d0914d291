"""Drift: what differs from the prediction in more than what that made up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.values.difference import json_equal
from gecko_graph.world.booking import find_drift, real_values, with_real_values

CALL = {"id": "c", "name": "order", "args": {"item": "pen", "limit": 2500}}
PREDICTED = {"id": "ord_5000", "item": "pen", "limit": 2500, "state": "open", "at": "2026-01-01T10:00:00Z"}
REAL = {"id": "ord_9321", "item": "pen", "limit": 2500, "state": "open", "at": "2026-11-22T07:00:01Z"}


def outcome(result, status="ok", patch=()):
    return {"status": status, "result": result, "patch": [*patch], "rung": "x", "simulated": True, "passed": []}


def drift_of(predicted, real, schema=None, status="ok"):
    values = real_values(CALL, predicted, real)
    return find_drift(CALL, outcome(predicted), outcome(real, status), values, schema)


def test_identifiers_and_times_that_a_prediction_made_up_are_no_drift():
    assert real_values(CALL, PREDICTED, REAL) == {"/id": "ord_9321", "/at": "2026-11-22T07:00:01Z"}
    assert drift_of(PREDICTED, REAL) == []


def test_the_predicted_change_gets_the_real_values_as_keys_and_as_values():
    patch = [
        {"op": "add", "path": "/orders/ord_5000", "value": {"id": "ord_5000", "made": ["2026-01-01T10:00:00Z", "pen"]}},
        {"op": "add", "path": "/last", "value": {"ord_5000": True, "count": 1}},
    ]
    assert with_real_values(patch, PREDICTED, real_values(CALL, PREDICTED, REAL)) == [
        {"op": "add", "path": "/orders/ord_9321", "value": {"id": "ord_9321", "made": ["2026-11-22T07:00:01Z", "pen"]}},
        {"op": "add", "path": "/last", "value": {"ord_9321": True, "count": 1}},
    ]


def test_what_else_differs_is_drift_place_by_place():
    real = {**REAL, "state": "waiting", "limit": 2400, "note": "soon"}
    found = drift_of(PREDICTED, real, schema={"type": "object", "required": ["total"]})
    assert [(drift["kind"], drift["path"]) for drift in found] == [
        ("schema", ""), ("value", "/limit"), ("value", "/state"), ("value", "/note"),
    ]  # fmt: skip
    assert drift_of(PREDICTED, "no stock", status="error") == [
        {"kind": "status", "path": "", "predicted": "ok", "real": "error"}
    ]


def test_the_state_drifts_where_it_holds_what_the_result_contradicts_or_does_not_have():
    patch = [
        {"op": "add", "path": "/orders/ord_5000", "value": {"item": "pen", "at": PREDICTED["at"]}},
        {"op": "replace", "path": "/state", "value": "open"},
        {"op": "replace", "path": "/open", "value": "open"},
    ]
    found = find_drift(CALL, outcome(PREDICTED), outcome({"item": "pen", "state": "waiting"}, patch=patch), {}, None)
    assert [each for each in found if each["kind"] == "state"] == [
        {"kind": "state", "path": "/orders/ord_5000", "predicted": "ord_5000", "real": None},
        {"kind": "state", "path": "/state", "predicted": "open", "real": "waiting"},
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_equal_results_never_drift_and_no_two_results_raise(one, other):
    assert drift_of(one, one) == []
    assert drift_of(one, other) == [] or not json_equal(one, other)
    with_real_values([{"op": "add", "path": "", "value": one}], one, real_values(CALL, one, other))
