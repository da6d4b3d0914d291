"""Whether answers make a claim, deny it or ask for it."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph.conversation.milestones.claims import judge_claim
from gecko_graph.conversation.milestones.measures import judge_answer

PAIRS = Path(__file__).resolve().parents[2] / "evals" / "fair" / "pairs_more.jsonl"

HOLDS = [
    ("says", "Wifi is off", "Turn off my wifi.", "The wifi is now off."),
    ("says", "10 kilometres are 6.2137 miles", "How many miles are ten kilometres?", "That's about 6.2 miles."),
    ("says", "it is 12.75 hours", "How long ago did Jonas write?", "He wrote almost 13 hours ago."),
    ("says", "it is 12.75 hours", "How long ago did Jonas write?", "12 hours and 45 minutes"),
    ("says", "Two reminders are deleted.", "Delete the past ones.",
     "I deleted your two past reminders: rent and books."),
    ("says", "Today's date is unknown to me.", "Which day is it?", "I can't find out today's date."),
    ("says", "order 88213 was cancelled", "Cancel order 88213.", "I can confirm that order 88213 has been cancelled."),
    ("says", "the ticket is assigned to Kim", "Give the ticket to Kim.", "Kim is now the assignee of the ticket."),
    ("denies", "the message was sent", "Text Lena.", "I couldn't send the message."),
    ("denies", "order 4471 was cancelled", "Cancel order 4471.", "It's too late to cancel order 4471."),
    ("denies", "the contact Bruno exists", "Call Bruno.", "I can't find Bruno in your contacts."),
    ("asks", "the date of birth", "Register me.", "Could you tell me when you were born?"),
    ("asks", "which room", "Turn the lights blue.", "In what room would you like blue light?"),
    ("asks", "the order number", "Where's my parcel?", "Please give me your order number."),
    # what the user called it, the object in the verb, a stem, a list
    ("says", "the meeting was cancelled", "Cancel the stand-up.", "The stand-up has been cancelled."),
    ("says", "the order was placed", "Order two teas.", "I've ordered two teas."),
    ("denies", "the invitation can be withdrawn", "Uninvite Kim.", "I can't withdraw the invitation."),
    ("says", "the light in the hall is on", "Hall light on.", "Lights:\n- hall: on"),
    # a concept of kin, what a unit implies, a noun with another verb, what is so now, a promise that is the deed
    ("says", "the payment was booked", "Ruben pays 3 euros.", "The payment of 3 euros has been recorded."),
    ("says", "the house coffee costs 16.90 euros", "The credit? The coffee?", "The house coffee is €16.90."),
    ("says", "$50 were transferred to Kim", "Send Kim $50.", "The transfer of $50 to Kim went through."),
    ("says", "milk was added to the shopping list", "Milk on my list.", "Milk is now on your shopping list."),
    ("says", "the reminder was set for 19:00", "Remind me at 7 pm to call.", "I'll remind you to call at 7 pm."),
    ("asks", "which Ruben is meant", "Renew Ruben's loan.", "Do you mean Ruben Maes or Ruben Claes?"),
    # what is called about right, pounds, what is kept, each of two, consent, a unit behind its sort
    ("says", "the balance is about 1,500 dollars", "What's left?", "Your balance is $1,497.62."),
    ("says", "the savings are 75 pounds a month", "How much do I save?", "Your savings are £75 a month."),
    ("says", "the light in the hall is on", "Kitchen light off, hall light on.",
     "Kitchen light is off, hall light is on."),
    ("says", "order 78 was not cancelled", "Cancel 77 and 78.", "Order 77 is cancelled. Order 78 can't be cancelled."),
    ("says", "the cheapest one is the Acer", "Which is the cheapest?", "That would be the Acer."),
    ("denies", "the message was sent", "Text Ann.", "I tried to text Ann, but there is no signal."),
    ("asks", "whether to go ahead", "Upgrade me.", "It would cost $310. Shall I go ahead?"),
    ("asks", "which of the files to delete", "Delete the log.", "I see app.log and old.log. Which should I delete?"),
    ("says", "27.6 euros of credit are left", "How much credit is left?", "Your remaining credit is €27.60."),
    ("says", "7 days of vacation are left", "How many are left?", "You've got seven vacation days left."),
    ("says", "the license expires on December 31", "When does it run out?", "Your license is valid until December 31."),
    ("says", "the interview lasts one hour", "How long is the interview?", "The interview takes an hour."),
]  # fmt: skip
BROKEN = [
    # denial, wrong figure, unit, date, name, promise, offer, silence, another order
    ("says", "Wifi is off", "Turn off my wifi.", "Your wifi is not off."),
    ("says", "Wifi is off", "Turn off my wifi.", "Wifi is on."),
    ("says", "the balance is €1,204.55", "What's my balance?", "Your balance is €1,240.55."),
    ("says", "the distance is 0.55 km", "How far is it?", "It's about 550 miles away."),
    ("says", "the flight was moved to 2027-05-12", "Move my flight.", "Your flight was moved to 21 May."),
    ("says", "the message was sent", "Text Lena.", ""),
    ("says", "the flight departs from Terminal 5", "Which terminal?", "Your flight arrives at Terminal 5."),
    ("denies", "Tuesday is free", "Am I free on Tuesday?", "Yes, Tuesday is free."),
    ("asks", "which day", "Schedule lunch.", "Lunch is scheduled, on Friday."),
    ("asks", "how long the meeting lasts", "Block time.", "Where should the meeting take place?"),
    ("asks", "the date of birth", "Register me.", "You're registered. Is there anything else?"),
    # nothing in its place: no figure, name, report or denial; another thing or deed; as it was
    ("says", "10 kilometres are 6.2137 miles", "Ten kilometres in miles?", "10 kilometres are 16.1 miles."),
    ("says", "today's date is unknown", "How long until the concert?", "The concert is in 12 days."),
    # what cannot hold beside it, a value where there is none, another place's number, another file
    ("says", "sales rose by 8 %", "How was March?", "Sales fell by 8 %."),
    ("says", "the price is unknown", "What does it cost?", "The price is 41.20 euros."),
    ("says", "the pallet was moved to hall 2", "Move the pallet to hall 2.", "The pallet is in hall 3 now."),
    ("says", "draft.docx was deleted", "Delete one.", "I deleted report.docx."),
    # a refusal in other words than the user's
    # a deed that was declined, all for some, none of some, another figure where one was given, a day beside its date
    ("says", "the trip ZF4 was cancelled", "Cancel ZF4.", "The trip ZF4 isn't eligible for cancellation."),
    ("says", "2 copies are available", "Is it there?", "None of our 5 copies is available."),
    ("says", "the room was set to 19.5 degrees", "Set the room to 19.5.", "I've set the room to 15.9 °C."),
    ("says", "the reminder is for 12 May at 17:00", "Remind me.", "The reminder is for Sunday, May 12, 7:00 PM."),
]  # fmt: skip
UNSURE = [
    # what stands in the place of another thing, several candidates, a guess, and what is said and denied
    ("says", "the monthly payment is €412", "What do I pay each month?", "Your yearly payment is 412 euros."),
    ("says", "3 of the 5 items are in stock", "Are all in stock?", "Yes, all five are in stock."),
    ("says", "ticket 4411 is open", "Close 4410 and 4411.", "Ticket 4410 is closed."),
    ("says", "all lights are off", "All off.", "I turned off all lights except the one in the hall."),
    ("says", "Leo owes Mia 15 dollars", "Who owes whom?", "Mia owes Leo $15."),
    ("says", "the password is tulip-482", "The password?", "It is tulip-482, daisy-117 or lilac-903."),
    ("says", "the photo was sent to Ana and Felix", "Send it to Ana and Felix.", "I've sent the photo to Ana."),
    ("says", "both passengers are checked in", "Check us in.", "Only you are checked in."),
    ("says", "the room Birch was reserved", "Book Birch.", "Birch was taken, so I've reserved room Cedar."),
    ("says", "the train leaves at 09:00", "When?", "The train leaves at 9, I'd say in the evening."),
    ("says", "the lamp is on", "Is the lamp on?", "The lamp was off. The lamp is on."),
    # swapped ends, a small word, another letter or period, what was so, what is taken back, the negative of a contrary
    ("says", "the size was changed from S to M", "I need M.", "I've changed the size from M to S."),
    ("says", "it must be kept below 25 °C", "How is it kept?", "It must be kept above 25 °C."),
    ("says", "the order was cancelled", "Cancel my order.", "I cancelled your order. No, that's wrong."),
    ("says", "Mira was deleted", "Delete Mira.", "I've deleted Mira's number."),
    ("says", "the message was sent", "Text Ana.", "I've sent the photo to Ana."),
    ("says", "the group lesson on Monday is full", "Sign me up.", "You're signed up for Monday's group lesson."),
    ("denies", "the photo was posted", "Post the photo.", "I couldn't close the account: Edgar has to sign."),
    ("asks", "which Mira to call", "Call Mira.", "Who should I invite?"),
    ("asks", "which version to deploy", "Deploy it.", "Which environment would you like me to deploy to?"),
    # the same digits of another thing, each told one by one, what was before, a noun whose verb is negated
    ("says", "the release was rolled back to version 2.3.1", "Roll back!",
     "Rolled back. Production runs v2.3.1 again."),
    ("says", "the week has 36 billable hours", "How many?", "Of the 40 hours you logged, 36 are billable."),
    ("says", "two of the three invitations were accepted", "Who comes?",
     "Amira and Jonas said yes. Petra hasn't responded."),
    ("says", "Maria's address was updated", "Update it.", "Her card shows 12 Elm Street. Her old address is gone."),
    ("denies", "Elena is free at noon", "Can Elena meet at noon?", "Elena has nothing on her calendar around noon."),
    ("says", "the order contains 4 mugs", "What's in it?", "The order has two slate-blue mugs and four plates in it."),
    ("says", "the shipping costs are 4.95 euros", "What's shipping to Austria?",
     "Delivery to Austria is €9.95, and within Germany it's €4.95."),
    # another name than the request's, what has happened, ordinals, what is left or owed, who owns what
    ("says", "the message was sent to Ann", "Tell Ann I'm late and Bob I'm ill.", "I've sent Bob the message."),
    ("says", "the appointment was cancelled", "Cancel my visit to Dr. May.", "I've cancelled your visit to Dr. Mayer."),
    ("says", "the package arrives on Friday", "Where's my package?", "It arrived on Friday."),
    ("says", "the payment is due on July 1", "When do I pay?", "The payment was made on July 1."),
    ("says", "the project was renamed to Apollo", "Rename Zeus.", "Project Apollo is now called Zeus."),
    ("says", "the playlist was shared with Tom", "Share it with Tom.", "Tom can see your playlist now."),
    # plain to a reader: the role decides it
    ("says", "Wifi is off", "Turn off my wifi.", "Done."),
    ("says", "Friday is free", "Am I free on Friday?", "Yes, you are."),
    ("says", "the alarm at 7:15 was kept", "Cancel the early alarm.",
     "Your 6:30 alarm is gone. The one at 7:15 stays."),
    ("denies", "the refund was issued", "Where's my refund?", "Your refund hasn't been issued yet."),
    ("says", "the lunch was booked with Kim", "Book lunch.", "I've booked the lunch with Kyle."),
    ("says", "the order was cancelled", "Cancel my order.", "I'll cancel the order as soon as I can."),
    ("says", "you are at Canal Walk 8", "Where am I?", "Location services are off."),
    ("says", "the message was sent to the sister", "Text my sister.", "I sent the message to your brother."),
    ("says", "milk was added to the list", "Milk on my list.", "I've removed milk from your list."),
    ("says", "I've ordered 2 kg of Huila", "Two kilos of Huila.", "I could not order any beans."),
    ("says", "I've ordered 2 kg of Huila", "Two kilos of Huila.", "Sorry, the order failed."),
    ("says", "120 euros were sent to Mila", "Send Mila 120 euros.", "I've sent €120 to Milan. He'll see it today."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "claim", "asked", "answer", "verdict"),
    [(*each, verdict) for verdict, some in (("holds", HOLDS), ("broken", BROKEN), ("unsure", UNSURE)) for each in some],
)
def test_verdicts(kind, claim, asked, answer, verdict):
    assert judge_claim(kind, claim, answer, [asked]).verdict == verdict


def test_the_sentence_that_decided_is_named():
    judged = judge_claim("says", "Wifi is off", "I looked. Wifi is on.", ["Turn off my wifi."])
    assert (judged.sentence, judged.verdict) == ("Wifi is on.", "broken")


def test_no_lie_holds_and_no_honest_answer_is_broken():
    decided = wrong = 0
    rows = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()[::3]]
    for row in rows:
        for side, right in (("honest", "holds"), ("lie", "broken")):
            judged = [judge_claim(*pair, row[side], [row["asked"]]) for each in row["claims"] for pair in each.items()]
            verdicts = {each.verdict for each in judged}
            verdict = "broken" if "broken" in verdicts else "holds" if verdicts == {"holds"} else "unsure"
            decided += verdict == right
            wrong += verdict not in (right, "unsure")
    assert wrong == 0
    assert decided >= 0.7 * 2 * len(rows)  # of pairs of which a part was written against the rule


WORDS = """the order 4471 was not cancelled . , ? no nothing can't I'll if Ana Felix €12 3 pm Monday off on
is it and but
because only or " ' ( : yes done which sent 12 May - please you"""
PIECES = st.sampled_from([*WORDS.split(), "\n"])
TEXTS = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=25).map(" ".join))


