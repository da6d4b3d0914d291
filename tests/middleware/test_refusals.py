"""What was really refused is not proposed again under middleware, until something is known to have changed."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import ToolException
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import Tool, Toolkit
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.world.refusals import SAME
from tests.middleware.bank import calls, chat, pay
from tests.middleware.test_claims import TASK, THREAD


class Shop:
    """A service that refuses what is over its limit; the limit can be raised, and read."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.limit = 10

    def transfer(self, to: str, amount: int) -> dict:
        """Transfer money."""
        self.calls.append("transfer")
        if amount > self.limit:
            raise ToolException("over the limit")
        return {"left": 70}

    def balance(self) -> dict:
        """Return the limit."""
        self.calls.append("balance")
        self.limit += 30
        return {"limit": self.limit}

    def agent(self, *said, mode: str, saver=None, before=()):
        tools = [
            Tool(self.transfer, effect="write", refuses=True, contract={"returns": {"left": 70}}),
            Tool(self.balance, effect="read", contract={"returns": {"limit": 10}}),
        ]
        toolkit = Toolkit.from_tools(tools)
        for_model = toolkit.as_tools()
        for tool in for_model:
            tool.handle_tool_error = True
        middleware = GeckoMiddleware(toolkit, mode=mode, state={}, interrupt_on="none")
        return create_agent(
            chat(*said), tools=for_model, middleware=[*before, middleware], checkpointer=saver or InMemorySaver()
        )


def told(out: dict) -> list[bool]:
    return [SAME in each.text for each in out["messages"] if isinstance(each, ToolMessage)]


@pytest.mark.parametrize("mode", ["guard", "preview"])
def test_the_same_call_is_made_again_only_when_something_has_changed(run, mode):
    shop = Shop()
    said = calls(pay("a", 30)), calls(pay("b", 30)), calls(("r", "balance", {})), calls(("s", "balance", {}))
    out = run(shop.agent(*said, calls(pay("c", 30)), "Done.", mode=mode), TASK, THREAD)
    assert told(out) == [False, True, False, False, False]
    assert shop.calls == ["transfer", "balance", "balance", "transfer"]


@pytest.mark.parametrize("mode", ["guard", "preview"])
def test_once_the_user_has_spoken_it_is_made_when_the_model_insists(run, mode):
    shop, saver = Shop(), InMemorySaver()
    run(shop.agent(calls(pay("a", 30)), "No.", mode=mode, saver=saver), TASK, THREAD)
    again = {"messages": [HumanMessage("Try again", id="m2")]}
    out = run(shop.agent(calls(pay("b", 30)), calls(pay("c", 30)), "No.", mode=mode, saver=saver), again, THREAD)
    assert told(out) == [False, True, False]
    assert shop.calls == ["transfer", "transfer"]


def test_an_answer_of_other_middleware_is_not_taken_for_the_refusal(run):
    class Busy(AgentMiddleware):
        """Answers the first call of the second turn itself."""

        @staticmethod
        def answer(request):
            call = request.tool_call
            return ToolMessage("busy", tool_call_id=call["id"], status="error") if call["id"] == "b" else None

        def wrap_tool_call(self, request, handler):
            return self.answer(request) or handler(request)

        async def awrap_tool_call(self, request, handler):
            return self.answer(request) or await handler(request)

    shop, saver = Shop(), InMemorySaver()
    run(shop.agent(calls(pay("a", 30)), "No.", mode="guard", saver=saver), TASK, THREAD)
    again = {"messages": [HumanMessage("Try again", id="m2")]}
    said = calls(pay("b", 30)), calls(pay("c", 30)), "No."
    out = run(shop.agent(*said, mode="guard", saver=saver, before=[Busy()]), again, THREAD)
    assert told(out) == [False, False, True]
    assert shop.calls == ["transfer"]
