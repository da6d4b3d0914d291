"""Tasks of `gecko-graph data tasks` as an OpenEnv 0.10 server; test it with `./check openenv`.

gecko-graph data tasks api.yaml --state state.json -n 200 -o tasks
    pip install -r openenv.txt '.[training]'
    python openenv_server.py tasks --port 8000

`reset` takes `task` and `seed`; its observation contains the user's words and the tools. A step calls a tool, or gives
the `answer`, which ends the episode. The policy never sees the goal; the reward is 0.0 until the end.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app
from pydantic import Field

from gecko_graph import GeckoEnv, Toolkit
from gecko_graph.training.tasks import read_tasks


class GeckoAction(Action):
    tool_name: str | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    answer: str | None = None


class GeckoObservation(Observation):
    messages: list[dict[str, Any]] = Field(default_factory=list, description="OpenAI messages since the last step")
    tools: list[dict[str, Any]] = Field(default_factory=list, description="OpenAI tools, after a reset only")


class GeckoEnvironment(Environment[GeckoAction, GeckoObservation, State]):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, tasks: GeckoEnv) -> None:
        super().__init__()
        self._env, self._state, self._told = tasks.fork(), State(), 0

    def reset(self, seed: int | None = None, episode_id: str | None = None, **given: Any) -> GeckoObservation:
        seen = self._env.reset(given.get("task"), seed)
        self._state, self._told = State(episode_id=episode_id, task=self._env.task), len(seen["messages"])
        return GeckoObservation(**seen)

    def step(self, action: GeckoAction, timeout_s: float | None = None, **_: Any) -> GeckoObservation:
        calls = [] if action.tool_name is None else [{"name": action.tool_name, "args": action.arguments}]
        seen, reward, done, _ = self._env.step(calls, answer=action.answer)
        new, self._told = seen["messages"][self._told :], len(seen["messages"])
        self._state.step_count += 1
        return GeckoObservation(messages=new, done=done, reward=reward)

    @property
    def state(self) -> State:
        return self._state


def build(folder: str) -> Any:
    tasks = GeckoEnv(read_tasks(folder, Toolkit.from_openapi(Path(folder) / "tools.openapi.yaml")))
    return create_fastapi_app(
        lambda: GeckoEnvironment(tasks), GeckoAction, GeckoObservation, max_concurrent_envs=1000, env_name="gecko_graph"
    )


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("tasks", help="Folder made by `gecko-graph data tasks`.")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    uvicorn.run(build(options.tasks), port=options.port, log_level="warning")
