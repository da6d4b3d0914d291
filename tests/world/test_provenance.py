"""Where values come from: found by rule, never guessed, and made up only where nothing real holds them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from gecko_graph.middleware import rehearsal_message
from gecko_graph.values.notes import notes_of
from gecko_graph.values.places import scalars
from gecko_graph.world.as_tools import add_marks, marks_of
from gecko_graph.world.given import Sources
from gecko_graph.world.provenance import trace
from tests.any_schema import JSON

PARAMETERS = {
    "pay": {"type": "object", "properties": {"speed": {"enum": ["slow", "fast"]}}},
    "send": {"properties": {"weight": {}, "count": {"description": "The number of parcels."}}},
    "tune": {"type": "object", "properties": {"map": {"properties": {"speed_10": {}}}}},
}

V = {"status": "failed", "score": 0.0, "feedback": ""}
FIND = {"id": "1", "name": "find", "args": {}}


def step(name, args, result=None, rung="contract", *, number=1, status="ok", patch=(), invented=False):
    outcome = {"status": status, "result": result, "patch": list(patch), "rung": rung, "simulated": True, "passed": []}
    outcome |= {"invented": True} if invented or rung in ("model", "noise") else {}
    return {"v": 1, "call": {"id": f"{name}-{number}", "name": name, "args": args}, "outcome": outcome}


def traced(*steps, task="Please pay what is due.", state=None, **more):
    conversation = more.pop("conversation", [HumanMessage(task)])
    sources = Sources(conversation=conversation, state=state or {}, **more)
    found = trace(steps, sources, lambda name: PARAMETERS.get(name, {}))
    return found.origins, [{**each["data"], "argument": each["where"]} for each in notes_of(found.notes, "made_up")]


def marked(*steps, **more):
    return [(each["argument"], each["value"]) for each in traced(*steps, **more)[1]]


def source(*steps, **more):
    """The origins of the last call's only argument."""
    (origins,) = list(traced(*steps, **more)[0].values())[-1].values()
    return origins


def test_a_full_hour_of_a_number_is_known_and_a_rounded_number_but_no_number_of_things():
    assert marked(step("book", {"at": "09:00", "until": "21:00"}), task="Book a table at 9") == []
    assert marked(step("book", {"at": "10:00"}), task="Book a table at 9") == [("/at", "10:00")]
    assert marked(step("send", {"weight": 5}), task="Send the 4.51 kg") == []
    assert marked(step("send", {"count": 5}), task="Send the 4.51 kg") == [("/count", 5)]


@pytest.mark.parametrize(
    ("task", "value"),
    [
        ("Pay invoice INV-1042.", "INV-1042"),
        ("It costs $1,240.50.", 1240.5),
        ("Raise it by 20%", 0.2),
        ("On the 6th day of October in 2026", "2026-10-06"),
        ("On 10.4.2023", "10/04/2023"),
        ("\u017fep 5 and 5 m\u0130llion", "5"),
        ("It is 2024-05-15; book for tomorrow", "2024-05-16"),
        ("Move final_report.pdf to the temp folder", "temp/final_report.pdf"),
        ("Create the team notes", "TeamNotes.txt"),
        ("Tell Bob that flight F-12 leaves at 9:30", "Dear Bob, your flight F-12 is leaving at 09:30. Regards"),
        ("The bill of 30.25 and the tip of 4.75", 35),
        ("A fifth less than 250, that is 20 percent", 200),
        ("Pay 60.00 and a tip of 10%", 66),
        ("Half an hour from 15:30 on", "16:00"),
    ],
)
def test_what_the_user_said_is_from_the_task_in_any_spelling(task, value):
    assert marked(step("pay", {"x": value}), task=task) == []
    assert source(step("pay", {"x": value}), task=task)[0]["from"] == "task"


