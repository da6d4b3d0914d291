"""What a rehearsal leaves in a conversation, and what later turns read of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from gecko_graph.models.memory import answer_message, real_results, recall_calls, rung_of, supposed_places
from gecko_graph.values.digest import digest
from gecko_graph.values.notes import note
from tests.any_schema import JUNK


def step(name, args=None, result=None, rung="contract", status="ok"):
    outcome = {"status": status, "result": result, "patch": [], "rung": rung, "simulated": True, "passed": []}
    return {"v": 1, "call": {"id": name, "name": name, "args": args or {}}, "outcome": outcome}


STATE = {"a": {"id": "A-7"}, "b/c": [1], "d": "", "user": "Bo"}


def verdict(word="accepted", **more):
    return {"status": word, "score": 1.0, "items": [], "feedback": "", **more}


FIND = step("find", {"to": "Rome"}, {"flights": [{"id": "F-7731"}]}, "model")
REFUSED = {"v": 1, "call": {"id": "r", "name": "find", "args": {}}, "complaints": []}


def said(steps, *, word="accepted", budget=6_000, **more):
    return answer_message("I found some flights.", verdict(word, **more), steps, budget=budget)


def test_an_accepted_answer_carries_calls_results_and_rungs_and_a_failed_one_that_nothing_was_done():
    message = said([REFUSED, FIND], notes=[note("made_up", "", call="c")])
    assert (message.text, message.name) == ("I found some flights.", "gecko")
    assert message.response_metadata["gecko"] == {
        "v": 1, "verdict": "accepted", "made_up": 1, "whole": True,
        "calls": [
            {"name": "find", "args": {"to": "Rome"}, "result": {"flights": [{"id": "F-7731"}]}, "status": "ok",
             "rung": "model"},
        ],
    }  # fmt: skip
    message = said([FIND], word="failed", feedback="- the flight is booked: failed")
    assert message.text == "Rehearsal failed; nothing was done.\n- the flight is booked: failed"
    assert message.response_metadata["gecko"]["calls"] == []
    assert answer_message("", verdict(), [FIND], budget=100) is None


@pytest.mark.parametrize("budget", [500, 2_000, 6_000])
def test_what_is_remembered_stays_within_the_budget_the_latest_first(budget):
    steps = [step(f"call_{n}", {"text": "x" * 5_000}, list(range(n * 100))) for n in range(30)]
    calls = said(steps, budget=budget).response_metadata["gecko"]["calls"]
    assert len(json.dumps(calls)) <= 1.4 * budget
    assert [call["name"] for call in calls] == [f"call_{n}" for n in range(30)][30 - len(calls) :]
    assert calls or budget == 500


def test_later_turns_read_calls_and_results_where_they_were_made():
    conversation = [HumanMessage("Find one"), said([FIND, step("look")]), HumanMessage("Book it")]
    told = recall_calls(conversation)
    assert [message.type for message in told] == ["human", "ai", "tool", "ai", "tool", "ai", "human"]
    assert [told[1].tool_calls[0]["args"], told[3].tool_calls[0]["args"]] == [{"to": "Rome"}, {}]
    assert [told[number].tool_calls[0]["id"] == told[number + 1].tool_call_id for number in (1, 3)] == [True, True]
    assert "F-7731" in told[2].text
    assert [rung_of(message) for message in told] == [None, "", "model", "", "contract", None, None]
    assert recall_calls(told) == told
    assert conversation[1].response_metadata["gecko"]["calls"]


def test_of_earlier_turns_what_real_calls_have_shown_is_known_as_facts():
    real = step("get_total", {"of": "mugs"}, {"total": 29.0})
    real["outcome"]["rung"] = "real"
    told = recall_calls([HumanMessage("Find one"), said([FIND, real]), HumanMessage("Book it")])
    known = {"tool": "get_total", "args": {"of": "mugs"}, "status": "ok", "result": {"total": 29.0}, "rung": "real"}
    assert real_results(told) == [{**known, "digest": ""}]


LISTED = JUNK | st.lists(st.sampled_from(["/a", "/", "-"]) | st.text() | JUNK)
SUPPOSED = st.fixed_dictionaries(
    {"digest": st.just(digest(STATE)) | JUNK, "paths": LISTED, "marks": LISTED, "keys": LISTED}
)
PLACES = st.fixed_dictionaries({"supposed": JUNK | SUPPOSED})
METADATA = JUNK | PLACES | st.fixed_dictionaries({"calls": JUNK | st.lists(JUNK | st.fixed_dictionaries(
    {"name": st.text() | JUNK, "args": st.dictionaries(st.text(), JUNK), "result": JUNK, "status": st.text(),
     "rung": st.text()},
))})  # fmt: skip


@given(METADATA)
def test_changed_metadata_crash_nothing(metadata):
    told = recall_calls([HumanMessage("a"), AIMessage("b", response_metadata={"gecko": metadata}), HumanMessage("c")])
    assert [message.text for message in told if message.type == "human"] == ["a", "c"]
    made = [call["id"] for message in told if message.type == "ai" for call in message.tool_calls]
    assert made == [message.tool_call_id for message in told if message.type == "tool"]
    assert all(each["rung"] == "real" for each in real_results(told))
    assert all(path == "" or path[0] == "/" for path in supposed_places(told, STATE))
    assert all(rung_of(message) is None or isinstance(rung_of(message), str) for message in told)


def test_supposed_places_are_remembered_for_the_state_that_they_are_of():
    conversation = [answer_message("Done.", verdict(), [], budget=99, supposed=["/a", "/b~1c", "/d"], state=STATE)]
    assert supposed_places(conversation, STATE) == ["/a", "/b~1c", "/d"]
    assert supposed_places(conversation, {"a": "x"}) == []
    assert supposed_places(conversation, {**STATE, "user": "Ann"}) == ["/a", "/b~1c"]
    assert supposed_places(conversation, {**STATE, "a": {"id": "A-8"}}) == ["/b~1c"]
    assert supposed_places(conversation, {"a": STATE["a"], "of": "the user"}) == []
    many = answer_message("Done.", verdict(), [], budget=99, supposed=[f"/{n}" for n in range(200)], state=STATE)
    assert supposed_places([many], STATE) == [""]


def test_texts_of_earlier_turns_are_shown_as_they_were():
    city = {"city": "東京都", "at": ["Fiumicino, 空港", "a\nb"]}
    recalled = recall_calls([said([step("where", {"near": "渋谷"}, city, "model")])])
    assert ("東京都" in recalled[1].content, json.loads(recalled[1].content)) == (True, city)
