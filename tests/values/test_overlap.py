"""What a patch touches, and when two of them race."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph.errors import PatchConflict
from gecko_graph.values.patch import json_equal, overlap
from tests.values.any_patch import CONTAINERS, applied, patches


def test_what_a_patch_changes_is_both_ends_of_a_move_and_of_a_copy_the_new_one():
    patch = [
        {"op": "add", "path": "/a", "value": 1},
        {"op": "move", "from": "/b", "path": "/c"},
        {"op": "copy", "from": "/d", "path": "/e"},
        {"op": "test", "path": "/f", "value": 1},
        {"op": "remove", "path": "/g~1h/0"},
    ]
    readers = [{"op": "test", "path": path, "value": 1} for path in ("/a", "/b", "/c", "/d", "/e", "/f", "/g~1h/0")]
    assert overlap(patch, readers) == ["/a", "/b", "/c", "/e", "/g~1h/0"]


RACES = [
    ("the same place", "replace /a", "replace /a", ["/a"]),
    ("inside", "replace /a", "add /a/b", ["/a/b"]),
    ("neighbours", "replace /a", "replace /b", []),
    ("a longer name", "replace /a", "replace /ab", []),
    ("two appends", "add /l/-", "add /l/-", ["/l/-"]),
    ("append and add at an index", "add /l/-", "add /l/2", ["/l/2"]),
    ("append and replace", "add /l/-", "replace /l/0", []),
    ("append and remove", "add /l/-", "remove /l/0", []),
    ("append to two lists", "add /l/-", "add /m/-", []),
    ("append and change inside an item", "add /l/-", "replace /l/0/x", []),
    ("remove shifts", "remove /l/0", "replace /l/2/x", ["/l/2/x"]),
    ("remove does not shift what comes before", "remove /l/2", "replace /l/0", []),
    ("insertion shifts", "add /l/0", "remove /l/1", ["/l/1"]),
    ("keys that are numbers", "add /d/1", "add /d/2", []),
    ("keys that are numbers, removed", "remove /d/1", "replace /d/2", []),
    ("test reads", "replace /a", "test /a", ["/a"]),
    ("two tests", "test /a", "test /a", []),
    ("copy reads", "replace /a/x", "copy /a /b", ["/a/x"]),
    ("two copies of one", "copy /a /b", "copy /a /c", []),
    ("move takes", "move /a /b", "replace /a/x", ["/a/x"]),
    ("move puts", "move /a /b", "add /b", ["/b"]),
    ("the root", "replace ", "test /a/b", ["/a/b"]),
]


@pytest.mark.parametrize(("a", "b", "expected"), [row[1:] for row in RACES], ids=[row[0] for row in RACES])
def test_overlap(a, b, expected):
    document = {"a": {"x": 1}, "l": [0, 1, {"x": 1}], "d": {"1": 0, "2": 0}}
    assert overlap([operation(a)], [operation(b)], document=document) == expected
    assert sorted(overlap([operation(b)], [operation(a)], document=document)) == expected


def test_overlap_without_the_document_knows_lists_by_their_end_only():
    assert overlap([operation("remove /l/0")], [operation("replace /l/2")]) == []
    assert overlap([operation("add /l/-")], [operation("add /l/2")]) == ["/l/2"]


def operation(words):
    name, *paths = words.split(" ")
    return {"op": name, "path": paths[-1], "value": 0} | ({"from": paths[0]} if len(paths) == 2 else {})


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_patches_that_do_not_overlap_commute(data):
    document = data.draw(CONTAINERS)
    a, b = data.draw(patches(document)), data.draw(patches(document))
    after_a, after_b = applied(document, a), applied(document, b)
    if PatchConflict in (after_a, after_b) or overlap(a[:1], b[:1], document=document) or len(a) > 1 or len(b) > 1:
        return  # only single operations: later ones of a patch speak of places that the first ones have made
    assert json_equal(applied(after_a, b), applied(after_b, a))
