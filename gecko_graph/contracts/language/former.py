"""What is not of the language, for messages: above all forms of Jinja, each with the form that it has here."""

from __future__ import annotations

import ast
import re
from keyword import kwlist
from typing import Final

NAMED_HERE: Final = {"true": "True", "false": "False", "none": "None"}
_TESTS: Final = {
    "defined": "defined({})", "undefined": "not defined({})", "string": "isinstance({}, str)",
    "number": "isinstance({}, (int, float))", "integer": "isinstance({}, int)", "mapping": "isinstance({}, dict)",
    "sequence": "isinstance({}, list)", "odd": "{} % 2 == 1", "containing": "VALUE in {}", "in": "{} in VALUE",
    "startingwith": "{}.startswith(VALUE)",
}  # fmt: skip
_METHODS: Final = ("keys", "values", "items", "lower", "upper", "replace", "split")
_FILTERS: Final = {
    "length": "len({x})", "string": "str({x})", "first": "{x}[0]", "last": "{x}[-1]", "sort": "sorted({x})",
    "tojson": "json({x})", "lines": "{x}.splitlines()", "bytes": "byte_count({x})", "unique": "unique({x})",
    "join": "{a}.join(str(one) for one in {x})", "int": "int({x}, default={a})", "float": "float({x}, default={a})",
    "interleave": "[part for one in {x} for part in [{a}, one]][1:]", "map": "[one.{f} for one in {x}]",
    "select": "[one for one in {x} if CONDITION]", "reject": "[one for one in {x} if not CONDITION]",
    "selectattr": "[one for one in {x} if one.{f} == {a}]", "rejectattr": "[one for one in {x} if one.{f} != {a}]",
}  # fmt: skip
"""Filter to what is written here, where that is no function of its name: of a value, an argument and a field."""

_LOOPS: Final = {
    "all": "all({1} for {0})", "any": "any({1} for {0})", "count": "sum(1 for {0} if {1})", "each": "[{1} for {0}]",
}  # fmt: skip
_SIGNS: Final = (
    (re.compile(r"\{[%#]"), "{{% %}} and {{# #}} are not part of the language"),
    (re.compile("~"), "`~` is not part of the language: write f'{{a}}{{b}}', or str(a) + str(b)"),
    (re.compile(rf"\.\s*({'|'.join(kwlist)})\b"), "`{0}` is a word of Python's: write ['{0}'] in the place of .{0}"),
    (
        re.compile(r"\bis\s+(?:not\s+)?(containing|in|startingwith)\b"),
        "`is {0}` is not part of the language: write {1}",
    ),
    (re.compile(r"\A\s*\Z"), "unexpected end"),
)


def explain_source(source: str, why: str) -> str:
    """Return why a source cannot be parsed."""
    plain = re.sub(r"""'[^'\n]*'|"[^"\n]*\"""", "''", source)
    for sign, form in _SIGNS:
        if found := sign.search(plain):
            word = found[1] if sign.groups else ""
            return form.format(word, _TESTS.get(word, "").format("x"))
    return "it is nested too deeply" if "nested parentheses" in why else why.split(";")[0].split(" (<unknown>")[0]


def explain_node(node: ast.AST) -> str:
    """Return why a tree is not of the language."""
    match node:
        case ast.BinOp(op=ast.BitOr()) if (form := _write(node)) != ast.unparse(node):
            return f"`|` is not part of the language: write {form}"
        case ast.Lambda():
            return "a lambda stands only as `key=` of sorted, min and max, with one argument"
        case ast.Set():
            return "sets are not part of the language: write a list"
        case ast.BinOp(op=op) | ast.UnaryOp(op=op):
            return f"{type(op).__name__}: the operator is not part of the language"
    return f"{type(node).__name__}: it is not part of the language"


def _write(node: ast.expr) -> str:
    """Return a value as it is written here, the filters after it too."""
    match node:
        case ast.BinOp(op=ast.BitOr(), left=left, right=ast.Name(id=name)):
            args, keywords = list[ast.expr](), list[ast.keyword]()
        case ast.BinOp(op=ast.BitOr(), left=left, right=ast.Call(func=ast.Name(id=name), args=args, keywords=keywords)):
            pass
        case ast.BinOp(op=ast.BitOr(), left=left, right=ast.BinOp(left=inner, op=op, right=other)):  # x | f + 1
            return ast.unparse(ast.BinOp(ast.Name(_write(ast.BinOp(left, node.op, inner))), op, other))
        case _:
            return ast.unparse(node)
    given = [ast.unparse(one) for one in args]
    fields = [one.value for one in (*(each.value for each in keywords), *args) if isinstance(one, ast.Constant)]
    if name not in _FILTERS:
        value = _write(left)
        return f"{value}.{name}({', '.join(given)})" if name in _METHODS else f"{name}({', '.join([value, *given])})"
    return _FILTERS[name].format(x=_write(left), a=given[-1] if given else "VALUE", f=fields[0] if fields else "FIELD")


def explain_is(left: ast.expr, is_not: bool, right: ast.expr) -> str:
    """Return how a test after `is` is written here; `is` itself compares with None alone."""
    test = getattr(right.func if isinstance(right, ast.Call) else right, "id", "")
    if test not in _TESTS:
        return "`is` compares with None alone: write =="
    form = _TESTS[test].format(ast.unparse(left))
    form = f"not {form}".removeprefix("not not ") if is_not else form
    return f"`is {test}` is not part of the language: write {form}"


def explain_loop(name: str, node: ast.Call) -> str | None:
    """Return how `all(x in list, condition)` is written here; None for another call."""
    if name not in _LOOPS or len(node.args) < 2 or not isinstance(node.args[0], ast.Compare):
        return None
    loop, value, *condition = map(ast.unparse, node.args)
    form = _LOOPS[name].format(loop + "".join(f" if {one}" for one in condition), value)
    return f"{name}(x in list, ...) is not part of the language: write {form}"
