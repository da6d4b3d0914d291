"""Tools from Python (functions, Pydantic classes, LangChain tools) and from dicts (OpenAI's, MCP's, BFCL's)."""

from __future__ import annotations

import asyncio
import datetime
import enum
import inspect
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.prebuilt import InjectedState
from langgraph.types import Command
from pydantic import BaseModel, Field

from gecko_graph.errors import NotMade, ToolkitError
from gecko_graph.schemas.complaints import find_faults
from gecko_graph.tools import Toolkit, ToolSpec
from gecko_graph.tools.function_dicts import tool_descriptions
from gecko_graph.tools.functions import read_docstring, spec_of


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
    told = {"description": "Title to number of copies."}
    assert read.result == {"type": "object", "additionalProperties": {"type": "integer"}, **told}
    assert (read.effect, inspect.unwrap(read.real), read.simulate) == (None, search, None)


def test_models_enums_and_circles_in_a_signature():
    def send(
        home: Address, at: Point, tree: Tree, how: Literal["air", "sea"] = "sea", n: Annotated[int, Field(ge=1)] = 1
    ) -> list[Address]:
        """Send."""

    read = spec(send)
    properties = read.parameters["properties"]
    zip_code = properties["home"]["properties"]["zip_code"]
    assert zip_code == {"type": "string", "description": "Five digits.", "title": "ZIP"}
    assert properties["at"]["required"] == ["x"]
    assert properties["n"]["minimum"] == 1
    assert properties["how"]["enum"] == ["air", "sea"]
    good = {"home": {"street": "a", "zip_code": "1"}, "at": {"x": 1.5}, "tree": {"value": 1, "kids": [{"value": 2}]}}
    assert find_faults(read.parameters, good) == []
    assert find_faults(read.parameters, {**good, "tree": {"value": 1, "kids": [{"value": "2"}]}})
    assert read.result["items"]["required"] == ["street", "zip_code"]


@pytest.mark.parametrize(("annotation", "result"), [
    (None, {"type": "null"}), (str, {"type": "string"}), (Any, None), (object, None),
    (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (Command, None), (Command | str, None),
    (Point, {"type": "object", "required": ["x"], "title": "Point",
             "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0.0}}}),
    (asyncio.Lock, None),
])  # fmt: skip
def test_results_from_return_annotations(annotation, result):
    def answer(): ...

    answer.__annotations__["return"] = annotation
    assert spec(answer).result == result


def nameless(): ...


nameless.__annotations__["return"] = "Nowhere"


def lock(one: asyncio.Lock) -> int:
    """Lock."""


@pytest.mark.parametrize(("source", "message"), [
    (3, "int cannot be a tool"), (lambda x: x, "a tool needs a name"), (len, "positional only"),
    (nameless, "name 'Nowhere' is not defined"),
    (lock, r"\(lock\): an argument has a type that has no JSON Schema"),
])  # fmt: skip
def test_what_is_no_tool(source, message):
    with pytest.raises(ToolkitError, match=rf"tools\[0\].*{message}"):
        spec(source)


@pytest.mark.parametrize(("text", "description", "arguments", "returns"), [
    (None, "", {}, ""),
    ("A.\n\nArgs:\n  x: one\n  *y (int, optional): two\n\n     more\n\nRaises:\n  V: w", "A.",
     {"x": "one", "y": "two more"}, ""),
    ("A.\n:param x: one\n   more\n:param int y: two\n:returns: three\n:rtype: int", "A.",
     {"x": "one more", "y": "two"}, "three"),
])  # fmt: skip
def test_docstrings(text, description, arguments, returns):
    read = read_docstring(text)
    assert (read.description, read.arguments, read.returns) == (description, arguments, returns)


@tool
def weather(city: str, days: int = 1) -> list[str]:
    """Forecast the weather.

    Args:
        city: Name of a city.
    """
    return [city] * days


@tool
async def traffic(city: str) -> str:
    """Look at the traffic."""
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


@pytest.mark.parametrize(("metadata", "effect"), [
    (None, None), ({"readOnlyHint": False}, "write"), ({"annotations": {"readOnlyHint": True}}, "read"),
    ({"readOnlyHint": "yes"}, None), ({"mcp": {"tool": None}}, None),
    ({"mcp": {"tool": {"annotations": {"read_only_hint": True}}, "server": {}}}, "read"),
])  # fmt: skip
def test_hints_of_mcp_tools(metadata, effect):
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "integer"}}}
    given = {"name": "mcp", "description": "d", "args_schema": schema, "metadata": metadata}
    read = spec(StructuredTool.from_function(func=lambda **args: args, **given))
    assert (read.effect, read.stated) == (effect, False)
    assert read.parameters["properties"] == {"a": {"type": "integer"}}
    assert read.real(a=1) == {"a": 1}


