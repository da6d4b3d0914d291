"""Any document, and any patch of it."""

import copy

import jsonpatch
import jsonpointer
from hypothesis import strategies as st

from gecko_graph.errors import PatchConflict
from gecko_graph.values.patch import apply_patch
from gecko_graph.values.places import pointer

KEYS = st.sampled_from(["a", "b", "", "0", "1", "01", "-", "~", "/", "~1", "ü", "a/b~c"])
SCALARS = st.sampled_from([None, True, False, 0, 1, 2, 1.0, 0.0, 0.5, "", "a", "1"])
JSON = st.recursive(
    SCALARS, lambda child: st.lists(child, max_size=4) | st.dictionaries(KEYS, child, max_size=4), max_leaves=8
)
CONTAINERS = st.lists(JSON, max_size=4) | st.dictionaries(KEYS, JSON, max_size=4)


def places(document, path=()):
    """Every pointer into a document, with those at which something new could be put."""
    yield pointer(path)
    if isinstance(document, dict):
        for key, value in document.items():
            yield from places(value, (*path, key))
        yield pointer((*path, "new"))
    if isinstance(document, list):
        for index, value in enumerate(document):
            yield from places(value, (*path, index))
        yield pointer((*path, "-"))
        yield pointer((*path, len(document)))


@st.composite
def patches(draw, document):
    """Operations that mostly, but not always, find what they name."""
    operations = []
    for name in draw(st.lists(st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), max_size=5)):
        near = st.sampled_from(list(places(document)))
        place = near | st.lists(KEYS, max_size=3).map(pointer)
        operation = {"op": name, "path": draw(place)}
        if name in ("add", "replace", "test"):
            operation["value"] = draw(JSON)
        if name in ("move", "copy"):
            operation["from"] = draw(place)
        operations.append(operation)
        document = applied(document, [operation], otherwise=document)
    return operations


@st.composite
def cases(draw):
    document = draw(CONTAINERS)
    return document, draw(patches(document))


def applied(document, patch, *, otherwise=PatchConflict):
    try:
        return apply_patch(document, patch)
    except PatchConflict:
        return otherwise


def by_oracle(document, patch):
    try:
        return jsonpatch.apply_patch(copy.deepcopy(document), copy.deepcopy(patch))
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException):
        return PatchConflict
