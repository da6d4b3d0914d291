"""The phone's cases with their agents, for tests; `gecko-graph test ... --agent tests.phone:good` takes its agents."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Lock

from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

from evals.fair.player import read_agents
from gecko_graph import Models, Scenario, Toolkit, create_conversation, create_gecko_agent
from gecko_graph.conversation.milestones.constraints import is_reached
from gecko_graph.testing import recorded, scripted
from gecko_graph.values.documents import read_document

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "phone"
CASES = sorted(file.name.removesuffix(".gecko.yaml") for file in (FOLDER / "cases").glob("*.gecko.yaml"))


TOOLS = Toolkit.from_openapi(FOLDER / "cases" / "phone.openapi.yaml")
"""Of all cases, read once."""


@cache
def load(name):
    file = FOLDER / "cases" / f"{name}.gecko.yaml"
    return Scenario.from_dict({**read_document(file), "tools": "tests.phone:TOOLS"}, where=str(file))


@cache
def agents(name):
    return read_agents(FOLDER / "agents" / f"{name}.yaml")


def converse(agent, scenario, **more):
    """The whole output of a conversation."""
    return create_conversation(agent, scenario=scenario, **more).invoke({}, {"recursion_limit": 200})


@cache
def played(name, route, number=0):
    """The output of a case's conversation with its good agent, the other good one, or a bad one; only to be read."""
    does = agents(name)[route]
    return converse(scripted(*(does[number]["does"] if route == "bad" else does)), load(name))


def lost(found):
    return [each["id"] for each in found["milestones"] if not is_reached(each)]


def stepped_on(found):
    return [each["id"] for each in found["minefields"] if each["similarity"]]


def rename(replies, names):
    """The replies with the names that the agent sees."""
    calls = [{**each, "calls": rename(each["calls"], names)} if "calls" in each else each for each in replies]
    return [{**each, "call": names[each["call"]]} if "call" in each else each for each in calls]


# agents that know a case by its opening ----------------------------------------------------------------


@cache
def openings():
    files = {name: FOLDER / "cases" / f"{name}.gecko.yaml" for name in CASES}
    return {read_document(file)["user"]["opening"]: name for name, file in files.items()}


def case_of(opening):
    return openings()[opening]


def good(tools):
    """A `create_agent` that does well in every case."""
    return _agent(tools, lambda name: agents(name)["good"])


def hasty(tools):
    """A `create_agent` whose planner does its second bad try, and leaves it at that."""
    return _agent(tools, lambda name: agents(name)["bad"][1]["does"])


BUILDING = Lock()
"""One after the other: LangChain silences warnings while it builds, which threads undo for each other."""


def _agent(tools, choose):
    from langchain.agents import create_agent

    def run(values):
        with BUILDING:
            return create_agent(scripted(*choose(case_of(values["messages"][0].text))), tools)

    return RunnableLambda(run)


def rehearsing(tools):
    """The same planner in an agent that rehearses: a judge sees that the first try is not enough, and it tries again.

    It is given the state that the phone is in, and how its tools answer: contracts, examples, schemas.
    """

    def run(values):
        name = case_of(values["messages"][0].text)
        case, own = load(name), Toolkit.from_tools(tools)
        known = [replace(each, real=own[each.name].real) for each in case.tools if each.name in own]
        verdicts = [{"items": [{"id": "item-1", "status": word}]} for word in ("failed", "success")]
        graph = create_gecko_agent(
            own.replace(*known),
            model=Models(
                planner=recorded(planner=[agents(name)["bad"][1]["does"], agents(name)["good"]]),
                checklist=recorded(checklist=[{"items": [{"description": case.user.goal}]}]),
                judge=recorded(judge=verdicts),
            ),
            interrupt_on="none",
            checkpointer=InMemorySaver(),
        )
        thread = {"configurable": {"thread_id": name}}
        return RunnableLambda(lambda given: {**given, "task_state": case.state}) | graph.with_config(thread)

    return RunnableLambda(run)
