"""`gecko-graph run --record`: a live run is written as a scenario that plays without a model."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.cli.command import SHOP_API, mistake
from tests.live_library import STATE, Live, write_case


def test_a_recorded_task_plays_without_a_model(run, tmp_path):
    write_case(tmp_path, ["Lend me Dune."])
    (tmp_path / "state.yaml").write_text(yaml.safe_dump(STATE))
    task = [tmp_path / "library.yaml", "--task", "Lend me Dune.", "--state", tmp_path / "state.yaml"]
    with Live() as live:
        live.replies["Judgement"] = {"items": [{"id": "item-1", "status": "success"}]}
        words = ["run", *task, "--model", "openai:m", "--base-url", live.url, "--record", tmp_path / "case1.yaml"]
        code, out, err = run(*words, "--json", tmp_path / "live.json")
    assert code == 0, out + err
    line = next(line for line in out.splitlines() if line.startswith("recorded"))
    assert line.endswith(f"gecko-graph run {tmp_path / 'case1.yaml'}"), line
    assert "differs" not in out
    assert run("run", tmp_path / "case1.yaml", "--json", tmp_path / "played.json")[0] == 0
    live_run, played = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("live", "played"))
    for key in ("plan", "answer", "checklist"):
        assert live_run["turns"][0]["rehearsal"][key] == played["turns"][0]["rehearsal"][key]
    assert live_run["turns"][0]["task_state"] == played["turns"][0]["task_state"]
    assert yaml.safe_load((tmp_path / "case1.yaml").read_text())["tools"] == "library.yaml"
    assert "exists already" in mistake(run(*words))
    assert "is the same file as" in mistake(run(*words[:-1], tmp_path / "library.yaml", "--force"))


def test_nothing_is_written_where_the_model_does_not_answer(run, server, tmp_path):
    server.fails = (429, b'{"error": {"message": "You exceeded your current quota"}}')
    words = ["run", SHOP_API, "--task", "Buy tea.", "--model", "openai:m", "--base-url", server.url]
    code, out, _ = run(*words, "--record", tmp_path / "case.yaml")
    assert code == 3
    assert "case.yaml is not written" in out
    assert not (tmp_path / "case.yaml").exists()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["case.yaml", "--force"], "--record FILE"),
        (["case.yaml", "--record", "x.txt"], ".yaml"),
        (["c.yaml", "--record", "no/x.yaml"], "written"),
        (["c.yaml", "--record", "x.yaml", "--resume", "--save", "x.sqlite"], "leave --resume out"),
        (["c.yaml", "--record", "x.yaml", "--server", "http://127.0.0.1:9"], "leave --server out"),
        (["c.yaml", "--record", "x.yaml", "--auth", "Key=env:KEY"], "leave --auth out"),
        (["c.yaml", "--record", "x.yaml", "--yes"], "leave --yes out"),
    ],
)
def test_mistakes_are_named(run, words, named):
    code, _, err = run("run", *words)
    assert code == 2
    assert named in err
