"""The suite `view`: how it pads, how it reads a view back, what a call changes, and a slice of the tasks."""

from __future__ import annotations

import json

import pytest

from evals.suites.view import ALIKE, LEFT_OUT, Padding, Views, changed, holds, looks, read
from gecko_graph.models.view import view
from tests.evals.kept import read_summary

FOLDER = {"a.txt": {"type": "file", "content": "one two"}, "docs": {"type": "directory", "contents": {}}}
STATE = {
    "GorillaFileSystem": {"tree": {"home": {"type": "directory", "contents": FOLDER}}, "cwd": ["home"]},
    "TicketAPI": {"ticket_queue": [{"id": 1, "title": "a", "priority": 2}], "ticket_counter": 2},
}


def test_a_padded_state_holds_the_tasks_own():
    padding = Padding(STATE, size=100_000, seed=3)
    assert 97_000 < len(json.dumps(padding.state)) < 104_000
    assert padding.state == Padding(STATE, size=100_000, seed=3).state != Padding(STATE, size=100_000, seed=4).state
    queue = padding.state["TicketAPI"]["ticket_queue"]
    assert len(queue) == ALIKE + 1
    assert padding.moved(("TicketAPI", "ticket_queue", 0, "id")) == ("TicketAPI", "ticket_queue", ALIKE // 2, "id")
    assert queue[ALIKE // 2] == STATE["TicketAPI"]["ticket_queue"][0]
    assert padding.state["GorillaFileSystem"]["cwd"] == ["home"]
    home = padding.state["GorillaFileSystem"]["tree"]["home"]["contents"]
    assert home.items() >= FOLDER.items()
    assert len(home) > 20


def test_a_call_changes_what_it_overwrites_and_the_container_of_what_it_adds():
    queue = "/TicketAPI/ticket_queue"
    patch = [
        {"op": "add", "path": f"{queue}/-", "value": {"id": 2}},
        {"op": "replace", "path": "/TicketAPI/ticket_counter", "value": 3},
        {"op": "remove", "path": f"{queue}/0"},
    ]
    assert list(changed(STATE, patch)) == [
        ("TicketAPI", "ticket_queue"), ("TicketAPI", "ticket_counter"), ("TicketAPI", "ticket_queue", 0)
    ]  # fmt: skip


VIEW = """{
  "user": "ann", "text": "start" … 900 of 1,200 characters left out … "end",
  "orders": {"12": {"price": 1.5, "open": true, "none": null}, … 3 more keys (of 4): "13", "14", …},
  "queue": [… items 0 to 3 (of 9), 4: {"id": 5}, … items 5 to 8 (of 9)],
  "folded": {… 12 keys: "x", "y", …}, "list": [… 21 items, the first with "type"], "plain": [1, 2]
}"""


def test_a_view_is_read_back():
    shown = read(VIEW)
    assert holds(shown, ["user"], value="ann")
    assert not holds(shown, ["user"], value="bob")
    assert shown["text"] == LEFT_OUT
    assert not holds(shown, ["text"], value="start")
    assert holds(shown, ["orders", "12", "price"], value=1.5)
    assert not holds(shown, ["orders", "12", "open"], value=1)
    assert holds(shown, ["orders", "12", "none"], value=None)
    assert holds(shown, ["queue", 4, "id"], value=5)
    assert not holds(shown, ["queue", 0], value={})
    assert not holds(shown, ["folded", "x"], value={})
    assert holds(shown, ["plain", 1], value=2)
    assert holds(shown, ["plain"], value=[1, 2])


@pytest.mark.parametrize("text", ["", "{", '{"a" 1}', "nonsense", '{"a": 1} x', "[1 2]"])
def test_what_is_no_view_is_not_read(text):
    with pytest.raises(ValueError, match="column"):
        read(text)


def test_every_real_view_can_be_read_and_a_left_out_place_is_a_miss():
    state = {"rows": {f"r{n}": {"id": n, "text": "lorem ipsum " * 4} for n in range(300)}, "user": "ann"}
    shown = read(view(state, focus=["r7"], budget=1_500))
    assert set(shown) == {"rows", "user"}
    assert holds(shown, ["rows", "r7", "id"], value=7)
    held = sum(holds(shown, ["rows", f"r{n}", "id"], value=n) for n in range(300))
    assert 0 < held < 40


def test_a_view_holds_what_real_calls_change(read_jsonl):
    tasks = read_jsonl("bfcl_multiturn_calls.jsonl.gz")[::24]
    calls = [call for task in tasks for call in looks(task, seed=0, budget=12_000)]
    lacking = [each for call in calls for each in call["missed"]]
    assert len(calls) > 80
    assert len(lacking) <= 0.01 * len(calls), lacking


def test_a_slice_of_the_suite(run, shared_data, tmp_path):
    assert run(Views, "--only", "multi_turn_base_5?", "--limit", 1) == 0
    told = read_summary(tmp_path)
    *_, whole = told["figures"][0]["rows"]
    assert whole[0] == "all"
    assert whole[1]["n"] > 2


def test_a_budget_that_is_too_small_misses_and_says_so(run, shared_data, capsys):
    assert run(Views, "--only", "multi_turn_base_11?", "--limit", 1, "--budget", 500) == 1
    assert "DOES NOT HOLD" in capsys.readouterr().out
