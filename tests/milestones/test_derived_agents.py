"""Cases derived from one good conversation, and 18 good and 18 bad agents that nobody derived them with."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache

import pytest

from gecko_graph import Models, create_conversation
from gecko_graph.conversation.derive import derive_milestones
from gecko_graph.scenario.cases.run import run_case
from gecko_graph.testing import recorded, scripted
from tests.phone import FOLDER, C, S, answering, bare_case

pytest.importorskip("scipy")


CREDIT, MUGS, TEA = C("showAccount"), C("findProducts", text="mug"), C("findProducts", text="mint")
COFFEE, SISTER = C("findProducts", text="coffee"), C("find_contacts", relation="sister")
TWO_TEAS = [C("setCartLine", sku="TEA-100", quantity=2), C("placeOrder")]
BLUE = [C("setCartLine", sku="MUG-BLUE", quantity=1), C("placeOrder")]
JONAS, TEXT = C("find_contacts", name="Jonas"), C("send_message", phone="+32470550123", text="I am on my way.")
FOUND, CELLO = C("find_reminders", text="cello"), C("change_reminder", id="r-3", due="2027-05-13T12:00")
AGENTS = {
    "two teas": dict(
        says="Please order two packs of mint tea on my credit.",
        good=[
            [TEA, *TWO_TEAS, S("I've ordered two packs of mint tea for €12.40. You have €27.60 of credit left.")],
            [C("findProducts"), *TWO_TEAS, S("Done, both packs are ordered.")],
            [CREDIT, C("findProducts", text="te", max_price=50), *TWO_TEAS, S("All set! Enjoy your tea.")],
            [TEA, *TWO_TEAS, S("Two mint teas are on their way to you. No other items were in the cart.")],
        ],
        bad=[
            [TEA, *TWO_TEAS, S("I'm sorry, I was not able to order the tea.")],
            [TEA, TWO_TEAS[0], S("I've ordered two packs of mint tea.")],
            [TEA, *TWO_TEAS, S("Your order failed: please try again later.")],
        ],
    ),
    "price of the coffee": dict(
        says="What does a bag of house coffee cost?",
        good=[
            [COFFEE, S("A bag of house coffee costs 16.90 euros; there are 12 left.")],
            [C("findProducts"), S("€16.90.")],
            [C("findProducts", text="House", max_price=100), S("It's 16.90 € a bag, and it is in stock.")],
            [COFFEE, S("The 500 g bag is 16.90 EUR.")],
        ],
        bad=[
            *answering(COFFEE, says=["A bag costs 19.60 euros.", "There are 12 bags in stock."]),
            [S("A bag of house coffee costs 16.90 euros.")],
        ],
    ),
    "the blue mug": dict(
        says="I'd like a green mug. If the green one is sold out, order a blue one instead.",
        good=[
            [MUGS, *BLUE, S("The green mug is sold out, so I ordered the blue stoneware mug. It was 14.50 euros.")],
            [C("findProducts"), *BLUE, S("I ordered the blue one, as green is sold out.")],
            [MUGS, *BLUE, S("Green is sold out. A blue mug has been ordered for you instead.")],
            [MUGS, CREDIT, *BLUE, S("The blue mug is ordered: the green one is sold out at the moment.")],
        ],
        bad=[
            [MUGS, *BLUE, S("The green mug is sold out, so I could not order anything.")],
            [MUGS, S("The green mug is sold out, so I ordered the blue stoneware mug.")],
            [*BLUE, S("I ordered the blue one, as green is sold out.")],
        ],
    ),
    "on my way": dict(
        says="Text Jonas: I am on my way.",
        good=[
            [JONAS, TEXT, S("I told Jonas Maes that you are on your way.")],
            [C("find_contacts"), TEXT, S("Sent.")],
            [C("find_contacts", relation="friend"), TEXT, S("Your text to +32 470 55 01 23 is out.")],
            [C("find_contacts", name="Jonas Maes"), TEXT, S("Message delivered. Nothing else to do, I think!")],
        ],
        bad=[
            [JONAS, TEXT, S("The message could not be sent.")],
            [JONAS, S("I told Jonas Maes that you are on your way.")],
            [TEXT, S("Sent.")],
        ],
    ),
    "the sister's number": dict(
        says="What is my sister's phone number?",
        good=[
            [SISTER, S("Your sister Lotte's number is +32470550145.")],
            [C("find_contacts"), S("+32 470 55 01 45")],
            [C("find_contacts", name="Lotte"), S("You reach her at +32470550145. She isn't among your favourites.")],
            [SISTER, S("Lotte Verbeek: +32470550145")],
        ],
        bad=answering(SISTER, says=["Your sister is Lotte Verbeek.", "Lotte's number is +32470550154.",
                                    "I found no number of your sister."]),
    ),
    "the cello": dict(
        says="Move the reminder to collect the cello to noon on the same day.",
        good=[
            [FOUND, CELLO, S("The cello's reminder is now at 12:00 on 13 May.")],
            [C("find_reminders"), CELLO, S("Moved to Thursday noon.")],
            [C("find_reminders", text="Collect"), CELLO, S("Okay, it will ring at 12 pm on May 13th.")],
            [C("get_time"), FOUND, CELLO, S("Done. No other reminders were touched.")],
        ],
        bad=[
            *answering(FOUND, CELLO, says=["The reminder is still at ten: I couldn't change it.",
                                           "The cello's reminder is now at 13:00 on 13 May."]),
            [FOUND, C("change_reminder", id="r-3", due="2027-05-14T12:00"), S("Moved.")],
        ],
    ),
}  # fmt: skip
HALF = ("the blue mug", 0)
"""Denies what it did, beside something that is true: rules leave it open."""
SHOP = ("two teas", "price of the coffee", "the blue mug")


@cache
def scenario(name):
    shop = name in SHOP
    file = FOLDER.parent / "shop" / "two-teas.gecko.yaml" if shop else FOLDER / "cases" / "late-text.gecko.yaml"
    return bare_case(file, AGENTS[name]["says"])


def talk(name, script):
    return create_conversation(scripted(*deepcopy(script)), scenario=scenario(name)).invoke({})


@cache
def goal(name):
    return derive_milestones(scenario(name).tools, talk(name, AGENTS[name]["good"][0]))


def status(name, script, **more):
    """What the derived case says of an agent, without `model` by rules alone."""
    return run_case(replace(scenario(name), goal=goal(name)), scripted(*deepcopy(script)), **more).status


def rows(kind):
    return [(name, at) for name, all_ in AGENTS.items() for at, _ in enumerate(all_[kind]) if kind == "bad" or at]


@pytest.mark.parametrize(("name", "number"), rows("good"))
def test_a_good_agent_passes(name, number):
    assert status(name, AGENTS[name]["good"][number]) == "passed"


@pytest.mark.parametrize(("name", "number"), rows("bad"))
def test_a_bad_agent_fails(name, number):
    assert status(name, AGENTS[name]["bad"][number]) == ("unknown" if (name, number) == HALF else "failed")


def test_the_role_decides_what_is_denied_beside_something_true():
    name, number = HALF
    judge = recorded(claim_judge=[{"sentence": "I could not order anything.", "reason": "Denied.", "met": False}])
    assert status(name, AGENTS[name]["bad"][number], model=Models(claim_judge=judge)) == "failed"
