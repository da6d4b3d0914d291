"""Scenarios: what a file may hold, what is said when it does not, and how its turns run."""

from __future__ import annotations

import copy
import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from gecko_graph import GeckoError, Scenario
from gecko_graph.errors import ModelError, ScenarioError, ToolkitError
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.scenario import examples, play, read_toolkit, run_scenario, shipped

PUT = {"call": "put", "args": {"item": "pen"}}
SAY = {"say": "Done."}
CHECK = {"id": "pen", "description": "the pen is in the box", "check": "'pen' in state.box"}
OPENAPI = {
    "openapi": "3.1.0",
    "info": {"title": "Box", "version": "1"},
    "paths": {
        "/box": {
            "post": {
                "operationId": "put",
                "description": "Put an item into the box.",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "properties": {"item": {"type": "string", "minLength": 1}},
                                "required": ["item"],
                                "additionalProperties": False,
                            }
                        }
                    },
                },
                "responses": {
                    "200": {"description": "ok", "content": {"application/json": {"schema": {"type": "integer"}}}}
                },
                "x-contract": {
                    "requires": [{"check": "args.item not in state.box", "error": "it is in the box"}],
                    "effects": [{"op": "add", "path": ["box", "-"], "value": "{{ args.item }}"}],
                    "returns": "{{ state.box | length }}",
                },
            }
        }
    },
}
FUNCTIONS = [
    {
        "name": "put",
        "description": "Put an item into the box.",
        "parameters": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
    }
]


def case(**changes):
    data = {
        "version": 1,
        "name": "box",
        "tools": OPENAPI,
        "state": {"box": []},
        "turns": [{"user": "Put the pen away.", "checklist": [CHECK], "replies": {"planner": [[PUT, SAY]]}}],
        "limits": {"max_retries": 1},
    }
    return copy.deepcopy(data) | changes


def turn(**changes):
    return [case()["turns"][0] | changes]


def words_of(output):
    return output["rehearsal"]["verdict"]["word"]


# reading ---------------------------------------------------------------------------------------------


def test_a_scenario_says_what_its_file_says(tmp_path):
    (tmp_path / "api.yaml").write_text(yaml.safe_dump(OPENAPI))
    (tmp_path / "case.yaml").write_text(yaml.safe_dump(case(tools="api.yaml")))
    read = Scenario.load(tmp_path / "case.yaml")
    assert (read.name, read.toolkit().names, read.context().max_retries) == ("box", ("put",), 1)
    assert read.inputs() == {
        "messages": [("user", "Put the pen away.")],
        "task_state": {"box": []},
        "checklist": [CHECK],
    }
    assert set(read.models()) == {"planner"}


def test_json_and_yaml_say_the_same(tmp_path):
    (tmp_path / "case.json").write_text(json.dumps(case()))
    (tmp_path / "case.yaml").write_text(yaml.safe_dump(case()))
    one, other = (Scenario.load(tmp_path / f"case.{kind}") for kind in ("json", "yaml"))
    assert (one.name, one.state, one.turns, one.limits) == (other.name, other.state, other.turns, other.limits)


def test_what_is_left_out_has_a_default():
    read = Scenario.from_dict({key: case()[key] for key in ("version", "name", "tools", "turns")})
    assert read.state == {}
    assert read.context().max_retries == 3


def test_inputs_are_copies():
    read = Scenario.from_dict(case())
    given = read.inputs()
    given["task_state"]["box"].append("x")
    given["checklist"][0]["id"] = "y"
    assert read.inputs() == Scenario.from_dict(case()).inputs()


def test_items_may_be_bare_texts_or_bare_checks():
    read = Scenario.from_dict(case(turns=turn(checklist=["it is tidy", {"check": "state.box"}])))
    assert read.inputs()["checklist"] == [
        {"id": "item-1", "description": "it is tidy"},
        {"id": "item-2", "description": "state.box", "check": "state.box"},
    ]


def test_a_path_is_relative_to_the_scenarios_folder(tmp_path, monkeypatch):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "api.json").write_text(json.dumps(OPENAPI))
    (tmp_path / "case.yaml").write_text(yaml.safe_dump(case(tools="tools/api.json")))
    monkeypatch.chdir("/")
    assert Scenario.load(tmp_path / "case.yaml").toolkit().names == ("put",)