def test_bfcl_documents_are_read_as_the_benchmark_means_them(read_jsonl):
    functions = 0
    for row in read_jsonl("bfcl_tasks.jsonl.gz")[::12]:
        for function in row["functions"]:
            assert spec(function).parameters == row["json_schemas"][function["name"]]
            functions += 1
    assert functions > 300


def test_the_dialect_is_read_all_the_way_down():
    properties = {
        "type": {"type": "tuple", "items": {"type": "float"}},
        "any": {"type": "any", "description": "d"},
        "map": {"type": "HashMap", "additionalProperties": {"type": "float"}},
        "list": {"type": "array"},
        "must": {"type": "Boolean", "required": True, "optional": False},
        "pick": {"type": ["float", "none"], "enum": [1.5, None], "default": 3},
    }
    parameters = {"type": "dict", "properties": properties, "required": ["list"]}
    response = {"type": "dict", "properties": {"x": {"type": "any"}}}
    read = spec({"name": "a.b", "parameters": parameters, "response": response})
    assert read.parameters["properties"] == {
        "type": {"type": "array", "items": {"type": "number"}},
        "any": {"description": "d"},
        "map": {"type": "object", "additionalProperties": {"type": "number"}},
        "list": {"type": "array"},
        "must": {"type": "boolean"},
        "pick": {"type": ["number", "null"], "enum": [1.5, None], "default": 3},
    }
    assert read.parameters["required"] == ["list", "must"]
    assert (read.name, read.result) == ("a.b", {"type": "object", "properties": {"x": {}}})


@pytest.mark.parametrize(("broken", "message"), [
    ({}, "a tool must have a name"),
    ({"name": "f", "parameters": [1]}, r"\(f\), parameters: must be an object"),
    ({"name": "f", "parameters": {"type": "string"}}, r"\(f\), parameters#/type: arguments must be an object"),
    ({"name": "f", "parameters": {"properties": {"a": {"type": "date"}}}}, "#/properties/a/type: 'date' is no"),
    ({"name": "f", "parameters": {"properties": {"a": {"$ref": "x.json"}}}}, "#/properties/a: .*has no folder"),
    ({"name": "f", "parameters": {"properties": {"a": {"$ref": "#/no"}}}}, "leads nowhere"),
    ({"name": "f", "parameters": {"a": {1}}}, "not JSON"),
])  # fmt: skip
def test_broken_dicts_name_tool_and_place(broken, message):
    with pytest.raises(ToolkitError, match=rf"tools\[0\].*{message}"):
        spec(broken)


@pytest.mark.parametrize("key", ["parameters", "input_schema", "inputSchema"])
def test_bare_and_wrapped_dicts_and_files_of_them(key):
    one = {"name": "f", "description": " d ", key: {"type": "object", "properties": {"a": {"type": "string"}}}}
    two = {"type": "function", "function": one}
    assert spec(one) == spec(two)
    assert spec(one).description == "d"
    assert spec(one).parameters["additionalProperties"] is False
    assert tool_descriptions(one, where="f") == [one]
    assert tool_descriptions([one, two], where="f") == [one, two]
    assert tool_descriptions({"x": [one], "y": {"z": two}}, where="f") == [one, two]
    with pytest.raises(ToolkitError, match=r"f#/x/0: .*; got text"):
        tool_descriptions({"x": ["a"]}, where="f")


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


def test_open_arguments():
    def loose(a: int, *more: int, **rest: str): ...

    read = spec(loose)
    assert (set(read.parameters["properties"]), read.parameters["additionalProperties"]) == ({"a"}, True)
    assert read.parameters["required"] == ["a"]
