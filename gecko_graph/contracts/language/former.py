"""What is not of the language, for messages: above all forms of Jinja, each with the form that it has here."""

from __future__ import annotations

import ast
import re
from keyword import kwlist
from typing import Final

NAMES: Final = {"true": "True", "false": "False", "none": "None"}
_TESTS: Final = {
    "defined": "defined({})", "undefined": "not defined({})", "none": "{} is None", "string": "isinstance({}, str)",
    "number": "isinstance({}, (int, float))", "integer": "isinstance({}, int)", "mapping": "isinstance({}, dict)",
    "sequence": "isinstance({}, (list, str, dict))", "odd": "{} % 2 == 1", "even": "{} % 2 == 0",
    "containing": "VALUE in {}", "in": "{} in VALUE", "startingwith": "{}.startswith(VALUE)",
}  # fmt: skip
_FILTERS: Final = {
    "length": "len({})", "count": "len({})", "string": "str({})", "first": "{}[0]", "last": "{}[-1]", "d": "default({}, VALUE)",
    "sort": "sorted({})", "tojson": "json({})", "lines": "{}.splitlines()", "bytes": "byte_count({})",
    "join": "', '.join(str(one) for one in {})", "default": "default({}, VALUE)", "round": "round({}, 0)",
    "int": "int({}, default=VALUE)", "interleave": "[part for one in {} for part in [VALUE, one]][1:]",
    "map": "[one.FIELD for one in {}]", "select": "[one for one in {} if CONDITION]",
    "reject": "[one for one in {} if not CONDITION]", "selectattr": "[one for one in {} if one.FIELD == VALUE]",
    "rejectattr": "[one for one in {} if one.FIELD != VALUE]",
    **{name: f"{{}}.{name}()" for name in ("keys", "values", "items", "lower", "upper", "replace", "split")},
}  # fmt: skip
"""Filter to what is written here, where that is not a function of its name."""

_LOOPS: Final = {
    "all": "all({1} for {0})", "any": "any({1} for {0})", "count": "sum(1 for {0} if {1})", "each": "[{1} for {0}]",
}  # fmt: skip
_KEYWORD = re.compile(rf"\.\s*({'|'.join(kwlist)})\b")
_TEST = re.compile(r"\bis\s+(not\s+)?([a-z]\w*)")


def explain_source(source: str, why: str) -> str:
    """Return why a source cannot be parsed."""
    plain = re.sub(r"""'[^'\n]*'|"[^"\n]*\"""", "''", source)
    if "{{" in plain:
        return "this is a bare expression: leave out {{ }}"
    if "{%" in plain or "{#" in plain:
        return "{% %} and {# #} are not part of the language"
    if "~" in plain:
        return "`~` is not part of the language: write f'{a}{b}', or str(a) + str(b)"
    if found := _KEYWORD.search(plain):
        return f"`{found[1]}` is a word of Python's: write ['{found[1]}'] in the place of .{found[1]}"
    if (found := _TEST.search(plain)) and found[2] in _TESTS:
        return _explain_test("VALUE", bool(found[1]), found[2])
    if not plain.strip() or "EOF" in why:
        return "unexpected end"
    return "it is nested too deeply" if "nested parentheses" in why else why.split(" (<unknown>")[0]


def explain_node(node: ast.AST) -> str:
    """Return why a tree is not of the language."""
    match node:
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _explain_filter(left, right)
        case ast.BinOp(op=ast.Pow()):
            return "powers are not part of the language"
        case ast.Lambda():
            return "a lambda stands only as `key=` of sorted, min and max, with one argument"
        case ast.Set():
            return "sets are not part of the language: write a list"
        case ast.Starred():
            return "arguments cannot be spread with * or **"
    name = type(node.op if isinstance(node, ast.BinOp | ast.UnaryOp) else node).__name__
    return f"{name}: it is not part of the language"


def _explain_filter(left: ast.expr, right: ast.expr) -> str:
    name = right.func if isinstance(right, ast.Call) else right
    if not isinstance(name, ast.Name):
        return "`|` is not part of the language"
    form, value = _FILTERS.get(name.id, name.id + "({})"), ast.unparse(left)
    if isinstance(right, ast.Call):
        literals = {keyword.arg: keyword.value for keyword in right.keywords} | dict(enumerate(right.args))
        field = literals.get("attribute", literals.get(0))
        if "FIELD" in form and isinstance(field, ast.Constant):
            form = form.replace("FIELD", str(field.value))
        given = [ast.unparse(one) for one in (right.args[2:] if "attr" in name.id else right.args)]
        form = form.replace("VALUE", ", ".join(given) or "VALUE")
        form = form.replace("()", f"({', '.join(given)})") if given and form.endswith("()") else form
    return f"`|` is not part of the language: write {form.replace('{}', value)}"


def explain_is(left: ast.expr, is_not: bool, right: ast.expr) -> str:
    """Return how a test after `is` is written here; `is` itself compares with None alone."""
    name = right.func if isinstance(right, ast.Call) else right
    if isinstance(name, ast.Name) and name.id in _TESTS:
        return _explain_test(ast.unparse(left), is_not, name.id)
    return "`is` compares with None alone: write =="


def _explain_test(value: str, is_not: bool, test: str) -> str:
    form = _TESTS[test].format(value)
    if is_not:
        form = (
            form.replace(" is ", " is not ")
            if test == "none"
            else form.removeprefix("not ")
            if test[:2] == "un"
            else f"not {form}"
        )
    return f"`is {test}` is not part of the language: write {form}"


def explain_loop(name: str, node: ast.Call) -> str | None:
    """Return how `all(x in list, condition)` is written here; None for another call."""
    if name not in _LOOPS or not isinstance(node.args[:1] and node.args[0], ast.Compare) or len(node.args) < 2:
        return None
    loop, value, *condition = (ast.unparse(argument) for argument in node.args)
    form = _LOOPS[name].format(loop + (f" if {condition[0]}" if condition else ""), value)
    return f"{name}(x in list, ...) is not part of the language: write {form}"
