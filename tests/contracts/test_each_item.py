"""`all`, `any`, `count` and `each`; lets with parameters; shared requirements; `pass`."""

import pytest

from gecko_graph import GeckoContext, Rung, Toolkit, World
from gecko_graph.contracts.contract import Contract, Invariant
from gecko_graph.contracts.language.expression import Expression, Scope
from gecko_graph.errors import ContractError, EvaluationFailed
from gecko_graph.world.rung import Answer
from tests.contracts.test_contract import load, opened

STATE = {
    "orders": [{"id": 1, "paid": True, "items": ["pen", "ink"]}, {"id": 2, "paid": False, "items": []}],
    "fares": {"A1": {"economy": 10, "business": 30}, "B2": {"economy": 5, "business": 7}},
}


def value(source, **names):
    return Expression.compile(source, names=("state", *names), where="here").evaluate(Scope({"state": STATE, **names}))


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("all(o in state.orders, o.paid)", False),
        ("all(o in state.orders, o.id > 0)", True),
        ("all(o in [], o.nothing)", True),
        ("any(o in state.orders, o.paid)", True),
        ("any(o in [], true)", False),
        ("any(o in state.orders, o.id) == true", True),
        ("count(o in state.orders, not o.paid)", 1),
        ("each(o in state.orders, o.id * 2)", [2, 4]),
        ("each(o in state.orders, o.id, o.paid)", [1]),
        ("each(o in state.orders, each(i in o['items'], o.id ~ i))", [["1pen", "1ink"], []]),
        ("all(o in state.orders | selectattr('paid'), 'pen' in o['items'])", True),
        ("any(o in state.orders, all(x in o['items'], x == 'pen'))", True),
        ("all(o in state.orders, any(o in [3], o == 3) and o.id < 3)", True),
        ("each(item in [1, 2], item) + [each(item in [3], item)]", [1, 2, [3]]),
    ],
)
def test_what_holds_for_each_item(source, wanted):
    assert value(source) == wanted


def test_the_name_of_an_item_hides_nothing_for_longer():
    scope = Scope({"state": STATE, "item": "outer"})
    names = ("state", "item")
    inside = Expression.compile("any(item in [1, 2], item == 1) and item == 'outer'", names=names, where="here")
    assert inside.evaluate(scope)
    with pytest.raises(EvaluationFailed, match="division by zero"):
        Expression.compile("all(item in [0], 1 / item)", names=names, where="here").evaluate(scope)
    assert scope.values == {"state": STATE, "item": "outer"}


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("all(state.orders, true)", r"expected a name and a list first, as in all\(x in state.orders, x.paid\)"),
        ("all(o.x in state.orders, true)", "expected a name and a list first"),
        ("all(o in a in state.orders, true)", "expected a name and a list first"),
        ("all(o not in state.orders, true)", "expected a name and a list first"),
        ("all(o in state.orders)", r"write all\(x in LIST, CONDITION\)"),
        ("all(o in state.orders, true, true)", r"write all\(x in LIST, CONDITION\)"),
        ("each(o in state.orders, true, true, true)", r"write each\(x in LIST, VALUE\)"),
        ("all(o in state.orders, condition=true)", r"write all\(x in LIST, CONDITION\)"),
        ("all(args in state.orders, true)", "the name 'args' is reserved"),
        ("all(n in state.orders, true)", "the name 'n' is already taken"),
        ("all(o in state.orders, o.paid) and o", "unknown name 'o'"),
        ("all(o in o, true)", "unknown name 'o'"),
        ("alll(o in [1], true)", "unknown function 'alll' .did you mean all"),
    ],
)
def test_a_wrong_form_is_refused_at_load(source, why):
    with pytest.raises(ContractError, match=why):
        value(source, n=1)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("all(o in state.orders, o.missing)", "the value's? ?|o.missing is undefined"),
        ("all(o in state.fares, true)", "all needs a list, not an object; use `| keys`"),
        ("each(o in state.orders, o.missing)", "o.missing is undefined"),
    ],
)
def test_what_cannot_be_evaluated_is_not_false(source, why):
    with pytest.raises(EvaluationFailed, match=why):
        value(source)


