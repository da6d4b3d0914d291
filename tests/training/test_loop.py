"""The loop: two iterations as tables made by hand, each ablation, stopped anywhere, fed with garbage."""

import json
from pathlib import Path
from typing import get_args

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoError, Models
from gecko_graph.cli import main
from gecko_graph.cli.data_arguments import ABLATIONS
from gecko_graph.training import files
from gecko_graph.training.loop import LoopConfig, create_loop
from gecko_graph.training.mix import Ablation
from tests.training import loops
from tests.training.killing import kill_and_go_on
from tests.training.loops import (
    BOTH,
    D1,
    DISAGREED,
    FRESH,
    LATER,
    MISSED,
    NEITHER,
    NOTED,
    SEEDS,
    WRONG_LABEL,
    build,
    label_of,
    models,
    probe,
    read,
    row,
    table,
    train,
)  # fmt: skip

SHELF = "tests.training.shelf:TOOLKIT"

pytest.importorskip("datasketch")

ERRORS = {D1[6]: "error", D1[7]: "error", D1[WRONG_LABEL]: "corrected", D1[MISSED]: "error"}
NEW = dict.fromkeys(FRESH, "fresh")
HIGH = [D1[5], D1[BOTH], D1[1], D1[3], D1[4]]
"""By perplexity, highest first; the row at 2 has none."""


def kept(count):
    return dict.fromkeys(HIGH[:count], "mastered")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loop") / "out"
    return folder, build(folder).invoke({})


def test_the_second_data_set_is_as_made_by_hand(done):
    folder, _ = done
    assert table(folder / "iteration-1/data.jsonl") == dict.fromkeys(D1, "first")
    assert table(folder / "iteration-2/data.jsonl") == {**ERRORS, f"{D1[6]}/1.1": "variant", **kept(4), **NEW}
    rows = {each["id"]: each for each in read(folder / "iteration-2/data.jsonl")}
    corrected = rows[D1[WRONG_LABEL]]
    assert corrected["label"] == [NOTED]
    assert corrected["verdict"] | {"reasons": 0} == {
        "outcome": "LABEL_WRONG", "by": "model", "perplexity": pytest.approx(2.718281828**0.5), "reasons": 0,
        "status": "fix", "wrong": [label_of(D1[WRONG_LABEL])], "said": "",
        "analysis": "(The first is the label, the second the model's output.) The first: so",
    }  # fmt: skip
    assert rows[D1[6]]["label"] == [label_of(D1[6])]
    assert rows[D1[6]]["verdict"]["wrong"][0]["arguments"]["count"] == 56
    assert "verdict" not in rows[D1[5]]
    new = rows[f"{D1[6]}/1.1"]
    assert new["from"][-2:] == [{"variant_of": D1[6], "constraint": 1}, {"iteration": 2, "as": "variant"}]
    assert (new["label"][0]["arguments"], new["state"]) == ({"item": "pen", "count": 3}, rows[D1[6]]["state"])


def test_the_third_data_set_is_as_made_by_hand(done):
    folder, _ = done
    before = table(folder / "iteration-2/data.jsonl")
    missed = f"{D1[6]}/1.1"
    long_ids = sorted((id_ for id_ in before if id_ != missed), key=len, reverse=True)[: 13 - 2 - 2]
    found = table(folder / "iteration-3/data.jsonl")
    assert {id_: part for id_, part in found.items() if part != "mastered"} == {
        missed: "error", f"{missed}/2.1": "variant", **dict.fromkeys(LATER, "fresh")
    }  # fmt: skip
    assert sorted(map(len, (i for i, part in found.items() if part == "mastered"))) == sorted(map(len, long_ids))


def test_counts_say_who_decided_what(done):
    _, state = done
    counts = state["counts"]
    assert counts["1/judge"] == {
        "BOTH_CORRECT": 1, "BOTH_WRONG": 1, "DISAGREED": 1, "LABEL_WRONG": 1, "MASTERED": 6, "PRED_WRONG": 3,
        "by model": 4, "by rules": 6, "by world": 3,
    }  # fmt: skip
    assert counts["1/expand"] == {
        "written": 3, "unreadable": 1, "dropped": 1, "open": 0, "duplicate": 1, "kept": 1
    }  # fmt: skip
    assert counts["1/probe"] == {"rows": 13, "perplexity_unknown": 1}
    assert (state["iteration"], Path(state["model"]).parent.name) == (3, "iteration-3")
    assert {D1[NEITHER], D1[DISAGREED]}.isdisjoint(table(Path(state["data"]).parents[1] / "iteration-2/data.jsonl"))


@pytest.mark.parametrize(
    ("ablation", "expected"),
    [
        ("no-expansion", {**ERRORS, **kept(4), **NEW}),
        ("repeat-errors", {**ERRORS, f"{D1[6]}~1": "repeated", **kept(4), **NEW}),
    ],
)
def test_ablations_differ_in_their_part_alone(tmp_path, ablation, expected):
    build(tmp_path / "out", iterations=2, ablation=ablation).invoke({})
    assert table(tmp_path / "out/iteration-2/data.jsonl") == expected


def test_without_a_judge_labels_stay_as_they_came_and_algorithm_1_discards_what_is_right_twice(tmp_path):
    build(tmp_path / "out", iterations=2, ablation="no-judge").invoke({})
    rows = [each for each in read(tmp_path / "out/iteration-2/data.jsonl") if each["from"][-1]["as"] == "error"]
    assert len(rows) == 4
    assert {each["id"] for each in rows} <= {*D1[6:]}
    assert [each["label"] for each in rows] == [[label_of(each["id"])] for each in rows]
    build(tmp_path / "other", iterations=2, keep_both_correct=False).invoke({})
    assert D1[BOTH] not in table(tmp_path / "other/iteration-2/data.jsonl")


