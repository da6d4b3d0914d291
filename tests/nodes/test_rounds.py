"""start_round, decide, finish: the loop around the attempts (paper, algorithm 1)."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoContext
from gecko_graph.errors import StateError
from gecko_graph.nodes.rounds import best_attempt, decide, finish, is_over, start_round
from gecko_graph.nodes.threads import READ_AT_ONCE, _newest_first
from gecko_graph.testing import drive
from gecko_graph.values.digest import digest
from tests import desk

START = digest(desk.start())


def tried(number=1, word="failed", score=0.0, *, complaints=0, **more):
    complaint = {"tool": "put", "path": "", "expected": "x", "got": "y", "source": "rule"}
    refused = {"v": 1, "call": {"id": "r", "name": "put", "args": {}}, "complaints": [complaint] * complaints}
    items = [{"id": "a", "description": "d", "status": "failed", "reason": "", "by": "rule"}]
    return {
        "v": 1,
        "number": number,
        "start_digest": START,
        "end_digest": START,
        "steps": [refused] if complaints else [],
        "answer": "",
        "verdict": {"status": word, "score": score, "items": items, "feedback": f"feedback {number}"},
        "change": [],
        "usage": {},
        "stop_reason": "answered",
    } | more


def run(node, state, **context):
    return drive(node, state, context=GeckoContext(**context)).update


# start_round


def test_the_first_round_starts_without_a_lesson(turn):
    update = run(start_round, turn(round=-1), parallel_attempts=3)
    assert update["bookkeeping"] == {"round": 0, "attempts_at_once": 3, "lesson": None, "start_digest": START}


def test_a_later_round_learns_of_the_best_attempt_of_the_last_one(turn, step):
    last = tried(3, score=0.5, steps=[step("put", {"tray": "a"}, "no", status="error")], answer="I tried.")
    attempts = [tried(1, score=0.9), tried(2), last, tried(4, score=0.2)]
    update = run(start_round, turn(attempts=attempts, round=1), parallel_attempts=3)
    assert update["bookkeeping"]["round"] == 2
    assert update["bookkeeping"]["lesson"] == {
        "number": 3,
        "attempt_log": '1. put({"tray": "a"}) -> error: "no"\nanswer: I tried.',
        "feedback": "feedback 3",
    }


# decide


@pytest.mark.parametrize(
    ("attempts", "chosen"),
    [
        ([tried(1, score=0.5), tried(2, score=0.7), tried(3, score=0.7)], 2),
        ([tried(1, score=0.7, complaints=2), tried(2, score=0.7, complaints=1)], 2),
        ([tried(1, score=0.9), tried(2, "accepted", 1.0, complaints=5)], 2),
        ([tried(1, "needs_user", 1.0), tried(2, "accepted", 1.0)], 2),
        ([tried(1, score=0.9), tried(2, "needs_user", 1.0)], 2),
        ([tried(2), tried(1)], 1),
    ],
)
def test_the_best_attempt_is_chosen(turn, attempts, chosen):
    assert run(decide, turn(attempts=attempts))["bookkeeping"]["chosen"] == chosen


@pytest.mark.parametrize(("word", "chosen"), [("accepted", 2), ("failed", 2), ("needs_user", 1)])
def test_an_empty_plan_wins_no_tie_but_where_the_user_must_be_asked(step, word, chosen):
    attempts = [tried(1, word, 1.0), tried(2, word, 1.0, steps=[step("look")])]
    assert best_attempt(attempts)["number"] == chosen


ATTEMPTS = st.lists(
    st.builds(
        tried,
        number=st.integers(1, 99),
        word=st.sampled_from(["accepted", "needs_user", "failed"]),
        score=st.sampled_from([0.0, 0.5, 1.0]),
        complaints=st.integers(0, 2),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda attempt: attempt["number"],
)


@given(ATTEMPTS, st.randoms())
def test_the_best_does_not_depend_on_the_order(attempts, random):
    chosen = best_attempt(attempts)
    random.shuffle(attempts)
    assert best_attempt(attempts) == chosen


TOKENS = {"planner": {"calls": 1, "input_tokens": 90, "output_tokens": 10, "cost": None}}
LEDGER = {"turn": 1, "started_at": 1_000.0, "usage": TOKENS, "asked": {}}


@pytest.mark.parametrize(
    ("state", "context", "over"),
    [
        ({}, {}, False),
        ({"attempts": [tried(1), tried(2, "accepted", 1.0)]}, {}, True),
        ({"attempts": [tried(1, "needs_user", 1.0)]}, {}, True),
        ({"round": 2}, {"max_retries": 3}, False),
        ({"round": 3}, {"max_retries": 3}, True),
        ({}, {"max_retries": 0}, True),
        ({"items": []}, {}, True),
        ({"attempts": [tried(score=0.8)]}, {"target_score": 0.8}, True),
        ({"attempts": [tried(score=0.7)]}, {"target_score": 0.8}, False),
        ({"ledger": LEDGER}, {"token_budget": 100}, True),
        ({"ledger": LEDGER}, {"token_budget": 101}, False),
        ({"ledger": LEDGER}, {"time_budget_s": 60}, True),
        ({"ledger": LEDGER}, {"time_budget_s": 61}, False),
    ],
)
def test_whether_another_round_follows(turn, state, context, over):
    whole = turn(**{"attempts": [tried()], **state})
    assert is_over(whole, GeckoContext(**context), now=1_060.0) is over


# finish


def ending(turn, *attempts, chosen):
    return turn(attempts=list(attempts), chosen=chosen)


def test_an_accepted_attempt_is_written_back_and_answered(turn, step):
    change = [{"op": "add", "path": "/trays/bills", "value": ["invoice"]}]
    steps = [step("look"), step("put", status="error"), step("add_tray", {"name": "bills"})]
    state = ending(turn, tried(2, "accepted", 1.0, change=change, answer="Filed.", steps=steps), tried(1), chosen=2)
    before = copy.deepcopy(state["task_state"])
    update = run(finish, state)
    assert update["task_state"]["trays"]["bills"] == ["invoice"]
    assert [message.text for message in update["messages"]] == ["Filed."]
    rehearsal = update["rehearsal"]
    assert [call["name"] for call in rehearsal["plan"]] == ["look", "add_tray"]
    assert [attempt["number"] for attempt in rehearsal["attempts"]] == [1, 2]
    assert (rehearsal["chosen"], rehearsal["answer"], rehearsal["verdict"]["status"]) == (2, "Filed.", "accepted")
    assert state["task_state"] == before


def test_an_accepted_change_is_not_written_onto_another_state(turn):
    change = [{"op": "add", "path": "/trays/bills", "value": ["invoice"]}]
    state = ending(turn, tried(1, "accepted", 1.0, change=change), chosen=1)
    state["task_state"]["trays"]["letters"].append("slipped in")
    with pytest.raises(StateError, match="changed in the middle of a turn"):
        run(finish, state)


@pytest.mark.parametrize("word", ["failed", "needs_user"])
def test_no_other_is_written_back(turn, word):
    change = [{"op": "remove", "path": "/trays"}]
    update = run(finish, ending(turn, tried(1, word, 1.0, change=change, answer="Which one?"), chosen=1))
    assert "task_state" not in update
    (message,) = update["messages"]
    assert ("Which one?" in message.text) is (word == "needs_user"), "a failed one leaves nothing to take for done"
    assert (message.name, message.response_metadata["gecko"]["verdict"]) == ("gecko", word)


CALLS = [{"name": "put", "args": {}, "id": each} for each in ("c1", "c2")]
RESULTS = [ToolMessage("ok", tool_call_id=each) for each in ("c1", "c2")]


@pytest.mark.parametrize(
    ("behind", "says"),
    [
        ([], True),
        ([AIMessage("", tool_calls=CALLS)], False),
        ([AIMessage("", tool_calls=CALLS), RESULTS[0]], False),
        ([AIMessage("", tool_calls=CALLS), *RESULTS], True),
        ([AIMessage("", tool_calls=CALLS), AIMessage("Well.")], True),
    ],
)
def test_nothing_is_said_between_calls_and_their_results(turn, behind, says):
    state = ending(turn, tried(1, "accepted", 1.0, answer="Filed."), chosen=1)
    update = run(finish, state | {"messages": [*state["messages"], *behind]})
    assert ("messages" in update) is says
    assert update["rehearsal"]["answer"] == "Filed."


@pytest.mark.parametrize("count", [0, READ_AT_ONCE, 2 * READ_AT_ONCE + 1])
def test_a_thread_is_read_newest_first_page_by_page(count):
    """Each checkpoint is given once, whatever the size of the last page."""
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for _ in range(count):
        config = saver.put(config, empty_checkpoint(), {}, {})
    found = [each.checkpoint["id"] for each in _newest_first(saver, "t")]
    assert (len(found), found) == (count, sorted(set(found), reverse=True))
