"""Golden rows: what moved is named, times are none, and a part that cannot run keeps what is stored."""

from __future__ import annotations

import json

import pytest

from evals import golden, mutants
from evals.golden import Part, differences
from evals.harness.options import EvalError
from evals.mutants import Mutant, find_again, find_sites, room_of


@pytest.fixture
def stored(tmp_path, monkeypatch):
    rows = tmp_path / "golden.json"
    rows.write_text(json.dumps({"one": {"sum": "1"}, "other": {"sum": "2"}}))
    monkeypatch.setattr(golden, "ROWS", rows)
    commands = tmp_path / "commands.txt"
    commands.write_text("")
    monkeypatch.setattr(golden, "STORED", commands)

    def missing():
        raise EvalError("no data")

    monkeypatch.setattr(golden, "PARTS", {"one": lambda: Part({"sum": "3"}), "other": missing})
    return rows


def test_what_moved_fails_until_it_is_stored(stored, capsys):
    assert golden.run([]) == 1
    assert "one: sum:\n  - 1\n  + 3" in capsys.readouterr().out
    assert golden.run(["--write"]) == 0
    assert golden.run([]) == 0
    assert json.loads(stored.read_text()) == {"one": {"sum": "3"}, "other": {"sum": "2"}}, "left out, and kept"


def test_cases_are_named_and_texts_are_compared_by_line():
    part = Part({"cases / a": "aa bc", "--help": "a\nc\n"}, {"cases / a": ["first", "second"]})
    text, cases = differences({"cases / a": "aa bb", "--help": "a\nb\n"}, part)
    assert cases == "cases / a: 1 moved: second"
    assert "-b\n+c" in text


def test_a_mutant_is_found_again_in_another_file(monkeypatch):
    monkeypatch.setattr(mutants, "PACKAGE", mutants.PACKAGE / "values")
    sites = list(find_sites())
    mutant = sites[0][0]
    moved = Mutant("gecko_graph/elsewhere.py", mutant.qualname, 1, *mutant[3:])
    assert find_again(moved, [site for site in sites if room_of(site[0].file) == room_of(mutant.file)])[0] == mutant
    assert find_again(moved._replace(was="what nobody wrote"), sites) is None
