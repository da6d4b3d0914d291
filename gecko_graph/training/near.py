"""Analysis of a walk: its end state, moves without effect, dependencies, and walks that just miss the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple, TypeAlias

from ..conversation.changed import UNWATCHED
from ..conversation.milestones.tables import REST, find_table
from ..state import Json, JsonObject, Step
from ..values.digest import digest, digest_apart_from
from ..values.patch import booked_patch
from ..values.places import map_scalars, scalars
from ..world.provenance import is_planned
from .walks import Move, Start, ValueSource, Walk

Pairs: TypeAlias = set[tuple[int, int]]
"""Origins of two moves, the second of which needs the first's value or effect."""
_TRIES, _SWAPS, _CHANGES = 8, 4, 2


class End(NamedTuple):
    """The result of moves: their steps by origin, the end state, and the random texts in it."""

    steps: dict[int, Step]
    state: JsonObject
    drawn: frozenset[Json]

    def is_same(self, start: Start, moves: Sequence[Move], free: Sequence[str] = ()) -> tuple[bool, dict[int, Step]]:
        """Return whether other moves reach the same end, ignoring random texts and free tables; and their steps.

        Random texts are only searched if the states differ and there are some.
        """
        (world, steps), mine = start.make(moves), _watched(self.state, free)
        if digest(_watched(world.state, free)) == digest(mine):
            return True, steps
        if not self.drawn:
            return False, steps
        other = play(start, moves)
        return digest_apart_from(other.drawn, _watched(other.state, free)) == digest_apart_from(self.drawn, mine), steps


def _watched(state: JsonObject, free: Sequence[str]) -> Json:
    return find_table(state, REST + ", ".join((*UNWATCHED, *free)))


def play(start: Start, moves: Sequence[Move]) -> End:
    (one, steps), (other, _) = start.make(moves), start.make(moves, "other")
    drawn = _texts(one.state) - _texts(other.state) - _texts(start.state)
    return End(steps, one.state, frozenset(drawn))


def _texts(value: Json) -> set[Json]:
    return {each for _, each in scalars(value, keys=True) if isinstance(each, str)}


def cut(start: Start, moves: Sequence[Move], free: Sequence[str] = ()) -> tuple[list[Move], Pairs]:
    """Return the moves that change the end, and the pairs of moves that depend on each other.

    A read whose result is used is kept.
    """
    whole, kept = play(start, moves), list(moves)
    while True:
        there = {move.origin for move in kept}
        pairs = {(one.origin, move.origin) for move in kept for one in move.sources.values() if one.origin in there}
        for move in reversed(kept):
            if start.toolkit.is_read(move.name) and any(move.origin == first for first, _ in pairs):
                continue
            rest = [each for each in kept if each is not move]
            is_same, steps = whole.is_same(start, rest, free)
            if is_same and all(steps[each.origin]["call"] == whole.steps[each.origin]["call"] for each in rest):
                kept = rest
                break
            later = [each.origin for each in rest if each.origin > move.origin]
            pairs |= {(move.origin, at) for at in later if _act(steps[at]) != _act(whole.steps[at])}
        else:
            return kept, pairs


def has_idle_write(start: Start, moves: Sequence[Move], free: Sequence[str] = ()) -> bool:
    """Return whether a write can be left out, with all arguments fixed, without changing the end.

    `cut` misses a write that undoes another: without the added row, a search finds another one to delete.
    """
    kept, _ = cut(start, [replace(move, sources={}) for move in moves], free)
    there = {move.origin for move in kept}
    return any(move.origin not in there and not start.toolkit.is_read(move.name) for move in moves)


def _act(step: Step) -> str:
    """Return the digest of a call's effect, without its answer; numbers are not compared."""
    patch = booked_patch(step["outcome"]) if is_planned(step) else ["refused"]
    return digest(map_scalars(patch, lambda each: 0 if isinstance(each, int | float) else each))


def number(start: Start, moves: Sequence[Move], pairs: Pairs) -> tuple[list[Move], Pairs, dict[int, Step]]:
    new = {move.origin: at for at, move in enumerate(moves)}
    moved = []
    for move in moves:
        known = {place: one for place, one in move.sources.items() if one.origin in new}
        sources = {place: ValueSource(new[one.origin], one.place) for place, one in known.items()}
        moved.append(replace(move, origin=new[move.origin], sources=sources))
    _, steps = start.make(moved)
    numbered = [replace(move, args=steps[move.origin]["call"]["args"]) for move in moved]
    return numbered, {(new[first], new[second]) for first, second in pairs}, steps


def longest_chain(pairs: Pairs) -> int:
    """Return the length of the longest sequence of calls that each need the previous one."""
    depth: dict[int, int] = {}
    for first, second in sorted(pairs, key=lambda pair: pair[1]):
        depth[second] = max(depth.get(second, 1), depth.get(first, 1) + 1)
    return max(depth.values(), default=1)


def near_misses(start: Start, moves: Sequence[Move], pairs: Pairs, rng: Random) -> Iterator[list[Move]]:
    """Yield walks without one call, with two dependent calls swapped, one argument changed, or a write added."""
    moves = list(moves)
    for move in moves:
        yield [each for each in moves if each is not move]
    at = {move.origin: place for place, move in enumerate(moves)}
    for first, second in sorted(pairs)[:_SWAPS]:
        swapped = list(moves)
        swapped[at[first]], swapped[at[second]] = moves[at[second]], moves[at[first]]
        yield swapped
    walk = Walk(start.world, rng)
    for place, name in [(place, name) for place, move in enumerate(moves) for name in sorted(move.args)] * _CHANGES:
        if (other := walk.change(moves[place], name)) is not None:
            yield [*moves[:place], other, *moves[place + 1 :]]
    walk.world = start.make(moves)[0].fork()
    walk.moves, writes = list(moves), [tool for tool in start.toolkit if not start.toolkit.is_read(tool.name)]
    for _ in range(_TRIES):
        step = walk.move(rng.choice(writes))
        if step and step["outcome"]["patch"]:
            yield [*moves, walk.moves[-1]]
            return
