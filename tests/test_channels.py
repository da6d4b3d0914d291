"""The states' channels: pure reducers that do not care how writes are batched, and values that checkpoints keep."""

from __future__ import annotations

import copy
import pathlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from gecko_graph import GeckoContext, Tool, Toolkit
from gecko_graph.models.node import open_record
from gecko_graph.models.usage import add_usage
from gecko_graph.world.channels import AttemptState, GeckoState
from gecko_graph.world.reducers import count_asked, extend, gather_facts, replace
from tests import desk

# exact in sums: reducers must not depend on the order in which floats are added
COSTS = st.none() | st.integers(0, 99).map(lambda cents: cents / 100)
NUMBERS = st.integers(0, 9)
ROLES = st.sampled_from(["planner", "judge", "simulator"])
ROLE_USAGE = st.fixed_dictionaries({"calls": NUMBERS, "input_tokens": NUMBERS, "output_tokens": NUMBERS, "cost": COSTS})
USAGE = st.dictionaries(ROLES, ROLE_USAGE, max_size=3)
ASKED = st.dictionaries(ROLES, NUMBERS, max_size=3)
FACTS = st.dictionaries(
    st.sampled_from("abc"), st.fixed_dictionaries({"tool": st.just("t"), "result": NUMBERS}), max_size=3
)
LISTS = st.lists(NUMBERS, max_size=3)
FEW = settings(max_examples=40)


def splits(writes, where):
    cut = where % (len(writes) + 1)
    return writes[:cut], writes[cut:]


@pytest.mark.parametrize(
    ("fold", "value"),
    [(extend, LISTS), (replace, LISTS), (gather_facts, FACTS)],
    ids=["extend", "replace", "gather_facts"],
)
@FEW
@given(data=st.data(), where=NUMBERS)
def test_folds_do_not_care_how_writes_are_batched_and_change_nothing_in_place(fold, value, data, where):
    old, writes = data.draw(value), data.draw(st.lists(value, max_size=4))
    given_old, given_writes = copy.deepcopy(old), copy.deepcopy(writes)
    first, second = splits(writes, where)
    assert fold(fold(old, first), second) == fold(old, writes)
    assert (old, writes) == (given_old, given_writes)


@pytest.mark.parametrize(("merge", "value"), [(add_usage, USAGE), (count_asked, ASKED)], ids=["usage", "asked"])
@FEW
@given(data=st.data())
def test_sums_do_not_care_for_order_and_change_nothing_in_place(merge, value, data):
    a, b, c = data.draw(value), data.draw(value), data.draw(value)
    before = copy.deepcopy((a, b, c))
    assert merge(a, b) == merge(b, a)
    assert merge(merge(a, b), c) == merge(a, merge(b, c))
    assert merge(a, {}) == a
    assert (a, b, c) == before


# checkpoints

SURROUNDED = {"tree": {"a/b": {"~": ["ü", "", None, True, 1.5, -(2**63), 2**64 - 1]}}}


TURN = {
    "planner": [
        [
            {"calls": [{"call": "put", "args": {"tray": "letters", "paper": "a"}}] * 2},
            {"call": "fly", "args": {}},
            {"call": "look", "args": "{broken"},
            {"call": "rate", "args": {"currency": "EUR"}},
            {"say": "?"},
        ],
        [{"call": "put", "args": {"tray": "nowhere", "paper": "b"}}, {"say": "Done."}],
    ],
    "validator": [{"problems": [{"argument": "/paper", "problem": "is no paper"}]}, *[{"problems": []}] * 9],
    "checklist": [{"items": [{"description": "filed"}, {"description": "told"}]}],
    "judge": [{"items": [{"id": "item-1", "status": "failed", "reason": "no"}], "feedback": "again"}] * 2,
    "bootstrapper": [{"domain": {}, "runtime_state": {"user": "ann"}}],
    "simulator": [{"status": "ok", "result": {"rate": 1.25}}] * 9,
}
"""A run that writes every channel: complaints, races, facts, lessons, several turns' accounts."""


@pytest.fixture(params=["memory", "sqlite"])
def saver(request, tmp_path: pathlib.Path):
    if request.param == "memory":
        yield InMemorySaver()
        return
    with SqliteSaver.from_conn_string(str(tmp_path / "runs.sqlite")) as saver:
        yield saver


def test_every_state_survives_a_checkpoint(saver, caplog):
    rate = Tool(desk.function("rate", "Rate of a currency.", "currency"), effect="read")
    context = GeckoContext(max_retries=1, parallel_calls="snapshot")
    tools = Toolkit([*desk.toolkit(), *Toolkit.from_tools([rate])])
    gecko = desk.gecko(tools=tools, turns=[TURN], checkpointer=saver, context=context)
    given = desk.inputs(task_state={"trays": {"letters": ["from mum"]}, "tree": SURROUNDED["tree"]}, checklist=None)
    thread = {"configurable": {"thread_id": "t"}}
    seen = {(): {}}
    for part in gecko.stream(given, thread, stream_mode="values", subgraphs=True, version="v2"):
        seen[tuple(part["ns"])] = part["data"]
    missing = {"searches", "gate_note"}  # of many tools, and of contracts that gate
    reached = [open_record(state) for state in seen.values()]
    assert {key for state in reached for key in state} >= {*AttemptState.__annotations__} - missing
    kept = dict(namespaces(gecko, thread))
    assert len(kept) == len(seen) == 3, "the turn and its two attempts"
    for namespace, state in seen.items():
        for key, value in state.items():
            assert kept["|".join(namespace)][key] == value, key
    assert gecko.get_state(thread).values["task_state"]["tree"] == SURROUNDED["tree"]
    assert {*GeckoState.__annotations__} - {*gecko.get_state(thread).values} == {"checklist", "continued", "number"}
    assert [each for each in caplog.records if each.name.startswith("langgraph")] == [], "no class that a saver refuses"


def namespaces(gecko, thread):
    """The last state of the run and of each attempt, read back from the checkpoints, by namespace."""
    yield "", gecko.get_state(thread).values
    for snapshot in gecko.get_state_history(thread):
        for task in snapshot.tasks:
            if task.state:
                yield task.state["configurable"]["checkpoint_ns"], gecko.get_state(task.state).values
