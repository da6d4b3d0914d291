"""Count the docstrings that repeat a name: `python -m tests.docstrings [FOLDER] [--list]`.

A docstring repeats its name if at least half of the words of its first line, without endings and the commonest verbs,
are already said by the names of the function or class, of what it belongs to, of its parameters and of their types.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.floors import statements_in

SHARE = 0.5
_COMMON = frozenset(
    """a an the of for to in on by as is are be it its this that from with and or not no if none return returns give
    make get given one whether what each all any has have do does at who which there than then else so only""".split()  # noqa: SIM905
)
_ENDINGS = re.compile(r"(?<=\w{3})(?:ies|ing|ed|es|s|e|y)$")


class Docstring(NamedTuple):
    """A docstring's place (file, line, name), its node, its first line, and the share of it that repeats."""

    place: str
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    first: str
    repeated: float


def stems(text: str) -> set[str]:
    """Return the words of a text or an identifier, without common ones and endings."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", text)
    return {_ENDINGS.sub("", word.lower()) for word in words if word.lower() not in _COMMON}


def find_docstrings(folder: Path) -> Iterator[Docstring]:
    """Yield the docstrings of functions and classes, file by file."""
    for file in sorted(folder.rglob("*.py")):
        for outer, node in statements_in(file):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if (text := ast.get_docstring(node)) is None:
                continue
            known = [node.name, getattr(outer, "name", "")]
            if not isinstance(node, ast.ClassDef):
                known += [ast.unparse(node.args), ast.unparse(node.returns) if node.returns else ""]
            first = text.partition("\n\n")[0]
            said = stems(first)
            repeated = len(said & stems(" ".join(known))) / max(1, len(said))
            yield Docstring(f"{file}:{node.lineno} {node.name}", node, first, repeated)


def main(folder: str = "gecko_graph", *options: str) -> None:
    """Print how many repeat a name; with `--list` each of them."""
    found = list(find_docstrings(Path(folder)))
    repeating = [each for each in found if each.repeated >= SHARE]
    if "--list" in options:
        print(*(f"{each.place}: {each.first}" for each in repeating), sep="\n")
    print(f"{len(repeating)} of {len(found)} docstrings repeat the name ({100 * len(repeating) / len(found):.1f} %)")


if __name__ == "__main__":
    main(*sys.argv[1:])
