"""A client that asks a chat model for messages and structured replies, and remembers what its server supports.

Output methods are tried in order: the provider's structured output, function calling, plain text. The first method that
the server accepts is remembered. An invalid reply gets one repair round with its faults; then the ask fails. A model
may be wrapped in `.bind()`, `.with_retry()` or `.with_fallbacks()`, or be configurable.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from pydantic import BaseModel

from ..errors import NoReply
from ..state import JsonObject, RoleUsage
from .ask import Ask, Dialogue, ModelCall, PlannerAsk, Reply
from .cache import CACHED, without_cache
from .conversation import read_message, sanitize_message
from .failure import failure_of, find_setup_problem, is_refusal, name_of
from .formatting import cut
from .prompts import BLIND, Prompt, Prompts, hide_secrets
from .reply import OUTPUT_METHODS, OutputMethod, Unreadable, is_closed, raw_text, read_reply, schema_of
from .usage import Price, add_all, count, count_tokens, no_usage, tokens_of

AnyRunnable: TypeAlias = Runnable[Any, Any]
Bind: TypeAlias = Callable[[Any], AnyRunnable]


def find_model(runnable: object) -> Any:
    """Return the chat model inside its wrappers, the first of several fallbacks; None if there is none."""
    # a configurable model of `init_chat_model` is no BaseChatModel
    return find_inner(runnable, lambda each: isinstance(each, Runnable) and hasattr(type(each), "bind_tools"))


def find_inner(runnable: object, is_kind: Callable[[object], bool]) -> Any:
    """Return the model of a kind inside its wrappers, see `find_model`."""
    if isinstance(runnable, RunnableWithFallbacks):
        found = [find_inner(each, is_kind) for each in runnable.runnables]
        return None if None in found else found[0]
    if isinstance(runnable, RunnableBindingBase):
        return find_inner(runnable.bound, is_kind)
    if isinstance(runnable, DynamicRunnable):
        return find_inner(runnable.default, is_kind)
    return runnable if is_kind(runnable) else None


def bind_within(runnable: AnyRunnable, bind: Bind) -> AnyRunnable:
    """Return a model in which `bind` has replaced each wrapped chat model."""
    if isinstance(runnable, RunnableWithFallbacks):
        first, *others = (bind_within(each, bind) for each in runnable.runnables)
        return runnable.model_copy(update={"runnable": first, "fallbacks": others})
    if isinstance(runnable, RunnableBindingBase):
        return runnable.model_copy(update={"bound": bind_within(runnable.bound, bind)})
    return _Configured(runnable, bind) if isinstance(runnable, DynamicRunnable) else bind(runnable)


class _Configured(Runnable[Any, Any]):
    """A configurable model with something bound; each call's config selects the model."""

    def __init__(self, model: DynamicRunnable[Any, Any], bind: Bind) -> None:
        self._model, self._bind = model, bind

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        model, config = self._model.prepare(config)
        return bind_within(model, self._bind).invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        model, config = self._model.prepare(config)
        return await bind_within(model, self._bind).ainvoke(input, config, **kwargs)


_REPAIR_CHARS = 4_000
_MOST_BOUND = 1_000
"""Most schemas with a cached bound model."""


