"""Cases derived from one conversation with a clinic of plain functions, and agents that speak in other words."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from langchain_core.tools import tool

from gecko_graph import Toolkit, create_conversation
from gecko_graph.conversation.derive import derive_milestones, score_conversation
from gecko_graph.conversation.score import find_status
from gecko_graph.testing import scripted
from gecko_graph.tools import with_data
from tests.phone import C, S, answering

pytest.importorskip("scipy")

DATA: dict[str, Any] = {
    "now": "2026-11-28T09:00",
    "visits": {
        "A5": {"pet": "Flocke", "kind": "checkup", "start": "2026-12-01T15:00", "vet": "Dr. Weber"},
        "A9": {"pet": "Flocke", "kind": "vaccination", "start": "2026-12-09T09:30", "vet": "Dr. Roth"},
        "A7": {"pet": "Bello", "kind": "surgery", "start": "2026-12-02T08:00", "vet": "Dr. Roth"},
    },
    "owners": {"O4": {"name": "Tom Reiss", "phone": "030-444"}},
    "slots": ["2026-12-04T10:00", "2026-12-04T14:30", "2026-12-05T09:00"],
    "prices": {"checkup": 48.5, "vaccination": 31.0, "surgery": 420.0},
}


@tool
def find_visits(pet: str = "") -> list[dict[str, str]]:
    """Find the visits of a pet, or all."""
    return [{"id": key, **one} for key, one in DATA["visits"].items() if pet in ("", one["pet"])]


@tool
def free_slots(day: str = "") -> list[str]:
    """List free slots of a day."""
    return [s for s in DATA["slots"] if s.startswith(day)]


@tool
def price(kind: str) -> dict[str, Any]:
    """Say what a kind of visit costs."""
    return {"kind": kind, "price": DATA["prices"][kind], "currency": "EUR"}


@tool
def move(id: str, start: str) -> dict[str, str]:
    """Move a visit."""
    if start not in DATA["slots"]:
        raise ValueError("that slot is not free")
    DATA["visits"][id]["start"] = start
    return {"id": id, **DATA["visits"][id]}


@tool
def cancel(id: str) -> str:
    """Cancel a visit."""
    del DATA["visits"][id]
    return f"{id} cancelled"


@tool
def set_phone(owner: str, phone: str) -> dict[str, str]:
    """Change an owner's phone number."""
    DATA["owners"][owner]["phone"] = phone
    return DATA["owners"][owner]


tools = Toolkit.from_tools(with_data([find_visits, free_slots, price, move, cancel, set_phone], DATA))


