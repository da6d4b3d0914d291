"""Imports between rooms run one way, rooms stay small, and no word of the house is missing a place."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from pathlib import Path

import pytest

import gecko_graph
from tests.docstrings import SHARE, find_docstrings
from tests.floors import FLOORS, LEVEL, PACKAGE, room_of, statements_in
from tests.walk import carried_out, rehearsed

ROOT = Path(__file__).resolve().parents[1]


@cache
def imports_in(path: Path) -> list[ast.ImportFrom]:
    return [node for _, node in statements_in(path) if isinstance(node, ast.ImportFrom)]


def imports_of(path: Path) -> set[str]:
    """Rooms of gecko_graph that a file imports, wherever in the file."""
    depth = len(path.relative_to(PACKAGE).parts)
    rooms: set[str] = set()
    for node in imports_in(path):
        if node.level == depth and node.module:
            rooms.add(node.module.split(".")[0])
        elif node.level == depth:
            rooms |= {alias.name for alias in node.names}
        elif node.level == 0 and (node.module or "").startswith("gecko_graph"):
            rooms.add(f"absolute import of {node.module}")
    return rooms - {"__version__"}


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def test_imports_run_one_way():
    for path in FILES:
        room = room_of(path)
        for other in imports_of(path) - {room}:
            assert other in LEVEL, f"{path}: {other} is no room"
            assert LEVEL[other] < LEVEL[room], f"{path}: {room} may not import {other}"


def test_the_house_has_few_rooms_and_floors():
    assert {room_of(path) for path in FILES} <= LEVEL.keys()
    assert len(LEVEL) <= 33
    assert len(FLOORS) <= 15


def test_no_class_name_stands_for_two_things():
    homes: dict[str, set[str]] = {}
    for path in FILES:
        for _, node in statements_in(path):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, set()).add(str(path.relative_to(PACKAGE)))
    assert not {name: files for name, files in homes.items() if len(files) > 1}


def test_a_call_enters_few_rooms():
    assert len(rehearsed().rooms) <= 5
    assert len(carried_out().rooms) <= 6


def test_a_call_climbs_at_most_twice():
    assert len(rehearsed().climbs) <= 2
    assert len(carried_out().climbs) <= 2


def test_nodes_never_import_each_other():
    rules = {"checks", "threads"}  # what nodes have in common
    for path in PACKAGE.glob("**/nodes/*.py"):
        for node in imports_in(path):
            imported = {node.module} if node.module else {alias.name for alias in node.names}
            assert node.level != 1 or imported <= rules, f"{path.name} imports {imported}"


@pytest.mark.parametrize("room", ["gecko_graph", "evals", "tests"])
def test_no_file_over_400_lines(room):
    for path in (ROOT / room).rglob("*.py"):
        assert path.read_text(encoding="utf-8").count("\n") <= 400, path


WORDS = {
    "graph.py": "planner validator simulator state_updater bootstrapper checklist judge",
    "toolgate/graph.py": "reasoner reranker",
}


@pytest.mark.parametrize(("graph", "word"), [(graph, word) for graph in WORDS for word in WORDS[graph].split()])
def test_one_word_five_places(graph, word):
    room = (PACKAGE / graph).parent
    modules = [room / "nodes.py", room / "nodes" / f"{word}.py", *(PACKAGE / "world").glob("*.py")]
    assert any(f"\ndef {word}(" in each.read_text(encoding="utf-8") for each in modules if each.is_file())
    text = (PACKAGE / graph).read_text(encoding="utf-8")
    assert f'add_node("{word}"' in text or f'    "{word}": partial({word},' in text
    assert (ROOT / "prompts" / f"{word}.md").is_file()
    assert (ROOT / "tests" / "nodes" / f"test_{word}.py").is_file()


def test_evals_are_not_imported_by_the_package():
    for path in FILES:
        assert "import evals" not in path.read_text(encoding="utf-8")
        assert "from evals" not in path.read_text(encoding="utf-8")


def modules_imported(path: Path) -> set[Path]:
    """Files of the same tree that a file imports, wherever in the file."""
    found: set[Path] = set()
    for node in imports_in(path):
        if not node.level:
            continue
        base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
        for alias in node.names:
            targets = (base / f"{alias.name}.py", base / alias.name / "__init__.py", base.with_suffix(".py"))
            found.add(next((each for each in targets if each.is_file()), base / "__init__.py"))
    return found - {path}


@pytest.mark.parametrize("tree", ["gecko_graph", "evals"])
def test_no_circle_of_imports(tree):
    """Also not between the files of one room, nor by an import inside a function."""
    faces = {path for path in (ROOT / tree).rglob("__init__.py") if path.read_text(encoding="utf-8").count("\n") < 70}
    left = {path: modules_imported(path) - faces for path in (ROOT / tree).rglob("*.py") if path not in faces}
    while free := {path for path, imported in left.items() if not imported & left.keys()}:
        left = {path: imported for path, imported in left.items() if path not in free}
    assert not left, sorted(str(path.relative_to(ROOT)) for path in left)


def test_docstrings_say_more_than_the_name():
    found = list(find_docstrings(PACKAGE))
    assert sum(each.repeated >= SHARE for each in found) <= 0.033 * len(found)


def test_public_names_have_docstrings():
    public = {name: getattr(gecko_graph, name) for name in gecko_graph.__all__}
    members = {
        f"{name}.{key}": member
        for name, each in public.items()
        if inspect.isclass(each) and each.__module__.startswith("gecko_graph")
        for key, member in vars(each).items()
        if not key.startswith("_") and (inspect.isfunction(member) or isinstance(member, property | classmethod))
    }
    named = {name: each for name, each in public.items() if callable(each)}
    assert [name for name, each in {**named, **members}.items() if not inspect.getdoc(each)] == []
