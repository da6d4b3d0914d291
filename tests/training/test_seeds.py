"""Training dialogues from nothing: trees, written tools, dialogues (LoopTool, sections 3.1 and 3.2)."""

import json
from collections import Counter
from itertools import count, islice
from pathlib import Path
from platform import node
from threading import Barrier
from typing import Any

import pytest

from gecko_graph import GeckoError, Scenario, Toolkit, create_conversation, verify_samples
from gecko_graph.cli import data, main
from gecko_graph.models.factory import Models
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.testing import recorded
from gecko_graph.training import files
from gecko_graph.training.dialogues import KINDS, Draw, make_dialogues
from gecko_graph.training.tool_writer import Demand, draw_paths, read_trees, write_tools
from gecko_graph.values.documents import format_document
from gecko_graph.values.mapping import threads

from .killing import content, is_killed, kill_and_go_on
from .seeds import Player, toolkit

DOMAINS = ("travel", "home", "clinic")


@pytest.mark.parametrize("domain", DOMAINS)
def test_drawn_paths_are_uniform_and_none_comes_twice_before_all_were_used(domain: str) -> None:
    trees = read_trees(domain)
    drawn = list(islice(draw_paths(trees, 3), 300))
    assert drawn == list(islice(draw_paths(trees, 3), 300)) != list(islice(draw_paths(trees, 4), 300))
    for at, leaves in ((0, trees.context), (1, trees.constraints)):
        assert len(set(leaves)) == len(leaves) >= 40
        paths = [pair[at] for pair in drawn]
        for begin in range(0, 300 - len(leaves), len(leaves)):
            assert len(set(paths[begin : begin + len(leaves)])) == len(leaves)
        counts = Counter(paths)
        assert max(counts.values()) - min(counts.values()) <= 1


def test_broken_trees_are_named(tmp_path: Path) -> None:
    with pytest.raises(GeckoError, match=r"unknown domain 'travle'.*travel"):
        read_trees("travle")
    for text, place in (("context: {a: {b: [c]}}", "constraints"), ("context: {a: [b]}", "context"), ("3", "context")):
        (tmp_path / "own.yaml").write_text(text)
        with pytest.raises(GeckoError, match=place):
            read_trees(str(tmp_path / "own.yaml"))
    (tmp_path / "own.yaml").write_text(
        "context: {a: {b: [c]}}\nconstraints: {1-2: {string: {round: {object: [none]}}}}"
    )
    with pytest.raises(GeckoError, match="round"):
        read_trees(str(tmp_path / "own.yaml"))


def _write(demand: Demand, context: tuple[str, ...], number: int) -> dict[str, Any]:
    """Return a reply that a path takes."""
    about = {"description": "What it is about"}
    word: dict[str, Any] = {"type": "string", **about}
    kinds: dict[str, dict[str, Any]] = {
        "list of texts": {"type": "array", "items": word, **about},
        "object": {"type": "object", "properties": {"inner": word}, **about},
        "list of objects": {"type": "array", "items": {"type": "object", "properties": {"inner": word}}, **about},
        "object in object": {
            "type": "object", "properties": {"inner": {"type": "object", "properties": {"deep": word}}}, **about
        },
    }  # fmt: skip
    parts = [kinds[demand.nesting]] if demand.nesting != "flat" else []
    there = {"object", "array"} if demand.nesting == "list of objects" else {each["type"] for each in parts}
    if not (parts and len(parts) == demand.number[-1]):
        parts += [{"type": kind, **about} for kind in sorted(demand.types - there - {"object", "array"})]
        parts += [kinds["object"]] if "object" in demand.types - there else []
    parts += [word] * (demand.number[0] - len(parts))
    properties = {f"part_{at}": each for at, each in enumerate(parts)}
    return {
        "name": f"do_thing_{number}",
        "description": f"Can {context[-1]} for number {number} in the way of {number * 7} and of {number * 13}.",
        "effect": "read",
        "parameters": {"type": "object", "properties": properties, "required": [*properties][:1]},
        "result": {"type": demand.returns},
        "errors": [{"status": status, "description": "Not so."} for status in sorted(demand.errors)],
    }


