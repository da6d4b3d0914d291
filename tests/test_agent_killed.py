"""The agent killed anywhere: what was done is not done again, what is in doubt is asked about, the end is the same."""

from __future__ import annotations

import contextlib
import json
import random
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import GeckoError, RehearsalState, create_gecko_agent

from .test_agent import PLAN, TASK, Shop, thread

DEAD = (Killed, GeckoError)
"""A dead process whose thread lives on here cannot write its claims either, and makes no call."""


class Service(Shop):
    """The shop; the process that calls it can die in a call: before it took effect, or after."""

    def __init__(self, fate: Fate | None = None, die_at: int = 0, *, after: bool = False) -> None:
        super().__init__()
        self.fate, self.die_at, self.after, self.log = fate, die_at, after, []

    def order(self, item: str, quantity: int) -> dict:
        """Order an item."""
        return self._made(f"order {item}", lambda: Shop.order(self, item, quantity))

    def cancel(self, id: str) -> dict:
        """Cancel an order."""
        return self._made("cancel", lambda: Shop.cancel(self, id))

    def _made(self, name: str, call: Any) -> Any:
        self.die_at -= 1
        if self.die_at == 0:
            self.fate.kill_at = 1  # from now on nothing is written, whatever comes back
        if self.die_at == 0 and not self.after:
            raise RuntimeError
        result = call()
        self.log.append((name, result))
        return result


def embedded(agent: Any, saver: Any) -> Any:
    """A parent graph with the agent as one of its nodes."""

    class Parent(RehearsalState):
        checklist: list
        execution: dict

    builder = StateGraph(Parent)
    builder.add_node("agent", agent)
    builder.add_edge(START, "agent")
    return builder.compile(checkpointer=saver)


class Going(BaseChatModel):
    """Goes on with the plan behind the calls that it is shown with results."""

    @property
    def _llm_type(self) -> str:
        return "going"

    def bind_tools(self, *args: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list, *args: Any, **kwargs: Any) -> ChatResult:
        done = [each for each in messages if isinstance(each, ToolMessage) and each.status != "error"]
        call = {"name": (step := PLAN[len(done)]).get("call"), "args": step.get("args"), "id": f"c{len(messages)}"}
        if call["name"] == "cancel":
            call["args"] = {"id": json.loads(done[0].text)["id"]}
        message = AIMessage("", tool_calls=[call]) if call["name"] else AIMessage(step["say"])
        return ChatResult(generations=[ChatGeneration(message=message)])


def start(service: Service, saver: Any, *, as_node: bool) -> Any:
    """A process: an agent of its own over the same service and saver."""
    models = {"planner": Going()}
    agent = create_gecko_agent(service.toolkit(), models=models, review="none", checkpointer=None if as_node else saver)
    return embedded(agent, saver) if as_node else agent


def finish(service: Service, saver: Any, *, as_node: bool) -> tuple[dict, int]:
    """Go on in new processes until the run is over; doubts are answered from the service's own log."""
    given: Any = None if list(saver.list(thread())) else TASK
    for asked in range(10):
        out = start(service, saver, as_node=as_node).invoke(given, thread())
        if "__interrupt__" not in out:
            return out, asked
        question = out["__interrupt__"][0].value
        (action,) = question["action_requests"]
        given = Command(resume={"id": question["id"], "decisions": [answer_from(service.log, action)]})
    raise AssertionError("it does not end")


def answer_from(log: list[tuple[str, Any]], action: dict) -> dict:
    """What the service's log says of a call in doubt: each call of the plan is another one."""
    name = action["name"] if action["name"] == "cancel" else f"order {action['args']['item']}"
    results = [result for key, result in log if key == name]
    if not results:
        return {"type": "make_now"}
    return {"type": "happened", "message": json.dumps(results[-1])}


@pytest.mark.parametrize("as_node", [False, True])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("die_at", [1, 2, 3])
def test_killed_within_a_call_it_is_asked_about_and_the_end_is_the_same(die_at, after, as_node):
    fate = Fate()
    service, saver = Service(fate, die_at, after=after), KillingSaver(fate)
    with pytest.raises(DEAD):
        start(service, saver, as_node=as_node).invoke(TASK, thread())
    fate.kill_at = 0
    out, asked = finish(service, saver, as_node=as_node)
    assert asked == 1
    assert [name for name, _ in service.log] == ["order pen", "cancel", "order ink"]
    assert [*service.orders.values()] == ["ink"]
    assert out["task_state"]["orders"] == service.orders
    assert out["execution"]["status"] == "done"


@pytest.mark.parametrize("seed", range(16))
def test_killed_at_any_write_no_call_is_made_twice(seed):
    chance = random.Random(seed)
    as_node, durability = chance.random() < 0.5, chance.choice([None, "async", "sync"])
    whole = Fate()
    start(Service(), KillingSaver(whole), as_node=as_node).invoke(TASK, thread())
    slow = chance.choice([0.0, 0.0, 0.003])
    fate = Fate(chance.randint(1, whole.count), after=chance.random() < 0.5, slow_s=slow)
    service, saver = Service(), KillingSaver(fate)
    with contextlib.suppress(DEAD):
        start(service, saver, as_node=as_node).invoke(TASK, thread(), durability=durability)
    fate.kill_at = 0
    out, _ = finish(service, saver, as_node=as_node)
    assert [name for name, _ in service.log] == ["order pen", "cancel", "order ink"]
    assert out["task_state"]["orders"] == service.orders
    assert out["execution"]["status"] == "done"
