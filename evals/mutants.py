"""`python -m evals.mutants`: sixty faults, drawn by a seed, and whether the nearest tests detect each.

The faults are stored in `evals/golden/mutants.json`. They are located by function and text, so the code may move; a
fault that is not found is `gone`. `--draw` draws new ones.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "gecko_graph"
SERVICE = ROOT / "examples" / "order" / "service.py"
STORED = ROOT / "evals" / "golden" / "mutants.json"
LIMIT_S, MOST_FILES, MOST_CHARS = 600, 8, 2_000
CAUGHT = {"tests", "time"}
OPTIONS = ["-x", "-q", "-rfE", "-p", "no:cacheprovider", "-m", "not slow", "--hypothesis-profile=gecko-ci"]
LEFT_OUT = shutil.ignore_patterns(".git", "out", "__pycache__", ".*_cache", ".hypothesis")
OTHER: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


class Mutant(NamedTuple):
    """One fault: in this function, at this line, the text `was` is replaced by `becomes`."""

    file: str
    qualname: str
    line: int
    kind: str
    was: str
    becomes: str


Site: TypeAlias = tuple[Mutant, int, int]
"""A mutant, and the start and end of the replaced bytes in its file."""


def fault_of(node: ast.AST) -> tuple[ast.expr, str, str] | None:
    """Return the expression of a node that can be made faulty, the kind of the fault, and the faulty code."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            return test, "negate", f"(not ({ast.unparse(test)}))"
        case ast.Compare(left=left, ops=[op], comparators=right) if type(op) in OTHER:
            return node, "compare", f"({ast.unparse(ast.Compare(left, [OTHER[type(op)]()], right))})"
        case ast.BoolOp(op=op, values=values):
            other = ast.And() if isinstance(op, ast.Or) else ast.Or()
            return node, "and or", f"({ast.unparse(ast.BoolOp(other, values))})"
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            return value, "none", "None"
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return node, "one", str(number + 1)
    return None


def walk(node: ast.AST, qualname: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Yield the nodes that run, with their function; not type annotations, nor f-strings, which have no positions."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        qualname = f"{qualname}.{node.name}".removeprefix(".")
    yield node, qualname
    for name, field in ast.iter_fields(node):
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.AST) and name not in {"annotation", "returns"}:
                is_typing = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
                if not is_typing and not isinstance(child, ast.JoinedStr):
                    yield from walk(child, qualname)


def find_sites() -> Iterator[Site]:
    """Yield every place in the package and its example service that can be made faulty, in order."""
    for path in [*sorted(PACKAGE.rglob("*.py")), SERVICE]:
        source = path.read_bytes()
        starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
        for node, qualname in walk(ast.parse(source)):
            if found := fault_of(node):
                at, kind, becomes = found
                start = starts[at.lineno - 1] + at.col_offset
                end = starts[(at.end_lineno or 0) - 1] + (at.end_col_offset or 0)
                file, was = path.relative_to(ROOT).as_posix(), source[start:end].decode()
                yield Mutant(file, qualname, at.lineno, kind, was, becomes), start, end


def room_of(file: str) -> str:
    """Return the folder of a file, or the file's stem if it is at the top level."""
    path = Path(*Path(file).parts[1:])
    return path.parent.as_posix() if path.parent.name else path.stem


def draw(number: int, seed: int = 0) -> list[Mutant]:
    """Draw mutants: one per folder, then more from the folders with the most candidates."""
    rooms: dict[str, list[Mutant]] = {}
    for mutant, *_ in find_sites():
        rooms.setdefault(room_of(mutant.file), []).append(mutant)
    del rooms["__main__"], rooms["__init__"]
    largest = sorted(rooms, key=lambda room: -len(rooms[room]))
    chance, drawn = random.Random(seed), list[Mutant]()
    for room in islice(cycle(largest), number):
        kind = chance.choice(sorted({each.kind for each in rooms[room]}))
        drawn.append(chance.choice([each for each in rooms[room] if each.kind == kind and each not in drawn]))
    return sorted(drawn)


def find_again(mutant: Mutant, sites: Sequence[Site]) -> Site | None:
    """Return where a mutant is now: the same text in a function of that name, preferably nearby in the same file."""
    fits = [site for site in sites if site[0][1:2] + site[0][3:5] == mutant[1:2] + mutant[3:5]]
    return min(fits, key=lambda site: (site[0].file != mutant.file, abs(site[0].line - mutant.line)), default=None)


