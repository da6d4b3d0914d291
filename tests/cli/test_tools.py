"""tools and convert; `tools --state` tries every contract on an example of the task state."""

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
    for words, code in (("needs_user accepted", 0), ("failed accepted", 1), ("accepted needs_user", 1), ("", 1)):
        assert exit_code([{"rehearsal": {"verdict": {"status": word}}} for word in words.split()]) == code


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


def test_convert_asks_a_model_for_what_is_missing_and_says_what_it_could_not_complete(run, tmp_path, server):
    (tmp_path / "tools.json").write_text(json.dumps(FUNCTIONS))
    words = ("convert", tmp_path / "tools.json", "-o", tmp_path / "api.json", "--model", "openai:any")
    code, _, err = run(*words, "--base-url", server.url)
    assert (code, "result schema" in err, len(server.asked)) == (0, False, 2)
    assert "greet(who)  read" in run("tools", tmp_path / "api.json")[1]
    server.said["CheckedToolSchema"] = {"description": 1}
    code, _, err = run(*words, "--base-url", server.url)
    assert code == 1
    assert "greet: no result schema: " in err
    assert (tmp_path / "api.json").exists(), "what is known is written all the same"


# tools on a state ----------------------------------------------------------------------------------------------------


ROOT = Path(__file__).parents[2]

MISSPELT = [
    ("shop", "for one in state.orders.values() if one.status ==", "for one in state.orders.values() if one.state =="),
    ("shop", "check: order.status == 'placed'", "check: order.staus == 'placed'"),
    ("files", "len(item.path) % 2 == 1", "len(item.paths) % 2 == 1"),
    ("files", 'path: [cwd, "-"]', 'path: [cdw, "-"]'),
]


CASES = {
    "shop": "cancel-the-mug.gecko",
    "files": "file-the-report",
    "calendar": "meet-dana",
    "order": "order-with-refund",
}


def source(name):
    return ROOT / "examples" / name / f"{name}.openapi.yaml"


def state_of(name):
    return read_document(source(name).with_name(f"{CASES[name]}.yaml"))["state"]


@pytest.mark.parametrize(("name", "right", "wrong"), MISSPELT, ids=[wrong for _, _, wrong in MISSPELT])
def test_each_misspelt_name_is_found(tmp_path, name, right, wrong):
    text = source(name).read_text()
    assert right in text
    file = tmp_path / "tools.yaml"
    file.write_text(text.replace(right, wrong, 1))
    try:
        found = examine_contracts(Toolkit.from_openapi(file), state_of(name))
    except ToolkitError as error:
        found = [str(error)]
    assert found


def test_nothing_is_found_in_what_is_right_and_no_call_is_tried(monkeypatch):
    monkeypatch.setattr(Contract, "open", lambda *_, **__: pytest.fail("a call was made"))
    for name in CASES:
        assert examine_contracts(Toolkit.from_openapi(source(name)), state_of(name)) == []


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
    (found,) = examined({"returns": 1}, {"n": "x"}, invariants=[{"check": "state.m > 0", "error": "x"}])
    assert "invariants[0].check: state.m is undefined" in found


PAID = {"type": "object", "properties": {"left": {"type": "integer"}}, "required": ["left"]}
STATE = {"type": "object", "properties": {"left": {"type": "integer", "minimum": 0}, "log": {"type": "array"}}}
LEFT = {"op": "replace", "path": ["left"], "value": "{{ state.left - 1 }}"}


@pytest.mark.parametrize(
    ("contract", "line"),
    [
        ({"returns": "paid"}, "its result breaks the tool's schema: expected an object"),
        ({"returns": {}}, "its result breaks the tool's schema: /left"),
        ({"returns": {"left": "{{ state.log }}"}}, "its result breaks the tool's schema: expected a number at /left"),
        ({"returns": {"left": 1.5, "by": "{{ args.id }}"}}, "its result breaks the tool's schema: /left: expected"),
        ({"effects": [{"do": [{**LEFT, "value": 0.5}]}]}, "its effects break the state's schema: /left"),
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


def test_on_the_command_line(tmp_path, run):
    spec, state = tmp_path / "tools.yaml", tmp_path / "state.json"
    spec.write_text(source("shop").read_text())
    state.write_text(json.dumps(state_of("shop")))
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