class StructuredClient:
    """One chat model, with prices by model name. It is shared by roles and runs, and stores nothing about them."""

    _find: Callable[[Any], Any] = staticmethod(find_model)

    def __init__(self, model: Runnable[Any, Any], *, prices: Mapping[str, Price], prompts: Prompts) -> None:
        self.model, self._inner = model, self._find(model)
        self._prompts = prompts
        self._prices = prices
        self._method: OutputMethod = OUTPUT_METHODS[0]
        self._methods: dict[type[BaseModel], OutputMethod] = {}
        self._has_replied = False
        self._structured: dict[tuple[OutputMethod, int], tuple[JsonObject, AnyRunnable | None]] = {}
        """By method and a schema's `id()`, which is kept with it."""
        self._tools: tuple[Sequence[JsonObject], AnyRunnable] | None = None

    def ask(self, ask: Ask) -> Dialogue:
        """Ask for an object of the reply's class, by the first accepted method, with one repair round."""
        variables = hide_secrets(ask.variables) if ask.role in BLIND else ask.variables
        prompt = self._prompts.render(ask.role, variables)
        spent: list[RoleUsage] = []
        for method, schema in self._forms(ask):
            runnable = self._by(method, schema, strict=is_closed(ask.reply))
            if runnable is None:
                continue
            in_words = method == "text" or schema is not _schema_of(ask)
            message = self._look((yield ModelCall(runnable, _messages(prompt, ask, in_words=in_words))))
            spent.append(self._count(message))
            if isinstance(message, Exception) and method != "text" and is_refusal(message):
                if schema is ask.schema:
                    self._structured[method, id(schema)] = schema, None
                continue
            if isinstance(message, Exception):
                return Reply(None, failure_of(message), add_all(spent))
            self._method = self._method if self._methods else method
            self._methods[ask.reply] = method
            value, problem = _read(message, ask)
            if problem is None or problem.final:
                return Reply(value, str(problem) if problem else None, add_all(spent))
            again = self._look((yield ModelCall(runnable, _repair(prompt, ask, message, problem))))
            spent.append(self._count(again))
            return self._repaired(ask, problem, again, spent)
        raise AssertionError("plain text is a method that is always there")

    def plan(self, ask: PlannerAsk) -> Dialogue:
        try:
            runnable = self._with_tools(ask.tools)
            runnable = bind_within(runnable, without_cache) if ask.uncached else runnable
        except NotImplementedError:
            return Reply(None, f"{type(self._inner).__name__} has no bind_tools, so it cannot plan tool calls")
        except Exception as error:  # noqa: BLE001 - the boundary to models: a client's exception becomes data
            return Reply(None, f"the tools could not be bound: {failure_of(error)}")
        message = self._look((yield ModelCall(runnable, ask.messages)))
        usage = self._count(message)
        if isinstance(message, Exception):
            return Reply(None, failure_of(message), usage)
        if not isinstance(message, AIMessage):
            return Reply(None, f"the model replied with {type(message).__name__}, not with a message", usage)
        message, failure = read_message(message)
        return Reply(message, failure, usage)

    def _look(self, message: Any) -> Any:
        """Return a call's result in a storable form. Raises NoReply if key, address or name is wrong."""
        is_error = isinstance(message, Exception)
        if is_error and (problem := find_setup_problem(message, self._inner, has_replied=self._has_replied)):
            raise NoReply(problem) from message
        self._has_replied = self._has_replied or not is_error
        return sanitize_message(message) if isinstance(message, AIMessage) else message

    def _repaired(self, ask: Ask, problem: Unreadable, again: Any, spent: Sequence[RoleUsage]) -> Reply:
        if isinstance(again, Exception):
            return Reply(None, failure_of(again), add_all(spent))
        value, still = _read(again, ask, whole=False)
        if still is None and problem.prose:  # the server ignores the schema: prompt it
            self._methods[ask.reply] = self._method = "text"
        return Reply(value, str(still) if still else None, add_all(spent))

    def _forms(self, ask: Ask) -> Iterator[tuple[OutputMethod, JsonObject]]:
        """Yield methods with the schema to bind: the ask's own, and if the server rejects that, the class's."""
        for method in OUTPUT_METHODS[OUTPUT_METHODS.index(self._methods.get(ask.reply, self._method)) :]:
            if ask.schema is not None and method != "text":
                yield method, ask.schema
            yield method, schema_of(ask.reply)

    def _by(self, method: OutputMethod, schema: JsonObject, *, strict: bool) -> AnyRunnable | None:
        if method == "text":
            return self.model
        key = (method, id(schema))
        if key not in self._structured:
            if len(self._structured) >= _MOST_BOUND:
                self._structured.clear()
            bind = partial(_structured_output, schema=schema, method=method, strict=strict)
            try:
                self._structured[key] = schema, bind_within(self.model, bind)
            except NotImplementedError:
                self._structured[key] = schema, None
        return self._structured[key][1]

    def _with_tools(self, tools: Sequence[JsonObject]) -> AnyRunnable:
        if not tools:
            return self.model
        bound = self._tools
        if bound is None or [*map(id, bound[0])] != [*map(id, tools)]:
            self._tools = bound = (list(tools), bind_within(self.model, lambda model: model.bind_tools(tools)))
        return bound[1]

    def _count(self, message: Any) -> RoleUsage:
        if isinstance(message, Exception):
            if not any(spent := tokens_of(message)):
                return no_usage()
            return count_tokens(*spent, model_name=name_of(self._inner), prices=self._prices)
        if isinstance(message, AIMessage) and CACHED in message.response_metadata:
            return no_usage()
        return count(message if isinstance(message, BaseMessage) else None, prices=self._prices)


def _structured_output(model: Any, *, schema: JsonObject, method: OutputMethod, strict: bool) -> Runnable[Any, Any]:
    """Return a chat model with the reply's schema bound, without LangChain's parser: `_read` reads all replies.

    Token counts need the raw message, and LangChain's `include_raw` would start a thread per call.

    Raises:
        NotImplementedError: The model has no such method.
    """
    if not isinstance(model, BaseChatModel):  # configurable: the model is created at each call
        made: Runnable[Any, Any] = model.with_structured_output(schema, method=method, include_raw=True)
        return made | itemgetter("raw")
    for options in ({"method": method, "strict": strict}, {"method": method}):
        try:
            made = model.with_structured_output(schema, **options)
        except AttributeError:
            break
        except (TypeError, ValueError):
            continue
        bare = made.first if isinstance(made, RunnableSequence) else None
        return bare if isinstance(bare, (RunnableBinding, BaseChatModel)) else made
    raise NotImplementedError


def _messages(prompt: Prompt, ask: Ask, *, in_words: bool) -> list[BaseMessage]:
    schema = json.dumps(_schema_of(ask), ensure_ascii=False) if in_words else ""
    instructions = f"\n\nReply with one JSON object and nothing else. Its JSON Schema:\n{schema}" if in_words else ""
    return [SystemMessage(prompt.system + instructions), HumanMessage(prompt.user)]


def _schema_of(ask: Ask) -> JsonObject:
    return ask.schema or schema_of(ask.reply)


def _repair(prompt: Prompt, ask: Ask, message: Any, problem: Unreadable) -> list[BaseMessage]:
    wrote = cut(raw_text(message), budget=_REPAIR_CHARS)
    return [
        *_messages(prompt, ask, in_words=True),
        AIMessage(wrote if wrote.strip() else "(nothing)"),  # some models reject two consecutive human messages
        HumanMessage(
            f"That cannot be used: {problem}. Reply again with the whole, corrected JSON object and nothing else."
        ),
    ]


def _read(message: Any, ask: Ask, *, whole: bool = True) -> tuple[BaseModel | None, Unreadable | None]:
    try:
        return read_reply(message, ask.reply, ids=ask.ids, whole=whole), None
    except Unreadable as problem:
        return None, problem
