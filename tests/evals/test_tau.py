"""The suite `tau`: recorded conversations through the graph, and live runs on a stand-in for the package."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import pytest

from evals.harness.options import read_jsonl
from evals.suites import tau_live
from evals.suites.tau import RealCall, Tau, conversation_of, record_place, replay, spoil
from gecko_graph import GeckoContext, Toolkit
from gecko_graph.models.recorded import RecordedModel
from tests.evals.kept import read_summary

CONTEXT = GeckoContext(max_retries=0)


@pytest.fixture(scope="module")
def airline(shared_data):
    return Toolkit.from_tools(json.loads((shared_data / "tau_tools.json").read_text())["airline"])


@pytest.fixture(scope="module")
def conversations(shared_data):
    return [conversation_of(row) for row in read_jsonl(shared_data / "tau_airline_gpt4o.jsonl.gz")]


def test_all_recorded_calls_are_there_and_pass_the_rules(conversations, airline):
    calls = [call for each in conversations for call in each.calls]
    assert len(calls) == 732
    assert sum(call.succeeded for call in calls) == 703
    told = spoil(calls[::10], airline)
    assert told["missed"] == []
    assert told["found"] == told["spoilt"] > 100


def test_a_slice_of_the_suite(run, shared_data, tmp_path):
    assert run(Tau, "--limit", 10) == 0
    told = read_summary(tmp_path)
    assert [each["holds"] for each in told["expectations"]] == [True] * 3
    (row,) = told["figures"][0]["rows"]
    assert (row[0], row[1]["hits"]) == ("airline", 0)
    assert row[4]["n"] == row[4]["hits"] > 5
    assert {name: tools for name, tools, _ in told["figures"][1]["rows"]} == {"airline": 14, "retail": 16}


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


@pytest.mark.parametrize(
    ("name", "args", "result", "place"),
    [
        ("get_user_details", {"user_id": "a"}, {"email": "e"}, ("users", "a")),
        ("cancel_reservation", {"reservation_id": "R"}, {"reservation_id": "R", "user_id": "a"}, ("reservations", "R")),
        ("calculate", {"expression": "1"}, 1.0, None),
        ("send_certificate", {"user_id": "a"}, {"amount": 3}, None),
    ],
)
def test_where_a_record_is_booked(name, args, result, place):
    assert record_place(RealCall(name, args, ""), result) == place


# --- live ---


def test_without_the_package_it_says_what_to_install(run, capsys):
    if find_spec("tau2"):
        pytest.skip("the package is installed here")
    assert run(Tau, "--live") == 2
    assert "--live needs the package tau2" in capsys.readouterr().err


def test_a_plain_run_is_live(run):
    assert run(Tau, "--plain") == 2


PARAMETERS = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
SCHEMA = {"type": "function", "function": {"name": "get_order", "description": "An order.", "parameters": PARAMETERS}}


class Agent:
    """The package's agent: answers each message, and keeps what its prompt was."""

    def __init__(self, *, tools, domain_policy, llm, llm_args):
        self.tools, self.domain_policy, self.llm, self.prompts = tools, domain_policy, llm, []

    def generate_next_message(self, message, state):
        self.prompts.append([each.content for each in state.system_messages])
        state.messages.append(message)
        reply = SimpleNamespace(role="assistant", content="fine", tool_calls=None)
        state.messages.append(reply)
        return reply, state


class Message(SimpleNamespace):
    """A message of the package."""


class Orchestrator:
    """The package's conversation: two messages of the user with a tool's result between them."""

    made = []  # noqa: RUF012 - the fixture clears it

    def __init__(self, *, domain, agent, user, environment, task, seed):
        self.agent = agent
        Orchestrator.made.append(self)

    def run(self):
        state = SimpleNamespace(system_messages=[Message(role="system", content="policy")], messages=[])
        for message in (
            Message(role="user", content="Where is order 7?"),
            Message(role="tool", content="{}", id="t1"),
            Message(role="user", content="And order 8?"),
        ):
            if message.role == "tool":
                call = SimpleNamespace(id="t1", name="get_order", arguments={"order_id": "7"})
                state.messages.append(Message(role="assistant", content=None, tool_calls=[call]))
            self.agent.generate_next_message(message, state)
        return SimpleNamespace(reward_info=SimpleNamespace(reward=1.0))


