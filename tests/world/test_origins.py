"""Origins are stated, derived or chosen: what one operation gives, and what only looks like it; the answer as well."""

import random

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from gecko_graph.values.notes import notes_of
from gecko_graph.world.given import Sources
from gecko_graph.world.provenance import trace
from tests.world.test_provenance import marked, source, step, traced


def unsupported(answer, *steps, **more):
    conversation = [HumanMessage(more.pop("task", "What is open?"))]
    sources = Sources(conversation=conversation, state={}, answer=answer, **more)
    found = [each["data"] for each in notes_of(trace(steps, sources, lambda name: {}).notes, "unsupported")]
    return [(each["value"], each["origin"]["kind"]) for each in found]


def test_the_final_answer_is_traced_like_an_argument():
    found = step("find", {}, {"number": "A-7731", "amount": 812.5, "owner": "Miller", "lines": [{"n": 40}, {"n": 2}]})
    assert unsupported("Invoice A-7731 over 812.50 euros, of Miller; the 2 lines are 42.", found) == []
    said = unsupported("Invoice B-9999 over 1,200.00 euro, due May 4: it is of Carla.", found)
    assert said == [(each, "chosen") for each in ("May 4", "1,200.00", "B-9999", "Carla")]  # as they are written
    invented = step("find", {}, {"number": "A-7731"}, "model")
    assert unsupported("It is A-7731.", invented) == [("A-7731", "chosen")]


def test_what_another_model_says_is_no_source_unless_a_result_or_the_user_states_it():
    def after(*more):
        said = [AIMessage("The invoice is A-7731."), *more, HumanMessage("go ahead, pay it")]
        return traced(step("pay", {"x": "A-7731"}), conversation=said)[1]

    (made,) = after()
    assert (made["origin"]["kind"], made["origin"]["from"]) == ("chosen", "conversation")
    assert after(HumanMessage("Is A-7731 it?")) == []
    look = step("look", {}, {"number": "A-7731"})
    said = [AIMessage("The invoice is A-7731."), HumanMessage("pay it")]
    assert traced(look, step("pay", {"x": "A-7731"}), conversation=said)[1] == []


@pytest.mark.parametrize(
    ("task", "value", "shown"),
    [
        ("Two lamps at 34.00 euros", 68, "68 = 34 × 2"),
        ("A fifth of the 420", 84, "84 = 420 ÷ 5"),
        ("On 12/05/2026", "2026-05-12", "2026-05-12: one of two ways to read the date"),
    ],
)
def test_a_derived_value_is_shown_with_its_one_operation(task, value, shown):
    (origin, *_) = source(step("pay", {"x": value}), task=task)
    assert (origin["kind"], origin["shown"]) == ("derived", shown)


def test_an_amount_is_price_times_quantity_only_of_what_the_plan_speaks_of():
    prices = step("list", {}, [{"sku": "S-14", "price": 14.5}, {"sku": "S-15", "price": 19}])
    assert marked(prices, step("pay", {"x": 29, "sku": "S-14", "n": 2}), task="Order two") == []
    assert marked(prices, step("pay", {"x": 38, "sku": "S-14", "n": 2}), task="Order two") == [("/x", 38)]
    assert marked(prices, step("pay", {"x": 33.5}), task="All of them") == []


def test_random_amounts_have_no_source_in_a_long_list():
    rnd = random.Random(5)
    prices = step("list", {}, {"items": [{"sku": f"S{n}x", "price": rnd.randint(10, 200)} for n in range(25)]})
    known = {each["price"] for each in prices["outcome"]["result"]["items"]}
    amounts = [amount for amount in (rnd.randint(10, 500) for _ in range(300)) if amount not in known]
    task = "Pay invoice A-77 for 2 people, 3 nights"
    assert sum(not marked(prices, step("pay", {"x": amount}), task=task) for amount in amounts) < 0.05 * len(amounts)


def test_a_flag_needs_a_word_and_a_plain_word_needs_a_source_only_where_something_is_written():
    task = "Transfer 50 euros to Ann"
    assert marked(step("send", {"to": "Mallory", "express": True}), task=task) == [
        ("/to", "Mallory"),
        ("/express", True),
    ]
    assert marked(step("send", {"to": "Ann", "express": True}), task=f"{task}, by express") == []
    assert marked(step("send", {"to": "Mallory", "express": True}), task=task, reading=["send"]) == []
