"""A user's own tool hands LangChain a value that `json` cannot write: what is checked is the value, not its text."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from gecko_graph import Tool, Toolkit
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.testing import scripted
from tests.middleware.test_agent import THREAD, answers, task


class Receipt(BaseModel):
    number: str
    left: float
    on: date = date(2026, 1, 2)


@dataclass
class Row:
    number: str
    price: Decimal


class Color(enum.Enum):
    RED = "red"


def typed(name: str, value: Any, annotation: Any, made: list[Any]) -> Any:
    def pay(to: str, config: RunnableConfig) -> Any:
        """Pay somebody."""
        made.append((to, config["configurable"]["thread_id"]))
        return value

    pay.__annotations__["return"] = annotation
    return tool(name)(pay)


CASES = {
    "model": (Receipt(number="A", left=2.5), Receipt, {"number": "A", "left": 2.5, "on": "2026-01-02"}),
    "models": ([Receipt(number="A", left=2.5)], list[Receipt], [{"number": "A", "left": 2.5, "on": "2026-01-02"}]),
    "dataclass": (Row("A", Decimal("1.50")), Row, {"number": "A", "price": "1.50"}),
    "date in a dict": ({"on": date(2026, 1, 2)}, dict[str, date], {"on": "2026-01-02"}),
    "set": ({1}, set[int], [1]),
    "enum": (Color.RED, Color, "red"),
    "number": (2.5, float, 2.5),
    "truth": (True, bool, True),
    "nothing": (None, Receipt | None, None),
    "text": ("paid", str, "paid"),
    "dict": ({"a": 1}, dict[str, int], {"a": 1}),
}


@pytest.mark.parametrize("mode", ["guard", "shadow"])
@pytest.mark.parametrize("name", CASES)
def test_the_value_of_a_real_call_is_checked_and_kept(run, name, mode):
    value, annotation, expected = CASES[name]
    made: list[Any] = []
    own = typed("pay", value, annotation, made)
    contract = {"effects": [{"op": "add", "path": ["paid"], "value": "{{ args.to }}"}]}
    gecko = GeckoMiddleware(Toolkit.from_tools([Tool(own, effect="write", contract=contract)]), mode=mode, state={})
    model = scripted({"call": "pay", "args": {"to": "ann"}}, {"say": "Done."})
    agent = create_agent(model, tools=[own], middleware=[gecko], checkpointer=InMemorySaver())
    out = run(agent, task(), THREAD)
    (entry,) = out["gecko_journal"]
    assert made == [("ann", THREAD["configurable"]["thread_id"])]
    assert (entry["status"], entry["result"]) == ("ok", expected)
    assert "departure" not in entry
    assert [message.status for message in answers(out)] == ["success"]
    assert out["gecko"]["state"] == {"paid": "ann"}


def test_a_value_that_breaks_a_postcondition_is_told(run):
    own = typed("pay", Receipt(number="A", left=-1.0), Receipt, [])
    contract = {"ensures": [{"check": "result.left >= 0", "error": "overdrawn"}]}
    gecko = GeckoMiddleware(Toolkit.from_tools([Tool(own, effect="write", contract=contract)]), mode="guard", state={})
    model = scripted({"call": "pay", "args": {"to": "ann"}}, {"say": "Done."})
    out = run(create_agent(model, tools=[own], middleware=[gecko], checkpointer=InMemorySaver()), task(), THREAD)
    assert out["gecko_journal"][0]["departure"]["code"] == "ensures"
    assert [message.status for message in answers(out)] == ["error"]
