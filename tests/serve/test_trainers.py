"""The wires of trainers: whole episodes, sessions apart, nothing of the goal shown, garbage answered."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

pytest.importorskip("scipy")

from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from gecko_graph import GeckoError, Scenario, Tool, Toolkit, make_tasks
from gecko_graph.cli.serve import _read_tasks
from gecko_graph.scenario import examples
from gecko_graph.serve.app import Server
from gecko_graph.serve.guard import Guard
from gecko_graph.serve.operations import Operations
from gecko_graph.serve.sessions import Sessions
from gecko_graph.serve.trainers import Episodes, Trainers, find_collisions
from gecko_graph.training.tasks import nemo_rows

from .conftest import EXAMPLES, world_of

OPENENV, NEMO = "/_gecko/openenv", "/_gecko/nemo-gym"
SOCKET = f"ws://localhost{OPENENV}/ws"


@pytest.fixture(scope="module")
def tasks():
    shop = Scenario.load(examples()["shop"])
    return list(make_tasks(shop.tools, [shop.state], 3, seed=7))


@pytest.fixture
def client(tasks):
    base = world_of(tasks[0].tools, tasks[0].state)
    server = Server(Sessions(base), Operations(base.toolkit))
    app = Guard(server.build(Trainers(Episodes(tasks, most=2)).routes()))
    with TestClient(app, base_url="http://localhost") as made:
        yield made


def act(call):
    return {"type": "step", "data": {"type": "call_tool", "tool_name": call["name"], "arguments": call["args"]}}


def faces(task):
    """The solution under the names that a policy is shown."""
    names = dict(zip(task.tools.names, (each["function"]["name"] for each in task.tools.as_openai()), strict=True))
    return [{"name": names[call["name"]], "args": call["args"]} for call in task.solution]


def send(socket, message):
    socket.send_json(message)
    return socket.receive_json()


def test_openenv_plays_a_task_to_its_reward(client, tasks):
    with client.websocket_connect(SOCKET) as socket:
        shown = send(socket, {"type": "step", "data": {"type": "list_tools"}})["data"]["observation"]["tools"]
        assert {each["name"] for each in shown} >= {call["name"] for call in faces(tasks[0])} | {"finish"}
        begun = send(socket, {"type": "reset", "data": {"task": tasks[0].name, "episode_id": "e"}})["data"]
        assert (begun["observation"]["prompt"], begun["reward"], begun["done"]) == (tasks[0].words, None, False)
        for call in faces(tasks[0]):
            seen = send(socket, act(call))["data"]
            assert (seen["reward"], seen["done"], seen["observation"]["error"]) == (0.0, False, None)
        assert send(socket, {"type": "state"})["data"]["step_count"] == len(tasks[0].solution)
        end = send(socket, act({"name": "finish", "args": {"answer": "Done."}}))["data"]
        assert (end["reward"], end["done"]) == (1.0, True)
        assert send(socket, act({"name": "finish", "args": {}}))["data"]["code"] == "EXECUTION_ERROR"
        socket.send_json({"type": "close"})


def test_openenv_sessions_are_apart_and_nothing_done_earns_nothing(client, tasks):
    with client.websocket_connect(SOCKET) as one, client.websocket_connect(SOCKET) as other:
        for socket in (one, other):
            send(socket, {"type": "reset", "data": {"task": tasks[0].name}})
        for call in faces(tasks[0]):
            send(one, act(call))
        assert send(other, act({"name": "finish", "args": {"answer": "Done."}}))["data"]["reward"] == 0.0
        assert send(one, act({"name": "finish", "args": {"answer": "Done."}}))["data"]["reward"] == 1.0


def test_openenv_over_http_and_its_descriptions(client, tasks):
    assert client.get(f"{OPENENV}/health").json() == {"status": "healthy"}
    assert {"action", "observation", "state"} == client.get(f"{OPENENV}/schema").json().keys()
    paths = client.get(f"{OPENENV}/openapi.json").json()["paths"]
    assert {"/reset", "/step", "/state"} <= paths.keys()
    assert client.post(f"{OPENENV}/reset", json={"task": 0}).json()["observation"]["prompt"] == tasks[0].words
    call = faces(tasks[0])[0]
    body = {"action": {"tool_name": call["name"], "arguments": call["args"]}}
    assert client.post(f"{OPENENV}/step", json=body).json()["observation"]["error"] is None
    listed = client.post(f"{OPENENV}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).json()
    assert "inputSchema" in listed["result"]["tools"][0]
    asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "no_such", "arguments": {}}}
    assert client.post(f"{OPENENV}/mcp", json=asked).json()["result"]["isError"]
    assert client.post(f"{OPENENV}/mcp", json={}).json()["error"]["code"] == -32600
    assert client.get(f"{OPENENV}/state").json()["step_count"] == 2


def test_openenv_over_http_has_a_session_for_each_client(client, tasks):
    other = TestClient(client.app, base_url="http://localhost")  # with cookies of its own
    for each in (client, other):
        assert each.post(f"{OPENENV}/reset", json={"task": 0, "episode_id": "same"}).json()["done"] is False
    for call in faces(tasks[0]):
        client.post(f"{OPENENV}/step", json={"action": {"tool_name": call["name"], "arguments": call["args"]}})
    assert other.get(f"{OPENENV}/state").json()["step_count"] == 0
    done = {"action": {"tool_name": "finish", "arguments": {"answer": "Done."}}}
    rewards = [each.post(f"{OPENENV}/step", json=done).json()["reward"] for each in (client, other)]
    assert rewards == [1.0, 0.0]


def test_openenv_sessions_are_named_where_a_client_keeps_no_cookies(client, tasks):
    def post(path, body):
        client.cookies.clear()
        return client.post(f"{OPENENV}/{path}", json=body).json()

    one, two = (post("reset", {"task": 0})["metadata"]["session_id"] for _ in range(2))
    assert post("step", {"action": {"tool_name": "finish"}})["status"] == 409
    call = faces(tasks[0])[0]
    action = {"tool_name": call["name"], "arguments": call["args"]}
    assert post("step", {"session_id": one, "action": action})["observation"]["error"] is None
    client.cookies.clear()
    counts = [client.get(f"{OPENENV}/state", params={"session_id": key}).json()["step_count"] for key in (one, two)]
    assert counts == [1, 0]


def test_openenvs_own_session_methods(client, tasks):
    def ask(method, **params):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return client.post(f"{OPENENV}/mcp", json=body).json()

    key = ask("openenv/session/create")["result"]["session_id"]
    with client.websocket_connect(f"{SOCKET}?session_id={key}") as socket:
        send(socket, {"type": "reset", "data": {"task": 0}})
        call = faces(tasks[0])[0]
        assert not ask("tools/call", session_id=key, name=call["name"], arguments=call["args"])["result"]["isError"]
        assert send(socket, {"type": "state"})["data"]["step_count"] == 1
    assert ask("openenv/session/close", session_id=key)["result"]["closed"]
    assert "no such session" in ask("tools/call", session_id=key, name="x")["error"]["message"]
    assert "no such session" in ask("tools/call", name="x")["error"]["message"]
    with client.websocket_connect(f"{SOCKET}?session_id={key}") as socket:
        assert socket.receive_json()["data"]["code"] == "SESSION_ERROR"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", "null", '{"type": "step"}', '{"type": "step", "data": []}',
     '{"type": "reset", "data": {"task": []}}',
     '{"type": "reset", "data": {"task": "none"}}', '{"type": "reset", "data": {"seed": "x"}}', '{"type": "mcp"}',
     '{"type": "step", "data": {"tool_name": 7, "arguments": 7}}', "[" * 100_000],
)  # fmt: skip
def test_openenv_answers_garbage_and_goes_on(client, text):
    with client.websocket_connect(SOCKET) as socket:
        socket.send_text(text)
        assert socket.receive_json()["type"] == "error"
        assert send(socket, {"type": "reset"})["type"] == "observation"
        socket.send_json({"type": "step", "data": {"tool_name": 7, "arguments": 7}})
        assert socket.receive_json()["data"]["observation"]["error"]


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "http://evil.example"}])
def test_a_socket_of_a_foreign_page_is_refused(client, headers):
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(SOCKET, headers=headers):
        pass


def test_nemo_gym_plays_a_row_to_its_reward(client, tasks):
    row = next(iter(nemo_rows(tasks)))
    assert client.post(f"{NEMO}/verify", json=row).status_code == 409
    assert client.post(f"{NEMO}/seed_session", json=row).status_code == 200
    for call in faces(tasks[0]):
        assert client.post(f"{NEMO}/{call['name']}", json=call["args"]).status_code == 200
    assert client.post(f"{NEMO}/no_such_tool", json={}).status_code == 422
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    verified = client.post(f"{NEMO}/verify", json={**row, "response": {"output": [said]}}).json()
    assert (verified["reward"], verified["task"]) == (1.0, tasks[0].name)
    assert client.post(f"{NEMO}/verify", json=row).status_code == 409


def test_nemo_gym_scores_an_episode_that_was_over_before(client, tasks):
    row = next(iter(nemo_rows(tasks)))
    client.post(f"{NEMO}/seed_session", json=row)
    for call in [*faces(tasks[0]), {"name": "finish", "args": {"answer": "Done."}}]:
        assert client.post(f"{NEMO}/{call['name']}", json=call["args"]).status_code == 200
    assert client.post(f"{NEMO}/verify", json=row).json()["reward"] == 1.0


def test_nemo_gyms_oldest_session_gives_way(client, tasks):
    keys = []
    for _ in range(3):
        client.cookies.clear()
        keys.append(client.post(f"{NEMO}/seed_session", json={"task": tasks[1].name}).cookies["session"])
    client.cookies.clear()
    codes = []
    for key in keys:
        given = {"json": {"response": "garbage"}, "headers": {"cookie": f"session={key}"}}
        codes.append(client.post(f"{NEMO}/verify", **given).status_code)
    assert codes == [409, 200, 200]


def test_no_answer_tells_reward_or_goal(client, tasks):
    told = [client.get(f"{OPENENV}/{name}").text for name in ("schema", "metadata", "state", "openapi.json")]
    told += [json.dumps(row) for row in nemo_rows(tasks)]
    told.append(client.post(f"{OPENENV}/reset", json={"task": 1}).text)
    goal = json.dumps(tasks[1].milestones)
    assert all("milestone" not in each and goal not in each for each in told)


def test_a_tool_called_finish_or_reset_keeps_its_name_or_is_told():
    def finish(note: str) -> str:
        """End the shift."""
        return note

    def reset(note: str) -> str:
        """Start the shift again."""
        return note

    toolkit = Toolkit.from_tools([Tool(finish, effect="write"), Tool(reset, effect="write")])
    assert find_collisions(toolkit.names) == ["reset is a word of openenv's own: that wire does not offer the tool"]
    case = Scenario.load(EXAMPLES / "shop" / "cancel-the-mug.gecko.yaml")
    assert Episodes([replace(case, tools=toolkit)]).finish == "finish_2"


def test_tasks_of_several_toolkits_and_empty_folders_are_refused(tasks, tmp_path):
    files = Scenario.load(
        next(iter((EXAMPLES / "files").glob("*.gecko.yaml")), EXAMPLES / "shop" / "two-teas.gecko.yaml")
    )
    if files.tools.names != tasks[0].tools.names:
        with pytest.raises(GeckoError, match="same tools"):
            Episodes([tasks[0], files])
    with pytest.raises(GeckoError, match="holds no"):
        _read_tasks(type("Given", (), {"tasks": str(tmp_path)}))


def test_two_hundred_episodes_at_once(tasks):
    episodes = Episodes(tasks)

    async def play(number):
        episode = episodes.begin()
        task = tasks[number % 3]
        episode.reset({"task": task.name})
        for call in task.solution:
            await asyncio.to_thread(episode.call, call["name"], call["args"])
        return episode.call("finish", {"answer": "Done."})[2]

    async def play_all():
        return await asyncio.gather(*(play(number) for number in range(200)))

    assert asyncio.run(play_all()) == [1.0] * 200
