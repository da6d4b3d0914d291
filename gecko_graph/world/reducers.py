"""Reducers of the graphs' state.

`delta` keeps large keys out of every checkpoint: a saver stores the writes of nodes, not the whole value each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce, wraps
from itertools import chain
from operator import itemgetter
from typing import Any, Generic, NamedTuple, Self, SupportsIndex, TypeVar, cast, overload

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


def any_write(write: Any) -> bool:
    """Return True: a value may begin with any write."""
    del write
    return True


def only_overwrite(write: Any) -> bool:
    """Return False: a value begins only with an `Overwrite`, which LangGraph applies itself."""
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

    `DeltaChannel` is beta; it is created only here, so that a plain channel can replace it. `begins` tells whether a
    write can be a value's first one; a value without such a write is lost, and reads as `{LOST: key}`.
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
    if isinstance(old, Grown):
        return cast("list[Any]", old.grow(chain(*writes)))
    return _Extended(old, writes) if any(writes) else old


class _Extended(list[Any]):
    """A list that grew from another and took over its index for `find`, which only one list owns.

    It is pickled as a plain list.
    """

    __slots__ = ("_indexes",)

    def __init__(self, old: list[Any], writes: Sequence[list[Any]]) -> None:
        super().__init__(old)
        for write in writes:
            self += write
        self._indexes = [old.take_index()] if isinstance(old, _Extended) else []

    def take_index(self) -> tuple[dict[str, Any], int]:
        """Take and clear the index and its number of items, since two runs may extend the same list."""
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


class Grown(Sequence[Item]):
    """A list that only grows, and shares items with its predecessor: appending costs the same at any length.

    The items are in runs, the oldest first; a run merges with a previous one that is not longer, so that there are few.

    Args:
        key: The key of an item for `find`.
    """

    __slots__ = ("_count", "_key", "_runs")

    def __init__(self, key: Callable[[Item], str] | None = None) -> None:
        self._key, self._count = key, 0
        self._runs: tuple[_Run[Item], ...] = ()

    def grow(self, items: Iterable[Item]) -> Grown[Item]:
        """Return the list with more items; this one is unchanged."""
        added, runs = [*items], self._runs
        by_key = {self._key(item): item for item in reversed(added)} if self._key else {}
        grown, grown._count = Grown(self._key), self._count + len(added)
        while runs and len(runs[-1].items) <= len(added):
            added, by_key = runs[-1].items + added, {**by_key, **runs[-1].by_key}
            runs = runs[:-1]
        grown._runs = (*runs, _Run(added, by_key)) if added else runs
        return grown

    def first(self, wanted: str) -> Item | None:
        for run in self._runs:
            if wanted in run.by_key:
                return run.by_key[wanted]
        return None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Item]:
        return chain.from_iterable(run.items for run in self._runs)

    @overload
    def __getitem__(self, at: int) -> Item: ...

    @overload
    def __getitem__(self, at: slice) -> list[Item]: ...

    def __getitem__(self, at: int | slice) -> Item | list[Item]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(self._count))]
        at += self._count if at < 0 else 0
        for run in self._runs if at >= 0 else ():
            if at < len(run.items):
                return run.items[at]
            at -= len(run.items)
        raise IndexError("there is no such item")


class _Run(NamedTuple, Generic[Item]):
    items: list[Item]
    by_key: dict[str, Item]


class GrownMap(Mapping[str, Item]):
    """A mapping that only grows, like `Grown`; a key keeps its first value."""

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Grown[tuple[str, Item]] | None = None) -> None:
        self._pairs: Grown[tuple[str, Item]] = Grown(itemgetter(0)) if pairs is None else pairs

    def grow(self, more: Mapping[str, Item]) -> GrownMap[Item]:
        """Return the mapping with more keys; this one is unchanged."""
        return GrownMap(self._pairs.grow(pair for pair in more.items() if pair[0] not in self))

    def __getitem__(self, key: str) -> Item:
        pair = self._pairs.first(key)
        if pair is None:
            raise KeyError(key)
        return pair[1]

    def __iter__(self) -> Iterator[str]:
        return map(itemgetter(0), self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)


def find(items: Sequence[Item], wanted: str, key: Callable[[Item], str]) -> Item | None:
    """Return the first item with this key.

    A list of a channel caches its keys, so it must always be searched with the same `key` function.
    """
    if isinstance(items, Grown):
        return items.first(wanted)
    if isinstance(items, _Extended):
        return cast("Item | None", items.first(wanted, key))
    return next((item for item in items if key(item) == wanted), None)


def replace(old: Any, writes: Sequence[Any]) -> Any:
    """Return the last write (reducer of whole values)."""
    return writes[-1] if writes else old


def gather_facts(
    old: Mapping[str, SupposedFact], writes: Sequence[Mapping[str, SupposedFact]]
) -> dict[str, SupposedFact]:
    """Merge supposed facts, the oldest first; the first value of a key is kept (reducer)."""
    if isinstance(old, GrownMap):
        return cast("dict[str, SupposedFact]", reduce(GrownMap.grow, writes, old))
    return reduce(lambda merged, write: {**merged, **write, **merged}, writes, dict(old))


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
    """Sum the questions asked so far, by role (reducer)."""
    return {role: old.get(role, 0) + new.get(role, 0) for role in {*old, *new}}
