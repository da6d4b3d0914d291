"""Results have a limit: every checkpoint keeps them."""

from __future__ import annotations

import pytest

from gecko_graph import GeckoContext, Toolkit, create_gecko
from gecko_graph.testing import recorded
from gecko_graph.world.ladder import MAX_ANSWER_BYTES
from tests import desk


def everything() -> str:
    """Return everything."""
    return "x" * (MAX_ANSWER_BYTES + 1)


def steps_of(tools, name):
    planner = recorded(planner=[[{"call": name}, {"say": "Done."}]])
    gecko = create_gecko(tools, models={"planner": planner}, context=GeckoContext(max_retries=0))
    return gecko.invoke(desk.inputs())["rehearsal"]["attempts"][0]["steps"]


def test_too_large_a_result_of_a_real_tool_is_its_error():
    tools = Toolkit.from_tools([everything], effects={"everything": "read"}).open("everything")
    (step,) = steps_of(tools, "everything")
    assert (step["outcome"]["rung"], step["outcome"]["status"]) == ("real", "error")
    assert "8,000,0" in step["outcome"]["result"]
    assert "they may have 8,000,000" in step["outcome"]["result"]


def test_too_large_a_result_of_a_simulation_is_not_used():
    (step,) = steps_of(desk.toolkit(look=lambda state: everything()), "look")
    assert step["outcome"]["rung"] != "python"
    assert any("they may have 8,000,000" in each["reason"] for each in step["outcome"]["passed"])


@pytest.mark.parametrize("size", [1_000_000, MAX_ANSWER_BYTES - 100])
def test_large_results_within_the_limit_are_kept_whole(size):
    (step,) = steps_of(desk.toolkit(look=lambda state: "x" * size), "look")
    assert (step["outcome"]["rung"], len(step["outcome"]["result"])) == ("python", size)
