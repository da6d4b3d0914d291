"""Simulated calls are answered as they come: another middleware may edit, reject, answer or hold back any."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain")

from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import World
from tests.middleware.bank import Bank, calls, look, pay
from tests.middleware.test_agent import THREAD, agent_of, answers, marks, task
from tests.middleware.test_order import ids_of, needs_per_call

EDIT = {"type": "edit", "edited_action": {"name": "transfer", "args": {"to": "ann", "amount": 20}}}
REJECT, APPROVE = {"type": "reject"}, {"type": "approve"}


def world_of(out: dict) -> World:
    return World.restore(Bank().toolkit(), out["gecko"])


def by_call(out: dict) -> dict[str, ToolMessage]:
    return {message.tool_call_id: message for message in answers(out)}


def asked_of(run, made, *, saver=None, **more):
    """An agent whose user is asked about each transfer as it starts, and the ids of the questions."""
    person = HumanInTheLoopMiddleware(interrupt_on={"transfer": True}, interrupt_mode="per_call")
    agent = agent_of(Bank(), made, others=[person], saver=saver or InMemorySaver(), **more)
    return agent, ids_of(run(agent, task(), THREAD))


@needs_per_call
def test_an_edit_of_one_call_changes_what_follows(run):
    agent, asked = asked_of(run, calls(pay("a", 10), pay("b", 30), look("c")))
    out = run(agent, Command(resume={asked["a"]: EDIT, asked["b"]: APPROVE}), THREAD)
    assert out["gecko"]["state"]["balance"] == 50
    said = by_call(out)
    assert '"left": 80' in said["a"].content
    assert "human reviewer" in said["a"].content, "what the other middleware has said stays"
    assert '"left": 50' in said["b"].content
    assert said["c"].content == '{"balance": 100}', "it was answered while the others waited for a person"
    assert [step["call"]["args"].get("amount") for step in out["gecko"]["log"]] == [None, 20, 30]
    assert world_of(out).state == out["gecko"]["state"]


@needs_per_call
@pytest.mark.parametrize("mode", ["simulate", "hybrid"])
def test_a_rejected_call_was_never_made(run, mode):
    agent, asked = asked_of(run, calls(pay("a", 80), pay("b", 30)), mode=mode)
    run(agent, Command(resume={asked["a"]: REJECT}), THREAD)
    out = run(agent, Command(resume={asked["b"]: APPROVE}), THREAD)
    assert out["gecko"]["state"]["balance"] == 70
    said = by_call(out)
    assert (said["a"].status, said["b"].status) == ("error", "success")
    assert '"left": 70' in said["b"].content
    assert marks(said["b"])["rung"] == "contract"
    assert [step["call"]["id"] for step in out["gecko"]["log"]] == ["b"]


def test_a_batched_rejection_and_an_edit(run):
    person = HumanInTheLoopMiddleware(interrupt_on={"transfer": True})
    made = calls(pay("a", 80), pay("b", 30), pay("c", 50))
    agent = agent_of(Bank(), made, others=[person], saver=InMemorySaver())
    run(agent, task(), THREAD)
    out = run(agent, Command(resume={"decisions": [REJECT, EDIT, APPROVE]}), THREAD)
    assert out["gecko"]["state"]["balance"] == 30
    assert '"left": 30' in by_call(out)["c"].content


class Guardrail(AgentMiddleware):
    """Blocks large payments, and makes small ones smaller; or gives a call another name."""

    def wrap_tool_call(self, request, handler):
        return self.blocked(request) or handler(self.changed(request))

    async def awrap_tool_call(self, request, handler):
        return self.blocked(request) or await handler(self.changed(request))

    def blocked(self, request):
        if request.tool_call["args"].get("amount") == 80:
            return ToolMessage("blocked", tool_call_id=request.tool_call["id"], name="transfer", status="error")
        return None

    def changed(self, request):
        call = request.tool_call
        if call["args"].get("amount") == 66:
            return request.override(tool_call={**call, "name": "balance", "args": {}})
        return request.override(tool_call={**call, "args": {**call["args"], "amount": call["args"]["amount"] // 10}})


def test_a_guardrail_that_answers_and_changes_calls(run):
    made = calls(pay("a", 80), pay("b", 30), pay("c", 50))
    out = run(agent_of(Bank(), made, others=[Guardrail()]), task())
    assert out["gecko"]["state"]["balance"] == 92
    assert [message.content.partition('"left"')[2] or message.content for message in answers(out)] == [
        "blocked", ": 97}", ": 92}",
    ]  # fmt: skip


@pytest.mark.parametrize("mode", ["simulate", "hybrid"])
def test_a_call_that_is_renamed_to_an_untouched_tool_does_not_run(run, mode):
    bank = Bank()
    out = run(agent_of(bank, calls(pay("a", 66)), others=[Guardrail()], mode=mode, exclude_tools=["balance"]), task())
    assert ("transfer", "ann", 66) not in bank.calls
    assert out["gecko"]["state"]["balance"] == 100
