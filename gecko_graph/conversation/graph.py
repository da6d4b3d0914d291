"""create_conversation: nodes, edges and the router, and nothing else.

```
START ── open_world ──┬── user ──┐
                      │    ▲     ▼
                      ├── agent ◄┴─► tools        next: the recipient of the last message
                      │    │
                      └── score ── END            ended, or a limit is reached
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, cast

from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer

from ..context import GeckoContext
from ..derive.contracts import with_derived
from ..errors import GeckoError
from ..models.factory import ModelLike, Models, ModelsLike
from ..models.node import AskNode, Router, refuse_unknown_keys
from ..models.prompts import Prompts
from ..state import Role
from ..tools import Toolkit
from ..world.world import World, check_setup
from .agent import AgentLike, Factory, factory_agent, model_agent, read_agent
from .channels import ConversationInput, ConversationOutput, ConversationState, read_envelope
from .faults import build_faults
from .milestones.measures import check_installed
from .milestones.tables import find_names
from .scenario import Scenario
from .score import score
from .tools import open_world
from .tools import tools as answer_calls
from .user import UserEntry, UserLike, read_user
from .user import user as write_line

Conversation: TypeAlias = CompiledStateGraph[ConversationState, GeckoContext, ConversationInput, ConversationOutput]

Next: TypeAlias = Literal["user", "agent", "tools", "score"]

TIMEOUT_S = 600.0

SIMULATING: Sequence[Role] = ("simulator", "state_updater", "validator")
"""Roles that change the tools' answers, and so the score; asked only if the user named their models."""


def create_conversation(  # noqa: PLR0913 - independent keyword options
    agent: AgentLike,
    toolkit: Toolkit | None = None,
    *,
    user: UserLike | None = None,
    scenario: Scenario | None = None,
    model: ModelsLike = None,
    checkpointer: Checkpointer = None,
    context: GeckoContext | None = None,
    timeout_s: float = TIMEOUT_S,
    name: str = "conversation",
    derive: bool = True,
) -> Conversation:
    """Create a conversation of a simulated user, an agent under test and simulated tools (ToolSandbox, section 2).

    It is a graph from `{}` (or `{"messages", "task_state"}`) to `{"messages", "world", "score"}`.

    Args:
        agent: A chat model or `"provider:name"`, the address of an OpenAI-compatible server, or a function from tools
            to a Runnable of `{"messages"}`, such as `lambda tools: create_agent(model, tools)`.
        toolkit: The tools; the scenario's by default.
        user: A script (texts and `{"say", "when", "end"}`), a chat model for the role, or all settings of a scenario's
            `user`; the scenario's by default.
        scenario: The user, the start state, milestones and limits.
        model: The model that audits, or `Models` by role. Tools are simulated by rules, unless `Models` names the roles
            `simulator`, `state_updater` or `validator`. Model names of agent and user are resolved by `Models`.
        checkpointer: Keeps each message, so that a conversation can be opened, forked and edited before any of them.
        context: Settings of the world's answers; the scenario's limits by default.
        timeout_s: Seconds for a turn of the user's own agent, and for the tools' answers to a message.
        name: The graph's name, in traces and as a node of another graph.
        derive: Whether tools of an OpenAPI document are simulated by derived contracts, as for `create_gecko`; for a
            scenario's own tools its `limits.ladder` decides.

    Raises:
        GeckoError: There is no toolkit; agent, user or a model is invalid; or milestones cannot be scored without the
            extra `milestones`.
    """
    if scenario is not None and not isinstance(scenario, Scenario):
        raise GeckoError(f"scenario: expected Scenario.load(path), got {type(scenario).__name__}")
    case = scenario or Scenario(name=name, tools=cast("Toolkit", toolkit))
    spec, played_by = read_user(user, case.user)
    tools = case.tools if toolkit is None else toolkit
    knobs = check_setup(tools, context or case.limits)
    if toolkit is not None:
        tools = with_derived(toolkit, scenario.state if scenario else None, derive=derive)
    roles = Models.of(model).only_named(*SIMULATING)
    acts = read_agent(agent, roles)
    roles = _let_play(roles, spec, played_by)
    world = _build_world(case, tools, roles, knobs)
    node = partial(AskNode, models=roles, default=knobs)
    turn = _build_agent(node, acts, world, spec, timeout_s=timeout_s, checkpointed=bool(checkpointer))
    others = _build_others(node, world, spec, case, prompts=roles.prompts, timeout_s=timeout_s)
    graph = connect({**others, "agent": turn}, most=spec.max_messages)
    return refuse_unknown_keys(graph.compile(checkpointer=checkpointer, name=name))


