"""JSON Patch (RFC 6902) and JSON Pointer (RFC 6901) for task states.

Patches are applied copy-on-write: containers on the patch's paths are copied, everything else is shared with the given
document; neither document nor patch is changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import PatchConflict
from ..state import Json, JsonObject, Operation, Outcome, Patch
from .digest import MAX_DEPTH
from .places import json_type, pointer, pointer_tokens, shorten

COPY_LIMIT = 4_000_000
"""Most characters of JSON that one patch may copy: forty copies that each double a document would exhaust memory."""

_INDEX = re.compile(r"0|[1-9][0-9]*")
_BAD_ESCAPE = re.compile(r"~(?![01])")
_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
_SHOWN = 120


def apply_patch(document: Json, patch: Patch) -> Json:
    """Return the document with the whole patch applied.

    As in RFC 6902, with three limits: the whole document cannot be removed, nothing is nested deeper than 100 levels,
    and a patch copies at most `COPY_LIMIT` characters. As in the RFC, `test` compares numbers by value (1 equals 1.0);
    true is no number.

    Args:
        document: Any JSON value; it is not changed.
        patch: A list of operations; the result shares their values.

    Raises:
        PatchConflict: The first operation that does not apply, with the reason.
    """
    if not isinstance(patch, (list, tuple)):
        raise PatchConflict(f"expected a patch as a list of operations, got {json_type(patch)}")
    work = _Patching(document)
    for index, operation in enumerate(patch):
        try:
            work.run(operation)
        except PatchConflict as conflict:
            raise PatchConflict(f"operation {index}{_describe_operation(operation)}: {conflict}") from None
    return work.document


def fold_patches(document: JsonObject, patches: Sequence[Patch]) -> JsonObject:
    """Apply all patches in order: the reducer of the task state.

    Batching-invariant: `fold(fold(d, a), b) == fold(d, a + b)`.

    Raises:
        PatchConflict: A patch does not apply; patches are tested before they are written.
    """
    for patch in patches:
        document = apply_patch(document, patch)
    return document


def booked_patch(outcome: Outcome) -> Patch:
    """Return all writes of an outcome to the task state: its change and its observations."""
    return [*(outcome["patch"] or ()), *outcome.get("observed", ())]


def tokens(pointer: str) -> list[str]:
    """Return the tokens of a JSON Pointer: `["a/b", "0"]` for `/a~1b/0`.

    Raises:
        PatchConflict: It is not a JSON Pointer.
    """
    if not isinstance(pointer, str):
        raise PatchConflict(f"expected a path as text, got {json_type(pointer)}")
    if not pointer:
        return []
    if pointer[0] != "/":
        raise PatchConflict(f'the path {_quote(pointer)} does not begin with "/"')
    if "~" in pointer and _BAD_ESCAPE.search(pointer):
        raise PatchConflict(f'the path {_quote(pointer)} has a "~" that is neither "~0" (for "~") nor "~1" (for "/")')
    return pointer_tokens(pointer)


def equal(a: Json, b: Json, same: Callable[[Json, Json], bool]) -> bool:
    """Return True if both have the same structure, and scalars that are equal by `same`."""
    if a is b:
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(key in b and equal(item, b[key], same) for key, item in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(equal(x, y, same) for x, y in zip(a, b, strict=True))
    return same(a, b)


def same_value(a: Json, b: Json) -> bool:
    """Return True if two values are equal by value: 5 equals 5.0, but 1 does not equal true."""
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def overlap(a: Patch, b: Patch, *, document: Json = None) -> list[str]:
    """Return pointers to the places where one patch changes a place that the other touches, sorted.

    An operation touches the places that it changes, copies or tests. Places overlap if they are equal or nested, or if
    inserting or removing a list item shifts the other's items (for example two appends).

    Args:
        a: A patch.
        b: A patch for the same document.
        document: The document of both. Without it, `/x/0` and `/x/1` are known as list items only from a "-".

    Raises:
        PatchConflict: An operation has no path, or an invalid one.
    """
    ours = [use for operation in a for use in _uses(operation)]
    theirs = [use for operation in b for use in _uses(operation)]
    pairs = [(x, y) for x in ours for y in theirs if x.changes or y.changes]
    return sorted(
        {pointer(max((len(use.path), use.path) for use in pair)[1]) for pair in pairs if _clash(*pair, document)}
    )


class _PathUse(NamedTuple):
    """A path that an operation touches; `puts` and `takes`: a value is added or removed there."""

    path: list[str]
    changes: bool
    puts: bool = False
    takes: bool = False


def _uses(operation: Operation) -> list[_PathUse]:
    name, path = operation.get("op"), tokens(_member(operation, "path"))
    uses = [_PathUse(path, changes=name != "test", puts=name in ("add", "copy", "move"), takes=name == "remove")]
    if name in ("move", "copy"):
        uses.append(_PathUse(tokens(_member(operation, "from")), changes=name == "move", takes=name == "move"))
    return uses


def _clash(x: _PathUse, y: _PathUse, document: Json) -> bool:
    for depth, (a, b) in enumerate(zip(x.path, y.path, strict=False)):
        if a != b:
            return _shifts(x, y, depth, document) or _shifts(y, x, depth, document)
    return True


def _shifts(mover: _PathUse, other: _PathUse, depth: int, document: Json) -> bool:
    here, there = mover.path[depth], other.path[depth]
    if not (mover.puts or mover.takes) or len(mover.path) != depth + 1 or not (_is_item(here) and _is_item(there)):
        return False
    if "-" in (here, there):
        return mover.puts and other.puts and len(other.path) == depth + 1
    return (len(here), here) < (len(there), there) and _is_list(document, mover.path[:depth])


def _is_item(token: str) -> bool:
    return token == "-" or bool(_INDEX.fullmatch(token))


def _is_list(document: Json, path: list[str]) -> bool:
    try:
        return isinstance(find(document, path), list)
    except PatchConflict:
        return False


class _Patching:
    """One application of a patch.

    `owned` contains the containers that were copied, each used in one place only; only these are changed in place.
    Keeping them also prevents their ids from being reused.
    """

    def __init__(self, document: Json) -> None:
        self.document = document
        self.owned: dict[int, Any] = {}
        self.copied = 0

    def run(self, operation: Operation) -> None:
        if not isinstance(operation, (dict, Mapping)):  # the check for dict is faster
            raise PatchConflict(f"expected an operation as an object, got {json_type(operation)}")
        name = operation.get("op")
        if name not in _OPERATIONS:
            raise PatchConflict(f'expected "op" to be one of {", ".join(_OPERATIONS)}')
        getattr(self, name)(tokens(_member(operation, "path")), operation)

    def add(self, path: list[str], operation: Operation) -> None:
        self._put(path, _member(operation, "value"))

    def remove(self, path: list[str], operation: Operation) -> None:
        if not path:
            raise PatchConflict("the whole document cannot be removed")
        parent = self._open(path[:-1])
        del parent[_key(parent, path[-1])]

    def replace(self, path: list[str], operation: Operation) -> None:
        value = _member(operation, "value")
        _measure(value, MAX_DEPTH - len(path))
        if not path:
            self.document = value
            return
        parent = self._open(path[:-1])
        parent[_key(parent, path[-1])] = value

    def move(self, path: list[str], operation: Operation) -> None:
        source = tokens(_member(operation, "from"))
        value = find(self.document, source)
        if source == path:
            return
        if path[: len(source)] == source:
            raise PatchConflict("a value cannot be moved into itself")
        self.remove(source, operation)
        self._put(path, value, checked=len(path) <= len(source))

    def copy(self, path: list[str], operation: Operation) -> None:
        value = find(self.document, tokens(_member(operation, "from")))
        self.copied += _measure(value, MAX_DEPTH - len(path))
        if self.copied > COPY_LIMIT:
            raise PatchConflict(f"the patch copies more than {COPY_LIMIT:,} characters")
        self.owned.clear()  # the copied value is now in two places
        self._put(path, value, checked=True)

    def test(self, path: list[str], operation: Operation) -> None:
        value = _member(operation, "value")
        if not equal(find(self.document, path), value, same_value):
            raise PatchConflict("the value there differs")

    def _put(self, path: list[str], value: Json, *, checked: bool = False) -> None:
        if not checked:
            _measure(value, MAX_DEPTH - len(path))
        if not path:
            self.document = value
            return
        parent = self._open(path[:-1])
        if isinstance(parent, dict):
            parent[path[-1]] = value
        else:
            position = _position(parent, path[-1])
            parent.insert(position, value)

    def _open(self, path: list[str]) -> Any:
        """Return the container at the path; it and the containers above are copied if necessary."""
        self.document = container = self._own(self.document)
        for token in path:
            key = _key(container, token)
            container[key] = container = self._own(container[key])
        return container

    def _own(self, value: Json) -> Any:
        if id(value) in self.owned or not isinstance(value, (dict, list)):
            return value
        fresh = dict(value) if type(value) is dict else value.copy()
        self.owned[id(fresh)] = fresh
        return fresh


def _member(operation: Operation, name: str) -> Any:
    if name not in operation:
        raise PatchConflict(f'"{name}" is missing')
    return operation[name]


def find(document: Json, path: list[str]) -> Json:
    """Return the value at the tokens of a JSON Pointer. Raises PatchConflict."""
    for token in path:
        document = document[_key(document, token)]
    return document


def _key(container: Json, token: str) -> Any:
    if isinstance(container, dict):
        if token not in container:
            raise PatchConflict(f"there is no {_quote(token)}")
        return token
    if isinstance(container, list) and (
        token == "-" or (_INDEX.fullmatch(token) and _beyond(token, len(container) - 1))
    ):
        raise PatchConflict(f"there is no item {_quote(token)} in a list of {len(container)}")
    return _position(container, token)


def _position(container: Json, token: str) -> int:
    if not isinstance(container, list):
        raise PatchConflict(f"{_quote(token)} leads into {json_type(container)}")
    if token == "-":
        return len(container)
    if not _INDEX.fullmatch(token):
        raise PatchConflict(f"{_quote(token)} is not an index of a list")
    if _beyond(token, len(container)):
        raise PatchConflict(f"{_quote(token)} is beyond the end of a list of {len(container)}")
    return int(token)


def _beyond(digits: str, last: int) -> bool:
    return len(digits) > len(str(abs(last))) or int(digits) > last


def _measure(value: Json, room: int) -> int:
    """Estimate the number of characters of a value as JSON.

    Raises:
        PatchConflict: It is nested more than `room` levels deep.
    """
    if not isinstance(value, (dict, list)):
        return len(value) if isinstance(value, str) else 8
    if room <= 0:
        raise PatchConflict(f"the document would be nested more than {MAX_DEPTH} levels deep")
    size = 2
    for item in value.values() if isinstance(value, dict) else value:
        size += 8 + _measure(item, room - 1)
        if size > COPY_LIMIT:
            break
    return size


def _quote(text: str) -> str:
    return f'"{shorten(text, _SHOWN)}"'


def _describe_operation(operation: object) -> str:
    if not isinstance(operation, Mapping):
        return ""
    fields = [operation.get(key) for key in ("op", "from", "path")]
    words = [shorten(word, _SHOWN) for word in fields if isinstance(word, str)]
    return f" ({' '.join(words)})" if words else ""


def apply_fitting(state: JsonObject, patch: Patch) -> JsonObject:
    try:
        return fold_patches(state, [patch])
    except PatchConflict:
        return state
