"""Explain constructs that are not part of the language, above all Jinja's."""

from __future__ import annotations

import ast
import re
from collections.abc import Container
from keyword import kwlist
from typing import Final

NAMED_HERE: Final = {"true": "True", "false": "False", "none": "None"}
BLOCKS: Final = (
    "{% %} and {# #} are not part of the language: write [value for one in x], a if condition else b, or a let"
)
_SIGNS_OF: Final[dict[type | None, str]] = {
    ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<",
    ast.RShift: ">>", ast.Invert: "~",
}  # fmt: skip
_PARTS: Final = {
    ast.Lambda: "a lambda can only be the `key=` of sorted, min and max, with one argument",
    ast.Set: "sets are not part of the language: write a list",
    ast.Starred: "a list cannot be spread with *: write a + b",
    ast.NamedExpr: "`:=` is not part of the language: use a let",
    ast.Await: "`await` is not part of the language",
}
_WORDS = re.compile(rf"\.\s*({'|'.join(kwlist)})\b")


def explain_source(source: str, why: str) -> str:
    plain = re.sub(r"""'[^'\n]*'|"[^"\n]*\"""", "''", source)
    if not plain.strip():
        return "unexpected end"
    if re.search(r"\{[%#]", plain):
        return BLOCKS
    if "~" in plain:
        return "`~` is not part of the language: write f'{a}{b}', or str(a) + str(b)"
    if found := _WORDS.search(plain):
        return f"`{found[1]}` is a word of Python's: write ['{found[1]}'] in the place of .{found[1]}"
    return "it is nested too deeply" if "nested parentheses" in why else why.split(";")[0].split(" (<unknown>")[0]


def explain_node(node: ast.AST, functions: Container[str]) -> str:
    """Return why a tree is not of the language, whose functions are given by name."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        right: ast.AST = node.right
        while isinstance(right, ast.BinOp | ast.Call):  # `x | f + 1`, `x | f(y)`
            right = right.left if isinstance(right, ast.BinOp) else right.func
        if isinstance(right, ast.Name):
            form = f"{right.id}(x)" if right.id in functions else "a function or a method, such as len(x)"
            return f"`| {right.id}` is not part of the language: write {form}"
    if sign := _SIGNS_OF.get(type(getattr(node, "op", None))):
        return f"`{sign}` is not part of the language"
    return _PARTS.get(type(node), f"{type(node).__name__} is not part of the language")
