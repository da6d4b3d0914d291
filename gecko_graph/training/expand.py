"""Error-driven data expansion (paper, section 4.4): new rows as hard as an error, in other circumstances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import GeckoError, install
from ..models.answer import answer
from ..models.ask import Ask, QuestionId
from ..models.factory import Models
from ..models.formatting import format_json
from ..models.roles import VariantReply
from ..state import JsonObject
from ..tools import Toolkit
from ..values.places import as_text
from .files import read_rows, write_rows
from .judging import describe_row, describe_step
from .shapes import ROW_ERRORS, read_row
from .verify import verify_samples

CONSTRAINTS = (
    "Another goal: the user wants something else of the same kind, from another part of life.",
    "Another person: the user speaks in a clearly different manner (terse, chatty, unsure, formal), and says values in "
    "passing rather than in a list.",
    "Other data: names, numbers, dates and texts are of another form or order of size, none of them that of the case.",
    "Another course: the user corrects a value, adds a condition, or says what is needed over several messages.",
)
"""One constraint per variant, so that the variants of an error differ (paper: scenario diversification)."""

NEAR = 0.8
"""Jaccard similarity of word trigrams from which two texts count as duplicates."""
_PERMUTATIONS, _WORDS, _STATE = 128, 3, 12_000


def write_variants(
    errors: Iterable[Mapping[str, Any]],
    models: Models,
    out: Path,
    *,
    each: int,
    turn: int,
    tell: Callable[[int], None],
) -> Counter[str]:
    """Write a model's variants of error seeds, unverified.

    An error seed is a row whose verdict has the wrong call and the analysis. Returns the numbers of variants and of
    unusable replies.
    """
    counts: Counter[str] = Counter(written=0, unreadable=0)

    def write() -> Iterator[JsonObject]:
        for number, error in enumerate(errors):
            asks = [_ask(error, at, QuestionId(turn, 0, number * each + at)) for at in range(each)]
            replies = [reply.value for reply in answer(asks, models)]
            rows = [row for at, reply in enumerate(replies) if (row := _read(error, reply, at, turn))]
            counts.update(written=len(rows), unreadable=each - len(rows))
            tell(number + 1)
            yield from rows

    write_rows(out, write())
    return counts


def _ask(error: Mapping[str, Any], at: int, where: QuestionId) -> Ask:
    verdict = error["verdict"]
    variables = {
        **describe_row(error),
        "right": describe_step(error["label"], error.get("text", "")),
        "wrong": describe_step(verdict["wrong"], verdict["said"]),
        "analysis": verdict["analysis"],
        "state": format_json(error["state"], budget=_STATE) if error.get("state") else "",
        "constraint": CONSTRAINTS[at],
    }
    return Ask("variant_writer", variables, VariantReply, where)


def _read(error: Mapping[str, Any], reply: Any, at: int, turn: int) -> JsonObject | None:
    """Return a reply as a row, None if it is unusable."""
    if not isinstance(reply, VariantReply):
        return None
    kept = {key: error[key] for key in ("tools", "state") if error.get(key) is not None}
    source = [*error["from"], {"variant_of": error["id"], "constraint": at + 1}]
    said = {"messages": reply.messages, "label": reply.label, **({"text": reply.text} if reply.text else {})}
    try:
        id_ = f"{error['id']}/{turn + 1}.{at + 1}"
        (row,) = read_row({**kept, **said, "id": id_, "from": source}, name="", source=None)
        as_text(row).encode()
    except ROW_ERRORS:
        return None
    return {**row} if row["messages"] and row["messages"][-1]["role"] == "user" else None


def verify_variants(
    drafts: Path,
    verified: Path,
    out: Path,
    *,
    known: Iterable[Mapping[str, Any]],
    toolkit: Toolkit | None,
    models: Models,
) -> Counter[str]:
    """Write the variants that pass both tiers of the verification and are no near-duplicates.

    Returns the number of variants by result.

    Args:
        drafts: The unverified rows.
        verified: The file for all rows with verdicts.
        out: The file for kept rows.
        known: Rows that a variant must not resemble.
        toolkit: The tools that execute the calls of rows with a state.
        models: The models by role: `label_judge`.
    """
    counts: Counter[str] = Counter(dropped=0, open=0, duplicate=0, kept=0)
    if drafts.stat().st_size:
        verify_samples(drafts, verified, toolkit=toolkit, model=models)
    else:
        write_rows(verified, [])
    near = Near(map(_words_of, known))

    def keep() -> Iterator[JsonObject]:
        for row in read_rows(verified):
            words, status = _words_of(row), row["verdict"]["status"]
            if status in ("drop", "open") or row["verdict"]["by"] == "rules":  # the second tier has not seen it
                found = "dropped" if status == "drop" else "open"
            else:
                found = "duplicate" if near.has(words) else "kept"
            counts[found] += 1
            if found == "kept":
                near.add(words)
                yield row

    write_rows(out, keep())
    return counts


def _words_of(row: Mapping[str, Any]) -> str:
    users = " ".join(str(each["content"]) for each in row["messages"] if each["role"] == "user")
    return f"{users} {as_text(row['label'])}"


class Near:
    """A set of texts that finds near-duplicates (MinHash)."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        try:
            from datasketch import MinHash, MinHashLSH  # type: ignore[import-untyped]
        except ImportError:
            raise GeckoError(f"near-duplicate search needs datasketch: {install('training')}") from None
        self._hash: Any = MinHash
        self._index: Any = MinHashLSH(threshold=NEAR, num_perm=_PERMUTATIONS)
        self._signs: list[Any] = []
        for text in texts:
            self.add(text)

    def has(self, text: str) -> bool:
        sign = self._sign(text)
        return any(sign.jaccard(self._signs[key]) >= NEAR for key in self._index.query(sign))

    def add(self, text: str) -> None:
        self._signs.append(self._sign(text))
        self._index.insert(len(self._signs) - 1, self._signs[-1])

    def _sign(self, text: str) -> Any:
        words = text.casefold().split()
        sign = self._hash(num_perm=_PERMUTATIONS)
        sign.update_batch([" ".join(words[at : at + _WORDS]).encode() for at in range(max(1, len(words) - _WORDS + 1))])
        return sign
