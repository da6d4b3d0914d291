"""The schema rung: any call is answered, the same call alike; what cannot be made up is passed on."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph import GeckoContext, Toolkit
from gecko_graph.models.ask import Where
from gecko_graph.schemas.complaints import find_faults
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.world.rung import Answer, Pass, RungRequest
from gecko_graph.world.schema import schema_rung
from tests.any_schema import JUNK

TEXT = {"type": "string"}
USER = {
    "type": "object",
    "properties": {"user_id": TEXT, "name": TEXT, "joined_at": {"type": "string", "format": "date-time"}},
    "required": ["user_id", "name", "joined_at"],
}


def answer(name, result, args, *, effect="read", seed=0, state=None):
    tool = ToolSpec(name=name, result=result, effect=effect)
    call = {"id": "1", "name": name, "args": args}
    context = GeckoContext(seed=seed)
    return schema_rung(RungRequest(tool=tool, call=call, state=state or {}, facts={}, context=context, where=Where()))


def result(name, schema, args, **more):
    said = answer(name, schema, args, **more)
    assert isinstance(said, Answer)
    assert said.status == "ok"
    assert find_faults(schema, said.result) == []
    return said.result


class TestAlike:
    def test_equal_arguments_whatever_their_order_and_the_state(self):
        one = result("get_user", USER, {"user_id": "u1", "full": True})
        assert one == result("get_user", USER, {"full": True, "user_id": "u1"}, state={"now": "2031-01-01", "a": [1]})

    def test_other_arguments_seeds_and_tools_make_other_answers(self):
        one = result("get_user", USER, {"user_id": "u1"})
        for other in (
            result("get_user", USER, {"user_id": "u2"}),
            result("get_user", USER, {"user_id": "u1"}, seed=1),
            result("find_user", USER, {"user_id": "u1"}),
        ):
            assert one != other


def test_what_cannot_be_met_is_passed_on():
    said = answer("get_thing", {"allOf": [TEXT, {"type": "integer"}]}, {})
    assert isinstance(said, Pass)
    assert said.reason.startswith("no made-up result fits the result schema: ")


@given(JUNK, st.text(max_size=2))
def test_no_schema_breaks_a_run(schema, key):
    said = answer("get_thing", schema, {"a": key})
    assert isinstance(said, Answer | Pass)
    if isinstance(said, Answer) and schema is not None:
        assert find_faults(schema, said.result) == []


INNER = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8))
ARGUMENTS = st.dictionaries(st.text(max_size=8), st.one_of(INNER, st.lists(INNER, max_size=3)), max_size=5)


@given(
    ARGUMENTS,
    st.sampled_from(["get_thing", "list_things", "create_thing", "is_thing", "count_things", "", "é"]),
    st.sampled_from(["read", "write", None]),
)
def test_any_arguments_are_fine(args, name, effect):
    assert isinstance(answer(name, None, args, effect=effect), Answer)
    assert isinstance(answer(name, USER, args, effect=effect), Answer)


@pytest.mark.parametrize(
    ("name", "effect", "patch"), [("get_car", "read", []), ("send", "write", None), ("a", None, None)]
)
def test_without_a_result_schema_a_call_is_done_and_says_no_more(name, effect, patch):
    assert answer(name, None, {"to": "ann"}, effect=effect) == Answer("ok", {"status": "ok"}, patch)


def test_every_response_of_the_benchmark_tools_is_met(shared_data):
    documents = json.loads((shared_data / "bfcl_multiturn_func_docs.json").read_text(encoding="utf-8"))
    toolkit = Toolkit.from_tools(list(documents.values()))
    with_result = [tool for tool in toolkit if tool.result is not None]
    assert len(with_result) > 100
    for tool in with_result:
        said = answer(tool.name, tool.result, {"name": "a"})
        assert isinstance(said, Answer), tool.name
        assert find_faults(tool.result, said.result) == [], tool.name
