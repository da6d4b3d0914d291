"""Find the sentences of an answer that depend on made-up results of simulated tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..models.focus import split_term
from ..state import Json, Note, Step
from ..values.finding import TEXT_CHARS, Leaves
from ..values.notes import note
from ..values.places import scalars

MOST_SENTENCES = 100
_BREAK = re.compile(r"(?<=[.!?])\s+(?=\W*[^\Wa-z_])|\n+")
_STEM = 5
"""Letters by which forms of a word are recognized: verify, verified, verification."""


def find_simulated(steps: Sequence[Step], answer: str) -> list[Note]:
    """Return a note on each sentence that depends on made-up results, with the `calls`.

    A sentence depends on a result if it contains one of its values, also rounded, that is not an argument of the call.
    If the call changed nothing, a common word with the tool's name or the result's keys is enough: an empty list and a
    `verified: true` contain no value to recognize.
    """
    made = [step for step in steps if "outcome" in step and _is_made_up(step)]
    sentences = [each.strip() for each in _BREAK.split(answer[:TEXT_CHARS])][:MOST_SENTENCES] if made else []
    told = ((text, [step["call"]["id"] for step in made if _is_told(step, text)]) for text in sentences if text)
    return [note("simulated", f"rests on a simulated result: {text}", calls=calls) for text, calls in told if calls]


def _is_made_up(step: Step) -> bool:
    outcome = step["outcome"]
    return bool(outcome.get("invented") or outcome.get("filled", {}).get("invented"))


def _is_told(step: Step, sentence: str) -> bool:
    call, outcome, found = step["call"], step["outcome"], Leaves([sentence])
    given = [each for _, each in scalars(call["args"])]
    values = [each for _, each in scalars(outcome["result"]) if each not in given and not isinstance(each, bool | None)]
    names = [each.rpartition("/")[2] if isinstance(each, str) else each for each in values]  # the last name of a path
    if any(found.holds(each, "loose") for each in names if each != ""):
        return True
    return not outcome["patch"] and not {*_stems(sentence)}.isdisjoint(_named(call["name"], outcome["result"]))


def _named(tool: str, result: Json) -> Iterator[str]:
    yield from _stems(tool)
    keys = {str(key) for place, _ in scalars(result) for key in place}
    for key in keys.union(result if isinstance(result, dict) else ()):
        yield from _stems(key)


def _stems(text: str) -> Iterator[str]:
    return (word[:_STEM] for word in split_term(text) if len(word) > 3)
