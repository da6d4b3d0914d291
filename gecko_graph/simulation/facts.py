"""Supposed facts: what simulated reads invented, so that a second read, and the next attempt, agree (paper, A.5)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ..models.telling import tell_json
from ..state import Call, SupposedFact

FACT_CHARS = 2_000


def fact_key(call: Call, digest: str) -> str:
    """The key of a fact: the call's tool and arguments, and the task state it was supposed in."""
    return f"{call['name']} {json.dumps(call['args'], sort_keys=True, ensure_ascii=False)} {digest}"


def merge_facts(old: Mapping[str, SupposedFact], new: Mapping[str, SupposedFact]) -> dict[str, SupposedFact]:
    """Reducer: both together; what was supposed first stays."""
    return {**new, **old}


def tell_facts(facts: Iterable[SupposedFact], *, about: str, budget: int) -> str:
    """The facts as lines of JSON for a prompt, those of the tool `about` first, as many as `budget` characters hold."""
    lines: list[str] = []
    left = budget + 1  # the last line ends without a break
    for fact in sorted(facts, key=lambda fact: fact["tool"] != about):
        told = {"call": {"name": fact["tool"], "args": fact["args"]}, "result": fact["result"]}
        line = tell_json(told, budget=min(budget // 3, FACT_CHARS))
        if len(line) < left:
            lines.append(line)
            left -= len(line) + 1
    return "\n".join(lines)
