"""The graph that `langgraph dev` opens in LangGraph Studio; `GeckoContext` is its form.

By default it rehearses the shipped file-system scenario with its recorded replies: type any message. Task state and
checklist, where the form omits them, come from the scenario. Environment variables:

- `GECKO_SCENARIO`: path of a scenario, run with its recorded replies, or with `GECKO_MODEL`.
- `GECKO_TOOLS` and `GECKO_MODEL` (and `GECKO_BASE_URL`): your OpenAPI document and the model that plans and simulates.

The server keeps the checkpoints: the graph is compiled without a saver, or the server would refuse it.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from .channels import GeckoState
from .errors import ModelError, ScenarioError
from .graph import Gecko, compose, create_gecko
from .models.factory import Models
from .models.node import NodeFunction, NodeScope
from .nodes.bootstrapper import bootstrapper
from .scenario import Scenario, shipped
from .toolkit import Toolkit
from .turn import human_turns


def create_studio() -> Gecko:
    """Return the graph that the environment variables configure.

    Raises:
        GeckoError: The scenario, document or model they name cannot be used.
    """
    tools, model, base_url = (os.environ.get(f"GECKO_{name}") or None for name in ("TOOLS", "MODEL", "BASE_URL"))
    if tools and not model:
        raise ModelError("GECKO_TOOLS is set but GECKO_MODEL is not: name a model, for example openai:gpt-5-mini")
    if tools:
        return create_gecko(Toolkit.from_openapi(tools), model=model, base_url=base_url)
    path = os.environ.get("GECKO_SCENARIO")
    scenario = Scenario.load(path) if path else shipped("files")
    models = Models.bind(model, base_url=base_url) if model else Models.bind(models=scenario.models())
    return play(scenario, models, recorded=model is None)


def play(scenario: Scenario, models: Models, *, recorded: bool) -> Gecko:
    """Return the scenario's graph for a form: a message alone starts from the scenario's state and checklist."""
    toolkit = scenario.toolkit()
    filled = {"bootstrapper": _filled(partial(bootstrapper, toolkit=toolkit), scenario, recorded=recorded)}
    return compose(toolkit, models=models, default=scenario.context(), replace=filled)


def _filled(node: NodeFunction, scenario: Scenario, *, recorded: bool) -> NodeFunction:
    def fill(state: GeckoState, scope: NodeScope) -> Any:
        turn = human_turns(state.get("messages", [])) - 1
        if recorded and turn >= len(scenario.turns):
            turns = len(scenario.turns)
            raise ScenarioError(
                f"{scenario.name}: expected at most {turns} turn{'s' * (turns > 1)} with recorded replies, got "
                f"turn {turn + 1}: open a new thread, or set GECKO_MODEL"
            )
        known = scenario.inputs(turn) if 0 <= turn < len(scenario.turns) else {}
        return node({**known, **{key: value for key, value in state.items() if value or key not in known}}, scope)

    return fill


graph = create_studio()
