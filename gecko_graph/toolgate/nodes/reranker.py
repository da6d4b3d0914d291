"""reranker: the tools for a need, by rank, and those of them that the state admits (ToolGate, equations 7 to 10)."""

from __future__ import annotations

import random
from collections.abc import Collection, Generator, Mapping, Sequence
from typing import Any

from ...context import GeckoContext
from ...contracts.run import Admissibility
from ...events import event
from ...models.ask import AnyAsk, Ask, Reply, Where
from ...models.formatting import format_tool_lines
from ...models.node import NodeScope
from ...models.roles import Ranking
from ...retrieval.search import ToolSearch
from ...retrieval.words import document_of, split_words, texts_of
from ...tools import Toolkit
from ...tools.spec import ToolSpec
from ...world.contract import find_closed
from ...world.turn import stop, untrusted_of
from ..channels import Candidate, ForwardState, Need, Rejection, explain

ADMITTED = Admissibility("yes")


def reranker(
    state: ForwardState, scope: NodeScope, *, toolkit: Toolkit, gated: Sequence[ToolSpec], search: ToolSearch
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Rank the tools for the need, leave out those that the state does not admit, and put the others in their order.

    Without a model the order is that of retrieval. `gated` are the tools that a task state may not admit whatever the
    arguments; `search` finds the tools for a need where there are many.
    """
    need, context, steps = state["need"], scope.context, state.get("steps", [])
    closed = find_closed(gated, state["task_state"], seed=context.seed, steps=steps, untrusted=untrusted_of(state))
    found = yield from retrieve(need, toolkit, closed, search, context)
    if len(found) > 1 and scope.has_model("reranker"):
        question = state.get("asked", {}).get("reranker", 0)
        where = Where(turn=state["turn"], attempt=state["number"], question=question)
        lines = format_tool_lines(((name, describe(toolkit[name])) for name in found), budget=2 * context.view_chars)
        (reply,) = yield [Ask("reranker", {"need": need, "tools": lines}, Ranking, where)]
        found = read_ranking(reply.value, found) if isinstance(reply.value, Ranking) else found
    ranked = weigh(found, closed)
    if context.selection == "sample":
        ranked = draw(ranked, random.Random(f"{context.seed} {state['turn']} {len(steps)} {need}"))
    rejections = [reject(each) for each in ranked if each["admissible"] != "yes"]
    left = [each["tool"] for each in ranked if each["admissible"] == "yes"]
    scope.emit(event("gecko.need", attempt=state["number"], need=need, candidates=ranked, rejections=rejections))
    update: dict[str, Any] = {"ranked": ranked, "candidates": left, "rejections": rejections, "tries": 0}
    if left:
        return update
    over: Need = {"need": need, "candidates": ranked, "rejections": rejections}
    return {**update, "needs": [over], **stop("no_candidate", explain(need, rejections))}


def retrieve(
    need: str, toolkit: Toolkit, closed: Collection[str], search: ToolSearch, context: GeckoContext
) -> Generator[list[AnyAsk], list[Reply], dict[str, float]]:
    """Return the tools that may serve a need, the best first, with scores: of few tools all (equation 7).

    Of many those that fit, and beside them as many that the state admits: a need whose best tool is closed shows why.
    """
    if not search.is_needed(context):
        words = set(split_words(need))
        shared = {tool.name: len(words.intersection(document_of(*texts_of(tool)))) for tool in toolkit}
        return {name: 1.0 + score for name, score in sorted(shared.items(), key=lambda pair: -pair[1])}
    names = yield from search.find(need, context.top_k, context)
    if closed:
        admitted = [name for name in toolkit.names if name not in closed]
        names += yield from search.find(need, context.top_k, context, allowed=admitted)
    return {name: 1 / place for place, name in enumerate(dict.fromkeys(names), 1)}


def describe(tool: ToolSpec) -> str:
    """Return a tool's description and its arguments."""
    takes = ", ".join(tool.parameters.get("properties", {}))
    return f"{tool.about} Takes {takes}." if takes else tool.about


def read_ranking(ranking: Ranking, found: Mapping[str, float]) -> dict[str, float]:
    """Return the scores of a model's ranking, the best first; of unknown tools, and of 0, none."""
    scores = {each.name: each.score for each in reversed(ranking.tools) if each.name in found and each.score > 0}
    return dict(sorted(reversed(scores.items()), key=lambda pair: -pair[1]))


def weigh(scores: Mapping[str, float], closed: Mapping[str, Admissibility]) -> list[Candidate]:
    """Return the candidates with their probabilities (equation 9); tools that the state does not admit have 0."""
    total = sum(score for name, score in scores.items() if name not in closed)
    ranked: list[Candidate] = []
    for name, score in scores.items():
        word, reason, _ = closed.get(name, ADMITTED)
        p = score / total if word == "yes" else 0.0
        ranked.append({"tool": name, "p": p, "admissible": word, **({"reason": reason} if reason else {})})  # type: ignore[typeddict-item]
    return ranked


def draw(ranked: Sequence[Candidate], dice: random.Random) -> list[Candidate]:
    """Return the candidates in the order of draws without replacement, each by what is left of equation 9."""
    left, drawn = [each for each in ranked if each["p"] > 0], list[Candidate]()
    while left:
        (chosen,) = dice.choices(range(len(left)), [each["p"] for each in left])
        drawn.append(left.pop(chosen))
    return [*drawn, *(each for each in ranked if each["p"] == 0)]


def reject(candidate: Candidate) -> Rejection:
    """Return the refusal of a tool that the state does not admit."""
    reason = candidate.get("reason", "")
    return {"tool": candidate["tool"], "phase": "P", "reason": reason, "category": "state_dependency"}
