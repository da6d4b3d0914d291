"""The suite that judges derived milestones: its cases, its oracles, and one case of each source."""

from __future__ import annotations

import pytest

pytest.importorskip("scipy")
pytest.importorskip("rouge_score")

from evals.milestones import classes, phone


def test_the_phone_s_oracle_knows_the_author_s_bad_agents():
    for name in ("home-safely", "past-reminders", "days-to-christmas"):
        scenario, good = phone.load(name), phone.converse(phone.load(name), phone.good_script(name))
        assert phone.is_success(scenario, good, good)
        bad = [phone.converse(scenario, script) for _, script in phone.bad_scripts(name)]
        assert not any(phone.is_success(scenario, good, each) for each in bad)


def test_a_script_that_goes_on_as_if_it_had_read_is_no_success():
    scenario, script = phone.load("sisters-new-number"), phone.good_script("sisters-new-number")
    good = phone.converse(scenario, script)
    unread = [{**script[0], "args": {"relation": "plumber"}}, *script[1:]]
    assert not phone.is_success(scenario, good, phone.converse(scenario, unread))


def test_changes_of_a_script_are_of_every_kind():
    kinds = {kind for kind, _ in phone.mutate(phone.good_script("home-safely"), "0")}
    kinds |= {kind for kind, _ in phone.mutate(phone.good_script("ten-kilometres"), "0")}
    assert len(kinds) == 11


def test_changes_of_a_plan_are_made_where_they_can_be():
    look, write = ({"name": name, "args": {"id": 1}, "patch": patch} for name, patch in (("a", []), ("b", [{}])))
    other = {"name": "c", "args": {"id": 5}, "patch": [{}]}
    made = dict(classes.mutate([[look, write]], [other, look], "seed", 1))
    assert {*made} <= {*classes.KINDS}
    assert [call["name"] for call in made["each look twice"][0]] == ["a", "a", "b"]
    assert made["a failing attempt before"][0][0]["name"] == "no_such_tool"
    assert classes.write_call(other) == "c(id=5)"
