"""create_gecko_agent: rehearse, review, execute, sync, answer; nodes, edges and routers, and nothing else.

```
START ── open_turn ── rehearse ──(accepted)── review ──(approved)── call_tool ── sync ──┬─(calls left)── call_tool
                      ▲  │  │ found              │                    │  ▲ in doubt     │
                      │  │  └── recover ── sync  │ (refused)          ▼  │              ├─(all done)── answer
                      │  └──(else)── answer ─────┘                resolve_doubt         │                │
                      └──────────────(rejected, or reality departed: what is left)──────┘              close ── END
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal, get_type_hints

from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

from ..context import GeckoContext
from ..derive.contracts import with_derived
from ..errors import ToolkitError
from ..graph import Gecko, compose
from ..models.factory import Models, ModelsLike
from ..models.node import AskNode, Router, book_turn, open_record, refuse_unknown_keys
from ..real.home import Home
from ..real.learned import LearnedLike, teach
from ..real.ledger import CallLedger, check_ledger
from ..real.policy import ReviewPolicy
from ..real.preview import make_preview
from ..retrieval.index import ToolIndex
from ..tools import Toolkit
from ..undo import UndoFinder
from ..values.observation import Observe, Observer
from ..world.calls import build_nodes, simulate_call
from ..world.channels import GeckoInput
from ..world.ladder import rungs_of
from ..world.rung import Rung
from ..world.turn import human_turns
from ..world.world import check_setup
from .answer import answer, close
from .channels import AgentChannels, AgentOutput, AgentRecord, AgentState, calls_left, last_entry
from .execute import call_tool, resolve_doubt, sync
from .rehearse import find_missing, observe_reads, open_turn, recover, rehearse_node
from .review import review, risk


def create_gecko_agent(  # noqa: PLR0913 - every one is a choice of its own, by keyword
    toolkit: Toolkit,
    *,
    model: ModelsLike = None,
    interrupt_on: Any = "writes",
    checkpointer: Checkpointer = None,
    context: GeckoContext | None = None,
    rungs: Iterable[Rung] = (),
    index: ToolIndex | None = None,
    ledger: CallLedger | None = None,
    observe: Observe = None,
    learned: LearnedLike = None,
    store: BaseStore | None = None,
    name: str = "gecko_agent",
    derive: bool = True,
) -> CompiledStateGraph[AgentChannels, GeckoContext, GeckoInput, AgentOutput]:
    """Create the agent: it rehearses a task, asks for approval, makes the calls for real, and stays in step.

    Args:
        toolkit: The tools; those to be called for real need a real function.
        model: A model, or `Models` by role, as for `create_gecko`.
        interrupt_on: Which calls a person is asked about: `"writes"`, `"all"`, `"none"`; a list of rules `{"tool":
            glob, "when": expression over args and state, "then": "allow", "ask" or "refuse", "reason"}`, of which the
            last that applies decides; what LangChain's `HumanInTheLoopMiddleware` takes, `{"pay": True, "refund":
            {"allowed_decisions": ["approve", "reject"], "description": ...}}`; or `{"rules": any of these, "max_age":
            seconds that an approval holds, "needs_id": True if every answer must name its question, "risk": True
            where the role `risk` judges first what a person would be asked about: below `context.band` it is made,
            above it is refused}`.
        checkpointer: Keeps the snapshots, and the claims of real calls. Leave it out if the agent is embedded.
        context: Knobs of every run that brings none of its own.
        rungs: Who else may answer a simulated call, as for `create_gecko`.
        index: Finds tools if there are more than `context.max_tools`, as for `create_gecko`.
        ledger: Keeps the claims of real calls if the checkpointer is none of SQLite, Postgres and memory.
        observe: Where a row goes for each real call: a file, or a function that takes the row.
        learned: A file of learned contracts, or its content. They stand where a tool has no contract: an established
            rule refuses a write until a person decides otherwise, what is proposed warns.
        store: Keeps what real calls teach for all threads. Leave it out if the agent is embedded.
        name: The graph's name, in traces and where it is a node of another one.
        derive: Whether tools of an OpenAPI document are rehearsed by what it tells, as for `create_gecko`.

    Returns:
        A graph from `{"messages", "task_state"}` to `{"messages", "rehearsal", "execution", "task_state"}`. A review
        pauses it; `Command(resume={"id": the question's, "decisions": [...]})` goes on.

    Raises:
        ToolkitError: The toolkit is empty, not a Toolkit, or no tool has a real function.
        ModelError: A model cannot be built, or the planner has none.
        GeckoError: The context, `interrupt_on`, `observe`, `learned`, the ladder or a prompt cannot be used.
    """
    knobs = check_setup(toolkit, context)
    if all(tool.real is None for tool in toolkit):
        raise ToolkitError("no tool has a real function: nothing could be carried out (to rehearse only: create_gecko)")
    toolkit = teach(with_derived(toolkit, derive=derive), learned)
    policy = ReviewPolicy.load(interrupt_on, toolkit)
    check_ledger(ledger)
    bound = Models.of(model)
    bound.prompts.check_shows("planner", "outcome")
    rungs = tuple(rungs)
    gecko = compose(toolkit, models=bound, default=knobs, rungs=rungs, index=index, is_alone=False)
    bound.require("planner", *(("risk",) if policy.risk else ()))
    home, observer = Home(ledger, name), Observer.of(observe)
    nodes = _build_nodes(gecko, bound, knobs, rungs, toolkit=toolkit, policy=policy, home=home, observer=observer)
    return refuse_unknown_keys(connect(nodes).compile(checkpointer=checkpointer, store=store, name=name))


def _build_nodes(
    gecko: Gecko, models: Models, default: GeckoContext, rungs: Iterable[Rung], **deciding: Any
) -> dict[str, Runnable[Any, Any]]:
    """Return the nodes; `toolkit`, `policy` and `home` decide on real calls."""
    node = partial(AskNode, models=models, default=default, book=book_turn, kept=AgentRecord.__annotations__)
    toolkit, policy, home = deciding["toolkit"], deciding["policy"], deciding["home"]
    finder = UndoFinder(toolkit)
    observed = {"toolkit": toolkit, "observer": deciding.pop("observer")}
    predict = partial(simulate_call, nodes=build_nodes(toolkit, rungs_of(rungs)))
    preview = partial(make_preview, toolkit=toolkit, policy=policy)
    return {
        "open_turn": node(partial(open_turn, home=home, toolkit=toolkit)),
        "recover": node(partial(recover, toolkit=toolkit)),
        "rehearse": rehearse_node(
            gecko, preview, node(partial(find_missing, **deciding)), partial(observe_reads, **observed), finder, default
        ),
        "risk": node(partial(risk, policy=policy, toolkit=toolkit)),
        "review": node(partial(review, answer_call=predict, finder=finder, **deciding)),
        "call_tool": node(partial(call_tool, **deciding)),
        "resolve_doubt": node(partial(resolve_doubt, **deciding)),
        "sync": node(partial(sync, **observed)),
        "answer": node(partial(answer, prompts=models.prompts, finder=finder, home=home)),
        "close": node(partial(close, home=home)),
    }


def connect(nodes: Mapping[str, Runnable[Any, Any]]) -> StateGraph[Any, GeckoContext, Any, Any]:
    builder = StateGraph(AgentChannels, GeckoContext, input_schema=GeckoInput, output_schema=AgentOutput)
    for name, node in nodes.items():
        builder.add_node(name, node)
    builder.add_edge(START, "open_turn")
    routers = (after_open_turn, after_recover, after_rehearse, after_review, after_call_tool, after_resolve_doubt)
    for router in (*routers, after_sync, after_answer):
        builder.add_conditional_edges(router.__name__.removeprefix("after_"), Router(_routed(router)))
    builder.add_edge("risk", "review")
    builder.add_edge("close", END)
    return builder


def _routed(router: Callable[[Any], str]) -> Callable[[AgentChannels], str]:
    """Return the router over the graph's own keys; where it leads is read from its annotation."""

    def route(state: AgentChannels) -> str:
        return router(open_record(state))

    route.__annotations__ = {"state": AgentChannels, "return": get_type_hints(router)["return"]}
    return route


def after_open_turn(state: AgentState) -> Literal["rehearse", "__end__"]:
    """A message that was answered is not carried out again."""
    return "__end__" if state["is_over"] else "rehearse"


def after_recover(state: AgentState) -> Literal["sync", "resolve_doubt", "recover", "rehearse"]:
    """A call that was found is booked, or asked about, or was left in doubt."""
    entry = last_entry(state)
    if not state["found"] or entry is None:
        return "rehearse"
    if entry["status"] == "in_doubt":
        return "recover" if "ended_at" in entry else "resolve_doubt"
    return "sync"


def after_rehearse(state: AgentState) -> Literal["recover", "risk", "review", "answer"]:
    """A plan is reviewed; without one there is only an answer. Real calls that it did not know of come first."""
    if state["found"]:
        return "recover"
    return before_review(state) if state["preview"] else "answer"


def before_review(state: AgentState) -> Literal["risk", "review"]:
    """A call that needs a person's approval is judged first, if the policy says so."""
    return "risk" if state["preview"] and state["preview"].get("unjudged") else "review"


def after_review(state: AgentState) -> Literal["call_tool", "rehearse", "risk", "review", "answer", "open_turn"]:
    """Approved, edited, rejected with a reason or on a state that has moved, or refused."""
    if is_over(state):
        return "open_turn"
    if state["next_rehearsal_reason"]:
        return before_review(state) if state["next_rehearsal_reason"] == "edited" else "rehearse"
    return "call_tool" if state["approval"] else "answer"


def after_call_tool(state: AgentState) -> Literal["sync", "resolve_doubt", "review"]:
    """An answer is booked; without one the call is in doubt; without a valid approval the plan is reviewed again."""
    if state["approval"] is None:
        return "review"
    return "resolve_doubt" if is_open(state) else "sync"


def after_resolve_doubt(state: AgentState) -> Literal["resolve_doubt", "sync", "recover", "answer", "open_turn"]:
    """Known, in doubt once more, or left in doubt: then nothing more is done in this turn."""
    entry = last_entry(state)
    if entry is None or entry["status"] != "in_doubt":
        return "sync"
    if is_open(state):
        return "resolve_doubt"
    return "recover" if state["found"] else "open_turn" if is_over(state) else "answer"


def after_sync(state: AgentState) -> Literal["recover", "call_tool", "rehearse", "answer", "open_turn"]:
    """To the next call, to a rehearsal of the remaining ones, or to the answer."""
    if state["found"]:
        return "recover"
    if is_over(state):
        return "open_turn"
    if state["next_rehearsal_reason"]:
        return "rehearse"
    entry = last_entry(state)
    stopped = entry is not None and ("departure" in entry or entry["status"] == "in_doubt")
    return "call_tool" if calls_left(state) and not stopped else "answer"


def after_answer(state: AgentState) -> Literal["close", "__end__"]:
    """Calls that were claimed are closed."""
    return "close" if any(entry["key"] for entry in (*state["unreported"], *state["journal"])) else "__end__"


def is_over(state: AgentState) -> bool:
    """Return whether the person has said something new in the middle of the turn."""
    return state["turn"] != human_turns(state["messages"])


def is_open(state: AgentState) -> bool:
    """Return whether the last call is in doubt, and not yet asked about."""
    entry = last_entry(state)
    return entry is not None and entry["status"] == "in_doubt" and "ended_at" not in entry
