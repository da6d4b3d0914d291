"""Nodes without input and output: they yield asks, which `AskNode` answers, sync or async."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field
from types import GeneratorType, MappingProxyType
from typing import Any, TypeAlias

from langchain_core.callbacks import BaseCallbackManager, CallbackManager
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.config import get_config
from langgraph.constants import START
from langgraph.errors import GraphInterrupt
from langgraph.graph import StateGraph
from langgraph.graph._branch import BranchSpec  # the type in `StateGraph.branches`
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Overwrite

from ..context import GeckoContext, context_of
from ..errors import StateError, TaskError, did_you_mean
from ..events import Emit
from ..state import LOST, Role, Usage
from .answer import AT_ONCE, AWAITED, Driver, aanswer, answer, finish
from .ask import AnyAsk, FunctionCall, Reply
from .factory import Models
from .usage import add_usage

LOG = logging.getLogger(__name__)
STORE_S = 30.0
"""Time limit of a store call in seconds."""


@dataclass(frozen=True, slots=True)
class NodeScope:
    """The services for a node besides its state.

    Args:
        context: The run's knobs.
        emit: Sends an event to the custom stream.
        has_model: Whether a role has a model.
        embedded: True if another graph's node started the run, so that the input is that graph's state.
        opens_turn: True for the first node of a turn, which still sees the previous turn's ledger.
        watched: False if nobody reads messages and events, so that none are built: in a `World`.
        made: Results on a call that several nodes need, by the call's `id()`.
    """

    context: GeckoContext
    emit: Emit
    has_model: Callable[[Role], bool]
    embedded: bool = False
    opens_turn: bool = False
    watched: bool = True
    made: dict[int, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Accounts:
    """The asks of one run of a node, by role, and their usage."""

    usage: Usage = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)

    def book(self, asks: Sequence[AnyAsk], replies: Sequence[Reply]) -> None:
        """Add one round of asks; a role without a model does not count."""
        for ask, reply in zip(asks, replies, strict=True):
            if not isinstance(ask, FunctionCall) and not reply.absent:
                self.usage = add_usage(self.usage, {ask.role: reply.usage})
                self.asked[ask.role] = self.asked.get(ask.role, 0) + 1


Update: TypeAlias = dict[str, Any]

NodeFunction: TypeAlias = Callable[[Any, NodeScope], Any]
"""`fn(state, scope)` returns the update, or is a generator that yields asks: `replies = yield [Ask(...), ...]`."""


def _book_turn(update: Update, state: Mapping[str, Any], accounts: Accounts) -> Update:
    """Add the usage to the outer graph's ledger: the new one if the node opens one, else the turn's."""
    write, asked = update.get("bookkeeping", {}), accounts.asked
    if isinstance(write, Overwrite):
        ledger = {**write.value["ledger"], "usage": accounts.usage, "asked": asked}
        return {**update, "bookkeeping": Overwrite({**write.value, "ledger": ledger})}
    now = state["bookkeeping"]["ledger"]
    asked = {role: now["asked"].get(role, 0) + number for role, number in asked.items()}
    ledger = {"turn": now["turn"], "usage": accounts.usage, "asked": asked}
    return {**update, "bookkeeping": {**write, "ledger": ledger}}


ADD_UP = frozenset(("steps", "trace", "argument_verdicts", "facts", "usage", "asked"))
"""Keys of an attempt whose reducers sum, so that an empty write changes nothing."""

NODE_STATE: ContextVar[Mapping[str, Any]] = ContextVar("gecko_node_state", default=MappingProxyType({}))
"""State of the asking node, to which recorded replies may refer. A live model never sees it."""


def require_whole(state: Mapping[str, Any]) -> None:
    """Raise StateError if a value of the state is lost because older checkpoints of the thread are missing."""
    for value in state.values():
        if type(value) is dict and LOST in value:
            raise StateError(
                f"this thread has lost its {value[LOST]!r}: it was copied or pruned without the checkpoints from "
                "which the value is read. Copy or keep all checkpoints and writes of a thread, or start a new one"
            )


def open_record(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a state, merged with those of its bookkeeping."""
    return {**state, **state.get("bookkeeping", {})}


