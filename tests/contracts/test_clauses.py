"""Clauses with `id` and `kind`, all that a call breaks, and the calls of the turn that a contract sees."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoContext, Rung, Toolkit, World, create_gecko
from gecko_graph.agent.graph import create_gecko_agent
from gecko_graph.contracts.contract import Contract, Invariant
from gecko_graph.display.words import format_violations
from gecko_graph.errors import ContractError
from gecko_graph.testing import recorded
from gecko_graph.world.rung import Answer

DO = {"name": "do", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
ASK = {"name": "ask", "parameters": {"type": "object", "properties": {}}}


def world(contract, *, invariants=(), state=None, context=None):
    tools = Toolkit.from_tools(
        [DO, ASK], contracts={"do": contract, "ask": {"returns": 1}}, invariants=invariants, effects={"ask": "read"}
    )
    return World(tools, state=state or {}, context=context)


def broken(clause, error, *, kind="tool", part="requires"):
    return {"clause": clause, "kind": kind, "part": part, "error": error}


REQUIRES = [
    {"check": "args.n > 0", "error": {"code": 7}, "id": "positive", "kind": "policy"},
    {"check": "args.n > 1", "error": "too small", "effects": [{"op": "add", "path": ["n"], "value": 1}]},
    {"check": "state.nothing > 1", "error": "never"},
    {"check": "args.n > -9", "error": "holds"},
    {"when": "args.n < 0", "check": "false", "error": "below {{ args.n }}", "kind": "sense"},
]


def test_all_broken_requirements_stand_in_the_record_and_the_first_is_the_error():
    outcome = world({"requires": REQUIRES, "returns": 1}).call({"name": "do", "args": {"n": -1}})["outcome"]
    assert (outcome["status"], outcome["result"], outcome["patch"]) == ("error", {"code": 7}, [])
    assert outcome["violations"] == [
        broken("positive", {"code": 7}, kind="policy"),
        broken("requires[1]", "too small"),
        broken("requires[4]", "below -1", kind="sense"),
    ]
    assert "unclear" not in outcome  # what stands behind the first refusal only goes into the record


def test_a_broken_requirement_whose_error_cannot_be_filled_in_stands_in_the_record_too():
    first, second = {"check": "false", "error": "first"}, {"check": "false", "error": "{{ state.nothing }}"}
    outcome = world({"requires": [first, second], "returns": 1}).call({"name": "do", "args": {}})["outcome"]
    assert outcome["result"] == "first"
    assert [each["clause"] for each in outcome["violations"]] == ["requires[0]", "requires[1]"]
    assert "unclear" not in outcome


def test_a_call_that_breaks_nothing_has_no_violations():
    assert "violations" not in world({"returns": 1}).call({"name": "do", "args": {}})["outcome"]


def test_broken_postconditions_and_invariants_stand_in_the_record():
    contract = {
        "effects": [{"op": "add", "path": ["n"], "value": "{{ args.n }}"}],
        "returns": "{{ args.n }}",
        "ensures": [
            {"check": "result > 5", "error": ["small", "{{ result }}"], "id": "big"},
            {"check": "state.nothing > 5", "error": "never"},
        ],
    }
    invariants = [
        {"check": "state.n > 2", "error": "n is {{ state.n }}", "kind": "sense"},
        {"check": "state.n > 3", "error": "n", "id": "over-three"},
    ]
    here = world(contract, invariants=invariants, state={"n": 9})
    outcome = here.call({"name": "do", "args": {"n": 1}})["outcome"]
    assert outcome["result"] == 'not done: ["small", 1]'
    found = outcome["violations"]
    assert found[0] == broken("big", '["small", 1]', part="ensures")
    assert "a postcondition cannot be evaluated: " in found[1]["error"]
    assert found[2:] == [
        broken("invariants[0]", "n is 1", kind="sense", part="invariant"),
        broken("over-three", "n", part="invariant"),
    ]
    assert here.state == {"n": 9}


def test_an_invariant_in_a_document_is_named_by_its_number():
    where = "a.yaml#/x-contract-invariants/2"
    invariant = Invariant.load({"check": "state.n > 2", "error": "n"}, where=where)
    assert invariant.record("n")["clause"] == "invariants[2]"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"id": ""}, "id: expected a text, got ''"),
        ({"id": 3}, "id: expected a text, got 3"),
        ({"kind": "rule"}, "kind: expected one of policy, tool, sense, got 'rule'"),
        ({"kinds": "tool"}, "unknown key 'kinds' .did you mean kind"),
    ],
)
def test_wrong_ids_and_kinds_are_refused_at_load(more, why):
    with pytest.raises(ContractError, match=rf"tool do: requires\[0\].*{why}"):
        Contract.load({"requires": [{"check": "true", "error": "x", **more}]}, where="tool do")


def test_a_step_shows_the_clauses_that_add_to_the_error():
    assert format_violations([broken("requires[0]", "x")]) == []
    assert format_violations([broken("fare", "x", kind="policy")]) == ["fare (policy)"]
    assert format_violations([broken("requires[0]", "x"), broken("fare", "y")]) == [
        "requires[0] (tool)",
        "fare (tool): y",
    ]


# calls ---------------------------------------------------------------------------------------------------------------

SEES = {
    "let": {"asked": "{{ calls | selectattr('name', 'eq', 'ask') | list }}"},
    "requires": [{"check": "asked | length > 0", "error": "ask first"}],
    "returns": "{{ calls | map(attribute='status') }}",
    "ensures": [{"check": "result | length == calls | length", "error": "wrong"}],
}


def test_a_contract_sees_the_calls_before_it_that_were_answered():
    here = world(SEES)
    results = []
    for name, args in (("do", {}), ("ask", {}), ("do", {"n": "no number"}), ("do", {})):
        step = here.call({"name": name, "args": args})
        results.append(step["outcome"]["result"] if "outcome" in step else "refused")
    assert results == ["ask first", 1, "refused", ["error", "ok"]]


def test_calls_are_seen_by_a_check_before_a_real_call():
    here = world(SEES)
    assert here.check({"name": "do", "args": {}})["error"] == "ask first"
    here.call({"name": "ask", "args": {}})
    assert here.check({"name": "do", "args": {}}) is None
    call = {"name": "ask", "args": {}, "status": "ok", "result": 1}
    assert here.toolkit.check({"name": "do", "args": {}}, {}, calls=[call]) is None


@pytest.mark.parametrize(("mode", "last"), [("serial", ["ok"]), ("snapshot", "ask first")])
def test_calls_that_are_answered_at_once_do_not_see_one_another(mode, last):
    here = world(SEES, context=GeckoContext(parallel_calls=mode))
    steps = here.call_all([{"name": "ask", "args": {}}, {"name": "do", "args": {}}])
    assert steps[1]["outcome"]["result"] == last


def test_a_contract_s_own_let_may_still_be_called_calls():
    contract = {"let": {"calls": "{{ 3 }}"}, "returns": "{{ calls }}"}
    here = world(contract)
    assert not here.toolkit["do"].contract.reads_calls
    assert here.call({"name": "do", "args": {}})["outcome"]["result"] == 3


def test_a_rung_of_one_s_own_sees_the_calls_as_copies():
    seen = []

    def answer(request):
        seen.append(request.calls)
        request.calls[:1] = []
        return Answer("ok", len(seen), [])

    here = World(Toolkit.from_tools([DO]), rungs=[Rung("own", answer)])
    here.call({"name": "do", "args": {}})
    here.call({"name": "do", "args": {"n": 2}})
    assert seen == [[], [{"name": "do", "args": {}, "status": "ok", "result": 1}]]


def test_an_attempt_s_calls_are_seen_and_its_record_names_the_clauses():
    requires = [{**SEES["requires"][0], "id": "ask-first", "kind": "policy"}]
    tools = world({**SEES, "requires": requires}).toolkit
    plan = [{"call": "do", "args": {"n": 1}}, {"call": "ask", "args": {}}, {"call": "do", "args": {"n": 2}}]
    graph = create_gecko(tools, models={"planner": recorded(planner=[[*plan, {"say": "done"}]])})
    given = {"messages": [("user", "do it")], "checklist": [{"description": "asked", "check": "calls | length == 3"}]}
    steps = graph.invoke(given)["rehearsal"]["attempts"][0]["steps"]
    assert steps[0]["outcome"]["violations"] == [broken("ask-first", "ask first", kind="policy")]
    assert steps[2]["outcome"]["result"] == ["error", "ok"]


def test_an_agent_s_contracts_see_its_real_calls():
    made = []

    def order() -> dict:
        """Order."""
        made.append("order")
        return {"id": "real-1"}

    def cancel(id: str) -> dict:
        """Cancel."""
        made.append(f"cancel {id}")
        return {"ok": True}

    known = {"check": "args.id in calls | map(attribute='result') | map(attribute='id')", "error": "not of this turn"}
    contracts = {
        "order": {"returns": {"id": "sim-1"}},
        "cancel": {"requires": [known], "returns": {"ok": True}},
    }
    tools = Toolkit.from_tools([order, cancel], contracts=contracts, effects={"order": "write", "cancel": "write"})
    plan = [{"call": "order", "args": {}}, {"call": "cancel", "args": {"id": "sim-1"}}, {"say": "done"}]
    agent = create_gecko_agent(
        tools, models={"planner": recorded(planner=[plan])}, checkpointer=InMemorySaver(), review="none"
    )
    items = [{"description": "two calls", "check": "calls | length == 2"}]
    agent.invoke({"messages": [("user", "go")], "checklist": items}, {"configurable": {"thread_id": "1"}})
    assert made == ["order", "cancel real-1"]
