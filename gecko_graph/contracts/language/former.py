"""Explain constructs that are not part of the language, above all Jinja's, and how to write them for a value `x`."""

from __future__ import annotations

import ast
import re
from collections.abc import Container
from keyword import kwlist
from typing import Any, Final

NAMED_HERE: Final = {"true": "True", "false": "False", "none": "None"}
BLOCKS: Final = (
    "{% %} and {# #} are not part of the language: write [value for one in x], a if condition else b, or a let"
)
_EACH: Final = "[one for one in x if "
_FORMS: Final = {
    "| length": "len(x)", "| count": "len(x)", "| string": "str(x)", "| first": "x[0]", "| last": "x[-1]",
    "| sort": "sorted(x)", "| tojson": "json(x)", "| pprint": "json(x)", "| lines": "x.splitlines()",
    "| bytes": "byte_count(x)", "| int": "int(x, default=0)", "| float": "float(x, default=0.0)",
    "| default": "default(x, y)", "| d": "default(x, y)", "| trim": "x.strip()", "| reverse": "x[::-1]",
    "| slice": "x[a:b]", "| truncate": "x[:y]", "| wordcount": "len(x.split())", "| attr": "x.field",
    "| capitalize": "x[:1].upper() + x[1:].lower()", "| format": "f'{a}{b}'", "| dictsort": "sorted(x.items())",
    "| random": "random_int(0, len(x) - 1)", "| replace": "x.replace(a, b)", "| escape": "x", "| safe": "x",
    "| join": "', '.join(str(one) for one in x)", "| map": "[one.field for one in x]",
    "| interleave": "[part for one in x for part in [', ', one]][1:]",
    "| select": f"{_EACH}condition]", "| reject": f"{_EACH}not condition]", "| groupby": f"{_EACH}one.field == y]",
    "| selectattr": f"{_EACH}one.field == y]", "| rejectattr": f"{_EACH}one.field != y]",
    **{f"| {name}": f"x.{name}()" for name in ("keys", "values", "items", "lower", "upper", "split")},
    "is defined": "defined(x)", "is undefined": "not defined(x)", "is string": "isinstance(x, str)",
    "is number": "isinstance(x, (int, float))", "is integer": "isinstance(x, int)", "is float": "isinstance(x, float)",
    "is boolean": "isinstance(x, bool)", "is mapping": "isinstance(x, dict)", "is sequence": "isinstance(x, list)",
    "is iterable": "isinstance(x, (list, dict, str))", "is odd": "x % 2 == 1", "is even": "x % 2 == 0",
    "is divisibleby": "x % y == 0", "is true": "x == True", "is false": "x == False", "is none": "x is None",
    "is lower": "x == x.lower()", "is upper": "x == x.upper()", "is containing": "y in x", "is in": "x in y",
    "is startingwith": "x.startswith(y)",
    **{f"is {name}": f"x {sign} y" for sign, names in (
        ("==", "eq equalto sameas"), ("!=", "ne"), ("<", "lt lessthan"), ("<=", "le"), (">", "gt greaterthan"),
        (">=", "ge")) for name in names.split()},
    "~": "f'{a}{b}', or str(a) + str(b)",
    "all(x in list, ...)": "all(condition for x in list)", "any(x in list, ...)": "any(condition for x in list)",
    "count(x in list, ...)": "sum(1 for x in list if condition)", "each(x in list, ...)": "[value for x in list]",
}  # fmt: skip
_SIGNS_OF: Final[dict[Any, str]] = {
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
_SIGNS = re.compile(r"~|\bis\s+(?:not\s+)?(?:containing|in|startingwith)\b")


def _explain(construct: str, functions: Container[str] = ()) -> str:
    """Return why a construct is refused, with its form in this language if there is one."""
    name = construct.removeprefix("| ")
    form = _FORMS.get(construct) or (f"{name}(x)" if name in functions else None)
    return f"`{construct}` is not part of the language{f': write {form}' if form else ', which has no equivalent'}"


def explain_source(source: str, why: str) -> str:
    plain = re.sub(r"""'[^'\n]*'|"[^"\n]*\"""", "''", source)
    if not plain.strip():
        return "unexpected end"
    if re.search(r"\{[%#]", plain):
        return BLOCKS
    if found := _SIGNS.search(plain):
        return _explain(" ".join(word for word in found[0].split() if word != "not"))
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
            return _explain(f"| {right.id}", functions)
    if sign := _SIGNS_OF.get(type(getattr(node, "op", None))):
        return f"`{sign}` is not part of the language"
    return _PARTS.get(type(node), f"{type(node).__name__} is not part of the language")


def explain_is(right: ast.expr) -> str:
    """Return how to write a test after `is` here; `is` itself compares only with None."""
    value = getattr(right, "value", None)  # `is True` is Python's
    test = f"is {getattr(right.func if isinstance(right, ast.Call) else right, 'id', str(value).lower())}"
    return _explain(test) if test in _FORMS else "`is` compares with None alone: write =="


def explain_loop(name: str, node: ast.Call) -> str | None:
    """Return how to write `all(x in list, condition)` here; None for another call."""
    is_loop = len(node.args) > 1 and isinstance(node.args[0], ast.Compare)
    construct = f"{name}(x in list, ...)"
    return _explain(construct) if is_loop and construct in _FORMS else None
