"""No command overwrites a file that it reads, nor writes two things to one file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.command import SHOP, SHOP_API, mistake

TASK = ("--task", "Buy tea", "--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1")
OVERWRITING = {
    ("run", "case.yaml", "--json", "case.yaml"): ("--json case.yaml", "FILE case.yaml"),
    ("run", "case.yaml", "--json", "./case.yaml"): ("--json case.yaml", "FILE case.yaml"),
    ("run", "case.yaml", "--json", "link.yaml"): ("--json link.yaml", "FILE case.yaml"),
    ("run", "case.yaml", "--json", "hard.yaml"): ("--json hard.yaml", "FILE case.yaml"),
    ("run", "case.yaml", "--save", "case.yaml"): ("--save case.yaml", "FILE case.yaml"),
    ("run", "case.yaml", "--json", "shop.openapi.yaml"): ("--json", "the scenario's tools shop.openapi.yaml"),
    ("run", "case.yaml", "--save", "o", "--json", "o"): ("--json o", "--save o"),
    ("run", "case.yaml", "--save", "new/../o", "--json", "o"): ("--json o", "--save new/../o"),
    ("run", "shop.openapi.yaml", *TASK, "--json", "shop.openapi.yaml"): ("--json", "FILE shop.openapi.yaml"),
    ("run", "shop.openapi.yaml", *TASK, "--save", "shop.openapi.yaml"): ("--save", "FILE shop"),
    ("run", "shop.openapi.yaml", *TASK, "--state", "state.json", "--json", "state.json"): ("--json", "--state state"),
    ("convert", "shop.openapi.yaml", "-o", "hard.openapi.yaml"): ("-o hard.openapi.yaml", "IN shop.openapi.yaml"),
}


@pytest.mark.parametrize("words", OVERWRITING, ids=" ".join)
def test_no_input_is_overwritten(run, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new").mkdir()
    shutil.copy(SHOP, "case.yaml")
    shutil.copy(SHOP_API, "shop.openapi.yaml")
    Path("state.json").write_text("{}")
    Path("link.yaml").symlink_to("case.yaml")
    os.link("case.yaml", "hard.yaml")
    os.link("shop.openapi.yaml", "hard.openapi.yaml")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    written, other = OVERWRITING[words]
    message = mistake(run(*words))
    assert message.startswith(written)
    assert other in message
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()} == before


def test_an_earlier_result_may_be_replaced(run, tmp_path):
    (tmp_path / "out.json").write_text("{}")
    assert run("run", SHOP, "--json", tmp_path / "out.json")[0] == 0
    assert '"turns"' in (tmp_path / "out.json").read_text()
