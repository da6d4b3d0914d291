"""create_toolgate: forward execution with contract verification (ToolGate, algorithm 1)."""

from __future__ import annotations

import pytest

from gecko_graph import GeckoContext, Tool, Toolkit
from gecko_graph.errors import ModelError
from tests import shop
from tests.doubts import texts
from tests.shop import SELL, act, by_rank, one, one_need


def test_a_need_is_met_by_the_best_tool_that_the_state_admits():
    out, model = one("sell", "gift", reasoner=[{"need": "Sell a pen for 2"}, {"answer": "Sold."}], planner=[SELL])
    record = out["record"]
    assert (record["status"], record["reason"], record["answer"]) == ("answered", "answered", "Sold.")
    assert [(call["name"], call["args"]) for call in record["plan"]] == [("sell", {"item": "pen", "price": 2})]
    assert out["task_state"] == shop.start(till=2, stock={"pen": 0, "ink": 4})
    assert out["messages"][-1].content == "Sold."
    (need,) = record["needs"]
    assert need["call"] == record["plan"][0]["id"]
    assert [(each["tool"], round(each["p"], 3)) for each in need["candidates"]] == [("sell", 0.529), ("gift", 0.471)]
    assert record["rejected"] == {}
    assert record["usage"].keys() == {"reasoner", "reranker", "planner"}
    assert '"pen": 0' in model.texts("reasoner")[1]
    assert 'sell({"item": "pen", "price": 2}) -> ok: {"sold": "pen"}' in model.texts("reasoner")[1]


def test_a_tool_whose_precondition_does_not_hold_is_filtered_before_its_arguments():
    planner = lambda number, text, tool: {"call": tool, "args": {"item": "pen"}}  # noqa: E731
    out, model = one("sell", "gift", state=shop.start(open=False), planner=planner)
    (need,) = out["record"]["needs"]
    assert need["candidates"] == [
        {"tool": "sell", "p": 0.0, "admissible": "no", "reason": "the shop is closed"},
        {"tool": "gift", "p": 1.0, "admissible": "yes"},
    ]
    assert need["rejections"] == [
        {"tool": "sell", "phase": "P", "reason": "the shop is closed", "category": "state_dependency"}
    ]
    assert out["record"]["rejected"] == {"state_dependency": 1}
    assert [call["name"] for call in out["record"]["plan"]] == ["gift"]
    assert "sell: the shop is closed" in model.texts("reasoner")[0]


def test_refused_arguments_come_back_with_what_is_wrong_a_bounded_number_of_times():
    wrong = [{"call": "sell", "args": {"item": "pen"}}, {"call": "sell", "args": {"item": "pan", "price": 2}}, SELL]
    out, model = one("sell", planner=wrong)
    assert out["record"]["status"] == "answered"
    assert [each["category"] for each in out["record"]["needs"][0]["rejections"]] == ["schema", "hallucinated_value"]
    assert out["record"]["rejected"] == {"schema": 1, "hallucinated_value": 1}
    assert "sell was refused before it ran:" in model.texts("planner")[1]
    assert "there is no item pan" in model.texts("planner")[2]
    out, _ = one("sell", planner=wrong[:2] * 2)
    assert out["record"]["status"] == "failed"
    assert len(out["record"]["steps"]) == 3
    assert out["task_state"] == shop.start()
    text = out["messages"][-1].content
    assert text.startswith("The request was not finished: no tool can meet the need: Sell a pen for 2")
    assert text.endswith("Nothing was done.")


def test_a_result_that_breaks_its_postcondition_is_gone_and_its_tool_set_aside():
    free = {"call": "sell", "args": {"item": "pen", "price": 0}}
    gift = {"call": "gift", "args": {"item": "pen"}}
    out, model = one("sell", "gift", planner=[free, gift])
    (rejection,) = out["record"]["needs"][0]["rejections"]
    assert (rejection["phase"], rejection["category"], rejection["reason"]) == ("Q", "semantic", "nothing was paid")
    assert out["task_state"] == shop.start(stock={"pen": 0, "ink": 4})
    assert "sold" not in str(out)
    assert not [text for _, text in model.seen if '"sold"' in text or "nothing was paid" in text]


