"""The rung `model`: what is asked, how a reply is read and repaired; its patch loses nothing that was not shown."""

import copy
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph.errors import PatchConflict
from gecko_graph.models.reply import schema_of
from gecko_graph.models.roles import SimulatedEffect, SimulatedResponse, SimulatedWrite, StateChange
from gecko_graph.models.view import StateView
from gecko_graph.values.places import pointer
from gecko_graph.world.ladder import climb
from gecko_graph.world.model import NOT_GUESSED, NOT_KNOWN, ONLY_READS, model_rung, reply_schema
from gecko_graph.world.model_patch import read_patch, view_for
from gecko_graph.world.rung import NO_ANSWER, Answer, Pass
from tests.every_place import every_place
from tests.world.conftest import rung_request

ADD = [{"op": "add", "path": "/trays/letters/-", "value": "bill"}]


def test_a_write_s_result_and_change_come_in_one_reply(question, told):
    reply = {"status": "ok", "result": {"papers": 2}, "patch": ADD}
    value, (ask,) = told(model_rung(question(has_simulator=True)), [reply])
    assert value == Answer("ok", {"papers": 2}, ADD)
    assert ask.reply is SimulatedEffect
    assert ask.variables["wants"] == "effect"


@pytest.mark.parametrize(("effect", "simulation", "patch"), [("read", "fused", []), ("write", "separate", None)])
def test_reads_and_separate_simulation_ask_for_the_response_only(question, told, effect, simulation, patch):
    asked = question(has_simulator=True, effect=effect, simulation=simulation)
    value, (ask,) = told(model_rung(asked), [{"status": "ok", "result": 1}])
    assert value == Answer("ok", 1, patch)
    assert ask.reply is (SimulatedResponse if effect == "read" else SimulatedWrite)


RESULT = {"type": "object", "properties": {"papers": {"type": "integer"}}, "required": ["papers"]}


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        ({"status": "ok", "result": {"papers": "two"}, "patch": []}, "/papers"),
        ({"status": "ok", "result": {"papers": 2}, "patch": [{"op": "remove", "path": "/none"}]}, "/none"),
        ({"status": "ok", "result": {"papers": 2}, "patch": []}, "unchanged"),
        ({"status": "ok", "result": {"papers": 2}}, "unchanged"),
    ],
)
def test_an_answer_that_does_not_fit_is_repaired_once(question, told, first, problem):
    good = {"status": "ok", "result": {"papers": 2}, "patch": ADD}
    value, asks = told(model_rung(question(has_simulator=True, result=RESULT)), [first, good])
    assert value == Answer("ok", {"papers": 2}, ADD)
    assert asks[0].variables["problems"] == ""
    assert problem in asks[1].variables["problems"]
    assert asks[1].variables["problems"].startswith(json.dumps(first)[:-1]), "a repair is told the answer"


def test_an_answer_that_never_fits_passes_for_a_read_and_ends_a_write(question, told):
    bad = {"status": "ok", "result": {"papers": math.nan}, "patch": []}
    said = told(model_rung(question(has_simulator=True, effect="read", result=RESULT)), [bad, bad]).value
    assert isinstance(said, Pass)
    assert not said.final
    assert said.reason.startswith("the simulator gave no usable answer: ")
    assert told(model_rung(question(has_simulator=True, result=RESULT)), [bad, bad]).value.final


@pytest.mark.parametrize("effect", ["write", None])
def test_where_the_model_fails_for_a_write_the_call_fails_and_the_reason_is_only_in_the_record(question, told, effect):
    """The planner saw `receipt "orchard"` where the state said something else: noise of the rung `schema`."""
    bad = {"status": "ok", "result": {"papers": 2}, "patch": [{"op": "remove", "path": "/none"}]}
    outcome = told(climb(question(has_simulator=True, result=RESULT, effect=effect)), [bad, bad]).value
    assert (outcome["status"], outcome["result"], outcome["rung"], outcome["patch"]) == (
        "error",
        NO_ANSWER,
        "model",
        [],
    )
    assert "/none" in outcome["passed"][-1]["reason"]
    assert "/none" not in outcome["result"]


def test_a_result_that_is_json_in_a_text_is_read(question, told):
    reply = {"status": "ok", "result": '{"papers": 2}', "patch": ADD}
    assert told(model_rung(question(has_simulator=True, result=RESULT)), [reply]).value == Answer(
        "ok", {"papers": 2}, ADD
    )
    text = {**reply, "result": "2"}
    plain = question(has_simulator=True, result={"type": "string"})
    assert told(model_rung(plain), [text]).value.result == "2", "a text stays one where a text is wanted"


def test_a_good_result_is_kept_while_its_patch_is_repaired(question, told):
    first = {"status": "ok", "result": {"papers": 2}, "patch": [{"op": "remove", "path": "/none"}]}
    second = {"status": "ok", "result": {"papers": "two"}, "patch": ADD}
    value, (_, again) = told(model_rung(question(has_simulator=True, result=RESULT)), [first, second])
    assert value == Answer("ok", {"papers": 2}, ADD)
    assert "Keep status and result" in again.variables["problems"]
    refused = {"status": "error", "result": "the desk is locked", "patch": []}
    value = told(model_rung(question(has_simulator=True, result=RESULT)), [first, refused]).value
    assert value == Answer("error", "the desk is locked", []), "it may think better of it"


