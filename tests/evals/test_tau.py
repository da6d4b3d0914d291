"""The suite `tau`: recorded conversations through the graph."""

from __future__ import annotations

import json

import pytest

from evals.harness.options import read_jsonl
from evals.suites.tau import conversation_of, replay
from gecko_graph import GeckoContext, Toolkit
from gecko_graph.models.recorded import RecordedModel

CONTEXT = GeckoContext(max_retries=0)


@pytest.fixture(scope="module")
def airline(shared_data):
    return Toolkit.from_tools(json.loads((shared_data / "tau_tools.json").read_text())["airline"])


@pytest.fixture(scope="module")
def conversations(shared_data):
    return [conversation_of(row) for row in read_jsonl(shared_data / "tau_airline_gpt4o.jsonl.gz")]


def busiest(conversations):
    return max(conversations, key=lambda each: sum(not call.succeeded for call in each.calls))


def test_real_errors_are_errors_and_change_nothing(conversations, airline):
    told = replay(busiest(conversations), airline, models={}, context=CONTEXT)
    assert told["failed"] > 1
    assert told["refused"] == told["refused_failed"] == told["differing"] == []
    assert told["records"] == told["held"] > 0


def test_a_wrong_refusal_is_noticed(conversations, airline):
    conversation = next(each for each in conversations if any(c.name == "search_direct_flight" for c in each.calls))
    model = RecordedModel(turns=[{"validator": [{"problems": [{"argument": "date", "problem": "no such day"}]}]}])
    told = replay(conversation, airline, models={"validator": model}, context=CONTEXT.model_copy(update={"seed": 1}))
    assert len(told["refused"]) + len(told["differing"]) >= 1
    assert told["usage"]["validator"]["calls"] >= 1
