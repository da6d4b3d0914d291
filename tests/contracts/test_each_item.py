"""`all`, `any`, `count` and `each`; lets with parameters; shared requirements; `pass`."""

import pytest

from gecko_graph import GeckoContext, Rung, Tool, Toolkit, World
from gecko_graph.contracts.contract import Contract
from gecko_graph.errors import ContractError
from gecko_graph.values.notes import notes_of
from gecko_graph.world.rung import Answer
from tests.contracts.test_contract import load, opened
from tests.doubts import texts

STATE = {
    "orders": [{"id": 1, "paid": True, "items": ["pen", "ink"]}, {"id": 2, "paid": False, "items": []}],
    "fares": {"A1": {"economy": 10, "business": 30}, "B2": {"economy": 5, "business": 7}},
}


FARES = {
    "fare(flight, cabin)": "{{ state.fares[flight][cabin] }}",
    "total(flights)": "{{ sum(fare(f, args.cabin) for f in flights) }}",
    "pair(x)": ["{{ x }}", {"cases": [{"when": "x > 1", "value": "many"}, {"value": "one"}]}],
    "whole": "{{ total(['A1', 'B2']) }}",
}


@pytest.mark.parametrize(("source", "wanted"), [
    ("{{ fare('A1', 'economy') }}", 10), ("{{ total(['A1', 'B2']) }}", 37),
    ("{{ pair(2) + pair(pair(1)[0]) }}", [2, "many", 1, "one"]),
    ("{{ defined(fare('C3', 'economy')) }}", False),
])  # fmt: skip
def test_a_let_with_parameters_is_called(source, wanted):
    run = opened({"let": FARES, "returns": source}, state=STATE, cabin="business")
    assert run.answer().result == wanted


@pytest.mark.parametrize(("lets", "returns", "why"), [
    ({"f(x)": "{{ f(x) }}"}, None, "lets use one another in a cycle: f/1 -> f/1"),
    ({"f(x)": 1}, "{{ f(1, 2) }}", "f takes 1 arguments, not 2"),
    ({"f(x)": 1}, "{{ g(1) }}", "unknown function 'g'"), ({"at(x)": 1}, None, "'at' is reserved"),
    ({"f(x, x)": 1}, None, "the name 'x' is already taken"), ({"f()": 1}, None, "is not a valid name"),
])  # fmt: skip
def test_wrong_lets_with_parameters_are_refused_at_load(lets, returns, why):
    with pytest.raises(ContractError, match=why):
        load({"let": lets, "returns": returns})


SHARED = {
    "known": {"check": "args.id in state.fares", "error": "no flight {{ args.id }}", "kind": "policy"},
    "cheap": [{"check": "fare < 20", "error": "dear", "id": "not-dear"}, {"check": "fare < 9", "error": "not cheap"}],
}
USING = {"let": {"fare": "{{ state.fares[args.id].economy }}"}, "requires": [{"use": "known"}, {"use": "cheap"}]}


def test_shared_requirements_stand_in_documents_and_files_and_python(tmp_path):
    tool = {"name": "t", "parameters": {"type": "object", "properties": {"id": {"type": "string"}}}}
    kinds = [
        Toolkit.from_tools([Tool(tool, contract=USING)], requires=SHARED),
        Toolkit.from_tools([tool]).with_contracts({"contracts": {"t": USING}, "requires": SHARED}),
    ]
    document = Toolkit.from_tools([tool]).to_openapi()
    next(iter(next(iter(document["paths"].values())).values()))["x-contract"] = USING
    kinds += [Toolkit.from_openapi({**document, "x-contract-requires": SHARED})]
    kinds += [Toolkit.from_openapi(kinds[0].to_openapi())]
    for toolkit in kinds:
        found = toolkit.check({"name": "t", "args": {"id": "Z"}}, STATE)
        assert found["error"] == "no flight Z"
        assert [each["clause"] for each in found["violations"]] == ["known"]


