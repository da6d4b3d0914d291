"""Runs that are saved, interrupted, killed, resumed, and looked at."""

import json
import os
import re
import sqlite3
import sys
from contextlib import closing

from tests import forked
from tests.cli.command import ENVIRONMENT, FILES, SHOP, mistake


def test_save_and_history(run, tmp_path):
    file = tmp_path / "runs.sqlite"
    code, shown, _ = run("run", FILES, "--save", file)
    assert code == 0
    assert run("run", SHOP, "--save", file, "--thread", "monday")[0] == 0
    message = mistake(run("run", SHOP, "--save", file, "--thread", "monday"))
    assert all(part in message for part in ("'monday'", "already contains a run", "--resume", "--thread"))
    assert sorted(os.listdir(tmp_path)) == ["runs.sqlite"]
    before = file.read_bytes()
    code, out, _ = run("history", file)
    assert code == 0
    head, monday, report = out.splitlines()
    assert head == f"{file}: 2 runs"
    assert re.match(r"monday           \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  1 turn, accepted, 4 of 4: Please order", monday)
    assert "  1 turn, accepted, 3 of 3: Move final_report.pdf" in report
    code, out, _ = run("history", file, "file-the-report")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("Turn 1  Move final_report.pdf")
    assert lines[2:] == shown.splitlines()[1:], "what the run showed"
    assert "[1] verdict  failed, 0 of 3" in lines
    assert (
        '[2] change   mkdir: + /tree/workspace/contents/document/contents/temp {"type": "directory", "contents": {}}'
        in lines
    )
    assert "result       accepted, 3 of 3 (attempt 2 of 2)" in lines
    assert sorted(os.listdir(tmp_path)) == ["runs.sqlite"]
    assert file.read_bytes() == before, "history only reads"


def test_history_says_which_call_a_value_comes_from(run, tmp_path):
    file, folder = tmp_path / "runs.sqlite", "/tree/workspace/contents/document/contents"
    run("run", FILES, "--save", file)
    code, out, _ = run("history", file, "file-the-report", "--blame", f"{folder}/temp")
    place, _, found = out.partition(": ")
    assert (code, place) == (0, f"{folder}/temp")
    assert json.loads(found).items() >= {"turn": 1, "attempt": 2, "step": 2}.items()
    given = json.loads(run("history", file, "file-the-report", "--blame", folder)[1].partition(": ")[2])
    assert ("call" in json.loads(found), "call" in given, given["from"]) == (True, False, "state")
    no_place = mistake(run("history", file, "file-the-report", "--blame", "/no"))
    assert no_place == "--blame /no: no value was ever there"
    assert mistake(run("history", file, "file-the-report", "--blame", "tree")).startswith("blame: the path")
    assert mistake(run("history", file, "--blame", "/tree")) == "--blame needs THREAD, the run's name"


def test_another_programs_database_is_left_alone(run, tmp_path):
    with closing(sqlite3.connect(tmp_path / "notes.sqlite")) as notes:
        notes.execute("CREATE TABLE notes (text)")
    before = (tmp_path / "notes.sqlite").read_bytes()
    message = mistake(run("run", SHOP, "--save", tmp_path / "notes.sqlite"))
    assert all(part in message for part in ("notes.sqlite", "not a file of saved runs", "another file"))
    assert (tmp_path / "notes.sqlite").read_bytes() == before
    (tmp_path / "empty.sqlite").touch()
    assert run("run", SHOP, "--save", tmp_path / "empty.sqlite")[0] == 0


def test_ctrl_c_says_how_to_go_on_and_history_shows_how_far_it_came(run, tmp_path, interrupt):
    file = tmp_path / "my runs.sqlite"
    interrupt(7)
    code, out, err = run("run", FILES, "--save", file, "--thread", "t")
    assert code == 130
    assert "[2] ok       cd" in out
    assert err == (
        "gecko-graph: interrupted; the finished steps are saved. To resume:\n"
        f"  gecko-graph run {FILES} --save '{file}' --thread t --resume\n"
    )
    interrupt(7)
    words = ["--record", tmp_path / "case.yaml", "--save", file, "--thread", "u"]
    err = run("run", FILES, *words)[2]
    assert err.endswith(f"  gecko-graph run {FILES} --save '{file}' --thread u --resume\n"), "not --record"
    interrupt(2)
    code, _, err = run("run", FILES)
    assert (code, "nothing was saved (--save FILE keeps a run" in err) == (130, True)
    interrupt(0)
    code, told, _ = run("history", file, "t")
    assert code == 0
    assert "[1] verdict  failed, 0 of 3" in told
    assert "[2] change   mkdir: + /tree/workspace/contents/document/contents/temp" in told
    assert told.endswith("not finished: `gecko-graph run ... --resume` continues here\n")
    code, out, _ = run("run", FILES, "--save", file, "--thread", "t", "--resume")
    assert code == 0
    assert "[1] " not in out, "an attempt that is done is not done again"
    assert "result       accepted, 3 of 3 (attempt 2 of 2)" in out
    assert "(planner 9)" in out


def test_a_run_that_is_killed_is_resumed_to_the_same_end(run, tmp_path):
    dies = (
        "import os, sys; from gecko_graph.cli import main; from gecko_graph.models.recorded import RecordedModel as M\n"
        "reply, asked = M._reply, []\n"
        "M._reply = lambda self, *a: (asked.append(1), len(asked) == 6 and os._exit(9), reply(self, *a))[2]\n"
        "main()"
    )
    words = ["run", FILES, "--save", str(tmp_path / "runs.sqlite"), "--json", str(tmp_path / "out.json")]
    killed = forked.run([sys.executable, "-c", dies, *words], timeout=60, env=ENVIRONMENT, check=False)
    assert killed.returncode == 9
    assert not (tmp_path / "out.json").exists()
    assert "not finished" in run("history", tmp_path / "runs.sqlite", "file-the-report")[1]
    assert run(*words, "--resume")[0] == 0
    resumed = json.loads((tmp_path / "out.json").read_text())
    assert run("run", FILES, "--json", tmp_path / "whole.json")[0] == 0
    assert resumed == json.loads((tmp_path / "whole.json").read_text())