@pytest.mark.parametrize(
    "value",
    ["INV-1042", 1240.5, "bob@example.org", "2024-05-15", "F7731", "+1 555-0100", "BK-2024", "Your code is 993-2."],
)
def test_what_stands_nowhere_the_planner_made_up(value):
    _, (made,) = traced(step("pay", {"deep": [{"x": value}]}), task="Pay the bill of 2024 for 7 people.")
    assert made == {
        "call": "pay-1", "tool": "pay", "argument": "/deep/0/x", "value": value,
        "origin": {"kind": "chosen", "from": "planner", "path": ""},
    }  # fmt: skip
    address = step("send", {"to": "jonas@lumen-ltd.example"})
    assert marked(address, task="Write to Jonas of Lumen Ltd.") == [("/to", "jonas@lumen-ltd.example")]


@pytest.mark.parametrize("value", [False, None, 0, 1, "", "fast", "please", "Thanks for all of your help with this"])
def test_what_nobody_needs_to_say_is_not_made_up(value):
    assert marked(step("pay", {"x": value})) == []


def test_a_result_says_which_step_and_rung_and_what_a_model_answered_is_supposed():
    find = step("find", {}, {"flights": [{"id": "F-7731"}]})
    known = {"kind": "stated", "from": "result", "path": "/flights/0/id", "step": 1, "rung": "contract"}
    assert source(find, step("book", {"id": "F-7731"})) == [known]
    assert marked(step("book", {"id": "F-7731"}), find, task="Book it.") != [], "it was known only later"
    find = step("find", {}, {"id": "F-7731", "who": "Priya Nair", "seats": 42}, "model")
    for argument in ("F-7731", "Priya Nair", 42):
        (made,) = traced(find, step("book", {"x": argument}))[1]
        origin = made["origin"]
        assert (origin["kind"], origin["from"], origin["step"], origin["rung"]) == ("chosen", "result", 1, "model")


def test_an_echo_of_an_invention_is_one():
    steps = [
        step("find", {}, {"id": "F-7731"}, "model", number=1),
        step("hold", {"id": "F-7731"}, {"held": "F-7731", "hold": "H-1"}, "contract", number=2),
        step("book", {"id": "F-7731", "hold": "H-1"}, number=3),
    ]
    assert marked(*steps) == [("/id", "F-7731"), ("/id", "F-7731")]
    guess = [step("look", {"id": "F-7731"}, {"id": "F-7731", "fee": 12.5}), step("book", {"x": "F-7731", "y": 12.5})]
    assert marked(*guess) == [("/id", "F-7731"), ("/x", "F-7731")]


def test_what_an_inventing_rung_wrote_to_the_state_is_supposed():
    wrote = step("hold", {}, "held", "model", patch=[{"op": "add", "path": "/holds/0", "value": {"id": "H-77"}}])
    read = step("holds", {}, [{"id": "H-77"}], "contract")
    book, state = step("book", {"x": "H-77"}), {"holds": []}
    (made,) = traced(wrote, read, book, state=state)[1]
    assert made["origin"] == {"kind": "chosen", "from": "state", "path": "/holds/0", "step": 1, "rung": "model"}
    seen = step("list", {}, [{"id": "H-78"}], "real")
    seen["outcome"]["observed"] = [{"op": "replace", "path": "/holds", "value": [{"id": "H-78"}]}]
    listed = step("holds", {}, [{"id": "H-78", "fee": 31.5}], "contract")
    assert marked(wrote, seen, listed, step("book", {"x": 31.5}), state=state) == []  # reality has shown that place