@pytest.mark.parametrize("given", [{"patch": []}, {}])
def test_a_write_without_a_change_is_asked_about_once_then_an_error(question, told, given):
    empty = {"status": "ok", "result": 1, **given}
    asked = question(has_simulator=True)
    assert told(model_rung(asked), [empty, empty]).value.final
    assert told(model_rung(asked), [empty, {**empty, "unchanged": True}]).value == Answer("ok", 1, [])
    assert told(model_rung(asked), [{**empty, "unchanged": True}]).value == Answer("ok", 1, [])


@pytest.mark.parametrize("effect", ["read", None])
def test_a_read_may_be_not_known_and_no_rung_makes_it_up_then(question, told, effect):
    asked = question(effect=effect, has_simulator=True, result=RESULT, ladder=("model", "schema"))
    outcome = told(climb(asked), [{"status": "unknown", "result": "whether the payment went through"}]).value
    assert (outcome["status"], outcome["rung"], outcome["patch"]) == ("error", "model", [])
    assert outcome["result"] == f"{NOT_KNOWN}: whether the payment went through. {NOT_GUESSED}"


def test_a_write_is_asked_again_where_it_says_that_it_does_not_know(question, told):
    unknown = {"status": "unknown", "result": "whether it is allowed", "patch": []}
    value, (_, again) = told(model_rung(question(has_simulator=True)), [unknown, {"status": "error", "result": "no"}])
    assert value == Answer("error", "no", [])
    assert ONLY_READS in again.variables["problems"]


def crowded():
    return {"users": [{"id": f"user {n}", "mail": "lorem ipsum " * 4} for n in range(400)], "count": 400}


def test_what_was_not_shown_is_not_lost(question, told):
    """One patch made 400 users to 1, accepted."""
    lost = {"status": "ok", "result": 1, "patch": [{"op": "replace", "path": "/users", "value": [{"id": "user 1"}]}]}
    asked = question(has_simulator=True, given=crowded(), args={"user": "user 1"})
    value, (_, again) = told(model_rung(asked), [lost, lost])
    assert value.final
    assert "would lose parts that the view leaves out" in again.variables["problems"]


def test_after_a_refused_patch_its_places_are_shown(question, told):
    state = crowded() | {"rooms": {f"room{n}": {f"k{n}_{m}": m for m in range(9)} for n in range(90)}}
    clear = {"status": "ok", "result": 1, "patch": [{"op": "replace", "path": "/rooms/room37", "value": {}}]}
    asked = question(has_simulator=True, given=state, args={"user": "user 1"}, view_chars=1_500)
    value, (first, again) = told(model_rung(asked), [clear, clear])
    assert "k37_5" not in first.variables["state"]
    assert "k37_5" in again.variables["state"]
    assert value == Answer("ok", 1, clear["patch"])


# the reply's schema


def test_the_reply_s_schema_holds_the_form_of_the_tool_s_result(question, told):
    asked = question(
        has_simulator=True, result={**RESULT, "description": "d", "properties": {"papers": {"minimum": 1}}}
    )
    (ask,) = told(model_rung(asked), [{"status": "ok", "result": {"papers": 2}, "patch": ADD}]).asks
    form = {"type": "object", "required": ["papers"], "properties": {"papers": {}}}
    assert ask.schema["properties"]["result"] == {"anyOf": [form, {"type": "string"}]}
    assert ask.schema | {"properties": None} == schema_of(SimulatedEffect) | {"properties": None}
    assert ask.schema is reply_schema(SimulatedEffect, asked.tool.result), "the same object: it is bound once"


def test_no_part_of_the_simulator_s_prompt_is_unbounded(question, told):
    text = {"type": "string", "description": "d" * 200}
    schema = {"type": "object", "properties": {f"a{n}": text for n in range(900)}}
    fact = {"tool": "put", "status": "ok", "result": "w" * 9_000, "digest": "d"}
    asked = question(
        has_simulator=True,
        given={"files": {f"f{n}": "x" * 500 for n in range(2_000)}},
        args={"text": "y" * 500_000},
        description="z" * 100_000,
        parameters=schema,
        result=schema,
        facts={str(n): fact | {"args": {"n": n}} for n in range(99)},
    )
    fits = {"status": "ok", "result": {}, "unchanged": True}
    (ask,) = told(model_rung(asked), [fits]).asks
    assert sum(map(len, ask.variables.values())) < 45_000
    assert {name for name, text in ask.variables.items() if len(text) > 500} == {"tool", "call", "state", "facts"}


SHOWN = StateView("", lambda path: True)
HIDDEN = StateView("", lambda path: False)


def read(patch, state, *, view=SHOWN, args=None):
    return read_patch(StateChange(patch=patch), rung_request(state=state, args=args), view)


def op(kind, path, value=None, **more):
    return {"op": kind, "path": path, **({"value": value} if kind in ("add", "replace", "test") else {}), **more}