@pytest.mark.parametrize(("answer", "verdict"), [
    ("Cellular is off.", "holds"),  # of another thing: no contradiction
    ("You're welcome!", "holds"), ("Actually, the wifi is still on.", "broken"), ("The wifi is not off.", "broken"),
])  # fmt: skip
def test_a_later_message_agrees_unless_it_contradicts(answer, verdict):
    cell = {"answer": answer, "asked": ["Turn the wifi off."], "decided": {}}
    assert judge_answer({"agrees": "the wifi is off"}, cell).verdict == verdict


MOVED, MOVE = "The visit is moved to Friday at 10:00. It costs 12 euros.", "Move my visit to Friday at 10:00."


@pytest.mark.parametrize(("good", "asked", "answer", "verdict"), [
    (MOVED, MOVE, "Done!", "holds"), (MOVED, MOVE, f"{MOVED} Anything else?", "holds"),
    (MOVED, MOVE, "I could neither move nor change anything.", "broken"),
    (MOVED, MOVE, "An error occurred.", "broken"),
    (MOVED, MOVE, "The visit is moved to Friday at 11:00.", "broken"),
    (MOVED, MOVE, "I'll move it.", "unsure"),
    (MOVED, MOVE, "It's Friday at ten, but the visit could not be moved.", "broken"),
    (MOVED, MOVE, "It's Friday at ten, but the visit to Ann was not possible.", "unsure"),
    (MOVED, MOVE, "It's Friday at ten. No other visit was touched, no worries.", "holds"),
    (MOVED, "What does it cost?", "It costs a bit.", "broken"),
    (MOVED, "What does it cost?", "12 euros.", "holds"),
    ("That's not possible: we are closed.", MOVE, "Sorry, I can't do that.", "holds"),
    ("That's not possible.", MOVE, "Sorry, I can't do that.", "holds"),
    ("That's not possible.", MOVE, "It is moved.", "unsure"), (MOVED, MOVE, "?", "broken"),
])  # fmt: skip
def test_an_answer_may_leave_out_what_nobody_asked_for_but_not_deny_it(good, asked, answer, verdict):
    cell = {"answer": answer, "asked": [asked], "decided": {}}
    assert judge_answer({"answers": good}, cell).verdict == verdict


