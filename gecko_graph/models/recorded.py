"""A chat model with recorded replies: without key, network or randomness."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LangSmithParams, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from ..errors import RunFailure
from ..state import Json
from ..values.places import as_text
from .answer import AT_ONCE, AWAITED, Driver, finish

CHARS_A_TOKEN = 4

_RunManager: TypeAlias = CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun


class NotRecorded(RunFailure):
    """No reply was recorded for a question."""


class RecordedModel(BaseChatModel):
    """Replies by role, turn, attempt and question, taken from the call's metadata; it has no state.

    So the replies depend neither on order nor on concurrency, also after a resume. Called from outside a rehearsal, it
    replies as the planner: the turn is the number of human messages, the question that of assistant messages after the
    last one.

    Args:
        turns: One mapping of roles to replies per turn. For the planner one list per attempt, of `{"call": name,
            "args": {...}}`, `{"calls": [{"call": name, "args": {...}}, ...]}` or `{"say": text}`; for the judge one
            reply per attempt; for other roles one per question: the role's JSON, or `{"by_attempt": {"1": reply, ...}}`
            if parallel attempts ask questions with the same number.
        latency_s: Seconds before each reply.
        model_name: Name in the replies' metadata.
        fill: Called with a reply, its place and the attempt's number; returns the reply with its references resolved.
    """

    turns: Sequence[Mapping[str, Any]] = Field(default_factory=list)
    latency_s: float = 0.0
    model_name: str = "recorded"
    fill: Callable[[Json, str, int], Json] | None = Field(default=None, exclude=True)

    @property
    def _llm_type(self) -> str:
        return "recorded"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        schemas = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=schemas, tool_chars=len(json.dumps(schemas, ensure_ascii=False)), **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        result: ChatResult = finish(self._write(messages, run_manager, kwargs, AT_ONCE))
        return result

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return await self._write(messages, run_manager, kwargs, AWAITED)

    async def _write(
        self, messages: list[BaseMessage], run_manager: _RunManager | None, kwargs: Mapping[str, Any], driver: Driver
    ) -> ChatResult:
        message = self._reply(messages, run_manager, kwargs)
        if (seconds := self._seconds(message)) > 0:
            await driver.do(time.sleep, asyncio.sleep, seconds)
        if run_manager and run_manager.handlers:
            # LangChain gives `_stream` no metadata, and so no place: the message is streamed from here
            message.id = f"lc_run--{run_manager.run_id}"  # else a stream shows the whole message again
            tell: Any = run_manager.on_llm_new_token
            await driver.do(tell, tell, str(message.text), chunk=_chunk(message))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _reply(
        self, messages: list[BaseMessage], run_manager: _RunManager | None, kwargs: Mapping[str, Any]
    ) -> AIMessage:
        role, turn, attempt, question = _place((run_manager.metadata if run_manager else None) or {}, messages)
        reply, where = _reply_at(self.turns, role, turn, attempt, question)
        if self.fill is not None:
            reply = self.fill(reply, where, attempt)
        if role == "planner":
            message = planner_message(reply, prefix=call_prefix(turn, attempt, question))
        else:
            message = _role_message(reply, kwargs.get("tools"))
        made = self._count(message, role, max(attempt - 1, 0) if role == "judge" else question)
        return self._counted(message, input_tokens=prompt_tokens(messages, kwargs), output_tokens=made)

    def _counted(self, message: AIMessage, *, input_tokens: int, output_tokens: int) -> AIMessage:
        tokens = input_tokens + output_tokens
        usage = UsageMetadata(input_tokens=input_tokens, output_tokens=output_tokens, total_tokens=tokens)
        message.usage_metadata = usage
        message.response_metadata = {"model_name": self.model_name, "estimated_usage": True}
        return message

    def _count(self, message: AIMessage, role: str, question: int) -> int:
        return max(1, _chars(message) // CHARS_A_TOKEN)

    def _seconds(self, message: AIMessage) -> float:
        return self.latency_s

    def _get_invocation_params(self, stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        return {"_type": self._llm_type, "stop": stop, **kwargs}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        """Return the model's name for traces; LangChain would look it up in a dozen attributes per call."""
        return LangSmithParams(ls_provider=self._llm_type, ls_model_type="chat", ls_model_name=self.model_name)


def _place(metadata: Mapping[str, Any], messages: Sequence[BaseMessage]) -> tuple[str, int, int, int]:
    """Return role, turn, attempt and question from an ask's metadata, else from a plain agent's conversation."""
    if "gecko_role" in metadata:
        turn, attempt, question = (int(metadata.get(f"gecko_{key}", 0)) for key in ("turn", "attempt", "question"))
        return str(metadata["gecko_role"]), turn, attempt, question
    humans = [index for index, message in enumerate(messages) if isinstance(message, HumanMessage)]
    since = messages[humans[-1] :] if humans else messages
    question = sum(isinstance(message, AIMessage) for message in since)
    return "planner", max(len(humans) - 1, 0), 1, question


