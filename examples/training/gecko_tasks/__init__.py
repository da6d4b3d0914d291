"""Tasks of `gecko-graph data tasks` as a taskset of verifiers 0.4.

gecko-graph data tasks api.yaml --state state.json -n 200 -o tasks
    pip install verifiers '.[training]'
    cd examples/training
    PYTHONPATH=. vf-validate gecko_tasks --taskset.folder TASKS --runtime.type subprocess

Use a separate environment: verifiers needs openai 2. `validate` plays each solution; doing nothing is worth 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, wraps
from inspect import signature
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from pydantic import Field

from gecko_graph import Scenario, Toolkit
from gecko_graph.training.env import GeckoEnv
from gecko_graph.training.tasks import ANSWER, read_tasks
from gecko_graph.training.trl import trl_environment

__all__ = ["GeckoTaskset"]


@cache
def load(folder: str) -> tuple[Toolkit, dict[str, Scenario]]:
    toolkit = Toolkit.from_openapi(Path(folder) / "tools.openapi.yaml")
    return toolkit, {task.name: task for task in read_tasks(folder, toolkit)}


class GeckoData(vf.TaskData):
    folder: str = ""


class GeckoState(vf.State):
    calls: list[dict[str, Any]] = Field(default_factory=list)


class GeckoTools(vf.Toolset[vf.ToolsetConfig, GeckoState]):
    """The task's tools, as methods that act on the rollout's own world."""

    TOOL_PREFIX = None

    async def setup_task(self, task: GeckoData) -> None:
        toolkit, tasks = load(task.folder)
        self._toolkit = toolkit
        self._world = trl_environment(toolkit, [tasks[str(task.name)]])()
        self._world.reset()

    def register(self, mcp: Any) -> None:
        public = [name for name in dir(type(self._world)) if not name.startswith("_")]
        for name in public:
            if name not in ("reset", "get_reward"):
                method = self._note(name, getattr(self._world, name))
                mcp.add_tool(self._with_state(method), name=name, description=method.__doc__)

    def _note(self, name: str, method: Any) -> Any:
        @wraps(method)
        def noted(**args: Any) -> str:
            given = {key: value for key, value in args.items() if value is not None}  # MCP fills in defaults
            self.state.calls.append({"name": name, "args": given})
            return str(method(**given))

        noted.__signature__ = signature(method)  # type: ignore[attr-defined]
        return noted


class GeckoTask(vf.Task[GeckoData, GeckoState, vf.TaskConfig]):
    @classmethod
    def toolsets(cls, config: vf.TaskConfig) -> list[vf.Toolset]:
        return [GeckoTools(vf.ToolsetConfig())]

    def _play(self, calls: Iterable[dict[str, Any]]) -> float:
        env = GeckoEnv([load(self.data.folder)[1][str(self.data.name)]])
        env.reset(0)
        for call in calls:
            env.step([call])
        return env.step(answer=ANSWER).reward

    async def validate(self, runtime: vf.Runtime) -> bool:
        return self._play(load(self.data.folder)[1][str(self.data.name)].solution) == 1.0

    @vf.reward
    async def goal(self, trace: vf.Trace) -> float:
        return self._play(trace.state.calls)


class GeckoConfig(vf.TasksetConfig):
    folder: str = "tasks"


class GeckoTaskset(vf.Taskset[GeckoTask, GeckoConfig]):
    def load(self) -> Iterable[GeckoTask]:
        folder = str(Path(self.config.folder).absolute())
        for task in load(folder)[1].values():
            yield GeckoTask(GeckoData(id=task.name, name=task.name, prompt=task.words, folder=folder))
