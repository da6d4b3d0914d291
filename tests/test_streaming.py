"""What a notebook or Studio sees: events in order, nested state, schemas, the drawn graph."""

from __future__ import annotations

from pathlib import Path

from langchain_core.callbacks import BaseCallbackHandler

from gecko_graph.state import ROLES
from tests import desk

SNAPSHOTS = Path(__file__).parent / "snapshots"


def events(**options):
    parts = desk.gecko(desk.WRONG, desk.RIGHT).stream(
        desk.inputs(), stream_mode=["updates", "custom"], subgraphs=True, version="v2", **options
    )
    return [part["data"] for part in parts if part["type"] == "custom"]


def test_the_events_of_one_run_in_their_order():
    lines = []
    for each in events():
        call = each["call"]["name"] if "call" in each else ""
        word = each["verdict"]["status"] if "verdict" in each else ""
        lines.append(" ".join(filter(None, [str(each["attempt"]), each["type"], call, each.get("rung", ""), word])))
        assert each["v"] == 1
    told = "\n".join(lines) + "\n"
    expected = (SNAPSHOTS / "events.txt").read_text(encoding="utf-8")
    assert told == expected


def test_the_drawn_graph():
    drawn = desk.gecko(desk.RIGHT).get_graph(xray=True).draw_mermaid()
    edges = "".join(f"{line.strip()}\n" for line in drawn.splitlines() if "-->" in line or "-." in line)
    assert edges == (SNAPSHOTS / "graph.mmd").read_text(encoding="utf-8")


def test_planner_tokens_are_streamed_and_no_helper_s():
    turns = [
        {
            "planner": [desk.RIGHT],
            "checklist": [{"items": [{"description": "filed"}]}],
            "judge": [{"items": [{"id": "item-1", "status": "success"}]}],
            "validator": [{"problems": []}] * 9,
        }
    ]
    given = desk.inputs()
    del given["checklist"]
    parts = desk.gecko(turns=turns).stream(given, stream_mode="messages", subgraphs=True, version="v2")
    tags = {tag for part in parts for tag in part["data"][1].get("tags", []) if tag.startswith("gecko:")}
    assert tags == {"gecko:planner"}
    assert "planner" in ROLES


def test_who_streams_messages_without_subgraphs_sees_the_answer_and_nothing_simulated():
    parts = desk.gecko(desk.WRONG, desk.RIGHT).stream(desk.inputs(), stream_mode="messages", version="v2")
    assert [part["data"][0].text for part in parts] == ["The invoice is in bills."]


def test_the_schemas_that_studio_shows():
    gecko = desk.gecko(desk.RIGHT)
    assert set(gecko.get_input_jsonschema()["properties"]) == {"messages", "task_state", "checklist"}
    assert set(gecko.get_output_jsonschema()["properties"]) == {"messages", "rehearsal", "task_state"}
    form = gecko.get_context_jsonschema()["properties"]
    assert form["max_retries"]["default"] == 3
    assert all(knob["description"] for knob in form.values())


class Trace(BaseCallbackHandler):
    """Tool runs as a tracer sees them."""

    def __init__(self):
        self.runs = {}

    def on_tool_start(self, serialized, input_str, *, run_id, parent_run_id, tags, inputs, **kwargs):
        assert parent_run_id is not None
        self.runs[run_id] = [serialized["name"], inputs, tags]

    def on_tool_end(self, output, *, run_id, **kwargs):
        self.runs[run_id].append(output)


def told_of(step):
    call, outcome = step["call"], step["outcome"]
    ended = {key: outcome[key] for key in ("status", "result")}
    return [call["name"], call["args"], [f"rung:{outcome['rung']}", "simulated"], ended]


async def test_simulated_calls_are_tool_runs_in_a_trace_tagged_with_their_rung():
    trace, gecko = Trace(), desk.gecko(desk.WRONG, desk.RIGHT)
    rehearsal = (await gecko.ainvoke(desk.inputs(), {"callbacks": [trace]}))["rehearsal"]
    told = [told_of(step) for each in rehearsal["attempts"] for step in each["steps"] if "outcome" in step]
    found = [
        [name, args, [tag for tag in tags if ":step:" not in tag], out] for name, args, tags, out in trace.runs.values()
    ]
    assert found == told
    assert told
