"""The suite `validation`: Table 1 from recorded calls, with and without a model."""

from __future__ import annotations

import asyncio
from argparse import Namespace

import pytest

from evals.harness.figures import Case, Record
from evals.harness.options import Options
from evals.suites.validation import Row, Rules, Validation, summary_of
from gecko_graph.models.recorded import RecordedModel

HYPOT = {"name": "math.hypot", "parameters": {"type": "dict", "properties": {"x": {"type": "float"}}}}


def row(*calls, underscored=False, functions=(HYPOT,), label="CORRECT", sublabel=None):
    task = {"functions": functions, "question": [{"role": "user", "content": "How long?"}]}
    official = {
        "valid": label.startswith("CORRECT"),
        "error_type": None if label.startswith("CORRECT") else "value_error",
    }
    answer = {
        "calls": [{"name": name, "arguments": args} for name, args in calls],
        "label": label,
        "sublabel": sublabel,
    }
    tools = RULES.tools_of(task, underscored=underscored)
    return Row({**answer, "official": official, "task_id": "t", "model": "m"}, task, tools)


RULES = Rules()


def records(*pairs):
    """Records of (label, refused by)."""
    kinds = {"CORRECT": "valid", "CORRECT_SCHEMA_VIOLATION": "valid", "SYNTACTIC": "syntactic", "VALUE": "semantic"}
    for number, (label, by) in enumerate(pairs):
        facts = {"label": label, "kind": kinds[label], "model": "m", "error": "" if kinds[label] == "valid" else "e"}
        values = {"refused": bool(by), "by": by, "why": "because", "cause": "a cause"}
        yield Record(str(number), "simple", facts, "done", "", 0.0, "none", values)


@pytest.mark.parametrize(
    ("pairs", "holds"),
    [
        ([("CORRECT", ""), ("SYNTACTIC", "rule"), ("CORRECT_SCHEMA_VIOLATION", "rule"), ("VALUE", "")], [True] * 3),
        ([("CORRECT", "rule"), ("SYNTACTIC", "rule")], [False, True, True]),
        ([("CORRECT", "model"), ("SYNTACTIC", "rule")], [True] * 3),
        ([("CORRECT", ""), ("SYNTACTIC", "")], [True, False, True]),
        ([("CORRECT_SCHEMA_VIOLATION", "rule")] * 76, [True, True, False]),
    ],
)
def test_a_broken_rule_is_noticed_and_a_model_is_not_blamed_on_the_rules(pairs, holds):
    told = summary_of(list(records(*pairs)), asked=True, all_asked=True)
    assert [each.holds for each in told.expectations] == holds


def with_model(monkeypatch, *replies):
    """Options whose validator says these things, in this order."""
    model = RecordedModel(turns=[{"validator": list(replies)}])
    monkeypatch.setattr("evals.harness.options.Options.speakers", lambda self, planner=None: {"validator": model})


PROBLEM = {"problems": [{"argument": "x", "problem": "a length is positive"}]}


@pytest.fixture
def suite(monkeypatch):
    """A suite with a validator that finds a problem, and what it is asked about."""

    def make(ask, *replies):
        with_model(monkeypatch, *replies)
        return Validation(Options(own=Namespace(ask=ask)))

    return make


async def ran(suite, one):
    return await suite.run_case(Case("c", one))


@pytest.mark.parametrize(
    ("ask", "label", "sublabel", "by"),
    [
        ("errors", "VALUE", "value", "model"),
        ("errors", "CORRECT", None, ""),
        ("all", "CORRECT", None, "model"),
        ("all", "VALUE", "wrong_count", ""),
    ],
)
def test_whom_the_model_is_asked_about(suite, ask, label, sublabel, by):
    one = row(("math.hypot", {"x": -1.5}), label=label, sublabel=sublabel)
    values = asyncio.run(ran(suite(ask, PROBLEM), one))
    assert (values["by"], values["refused"]) == (by, bool(by))
    assert ("usage" in values) == bool(by)
    assert not by or "a length is positive" in values["why"]
