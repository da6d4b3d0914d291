"""What commands write: no traceback where they cannot, no input overwritten, and a live run as a scenario."""

import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from gecko_graph.cli import main
from tests import forked
from tests.cli.command import COMMAND, ENVIRONMENT, SHOP, SHOP_API, as_id, mistake
from tests.live_library import STATE, Live, write_case

full_disk = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")


def command(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
    return forked.run([*COMMAND, *words], stdout=stdout, stderr=stderr, text=True, timeout=120, env=ENVIRONMENT)


@pytest.fixture
def full():
    with open("/dev/full", "w") as file:
        yield file


@full_disk
@pytest.mark.parametrize("words", [("demo", "--list"), ("convert", SHOP_API), ("--help",)], ids=as_id)
def test_a_full_disk_is_a_sentence(words, full):
    done = command(*words, stdout=full)
    assert done.returncode == 2
    assert done.stderr.strip().endswith("gecko-graph: the output cannot be written: No space left on device")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@full_disk
def test_a_mistake_keeps_its_exit_code_where_nothing_can_be_written(full):
    assert command("tools", "nowhere.yaml", stderr=full).returncode == 2
    assert command("demo", "--list", stdout=full, stderr=full).returncode == 2


def test_a_pipe_that_closes_is_no_mistake():
    reading, writing = os.pipe()
    os.close(reading)
    done = command("tools", SHOP_API, stdout=writing)
    os.close(writing)
    assert (done.returncode in (0, 141), done.stderr) == (True, "")


def test_streams_of_ascii_show_what_they_can(tmp_path, monkeypatch):
    text = Path(SHOP_API).read_text(encoding="utf-8").replace("title: ", "title: Größe ")
    (tmp_path / "größe.yaml").write_text(text, encoding="utf-8")
    out, err = (io.TextIOWrapper(io.BytesIO(), "ascii", errors) for errors in ("strict", "backslashreplace"))
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    assert main(["convert", str(tmp_path / "größe.yaml")]) == 0
    assert main(["convert", os.fsencode("größer.yaml").decode("ascii", "surrogateescape")]) == 2
    for stream, said in ((out, b"Gr"), (err, b"no such file")):
        stream.flush()
        assert said in stream.buffer.getvalue()


# no input is overwritten ---------------------------------------------------------------------------------------------


TASK = ("--task", "Buy tea", "--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1")
OVERWRITING = {
    ("run", "case.yaml", "--json", "case.yaml"): ("--json case.yaml", "FILE case.yaml"),
    ("run", "case.yaml", "--json", "hard.yaml"): ("--json hard.yaml", "FILE case.yaml"),
    ("run", "case.yaml", "--json", "shop.openapi.yaml"): ("--json", "the scenario's tools shop.openapi.yaml"),
    ("run", "case.yaml", "--save", "o", "--json", "o"): ("--json o", "--save o"),
    ("run", "shop.openapi.yaml", *TASK, "--json", "shop.openapi.yaml"): ("--json", "FILE shop.openapi.yaml"),
    ("run", "shop.openapi.yaml", *TASK, "--state", "state.json", "--json", "state.json"): ("--json", "--state state"),
    ("convert", "shop.openapi.yaml", "-o", "hard.openapi.yaml"): ("-o hard.openapi.yaml", "IN shop.openapi.yaml"),
}


@pytest.mark.parametrize("words", OVERWRITING, ids=" ".join)
def test_no_input_is_overwritten_nor_what_a_link_leads_to(run, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new").mkdir()
    shutil.copy(SHOP, "case.yaml")
    shutil.copy(SHOP_API, "shop.openapi.yaml")
    Path("state.json").write_text("{}")
    Path("link.yaml").symlink_to("case.yaml")
    os.link("case.yaml", "hard.yaml")
    os.link("shop.openapi.yaml", "hard.openapi.yaml")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    written, other = OVERWRITING[words]
    message = mistake(run(*words))
    assert message.startswith(written)
    assert other in message
    code, _, err = run("demo", "--html", "link.yaml")
    assert (code, "link.yaml: is a link: name the file itself" in err) == (2, True)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()} == before


# a live run as a scenario --------------------------------------------------------------------------------------------


def test_a_recorded_task_plays_without_a_model(run, tmp_path):
    write_case(tmp_path, ["Lend me Dune."])
    (tmp_path / "state.yaml").write_text(yaml.safe_dump(STATE))
    task = [tmp_path / "library.yaml", "--task", "Lend me Dune.", "--state", tmp_path / "state.yaml"]
    with Live() as live:
        live.replies["Judgement"] = {"items": [{"id": "item-1", "status": "success"}]}
        words = ["run", *task, "--model", "openai:m", "--base-url", live.url, "--record", tmp_path / "case1.yaml"]
        code, out, err = run(*words, "--json", tmp_path / "live.json")
    assert code == 0, out + err
    line = next(line for line in out.splitlines() if line.startswith("recorded"))
    assert line.endswith(f"gecko-graph run {tmp_path / 'case1.yaml'}"), line
    assert "differs" not in out
    assert run("run", tmp_path / "case1.yaml", "--json", tmp_path / "played.json")[0] == 0
    live_run, played = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("live", "played"))
    for key in ("plan", "answer", "checklist"):
        assert live_run["turns"][0]["rehearsal"][key] == played["turns"][0]["rehearsal"][key]
    assert live_run["turns"][0]["task_state"] == played["turns"][0]["task_state"]
    assert yaml.safe_load((tmp_path / "case1.yaml").read_text())["tools"] == "library.yaml"
    assert "the file exists" in mistake(run(*words))
    assert "the file exists" in mistake(run(*words[:-1], tmp_path / "library.yaml"))


def test_nothing_is_written_where_the_model_does_not_answer(run, server, tmp_path):
    server.fails = (429, b'{"error": {"message": "You exceeded your current quota"}}')
    words = ["run", SHOP_API, "--task", "Buy tea.", "--model", "openai:m", "--base-url", server.url]
    code, out, _ = run(*words, "--record", tmp_path / "case.yaml")
    assert code == 3
    assert "case.yaml is not written" in out
    assert not (tmp_path / "case.yaml").exists()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["case.yaml", "--record", "x.txt"], ".yaml"),
        (["c.yaml", "--record", "no/x.yaml"], "written"),
        (["c.yaml", "--record", "x.yaml", "--resume", "--save", "x.sqlite"], "leave --resume out"),
        (["c.yaml", "--record", "x.yaml", "--server", "http://127.0.0.1:9"], "leave --server out"),
        (["c.yaml", "--record", "x.yaml", "--auth", "Key=env:KEY"], "leave --auth out"),
        (["c.yaml", "--record", "x.yaml", "--yes"], "leave --yes out"),
    ],
)
def test_mistakes_are_named(run, words, named):
    code, _, err = run("run", *words)
    assert code == 2
    assert named in err
