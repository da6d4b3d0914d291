"""Clauses with `id` and `kind`, the calls a contract sees, and whether a tool is admissible before its arguments."""

import pytest

from gecko_graph import GeckoContext, Rung, Tool, Toolkit, World
from gecko_graph.contracts.contract import Contract
from gecko_graph.errors import ContractError
from gecko_graph.values.notes import notes_of
from gecko_graph.world.rung import Answer
from tests.agents import call, make_agent, thread

DO = {"name": "do", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
ASK = {"name": "ask", "parameters": {"type": "object", "properties": {}}}


def world(contract, *, invariants=(), state=None, context=None):
    tools = [Tool(DO, contract=contract), Tool(ASK, contract={"returns": 1}, effect="read")]
    tools = Toolkit.from_tools(tools, invariants=invariants)
    return World(tools, state=state or {}, context=context)


def broken(clause, error, *, kind="tool", part="requires"):
    return {"clause": clause, "kind": kind, "part": part, "error": error}


REQUIRES = [
    {"check": "args.n > 0", "error": {"code": 7}, "id": "positive", "kind": "policy"},
    {"check": "args.n > 1", "error": "too small", "effects": [{"op": "add", "path": ["n"], "value": 1}]},
    {"check": "state.nothing > 1", "error": "never"},
    {"check": "args.n > -9", "error": "holds"},
    {"when": "args.n < 0", "check": "False", "error": "below {{ args.n }}", "kind": "sense"},
]


def test_all_broken_requirements_stand_in_the_record_and_the_first_is_the_error():
    outcome = world({"requires": REQUIRES, "returns": 1}).call({"name": "do", "args": {"n": -1}})["outcome"]
    assert (outcome["status"], outcome["result"], outcome["patch"]) == ("error", {"code": 7}, [])
    assert outcome["violations"] == [
        broken("positive", {"code": 7}, kind="policy"),
        broken("requires[1]", "too small"),
        broken("requires[4]", "below -1", kind="sense"),
    ]
    assert not notes_of(outcome, "unclear")  # what stands behind the first refusal only goes into the record


def test_broken_postconditions_and_invariants_stand_in_the_record():
    contract = {
        "effects": [{"op": "add", "path": ["n"], "value": "{{ args.n }}"}],
        "returns": "{{ args.n }}",
        "ensures": [
            {"check": "result > 5", "error": ["small", "{{ result }}"], "id": "big"},
            {"check": "state.nothing > 5", "error": "never"},
        ],
    }
    two = {"check": "state.n > 2", "error": "n is {{ state.n }}", "kind": "sense"}
    invariants = [two, {"check": "state.n > 3", "error": "n", "id": "over-three"}]
    here = world(contract, invariants=invariants, state={"n": 9})
    outcome = here.call({"name": "do", "args": {"n": 1}})["outcome"]
    assert outcome["result"] == 'refused: ["small", 1]'
    found = outcome["violations"]
    assert found[0] == broken("big", '["small", 1]', part="ensures")
    assert "a postcondition cannot be evaluated: " in found[1]["error"]
    assert found[2:] == [
        broken("invariants[0]", "n is 1", kind="sense", part="invariant"),
        broken("over-three", "n", part="invariant"),
    ]
    assert here.state == {"n": 9}


@pytest.mark.parametrize(("more", "why"), [
    ({"id": ""}, "id: expected a text, got ''"),
    ({"kind": "rule"}, "kind: expected one of policy, tool, sense, got 'rule'"),
    ({"kinds": "tool"}, "unknown key 'kinds' .did you mean kind"),
])  # fmt: skip
def test_wrong_ids_and_kinds_are_refused_at_load(more, why):
    with pytest.raises(ContractError, match=rf"tool do: requires\[0\].*{why}"):
        Contract.load({"requires": [{"check": "True", "error": "x", **more}]}, where="tool do")


SEES = {
    "let": {"asked": "{{ [one for one in calls if one.name == 'ask'] }}"},
    "requires": [{"check": "len(asked) > 0", "error": "ask first"}],
    "returns": "{{ [one.status for one in calls] }}",
    "ensures": [{"check": "len(result) == len(calls)", "error": "wrong"}],
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
    asked = {"name": "ask", "args": {}, "status": "ok", "result": 1}
    assert here.toolkit.check({"name": "do", "args": {}}, {}, calls=[asked]) is None


@pytest.mark.parametrize(("mode", "last"), [("serial", ["ok"]), ("snapshot", "ask first")])
def test_calls_that_are_answered_at_once_do_not_see_one_another(mode, last):
    here = world(SEES, context=GeckoContext(parallel_calls=mode))
    steps = here.call_all([{"name": "ask", "args": {}}, {"name": "do", "args": {}}])
    assert steps[1]["outcome"]["result"] == last


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

    known = {"check": "args.id in [one.result.id for one in calls]", "error": "not of this turn"}
    contracts = {"order": {"returns": {"id": "sim-1"}}, "cancel": {"requires": [known], "returns": {"ok": True}}}
    tools = Toolkit.from_tools([Tool(order, effect="write"), Tool(cancel, effect="write")])
    tools = tools.with_contracts({"contracts": contracts})
    agent = make_agent(tools, [call("order"), call("cancel", id="sim-1"), {"say": "done"}])
    items = [{"description": "two calls", "check": "len(calls) == 2"}]
    agent.invoke({"messages": [("user", "go")], "checklist": items}, thread())
    assert made == ["order", "cancel real-1"]


OPEN = {"check": "state.open", "error": "the shop is closed"}
STOCKED = {"check": "state.stock > 0", "error": "none left of {{ state.stock }}"}


def load(*requires, lets=None, **more):
    return Contract.load({"requires": list(requires), **more}, lets=lets, where="contract of sell")


def judge(contract, state, now=None):
    return contract.admissible(state, now=now)[:2]


def test_a_contract_without_such_requirements_admits_every_state():
    by_arguments = {"check": "args.id in state.orders", "error": "no such order"}
    assert not load(by_arguments).is_gated
    assert judge(load(by_arguments), {}) == ("yes", "")
    assert load(by_arguments, OPEN).is_gated


@pytest.mark.parametrize(("state", "expected"), [
    ({"open": True, "stock": 3}, ("yes", "")),
    ({"open": False, "stock": 3}, ("no", "the shop is closed")),
    ({"open": True, "stock": 0}, ("no", "none left of 0")), ({"stock": 0}, ("no", "none left of 0")),
])  # fmt: skip
def test_the_first_that_fails_gives_the_reason(state, expected):
    assert judge(load(OPEN, STOCKED), state) == expected
    word, reason = judge(load(OPEN, STOCKED), {"open": True})
    assert (word, reason[:19], "stock" in reason) == ("unknown", "requires[1].check: ", True)


def test_a_requirement_that_needs_the_arguments_through_a_let_is_none_of_them():
    lets = {"order": "{{ at(state.orders, [args.id], None) }}", "paid": "{{ order != None }}"}
    contract = load({"check": "paid", "error": "not paid"}, OPEN, lets=lets)
    assert judge(contract, {"open": True}) == ("yes", "")
    assert not load({"check": "state.open", "when": "args.fast", "error": "?"}).is_gated
    assert not load({"check": "call.id != ''", "error": "?"}).is_gated


def test_an_error_that_names_the_arguments_is_left_out_and_a_condition_on_the_clock_is_unknown_without_one():
    named = load({"check": "state.open", "error": "{{ args.id }} cannot be sold"})
    assert judge(named, {"open": False}) == ("no", "a condition of this tool does not hold")
    clock = load({"check": "now >= '2024'", "error": "too early"})
    assert judge(clock, {}, now="2023-01-01") == ("no", "too early")
    assert judge(clock, {}, now="2025-01-01") == ("yes", "")
    assert judge(clock, {})[0] == "unknown"