def _build_world(case: Scenario, tools: Toolkit, roles: Models, knobs: GeckoContext) -> World:
    """Return the world, with a case's faults first on its ladder, and without a default model."""
    needed = [tool for tool in tools if tool.name in (case.needs or tools.names)]
    faults = build_faults(case.faults, needed, seed=knobs.seed)
    knobs = knobs.model_copy(update={"model": None, "ladder": (*case.faults, *knobs.ladder)})
    return World(tools, state=case.state or None, model=roles, context=knobs, rungs=faults, derive=False)


def _let_play(roles: Models, spec: UserEntry, played_by: ModelLike | None) -> Models:
    """Return the models, including the user's. Raises GeckoError if the user has neither a script nor a model."""
    roles = roles if played_by is None else roles.replace(user=played_by)
    if not spec.script and not roles.has("user"):
        raise GeckoError("user: expected a script or a model, such as user=['Hello'], user='openai:gpt-5-mini'")
    return roles


def _build_agent(
    node: Callable[..., Runnable[Any, Any]],
    acts: Runnable[Any, Any] | Factory,
    world: World,
    spec: UserEntry,
    *,
    timeout_s: float,
    checkpointed: bool,
) -> Runnable[Any, Any]:
    if isinstance(acts, Runnable):
        tools = world.toolkit.as_openai()
        return node(partial(model_agent, tools=tools, spec=spec), models=Models(planner=acts))
    theirs = partial(factory_agent, factory=acts, world=world, spec=spec, timeout_s=timeout_s)
    return node(partial(theirs, checkpointed=checkpointed))


def _build_others(
    node: Callable[..., Runnable[Any, Any]],
    world: World,
    spec: UserEntry,
    case: Scenario,
    *,
    prompts: Prompts,
    timeout_s: float,
) -> dict[str, Runnable[Any, Any]]:
    goal = case.goal
    if goal.milestones or goal.minefields:
        check_installed()
    tables, kept = find_names(case.state, goal.tables), case.verdicts
    return {
        "open_world": node(partial(open_world, world=world, default=case.state)),
        "user": node(partial(write_line, spec=spec, prompts=prompts)),
        "tools": node(partial(answer_calls, world=world, timeout_s=timeout_s)),
        "score": node(partial(score, goal=goal, tables=tables, toolkit=world.toolkit, spec=spec, kept=kept)),
    }


def connect(nodes: Mapping[str, Runnable[Any, Any]], *, most: int) -> StateGraph[Any, GeckoContext, Any, Any]:
    """Return the graph of these nodes; the last message decides on the next one, up to `most` messages."""

    def after(state: ConversationState) -> Next:
        return find_next(state, most=most)

    builder = StateGraph(
        ConversationState, GeckoContext, input_schema=ConversationInput, output_schema=ConversationOutput
    )
    for name, node in nodes.items():
        builder.add_node(name, node)
    builder.add_edge(START, "open_world")
    for name in ("open_world", "user", "agent", "tools"):
        builder.add_conditional_edges(name, Router(after), ["user", "agent", "tools", "score"])
    builder.add_edge("score", END)
    return builder


def find_next(state: ConversationState, *, most: int) -> Next:
    """Return the next node: the recipient of the last message (ToolSandbox, section 2), until the end or the limit."""
    messages = state.get("messages", [])
    if state.get("end") or len(messages) >= most:
        return "score"
    last = read_envelope(messages[-1]) if messages else None
    if last is None or last["sender"] == "system":  # after a system prompt the user begins
        return "user"
    return "agent" if last["recipient"] == "system" else last["recipient"]
