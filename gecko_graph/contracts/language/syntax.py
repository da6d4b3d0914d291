"""Parse expressions of Python and texts with `{{ }}` to trees, and find the reads of a tree.

`ast` parses one expression to the end of the source; `compiler` accepts only nodes on its whitelist. At run time only
names of the scope are looked up.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from keyword import iskeyword, kwlist
from typing import Any, Final, NamedTuple, TypeGuard

from .sandbox import Scope

Run = Callable[[Scope], Any]

MAX_SOURCE = 10_000
MAX_NODES = 500
MAX_DEPTH = 50

NAMES = frozenset(("args", "call", "before", "now", "state", "result", "calls", "answer"))
"""Reserved names, which no loop variable and no parameter of a let may have."""

PIECES = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|.""", re.DOTALL)
"""The literals of a source as wholes, everything else character by character."""

NAMED_HERE: Final = {"true": "True", "false": "False", "none": "None"}
_BLOCKS: Final = (
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

_ESCAPES = frozenset("\n\\'\"abfnrtvxuUN01234567")


class SyntaxFault(Exception):
    """Why a source is not an expression of the contract language. Leaves `contracts` as a ContractError."""


@lru_cache(maxsize=8192)
def parse_expression(source: str) -> ast.expr:
    """Return the tree of one bare expression, of bounded size, read to the end of the source. Raises SyntaxFault."""
    if len(source) > MAX_SOURCE:
        raise SyntaxFault(f"it has more than {MAX_SOURCE:,} characters")
    if source.lstrip().startswith("{{"):
        raise SyntaxFault("this is a bare expression: leave out {{ }}")
    pieces = PIECES.findall(source)
    if "#" in pieces:
        raise SyntaxFault("`#` is not part of the language")
    if unknown := next((sign for sign in re.findall(r"\\(.)", source, re.DOTALL) if sign not in _ESCAPES), None):
        raise SyntaxFault(f"Python knows no escape \\{unknown}; write \\\\ for a backslash")
    try:
        tree = ast.parse("".join(" " if one in "\r\n" else one for one in pieces).strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise SyntaxFault(_explain_source(source, getattr(error, "msg", None) or str(error))) from None
    except (RecursionError, MemoryError):
        raise SyntaxFault("it is nested too deeply") from None
    _check(tree)
    return tree


def _check(tree: ast.expr) -> None:
    """Check size, depth and names of a tree, level by level. Raises SyntaxFault."""
    level, size, depth = list[ast.AST]([tree]), 0, 0
    while level:
        size, depth = size + sum(isinstance(node, ast.expr) for node in level), depth + 1
        if size > MAX_NODES or depth > MAX_DEPTH:
            raise SyntaxFault(f"it has more than {MAX_NODES} parts or is nested more than {MAX_DEPTH} levels deep")
        for node in level:
            name = text_of(node.slice) if isinstance(node, ast.Subscript) else getattr(node, "attr", None)
            if "__" in (name or getattr(node, "id", None) or getattr(node, "arg", None) or ""):
                raise SyntaxFault("names with two underscores are not allowed")
            if (name := getattr(node, "id", "")) in NAMED_HERE:
                raise SyntaxFault(f"`{name}` is not a name here: write `{NAMED_HERE[name]}`")
        level = [child for node in level for child in ast.iter_child_nodes(node)]


@lru_cache(maxsize=8192)
def parse_text(source: str) -> Sequence[str | ast.expr]:
    """Return the parts of a text with `{{ }}`: plain text and trees. Raises SyntaxFault."""
    if len(source) > MAX_SOURCE:
        raise SyntaxFault(f"it has more than {MAX_SOURCE:,} characters")
    parts: list[str | ast.expr] = []
    done = 0
    while (begin := source.find("{{", done)) >= 0:
        end = _end_of_hole(source, begin + 2)
        parts += [_plain(source[done:begin]), parse_expression(source[begin + 2 : end])]
        done = end + 2
    return [part for part in (*parts, _plain(source[done:])) if part != ""] or [""]


def _end_of_hole(source: str, begin: int) -> int:
    depth = 0
    for piece in PIECES.finditer(source, begin):
        if piece[0] == "}" and depth == 0:
            if source[piece.end() : piece.end() + 1] != "}":
                break
            return piece.start()
        depth += (piece[0] in "([{") - (piece[0] in ")]}")
    raise SyntaxFault("`{{` is not closed by `}}`")


def _plain(text: str) -> str:
    if "{%" in text or "{#" in text:
        raise SyntaxFault(f"only {{{{ }}}} is filled in; {_BLOCKS}")
    return text


def is_name(name: Any) -> TypeGuard[str]:
    """Return whether expressions can use a name."""
    return isinstance(name, str) and name.isidentifier() and not iskeyword(name) and "__" not in name


def is_template(text: str) -> bool:
    """Return whether a text may contain an expression, or a construct to reject."""
    return "{{" in text or "{%" in text or "{#" in text


def names_of(target: ast.expr) -> tuple[str, ...]:
    """Return the variables of a loop's items, or of their parts. Raises SyntaxFault."""
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    names = tuple(part.id for part in parts if isinstance(part, ast.Name))
    if not names or len(names) < len(parts):
        raise SyntaxFault("`for` needs a name, or several, as in `for key, order in state.orders.items()`")
    if taken := NAMES.intersection(names):
        raise SyntaxFault(f"the name {min(taken)!r} is reserved; choose another")
    return names


_signature = lru_cache(maxsize=256)(inspect.signature)


def check_arguments(name: str, function: Callable[..., Any], given: int, keywords: Iterable[str]) -> None:
    """Check a call's positional and named arguments against the signature of the function.

    Raises:
        SyntaxFault: Too few, too many or unknown arguments.
    """
    try:
        _signature(function).bind(None, *[None] * given, **dict.fromkeys(keywords))
    except TypeError as error:
        raise SyntaxFault(f"{name}: {error}") from None


StatePath = tuple[str, ...]


class Reads(NamedTuple):
    """The reads of one expression.

    Attributes:
        places: Paths of the state, each with the member that is tested, as in `'bills' in state.trays`, or with None
            for the whole value. A computed key ends a path: everything below counts as read.
        calls: Whether it reads the calls.
        texts: Its text literals.
        positions: The positions of the calls that it names, as in `calls[0]`.
    """

    places: frozenset[tuple[StatePath, str | None]]
    calls: bool
    texts: frozenset[str]
    positions: frozenset[int]


@lru_cache(maxsize=8192)
def reads_of(source: str) -> Reads:
    """Return an expression's reads of `state` and `before`, its calls, and its text literals."""
    tree = parse_expression(source)
    names, texts, positions = set[str](), set[str](), set[int]()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name):
                names.add(name)
            case ast.Constant(value=str(text)):
                texts.add(text)
            case ast.Subscript(value=ast.Name(id="calls"), slice=ast.Constant(value=int(place))):
                positions.add(place)
    return Reads(frozenset(_reads(tree)), "calls" in names, frozenset(texts), frozenset(positions))


def paths_in(parts: Iterable[str | ast.expr]) -> frozenset[StatePath]:
    """Return all paths of `state` and `before` that the parts of an expression or a text read."""
    return frozenset(path for part in parts if not isinstance(part, str) for path, _ in _reads(part))


def _reads(node: ast.AST) -> Iterator[tuple[StatePath, str | None]]:
    member, inner = None, node
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
        member = text_of(node.left)
        inner = node.comparators[0] if member is not None else node
    place = state_path(inner)
    if place is not None:
        path = tuple(str(key) for key in takewhile(lambda key: key is not None, place[0]))
        yield path, member if len(path) == len(place[0]) else None
    for child in ast.iter_child_nodes(node) if place is None else place[1]:
        yield from _reads(child)


def state_path(node: ast.AST) -> tuple[list[str | None], list[ast.expr]] | None:
    """Return the keys from the state to a value, None for a computed one, and the other expressions in its path."""
    keys: list[str | None]
    others: list[ast.expr]
    match node:
        case ast.Name():
            return ([], []) if node.id in ("state", "before") else None
        case ast.Attribute():
            owner, others, keys = node.value, [], [node.attr]
        case ast.Subscript():
            owner, others, keys = node.value, [node.slice], [text_of(node.slice)]
        case ast.Call(func=ast.Name(id="at"), args=[owner, *others]):
            others = [*others, *(named.value for named in node.keywords)]
            path = node.args[1] if len(node.args) > 1 else None
            keys = [text_of(item) for item in path.elts] if isinstance(path, ast.List | ast.Tuple) else [None]
        case ast.Call(func=ast.Attribute(value=owner, attr=method)):
            others = [*node.args, *(named.value for named in node.keywords)]
            keys = [] if method == "keys" else [text_of(others[0]) if method == "get" and others else None]
        case _:
            return None
    found = state_path(owner)
    return found and ([*found[0], *keys], [*others, *found[1]])


def text_of(node: ast.expr | None) -> str | None:
    """Return the text of a literal; None for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


# constructs that are not part of the language


def _explain_source(source: str, why: str) -> str:
    plain = re.sub(r"""'[^'\n]*'|"[^"\n]*\"""", "''", source)
    if not plain.strip():
        return "unexpected end"
    if re.search(r"\{[%#]", plain):
        return _BLOCKS
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
