"""The suite `learn`: what it counts, and a class learned from its recorded calls."""

from __future__ import annotations

from evals.bfcl.learned import OUTSIDE, add_tallies, tally
from evals.bfcl.observed import is_held_out
from evals.services.s3 import SHOWN, TOOLS, VALUES, Driver, _tool, follow
from gecko_graph import Toolkit


def test_a_tally_counts_what_is_answered_and_right():
    said = [
        {"outcome": "refused", "fails": True},
        {"outcome": "refused", "fails": False},
        {"outcome": "lawful", "fails": False, "result": True, "state": True},
        {"outcome": "lawful", "fails": True},
        {"outcome": "warned", "fails": False},
        {"outcome": "unknown", "fails": False},
        {"outcome": OUTSIDE, "fails": True},
    ]
    one = tally(said)
    assert (one["calls"], one["answered"], one["right"]) == (6, 4, 2)
    assert (one["lawful_refused"], one["refusals_allowed"], one["warned_lawful"]) == (1, 1, 1)
    assert (one["whole"], one["whole_right"]) == (3, 2)
    assert add_tallies([one, one])["calls"] == 12


def test_the_forms_of_a_task_are_held_out_together():
    forms = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param")
    assert all(len({is_held_out(f"{form}_{number}") for form in forms}) == 1 for number in range(50))


def test_rows_of_a_thread_know_what_its_reads_have_shown():
    toolkit = Toolkit.from_tools(_tool(name, *about) for name, about in TOOLS.items())
    toolkit = toolkit.with_contracts({"contracts": SHOWN})

    def call(name, args):
        return "ok", {"Buckets": [{"Name": "photos"}]} if name == "list_buckets" else {}

    def thread():
        return follow(Driver(toolkit, "0:held", {key: [*some] for key, some in VALUES.items()}), call)

    rows = thread()
    assert (rows[0].tool, rows[0].before) == ("list_buckets", None)
    assert {"photos"} in [set(row.before.get("buckets", {})) for row in rows if row.before]
    assert [row.args for row in thread()] == [row.args for row in rows]
