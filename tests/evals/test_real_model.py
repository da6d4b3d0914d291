"""The suite `real_model`: its flows on a server that only says yes, and replies of the real model, replayed."""

from __future__ import annotations

import argparse
import gzip
import json
import re
import threading
from itertools import product
from pathlib import Path

import pytest
from langchain_core.decisions import Noul
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGeneration, ChatResult

from evals.harness.figures import Record
from evals.harness.options import Options
from evals.real_model.flows import FLOWS
from evals.real_model.heard import CLASSES, as_message, find_kind, find_reason
from evals.suites.real_model import RealModel
from gecko_graph import ChatDecisionModel, Models
from gecko_graph.errors import RunFailure
from gecko_graph.models.answer import answer
from gecko_graph.models.ask import Ask, PlannerAsk, QuestionId
from gecko_graph.models.decisions import ROLES as DECIDED
from gecko_graph.models.prompts import variables_of
from gecko_graph.state import ROLES
from gecko_graph.training.call_texts import read_said
from gecko_graph.training.shapes import ROW_ERRORS, reason_of
from tests.evals.endpoint import Endpoint

FIXTURE = Path(__file__).parents[1] / "fixtures" / "real_replies.jsonl.gz"
ROWS = [json.loads(line) for line in gzip.decompress(FIXTURE.read_bytes()).splitlines()]


DECIDED_ROWS = [row for row in ROWS if row["reply"] is None and row["role"] in DECIDED]
"""Of decision models that are made of the real one."""


class Said(BaseChatModel):
    """A model that says what the real one has said, or raises what its client has raised."""

    row: dict
    logprobs: bool = False

    @property
    def _llm_type(self):
        return "said"

    def bind_tools(self, tools, **kwargs):
        return self

    def with_structured_output(self, schema, **kwargs):
        raise NotImplementedError

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        if "content" not in self.row:
            raise RunFailure(self.row["error"])
        return ChatResult(generations=[ChatGeneration(message=as_message(self.row))])


WHAT = ("content", "tool_calls", "error")
BARE = {"finish": "stop", "tool_calls": [], "invalid_tool_calls": []}


def test_replies_of_all_roles_and_of_many_kinds_are_kept():
    assert {row["role"] for row in ROWS if row["reply"]} == {*ROLES} - {"planner", "user"}
    assert len(ROWS) >= 300
    assert {row["kind"] for row in ROWS} >= {"read", "cut off", "error", "prose", "another shape"}
    assert len({(row["role"], row["reply"], json.dumps([*map(row.get, WHAT)])) for row in ROWS}) == len(ROWS)


def test_each_is_read_or_refused_with_a_reason_and_as_it_was():
    for row in ROWS:
        assert find_kind(row) == row["kind"]
        if "content" in row and row["kind"] not in ("read", "words", "calls"):
            assert "\n" not in find_reason(row)
            assert find_reason(row) or row["reply"] is None


def test_each_cut_off_at_other_places_is_read_or_refused_with_a_reason():
    """The model mostly repeats itself until its limit: a lower one would have cut it off here."""
    for row in (row for row in ROWS if row.get("content")):
        for end in range(0, len(row["content"]), 5):
            cut = {**row, "content": row["content"][:end]}
            assert "\n" not in find_reason(cut)
            assert find_kind(cut) != "other"


def test_the_client_makes_a_value_or_a_reason_of_each():
    for row in ROWS:
        variables = dict.fromkeys(variables_of(row["role"]), "x")
        ask = PlannerAsk([], [], QuestionId(), role=row["role"])
        if row["reply"]:
            ask = Ask(row["role"], variables, CLASSES[row["reply"]], QuestionId(), ids=tuple(row["ids"]))
        (reply,) = answer([ask], Models(**{row["role"]: Said(row=row)}))
        assert (reply.value is None) == bool(reply.failure)


@pytest.mark.parametrize("logprobs", [True, False])
def test_a_decision_model_made_of_it_gives_a_probability_or_none(logprobs):
    """It mostly begins with another word than yes or no: the logprobs say how likely those were."""
    found = []
    for row in DECIDED_ROWS:
        said = {key: each for key, each in row.items() if logprobs or key != "logprobs"}
        model = ChatDecisionModel(Said(row=said, logprobs=logprobs), samples=2)
        answers = model.invoke({"state": "x", "questions": {"q": Noul(instructions="Is it?")}}).nouls
        assert bool(answers) == (logprobs and "logprobs" in row)
        found += [answers["q"].noul] if answers else []
    assert all(0.2 < p < 0.8 for p in found)
    assert len(found) == (sum("logprobs" in row for row in DECIDED_ROWS) if logprobs else 0)


def test_what_it_repeats_of_its_prompt_is_no_answer_of_any_kind():
    repeated = [
        row["content"] for row in ROWS if row["kind"] == "prose" and re.search(r"<tool-\w{8}>\s*{", row["content"])
    ]
    assert repeated
    for content, reply in product(repeated, CLASSES):
        assert "no JSON object" in find_reason({"reply": reply, "ids": [], "content": content, **BARE})


def test_calls_in_what_was_said_are_read_or_refused_with_a_reason():
    for row in (row for row in ROWS if row["reply"] is None and "content" in row):
        reason = ""
        try:
            read_said({"content": row["content"]})
        except ROW_ERRORS as error:
            reason = reason_of(error)
        assert "\n" not in reason


def options(tmp_path, **own):
    return Options(out=tmp_path, own=argparse.Namespace(repeats=1, environment=None, address=None, tokens=128, **own))


@pytest.mark.parametrize("group", FLOWS)
def test_a_server_that_only_says_yes_ends_each_flow_with_data(group, tmp_path):
    with Endpoint([]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        given = options(tmp_path)
        given.own.address = server.url
        suite = RealModel(given)
        cases = [each for each in suite.cases() if each.group == group]
        records = []
        for case in [each for each in cases if group != "question" or each.data[0] in ("judge", "simulator")]:
            values = suite.run_case(case)
            assert (values["silent"], values["lost"], values["false_done"]) == ([], 0, 0)
            records.append(Record(case.id, group, {}, "done", "", 0.1, "none", values))
        server.shutdown()
    held = {each.text: each.holds for each in suite.summarise(records).expectations}
    assert [text for text, holds in held.items() if not holds] == ["every output has its real perplexity"] * (
        group == "probe"
    )
