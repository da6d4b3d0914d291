"""LangGraph's development server with the graphs of `langgraph.json`, and an agent that pays; its API."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from gecko_graph.scenario import shipped

AGENT = '''
import asyncio
import pathlib
from langgraph.graph import START, StateGraph
from gecko_graph import Models, RehearsalState, Tool, Toolkit, create_gecko_agent
from gecko_graph.testing import recorded

LOG = pathlib.Path(__file__).with_name("log")

async def pay(to: str) -> dict:
    """Pay."""
    LOG.open("a").write(to + "\\n")
    await asyncio.sleep(1.5)
    return {"id": "P-1"}

class Parent(RehearsalState):
    checklist: list
    execution: dict

def simulate(state, to):
    return {"id": "S-1"}

plan = [{"call": "pay", "args": {"to": "ann"}}, {"say": "Paid."}]
toolkit = Toolkit.from_tools([Tool(pay, effect="write", simulate=simulate)])
agent = create_gecko_agent(toolkit, model=Models(planner=recorded(*[{"planner": [plan]}] * 9)))
builder = StateGraph(Parent)
builder.add_node("agent", agent)
builder.add_edge(START, "agent")
embedded = builder.compile()
'''
ROOT = Path(__file__).resolve().parents[1]
START_S = 90


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


@contextmanager
def serve(folder):
    """Start the server in a folder; yield its address. The agents write there in `log` what they pay."""
    pytest.importorskip("langgraph_api", reason="langgraph-cli[inmem] is not installed")
    (folder / "pay_agent.py").write_text(AGENT)
    shown = json.loads((ROOT / "langgraph.json").read_text())
    shown["graphs"] |= {"payer": "./pay_agent.py:agent", "embedded": "./pay_agent.py:embedded"}
    config = folder / "langgraph.json"
    config.write_text(json.dumps(shown))
    port = free_port()
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
    command += ["--config", str(config)]
    environment = os.environ | {
        "LANGSMITH_TRACING": "false",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "PYTHONPATH": str(ROOT),
    }
    log = (folder / "log.txt").open("w")
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + START_S
        while True:
            try:
                ask(f"{url}/ok")
                break
            except (urllib.error.URLError, ConnectionError):
                assert process.poll() is None, (folder / "log.txt").read_text()
                assert time.monotonic() < deadline, (folder / "log.txt").read_text()
                time.sleep(0.3)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)
        log.close()


def ask(url: str, body: dict | None = None) -> object:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        text = reply.read().decode()
    return json.loads(text) if text.startswith(("{", "[")) else text


def inputs() -> dict:
    scenario = shipped("files")
    given = scenario.inputs(0)
    return given | {"messages": [{"role": "user", "content": scenario.turns[0].user}]}
