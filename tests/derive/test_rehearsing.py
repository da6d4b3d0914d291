"""Rehearsals of a document's tools: an agent, scenarios and cases derive by themselves; what the start may hold."""

import json
from dataclasses import replace

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import (
    Models,
    Scenario,
    Toolkit,
    create_conversation,
    create_gecko,
    create_gecko_agent,
    create_toolgate,
)
from gecko_graph.cli import main
from gecko_graph.derive.contracts import add_derived
from gecko_graph.errors import ToolkitError
from gecko_graph.masking import MASK
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.testing import recorded, scripted

from ..shop import Acting, by_rank, one_need
from .documents import FASTAPI

PET = {"id": 7, "name": "Ada", "tag": None, "status": "new", "made_at": "2026-01-01T00:00:00Z"}
MADE = {"call": "create_pet", "args": {"name": "Flo"}}
ITEMS = [{"id": "made", "description": "one is made", "check": "len(state.pets) == 1"}]
ANY = [{"id": "any", "description": "anything", "check": "True"}]
TASK = {"messages": [("user", "Add a pet named Flo")], "checklist": ITEMS}


def planned(*calls):
    return Models(planner=recorded(planner=[[*calls, {"say": "done"}]]))


def rungs_of(output):
    return [step["outcome"]["rung"] for step in output["rehearsal"]["attempts"][0]["steps"]]


