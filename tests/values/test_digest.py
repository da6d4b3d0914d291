"""Digest, clone and check of JSON documents."""

import copy
import enum
import json
import random
from collections import OrderedDict

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from gecko_graph.errors import StateError
from gecko_graph.values.difference import json_equal
from gecko_graph.values.digest import MAX_DEPTH, check_json, clone, digest

NUMBERS = (
    st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0, 1, 1.0, -0.0])
)
ANY_TEXT = st.text(st.characters(), max_size=4)  # characters() has half surrogate pairs, too
SCALARS = st.none() | st.booleans() | NUMBERS | ANY_TEXT
JSON = st.recursive(
    SCALARS, lambda child: st.lists(child, max_size=4) | st.dictionaries(ANY_TEXT, child, max_size=4), max_leaves=10
)


def shuffled(value, chance):
    """The same document, its keys in another order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key], chance) for key in chance.sample(list(value), len(value))}
    return [shuffled(item, chance) for item in value] if isinstance(value, list) else value


@settings(max_examples=100, deadline=None)
@given(JSON, st.randoms(use_true_random=False))
@example({"a": {"x": 2**64, "y": -0.0}, "b": "\ud800"}, random.Random(1))
def test_the_order_of_keys_does_not_count(document, chance):
    assert digest(shuffled(document, chance)) == digest(document)


@settings(max_examples=100, deadline=None)
@given(JSON, JSON)
@example(0.0, -0.0)
@example([0.0, 2**64], [-0.0, 2**64])
@example(["\ud800", 0.0], ["\ud800", -0.0])
@example(2**64, str(2**64))
@example(2**64, 2.0**64)
@example("\ud800", json.dumps("\ud800"))
def test_digests_are_equal_where_documents_are(a, b):
    assert (digest(a) == digest(b)) == json_equal(a, b)


LOOK_ALIKES = [
    1, 1.0, True, "1", [1], {"1": 1}, None, 0, 0.0, False, "", [], {}, [[]], [None], {"": None}, "None", "true", 2**63,
    2**64, 2**64 + 1, -(2**63), -(2**63) - 1, float(2**64), str(2**64), hex(2**64), ["a", "b"], ["ab"], {"a": "b"},
    [["a"], "b"],
    "\ud800", "\ud801", "\\ud800", "?", 1e308, 5e-324,
]  # fmt: skip


def test_look_alikes_differ_and_digests_stay_as_they_are():
    assert len({digest(value) for value in LOOK_ALIKES}) == len(LOOK_ALIKES)
    assert len({digest({"in": [value]}) for value in LOOK_ALIKES}) == len(LOOK_ALIKES)
    # digests are kept in checkpoints and records: another one would look like another state
    kept = "423b169956991580a88f03ded238d18a2188816f28f4e165a7e42efe765c32eb"
    assert digest({"b": [1, 2.5, None, True], "a": "ü"}) == kept


@settings(max_examples=100, deadline=None)
@given(JSON)
@example({"a": 2**64, "b": [-(2**80), "\ud800"]})
def test_a_clone_is_equal_and_shares_nothing(document):
    kept = copy.deepcopy(document)
    twin = clone(document)
    assert json_equal(twin, kept)
    assert repr(twin) == repr(kept)  # the order of keys and the sign of zero too
    assert not containers(twin) & containers(document)


def test_a_clone_of_shared_parts_shares_them_no_more():
    one, other = clone([part := {"n": [1]}, part])
    assert not containers(one) & containers(other)


def containers(value):
    """Ids of all containers in a document."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = {id(value)} if isinstance(value, (dict, list)) else set()
    return found.union(*(containers(item) for item in inner))


class Colour(enum.StrEnum):
    RED = "red"


def nested(levels, make):
    value = 1
    for _ in range(levels):
        value = make(value)
    return value


def in_a_circle():
    value = {"a": [{}]}
    value["a"][0]["b"] = value
    return value


def doubled():
    value = []
    for _ in range(60):
        value = [value, value]
    return {"a": value}


FAULTS = [
    ("nan", {"a": [0, float("nan")]}, "/a/1 is NaN", "a finite number"),
    ("tuple", {"a": (1, 2)}, "/a is [1, 2]", "tuple"),
    ("bytes", {"a": b"x"}, "/a ", "bytes"),
    ("enum", {"a": Colour.RED}, "/a ", "Colour"),
    ("class", {"a": object()}, "/a ", "object"),
    ("ordered dict", {"a": OrderedDict(x=1)}, "/a ", "OrderedDict"),
    ("number as key", {"a": {"b": 0, 1: 2}}, "/a is the key 1", "text keys"),
    ("long integer", {"a": 2**64}, "/a ", "64 bits"),
    ("half a surrogate pair", {"a": "x\ud800"}, "/a ", "surrogate"),
    ("too deep, lists", nested(MAX_DEPTH + 1, lambda value: [value]), "/0" * MAX_DEPTH, "100 levels"),
    ("below a long key", {"k" * 5_000: b""}, "/kkk", "bytes"),
    ("a circle", in_a_circle(), "/a/0/b/a/0/b", "100 levels"),
    ("doubled sixty times", doubled(), "/a/0", "1,000,000 values"),
    ("the first of several", {"a": 1, "b": [2, {"c": b""}, float("nan")]}, "/b/1/c ", "bytes"),
]


@pytest.mark.parametrize(("value", "place", "why"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_what_is_not_json_is_named(value, place, why):
    with pytest.raises(StateError) as error:
        check_json(value, what="task_state")
    assert str(error.value).startswith(f"task_state: {place}")
    assert why in str(error.value)
    assert len(str(error.value)) < 1_000


@settings(max_examples=100, deadline=None)
@given(JSON)
def test_what_passes_is_kept_by_a_checkpoint_as_it_is(document):
    serde = JsonPlusSerializer()
    try:
        kept = serde.loads_typed(serde.dumps_typed(document))
    except TypeError:
        kept = None
    assert passes(document) == (document is None or json_equal(kept, document))


def passes(document):
    try:
        check_json(document, what="it")
    except StateError:
        return False
    return True
