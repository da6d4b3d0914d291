"""A chat model that speaks for roles, and what has been learnt of it.

Ways to a structured reply are tried in order: the provider's structured output, function calling, plain text. The one
that the server does not refuse is remembered for the next ask. A reply that does not fit gets one repair round with
what is wrong with it, then the ask has failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import Runnable, RunnableBinding, RunnableSequence
from pydantic import BaseModel

from ..schemas.rules import Same
from ..state import JsonObject, RoleUsage
from . import structured
from .ask import Ask, Dialogue, ModelCall, PlannerAsk, Reply
from .failure import failure_of, is_refusal, tokens_of
from .formatting import cut
from .json_text import Unreadable
from .planner_message import mended, readable
from .prompts import Prompt, Prompts
from .structured import OUTPUT_METHODS, Way
from .usage import Price, add_all, count, count_tokens

_REPAIR_CHARS = 4_000
_MOST_BOUND = 1_000
"""Schemas that a model is kept bound with."""

_Caller: TypeAlias = Callable[[list[BaseMessage]], ModelCall]


class StructuredClient:
    """One chat model. Shared by all roles that it speaks for, and by all runs: it keeps no trace of any.

    Args:
        model: The chat model.
        prices: Price by model name.
        prompts: What each role is told.
    """

    def __init__(self, model: BaseChatModel, *, prices: Mapping[str, Price], prompts: Prompts) -> None:
        self.model = model
        self._prompts = prompts
        self._prices = prices
        self._way: Way = OUTPUT_METHODS[0]
        self._ways: dict[type[BaseModel], Way] = {}
        self._plain = _caller(model)
        self._structured: dict[tuple[Way, Same], _Caller | None] = {}
        self._tools: tuple[Sequence[JsonObject], _Caller] | None = None

    def ask(self, ask: Ask) -> Dialogue:
        """Ask for an object of the reply's class: down the ways until one is not refused, with one repair round."""
        prompt = self._prompts.render(ask.role, ask.variables)
        spent: list[RoleUsage] = []
        for way, schema in self._forms(ask):
            call = self._by(way, schema, strict=structured.is_closed(ask.reply))
            if call is None:
                continue
            in_words = way == "text" or schema is not _schema_of(ask)
            said = _orderly((yield call(_messages(prompt, ask, in_words=in_words))))
            spent.append(self._count(said))
            if isinstance(said, Exception) and way != "text" and is_refusal(said):
                if schema is ask.schema:
                    self._structured[way, Same(schema)] = None
                continue
            if isinstance(said, Exception):
                return Reply(None, failure_of(said), add_all(spent))
            self._learn(ask.reply, way)
            value, problem = _read(said, ask)
            if problem is None or problem.final:
                return Reply(value, str(problem) if problem else None, add_all(spent))
            again = _orderly((yield call(_repair(prompt, ask, said, problem))))
            spent.append(self._count(again))
            return self._repaired(ask, problem, again, spent)
        raise AssertionError("plain text is a way that is always there")

    def plan(self, ask: PlannerAsk) -> Dialogue:
        """Ask for a message, with the tools bound."""
        try:
            call = self._with_tools(ask.tools)
        except NotImplementedError:
            return Reply(None, f"{type(self.model).__name__} has no bind_tools, so it cannot plan tool calls")
        except Exception as error:  # noqa: BLE001 - the boundary to models: a client that chokes on a tool is data
            return Reply(None, f"the tools could not be bound: {failure_of(error)}")
        said = yield call(ask.messages)
        usage = self._count(said)
        if isinstance(said, Exception):
            return Reply(None, failure_of(said), usage)
        if not isinstance(said, AIMessage):
            return Reply(None, f"the model replied with {type(said).__name__}, not with a message", usage)
        message, failure = readable(said)
        return Reply(message, failure, usage)

    def _repaired(self, ask: Ask, problem: Unreadable, again: Any, spent: Sequence[RoleUsage]) -> Reply:
        if isinstance(again, Exception):
            return Reply(None, failure_of(again), add_all(spent))
        value, still = _read(again, ask, whole=False)
        if still is None and problem.prose:
            self._ways[ask.reply] = self._way = (
                "text"  # the server overlooks what it does not know: tell the schema in words
            )
        return Reply(value, str(still) if still else None, add_all(spent))

    def _learn(self, reply: type[BaseModel], way: Way) -> None:
        if not self._ways:
            self._way = way
        self._ways[reply] = way

    def _forms(self, ask: Ask) -> Iterator[tuple[Way, JsonObject]]:
        """Ways with the schema to bind: the ask's own, and where the server refuses that one, the class's."""
        for way in OUTPUT_METHODS[OUTPUT_METHODS.index(self._ways.get(ask.reply, self._way)) :]:
            if ask.schema is not None and way != "text":
                yield way, ask.schema
            yield way, structured.schema_of(ask.reply)

    def _by(self, way: Way, schema: JsonObject, *, strict: bool) -> _Caller | None:
        if way == "text":
            return self._plain
        key = (way, Same(schema))
        if key not in self._structured:
            if len(self._structured) >= _MOST_BOUND:
                self._structured.clear()
            made = _structured_output(self.model, schema, way, strict=strict)
            self._structured[key] = None if made is None else _caller(made)
        return self._structured[key]

    def _with_tools(self, tools: Sequence[JsonObject]) -> _Caller:
        if not tools:
            return self._plain
        bound = self._tools
        if bound is None or not _same(bound[0], tools):
            self._tools = bound = (list(tools), _caller(self.model.bind_tools(tools)))
        return bound[1]

    def _count(self, said: Any) -> RoleUsage:
        if isinstance(said, Exception):
            return count_tokens(*tokens_of(said), model_name=_name_of(self.model), prices=self._prices)
        return count(said if isinstance(said, BaseMessage) else None, prices=self._prices)


