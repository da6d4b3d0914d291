"""What P and Q refuse in create_toolgate: to the letter and by default, typed facts, and whatever tools there are."""

from __future__ import annotations

import pytest

from gecko_graph import Tool, Toolkit
from gecko_graph.toolgate.channels import tell_undone
from gecko_graph.toolgate.gates import category_of_refusal
from tests import shop
from tests.agents import call
from tests.shop import SELL, act, by_rank, one


def test_where_no_model_makes_the_call_the_reasoner_goes_on_with_its_words():
    needs = [{"need": "Sell a pan"}, {"need": "Sell a pen for 2"}, {"answer": "Sold."}]
    out, model = one("sell", reasoner=needs, planner=[{"say": "A pan needs\nits price."}, SELL])
    assert (out["record"]["status"], out["record"]["rejected"]) == ("answered", {})
    first, second = out["record"]["needs"]
    assert "call" not in first
    assert [each["reason"] for each in first["rejections"] if each.get("told")] == ["A pan needs its price."]
    assert second["call"] == out["record"]["plan"][0]["id"]
    assert "Sell a pan: A pan needs its price." in model.texts("reasoner")[1]
    assert "expected a call" not in str([text for _, text in model.seen])


def test_a_clause_of_a_policy_is_booked_as_one_before_and_with_arguments():
    minor = {"check": "args.price < 10", "error": "ask the manager", "kind": "policy"}
    dear = {"call": "sell", "args": {"item": "pen", "price": 20}}
    sell = {**shop.CONTRACTS["sell"], "requires": [minor, shop.IN_STOCK]}
    out, _ = one("sell", tools=shop.toolkit(sell=sell), planner=[dear, SELL])
    assert out["record"]["rejected"] == {"policy": 1}
    closed = {**shop.CONTRACTS["sell"], "requires": [{**shop.OPEN, "kind": "policy"}]}
    gift = {"call": "gift", "args": {"item": "pen"}}
    out, _ = one("sell", "gift", tools=shop.toolkit(sell=closed), state=shop.start(open=False), planner=[gift])
    assert out["record"]["rejected"] == {"policy": 1}


def test_no_model_is_asked_about_arguments_that_the_contract_refuses():
    validator = lambda number, text, tool: {"problems": []}  # noqa: E731
    wrong, right = ({"call": "sell", "args": {"item": item, "price": 3}} for item in ("pan", "ink"))
    out, model = one("sell", planner=[wrong, right], validator=validator)
    assert out["record"]["rejected"] == {"hallucinated_value": 1}
    assert len(model.texts("validator")) == 1
    assert '"ink"' in model.texts("validator")[0]


def test_an_answer_names_the_writes_that_were_refused_and_never_done():
    refused, done = one("sell", planner=[{"call": "sell", "args": {"item": "pan", "price": 3}}, SELL])[0]["record"][
        "steps"
    ]
    assert tell_undone([refused, done], shop.toolkit()) == []
    assert tell_undone([refused], shop.toolkit()) == ['Not done: sell({"item": "pan", "price": 3})']
    assert tell_undone([refused], Toolkit.from_tools([show("sell", "Show.")])) == []


def show(name, about):
    return Tool(
        shop.function(name, about, of=shop.TEXT), effect="read", contract={"returns": "{{ at(state, [args.of]) }}"}
    )


def reads():
    return Toolkit.from_tools([show("show_a", "Show a."), show("show_b", "Show b.")])


def look(tools, *planner, state, needs=1, **more):
    return act(
        tools,
        state={"none": [], "many": [1], "zero": 0, "void": {"left": [], "more": [None, ""]}} | state,
        reasoner=[*[{"need": "Show"}] * needs, {"answer": "Done."}],
        reranker=by_rank("show_a", "show_b"),
        planner=[{"call": name, "args": {"of": of}} for name, of in planner],
        **more,
    )


@pytest.mark.parametrize("empty", ["none", "void"])
def test_a_read_that_finds_nothing_is_handed_to_the_reasoner_after_the_next_tool(empty):
    out, model = look(reads(), ("show_a", empty), ("show_b", empty), state={})
    assert (out["record"]["status"], out["record"]["plan"], out["record"]["rejected"]) == ("answered", [], {"empty": 2})
    assert f'show_a({{"of": "{empty}"}}) found nothing: ' in model.texts("reasoner")[1]
    out, model = look(reads(), ("show_a", empty), ("show_b", "many"), state={})
    assert [call["name"] for call in out["record"]["plan"]] == ["show_b"]
    assert "found nothing" not in model.texts("reasoner")[1]


def test_to_the_letter_a_read_that_finds_nothing_fails_and_its_tool_is_out_for_the_run():
    out, model = look(reads(), ("show_a", "none"), ("show_b", "void"), state={}, strict=True)
    assert (out["record"]["status"], out["record"]["rejected"]) == ("failed", {"empty": 2})
    assert len(model.texts("reasoner")) == 1
    out, model = look(
        reads(), ("show_a", "none"), ("show_b", "many"), ("show_b", "zero"), state={}, needs=2, strict=True
    )
    assert [call["args"]["of"] for call in out["record"]["plan"]] == ["many", "zero"]
    need = out["record"]["needs"][1]
    assert [(each["tool"], each["admissible"]) for each in need["candidates"]] == [("show_a", "no"), ("show_b", "yes")]
    assert [(each["tool"], each["phase"]) for each in need["rejections"]] == [("show_a", "Q")]


