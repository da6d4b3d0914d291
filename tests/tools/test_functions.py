"""Tools from Python: functions, Pydantic classes and LangChain tools."""

from __future__ import annotations

import asyncio
import datetime
import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, tool
from langgraph.prebuilt import InjectedState
from langgraph.types import Command
from pydantic import BaseModel, Field

from gecko_graph.errors import NotMade, ToolkitError
from gecko_graph.schemas.complaints import find_faults
from gecko_graph.tools import Toolkit, ToolSpec
from gecko_graph.tools.docstrings import read_docstring
from gecko_graph.tools.functions import spec_of


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    zip_code: str = Field(description="Five digits.", title="ZIP")


class Tree(BaseModel):
    """A tree of numbers."""

    value: int
    kids: list[Tree] = []


@dataclass
class Point:
    x: float
    y: float = 0.0


def spec(source) -> ToolSpec:
    return spec_of(source, where="tools[0]")


# functions -----------------------------------------------------------------------------------------------------------


def search(
    query: str, limit: int = 10, *, since: datetime.date | None = None, color: Color = Color.RED
) -> dict[str, int]:
    """Search the shelf.

    Looks at every book.

    Args:
        query: What to look for,
            in any language.
        limit (int): How many: at most 100.
        since: Not before this day.
    Returns:
        Title to number of copies.
    """
    raise AssertionError("a real function is not run")


def test_a_function_with_its_docstring():
    read = spec(search)
    assert (read.name, read.description) == ("search", "Search the shelf.\n\nLooks at every book.")
    assert read.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for, in any language."},
            "limit": {"type": "integer", "default": 10, "description": "How many: at most 100."},
            "since": {
                "anyOf": [{"type": "string", "format": "date"}, {"type": "null"}],
                "default": None,
                "description": "Not before this day.",
            },
            "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    assert read.result == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "description": "Title to number of copies.",
    }
    assert read.effect is None
    assert read.real is search
    assert read.simulate is None


def test_models_enums_and_circles_in_a_signature():
    def send(
        home: Address, at: Point, tree: Tree, how: Literal["air", "sea"] = "sea", n: Annotated[int, Field(ge=1)] = 1
    ) -> list[Address]:
        """Send."""

    read = spec(send)
    properties = read.parameters["properties"]
    assert properties["home"]["properties"]["zip_code"] == {
        "type": "string",
        "description": "Five digits.",
        "title": "ZIP",
    }
    assert properties["at"]["required"] == ["x"]
    assert properties["n"]["minimum"] == 1
    assert properties["how"]["enum"] == ["air", "sea"]
    good = {"home": {"street": "a", "zip_code": "1"}, "at": {"x": 1.5}, "tree": {"value": 1, "kids": [{"value": 2}]}}
    assert find_faults(read.parameters, good) == []
    assert find_faults(read.parameters, {**good, "tree": {"value": 1, "kids": [{"value": "2"}]}})
    assert read.result["items"]["required"] == ["street", "zip_code"]


def test_functions_without_a_word():
    def bare(x, y=3): ...

    read = spec(bare)
    assert read.parameters["properties"] == {"x": {}, "y": {"default": 3}}
    assert (read.description, read.result) == ("", None)


def test_open_arguments_and_methods():
    def loose(a: int, *more: int, **rest: str): ...

    read = spec(loose)
    assert (set(read.parameters["properties"]), read.parameters["additionalProperties"]) == ({"a"}, True)
    assert read.parameters["required"] == ["a"]

    class Desk:
        def ask(self, what: str) -> str:
            """Ask."""
            return what

    read = spec(Desk().ask)
    assert set(read.parameters["properties"]) == {"what"}
    assert read.real(what="a") == "a"


def test_what_a_framework_injects_is_no_argument():
    def lookup(
        key: str,
        user: Annotated[str, InjectedToolArg],
        state: Annotated[dict, InjectedState],
        config: RunnableConfig | None = None,
    ) -> str:
        """Look up."""

    read = spec(lookup)
    assert set(read.parameters["properties"]) == {"key"}
    assert read.real is None, "a call does not carry what it needs"

    def traced(key: str, config: RunnableConfig = None) -> str:
        """Look up."""

    assert spec(traced).real is traced


@pytest.mark.parametrize(
    ("annotation", "result"),
    [
        (None, {"type": "null"}), (str, {"type": "string"}), (Any, None), (object, None),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Command, None), (list[ToolMessage], None), (Command | str, None),
        (Point, {"type": "object", "required": ["x"], "title": "Point",
                 "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0.0}}}),
        (asyncio.Lock, None),
    ],
)  # fmt: skip
def test_results_from_return_annotations(annotation, result):
    def answer(): ...

    answer.__annotations__["return"] = annotation
    assert spec(answer).result == result


def test_async_functions_and_generators_of_schemas_alike():
    async def later(n: int) -> int:
        """Later."""
        return n

    read = spec(later)
    assert read.result == {"type": "integer"}
    assert asyncio.run(read.real(n=2)) == 2


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, "int cannot be a tool"),
        (int, "type cannot be a tool"),
        (lambda x: x, "a tool needs a name"),
        (len, "positional only"),
    ],
)
def test_what_is_no_tool(source, message):
    with pytest.raises(ToolkitError, match=rf"tools\[0\].*{message}"):
        spec(source)


