"""The runner: choosing cases, failures, going on after a stop, what is refused, endpoints in trouble."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals import __main__ as main
from evals.harness import journal as journals
from evals.harness.figures import Case, Record
from evals.harness.journal import VERSION, Journal
from evals.harness.options import EvalError, Options, Planner
from evals.harness.runner import select

from .tiny import Mistaken, Nonsense, Threaded, Tiny

TINY = "tests.evals.tiny:Tiny"


def lines(out):
    return [json.loads(line) for line in (out / "cases.jsonl").read_text().splitlines()]


def cases_of(out):
    return [line for line in lines(out) if line["kind"] == "case"]


def wait_for(condition, *, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


# -- choosing ----------------------------------------------------------------------------------------------------------


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


def test_seeds_draw_differently():
    cases = some_cases(100)
    assert len({tuple(case.id for case in select(cases, limit=5, seed=seed).cases) for seed in range(5)}) == 5


def test_cases_of_one_unit_are_taken_together():
    cases = [Case(f"{task}-{arm}", unit=task) for arm in ("with", "without") for task in "abcdefgh"]
    chosen = [case.id for case in select(cases, limit=3).cases]
    assert len(chosen) == 6
    assert len({name[0] for name in chosen}) == 3


def test_only_is_of_ids_and_of_groups():
    cases = some_cases(6)
    assert [case.id for case in select(cases, only=["a_*", "b_1"]).cases] == ["a_0", "b_1", "a_2", "a_4"]
    assert [case.id for case in select(cases, only=["b"]).cases] == ["b_1", "b_3", "b_5"]
    with pytest.raises(EvalError, match="no case fits --only c: patterns are of ids"):
        select(cases, only=["c"])


def test_two_cases_of_one_id_are_a_bug():
    with pytest.raises(ValueError, match="two cases have the id 'x'"):
        select([Case("x"), Case("x")])


# -- running -----------------------------------------------------------------------------------------------------------


def test_a_failing_case_is_counted_with_its_reason_and_its_place(run, tmp_path, capsys):
    assert run(Tiny, "--fail", 3) == 0
    shown = capsys.readouterr().out
    assert "1 failed: ValueError: 3 is <b>not</b> liked (tests/evals/tiny.py:" in shown
    assert "5/6" in shown  # a failed case is a miss
    (failed,) = [line for line in cases_of(tmp_path / "out") if line["status"] == "failed"]
    assert failed["id"] == "odd_3"
    assert failed["facts"] == {"number": 3}
    assert failed["values"] == {}


def test_too_many_failures_and_a_broken_expectation_make_the_exit_code_1(run, capsys):
    assert run(Tiny, "--fail", 1, 3, out="a") == 1
    assert "DOES NOT HOLD: 2 of 12 cases failed or were not reached, allowed 1" in capsys.readouterr().out
    assert run(Tiny, "--small", 2, out="b") == 1
    assert "DOES NOT HOLD: three of four are small" in capsys.readouterr().out


def test_no_case_at_all_is_no_success(run, capsys):
    assert run(Tiny, "--cases", 0) == 1
    assert "DOES NOT HOLD: there is a case" in capsys.readouterr().out


def test_a_plain_function_runs_in_threads_and_may_leave(run, tmp_path):
    assert run(Threaded, "--fail", 5, "--at-once", 4) == 0
    done = cases_of(tmp_path / "out")
    assert Counter(line["status"] for line in done) == {"done": 11, "failed": 1}
    assert {line["tools"] for line in done} == {"real"}


def test_what_is_no_json_is_a_failed_case(run, tmp_path):
    run(Nonsense, "--cases", 4)
    reasons = [line["reason"] for line in cases_of(tmp_path / "out")]
    for reason, word in zip(
        reasons, ["not JSON compliant", "set is not JSON", "returned list", "returned NoneType"], strict=True
    ):
        assert word in reason


def test_processes_run_the_same_cases(run, tmp_path):
    assert run(Tiny, "--fail", 3, "--workers", 2) == 0
    made = cases_of(tmp_path / "out")
    assert [each["id"] for each in made] == [f"{'odd' if at % 2 else 'even'}_{at}" for at in range(12)]
    assert [each["status"] for each in made].count("failed") == 1
    assert made[5]["values"]["square"] == 25


def test_so_many_run_at_once(run):
    start = time.monotonic()
    assert run(Tiny, "--pause", 1, "--at-once", 12) == 0
    assert time.monotonic() - start < 12 * 1 / 2


def test_the_summary_is_of_the_chosen_cases_only(run, tmp_path):
    run(Tiny, "--limit", 4)
    assert run(Tiny, "--only", "odd") == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["cases"] == {"of": 12, "n": 6, "done": 6}
    assert [row[0] for row in summary["figures"][0]["rows"]] == ["odd"]
    assert len(cases_of(tmp_path / "out")) < 10  # the limit's odd ones were not run again
    ran = (tmp_path / "out" / "ran.txt").read_text().split()
    assert len(ran) == len(set(ran))


# -- going on ----------------------------------------------------------------------------------------------------------


def test_a_killed_run_goes_on_and_runs_nothing_twice(start, tmp_path):
    words = (TINY, "--cases", 30, "--pause", 0.1, "--at-once", 2, "--resume", "--out", tmp_path)
    journal = tmp_path / "cases.jsonl"
    first = start(*words)
    wait_for(lambda: journal.exists() and journal.read_text().count('"case"') >= 6)
    first.kill()
    assert first.wait() == -signal.SIGKILL
    kept = [line["id"] for line in map(json.loads, journal.read_text().splitlines()) if line["kind"] == "case"]
    with journal.open("a") as file:
        file.write('{"kind": "case", "id": "even_')  # as if it had died while it wrote

    second = start(*words)
    out, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    assert f"{len(kept)} of 30 cases are finished already" in err
    assert "30/30" in err
    ran = Counter((tmp_path / "ran.txt").read_text().split())
    assert len(ran) == 30
    assert all(ran[name] == 1 for name in kept)
    assert sum(ran.values()) <= 30 + 2  # those under way when it was killed
    assert [line["kind"] for line in lines(tmp_path)].count("session") == 2
    assert "15/15" in out
    assert len({line["id"] for line in cases_of(tmp_path)}) == len(cases_of(tmp_path)) == 30


def test_an_interrupt_leaves_what_is_finished(start, tmp_path):
    words = (TINY, "--cases", 12, "--pause", 0.1, "--resume", "--out", tmp_path)
    first = start(*words)
    journal = tmp_path / "cases.jsonl"
    wait_for(lambda: journal.exists() and journal.read_text().count('"case"') >= 2)
    os.kill(first.pid, signal.SIGINT)
    _, err = first.communicate(timeout=30)
    assert first.returncode == 130
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    assert not (tmp_path / "report.md").exists()
    second = start(*words)
    assert "12/12" in second.communicate(timeout=60)[1]
    assert second.returncode == 0


def test_a_finished_run_is_told_again_without_running(run, tmp_path, capsys):
    run(Tiny)
    assert run(Tiny, "--shown", 9) == 0  # an aside: no record depends on it
    assert "12 of 12 cases are finished already" in capsys.readouterr().err
    assert len((tmp_path / "out" / "ran.txt").read_text().split()) == 12
    assert [line["kind"] for line in lines(tmp_path / "out")].count("session") == 1
    run(Tiny, "--fresh")
    assert len((tmp_path / "out" / "ran.txt").read_text().split()) == 24


def test_cases_that_are_not_done_run_again(run, tmp_path):
    run(Tiny, "--fail", 3)
    run(Tiny, "--fail", 3)
    ran = Counter((tmp_path / "out" / "ran.txt").read_text().split())
    assert ran.pop("odd_3") == 2
    assert set(ran.values()) == {1}


def a_record(name, status="done"):
    return Record(name, "", {}, status, "", 0.0, "none", {})


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_other_options_are_refused(run, capsys):
    run(Tiny)
    assert run(Tiny, "--small", 7, "--seed", 3) == 2
    told = capsys.readouterr().err
    assert "12 cases that ran with other options (seed 0, now 3, small 100, now 7)" in told
    assert "--fresh" in told
    assert run(Threaded) == 2
    assert "the journal of another suite (tiny)" in capsys.readouterr().err


def test_other_options_have_another_folder(tmp_path):
    from evals.harness.command import default_out, options_of, parser_of

    def place(*words):
        return default_out(Tiny, options_of(Tiny, parser_of(Tiny, "tiny").parse_args(words)))

    assert place() == place("--shown", "3") == place("--limit", "3") == place("--at-once", "3")
    assert len({place(), place("--small", "3"), place("--max-retries", "1"), place("--seed", "1")}) == 4


HEAD = {"v": VERSION, "suite": "s", "options": {}, "command": "c", "commit": "1", "code": "1", "date": "d"}


def test_other_code_is_refused_unless_wanted(tmp_path):
    path, other = tmp_path / "cases.jsonl", {**HEAD, "code": "2", "commit": "2"}
    with Journal(path, HEAD) as journal:
        journal.add(a_record("a"))
    with pytest.raises(EvalError, match=r"1 cases that ran with other code \(commit 1, now 2\): --fresh"):
        Journal(path, other)
    with Journal(path, other, how="any code") as journal:
        assert [each["commit"] for each in journal.sessions] == ["1"]
        journal.add(a_record("b"))
        assert [each["commit"] for each in journal.sessions] == ["1", "2"]
    with Journal(path, other, how="any code") as journal:
        assert list(journal.finished) == ["a", "b"]
    with Journal(path, other, how="anew") as journal:
        assert journal.finished == {}
        assert path.read_text().count("\n") == 1


@pytest.mark.parametrize("models", [[], ["--model", "openai:m"]])
def test_other_code_is_begun_anew_unless_models_were_asked(run, tmp_path, capsys, endpoint, monkeypatch, models):
    words = [*models, "--base-url", endpoint().url] if models else []
    run(Tiny, *words)
    monkeypatch.setattr(journals, "_code", lambda: "other")
    assert run(Tiny, *words, "--resume") == 0
    assert len((tmp_path / "out" / "ran.txt").read_text().split()) == 12
    assert run(Tiny, *words) == (2 if models else 0)
    assert ("--fresh begins anew" if models else "begun anew") in capsys.readouterr().err
    assert len((tmp_path / "out" / "ran.txt").read_text().split()) == (12 if models else 24)


def test_two_runs_do_not_write_one_journal(tmp_path):
    path = tmp_path / "cases.jsonl"
    with Journal(path, HEAD), pytest.raises(EvalError, match="being written by another run"):
        Journal(path, HEAD)
    with Journal(path, HEAD) as journal:
        assert journal.sessions == [HEAD]


def test_a_broken_line_before_the_last_is_told(tmp_path):
    path = tmp_path / "cases.jsonl"
    with Journal(path, HEAD):
        whole = path.read_text()
    path.write_text(f"{whole}nonsense\n{whole}")
    with pytest.raises(EvalError, match="line 2 cannot be read; --fresh begins anew"):
        Journal(path, HEAD)


@given(st.text(), st.integers(0, 600))
def test_a_journal_cut_off_anywhere_keeps_its_whole_lines(tmp_path_factory, text, cut):
    path = tmp_path_factory.mktemp("journal") / "cases.jsonl"
    with Journal(path, HEAD) as journal:
        journal.add(Record("a", text, {"text": text}, "done", "", 0.5, "none", {}))
        journal.add(a_record("b"))
    whole = path.read_bytes()
    left = whole[: max(len(whole) - cut, 0)]
    path.write_bytes(left)
    with Journal(path, HEAD) as journal:
        assert list(journal.finished) == ["a", "b"][: max(left.count(b"\n") - 1, 0)]
        if "a" in journal.finished:
            assert journal.finished["a"].facts == {"text": text}
        journal.add(a_record("c"))
    with Journal(path, HEAD) as journal:
        assert "c" in journal.finished


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--planner", "openai:gpt"], "knows no planner openai:gpt; it knows: ground-truth, recorded"),
        (["--planner", "nonsense"], "write ground-truth, recorded:FILE or provider:model"),
        (["--planner", "recorded:nowhere.jsonl"], "there is no file nowhere.jsonl"),
        (["--role-model", "cook=openai:x"], "write ROLE=provider:model; roles: planner"),
        (["--role-model", "planner=openai:x"], "given with --planner"),
        (["--role-model", "judge=openai:x"], "set OPENAI_API_KEY"),
        (["--model", "x"], "write 'provider:name'"),
        (["--only", "nothing"], "no case fits --only nothing"),
        (["--file", "bfcl_nothing.jsonl.gz"], "no data set bfcl_nothing.jsonl.gz"),
    ],
)
def test_a_users_mistake_is_told_before_anything_runs(run, tmp_path, capsys, words, told):
    assert run(Tiny, *words) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out" / "ran.txt").exists()


def test_a_place_that_cannot_be_written_is_told_before_anything_runs(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main.main([TINY, "--out", str(tmp_path / "file" / "in it")]) == 2
    assert "--out" in capsys.readouterr().err


def test_a_mistake_found_late_stops_the_run(run, capsys):
    assert run(Mistaken, "--at-once", 3) == 2
    assert "error: a package is missing: install it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sped"], "no suite is called 'sped'; speed is. Suites: bfcl"),
        (["no.such:Suite"], "there is no module no.such"),
        (["tests.evals.tiny:Case"], "tests.evals.tiny has no suite Case"),
    ],
)
def test_a_suite_that_there_is_not(capsys, words, told):
    assert main.main(words) == 2
    assert told in capsys.readouterr().err


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


def test_cases_are_listed(capsys):
    assert main.main([TINY, "--list", "--only", "odd", "--cases", "4"]) == 0
    assert capsys.readouterr().out == "odd_1\todd\nodd_3\todd\n"


# -- models ------------------------------------------------------------------------------------------------------------


def test_who_speaks():
    options = Options(
        planner=Planner.parse("openai:p"),
        model="openai:m",
        role_models={"judge": "openai:j"},
        base_url="http://localhost",
    )
    names = options.model_names()
    assert (names["planner"], names["judge"], names["simulator"]) == ("openai:p", "openai:j", "openai:m")
    speakers = options.speakers()
    assert speakers["simulator"] is speakers["validator"]
    assert speakers["judge"].model_name == "j"
    ground = Options(planner=Planner.parse("ground-truth"), model="openai:m", base_url="http://localhost")
    assert "planner" not in ground.model_names()
