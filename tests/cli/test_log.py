"""`--log FILE`: every prompt and reply as JSON lines, masked, as they happen."""

import asyncio
import json

import pytest

from gecko_graph import GeckoError, PromptLog
from gecko_graph.scenario import shipped
from tests.cli.command import FILES, SHOP_API

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


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
    words = ("run", SHOP_API, "--task", f"Buy tea: {KEY}", "--model", "openai:any", "--base-url", server.url)
    log = tmp_path / "log.jsonl"
    assert run(*words, "--log", log)[0] == 3
    assert KEY not in log.read_text()
    assert any("Incorrect API key" in line.get("error", "") for line in read(log))
    assert {line["model"] for line in read(log) if line["event"] == "prompt"} == {"any"}


def test_the_library_takes_the_log_as_a_callback(tmp_path):
    scenario = shipped("shop")
    config = {"callbacks": [PromptLog(tmp_path / "log.jsonl")]}
    asyncio.run(scenario.gecko().ainvoke(scenario.inputs(), config))
    assert {line["event"] for line in read(tmp_path / "log.jsonl")} == {"prompt", "reply"}
    with pytest.raises(GeckoError, match="cannot be written"):
        PromptLog(tmp_path / "none" / "log.jsonl")
