"""Verifying files: each row once whatever stops it, bad ones named, in Python and on the command line."""

import errno
import hashlib
import json

import pytest

from gecko_graph import GeckoError, verify_samples
from gecko_graph.cli import main
from gecko_graph.models.factory import Models
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.training import shards, verify
from gecko_graph.training.checks import Checker
from gecko_graph.training.files import Unwritten, write_rows
from gecko_graph.values.mapping import processes, threads
from tests.training.killing import kill_and_go_on
from tests.training.shelf import SHAPES, STATE, TOOLKIT, call, said, sample

RIGHT, WRONG = call("take", item="pen", count=2), call("take", item="pen", count=9)


def rows(count):
    """Rows of which every third is wrong."""
    for number in range(count):
        label = WRONG if number % 3 == 0 else RIGHT
        yield {**sample(label, state=STATE, results=[{"left": 1}]), "id": str(number), "right": number % 3 > 0}


def write(file, given):
    file.write_text("".join(json.dumps(row) + "\n" for row in given))
    return file


def read(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_rows_have_verdicts_and_the_summary_counts(tmp_path):
    file, out = write(tmp_path / "in.jsonl", rows(9)), tmp_path / "out.jsonl"
    summary = verify_samples(file, out, toolkit=TOOLKIT, truth="right")
    assert [row["verdict"]["status"] for row in read(out)] == ["drop", "keep", "keep"] * 3
    assert (summary.counts, summary.by) == ({"keep": 6, "drop": 3}, {"world": 9})
    count, examples = summary.reasons["result"]
    assert (count, [id_ for id_, *_ in examples]) == (3, ["0", "3", "6"])
    assert (summary.sensitivity, summary.specificity, summary.written) == (1.0, 1.0, 9)
    assert [each.name for each in tmp_path.iterdir() if each not in (file, out)] == []


def test_rows_of_python_come_back_and_other_shapes_are_those_to_train_on(tmp_path):
    found = verify_samples(rows(3), toolkit=TOOLKIT)
    assert [row["id"] for row in found.rows] == ["0", "1", "2"]
    assert len(verify_samples(rows(3), toolkit=TOOLKIT, to="openai").rows) == 2
    out = tmp_path / "out.jsonl"
    assert verify_samples(rows(3), out, toolkit=TOOLKIT, to="trl").written == len(read(out)) == 2


@pytest.fixture
def small(monkeypatch):
    """Shards of sixteen rows."""
    monkeypatch.setattr(verify, "SHARD", 16)


def test_a_run_that_was_stopped_goes_on_and_repeats_no_complete_shard(tmp_path, monkeypatch, small):
    file, out = write(tmp_path / "in.jsonl", rows(60)), tmp_path / "out.jsonl"
    whole = tmp_path / "whole.jsonl"
    verify_samples(file, whole, toolkit=TOOLKIT)
    with pytest.raises(RuntimeError):
        verify_samples(file, out, toolkit=TOOLKIT, tell=stop_at(35))
    checked = []
    check = Checker.check
    monkeypatch.setattr(Checker, "check", lambda self, one, *more: checked.append(one["id"]) or check(self, one, *more))
    summary = verify_samples(file, out, toolkit=TOOLKIT)
    assert out.read_bytes() == whole.read_bytes()
    assert (checked, summary.counts.total()) == ([str(at) for at in range(32, 60)], 60)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl", "whole.jsonl"]


@pytest.mark.parametrize("shards", [None, 4])
def test_killed_anywhere_it_ends_in_the_same_bytes(tmp_path, small, shards):
    file = write(tmp_path / "in.jsonl", [*rows(40), *rows(2)])
    judge = judge_with(*[number % 4 > 0 for number in range(42)])

    def work(out):
        summary = verify_samples(file, out, toolkit=TOOLKIT, model=judge, shards=shards)
        assert (summary.counts.total(), len(summary.bad)) == (40, 2)

    assert kill_and_go_on(tmp_path, work, range(1, 99, 19), [(RecordedModel, "_reply")]) > 20


def test_a_question_is_paid_for_once(tmp_path, monkeypatch):
    file, asked = write(tmp_path / "in.jsonl", rows(20)), []
    reply = RecordedModel._reply
    monkeypatch.setattr(RecordedModel, "_reply", lambda self, *given: asked.append(1) or reply(self, *given))
    with pytest.raises(RuntimeError):
        verify_samples(file, tmp_path / "out.jsonl", toolkit=TOOLKIT, model=judge_with(*[True] * 20), tell=stop_at(9))
    verify_samples(file, tmp_path / "out.jsonl", toolkit=TOOLKIT, model=judge_with(*[True] * 20))
    assert len(asked) == len([row for row in read(tmp_path / "out.jsonl") if row["verdict"]["by"] == "model"])


def test_files_folders_and_globs_go_to_shards_with_a_manifest(tmp_path):
    pytest.importorskip("pyarrow", reason="the extra `training` is not installed")
    folder, all_ = tmp_path / "rows", list(rows(30))
    folder.mkdir()
    write(folder / "a.jsonl", all_[:11])
    write_rows(folder / "b.parquet", all_[11:])
    verify_samples(write(tmp_path / "all.jsonl", all_), tmp_path / "whole.jsonl", toolkit=TOOLKIT)
    for source in (folder, f"{folder}/*"):
        found = verify_samples(source, tmp_path / "out", toolkit=TOOLKIT, shards=4)
        assert (found.written, found.counts) == (30, {"keep": 20, "drop": 10})
    files = sorted(each.name for each in (tmp_path / "out").iterdir())
    assert files == ["manifest.json", *(f"part-{at:05}-of-00004.jsonl" for at in range(4))]
    made = [row for name in files[1:] for row in read(tmp_path / "out" / name)]
    whole = read(tmp_path / "whole.jsonl")
    assert [row["verdict"] for row in made] == [row["verdict"] for row in whole]
    known = json.loads((tmp_path / "out" / "manifest.json").read_text())["files"]
    assert [each["counts"]["rows"] for each in known] == [8, 8, 8, 6]
    assert known[0]["sha256"] == hashlib.sha256((tmp_path / "out" / files[1]).read_bytes()).hexdigest()
    with pytest.raises(GeckoError, match="no files of rows"):
        verify_samples(f"{folder}/*.csv", tmp_path / "out")


def stop_at(number):
    def tell(done):
        if done >= number:
            raise RuntimeError

    return tell


def test_workers_come_to_the_same_in_the_same_order(tmp_path):
    file = write(tmp_path / "in.jsonl", rows(40))
    for name, how in {"1": map, "2": processes(1), "3": threads(3)}.items():
        verify_samples(file, tmp_path / f"{name}.jsonl", toolkit=TOOLKIT, map=how)
    first, *others = ((tmp_path / f"{name}.jsonl").read_bytes() for name in "123")
    assert others == [first] * 2


def test_an_id_twice_and_rows_that_cannot_be_read_are_named(tmp_path):
    file = write(tmp_path / "in.jsonl", [*rows(2), *rows(1), {"x": 1}, *list(rows(5))[4:]])
    summary = verify_samples(file, tmp_path / "out.jsonl", toolkit=TOOLKIT)
    assert [row["id"] for row in read(tmp_path / "out.jsonl")] == ["0", "1", "4"]
    assert [each.where for each in summary.bad] == [f"{file}:3", f"{file}:4"]
    assert ["duplicate id" in summary.bad[0].reason, "unknown shape" in summary.bad[1].reason] == [True, True]
    odd = {**next(rows(1)), "id": "odd", "text": "\ud800"}  # half of a surrogate pair
    summary = verify_samples([odd, *rows(1)])
    assert (len(summary.rows), [each.where for each in summary.bad]) == (1, ["row 1"])
    for given in ([], [{"x": 1}]):
        with pytest.raises(GeckoError, match="nothing could be read"):
            verify_samples(write(tmp_path / "none.jsonl", given), tmp_path / "no.jsonl")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.jsonl", "none.jsonl", "out.jsonl"]


def test_a_full_disk_keeps_what_is_done(tmp_path, monkeypatch):
    file, out = write(tmp_path / "in.jsonl", rows(40)), tmp_path / "out.jsonl"

    def refuse(self):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(shards, "write_rows", lambda *_: refuse(None))
        with pytest.raises(OSError, match="No space"):
            verify_samples(file, out, toolkit=TOOLKIT)
    assert verify_samples(file, out, toolkit=TOOLKIT).written == 40
    with pytest.raises(Unwritten):
        verify_samples(file, tmp_path / "none" / "out.jsonl")


def test_rows_without_a_file_and_other_settings_are_checked_anew(tmp_path):
    file, out = write(tmp_path / "in.jsonl", rows(9)), tmp_path / "settings.jsonl"
    with pytest.raises(RuntimeError):
        verify_samples(file, out, tell=stop_at(8))
    verify_samples(file, out, toolkit=TOOLKIT)
    assert [row["verdict"]["by"] for row in read(out)] == ["world"] * 9
    with pytest.raises(RuntimeError):
        verify_samples(rows(9), tmp_path / "out.jsonl", tell=stop_at(8))
    other = [{**row, "id": f"new {row['id']}"} for row in rows(9)]
    verify_samples(other, tmp_path / "out.jsonl")
    assert [row["id"] for row in read(tmp_path / "out.jsonl")] == [row["id"] for row in other]


# the second tier ----------------------------------------------------------------------------------------------------


def replies(*given):
    words = {True: "success", False: "failed"}
    return [{"items": [{"id": "label", "reason": "so", "status": words.get(each, each)}]} for each in given]


def judge_with(*given, **more):
    model = RecordedModel(turns=[{"label_judge": replies(*given), **more}])
    return Models(None, **dict.fromkeys(["label_judge", *more], model))


def test_a_model_judges_what_rules_have_not_refused():
    found = verify_samples(rows(6), toolkit=TOOLKIT, model=judge_with(None, True, False, None, "unknown"))
    verdicts = [row["verdict"] for row in found.rows]
    assert [(each["status"], each["by"]) for each in verdicts] == [
        ("drop", "world"), ("keep", "model"), ("drop", "model"),
        ("drop", "world"), ("open", "model"), ("open", "nobody"),  # the last was not answered
    ]  # fmt: skip
    assert verdicts[2]["reasons"][-1]["message"] == "the label is not right: so"
    assert verdicts[4]["reasons"][-1]["message"] == "it is not sure that the label is right: so"
    end = {"milestones": [{"id": "end", "last": True, "state": [{"at": "shelf", "snapshot": [{"pen": 1, "ink": 5}]}]}]}
    found = verify_samples([sample(RIGHT, state=STATE, goal=end)], toolkit=TOOLKIT, model=judge_with())
    assert found.rows[0]["verdict"]["by"] == "world", "a goal has decided"


PLAN = {
    "planner": [[{"call": "take", "args": {"item": "pen", "count": 2}}, {"say": "Done."}]],
    "checklist": [{"items": ["two pens are taken"]}],
    "judge": [{"items": [{"id": "item-1", "status": "success"}]}],
}


def test_a_wrong_label_is_replaced_by_a_plan_that_was_accepted():
    wrong = sample(WRONG, state=STATE, results=[{"left": 1}], messages=said("take 2 pen"))
    (row,) = verify_samples([wrong], toolkit=TOOLKIT, model=judge_with(**PLAN)).rows
    assert (row["label"], row["verdict"]["status"], row["verdict"]["wrong"]) == ([RIGHT], "fix", [WRONG])
    assert "results" not in row
    assert row["from"][-1] == {"fixed": [WRONG]}
    (pair,) = verify_samples([wrong], toolkit=TOOLKIT, model=judge_with(**PLAN), to="dpo").rows
    assert set(pair) == {"id", "prompt", "chosen", "rejected", "tools"}


@pytest.mark.parametrize("status", ["failed", "success"])
def test_a_plan_that_was_not_accepted_or_misses_the_goal_is_no_fix(status):
    goal = {"milestones": [{"id": "end", "last": True, "state": [{"at": "shelf", "snapshot": [{"pen": 0, "ink": 5}]}]}]}
    judged = {**PLAN, "judge": [{"items": [{"id": "item-1", "status": status, "reason": "no"}]}] * 4}
    judged["planner"] = PLAN["planner"] * 4
    more = {"goal": goal} if status == "success" else {}
    (row,) = verify_samples([sample(WRONG, state=STATE, **more)], toolkit=TOOLKIT, model=judge_with(**judged)).rows
    assert (row["label"], row["verdict"]["status"]) == ([WRONG], "drop")


# the command --------------------------------------------------------------------------------------------------------


def test_the_command_writes_shows_and_ends_as_it_says(tmp_path, monkeypatch, capsys):
    file = write(tmp_path / "in.jsonl", [*SHAPES.values(), {"x": 1}])
    monkeypatch.chdir(tmp_path)
    assert main(["data", "verify", "in.jsonl", "-o", "out.jsonl", "--workers", "1"]) == 1
    made = capsys.readouterr()
    assert (made.err, f"{len(SHAPES)} rows" in made.out) == ("", True)
    assert f"in.jsonl:{len(SHAPES) + 1}: unknown shape" in made.out
    assert len(read(tmp_path / "out.jsonl")) == len(SHAPES)
    write(file, [*SHAPES.values()])
    assert main(["data", "verify", "in*.jsonl", "-o", "shards", "--shards", "2"]) == 0
    assert f"{len(SHAPES)} rows" in capsys.readouterr().out
    assert (tmp_path / "shards" / "manifest.json").is_file()
    for words in (
        ["none.jsonl", "-o", "out.jsonl"],
        ["in.jsonl", "-o", "in.jsonl"],
        ["in.jsonl", "-o", "no/out.jsonl"],
        ["none/*.jsonl", "-o", "out.jsonl"],
    ):
        assert main(["data", "verify", *words]) == 2
        told = capsys.readouterr()
        assert (told.out, "Traceback" in told.err) == ("", False)
