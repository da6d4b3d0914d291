"""Speed of `verify` in processor time of one worker: rows of eight calls by contract, and rows by schemas alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import groupby, islice
from typing import Any

from gecko_graph.training.checks import Checker

from . import Given, Told
from .match import read_answers
from .spoilt import read_turns

CALLS, BY_CONTRACT, BY_SCHEMA = 8, 200, 500


def measure(given: Given) -> Iterator[Told]:
    """Yield rows per second, without the time to read them."""
    long: list[tuple[Any, Checker]] = []
    for _, turns in groupby(read_turns(given), key=lambda turn: turn[1].id):
        some = list(turns)
        sample, _, checker = some[0]
        calls = {key: [one for turn, *_ in some for one in turn[key]][:CALLS] for key in ("label", "results")}
        said = [each for each in some[-1][0]["messages"] if each["role"] == "user"]
        if len(calls["label"]) == CALLS:
            long.append(({**sample, **calls, "messages": said}, checker))
    answers: list[tuple[Any, Checker]] = [(one, Checker()) for one, _ in islice(read_answers(given), 3_000)]
    for rows, text, least in (
        (long[: given.limit or None], f"rows of {CALLS} calls by contract", BY_CONTRACT),
        (answers, "rows by schemas alone", BY_SCHEMA),
    ):
        started = time.process_time()
        kept = sum(checker.check(sample)["status"] != "drop" for sample, checker in rows)
        rate = len(rows) / (time.process_time() - started)
        yield Told(f"{rate:.0f} {text} a second ({len(rows)}, {kept} not dropped)", rate >= least)
