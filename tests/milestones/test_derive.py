"""Milestones derived from one successful conversation: other routes to the same score one, failures do not."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

pytest.importorskip("scipy")
pytest.importorskip("rouge_score")

from gecko_graph import GeckoError, Scenario, Toolkit, create_conversation
from gecko_graph.conversation.derive import SUCCESS, derive_milestones, describe_milestones, score_conversation
from gecko_graph.testing import scripted
from tests.agents import call
from tests.phone import CASES, agents, converse, load, played

UNSEEN = {
    ("dinner-at-eight", "writes another hour"),
    ("late-text", "writes another figure"),
    ("share-price", "asks for another company"),
    ("wifi-off", "takes back what it has said"),
}
"""What is not looked at: a second figure beside the right one, what a later message takes back, and by which argument
a figure was read (here two shares cost the same)."""


SOME = sorted({*CASES[::4], *(name for name, _ in UNSEEN)})


@pytest.mark.parametrize("name", SOME)
def test_the_conversation_itself_scores_one_and_bad_ones_do_not(name):
    scenario, good = load(name), played(name, "good")
    goal = derive_milestones(scenario.tools, good)
    assert score_conversation(goal, scenario.tools, good)["similarity"] == 1.0
    for number, bad in enumerate(agents(name)["bad"]):
        made = played(name, "bad", number)
        accepted = score_conversation(goal, scenario.tools, made)["similarity"] >= SUCCESS
        assert accepted == ((name, bad["what"]) in UNSEEN), bad["what"]
    written = describe_milestones(scenario.tools, good)
    assert converse(scripted(*agents(name)["good"]), with_milestones(scenario, written))["score"]["similarity"] == 1.0


def with_milestones(scenario: Scenario, written: list[dict[str, Any]]) -> Scenario:
    tools = [each["function"] for each in scenario.tools.as_openai()]
    data = {"version": 1, "name": "x", "tools": tools, "state": scenario.state, "user": {"goal": "x"}}
    return replace(scenario, goal=Scenario.from_dict({**data, "milestones": written}).goal)


SCHEMAS = {
    "set_wifi": {"on": "boolean"}, "find_people": {"name": "string"}, "list_people": {},
    "send": {"to": "string", "text": "string"}, "set_folder": {"folder": "string"},
    "write": {"file": "string", "text": "string"}, "drop": {"file": "string"},
}  # fmt: skip
NO_CONNECTION = [{"check": "state.settings.wifi", "error": "no connection"}]
FOUND = {"for_each": "state.people.values()", "as": "each", "when": "each.name == args.name", "value": "{{ each }}"}
SENT = {"to": "{{ args.to }}", "text": "{{ args.text }}", "at": "{{ now }}"}
FILE = ["files", "{{ state.cwd }}", "{{ args.file }}"]
CONTRACTS = {
    "set_wifi": {"effects": [{"op": "replace", "path": ["settings", "wifi"], "value": "{{ args.on }}"}],
                 "returns": "done"},
    "find_people": {"requires": NO_CONNECTION, "returns": FOUND},
    "list_people": {"requires": NO_CONNECTION, "returns": "{{ state.people.values() }}"},
    "send": {"requires": NO_CONNECTION,
             "effects": [{"op": "add", "path": ["sent", "{{ new_id('s-') }}"], "value": SENT}], "returns": "done"},
    "set_folder": {"effects": [{"op": "replace", "path": ["cwd"], "value": "{{ args.folder }}"}], "returns": "done"},
    "write": {"effects": [{"op": "add", "path": FILE, "value": {"text": "{{ args.text }}"}}], "returns": "done"},
    "drop": {
        "requires": [{"check": "args.file in state.files[state.cwd]", "error": "no such file"}],
        "effects": [{"op": "remove", "path": FILE}], "returns": "done",
    },
}  # fmt: skip
STATE = {
    "now": "2027-05-12T09:00", "settings": {"wifi": False, "sound": True},
    "people": {
        "p1": {"name": "Ana Lopez", "phone": "+3247055011", "age": 41},
        "p2": {"name": "Bo Berg", "phone": "+3247055012", "age": 37},
    },
    "sent": {}, "cwd": "home", "files": {"home": {"old": {"text": "x"}}, "work": {}},
}  # fmt: skip
ASKED = "Tell Bo Berg 'the train is late', note the 12 boxes in work; phone number and age of Ana Lopez?"
NAMES = {name: name for name in (*SCHEMAS, *STATE) if name != "now"}


ON, OFF = call("set_wifi", on=True), call("set_wifi", on=False)
ANA, BO = call("find_people", name="Ana Lopez"), call("find_people", name="Bo Berg")
SEND = call("send", to="+3247055012", text="the train is late")
WORK, NOTE = call("set_folder", folder="work"), call("write", file="boxes", text="There are 12 boxes in work")
ANSWER = {"say": "Done. The number of Ana Lopez is +3247055011, and she is 41."}
GOOD = (ON, BO, SEND, WORK, NOTE, ANA, ANSWER)


def rename(value: Any, names: dict[str, str]) -> Any:
    """A value with whole words exchanged, in keys and in expressions."""
    return json.loads(re.sub(rf"\b({'|'.join(names)})\b", lambda found: names[found[0]], json.dumps(value)))


def run(*does: dict[str, Any], names: dict[str, str] = NAMES) -> tuple[Toolkit, Any]:
    tools = []
    for name, members in SCHEMAS.items():
        properties = {key: {"type": kind} for key, kind in members.items()}
        parameters = {"type": "object", "properties": properties, "required": [*members]}
        tools.append({"name": names[name], "description": name, "parameters": parameters})
    contracts = {names[name]: rename(contract, names) for name, contract in CONTRACTS.items()}
    state = {names.get(key, key): value for key, value in copy.deepcopy(STATE).items()}
    data: dict[str, Any] = {"version": 1, "name": "x", "tools": tools, "state": state}
    scenario = Scenario.from_dict({**data, "user": {"goal": "x", "opening": ASKED, "script": [{"end": True}]}})
    scenario = replace(scenario, tools=scenario.tools.with_contracts({"contracts": contracts}))
    acts = [{**one, "call": names[one["call"]]} if "call" in one else one for one in does]
    return scenario.tools, converse(scripted(*acts), scenario)


OTHER_NAMES = {name: f"x{number}" for number, name in enumerate(NAMES)}


@cache
def derived(*, renamed: bool) -> tuple[Toolkit, Any]:
    tools, good = run(*GOOD, names=OTHER_NAMES if renamed else NAMES)
    return tools, derive_milestones(tools, good)


OTHER_ROUTES = {
    "itself": GOOD,
    "independent calls in another order": (WORK, NOTE, ON, ANA, BO, SEND, ANSWER),
    "another read that shows the same": (ON, call("list_people"), SEND, WORK, NOTE, ANSWER),
    "a look more": (ON, call("list_people"), BO, SEND, WORK, NOTE, ANA, ANSWER),
    "attempts that fail before": (BO, SEND, ON, BO, SEND, call("drop", file="boxes"), WORK, NOTE, ANA, ANSWER),
    "another wording": (*GOOD[:-1], {"say": "I have written to him. Ana's: +32 470 550 11 (41 years)."}),
    "another wording of a text": (*GOOD[:4], call("write", file="boxes", text="12 boxes in work"), ANA, ANSWER),
    "back where it was": (*GOOD[:5], call("set_folder", folder="home"), ANA, ANSWER),
    "done and undone": (ON, call("write", file="y", text="y"), call("drop", file="y"), *GOOD[1:]),
    "calls at once": (ON, {"calls": [BO, ANA]}, SEND, WORK, NOTE, ANSWER),
}
FAILURES = {
    "a write left out": (ON, BO, SEND, WORK, ANA, ANSWER),
    "a wrong argument": (ON, BO, call("send", to="+3247055012", text="the train is on time"), *GOOD[3:]),
    "a wrong target": (ON, BO, call("send", to="+3247055011", text="the train is late"), *GOOD[3:]),
    "another figure in a text": (*GOOD[:4], call("write", file="boxes", text="There are 13 boxes"), ANA, ANSWER),
    "a write more": (*GOOD[:-1], call("set_folder", folder="home"), call("drop", file="old"), ANSWER),
    "a write more at another place": (*GOOD[:4], call("write", file="more", text="x"), *GOOD[4:]),
    "twice": (*GOOD[:3], *GOOD[2:]),
    "undone": (*GOOD[:-1], OFF, ANSWER),
    "the wrong folder": (ON, BO, SEND, NOTE, WORK, ANA, ANSWER),
    "nothing said": (*GOOD[:-1], {"say": "Done."}),
    "a wrong value": (*GOOD[:-1], {"say": "The number of Ana Lopez is +3247055011, and she is 42."}),
    "another's values": (*GOOD[:-1], {"say": "The number of Ana Lopez is +3247055012, and she is 37."}),
    "made up": (ON, BO, SEND, WORK, NOTE, ANSWER),
    "out of order": (BO, SEND, ON, WORK, NOTE, ANA, ANSWER),
    "nothing": (),
}


@pytest.mark.parametrize("name", {**OTHER_ROUTES, **FAILURES})
def test_another_route_scores_one_and_a_failure_less_whatever_tools_and_tables_are_called(name):
    def similarity(*, renamed: bool) -> float:
        (tools, goal), does = derived(renamed=renamed), OTHER_ROUTES.get(name, FAILURES.get(name, ()))
        return score_conversation(goal, tools, run(*does, names=OTHER_NAMES if renamed else NAMES)[1])["similarity"]

    found = similarity(renamed=False)
    assert (found >= SUCCESS) is (name in OTHER_ROUTES)
    if name == "itself" or name in FAILURES:
        assert similarity(renamed=True) == found


def test_order_follows_what_enables_what():
    tools, good = run(*GOOD)
    written = {each["id"]: each for each in describe_milestones(tools, good)}
    assert list(written) == ["set_wifi_1", "send_3", "write_5", "answer_1", "end"]
    assert written["send_3"]["after"] == ["set_wifi_1"]
    assert written["write_5"]["after"] == []
    assert written["answer_1"]["after"] == ["set_wifi_1"]
    assert written["answer_1"]["message"]["mentions"] == ["+3247055011", 41]
    assert written["send_3"]["state"][0]["includes"] == [{"to": "+3247055012", "text": "the train is late"}]
    assert written["end"]["unchanged"] == ["* except files.work, sent, settings.wifi, cwd, now, runtime_state"]


def test_a_write_that_a_model_has_made_up_is_refused():
    tools, good = run(*GOOD)
    good["world"]["log"][0]["outcome"]["supposed"] = True
    with pytest.raises(GeckoError, match="set_wifi has another result"):
        derive_milestones(tools, good)
    good["world"]["log"][0] = {**good["world"]["log"][0], "call": {"id": "x", "name": "drop", "args": {"file": "z"}}}
    with pytest.raises(GeckoError, match="drop has another result"):
        derive_milestones(tools, good)


ORDERS = {
    "order": {
        "let": {"number": "{{ new_id('O') }}"},
        "effects": [{"op": "add", "path": ["orders", "{{ number }}"], "value": "{{ args.item }}"}],
        "returns": {"id": "{{ number }}"},
    }
}
ORDER = {"call": "order", "args": {"item": "pen"}}
OTHER = {"call": "order", "args": {"item": "ink"}}


@pytest.mark.parametrize("orders", [{}, {"O-0": "cup"}, {"O-0": {"item": "cup"}}])
@pytest.mark.parametrize(("good", "bad"), [([ORDER], [OTHER]), ([ORDER, OTHER], [ORDER])])
def test_entries_under_drawn_keys_are_rows(orders, good, bad):
    schema = {"type": "object", "properties": {"item": {"type": "string"}}}
    tools = Toolkit.from_tools([{"name": "order", "parameters": schema}]).with_contracts({"contracts": ORDERS})

    def talk(*does):
        graph = create_conversation(scripted(*does, {"say": "Done."}), tools, user=["Please.", {"end": True}])
        return graph.invoke({"task_state": {"orders": orders}})

    goal = derive_milestones(tools, talk(*good))
    for does in (good, good[::-1]):
        assert score_conversation(goal, tools, talk(*does))["similarity"] >= SUCCESS
    for does in (bad, [*good, ORDER], []):
        assert score_conversation(goal, tools, talk(*does))["similarity"] < SUCCESS


def test_of_a_silent_agent_nothing_can_be_derived():
    tools = Toolkit.from_tools([{"name": "order", "parameters": {}}])
    silent = create_conversation(scripted(), tools, user=["Hi", {"end": True}]).invoke({})
    with pytest.raises(GeckoError, match="the agent has changed and answered nothing"):
        describe_milestones(tools, silent)


def test_what_a_conversation_does_not_meet_itself_is_named(monkeypatch):
    tools, own = run(*GOOD)
    missed = {"id": "answer_1", "similarity": 0.5, "missed": [{"part": "mentions", "place": ""}]}
    monkeypatch.setattr("gecko_graph.conversation.derive.score_conversation", lambda *_: {"milestones": [missed]})
    with pytest.raises(GeckoError, match=r"answer_1 \(mentions\)"):
        derive_milestones(tools, own)
