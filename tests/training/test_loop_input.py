"""Bad input of the loop: rows, trainers and probes that fail, outputs that no file can hold, a full disk."""

import json

import pytest

from gecko_graph import GeckoError
from gecko_graph.cli import main
from gecko_graph.models import cache
from gecko_graph.training.probe import run_maker
from gecko_graph.values.rows import LARGEST
from tests.training.killing import content
from tests.training.loops import build, read, row
from tests.training.shelf import call

pytest.importorskip("datasketch")


def test_a_function_that_fails_for_a_file_of_its_own_is_told_as_that(tmp_path):
    def no_weights(data, model, out):
        raise FileNotFoundError("weights.bin")

    with pytest.raises(GeckoError, match=r"trainer: FileNotFoundError: weights\.bin"):
        build(tmp_path / "out", trainer=no_weights).invoke({})


SAYS = "import sys; print('step 1 of 2', file=sys.stderr); sys.exit(3)"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("false {data} {out}", "ended with 1"),
        ("true {data} {out}", "nothing was written"),
        ("no-such-program {data} {out}", "no-such-program"),
        ("mkdir {out} {data}", "ended with 1"),
        (f'python -c "{SAYS}" {{data}} {{out}}', r"ended with 3.*\n.*step 1 of 2"),
    ],
)
def test_a_trainer_that_fails_is_told_with_what_it_said_while_it_ran(tmp_path, capsys, command, said):
    with pytest.raises(GeckoError, match=said):
        run_maker("trainer", command, tmp_path, "tiny", tmp_path / "model")
    assert not (tmp_path / "model").exists()
    assert ("step 1 of 2" in capsys.readouterr().err) == (SAYS in command)


def test_nothing_left_to_train_on_is_told(tmp_path):
    def unsure(data, model, out):
        rows = [{"id": each["id"], "output": {"tool_calls": each["label"]}} for each in read(data)]
        out.write_text("".join(json.dumps(each) + "\n" for each in rows))

    file = tmp_path / "seeds.jsonl"
    file.write_text(json.dumps(row("r1")))
    with pytest.raises(GeckoError, match="iteration 2: no rows"):
        build(tmp_path / "out", seeds=file, given=unsure).invoke({})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"trainer": "train {data}"}, "lacks {out}"),
        ({"given": "probe {out}"}, "lacks {data}"),
        ({"iterations": 0}, "iterations"),
        ({"variants": 5}, "variants"),
        ({"ablation": "none"}, "ablation"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(tmp_path, more, said):
    with pytest.raises(GeckoError, match=said):
        build(tmp_path / "out", **more)


def test_seeds_that_cannot_be_read_are_told_with_file_and_line_and_others_used(tmp_path):
    file = tmp_path / "seeds.jsonl"
    rows = [json.dumps(row(f"r{at}")) for at in range(4)]
    early = {"messages": [{"role": "tool", "tool_call_id": "x", "content": "7"}], "tools": []}
    others = [
        "{broken",
        rows[0],
        json.dumps({**row("r9"), "verdict": {"status": "drop"}}),
        '{"what": 1}',
        '{"x": "\xff"}',
    ]
    others += [json.dumps({**row("r5"), "label": [{"name": "take", "arguments": 3}]}), json.dumps(early)]
    others += [json.dumps({**row("r6"), "text": "\ud800"}), '{"x": "' + "a" * LARGEST + '"}']
    file.write_bytes("\n".join([*rows, *others]).encode("latin-1"))
    state = build(tmp_path / "out", seeds=file, iterations=1).invoke({})
    told = state["counts"]["seed"]
    assert (told["rows"], told["unreadable"]) == (4, 8)
    assert [where for where, _ in told["examples"]] == [f"{file}:{at}" for at in (5, 6, 8)]
    assert "duplicate id" in told["examples"][1][1]
    file.write_text("{broken")
    with pytest.raises(GeckoError, match=r"nothing in .*seeds.jsonl:1"):
        build(tmp_path / "out", seeds=file, iterations=1).invoke({})
    with pytest.raises(GeckoError, match="does not exist"):
        build(tmp_path / "out", seeds=tmp_path / "none", iterations=1).invoke({})


def test_a_full_disk_is_told_and_gone_on_from(tmp_path, monkeypatch):
    left = iter(range(5))

    def write(self, *given):
        if next(left, None) is None:
            raise cache.Unkept("cannot be written: No space left on device; rerun the same command to resume")
        return real(self, *given)

    real = cache.ReplyCache.update
    monkeypatch.setattr(cache.ReplyCache, "update", write)
    with pytest.raises(GeckoError, match="No space left"):
        build(tmp_path / "out").invoke({})
    monkeypatch.undo()
    build(tmp_path / "out").invoke({})
    build(tmp_path / "whole").invoke({})
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_an_output_that_no_file_can_hold_is_no_crash(tmp_path):
    def odd(data, model, out):
        said = {"output": '<tool_call>{"name": "take", "arguments": {"item": "\\ud83d"}}</tool_call>', "logprobs": [-1]}
        out.write_text("".join(json.dumps({"id": each["id"], **said}) + "\n" for each in read(data)))

    build(tmp_path / "out", iterations=2, given=odd).invoke({})
    wrong = read(tmp_path / "out/iteration-1/judged.jsonl")[0]["verdict"]["wrong"]
    assert wrong == [call("take", item="?")]


def test_the_exit_code_is_2_only_where_nothing_could_be_read(tmp_path, capsys):
    file = tmp_path / "seeds.jsonl"
    command = ["data", "loop", str(file), "-o", str(tmp_path / "out"), "--base", "tiny", "--iterations", "1"]
    command += ["--probe", "http://localhost:1/v1", "--train"]
    file.write_text("{broken\n")
    assert main([*command, "cp {data} {out}"]) == 2
    file.write_text("{broken\n" + json.dumps(row("r1")) + "\n" + json.dumps(row("r2")))
    assert main([*command, "false {data} {out}"]) == 1
    assert "trainer: false" in capsys.readouterr().err
    assert main([*command, "cp {data} {out}"]) == 1
    assert f"{file}:1: the row: no JSON" in capsys.readouterr().out
    file.write_text(json.dumps(row("r1")) + "\n" + json.dumps(row("r2")))
    assert main([*command, "cp {data} {out}"]) == 0
