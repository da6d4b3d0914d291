"""The agent on the development server: a run that is cancelled, queued, interrupted or rolled back pays once."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.studio import ask

pytestmark = pytest.mark.slow

TASK = {
    "messages": [{"role": "user", "content": "Pay ann", "id": "m1"}],
    "task_state": {},
    "checklist": [{"check": "calls"}],
}


class Talk:
    """One thread on the server, whose agent has asked for approval."""

    def __init__(self, url: str, log: Path, graph: str) -> None:
        self.thread, self.graph, self.log = f"{url}/threads/{ask(f'{url}/threads', {})['thread_id']}", graph, log
        self.before = len(log.read_text().split()) if log.exists() else 0
        (asked,) = self.wait(input=TASK)["__interrupt__"]
        self.ok = {"resume": {"id": asked["value"]["id"], "decisions": [{"type": "approve"}]}}

    def wait(self, **body: Any) -> Any:
        return ask(f"{self.thread}/runs/wait", {"assistant_id": self.graph, **body})

    def start(self, **body: Any) -> str:
        return ask(f"{self.thread}/runs", {"assistant_id": self.graph, **body})["run_id"]

    def paid(self) -> int:
        return len(self.log.read_text().split()) - self.before if self.log.exists() else 0

    def until_paying(self) -> None:
        deadline = time.monotonic() + 20
        while not self.paid():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def until_idle(self) -> Any:
        deadline = time.monotonic() + 30
        while (state := ask(self.thread))["status"] == "busy":
            assert time.monotonic() < deadline
            time.sleep(0.1)
        return state


def words_of(run: Any) -> list[str]:
    return run["__interrupt__"][0]["value"]["review_configs"][0]["allowed_decisions"]


@pytest.fixture
def talk(studio, studio_folder, graph) -> Talk:
    return Talk(studio, studio_folder / "log", graph)


DOUBT = ["happened", "make_now", "skip"]


@pytest.mark.parametrize(("graph", "action"), [("payer", "interrupt"), ("embedded", "rollback")])
def test_a_run_that_is_cancelled_in_the_call_pays_once(talk, action):
    run = talk.start(command=talk.ok)
    talk.until_paying()
    ask(f"{talk.thread}/runs/{run}/cancel?wait=true&action={action}", {})
    talk.until_idle()
    again = talk.wait(input=None) if action == "interrupt" else talk.wait(input=TASK)
    assert words_of(again) == DOUBT
    assert words_of(talk.wait(command=talk.ok)) == DOUBT
    assert talk.paid() == 1


@pytest.mark.parametrize(
    ("graph", "strategy"),
    [("payer", "enqueue"), ("embedded", "interrupt"), ("payer", "rollback"), ("embedded", "reject")],
)
def test_an_approval_that_is_sent_again_while_the_call_is_under_way_pays_once(talk, strategy):
    talk.start(command=talk.ok)
    talk.until_paying()

    def resend() -> None:
        try:
            talk.wait(command=talk.ok, multitask_strategy=strategy)
        except HTTPError as refused:  # by `reject`
            refused.close()

    second = Thread(target=resend)
    second.start()
    second.join(30)
    talk.until_idle()
    last = talk.wait(input=TASK)
    assert talk.paid() == 1
    assert last.get("execution", {}).get("status") == "done" or words_of(last) == DOUBT, last
