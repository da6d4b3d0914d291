"""Opened tools, LangChain's and MCP's: what they return is the result, and what goes wrong with them is an error."""

import time

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException

from gecko_graph import Tool, Toolkit
from gecko_graph.world.as_tools import find_pending
from gecko_graph.world.ladder import climb

RESULT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def boom():
    raise LookupError("no such account")


@pytest.mark.parametrize(
    ("real", "text"),
    [
        (boom, "LookupError: no such account"),
        (lambda: time.sleep(2), "the real function did not answer within 0.05 s"),
        (object, "the function's return value is not JSON"),
        (lambda: {"n": float("nan")}, "the result: /n is NaN"),
    ],
)
def test_an_opened_tool_never_falls_down_the_ladder(question, told, real, text):
    asked = question(
        effect="read", opened=True, real=real, result=RESULT, tool_timeout_s=0.05, simulate=lambda state: {"n": 1}
    )
    outcome = told(climb(asked)).value
    assert (outcome["rung"], outcome["status"], outcome["simulated"], outcome["patch"]) == ("real", "error", False, [])
    assert outcome["result"].startswith(text)
    assert "invented" not in outcome


def answered(opened_tool, told, question):
    """The outcome of a LangChain tool that was opened."""
    (spec,) = Toolkit.from_tools([Tool(opened_tool, effect="read")]).open(opened_tool.name)
    asked = question(effect="read", opened=True, real=spec.real, result=spec.result)
    outcome = told(climb(asked)).value
    assert outcome["rung"] == "real"
    return outcome["status"], outcome["result"]


def failing(**more):
    def account_of():
        raise ToolException("db down")

    return StructuredTool.from_function(account_of, name="account_of", description="d", **more)


@pytest.mark.parametrize(
    ("handler", "text"),
    [(False, "ToolException: db down"), (True, "db down"), (lambda error: f"sorry, {error}", "sorry, db down")],
)
def test_an_error_that_a_tool_handles_itself_is_an_error(question, told, handler, text):
    assert answered(failing(handle_tool_error=handler), told, question) == ("error", text)


def block(text):
    return {"type": "text", "text": text, "id": "lc_0f3c"}


IMAGE = {"type": "image", "base64": "aa", "mime_type": "image/png", "id": "lc_77"}


@pytest.mark.parametrize(
    ("content", "artifact", "result"),
    [
        ([block('{"n": 3}')], {"structured_content": {"n": 3, "kind": "a"}}, {"n": 3, "kind": "a"}),
        ([block('{"n": 3}')], None, {"n": 3}),
        ([block('{"n": 3}'), block('{"n": 4}')], None, [{"n": 3}, {"n": 4}]),
        ([block("three")], None, "three"),
        ([block("3")], None, "3"),
        ([block("seen"), IMAGE], None, ["seen", {"type": "image", "base64": "aa", "mime_type": "image/png"}]),
        ("seen", [1, 2], "seen"),
        ("null", {"structured_content": None}, None),
        ("", [1, 2], [1, 2]),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_of_an_mcp_tool_counts_what_its_message_spells(question, told, content, artifact, result, is_async):
    def call():
        return content, artifact

    async def acall():
        return content, artifact

    more = {"coroutine": acall} if is_async else {"func": call}
    read = StructuredTool(name="read", description="d", args_schema={"type": "object", "properties": {}},
                          response_format="content_and_artifact", **more)  # fmt: skip
    assert answered(read, told, question) == ("ok", result)


def test_of_a_models_last_message_the_calls_without_an_answer_are_pending():
    calls = [{"name": name, "args": {}, "id": name} for name in ("look", "pay", "todo")]
    messages = [AIMessage("", tool_calls=calls, id="m"), ToolMessage("1", tool_call_id="look")]
    assert find_pending(messages, exclude_tools=["todo"]) == ("m", [calls[1] | {"type": "tool_call"}])