def test_the_given_state_is_a_source_unless_a_model_made_that_place_up():
    state = {"invoices": [{"number": "INV-1042", "amount": 1240.5}], "by_id": {"a/b-77": {}}}
    call = step("pay", {"x": "INV-1042"})
    assert source(call, state=state) == [{"kind": "stated", "from": "state", "path": "/invoices/0/number"}]
    assert marked(step("pay", {"x": "a/b-77"}), state=state) == []
    (made,) = traced(call, state=state, supposed=["/invoices"])[1]
    assert made["origin"] == {"kind": "chosen", "from": "state", "path": "/invoices/0/number"}
    read = step("read", {}, {"number": "INV-1042"}, "contract")
    assert marked(read, call, state=state, supposed=[""]) == [("/x", "INV-1042")]
    assert marked(read, call, state=state) == []
    state = {"bills": {"B-19": {"amount": 75.5}, "B-4410": {}}}  # what the task names is real
    calls = step("bills", {}, ["B-19", "B-4410"]), step("pay", {"x": "B-19"}), step("pay", {"x": "B-4410"}, number=2)
    assert marked(*calls, task="Pay B-19.", state=state, supposed=["/bills"]) == [("/x", "B-4410")]


def test_a_clock_that_was_not_made_up_tells_the_year_of_tomorrow():
    call, state = step("book", {"on": "2025-05-09"}), {"runtime_state": {"now": "2025-05-08T09:00:00Z"}}
    assert marked(call, task="The day before 2025-05-10.") == []
    assert marked(call, task="Book it for tomorrow.", state=state) == []
    assert marked(call, task="Book it for tomorrow.", state=state, supposed=["/runtime_state"]) != []
    assert marked(call, task="Book it.", state=state) != []


CART = {"cart": [{"price": 20.25}, {"price": 17.5}], "runtime_state": {"desk": 4}}


def test_what_a_rule_computes_from_a_supposed_state_is_supposed():
    steps = [step("total", {}, {"total": 37.75, "note": "two items"}), step("pay", {"x": 37.75, "y": "two items"})]
    reads = {"total": {"cart"}}
    (made,) = traced(*steps, state=CART, supposed=["/cart"], reads=reads)[1]
    assert (made["argument"], made["origin"]) == ("/x", {"kind": "chosen", "from": "state", "path": "/cart"})
    assert marked(*steps, state=CART, reads=reads) == []
    assert marked(*steps, state=CART, supposed=["/runtime_state"], reads=reads) == []
    assert marked(*steps, state=CART, supposed=["/cart"], reads={"total": {"fees"}}) == []
    assert marked(*steps, state=CART, supposed=["/cart"], reads=reads, task="Pay 37.75") == []
    assert marked(*steps, state=CART, supposed=[""], reads=reads) == [("/x", 37.75)]
    assert marked(*steps, state=CART, supposed=["/cart"], reads={"total": {""}}) == [("/x", 37.75)]
    steps[0]["outcome"]["rung"] = "python"  # a function may have computed it from all of the state
    assert marked(*steps, state=CART, supposed=["/cart"]) == [("/x", 37.75)]
    assert marked(*steps, state=CART, supposed=["/runtime_state"]) == []


def test_what_a_model_has_written_for_another_rung_is_supposed_also_in_what_follows():
    order = step(
        "order", {}, {"ok": True}, "shop", patch=[{"op": "add", "path": "/orders/-", "value": {"id": "O-9981"}}]
    )
    order["outcome"]["supposed"] = True
    steps = [order, step("orders", {}, [{"id": "O-9981"}]), step("pay", {"x": "O-9981"})]
    (made,) = traced(*steps, reads={"orders": {"orders"}}, state={"orders": []})[1]
    assert made["origin"] == {"kind": "chosen", "from": "state", "path": "/orders/-", "step": 1, "rung": "model"}


@pytest.mark.parametrize("args", [{"map": {"LAMP-777": 2}}, {"list": [{"map": {"LAMP-777": 2}}]}])
def test_a_key_that_stands_for_a_thing_is_a_value(args):
    assert [value for _, value in marked(step("put", args), task="Two lamps")] == ["LAMP-777"]
    assert marked(step("put", args), task="Two of LAMP-777") == []
    assert marked(step("put", {"map": {"line1": 2, "speed_10": 2}}), task="Two lamps") == [("/map", "speed_10")]
    assert marked(step("tune", {"map": {"speed_10": 2}}), task="Two lamps") == []


