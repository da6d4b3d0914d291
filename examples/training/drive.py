"""The check that `./check` runs in a trainer's environment: serve tasks, and play them with the trainer's client."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn

from gecko_graph import Scenario, Toolkit
from gecko_graph.training.tasks import nemo_rows, read_tasks

RUNNING: list[tuple[uvicorn.Server, asyncio.Future[None]]] = []


async def serve(app: Any) -> str:
    """Serve the app in this event loop and return its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    RUNNING.append((server, asyncio.ensure_future(server.serve(sockets=[listening]))))
    while not server.started:
        await asyncio.sleep(0.01)
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


def named_calls(task: Scenario) -> list[dict[str, Any]]:
    """Return the solution's calls under the tool names that a policy sees."""
    names = dict(zip(task.tools.names, (each["function"]["name"] for each in task.tools.as_openai()), strict=True))
    return [{"name": names[call["name"]], "args": call["args"]} for call in task.solution]


async def check_openenv(folder: str, tasks: list[Scenario]) -> None:
    from openenv.core.generic_client import GenericEnvClient
    from openenv_server import build

    address = await serve(build(folder))
    for task in tasks:
        async with GenericEnvClient(base_url=address) as env, GenericEnvClient(base_url=address) as idle:
            for each in (env, idle):
                begun = await each.reset(task=task.name)
                assert begun.observation["messages"][0]["content"] == task.words
                assert begun.observation["tools"]
            for call in named_calls(task):
                seen = await env.step({"tool_name": call["name"], "arguments": call["args"]})
                assert (seen.done, seen.reward) == (False, 0.0), seen
            bad = await idle.step({"tool_name": "no_such_tool", "arguments": {}})
            assert "no_such_tool" in json.dumps(bad.observation["messages"]), bad
            ended = [await each.step({"answer": "Done."}) for each in (env, idle)]
            assert [(each.reward, each.done) for each in ended] == [(1.0, True), (0.0, True)], ended
    command = [str(Path(sys.executable).parent / "openenv"), "validate", "--url", address]
    validating = await asyncio.create_subprocess_exec(*command)
    assert await validating.wait() == 0


def stub_model(plays: dict[str, list[dict[str, Any]]]) -> Any:
    """Return the API of a model that plays the calls of the task it is given; `plays` are calls by the task's words."""
    from fastapi import FastAPI

    app = FastAPI()

    @app.post("/v1/responses")
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        calls = plays[body["input"][0]["content"]]
        at = sum(each.get("type") == "function_call_output" for each in body["input"])
        text = {"type": "output_text", "text": "Done.", "annotations": []}
        said: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "status": "completed"}
        output = said | {"content": [text]}
        if at < len(calls):
            given = {"name": calls[at]["name"], "arguments": json.dumps(calls[at]["args"])}
            output = {"type": "function_call", "call_id": f"c{at}", "id": f"c{at}", "status": "completed", **given}
        made = {"id": "r", "object": "response", "created_at": 0, "model": "stub", "output": [output]}
        return {**made, "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}

    return app


async def check_nemo_gym(folder: str, tasks: list[Scenario]) -> None:
    from nemo_gym.config_types import BaseServerConfig
    from nemo_gym.server_utils import GlobalAIOHTTPAsyncClientConfig, ServerClient, set_global_aiohttp_client
    from nemo_gym_server import GeckoConfig, GeckoServer
    from omegaconf import OmegaConf
    from responses_api_agents.simple_agent.app import SimpleAgent, SimpleAgentConfig, SimpleAgentRunRequest

    plays = {task.words: [*named_calls(task)] for task in tasks}
    session = set_global_aiohttp_client(GlobalAIOHTTPAsyncClientConfig())
    known = OmegaConf.create({})
    client = ServerClient(head_server_config=BaseServerConfig(host="127.0.0.1", port=1), global_config_dict=known)
    where = {"host": "127.0.0.1", "port": 1, "entrypoint": "x", "domain": "agent"}

    async def begin(kind: str, name: str, app: Any) -> None:
        known[name] = {kind: {name: {"host": "127.0.0.1", "port": int((await serve(app)).rpartition(":")[2])}}}

    server = GeckoServer(config=GeckoConfig(name="gecko", tasks=folder, **where), server_client=client)
    await begin("resources_servers", "gecko", server.setup_webserver())
    await begin("responses_api_models", "policy", stub_model(plays))
    references = {
        "resources_server": {"type": "resources_servers", "name": "gecko"},
        "model_server": {"type": "responses_api_models", "name": "policy"},
    }
    agent = SimpleAgent(
        config=SimpleAgentConfig(name="agent", max_steps=30, **where, **references), server_client=client
    )
    await begin("responses_api_agents", "agent", agent.setup_webserver())

    async def play() -> list[float]:
        rewards = []
        for row in nemo_rows(tasks):
            given = SimpleAgentRunRequest.model_validate(row)
            answered = await client.post("agent", "/run", json=given)
            assert answered.status == 200, await answered.text()
            rewards.append((await answered.json())["reward"])
        return rewards

    assert await play() == [1.0] * len(tasks)
    for words in plays:
        plays[words] = []
    assert await play() == [0.0] * len(tasks)
    await session.close()


async def check(wire: str, folder: str, tasks: list[Scenario]) -> None:
    await {"openenv": check_openenv, "nemo-gym": check_nemo_gym}[wire](folder, tasks)
    for server, running in RUNNING:
        server.should_exit = True
        await running


if __name__ == "__main__":
    wire, given = sys.argv[1:]
    made = read_tasks(given, Toolkit.from_openapi(Path(given) / "tools.openapi.yaml"))
    asyncio.run(check(wire, given, made))
    print(f"{wire}: {len(made)} tasks played, each worth 1.0 for its solution and 0.0 for doing nothing")
