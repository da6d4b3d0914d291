"""Endpoints in trouble: what is waited for, what is told at once, and that no case is lost."""

from __future__ import annotations

import asyncio
import json

import pytest

from evals.harness import patience
from evals.harness.options import Options

from .tiny import Talk


def cases_of(out):
    told = [json.loads(line) for line in (out / "cases.jsonl").read_text().splitlines()]
    return [line for line in told if line["kind"] == "case"]


def test_an_endpoint_in_trouble_loses_no_case(run, tmp_path, endpoint):
    server = endpoint(429, 500, "garbage", 503, 429, 429, "nothing", "garbage", 500)
    assert run(Talk, "--model", "openai:m", "--base-url", server.url) == 0
    done = cases_of(tmp_path / "out")
    assert [line["status"] for line in done] == ["done"] * 8
    assert all(line["values"] == {"said": "yes"} for line in done)
    assert all(count == 10 for count in server.asked.values())


def test_an_endpoint_that_stays_away_loses_no_case_either(run, tmp_path, endpoint, capsys):
    server = endpoint(*[500] * 10_000)
    words = ("--model", "openai:m", "--base-url", server.url)
    assert run(Talk, *words, "--patience", 0.05, "--limit", 3) == 1
    assert [line["status"] for line in cases_of(tmp_path / "out")] == ["unreached"] * 3
    told = capsys.readouterr().out
    assert "Error code: 500" in told
    assert "the same command asks again" in told
    server.script.clear()
    assert run(Talk, *words, "--limit", 3) == 0
    assert "0 of" not in capsys.readouterr().err
    assert [line["status"] for line in cases_of(tmp_path / "out")][3:] == ["done"] * 3


def test_an_endpoint_that_denies_all_is_the_users_mistake(run, endpoint, capsys):
    server = endpoint(*[401] * 100)
    assert run(Talk, "--model", "openai:m", "--base-url", server.url) == 2
    assert "the model's endpoint denies every question" in capsys.readouterr().err
    assert server.asked.total() <= 8


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionResetError(), "busy"),
        (TimeoutError(), "busy"),
        (json.JSONDecodeError("no", "", 0), "garbage"),
        (TypeError("NoneType"), "garbage"),
        (NotImplementedError(), ""),
        (RuntimeError("a bug"), ""),
        (asyncio.InvalidStateError(), ""),
    ],
)
def test_what_is_worth_waiting_for(error, kind):
    assert patience.trouble_of(error) == kind


@pytest.mark.parametrize(
    ("status", "kind"), [(429, "busy"), (500, "busy"), (501, ""), (400, ""), (422, ""), (403, "denied")]
)
def test_which_statuses_are_worth_waiting_for(status, kind):
    error = RuntimeError("said so")
    error.status_code = status
    assert patience.trouble_of(error) == kind


def test_a_patient_model_is_its_class_still():
    options = Options(base_url="http://localhost")
    model = options.chat("openai:m")
    assert "ChatOpenAI" in [each.__name__ for each in type(model).__mro__]
    assert model.bind_tools([]) is not None
    assert model.with_structured_output({"title": "A", "type": "object", "properties": {}}) is not None


def test_garbage_between_other_trouble_is_no_reason_to_give_up(run, tmp_path, endpoint):
    server = endpoint(*["garbage", 500, 429] * (patience.GARBAGE_TRIES - 1))
    assert run(Talk, "--model", "openai:m", "--base-url", server.url, "--limit", 2) == 0
    assert [line["status"] for line in cases_of(tmp_path / "out")] == ["done"] * 2


def test_a_reply_without_choices_is_asked_for_again(run, tmp_path, endpoint):
    server = endpoint("no choices", "no choices")
    assert run(Talk, "--model", "openai:m", "--base-url", server.url, "--limit", 2) == 0
    assert set(server.asked.values()) == {3}


def test_an_endpoint_that_refuses_all_is_told_at_once(run, endpoint, capsys):
    server = endpoint(*[400] * 100)
    assert run(Talk, "--model", "openai:m", "--base-url", server.url) == 2
    assert "refuses every question" in capsys.readouterr().err
    assert server.asked.total() <= 8


def test_a_refused_question_of_a_case_that_goes_on_is_told(run, tmp_path, endpoint, capsys):
    server = endpoint(400)
    assert run(Insisting, "--model", "openai:m", "--base-url", server.url, "--limit", 2) == 0
    assert "in 2 cases the model's endpoint refused a question" in capsys.readouterr().out


class Insisting(Talk):
    """Asks once more."""

    async def run_case(self, case):
        try:
            return await super().run_case(case)
        except Exception:  # noqa: BLE001 - whatever the client raises for a 400
            return await super().run_case(case)