def _caller(runnable: Runnable[Any, Any]) -> _Caller:
    """What makes a call of messages. A binding is undone into its options: merging its empty config takes 0.1 ms."""
    options: dict[str, Any] = {}
    while (
        isinstance(runnable, RunnableBinding)
        and type(runnable).invoke is RunnableBinding.invoke
        and type(runnable).ainvoke is RunnableBinding.ainvoke
        and not (runnable.config or runnable.config_factories)
    ):
        options = {**runnable.kwargs, **options}
        runnable = runnable.bound
    stock = (BaseChatModel.invoke, BaseChatModel.ainvoke)
    if (type(runnable).invoke, type(runnable).ainvoke) != stock:
        return lambda messages: ModelCall(runnable, messages, options)
    # what LangChain makes of a list of messages, without validating each of a long conversation at each call
    return lambda messages: ModelCall(runnable, ChatPromptValue.model_construct(messages=messages), options)


def _structured_output(
    model: BaseChatModel, schema: JsonObject, way: Way, *, strict: bool
) -> Runnable[Any, Any] | None:
    """The model with the reply's schema bound, without the parser behind it: replies are read in one place, `_read`.

    Besides, the raw message is what tokens are counted from, and LangChain's own `include_raw` costs a thread a call.
    """
    for options in ({"method": way, "strict": strict}, {"method": way}):
        try:
            made = model.with_structured_output(schema, **options)
        except (NotImplementedError, AttributeError):
            return None
        except (TypeError, ValueError):
            continue
        bare = made.first if isinstance(made, RunnableSequence) else None
        return bare if isinstance(bare, (RunnableBinding, BaseChatModel)) else cast("Runnable[Any, Any]", made)
    return None


def _messages(prompt: Prompt, ask: Ask, *, in_words: bool) -> list[BaseMessage]:
    system = f"{prompt.system}\n\n{_instructions(ask)}" if in_words else prompt.system
    return [SystemMessage(system), HumanMessage(prompt.user)]


def _schema_of(ask: Ask) -> JsonObject:
    return ask.schema or structured.schema_of(ask.reply)


def _instructions(ask: Ask) -> str:
    schema = json.dumps(_schema_of(ask), ensure_ascii=False)
    return f"Reply with one JSON object and nothing else. Its JSON Schema:\n{schema}"


def _repair(prompt: Prompt, ask: Ask, said: Any, problem: Unreadable) -> list[BaseMessage]:
    wrote = cut(structured.raw_text(said), budget=_REPAIR_CHARS)
    return [
        *_messages(prompt, ask, in_words=True),
        AIMessage(wrote if wrote.strip() else "(nothing)"),  # two human messages in a row are refused by some models
        HumanMessage(
            f"That cannot be used: {problem}. Reply again with the whole, corrected JSON object and nothing else."
        ),
    ]


def _orderly(said: Any) -> Any:
    return mended(said) if isinstance(said, AIMessage) else said


def _read(said: Any, ask: Ask, *, whole: bool = True) -> tuple[BaseModel | None, Unreadable | None]:
    try:
        return structured.read_reply(said, ask.reply, ids=ask.ids, whole=whole), None
    except Unreadable as problem:
        return None, problem


def _name_of(model: BaseChatModel) -> str:
    return str(getattr(model, "model_name", "") or getattr(model, "model", ""))


def _same(a: Sequence[JsonObject], b: Sequence[JsonObject]) -> bool:
    return len(a) == len(b) and all(one is other for one, other in zip(a, b, strict=True))
