"""A client that asks one chat model for structured replies, and remembers what its server accepts.

Output methods are tried in order: the provider's structured output, function calling, plain text. The one
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

from ..errors import NoReply
from ..schemas.rules import Same
from ..state import JsonObject, RoleUsage
from . import structured
from .ask import Ask, Dialogue, ModelCall, PlannerAsk, Reply
from .failure import failure_of, find_setup_problem, is_refusal, name_of, tokens_of
from .formatting import cut
from .json_text import Unreadable
from .planner_message import read_message, sanitize_message
from .prompts import Prompt, Prompts
from .secrets import BLIND, hide_secrets
from .structured import OUTPUT_METHODS, OutputMethod
from .usage import Price, add_all, count, count_tokens, no_usage

_REPAIR_CHARS = 4_000
_MOST_BOUND = 1_000
"""Schemas that a model is kept bound with."""

_Caller: TypeAlias = Callable[[list[BaseMessage]], ModelCall]


class StructuredClient:
    """One chat model, with prices by model name. Shared by all its roles and by all runs: it keeps no trace of any."""

    def __init__(self, model: BaseChatModel, *, prices: Mapping[str, Price], prompts: Prompts) -> None:
        self.model = model
        self._prompts = prompts
        self._prices = prices
        self._method: OutputMethod = OUTPUT_METHODS[0]
        self._methods: dict[type[BaseModel], OutputMethod] = {}
        self._plain = _caller(model)
        self._has_replied = False
        self._structured: dict[tuple[OutputMethod, Same], _Caller | None] = {}
        self._tools: tuple[Sequence[JsonObject], _Caller] | None = None

    def ask(self, ask: Ask) -> Dialogue:
        """Ask for an object of the reply's class: the first method that is not refused, with one repair round."""
        variables = hide_secrets(ask.variables) if ask.role in BLIND else ask.variables
        prompt = self._prompts.render(ask.role, variables)
        spent: list[RoleUsage] = []
        for method, schema in self._forms(ask):
            call = self._by(method, schema, strict=structured.is_closed(ask.reply))
            if call is None:
                continue
            in_words = method == "text" or schema is not _schema_of(ask)
            message = self._look((yield call(_messages(prompt, ask, in_words=in_words))))
            spent.append(self._count(message))
            if isinstance(message, Exception) and method != "text" and is_refusal(message):
                if schema is ask.schema:
                    self._structured[method, Same(schema)] = None
                continue
            if isinstance(message, Exception):
                return Reply(None, failure_of(message), add_all(spent))
            self._learn(ask.reply, method)
            value, problem = _read(message, ask)
            if problem is None or problem.final:
                return Reply(value, str(problem) if problem else None, add_all(spent))
            again = self._look((yield call(_repair(prompt, ask, message, problem))))
            spent.append(self._count(again))
            return self._repaired(ask, problem, again, spent)
        raise AssertionError("plain text is a method that is always there")

    def plan(self, ask: PlannerAsk) -> Dialogue:
        """Ask for a message, with the tools bound."""
        try:
            call = self._with_tools(ask.tools)
        except NotImplementedError:
            return Reply(None, f"{type(self.model).__name__} has no bind_tools, so it cannot plan tool calls")
        except Exception as error:  # noqa: BLE001 - the boundary to models: a client that chokes on a tool is data
            return Reply(None, f"the tools could not be bound: {failure_of(error)}")
        message = self._look((yield call(ask.messages)))
        usage = self._count(message)
        if isinstance(message, Exception):
            return Reply(None, failure_of(message), usage)
        if not isinstance(message, AIMessage):
            return Reply(None, f"the model replied with {type(message).__name__}, not with a message", usage)
        message, failure = read_message(message)
        return Reply(message, failure, usage)

    def _look(self, message: Any) -> Any:
        """Return what a call has come to, as it can be stored; raises NoReply where key, address or name is wrong."""
        is_error = isinstance(message, Exception)
        if is_error and (problem := find_setup_problem(message, self.model, has_replied=self._has_replied)):
            raise NoReply(problem) from message
        self._has_replied = self._has_replied or not is_error
        return sanitize_message(message) if isinstance(message, AIMessage) else message

    def _repaired(self, ask: Ask, problem: Unreadable, again: Any, spent: Sequence[RoleUsage]) -> Reply:
        if isinstance(again, Exception):
            return Reply(None, failure_of(again), add_all(spent))
        value, still = _read(again, ask, whole=False)
        if still is None and problem.prose:  # the server ignores unknown options: put the schema into the prompt
            self._methods[ask.reply] = self._method = "text"
        return Reply(value, str(still) if still else None, add_all(spent))

    def _learn(self, reply: type[BaseModel], method: OutputMethod) -> None:
        if not self._methods:
            self._method = method
        self._methods[reply] = method

    def _forms(self, ask: Ask) -> Iterator[tuple[OutputMethod, JsonObject]]:
        """Yield methods with the schema to bind: the ask's own, and where the server refuses that one, the class's."""
        for method in OUTPUT_METHODS[OUTPUT_METHODS.index(self._methods.get(ask.reply, self._method)) :]:
            if ask.schema is not None and method != "text":
                yield method, ask.schema
            yield method, structured.schema_of(ask.reply)

    def _by(self, method: OutputMethod, schema: JsonObject, *, strict: bool) -> _Caller | None:
        if method == "text":
            return self._plain
        key = (method, Same(schema))
        if key not in self._structured:
            if len(self._structured) >= _MOST_BOUND:
                self._structured.clear()
            made = _structured_output(self.model, schema, method, strict=strict)
            self._structured[key] = None if made is None else _caller(made)
        return self._structured[key]

    def _with_tools(self, tools: Sequence[JsonObject]) -> _Caller:
        if not tools:
            return self._plain
        bound = self._tools
        if bound is None or not _same(bound[0], tools):
            self._tools = bound = (list(tools), _caller(self.model.bind_tools(tools)))
        return bound[1]

    def _count(self, message: Any) -> RoleUsage:
        if isinstance(message, Exception):
            spent = tokens_of(message)
            return (
                count_tokens(*spent, model_name=name_of(self.model), prices=self._prices) if any(spent) else no_usage()
            )
        return count(message if isinstance(message, BaseMessage) else None, prices=self._prices)


