"""Supposed facts: what simulated reads invented, so that a second read, and the next attempt, agree (paper, A.5)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..models.view.view import focus_words, view
from ..state import Call, JsonObject, Outcome, SupposedFact
from ..values.digest import digest
from ..values.leaves import scalars_of
from .rung import RungRequest

_SHARES = 3
"""Facts among which a budget is shared, at most: what is left over is for shorter ones."""

_BREAK = re.compile(r"\n *")


def fact_key(call: Call, digest: str) -> str:
    """Return the key of a fact: the call's tool and arguments, and the task state it was supposed in."""
    return f"{call['name']} {json.dumps(call['args'], sort_keys=True, ensure_ascii=False)} {digest}"


def suppose(request: RungRequest, outcome: Outcome) -> dict[str, SupposedFact]:
    """Return the fact that a committed answer leaves behind, if a rung made it up for a read.

    A tool of unknown effect whose success changed nothing leaves one for later prompts as well (else its next answer
    would contradict this one), but is never answered from it.
    """
    unchanged = request.tool.effect is None and outcome["status"] == "ok" and outcome["patch"] == []
    if "refused" in outcome or not outcome.get("invented") or not (request.tool.reads or unchanged):
        return {}
    now = digest(request.state)
    key = fact_key(request.call, now)
    if key in request.facts:
        return {}
    fact: SupposedFact = {
        "tool": request.call["name"],
        "args": request.call["args"],
        "status": outcome["status"],
        "result": outcome["result"],
        "rung": outcome["rung"],
        "digest": now,
    }
    return {key: fact}


def real_facts(request: RungRequest) -> list[SupposedFact]:
    """Return what real calls have shown, as facts; those before a change are of another state than now."""
    found: list[Any] = []
    now = digest(request.state) if request.steps else ""
    for step in reversed(request.steps):
        call, outcome = step["call"], step.get("outcome")
        if outcome and not outcome["simulated"]:
            found.insert(0, {**outcome, "tool": call["name"], "args": call["args"], "digest": now})
        now = "" if outcome and outcome["patch"] else now
    return [*request.earlier, *found]


def merge_facts(old: Mapping[str, SupposedFact], new: Mapping[str, SupposedFact]) -> dict[str, SupposedFact]:
    """Merge facts, the oldest first; the first of a key stays (reducer)."""
    return {**old, **new, **old}


def format_facts(facts: Collection[SupposedFact], *, call: Call, state: JsonObject, budget: int) -> str:
    """Return the facts as lines of JSON for a prompt, as many as `budget` characters hold.

    Those that hold the call's arguments come first, then those of its tool. A fact that is too long for its share is
    shown as a view: of a list of fifty flights, the one that is being booked. Of equal calls the latest counts;
    what was supposed in another state than this one is marked: a write may have changed it.
    """
    scalars = (each for each in scalars_of(call["args"]) if each is not None and not isinstance(each, bool))
    wanted = [text for text in (str(each).lower() for each in scalars) if len(text) > 1]
    now = digest(state) if facts else ""
    latest = {_call_of(fact): fact for fact in facts}.values()
    ranked = sorted((_rank(fact, call["name"], wanted, now), index, fact) for index, fact in enumerate(latest))
    focus = focus_words(call["args"], call["name"])
    share = budget // min(max(len(ranked), 1), _SHARES)
    lines: list[str] = []
    left = budget + 1  # the last line ends without a break
    for _, _, fact in ranked:
        line = _format_fact(fact, old=fact["digest"] != now, focus=focus, budget=share)
        if len(line) < left:
            lines.append(line)
            left -= len(line) + 1
    return "\n".join(lines)


def _call_of(fact: SupposedFact) -> str:
    return fact_key({"id": "", "name": fact["tool"], "args": fact["args"]}, "")


def _rank(fact: SupposedFact, tool: str, wanted: Sequence[str], now: str) -> tuple[bool, bool, bool]:
    text = json.dumps([fact["args"], fact["result"]], ensure_ascii=False).lower()
    return not any(each in text for each in wanted), fact["tool"] != tool, fact["digest"] != now


def _format_fact(fact: SupposedFact, *, old: bool, focus: Sequence[str], budget: int) -> str:
    age = {"before_a_change": True} if old else {}
    failed = {"status": "error"} if fact["status"] == "error" else {}
    shown = {"call": {"name": fact["tool"], "args": fact["args"]}, **age, **failed, "result": fact["result"]}
    line = json.dumps(shown, ensure_ascii=False)
    return line if len(line) <= budget else _BREAK.sub(" ", view(shown, focus=focus, budget=budget))