@pytest.mark.parametrize(
    ("contract", "category"),
    [
        ({"returns": [], "ensures": [{"check": "len(result) > 0", "error": "nothing found"}]}, "empty"),
        ({"returns": {"a": 1}, "ensures": [{"check": "result.a > 1", "error": "too few"}]}, "semantic"),
        ({"returns": 0, "ensures": [{"check": "result > 0", "error": "too few"}]}, "semantic"),
        ({"returns": 1, "ensures": [{"check": "result > state.nowhere", "error": "?"}]}, "semantic"),
        ({"effects": [{"op": "replace", "path": ["stock", "pen"], "value": -1}], "returns": 1}, "state_update"),
    ],
)
def test_refused_results_have_the_categories_of_table_3(contract, category):
    out, _ = one("open_shop", tools=shop.toolkit(open_shop=contract), planner=[{"call": "open_shop", "args": {}}])
    assert out["record"]["rejected"] == {category: 1}
    assert out["record"]["steps"][0]["outcome"]["category"] == category
    assert out["record"]["status"] == "failed"
    assert out["task_state"] == shop.start()


def test_a_result_that_is_not_well_formed_is_not_committed_though_a_user_wrote_it():
    def look(state):
        state["till"] = 99
        return {"left": "many"}

    result = {"type": "object", "properties": {"left": {"type": "integer"}}}
    tools = Toolkit.from_tools([Tool(shop.function("look", "Look."), simulate=look, result=result)])
    out, _ = act(tools, reasoner=one_need("Look"), planner=[{"call": "look", "args": {}}])
    assert texts(out["record"]["steps"][0]["outcome"], "refused")[0].startswith("the result breaks its schema: /left")
    assert out["task_state"]["till"] == 0


def test_a_failure_keeps_what_was_committed_and_says_so():
    needs, ranks = [{"need": "Sell a pen"}, {"need": "Fly"}], [{"tools": ["sell"]}, {"tools": []}]
    out, _ = act(shop.toolkit(), reasoner=needs, reranker=ranks, planner=[SELL])
    assert out["record"]["status"] == "failed"
    assert out["record"]["stop"]["code"] == "no_candidate"
    assert out["task_state"]["till"] == 2
    assert out["messages"][-1].content.endswith('Fly\nDone until then:\n- sell({"item": "pen", "price": 2})')


@pytest.mark.parametrize("knob", [{"max_steps": 3}, {"token_budget": 40}, {"time_budget_s": 1e-9}])
def test_bounds_and_budgets_end_it(knob):
    out, model = act(
        shop.toolkit(),
        reasoner=lambda number, text, tool: {"need": "Give ink away"},
        reranker=by_rank("gift"),
        planner=lambda number, text, tool: {"call": "gift", "args": {"item": "ink"}},
        context=GeckoContext(**knob),
    )
    assert out["record"]["status"] == "ended"
    assert next(iter(knob)) in out["record"]["reason"]
    if "max_steps" in knob:
        assert (len(out["record"]["steps"]), len(model.texts("reasoner"))) == (3, 4)
        assert out["task_state"]["stock"]["ink"] == 1


@pytest.mark.parametrize("garbage", ["", '{"need": 7', {"need": "", "answer": ""}, [], RuntimeError("down")])
@pytest.mark.parametrize("role", ["reasoner", "reranker", "planner"])
def test_bad_model_output_is_data(role, garbage):
    roles = {
        "reasoner": lambda number, text, tool: {"need": "Sell a pen"} if number == 0 else {"answer": "Done."},
        "reranker": by_rank("sell"),
        "planner": lambda number, text, tool: SELL if tool == "sell" else {"say": "-"},
    }
    say = garbage if role != "planner" or isinstance(garbage, Exception) else {"say": str(garbage)}
    out, _ = act(shop.toolkit(), **roles | {role: lambda number, text, tool: say})
    goes_on = garbage != [] if role == "reranker" else role == "planner" and not isinstance(garbage, Exception)
    assert out["record"]["status"] == ("answered" if goes_on else "failed")
    assert out["messages"][-1].content
    assert "expected a call" not in out["messages"][-1].content


def test_roles_that_must_have_a_model_are_named():
    with pytest.raises(ModelError, match="role 'reasoner'"):
        act(shop.toolkit(), planner=[SELL])
    with pytest.raises(ModelError, match="role 'planner'"):
        act(shop.toolkit(), reasoner=one_need())


def test_a_run_cannot_make_the_gate_lenient():
    state = {key: value for key, value in shop.start().items() if key != "open"}
    out, _ = one(
        "sell", state=state, planner=[SELL], context=GeckoContext(gate="note", unclear="pass", parallel_attempts=3)
    )
    assert out["record"]["steps"] == []
