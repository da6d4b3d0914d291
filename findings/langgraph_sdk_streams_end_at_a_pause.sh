#!/usr/bin/env bash
# langgraph-sdk 0.4.14 (langgraph 1.2.24, langgraph-api 0.16.7): a run that pauses by `interrupt` ends a client's streams
# at once, with whatever they have not read yet. The client's watcher learns of the pause on a connection of its own and
# closes all subscriptions, so `for event in thread.subscribe(...)` ends early, without an error. Surprising: the server
# has sent all 51 events before the pause, and has them still; the client delivers from 0 to 51 of them, another number
# each time. Beside that, `thread.interrupts[0]["value"]` is None, though the event `input.requested` holds the question as
# `payload`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q langgraph==1.2.24 langgraph-api==0.16.7 "langgraph-cli[inmem]==0.4.40" langgraph-sdk==0.4.14 httpx
echo '{"dependencies": ["."], "graphs": {"g": "./g.py:graph"}}' > langgraph.json
cat > g.py <<'PY'
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.stream import CustomTransformer
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    n: int


def tell(state):
    for number in range(51):
        get_stream_writer()({"number": number})
    return {"n": 51}


def ask(state):
    return {"n": interrupt("go on?")}


builder = StateGraph(State)
builder.add_node("tell", tell)
builder.add_node("ask", ask)
builder.add_edge(START, "tell")
builder.add_edge("tell", "ask")
graph = builder.compile()


def stream_transformers():
    return [CustomTransformer]
PY
cat > show.py <<'PY'
import json
import os
import socket
import subprocess
import sys
import time

import httpx
from langgraph_sdk import get_sync_client

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
url = f"http://127.0.0.1:{port}"
command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
environment = {**os.environ, "LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"}
with open("log.txt", "w") as log:
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
try:
    for _ in range(300):
        try:
            httpx.get(f"{url}/ok")
            break
        except httpx.TransportError:
            time.sleep(0.3)
    rows = []
    for _ in range(12):
        with get_sync_client(url=url).threads.stream(assistant_id="g") as thread:
            thread.run.start(input={"n": 0})
            read = [event for event in thread.subscribe(["custom"])]
        sent, asked = 0, {}
        given = {"channels": ["custom", "input"]}
        with httpx.stream("POST", f"{url}/threads/{thread.thread_id}/stream/events", json=given, timeout=30) as reply:
            for line in reply.iter_lines():
                event = json.loads(line[5:]) if line.startswith("data:") else {"method": ""}
                sent += event["method"] == "custom"
                if event["method"] == "input.requested":
                    asked = event["params"]["data"]
                    break
        rows.append((sent, len(read), thread.interrupts[0]["value"], asked.get("payload")))
        print("the server has %d events, the client reads %d; value %r, payload %r" % rows[-1])
finally:
    server.terminate()
    server.wait(20)
assert all(sent == 51 and value is None and payload == "go on?" for sent, _, value, payload in rows)
assert any(read < 51 for _, read, *_ in rows)
PY
venv/bin/python show.py
