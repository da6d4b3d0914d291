"""Simulated tools beside the real ones, call by call: the suite, and that it finds what is wrong."""

from __future__ import annotations

import json

import pytest

from evals.bfcl.drawn import placeholders
from evals.bfcl.fidelity import is_kept_out
from evals.suites import fidelity
from evals.suites.fidelity import Fidelity
from gecko_graph import Toolkit
from tests.evals.kept import kept_cases

TOOLS = [
    {"name": "add", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
    {"name": "get", "parameters": {"type": "object", "properties": {}}},
    {"name": "other", "parameters": {"type": "object", "properties": {}}},
]
RIGHT = {
    "add": {
        "requires": [{"check": "args.n > 0", "error": {"error": "n must be positive"}}],
        "effects": [{"op": "replace", "path": ["sum"], "value": "{{ state.sum + args.n }}"}],
        "returns": {"sum": "{{ state.sum }}"},
    },
    "get": {"returns": {"sum": "{{ state.sum }}"}},
}


def step(name, args, result, patch=(), raised=None):
    operations = [{"op": "replace", "path": f"/TicketAPI/{key}", "value": value} for key, value in patch]
    call = {"name": name, "args": args}
    return {"class": "TicketAPI", "call": call, "result": result, "raised": raised, "patch": operations}


CALLS = {
    "id": "multi_turn_base_1",
    "classes": ["TicketAPI"],
    "initial_state": {"TicketAPI": {"sum": 1}},
    "turns": [
        [step("add", {"n": 2}, {"sum": 3}, [("sum", 3)]), step("add", {"n": 0}, {"error": "n must be positive"})],
        [step("add", {"n": "x"}, None, raised="TypeError"), step("add", {"m": 1}, None, raised="TypeError")],
        [step("get", {}, {"sum": 3}), {"class": None, "call": {"name": "gone"}, "patch": []}],
    ],
}


def wrong(tool, **parts):
    return {**RIGHT, tool: {**RIGHT[tool], **parts}}


@pytest.fixture
def compare(run, tmp_path, monkeypatch, capsys):
    def go(contracts, *words, calls=CALLS):
        file = tmp_path / "calls.jsonl"
        file.write_text(json.dumps(calls))
        toolkit = Toolkit.from_tools(TOOLS).with_contracts({"contracts": contracts}, at="TicketAPI")
        monkeypatch.setattr(fidelity, "class_toolkit", lambda name: toolkit)
        code = run(Fidelity, "--calls", file, "--fresh", *words)
        made = [one for case in kept_cases(tmp_path) for one in case["values"]["calls"]]
        return code, [one["difference"] for one in made if not one["same"]], made, capsys.readouterr().out

    return go


def test_right_contracts_come_to_the_same(compare):
    code, differing, made, told = compare(RIGHT)
    assert (code, differing, len(made)) == (0, [], 5)
    assert "2 calls break their documents (a rehearsal's validator refuses them); the real tools take 0" in told
    assert "2 of the real errors are exceptions" in told
    assert [one["rung"] for one in made] == ["contract"] * 3 + ["validator", "contract"]
    assert sum(one["fails"] for one in made) == 3


@pytest.mark.parametrize(
    ("contracts", "found"),
    [
        (wrong("add", requires=[]), "{'sum': 3}, not {'error': 'n must be positive'}"),
        (wrong("add", effects=[]), "{'sum': 1}, not {'sum': 3}"),
        (wrong("add", effects=[], returns={"sum": "{{ state.sum + args.n }}"}), "/TicketAPI/sum: 1, not 3"),
        (wrong("get", effects=[{"op": "add", "path": ["more"], "value": 1}]), "/TicketAPI/more: 1, not None"),
        ({"add": RIGHT["add"]}, "by schema"),
    ],
)
def test_a_wrong_contract_is_found(compare, contracts, found):
    _, differing, _, told = compare(contracts)
    assert any(found in each for each in differing), differing
    shown = found if not is_kept_out(CALLS["id"]) else ""
    assert shown in told


def test_what_is_kept_out_is_counted_and_not_shown(compare):
    calls = next({**CALLS, "id": f"t_{n}"} for n in range(99) if is_kept_out(f"t_{n}"))
    code, differing, _, told = compare(wrong("get", returns={"sum": 4}), calls=calls)
    assert code == 1
    assert len(differing) == 1
    assert "times: get" not in told
    assert "DOES NOT HOLD: TicketAPI: at least 99% of the calls" in told


def drew(new_id, ids, more=()):
    return {"message_id": {"new_id": new_id}}, {"MessageAPI": {"generated_ids": [*ids], "inbox": [*more]}}


BEFORE = drew(0, [11111])[1]


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (drew(54321, [54321, 11111]), True),  # a set: any order
        (drew(54321, [11111, 54322]), False),  # the result names another one than the state holds
        (drew(5432, [11111, 5432]), False),  # another shape
        (drew(54321, [11111]), False),
        (drew(54321, [22222, 54321]), False),  # what was there before was not drawn
        (drew(54321, [11111, 54321], more=[1]), False),
    ],
)
def test_drawn_values_compare_by_place_and_shape(other, same):
    real = placeholders("send_message", *drew(67410, [11111, 67410]), BEFORE)
    assert (placeholders("send_message", *other, BEFORE) == real) is same
