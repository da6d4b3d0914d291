"""Supposed facts: found again for the same read in the same state, told within a budget."""

import json
from types import SimpleNamespace

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoContext, Tool, Toolkit
from gecko_graph.models.memory import real_results
from gecko_graph.values.digest import digest
from gecko_graph.world.commit import commit
from gecko_graph.world.model import fact_key, format_facts, is_touched, real_facts
from gecko_graph.world.reducers import gather_facts
from tests import desk

EMPTY = digest({})
RATE = {"id": "9", "name": "rate", "args": {}}


def fact(tool="rate", args=None, result=1, where=EMPTY):
    return {"tool": tool, "args": args or {}, "status": "ok", "result": result, "rung": "model", "digest": where}


def test_facts_are_told_within_the_budget_the_tool_s_own_and_what_speaks_of_the_arguments_first():
    facts = [fact("other", {"n": n}, "x" * 50) for n in range(100)] + [fact("rate", {"currency": "EUR"}, 1.25)]
    told = format_facts(facts, call=RATE, state={}, budget=1_000)
    assert len(told) <= 1_000
    lines = told.splitlines()
    assert json.loads(lines[0]) == {"call": {"name": "rate", "args": {"currency": "EUR"}}, "result": 1.25}
    assert len(lines) > 5
    flights = [{"id": f"F-{n:03}", "price": 100 + n, "note": "x" * 80} for n in range(50)]
    facts = [fact("book", {"flight": f"G-{n}"}, "booked") for n in range(40)] + [fact("find", {"to": "Oslo"}, flights)]
    booking = {"id": "9", "name": "book", "args": {"flight": "F-027", "seats": [None, True, 2]}}
    told = format_facts(facts, call=booking, state={}, budget=1_500)
    assert len(told) <= 1_500
    first, second = told.splitlines()[:2]
    assert [part in first for part in ('"id": "F-027"', '"price": 127', '"price": 128')] == [True, True, False]
    assert '"name": "book"' in second


def test_what_was_supposed_before_a_write_is_marked_and_gives_way_to_a_later_answer():
    """After filling the tank the model went on from a fact that said 0.0."""
    empty, full = {"car": {"fuel": 0.0}}, {"car": {"fuel": 50.0}}
    fuel = fact("fuel", result={"fuel": 0.0}) | {"digest": digest(empty)}
    other = fact("tyres", result={"bar": 2.1}) | {"digest": digest(full)}
    told = [json.loads(line) for line in format_facts([fuel, other], call=RATE, state=full, budget=1_000).splitlines()]
    assert [each.get("before_a_change") for each in told] == [None, True]
    again = gather_facts({"a": fuel}, [{"b": fuel | {"digest": digest(full), "result": {"fuel": 50.0}}}])
    lines = format_facts(again.values(), call=RATE, state=full, budget=1_000).splitlines()
    assert [json.loads(line)["result"] for line in lines] == [{"fuel": 50.0}]


def test_the_next_round_meets_the_same_invented_world():
    rate = desk.function("rate", "Rate of a currency.", "currency")
    tools = Toolkit.from_tools([Tool(rate, effect="read")])
    read = [{"call": "rate", "args": {"currency": "EUR"}}, {"say": "Read."}]
    turns = [{"planner": [read] * 4, "simulator": [{"status": "ok", "result": number} for number in (1.25, 7, 8, 9)]}]
    context = GeckoContext(parallel_attempts=2, max_retries=1)
    run = desk.gecko(tools=tools, turns=turns, context=context).invoke(desk.inputs())
    attempts = run["rehearsal"]["attempts"]
    assert [attempt["steps"][0]["outcome"]["result"] for attempt in attempts] == [1.25] * 4
    assert [attempt["usage"].get("simulator", {}).get("calls", 0) for attempt in attempts] == [1, 1, 0, 0]
    assert "rate" not in str(run["task_state"]), "what was supposed never enters the task state"


