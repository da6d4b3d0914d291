"""A chat model that speaks for roles, and what has been learnt of it.

Ways to a structured reply are tried in order: the provider's structured output, function calling, plain text. The one
that the server does not refuse is remembered for the next ask. A reply that does not fit gets one repair round with
what is wrong with it, then the ask has failed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableSequence
from pydantic import BaseModel

from ..errors import RunFailure
from ..state import JsonObject, RoleUsage
from . import structured
from .ask import Ask, Dialogue, ModelCall, PlannerAsk, Reply
from .prompts import Prompt, render
from .structured import WAYS, Unreadable, Way
from .usage import Price, add_all, count

_FAILURE_CHARS = 300
_REPAIR_CHARS = 4_000
_SECRET = re.compile(r"\b(sk-|Bearer )[\w*.\-]{6,}")

# what a server answers that knows no response_format or no tools
_REFUSALS = frozenset({400, 404, 405, 415, 422, 501})


class Speaker:
    """One chat model. Shared by all roles that it speaks for, and by all runs: it keeps no trace of any.

    Args:
        model: The chat model.
        prices: Price by model name.
    """

    def __init__(self, model: BaseChatModel, *, prices: Mapping[str, Price]) -> None:
        self.model = model
        self._prices = prices
        self._way: Way | None = None
        self._structured: dict[tuple[type[BaseModel], Way], Runnable[Any, Any] | None] = {}
        self._tools: tuple[Sequence[JsonObject], Runnable[Any, Any]] | None = None

    def ask(self, ask: Ask) -> Dialogue:
        """Ask for an object of the reply's class: down the ways until one is not refused, with one repair round."""
        prompt = render(ask.role, ask.variables)
        spent: list[RoleUsage] = []
        refused: Exception | None = None
        for way in WAYS[WAYS.index(self._way) :] if self._way else WAYS:
            runnable = self._runnable(ask.reply, way)
            if runnable is None:
                continue
            said = yield ModelCall(runnable, _messages(prompt, ask.reply, way))
            spent.append(self._count(ask, said))
            if isinstance(said, Exception) and way != "text" and _is_refusal(said):
                refused = said
                continue
            if isinstance(said, Exception):
                return Reply(None, failure_of(refused if refused and _is_refusal(said) else said), add_all(spent))
            self._way = self._way or way
            return (yield from self._settle(ask, way, said, spent))
        raise AssertionError("the last way is always open")

    def plan(self, ask: PlannerAsk) -> Dialogue:
        """Ask for a message, with the tools bound."""
        try:
            runnable = self._with_tools(ask.tools)
        except NotImplementedError:
            return Reply(None, f"{type(self.model).__name__} has no bind_tools, so it cannot plan tool calls")
        except Exception as error:  # noqa: BLE001 - the boundary to models: a client that chokes on a tool is data
            return Reply(None, f"the tools could not be bound: {failure_of(error)}")
        said = yield ModelCall(runnable, ask.messages)
        usage = self._count(ask, said)
        if isinstance(said, Exception):
            return Reply(None, failure_of(said), usage)
        if not isinstance(said, AIMessage):
            return Reply(None, f"the model replied with {type(said).__name__}, not with a message", usage)
        return Reply(said, None, usage)

    def _settle(self, ask: Ask, way: Way, said: Any, spent: list[RoleUsage]) -> Dialogue:
        value, problem = _read(said, ask.reply)
        if problem is None:
            return Reply(value, None, add_all(spent))
        runnable = cast("Runnable[Any, Any]", self._runnable(ask.reply, way))
        messages = _repair(render(ask.role, ask.variables), ask.reply, said, problem)
        again = yield ModelCall(runnable, messages)
        spent.append(self._count(ask, again))
        if isinstance(again, Exception):
            return Reply(None, failure_of(again), add_all(spent))
        value, still = _read(again, ask.reply)
        if still is not None:
            return Reply(None, str(still), add_all(spent))
        if problem.prose:
            self._way = "text"  # the server overlooks what it does not know, so the schema has to be in the text
        return Reply(value, None, add_all(spent))

    def _runnable(self, reply: type[BaseModel], way: Way) -> Runnable[Any, Any] | None:
        if way == "text":
            return self.model
        key = (reply, way)
        if key not in self._structured:
            self._structured[key] = _structured_output(self.model, reply, way)
        return self._structured[key]

    def _with_tools(self, tools: Sequence[JsonObject]) -> Runnable[Any, Any]:
        if not tools:
            return self.model
        if self._tools is None or not _same(self._tools[0], tools):
            self._tools = (list(tools), self.model.bind_tools(tools))
        return self._tools[1]

    def _count(self, ask: Ask | PlannerAsk, said: Any) -> RoleUsage:
        message = said if isinstance(said, BaseMessage) else None
        return count(ask.role, message, prices=self._prices)


def failure_of(error: Exception) -> str:
    """An exception as one short line, without keys."""
    text = " ".join(str(error).split())
    if not isinstance(error, RunFailure):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    text = _SECRET.sub(r"\1…", text)
    return text if len(text) <= _FAILURE_CHARS else f"{text[:_FAILURE_CHARS]}…"


def _structured_output(model: BaseChatModel, reply: type[BaseModel], way: Way) -> Runnable[Any, Any] | None:
    """The model with the reply's schema bound, without the parser behind it: replies are read in one place, here."""
    strict = structured.is_closed(reply)
    for options in ({"method": way, "strict": strict}, {"method": way}):
        try:
            made = model.with_structured_output(structured.schema_of(reply), **options)
        except (NotImplementedError, AttributeError):
            return None
        except (TypeError, ValueError):
            continue
        return made.first if isinstance(made, RunnableSequence) else None
    return None


def _messages(prompt: Prompt, reply: type[BaseModel], way: Way) -> list[BaseMessage]:
    system = prompt.system if way != "text" else f"{prompt.system}\n\n{_instructions(reply)}"
    return [SystemMessage(system), HumanMessage(prompt.user)]


def _instructions(reply: type[BaseModel]) -> str:
    schema = json.dumps(structured.schema_of(reply), ensure_ascii=False)
    return f"Reply with one JSON object and nothing else. Its JSON Schema:\n{schema}"


def _repair(prompt: Prompt, reply: type[BaseModel], said: Any, problem: Unreadable) -> list[BaseMessage]:
    wrote = structured.raw_text(said) if isinstance(said, AIMessage) else ""
    return [
        *_messages(prompt, reply, "text"),
        *([AIMessage(wrote[:_REPAIR_CHARS])] if wrote.strip() else []),
        HumanMessage(
            f"That cannot be used: {problem}. Reply again, with the whole corrected JSON object and nothing else."
        ),
    ]


def _read(said: Any, reply: type[BaseModel]) -> tuple[BaseModel | None, Unreadable | None]:
    if not isinstance(said, AIMessage):
        return None, Unreadable(f"the model replied with {type(said).__name__}, not with a message")
    try:
        return structured.read_reply(said, reply), None
    except Unreadable as problem:
        return None, problem


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, NotImplementedError) or getattr(error, "status_code", None) in _REFUSALS


def _same(a: Sequence[JsonObject], b: Sequence[JsonObject]) -> bool:
    return len(a) == len(b) and all(one is other for one, other in zip(a, b, strict=True))