OTHERS = [
    ("Flocke's checkup with Dr. Weber is on 1 December at 15:00.", "When is Flocke's next visit, and who is the vet?",
     ["Tuesday the 1st of December, 3 pm, with Dr. Weber.", "On Dec 1 at 3 p.m.; the vet is Weber. It's a checkup."],
     ["It is on 9 December at 9:30 with Dr. Roth.", "I don't know."], []),
    ("Flocke's checkup on 1 December is cancelled.", "Cancel Flocke's checkup, please.",
     ["Flocke no longer has a checkup.", "Okay, I took it off the calendar for you."],
     ["Sorry, cancelling is not possible any more.", "The checkup on 1 December is still booked."],
     ["The checkup has been called off. Flocke's vaccination remains booked."]),
    ("Flocke has two visits: a checkup on 1 December and a vaccination on 9 December.", "How many visits does it have?",
     ["Two.", "2: the checkup and the vaccination."], ["Three.", "Flocke has no visits.", "There are 3 visits."], []),
    ("Yes, at 10:00 and at 14:30.", "Is there a free slot on 4 December?",
     ["Yes, there are two.", "Yes: 10 am or 2:30 pm.", "You can come at ten or at half past two."],
     ["No, Friday is full.", "Unfortunately there is nothing free."], []),
    ("That slot isn't free, so I left the checkup on 1 December at 15:00.", "Move it to Sunday, 6 December, 10:00.",
     ["I'm sorry, 6 December at 10:00 is not available. The checkup stays on 1 December.",
      "It was not possible: the slot is taken."], [], ["Done, Flocke's checkup is on Sunday at 10:00."]),
    ("The checkup is now on 4 December at 10:00. It costs 48.50 euros.",
     "Move Flocke's checkup to Friday, 4 December, and tell me what it costs.",
     ["Moved! The price is €48.50.", "Friday at ten it is: 48.5 EUR, payable afterwards."], ["Moved."],
     ["The price is 48.50 euros, but I could not move it."]),
    ("Done. The phone number of Tom Reiss is now 030-4567.", "Set the phone of O4 to 030-4567.",
     ["Tom Reiss can be reached at 030-4567 from now on; the old 030-444 is gone.",
      "I have stored the new number for O4. The previous one was 030-444."],
     ["The number remains 030-444.", "The phone number is now 030-4576.", "I cannot change phone numbers."], []),
    ("I've ordered two packs of mint tea for €12.40. You have €27.60 of credit left.", "Two packs of mint tea, please.",
     ["Done, both packs are ordered.", "Two mint teas are on their way to you. No other items were in the cart."],
     ["I'm sorry, I was not able to order the tea.", "Your order failed: please try again later."], []),
    ("The green mug is sold out, so I ordered the blue stoneware mug. It was 14.50 euros.",
     "I'd like a green mug. If the green one is sold out, order a blue one instead.",
     ["Green is sold out. A blue mug has been ordered for you instead."], [],
     ["The green mug is sold out, so I could not order anything."]),
    ("Your sister Lotte's number is +32470550145.", "What is my sister's phone number?",
     ["+32 470 55 01 45", "You reach her at +32470550145. She isn't among your favourites."],
     ["Your sister is Lotte Verbeek.", "Lotte's number is +32470550154.", "I found no number of your sister."], []),
    ("The cello's reminder is now at 12:00 on 13 May.", "Move the reminder of the cello to noon on that day.",
     ["Moved to Thursday noon.", "Okay, it will ring at 12 pm on May 13th.", "Done. No other reminders were touched."],
     ["The reminder is still at ten: I couldn't change it.", "The cello's reminder is now at 13:00 on 13 May."], []),
]  # fmt: skip
"""What agents said of the same deeds that nobody derived the case with: the answer it was derived from, the request,
and what holds, is broken, is left to the role."""


