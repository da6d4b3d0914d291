"""Mistakes that are found when a contract is loaded: each names file, tool and line."""

import time
from contextlib import suppress

import pytest

from gecko_graph import Tool, Toolkit
from gecko_graph.errors import ContractError
from gecko_graph.values.documents import format_document

STATE = {
    "type": "object",
    "properties": {
        "orders": {"type": "object", "additionalProperties": {"$ref": "#/$defs/order"}},
        "log": {"type": "array", "items": {"type": "string"}},
        "user": {"anyOf": [{"type": "object", "properties": {"name": {"type": "string"}}}, {"type": "null"}]},
        "cwd": {"type": "array", "items": {"type": "string"}}, "open": {"type": "object"},
    },
    "$defs": {"order": {"type": "object",
                        "properties": {"total": {"type": "number"}, "status": {"enum": ["new", "paid"]},
                                       "items": {"type": "array",
                                                 "items": {"type": "object",
                                                           "properties": {"price": {"type": "number"}}}}},
                        "additionalProperties": False}},
    "additionalProperties": False,
}  # fmt: skip
TOOL = {
    "name": "pay",
    "parameters": {
        "type": "object",
        "properties": {"id": {"type": "string"}, "amount": {"type": "number"}, "tags": {"type": "array"}},
        "required": ["id"],
    },
}
LETS = {
    "order": "{{ at(state.orders, [args.id]) }}",
    "each_of(list)": "{{ [x for x in list] }}",
    "high(number)": "{{ number > 3 }}",
    "dear(one)": "{{ high(one.total) }}",
    "low(value)": "{{ value.lower() if isinstance(value, str) else value }}",
}


def fitted(contract, state=STATE):
    return Toolkit.from_tools([Tool(TOOL, contract=contract)], lets=LETS, state_schema=state)


WRONG = [
    # keys
    ("state.odrers", "unknown key state.odrers .did you mean orders"),
    ("state.orders[args.id].totl > 1", r"unknown key state.orders\[args.id\].totl .did you mean total"),
    ("at(state.orders, [args.id, 'totl'], None) is None", "unknown key 'totl' of at"),
    ("sum(one.totl for one in state.orders.values()) > 1", "unknown key one.totl"),
    ("any(any(i.prise > 1 for i in o['items']) for o in state.orders.values())", "unknown key i.prise"),
    ("sorted(state.orders.values(), key=lambda one: one.total)[0].totl", "unknown key"),
    ("args.amuont > 1", "unknown argument args.amuont .did you mean amount"),
    ("trusted(['odrers', args.id])", "unknown key 'odrers' of trusted .did you mean orders"),
    # types
    ("args.id > 3", "cannot compare a text and a number"), ("args.id + args.amount", "cannot add a text and a number"),
    ("[one.nmae for one in calls]", "unknown key one.nmae"), ("defined(order.totl)", "unknown key order.totl"),
    ("trusted(args.id)", r"trusted: write \[args.id\]: a path needs a list, not a text"),
    ("sum(args.amount) > 1", "sum needs a list, not a number"),
    ("between(args.amount, now) > 1", "between needs a text, not a number"),
    ("all(o.total > 1 for o in state.orders)", "a loop needs a list, not an object"),
    ("at(state.orders, args.id, None)", r"at: write \[args.id\]: a path needs a list, not a text"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "why"), WRONG, ids=[check for check, _ in WRONG])
def test_what_can_never_be_evaluated_is_refused(check, why):
    with pytest.raises(ContractError, match=rf"contract of pay: requires\[0\].check: .*({why})"):
        fitted({"requires": [{"check": check, "error": "x"}]})