def test_a_patch_that_does_not_apply_is_refused():
    with pytest.raises(PatchConflict, match="it does not apply to the state"):
        read([op("replace", "/a/b/c", 2)], {"a": 1})


# removals from lists


@pytest.mark.parametrize(
    "patch",
    [
        [op("remove", "/a/0"), op("remove", "/a/1")],
        [op("remove", "/a/0"), op("remove", "/a/0")],
        [op("remove", "/a/0"), op("replace", "/a/1/n", 9)],
        [op("add", "/a/0", {}), op("remove", "/a/1")],
        [{"op": "move", "from": "/a/0", "path": "/b"}, op("remove", "/a/1")],
    ],
)
def test_where_an_index_can_mean_two_items_the_model_is_told_the_order(patch):
    with pytest.raises(PatchConflict, match="from the highest index down"):
        read(patch, {"a": [{"n": n} for n in range(4)]})


@pytest.mark.parametrize(
    "patch",
    [
        [op("remove", "/a/2"), op("remove", "/a/0")],
        [op("add", "/a/0", {}), op("add", "/a/1", 2), op("add", "/a/0/n", 3)],
        [op("remove", "/a/1"), op("add", "/a/-", 1), op("replace", "/a/0/n", 5)],
        [op("add", "/b", []), op("add", "/b/-", 1), op("remove", "/b/0")],
    ],
)
def test_what_means_one_thing_passes(patch):
    assert read(patch, {"a": [{"n": n} for n in range(4)]}) == patch


# what was not shown


@pytest.mark.parametrize(
    "patch",
    [
        [op("replace", "/users", [])],
        [op("remove", "/users")],
        [op("replace", "/note", "short")],
        [{"op": "copy", "from": "/n", "path": "/users"}],
        [{"op": "move", "from": "/users", "path": "/old"}, op("remove", "/old")],
        [{"op": "move", "from": "/users", "path": "/old"}, op("replace", "/old/0", 1)],
        [op("add", "/b", {}), {"op": "move", "from": "/users", "path": "/b/c"}, op("remove", "/b")],
        [
            {"op": "move", "from": "/users", "path": "/x"},
            op("add", "/b", {}),
            {"op": "move", "from": "/x", "path": "/b/c"},
            op("replace", "/b", {}),
        ],
        [op("remove", "/users/0")],
    ],
)
def test_nothing_unseen_is_replaced_or_removed(patch):
    with pytest.raises(PatchConflict, match="would lose parts that the view leaves out"):
        read(patch, {"users": [{"id": 10}, {"id": 11}], "note": "long", "n": 1}, view=HIDDEN)


@pytest.mark.parametrize(
    "patch",
    [
        [op("replace", "", {})],
        [op("add", "", {})],
        [{"op": "move", "from": "/users", "path": ""}],
        [{"op": "copy", "from": "", "path": "/old"}],
    ],
)
def test_the_whole_state_is_never_replaced(patch):
    with pytest.raises(PatchConflict, match="the whole state cannot be replaced"):
        read(patch, {"users": {"a": 1}})


@pytest.mark.parametrize(
    ("patch", "args"),
    [
        ([op("add", "/users/-", {}), op("add", "/users/0", {}), op("add", "/new", 1)], {}),
        ([{"op": "move", "from": "/users", "path": "/old"}], {}),
        ([op("test", "/n", 1)], {}),
        ([op("remove", "/users/1")], {"id": 11}),
        ([op("remove", "/files/report.pdf")], {"path": "docs/report.pdf"}),
        ([op("replace", "/note", "all new")], {"text": "all new"}),
        ([op("replace", "/n", 21)], {"degrees": 21}),
    ],
)
def test_what_loses_nothing_or_is_named_by_the_call_passes_unseen(patch, args):
    state = {"users": [{"id": 10}, {"id": 11}], "files": {"report.pdf": {}}, "note": "long", "n": 1}
    assert read([*patch, op("add", "/done", True)], state, view=HIDDEN, args=args)


NAMES = st.sampled_from(["users", "mail", "box", "deep/er", "k~y"])
RECORDS = st.integers(5, 60).map(lambda count: [{"id": n, "text": "lorem ipsum dolor " * 4} for n in range(count)])
STATES = st.dictionaries(NAMES, RECORDS | st.dictionaries(NAMES, RECORDS, max_size=3), min_size=2, max_size=5)


@settings(max_examples=60, deadline=None)
@given(STATES, st.data())
def test_a_patch_that_is_taken_loses_only_what_was_shown_whole(state, data):
    request = rung_request(state=state, view_chars=1_000)
    path = data.draw(st.sampled_from([path for path, _ in every_place(state)][1:]))
    patch = [op(data.draw(st.sampled_from(["remove", "replace"])), pointer(path), 1)]
    view, before = view_for(request, []), copy.deepcopy(state)
    if view.shows([*map(str, path)]):
        assert read_patch(StateChange(patch=patch), request, view) == patch
    else:
        with pytest.raises(PatchConflict, match="would lose"):
            read_patch(StateChange(patch=patch), request, view)
    assert state == before
