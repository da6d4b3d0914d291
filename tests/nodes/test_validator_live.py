"""validator on a strong model's recorded questions: which of them a rule would not have asked any more.

A question is put beside the planner's reply that made the call: what the planner had before it are the results and the
conversation. Where there is none (single calls of the validation suite) the task is all there was.
"""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from gecko_graph import GeckoContext, Toolkit
from gecko_graph.models.node import NodeScope
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.world.check import validator

SCOPE = NodeScope(GeckoContext(), lambda event: None, lambda role: True)


@pytest.fixture(scope="module")
def rows(read_jsonl):
    return read_jsonl("live_replies.jsonl.gz")


def block(text, label):
    return re.search(rf"<({label}-[0-9a-f]+)>\n(.*?)\n</\1>", text, re.DOTALL)[2]


def source_of(row, call, task, planners):
    """What the planner saw last before it made the call of a question; None for a single call."""
    made = [
        each["request"]["messages"]
        for each in planners
        if each["n"] < row["n"]
        and [call["name"], call["args"]] in (each["reply"].get("calls") or [])
        and any(m["role"] == "user" and m["content"].startswith(task[:60]) for m in each["request"]["messages"])
    ]
    return made[-1] if made else None


def state_of(call, task, seen):
    steps, conversation = [], []
    for message in seen:
        if message["role"] == "tool":
            failed = "error" in message["content"][:12]
            outcome = {"status": "error" if failed else "ok", "result": message["content"], "rung": "python"}
            steps.append({"v": 1, "call": {"id": "s", "name": "seen", "args": {}}, "outcome": outcome})
        elif message["role"] == "user":
            conversation.append(HumanMessage(message["content"]))
        elif message["role"] == "assistant" and message["content"]:
            conversation.append(AIMessage(message["content"]))
    return {"pending": [call], "task": task, "number": 1, "turn": 0, "steps": steps, "conversation": conversation}


def question_of(row):
    text = row["request"]["messages"][1]["content"]
    told = json.loads(block(text, "tool"))
    whole = {name: told["parameters"].get(name, {}) for name in ("properties", "required")}
    properties = whole["properties"] | {name: {} for name in whole["required"] if name not in whole["properties"]}
    parameters = {"type": "object", "properties": properties, "required": list(whole["required"] or [])}
    args = json.loads(block(text, "call"))
    for name in args.keys() - properties.keys():  # its schema was cut: a rule has decided it
        properties[name], parameters["required"] = {"enum": [args[name]]}, [*parameters["required"], name]
    spec = ToolSpec(name=told["name"], description=told.get("description", ""), parameters=parameters)
    return spec, {"id": "c", "name": told["name"], "args": args}, block(text, "task")


def test_three_quarters_of_the_questions_in_conversations_are_not_asked_any_more(rows):
    planners = [row for row in rows if row["role"] == "planner"]
    counted: Counter[tuple[str, bool]] = Counter()
    refused = []
    for row in (row for row in rows if row["role"] == "validator"):
        spec, call, task = question_of(row)
        seen = source_of(row, call, task, planners)
        state = state_of(call, task, seen or [])
        asked = next(validator(state, SCOPE, toolkit=Toolkit([spec])), None) is not None
        counted["conversation" if seen else "single", asked] += 1
        if row["reply"]["json"]["problems"]:
            refused.append((call["name"], asked))
    assert sum(counted.values()) == 214
    assert (counted["conversation", False], counted["conversation", True]) == (134, 20)
    assert ("set_navigation", True) not in refused, "a tool had returned the address that was refused"
    assert sum(asked for name, asked in refused if name != "set_navigation") >= 5, "of six detections"
