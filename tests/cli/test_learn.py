"""`learn`: rows in, a file of contracts out, and what written contracts get wrong."""

from __future__ import annotations

import json

from gecko_graph import Toolkit
from gecko_graph.learning.observation import write_rows
from tests.learning.shop import rows, toolkit


def test_rows_become_a_file_that_is_loaded(run, tmp_path):
    spec, calls, target = tmp_path / "shop.json", tmp_path / "calls.jsonl", tmp_path / "shop.contracts.yaml"
    spec.write_text(json.dumps(toolkit().to_openapi()), encoding="utf-8")
    write_rows(calls, rows(200))
    with calls.open("a", encoding="utf-8") as more:
        more.write("no row\n")
    code, _, err = run("learn", spec, calls, "-o", target)
    assert code == 0
    assert "calls.jsonl:201" in err
    known = Toolkit.from_openapi(spec).with_contracts(target)
    assert known["buy"].contract is not None
    wrong = {"contracts": {"buy": {"effects": [], "returns": 1}}}
    written = tmp_path / "written.yaml"
    written.write_text(json.dumps(wrong), encoding="utf-8")
    code, _, err = run("learn", spec, calls, "--contracts", written, "-o", tmp_path / "other.yaml")
    assert code == 1
    assert "contradicted: buy" in err


def test_the_file_is_named_as_contracts_are(run, tmp_path):
    assert run("learn", "api.yaml", "calls.jsonl", "-o", tmp_path / "x.txt")[0] == 2
