"""The typed streams over LangGraph's server: its Python and JavaScript clients read what a run in this process tells.

The JavaScript client is tried where `GECKO_NODE_MODULES` names the `node_modules` that has `@langchain/langgraph-sdk`.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import httpx
import pytest

from gecko_graph import create_gecko
from gecko_graph.scenario import shipped
from tests.studio import ask, inputs
from tests.test_stream import NAMES, read

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:The v3 streaming protocol")]
sdk = pytest.importorskip("langgraph_sdk")


@pytest.fixture(scope="module")
def here() -> list[Any]:
    """What a run of the same scenario in this process tells, as JSON."""
    case = shipped("files")
    told = read(create_gecko(case.tools, model=case.models()), case.inputs())
    return json.loads(json.dumps([[name, without_times(item)] for name, item in told]))


def without_times(item: Any) -> Any:
    """An item without what no two runs share: the ids of messages."""
    return json.loads(
        json.dumps(item, default=str), object_hook=lambda each: each | ({"path": ""} if "kind" in each else {})
    )


def test_the_python_client(studio, here):
    client = sdk.get_sync_client(url=studio)
    with client.threads.stream(assistant_id="gecko") as thread:
        thread.run.start(input=inputs())
        told = [[name, without_times(item["payload"])] for name, item in thread.interleave_projections([*NAMES])]
    assert told == here
    with client.threads.stream(assistant_id="toolgate") as thread:
        thread.run.start(input={"messages": [{"role": "user", "content": "go on"}]})
        assert [item["payload"]["call"]["name"] for item in thread.extensions["steps"]] == ["cd", "mkdir", "mv", "ls"]


def test_an_agent_s_question_comes_before_the_run_pauses(studio):
    thread = f"{studio}/threads/{ask(f'{studio}/threads', {})['thread_id']}"
    given = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "go on"}]}}
    ask(f"{thread}/commands", {"id": 1, "method": "run.start", "params": given})
    kinds = []
    channels = {"channels": ["custom:questions", "custom:rehearsals", "input"]}
    with httpx.stream("POST", f"{thread}/stream/events", json=channels, timeout=60) as reply:
        for line in reply.iter_lines():
            if not line.startswith("data:"):
                continue
            event = json.loads(line.removeprefix("data:"))
            kinds.append((event["method"], event["params"]["data"].get("name")))
            if event["method"] == "input.requested":
                break
    assert kinds == [("custom", "rehearsals"), ("custom", "questions"), ("input.requested", None)]


SCRIPT = """
import { createRequire } from "module";
const [url, modules, inputs, ...names] = process.argv.slice(2);
const { Client } = createRequire(modules + "/")("@langchain/langgraph-sdk");
const thread = new Client({ apiUrl: url }).threads.stream({ assistantId: "gecko" });
const told = [];
const readers = names.map(async (name) => {
  for await (const item of thread.extensions[name]) told.push([name, item]);
});
await thread.submitRun({ input: JSON.parse(inputs) });
await Promise.all(readers);
console.log(JSON.stringify(told));
process.exit(0);
"""


@pytest.mark.skipif("GECKO_NODE_MODULES" not in os.environ, reason="GECKO_NODE_MODULES names no folder")
def test_the_javascript_client(studio, here, tmp_path):
    script = tmp_path / "read.mjs"
    script.write_text(SCRIPT)
    given = [studio, os.environ["GECKO_NODE_MODULES"], json.dumps(inputs()), *NAMES]
    done = subprocess.run(["node", script, *given], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told = [[name, without_times(item)] for name, item in json.loads(done.stdout)]
    for name in NAMES:
        assert [item for each, item in told if each == name] == [item for each, item in here if each == name]
