"""Whether a tool may be called before its arguments are known: three values, of the requirements without arguments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.contracts.contract import Contract

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


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"open": True, "stock": 3}, ("yes", "")),
        ({"open": False, "stock": 3}, ("no", "the shop is closed")),
        ({"open": True, "stock": 0}, ("no", "none left of 0")),
        ({"stock": 0}, ("no", "none left of 0")),
    ],
)
def test_the_first_that_fails_gives_the_reason(state, expected):
    assert judge(load(OPEN, STOCKED), state) == expected


def test_what_cannot_be_evaluated_is_unknown_without_document_and_tool():
    word, reason = judge(load(OPEN, STOCKED), {"open": True})
    assert word == "unknown"
    assert reason.startswith("requires[1].check: ")
    assert "stock" in reason


def test_a_requirement_that_needs_the_arguments_through_a_let_is_none_of_them():
    lets = {"order": "{{ at(state.orders, [args.id], none) }}", "paid": "{{ order != none }}"}
    contract = load({"check": "paid", "error": "not paid"}, OPEN, lets=lets)
    assert judge(contract, {"open": True}) == ("yes", "")
    assert not load({"check": "state.open", "when": "args.fast", "error": "?"}).is_gated
    assert not load({"check": "call.id != ''", "error": "?"}).is_gated


def test_an_error_that_names_the_arguments_is_left_out():
    contract = load({"check": "state.open", "error": "{{ args.id }} cannot be sold"})
    assert judge(contract, {"open": False}) == ("no", "a condition of this tool does not hold")


def test_a_condition_on_the_clock_is_unknown_without_one():
    contract = load({"check": "now >= '2024'", "error": "too early"})
    assert judge(contract, {}, now="2023-01-01") == ("no", "too early")
    assert judge(contract, {}, now="2025-01-01") == ("yes", "")
    assert judge(contract, {})[0] == "unknown"


def test_an_identifier_of_the_call_is_not_known_before_the_call():
    assert judge(load({"check": "new_id('a') == 'a'", "error": "?"}), {})[0] == "unknown"


@given(
    open_=st.sampled_from([True, False, None]),
    stock=st.sampled_from([0, 2, "many", None]),
    args=st.fixed_dictionaries({"id": st.sampled_from(["a", "b"])}),
)
def test_it_agrees_with_the_gate_of_every_call(open_, stock, args):
    """No: each call is refused. Unknown: each call is refused or unclear. Yes: only its arguments can be wrong."""
    by_arguments = {"check": "args.id == 'a'", "error": "unknown id"}
    contract = load(OPEN, STOCKED, by_arguments)
    state = {key: value for key, value in (("open", open_), ("stock", stock)) if value is not None}
    word, reason, _ = contract.admissible(state, now=None)
    call = {"id": "1", "name": "sell", "args": args}
    run = contract.open(args=args, parameters={}, state=state, call=call, now=None, seed=0)
    refusal = run.refusal()
    if word == "no":
        assert refusal is not None
        assert refusal.error == reason
    elif word == "unknown":
        assert run.unclear
    else:
        assert not run.unclear
        assert (refusal is None) == (args["id"] == "a")
