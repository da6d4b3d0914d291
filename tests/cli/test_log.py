"""`--log FILE`: every prompt and reply as JSON lines, masked, as they happen."""

from __future__ import annotations

import asyncio
import json

import pytest
from langchain_core.messages import AIMessage

from gecko_graph import GeckoContext, GeckoError, PromptLog, create_gecko
from gecko_graph.scenario import shipped
from tests import desk
from tests.cli.command import FILES, SHOP_API, mistake
from tests.models.test_garbage import Saying

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


def nested(levels):
    value = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def read(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_every_prompt_and_reply_is_logged_in_order(run, tmp_path):
    log = tmp_path / "log.jsonl"
    assert run("run", FILES, "--log", log)[0] == 0
    lines = read(log)
    assert [line["event"] for line in lines] == ["prompt", "reply"] * (len(lines) // 2)
    assert all(prompt["id"] == reply["id"] for prompt, reply in zip(lines[::2], lines[1::2], strict=True))
    planner = [line for line in lines if line["role"] == "planner"]
    assert {line["attempt"] for line in planner} == {1, 2}
    first, reply = planner[:2]
    assert [tool["function"]["name"] for tool in first["tools"]][:2] == ["pwd", "ls"]
    assert all(line["tools_of"] == first["id"] for line in planner[2::2]), "tools are written once"
    assert first["messages"][-1] == {"type": "human", "content": shipped("files").turns[0].user}
    assert reply["reply"][0]["tool_calls"][0]["name"] == "mkdir"
    assert reply["tokens"]["input"] > 0
    assert reply["ms"] >= 0
    assert run("run", FILES, "--log", log)[0] == 0
    assert len(read(log)) == 2 * len(lines), "a log is appended to"


def test_a_live_models_errors_are_logged_and_secrets_are_masked(run, server, tmp_path):
    server.fails = (401, b'{"error": {"message": "Incorrect API key provided: %s"}}' % KEY.encode())
    words = (
        "run",
        SHOP_API,
        "--task",
        f"Buy tea, my token is {KEY}",
        "--model",
        "openai:any",
        "--base-url",
        server.url,
    )
    log = tmp_path / "log.jsonl"
    assert run(*words, "--log", log)[0] == 3
    assert KEY not in log.read_text()
    assert any("Incorrect API key" in line.get("error", "") for line in read(log))
    assert {line["model"] for line in read(log) if line["event"] == "prompt"} == {"any"}


@pytest.mark.parametrize(
    "odd",
    [
        {"usage_metadata": {"input_tokens": None, "output_tokens": 3, "total_tokens": 3}},
        {"tool_calls": [{"name": "look", "args": {("a", 1): 2, KEY: 3}, "id": "1", "type": "tool_call"}]},
        {"tool_calls": [{"name": "look", "args": nested(900), "id": "1", "type": "tool_call"}]},
    ],
)
def test_a_reply_that_no_client_should_make_has_its_line(tmp_path, odd):
    log = tmp_path / "log.jsonl"
    gecko = create_gecko(desk.toolkit(), model=Saying(said=AIMessage("hello").model_copy(update=odd)))
    gecko.invoke(desk.inputs(), {"callbacks": [PromptLog(log)]}, context=GeckoContext(max_retries=0))
    events = [line["event"] for line in read(log)]
    assert events.count("prompt") == events.count("reply") > 0
    assert KEY not in log.read_text()


def test_an_interrupted_run_leaves_whole_lines(run, interrupt, tmp_path):
    interrupt(4)
    assert run("run", FILES, "--log", tmp_path / "log.jsonl")[0] == 130
    lines = read(tmp_path / "log.jsonl")
    assert len([line for line in lines if line["event"] == "prompt"]) == 4


def test_a_log_that_cannot_be_written_is_a_mistake(run, tmp_path):
    message = mistake(run("run", FILES, "--log", tmp_path))
    assert all(part in message for part in (str(tmp_path), "--log", "is a folder"))
    assert "is the same file as" in mistake(run("run", FILES, "--log", FILES))


def test_the_library_takes_the_log_as_a_callback(tmp_path):
    scenario = shipped("shop")
    config = {"callbacks": [PromptLog(tmp_path / "log.jsonl")]}
    asyncio.run(scenario.gecko().ainvoke(scenario.inputs(), config))
    assert {line["event"] for line in read(tmp_path / "log.jsonl")} == {"prompt", "reply"}
    with pytest.raises(GeckoError, match="cannot be written"):
        PromptLog(tmp_path / "none" / "log.jsonl")