SPOILT = [
    ("no reply that can be read", lambda tool, others: {"what": "ever"}),
    ("name: expected", lambda tool, others: tool | {"name": "Do it!"}),
    ("name: another tool", lambda tool, others: tool | {"name": others[0]["name"]}),
    ("description: another tool", lambda tool, others: tool | {"description": others[0]["description"]}),
    ("description: expected", lambda tool, others: tool | {"description": "Things."}),
    ("parameters", lambda tool, others: tool | {"parameters": {"properties": {"a": {"type": "strung"}}}}),
    ("are demanded", lambda tool, others: tool | {"parameters": {"type": "object", "properties": {
        f"p{at}": {"type": "string", "description": "x"} for at in range(9)}}}),
    ("is required and not", lambda tool, others: tool | {"parameters": tool["parameters"] | {"required": ["nowhere"]}}),
    ("result: expected", lambda tool, others: tool | {"result": {"type": "null"}}),
    ("errors: expected", lambda tool, others: tool | {"errors": [{"status": 418, "description": "A teapot."}]}),
]  # fmt: skip


def test_of_thirty_replies_ten_wrong_ones_are_found_and_not_taken_for_repaired(tmp_path: Path) -> None:
    """Each wrong reply is given twice: the repair as well."""
    trees = read_trees("home")
    paths, good, replies = list(islice(draw_paths(trees, 0), 30)), list[Any](), list[Any]()
    for at, (context, constraint) in enumerate(paths):
        tool = _write(Demand.of(constraint), context, at)
        if at % 3 == 1:
            bad = SPOILT[at // 3][1](tool, good)
            replies += [bad, bad]
        else:
            good.append(tool)
            replies += [tool, tool]
    file = tmp_path / "home.yaml"
    model = recorded({"tool_writer": replies})
    made = write_tools("home", file, 20, model=Models(tool_writer=model))
    assert made["names"] == [tool["name"] for tool in good][:20]
    for (what, _), (_, faults) in zip(SPOILT, made["lost"], strict=True):
        assert what in faults
    written = Toolkit.from_openapi(file)
    assert written.names == tuple(made["names"])
    assert not written.problems
    before = file.read_bytes()
    assert write_tools("home", file, 20, model=Models(tool_writer=recorded({}))) == made, "nothing is asked again"
    assert file.read_bytes() == before


def test_a_wrong_reply_is_repaired_once(tmp_path: Path) -> None:
    trees = read_trees("clinic")
    (one, first), (two, second) = islice(draw_paths(trees, 0), 2)
    tools = [_write(Demand.of(first), one, 1), _write(Demand.of(second), two, 2)]
    replies = [tools[0], tools[0], SPOILT[1][1](tools[1], tools), tools[1]]
    model = recorded({"tool_writer": replies})
    made = write_tools("clinic", tmp_path / "t.yaml", 2, model=Models(tool_writer=model))
    assert made["names"] == ["do_thing_1", "do_thing_2"]
    assert not made["lost"]


def test_a_draw_is_the_same_for_its_seed_and_number() -> None:
    tools = toolkit()
    draws = [Draw.of(tools, 5, number) for number in range(300)]
    assert draws == [Draw.of(tools, 5, number) for number in reversed(range(300))][::-1]
    kinds = Counter(kind for draw in draws for kind in draw.kinds)
    assert set(kinds) == {*KINDS}
    assert all(draw.kinds[0] == "call" for draw in draws if "correction" in draw.kinds)


def _make(folder: Path, n: int, spoil: str = "", **more: Any) -> tuple[Counter[str], list[Any]]:
    counts = make_dialogues(toolkit(), folder, n, tools="tools.openapi.yaml", model=Player(spoil=spoil), **more)
    return counts, [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]


def test_ten_dialogues_pass_whole_and_train_verify_and_play(tmp_path: Path) -> None:
    asked: list[Any] = []
    counts, rows = _make(tmp_path, 10, costs=lambda spent: asked.append(spent) or True)
    assert counts["kept"] == 10
    assert set(counts) == {"kept", "rows"}, counts
    assert {row["verdict"]["status"] for row in rows} == {"keep"}
    assert len({tuple(row["from"][0]["kinds"]) for row in rows}) >= 3
    (spent,) = asked
    assert spent["calls"] > 3
    assert spent["input_tokens"] > 100
    again = verify_samples(tmp_path / "samples.jsonl", toolkit=toolkit())
    assert not again.bad
    assert not again.counts["drop"]
    cases = sorted(tmp_path.glob("*.gecko.yaml"))
    assert len(cases) == 10
    (tmp_path / "tools.openapi.yaml").write_text(format_document(toolkit().to_openapi(), ".yaml"))
    for file in cases:
        played = create_conversation(Player(), scenario=Scenario.load(file)).invoke({})
        assert played["score"]["status"] == "passed", (file, played["score"])
    before = (tmp_path / "samples.jsonl").read_bytes()
    _make(tmp_path, 10, costs=lambda spent: pytest.fail("nothing is asked again"))
    assert (tmp_path / "samples.jsonl").read_bytes() == before


SPOILT_DIALOGUES = [
    ("kinds", "", "plan: other kinds of turns", None),
    ("unknown tool", "", "plan: unknown tool", None),
    ("named", "", "plan: a tool's name in its words", None),
    ("state", "", "plan: no reply that can be read", None),
    ("silent", "", "dialogue: it ended early", None),
    ("no end", "dialogue", "ended early", "call"),
    ("type", "dialogue", "refused", "call"),
    ("other tool", "dialogue", "which no turn needs", "call"),
    ("guessed", "dialogue", "missing_argument: planned", "missing_argument"),
    ("sings", "dialogue", "no_tool: planned", "no_tool"),
    ("one call", "dialogue", "several_calls: planned", "several_calls"),
    ("no correction", "dialogue", "correction: planned", "correction"),
    ("judged", "judged", "the label is not right", "call"),
]


@pytest.mark.parametrize(("spoil", "code", "says", "kind"), SPOILT_DIALOGUES)
def test_a_spoilt_dialogue_is_dropped_for_its_reason(
    spoil: str, code: str, says: str, kind: str | None, tmp_path: Path
) -> None:
    seed = next(seed for seed in range(99) if kind is None or kind in Draw.of(toolkit(), seed, 0).kinds)
    counts, rows = _make(tmp_path, 1, spoil, seed=seed)
    journal = {each["verdict"]["status"] for each in rows if each["id"].startswith("dialogue-00000")}
    assert journal <= {"drop"}
    if not code:
        assert (counts, rows, [*tmp_path.glob("*.gecko.yaml")]) == ({says: 2, "rows": 0}, [], [])
        return
    told = [reason for row in rows for reason in row["verdict"]["reasons"] if reason["code"] == code]
    assert any(says in reason["message"] for reason in told), rows


def test_half_a_surrogate_pair_is_kept_out_of_the_files(tmp_path: Path) -> None:
    counts, rows = _make(tmp_path, 1, "half")
    assert counts["kept"] == 1
    assert any("Here you are ?" in row.get("text", "") for row in rows)


def test_stopped_when_costs_are_known_it_goes_on_later(tmp_path: Path) -> None:
    with pytest.raises(GeckoError, match="resume"):
        _make(tmp_path / "a", 3, costs=lambda spent: False)
    resumed, rows = _make(tmp_path / "a", 3)
    assert (resumed, rows) == _make(tmp_path / "b", 3)


class Moody(Player):
    """Finds fault with whoever asks for a song, and counts its questions."""

    asked: Any

    def _reply(self, *given: Any) -> Any:
        next(self.asked)
        return super()._reply(*given)

    def play_label_judge(self, messages: Any, text: str) -> Any:
        return {"items": [{"id": "label", "status": "failed" if "Sing me" in text else "success"}]}


def _make_some(folder: Path, workers: int, n: int = 2, shards: int | None = None) -> tuple[Counter[str], int]:
    """Return what came of it, and how many questions were asked."""
    model = Moody(asked=count())
    given = {"tools": "t.yaml", "model": model, "map": threads(workers), "shards": shards}
    return make_dialogues(toolkit(), folder, n, **given), next(model.asked)


def test_rows_and_files_are_the_same_whatever_the_number_of_workers(tmp_path: Path) -> None:
    """So are the questions: no dialogue is begun that could be one too many."""
    alone, others = (_make_some(tmp_path / str(workers), workers, n=4) for workers in (1, 5))
    assert alone == others
    assert alone[0]["judged"] >= 1
    assert alone[0]["kept"] == 4
    assert content(tmp_path / "1") == content(tmp_path / "5")


def test_dialogues_are_held_at_once(tmp_path: Path) -> None:
    class Waiting(Player):
        """Waits with the first plans until there are two."""

        both: Any = Barrier(2, timeout=60)

        def play_dialogue_planner(self, messages: Any, text: str) -> Any:
            self.both.wait()
            return super().play_dialogue_planner(messages, text)

    assert make_dialogues(toolkit(), tmp_path, 2, tools="t.yaml", model=Waiting(), map=threads(2))["kept"] == 2


def test_killed_anywhere_dialogues_end_in_the_same_files(tmp_path: Path) -> None:
    def work(folder: Path) -> object:
        return _make_some(folder, 3, shards=2)

    assert kill_and_go_on(tmp_path, work, range(1, 400, 53), [(Moody, "_reply")]) > 50


def test_shards_of_dialogues_hold_the_same_rows_and_complete_ones_are_not_played_again(tmp_path: Path) -> None:
    whole, asked = _make_some(tmp_path / "whole", 1, n=4)
    played: list[int] = []

    def stop(kept: int, made: int) -> None:
        played.append(made)
        if kept == 3 and len(played) == made:
            raise KeyboardInterrupt

    given: Any = {"tools": "t.yaml", "shards": 2, "tell": stop}
    with pytest.raises(KeyboardInterrupt):
        make_dialogues(toolkit(), tmp_path / "parts", 4, model=Moody(asked=count()), **given)
    (tmp_path / "parts" / f"dialogues.replies.{node()}").unlink()  # so that what is played again asks again
    model, done = Moody(asked=count()), len(played)
    assert make_dialogues(toolkit(), tmp_path / "parts", 4, model=model, **given) == whole
    first = json.loads((tmp_path / "parts" / "samples" / "manifest.json").read_text())["files"][0]
    assert played[done] == sum(first["counts"]["dialogues"].values()) + 1
    assert next(model.asked) < asked
    texts = [each.read_text() for each in sorted((tmp_path / "parts" / "samples").glob("*.jsonl"))]
    assert len(texts) == 2
    assert "".join(texts) == (tmp_path / "whole" / "samples.jsonl").read_text()
    assert first["counts"]["dialogues"]["kept"] == 2
    assert first["counts"]["rows"] == texts[0].count("\n")


def test_killed_anywhere_tools_end_in_the_same_file(tmp_path: Path) -> None:
    paths = [*islice(draw_paths(read_trees("home"), 0), 3)]
    tools = [_write(Demand.of(constraint), context, at) for at, (context, constraint) in enumerate(paths)]
    replies = [{"no": "tool"}, tools[0], tools[1], tools[1], {"no": "tool"}, tools[2]]
    models = Models(tool_writer=recorded({"tool_writer": replies}))

    def work(folder: Path) -> None:
        assert write_tools("home", folder / "home.yaml", 3, model=models)["names"] == [each["name"] for each in tools]

    assert kill_and_go_on(tmp_path, work, range(1, 99, 3), [(RecordedModel, "_reply")]) > 10


def test_what_was_done_when_it_was_stopped_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where all but the manifest was written."""
    _, asked = _make_some(tmp_path / "whole", 1)
    assert is_killed(lambda: _make_some(tmp_path / "killed", 1), asked + 5, [(Moody, "_reply")])
    assert _make_some(tmp_path / "killed", 1)[1] < asked - 20, "only what was not yet asked"

    def stop(file: Path, text: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "write_text", stop)
    with pytest.raises(KeyboardInterrupt):
        _make_some(tmp_path / "late", 1)
    monkeypatch.undo()
    assert _make_some(tmp_path / "late", 1)[1] == 0
    assert content(tmp_path / "late") == content(tmp_path / "whole")


def test_the_commands_write_tell_costs_and_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = islice(draw_paths(read_trees("travel"), 0), 2)
    replies = [
        each
        for at, (context, constraint) in enumerate(paths)
        for each in [_write(Demand.of(constraint), context, at)] * 2
    ]
    monkeypatch.setattr(data, "build_models", lambda options: Models(tool_writer=recorded({"tool_writer": replies})))
    file, folder = tmp_path / "travel.yaml", tmp_path / "out"
    assert main(["data", "tools", "travel", "-n", "2", "--model", "any", "-o", str(file)]) == 0
    assert main(["tools", str(file)]) == 0
    assert "do_thing_1" in capsys.readouterr().out
    file.write_text(format_document(toolkit().to_openapi(), ".yaml"))
    monkeypatch.setattr(data, "build_models", lambda options: Models.of(Player()))
    asked = ["data", "dialogues", str(file), "-n", "3", "--model", "any", "-o", str(folder), "--to", "trl"]
    assert main(asked) == 0
    told = capsys.readouterr().err
    assert "10 dialogues: about" in told
    assert "3 dialogues kept" in told
    trl = [json.loads(line) for line in (folder / "trl.jsonl").read_text().splitlines()]
    assert len(trl) == len((folder / "samples.jsonl").read_text().splitlines())
    assert {"prompt", "completion", "label"} <= trl[0].keys()
    before = content(folder)
    file.write_text(format_document(toolkit().select(names=["find_free_table"]).to_openapi(), ".yaml"))
    assert main(asked) == 2
    assert "use another folder" in capsys.readouterr().err
    assert content(folder) == before
    for bad in (["tools", "nowhere"], ["dialogues", str(tmp_path / "none.yaml")]):
        assert main(["data", *bad, "--model", "any", "-o", str(tmp_path / "x")]) == 2
        assert "Traceback" not in capsys.readouterr().err
