"""The search for what takes a write back."""

import pytest

from gecko_graph import ContractError, GeckoContext, Tool, Toolkit, World
from gecko_graph.real.preview import describe_undo
from gecko_graph.testing import scripted
from gecko_graph.undo import UndoFinder, finder
from gecko_graph.undo.arguments import arguments

START = {"files": {"a": "old", "b": "x"}, "count": 0, "log": []}
FILE, KNOWN = ["files", "{{ args.name }}"], {"check": "args.name in state.files", "error": "no such file"}
LOG = {"op": "add", "path": ["log", "-"], "value": "{{ call.name }}"}


def nothing(name: str, text: str = "") -> None:
    """Do something."""


def kit(journal: bool = True, **contracts: dict) -> Toolkit:
    """Tools of these contracts; `log` is a journal."""
    parameters = {"type": "object", "properties": {"name": {"type": "string"}, "text": {"type": "string"}}}
    functions = [
        {"name": name, "description": name, "parameters": {**parameters, "required": ["name"]}} for name in contracts
    ]
    tools = Toolkit.from_tools(functions).declare(
        *(Tool(name, effect="write", contract=contract) for name, contract in contracts.items())
    )
    schema = {"type": "object", "properties": {"log": {"x-journal": journal}}}
    return Toolkit(list(tools), state_schema=schema)


WRITE = {"effects": [{"op": "add", "path": FILE, "value": "{{ args.text }}"}, LOG]}
DELETE = {"requires": [KNOWN], "effects": [{"op": "remove", "path": FILE}, LOG]}
MOVE = {
    "requires": [KNOWN],
    "effects": [{"op": "remove", "path": FILE}, {"op": "add", "path": ["log", "-"], "value": "moved"}],
}


def find(toolkit: Toolkit, tool: str, limit_s: float = 5, start: dict = START, **args) -> dict:
    world = World(toolkit, state=start, context=GeckoContext(semantic_validation=False))
    step = world.call({"name": tool, "args": args})
    return UndoFinder(toolkit).find(step["call"], step["outcome"], start, world.state, limit_s=limit_s)


def test_what_was_overwritten_is_written_again_and_a_journal_does_not_count():
    tell = {**WRITE, "returns": {"was": "{{ state.files[args.name] }}", "id": "{{ args.name }}"}}
    for write in (WRITE, tell):  # what stood in the state before is no hole
        (found,) = find(kit(write=write, delete=DELETE), "write", name="a", text="new")["calls"]
        assert (found["name"], found["args"], found["bindings"]) == ("write", {"name": "a", "text": "old"}, [])
    assert find(kit(False, write=WRITE, delete=DELETE), "write", name="a", text="new")["status"] != "found"


def test_what_only_deletes_comes_before_what_does_more():
    for order in (("move", "delete"), ("delete", "move")):
        tools = {
            "move": {**MOVE, "effects": [*MOVE["effects"], LOG]},
            "delete": {**DELETE, "effects": DELETE["effects"][:1]},
        }
        found = find(kit(write=WRITE, **{name: tools[name] for name in order}), "write", name="new", text="t")
        assert [each["name"] for each in found["calls"]] == ["delete"]


def test_two_calls_are_found_where_one_does_not_do():
    only_new = {"check": "args.name not in state.files", "error": "it is there"}
    tools = kit(write={**WRITE, "requires": [only_new]}, delete=DELETE, force=WRITE)
    found = find(tools, "force", name="a", text="new")
    assert found["calls"][0]["name"] in ("force", "delete")
    tools = kit(write={**WRITE, "requires": [only_new]}, delete=DELETE, clear={"effects": [
        {"op": "replace", "path": FILE, "value": "emptied"}, LOG]})  # fmt: skip
    found = find(tools, "clear", name="a")
    assert [each["name"] for each in found["calls"]] == ["delete", "write"]


def test_a_search_that_is_not_over_or_has_tried_enough_says_so(monkeypatch):
    add = {"effects": [{"op": "replace", "path": ["count"], "value": "{{ state.count + 1 }}"}]}
    tools = kit(add=add, other={**add, "requires": [{"check": "args.name == 'nobody knows'", "error": "no"}]})
    found = find(tools, "add", limit_s=0, name="x")
    assert (found["status"], describe_undo(found)) == ("timeout", "No way back was found in time.")
    monkeypatch.setattr(finder, "MOST_CALLS", 3)
    found = find(kit(add=add, other=add), "add", limit_s=600, name="x")
    assert (found["status"], describe_undo(found)) == (
        "none",
        "No way back is known: 3 calls were tried without success.",
    )
    assert find(kit(write=WRITE), "write", limit_s=600, name="new", text="t")["status"] == "none", "no effect can do it"


