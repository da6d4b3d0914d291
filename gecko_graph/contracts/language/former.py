"""Explain constructs that are not part of the language, above all Jinja's, and how to write them for a value `x`."""

from __future__ import annotations

import ast
import re
from keyword import kwlist
from typing import Final

NAMED_HERE: Final = {"true": "True", "false": "False", "none": "None"}
_FORMS: Final = {
    "| length": "len(x)", "| string": "str(x)", "| first": "x[0]", "| last": "x[-1]", "| sort": "sorted(x)",
    "| tojson": "json(x)", "| lines": "x.splitlines()", "| bytes": "byte_count(x)", "| int": "int(x, default=0)",
    "| float": "float(x, default=0.0)", "| join": "', '.join(str(one) for one in x)",
    "| interleave": "[part for one in x for part in [', ', one]][1:]", "| map": "[one.field for one in x]",
    "| select": "[one for one in x if condition]", "| reject": "[one for one in x if not condition]",
    "| selectattr": "[one for one in x if one.field == y]", "| rejectattr": "[one for one in x if one.field != y]",
    **{f"| {name}": f"x.{name}()" for name in ("keys", "values", "items", "lower", "upper", "replace", "split")},
    "is defined": "defined(x)", "is undefined": "not defined(x)", "is string": "isinstance(x, str)",
    "is number": "isinstance(x, (int, float))", "is integer": "isinstance(x, int)", "is mapping": "isinstance(x, dict)",
    "is sequence": "isinstance(x, list)", "is odd": "x % 2 == 1", "is containing": "y in x", "is in": "x in y",
    "is startingwith": "x.startswith(y)", "~": "f'{a}{b}', or str(a) + str(b)",
    "all(x in list, ...)": "all(condition for x in list)", "any(x in list, ...)": "any(condition for x in list)",
    "count(x in list, ...)": "sum(1 for x in list if condition)", "each(x in list, ...)": "[value for x in list]",
}  # fmt: skip
_WORDS = re.compile(rf"\.\s*({'|'.join(kwlist)})\b")
_SIGNS = re.compile(r"~|\bis\s+(?:not\s+)?(?:containing|in|startingwith)\b")


def _explain(construct: str) -> str:
    """Return how to write a construct here; a filter without a form of its own becomes a function."""
    form = _FORMS.get(construct) or f"{construct.removeprefix('| ')}(x)"
    return f"`{construct}` is not part of the language: write {form}"


def explain_source(source: str, why: str) -> str:
    plain = re.sub(r"""'[^'\n]*'|"[^"\n]*\"""", "''", source)
    if not plain.strip():
        return "unexpected end"
    if re.search(r"\{[%#]", plain):
        return "{% %} and {# #} are not part of the language"
    if found := _SIGNS.search(plain):
        return _explain(" ".join(word for word in found[0].split() if word != "not"))
    if found := _WORDS.search(plain):
        return f"`{found[1]}` is a word of Python's: write ['{found[1]}'] in the place of .{found[1]}"
    return "it is nested too deeply" if "nested parentheses" in why else why.split(";")[0].split(" (<unknown>")[0]


def explain_node(node: ast.AST) -> str:
    """Return why a tree is not part of the language."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        right: ast.AST = node.right
        while isinstance(right, ast.BinOp | ast.Call):  # `x | f + 1`, `x | f(y)`
            right = right.left if isinstance(right, ast.BinOp) else right.func
        if isinstance(right, ast.Name):
            return _explain(f"| {right.id}")
    kinds: dict[type, str] = {ast.Lambda: "a lambda can only be the `key=` of sorted, min and max, with one argument"}
    kinds[ast.Set] = "sets are not part of the language: write a list"
    operator = f"{type(getattr(node, 'op', None)).__name__}: the operator is not part of the language"
    kinds |= {ast.BinOp: operator, ast.UnaryOp: operator}
    return kinds.get(type(node), f"{type(node).__name__}: it is not part of the language")


def explain_is(right: ast.expr) -> str:
    """Return how to write a test after `is` here; `is` itself compares only with None."""
    test = f"is {getattr(right.func if isinstance(right, ast.Call) else right, 'id', '')}"
    return _explain(test) if test in _FORMS else "`is` compares with None alone: write =="


def explain_loop(name: str, node: ast.Call) -> str | None:
    """Return how to write `all(x in list, condition)` here; None for another call."""
    is_loop = len(node.args) > 1 and isinstance(node.args[0], ast.Compare)
    construct = f"{name}(x in list, ...)"
    return _explain(construct) if is_loop and construct in _FORMS else None
