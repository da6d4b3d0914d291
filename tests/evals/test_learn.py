"""The suite `learn`: what it counts, and a class learned from its recorded calls."""

from __future__ import annotations

from evals.bfcl.learned import OUTSIDE, add_tallies, is_held_out, tally


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