@pytest.mark.parametrize("check", [
    "defined(order) and order.total > args.amount", "order.status == 'paid' and len(order['items']) > 0",
    "order.total + 1 > (args.amount or 0)", "[key for key, one in state.orders.items() if one.total > 3]",
    "state.open.anything.x > 1 and state.log[0] == 'a' and state.log[-1] < 'b'",
    "at(state.orders, [state.cwd, 'anything'])", "[one.result.id for one in calls if one.name == 'x']",
    "between(now, date(args.id), 'days') > 1 and 'x' in args.tags",
    "trusted(['orders', args.id, 'total']) and trusted(['open', 'anything']) and trusted(args.tags)",
    "high(args.amount) and dear(order) and low(args.id) == 'x' and low(3) == 3",
])  # fmt: skip
def test_what_may_be_right_loads(check):
    assert fitted({"requires": [{"check": check, "error": "x"}]})["pay"].contract is not None


PLACES = [
    ({"op": "add", "path": ["orders", "{{ args.id }}", "totl"], "value": 1}, "effects[0].path[2]"),
    ({"op": "move", "from": ["orders", "x", "totl"], "path": ["log", "-"]}, "effects[0].from[2]"),
    ({"do": [{"op": "remove", "path": ["log", "0", "x"]}]}, "effects[0].do[0].path[2]"),
    ({"for_each": "order['items']", "as": "i", "op": "add", "path": ["log", "-"], "value": "{{ i.prise }}"}, "value"),
]


@pytest.mark.parametrize(("effect", "place"), PLACES, ids=str)
def test_an_effect_at_a_place_that_cannot_be_is_refused(effect, place):
    with pytest.raises(ContractError) as error:
        fitted({"effects": [effect]})
    assert place in str(error.value)


@pytest.mark.parametrize(
    "path",
    [["orders", "{{ args.id }}"], ["orders", "{{ args.id }}", "total"], ["log", "-"], ["log", 0],
     ["{{ state.cwd }}", "x"], ["open", "anything", "x"], "{{ ['x'] + state.cwd }}"],
)  # fmt: skip
def test_an_effect_at_a_place_that_may_be_loads(path):
    anything = "{{ calls[0].result }}"
    assert fitted({"effects": [{"op": "add", "path": path, "value": anything}]})["pay"].contract is not None


STATE = {"type": "object", "additionalProperties": False, "properties": {"n": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("value", "loads"), [("one", False), ("{{ args.id }}", False), (2, True), ("{{ now }}", False)]
)
def test_an_effect_of_another_type_than_its_place_is_refused(value, loads):
    contract = {"effects": [{"op": "add", "path": ["n"], "value": value}]}
    if loads:
        fitted(contract, STATE)
        return
    with pytest.raises(ContractError, match=r"effects\[0\].value: expected a number, as the schema .* got a text"):
        fitted(contract, STATE)


def test_an_invariant_over_what_the_state_cannot_have_is_refused(tmp_path):
    wrong = {"check": "state.m > 1", "error": "x"}
    with pytest.raises(ContractError, match=r"unknown key state\.m; its keys are n"):
        Toolkit.from_tools([TOOL], invariants=[wrong], state_schema=STATE)
    file = tmp_path / "rules.yaml"
    file.write_text(f"at: shop\nstate: {STATE}\ninvariants:\n  - {wrong}\n".replace("False", "false"))
    with pytest.raises(ContractError, match=r"invariants\[0\].check: unknown key state.m.*line 4"):
        Toolkit.from_tools([TOOL]).with_contracts(file)
    document = Toolkit.from_tools([TOOL], state_schema=STATE).to_openapi() | {"x-contract-invariants": [wrong]}
    with pytest.raises(ContractError, match=r"unknown key state.m"):
        Toolkit.from_openapi(document)


def test_a_result_is_known_to_its_ensures_and_an_open_schema_refuses_what_is_almost_one_of_its_keys():
    contract = {"returns": {"paid": "{{ args.amount }}"}, "ensures": [{"check": "result.payd > 1", "error": "x"}]}
    with pytest.raises(ContractError, match=r"unknown key result.payd .did you mean paid"):
        fitted(contract)
    state = {"type": "object", "properties": {"orders": {"type": "object"}}}
    assert fitted({"requires": [{"check": "state.rooms", "error": "x"}]}, state)
    with pytest.raises(ContractError, match=r"unknown key state.orderss .did you mean orders"):
        fitted({"requires": [{"check": "state.orderss", "error": "x"}]}, state)


def test_a_mounted_contract_is_held_to_its_part_of_the_state_and_has_the_runtime_variables_of_the_whole():
    contracts = {"pay": {"returns": "{{ state.orderss }}"}}
    with pytest.raises(ContractError, match=r"unknown key state.orderss"):
        Toolkit.from_tools([TOOL]).with_contracts({"state": STATE, "at": "shop", "contracts": contracts})
    assert fitted({"returns": "{{ state.runtime_state.cwd }}"}, STATE)["pay"].contract is not None


LOOP = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 10}}, "properties": {"x": {"$ref": "#/$defs/a"}}}
TREE = {
    "$ref": "#/$defs/t",
    "$defs": {"t": {"type": "object", "properties": {key: {"$ref": "#/$defs/t"} for key in "abcd"}}},
}