def test_names_that_nothing_defines():
    def answer(): ...

    answer.__annotations__["return"] = "Nowhere"
    with pytest.raises(ToolkitError, match="its signature cannot be read: name 'Nowhere' is not defined"):
        spec(answer)


def test_arguments_that_are_no_json():
    def lock(one: asyncio.Lock) -> int:
        """Lock."""

    with pytest.raises(ToolkitError, match=r"tools\[0\] \(lock\): an argument has a type that has no JSON Schema"):
        spec(lock)


@pytest.mark.parametrize(
    ("text", "description", "arguments", "returns"),
    [
        (None, "", {}, ""),
        ("One line.", "One line.", {}, ""),
        ("A.\n\nB: c.\n", "A.\n\nB: c.", {}, ""),
        ("A.\n\nArgs:\n  x: one\n  *y (int, optional): two\n\n     more\n\nRaises:\n  V: w", "A.",
         {"x": "one", "y": "two more"}, ""),
        ("A.\n:param x: one\n   more\n:param int y: two\n:returns: three\n:rtype: int", "A.",
         {"x": "one more", "y": "two"}, "three"),
        ("Args:\n    stray\n    x: one", "", {"x": "one"}, ""),
    ],
)  # fmt: skip
def test_docstrings(text, description, arguments, returns):
    read = read_docstring(text)
    assert (read.description, read.arguments, read.returns) == (description, arguments, returns)


# classes and LangChain tools -----------------------------------------------------------------------------------------


def test_a_pydantic_class():
    class FindBook(BaseModel):
        """Find a book."""

        title: str = Field(description="Its title.")
        where: Address | None = None

    read = spec(FindBook)
    assert (read.name, read.description, read.real) == ("FindBook", "Find a book.", None)
    assert read.parameters["required"] == ["title"]
    assert "description" not in read.parameters
    assert spec(type("Bare", (BaseModel,), {})).description == ""


@tool
def weather(city: str, days: int = 1) -> list[str]:
    """Forecast the weather.

    Args:
        city: Name of a city.
    """
    return [city] * days


@tool(parse_docstring=True)
async def traffic(city: str) -> str:
    """Look at the traffic.

    Args:
        city: Name of a city.
    """
    return f"{city} is jammed"


@tool(response_format="content_and_artifact")
def picture(name: str, state: Annotated[dict, InjectedState]) -> tuple[str, bytes]:
    """Draw."""
    return name, b""


class Count(BaseTool):
    name: str = "count"
    description: str = "Count letters."

    def _run(self, text: str) -> int:
        return len(text)


def test_langchain_tools():
    toolkit = Toolkit.from_tools([weather, traffic, picture, Count()])
    assert toolkit.names == ("weather", "traffic", "picture", "count")
    assert toolkit["weather"].parameters["properties"] == {
        "city": {"type": "string", "description": "Name of a city."},
        "days": {"type": "integer", "default": 1},
    }
    assert toolkit["weather"].parameters["additionalProperties"] is False
    assert toolkit["weather"].real(city="Ulm", days=2) == ["Ulm", "Ulm"]
    assert asyncio.run(toolkit["traffic"].real(city="Ulm")) == "Ulm is jammed"
    assert set(toolkit["picture"].parameters["properties"]) == {"name"}
    assert toolkit["picture"].result == {"type": "string"}
    with pytest.raises(NotMade, match="'state' cannot be injected: no graph is running"):
        toolkit["picture"].real(name="cat")
    assert toolkit["count"].real(text="abc") == 3
    assert toolkit["count"].result == {"type": "integer"}


@pytest.mark.parametrize(
    ("metadata", "effect"),
    [
        (None, None), ({"readOnlyHint": True}, "read"), ({"readOnlyHint": False}, "write"),
        ({"annotations": {"readOnlyHint": True}}, "read"), ({"readOnlyHint": "yes"}, None),
        ({"mcp": {"tool": {"annotations": {"read_only_hint": True}}, "server": {}}}, "read"),
        ({"mcp": {"tool": {"annotations": {"read_only_hint": False}}}}, "write"), ({"mcp": {"tool": None}}, None),
    ],
)  # fmt: skip
def test_hints_of_mcp_tools(metadata, effect):
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "integer"}}}
    read = spec(
        StructuredTool.from_function(
            name="mcp", description="d", func=lambda **args: args, args_schema=schema, metadata=metadata
        )
    )
    assert read.effect == effect
    assert read.parameters == {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "additionalProperties": False,
    }
    assert read.real(a=1) == {"a": 1}


def test_an_effect_is_stated_by_the_user_alone():
    def look() -> str:
        """Look."""

    def pay() -> str:
        """Pay."""

    toolkit = Toolkit.from_tools([look, pay], effects={"look": "read"})
    assert [tool.stated for tool in toolkit] == [True, False]