WRONG = {
    "s: version: is missing": {"version": None},
    "s: version: 2 is newer than 1, which is read here: update gecko-graph": {"version": 2},
    "s: version: should be 1, not '1'": {"version": "1"},
    "s: version: should be 1, not True": {"version": True},
    "s: name: should be text; put it in quotes": {"name": 7},
    "s: name: is empty": {"name": " "},
    "s: nmae: there is no such key, perhaps 'name' is meant; known here: version, name, tools": {"nmae": "x"},
    "s: tools: give the path of an OpenAPI document": {"tools": 5},
    "s: tools: there is no file nowhere.yaml (a path is relative to the scenario's folder)": {"tools": "nowhere.yaml"},
    "s: state: should be an object": {"state": [1]},
    "s: turns: is empty": {"turns": []},
    "s: turns[0].user: is missing": {"turns": [{}]},
    "s: turns[0].user: is empty": {"turns": turn(user="\n")},
    "s: turns[0].reply: there is no such key, perhaps 'replies' is meant; known here: user, checklist, replies": {
        "turns": turn(reply={})
    },
    "s: turns[0].replies: no role is called 'planer'; roles are planner, validator": {
        "turns": turn(replies={"planer": []})
    },
    "s: turns[0].checklist[0]: give it a description, or a check": {"turns": turn(checklist=[{"id": "x"}])},
    "s: turns[0].checklist[0].chek: there is no such key, perhaps 'check' is meant; known here: id, description": {
        "turns": turn(checklist=[{"chek": "true"}])
    },
    "s: turns[0].checklist[1].id: 'pen' is given twice": {"turns": turn(checklist=[CHECK, CHECK])},
    "s: turns[0].checklist[0].check: unknown name 'stat'": {"turns": turn(checklist=[{"check": "stat.box"}])},
    "s: turns[0].checklist[0].check: ": {"turns": turn(checklist=[{"check": "state.box =="}])},
    "s: turns[0].replies.planner[0]: should be a list": {"turns": turn(replies={"planner": [PUT]})},
    "s: turns[0].replies.planner[0][0]: should be {call: name": {"turns": turn(replies={"planner": [[{}]]})},
    "s: turns[0].replies.planner[0][1]: should be {call: name": {
        "turns": turn(replies={"planner": [[PUT, PUT | SAY]]})
    },
    "s: turns[0].replies.planner[0][0].arg: there is no such key, perhaps 'args' is meant": {
        "turns": turn(replies={"planner": [[{"call": "put", "arg": {}}]]})
    },
    "s: turns[0].replies.planner[0][0].args: should be an object": {
        "turns": turn(replies={"planner": [[{"call": "put", "args": "pen"}]]})
    },
    "s: turns[0].replies.planner[0][0].call: should be a tool's name": {
        "turns": turn(replies={"planner": [[{"call": 3}]]})
    },
    "s: turns[0].replies.planner[0][0].say: should be text": {"turns": turn(replies={"planner": [[{"say": 3}]]})},
    "s: turns[0].replies.planner[0][0].calls[0]: should be {call: name": {
        "turns": turn(replies={"planner": [[{"calls": ["put"]}]]})
    },
    "s: turns[0].replies.judge[0]: no Judgement: items: is missing": {"turns": turn(replies={"judge": [{}]})},
    "s: turns[0].replies.judge[0]: no Judgement: items[0].status: should be 'success', 'failed' or 'unknown'": {
        "turns": turn(replies={"judge": [{"items": [{"id": "x", "status": "good"}]}]})
    },
    "s: turns[0].replies.state_updater[0]: no StateChange: patch: value error, operation 0: add needs 'value'": {
        "turns": turn(replies={"state_updater": [{"patch": [{"op": "add", "path": "/x"}]}]})
    },
    "s: limits.max_retry: there is no such key, perhaps 'max_retries' is meant": {"limits": {"max_retry": 1}},
    "s: limits.max_retries: should be greater than or equal to 0": {"limits": {"max_retries": -1}},
    "s: limits.ladder[0]: should be 'real', 'contract'": {"limits": {"ladder": ["contracts"]}},
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_said_with_its_place(message):
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(case(**WRONG[message]), where="s")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("data", [None, [], "text", 3])
def test_a_scenario_is_an_object(data):
    with pytest.raises(ScenarioError, match="s: a scenario is an object with version, name, tools and turns"):
        Scenario.from_dict(data, where="s")


def test_an_openapi_document_in_its_place_is_recognised():
    with pytest.raises(ScenarioError, match="is an OpenAPI document, not a scenario"):
        Scenario.from_dict(OPENAPI)


def test_several_problems_are_told_at_once_but_not_all():
    many = [{"id": f"i{n}"} for n in range(9)]
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(case(turns=turn(checklist=many)), where="s")
    assert len(str(caught.value).splitlines()) == 6
    assert str(caught.value).endswith("s: and 4 more")


def test_a_state_that_is_no_json():
    with pytest.raises(ScenarioError, match=r"s: .*state.*box"):
        Scenario.from_dict(case(state={"box": [float("nan")]}), where="s")


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        (["api.yaml"], "case.yaml: tools: a path stands by itself, not in a list"),
        (
            "https://example.org/api.yaml",
            "case.yaml: tools: https://example.org/api.yaml is on the web: save it beside",
        ),
        ("none.yaml", "case.yaml: tools: there is no file none.yaml"),
    ],
)
def test_paths_of_tools_that_are_none(tools, message):
    with pytest.raises(ScenarioError, match=message):
        Scenario.from_dict(case(tools=tools), where="case.yaml")


