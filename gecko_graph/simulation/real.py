"""The rung `real`: reads that the user opened, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.types import Command

from ..masking import mask
from ..models.ask import Reply, Work
from ..state import CallStatus, Json
from ..task_state.digest import clone
from .python import as_json
from .rung import Answer, Pass, RungRequest, RungResult


def real_rung(request: RungRequest) -> Generator[list[Work], list[Reply], RungResult]:
    """Run the real function of an opened read. Whatever goes wrong with it is the tool's own error."""
    tool = request.tool
    if tool.real is None or not tool.opened:
        return Pass("no real function was opened for this tool")
    if not tool.reads:
        return Pass("only reads run for real in a rehearsal")
    args, timeout_s = clone(request.call["args"]), request.context.tool_timeout_s
    (reply,) = yield [Work(function=tool.real, kwargs=args, timeout_s=timeout_s, then=as_answer)]
    if reply.failure is not None:
        return Answer("error", f"the real function {reply.failure}" if reply.absent else reply.failure, [])
    said: Answer = reply.value
    return said


def as_answer(value: Any) -> Answer:
    """What a real function returned, plain or as a message of LangChain's.

    Of a message counts what an MCP server sent as `structured_content`, else its content, else its artifact.
    """
    if isinstance(value, Command):
        update = value.update if isinstance(value.update, Mapping) else {}
        value = next((each for each in update.get("messages", ()) if isinstance(each, ToolMessage)), None)
    status: CallStatus = "ok"
    if isinstance(value, ToolMessage):
        status = "error" if value.status == "error" else "ok"
        value = message_value(value)
    said = as_json(value)
    if isinstance(said, Pass):
        return Answer("error", said.reason, [])
    return Answer(status, mask(said.result) if status == "error" and isinstance(said.result, str) else said.result, [])


def message_value(message: ToolMessage) -> Any:
    """What a tool message holds."""
    artifact = message.artifact
    if message.status != "error" and isinstance(artifact, Mapping) and artifact.get("structured_content") is not None:
        return artifact["structured_content"]
    if not message.content:
        return message.content if artifact is None else artifact
    if isinstance(message.content, str):
        return message.content
    blocks = [block_value(block) for block in message.content]
    return blocks[0] if len(blocks) == 1 else blocks


def block_value(block: Any) -> Json:
    """A content block: of a text what it spells, if that is an object or a list; of others all but a random id."""
    if not isinstance(block, Mapping):
        return block
    if block.get("type") != "text" or not isinstance(block.get("text"), str):
        return {key: value for key, value in block.items() if key != "id" or not str(value).startswith("lc_")}
    text: str = block["text"]
    try:
        spelled = json.loads(text) if text.lstrip()[:1] in ("{", "[") else text
    except (ValueError, RecursionError):
        return text
    return spelled
