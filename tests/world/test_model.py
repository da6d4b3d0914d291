"""The rung `model`: what is asked, how a reply is read and repaired; its patch loses nothing that was not shown."""

import json
import math

import pytest

from gecko_graph.errors import PatchConflict
from gecko_graph.models.reply import schema_of
from gecko_graph.models.roles import SimulatedEffect, SimulatedResponse, SimulatedWrite, StateChange
from gecko_graph.models.view import StateView
from gecko_graph.world.ladder import climb
from gecko_graph.world.model import NOT_GUESSED, NOT_KNOWN, ONLY_READS, model_rung, reply_schema
from gecko_graph.world.model_patch import read_patch
from gecko_graph.world.rung import NO_ANSWER, Answer, Pass
from tests.world.conftest import rung_request

ADD = [{"op": "add", "path": "/trays/letters/-", "value": "bill"}]


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
    assert value == Answer("ok", {"papers": 2}, ADD), "a write's result and change come in one reply"
    assert (asks[0].reply, asks[0].variables["wants"], asks[0].variables["problems"]) == (SimulatedEffect, "effect", "")
    assert problem in asks[1].variables["problems"]
    assert asks[1].variables["problems"].startswith(json.dumps(first)[:-1]), "a repair is told the answer"


@pytest.mark.parametrize("effect", ["write", None])
def test_where_the_model_fails_for_a_write_the_call_fails_and_the_reason_is_only_in_the_record(question, told, effect):
    """The planner saw `receipt "orchard"` where the state said something else: noise of the rung `schema`."""
    bad = {"status": "ok", "result": {"papers": math.nan}, "patch": []}
    said = told(model_rung(question(has_simulator=True, effect="read", result=RESULT)), [bad, bad]).value
    assert (type(said), said.final) == (Pass, False), "a read may be answered by another rung"
    assert said.reason.startswith("the simulator gave no usable answer: ")
    bad = {"status": "ok", "result": {"papers": 2}, "patch": [{"op": "remove", "path": "/none"}]}
    outcome = told(climb(question(has_simulator=True, result=RESULT, effect=effect)), [bad, bad]).value
    assert (outcome["status"], outcome["result"], outcome["rung"]) == ("error", NO_ANSWER, "model")
    assert outcome["patch"] == []
    assert "/none" in outcome["passed"][-1]["reason"]
    assert "/none" not in outcome["result"]


def test_a_result_that_is_json_in_a_text_is_read(question, told):
    reply = {"status": "ok", "result": '{"papers": 2}', "patch": ADD}
    value = told(model_rung(question(has_simulator=True, result=RESULT)), [reply]).value
    assert value == Answer("ok", {"papers": 2}, ADD)
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


def op(kind, path, value=None, **more):
    return {"op": kind, "path": path, **({"value": value} if kind in ("add", "replace", "test") else {}), **more}


ITEMS = {"a": [{"n": n} for n in range(4)]}
USERS = {"users": [{"id": 10}, {"id": 11}], "files": {"report.pdf": {}}, "note": "long", "n": 1}
MOVED = {"op": "move", "from": "/users", "path": "/old"}
TWO = "from the highest index down"
LOST = "would lose parts that the view leaves out"
WHOLE = "the whole state cannot be replaced"


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ([op("replace", "/a/b/c", 2)], "it does not apply to the state"),
        ([op("remove", "/a/0"), op("remove", "/a/1")], TWO),  # an index can mean two items
        ([op("remove", "/a/0"), op("remove", "/a/0")], TWO),
        ([op("remove", "/a/0"), op("replace", "/a/1/n", 9)], TWO),
        ([op("add", "/a/0", {}), op("remove", "/a/1")], TWO),
        ([{"op": "move", "from": "/a/0", "path": "/b"}, op("remove", "/a/1")], TWO),
        ([op("replace", "/users", [])], LOST),
        ([op("remove", "/users")], LOST),
        ([op("replace", "/note", "short")], LOST),
        ([{"op": "copy", "from": "/n", "path": "/users"}], LOST),
        ([MOVED, op("remove", "/old")], LOST),
        ([MOVED, op("replace", "/old/0", 1)], LOST),
        ([op("add", "/b", {}), {**MOVED, "path": "/b/c"}, op("remove", "/b")], LOST),
        ([MOVED, op("add", "/b", {}), {"op": "move", "from": "/old", "path": "/b/c"}, op("replace", "/b", {})], LOST),
        ([op("remove", "/users/0")], LOST),
        ([op("replace", "", {})], WHOLE),
        ([op("add", "", {})], WHOLE),
        ([{**MOVED, "path": ""}], WHOLE),
        ([{"op": "copy", "from": "", "path": "/old"}], WHOLE),
    ],
)
def test_a_patch_that_loses_or_can_mean_two_things_is_refused(patch, message):
    view = StateView("", lambda path: message != LOST)
    with pytest.raises(PatchConflict, match=message):
        read_patch(StateChange(patch=patch), rung_request(state=ITEMS | USERS), view)


@pytest.mark.parametrize(
    ("patch", "args"),
    [
        ([op("remove", "/a/2"), op("remove", "/a/0")], {}),
        ([op("add", "/a/0", {}), op("add", "/a/1", 2), op("add", "/a/0/n", 3)], {}),
        ([op("remove", "/a/1"), op("add", "/a/-", 1), op("replace", "/a/0/n", 5)], {}),
        ([op("add", "/b", []), op("add", "/b/-", 1), op("remove", "/b/0")], {}),
        ([op("add", "/users/-", {}), op("add", "/users/0", {}), op("add", "/new", 1)], {}),
        ([MOVED], {}),
        ([op("test", "/n", 1)], {}),
        ([op("remove", "/users/1")], {"id": 11}),
        ([op("remove", "/files/report.pdf")], {"path": "docs/report.pdf"}),
        ([op("replace", "/note", "all new")], {"text": "all new"}),
        ([op("replace", "/n", 21)], {"degrees": 21}),
    ],
)
def test_what_means_one_thing_and_loses_nothing_or_is_named_by_the_call_passes_unseen(patch, args):
    patch = [*patch, op("add", "/done", True)]
    request = rung_request(state=ITEMS | USERS, args=args)
    view = StateView("", lambda path: path[:1] == ["a"])  # all else is hidden
    assert read_patch(StateChange(patch=patch), request, view) == patch
