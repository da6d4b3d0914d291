"""Outputs that cannot be written, or not every character of them: words and an exit code, never a traceback."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, ENVIRONMENT, SHOP_API, as_id

BUFFERED = {key: value for key, value in ENVIRONMENT.items() if key != "PYTHONUNBUFFERED"}
full_disk = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
COMMANDS = [("demo",), ("demo", "--list"), ("tools", SHOP_API), ("convert", SHOP_API), ("--help",)]


def shell(line, *words, env=BUFFERED):
    return subprocess.run(
        ["bash", "-c", line, "bash", *COMMAND, *words],
        capture_output=True,
        text=True,
        timeout=120,
        env=env,
        check=False,
    )


@full_disk
@pytest.mark.parametrize("words", COMMANDS, ids=as_id)
def test_a_full_disk_is_a_sentence(words):
    done = shell('"$@" > /dev/full', *words)
    assert done.returncode == 2
    assert done.stderr.strip().endswith("gecko-graph: the output cannot be written: No space left on device")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@full_disk
def test_a_mistake_keeps_its_exit_code_where_nothing_can_be_written():
    assert shell('"$@" 2> /dev/full', "tools", "nowhere.yaml").returncode == 2
    assert shell('"$@" > /dev/full 2>&1', "demo").returncode == 2


@pytest.mark.parametrize("words", [("demo",), ("tools", SHOP_API)], ids=as_id)
def test_a_pipe_that_closes_is_no_mistake(words):
    done = shell('"$@" | head -n 1; exit ${PIPESTATUS[0]}', *words)
    assert (done.returncode in (0, 141), done.stderr) == (True, "")


def test_a_closed_output_takes_nothing():
    done = shell('"$@" >&-', "demo", "--list")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "locale", [{"PYTHONIOENCODING": "ascii:strict"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}]
)
def test_an_ascii_locale_shows_what_it_can(tmp_path, locale):
    spec = tmp_path / "größe.yaml"
    shutil.copy(SHOP_API, spec)
    spec.write_text(spec.read_text(encoding="utf-8").replace("title: ", "title: Größe "), encoding="utf-8")
    for words in (("tools", str(spec)), ("convert", str(spec)), ("tools", str(tmp_path / "größer.yaml"))):
        done = shell('"$@"', *words, env={**BUFFERED, **locale})
        assert "Traceback" not in done.stderr
        assert done.returncode == (2 if "größer" in words[1] else 0), done.stderr


def test_a_link_is_not_followed_to_what_it_would_overwrite(run, tmp_path):
    (tmp_path / "kept.txt").write_text("kept")
    (tmp_path / "out.html").symlink_to(tmp_path / "kept.txt")
    code, _, err = run("demo", "--html", tmp_path / "out.html")
    assert (code, (tmp_path / "kept.txt").read_text()) == (2, "kept")
    assert "out.html: is a link: name the file itself" in err
