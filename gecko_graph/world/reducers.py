"""Reducers of the graphs' state.

`delta` keeps large keys out of every checkpoint: a saver stores the writes of nodes, not the whole value each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce, wraps
from itertools import chain, islice
from threading import Lock
from typing import Any, Self, TypeVar

from langgraph._internal._typing import MISSING
from langgraph.channels.delta import DeltaChannel

from ..state import LOST, JsonObject, Patch, SupposedFact
from ..values.patch import fold_patches

SNAPSHOT_EVERY_TURNS = 10
"""Outer graph's writes between two snapshots: a turn has few writes, but of whole states; a read fetches them all."""

SNAPSHOT_EVERY_CALLS = 400
"""An attempt's writes between two snapshots: its writes are small, and snapshots dominate the checkpoints of long
attempts (1,000 calls: 41 MB at 50, 20 MB at 400, and three times faster to read)."""

Item = TypeVar("Item")


class _SharedDelta(DeltaChannel[Any]):
    """A DeltaChannel that detects a lost value, and whose copies share the value, since reducers never mutate it.

    LangGraph copies all channels for each router, which dominates the time for long lists. It reads a value whose
    checkpoints were not copied, or were pruned, as an empty one; here it is marked as lost until it is written whole.
    """

    is_seeded = True

    def __init__(self, reducer: Any, typ: Any = None, *, snapshot_frequency: int) -> None:
        super().__init__(reducer, typ, snapshot_frequency=snapshot_frequency)
        if reducer.__wrapped__ is replace:
            self.typ = type(None)  # so that a given empty value differs from a missing one

    def copy(self) -> Self:
        new = type(self)(self.reducer, self.typ, snapshot_frequency=self.snapshot_frequency)
        new.key, new.value = self.key, self.value
        return new

    def from_checkpoint(self, checkpoint: Any) -> Self:
        new = super().from_checkpoint(checkpoint)
        new.is_seeded = checkpoint is not None and checkpoint is not MISSING
        return new

    def replay_writes(self, writes: Sequence[Any]) -> None:
        if not self.is_seeded:  # otherwise the first write must be among these
            self.value = {LOST: self.key}
        super().replay_writes(writes)


def delta(
    reducer: Callable[[Any, Sequence[Any]], Any],
    kind: type,
    every: int = SNAPSHOT_EVERY_CALLS,
    *,
    begins: Callable[[Any], bool] = lambda write: True,
) -> DeltaChannel[Any]:
    """Return a channel that is checkpointed as its writes and folded on read.

    `DeltaChannel` is beta; it is created only here, so that a plain channel can replace it. `begins` tells whether a
    write can be a value's first one; an `Overwrite`, which LangGraph applies itself, always can. A value without such
    a write is lost, and reads as `{LOST: key}`.
    """

    @wraps(reducer)
    def fold(old: Any, writes: Sequence[Any]) -> Any:
        if not (isinstance(old, dict) and LOST in old):
            return reducer(old, writes)
        first = next((index for index, write in enumerate(writes) if begins(write)), None)
        return old if first is None else reducer(kind(), writes[first:])

    return _SharedDelta(fold, kind, snapshot_frequency=every)


def extend(old: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    """Append all writes in order (reducer of lists)."""
    return [*old, *chain(*writes)] if any(writes) else old


class Grown(Sequence[Item]):
    """A list that only grows; appending costs the same at any length, since it shares its items with its successor.

    A second successor copies them.

    Args:
        key: The key of an item for `find`.
    """

    __slots__ = ("_count", "_items", "_key", "_places")

    def __init__(self, key: Callable[[Item], str] | None = None) -> None:
        self._key, self._count = key, 0
        self._items: list[Item] = []
        self._places: dict[str, int] = {}

    def grow(self, items: Iterable[Item]) -> Grown[Item]:
        """Return the list with more items; this one is unchanged."""
        grown, count = Grown(self._key), self._count
        with _GROWING:
            is_last = len(self._items) == count
            grown._items = self._items if is_last else self._items[:count]
            grown._places = self._places if is_last else {key: at for key, at in self._places.items() if at < count}
            grown._items += items
            grown._count = len(grown._items)
            for at in range(count, grown._count) if self._key else ():
                grown._places.setdefault(self._key(grown._items[at]), at)  # type: ignore[misc]
        return grown

    def first(self, wanted: str) -> Item | None:
        at = self._places.get(wanted, self._count)
        return self._items[at] if at < self._count else None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Item]:
        return islice(self._items, self._count)

    def __getitem__(self, at: Any) -> Any:
        places = range(self._count)[at]
        return self._items[places] if isinstance(places, int) else [self._items[each] for each in places]


_GROWING = Lock()


def find(items: Sequence[Item], wanted: str, key: Callable[[Item], str]) -> Item | None:
    """Return the first item with this key, which for a `Grown` list must be the list's own."""
    if isinstance(items, Grown):
        return items.first(wanted)
    return next((item for item in items if key(item) == wanted), None)


def replace(old: Any, writes: Sequence[Any]) -> Any:
    return writes[-1] if writes else old


def gather_facts(
    old: Mapping[str, SupposedFact], writes: Sequence[Mapping[str, SupposedFact]]
) -> dict[str, SupposedFact]:
    """Merge supposed facts, the oldest first; the first value of a key is kept (reducer)."""
    return reduce(lambda merged, write: {**merged, **write, **merged}, filter(None, writes), dict(old))


def fold_state(old: JsonObject, writes: Sequence[Patch | JsonObject]) -> JsonObject:
    """Apply patches to an attempt's task state in order; an object replaces the state (reducer).

    Nodes write patches; an edit of a paused attempt, as in Studio, writes the whole state.
    """
    for write in writes:
        old = write if isinstance(write, dict) else fold_patches(old, [write])
    return old


def is_whole(write: Patch | JsonObject) -> bool:
    """Return whether a write to an attempt's task state replaces the whole state."""
    return isinstance(write, dict) or any(each["path"] == "" for each in write)


def count_asked(old: dict[str, int], new: dict[str, int]) -> dict[str, int]:
    return {role: old.get(role, 0) + new.get(role, 0) for role in {*old, *new}}
