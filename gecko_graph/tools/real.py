"""Run a tool's real function and read its return value, in rehearsals, execution and agents."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.types import Command
from pydantic_core import PydanticSerializationError, to_jsonable_python

from ..context import GeckoContext
from ..contracts.run import ContractAnswer
from ..errors import Refused
from ..masking import mask
from ..models.answer import AT_ONCE, AWAITED, Driver, finish
from ..models.ask import FunctionCall, Reply
from ..models.conversation import build_complaint_message, with_media
from ..models.factory import Models
from ..models.failure import REFUSED, TOO_MANY, is_lost, refuses, retry_after_of_error, status_of_error
from ..models.node import NodeScope, run_node, silent
from ..state import Call, CallStatus, Json, JsonObject, Patch
from ..values.digest import clone, open_json
from ..values.media import list_references, set_media_aside
from ..values.places import as_text
from .check import check_by_rule, find_fault
from .spec import ToolSpec

CALL_ID: ContextVar[str] = ContextVar("gecko_call_id", default="")
"""Id of the current call."""

TRY_AGAIN = frozenset((TOO_MANY, 500, 502, 503, 504))
"""HTTP statuses of a call that was not done but may be repeated. (A write's 5xx raises InDoubt instead.)"""


@dataclass(frozen=True, slots=True)
class Answer:
    """A rung's answer as plain JSON.

    Args:
        status: `ok` or `error`.
        result: The result, or the error.
        patch: Changes of the task state; None if the rung does not know them.
        retry_after: Seconds after which a busy service may be called again.
        is_refused: Whether the error result guarantees that nothing was done.
        is_unread: Whether the call was made, but no checkpoint can store its result; `result` gives the reason.
        more: Further keys of the outcome, for built-in rungs only.
    """

    status: CallStatus
    result: Json
    patch: Patch | None = None
    retry_after: float | None = None
    is_refused: bool = False
    is_unread: bool = False
    more: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pass:
    """The result of a rung that cannot answer, with the reason.

    Args:
        reason: Why it cannot answer.
        final: If True, the call is an error: no other rung may answer it.
        known: The contract's partial answer, which the next rung completes.
    """

    reason: str
    final: bool = False
    known: ContractAnswer | None = None


def run_real(
    tool: ToolSpec, args: JsonObject, timeout_s: float, *, key: str | None = None, call_id: str = ""
) -> Generator[list[FunctionCall], list[Reply], tuple[Answer, bool]]:
    """Run a tool's real function; return its answer, and whether its effect is in doubt.

    The function receives a copy of the arguments, the idempotency key if it takes one, and the values that a graph
    injects. After an exception or error result a write may have taken effect, unless it is known that nothing was done.
    """
    assert tool.real is not None
    given = clone(args)
    if key is not None and tool.key_argument:
        given[tool.key_argument] = key
    CALL_ID.set(call_id or key or "")
    (reply,) = yield [FunctionCall(function=tool.real, kwargs=given, timeout_s=timeout_s, then=as_answer)]
    if reply.failure is not None:
        return read_failure(tool, reply)
    answer: Answer = reply.value
    # a call that may have changed something is repeated only if the service says that it rejected it
    again = answer.retry_after if tool.trusted or answer.is_refused else None
    is_open = answer.status == "error" and not (tool.trusted or tool.refuses or answer.is_refused)
    return replace(answer, retry_after=again), answer.is_unread or is_open


def read_failure(tool: ToolSpec, reply: Reply) -> tuple[Answer, bool]:
    """Return the outcome of a call that raised or timed out, as `run_real` does."""
    if reply.late:
        return Answer("error", f"the real function {reply.failure}", []), True
    error = reply.error
    if isinstance(error, Refused):
        said = as_answer(error.args[0] if error.args else "refused")
        return replace(said, status="error", is_refused=True, is_unread=False), False
    is_declared = tool.refuses and isinstance(error, ToolException)
    in_doubt = is_lost(error) if tool.trusted and error else reply.in_doubt and not is_declared
    again = read_busy(error, tool)
    more: JsonObject = {} if is_declared else {"undecided": True}  # e.g. no connection: no refusal of the call
    return Answer("error", reply.failure, [], again, is_refused=again is not None, more=more), in_doubt


def read_busy(error: BaseException | None, tool: ToolSpec) -> float | None:
    """Return the seconds after which a busy service may be called again, by the error of a call.

    None if the error has no such status, or the call may have been done.
    """
    busy = TRY_AGAIN if tool.trusted else (TOO_MANY,)
    return retry_after_of_error(error) if status_of_error(error) in busy else None


def is_undecided(answer: Answer) -> bool:
    """Return whether an error is not a refusal: the service was unreachable, too busy, or may have done the call."""
    return "undecided" in answer.more or answer.retry_after is not None


def as_answer(value: Any) -> Answer:
    """Return a real function's value, plain or a LangChain message, as an answer."""
    if isinstance(value, Command):
        update = value.update if isinstance(value.update, Mapping) else {}
        value = next((each for each in update.get("messages", ()) if isinstance(each, ToolMessage)), None)
    is_error = isinstance(value, ToolMessage) and value.status == "error"
    answer = as_json(message_value(value) if isinstance(value, ToolMessage) else value)
    if unread := answer.reason if isinstance(answer, Pass) else find_fault(answer.result, what="the result"):
        return Answer("error", unread, [], is_unread=True)
    assert isinstance(answer, Answer)
    answer = replace(answer, result=set_media_aside(answer.result))
    if not is_error:
        # MCP may send an image beside its structured content
        seen = list_references(set_media_aside(value.content)) if isinstance(value, ToolMessage) else ()
        beside = [each for each in seen if each not in list_references(answer.result)]
        return replace(answer, more={"media": beside}) if beside else answer
    result = mask(answer.result) if isinstance(answer.result, str) else answer.result
    is_refused = refuses(status_of(value)) or REFUSED.items() <= value.additional_kwargs.items()
    is_unsent = "http" in value.additional_kwargs and status_of(value) is None
    more: JsonObject = {"undecided": True} if is_unsent else {}
    again = status_of(value) in TRY_AGAIN
    retry_after = float(value.additional_kwargs["http"].get("retry_after") or 0) if again else None
    return Answer("error", result, [], retry_after, is_refused, more=more)


def status_of(message: ToolMessage) -> Any:
    """Return the HTTP status in a message's metadata, or None."""
    http = message.additional_kwargs.get("http")
    return http.get("http_status") if isinstance(http, Mapping) else None


def message_value(message: ToolMessage) -> Any:
    """Return an MCP server's `structured_content`, else the content, else the artifact."""
    content, artifact = message.content, message.artifact
    known = artifact if isinstance(artifact, Mapping) and "structured_content" in artifact else {}
    if message.status != "error" and (known.get("structured_content") is not None or (known and content == "null")):
        return known["structured_content"]
    if not content and artifact is not None:
        return artifact
    text = content if message.status == "error" else {"type": "text", "text": content}
    blocks = [block_value(block) for block in (content if isinstance(content, list) else [text])]
    return blocks[0] if len(blocks) == 1 else blocks


def block_value(block: Any) -> Json:
    """Return a content block as a value: JSON text of an object or list parsed; other blocks without generated ids."""
    if not isinstance(block, Mapping):
        return block
    text = block.get("text")
    if block.get("type") != "text" or not isinstance(text, str):
        return {key: value for key, value in block.items() if key != "id" or not str(value).startswith("lc_")}
    return open_json(text)


def as_json(value: Any) -> Answer | Pass:
    """Return a function's value as an answer without changes; Pydantic models, dates etc. become JSON."""
    try:
        # consumed here, not by pydantic: an endless iterator would abort the process in Rust at exit
        value = list(value) if isinstance(value, Iterator) else value
        return Answer("ok", to_jsonable_python(value), [])
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        return Pass(f"the function's return value is not JSON: {mask(str(error))}")


NO_REAL = "{tool} has no real function: it can only be simulated"
IN_DOUBT = "It is not known whether the call took effect: find out before you make it again."

CLAIMED: ContextVar[JsonObject | None] = ContextVar("gecko_claimed", default=None)
"""The claimed call in progress: its `key`; the tool sets `doubt` (whether its effect is unknown), `retry_after`
(seconds until it may be repeated) and `undecided` (whether its error is no refusal)."""
NO_MODELS = Models()
SCOPE = NodeScope(GeckoContext.model_validate({}), silent, NO_MODELS.has)


async def drive(steps: Any, driver: Driver) -> Any:
    """Run a generator of asks outside of a graph and return its result; it must ask no model."""
    made, _ = await run_node(lambda *_: steps, None, SCOPE, driver, models=NO_MODELS)
    return made


class RealTool(BaseTool):
    """A LangChain tool with its own JSON Schema; all arguments reach the function, regardless of their names."""

    spec: Any
    timeout_s: float

    def _run(self, /, **args: Any) -> Any:
        return finish(self._call(args, AT_ONCE))

    async def _arun(self, /, **args: Any) -> Any:
        return await self._call(args, AWAITED)

    async def _call(self, args: JsonObject, driver: Driver) -> Any:
        return read_answer(self.spec, *await drive(self._made(args), driver))

    def _made(self, args: JsonObject) -> Any:
        call: Call = {"id": "", "name": self.name, "args": args}
        if complaints := check_by_rule(call, self.spec):
            return Answer("error", build_complaint_message(call, complaints).text), False
        if self.spec.real is None:
            return Answer("error", NO_REAL.format(tool=self.name)), False
        key = (CLAIMED.get() or {}).get("key") or uuid4().hex
        return run_real(self.spec, args, self.timeout_s, key=key)


def as_tool(tool: ToolSpec, shown: JsonObject, *, timeout_s: float) -> RealTool:
    """Return a tool as a LangChain tool with the name, description and parameters of an OpenAI function dict."""
    return RealTool(
        name=shown["function"]["name"],
        description=shown["function"]["description"],
        args_schema=shown["function"]["parameters"],
        response_format="content_and_artifact",
        handle_tool_error=True,
        spec=tool,
        timeout_s=timeout_s,
    )


def read_answer(tool: ToolSpec, answer: Answer, in_doubt: bool) -> tuple[str | list[JsonObject], JsonObject]:
    """Return content and artifact, the latter in MCP's form. Raises ToolException for an error."""
    content = as_text(answer.result)
    if (claimed := CLAIMED.get()) is not None:
        claimed |= {"doubt": in_doubt, "retry_after": answer.retry_after, "undecided": is_undecided(answer)}
    if answer.status == "error":
        raise ToolException(f"{content}\n{IN_DOUBT}" if in_doubt and not tool.trusted else content)
    return with_media(content, [answer.result, answer.more.get("media")]), {"structured_content": answer.result}
