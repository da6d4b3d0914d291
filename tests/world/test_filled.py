"""Results that a contract leaves open: its change is committed, and the next rung fills the hole alone."""

import json

import pytest

from gecko_graph import GeckoContext, Tool, Toolkit, World
from gecko_graph.errors import ContractError
from gecko_graph.world.ladder import Rung
from gecko_graph.world.rung import Answer, Pass
from tests.doubts import texts

EFFECTS = [{"op": "add", "path": ["n"], "value": "{{ state.n + 1 }}"}]
OPEN = {"cases": [{"pass": "not known"}]}
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "price": {"type": "number"}, "n": {"type": "integer"}, "by": {}},
    "required": ["ok", "price", "n"],
}


def toolkit(contract, *, schema=SCHEMA, effect="write"):
    tool = {"name": "book", "description": "Book.", "effect": effect, "response": schema, "parameters": {}}
    return Toolkit.from_tools([Tool({key: one for key, one in tool.items() if one is not None}, contract=contract)])


def booked(contract, *answers, ladder=None, args=None, state=None, **more):
    rungs = [Rung(f"own{at}", lambda _, one=one: one) for at, one in enumerate(answers)]
    names = ("contract", *(rung.name for rung in rungs), "schema") if ladder is None else ladder
    world = World(toolkit(contract, **more), state=state or {"n": 0}, rungs=rungs, context=GeckoContext(ladder=names))
    return world.call({"name": "book", "args": args or {}})["outcome"], world


@pytest.mark.parametrize(
    ("returns", "places"),
    [
        (None, [""]),
        (OPEN, [""]),
        ({"ok": True, "price": OPEN}, ["/price", "/n"]),
        ({"ok": OPEN, "n": 1}, ["/ok", "/price"]),
    ],
)
def test_the_change_is_committed_and_the_next_rung_fills_the_hole_alone(returns, places):
    contract = {"effects": EFFECTS, **({} if returns is None else {"returns": returns})}
    outcome, world = booked(contract)
    assert (outcome["status"], outcome["rung"], world.state) == ("ok", "contract", {"n": 1})
    assert "invented" not in outcome
    assert (outcome["filled"]["rung"], outcome["filled"]["invented"]) == ("schema", True)
    assert [*outcome["filled"]["places"]] == places
    result = outcome["result"]
    assert result["n"] == 1  # what the effects wrote under that name
    assert isinstance(result["price"], float)
    assert all(result[key] == value for key, value in (returns or {}).items() if value in (True, 1))
    assert "by" not in result or returns in (None, OPEN)  # nobody has said that it is there


def test_an_answer_that_contradicts_what_is_known_is_passed():
    known = {"effects": EFFECTS, "returns": {"ok": True, "price": OPEN, "n": "{{ state.n }}"}}
    right = {"ok": True, "price": 3.5, "n": 1}
    wrong = [right | more for more in ({"ok": False}, {"price": "dear"}, {"n": 2})]
    answers = [*(Answer("ok", one, []) for one in wrong), Answer("error", "sold out", [])]
    outcome, world = booked(
        known, *answers, Pass("no"), Answer("ok", {**right, "by": "x"}, [{"op": "remove", "path": "/n"}])
    )
    assert (outcome["result"], outcome["filled"]["rung"], world.state) == (right, "own5", {"n": 1})
    assert not outcome["filled"]["invented"]
    assert [each["rung"] for each in outcome["passed"]] == ["contract", "own0", "own1", "own2", "own3", "own4"]
    outcome, world = booked(known, *answers, ladder=("contract", *(f"own{at}" for at in range(4))))
    assert (outcome["status"], outcome["rung"], world.state) == ("error", "none", {"n": 0})


def test_parts_of_lists_and_references_are_filled_in_their_places():
    item = {"type": "object", "properties": {"id": {"type": "string"}, "cost": {"type": "integer"}}, "required": ["id"]}
    schema = {"type": "array", "items": {"$ref": "#/$defs/item"}, "$defs": {"item": item}}
    each = {"for_each": "state.ids", "value": {"id": "{{ item }}", "cost": OPEN}}
    outcome, _ = booked({"returns": each}, schema=schema, effect="read", state={"ids": ["a", "b"]})
    assert [*outcome["filled"]["places"]] == ["/0/cost", "/1/cost"]
    assert [one["id"] for one in outcome["result"]] == ["a", "b"]
    assert all(isinstance(one["cost"], int) for one in outcome["result"])


def test_the_same_read_in_the_same_state_is_filled_alike():
    counted = iter(range(9))
    rung = Rung("own", lambda _: Answer("ok", {"ok": True, "price": float(next(counted)), "n": 1}), invents=True)
    tools = toolkit({"returns": {"ok": True, "n": 1, "price": OPEN}}, effect="read")
    world = World(tools, state={}, rungs=[rung], context=GeckoContext(ladder=("contract", "own")))
    outcomes = [world.call({"name": "book", "args": {}})["outcome"] for _ in range(2)]
    assert outcomes[0]["result"] == outcomes[1]["result"]
    assert outcomes[1]["filled"]["rung"] == "own"


def test_a_let_that_is_not_known_opens_the_part_that_uses_it_alone():
    contract = {"let": {"price": OPEN}, "returns": {"ok": True, "price": "{{ price + 1 }}", "n": 1}, "effects": []}
    assert [*booked(contract)[0]["filled"]["places"]] == ["/price"]
    outcome, _ = booked({**contract, "effects": [{"op": "add", "path": ["n"], "value": "{{ price }}"}]})
    assert outcome["rung"] == "schema"  # the change itself is not known
    contract = {"effects": EFFECTS, "returns": OPEN, "ensures": [{"check": "result.price < 0", "error": "dear"}]}
    outcome, world = booked(contract)  # a postcondition sees what was filled
    assert (outcome["status"], texts(outcome, "refused")[0], world.state) == ("error", "dear", {"n": 0})


RULE = {"check": "state.n > 0", "open": "one of two rules is broken"}
REFUSED = {"requires": [RULE], "effects": EFFECTS, "returns": 1}


def test_a_refusal_with_an_open_reason_is_one_and_the_next_rung_words_it():
    outcome, world = booked(REFUSED, schema=None)
    assert (outcome["status"], outcome["rung"], outcome["patch"]) == ("error", "contract", [])
    assert outcome["filled"] == {"rung": "none", "invented": False, "places": {"": "one of two rules is broken"}}
    assert outcome["violations"][0]["clause"] == "requires[0]"
    outcome, world = booked(REFUSED, Answer("ok", 1, []), Answer("error", {"code": 7}, EFFECTS), schema=None)
    assert (outcome["result"], outcome["filled"]["rung"], world.state) == ({"code": 7}, "own1", {"n": 0})
    assert booked(REFUSED, schema=None, state={"n": 1})[0]["result"] == 1


def test_what_is_not_established_warns_and_refuses_nothing():
    def outcome(status):
        clause = {"check": "state.n > 0", "error": "too few", "evidence": {"status": status}}
        return booked({"requires": [clause], "effects": EFFECTS, "returns": 1}, Answer("ok", 2, []), schema=None)[0]

    refused = outcome("established")
    assert (refused["result"], refused["evidence"]) == ("too few", "established")
    for status in ("proposed", "refuted"):
        made = outcome(status)
        assert made["result"] == 2
        assert "perhaps refused: too few" in json.dumps(made["passed"])
    with pytest.raises(ContractError, match="status"):
        outcome("believed")
