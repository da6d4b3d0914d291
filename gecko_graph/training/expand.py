"""Error-driven data expansion (paper, section 4.4): new rows that are hard as an error was, in other circumstances."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import GeckoError
from ..models.answer import answer
from ..models.ask import Ask, Where
from ..models.factory import Models
from ..models.formatting import format_json
from ..models.roles import VariantReply
from ..state import JsonObject
from ..tools import Toolkit
from ..values.places import as_text
from .journal import Journal
from .judging import describe_row, describe_step
from .rows import write_rows
from .samples import Sample
from .shapes import ROW_ERRORS, read_row
from .steps import read_rows
from .verify import verify_samples

CONSTRAINTS = (
    "Another goal: the user wants something else of the same kind, from another part of life.",
    "Another person: the user speaks in a clearly different manner (terse, chatty, unsure, formal), and says values in "
    "passing rather than in a list.",
    "Other data: names, numbers, dates and texts are of another form or order of size, none of them that of the case.",
    "Another course: the user corrects a value, adds a condition, or says what is needed over several messages.",
)
"""Under one each, so that the variants of an error differ from each other (paper: scenario diversification)."""

NEAR = 0.8
"""Jaccard similarity, of words in threes, from which on two rows are the same."""
_PERMUTATIONS, _WORDS, _STATE = 128, 3, 12_000


def write_variants(
    errors: Iterable[Mapping[str, Any]],
    models: Models,
    file: Path,
    of: str,
    *,
    each: int,
    turn: int,
    tell: Callable[[int], None],
) -> Counter[str]:
    """Write what a model makes of error seeds, unverified; one that was stopped is gone on with.

    An error seed is a row whose verdict has the wrong call and the analysis. Returns how many variants there are, and
    how many replies were no row.
    """
    counts: Counter[str] = Counter(written=0, unreadable=0)
    with Journal(file, of) as journal:
        done = 0
        for entry in journal.read():
            done += 1
            counts.update(written=len(entry["rows"]), unreadable=entry["lost"])
        for number, error in enumerate(errors):
            if number < done:
                continue
            asks = [_ask(error, at, Where(turn, 0, number * each + at)) for at in range(each)]
            replies = [reply.value for reply in answer(asks, models)]
            rows = [row for at, reply in enumerate(replies) if (row := _read(error, reply, at, turn))]
            lost = each - len(rows)
            journal.write(json.dumps({"rows": rows, "lost": lost}, ensure_ascii=False))
            journal.flush()
            counts.update(written=len(rows), unreadable=lost)
            tell(number + 1)
        journal.finish(lambda entry: entry["rows"])
    return counts


def _ask(error: Mapping[str, Any], at: int, where: Where) -> Ask:
    verdict = error["verdict"]
    variables = {
        **describe_row(error),
        "right": describe_step(error["label"], error.get("text", "")),
        "wrong": describe_step(verdict.get("wrong") or [], verdict.get("said", "")),
        "analysis": verdict.get("analysis", ""),
        "state": format_json(error["state"], budget=_STATE) if error.get("state") else "",
        "constraint": CONSTRAINTS[at],
    }
    return Ask("variant_writer", variables, VariantReply, where)


def _read(error: Mapping[str, Any], reply: Any, at: int, turn: int) -> JsonObject | None:
    """Return a reply as a row; None where it is none."""
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
    drafts: Path, file: Path, known: Iterable[Sample], toolkit: Toolkit | None, models: Models
) -> Counter[str]:
    """Write the variants that both tiers of the verification keep, near-duplicates left out; returns how many are what.

    Args:
        drafts: What was written.
        file: Where those that are kept go.
        known: Rows that a variant may not resemble.
        toolkit: The tools that make the calls of rows with a state.
        models: The models by role: `label_judge`.
    """
    verified = file.with_name(f"{file.name}.verified")
    counts: Counter[str] = Counter(dropped=0, open=0, duplicate=0, kept=0)
    if not drafts.stat().st_size:
        write_rows(file, [])
        return counts
    verify_samples(drafts, verified, toolkit=toolkit, model=models)
    near = Near([*known])

    def keep() -> Iterator[JsonObject]:
        for row in read_rows(verified):
            verdict = row["verdict"]
            is_open = verdict["status"] == "open" or verdict["by"] == "rules"  # no second tier has seen it
            found = "dropped" if verdict["status"] == "drop" else "open" if is_open else ""
            found = found or ("duplicate" if near.has(row) else "kept")
            counts[found] += 1
            if found == "kept":
                yield row

    write_rows(file, keep())
    verified.unlink()
    return counts


class Near:
    """Rows by their words, so that one which is nearly another is found (MinHash); `read` returns a row's text."""

    def __init__(
        self, rows: Sequence[Mapping[str, Any]] = (), *, read: Callable[[Mapping[str, Any]], str] | None = None
    ) -> None:
        try:
            from datasketch import MinHash, MinHashLSH  # type: ignore[import-untyped]
        except ImportError:
            raise GeckoError("near-duplicates need datasketch: pip install 'gecko-graph[training]'") from None
        self._hash: Any = MinHash
        self._index: Any = MinHashLSH(threshold=NEAR, num_perm=_PERMUTATIONS)
        self._signs: list[Any] = []
        self._read = read or _read_words
        for row in rows:
            self._add(self._sign(row))

    def has(self, row: Mapping[str, Any], *, add: bool = True) -> bool:
        """Return whether a row is nearly one of before; else, if it is added, it is one from now on."""
        sign = self._sign(row)
        is_near = any(sign.jaccard(self._signs[key]) >= NEAR for key in self._index.query(sign))
        if add and not is_near:
            self._add(sign)
        return is_near

    def _add(self, sign: Any) -> None:
        self._index.insert(len(self._signs), sign)
        self._signs.append(sign)

    def _sign(self, row: Mapping[str, Any]) -> Any:
        words = self._read(row).casefold().split()
        sign = self._hash(num_perm=_PERMUTATIONS)
        sign.update_batch([" ".join(words[at : at + _WORDS]).encode() for at in range(max(1, len(words) - _WORDS + 1))])
        return sign


def _read_words(row: Mapping[str, Any]) -> str:
    users = " ".join(str(each["content"]) for each in row["messages"] if each["role"] == "user")
    return f"{users} {as_text(row['label'])}"
