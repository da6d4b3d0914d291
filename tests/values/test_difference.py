"""Differences and equality of JSON documents."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gecko_graph.values.patch import apply_patch, json_equal, make_patch

KEYS = st.sampled_from(["a", "b", "", "0", "1", "01", "-", "~", "/", "~1", "ü", "a/b~c"])
SCALARS = st.sampled_from([None, True, False, 0, 1, 2, 1.0, 0.0, 0.5, "", "a", "1"])
JSON = st.recursive(
    SCALARS, lambda child: st.lists(child, max_size=4) | st.dictionaries(KEYS, child, max_size=4), max_leaves=8
)


@given(JSON, JSON)
def test_equality_is_that_of_the_json_text(a, b):
    # 0.0 is the one value here whose text has two forms, and -0.0 is not among them.
    assert json_equal(a, b) == (json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True))


@pytest.mark.parametrize(
    ("a", "b"), [(1, True), (0, False), (1, 1.0), ("1", 1), (None, False), ([], {}), ("", None), ([1], [1, 1])]
)
def test_types_count(a, b):
    assert not json_equal(a, b)
    assert not json_equal({"x": [a]}, {"x": [b]})
    assert json_equal(apply_patch({"x": a}, make_patch({"x": a}, {"x": b})), {"x": b})


@settings(max_examples=250, deadline=None)
@given(JSON, JSON)
@example([0, 1, 2, 3], [0, 2, 3, 4])
@example({"a": 1, "b": True}, {"a": 1.0, "b": 1})
@example([True], [1])
@example({"a": {"x": 1}}, {"a": {}})
def test_applying_the_difference_gives_the_other(before, after):
    kept = copy.deepcopy(before)
    patch = make_patch(before, after)
    assert json_equal(apply_patch(before, patch), after)
    assert json_equal(before, kept)
    assert (patch == []) == json_equal(before, after)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=30), st.lists(st.integers(0, 5), max_size=30))
def test_difference_of_lists(before, after):
    patch = make_patch(before, after)
    assert apply_patch(before, patch) == after
    assert len(patch) <= len(before) + len(after) - 2 * longest_common(before, after)


def longest_common(a, b):
    row = [0] * (len(b) + 1)
    for x in a:
        last = row
        row = [0]
        for index, y in enumerate(b):
            row.append(last[index] + 1 if x == y else max(last[index + 1], row[index]))
    return row[-1]


# --- differences that a person can read ---


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ([1, 2, 3], [1, 3], [{"op": "remove", "path": "/1"}]),
        ([1, 3], [1, 2, 3], [{"op": "add", "path": "/1", "value": 2}]),
        ([1], [1, 2, 3], [{"op": "add", "path": "/1", "value": 2}, {"op": "add", "path": "/2", "value": 3}]),
        ([1, 2, 3, 4], [2, 4], [{"op": "remove", "path": "/2"}, {"op": "remove", "path": "/0"}]),
        ([{"id": 1, "n": 1}, {"id": 2, "n": 1}], [{"id": 1, "n": 1}, {"id": 2, "n": 5}],
         [{"op": "replace", "path": "/1/n", "value": 5}]),
        ([{"id": 1, "n": 1}, {"id": 2, "n": 1}, {"id": 3, "n": 1}], [{"id": 1, "n": 2}, {"id": 3, "n": 1}],
         [{"op": "replace", "path": "/0/n", "value": 2}, {"op": "remove", "path": "/1"}]),
        ({"a": {"x": 1}}, {"a": {"y": 2}}, [{"op": "replace", "path": "/a", "value": {"y": 2}}]),
        ({"a": []}, {"a": [1, 2]}, [{"op": "replace", "path": "/a", "value": [1, 2]}]),
        ({"a/b": {"~": 1, "k": 0}}, {"a/b": {"~": 2, "k": 0}}, [{"op": "replace", "path": "/a~1b/~0", "value": 2}]),
        (1, 2, [{"op": "replace", "path": "", "value": 2}]),
    ],
)  # fmt: skip
def test_small_differences(before, after, patch):
    assert make_patch(before, after) == patch
    assert json_equal(apply_patch(before, patch), after)


def test_two_removals_far_apart_in_a_long_list():
    before = [{"id": n, "text": f"message {n}"} for n in range(5_000)]
    after = before[:10] + before[11:4_000] + before[4_001:]
    assert make_patch(before, copy.deepcopy(after)) == [
        {"op": "remove", "path": "/4000"},
        {"op": "remove", "path": "/10"},
    ]


def test_a_list_that_is_all_new_is_replaced():
    before, after = list(range(1_000)), list(range(2_000, 3_500))
    assert make_patch({"l": before}, {"l": after}) == [{"op": "replace", "path": "/l", "value": after}]


def test_one_field_of_every_item():
    before = [{"id": n, "price": 1, "name": "a" * 40} for n in range(1_000)]
    after = [{**item, "price": 2} for item in before]
    patch = make_patch(before, after)
    assert len(patch) == 1_000
    assert patch[0] == {"op": "replace", "path": "/0/price", "value": 2}
