"""Net changes: every difference between two states with its old and new value, nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.values.changes import MANY, net_changes
from gecko_graph.values.patch import apply_patch, json_equal, pointer, tokens
from tests.values.any_patch import JSON


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


@given(st.dictionaries(st.text(max_size=2), JSON, max_size=4), st.dictionaries(st.text(max_size=2), JSON, max_size=4))
def test_whatever_is_gone_from_an_object_is_removed_by_name(before, after):
    removed = {change.path for change in net_changes(before, after) if change.kind == "remove"}
    assert {pointer([key]) for key in before.keys() - after.keys()} <= removed
    added = {change.path for change in net_changes(before, after) if change.kind == "add"}
    assert {pointer([key]) for key in after.keys() - before.keys()} <= added


@given(st.integers(1, 60), st.data())
def test_of_many_lost_members_the_count_is_told_and_which(count, data):
    kept = data.draw(st.sets(st.integers(0, count - 1)))
    before = {"users": {f"u{n}": {"id": n} for n in range(count)}}
    after = {"users": {f"u{n}": {"id": n} for n in kept}}
    changes = net_changes(before, after)
    lost = count - len(kept)
    if lost > MANY:
        (change,) = changes
        assert (change.kind, change.path, change.old, change.new) == ("shrink", "/users", count, len(kept))
        assert set(change.lost) == before["users"].keys() - after["users"].keys()
    else:
        assert [change.kind for change in changes] == ["remove"] * lost


def test_operations_of_any_kind_are_told_as_what_they_come_to():
    before = {"a": {"x": 1}, "l": [1, 2, 3]}
    patch = [
        {"op": "test", "path": "/a/x", "value": 1},
        {"op": "move", "from": "/a", "path": "/b"},
        {"op": "remove", "path": "/l/0"},
        {"op": "add", "path": "/l/0", "value": 1},
    ]
    changes = net_changes(before, apply_patch(before, patch))
    assert [(each.kind, each.path) for each in changes] == [("add", "/b"), ("remove", "/a")]