# lets with parameters ------------------------------------------------------------------------------------------------

FARES = {
    "fare(flight, cabin)": "{{ state.fares[flight][cabin] }}",
    "total(flights)": "{{ each(f in flights, fare(f, args.cabin)) | sum }}",
    "pair(x)": ["{{ x }}", {"cases": [{"when": "x > 1", "value": "many"}, {"value": "one"}]}],
    "whole": "{{ total(['A1', 'B2']) }}",
}


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("{{ fare('A1', 'economy') }}", 10),
        ("{{ total(['A1', 'B2']) }}", 37),
        ("{{ whole }}", 37),
        ("{{ pair(2) + pair(pair(1)[0]) }}", [2, "many", 1, "one"]),
        ("{{ fare('C3', 'economy') is defined }}", False),
        ("{{ each(cabin in ['economy', 'business'], fare('B2', cabin)) }}", [5, 7]),
    ],
)
def test_a_let_with_parameters_is_called(source, wanted):
    run = opened({"let": FARES, "returns": source}, state=STATE, cabin="business")
    assert run.answer().result == wanted


def test_a_let_with_parameters_sees_the_state_before_as_every_let():
    data = {
        "let": {"twice(x)": "{{ [x, state.n] }}"},
        "effects": [{"op": "replace", "path": ["n"], "value": 2}],
        "returns": "{{ twice(state.n) }}",
    }
    assert opened(data, state={"n": 1}).answer().result == [2, 1]


def test_any_name_may_be_an_item_or_a_parameter():
    loop = {"for_each": "[1]", "as": "self", "value": "{{ f(self) }}"}
    contract = load({"let": {"f(self)": "{{ self + 1 }}"}, "returns": loop})
    assert opened(contract.fit({"type": "object", "properties": {}})).answer().result == [2]


def test_a_parameter_hides_nothing_outside_of_its_let():
    data = {
        "let": {"f(x)": "{{ x + 1 }}", "g(x)": "{{ f(x + 10) + x }}", "late(x)": "{{ x / 0 }}"},
        "requires": [{"check": "late(1) == 1", "error": "x"}],
        "returns": {"for_each": "[1, 2]", "as": "x", "value": "{{ [g(x), x] }}"},
    }
    run = opened(data)
    assert run.refusal() is None
    assert "division by zero" in run.unclear[0]
    assert run.answer().result == [[13, 1], [15, 2]]


def test_identifiers_of_a_let_with_parameters_are_new_each_time():
    data = {"let": {"made(kind)": "{{ new_id(kind) }}"}, "returns": ["{{ made('a') }}", "{{ made('a') }}"]}
    first, again = opened(data).answer().result, opened(data).answer().result
    assert first == again
    assert len(set(first)) == 2


@pytest.mark.parametrize(
    ("lets", "returns", "why"),
    [
        ({"f(x)": "{{ f(x) }}"}, None, "lets use one another in a cycle: f/1 -> f/1"),
        ({"f(x)": "{{ a }}", "a": "{{ f(1) }}"}, None, "in a cycle"),
        ({"f(x)": 1}, "{{ f(1, 2) }}", "f takes 1 arguments, not 2"),
        ({"f(x)": 1}, "{{ f }}", "unknown name 'f'"),
        ({"f(x)": 1}, "{{ g(1) }}", "unknown function 'g'"),
        ({"f(x)": 1}, "{{ f(x=1) }}", "only the language's own functions take arguments by name"),
        ({"f(x)": 1}, "{{ x }}", "unknown name 'x'"),
        ({"at(x)": 1}, None, "'at' is reserved"),
        ({"all(x)": 1}, None, "'all' is reserved"),
        ({"f(x, x)": 1}, None, "the name 'x' is already taken"),
        ({"f(args)": 1}, None, "'args' is reserved"),
        ({"f(a)": 1, "a": 2}, None, "the name 'a' is already taken"),
        ({"f()": 1}, None, "is not a valid name"),
        ({"f(x": 1}, None, "is not a valid name"),
        ({"f(__x__)": 1}, None, "is not a valid name"),
        ({"f(x)": "{{ all(x in [1], x) }}"}, None, "the name 'x' is already taken"),
    ],
)
def test_wrong_lets_with_parameters_are_refused_at_load(lets, returns, why):
    with pytest.raises(ContractError, match=why):
        load({"let": lets, "returns": returns})


