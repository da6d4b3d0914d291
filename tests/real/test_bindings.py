"""Which arguments reality gives, which must be as predicted, and which a person is asked about."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from gecko_graph import Tool, Toolkit
from gecko_graph.real.bindings import PlanResults, replaced, resolve
from gecko_graph.values.notes import notes_of
from gecko_graph.values.places import place_at, places, pointer, scalars, value_at
from gecko_graph.world.given import Sources
from gecko_graph.world.provenance import trace

ANY = {"type": "object"}
KINDS = {"type": "object", "properties": {"kind": {"enum": ["K-9000", "K-9001"]}}}


def toolkit(effects: dict[str, str]) -> Toolkit:
    tools = [
        {"name": name, "description": "", "parameters": KINDS if name == "sort" else ANY} for name in [*effects, "use"]
    ]
    return Toolkit.from_tools(tools).declare(
        *(Tool(name, effect=effect) for name, effect in {**effects, "use": "write"}.items())
    )


def step(number: int, name: str, args: dict, result, *, rung: str = "contract", status: str = "ok") -> dict:
    outcome = {"status": status, "result": result, "patch": [], "rung": rung, "simulated": rung != "real", "passed": []}
    outcome |= {"invented": True} if rung == "model" else {}
    return {"v": 1, "call": {"id": f"c{number}", "name": name, "args": args}, "outcome": outcome}


def found(steps: list[dict], *, task: str = "Do it", state: dict | None = None, **effects: str):
    """Return what the arguments of the last step rest on."""
    tools, messages = toolkit({"make": "write", "find": "read", "sort": "write", **effects}), [HumanMessage(task)]
    origins, notes = trace(steps, Sources(conversation=messages, state=state or {}), lambda name: ANY)
    last = steps[-1]["call"]
    mine = {each["where"] for each in notes_of(notes, "made_up") if each["data"]["call"] == last["id"]}
    return PlanResults(steps, tools, messages, state or {}).find(last, origins, mine)


def bound(result, args: dict, *, given: dict | None = None, tool: str = "make", rung: str = "contract", **more):
    return found([step(1, tool, given or {}, result, rung=rung), step(2, "use", args, {})], **more)


@pytest.mark.parametrize("rung", ["contract", "model"])
def test_an_identifier_that_a_simulated_write_made_up_is_bound(rung):
    rests = bound({"order": {"id": "ord-7781"}}, {"id": "ord-7781"}, rung=rung)
    assert rests.bindings == [{"argument": "/id", "call": "c1", "path": "/order/id", "predicted": "ord-7781"}]
    assert rests.arguments == {"/id"}


@pytest.mark.parametrize(
    ("result", "args"),
    [
        ({"id": 7781}, {"order": 7781}),
        ({"id": 7781}, {"order": "7781"}),
        ({"id": "tulip"}, {"order_id": "tulip"}),  # a plain word, but an identifier by its name
        ({"odd key": {"$": "A-100-b"}}, {"a.b": {"[0]": "A-100-b"}}),
        ({"order_id": 7}, {"order_id": 7}),  # of short ones name or form says that they are identifiers
        ({"ref": "abc"}, {"order_ref": "abc"}),
        ({"order": "O-1"}, {"text": "Your order O-1."}),
        ({"order": {"id": 7}}, {"text": "Order no. 7: https://shop.example/orders/7?x=1"}),
    ],
)
def test_the_kind_of_number_and_the_place_of_the_argument_do_not_matter(result, args):
    assert len(bound(result, args).bindings) == 1


@pytest.mark.parametrize(
    ("result", "args"),
    [({"ok": True}, {"flag": True}), ({"note": None}, {"note": None}), ({"order_id": 7}, {"quantity": 7})],
)
def test_booleans_and_single_digits_that_are_equal_by_chance_rest_on_nothing(result, args):
    assert not bound(result, args).arguments


@pytest.mark.parametrize(
    ("result", "args"),
    [
        ({"total": "$1,250.00"}, {"amount": "$1,250.00"}),
        ({"total": 12}, {"id": 12}),
        ({"order_id": 7781}, {"quantity": 7781}),
        ({"order_id": 7}, {"customer_id": 7}),
        ({"id": "7781"}, {"id": 7781}),
        ({"word": "confirmed"}, {"note": "confirmed"}),
        ({"total": 1250.5}, {"text": "1,250.50 euros"}),
        ({"total": 49.99}, {"text": "about 50 euros"}),
        ({"total": "1,250.00 EUR"}, {"text": "1250 euros"}),
        ({"due": "2024-05-15T15:00"}, {"text": "due May 15, 2024"}),
        ({"name": "Lena Brandt"}, {"text": "Dear lena brandt, it is done"}),
        ({"名": "東京"}, {"text": "東京に着く"}),
        ({"order_id": 7}, {"text": "7 pens"}),
        ({"orders": {"ord-7781": {"at": "noon"}}}, {"text": "Your order ord-7781"}),
        ({"id": "ord-7781"}, {"text": "Your order ORD 7781"}),
    ],
)
def test_amounts_and_what_is_spelt_otherwise_are_never_bound_but_must_be_as_predicted(result, args):
    rests = bound(result, args)
    assert len(rests.expects) == 1
    assert not rests.bindings + rests.ambiguous


@pytest.mark.parametrize(
    "more",
    [
        {"task": "Use ord-7781"},
        {"task": "use ORD 7781, the code is ord7781"},
        {"state": {"orders": {"ord-7781": {}}}},
        {"state": {"last": "ord-7781"}},
        {"given": {"ref": "ord-7781"}},
    ],
)
def test_what_something_real_holds_is_not_bound(more):
    assert not bound({"id": "ord-7781"}, {"id": "ord-7781"}, **more).bindings


def test_a_value_chosen_among_a_simulated_reads_results_is_not_bound():
    rests = bound([{"id": "ord-7781"}, {"id": "ord-7782"}], {"id": "ord-7782"}, tool="find")
    assert rests.reads == {"/id": ["c1"]}
    assert not rests.bindings


def test_a_read_that_repeats_what_a_write_made_is_no_source():
    steps = [
        step(1, "make", {}, {"id": "ord-7781"}),
        step(2, "find", {}, [{"id": "ord-7781"}]),
        step(3, "find", {"id": "ord-7781"}, {"id": "ord-7781", "at": "11:30"}),
        step(4, "use", {"id": "ord-7781"}, {}),
    ]
    rests = found(steps)
    assert [each["call"] for each in rests.bindings] == ["c1"]
    assert not rests.reads


def test_two_possible_sources_are_asked_about():
    within_one = bound({"id": "ord-7781", "ref": "ord-7781"}, {"id": "ord-7781"})
    assert [each["path"] for each in within_one.ambiguous[0]["sources"]] == ["/id", "/ref"]
    steps = [step(n, "make", {}, {"id": "ord-7781"}) for n in (1, 2)]
    of_two = found([*steps, step(3, "use", {"id": "ord-7781"}, {})])
    assert [each["call"] for each in of_two.ambiguous[0]["sources"]] == ["c1", "c2"]
    of_a_list = bound({"orders": [{"id": "ord-7781"}]}, {"id": "ord-7781"})
    assert not of_a_list.bindings
    assert of_a_list.ambiguous[0]["sources"][0]["path"] == "/orders/0/id"
    assert bound({"total": 12.5}, {"amount": 12.5}, rung="model").ambiguous, "an amount of a model's"


def test_an_identifier_in_a_longer_text_is_bound_as_a_part_of_it():
    text = "See https://shop.example/orders/ord-7781?x=1, or ord-77812."
    rests = bound({"id": "ord-7781"}, {"text": text})
    place = {"argument": "/text", "call": "c1", "path": "/id"}
    assert rests.bindings == [{**place, "predicted": "ord-7781", "starts": [32]}]
    sent, problem = resolve(planned({"text": text}, rests), {"c1": {"id": 42}})
    assert problem is None
    assert sent["call"]["args"]["text"] == "See https://shop.example/orders/42?x=1, or ord-77812."


@pytest.mark.parametrize(
    "more", [{"rung": "real"}, {"tool": "find"}, {"result": {"word": "orders"}, "text": "the orders of today"}]
)
def test_of_a_longer_text_only_what_a_simulated_write_made_up_is_bound(more):
    given = {"result": {"id": "ord-7781"}, "text": "See https://shop.example/orders/ord-7781", **more}
    result, text = given.pop("result"), given.pop("text")
    assert not bound(result, {"text": text}, **given).bindings


def planned(args: dict, rests) -> dict:
    call = {"id": "c9", "name": "use", "args": args}
    return {"call": call, "bindings": rests.bindings, "ambiguous": rests.ambiguous, "expects": rests.expects}


@pytest.mark.parametrize("real", [None, {"id": None}, {"id": ""}, ["ord-1"]])
@pytest.mark.parametrize("value", ["ord-7781", "Order ord-7781"])
def test_a_result_without_a_value_is_a_departure(real, value):
    _, problem = resolve(planned({"id": value}, bound({"id": "ord-7781"}, {"id": value})), {"c1": real})
    assert problem["code"] == "binding"


@pytest.mark.parametrize("real", ["ord-1", "12", 12, 0, -1.5, True, False, {"$oid": "1"}, ["ord-1"]])
def test_a_hole_takes_the_exact_value_and_a_text_its_text(real):
    whole = planned({"id": 7781}, bound({"id": 7781}, {"id": 7781}))
    assert resolve(whole, {"c1": {"id": real}})[0]["call"]["args"] == {"id": real}
    text = planned({"id": "(7781)"}, bound({"id": 7781}, {"id": "(7781)"}))
    sent, problem = resolve(text, {"c1": {"id": real}})
    if isinstance(real, bool | dict | list):
        assert problem["code"] == "binding"
    else:
        assert sent["call"]["args"] == {"id": f"({real})"}


@pytest.mark.parametrize(
    ("real", "value"),
    [
        ({"id": "ord-7781", "ref": "ord-7781"}, "ord-7781"),
        ({"id": "ord-1111", "ref": "ord-1111"}, None),
        ({"id": "ord-1111", "ref": "ord-2222"}, None),
        ({"id": "ord-1111"}, None),
    ],
)
def test_of_two_sources_none_fills_and_both_must_be_as_predicted(real, value):
    predicted = {"id": "ord-7781", "ref": "ord-7781"}
    sent, problem = resolve(planned({"id": "ord-7781"}, bound(predicted, {"id": "ord-7781"})), {"c1": real})
    assert problem["code"] == "binding" if value is None else sent["call"]["args"]["id"] == value


names = st.text(max_size=100) | st.sampled_from(["", "a.b", "[0]", '"', "\\", "$", "ü", "a" * 120, "line\nbreak"])
idents = st.from_regex(r"[a-z]{2,4}-[1-9][0-9]{3,6}", fullmatch=True)
leaves = st.none() | st.booleans() | st.integers(-99_999, 99_999) | st.floats(-1e6, 1e6) | idents | st.text(max_size=12)
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=8
)
objects = st.dictionaries(names, trees, max_size=4)


@given(objects)
def test_paths_of_odd_names_lead_back(value):
    for place, each in scalars(value):
        path = pointer(place)
        assert place_at(value, path) == place
        assert value_at(value, path) is each or value_at(value, path) == each
        assert replaced(value, path, each) == value
    assert all(value_at(value, path) == each for path, each in places(value))


@st.composite
def plans(draw) -> list[dict]:
    """Draw calls whose arguments are often values of earlier results, alone or within a text."""
    steps: list[dict] = []
    for number in range(1, draw(st.integers(2, 5)) + 1):
        known = [each for one in steps for _, each in scalars(one["outcome"]["result"]) if each is not None] or [0]
        values = leaves | st.sampled_from(known) | st.sampled_from(known).map(lambda each: f"about {each}!")
        args = draw(st.dictionaries(names, values | st.lists(values, max_size=2), max_size=3))
        rung = draw(st.sampled_from(["contract", "model", "real"]))
        steps.append(step(number, draw(st.sampled_from(["make", "find", "use"])), args, draw(objects), rung=rung))
    return steps


@given(plans(), objects, st.text(max_size=30))
def test_the_predicted_results_give_back_the_plans_own_arguments(steps, state, task):
    last, results = steps[-1]["call"], {each["call"]["id"]: each["outcome"]["result"] for each in steps}
    sent, problem = resolve(planned(last["args"], found(steps, task=task, state=state)), results)
    assert problem is None
    assert sent["call"]["args"] == last["args"]


@given(plans(), st.booleans())
def test_no_binding_changes_what_something_real_holds(steps, in_state):
    last = steps[-1]["call"]
    other = {each["call"]["id"]: _changed(each["outcome"]["result"]) for each in steps}
    held = [each for _, each in scalars(last["args"])]
    where = (
        {"state": {"held": held}}
        if in_state
        else {"task": " ".join(each if isinstance(each, str) else json.dumps(each) for each in held)}
    )
    sent, _ = resolve(planned(last["args"], found(steps, **where)), other)
    assert sent["call"]["args"] == last["args"]


def _changed(value):
    if isinstance(value, dict):
        return {key: _changed(each) for key, each in value.items()}
    return [_changed(each) for each in value] if isinstance(value, list) else f"real-{value}"
