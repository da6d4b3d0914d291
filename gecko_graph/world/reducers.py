"""How writes to one key of the graphs' state are merged.

`delta` keeps the big keys out of every checkpoint: a saver stores what a node wrote, not the whole value every time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce, wraps
from typing import Any, Self, SupportsIndex, TypeVar, cast

from langgraph._internal._typing import MISSING
from langgraph.channels.delta import DeltaChannel

from ..state import LOST, JsonObject, Patch, SupposedFact
from ..values.patch import fold_patches

SNAPSHOT_EVERY_TURNS = 10
"""Writes of the outer graph between two whole values: a turn writes few, but whole states; a read fetches them all."""

SNAPSHOT_EVERY_CALLS = 400
"""Writes of an attempt between two whole values: it writes a small part at each call, and whole values of long attempts
are what makes a checkpoint large (1,000 calls: 41 MB at 50, 20 MB at 400, and read three times as fast)."""

Item = TypeVar("Item")


class _SharedDelta(DeltaChannel[Any]):
    """A DeltaChannel that tells a lost value, and whose copies share theirs, since no reducer changes one in place.

    LangGraph copies all channels for each router, which for long lists takes longer than all else. A value whose
    checkpoints were not copied, or were pruned, it reads as an empty one: here it is lost, until it is written whole.
    """

    is_seeded = True

    def __init__(self, reducer: Any, typ: Any = None, *, snapshot_frequency: int) -> None:
        super().__init__(reducer, typ, snapshot_frequency=snapshot_frequency)
        if reducer.__wrapped__ is replace:
            self.typ = type(None)  # a whole value: an empty one that is given is not one that is missing

    def copy(self) -> Self:
        new = type(self)(self.reducer, self.typ, snapshot_frequency=self.snapshot_frequency)
        new.key, new.value = self.key, self.value
        return new

    def from_checkpoint(self, checkpoint: Any) -> Self:
        new = super().from_checkpoint(checkpoint)
        new.is_seeded = checkpoint is not None and checkpoint is not MISSING
        return new

    def replay_writes(self, writes: Sequence[Any]) -> None:
        if not self.is_seeded:  # it was written before: its first write must be among these
            self.value = {LOST: self.key}
        super().replay_writes(writes)


def any_write(write: Any) -> bool:
    """Return True: a value begins with any write."""
    del write
    return True


def only_overwrite(write: Any) -> bool:
    """Return False: a value begins with an `Overwrite`, which LangGraph applies by itself."""
    del write
    return False


def delta(
    reducer: Callable[[Any, Sequence[Any]], Any],
    kind: type,
    every: int = SNAPSHOT_EVERY_CALLS,
    *,
    begins: Callable[[Any], bool] = any_write,
) -> DeltaChannel[Any]:
    """Return a channel that is checkpointed as its writes and folded on read.

    `DeltaChannel` is beta: this is the one place that makes one, so that a plain channel can take its place. `begins`
    says whether a write can be a value's first one: a value without it is lost, and reads as `{LOST: key}`.
    """

    @wraps(reducer)
    def fold(old: Any, writes: Sequence[Any]) -> Any:
        if not (isinstance(old, dict) and LOST in old):
            return reducer(old, writes)
        first = next((index for index, write in enumerate(writes) if begins(write)), None)
        return old if first is None else reducer(kind(), writes[first:])

    return _SharedDelta(fold, kind, snapshot_frequency=every)


def extend(old: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    """Append all writes in their order (reducer of lists)."""
    return _Extended(old, writes) if any(writes) else old


class _Extended(list[Any]):
    """A list that grew from another and took over its index for `find`; only one list owns an index.

    Outside of a process it is a plain list.
    """

    __slots__ = ("_indexes",)

    def __init__(self, old: list[Any], writes: Sequence[list[Any]]) -> None:
        super().__init__(old)
        for write in writes:
            self += write
        self._indexes = [old.take_index()] if isinstance(old, _Extended) else []

    def take_index(self) -> tuple[dict[str, Any], int]:
        """Take the items by key, and their number; no other list holds them, since two runs may extend one list."""
        try:
            return self._indexes.pop()
        except IndexError:
            return {}, 0

    def first(self, wanted: str, key: Callable[[Any], str]) -> Any:
        index, count = self.take_index()
        for item in self[count:]:
            index.setdefault(key(item), item)
        self._indexes.append((index, len(self)))
        return index.get(wanted)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[type, tuple[list[Any]]]:
        return list, (list(self),)


def find(items: Sequence[Item], wanted: str, key: Callable[[Item], str]) -> Item | None:
    """Return the first item with this key, of which a channel's list has one kind; each item is read once."""
    if isinstance(items, _Extended):
        return cast("Item | None", items.first(wanted, key))
    return next((item for item in items if key(item) == wanted), None)


def replace(old: Any, writes: Sequence[Any]) -> Any:
    """Return the last write (reducer of whole values)."""
    return writes[-1] if writes else old


def gather_facts(
    old: Mapping[str, SupposedFact], writes: Sequence[Mapping[str, SupposedFact]]
) -> dict[str, SupposedFact]:
    """Merge supposed facts, the oldest first; the first of a key stays (reducer)."""
    return reduce(lambda merged, write: {**merged, **write, **merged}, writes, dict(old))


def fold_state(old: JsonObject, writes: Sequence[Patch | JsonObject]) -> JsonObject:
    """Apply patches to an attempt's task state in their order; an object is the whole state (reducer).

    Nodes write patches; an edit of a paused attempt, as in Studio, writes the whole state.
    """
    for write in writes:
        old = write if isinstance(write, dict) else fold_patches(old, [write])
    return old


def is_whole(write: Patch | JsonObject) -> bool:
    """Return whether a write to an attempt's task state is the whole state, also as a patch of it."""
    return isinstance(write, dict) or any(each["path"] == "" for each in write)


def count_asked(old: dict[str, int], new: dict[str, int]) -> dict[str, int]:
    """Sum the questions asked so far, by role (reducer)."""
    return {role: old.get(role, 0) + new.get(role, 0) for role in {*old, *new}}
