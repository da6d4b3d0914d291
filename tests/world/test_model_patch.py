"""A model's patch: what it can only mean is taken, and nothing is lost that the model was not shown."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph import GeckoContext
from gecko_graph.errors import PatchConflict
from gecko_graph.models.ask import Where
from gecko_graph.models.roles import StateChange
from gecko_graph.models.view.view import View
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.values.patch import apply_patch
from gecko_graph.world.model_patch import read_patch, view_for
from gecko_graph.world.rung import RungRequest

SHOWN = View("", lambda path: True)
HIDDEN = View("", lambda path: False)


def read(patch, state, *, view=SHOWN, args=None):
    request = RungRequest(
        tool=ToolSpec(name="put", effect="write"),
        call={"id": "1", "name": "put", "args": args or {}},
        state=state,
        facts={},
        context=GeckoContext(),
        where=Where(),
    )
    return read_patch(StateChange(patch=patch), request, view)


def op(kind, path, value=None, **more):
    return {"op": kind, "path": path, **({"value": value} if kind in ("add", "replace", "test") else {}), **more}


# paths that mean one thing only


@pytest.mark.parametrize("path", ["/files/a/b.txt/size", "/files/a~01b.txt/size", "/files/a~1b.txt/size"])
def test_a_slash_in_a_key_is_understood_escaped_once_twice_or_not_at_all(path):
    state = {"files": {"a/b.txt": {"size": 1}}}
    assert apply_patch(state, read([op("replace", path, 2)], state)) == {"files": {"a/b.txt": {"size": 2}}}
    assert read([op("add", path.replace("/size", "/kind"), "t")], state) == [op("add", "/files/a~1b.txt/kind", "t")]


def test_where_two_paths_fit_none_is_guessed():
    state = {"a": {"b/c": 1}, "a/b": {"c": 1}}
    with pytest.raises(PatchConflict, match="it does not apply to the state: operation 0"):
        read([op("replace", "/a/b/c", 2)], state)


def test_a_path_that_leads_somewhere_is_taken_as_it_is():
    state = {"a": {"b": 1}, "a/b": 1}
    assert read([op("replace", "/a/b", 2)], state) == [op("replace", "/a/b", 2)]


# removals from lists


@pytest.mark.parametrize(
    "patch",
    [
        [op("remove", "/a/0"), op("remove", "/a/1")],
        [op("remove", f"/a/{n}") for n in range(4)],
        [op("remove", "/a/0"), op("remove", "/a/0")],
        [op("remove", "/a/0"), op("replace", "/a/1/n", 9)],
        [op("add", "/a/0", {}), op("remove", "/a/1")],
        [{"op": "move", "from": "/a/0", "path": "/b"}, op("remove", "/a/1")],
    ],
)
def test_where_an_index_can_mean_two_items_the_model_is_told_the_order(patch):
    with pytest.raises(PatchConflict, match="from the highest index down"):
        read(patch, {"a": [{"n": n} for n in range(4)]})


@pytest.mark.parametrize(
    "patch",
    [
        [op("remove", "/a/2"), op("remove", "/a/0")],
        [op("add", "/a/0", {}), op("add", "/a/1", 2), op("add", "/a/0/n", 3)],
        [op("remove", "/a/1"), op("add", "/a/-", 1), op("replace", "/a/0/n", 5)],
        [op("add", "/b", []), op("add", "/b/-", 1), op("remove", "/b/0")],
    ],
)
def test_what_means_one_thing_passes(patch):
    assert read(patch, {"a": [{"n": n} for n in range(4)]}) == patch


# what was not shown


@pytest.mark.parametrize(
    "patch",
    [
        [op("replace", "/users", [])],
        [op("remove", "/users")],
        [op("add", "/users", [])],
        [op("replace", "/note", "short")],
        [{"op": "copy", "from": "/n", "path": "/users"}],
        [{"op": "move", "from": "/n", "path": "/users"}],
        [{"op": "move", "from": "/users", "path": "/old"}, op("remove", "/old")],
        [{"op": "move", "from": "/users", "path": "/old"}, op("replace", "/old/0", 1)],
        [op("add", "/b", {}), {"op": "move", "from": "/users", "path": "/b/c"}, op("remove", "/b")],
        [
            {"op": "move", "from": "/users", "path": "/x"},
            op("add", "/b", {}),
            {"op": "move", "from": "/x", "path": "/b/c"},
            op("replace", "/b", {}),
        ],
        [op("remove", "/users/0")],
    ],
)
def test_nothing_unseen_is_replaced_or_removed(patch):
    with pytest.raises(PatchConflict, match="would lose parts that the view leaves out"):
        read(patch, {"users": [{"id": 10}, {"id": 11}], "note": "long", "n": 1}, view=HIDDEN)


@pytest.mark.parametrize(
    "patch",
    [
        [op("replace", "", {})],
        [op("add", "", {})],
        [{"op": "move", "from": "/users", "path": ""}],
        [{"op": "copy", "from": "", "path": "/old"}],
    ],
)
def test_the_whole_state_is_never_replaced(patch):
    with pytest.raises(PatchConflict, match="the whole state cannot be replaced"):
        read(patch, {"users": {"a": 1}})


@pytest.mark.parametrize(
    ("patch", "args"),
    [
        ([op("add", "/users/-", {}), op("add", "/users/0", {}), op("add", "/new", 1)], {}),
        ([{"op": "move", "from": "/users", "path": "/old"}], {}),
        ([op("test", "/n", 1)], {}),
        ([op("remove", "/users/1")], {"id": 11}),
        ([op("remove", "/files/report.pdf")], {"path": "docs/report.pdf"}),
        ([op("replace", "/note", "all new")], {"text": "all new"}),
        ([op("replace", "/n", 21)], {"degrees": 21}),
    ],
)
def test_what_loses_nothing_or_is_named_by_the_call_passes_unseen(patch, args):
    state = {"users": [{"id": 10}, {"id": 11}], "files": {"report.pdf": {}}, "note": "long", "n": 1}
    assert read([*patch, op("add", "/done", True)], state, view=HIDDEN, args=args)


NAMES = st.sampled_from(["users", "mail", "box", "deep/er", "k~y"])
RECORDS = st.integers(5, 60).map(lambda count: [{"id": n, "text": "lorem ipsum dolor " * 4} for n in range(count)])
STATES = st.dictionaries(NAMES, RECORDS | st.dictionaries(NAMES, RECORDS, max_size=3), min_size=2, max_size=5)


def places(value, path=""):
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in members:
        inner = f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
        yield inner
        yield from places(each, inner)


@settings(max_examples=60, deadline=None)
@given(STATES, st.data())
def test_a_patch_that_is_taken_loses_only_what_was_shown_whole(state, data):
    request = RungRequest(
        tool=ToolSpec(name="put", effect="write"), call={"id": "1", "name": "put", "args": {}}, state=state, facts={},
        context=GeckoContext(view_chars=1_000), where=Where(),
    )  # fmt: skip
    path = data.draw(st.sampled_from(list(places(state))))
    patch = [op(data.draw(st.sampled_from(["remove", "replace"])), path, 1)]
    view, before = view_for(request, []), copy.deepcopy(state)
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in path[1:].split("/")]
    if view.shows(tokens):
        assert read_patch(StateChange(patch=patch), request, view) == patch
    else:
        with pytest.raises(PatchConflict, match="would lose"):
            read_patch(StateChange(patch=patch), request, view)
    assert state == before
