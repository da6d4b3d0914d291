"""A conversation as a graph: whoever is addressed speaks next, and each message is in the checkpoints."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoError, Models, Scenario, create_conversation
from gecko_graph.conversation.channels import address, read_envelope
from gecko_graph.errors import ScenarioError
from gecko_graph.testing import failing, recorded, scripted

pytest.importorskip("scipy")


def parameters(**kinds):
    properties = {key: {"type": kind} for key, kind in kinds.items()}
    return {"type": "object", "properties": properties, "required": [*properties]}


ARGUMENTS = {"set_wifi": {"on": "boolean"}, "weather": {"city": "string"}, "note": {"text": "string"}}
TOOLS = [{"name": name, "description": name, "parameters": parameters(**takes)} for name, takes in ARGUMENTS.items()]
CONTRACTS = {
    "contracts": {
        "set_wifi": {
            "effects": [{"op": "replace", "path": ["settings", "wifi"], "value": "{{ args.on }}"}],
            "returns": {"wifi": "{{ args.on }}"},
        },
        "weather": {
            "requires": [{"check": "state.settings.wifi", "error": "no connection: wifi is off"}],
            "returns": {"sky": "sunny"},
        },
        "note": {
            "effects": [{"op": "add", "path": ["notes", "-"], "value": {"text": "{{ args.text }}"}}],
            "returns": "noted",
        },
    }
}
SCENARIO = {
    "version": 1,
    "name": "wifi-then-weather",
    "tools": TOOLS,
    "state": {"settings": {"wifi": False, "cellular": True}, "notes": [], "now": "2026-11-22T10:00"},
    "user": {
        "goal": "know the weather in Rome",
        "opening": "How is the weather in Rome?",
        "script": [{"say": "Yes, turn it on.", "when": "'wifi' in answer"}, {"end": True}],
        "must_not_say": ["It is sunny"],
    },
    "milestones": [
        {"id": "wifi", "state": {"at": "settings", "update": [{"wifi": True}]}},
        {"id": "weather", "call": {"name": "weather", "args": {"city": "Rome"}}},
        {"id": "answer", "message": {"sender": "agent", "recipient": "user", "content": "It is sunny in Rome."}},
    ],
    "minefields": [{"call": {"name": "note"}}],
}
WEATHER, WIFI = {"call": "weather", "args": {"city": "Rome"}}, {"call": "set_wifi", "args": {"on": True}}
ASK, ANSWER = {"say": "The wifi is off. May I turn it on?"}, {"say": "It is sunny in Rome."}
GOOD = (WEATHER, ASK, WIFI, WEATHER, ANSWER)


@pytest.fixture
def scenario():
    def make(**changes):
        one = Scenario.from_dict(copy.deepcopy(SCENARIO) | changes)
        return replace(one, tools=one.tools.with_contracts(CONTRACTS))

    return make


def converse(agent, scenario, thread="1", values=None, **more):
    graph = create_conversation(agent, scenario=scenario, **more)
    return graph.invoke(values or {}, {"configurable": {"thread_id": thread}, "recursion_limit": 200})


def senders(output):
    return [read_envelope(message)["sender"] for message in output["messages"]]


def factory(model):
    from langchain.agents import create_agent

    return lambda tools: create_agent(model, tools)


@pytest.mark.parametrize(
    "made", [scripted, lambda *replies: factory(scripted(*replies))], ids=["model", "create_agent"]
)
def test_a_good_agent_reaches_all_milestones(scenario, made):
    output = converse(made(*GOOD), scenario())
    assert senders(output) == ["user", "agent", "tools", "agent", "user", "agent", "tools", "agent", "tools", "agent"]
    score = output["score"]
    counts = [score[key] for key in ("similarity", "end", "turns", "calls", "failed_calls")]
    assert counts == [1.0, "ended", 10, 3, 1]
    assert [each["snapshot"] for each in score["milestones"]] == [6, 8, 9]
    assert output["world"]["state"]["settings"] == {"wifi": True, "cellular": True}
    assert output["world"]["state"]["now"] == "2026-11-22T10:01"


def test_each_message_can_be_forked_and_continued_with_another_agent(scenario):
    one, saver = scenario(), InMemorySaver()
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": 200}
    graph = create_conversation(scripted(*GOOD), scenario=one, checkpointer=saver)
    graph.invoke({}, config)
    history = [each for each in graph.get_state_history(config) if each.next]
    assert {each.next[0] for each in history} == {"__start__", "open_world", "user", "agent", "tools", "score"}
    before_last = next(each for each in history if each.next == ("agent",))
    assert before_last.values["world"]["state"]["settings"]["wifi"] is True
    other = create_conversation(scripted(*[{"say": "No idea."}] * 9), scenario=one, checkpointer=saver)
    forked = other.invoke(None, before_last.config)
    assert (forked["messages"][-1].text, len(forked["messages"])) == ("No idea.", 10)
    assert forked["score"]["similarity"] == pytest.approx(2 / 3)
    asked = next(each for each in history if each.next == ("agent",) and len(each.values["messages"]) == 5)
    edited = address(HumanMessage("No, leave it off.", id=asked.values["messages"][-1].id), "user", "agent", steps=1)
    changed = graph.update_state(asked.config, {"messages": [edited]}, as_node="user")
    assert [each.text for each in graph.invoke(None, changed)["messages"]][4] == "No, leave it off."
    assert graph.get_state(config).values["score"]["similarity"] == 1.0


def test_the_user_is_a_role_that_ends_with_its_tool(scenario):
    user = scripted({"say": "How is it in Rome?"}, {"say": "Yes."}, {"call": "end_conversation"})
    spec = {key: value for key, value in SCENARIO["user"].items() if key not in ("script", "opening")}
    output = converse(scripted(*GOOD), scenario(user=spec), user=user)
    texts = [each.text for each in output["messages"] if isinstance(each, HumanMessage)]
    assert texts == ["How is it in Rome?", "Yes."]
    assert (output["score"]["end"], output["score"]["usage"]["user"]["calls"]) == ("ended", 3)


def test_a_leak_is_found_by_rule(scenario):
    user = {**SCENARIO["user"], "script": ["IT is, sunny - right?", {"end": True}]}
    leaks = converse(scripted(*[{"say": "Hm."}, {"say": "So."}]), scenario(user=user))["score"]["leaks"]
    assert leaks == [{"message": 2, "text": "It is sunny"}]


def test_the_auditor_says_whether_the_user_was_at_fault(scenario):
    found = {"reason": "", "invented": False, "broke_instructions": True}
    output = converse(scripted(*GOOD), scenario(), model=Models(auditor=recorded(auditor=[found])))
    assert output["score"]["audit"] == {**found, "left_goal": False, "gave_away": False}


def test_calls_of_one_message_that_depend_on_each_other_race(scenario):
    both = {"calls": [WIFI, WEATHER]}
    output = converse(scripted(both, ANSWER), scenario(user={**SCENARIO["user"], "script": [{"end": True}]}))
    answers = [each for each in output["messages"] if isinstance(each, ToolMessage)]
    assert [each.text for each in answers if each.name == "weather"] == ["no connection: wifi is off"]
    assert [each.name for each in answers] == [step["call"]["name"] for step in output["world"]["log"]]
    assert [read_envelope(each)["steps"] for each in answers] == [1, 2]
    assert output["score"]["races"] == 1
    score = converse(scripted(both, WEATHER, ANSWER), scenario())["score"]
    assert [each["snapshot"] for each in score["milestones"]] == [3, 5, 6], "the answers stand as they happened"
    notes = [{"call": "note", "args": {"text": text}} for text in "ab"]
    for apart in ([notes[0], WIFI], notes):
        assert converse(scripted({"calls": apart}, ANSWER), scenario())["score"]["races"] == 0


@pytest.mark.parametrize("role", ["auditor", "simulator", "model"])
def test_whoever_watches_changes_no_score(scenario, role):
    """Neither are races left untried, nor is a model asked for what rules answer."""
    asked = failing(RuntimeError("nobody is to ask"))
    given = {"model": asked} if role == "model" else {"model": Models(**{role: asked})}
    one = scenario(user={**SCENARIO["user"], "script": [{"end": True}]})
    output = converse(scripted({"calls": [WIFI, WEATHER]}, ANSWER), one, **given)
    assert (output["score"]["races"], output["score"]["failed_calls"]) == (1, 1)
    assert [step["outcome"]["rung"] for step in output["world"]["log"]] == ["contract"] * 2


def test_a_simulated_tool_has_a_model_only_where_the_role_is_named():
    one = Scenario.from_dict(SCENARIO | {"user": {**SCENARIO["user"], "script": [{"end": True}]}})
    reply = {"status": "ok", "result": {"sky": "clear"}, "patch": []}
    for models, rung in (
        (Models(recorded(simulator=[reply] * 4)), "schema"),
        (Models(simulator=recorded(simulator=[reply] * 4)), "model"),
        (Models().replace(simulator=recorded(simulator=[reply] * 4)), "model"),
    ):
        log = converse(scripted({"calls": [WEATHER, WIFI]}, ANSWER), one, model=models)["world"]["log"]
        assert [step["outcome"]["rung"] for step in log] == [rung] * 2


@pytest.mark.parametrize(
    ("agent", "end", "reason"),
    [
        (failing(RuntimeError("out of order")), "agent_failed", "out of order"),
        (lambda tools: "no agent", "agent_failed", "expected a Runnable from the function, got str"),
        (scripted(*[WEATHER] * 60), "max_messages", ""),
        (scripted(), "failures", "3 turns of the agent in a row had no result"),
    ],
    ids=["model raises", "no runnable", "loops", "answers nothing"],
)
def test_an_agent_that_fails_ends_the_conversation_with_the_reason(scenario, agent, end, reason):
    user = {**SCENARIO["user"], "script": ["Well?"] * 20}
    score = converse(agent, scenario(user=user))["score"]
    assert (score["end"], reason in score["reason"]) == (end, True), score
    assert score["similarity"] < 1


MISTAKES = [
    (None, {}, "expected a scenario with a user"),
    (None, {"user": {"knows": []}}, "user: goal: is missing"),
    (None, {"user": [{"sya": "Hi"}]}, r"user: script\[0\]\.sya: unknown key \(did you mean say\?\)"),
    (None, {"user": [5]}, r"script\[0\]: expected an object"),
    (None, {"scenario": "case.gecko.yaml"}, r"scenario: expected Scenario.load\(path\), got str"),
    (None, {"toolkit": None, "user": ["Hi"]}, "expected a Toolkit"),
    (42, {"user": ["Hi"]}, "expected a chat model"),
    (RunnableLambda(print), {"user": ["Hi"]}, "lambda tools"),
]


@pytest.mark.parametrize(("agent", "given", "message"), MISTAKES)
def test_mistakes_are_named(scenario, agent, given, message):
    with pytest.raises(GeckoError, match=message):
        create_conversation(agent or scripted(), **{"toolkit": scenario().tools, **given})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"user": {"opening": "Hi"}}, "user.goal: is missing"),
        ({"user": {"goal": "x", "scrpt": []}}, "user.scrpt: unknown key \\(did you mean script?"),
        ({"user": {"goal": "x", "script": [{"when": "1 +", "say": "a"}]}}, "script\\[0\\].when"),
        ({"milestone": []}, "milestone: unknown key \\(did you mean milestones?"),
        ({"turns": [{"user": "Hi"}]}, "either the turns"),
        ({"milestones": [{"call": {"name": "wether"}}]}, r"milestones\[0\].call.*wether.*did you mean weather"),
        ({"milestones": [{"id": "a", "after": ["a"], "call": {"name": "x"}}]}, "a cycle: a after a"),
        ({"milestones": [{"state": {"at": "settings", "update": [{"wfi": True}]}}]}, "did you mean wifi"),
        (
            {"milestones": [{"state": {"at": "notes", "addition": [{"text": "a"}], "measures": {"txt": "any"}}}]},
            "no row has the column 'txt'",
        ),
        ({"milestones": [{"message": {"content": "{mi}"}, "from": {"milestone": "1", "name": "km"}}]}, "from: .*km"),
        ({"milestones": [{"message": {"content": "x", "measure": "rouge"}}]}, r"message\.measure: unknown measure"),
    ],
)
def test_mistakes_in_a_scenario_are_named_with_their_place(changes, message):
    with pytest.raises(ScenarioError, match=message):
        Scenario.from_dict(copy.deepcopy(SCENARIO) | changes)


@pytest.mark.parametrize(
    ("now", "later"),
    [
        ("2026-11-22T23:59", "2026-11-23T00:01"),
        ("2026-11-22T10:00:00Z", "2026-11-22T10:02:00Z"),
        ("2026-11-22 10:00:30.500+02:00", "2026-11-22 10:02:30.500+02:00"),
        ("2026-11-22", "2026-11-22"),
        ("9999-12-31T23:59", "9999-12-31T23:59"),
    ],
)
def test_the_clock_moves_in_the_form_that_it_is_written_in(scenario, now, later):
    graph = create_conversation(scripted(), scenario().tools, user=["a", "b", "c", {"end": True}])
    assert graph.invoke({"task_state": {"now": now}})["world"]["state"]["now"] == later
