"""Which change each value comes from, against an oracle that stamps every single value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.errors import PatchConflict
from gecko_graph.values.origins import Mark, OriginMap, is_doubtful
from gecko_graph.values.patch import apply_patch, tokens
from gecko_graph.values.places import pointer
from tests.values.any_patch import JSON, patches


def mark(number, doubtful=False):
    return Mark("chosen" if doubtful else "stated", step=number)


START = mark(0)


class Stamped:
    """A value with its stamp, its stamped members, and the stamps of members that were taken out."""

    def __init__(self, value, stamp):
        self.stamp, self.gone, self.scalar, self.members = stamp, {}, None, None
        if isinstance(value, dict):
            self.members = {key: Stamped(inner, stamp) for key, inner in value.items()}
        elif isinstance(value, list):
            self.members = [Stamped(inner, stamp) for inner in value]
        else:
            self.scalar = value

    def stamp_all(self, stamp):
        self.stamp, self.gone = stamp, {}
        for inner in self.values():
            inner.stamp_all(stamp)
        return self

    def values(self):
        return self.members.values() if isinstance(self.members, dict) else self.members or ()

    def copy(self):
        other = Stamped(None, self.stamp)
        other.gone, other.scalar = dict(self.gone), self.scalar
        if isinstance(self.members, dict):
            other.members = {key: inner.copy() for key, inner in self.members.items()}
        elif isinstance(self.members, list):
            other.members = [inner.copy() for inner in self.members]
        return other

    def find(self, path):
        value = self
        for token in path:
            value = value.members[token if isinstance(value.members, dict) else int(token)]
        return value


class Oracle:
    def __init__(self, document, stamp):
        self.root = Stamped(document, stamp)

    def take(self, path, stamp):
        parent, key = self.root.find(path[:-1]), path[-1]
        if isinstance(parent.members, dict):
            parent.gone[key] = stamp
            return parent.members.pop(key)
        if not parent.stamp.doubtful:
            parent.stamp = stamp
        return parent.members.pop(int(key))

    def put(self, path, value):
        if not path:
            self.root = value
            return
        parent, key = self.root.find(path[:-1]), path[-1]
        if isinstance(parent.members, dict):
            parent.gone.pop(key, None)
            parent.members[key] = value
        else:
            parent.members.insert(len(parent.members) if key == "-" else int(key), value)

    def run(self, operation, stamp):
        name, path = operation["op"], tokens(operation["path"])
        if name == "remove":
            self.take(path, stamp)
        elif name in ("move", "copy"):
            source = tokens(operation["from"])
            if name == "move" and source == path:
                return
            value = self.take(source, stamp) if name == "move" else self.root.find(source).copy()
            self.put(path, value.stamp_all(stamp) if stamp.doubtful else value)
        elif name != "test":
            value = Stamped(operation["value"], stamp)
            if name == "replace" and path and isinstance(members := self.root.find(path[:-1]).members, list):
                members[int(path[-1])] = value
            else:
                self.put(path, value)


def every(value, path=()):
    yield path, value
    members = value.members.items() if isinstance(value.members, dict) else enumerate(value.members or ())
    for key, inner in members:
        yield from every(inner, (*path, key))


def any_doubtful(value):
    return (
        value.stamp.doubtful
        or any(map(any_doubtful, value.values()))
        or any(one.doubtful for one in value.gone.values())
    )


@given(JSON, st.data())
def test_every_value_has_the_stamp_of_the_oracle(document, data):
    ledger, oracle, state = OriginMap(document, START), Oracle(document, START), document
    for number in range(1, data.draw(st.integers(1, 4)) + 1):
        stamp = mark(number, data.draw(st.booleans()))
        for operation in data.draw(patches(state)):
            try:
                state = apply_patch(state, [operation])
            except PatchConflict:
                with pytest.raises(PatchConflict):
                    ledger.apply([operation], stamp)
                continue
            ledger.apply([operation], stamp)
            oracle.run(operation, stamp)
    assert ledger.document == state
    parts = ledger.doubtful()
    exact = not any("-" in {*path, *value.gone} for path, value in every(oracle.root))  # else more may be doubtful
    for path, value in every(oracle.root):
        assert ledger.at(pointer(path)) == value.stamp
        for key, stamp in value.gone.items():
            assert ledger.at(pointer((*path, key))) == stamp
        assert is_doubtful(path, parts) == any_doubtful(value) or (is_doubtful(path, parts) and not exact), path
    again = OriginMap(state, START)
    for part in parts:
        again.mark(part, mark(9, True))
    assert sorted(again.doubtful()) == sorted(parts)


def test_a_doubtful_member_named_like_the_mark_of_its_object_stays_doubtful():
    ledger = OriginMap({"a": {"-": 1, "b": 2}, "c": 3}, START)
    ledger.apply([{"op": "replace", "path": "/a/-", "value": 5}], mark(1, True))
    again = OriginMap(ledger.document, START)
    for part in ledger.doubtful():
        again.mark(part, mark(2, True))
    assert again.at("/a/-").doubtful
    assert not again.at("/c").doubtful
    assert again.doubtful() == ledger.doubtful() == ["/a"]
