"""The shipped examples: each runs as its README says, holds against its own rules, and is in the wheel."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph import Toolkit
from gecko_graph.scenario import examples, run_scenario, shipped
from gecko_graph.values.digest import clone
from gecko_graph.values.patch import apply_patch

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def runs():
    """Example to its one turn's output and its events."""
    told = {}
    for name in examples():
        events = []
        (output,) = run_scenario(shipped(name), on_event=events.append)
        told[name] = (output, events)
    return told


def attempts(run):
    return run[0]["rehearsal"]["attempts"]


def steps(attempt):
    return [
        (step["call"]["name"], step["outcome"]["status"] if "outcome" in step else "refused")
        for step in attempt["steps"]
    ]


def test_files_a_wrong_folder_is_found_by_the_checklist_then_right(runs):
    first, second = attempts(runs["files"])
    assert steps(first) == [("mkdir", "ok"), ("cd", "ok"), ("mv", "error")]
    assert first["verdict"]["status"] == "failed"
    assert steps(second) == [("cd", "ok"), ("mkdir", "ok"), ("mv", "ok"), ("ls", "ok")]
    assert second["verdict"]["status"] == "accepted"
    assert first["start_digest"] == second["start_digest"]
    workspace = runs["files"][0]["task_state"]["tree"]["workspace"]["contents"]
    assert set(workspace) == {"document", "archive"}
    assert set(workspace["document"]["contents"]["temp"]["contents"]) == {"final_report.pdf"}


def test_shop_a_contract_refuses_an_overdraft_and_the_planner_recovers(runs):
    (only,) = attempts(runs["shop"])
    assert [status for _, status in steps(only)] == ["ok", "ok", "ok", "ok", "error", "ok", "ok"]
    assert only["steps"][4]["outcome"]["result"]["code"] == "insufficient_credit"
    assert only["verdict"]["status"] == "accepted"
    state = runs["shop"][0]["task_state"]
    assert (state["customer"]["credit"], state["cart"]) == (8.6, {})
    assert (state["products"]["MUG-BLUE"]["stock"], state["products"]["COFFEE-500"]["stock"]) == (5, 11)


def test_calendar_an_argument_breaks_a_rule_then_the_user_is_asked(runs):
    (only,) = attempts(runs["calendar"])
    assert steps(only) == [("listEvents", "refused"), ("listEvents", "ok"), ("findPeople", "ok")]
    (complaint,) = only["steps"][0]["complaints"]
    assert (complaint["path"], complaint["source"]) == ("/date", "rule")
    assert "2025-10-14" not in json.dumps(complaint), "a complaint never hands over the right value"
    assert only["verdict"]["status"] == "needs_user"
    assert only["answer"].endswith("?")
    assert runs["calendar"][0]["task_state"]["events"] == shipped("calendar").state["events"]


@pytest.mark.parametrize("name", examples())
def test_nothing_is_left_unsaid(name):
    toolkit, state = shipped(name).tools, shipped(name).state
    assert toolkit.problems == []
    assert all(tool.contract is not None for tool in toolkit)
    assert toolkit.state_keys <= state.keys(), "else a model would be asked for what is missing"
    read_back = Toolkit.from_openapi(toolkit.to_openapi())
    assert {tool.name: tool.parameters for tool in read_back} == {tool.name: tool.parameters for tool in toolkit}


# the shop's books ------------------------------------------------------------------------------------

SHOP = shipped("shop")
SKUS = [*SHOP.state["products"], "NO-SUCH"]
CALLS = st.lists(
    st.one_of(
        st.tuples(
            st.just("setCartLine"),
            st.fixed_dictionaries({"sku": st.sampled_from(SKUS), "quantity": st.integers(0, 20)}),
        ),
        st.tuples(st.just("placeOrder"), st.just({})),
        st.tuples(st.just("cancelOrder"), st.fixed_dictionaries({"order_id": st.sampled_from(["last", "none"])})),
        st.tuples(st.just("showCart"), st.just({})),
    ),
    max_size=12,
)


def run_call(toolkit, state, number, name, args):
    """State after a call under its contract, and its result or error; postconditions hold."""
    if args.get("order_id") == "last":
        args = {"order_id": next(reversed(state["orders"]), "none")}
    tool = toolkit[name]
    call = {"id": f"c{number}", "name": name, "args": args}
    run = tool.contract.open(args=args, parameters=tool.parameters, state=state, call=call, now=state["now"], seed=0)
    refusal = run.refusal()
    if refusal is not None:
        return apply_patch(state, refusal.patch), refusal.error
    answer = run.answer()
    after = apply_patch(state, answer.patch)
    assert run.violations(answer.result, after) == []
    return after, answer.result


@settings(max_examples=60, deadline=None)
@given(CALLS)
def test_whatever_is_called_the_books_of_the_shop_add_up(calls):
    toolkit, state = SHOP.tools, clone({**SHOP.state, "customer": {"name": "Lena", "credit": 400.0}})
    for number, (name, args) in enumerate(calls):
        after, _ = run_call(toolkit, state, number, name, args)
        if after is not state:
            assert [invariant.violation(state, after) for invariant in toolkit.invariants] == [None] * 3
        state = after
    sold = sum(
        line["quantity"]
        for order in state["orders"].values()
        if order["status"] == "placed"
        for line in order["lines"].values()
    )
    left = sum(product["stock"] for product in state["products"].values())
    assert left + sold == sum(product["stock"] for product in SHOP.state["products"].values())


# the calendar ----------------------------------------------------------------------------------------


# the wheel -----------------------------------------------------------------------------


def test_the_wheel_holds_examples_and_prompts():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {"prompts": "gecko_graph/prompts", "examples": "gecko_graph/examples"}
