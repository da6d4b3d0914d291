"""The clock of an evaluation: what is not its own fault does not end it, and what is does."""

from __future__ import annotations

import time

import pytest

from gecko_graph.contracts.language.expression import Expression, Scope
from gecko_graph.errors import EvaluationFailed

CHECK = Expression.compile("state.a == 1", names=["state"], where="test")


def burn(seconds):
    start = time.thread_time()
    while time.thread_time() - start < seconds:
        pass


def test_one_pause_as_of_a_collection_of_garbage_is_no_fault_of_the_evaluation_s():
    scope = Scope({"state": {"a": 1}})
    burn(0.25)
    assert CHECK.test(scope)
    burn(0.05)
    with pytest.raises(EvaluationFailed, match="takes longer than"):
        CHECK.test(scope)
    assert CHECK.is_true(scope), "the next evaluation has time of its own"


def test_time_that_others_used_does_not_count():
    scope = Scope({"state": {"a": 1}})
    for _ in range(2):
        time.sleep(0.25)
        assert CHECK.test(scope)
