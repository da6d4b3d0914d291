"""Texts of files in a view: a tool that shows a file can be simulated only by who sees the file."""

from __future__ import annotations

import pytest

from gecko_graph.models.view.drawing import quoted
from gecko_graph.models.view.outline import Outline
from gecko_graph.models.view.relevance import find_relevant
from gecko_graph.models.view.view import focus_words, view

BUDGET = 6_000


def home(**contents):
    files = {f"{name}.txt": {"type": "file", "content": content} for name, content in contents.items()}
    return {"tree": {"home": {"type": "directory", "contents": files}}, "cwd": ["home"]}


def look(state):
    return view(state, focus=focus_words("cat", {"file_name": "b.txt"}), budget=BUDGET)


def test_what_room_is_left_belongs_to_the_text_that_is_meant():
    shown = look(home(a="x" * 9_000, b="q" * 9_000, c="x" * 9_000))
    assert len(shown) <= BUDGET
    assert shown.count("q") > BUDGET // 3
    assert shown.count("q") > shown.count("x")


@pytest.mark.parametrize("line", ["a line\n", "\n\t'ä'\n", 'say "so"\\', "\x00"])
def test_a_text_that_fits_is_shown_whole_however_it_is_written(line):
    text = line * (4_000 // len(quoted(line)))
    shown = look(home(a="x" * 9_000, b=text))
    assert len(shown) <= BUDGET
    assert quoted(text) in shown


def test_of_several_files_of_one_name_those_in_the_current_folder_are_meant():
    def folder(**more):
        files = {name: {"type": "file", "content": name} for name in ("old.txt", "new.txt")}
        return {"type": "directory", "contents": {**files, **more}}

    state = {"tree": {"home": folder(**{f"folder {n}": folder() for n in range(10)})}, "cwd": ["home"]}
    ranked = find_relevant(Outline(state), focus_words("diff", {"one": "new.txt", "two": "old.txt"})).ranked
    assert [(node.key, node.depth) for _, node in ranked[:2]] == [("new.txt", 4), ("old.txt", 4)]
