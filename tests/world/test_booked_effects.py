"""A write's declared effects are booked, whatever its contract says of the result; the real one fills what is open."""

import pytest

from gecko_graph import GeckoContext, Tool, Toolkit, World
from gecko_graph.real.learned import teach
from gecko_graph.world.rung import Answer
from tests.doubts import texts

UNKNOWN = {"cases": [{"pass": "the bank knows"}]}
REQUIRES = [{"check": "args.amount <= state.balance", "error": "only {{ state.balance }} left"}]
EFFECTS = [{"op": "replace", "path": ["balance"], "value": "{{ state.balance - args.amount }}"}]
EVIDENCE = {"kind": "membership", "for": 12, "against": [], "status": "proposed"}
RETURNS = {
    "none": {},
    "whole": {"returns": UNKNOWN},
    "part": {"returns": {"paid": "{{ args.amount }}", "id": UNKNOWN}},
    "branch": {
        "returns": {"cases": [{"when": "args.amount > 1000", "value": {"paid": 0}}, {"pass": "the bank knows"}]}
    },
}
CALL = {"id": "c", "name": "transfer", "args": {"to": "ann", "amount": 60}}
MARKS = ("drift", "notes", "departure")


def transfer(to: str, amount: int) -> dict[str, int | str]:
    """Transfer money."""
    raise NotImplementedError


ARGUMENTS = {"type": "object", "properties": {"to": {"type": "string"}, "amount": {"type": "integer"}}}
PLAIN = {"name": "transfer", "description": "Transfer money.", "parameters": ARGUMENTS}


def world(contract: dict, *, state: dict | None = None, tool=transfer, **more) -> World:
    toolkit = Toolkit.from_tools([Tool(tool, effect="write", contract=contract)])
    return World(toolkit, state={"balance": 100} if state is None else state, **more)


def marks(entry) -> dict:
    return {key: entry[key] for key in MARKS if entry.get(key)}


def record(one: World, result: object, status: str = "ok", *, by: str = "tool"):
    return one.record(CALL, Answer(status, result, []), by=by)


@pytest.mark.parametrize("returns", RETURNS)
def test_what_was_spent_is_not_there_for_the_next_call(returns):
    one = world({"requires": REQUIRES, "effects": EFFECTS, **RETURNS[returns]})
    assert one.check(CALL) is None
    record(one, {"error": "closed"}, "error")
    assert one.state == {"balance": 100}, "an error books nothing"
    assert marks(record(one, {"paid": 60, "id": "T1"})) == {}
    assert one.state == {"balance": 40}
    assert one.check(CALL)["error"] == "only 40 left"


@pytest.mark.parametrize("real", [None, "paid 60", 60, {"paid": 60}, [60]])
def test_without_a_result_schema_and_without_returns_no_result_is_drift(real):
    one = world({"effects": EFFECTS}, tool=PLAIN)
    assert marks(record(one, real)) == {}
    assert one.state == {"balance": 40}


@pytest.mark.parametrize(
    ("returns", "real", "paths"),
    [
        ({"paid": "{{ args.amount }}", "id": UNKNOWN}, {"paid": 59, "id": "T1"}, ["/paid"]),
        ({"paid": "{{ args.amount }}", "id": UNKNOWN}, {"id": "T1"}, ["/paid"]),
        ({"paid": "{{ args.amount }}", "id": UNKNOWN}, {"paid": 60}, []),
        ({"left": "{{ state.balance }}", "id": UNKNOWN}, {"left": 35, "id": "T1"}, ["/left"]),
        (None, {"balance": 35}, ["/balance", "/balance"]),
    ],
)
def test_what_contradicts_the_known_part_is_drift(returns, real, paths):
    one = world({"effects": EFFECTS, **({"returns": returns} if returns else {})})
    assert [each["path"] for each in record(one, real)["drift"]] == paths
    assert one.state["balance"] < 100
    one = world({"effects": EFFECTS, "returns": {"left": "{{ state.balance }}"}}, state={"balance": 10_100})
    assert [each["path"] for each in record(one, {"left": 9_000})["drift"]] == ["/left"]
    assert one.state == {"balance": 9_000}, "the state follows reality"