def test_the_answer_of_an_earlier_turn_vouches_for_nothing_that_is_not_known_from_elsewhere():
    whole = {"gecko": {"v": 1, "verdict": "accepted", "made_up": 0, "whole": True}}

    def after(metadata, *more):
        answer = AIMessage("You have booked BK-99174.", name="gecko", response_metadata=metadata)
        conversation = [HumanMessage("What have I booked?"), *more, answer, HumanMessage("Cancel it.")]
        return marked(step("cancel", {"x": "BK-99174"}), conversation=conversation)

    assert after(whole) == [("/x", "BK-99174")]
    assert after({}) == []  # not by a rehearsal, or what it knew is not remembered
    call = AIMessage("", tool_calls=[FIND])
    assert after(whole, call, ToolMessage("BK-99174", tool_call_id="1")) == []


def test_what_simulated_tools_of_an_agent_and_a_note_on_a_rehearsal_hold_is_made_up():
    def after(*found, task="Cancel it."):
        call = AIMessage("", tool_calls=[FIND])
        conversation = [HumanMessage("What have I booked?"), call, *found, AIMessage("One."), HumanMessage(task)]
        return marked(step("cancel", {"x": "BK-99174"}), conversation=conversation)

    result = ToolMessage("BK-99174", tool_call_id="1")
    outcome = {**step("find", {}, "BK-99174", "model")["outcome"], "invented": True}
    simulated = add_marks(result, marks_of({"v": 1, "call": {}, "outcome": outcome}))
    assert after(simulated) == [("/x", "BK-99174")]
    assert after(simulated, result) == []
    assert after(simulated, task="Cancel BK-99174.") == []
    assert after(add_marks(result, {"simulated": True, "rung": "contract", "made_up": False})) == []
    tried = {"attempts": [{"number": 1, "steps": [step("find", {}, "BK-99174", "model")], "answer": "", "verdict": V}]}
    assert after(rehearsal_message({"rehearsal": {**tried, "chosen": 1}})) == [("/x", "BK-99174")]


def test_the_conversation_is_a_source_and_earlier_inventions_stay_inventions():
    def turn(rung, task="Book it."):
        marks = {"rung": rung, "made_up": rung == "model"}
        return [
            SystemMessage("Refunds over 250 need a manager."),
            HumanMessage("Find a flight."),
            AIMessage("", tool_calls=[FIND | {"id": "c1"}], response_metadata={"gecko": {"rung": ""}}),
            ToolMessage('{"id": "F-7731"}', tool_call_id="c1", id="r1", response_metadata={"gecko": marks}),
            AIMessage("I found F-7731."),
            HumanMessage(task),
        ]

    book = step("book", {"id": "F-7731"})
    assert {"kind": "stated", "from": "conversation", "path": "r1", "rung": "contract"} in source(
        book, conversation=turn("contract")
    )
    assert marked(book, conversation=turn("model")) == [("/id", "F-7731")]
    assert marked(book, conversation=turn("model", "Book F-7731.")) == [], "the user has confirmed it"
    assert marked(step("pay", {"x": 250}), conversation=turn("model")) == []


def test_a_retry_may_use_what_the_failed_attempt_found():
    lesson = {"number": 1, "steps": [step("find", {}, {"id": "F-7731"})]}
    (origin,) = source(step("book", {"id": "F-7731"}), lesson=lesson)
    assert (origin["attempt"], origin["step"]) == (1, 1)


@given(JSON, JSON, st.text(max_size=80))
def test_anything_can_be_traced(args, result, task):
    steps = [step("a", {"x": args}, result, "model"), step("b", {"x": args})]
    origins, made = traced(*steps, task=task, state={"x": result})
    assert set(origins) == {"a-1", "b-1"}
    assert len(made) <= 2 * len(list(scalars(args)))


@given(st.text(min_size=1, max_size=60))
def test_what_stands_verbatim_in_the_task_is_never_made_up(value):
    assert marked(step("a", {"x": value}), task=f"Take {value} now.") == []
    assert marked(step("a", {"x": value}), task="Take it.", state={"a": [value]}) == []
