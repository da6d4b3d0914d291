"""The suite `learn`: what it counts, and a class learned from its recorded calls."""

from __future__ import annotations

import pytest

from evals.bfcl.learned import OUTSIDE, add_tallies, tally
from evals.bfcl.observed import is_held_out
from evals.bfcl.wrong import all_wrong, chosen
from evals.costing.shop import SHOP
from evals.services.judged import try_out
from evals.services.local import phone, shop


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


def test_contracts_are_made_wrong_in_the_same_places_each_time():
    every = list(all_wrong())
    assert {one.part for one in every} == {"requires", "effects"}
    assert len(every) >= 200
    assert chosen(20, 1) == chosen(20, 1) != chosen(20, 2)


def test_rows_of_the_shop_know_what_reads_have_shown():
    if not SHOP.is_dir():
        pytest.skip("the shop lies beside the project")
    service = shop(0, 4)
    rows = service.rows(service.held[0])
    assert rows[0].before is None
    assert all(set(row.before or {}) <= {"customers", "products", "orders", "runtime_state"} for row in rows)
    assert any("shown" in (row.before or {}).get("runtime_state", {}) for row in rows)
    assert {row.status for row in rows} == {"ok", "error"}
    assert [row.args for row in service.rows(service.held[0])][:9] == [row.args for row in rows][:9]


def test_a_service_is_learned_and_its_rules_are_counted_by_kind():
    found = try_out(phone(0, 12))
    assert found["lawful_refused"] == 0
    assert found["answered"] > found["calls"] / 2
    counts = found["kinds"].values()
    assert all(one["lawful"] <= one["refuted"] <= one["fired"] <= one["rules"] for one in counts)
    assert sum(one["fired"] for one in counts)
