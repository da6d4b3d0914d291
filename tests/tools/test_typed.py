"""A plain function receives what its annotations say, as LangChain's `@tool` gives it, wherever it is called."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from gecko_graph import Tool, Toolkit, World
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.models.answer import aperform, perform
from gecko_graph.models.ask import FunctionCall
from gecko_graph.testing import scripted
from gecko_graph.tools import with_data
from tests.agents import make_agent, thread


class Color(Enum):
    RED = "red"


class Item(BaseModel):
    sku: str
    count: int = 1
    due: dt.date | None = None

    @field_validator("sku")
    @classmethod
    def known(cls, sku):
        if sku == "gone":
            raise ValueError("no longer sold")
        return sku


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    on: dt.date


@dataclass
class Point:
    x: float
    at: dt.datetime | None = None


def upper(text):
    return text.upper()


DAY, NOON = dt.date(2026, 1, 2), dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)
ITEM = Item(sku="a", count=2, due=DAY)
VALUES = {
    "model": (Item, {"sku": "a", "count": 2, "due": "2026-01-02"}, ITEM),
    "models": (list[Item], [{"sku": "a", "count": 2, "due": "2026-01-02"}], [ITEM]),
    "strict": (Strict, {"on": "2026-01-02"}, Strict(on=DAY)),
    "date": (dt.date, "2026-01-02", DAY), "datetime": (dt.datetime, "2026-01-02T12:00:00Z", NOON),
    "enum": (Color, "red", Color.RED), "decimal": (Decimal, "0.10", Decimal("0.10")),
    "set": (set[str], ["a", "b"], {"a", "b"}),
    "tuple": (tuple[int, dt.date], [1, "2026-01-02"], (1, DAY)),
    "dataclass": (Point, {"x": 1, "at": "2026-01-02T12:00:00Z"}, Point(1.0, NOON)),
    "optional": (dt.date | None, "2026-01-02", DAY), "union": (Item | dt.date, "2026-01-02", DAY),
    "annotated": (Annotated[str, AfterValidator(upper)], "a", "A"),
    "before": (Annotated[dt.date, BeforeValidator(lambda text: f"2026-{text}")], "01-02", DAY),
    "text": (str, "a", "a"), "anything": (Any, {"a": [1]}, {"a": [1]}),
}  # fmt: skip


def taking(hint, *, is_async=False):
    """A function with one parameter of this type, and the list of what it has received."""
    got = []

    def take(value, other: int = 1) -> str:
        """Take."""
        got.append(value)
        return "taken"

    async def atake(value, other: int = 1) -> str:
        """Take."""
        got.append(value)
        return "taken"

    function = atake if is_async else take
    function.__annotations__["value"] = hint
    function.__name__ = "take"
    return function, got


def same(got, value):
    return got == value and type(got) is type(value)


@pytest.mark.parametrize("case", VALUES)
def test_a_real_function_receives_what_its_annotation_says(case):
    hint, sent, wanted = VALUES[case]
    for is_async in (False, True):
        function, got = taking(hint, is_async=is_async)
        real = Toolkit.from_tools([function])["take"].real
        assert asyncio.iscoroutinefunction(real) is is_async
        work = FunctionCall(function=real, kwargs={"value": sent})
        assert perform(work).value == asyncio.run(aperform(work)).value == "taken"
        assert len(got) == 2
        assert all(same(one, wanted) for one in got)
    if not isinstance(sent, list) and case not in ("strict", "before"):
        function, plain = taking(hint)
        StructuredTool.from_function(function).invoke({"value": sent})
        assert same(got[0], plain[0])


@pytest.mark.filterwarnings("ignore:guard")  # without a contract
@pytest.mark.parametrize("case", ["models", "date"])
def test_rehearsed_and_real_it_receives_the_same(case):
    hint, sent, wanted = VALUES[case]
    call = {"name": "take", "args": {"value": sent}}
    function, got = taking(hint)
    own = Toolkit.from_tools(with_data([function], {}))
    assert World(own).call(call)["outcome"]["rung"] == "python"
    assert own.as_tools()[0].invoke({"value": sent}) == "taken"

    def simulate(state, value, other=1):
        got.append(value)
        state["n"] = len(got)

    simulate.__annotations__["value"] = hint
    step = World(Toolkit.from_tools([Tool(function, simulate=simulate)]), state={}).call(call)
    assert step["outcome"]["patch"] == [{"op": "add", "path": "/n", "value": 3}]
    reading = Toolkit.from_tools([Tool(function, effect="read")]).open("take")
    assert World(reading).call(call)["outcome"]["rung"] == "real"
    agent = create_agent(
        scripted({"call": "take", "args": {"value": sent}}, {"say": "Done."}),
        Toolkit.from_tools([function]).as_tools(),
        middleware=[GeckoMiddleware(own, mode="guard")],
        checkpointer=InMemorySaver(),
    )
    agent.invoke({"messages": [("user", "Take it")]}, thread())
    planned = make_agent(own, [{"call": "take", "args": {"value": sent}}, {"say": "Done."}])
    items = [{"description": "it is done", "check": "True"}]
    planned.invoke({"messages": [("user", f"Take {json.dumps(sent)}")], "checklist": items}, thread())
    assert len(got) >= 8, "guard and the agent predict and make it"
    assert all(same(one, wanted) for one in got)


@pytest.mark.parametrize(("hint", "sent", "path", "words"), [
    (Item, {"sku": "gone"}, "/value/sku", "no longer sold"),
    (list[Item], [{"sku": "a"}, {"sku": "gone"}], "/value/1/sku", "no longer sold"),
    (Annotated[str, AfterValidator(lambda text: {}[text])], "a", "/value", "KeyError"),
    (Decimal, "1e", "/value", "decimal"),
])  # fmt: skip
def test_a_value_that_does_not_convert_is_a_complaint_before_the_call(hint, sent, path, words):
    function, got = taking(hint)
    call = {"name": "take", "args": {"value": sent}}
    for toolkit in (Toolkit.from_tools([function]), Toolkit.from_tools(with_data([function], {}))):
        for refusal in (toolkit.check(call, {}), World(toolkit, state={}).call(call)):
            (complaint,) = refusal["complaints"]
            assert (complaint["tool"], complaint["path"]) == ("take", path)
            assert words in complaint["expected"]
        message = toolkit.as_tools()[0].invoke({"type": "tool_call", "id": "1", "name": "take", "args": call["args"]})
        assert (message.status, words in message.content) == ("error", True)
    done = perform(FunctionCall(function=toolkit["take"].real, kwargs={"value": sent}))
    assert "Refused" in type(done.error).__name__
    assert got == []


def test_a_langchain_tool_that_refuses_a_value_is_a_complaint_too():
    function, got = taking(Item)
    toolkit = Toolkit.from_tools([StructuredTool.from_function(function)])
    (complaint,) = toolkit.check({"name": "take", "args": {"value": {"sku": "gone"}}}, {})["complaints"]
    assert complaint["path"] == "/value/sku"
    assert toolkit.check({"name": "take", "args": {"value": {"sku": "a"}}}, {}) is None
    assert got == []


class Desk:
    """A desk that takes orders."""

    def __init__(self):
        self.got = []

    def order(self, on: dt.date, *, item: Item = Item(sku="none")) -> str:  # noqa: B008
        """Order."""
        self.got += [on, item]
        return "ok"

    def __call__(self, on: dt.date) -> str:
        self.got.append(on)
        return "called"

    @classmethod
    def of(cls, on: dt.date) -> dt.date:
        """Return the day."""
        return on

    @staticmethod
    def at(on: dt.date) -> dt.date:
        """Return the day."""
        return on


def test_methods_and_objects_that_are_called():
    desk = Desk()
    toolkit = Toolkit.from_tools([desk.order, Desk.of, Desk.at, desk])
    assert toolkit.names == ("order", "of", "at", "Desk")
    assert toolkit["Desk"].description == "A desk that takes orders."
    assert toolkit["order"].real(on="2026-01-02", item={"sku": "a"}) == "ok"
    assert toolkit["order"].real(on="2026-01-02") == "ok"
    assert toolkit["Desk"].real(on="2026-01-02") == "called"
    assert desk.got == [DAY, Item(sku="a"), DAY, Item(sku="none"), DAY]
    assert toolkit["of"].real(on="2026-01-02") == toolkit["at"].real(on="2026-01-02") == DAY


def test_defaults_and_further_arguments_and_a_function_of_plain_json_is_called_as_it_is():
    got = []

    def take(on: dt.date = Field(DAY), *, days: list[dt.date] | None = None, **more: Any):  # noqa: B008
        """Take."""
        got.append((on, days, more))

    toolkit = Toolkit.from_tools([take])
    toolkit["take"].real()
    toolkit["take"].real(days=["2026-01-02"], more=3)
    assert got == [(DAY, None, {}), (DAY, [DAY], {"more": 3})]

    def take(a: str, b: list[dict[str, Any]], c: int | None = None, d: Literal["x"] = "x", e=1) -> None:
        """Take."""

    assert Toolkit.from_tools([take])["take"].real is take
