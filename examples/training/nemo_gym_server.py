"""Tasks of `gecko-graph data tasks` as a resources server of NeMo Gym 0.4; test it with `./check nemo-gym`.

gecko-graph data tasks api.yaml --state state.json -n 200 -o tasks --to nemo-gym
    pip install -r nemo_gym.txt && pip install --no-deps .
    ng_run "+config_paths=[gecko.yaml]"      # entrypoint: nemo_gym_server.py, tasks: the folder

Use a separate environment with Python 3.12 and without langchain-openai, which needs a newer openai than the
`openai<=2.7.2` of NeMo Gym; no task asks a model. NeMo Gym 0.7 needs Python 3.13.14 and uses the same rows,
`nemo-gym.jsonl`. A rollout is a session: its calls act on a fork of the task's start, and `verify` scores it by its
last message.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from nemo_gym.server_utils import SESSION_ID_KEY
from pydantic import ConfigDict, PrivateAttr

from gecko_graph import GeckoEnv, Toolkit
from gecko_graph.training.tasks import read_tasks


class GeckoConfig(BaseResourcesServerConfig):
    tasks: str


class Seed(BaseSeedSessionRequest):
    task: str | int = 0


class Verify(BaseVerifyRequest):
    model_config = ConfigDict(extra="allow")


class Verified(BaseVerifyResponse):
    model_config = ConfigDict(extra="allow")


class GeckoServer(SimpleResourcesServer):
    config: GeckoConfig
    _open: dict[str, GeckoEnv] = PrivateAttr(default_factory=dict)

    def setup_webserver(self) -> FastAPI:
        folder = Path(self.config.tasks)
        self._tasks = GeckoEnv(read_tasks(folder, Toolkit.from_openapi(folder / "tools.openapi.yaml")))
        app = super().setup_webserver()
        app.post("/{tool}")(self.call)  # after NeMo Gym's own routes
        return app

    async def seed_session(self, request: Request, body: Seed) -> BaseSeedSessionResponse:
        env = self._open[request.session[SESSION_ID_KEY]] = self._tasks.fork()
        env.reset(body.task)
        return BaseSeedSessionResponse()

    def call(self, request: Request, tool: str, body: dict[str, Any] | None = None) -> Response:
        env = self._open.get(request.session[SESSION_ID_KEY])
        if env is None:
            return Response("no such session: call seed_session first", 409)
        seen = env.step([{"name": tool, "args": body or {}}]).observation["messages"]
        return Response(seen[-1]["content"], media_type="application/json")

    async def verify(self, request: Request, body: Verify) -> Verified:
        env = self._open.pop(request.session[SESSION_ID_KEY], None)
        said = [part.text for each in body.response.output[-1:] if each.type == "message" for part in each.content]
        reward = env.step([], answer="".join(said)).reward if env is not None else 0.0
        return Verified(**body.model_dump(), reward=reward)


if __name__ == "__main__":
    GeckoServer.run_webserver()