def test_a_later_turn_is_answered_from_what_its_changes_have_not_touched():
    look = desk.function("zip_of", "Zip code of a city.", "city")
    paint = desk.function("paint", "Paint the wall.", "colour")
    tools = Toolkit.from_tools([Tool(look, effect="read"), Tool(paint, effect="write")])
    read, write = {"call": "zip_of", "args": {"city": "Rivermist"}}, {"call": "paint", "args": {"colour": "red"}}
    painted = {"status": "ok", "result": None, "patch": [{"op": "add", "path": "/wall", "value": "red"}]}
    first = {
        "planner": [[read, write, {"say": "Done."}]],
        "simulator": [{"status": "ok", "result": {"code": "83214"}}, painted],
    }
    gecko = desk.gecko(
        tools=tools, turns=[first, {"planner": [[read, {"say": "83214."}]]}], checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": "1"}}
    red = {"id": "red", "description": "the wall is red", "check": "state.wall == 'red'"}
    given = {"messages": [("user", "Paint the wall red.")], "task_state": {"doors": 2}, "checklist": [red]}
    assert gecko.invoke(given, config)["task_state"]["wall"] == "red"
    out = gecko.invoke({"messages": [("user", "The zip code of Rivermist?")]}, config)
    (step,) = out["rehearsal"]["attempts"][0]["steps"]
    assert step["outcome"]["result"] == {"code": "83214"}
    assert "simulator" not in out["rehearsal"]["attempts"][0]["usage"]


def test_what_real_calls_have_shown_is_a_fact_of_the_state_they_left_and_what_is_simulated_is_none():
    def step(result, *, simulated=False, patch=()):
        outcome = {"result": result, "simulated": simulated, "patch": list(patch), "status": "ok"}
        return {"call": RATE | {"args": {"n": result}}, "outcome": outcome}

    change = [{"op": "add", "path": "/rates", "value": 1}]
    steps = [step(1), step(2, patch=change), step(3), step(4, simulated=True)]
    old = fact("rate", result=0)
    found = real_facts(SimpleNamespace(before={}, state={"rates": 1}, steps=steps, earlier=[old]))
    now = digest({"rates": 1})
    assert [(each["result"], each["digest"]) for each in found] == [(0, ""), (1, ""), (2, now), (3, now)]
    harmless = [{"op": "add", "path": "/walls", "value": "red"}]
    found = real_facts(
        SimpleNamespace(before={}, state={"walls": "red"}, steps=[step(1), step(2, patch=harmless)], earlier=[])
    )
    assert [each["digest"] for each in found] == [digest({"walls": "red"})] * 2


PARKED = {
    "car": {"fuelLevel": 10.5, "doors": {"driver": "unlocked"}},
    "cwd": "temp",
    "orders": {"12": {"status": "open"}},
}


@pytest.mark.parametrize(
    ("change", "touched"),
    [
        ("/car/fuelLevel", {"displayCarStatus", "pwd_with_level"}),
        ("/car/doors/driver", {"displayCarStatus", "list_doors"}),
        ("/cwd", {"pwd"}),
        ("/orders/12/status", {"displayCarStatus", "get_order", "order_count"}),
        ("/colour", set()),
    ],
)
def test_a_change_touches_what_names_it_or_holds_the_value_that_goes_and_nothing_else(change, touched):
    """Zip codes were told as of before a change when the tank was filled."""
    facts = [
        fact("displayCarStatus", {"option": "fuel"}, {"status": {"level_now": 3.0}}),
        fact("pwd_with_level", result={"at": "home"}),
        fact("list_doors", result=["front"]),
        fact("pwd", result={"current": "/alex/temp"}),
        fact("get_order", {"id": 12}, {"total": 9.5}),
        fact("order_count", result={"count": 1}),
        fact("get_zipcode", {"city": "Rivermist"}, {"zipcode": "83214"}),
    ]
    patch = [{"op": "replace", "path": change, "value": "new"}]
    assert {each["tool"] for each in facts if is_touched(each, patch, PARKED)} == touched
    assert is_touched(fact("can_drive", result={"can": False}), patch, PARKED), "it may be worked out from anything"


def test_what_a_change_does_not_touch_is_told_without_a_mark_and_only_codes_answer_an_equal_call(question):
    """By rule: a zip code is none that may have been worked out from the state, as a price or a word may."""
    results = {
        "zip": {"code": "83214"},
        "fuel": {"litres": 10.5},
        "price": {"eur": 4.5},
        "mood": "good",
        "stops": ["OSL", "B-7"],
    }
    held = {
        tool: {**fact(tool, {"city": "Oslo"}, result), "digest": digest(PARKED)} for tool, result in results.items()
    }
    more = {"effect": "write", "has_simulator": True, "args": {}, "given": PARKED, "facts": held}
    patch = [{"op": "replace", "path": "/car/fuelLevel", "value": 50.0}]
    outcome = {"status": "ok", "result": None, "patch": patch, "rung": "model", "simulated": True, "passed": []}
    done = commit(question(**more), outcome)
    facts = gather_facts(held, [done.facts])
    lines = map(json.loads, format_facts(facts.values(), call=RATE, state=done.state, budget=1_000).splitlines())
    assert {each["call"]["name"] for each in lines if each.get("before_a_change")} == {"fuel"}
    by_rule = {
        tool
        for tool in held
        if fact_key({"id": "", "name": tool, "args": {"city": "Oslo"}}, digest(done.state)) in facts
    }
    assert by_rule == {"zip", "stops"}
    back = map(json.loads, format_facts(facts.values(), call=RATE, state=PARKED, budget=1_000).splitlines())
    assert not any("before_a_change" in each for each in back), "the next attempt begins from the same state"
    assert commit(question(**more | {"has_simulator": False}), outcome).facts == {}, "nothing where no model is asked"


def test_real_results_of_earlier_turns_hold_until_another_call_than_a_read():
    def turn(number, name):
        call = {"id": f"c{number}", "name": name, "args": {}}
        made = {"gecko": {"rung": "real"}}
        return [AIMessage("", tool_calls=[call]), ToolMessage("7", tool_call_id=f"c{number}", response_metadata=made)]

    messages = [*turn(1, "look"), *turn(2, "pay"), *turn(3, "look")]
    found = real_results(messages, reads={"look"}, now="now")
    assert [(each["tool"], each["digest"]) for each in found] == [("look", ""), ("pay", "now"), ("look", "now")]
    assert {each["digest"] for each in real_results(messages)} == {""}