def test_broken_tools_name_the_scenario_and_the_place():
    broken = copy.deepcopy(OPENAPI)
    broken["paths"]["/box"]["post"]["x-contract"]["returns"] = "{{ nothing }}"
    with pytest.raises(ToolkitError, match=r"^s: tools: .*~1box/post/x-contract.*: returns: .*nothing"):
        Scenario.from_dict(case(tools=broken), where="s")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.yaml", None, "no such file"),
        ("broken.yaml", "turns: [", "not YAML"),
        ("empty.yaml", "", "is empty"),
        ("twice.yaml", "name: a\nname: b", "given twice"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, text, message):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ScenarioError, match=message) as caught:
        Scenario.load(tmp_path / name)
    assert name in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


def places(value, path=()):
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, (*path, key))


OUTER = [path for path in places(case()) if path and path[0] != "tools"] + [("tools",)]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(OUTER), JSON)
def test_whatever_stands_anywhere_is_read_or_refused_in_words(path, value):
    data = case()
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert read_or_refused(data).startswith(("read", "s: "))


def read_or_refused(data):
    try:
        Scenario.from_dict(data, where="s")
    except GeckoError as error:
        return str(error)
    return "read"


# running ---------------------------------------------------------------------------------------------


def test_a_scenario_runs_on_its_recorded_replies():
    (output,) = run_scenario(Scenario.from_dict(case()))
    assert words_of(output) == "accepted"
    assert output["task_state"] == {"box": ["pen"]}
    assert [call["name"] for call in output["rehearsal"]["plan"]] == ["put"]
    assert output["rehearsal"]["usage"]["planner"]["calls"] == 2


def test_a_scenario_runs_from_its_file(tmp_path):
    (tmp_path / "case.json").write_text(json.dumps(case()))
    (output,) = run_scenario(tmp_path / "case.json")
    assert words_of(output) == "accepted"
    with pytest.raises(ScenarioError, match=r"none.json: no such file"):
        run_scenario(str(tmp_path / "none.json"))


TURNS = [
    {"user": "Put the pen away.", "checklist": [CHECK], "replies": {"planner": [[PUT, SAY]]}},
    {
        "user": "And the ink.",
        "checklist": [{"id": "both", "description": "pen and ink", "check": "state.box == ['pen', 'ink']"}],
        "replies": {"planner": [[SAY], [{"call": "put", "args": {"item": "ink"}}, SAY]]},
    },
]


def test_turns_share_a_thread():
    one, two = run_scenario(Scenario.from_dict(case(turns=TURNS)))
    assert words_of(one) == words_of(two) == "accepted"
    assert two["task_state"] == {"box": ["pen", "ink"]}
    assert [message.type for message in two["messages"]] == ["human", "ai", "human", "ai"]
    assert [len(each["rehearsal"]["attempts"]) for each in (one, two)] == [1, 2]


@pytest.mark.parametrize(("at_once", "attempts"), [(1, 2), (2, 2), (3, 3)])
def test_there_are_no_more_rounds_than_replies_are_written_for(at_once, attempts):
    limits = {"max_retries": 9, "parallel_attempts": at_once}
    read = Scenario.from_dict(case(turns=turn(replies={"planner": [[SAY], [SAY]]}), limits=limits))
    (output,) = run_scenario(read)
    assert words_of(output) == "failed"
    assert len(output["rehearsal"]["attempts"]) == attempts
    (output,) = run_scenario(read, models={"planner": RecordedModel(turns=[{"planner": [[SAY]] * 5}])})
    assert len(output["rehearsal"]["attempts"]) > attempts, "a model of the user's has all its rounds"


def test_equal_runs_are_equal():
    one, other = (run_scenario(Scenario.from_dict(case(turns=TURNS)))[-1]["rehearsal"] for _ in range(2))
    assert one == other


def test_tools_from_function_dicts_are_simulated_by_recorded_words():
    replies = {"planner": [[PUT, SAY]], "simulator": [{"status": "ok", "result": 1, "patch": [
        {"op": "add", "path": "/box/-", "value": "pen"}]}]}  # fmt: skip
    (output,) = run_scenario(Scenario.from_dict(case(tools=FUNCTIONS, turns=turn(replies=replies))))
    assert words_of(output) == "accepted"
    (step,) = output["rehearsal"]["attempts"][0]["steps"]
    assert step["outcome"]["rung"] == "model"


def test_a_model_speaks_in_place_of_all_replies():
    model = RecordedModel(turns=[{"planner": [[{"say": "No."}]] * 2}])
    (output,) = run_scenario(Scenario.from_dict(case()), model=model)
    assert words_of(output) == "failed"
    assert output["rehearsal"]["answer"] == "No."