@pytest.mark.parametrize(("requires", "why"), [
    ([{"use": "knwon"}], r"requires\[0\].use: unknown shared requirement 'knwon' .did you mean known"),
    ([{"use": "known", "when": "True"}], "unknown key 'when'"),
    ([{"use": "odd"}], "x-contract-requires.odd: expected an object, got str"),
    ([{"use": "wrong"}], r"x-contract-requires.wrong\[0\].check: unknown name 'fare'"),
])  # fmt: skip
def test_a_wrong_use_is_refused_at_load(requires, why):
    shared = {**SHARED, "odd": "known", "wrong": [{"check": "fare > 1", "error": "x"}]}
    with pytest.raises(ContractError, match=why):
        Contract.load({"requires": requires}, requires=shared, where="t")


TOOL = {"name": "t", "parameters": {"type": "object", "properties": {}}}


def answered(contract, effect=None, *, unclear=None, **state):
    rung = Rung("own", lambda request: Answer("ok", "other", []))
    context = GeckoContext(ladder=("contract", "own"), unclear=unclear)
    tools = Toolkit.from_tools([Tool(TOOL, contract=contract, effect=effect)])
    return World(tools, state=state, rungs=[rung], context=context).call({"name": "t", "args": {}})["outcome"]


@pytest.mark.parametrize("unclear", [None, "pass", "refuse"])
@pytest.mark.parametrize("contract", [
    {"requires": [{"check": "state.known", "pass": "{{ 'nothing' }} is known"}], "returns": 1},
    {"returns": {"a": {"cases": [{"when": "state.known", "value": 1}, {"pass": "nothing is known"}]}}},
    {"returns": {"cases": [{"pass": "nothing is known"}]}},
    {
        "let": {"n": {"cases": [{"pass": "nothing is known"}]}}, "requires": [{"check": "n", "error": "x"}],
        "returns": 1,
    },
])  # fmt: skip
def test_a_contract_that_does_not_know_leaves_the_call_to_the_next_rung(contract, unclear):
    outcome = answered(contract, unclear=unclear, known=False)
    assert (outcome["result"], outcome["rung"]) == ("other", "own")
    assert outcome["passed"] == [{"rung": "contract", "reason": "the contract does not know: nothing is known"}]
    assert not notes_of(outcome, "unclear")


@pytest.mark.parametrize("first", [0, 1])
def test_the_other_requirements_still_hold_and_what_cannot_be_evaluated_marks_what_is_no_read(first):
    closed = {"check": "state.open", "error": "closed", "id": "hours"}
    unsure = [{"check": "state.known", "pass": "x"}, {"check": "state.fare > 3", "error": "dear"}]
    contract = {"requires": [unsure[first], unsure[1 - first], closed], "returns": 1}
    outcome = answered(contract, known=False, open=False)
    assert (outcome["status"], outcome["result"]) == ("error", "closed")
    assert [each["clause"] for each in outcome["violations"]] == ["hours"]
    assert answered(contract, "read", known=False, open=True).get("notes") is None
    assert answered(contract, "read", unclear="refuse", known=False, open=True)["result"] == "other"
    for effect in ("write", None):
        outcome = answered(contract, effect, known=False, open=True)
        assert (outcome["result"], len(texts(outcome, "unclear"))) == ("other", 1)
        assert answered(contract, effect, unclear="refuse", known=False, open=True)["status"] == "error"
    assert answered({"requires": [unsure[1], closed], "returns": 1}, open=True)["status"] == "error"


def test_what_a_pass_skips_refuses_a_real_write_where_the_guard_is_to():
    unsure = [{"check": "state.known", "pass": "x"}, {"check": "state.fare > 3", "error": "dear"}]
    call = {"name": "t", "args": {}}
    for effect, refused in (("write", True), ("read", False)):
        tools = Toolkit.from_tools([Tool(TOOL, contract={"requires": unsure}, effect=effect)])
        assert (tools.check(call, {"known": False}, unclear="refuse") is not None) == refused
        assert tools.check(call, {"known": False}) is None


@pytest.mark.parametrize(("data", "why"), [
    ({"requires": [{"check": "True", "pass": "x", "error": "y"}]}, "unknown key 'error'"),
    ({"ensures": [{"check": "True", "pass": "x"}]}, "unknown key 'pass'"),
    ({"returns": {"cases": [{"when": "True", "pass": "x", "value": 1}]}}, "unknown key 'value'"),
])  # fmt: skip
def test_pass_stands_in_requirements_and_cases_alone(data, why):
    with pytest.raises(ContractError, match=why):
        load(data)
