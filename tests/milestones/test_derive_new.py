"""Milestones derived from one good conversation of six cases that derivation was not made with (findings, 4.6)."""

from __future__ import annotations

from copy import deepcopy

import pytest

from gecko_graph import GeckoError, Scenario, create_conversation
from gecko_graph.conversation.derive import SUCCESS, derive_milestones, score_conversation
from gecko_graph.testing import scripted
from gecko_graph.values.documents import read_document
from tests.phone import FOLDER

pytest.importorskip("scipy")


def C(name, /, **args):
    return {"call": name, "args": args}


def S(text):
    return {"say": text}


LOW = {"settings": {"wifi": False, "cellular": False, "location": False, "low_battery": True}}
CASES = {
    "bike-is-sold": dict(
        opening="Somebody asked whether the bike is still for sale. Text them: Sorry, the bike is sold.",
        good=[
            C("find_messages", text="bike"),
            C("send_message", phone="+32470550201", text="Sorry, the bike is sold."),
            S("I told them that the bike is sold."),
        ],
        also=[
            [
                C("find_messages"),
                C("find_contacts"),
                C("send_message", phone="+32470550201", text="Sorry, the bike is sold."),
                S("Done."),
            ]
        ],
        bad={
            "wrong number": [
                C("find_messages", text="bike"),
                C("send_message", phone="+32470550123", text="Sorry, the bike is sold."),
                S("I told them that the bike is sold."),
            ],
            "sent twice": [
                C("find_messages", text="bike"),
                C("send_message", phone="+32470550201", text="Sorry, the bike is sold."),
                C("send_message", phone="+32470550201", text="Sorry, the bike is sold."),
                S("I told them."),
            ],
            "never looked": [
                C("send_message", phone="+32470550201", text="Sorry, the bike is sold."),
                S("I told them that the bike is sold."),
            ],
            "other words": [
                C("find_messages", text="bike"),
                C("send_message", phone="+32470550201", text="The bike is still for sale."),
                S("I told them that the bike is sold."),
            ],
        },
    ),
    "jonas-moved": dict(
        opening="Jonas has a new number, +32470550999. Keep his old one as a contact called Jonas old.",
        good=[
            C("find_contacts", name="Jonas"),
            C("change_contact", id="c-1", phone="+32470550999"),
            C("add_contact", name="Jonas old", phone="+32470550123"),
            S("Both numbers are kept."),
        ],
        also=[
            [
                C("find_contacts"),
                C("add_contact", name="Jonas old", phone="+32470550123"),
                C("change_contact", id="c-1", phone="+32470550999"),
                C("add_contact", name="Jonas old", phone="+32470550123"),
                S("Done."),
            ],
            [
                C("find_contacts", name="Jo"),
                C("change_contact", id="c-1", phone="+32470550999", name="Jonas Maes"),
                C("add_contact", name="Jonas old", phone="+32470550123", relation=""),
                S("Done."),
            ],
        ],
        bad={
            "only one": [
                C("find_contacts", name="Jonas"),
                C("change_contact", id="c-1", phone="+32470550999"),
                S("Both numbers are kept."),
            ],
            "Hugo": [
                C("find_contacts"),
                C("change_contact", id="c-3", phone="+32470550999"),
                C("add_contact", name="Jonas old", phone="+32470550998"),
                S("Both numbers are kept."),
            ],
            "swapped": [
                C("find_contacts", name="Jonas"),
                C("change_contact", id="c-1", name="Jonas old"),
                C("add_contact", name="Jonas Maes", phone="+32470550999", relation="friend"),
                S("Both numbers are kept."),
            ],
        },
    ),
    "rosin": dict(
        opening="Remind me to buy rosin an hour before I collect the cello.",
        good=[
            C("find_reminders", text="cello"),
            C("add_reminder", text="Buy rosin", due="2027-05-13T09:00"),
            S("I will remind you on Thursday at 9."),
        ],
        also=[
            [
                C("get_time"),
                C("find_reminders"),
                C("add_reminder", text="Buy rosin", due="2027-05-13T09:00:00"),
                S("Set for 13 May, 09:00."),
            ],
            [
                C("find_reminders", text="Collect"),
                C("add_reminder", text="buy rosin", due="2027-05-13T09:00"),
                S("Done!"),
            ],
        ],
        bad={
            "an hour after": [
                C("find_reminders", text="cello"),
                C("add_reminder", text="Buy rosin", due="2027-05-13T11:00"),
                S("I will remind you on Thursday at 11."),
            ],
            "moved the cello": [
                C("find_reminders", text="cello"),
                C("change_reminder", id="r-3", text="Buy rosin", due="2027-05-13T09:00"),
                S("I will remind you on Thursday at 9."),
            ],
            "never looked": [
                C("add_reminder", text="Buy rosin", due="2027-05-13T09:00"),
                S("I will remind you on Thursday at 9."),
            ],
        },
    ),
    "amina-on-my-way": dict(
        opening="Text Amina: On my way.",
        state=LOW,
        good=[
            C("find_contacts", name="Amina"),
            C("set_low_battery", on=False),
            C("set_cellular", on=True),
            C("send_message", phone="+32470550189", text="On my way."),
            S("Sent."),
        ],
        also=[
            [
                C("send_message", phone="+32470550189", text="On my way."),
                C("set_cellular", on=True),
                C("set_low_battery", on=False),
                C("set_cellular", on=True),
                C("find_contacts"),
                C("send_message", phone="+32470550189", text="On my way."),
                S("Your text is out."),
            ]
        ],
        bad={
            "wifi too": [
                C("find_contacts", name="Amina"),
                C("set_low_battery", on=False),
                C("set_cellular", on=True),
                C("set_wifi", on=True),
                C("send_message", phone="+32470550189", text="On my way."),
                S("Sent."),
            ],
            "not sent": [
                C("find_contacts", name="Amina"),
                C("set_low_battery", on=False),
                C("set_cellular", on=True),
                S("Sent."),
            ],
            "switched back, sent to Lotte": [
                C("find_contacts", name="Amina"),
                C("set_low_battery", on=False),
                C("set_cellular", on=True),
                C("send_message", phone="+32470550145", text="On my way."),
                S("Sent."),
            ],
        },
    ),
    "sisters-number": dict(
        opening="What is my sister's number?",
        good=[C("find_contacts", relation="sister"), S("Lotte's number is +32470550145.")],
        also=[
            [C("find_contacts"), S("It is +32 470 55 01 45.")],
            [C("find_contacts", name="Lotte"), S("You can reach your sister Lotte at +32470550145")],
        ],
        bad={
            "wrong number": [C("find_contacts", relation="sister"), S("Lotte's number is +32470550154.")],
            "not found": [C("find_contacts", relation="sister"), S("I could not find it.")],
            "all numbers": [C("find_contacts"), S("One of +32470550123, +32470550145, +32470550167, +32470550189.")],
            "right number, denied": [
                C("find_contacts", relation="sister"),
                S("+32470550145 is not the number of your sister."),
            ],
        },
    ),
    "if-wednesday": dict(
        opening="If it is Wednesday, delete the reminder of the library books, otherwise that of the electricity bill.",
        good=[
            C("get_time"),
            C("find_reminders", text="library"),
            C("delete_reminder", id="r-1"),
            S("It is Wednesday: the library books are gone from your reminders."),
        ],
        also=[
            [
                C("find_reminders"),
                C("get_time"),
                C("delete_reminder", id="r-1"),
                S("Today is Wednesday, so I deleted the library reminder."),
            ]
        ],
        bad={
            "the other": [
                C("get_time"),
                C("find_reminders"),
                C("delete_reminder", id="r-2"),
                S("It is Wednesday: the electricity bill is gone."),
            ],
            "both": [
                C("get_time"),
                C("find_reminders"),
                C("delete_reminder", id="r-1"),
                C("delete_reminder", id="r-2"),
                S("It is Wednesday: the library books are gone from your reminders."),
            ],
            "never looked at the day": [C("find_reminders"), C("delete_reminder", id="r-1"), S("Done.")],
            "says it kept it": [
                C("get_time"),
                C("find_reminders"),
                C("delete_reminder", id="r-1"),
                S("It is Tuesday: I deleted the electricity bill."),
            ],
        },
    ),
}


def talk(name, script):
    spec = CASES[name]
    data = deepcopy(read_document(FOLDER / "cases" / "text-the-dentist.gecko.yaml"))
    for key in ("without", "needs", "minefields", "milestones"):
        data.pop(key, None)
    data["state"] |= spec.get("state", {})
    data |= {"name": name, "tools": "tests.phone:TOOLS"}
    data["user"] = {"goal": spec["opening"], "opening": spec["opening"], "script": [{"end": True}]}
    scenario = Scenario.from_dict(data)
    output = create_conversation(scripted(*deepcopy(script)), scenario=scenario).invoke({}, {"recursion_limit": 200})
    return scenario.tools, output


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