def test_shared_lets_may_have_parameters_and_unused_ones_are_found():
    data = {"let": {"g(x)": 1, "h(x)": 2}, "returns": "{{ f(1) + h(2) }}"}
    contract = load(data, {"f(x)": "{{ x }}"})
    assert contract.unused_lets() == ["g(x)"]
    lets = {"open(orders)": "{{ count(o in orders, not o.paid) }}"}
    invariant = Invariant.load({"check": "open(state.orders) < 2", "error": "two"}, lets=lets, where="i")
    assert invariant.violation({}, STATE) is None


def test_lets_of_before_may_have_the_names_of_newer_functions():
    data = {"let": {"date": "{{ 3 }}", "calls": "{{ 4 }}", "all": 5}, "returns": "{{ [date, calls, all] }}"}
    assert opened(data).answer().result == [3, 4, 5]


# shared requirements -------------------------------------------------------------------------------------------------

SHARED = {
    "known": {"check": "args.id in state.fares", "error": "no flight {{ args.id }}", "kind": "policy"},
    "cheap": [
        {"check": "fare < 20", "error": "dear", "id": "not-dear"},
        {"check": "fare < 9", "error": "not cheap"},
    ],
}
USING = {"let": {"fare": "{{ state.fares[args.id].economy }}"}, "requires": [{"use": "known"}, {"use": "cheap"}]}


def test_tools_share_requirements_by_name():
    run = Contract.load(USING, requires=SHARED, where="t").open(
        args={"id": "A1"}, parameters={}, state=STATE, call={"id": "1", "name": "t", "args": {}}, now=None, seed=0
    )
    assert [each["clause"] for each in run.refusal().violations] == ["cheap[1]"]


def test_shared_requirements_are_written_out_in_the_contract():
    own = {"check": "true", "error": "x"}
    data = {**USING, "requires": [{"use": "known"}, own]}
    contract = Contract.load(data, requires=SHARED, where="t")
    assert contract.data["requires"] == [{"id": "known", **SHARED["known"]}, {"id": "requires[1]", **own}]
    assert Contract.load(contract.data, where="t") == contract
    assert load({"requires": [own]}).data["requires"] == [own]