@pytest.mark.parametrize("returns", [None, {"id": UNKNOWN}, {"id": "{{ number }}", "note": UNKNOWN}])
@pytest.mark.parametrize("identifier", ["real-77", 77])
def test_an_identifier_that_the_effects_make_up_is_the_real_one(returns, identifier):
    one = world(
        {
            "let": {"number": "{{ new_id('T') }}"},
            "effects": [
                {"op": "add", "path": ["paid", "{{ number }}"], "value": {"id": "{{ number }}", "to": "{{ args.to }}"}}
            ],
            **({"returns": returns} if returns else {}),
        },
        state={"paid": {}},
    )
    real = {"id": identifier, **({"note": "soon"} if returns and "note" in returns else {})}
    assert marks(record(one, real)) == {}
    assert one.state == {"paid": {str(identifier): {"id": identifier, "to": "ann"}}}


def test_lists_are_filled_item_by_item():
    listed = {"name": "transfer", "effect": "write", "response": {"type": "array"}, "parameters": {}}
    contract = {"effects": [], "returns": [{"n": 1, "at": UNKNOWN}, UNKNOWN]}
    toolkit = Toolkit.from_tools([Tool(listed, contract=contract)])
    for real, drift in (([{"n": 1, "at": 5}, 7], []), ([{"n": 2, "at": 5}, 7], ["/0/n"]), ([{"n": 1}], [])):
        entry = World(toolkit).record({"id": "c", "name": "transfer", "args": {}}, Answer("ok", real, []))
        assert [each["path"] for each in entry["drift"]] == drift


def test_effects_with_loops_and_cases_are_booked():
    size = {"cases": [{"when": "args.amount > 50", "value": "big"}, {"pass": "x"}]}
    effects = [
        {"op": "add", "path": ["log", "-"], "value": "{{ n }}", "for_each": "[1, 2]", "as": "n"},
        {"op": "add", "path": ["size"], "value": size},
    ]
    one = world({"effects": effects}, state={"log": []})
    assert marks(record(one, {"paid": 60})) == {}
    assert one.state == {"log": [1, 2], "size": "big"}


def test_postconditions_see_the_real_result():
    ensures = [{"check": "result.paid == args.amount", "error": "another amount"}]
    one = world({"effects": EFFECTS, "ensures": ensures})
    assert record(one, {"paid": 60}).get("departure") is None
    broken = record(one, {"paid": 59})
    assert broken["departure"] == {"code": "ensures", "message": "another amount"}
    assert one.state == {"balance": -20}, "it really happened"


def test_effects_that_the_contract_does_not_know_are_told():
    for contract in (
        {"effects": [{"op": "replace", "path": ["balance"], "value": UNKNOWN}]},
        {"requires": [{"check": "args.amount < 50", "pass": "large ones cost more"}], "effects": EFFECTS},
    ):
        one = world(contract)
        (why,) = texts(record(one, {"paid": 60}), "unclear")
        assert "its changes are unknown" in why
        assert one.state == {"balance": 100}
        assert texts(one.log[0]["outcome"], "unclear") == [why]


@pytest.mark.parametrize("context", [{}, {"unclear": "refuse"}, {"gate": "strict"}])
def test_a_call_that_was_made_in_doubt_is_booked_and_marked(context):
    one = world(
        {"requires": [{"check": "state.limit > 60", "error": "x"}], "effects": EFFECTS}, context=GeckoContext(**context)
    )
    entry = record(one, {"paid": 60})
    assert ([*marks(entry)], one.state) == (["notes"], {"balance": 40})
    assert len(texts(entry, "unclear")) == 1


@pytest.mark.parametrize("by", ["tool", "person"])
@pytest.mark.parametrize("status", ["proposed", "established"])
@pytest.mark.parametrize("check", ["args.amount < 20", "state.limit > 5"])
def test_learned_effects_are_booked_also_where_a_learned_rule_spoke_against_the_call(status, check, by):
    rule = {"check": check, "error": "the limit is 20", "evidence": {**EVIDENCE, "status": status}}
    learned = {"transfer": {"requires": [rule], "effects": EFFECTS, "evidence": {"effects": {"status": "established"}}}}
    toolkit = teach(Toolkit.from_tools([Tool(transfer, effect="write")]), {"contracts": learned})
    one = World(toolkit, state={"balance": 100})
    entry = record(one, {"paid": 60}, by=by)
    assert (entry["drift"], one.state) == ([], {"balance": 40})
