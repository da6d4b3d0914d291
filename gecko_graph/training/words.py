"""A user's words for a walk: they contain each value that no result gives, and no tool's name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from ..schemas.specimens import is_identifier, words
from ..state import Json, JsonObject, Outcome, Step
from ..tools import Toolkit
from ..values.places import Place, as_text, places, scalars
from .walks import Move, ValueSource, value_at


class Reference(NamedTuple):
    """How words refer to a value without stating it: by the result of the step at `origin`, or by a row's column."""

    kind: Literal["step", "row"]
    origin: int
    field: str
    column: str = ""
    text: str = ""


References = Mapping[tuple[int, Place], Reference]
"""Keyed by a move's origin and an argument's place."""

_CODED = re.compile(r"[\d+:.TZ -]*|\S*")
"""Texts that are unsuitable to describe a thing: numbers, dates, single words."""
_SENTENCE = re.compile(r"(?<=[.!?])\s")


def say(toolkit: Toolkit, moves: Sequence[Move], references: References) -> str:
    given = {each.origin for each in references.values() if each.kind == "step"}
    told = [move for move in moves if move.origin in given or not toolkit.is_read(move.name)]
    numbers = {move.origin: number for number, move in enumerate(told, 1)}
    sentences = [_say_move(toolkit, move, references, numbers) for move in told]
    if len(sentences) == 1:
        return f"Please do this: {sentences[0]}."
    return f"Please do this, in this order: {' '.join(f'({at}) {each}.' for at, each in enumerate(sentences, 1))}"


def _say_move(toolkit: Toolkit, move: Move, references: References, numbers: Mapping[int, int]) -> str:
    about = _SENTENCE.split((toolkit[move.name].description or "").strip())[0].rstrip(".:")
    parts = []
    for place, value in scalars(move.args):
        name = " ".join(words(next(str(each) for each in reversed(place) if isinstance(each, str))))
        reference = references.get((move.origin, place))
        if reference is None:
            parts.append(f"{name} {_quote(value)}")
            continue
        field = " ".join(words(reference.field))
        begin = name if field == name else f"{name} the {field}"
        if reference.kind == "row":
            parts.append(f"{begin} of the one with {' '.join(words(reference.column))} {_quote(reference.text)}")
        else:
            parts.append(f"{begin} as given by step {numbers[reference.origin]}")
    told = about or " ".join(words(move.name))
    return f"{told}: {'; '.join(parts)}" if parts else told


def _quote(value: Json) -> str:
    return f'"{value}"' if isinstance(value, str) else as_text(value)


def refer(state: JsonObject, moves: Sequence[Move], steps: Mapping[int, Step]) -> tuple[list[Move], References]:
    """Return the moves with only those sources that words can refer to, and the references; other values are stated."""
    references: dict[tuple[int, Place], Reference] = {}
    said: set[Json] = set()
    begun = {each for _, each in scalars(state, keys=True)}
    named = []
    for move in moves:
        kept: dict[Place, ValueSource] = {}
        for place, source in move.sources.items():
            found = _refer(steps[source.origin]["outcome"], source, said, begun, state)
            if found is not None:
                kept[place], references[move.origin, place] = source, found
        named.append(replace(move, sources=kept))
        said |= {each for place, each in scalars(move.args) if place not in kept}
    return named, references


def _refer(
    outcome: Outcome, source: ValueSource, said: Collection[Json], begun: Collection[Json], state: JsonObject
) -> Reference | None:
    value = value_at(outcome["result"], source.place)
    if isinstance(value, bool) or value in said:
        return None
    field = next((each for each in reversed(source.place) if isinstance(each, str)), "result")
    if outcome["patch"]:
        return None if value in begun else Reference("step", source.origin, field)
    row = value_at(outcome["result"], source.place[:-1])
    rows = [each for _, each in places(outcome["result"]) if isinstance(each, dict)]
    for column, text in row.items() if isinstance(row, dict) else ():
        if not isinstance(text, str) or _CODED.fullmatch(text) or is_identifier(column) or text == value or '"' in text:
            continue
        alike = [each for each in rows if each.get(column) == text]
        if len(alike) == 1 and sum(each == text for _, each in scalars(state)) <= 1:
            return Reference("row", source.origin, field, column, text)
    return None if value in begun else Reference("step", source.origin, field)


def find_values(toolkit: Toolkit, moves: Sequence[Move], references: References) -> Iterator[Json]:
    """Yield the values that the words must contain: of writes, and of reads whose results they refer to."""
    given = {each.origin for each in references.values() if each.kind == "step"}
    for move in moves:
        if move.origin in given or not toolkit.is_read(move.name):
            for place, value in scalars(move.args):
                reference = references.get((move.origin, place))
                if reference is None:
                    yield value
                elif reference.kind == "row":
                    yield reference.text


def find_lacks(text: str, values: Collection[Json], names: Collection[str]) -> list[str]:
    lacks, rest = [], text
    for value in sorted({*map(as_text, values)}, key=len, reverse=True):
        if not re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text):
            lacks.append(value)
        rest = rest.replace(f'"{value}"', " ")
    return lacks + [name for name in names if re.search(rf"(?i)(?<!\w){re.escape(name)}(?!\w)", rest)]
