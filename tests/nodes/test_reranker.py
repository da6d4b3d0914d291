"""reranker: equation 9, and draws from it."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph import GeckoContext
from gecko_graph.contracts.run import Admissibility
from gecko_graph.retrieval.search import ToolSearch
from gecko_graph.testing import drive
from gecko_graph.toolgate.nodes import draw, reranker, weigh
from gecko_graph.world.rung import find_gated
from tests import shop

TOOLS = shop.toolkit()
SEARCH = ToolSearch(TOOLS, None, GeckoContext())
NODE = partial(reranker, toolkit=TOOLS, gated=find_gated(TOOLS), search=SEARCH)


@pytest.fixture
def needing(attempt):
    return lambda **more: attempt(need="Sell a pen", task_state=shop.start(), **more)


def ranking(**scores):
    return {"tools": [{"name": name, "score": score} for name, score in scores.items()]}


def test_unknown_tools_and_those_without_a_score_are_no_candidates(needing):
    driven = drive(NODE, needing(), [ranking(gift=2, fly=9, sell=6, stock=0)])
    assert driven.update["candidates"] == ["sell", "gift"]
    assert [each["p"] for each in driven.update["ranked"]] == [0.75, 0.25]
    assert [each["type"] for each in driven.events] == ["gecko.need"]


def test_draws_are_the_same_for_a_seed_and_follow_the_probabilities(needing):
    def first(seed):
        knobs = GeckoContext(selection="sample", seed=seed)
        return drive(NODE, needing(), [ranking(gift=1, sell=3)], context=knobs).update["candidates"]

    assert [first(seed) for seed in range(20)] == [first(seed) for seed in range(20)]
    found = Counter(first(seed)[0] for seed in range(300))
    assert 195 <= found["sell"] <= 255
    assert all(sorted(first(seed)) == ["gift", "sell"] for seed in range(20))


@given(
    scores=st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.001, 1000), min_size=1),
    closed=st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["no", "unknown"])),
    seed=st.integers(0, 99),
)
def test_equation_9(scores, closed, seed):
    ranked = weigh(scores, {name: Admissibility(word, "?") for name, word in closed.items()})
    admitted = {name: score for name, score in scores.items() if name not in closed}
    for each in ranked:
        expected = admitted[each["tool"]] / sum(admitted.values()) if each["tool"] in admitted else 0.0
        assert each["p"] == pytest.approx(expected)
    drawn = draw(ranked, random.Random(seed))
    assert sorted(each["tool"] for each in drawn) == sorted(scores)
    assert {each["tool"] for each in drawn[: len(admitted)]} == set(admitted)
