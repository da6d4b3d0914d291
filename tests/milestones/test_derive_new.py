"""Milestones derived from one good conversation: a condition, a time that is computed, a number; others by them."""

from __future__ import annotations

from copy import deepcopy

import pytest

from gecko_graph import GeckoError
from gecko_graph.conversation.derive import SUCCESS, derive_milestones, score_conversation
from gecko_graph.testing import scripted
from tests.phone import FOLDER, C, S, bare_case, converse

pytest.importorskip("scipy")


LIBRARY, BILL = C("delete_reminder", id="r-1"), C("delete_reminder", id="r-2")
BOOKS = C("find_reminders", text="library")
CELLO, ROSIN = C("find_reminders", text="cello"), C("add_reminder", text="Buy rosin", due="2027-05-13T09:00")
SISTER = C("find_contacts", relation="sister")
CASES = {
    "rosin": dict(
        opening="Remind me to buy rosin an hour before I collect the cello.",
        good=[CELLO, ROSIN, S("I will remind you on Thursday at 9.")],
        also=[
            [C("get_time"), C("find_reminders"), C("add_reminder", text="Buy rosin", due="2027-05-13T09:00:00"),
             S("Set for 13 May, 09:00.")],
            [C("find_reminders", text="Collect"), C("add_reminder", text="buy rosin", due="2027-05-13T09:00"),
             S("Done!")],
        ],
        bad={
            "an hour after": [CELLO, C("add_reminder", text="Buy rosin", due="2027-05-13T11:00"),
                              S("I will remind you on Thursday at 11.")],
            "moved the cello": [CELLO, C("change_reminder", id="r-3", text="Buy rosin", due="2027-05-13T09:00"),
                                S("I will remind you on Thursday at 9.")],
            "never looked": [ROSIN, S("I will remind you on Thursday at 9.")],
        },
    ),
    "sisters-number": dict(
        opening="What is my sister's number?",
        good=[SISTER, S("Lotte's number is +32470550145.")],
        also=[
            [C("find_contacts"), S("It is +32 470 55 01 45.")],
            [C("find_contacts", name="Lotte"), S("You can reach your sister Lotte at +32470550145")],
        ],
        bad={
            "all numbers": [C("find_contacts"), S("One of +32470550123, +32470550145, +32470550167, +32470550189.")],
            "right number, denied": [SISTER, S("+32470550145 is not the number of your sister.")],
        },
    ),
    "if-wednesday": dict(
        opening="If it is Wednesday, delete the reminder of the library books, otherwise that of the electricity bill.",
        good=[C("get_time"), BOOKS, LIBRARY, S("It is Wednesday: the library books are gone from your reminders.")],
        also=[[C("find_reminders"), C("get_time"), LIBRARY,
               S("Today is Wednesday, so I deleted the library reminder.")]],
        bad={
            "the other": [C("get_time"), C("find_reminders"), BILL,
                          S("It is Wednesday: the electricity bill is gone.")],
            "both": [C("get_time"), C("find_reminders"), LIBRARY, BILL,
                     S("It is Wednesday: the library books are gone from your reminders.")],
            "never looked at the day": [C("find_reminders"), LIBRARY, S("Done.")],
            "says it kept it": [C("get_time"), C("find_reminders"), LIBRARY,
                                S("It is Tuesday: I deleted the electricity bill.")],
        },
    ),
}  # fmt: skip


def talk(name, script):
    file = FOLDER / "cases" / "text-the-dentist.gecko.yaml"
    scenario = bare_case(file, CASES[name]["opening"], name=name, tools="tests.phone:TOOLS")
    return scenario.tools, converse(scripted(*deepcopy(script)), scenario)


def score(name, script):
    tools, good = talk(name, CASES[name]["good"])
    return score_conversation(derive_milestones(tools, good), tools, talk(name, script)[1])["similarity"]


@pytest.mark.parametrize(("name", "number"), [(name, at) for name in CASES for at in range(len(CASES[name]["also"]))])
def test_another_good_route_is_accepted(name, number):
    assert score(name, CASES[name]["also"][number]) >= SUCCESS


@pytest.mark.parametrize(("name", "what"), [(name, what) for name in CASES for what in CASES[name]["bad"]])
def test_a_bad_agent_is_caught(name, what):
    assert score(name, CASES[name]["bad"][what]) < SUCCESS


def test_a_conversation_on_guesses_comes_to_its_own_goal():
    looked = C("find_weekday", after="2027-05-11T09:00:00", weekday="Tuesday")
    tools, own = talk("sisters-number", [looked, S("Done.")])
    assert score_conversation(derive_milestones(tools, own), tools, own)["similarity"] == 1.0


def test_what_a_conversation_does_not_meet_itself_is_named(monkeypatch):
    tools, own = talk("sisters-number", CASES["sisters-number"]["good"])
    missed = {"id": "answer_1", "similarity": 0.5, "missed": [{"part": "mentions", "place": ""}]}
    monkeypatch.setattr("gecko_graph.conversation.derive.score_conversation", lambda *_: {"milestones": [missed]})
    with pytest.raises(GeckoError, match=r"answer_1 \(mentions\)"):
        derive_milestones(tools, own)