def close_record(update: Mapping[str, Any] | None, kept: Container[str]) -> Update:
    """Return an update with the keys in `kept` moved to the bookkeeping."""
    shown: Update = {}
    record: Update = {}
    for key, value in (update or {}).items():
        (record if key in kept else shown)[key] = value
    return {**shown, "bookkeeping": {**record, **shown.get("bookkeeping", {})}} if record else shown


async def run_node(
    fn: NodeFunction,
    state: Any,
    scope: NodeScope,
    driver: Driver,
    *,
    models: Models,
    config: RunnableConfig | None = None,
) -> tuple[Any, Accounts]:
    """Run a node function: answer its asks until it returns its update; return it with the accounts of the asks."""
    made, accounts = fn(state, scope), Accounts()
    if not isinstance(made, GeneratorType):
        return made, accounts
    deadline = find_deadline(state, scope)
    pause: GraphInterrupt | None = None
    try:
        asks = made.send(None)
        while True:
            NODE_STATE.set(state)
            try:
                replies = await driver.do(answer, aanswer, asks, models, config, deadline=deadline)
            except GraphInterrupt as raised:
                if pause is not None:
                    raise
                pause = raised
                asks = made.throw(pause)  # the ask has paused the run: the function may ask more, and raises it again
                continue
            accounts.book(asks, replies)
            asks = made.send(replies)
    except StopIteration as returned:
        if pause is not None:
            raise pause from None
        return returned.value, accounts
    finally:
        made.close()


def find_deadline(state: Any, scope: NodeScope) -> float | None:
    """Return the deadline of the turn's models as `time.time()`, None without `time_budget_s`."""
    budget = scope.context.time_budget_s
    if budget is None:
        return None
    if "deadline" in state:  # of an attempt
        deadline: float | None = state["deadline"]
        return deadline
    kept = state.get("bookkeeping")
    began = time.time() if scope.opens_turn or not kept else kept["ledger"]["started_at"]
    return float(began + budget)


@dataclass(eq=False)
class AskNode(Runnable[Any, Any]):
    """A graph node for a node function: answers its asks, under `invoke` and `ainvoke`.

    A plain Runnable, because RunnableLambda would open a second run in the tracer.

    Args:
        fn: Function or generator, see `NodeFunction`.
        models: The models that answer its asks.
        default: Knobs for a run whose context is no GeckoContext, as in an embedded graph.
        is_outer: Usage is added to the outer graph's ledger, not to the attempt's keys `usage` and `asked`.
        kept: Keys stored under `bookkeeping`; the function reads and writes them like others.
        opens_turn: True for the first node of a turn.
        made: See `NodeScope`; nodes that work on the same calls share one.
    """

    fn: NodeFunction
    _: KW_ONLY
    models: Models
    default: GeckoContext
    is_outer: bool = False
    kept: Container[str] = ()
    opens_turn: bool = False
    made: dict[int, Any] = field(default_factory=dict)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return finish(self._run(input, config, AT_ONCE))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return await self._run(input, config, AWAITED)

    async def _run(self, state: Any, config: RunnableConfig | None, driver: Driver) -> Any:
        """Return the node's update, without empty writes to summed keys: each write would update a channel."""
        scope = self._scope(config)
        models = self.models.chosen(scope.context.model)
        require_whole(state)
        state = open_record(state) if self.kept else state
        update, accounts = await run_node(self.fn, state, scope, driver, models=models, config=config)
        update = update or {}
        if self.is_outer:
            update = _book_turn(update, state, accounts) if accounts.asked else update
        else:
            booked = {"usage": accounts.usage, "asked": accounts.asked} if accounts.asked else {}
            update = {key: value for key, value in {**update, **booked}.items() if value or key not in ADD_UP}
        return close_record(update, self.kept) if self.kept else update

    def _scope(self, config: RunnableConfig | None) -> NodeScope:
        try:
            runtime = get_runtime()
        except RuntimeError:  # called outside of a graph: in a test or notebook
            runtime = None
        if runtime is None:
            return NodeScope(self.default, silent, self.models.has, opens_turn=self.opens_turn)
        embedded = "|" in (config or {}).get("configurable", {}).get("checkpoint_ns", "")
        context = context_of(runtime.context, self.default)
        emit = trace_calls(runtime.stream_writer, config or {})
        has = self.models.chosen(context.model).has
        return NodeScope(context, emit, has, embedded, self.opens_turn, made=self.made)