def test_a_counter_that_only_hides_the_effect_is_no_undo_and_a_compensation_is_named():
    send = {"effects": [{"op": "add", "path": ["files", "{{ args.name }}-{{ state.count }}"], "value": "sent"}]}
    sorry = {**send, "compensates": "send"}
    found = find(kit(send=send, sorry=sorry), "send", name="m")
    assert (found["status"], [each["name"] for each in found["calls"]]) == ("compensated", ["sorry"])


def test_a_call_whose_rule_is_not_established_is_not_built_on():
    guessed = {**DELETE, "requires": [KNOWN], "evidence": {"effects": {"status": "proposed", "for": 3, "against": 0}}}
    assert find(kit(write=WRITE, delete=guessed), "write", name="new", text="t")["status"] == "none"
    known = {**guessed, "evidence": {"effects": {"status": "established", "for": 30, "against": 0}}}
    assert find(kit(write=WRITE, delete=known), "write", name="new", text="t")["status"] == "found"


def test_what_a_model_has_made_up_has_no_way_back():
    tools = Toolkit.from_tools([Tool(nothing, effect="write")])
    world = World(tools, state=START, model=scripted())
    outcome = {"status": "ok", "result": 1, "patch": [], "rung": "model", "simulated": True, "passed": []}
    found = UndoFinder(tools).find({"id": "1", "name": "nothing", "args": {"name": "a"}}, outcome, START, START)
    assert (found["status"], found["reason"]) == ("none", "no rule knows its changes")
    assert world.log == []


def test_an_identifier_may_be_drawn_anew_but_not_one_that_something_still_refers_to():
    make = {
        "let": {"id": "{{ new_id('f-') }}"},
        "effects": [{"op": "add", "path": ["files", "{{ id }}"], "value": "{{ args.name }}"}],
        "returns": {"id": "{{ id }}"},
    }
    remove = {"requires": [KNOWN], "effects": [{"op": "remove", "path": FILE}]}
    tools = kit(make=make, remove=remove)
    start = {"files": {"f-1": "tea"}, "log": []}
    found = find(tools, "remove", start=start, name="f-1")
    assert [(each["name"], each["args"]["name"]) for each in found["calls"]] == [("make", "tea")]
    pointed = {**start, "favourite": "f-1"}
    assert find(tools, "remove", start=pointed, name="f-1")["status"] == "none"


def test_of_a_large_state_only_so_much_is_looked_at(monkeypatch):
    seen = []
    monkeypatch.setattr(finder, "arguments", lambda tool, known: seen.append(len(known)) or arguments(tool, known))
    large = {**START, "files": {**START["files"], **{f"f{number}": f"text {number}" for number in range(4_000)}}}
    found = find(kit(write=WRITE, delete=DELETE), "write", start=large, name="a", text="new")
    assert [(each["name"], each["args"]) for each in found["calls"]] == [("write", {"name": "a", "text": "old"})]
    found = find(kit(write=WRITE, delete=DELETE), "delete", start=large, name="f3999")
    assert [(each["name"], each["args"]) for each in found["calls"]] == [
        ("write", {"name": "f3999", "text": "text 3999"})
    ]
    assert 0 < max(seen) < 2 * finder.MOST_VALUES


@pytest.mark.parametrize(
    ("returns", "argument"),
    [
        ("{{ id }}", "<the real result>"),
        ({"": "{{ id }}"}, "<the real / of its result>"),
        ({"a/b": "{{ id }}"}, "<the real a/b of its result>"),
    ],
)
def test_an_identifier_that_the_call_draws_is_a_hole_wherever_its_result_has_it(returns, argument):
    add = {"op": "add", "path": ["files", "{{ id }}"], "value": "{{ args.name }}"}
    make = {"let": {"id": "{{ new_id('f-') }}"}, "effects": [add], "returns": returns}
    found = find(kit(make=make, delete=DELETE), "make", name="tea")
    assert describe_undo(found) == f"Undone by delete(name={argument})."


def test_a_contract_names_what_it_compensates_as_a_text():
    with pytest.raises(ContractError, match="compensates"):
        kit(write={**WRITE, "compensates": 3})
