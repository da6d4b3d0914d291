"""The suite `tau`: recorded conversations through the graph."""

from __future__ import annotations

import json

from evals.suites.tau import conversation_of, replay
from gecko_graph import GeckoContext, Toolkit
from gecko_graph.models.recorded import RecordedModel


def test_a_wrong_refusal_is_noticed(shared_data, read_jsonl):
    airline = Toolkit.from_tools(json.loads((shared_data / "tau_tools.json").read_text())["airline"])
    talks = map(conversation_of, read_jsonl("tau_airline_gpt4o.jsonl.gz"))
    talk = next(each for each in talks if any(call.name == "search_direct_flight" for call in each.calls))
    model = RecordedModel(turns=[{"validator": [{"problems": [{"argument": "date", "problem": "no such day"}]}]}])
    told = replay(talk, airline, models={"validator": model}, context=GeckoContext(max_retries=0, seed=1))
    assert len(told["refused"]) + len(told["differing"]) >= 1
    assert told["usage"]["validator"]["calls"] >= 1
