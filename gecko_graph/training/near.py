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
from ..world.world import World
from .words import References
from .walks import End, Move, Source, Walk, play, replay

Worlds: TypeAlias = tuple[World, World]
Kind = Literal["left out", "swapped", "changed", "added"]
_TRIES, _SWAPS = 8, 4


class NearMiss(NamedTuple):
    """A walk that is not the solution."""

    kind: Kind
    moves: list[Move]


def cut(worlds: Worlds, moves: Sequence[Move], free: Sequence[str] = ()) -> list[Move]:
    """Return the moves without those that make no difference at the end; a read whose result is used stays."""
    whole, kept = play(worlds, moves).digest(free), list(moves)
    left = True
    while left:
        left = False
        for move in reversed(list(kept)):
            rest = [each for each in kept if each is not move]
            used = any(one.origin == move.origin for each in rest for one in each.sources.values())
            if used and worlds[0].toolkit.is_read(move.name):
                continue
            if play(worlds, rest).digest(free) == whole:
                kept, left = rest, True
    return kept


def number(worlds: Worlds, moves: Sequence[Move], references: References) -> tuple[list[Move], References]:
    """Return the moves numbered anew, with the arguments that they have then, and how words refer to them."""
    new = {move.origin: at for at, move in enumerate(moves)}
    moved = []
    for move in moves:
        sources = {place: Source(new[one.origin], one.place) for place, one in move.sources.items() if one.origin in new}
        moved.append(replace(move, origin=new[move.origin], sources=sources))
    steps = play(worlds, moved).steps
    named = {
        (new[origin], place): one._replace(origin=new[one.origin])
        for (origin, place), one in references.items()
        if {origin, one.origin} <= new.keys()
    }
    return [replace(move, args=steps[move.origin]["call"]["args"]) for move in moved], named


def find_dependent(worlds: Worlds, moves: Sequence[Move], end: End) -> set[tuple[int, int]]:
    """Return pairs of origins of which the second needs the first: its value, or what it has done."""
    found = {(one.origin, move.origin) for move in moves for one in move.sources.values()}
    for move in moves:
        without = play(worlds, [each for each in moves if each is not move]).steps
        found |= {(move.origin, at) for at, step in without.items() if at > move.origin and _act(step) != _act(end.steps[at])}
    return found


def _act(step: Step) -> str:
    """Return what a call has done, whatever it answered; a sum that comes out otherwise is no other deed."""
    patch = booked_patch(step["outcome"]) if is_planned(step) else ["refused"]
    return digest(map_scalars(patch, lambda each: 0 if isinstance(each, int | float) else each))


def longest_chain(pairs: set[tuple[int, int]]) -> int:
    """Return how many calls in a row each need the one before."""
    depth: dict[int, int] = {}
    for first, second in sorted(pairs, key=lambda pair: pair[1]):
        depth[second] = max(depth.get(second, 1), depth.get(first, 1) + 1)
    return max(depth.values(), default=1)


def near_misses(
    worlds: Worlds, moves: Sequence[Move], pairs: set[tuple[int, int]], rng: Random
) -> Iterator[NearMiss]:
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
