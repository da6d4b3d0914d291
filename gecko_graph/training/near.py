"""What a walk needs: calls that make no difference are cut, what depends on what, and walks that just miss it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Literal, NamedTuple, TypeAlias

from ..state import Step
from ..values.digest import digest
from ..values.patch import booked_patch
from ..values.places import map_scalars
from ..world.provenance import is_planned
from .walks import Move, Source, Walk, Worlds, play, replay
from .words import References

Pairs: TypeAlias = set[tuple[int, int]]
Kind = Literal["left out", "swapped", "changed", "added"]
_TRIES, _SWAPS = 8, 4


class NearMiss(NamedTuple):
    """A walk that is not the solution."""

    kind: Kind
    moves: list[Move]


def cut(worlds: Worlds, moves: Sequence[Move], free: Sequence[str] = ()) -> tuple[list[Move], Pairs]:
    """Return the moves without those that make no difference at the end, and which of them depend on each other.

    A read whose result is used stays. Of a pair of origins the second needs the first: its value, or what it has done.
    """
    whole, kept = play(worlds, moves), list(moves)
    while True:
        there = {move.origin for move in kept}
        pairs = {(one.origin, move.origin) for move in kept for one in move.sources.values() if one.origin in there}
        for move in reversed(kept):
            if worlds[0].toolkit.is_read(move.name) and any(move.origin == first for first, _ in pairs):
                continue
            rest = [each for each in kept if each is not move]
            is_same, steps = whole.is_same(worlds, rest, free)
            if is_same:
                kept = rest
                break
            later = [each.origin for each in rest if each.origin > move.origin]
            pairs |= {(move.origin, at) for at in later if _act(steps[at]) != _act(whole.steps[at])}
        else:
            return kept, pairs


def number(
    worlds: Worlds, moves: Sequence[Move], pairs: Pairs, references: References
) -> tuple[list[Move], Pairs, References]:
    """Return moves numbered anew, with their arguments as they are then, their pairs, and how words refer to them."""
    new = {move.origin: at for at, move in enumerate(moves)}
    moved = []
    for move in moves:
        sources = {
            place: Source(new[one.origin], one.place) for place, one in move.sources.items() if one.origin in new
        }
        moved.append(replace(move, origin=new[move.origin], sources=sources))
    steps = play(worlds, moved).steps
    named = {
        (new[origin], place): one._replace(origin=new[one.origin])
        for (origin, place), one in references.items()
        if {origin, one.origin} <= new.keys()
    }
    numbered = [replace(move, args=steps[move.origin]["call"]["args"]) for move in moved]
    return numbered, {(new[first], new[second]) for first, second in pairs}, named


def _act(step: Step) -> str:
    """Return what a call has done, whatever it answered; a sum that comes out otherwise is no other deed."""
    patch = booked_patch(step["outcome"]) if is_planned(step) else ["refused"]
    return digest(map_scalars(patch, lambda each: 0 if isinstance(each, int | float) else each))


def longest_chain(pairs: Pairs) -> int:
    """Return how many calls in a row each need the one before."""
    depth: dict[int, int] = {}
    for first, second in sorted(pairs, key=lambda pair: pair[1]):
        depth[second] = max(depth.get(second, 1), depth.get(first, 1) + 1)
    return max(depth.values(), default=1)


def near_misses(worlds: Worlds, moves: Sequence[Move], pairs: Pairs, rng: Random) -> Iterator[NearMiss]:
    """Yield walks with a call left out, two dependent ones swapped, an argument changed, or a write added."""
    moves = list(moves)
    for move in moves:
        yield NearMiss("left out", [each for each in moves if each is not move])
    at = {move.origin: place for place, move in enumerate(moves)}
    for first, second in sorted(pairs)[:_SWAPS]:
        swapped = list(moves)
        swapped[at[first]], swapped[at[second]] = moves[at[second]], moves[at[first]]
        yield NearMiss("swapped", swapped)
    walk = Walk(worlds[0], rng)
    for place, move in enumerate(moves):
        if (other := walk.change(worlds[0].toolkit[move.name], move)) is not None:
            yield NearMiss("changed", [*moves[:place], other, *moves[place + 1 :]])
    if (more := _find_write(worlds, walk, moves, rng)) is not None:
        yield NearMiss("added", [*moves, more])


def _find_write(worlds: Worlds, walk: Walk, moves: Sequence[Move], rng: Random) -> Move | None:
    """Return a move that changes something after all others."""
    world = worlds[0].fork()
    replay(world, moves)
    walk.world, walk.moves = world, list(moves)
    writes = [tool for tool in world.toolkit if not world.toolkit.is_read(tool.name)]
    for _ in range(_TRIES):
        step = walk.move(rng.choice(writes))
        if step and step["outcome"]["patch"]:
            return walk.moves[-1]
    return None
