"""Endpoints in trouble: what is waited for, what is told at once, and that no case is lost."""

from __future__ import annotations

from .kept import kept_cases
from .tiny import Talk


def test_an_endpoint_in_trouble_loses_no_case(run, tmp_path, endpoint):
    server = endpoint(429, 500, 503, 429)
    assert run(Talk, "--model", "openai:m", "--base-url", server.url) == 0
    done = kept_cases(tmp_path)
    assert [line["status"] for line in done] == ["done"] * 8
    assert all(line["values"] == {"said": "yes"} for line in done)
    assert all(count == 5 for count in server.asked.values())


def test_an_endpoint_that_stays_away_loses_no_case_either(run, tmp_path, endpoint, capsys):
    server = endpoint(*[500] * 10_000)
    words = ("--model", "openai:m", "--base-url", server.url)
    assert run(Talk, *words, "--patience", 0.05, "--limit", 3) == 1
    assert [line["status"] for line in kept_cases(tmp_path)] == ["unreached"] * 3
    told = capsys.readouterr().out
    assert "Error code: 500" in told
    assert "the same command asks again" in told
    server.script.clear()
    assert run(Talk, *words, "--limit", 3) == 0
    assert [line["status"] for line in kept_cases(tmp_path)] == ["done"] * 3


def test_a_run_that_is_begun_again_asks_no_question_twice(run, tmp_path, endpoint):
    server = endpoint()
    words = ("--model", "openai:m", "--base-url", server.url)
    assert run(Talk, *words, "--limit", 5) == run(Talk, *words) == run(Talk, *words) == 0
    assert [line["values"] for line in kept_cases(tmp_path)] == [{"said": "yes"}] * 8
    assert set(server.asked.values()) == {1}
    assert run(Talk, *words, "--fresh") == 0
    assert set(server.asked.values()) == {2}
