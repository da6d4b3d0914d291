"""The graphs that `langgraph dev` opens in LangGraph Studio; `GeckoContext` is their form.

`gecko` rehearses the shipped file-system scenario with recorded replies: type any message. If the form omits task state
and checklist, the scenario's are used. `agent` does the same with the order scenario, pauses with a preview, and
carries the plan out against a small real service that it starts. `toolgate` makes the calls of the file-system scenario
as verified steps. Environment variables:

- `GECKO_SCENARIO`: path of a scenario for `gecko`, run with its recorded replies, or with `GECKO_MODEL`.
- `GECKO_TOOLS` and `GECKO_MODEL` (and `GECKO_BASE_URL`): your OpenAPI document and the model that plans and simulates.
- `GECKO_SERVER`: the server of the agent's calls, instead of the document's; `GECKO_AUTH_<SCHEME>`: a credential.

The graphs are compiled without a checkpointer, because the LangGraph server brings its own and refuses others.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from langchain_core.runnables import RunnableConfig, RunnableLambda

from . import graph as graphs
from .agent.channels import AgentChannels
from .agent.graph import create_gecko_agent
from .create import create_gecko
from .errors import ModelError, ScenarioError, ToolkitError
from .graph import Gecko
from .models.factory import Models
from .models.node import NodeScope
from .models.recorded import RecordedModel, as_needs
from .nodes.bootstrapper import bootstrapper
from .scenario import Scenario, order_service, shipped
from .stream import Rehearsing
from .toolgate import graph as toolgates
from .toolgate.graph import create_toolgate
from .tools import Toolkit
from .world.channels import GeckoState
from .world.turn import human_turns


def create_studio() -> Gecko:
    """Return the rehearsal that the environment variables configure.

    Raises:
        GeckoError: The named scenario, document or model cannot be used.
    """
    tools, model, base_url = _read_environment()
    if tools:
        return create_gecko(Toolkit.from_openapi(tools), model=Models(model, base_url=base_url))
    path = os.environ.get("GECKO_SCENARIO")
    scenario = Scenario.load(path) if path else shipped("files")
    models = Models(model, base_url=base_url) if model else scenario.models()
    return play(scenario, models, recorded=model is None)


def create_studio_agent() -> Gecko:
    """Return the agent that the environment variables configure; by default it calls a service started here.

    Raises:
        GeckoError: The named document or model cannot be used, or its tools are real and no address is known.
    """
    tools, model, base_url = _read_environment()
    if tools:
        toolkit = Toolkit.from_openapi(tools, server=os.environ.get("GECKO_SERVER") or None, auth="env:GECKO_AUTH_")
        if all(tool.real is None for tool in toolkit):
            raise ToolkitError(f"{tools} names no server: set GECKO_SERVER to the address that the agent shall call")
        return create_gecko_agent(toolkit, model=Models(model, base_url=base_url))
    scenario, service = shipped("order"), order_service().__enter__()  # the service runs as long as the server
    models = Models(model, base_url=base_url) if model else scenario.models()
    agent = create_gecko_agent(service.toolkit(), model=models, context=scenario.limits)

    node: Any = agent.builder.nodes["open_turn"]
    open_runnable = node.runnable

    def open_turn(state: AgentChannels, config: RunnableConfig) -> dict[str, Any]:
        if not state.get("bookkeeping"):
            service.reset()  # the recorded replies belong to the initial database
        filled = _fill(state, scenario, recorded=model is None)
        given = {key: filled[key] for key in ("task_state", "checklist") if key in filled}
        return {**open_runnable.invoke(filled, config), **given}

    node.runnable = RunnableLambda(open_turn)
    return agent.builder.compile(name=agent.name)


def create_studio_toolgate() -> Gecko:
    """Return the forward execution that the environment variables configure; by default of the file-system scenario.

    Raises:
        GeckoError: The named document or model cannot be used.
    """
    tools, model, base_url = _read_environment()
    if tools:
        return create_toolgate(Toolkit.from_openapi(tools), model=Models(model, base_url=base_url))
    scenario = shipped("files")
    recorded = RecordedModel(turns=[as_needs(turn.replies) for turn in scenario.turns])
    models = Models(model or recorded, base_url=base_url)
    return play(scenario, models, recorded=model is None, compose=toolgates.compose)


def _read_environment() -> tuple[str | None, str | None, str | None]:
    tools, model, base_url = (os.environ.get(f"GECKO_{name}") or None for name in ("TOOLS", "MODEL", "BASE_URL"))
    if tools and not model:
        raise ModelError("GECKO_TOOLS is set but GECKO_MODEL is not: name a model, for example openai:gpt-5-mini")
    return tools, model, base_url


def play(
    scenario: Scenario, models: Models, *, recorded: bool, compose: Callable[..., Gecko] = graphs.compose
) -> Gecko:
    """Return the scenario's graph for a form: a message alone starts from the scenario's state and checklist."""
    toolkit = scenario.tools

    def fill(state: GeckoState, scope: NodeScope) -> Any:
        filled: Any = _fill(state, scenario, recorded=recorded)
        return bootstrapper(filled, scope, toolkit=toolkit)

    return compose(toolkit, models=models, default=scenario.limits, replace={"bootstrapper": fill})


def _fill(state: GeckoState | AgentChannels, scenario: Scenario, *, recorded: bool) -> dict[str, Any]:
    """Return the input, with the scenario's task state and checklist of the turn if they are missing."""
    turn = human_turns(state.get("messages", [])) - 1
    if recorded and turn >= len(scenario.turns):
        turns = len(scenario.turns)
        raise ScenarioError(
            f"{scenario.name}: expected at most {turns} turn{'s' * (turns > 1)} with recorded replies, got "
            f"turn {turn + 1}: open a new thread, or set GECKO_MODEL"
        )
    known = scenario.inputs(turn) if 0 <= turn < len(scenario.turns) else {}
    return {**known, **{key: value for key, value in state.items() if value or key not in known}}


def stream_transformers() -> list[type[Rehearsing]]:
    """Return the transformers that provide the streams `custom:steps` etc. of all graphs here."""
    return [Rehearsing]


async def agent() -> Gecko:
    """Return the agent, created on first use."""
    return await asyncio.to_thread(_agent)


async def toolgate() -> Gecko:
    """Return the forward execution, created on first use."""
    return await asyncio.to_thread(_toolgate)


_agent, _toolgate = cache(create_studio_agent), cache(create_studio_toolgate)
graph = create_studio()