def test_without_models_rules_alone_decide(tmp_path):
    state = build(tmp_path / "out", iterations=2, asked=Models()).invoke({})
    assert state["counts"]["1/judge"]["UNDECIDED"] == 4
    assert state["counts"]["1/expand"]["written"] == 0
    assert {part for part in table(tmp_path / "out/iteration-2/data.jsonl").values()} == {"error", "mastered", "fresh"}


def test_killed_it_ends_in_the_same_bytes(tmp_path):
    """kill -9 before files, replies and trainings: in another process, at some of them."""
    assert kill_and_go_on(tmp_path, run, range(1, 200, 41), OURS) > 60


OURS = [(loops, "train"), (loops, "probe")]


def run(folder):
    folder.parent.mkdir(exist_ok=True)
    build(folder, trainer=loops.train, given=loops.probe).invoke({})


def test_what_is_done_is_not_done_again_and_what_changed_is(tmp_path, done):
    again = []
    folder = tmp_path / "out"
    first = build(folder, trainer=lambda *paths: again.append("train") or train(*paths), iterations=2)
    first.invoke({})
    first.invoke({})
    assert again == ["train", "train"]
    (folder / "iteration-2/model/weights").unlink()
    first.invoke({})
    assert again == ["train", "train", "train"]
    build(folder, iterations=2, variants=0).invoke({})
    assert "variant" not in table(folder / "iteration-2/data.jsonl").values()


def test_a_checkpointed_loop_streams_and_goes_on(tmp_path):
    def fail(data, model, out):
        raise RuntimeError("no memory")

    saver, config = InMemorySaver(), {"configurable": {"thread_id": "1"}}

    def loop(trainer):
        given = {"seeds": tmp_path / "seeds-given.jsonl", "folder": tmp_path / "out", "base": "tiny", "iterations": 2}
        return create_loop(LoopConfig(**given), trainer=trainer, probe=probe, models=models(), checkpointer=saver)

    build(tmp_path / "unused")
    with pytest.raises(RuntimeError, match="no memory"):
        loop(fail).invoke({}, config)
    told = list(loop(train).stream(None, config, stream_mode=["updates", "custom"]))
    assert [next(iter(each)) for mode, each in told if mode == "updates"] == [
        "train", "probe", "judge", "expand", "mix", "train"
    ]  # fmt: skip
    assert {"type": "loop", "iteration": 1, "step": "judge", "done": 13} in [
        each for mode, each in told if mode == "custom"
    ]
    assert "rows" not in str(loop(train).get_state(config).values["data"])


def test_held_out_rows_are_scored_after_each_training(tmp_path):
    held = tmp_path / "held.jsonl"
    kept = [row(D1[at]) for at in (0, 6)]
    shaped = {"id": kept[0]["id"], "tools": kept[0]["tools"], "prompt": kept[0]["messages"]}  # TRL's row
    said = {"role": "assistant", "content": "", "tool_calls": kept[0]["label"]}
    held.write_text(json.dumps({**shaped, "completion": [said]}) + "\n" + json.dumps(kept[1]) + "\n{broken\n")
    state = build(tmp_path / "out", iterations=2, eval=held).invoke({})
    assert state["counts"]["1/evaluate"] == {"rows": 2, "right": 1, "score": 0.5}
    assert state["counts"]["2/evaluate"]["score"] == 1.0
    assert state["counts"]["held-out"]["unreadable"] == 1


def test_a_manifest_that_is_garbage_has_the_step_done_again(tmp_path):
    done = []

    def work(replies):
        done.append(1)
        (tmp_path / "a").write_text("x")
        return {"n": 1}

    for text in ("", "{", "[]", "[1]", "3", '{"of": 1}'):
        (tmp_path / "s.manifest.json").write_text(text)
        assert files.once(tmp_path, "s", ["a"], {}, work) == {"n": 1}
    assert files.once(tmp_path, "s", ["a"], {}, work) == {"n": 1}
    assert len(done) == 6
    with pytest.raises(GeckoError, match="b was not written"):
        files.once(tmp_path, "t", ["b"], {}, work)


def test_the_command_runs_it_and_goes_on(tmp_path, capsys):
    file, out = tmp_path / "seeds.jsonl", tmp_path / "out"
    file.write_text("".join(json.dumps(row(id_)) + "\n" for id_ in SEEDS))
    command = ["data", "loop", str(file), "-o", str(out), "--base", "tiny", "--iterations", "2", "--toolkit", SHELF]
    made = 'python -c "import sys, pathlib; pathlib.Path(sys.argv[2]).mkdir(); '
    made += "(pathlib.Path(sys.argv[2]) / 'w').write_text(sys.argv[1])\" {model} {out} {data}"
    command += ["--train", made, "--probe", str(tmp_path / "said-{iteration}.jsonl")]
    assert main(command) == 1
    told = capsys.readouterr().err
    assert all(part in told for part in ("said-1.jsonl does not exist", "run the same command again"))
    assert (out / "iteration-1/model/w").read_text() == "tiny"
    probe(out / "iteration-1/data.jsonl", str(tmp_path / "iteration-1/model"), tmp_path / "said-1.jsonl")
    assert main(command) == 0
    assert "6 mastered" in capsys.readouterr().out
    assert table(out / "iteration-2/data.jsonl")[D1[6]] == "error"
    assert main([*command, "--ablation", "none"]) == 2


def test_the_command_knows_every_ablation():
    assert list(get_args(Ablation)) == ABLATIONS
