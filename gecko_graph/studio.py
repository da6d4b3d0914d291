"""The graph that `langgraph dev` opens in LangGraph Studio; `GeckoContext` is its form.

Without anything set it rehearses the shipped file-system scenario with its recorded replies.
Environment variables:

- `GECKO_SCENARIO`: path of a scenario, played with its recorded replies.
- `GECKO_TOOLS` and `GECKO_MODEL` (and `GECKO_BASE_URL`): your OpenAPI document and the model that plans and simulates.

The server keeps the checkpoints: the graph is compiled without a saver, or the server would refuse it.
"""

from __future__ import annotations

import os

from .errors import ModelError
from .graph import Gecko, create_gecko
from .scenario import Scenario, shipped
from .toolkit import Toolkit


def create_studio() -> Gecko:
    """The graph that the environment asks for.

    Raises:
        GeckoError: The scenario, document or model that is named there cannot be used.
    """
    tools = os.environ.get("GECKO_TOOLS")
    if tools:
        model = os.environ.get("GECKO_MODEL")
        if not model:
            raise ModelError("GECKO_TOOLS is set but GECKO_MODEL is not: name a model, for example openai:gpt-5-mini")
        return create_gecko(Toolkit.from_openapi(tools), model=model, base_url=os.environ.get("GECKO_BASE_URL"))
    path = os.environ.get("GECKO_SCENARIO")
    scenario = Scenario.load(path) if path else shipped("files")
    return create_gecko(scenario.toolkit(), models=scenario.models(), context=scenario.context())


graph = create_studio()