def test_an_agent_rehearses_by_its_document_and_the_question_says_so():
    made = []
    toolkit = Toolkit.from_openapi(FASTAPI)
    toolkit = toolkit.replace(replace(toolkit["create_pet"], real=lambda **args: made.append(args) or {**PET, **args}))
    agent = create_gecko_agent(toolkit, model=planned(MADE), checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    (question,) = agent.invoke(TASK, thread)["__interrupt__"]
    (asked,) = question.value["action_requests"]
    assert "Returns, by its document; made up: /tag, /status, /made_at:" in asked["description"]
    assert "Changes, by its document:" in asked["description"]
    assert "runtime_state" not in asked["description"]
    out = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    assert (made, out["execution"]["status"]) == ([{"name": "Flo"}], "done")


@pytest.mark.parametrize("derive", [True, False])
@pytest.mark.parametrize("create", [create_gecko, create_gecko_agent])
def test_what_is_rehearsed_starts_unknown_and_deriving_can_be_left_out(create, derive):
    toolkit = Toolkit.from_openapi(FASTAPI)
    toolkit = toolkit.replace(*(replace(tool, real=lambda **_: None) for tool in toolkit))
    read = {"call": "read_pet", "args": {"pet_id": 5}}
    calls = (MADE, {"call": "delete_pet", "args": {"pet_id": 5}}, read, {**read, "args": {"pet_id": 6}})
    graph = create(toolkit, model=planned(*calls), derive=derive, checkpointer=InMemorySaver())
    graph.invoke({**TASK, "checklist": ANY}, thread := {"configurable": {"thread_id": "1"}})
    assert rungs_of(graph.get_state(thread).values) == (
        ["derived", "derived", "derived", "schema"] if derive else ["schema"] * 4
    )


def converse(toolkit, derive):
    talk = create_conversation(
        scripted(MADE, {"say": "Done."}), toolkit, user=["Add Flo.", {"end": True}], derive=derive
    )
    return [step["outcome"]["rung"] for step in talk.invoke({})["world"]["log"]]


def simulate(toolkit, derive):
    agent = create_agent(
        scripted(MADE, {"say": "Done."}), tools=toolkit.as_tools(), middleware=[GeckoMiddleware(toolkit, derive=derive)]
    )
    out = agent.invoke({"messages": [("user", "Add Flo.")]})
    return [one.additional_kwargs["gecko"]["rung"] for one in out["messages"] if one.type == "tool"]


def forward(toolkit, derive):
    roles = {"reasoner": one_need("Add Flo"), "reranker": by_rank("create_pet"), "planner": [MADE]}
    toolgate = create_toolgate(toolkit, model=Models(**dict.fromkeys(roles, Acting(roles=roles))), derive=derive)
    out = toolgate.invoke({"messages": [("user", "Add Flo")]}, {"recursion_limit": 60})
    return [step["outcome"]["rung"] for step in out["record"]["steps"] if "outcome" in step]


@pytest.mark.parametrize("derive", [True, False])
@pytest.mark.parametrize("run", [converse, simulate, forward])
def test_whatever_takes_a_toolkit_derives_of_its_document_or_leaves_it_out(run, derive):
    assert run(Toolkit.from_openapi(FASTAPI), derive) == ["derived" if derive else "schema"]


def scenario_of(**more):
    return {"version": 1, "name": "pets", "tools": json.loads(json.dumps(FASTAPI)), **more}


def test_a_scenario_derives_from_the_state_that_it_holds_unless_its_ladder_says_otherwise():
    turn = {"user": "Add Flo", "checklist": ITEMS, "replies": {"planner": [[MADE, {"say": "done"}]]}}
    played = Scenario.from_dict(scenario_of(state={"pets": {}}, turns=[turn]))
    assert rungs_of(played.gecko().invoke(played.inputs())) == ["derived"]
    without = {"ladder": ["contract", "example", "model", "schema"]}
    played = Scenario.from_dict(scenario_of(state={"pets": {}}, turns=[turn], limits=without))
    assert all(tool.derived is None for tool in played.tools)
    assert rungs_of(played.gecko().invoke(played.inputs())) == ["schema"]


def test_a_case_is_held_in_a_world_that_its_document_tells():
    case = Scenario.from_dict(scenario_of(state={"pets": {"7": PET}}, user={"goal": "g", "script": ["Remove Ada"]}))
    agent = recorded(planner=[[{"call": "delete_pet", "args": {"pet_id": 7}}, {"say": "done"}]])
    output = create_conversation(agent, scenario=case).invoke({})
    assert output["world"]["state"]["pets"] == {}


# the start -----------------------------------------------------------------------------------------------------------


def rows(file, *reads):
    made = ({"v": 1, "tool": tool, "args": args, "status": "ok", "result": result} for tool, args, result in reads)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in made))
    return file


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function: what a `run` of a task with these options answers to a read of pet 7."""
    (tmp_path / "api.json").write_text(json.dumps(FASTAPI))
    judge = {"items": [{"id": "item-1", "status": "success"}]}
    roles = {"checklist": [{"items": [{"description": "it is read"}]}], "judge": [judge]}
    models = planned({"call": "read_pet", "args": {"pet_id": 7}})
    models = models.replace(**{role: recorded(**{role: replies}) for role, replies in roles.items()})
    monkeypatch.setattr("gecko_graph.cli.running.build_models", lambda _: models)

    def start(*options):
        out = tmp_path / "out.json"
        words = ["run", tmp_path / "api.json", "--task", "Read pet 7", "--role-model", "planner=openai:x", *options]
        main([str(word) for word in (*words, "--json", out)])
        return json.loads(out.read_text())["turns"][0]["rehearsal"]["attempts"][0]["steps"][0]["outcome"]

    return start


def test_real_reads_or_a_file_are_what_a_run_starts_with(run, tmp_path):
    assert run()["rung"] == "schema"
    seen = rows(tmp_path / "rows.jsonl", ("list_pets", {}, [PET]), ("read_pet", {"pet_id": 7}, {**PET, "tag": "cat"}))
    found = run("--seed-from", seen)
    assert (found["rung"], found["result"]) == ("derived", {**PET, "tag": "cat"})
    (tmp_path / "state.json").write_text(json.dumps({"pets": {"7": {**PET, "name": "Old"}}}))
    assert run("--state", tmp_path / "state.json")["result"]["name"] == "Old"
    assert run("--state", tmp_path / "state.json", "--seed-from", seen)["result"]["name"] == "Ada"


def test_what_was_masked_in_a_row_is_not_known_and_a_file_without_a_read_is_a_mistake(run, tmp_path, capsys):
    reads = ("list_pets", {"q": MASK}, [{**PET, "id": 8}]), ("list_pets", {}, [{**PET, "tag": MASK}])
    seen = rows(tmp_path / "rows.jsonl", *reads)
    found = run("--seed-from", seen)
    assert (found["result"]["tag"], found["filled"]["places"].keys()) == (None, {"/tag"})
    (tmp_path / "out.json").unlink()
    seen = rows(tmp_path / "rows.jsonl", ("create_pet", {"name": "Flo"}, PET))
    with pytest.raises(FileNotFoundError):
        run("--seed-from", seen)
    assert f"--seed-from {seen}: it contains no real read of these tools" in capsys.readouterr().err


# a toolkit that is written and read back -----------------------------------------------------------------------------


def test_an_export_keeps_what_was_derived():
    toolkit, _ = add_derived(Toolkit.from_openapi(FASTAPI), {"Pet": {}})
    toolkit = toolkit.select(names=["read_pet", "create_pet"])
    document = json.loads(json.dumps(toolkit.to_openapi()))
    back = Toolkit.from_openapi(document)
    assert [tool.derived for tool in back] == [tool.derived for tool in toolkit]
    assert add_derived(back, {})[0]["read_pet"].derived.data["let"]["place"] == "{{ [['Pet'], args['pet_id']] }}"
    operation = document["paths"]["/api/v1/pets"]["post"]
    operation["x-gecko"]["derived"]["evidence"] = {"status": "written"}
    with pytest.raises(ToolkitError, match=r"derived.*evidence.*status: derived"):
        Toolkit.from_openapi(document)
