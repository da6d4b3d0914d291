"""tools and convert; `tools --state` tries every contract on an example of the task state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gecko_graph import Tool, Toolkit
from gecko_graph.cli.running import exit_code
from gecko_graph.contracts.contract import Contract
from gecko_graph.errors import ToolkitError
from gecko_graph.values.documents import read_document
from gecko_graph.world.state_rules import examine_contracts
from tests.cli.command import SHOP_API


def test_the_exit_code_of_several_turns():
    def outputs(*words):
        return [{"rehearsal": {"verdict": {"status": word}}} for word in words]

    assert exit_code(outputs("needs_user", "accepted")) == 0
    assert exit_code(outputs("accepted", "accepted")) == 0
    assert exit_code(outputs("failed", "accepted")) == 1
    assert exit_code(outputs("accepted", "needs_user")) == 1
    assert exit_code([]) == 1


def test_tools_of_an_example(run):
    code, out, _ = run("tools", SHOP_API)
    assert code == 0
    assert out.startswith("Shop: 6 tools\n")
    assert "findProducts(text?, max_price?)  read, contract\n" in out
    assert "3 invariants of the task state" in out
    assert out.endswith("Nothing is missing.\n")


FUNCTIONS = [
    {"name": "greet", "parameters": {"type": "dict", "properties": {"who": {"type": "string"}}, "required": ["who"]}},
    {"name": "part", "description": "Say \x1b[31mgoodbye[/red].", "parameters": {"type": "object", "properties": {}}},
]


def test_tools_says_what_is_left_unsaid(run, tmp_path):
    (tmp_path / "tools.json").write_text(json.dumps(FUNCTIONS))
    code, out, _ = run("tools", tmp_path / "tools.json")
    assert code == 0
    assert "greet(who)  read or write" in out
    assert "no result schema: any JSON passes as its result: greet, part" in out
    assert "the parameter 'who' has no description: greet" in out
    assert "Say goodbye[/red]." in out
    assert "\x1b" not in out


@pytest.mark.parametrize("name", ["api.json", "api.yaml"])
def test_convert_writes_what_can_be_read_back(run, tmp_path, name):
    (tmp_path / "tools.json").write_text(json.dumps(FUNCTIONS))
    code, out, err = run("convert", tmp_path / "tools.json", "-o", tmp_path / name)
    assert (code, out) == (0, "")
    assert f"2 tools written to {tmp_path / name}" in err
    code, out, _ = run("tools", tmp_path / name)
    assert code == 0
    assert "greet(who)" in out


def test_convert_asks_a_model_for_what_is_missing(run, tmp_path, server):
    (tmp_path / "tools.json").write_text(json.dumps(FUNCTIONS))
    words = ("convert", tmp_path / "tools.json", "-o", tmp_path / "api.json", "--model", "openai:any")
    code, _, err = run(*words, "--base-url", server.url)
    assert code == 0, err
    assert "result schema" not in err
    assert len(server.asked) == 2
    _, out, _ = run("tools", tmp_path / "api.json")
    assert "greet(who)  read" in out


def test_convert_says_which_tools_a_model_could_not_complete(run, tmp_path, server, monkeypatch):
    monkeypatch.setitem(server.said, "CheckedToolSchema", {"description": 1})
    (tmp_path / "tools.json").write_text(json.dumps(FUNCTIONS))
    words = ("convert", tmp_path / "tools.json", "-o", tmp_path / "api.json", "--model", "openai:any")
    code, _, err = run(*words, "--base-url", server.url)
    assert code == 1
    assert "greet: no result schema: " in err
    assert (tmp_path / "api.json").exists(), "what is known is written all the same"


# tools on a state ----------------------------------------------------------------------------------------------------


ROOT = Path(__file__).parents[2]

STATES = {
    "shop": {
        "now": "2025-11-03T10:15:00Z",
        "customer": {"name": "Lena Brandt", "credit": 40.0},
        "products": {"MUG-1": {"name": "Mug", "price": 9.5, "stock": 6},
                     "TEA-1": {"name": "Tea", "price": 6, "stock": 3}},
        "cart": {"TEA-1": {"name": "Tea", "quantity": 1, "amount": 6.2}},
        "orders": {"order-1": {"lines": {"MUG-1": {"name": "Mug", "quantity": 1, "amount": 14.5}}, "total": 14.5,
                               "status": "placed", "placed_at": "2025-11-01T10:15:00Z"}},
    },
    "files": {"cwd": ["workspace"],
              "tree": {"workspace": {"type": "directory",
                                     "contents": {"documents": {"type": "directory", "contents": {}},
                                                  "report.txt": {"type": "file", "content": "b\na\n"},
                                                  "old.txt": {"type": "file", "content": "a\n"}}}}},
}  # fmt: skip

MISSPELT = [
    ("shop", "for one in state.orders.values() if one.status ==", "for one in state.orders.values() if one.state =="),
    ("shop", "check: order.status == 'placed'", "check: order.staus == 'placed'"),
    ("files", "len(item.path) % 2 == 1", "len(item.paths) % 2 == 1"),
    ("files", 'path: [cwd, "-"]', 'path: [cdw, "-"]'),
]


def source(name):
    return ROOT / "examples" / name / f"{name}.openapi.yaml"


@pytest.mark.parametrize(("name", "right", "wrong"), MISSPELT, ids=[wrong for _, _, wrong in MISSPELT])
def test_each_misspelt_name_is_found(tmp_path, name, right, wrong):
    text = source(name).read_text()
    assert right in text
    file = tmp_path / "tools.yaml"
    file.write_text(text.replace(right, wrong, 1))
    try:
        found = examine_contracts(Toolkit.from_openapi(file), STATES[name])
    except ToolkitError as error:
        found = [str(error)]
    assert found


@pytest.mark.parametrize("name", STATES)
def test_nothing_is_found_in_what_is_right(name):
    assert examine_contracts(Toolkit.from_openapi(source(name)), STATES[name]) == []


def test_the_states_of_the_examples_are_enough_to_find_nothing_wrong():
    for name, case in [("shop", "order-within-credit"), ("calendar", "meet-dana"), ("order", "order-with-refund")]:
        state = read_document(source(name).with_name(f"{case}.yaml"))["state"]
        assert examine_contracts(Toolkit.from_openapi(source(name)), state) == []


TOOL = {"name": "pay", "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}}


def examined(contract, state, **more):
    return examine_contracts(Toolkit.from_tools([Tool(TOOL, contract=contract)], **more), state)


@pytest.mark.parametrize(
    ("contract", "line"),
    [
        ({"returns": "{{ state.odrers }}"}, "pay: returns: unknown key state.odrers (did you mean orders"),
        ({"returns": "{{ at(state.orders, [args.id]).sum }}"}, "pay: returns: unknown key at(state.orders, [args"),
    ],
)
def test_what_cannot_be_evaluated_is_named_by_tool_and_part(contract, line):
    state = {"orders": {"a": {"total": 1}}, "zero": 0, "many": ["x"]}
    (found,) = examined(contract, state)
    assert found.startswith(line)


PAID = {"type": "object", "properties": {"left": {"type": "integer"}}, "required": ["left"]}
STATE = {"type": "object", "properties": {"left": {"type": "integer", "minimum": 0}, "log": {"type": "array"}}}
LEFT = {"op": "replace", "path": ["left"], "value": "{{ state.left - 1 }}"}


@pytest.mark.parametrize(
    ("contract", "line"),
    [
        ({"returns": "paid"}, "its result breaks the tool's schema: expected an object"),
        ({"returns": {}}, "its result breaks the tool's schema: /left"),
        ({"returns": {"left": "{{ args.id }}"}}, "its result breaks the tool's schema: expected a number at /left"),
        ({"returns": {"left": "{{ state.log }}"}}, "its result breaks the tool's schema: expected a number at /left"),
        ({"returns": {"left": 1.5, "by": "{{ args.id }}"}}, "its result breaks the tool's schema: /left: expected"),
        ({"effects": [{"do": [{**LEFT, "value": 0.5}]}]}, "its effects break the state's schema: /left"),
        ({"returns": {"left": 1}, "effects": [{**LEFT, "value": -1}]}, "its effects break the state's schema: /left"),
        (
            {"returns": {"left": {"cases": [{"pass": "unknown"}]}}, "effects": [{**LEFT, "value": -1}]},
            "its effects break the state's schema: /left",
        ),
        ({"effects": [{**LEFT, "value": -1}]}, "its effects break the state's schema: /left"),
        ({"returns": {"left": "{{ state.left - 1 }}"}, "effects": [LEFT]}, None),
        ({"effects": [LEFT]}, None),
    ],
)
def test_what_breaks_a_declared_schema_is_found(contract, line):
    tools = [Tool(TOOL, result=PAID, contract=contract)]
    found = examine_contracts(Toolkit.from_tools(tools, state_schema=STATE), {"left": 7, "log": []})
    assert [each.startswith(f"pay: {line}") for each in found] == ([True] if line else [])


def test_an_example_that_breaks_the_rules_is_named():
    (found,) = examined({"returns": 1}, {"n": "x"}, invariants=[{"check": "state.m > 0", "error": "x"}])
    assert "invariants[0].check: state.m is undefined" in found


def test_no_call_is_tried(monkeypatch):
    monkeypatch.setattr(Contract, "open", lambda *_, **__: pytest.fail("a call was made"))
    assert examine_contracts(Toolkit.from_openapi(source("shop")), STATES["shop"]) == []


def test_on_the_command_line(tmp_path, run):
    spec, state = tmp_path / "tools.yaml", tmp_path / "state.json"
    spec.write_text(source("shop").read_text())
    state.write_text(json.dumps(STATES["shop"]))
    code, out, _ = run("tools", spec, "--state", state)
    assert code == 0
    assert "6 contracts evaluated on" in out
    spec.write_text(source("shop").read_text().replace("order.status ==", "order.staus =="))
    code, out, _ = run("tools", spec, "--state", state)
    assert code == 1
    assert "cancelOrder: requires[1].check: unknown key order.staus (did you mean status" in " ".join(out.split())
    state.write_text("[]")
    code, _, err = run("tools", spec, "--state", state)
    assert code != 0
    assert "expected an object, got list" in err