def test_shared_requirements_stand_in_documents_and_files_and_python(tmp_path):
    tool = {"name": "t", "parameters": {"type": "object", "properties": {"id": {"type": "string"}}}}
    kinds = [
        Toolkit.from_tools([tool], contracts={"t": USING}, requires=SHARED),
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


@pytest.mark.parametrize(
    ("requires", "why"),
    [
        ([{"use": "knwon"}], r"requires\[0\].use: unknown shared requirement 'knwon' .did you mean known"),
        ([{"use": ["known"]}], "unknown shared requirement"),
        ([{"use": "known", "when": "true"}], "unknown key 'when'"),
        ([{"use": "odd"}], "x-contract-requires.odd: expected an object, got str"),
        ([{"use": "wrong"}], r"x-contract-requires.wrong\[0\].check: unknown name 'fare'"),
    ],
)
def test_a_wrong_use_is_refused_at_load(requires, why):
    shared = {**SHARED, "odd": "known", "wrong": [{"check": "fare > 1", "error": "x"}]}
    with pytest.raises(ContractError, match=why):
        Contract.load({"requires": requires}, requires=shared, where="t")


# pass ----------------------------------------------------------------------------------------------------------------


TOOL = {"name": "t", "parameters": {"type": "object", "properties": {}}}


def answered(contract, effect=None, *, unclear=None, **state):
    rung = Rung("own", lambda request: Answer("ok", "other", []))
    context = GeckoContext(ladder=("contract", "own"), unclear=unclear)
    tools = Toolkit.from_tools([TOOL], contracts={"t": contract}, effects={"t": effect} if effect else {})
    return World(tools, state=state, rungs=[rung], context=context).call({"name": "t", "args": {}})["outcome"]


@pytest.mark.parametrize("unclear", [None, "pass", "refuse"])
@pytest.mark.parametrize(
    "contract",
    [
        {"requires": [{"check": "state.known", "pass": "{{ 'nothing' }} is known"}], "returns": 1},
        {"returns": {"a": {"cases": [{"when": "state.known", "value": 1}, {"pass": "nothing is known"}]}}},
        {"returns": {"cases": [{"pass": "nothing is known"}]}},
        {
            "let": {"n": {"cases": [{"pass": "nothing is known"}]}},
            "requires": [{"check": "n > 1", "error": "x"}],
            "returns": 1,
        },
    ],
)
def test_a_contract_that_does_not_know_leaves_the_call_to_the_next_rung(contract, unclear):
    outcome = answered(contract, unclear=unclear, known=False)
    assert (outcome["result"], outcome["rung"]) == ("other", "own")
    assert outcome["passed"] == [{"rung": "contract", "reason": "the contract does not know: nothing is known"}]
    assert "unclear" not in outcome


def test_what_a_contract_knows_it_answers():
    contract = {"requires": [{"check": "state.known", "pass": "nothing"}], "returns": 1}
    assert answered(contract, known=True)["result"] == 1


@pytest.mark.parametrize("first", [0, 1])
def test_the_other_requirements_still_hold_and_what_cannot_be_evaluated_marks_what_is_no_read(first):
    closed = {"check": "state.open", "error": "closed", "id": "hours"}
    unsure = [{"check": "state.known", "pass": "x"}, {"check": "state.fare > 3", "error": "dear"}]
    contract = {"requires": [unsure[first], unsure[1 - first], closed], "returns": 1}
    outcome = answered(contract, known=False, open=False)
    assert (outcome["status"], outcome["result"]) == ("error", "closed")
    assert [each["clause"] for each in outcome["violations"]] == ["hours"]
    assert answered(contract, "read", known=False, open=True).get("unclear") is None
    assert answered(contract, "read", unclear="refuse", known=False, open=True)["result"] == "other"
    for effect in ("write", None):
        outcome = answered(contract, effect, known=False, open=True)
        assert (outcome["result"], len(outcome["unclear"])) == ("other", 1)
        assert answered(contract, effect, unclear="refuse", known=False, open=True)["status"] == "error"
    assert answered({"requires": [unsure[1], closed], "returns": 1}, open=True)["status"] == "error"


def test_what_a_pass_skips_refuses_a_real_write_where_the_guard_is_to():
    unsure = [{"check": "state.known", "pass": "x"}, {"check": "state.fare > 3", "error": "dear"}]
    call = {"name": "t", "args": {}}
    for effect, refused in (("write", True), ("read", False)):
        tools = Toolkit.from_tools([TOOL], contracts={"t": {"requires": unsure}}, effects={"t": effect})
        assert (tools.check(call, {"known": False}, unclear="refuse") is not None) == refused
        assert tools.check(call, {"known": False}) is None


def test_a_pass_says_nothing_of_whether_a_tool_is_admissible():
    contract = load({"requires": [{"check": "state.known", "pass": "x"}], "returns": 1})
    assert contract.admissible({"known": False}, now=None).word == "yes"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"requires": [{"check": "true", "pass": "x", "error": "y"}]}, "unknown key 'error'"),
        ({"requires": [{"check": "true", "pass": "x", "effects": []}]}, "unknown key 'effects'"),
        ({"ensures": [{"check": "true", "pass": "x"}]}, "unknown key 'pass'"),
        ({"returns": {"cases": [{"when": "true", "pass": "x", "value": 1}]}}, "unknown key 'value'"),
    ],
)
def test_pass_stands_in_requirements_and_cases_alone(data, why):
    with pytest.raises(ContractError, match=why):
        load(data)


def test_a_result_with_the_key_pass_is_a_result():
    assert opened({"returns": {"pass": 3}}).answer().result == {"pass": 3}
