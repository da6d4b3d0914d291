"""Where each value of a task state comes from, and what of it is only supposed."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import Models, Tool, Toolkit, World, blame, create_gecko
from gecko_graph.contracts.contract import Contract
from gecko_graph.errors import EvaluationFailed, StateError
from gecko_graph.testing import recorded
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.values.origins import NOT_KNOWN, find_untrusted, trusted_part
from tests.agents import call, make_agent, thread

PARAMETERS = {"type": "object", "properties": {"item": {"type": "string"}, "to": {"type": "string"}}}
TOOLS = {
    "add": {"effects": [{"op": "add", "path": ["queue", 0], "value": "{{ args.item }}"}], "returns": None},
    "take": {"effects": [{"op": "move", "from": ["queue", 0], "path": ["done", "{{ args.item }}"]}], "returns": None},
    "drop": {"effects": [{"op": "remove", "path": ["done", "{{ args.item }}"]}], "returns": None},
    "copy": {"effects": [{"op": "copy", "from": ["done", "{{ args.item }}"], "path": ["done", "{{ args.to }}"]}]},
    "ship": {
        "requires": [{"check": "trusted(['done', args.item])", "error": "{{ args.item }} is not known for sure"}],
        "returns": "shipped",
    },
}
START = {"queue": ["old"], "done": {}}


def toolkit(**more):
    tools = [ToolSpec(name=name, parameters=PARAMETERS, effect="write") for name in (*TOOLS, "guess")]
    return Toolkit.from_tools(tools, **more).with_contracts({"contracts": TOOLS})


def world(*calls, **more):
    made = World(toolkit(), state=START, **more)
    for name, args in calls:
        assert made.call({"name": name, "args": args})["outcome"]["status"] == "ok"
    return made


def test_a_world_says_which_call_each_value_comes_from():
    made = world(("add", {"item": "new"}), ("take", {"item": "a"}), ("take", {"item": "b"}), ("drop", {"item": "b"}))
    assert made.state == {"queue": [], "done": {"a": "new"}}
    found = {"step": 1, "call": "call_1", "tool": "add", "rung": "contract"}
    assert made.blame("/done/a") == {"kind": "stated", "from": "state", "path": "/done/a", **found}
    assert made.blame("/done/b")["tool"] == "drop"
    assert made.blame("/queue")["step"] == 3
    assert made.blame("/done").get("step") is None
    assert made.blame("/nothing") is None
    made.undo()
    assert made.blame("/done/b").get("step") is None  # it was moved there, and stood in the queue before
    with pytest.raises(StateError, match="write a JSON Pointer"):
        made.blame("done.a")


GUESS = {"status": "ok", "result": "ok", "patch": [{"op": "add", "path": "/done/x", "value": "guess"}]}


def guessing(*calls):
    models = Models(simulator=recorded(simulator=[GUESS]), state_updater=recorded(state_updater=[]))
    return world(("guess", {}), *calls, model=models)


def test_a_contract_may_demand_what_no_model_has_supposed():
    made = guessing(("copy", {"item": "x", "to": "y"}), ("add", {"item": "new"}), ("take", {"item": "z"}))
    assert made.blame("/done/y")["kind"] == "chosen"
    for item in ("x", "y"):
        outcome = made.call({"name": "ship", "args": {"item": item}})["outcome"]
        assert (outcome["status"], outcome["result"]) == ("error", f"{item} is not known for sure")
        assert made.check({"name": "ship", "args": {"item": item}})["error"] == f"{item} is not known for sure"
    assert made.call({"name": "ship", "args": {"item": "z"}})["outcome"]["result"] == "shipped"
    assert made.check({"name": "ship", "args": {"item": "z"}}) is None
    again = World.restore(toolkit(), made.snapshot())
    assert again.call({"name": "ship", "args": {"item": "x"}})["outcome"]["status"] == "error"


def test_what_is_trusted_is_asked_below_the_key_of_a_mounted_contract():
    mounted = toolkit().mount("shop")["ship"].contract
    call = {"id": "1", "name": "ship", "args": {"item": "x"}}
    state = {"shop": {"done": {"x": 1}}, "done": {}}
    values = {"args": call["args"], "parameters": PARAMETERS, "state": state, "call": call, "now": None, "seed": 0}
    for places, refused in ([], False), (["/shop/done/x"], True), (["/done"], False), (["/shop"], True), ([""], True):
        run = mounted.open(**values).trust(lambda places=places: places)
        assert (run.refusal() is not None) is refused
    ready = Contract.load({"requires": [{"check": "trusted(['done'])", "error": "no"}]}, where="t")
    assert ready.admissible(state, now=None, untrusted=lambda: ["/done/-"]).word == "no"
    assert ready.admissible(state, now=None).word == "yes"


def test_what_a_real_read_has_shown_is_trusted_from_then_on():
    outcome = {"status": "ok", "result": 0, "patch": [], "rung": "real", "simulated": False, "passed": []}
    shown = {**outcome, "observed": [{"op": "replace", "path": "/orders/7", "value": {}}]}
    step = {"v": 1, "call": {"id": "1", "name": "get", "args": {}}, "outcome": shown}
    start = {"orders": {"7": {"a": 1}, "8": {}}}
    assert find_untrusted(start, ["/orders"], [step]) == ["/orders/-", "/orders/8"]
    assert find_untrusted(start, ["/orders/7/a"], [step]) == []
    assert find_untrusted({}, ["/orders"], [step]) == [""]  # edited in between: nothing is known


DONE, ITEMS = {"say": "Done."}, [{"description": "anything", "check": "True"}]
PLAN = [call("guess"), call("ship", item="x"), call("add", item="n"), DONE]
NEXT = [call("take", item="y"), call("ship", item="x"), DONE]


def test_a_rehearsal_s_record_says_it_too_also_over_turns():
    model = recorded({"planner": [PLAN], "simulator": [GUESS]}, {"planner": [NEXT]})
    models = Models(**dict.fromkeys(("planner", "simulator"), model))
    gecko = create_gecko(toolkit(), model=models, checkpointer=InMemorySaver())
    start = {**START, "runtime_state": {}}
    first = gecko.invoke({"messages": [("user", "Go")], "task_state": start, "checklist": ITEMS}, thread())
    assert first["rehearsal"]["verdict"]["status"] == "accepted"
    second = gecko.invoke({"messages": [("user", "And on")], "checklist": ITEMS}, thread())
    (attempt,) = second["rehearsal"]["attempts"]
    assert [step["outcome"]["status"] for step in attempt["steps"]] == ["ok", "error"]  # still only supposed
    both = [first["rehearsal"], second["rehearsal"]]
    found = blame(both, "/done/y", state=start)
    assert (found["turn"], found["attempt"], found["step"], found["tool"]) == (1, 1, 3, "add")
    assert blame(both, "/done/x", state=start)["kind"] == "chosen"
    assert blame(first["rehearsal"], "/queue/1", state=start).get("step") is None
    assert blame(both, "/queue/0", state=start).get("step") is None
    with pytest.raises(StateError, match="turn 1 began from another task state than"):
        blame(both, "/done/x", state=START)
    with pytest.raises(StateError, match="turn 2 has no attempt 7"):
        blame(both, "/done/x", state=start, attempt=7)


def test_no_real_call_is_made_on_what_is_only_supposed():
    shipped = []

    def ship(item: str) -> str:
        """Ship an item."""
        shipped.append(item)
        return "shipped"

    tools = Toolkit.from_tools([Tool(ship, contract=TOOLS["ship"], effect="write")])
    plan = {"planner": [[call("ship", item="x"), DONE]]}
    made = recorded({"bootstrapper": [{"domain": {"done": {"x": 1}}, "runtime_state": {"user": "ann"}}]}, {})
    agent = make_agent(tools, model=Models(planner=recorded(plan, plan), bootstrapper=made))
    agent.invoke({"messages": [("user", "Go")], "task_state": {"done": {"x": 1}}, "checklist": ITEMS}, thread())
    assert shipped == ["x"]
    for turn in ("Go", "Again"):  # what it supposed in one turn it does not believe in the next
        agent.invoke({"messages": [("user", turn)], "checklist": ITEMS}, thread("2"))
        assert agent.get_state(thread("2")).values["bookkeeping"]["supposed"] == ["/done", "/runtime_state"]
    assert shipped == ["x"]


def test_the_trusted_part_leaves_places_of_lists_behind():
    state = {"a": [1, {"b": 2, "c": 3}], "d": {"e": 4}}
    assert trusted_part(state, ["/a/0", "/a/1/b", "/d"]) == {"a": [NOT_KNOWN, {"c": 3}]}
    assert trusted_part(state, ["/a/-", "/d/-", "/d/e"]) == {"a": [1, {"b": 2, "c": 3}], "d": {}}
    assert trusted_part(state, [""]) == {}
    assert trusted_part(state, []) == state


def test_an_invariant_knows_nothing_of_trust():
    typed = toolkit(invariants=[{"check": "trusted(['done'])", "error": "no"}])
    with pytest.raises(EvaluationFailed, match="known only in a contract"):
        typed.invariants[0].violation(START, START)
