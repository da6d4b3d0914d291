"""Whatever goes to another process answers there as here: toolkits, contracts, worlds, scenarios, models."""

from __future__ import annotations

import pickle
from datetime import date
from random import Random

import pytest
from langchain_core.tools import tool

from gecko_graph import GeckoError, Models, Scenario, Tool, Toolkit, World
from gecko_graph.context import GeckoContext
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.scenario import examples
from gecko_graph.tools.own_data import with_data
from gecko_graph.training.walks import Walk
from tests.phone import load

CASES = [Scenario.load(file) for file in examples().values()] + [load("wifi-off")]
KNOBS = GeckoContext(semantic_validation=False)
SHELF = {"pens": ["red"]}


def again(value):
    return pickle.loads(pickle.dumps(value))


def put(color: str) -> int:
    """Put a pen on the shelf."""
    SHELF["pens"].append(color)
    return len(SHELF["pens"])


def meet(day: date) -> str:
    """Meet on a day."""
    return f"on {day:%A}"


async def wait(day: date) -> str:
    """Wait for a day."""
    return f"for {day:%A}"


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"dust in {place}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_world_and_its_scenario_answer_the_same_there(case):
    world = World(case.tools, state=case.state, context=KNOBS)
    moves = Walk(world, Random(1)).go(3)
    other = again(world)
    for at, move in enumerate(moves):
        call = {"name": move.name, "args": move.args}
        assert other.call(call) == world.call(call)
        other = again(other) if at == 1 else other
    assert other.snapshot() == world.snapshot()
    there = again(case)
    assert there.tools.to_openapi() == case.tools.to_openapi()
    assert (there.user, there.state, there.goal, there.turns) == (case.user, case.state, case.goal, case.turns)


def test_functions_go_by_their_names():
    toolkit = Toolkit.from_tools([meet, look, wait])
    other = again(again(toolkit))
    assert other["meet"].real(day="2026-11-29") == toolkit["meet"].real(day="2026-11-29") == "on Sunday"
    assert other["look"].real(place="here") == "dust in here"
    assert [each.parameters for each in other] == [each.parameters for each in toolkit]
    assert other["meet"].accepts({"day": "soon"}) == toolkit["meet"].accepts({"day": "soon"})


def test_functions_with_data_of_their_module_have_it_there():
    toolkit = Toolkit.from_tools(with_data([Tool(put, effect="write")], SHELF))
    world, other = World(toolkit), World(again(toolkit))
    call = {"name": "put", "args": {"color": "blue"}}
    assert world.call(call) == other.call(call)
    assert other.state == {"pens": ["red", "blue"]}
    assert SHELF == {"pens": ["red"]}


def test_a_lambda_or_a_closure_is_named():
    def near(x: int) -> int:
        return x

    for one in (Tool(meet, name="far", simulate=lambda state, day: day), Tool(near)):
        with pytest.raises(GeckoError, match=r"^(far|near): it cannot be sent to another process: .*def at the top"):
            pickle.dumps(Toolkit.from_tools([one]))


def test_models_go_by_name(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    models = Models("openai:gpt-5-mini", base_url="http://localhost:1/v1", judge=RecordedModel())
    other = again(models.caching("/tmp/nowhere/replies"))
    assert other.get("planner").model_name == "gpt-5-mini"
    assert isinstance(other.get("judge"), RecordedModel)
    assert [other.has(role) for role in ("planner", "judge")] == [True, True]
    with pytest.raises(GeckoError, match="planner: its ChatOpenAI cannot be sent to another process: give it as"):
        pickle.dumps(Models(planner=models.get("planner")))