def _caller(runnable: Runnable[Any, Any]) -> _Caller:
    """Return what makes a call of messages. A binding becomes its options: merging its empty config takes 0.1 ms."""
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
    model: BaseChatModel, schema: JsonObject, method: OutputMethod, *, strict: bool
) -> Runnable[Any, Any] | None:
    """Return the model with the reply's schema bound, without the parser behind it: `_read` reads all replies.

    Besides, the raw message is what tokens are counted from, and LangChain's own `include_raw` costs a thread a call.
    """
    for options in ({"method": method, "strict": strict}, {"method": method}):
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
    schema = json.dumps(_schema_of(ask), ensure_ascii=False) if in_words else ""
    instructions = f"\n\nReply with one JSON object and nothing else. Its JSON Schema:\n{schema}" if in_words else ""
    return [SystemMessage(prompt.system + instructions), HumanMessage(prompt.user)]


def _schema_of(ask: Ask) -> JsonObject:
    return ask.schema or structured.schema_of(ask.reply)


def _repair(prompt: Prompt, ask: Ask, message: Any, problem: Unreadable) -> list[BaseMessage]:
    wrote = cut(structured.raw_text(message), budget=_REPAIR_CHARS)
    return [
        *_messages(prompt, ask, in_words=True),
        AIMessage(wrote if wrote.strip() else "(nothing)"),  # two human messages in a row are refused by some models
        HumanMessage(
            f"That cannot be used: {problem}. Reply again with the whole, corrected JSON object and nothing else."
        ),
    ]


def _read(message: Any, ask: Ask, *, whole: bool = True) -> tuple[BaseModel | None, Unreadable | None]:
    try:
        return structured.read_reply(message, ask.reply, ids=ask.ids, whole=whole), None
    except Unreadable as problem:
        return None, problem


def _same(a: Sequence[JsonObject], b: Sequence[JsonObject]) -> bool:
    return len(a) == len(b) and all(one is other for one, other in zip(a, b, strict=True))
