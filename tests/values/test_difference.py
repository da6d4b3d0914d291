"""Differences and equality of JSON documents, their net changes, and what two patches both touch."""

import copy
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gecko_graph.errors import PatchConflict
from gecko_graph.values.difference import MANY, json_equal, make_patch, net_changes
from gecko_graph.values.patch import apply_patch, overlap, tokens
from tests.values.any_patch import CONTAINERS, JSON, applied, patches


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


@settings(max_examples=60, deadline=None)
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


@pytest.mark.parametrize(("before", "after", "patch"), [
    ([1, 2, 3], [1, 3], [{"op": "remove", "path": "/1"}]),
    ([1], [1, 2, 3], [{"op": "add", "path": "/1", "value": 2}, {"op": "add", "path": "/2", "value": 3}]),
    ([0, 1, 2, 3], [0, 2, 3, 4], [{"op": "add", "path": "/4", "value": 4}, {"op": "remove", "path": "/1"}]),
    ([1, 2, 3, 4], [2, 4], [{"op": "remove", "path": "/2"}, {"op": "remove", "path": "/0"}]),
    ([{"id": 1, "n": 1}, {"id": 2, "n": 1}], [{"id": 1, "n": 1}, {"id": 2, "n": 5}],
     [{"op": "replace", "path": "/1/n", "value": 5}]),
    ([{"id": 1, "n": 1}, {"id": 2, "n": 1}, {"id": 3, "n": 1}], [{"id": 1, "n": 2}, {"id": 3, "n": 1}],
     [{"op": "replace", "path": "/0/n", "value": 2}, {"op": "remove", "path": "/1"}]),
    ({"a": {"x": 1}}, {"a": {"y": 2}}, [{"op": "replace", "path": "/a", "value": {"y": 2}}]),
    ({"a/b": {"~": 1, "k": 0}}, {"a/b": {"~": 2, "k": 0}}, [{"op": "replace", "path": "/a~1b/~0", "value": 2}]),
])  # fmt: skip
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


def at(document, path):
    for token in tokens(path):
        document = document[int(token) if isinstance(document, list) else token]
    return document


@given(JSON, JSON)
def test_old_values_are_true_and_only_equal_states_have_no_changes(before, after):
    changes = net_changes(before, after)
    assert (changes == []) == json_equal(before, after)
    for change in changes:
        if change.kind in ("remove", "replace"):
            assert json_equal(at(before, change.path), change.old)
        if change.kind == "replace":
            assert not json_equal(change.old, change.new)


@pytest.mark.parametrize("lost", [0, 1, MANY, MANY + 1, 60])
def test_of_many_lost_members_the_count_is_told_and_which(lost):
    before = {"users": {f"u{n}": {"id": n} for n in range(70)}}
    after = {"users": dict([*before["users"].items()][lost:])}
    changes = net_changes(before, after)
    if lost <= MANY:
        assert [change.kind for change in changes] == ["remove"] * lost
        return
    (change,) = changes
    assert (change.kind, change.path, change.old, change.new) == ("shrink", "/users", 70, 70 - lost)
    assert set(change.lost) == before["users"].keys() - after["users"].keys()


RACES = [
    ("the same place", "replace /a", "replace /a", ["/a"]), ("inside", "replace /a", "add /a/b", ["/a/b"]),
    ("a longer name", "replace /a", "replace /ab", []), ("two appends", "add /l/-", "add /l/-", ["/l/-"]),
    ("append and add at an index", "add /l/-", "add /l/2", ["/l/2"]),
    ("append and replace", "add /l/-", "replace /l/0", []),
    ("append and change inside an item", "add /l/-", "replace /l/0/x", []),
    ("remove shifts", "remove /l/0", "replace /l/2/x", ["/l/2/x"]),
    ("remove does not shift what comes before", "remove /l/2", "replace /l/0", []),
    ("insertion shifts", "add /l/0", "remove /l/1", ["/l/1"]),
    ("keys that are numbers", "add /d/1", "add /d/2", []), ("test reads", "replace /a", "test /a", ["/a"]),
    ("copy reads", "replace /a/x", "copy /a /b", ["/a/x"]), ("two copies of one", "copy /a /b", "copy /a /c", []),
    ("move takes", "move /a /b", "replace /a/x", ["/a/x"]), ("the root", "replace ", "test /a/b", ["/a/b"]),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "expected"), [row[1:] for row in RACES], ids=[row[0] for row in RACES])
def test_overlap(a, b, expected):
    document = {"a": {"x": 1}, "l": [0, 1, {"x": 1}], "d": {"1": 0, "2": 0}}
    assert overlap([operation(a)], [operation(b)], document=document) == expected
    assert sorted(overlap([operation(b)], [operation(a)], document=document)) == expected


def test_what_a_patch_changes_is_both_ends_of_a_move_and_of_a_copy_the_new_one():
    patch = [operation(each) for each in ("add /a", "move /b /c", "copy /d /e", "test /f", "remove /g~1h/0")]
    readers = [operation(f"test /{name}") for name in ("a", "b", "c", "d", "e", "f", "g~1h/0")]
    assert overlap(patch, readers) == ["/a", "/b", "/c", "/e", "/g~1h/0"]
    # without the document lists are known by their end only
    assert overlap([operation("remove /l/0")], [operation("replace /l/2")]) == []
    assert overlap([operation("add /l/-")], [operation("add /l/2")]) == ["/l/2"]


def operation(words):
    name, *paths = words.split(" ")
    return {"op": name, "path": paths[-1], "value": 0} | ({"from": paths[0]} if len(paths) == 2 else {})


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_patches_that_do_not_overlap_commute(data):
    document = data.draw(CONTAINERS)
    a, b = data.draw(patches(document)), data.draw(patches(document))
    after_a, after_b = applied(document, a), applied(document, b)
    if PatchConflict in (after_a, after_b) or overlap(a[:1], b[:1], document=document) or len(a) > 1 or len(b) > 1:
        return  # only single operations: later ones of a patch speak of places that the first ones have made
    assert json_equal(applied(after_a, b), applied(after_b, a))