def test_by_default_only_the_very_call_is_out_until_the_state_changes():
    found = ("show_a", "none"), ("show_b", "many"), ("show_a", "none"), ("show_a", "many")
    out, model = look(reads(), *found, state={}, needs=2)
    made = [(call["name"], call["args"]["of"]) for call in out["record"]["plan"]]
    assert made == [("show_b", "many"), ("show_a", "many")]
    assert "the result of this very call was refused" in model.texts("planner")[3]
    filled = {"effects": [{"op": "add", "path": ["none", "-"], "value": 1}], "returns": 1}
    fill, look_up = Tool(shop.function("fill", "Fill."), effect="write", contract=filled), call("show_a", of="none")
    out, _ = act(
        Toolkit.from_tools([show("show_a", "Show a."), fill]),
        state={"none": []},
        reasoner=[*[{"need": need} for need in ("Show", "Fill", "Show")], {"answer": "Done."}],
        reranker=[{"tools": [name]} for name in ("show_a", "fill", "show_a")],
        planner=[look_up, call("fill"), look_up],
    )
    assert [call["name"] for call in out["record"]["plan"]] == ["fill", "show_a"]


def test_verified_results_are_typed_facts_that_a_precondition_asks_for():
    numbers = {"type": "array", "items": {"type": "integer"}}
    find = Tool(
        shop.function("find", "Find.", of=shop.TEXT),
        effect="read",
        result=numbers,
        contract={"fact": "last_found", "returns": "{{ at(state, [args.of]) }}"},
    )
    typed = "defined(facts.last_found) and facts.last_found.type.type == 'array' and 'find' not in facts"
    use = Tool(
        shop.function("use", "Use what was found."),
        effect="write",
        contract={
            "requires": [{"check": typed, "error": "find something first"}],
            "effects": [{"op": "add", "path": ["used"], "value": "{{ facts.last_found.value }}"}],
            "returns": {"used": "{{ len(facts.last_found.value) }}"},
        },
    )
    tools = Toolkit.from_tools([find, use])
    out, model = act(
        tools,
        state={"a": [1], "b": [2, 3], "none": []},
        reasoner=[*[{"need": "Find and use"}] * 3, {"answer": "Done."}],
        reranker=[{"tools": ["use", "find"]}, {"tools": ["find"]}, {"tools": ["use"]}],
        planner=[{"call": "find", "args": {"of": of}} for of in "ab"] + [{"call": "use", "args": {}}],
    )
    record = out["record"]
    assert "use: find something first" in model.texts("reasoner")[0]
    assert "find something first" not in model.texts("reasoner")[1]
    assert out["task_state"]["used"] == [2, 3]
    assert record["facts"] == {
        "last_found": {"value": [2, 3], "type": numbers, "call": record["plan"][1]["id"]},
        "use": {"value": {"used": 2}, "type": {}, "call": record["plan"][2]["id"]},
    }


def test_a_write_that_says_it_is_done_and_changed_nothing_is_an_inconsistent_update():
    lost = {**shop.CONTRACTS["open_shop"], "effects": [{**shop.CONTRACTS["open_shop"]["effects"][0], "when": "False"}]}
    lost["ensures"] = [{"check": "state.open", "error": "the shop is still closed"}]
    state = shop.start(open=False)
    out, _ = one(
        "open_shop", tools=shop.toolkit(open_shop=lost), state=state, planner=[{"call": "open_shop", "args": {}}]
    )
    assert out["record"]["rejected"] == {"state_update": 1}


OPEN_BILLS = {"check": "state.open <= 100 or args.pet == 'x'", "error": "open bills of more than 100"}


@pytest.mark.parametrize(
    ("said", "start", "category"),
    [
        ("tomorrow at 14:00", "2026-12-02T14:00", "state_dependency"),
        ("in three days, at noon", "2026-12-04T12:00", "state_dependency"),
        ("tomorrow at 14:00", "2026-12-03T14:00", "hallucinated_value"),
        ("tomorrow at 14:00", "2026-12-02T15:30", "hallucinated_value"),
        ("soon", "2026-12-02T14:00", "hallucinated_value"),
    ],
)
def test_a_value_that_is_said_in_other_words_is_no_hallucinated_one(said, start, category):
    contract = {"requires": [OPEN_BILLS], "returns": {"start": "{{ args.start }}"}}
    tools = Toolkit.from_tools(
        [Tool(shop.function("book", "Book.", pet=shop.TEXT, start=shop.TEXT), effect="write", contract=contract)]
    )
    proposal = {
        "call": {"id": "c", "name": "book", "args": {"pet": "Rex", "start": start}},
        "outcome": {"violations": [{"kind": "tool"}]},
    }
    state = {"task": f"Book Rex {said}.", "conversation": [], "task_state": {"open": 132.5, "now": "2026-12-01T09:00"}}
    assert category_of_refusal(proposal, state, tools) == category
