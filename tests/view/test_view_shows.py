"""What a view says it shows is what its text shows: a model's patch is held against it."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gecko_graph.models.view.view import draw_view
from tests.view.test_view import HOSTILE, JSON, TEXT, WORDS

MISSING = object()


def places(value, path=()):
    """Every place of a document, as a path of keys and indices in text, with its value."""
    yield path, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in members:
        yield from places(each, (*path, str(key)))


def read_at(reader, shown, path):
    for token in path:
        key = int(token) if isinstance(shown, reader.Shown) and shown.kind is list else token
        if not isinstance(shown, reader.Shown) or key not in shown.entries:
            return MISSING
        shown = shown.entries[key]
    return shown


@settings(max_examples=150, deadline=None)
@given(JSON, st.lists(st.sampled_from(WORDS) | TEXT, max_size=5), st.sampled_from([500, 640, 1_000, 3_000]))
@example({"a": {"x" * 300: "y" * 900, "b": [1, {"c": "z" * 400}]}, "d": {}}, ["b"], 500)
@example({"k" * 3_000: {"l" * 3_000: 1}}, [], 500)
@example("x" * 5_000, [], 500)
def test_it_shows_exactly_what_can_be_read_back_whole(reader, state, focus, budget):
    drawn = draw_view(state, focus=focus, budget=budget)
    shown = reader.read(drawn.text)
    for path, _ in places(state):
        found = read_at(reader, shown, path)
        assert drawn.shows(path) == (found is not MISSING and reader.is_whole(found)), path


def test_of_a_collection_only_the_items_in_sight_are_shown():
    state = {"users": [{"id": n, "note": "lorem ipsum " * 5} for n in range(400)], "mail": {"text": HOSTILE[0] * 900}}
    drawn = draw_view(state, focus=["note 7"], budget=2_000)
    assert not drawn.shows(["users"])
    assert not drawn.shows(["mail", "text"])
    assert not drawn.shows([])
    assert any(drawn.shows(["users", str(n)]) for n in range(400))
    assert not all(drawn.shows(["users", str(n)]) for n in range(400))
