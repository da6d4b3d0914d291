"""The floors of the house: which room may import which; the statements of its files, each parsed once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "gecko_graph"

# a room (a folder, or a file of the top level) imports only those on lower floors
FLOORS = [
    {"masking", "state"},
    {"errors", "events"},
    {"context", "stream", "values"},
    {"schemas"},
    {"contracts", "models"},
    {"tools", "testing"},
    {"derive", "retrieval"},
    {"world"},
    {"nodes", "undo"},
    {"graph", "real"},
    {"agent", "conversation", "create", "learning", "middleware", "toolgate"},  # wings never import each other
    {"display", "scenario"},
    {"serve", "studio", "training"},
    {"cli", "pytest"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}


def room_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


@cache
def statements_in(path: Path) -> list[tuple[ast.AST, ast.AST]]:
    """All statements of a file, wherever they stand, each with what it stands in."""
    return list(_walk(ast.parse(path.read_text(encoding="utf-8"))))


def _walk(outer: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    for node in ast.iter_child_nodes(outer):
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield outer, node
            yield from _walk(node)