F, ALL, CANCEL = C("find_visits", pet="Flocke"), C("find_visits"), C("cancel", id="A5")
FRIDAY, SLOTS = C("free_slots", day="2026-12-04"), C("free_slots")
MOVE, TAKEN = (C("move", id="A5", start=f"2026-12-0{day}T10:00") for day in (4, 6))
PRICE, PHONE = C("price", kind="checkup"), C("set_phone", owner="O4", phone="030-4567")
CASES = [
    (
        "When is Flocke's next visit, and who is the vet?",
        [F, S("Flocke's checkup with Dr. Weber is on 1 December at 15:00.")],
        [[ALL, S("Tuesday the 1st of December, 3 pm, with Dr. Weber.")],
         *answering(F, says=["Dr. Weber will see Flocke on 2026-12-01 at 15:00.",
                        "On Dec 1 at 3 p.m.; the vet is Weber. It's a checkup."])],
        answering(F, says=["It is on 9 December at 9:30 with Dr. Roth.", "On 1 December at 15:00.", "I don't know."]),
    ),
    (
        "Cancel Flocke's checkup, please.",
        [F, CANCEL, S("Flocke's checkup on 1 December is cancelled.")],
        [[ALL, CANCEL, S("Done.")],
         *answering(F, CANCEL, says=["The checkup has been called off. Flocke's vaccination remains booked.",
                                "Flocke no longer has a checkup.", "Okay, I took it off the calendar for you."])],
        [*answering(F, CANCEL, says=["I couldn't cancel the checkup.", "Sorry, cancelling is not possible any more.",
                                "The checkup on 1 December is still booked."]),
         [F, C("cancel", id="A9"), S("Flocke's checkup is cancelled.")],
         [F, S("Flocke's checkup on 1 December is cancelled.")]],
    ),
    (
        "How many visits does Flocke have?",
        [F, S("Flocke has two visits: a checkup on 1 December and a vaccination on 9 December.")],
        [*answering(F, says=["Two.", "2: the checkup and the vaccination."]),
         [ALL, S("There are 2 visits for Flocke.")]],
        [*answering(F, says=["Three.", "Flocke has no visits."]), [ALL, S("There are 3 visits.")]],
    ),
    (
        "Is there a free slot on 4 December?",
        [FRIDAY, S("Yes, at 10:00 and at 14:30.")],
        [[SLOTS, S("Yes, there are two.")],
         [C("free_slots", day="2026-12"), S("Yes: 10 am or 2:30 pm.")],
         [FRIDAY, S("You can come at ten or at half past two.")]],
        answering(FRIDAY, says=["No, Friday is full.", "Unfortunately there is nothing free."]),
    ),
    (
        "Move Flocke's checkup to Sunday, 6 December at 10:00.",
        [F, TAKEN, S("That slot isn't free, so I left the checkup on 1 December at 15:00.")],
        [[F, C("free_slots", day="2026-12-06"),
          S("I'm sorry, 6 December at 10:00 is not available. The checkup stays on 1 December.")],
         [F, TAKEN, S("It was not possible: the slot is taken.")]],
        [[F, TAKEN, S("Done, Flocke's checkup is on Sunday at 10:00.")],
         [F, MOVE, S("That slot isn't free, so I moved it to Friday.")]],
    ),
    (
        "Move Flocke's checkup to Friday, 4 December, and tell me what it costs.",
        [F, FRIDAY, MOVE, PRICE, S("The checkup is now on 4 December at 10:00. It costs 48.50 euros.")],
        [[F, SLOTS, PRICE, MOVE, S("Moved! The price is €48.50.")],
         [F, FRIDAY, MOVE, PRICE, S("Friday at ten it is: 48.5 EUR, payable afterwards.")]],
        [[F, SLOTS, MOVE, S("Moved! The price is €48.50.")],
         [F, SLOTS, PRICE, S("Moved.")],
         [F, SLOTS, PRICE, MOVE, S("The price is 48.50 euros, but I could not move it.")]],
    ),
    (
        "Set the phone of O4 to 030-4567.",
        [PHONE, S("Done. The phone number of Tom Reiss is now 030-4567.")],
        answering(PHONE, says=["Updated.", "Tom Reiss can be reached at 030-4567 from now on; the old 030-444 is gone.",
                          "I have stored the new number for O4. The previous one was 030-444."]),
        answering(PHONE, says=["The number remains 030-444.", "The phone number is now 030-4576.",
                          "I cannot change phone numbers."]),
    ),
]  # fmt: skip
OPEN = {
    ("good", "The checkup has been called off. Flocke's vaccination remains booked."),
    ("bad", "Done, Flocke's checkup is on Sunday at 10:00."),
    ("bad", "The price is 48.50 euros, but I could not move it."),
}
"""What is for the role `claim_judge`."""


def talk(says, script):
    graph = create_conversation(scripted(*script), tools, user=[says, {"end": True}])
    return graph.invoke({"task_state": DATA})


@cache
def goal(number):
    says, good, *_ = CASES[number]
    return derive_milestones(tools, talk(says, good))


@pytest.mark.parametrize(
    ("number", "kind", "at"),
    [(n, kind, at) for n, case in enumerate(CASES) for kind, all_ in zip(("good", "bad"), case[2:], strict=True)
     for at, _ in enumerate(all_)],
)  # fmt: skip
def test_good_agents_pass_and_bad_ones_fail_by_rules_alone(number, kind, at):
    says, _, good, bad = CASES[number]
    script = (good if kind == "good" else bad)[at]
    status = find_status(score_conversation(goal(number), tools, talk(says, script)), "ended", [])
    if (kind, script[-1]["say"]) in OPEN:
        assert status == "unknown"
    else:
        assert status == ("passed" if kind == "good" else "failed")