def nearest_tests(file: str) -> list[str]:
    """Return the tests of a file: its folder's, else a few files that are named after the folder or import it."""
    parts = Path(file).with_suffix("").parts[1:]
    for upto in range(len(parts), 0, -1):
        if ROOT.joinpath("tests", *parts[:upto]).is_dir():
            return ["/".join(("tests", *parts[:upto]))]
    word, room = re.compile(rf"gecko_graph(\.| import .*\b){parts[0]}\b"), f"test_{parts[0]}"
    files = sorted(ROOT.glob("tests/**/test_*.py"), key=lambda path: (not path.stem.startswith(room), path))
    fits = [path for path in files if path.stem.startswith(room) or word.search(path.read_text("utf-8"))]
    named = [path.relative_to(ROOT).as_posix() for path in fits if path.parent.name != "evals"]
    above = (path for path in PACKAGE.rglob("*.py") if re.search(rf"from \.+{parts[0]} ", path.read_text("utf-8")))
    if named or not (user := next(above, None)):
        return named[:MOST_FILES] or ["tests/test_graph.py", "tests/test_agent.py"]  # public names are imported late
    return nearest_tests(user.relative_to(ROOT).as_posix())


def first_failure(tree: Path, tests: Sequence[str], known: Iterable[str] = ()) -> str:
    """Return the first test that fails in a copy of the repository, `time` after a time-out, else an empty text.

    Tests that are known to fail are deselected.
    """
    left_out = [word for each in known for word in ("--deselect", each)]
    command = [sys.executable, "-m", "pytest", *OPTIONS, *left_out, *tests]
    env = {**os.environ, "PYTHONPATH": str(tree)}
    try:
        ran = subprocess.run(command, cwd=tree, env=env, capture_output=True, timeout=LIMIT_S, text=True)
    except subprocess.TimeoutExpired:
        return "time"
    if ran.returncode in {0, 5}:  # 5: all tests are slow
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", ran.stdout, re.MULTILINE)
    if found is None:
        raise SystemExit(f"error: pytest ended with {ran.returncode}: {(ran.stdout + ran.stderr)[-MOST_CHARS:]}")
    return found[1]


def try_all(mutants: Iterable[Mutant]) -> Iterator[tuple[Mutant, Mutant, str]]:
    """Yield each mutant, as stored and as found now, with what caught it: `tests`, `time`, `no`, or `gone`.

    A mutant is caught if a test fails that passes without it. Other failing tests are printed, and deselected from then
    on.
    """
    sites, known = list(find_sites()), set[str]()
    with TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
        (tree.parent / "shared").symlink_to(ROOT.parent / "shared")
        for mutant in mutants:
            site = find_again(mutant, sites)
            yield (mutant, site[0], try_one(tree, site, known)) if site else (mutant, mutant, "gone")


def try_one(tree: Path, site: Site, known: set[str]) -> str:
    """Return what catches a mutant; tests that also fail without it are added to `known`."""
    now, start, end = site
    tests, source = nearest_tests(now.file), (ROOT / now.file).read_bytes()
    while True:
        (tree / now.file).write_bytes(source[:start] + now.becomes.encode() + source[end:])
        failing = first_failure(tree, tests, known)
        shutil.copy2(ROOT / now.file, tree / now.file)  # with its old time, so that stale bytecode is not used
        if failing in {"", "time"}:
            return failing or "no"
        if not first_failure(tree, [failing]):
            return "tests"
        print(f"fails without a fault: {failing}", file=sys.stderr, flush=True)
        known.add(failing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", type=int, metavar="N", help="draw this many new ones")
    parser.add_argument("--only", nargs="+", metavar="ROOM", default=[], help="try only those of these folders")
    given = parser.parse_args()
    rows = {each: "" for each in draw(given.draw)} if given.draw else read_rows()
    wanted = [each for each in rows if not given.only or room_of(each.file) in given.only]
    kept = {each: (each, caught) for each, caught in rows.items()}
    for old, now, caught in try_all(wanted):
        kept[old] = now, caught
        moved = f" (before: {rows[old]})" if rows[old] not in {"", caught} else ""
        print(f"{caught:5} {now.file}:{now.line} {now.qualname}: {now.kind}{moved}", flush=True)
        lines = [json.dumps([*each, word], ensure_ascii=False) for each, word in kept.values()]
        STORED.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")  # saved at once: a run may be interrupted
    count = Counter("caught" if kept[each][1] in CAUGHT else kept[each][1] for each in wanted)
    print(f"{count['caught']} caught of {len(wanted) - count['gone']} that still exist; {count['gone']} are gone")


def read_rows() -> dict[Mutant, str]:
    return {Mutant(*row[:-1]): row[-1] for row in json.loads(STORED.read_text("utf-8"))}


if __name__ == "__main__":
    main()