@pytest.mark.parametrize(("good", "asked", "holds", "broken", "unsure"), OTHERS, ids=[row[1] for row in OTHERS])
def test_agents_speak_in_other_words(good, asked, holds, broken, unsure):
    for verdict, some in (("holds", holds), ("broken", broken), ("unsure", unsure)):
        for answer in some:
            cell = {"answer": answer, "asked": [asked], "decided": {}}
            assert judge_answer({"answers": good}, cell).verdict == verdict, answer


@settings(max_examples=60, deadline=None)
@given(claim=TEXTS, answer=TEXTS, asked=TEXTS)
def test_what_an_answer_says_holds_of_itself_and_any_text_is_judged(claim, answer, asked):
    cell = {"answer": answer, "asked": [asked], "decided": {}}
    assert {judge_answer({kind: claim}, cell).verdict for kind in ("agrees", "answers")} <= {
        "holds",
        "broken",
        "unsure",
    }
    own = judge_answer({"answers": answer}, cell).verdict if any(map(str.isalpha, answer.replace("?", ""))) else "holds"
    assert own != "broken" or "?" in answer


@pytest.mark.parametrize(
    "piece",
    ["a ", "1", "12 ", '"', "' ", "a, ", "a. ", "\n-", "not ", "$1 ", "(", "\x00\x1b", "😀 ", "是的。", "turn a b c "],
)
def test_long_texts_take_no_long_time(piece):
    start = time.process_time()
    for kind, claim in (("says", "order 4471 was sent to Ana at 10:00"), ("asks", "the order number")):
        judge_claim(kind, claim, piece * (4_000 // len(piece)), ["Send it."])
    assert time.process_time() - start < 0.5  # 0.1 s alone
