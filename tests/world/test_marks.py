"""What is no invention: what repeats the state or its counter, another spelling, what the words name; what is one."""

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from gecko_graph.world.given import Sources
from gecko_graph.world.provenance import trace
from gecko_graph.world.sentences import find_simulated
from tests.doubts import values

ADD = "Please top up my car to end with 50 gallons of fuel."


def step(name="act", result=None, patch=(), invented=True, rung="model", **args):
    outcome = {"status": "ok", "result": result, "patch": [*patch], "rung": rung, "simulated": True, "passed": []}
    return {
        "v": 1,
        "call": {"id": f"{name}-1", "name": name, "args": args},
        "outcome": {**outcome, "invented": invented},
    }


def made_up(said, *steps, state=None, about=None, answer="", schemas=None, **more):
    talk = [HumanMessage(said)] if isinstance(said, str) else said
    sources = Sources(conversation=talk, state=state or {}, about=about or {}, answer=answer, **more)
    found = {"notes": trace(steps, sources, lambda name: (schemas or {}).get(name, {})).notes}
    return values(found, "made_up"), values(found, "unsupported")


FUEL = step("status", {"car": {"fuelLevel": 10.5}})
HOLDS = {"fill": "It holds 50."}
POOL = {"pool": {"level": 40}}


@pytest.mark.parametrize(
    ("said", "steps", "state", "about"),
    [
        (ADD, [FUEL, step("fill", amount=39.5)], {"car": {"fuelLevel": 10.5}}, {}),
        ("Fill the fuel tank.", [FUEL, step("fill", amount=39.5)], {"car": {"fuelLevel": 10.5}}, HOLDS),
        ("Bring the water level up by 15.", [step("look", {"level": 40}), step("set", to=55)], POOL, {}),
        ("Open a priority-2 ticket.", [step("open", priority=2)], {}, {}),
        ("A floor-3 flat, please.", [step("rent", floor=3)], {}, {}),
        ("What is the mean of 12, 15 and 24?", [step("mean", {"result": 17.0}), step("note", number=17)], {}, {}),
        ("Pay ten times the price, to the nearest hundred.", [step("look", {"price": 41.2}), step("pay", amount=400)],
         {"stock": {"price": 41.2}}, {}),
        ("Order it, then look at it.", [step("order", {"order_id": 812}), step("show", order_id=812)],
         {"shop": {"order_counter": 812, "name": "x"}}, {}),
        ("Order it, then look at it.", [step("order", {"order_id": 813}), step("show", order_id=813)],
         {"shop": {"orderCount": 812, "name": "x"}}, {}),
    ],
)  # fmt: skip
def test_what_the_words_the_state_or_its_counter_give_is_no_invention(said, steps, state, about):
    assert made_up(said, *steps, state=state, about=about) == ([], [])


@pytest.mark.parametrize(
    ("said", "steps", "state"),
    [
        (ADD, [step("status", {"fuelLevel": 10.5}), step("fill", amount=39.5)], {"car": {"fuelLevel": 22}}),
        (ADD, [FUEL, step("fill", amount=31.5)], {"car": {"fuelLevel": 10.5}}),
        ("Please look after the car.", [FUEL, step("fill", amount=39.5)], {"car": {"fuelLevel": 10.5}}),
        ("Open a priority-2 ticket.", [step("open", priority=3)], {}),
        ("Open a priority-2 ticket.", [step("open", rooms=2)], {}),
        (
            "Order it.",
            [step("order", {"order_id": 77}), step("show", order_id=77)],
            {"order_counter": 812, "name": "x"},
        ),
        (
            "Order it.",
            [step("order", {"order_id": 813}), step("show", boat_id=813)],
            {"order_counter": 812, "name": "x"},
        ),
        ("Order it.", [step("order", {"order_id": 812}), step("show", order_id=812)], {"price": 811, "name": "x"}),
    ],
)
def test_what_they_do_not_give_keeps_its_mark(said, steps, state):
    assert made_up(said, *steps, state=state)[0] == [next(iter(steps[-1]["call"]["args"].values()))]


def test_a_counter_that_a_simulated_write_has_moved_still_gives_the_id_in_the_next_turn():
    state = {"shop": {"order_counter": 813, "name": "x", "orders": {"812": {}}}}
    made = {"gecko": {"rung": "model", "made_up": True, "wrote": True}}
    call = {"name": "order", "args": {}, "id": "a"}
    talk = [HumanMessage("Order it."), AIMessage("", tool_calls=[call], response_metadata={"gecko": {"rung": ""}}),
            ToolMessage(json.dumps({"order_id": 812}), tool_call_id="a", response_metadata=made),
            HumanMessage("Show it.")]  # fmt: skip
    moved = ["/shop/order_counter", "/shop/orders/812"]
    assert made_up(talk, step("show", order_id=812), state=state, supposed=moved) == ([], [])
    # where all of the state is made up, so is its counter
    assert made_up(talk, step("show", order_id=812), state=state, supposed=["/shop"])[0] == [812]
    whole = {"order_counter": 813, "name": "x"}
    assert made_up(talk, step("show", order_id=812), state=whole, supposed=["/order_counter", "/name"])[0] == [812]


def test_an_answer_may_say_a_figure_without_its_sign_and_a_field_in_words():
    state = {"stock": {"price": 725.89, "change": -0.03, "MA(5)": 726.45}}
    look = step("look", {"price": 725.89, "change": -0.03, "MA(5)": 726.45})
    answer = "It trades at $725.89, a change of -0.03 %; the 5-day average is 726.45."
    assert made_up("How is it?", look, state=state, answer=answer) == ([], [])
    assert made_up("How is it?", look, state=state, answer="a change of -0.04 %; the 17-day average")[1] == [
        "0.04",
        "17-day",
    ]


def test_unsupported_is_what_an_invented_read_says_and_not_what_a_simulated_write_gives():
    read = step("price", {"price": 1250})
    write = step("book", {"booking": "B-60938"}, [{"op": "add", "path": "/booked", "value": {"seat": "17C"}}])
    answer = "It costs 1,250; your booking is B-60938, seat 17C."
    assert made_up("Book it.", read, write, answer=answer)[1] == ["1,250"]
    assert made_up("Book it.", step("show", {"booking": "B-60938"}), write, answer=answer)[1] == ["1,250", "B-60938"]


ANSWERS = [
    ("You were verified successfully. Have a nice day!", step("verify_traveler", {"verification_status": True}), 1),
    ("There are no messages from you.", step("view_messages_sent", {"messages": {}}), 1),
    ("That is 49.97 liters.", step("convert", {"out": 49.967}), 1),
    ("It is booked.\nYour number is B-7.", step("book", {"id": "B-7"}, [{"op": "add", "path": "/b", "value": 1}]), 1),
    ("I sent it to Ann.", step("send", {"to": "Ann"}, [{"op": "add", "path": "/b", "value": 1}], to="Ann"), 0),
    ("You were verified.", step("verify", {"verified": True}, invented=False, rung="contract"), 0),
    ("Good morning!", step("verify", {"verified": True}), 0),
    ("It is in the folder reports.", step("find", {"matches": ["/home/ann/reports"]}), 1),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "made", "count"), ANSWERS)
def test_a_sentence_that_rests_on_a_simulated_result_is_named_with_the_call(answer, made, count):
    found = find_simulated([made], answer)
    assert len(found) == count
    assert all(each["data"]["calls"] == [made["call"]["id"]] for each in found)
    assert all(each["text"].partition(": ")[2] in answer for each in found)
