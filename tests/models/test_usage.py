"""Counting: sums do not depend on their order, and an unknown price stays unknown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from gecko_graph.models.usage import Price, add_all, add_usage, count, no_usage, price_of, total

costs = st.none() | st.integers(0, 10**12).map(lambda nano: round(nano / 1e9, 9))
parts = st.fixed_dictionaries(
    {
        "calls": st.integers(0, 9),
        "input_tokens": st.integers(0, 10**7),
        "output_tokens": st.integers(0, 10**7),
        "cost": costs,
    }
)
usages = st.dictionaries(st.sampled_from(["planner", "judge", "simulator"]), parts)


@given(a=usages, b=usages, c=usages)
def test_sums_are_commutative_and_associative_and_so_are_totals(a, b, c):
    assert total(add_usage(a, b)) == add_all([total(a), total(b)])
    assert total({}) == no_usage()
    known, unknown = {**no_usage(), "cost": 0.5}, {**no_usage(), "cost": None}
    assert total({"planner": known, "judge": unknown})["cost"] is None
    assert add_usage(a, b) == add_usage(b, a)
    assert add_usage(add_usage(a, b), c) == add_usage(a, add_usage(b, c))
    assert add_usage(a, {}) == a


def message(model_name, given=1_000_000, made=100_000):
    usage = {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}
    return AIMessage("", usage_metadata=usage, response_metadata={"model_name": model_name})


@pytest.mark.parametrize(("name", "cost"), [
    ("gpt-5-mini", 0.45), ("gpt-5-mini-2025-08-07", 0.45), ("gpt-5-2025-08-07", 2.25), ("gpt-5-turbo", None),
])  # fmt: skip
def test_the_price_is_the_models_own_or_that_of_its_undated_name(name, cost):
    counted = count(message(name))
    assert counted == {"calls": 1, "input_tokens": 1_000_000, "output_tokens": 100_000, "cost": cost}


def test_prices_can_be_given_and_a_reply_that_tells_no_tokens_is_a_call_of_unknown_cost():
    for reply in (AIMessage("no usage told"), HumanMessage("odd"), None):
        assert count(reply) == {"calls": 1, "input_tokens": 0, "output_tokens": 0, "cost": None}
    assert count(message("qwen"), prices={"qwen": Price(1, 10)})["cost"] == 2.0
    assert price_of("qwen-2025-01-01", prices={"qwen": Price(1, 10)}) == Price(1, 10)


def test_recorded_tokens_are_an_estimate_also_in_a_sum():
    recorded = message("recorded").model_copy(update={"response_metadata": {"estimated_usage": True}})
    spent = add_usage({"planner": count(recorded)}, {"planner": count(message("qwen"))})
    assert spent["planner"]["estimated"]
    assert total({**spent, "judge": count(message("qwen"))})["estimated"]
    assert "estimated" not in total({"judge": count(message("qwen"))})
