"""create_gecko_agent: rehearse, review, execute, sync, answer; nodes, edges and routers.

```
START ── open_turn ── rehearse ──(accepted)── review ──(approved)── call_tool ── sync ──┬─(calls left)── call_tool
                      ▲  │  │ found              │                    │  ▲ in doubt     │
                      │  │  └── recover ── sync  │ (refused)          ▼  │              ├─(all done)── answer
                      │  └──(else)── answer ─────┘                resolve_doubt         │                │
                      └────────────(rejected, or reality departed: remaining calls)─────┘              close ── END
```

`interrupt_on` is one of:

- `"writes"`, `"all"`, `"none"`;
- a list of rules `{"tool": glob, "when": expression over args and state, "then": "allow"|"ask"|"refuse", "reason"}`, of
  which the last matching one decides;
- the argument of LangChain's `HumanInTheLoopMiddleware`, `{"pay": True, "refund": {"allowed_decisions": ["approve",
  "reject"], "description": ...}}`;
- `{"rules": any of these, "max_age": seconds that an approval is valid, "needs_id": True if every answer must name its
  question, "risk": True if the role `risk` judges these calls first: below `context.band` they are made, above it
  refused}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from ..graph import compose
from ..models.factory import Models, ModelsLike
from ..models.node import AskNode, Router, open_record, refuse_unknown_keys
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
    """Create the agent: it rehearses a task, asks for approval, makes the real calls, and updates the task state.

    Args:
        toolkit: The tools; those to call need a real function.
        model: A model, or `Models` by role, as for `create_gecko`.
        interrupt_on: The calls that a person is asked about, see the module.
        checkpointer: Stores checkpoints and claims of real calls. Omit it if the agent is embedded.
        context: Knobs of every run that passes none.
        rungs: Further rungs for simulated calls, as for `create_gecko`.
        index: As for `create_gecko`.
        ledger: Stores the claims if the checkpointer is none of SQLite, Postgres and memory.
        observe: The target of a row per real call: a file or a function.
        learned: Learned contracts (file or content) for tools without; established rules refuse, proposed ones warn.
        store: Shares lessons of real calls among threads. Omit it if the agent is embedded.
        name: The graph's name, in traces and as a node of another graph.
        derive: As for `create_gecko`.

    Returns:
        A graph from `GeckoInput` to `AgentOutput`; `Command(resume={"id", "decisions": [...]})` answers a review.

    Raises:
        ToolkitError: The toolkit is empty, not a Toolkit, or no tool has a real function.
        ModelError: A model cannot be built, or the planner has none.
        GeckoError: The context, `interrupt_on`, `observe`, `learned`, the ladder or a prompt is invalid.
    """
    knobs = check_setup(toolkit, context)
    if all(tool.real is None for tool in toolkit):
        raise ToolkitError("no tool has a real function: nothing can be carried out (to rehearse only: create_gecko)")
    toolkit = teach(with_derived(toolkit, derive=derive), learned)
    policy = ReviewPolicy.load(interrupt_on, toolkit)
    check_ledger(ledger)
    own = {"policy": policy, "home": Home(ledger, name), "observer": Observer.of(observe)}
    nodes = _build_nodes(toolkit, Models.of(model), knobs, tuple(rungs), index, **own)
    return refuse_unknown_keys(connect(nodes).compile(checkpointer=checkpointer, store=store, name=name))


def _build_nodes(
    toolkit: Toolkit,
    models: Models,
    default: GeckoContext,
    rungs: Sequence[Rung],
    index: ToolIndex | None,
    **own: Any,
) -> dict[str, Runnable[Any, Any]]:
    """Return the agent's nodes; `own` are `policy` and `home`, which decide on real calls, and `observer`."""
    policy, home = own["policy"], own["home"]
    models.prompts.check_shows("planner", "outcome")
    gecko = compose(toolkit, models=models, default=default, rungs=rungs, index=index, is_alone=False)
    models.require("planner", *(("risk",) if policy.risk else ()))
    node = partial(AskNode, models=models, default=default, is_outer=True, kept=AgentRecord.__annotations__)
    finder = UndoFinder(toolkit)
    deciding: dict[str, Any] = {"toolkit": toolkit, "policy": policy, "home": home}
    observed: dict[str, Any] = {"toolkit": toolkit, "observer": own["observer"]}
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
    """Return a router on the graph's own keys; its targets are read from its annotation."""

    def route(state: AgentChannels) -> str:
        return router(open_record(state))

    route.__annotations__ = {"state": AgentChannels, "return": get_type_hints(router)["return"]}
    return route


def after_open_turn(state: AgentState) -> Literal["rehearse", "__end__"]:
    """Return the next node: an answered message is not carried out again."""
    return "__end__" if state["is_over"] else "rehearse"


def after_recover(state: AgentState) -> Literal["sync", "resolve_doubt", "recover", "rehearse"]:
    """Return the next node: a found call is applied, asked about, or was left in doubt."""
    entry = last_entry(state)
    if not state["found"] or entry is None:
        return "rehearse"
    if entry["status"] == "in_doubt":
        return "recover" if "ended_at" in entry else "resolve_doubt"
    return "sync"


def after_rehearse(state: AgentState) -> Literal["recover", "risk", "review", "answer"]:
    """Return the next node: unknown real calls first, then the review of a plan, without a plan the answer."""
    if state["found"]:
        return "recover"
    return before_review(state) if state["preview"] else "answer"


def before_review(state: AgentState) -> Literal["risk", "review"]:
    """Return the next node: calls that need approval are first judged, if the policy requires it."""
    return "risk" if state["preview"] and state["preview"].get("unjudged") else "review"


def after_review(state: AgentState) -> Literal["call_tool", "rehearse", "risk", "review", "answer", "open_turn"]:
    """Return the next node: the plan was approved, edited, rejected with a reason, outdated, or refused."""
    if is_over(state):
        return "open_turn"
    if state["next_rehearsal_reason"]:
        return before_review(state) if state["next_rehearsal_reason"] == "edited" else "rehearse"
    return "call_tool" if state["approval"] else "answer"


def after_call_tool(state: AgentState) -> Literal["sync", "resolve_doubt", "review"]:
    """Return the next node: a result is applied, a call in doubt resolved, an invalid approval reviewed again."""
    if state["approval"] is None:
        return "review"
    return "resolve_doubt" if is_open(state) else "sync"


def after_resolve_doubt(state: AgentState) -> Literal["resolve_doubt", "sync", "recover", "answer", "open_turn"]:
    """Return the next node: the call is known, in doubt again, or left in doubt, which ends the turn."""
    entry = last_entry(state)
    if entry is None or entry["status"] != "in_doubt":
        return "sync"
    if is_open(state):
        return "resolve_doubt"
    return "recover" if state["found"] else "open_turn" if is_over(state) else "answer"


def after_sync(state: AgentState) -> Literal["recover", "call_tool", "rehearse", "answer", "open_turn"]:
    """Return the next node: the next call, a rehearsal of the remaining ones, or the answer."""
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
    """Return the next node: claimed calls are closed."""
    return "close" if any(entry["key"] for entry in (*state["unreported"], *state["journal"])) else "__end__"


def is_over(state: AgentState) -> bool:
    return state["turn"] != human_turns(state["messages"])


def is_open(state: AgentState) -> bool:
    """Return whether the last call is in doubt and was not yet asked about."""
    entry = last_entry(state)
    return entry is not None and entry["status"] == "in_doubt" and "ended_at" not in entry