@pytest.fixture
def package(monkeypatch):
    """A package that stands in for tau2, and a model that plans a wrong call, then a right one."""
    Orchestrator.made.clear()
    environment = SimpleNamespace(
        get_tools=lambda: [SimpleNamespace(openai_schema=SCHEMA)], get_policy=lambda: "Be kind."
    )
    parts = {
        "tau2": {},
        "tau2.runner": {
            "get_tasks": lambda domain: [SimpleNamespace(id=f"{domain}-0")],
            "build_environment": lambda domain: environment,
            "build_user": lambda name, environment, task, *, llm, llm_args: (name, llm),
            "run_simulation": lambda orchestrator: orchestrator.run(),
        },
        "tau2.agent.llm_agent": {"LLMAgent": Agent},
        "tau2.orchestrator.orchestrator": {"Orchestrator": Orchestrator},
        "tau2.data_model.message": {"SystemMessage": Message},
    }
    for name, members in parts.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    turn = {
        "planner": [
            [{"call": "get_order", "args": {"number": 7}}, {"say": "It is lost."}],
            [{"call": "get_order", "args": {"order_id": "7"}}, {"say": "It is on its way."}],
        ],
        "checklist": [{"items": [{"description": "the order was looked up"}]}],
        "judge": [
            {"items": [{"id": "item-1", "status": "failed"}], "feedback": "the order was not looked up"},
            {"items": [{"id": "item-1", "status": "success"}]},
        ],
        "simulator": [{"status": "ok", "result": {"status": "sent"}, "patch": []}] * 4,
        "bootstrapper": [{"domain": {}, "runtime_state": {}}] * 2,
        "validator": [{"problems": []}] * 4,
        "state_updater": [{"patch": []}] * 4,
    }
    model = RecordedModel(turns=[turn, turn])
    roles = ("planner", "checklist", "judge", "simulator", "bootstrapper", "validator", "state_updater")
    monkeypatch.setattr(
        "evals.harness.options.Options.speakers", lambda self, planner=None: dict.fromkeys(roles, model)
    )
    monkeypatch.setattr("evals.harness.options.Options.chat", lambda self, name: model)


def test_attempts_and_feedback_become_examples_of_the_real_agent(run, package, tmp_path):
    assert run(Tau, "--live", "--only", "retail") == 0
    (made,) = Orchestrator.made
    first, second, third = made.agent.prompts
    assert made.agent.llm == "openai/gpt-4o"
    assert [len(each) for each in (first, second, third)] == [2, 2, 2]
    assert first[0] == "policy"
    assert "Attempt 1: failed" in first[1]
    assert "the order was not looked up" in first[1].partition("feedback: ")[2]
    assert 'get_order({"number": 7}) -> refused' in first[1]
    assert "Attempt 2: accepted" in first[1]
    assert '{"status": "sent"}' in first[1]
    assert first == second
    told = read_summary(tmp_path)
    retail = told["figures"][0]["rows"][0]
    assert (retail[1]["hits"], retail[2]["value"], retail[3]["value"]) == (1, 2.0, 4.0)


def test_plain_hands_nothing_over(run, package):
    assert run(Tau, "--live", "--plain", "--only", "airline") == 0
    assert Orchestrator.made[0].agent.prompts == [["policy"]] * 3


def test_another_version_of_the_package_is_told(run, package, monkeypatch, capsys):
    monkeypatch.delattr(sys.modules["tau2.agent.llm_agent"], "LLMAgent")
    assert run(Tau, "--live") == 2
    assert "another version of it" in capsys.readouterr().err


def test_messages_of_the_package_become_a_conversation():
    call = SimpleNamespace(id="1", name="get_order", arguments={"order_id": "7"})
    results = [Message(role="tool", id="1", content="a"), Message(role="tool", id="2", content="b")]
    made = tau_live.conversation(
        [
            Message(role="user", content="hi"),
            Message(role="assistant", content=None, tool_calls=[call]),
            Message(role="tool", tool_messages=results),
        ]
    )
    assert [each.type for each in made] == ["human", "ai", "tool", "tool"]
    assert made[1].tool_calls[0]["args"] == {"order_id": "7"}
