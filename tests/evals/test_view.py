"""The suite `view`: what it takes for touched, how it pads, how it reads a view back, and a slice of the tasks."""

from __future__ import annotations

import json

import pytest

from evals.bfcl.influence import Touched, touched
from evals.bfcl.padding import ALIKE, Padding
from evals.bfcl.shown import CUT, Shown, holds, names, read
from evals.suites.view import Views
from gecko_graph.models.view.view import view

pytest.importorskip("bfcl_eval", reason="the official package is not installed")

from evals.bfcl.classes import Classes

FILES = {
    "GorillaFileSystem": {
        "root": {
            "home": {
                "type": "directory",
                "contents": {
                    "a.txt": {"type": "file", "content": "one two"},
                    "b.txt": {"type": "file", "content": "three"},
                    "docs": {"type": "directory", "contents": {"a.txt": {"type": "file", "content": "other"}}},
                },
            }
        }
    }
}
TICKETS = {
    "TicketAPI": {
        "ticket_queue": [
            {"id": 1, "title": "a", "description": "x", "status": "Open", "priority": 2, "created_by": "ann"}
        ],
        "ticket_counter": 2,
        "current_user": "ann",
    }
}


def places(config, name, **args):
    real = Classes(list(config), config)
    return {
        ("/".join(map(str, each.path)), each.how)
        for each in touched(real, real.initial_state, {"call": name, "args": args})
    }


def test_reading_a_file_touches_its_text_and_where_one_is():
    home = "GorillaFileSystem/tree/home/contents"
    found = places(FILES, "cat", file_name="a.txt")
    assert (f"{home}/a.txt/content", "value") in found
    assert not any("b.txt/content" in path or "docs/contents" in path for path, _ in found)


def test_listing_touches_names_and_no_texts():
    home = "GorillaFileSystem/tree/home/contents"
    found = places(FILES, "ls")
    assert {(f"{home}/{name}", "member") for name in ("a.txt", "b.txt", "docs")} <= found
    assert not any(path.endswith("content") for path, _ in found)


def test_making_a_folder_touches_where_it_is_put():
    assert ("GorillaFileSystem/tree/home/contents", "container") in places(FILES, "mkdir", dir_name="new")


def test_a_ticket_is_found_by_its_id_and_changed_by_its_owner():
    found = places(TICKETS, "close_ticket", ticket_id=1)
    assert {("TicketAPI/ticket_queue/0/id", "value"), ("TicketAPI/ticket_queue/0/status", "value")} <= found
    assert ("TicketAPI/ticket_queue/0/title", "value") not in found


def test_the_order_of_keys_and_what_is_only_looked_at_do_not_count():
    assert places({"MathAPI": {}}, "add", a=1, b=2) == set()


def test_a_padded_state_holds_the_tasks_own():
    real = Classes(["GorillaFileSystem", "TicketAPI"], {**FILES, **TICKETS})
    state = real.initial_state
    padding = Padding(state, size=100_000, seed=3)
    assert 97_000 < len(json.dumps(padding.state)) < 104_000
    assert padding.state == Padding(state, size=100_000, seed=3).state != Padding(state, size=100_000, seed=4).state
    queue = padding.state["TicketAPI"]["ticket_queue"]
    assert len(queue) == ALIKE + 1
    assert padding.moved(("TicketAPI", "ticket_queue", 0, "id")) == ("TicketAPI", "ticket_queue", ALIKE // 2, "id")
    assert queue[ALIKE // 2] == state["TicketAPI"]["ticket_queue"][0]
    assert padding.state["GorillaFileSystem"]["cwd"] == state["GorillaFileSystem"]["cwd"]
    home = padding.state["GorillaFileSystem"]["tree"]["home"]["contents"]
    assert home.items() >= state["GorillaFileSystem"]["tree"]["home"]["contents"].items()
    assert len(home) > 20


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
    assert shown.entries["text"] is CUT
    assert not holds(shown, ["text"], value="start")
    assert holds(shown, ["orders", "12", "price"], value=1.5)
    assert not holds(shown, ["orders", "12", "open"], value=1)
    assert holds(shown, ["orders", "12", "none"], value=None)
    assert names(shown, ["orders", "13"])
    assert not names(shown, ["orders", "15"])
    assert holds(shown, ["queue", 4, "id"], value=5)
    assert not holds(shown, ["queue", 0], value={})
    assert names(shown, ["folded", "x"])
    assert not names(shown, ["list", "type"])
    assert holds(shown, ["plain", 1], value=2)
    assert holds(shown, ["plain"], value=[1, 2])


@pytest.mark.parametrize("text", ["", "{", '{"a" 1}', "nonsense", '{"a": 1} x', "[1 2]"])
def test_what_is_no_view_is_not_read(text):
    with pytest.raises(ValueError, match="no view"):
        read(text)


def test_every_real_view_can_be_read_and_a_left_out_place_is_a_miss():
    state = {"rows": {f"r{n}": {"id": n, "text": "lorem ipsum " * 4} for n in range(300)}, "user": "ann"}
    shown = read(view(state, focus=["r7"], budget=1_500))
    assert isinstance(shown, Shown)
    assert holds(shown, ["rows", "r7", "id"], value=7)
    held = sum(holds(shown, ["rows", f"r{n}", "id"], value=n) for n in range(300))
    assert 0 < held < 40


def test_a_slice_of_the_suite(run, shared_data, tmp_path):
    assert run(Views, "--only", "multi_turn_base_5?", "--limit", 1, "--json", tmp_path / "told.json") == 0
    told = json.loads((tmp_path / "told.json").read_text())
    *_, whole = told["figures"][0]["rows"]
    assert whole[0] == "all"
    assert whole[1]["n"] > 2


def test_a_budget_that_is_too_small_misses_and_says_so(run, shared_data, tmp_path, capsys):
    assert run(Views, "--only", "multi_turn_base_11?", "--limit", 1, "--budget", 500, "--size", 30_000) == 1
    told = capsys.readouterr().out
    assert "DOES NOT HOLD" in told
    assert "places missed:" in told


def test_options_that_make_no_sense(run, capsys):
    assert run(Views, "--budget", 20) == 2
    assert run(Views, "--category", "multi_turn_long") == 2
    assert "multi_turn_base" in capsys.readouterr().err


def test_touched_places_are_told_once():
    real = Classes(list(TICKETS), TICKETS)
    found = touched(real, real.initial_state, {"call": "get_ticket", "args": {"ticket_id": 1}})
    assert len(found) == len(set(found))
    assert all(isinstance(each, Touched) for each in found)