def test_a_model_of_one_role_leaves_the_others_recorded():
    judge = RecordedModel(turns=[{"judge": [{"items": [{"id": "item-1", "status": "success"}]}]}])
    read = Scenario.from_dict(case(turns=turn(checklist=["the pen is put away"])))
    (output,) = run_scenario(read, models={"judge": judge})
    assert words_of(output) == "accepted"
    assert output["rehearsal"]["verdict"]["items"][0]["by"] == "model"


def test_events_are_told_while_it_runs():
    events = []
    run_scenario(Scenario.from_dict(case(turns=TURNS)), on_event=events.append)
    kinds = [event["type"].removeprefix("gecko.") for event in events]
    first = ["attempt", "call", "result", "change", "verdict"]
    assert kinds == [*first, "attempt", "verdict", *first]


def test_nobody_plans():
    with pytest.raises(ScenarioError, match=r"turns\[0\].replies: nobody plans: write replies"):
        run_scenario(Scenario.from_dict(case(turns=turn(replies={}))))


def test_nobody_says_what_must_hold():
    with pytest.raises(ScenarioError, match=r"turns\[0\]: nobody says what must hold"):
        run_scenario(Scenario.from_dict(case(turns=turn(checklist=[]))))


def test_an_unknown_model():
    with pytest.raises(ModelError, match="provider:name"):
        run_scenario(Scenario.from_dict(case()), model="gpt")


def test_a_thread_is_used_once(tmp_path):
    read, saver = Scenario.from_dict(case()), InMemorySaver()
    run_scenario(read, checkpointer=saver, thread_id="t")
    with pytest.raises(ScenarioError, match="the thread 't' holds a run already: resume it, or take another thread"):
        run_scenario(read, checkpointer=saver, thread_id="t")
    assert len(run_scenario(read, checkpointer=saver, thread_id="u")) == 1


class Stop(Exception):
    """Ends a run at an event, as a crash would."""


@pytest.mark.parametrize("stop", range(1, 13))
def test_a_run_that_stopped_at_any_event_is_resumed(tmp_path, stop):
    read = Scenario.from_dict(case(turns=TURNS))
    whole = run_scenario(read)[-1]
    seen = []

    def watch(event):
        seen.append(event)
        if len(seen) == stop:
            raise Stop

    with SqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
        gecko = read.gecko(checkpointer=saver)
        with pytest.raises(Stop):
            list(play(read, gecko, thread_id="t", on_event=watch, durability="sync"))
    turns = []
    with SqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
        gecko = read.gecko(checkpointer=saver)
        *_, last = play(read, gecko, thread_id="t", on_turn=turns.append, resume=True, durability="sync")
        assert list(play(read, gecko, thread_id="t", resume=True)) == []
    assert last["rehearsal"] == whole["rehearsal"]
    assert last["task_state"] == whole["task_state"]
    assert turns == ["Put the pen away.", "And the ink."][2 - len(turns) :]


def test_there_must_be_something_to_resume():
    read = Scenario.from_dict(case())
    with pytest.raises(ScenarioError, match="there is no thread 'x' to resume"):
        list(play(read, read.gecko(checkpointer=InMemorySaver()), thread_id="x", resume=True))


# files of tools, shipped examples --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("api.yaml", yaml.safe_dump(OPENAPI)),
        ("api.json", json.dumps(OPENAPI)),
        ("tools.json", json.dumps(FUNCTIONS)),
        ("tools.yaml", yaml.safe_dump(FUNCTIONS)),
        ("one.json", json.dumps({"type": "function", "function": FUNCTIONS[0]})),
        ("tools.jsonl", json.dumps(FUNCTIONS[0]) + "\n\n"),
    ],
)
def test_tools_are_read_from_files_of_many_kinds(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert read_toolkit(tmp_path / name).names == ("put",)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.yaml", None, "no such file"),
        ("none.jsonl", None, "cannot be read"),
        ("empty.json", "[]", "there are no tools in it"),
        ("text.yaml", "hello", "hello|text.yaml"),
        ("broken.jsonl", '{"name": "a"}\n{', "line 2"),
        ("old.yaml", "swagger: '2.0'", "OpenAPI 2.0"),
    ],
)
def test_files_that_hold_no_tools(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(GeckoError, match=message):
        read_toolkit(tmp_path / name)


def test_examples_are_shipped_files_first():
    assert list(examples()) == ["files", "calendar", "shop"]
    assert all(file.is_file() for file in examples().values())
    assert shipped().name == "file-the-report"


def test_an_unknown_example():
    with pytest.raises(ScenarioError, match="no example is called 'shoes'; there are files, calendar, shop"):
        shipped("shoes")