def _pick(recorded: Sequence[Any], index: int, what: str) -> Any:
    if index >= len(recorded):
        raise NotRecorded(f"nothing recorded for {what}: only {len(recorded)} replies")
    return recorded[index]


def _reply_at(
    turns: Sequence[Mapping[str, Any]], role: str, turn: int, attempt: int, question: int
) -> tuple[Json, str]:
    """Return the recorded reply and its place. Raises NotRecorded."""
    of, where, number = f"turn {turn + 1}", f"turns[{turn}].replies.{role}", max(attempt, 1)
    replies = _pick(turns, turn, of).get(role, ())
    if role == "planner":
        if not attempt:  # the answer after a plan was carried out is the planner's last one
            number, question = max(len(replies), 1), max(len(replies[-1]) - 1, 0) if replies else 0
        replies = _pick(replies, number - 1, f"the planner's attempt {number} of {of}")
        reply = _pick(replies, question, f"the planner's reply {question + 1} in attempt {number} of {of}")
        return reply, f"{where}[{number - 1}][{question}]"
    index = number - 1 if role == "judge" else question
    reply, where = _pick(replies, index, f"the {role}'s question {index + 1} of {of}"), f"{where}[{index}]"
    if not attempt or not isinstance(reply, Mapping) or not isinstance(by_attempt := reply.get("by_attempt"), Mapping):
        return reply, where
    if str(attempt) not in by_attempt:
        raise NotRecorded(f"nothing recorded for attempt {attempt}: {where}.by_attempt has {', '.join(by_attempt)}")
    return by_attempt[str(attempt)], f"{where}.by_attempt.{attempt}"


def as_needs(replies: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a turn's replies for forward execution: each call of the planner's last attempt serves a need."""
    calls, said = list[Any](), "Done."
    for each in replies["planner"][-1]:
        calls += each.get("calls", [each] if "call" in each else [])
        said = each.get("say", said)
    needs = [{"need": f"{call['call']} {json.dumps(call.get('args', {}), ensure_ascii=False)}"} for call in calls]
    ranked = [{"tools": [call["call"]]} for call in calls]
    return {**replies, "reasoner": [*needs, {"answer": said}], "reranker": ranked, "planner": [calls]}


def call_prefix(turn: int, attempt: int, question: int) -> str:
    return f"call_{turn + 1}_{attempt}_{question}"


def planner_message(reply: Json, *, prefix: str) -> AIMessage:
    """Return a planner's recorded reply as a message; call ids are `prefix` and a number.

    Arguments given as text are a model's malformed arguments.

    Raises:
        NotRecorded: The reply has none of `say`, `call` and `calls`.
    """
    if isinstance(reply, Mapping) and "say" in reply:
        return AIMessage(str(reply["say"]))
    calls, broken = [], []
    for number, each in enumerate(reply["calls"] if isinstance(reply, Mapping) and "calls" in reply else [reply]):
        if not isinstance(each, Mapping) or "call" not in each:
            raise NotRecorded(f"expected a planner's recorded reply with 'call', 'calls' or 'say', got {each!r}")
        name, identifier = str(each["call"]), f"{prefix}_{number}"
        args = each.get("malformed") or each.get("args") or {}
        if isinstance(args, str):
            broken.append(invalid_tool_call(name=name, args=args, id=identifier))
        else:
            calls.append(tool_call(name=name, args=dict(args), id=identifier))
    return AIMessage("", tool_calls=calls, invalid_tool_calls=broken)


def _role_message(reply: Json, tools: Any) -> AIMessage:
    if tools and isinstance(reply, dict):
        return AIMessage("", tool_calls=[tool_call(name=tools[0]["function"]["name"], args=reply, id="reply")])
    return AIMessage(as_text(reply))


def prompt_tokens(messages: Sequence[BaseMessage], kwargs: Mapping[str, Any]) -> int:
    """Return the estimated tokens of a prompt and its tools: a quarter of the characters."""
    return (sum(map(_chars, messages)) + int(kwargs.get("tool_chars", 0))) // CHARS_A_TOKEN


def _chars(message: BaseMessage) -> int:
    text = len(message.content) if isinstance(message.content, str) else len(str(message.text))
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return text + sum(len(call["name"]) + len(str(call["args"])) for call in calls)


def _chunk(message: AIMessage) -> ChatGenerationChunk:
    calls = [(call["name"], json.dumps(call["args"], ensure_ascii=False), call["id"]) for call in message.tool_calls]
    calls += [(str(call["name"]), str(call["args"]), call["id"]) for call in message.invalid_tool_calls]
    parts = [
        tool_call_chunk(name=name, args=args, id=identifier, index=index)
        for index, (name, args, identifier) in enumerate(calls)
    ]
    chunk = AIMessageChunk(content=str(message.text), tool_call_chunks=parts, id=message.id)
    return ChatGenerationChunk(message=chunk)


# LangChain inspects these at every call, which takes longer than the reply
for _method in (RecordedModel._generate, RecordedModel._agenerate):
    _method.__signature__ = inspect.signature(_method)  # type: ignore[union-attr, attr-defined, unused-ignore]
