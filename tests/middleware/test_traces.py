"""What a tracer is given of the middleware's hooks."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain_core.tracers import BaseTracer
from langgraph.types import TracePolicy

from gecko_graph import Tool, Toolkit
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.testing import scripted

SECRET = "Zq12Cd34Ef56"


class Tracer(BaseTracer):
    """Keeps what the runs of the middleware are given and give."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: Counter[str] = Counter()
        self.hooks = ""
        self.tools: list[Any] = []

    def _persist_run(self, run: Any) -> None:
        pass

    def _end_trace(self, run: Any) -> None:
        super()._end_trace(run)
        if run.run_type == "tool":
            self.tools.append((run.name, [tag for tag in run.tags if ":step:" not in tag], run.outputs))
        text = json.dumps([run.inputs, run.outputs], default=str)
        self.sizes[run.name.split(".")[0]] += len(text)
        if run.name.startswith("GeckoMiddleware"):
            self.hooks += text


def login(password: str) -> dict:
    """Log in."""
    return {"ok": True}


def trace(mode: Any = "guard", **more: Any) -> Tracer:
    toolkit = Toolkit.from_tools([Tool(login, effect="write", contract={"returns": {"ok": True}})])
    middleware = GeckoMiddleware(toolkit, mode=mode, state={"rows": ["x" * 90] * 1_000}, **more)
    agent = create_agent(
        scripted(*[{"call": "login", "args": {"password": SECRET}}] * 5, {"say": "Done."}),
        toolkit.as_tools(),
        middleware=[middleware],
    )
    tracer = Tracer()
    agent.invoke({"messages": [("user", "log in")]}, {"callbacks": [tracer]})
    return tracer


def test_payloads_are_left_out():
    traced = trace()
    assert traced.sizes["GeckoMiddleware"] < 1_000
    assert sum(traced.sizes.values()) < 1_400_000, "the model's node alone keeps the state: LangChain's own"
    assert SECRET not in traced.hooks


def test_another_policy_keeps_them_masked():
    traced = trace(trace_policy=TracePolicy())
    assert traced.sizes["GeckoMiddleware"] > 1_000_000
    assert SECRET not in traced.hooks
    own = TracePolicy(process_inputs=lambda given: {"number": len(given["messages"]), "token": SECRET})
    assert SECRET not in trace(trace_policy=own).hooks


def test_none_is_the_process_own_policy():
    assert SECRET in trace(trace_policy=None).hooks


def test_simulated_calls_are_tool_runs_tagged_with_their_rung():
    assert trace().tools[0][:2] == ("login", []), "a real call is LangChain's own run"
    told = trace("simulate").tools
    assert [(name, tags) for name, tags, _ in told] == [("login", ["rung:contract", "simulated"])] * 5
    assert told[0][2] == {"output": {"status": "ok", "result": {"ok": True}}}
    assert SECRET not in trace("simulate").hooks
