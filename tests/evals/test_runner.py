"""The runner: choosing cases, failures, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals import __main__ as main
from evals.harness.figures import Case
from evals.harness.options import EvalError
from evals.harness.runner import select

from .kept import kept_cases
from .tiny import Tiny

TINY = "tests.evals.tiny:Tiny"


def some_cases(count):
    return [Case(f"{'ab'[number % 2]}_{number}", group="ab"[number % 2]) for number in range(count)]


@given(st.integers(0, 40), st.integers(1, 45), st.integers(1, 45), st.integers(0, 3))
def test_a_smaller_limit_draws_from_a_larger_ones_cases_in_order(count, one, other, seed):
    cases = some_cases(count)
    small, large = (select(iter(cases), limit=limit, seed=seed) for limit in sorted([one, other]))
    assert [case for case in cases if case in large.cases] == large.cases
    assert all(case in large.cases for case in small.cases)
    assert len(large.cases) == min(max(one, other), count)
    assert small.of == count


def test_only_is_of_ids_and_of_groups():
    cases = some_cases(6)
    assert [case.id for case in select(cases, only=["a_*", "b_1"]).cases] == ["a_0", "b_1", "a_2", "a_4"]
    assert [case.id for case in select(cases, only=["b"]).cases] == ["b_1", "b_3", "b_5"]
    with pytest.raises(EvalError, match="no case matches --only c: patterns are for ids"):
        select(cases, only=["c"])


def test_a_failing_case_is_counted_with_its_reason_and_its_place(run, tmp_path, capsys):
    assert run(Tiny, "--fail", 3) == 0
    shown = capsys.readouterr().out
    assert "1 failed: ValueError: 3 is <b>not</b> liked (tests/evals/tiny.py:" in shown
    assert "5/6" in shown  # a failed case is a miss
    (failed,) = [line for line in kept_cases(tmp_path) if line["status"] == "failed"]
    assert failed["id"] == "odd_3"
    assert failed["facts"] == {"number": 3}
    assert failed["values"] == {}


def test_too_many_failures_and_a_broken_expectation_make_the_exit_code_1(run, capsys):
    assert run(Tiny, "--fail", 1, 3, out="a") == 1
    assert "DOES NOT HOLD: 2 of 12 cases failed or were not reached, allowed 1" in capsys.readouterr().out
    assert run(Tiny, "--small", 2, out="b") == 1
    assert "DOES NOT HOLD: three of four are small" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--planner", "openai:gpt"], "has no planner openai:gpt; it has: ground-truth, recorded"),
        (["--planner", "nonsense"], "write ground-truth, recorded:FILE or provider:model"),
        (["--planner", "recorded:nowhere.jsonl"], "there is no file nowhere.jsonl"),
        (["--role-model", "cook=openai:x"], "write ROLE=provider:model; roles: planner"),
        (["--role-model", "planner=openai:x"], "given with --planner"),
        (["--role-model", "judge=openai:x"], "set OPENAI_API_KEY"),
        (["--model", "x"], "write 'provider:name'"),
        (["--only", "nothing"], "no case matches --only nothing"),
        (["--file", "bfcl_nothing.jsonl.gz"], "no data set bfcl_nothing.jsonl.gz"),
    ],
)
def test_a_users_mistake_is_told_before_anything_runs(run, tmp_path, capsys, words, told):
    assert run(Tiny, *words) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out" / "ran.txt").exists()


def test_help_teaches(capsys):
    assert main.main([]) == 0
    overview = capsys.readouterr().out
    assert all(name in overview for name in main.SUITES)
    with pytest.raises(SystemExit):
        main.main([TINY, "--help"])
    told = capsys.readouterr().out
    for word in ("A second paragraph", "ground-truth | recorded:FILE", "--small", "--limit 3"):
        assert word in told
    assert "provider:model (" not in told  # a planner that the suite does not know