def trace_calls(emit: Emit, config: Mapping[str, object]) -> Emit:
    """Return an `emit` that also adds each answered call to the trace, as a `tool` run tagged with its rung."""
    manager = config.get("callbacks")
    if not isinstance(manager, BaseCallbackManager) or not manager.handlers:
        return emit

    def traced(event: dict[str, Any]) -> None:
        emit(event)
        if event["type"] == "gecko.result":
            call, tags = event["call"], [f"rung:{event['rung']}", "simulated" if event["simulated"] else "real"]
            callbacks = CallbackManager.configure(inheritable_callbacks=manager, local_tags=tags)
            text, named = json.dumps(call["args"], ensure_ascii=False), {"name": call["name"]}
            run = callbacks.on_tool_start(named, text, **named, inputs=call["args"], tool_call_id=call["id"])
            run.on_tool_end({"status": event["status"], "result": event["result"]})

    return traced


def refuse_unknown_keys(graph: CompiledStateGraph[Any, Any, Any, Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return the graph, which now raises TaskError for unknown input keys.

    LangGraph drops them silently: `{"task_stat": ...}` would run without a state. An embedded graph gets all keys of
    its parent, and is not checked.
    """
    known = graph.builder.input_schema.__annotations__

    def check(given: Any) -> Any:
        if isinstance(given, Mapping) and not is_embedded():
            for key in given.keys() - known.keys():
                raise TaskError(f"the input has an unknown key {key!r}{did_you_mean(str(key), known)}")
        return given

    graph.nodes[START].mapper = check
    return graph


def with_store(use: Callable[..., Any], *args: Any) -> Generator[list[FunctionCall], list[Reply], Any]:
    """Return the result of `use(store, *args)` with the running graph's store.

    None without a store, or if the function fails: no call depends on a store's content.
    """
    try:
        runtime = get_runtime()
    except RuntimeError:
        return None
    if not runtime or runtime.store is None:
        return None
    (reply,) = yield [FunctionCall(function=use, args=(runtime.store, *args), timeout_s=STORE_S)]
    if reply.failure is not None:
        LOG.warning("lessons of calls could not be shared: the store %s", reply.failure)
    return reply.value


def running_config() -> RunnableConfig:
    """Return the config of the running node, an empty one outside of a graph."""
    try:
        return get_config()
    except RuntimeError:
        return {}


def is_embedded() -> bool:
    return "__pregel_read" in running_config().get("configurable", {})


class Router(RunnableLambda[Any, Any]):
    """A router that runs in the same thread; under `ainvoke` LangGraph would start a thread for a plain function.

    The function's annotations still show the keys it reads and its targets, which Studio draws.
    """

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self.func(input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self.func(input)


def add_router(builder: StateGraph[Any, Any, Any, Any], source: str, route: Callable[[Any], str]) -> None:
    """Route by a function; its annotations give the keys that it reads and its targets.

    For nodes that run at every call: to pass the state to a router, LangGraph copies all channels, which takes longer
    than most nodes. If the node's update has all needed keys, the function gets the update instead.
    """
    builder.add_conditional_edges(source, Router(route))
    builder.branches[source].update({name: _Branch(*each) for name, each in builder.branches[source].items()})


class _Branch(BranchSpec):
    """A branch that reads the state only if the node's update lacks needed keys, as after an edit from outside."""

    def _route(self, input: Any, config: RunnableConfig, *, reader: Any, writer: Any) -> Any:
        return super()._route(input, config, reader=self._needed(reader, input), writer=writer)

    async def _aroute(self, input: Any, config: RunnableConfig, *, reader: Any, writer: Any) -> Any:
        return await super()._aroute(input, config, reader=self._needed(reader, input), writer=writer)

    def _needed(self, reader: Any, update: Any) -> Any:
        needed: frozenset[str] = getattr(self.input_schema, "__required_keys__", frozenset())
        return None if needed and isinstance(update, dict) and needed <= update.keys() else reader


def silent(event: dict[str, Any]) -> None:
    """Ignore the event."""