@pytest.mark.parametrize(
    ("state", "check"),
    [
        (LOOP, "state.x.y.z"),
        (TREE, "state" + "[args.id]" * 40),
        (STATE, "at(state.open, [" * 20 + "'x'" + "])" * 20),
        ({"type": "object", "properties": {f"k{n}": {"type": "object"} for n in range(2000)}}, "state[args.id]" * 1),
    ],
    ids=range(4),
)
def test_no_schema_and_no_expression_takes_long_to_examine(state, check):
    started = time.thread_time()
    with suppress(ContractError):
        fitted({"requires": [{"check": check, "error": "x"}]}, state)
    assert time.thread_time() - started < 3


FILE = """\
state: {type: object, properties: {n: {type: number}}, additionalProperties: false}
let:
  twice: "{{ state.n * 2 }}"
  a: "{{ b }}"
  b: 3
requires:
  small:
    check: state.n < 9
    error: too large
invariants:
  - check: state.n > 0
    error: none left
contracts:
  pay:
    requires:
      - use: small
      - check: twice > 1
        error: "{{ args.id }} is small"
    effects:
      - op: replace
        path: [n]
        value: 1
"""


@pytest.mark.parametrize(("right", "wrong", "line", "place"), [
    ("twice > 1", "twiec > 1", 17, "requires[1].check: unknown name 'twiec'"),
    ("args.id", "args.ids", 18, "requires[1].error: unknown argument args.ids"),
    ("use: small", "use: smal", 16, "requires[0].use: unknown shared requirement 'smal'"),
    ("state.n * 2", "state.m * 2", 3, "x-contract-let.twice: unknown key state.m"),
    ("state.n > 0", "stat.n > 0", 11, "invariants[0].check: unknown name 'stat'"),
    ("contracts:\n  pay:", "contracts:\n  pay:\n    retruns: 1", 14, "unknown key 'retruns'"),
])  # fmt: skip
def test_file_tool_and_line_are_named(tmp_path, right, wrong, line, place):
    file = tmp_path / "shop.yaml"
    file.write_text(FILE)
    Toolkit.from_tools([TOOL]).with_contracts(file)
    assert FILE.count(right) == 1
    file.write_text(FILE.replace(right, wrong))
    with pytest.raises(ContractError) as error:
        Toolkit.from_tools([TOOL]).with_contracts(file)
    text = str(error.value)
    assert text.startswith(f"{file}: ")
    assert text.endswith(f"(line {line})")
    assert place in text
    assert "contract of pay" in text or "invariants" in place


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_in_a_document_too(tmp_path, suffix):
    document = Toolkit.from_tools([Tool(TOOL, contract={"returns": "{{ args.id }}"})]).to_openapi()
    file = tmp_path / f"shop{suffix}"
    text = format_document(document, suffix).replace("args.id", "args.ids")
    file.write_text(text)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "args.ids" in each)
    with pytest.raises(
        ContractError, match=rf"shop{suffix}#.*tool pay.*returns: unknown argument args.ids.*line {line}\)"
    ):
        Toolkit.from_openapi(file)
