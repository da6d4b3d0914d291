"""What is not known of a write is said: a rule for which the tool may refuse it, until a real call settles it.

And what is known for real outranks the state, for all who are asked.
"""

from __future__ import annotations

import pytest
from langgraph.types import Command

from gecko_graph import GeckoContext, Models, Tool, Toolkit, create_gecko, format_run
from gecko_graph.models.memory import open_rules
from gecko_graph.testing import recorded
from gecko_graph.values.notes import notes_of
from tests.agents import APPROVE, make_agent, thread
from tests.doubts import texts
from tests.test_prompts_in_runs import Listener

RULE = "must the released brake pedal be pressed first?"
SCHEMA = {"type": "object", "properties": {}}
DONE = {"items": [{"id": "item-1", "status": "success"}]}
ITEM = {"checklist": ["the engine runs"]}
QUIET = GeckoContext(max_retries=0, semantic_validation=False)


def start_engine() -> dict:
    """Start the engine."""
    return {"engine": "runs"}


def press_pedal() -> dict:
    """Press the brake pedal."""
    return {"brake": "pressed"}


def doors() -> dict:
    """Look at the doors."""
    return {"doors": "locked"}


CAR = Toolkit.from_tools(
    [Tool(start_engine, effect="write"), Tool(press_pedal, effect="write"), Tool(doors, effect="read")]
)


def starts(rule=RULE, status="ok", **more):
    patch = [{"op": "add", "path": "/engine", "value": "on"}] if status == "ok" else []
    return {"status": status, "result": {"engine": "runs"}, "patch": patch, "may_refuse": rule, **more}


def run(*replies, tools=CAR, plan=({"call": "start_engine", "args": {}}, {"say": "It runs."}), judge=DONE, **given):
    """One rehearsal, and the prompts by role."""
    model = Listener(turns=[{"planner": [[*plan]], "simulator": [*replies], "judge": [judge]}] * 2)
    state = {"engine": "off", "runtime_state": {}}
    told = {"messages": [("user", "Start the engine")], "task_state": state, **ITEM, **given}
    gecko = create_gecko(tools, model=Models(**dict.fromkeys(("planner", "simulator", "judge"), model)), context=QUIET)
    out = gecko.invoke(told)
    return out, ["\n".join(each.text for each in messages) for _, messages in model.heard]


def prompt_of(seen, start):
    return next(text for text in seen if start in text)


def test_the_rule_is_in_the_verdict_and_neither_planner_nor_judge_sees_it():
    out, seen = run(starts())
    verdict, (step,) = out["rehearsal"]["verdict"], out["rehearsal"]["attempts"][0]["steps"]
    assert texts(step["outcome"], "may_refuse") == [RULE]
    assert [each["data"] for each in notes_of(verdict, "may_refuse")] == [
        {"call": step["call"]["id"], "tool": "start_engine", "rule": RULE}
    ]
    assert verdict["status"] == "accepted"
    assert f"may be refused: start_engine: {RULE}" in str(format_run(out))
    assert sum(RULE in text for text in seen) == 0
    asked = prompt_of(seen, "You stand in for a tool")
    assert "may_refuse: " in asked
    assert '"other writes": "press_pedal"' in asked
    assert "Start the engine\n" not in asked  # the task: shown it, a model confirms what the user claims


@pytest.mark.parametrize("rule", [None, 7, "", "none.", ["  "], {"a": 1}])
def test_a_rule_that_is_none_or_no_text_is_nothing(rule):
    out, _ = run(starts(rule))
    assert not notes_of(out["rehearsal"]["attempts"][0]["steps"][0]["outcome"], "may_refuse")
    assert texts(out["rehearsal"]["verdict"], "may_refuse") == []


NOTHING_KNOWN = {"requires": [{"id": "forms-1", "check": "False", "pass": "outside of what was seen"}]}
ONE_RULE = [{"check": "True", "error": "e"}]


@pytest.mark.parametrize(
    ("effect", "contract", "patch"),
    [
        (None, None, []),  # of unknown effect, and it changes nothing
        ("write", NOTHING_KNOWN, None),
        ("write", {"requires": [*ONE_RULE, {"check": "False", "pass": "who knows"}]}, None),
        ("write", {"ensures": ONE_RULE}, None),
        ("write", {"requires": [{**ONE_RULE[0], "evidence": {"status": "established"}}]}, None),
    ],
)
def test_a_rule_is_kept_where_no_contract_states_the_conditions_of_the_call(effect, contract, patch):
    spec = {"name": "start_engine", "description": "Start.", "parameters": SCHEMA}
    tools = Toolkit.from_tools([Tool(spec, effect=effect, contract=contract)])
    more = {} if patch is None else {"patch": patch, "unchanged": True}
    out, seen = run({**starts(), **more}, tools=tools)
    assert "may_refuse: " in prompt_of(seen, "You stand in for a tool")
    assert texts(out["rehearsal"]["verdict"], "may_refuse") == [RULE]


def test_it_stays_with_the_thread_until_a_real_call_settles_it():
    first, _ = run(starts())
    again, _ = run(starts(""), messages=[*first["messages"], ("user", "Start the engine again")])
    assert texts(again["rehearsal"]["verdict"], "may_refuse") == [RULE]
    assert open_rules(again["messages"]) == {"start_engine": [RULE]}
    plan = [{"call": "start_engine", "args": {}}, {"say": "It runs."}, {"say": "It runs."}]
    model = recorded(planner=[plan], simulator=[starts()], judge=[DONE])
    agent = make_agent(CAR, model=model, context=QUIET, interrupt_on="writes")
    given = {"messages": [("user", "Start the engine")], "task_state": {"engine": "off", "runtime_state": {}}, **ITEM}
    asked = agent.invoke(given, thread())["__interrupt__"][0].value
    assert f"- may be refused: {RULE}" in asked["action_requests"][0]["description"]
    done = agent.invoke(Command(resume={"decisions": [APPROVE]}), thread())
    assert open_rules(done["messages"]) == {}


def test_forged_metadata_hold_no_rules():
    first, _ = run(starts())
    for forged in ("x", [1], [{"kind": "may_refuse", "data": {"tool": 3, "rule": "a"}}], {"data": {}}):
        answer = first["messages"][-1].model_copy(deep=True)
        answer.response_metadata["gecko"]["notes"] = forged
        assert open_rules([answer]) == {}
