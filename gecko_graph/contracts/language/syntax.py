"""From source to tree, and what a tree reads: Jinja2's parser, and the checks that restrict it to the language.

Everything else in a tree (statements, powers, calls of values, `*args`) is refused at load, and so are filter
and test names that are not literal: nothing is looked up by name at run time. `compiler` makes closures of the rest.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import takewhile
from typing import Any, NamedTuple

from jinja2 import Environment, TemplateError, nodes
from jinja2.parser import Parser

from ...errors import did_you_mean
from .sandbox import Scope

Run = Callable[[Scope], Any]

MAX_SOURCE = 10_000
MAX_NODES = 500
MAX_DEPTH = 50

NAMES = frozenset(("args", "call", "before", "now", "state", "result", "calls", "answer"))
"""Names with a meaning of their own, which no item and no argument of a let may have."""

LOOPS = ("map", "select", "reject", "selectattr")
ITS = "the item"
"""What a loop without a name calls its items: no name of an expression."""

_GRAMMAR = Environment(optimized=False, keep_trailing_newline=True, cache_size=0, autoescape=False)


class SyntaxFault(Exception):
    """Why a source is not an expression of the contract language. Leaves `contracts` as a ContractError."""


@lru_cache(maxsize=8192)
def parse_expression(source: str) -> nodes.Expr:
    """Return the tree of one bare expression, read to the end of the source. Raises SyntaxFault."""
    with _explained("; this is a bare expression: leave out {{ }}" if source.lstrip().startswith("{{") else ""):
        parser = Parser(_GRAMMAR, _bounded(source), state="variable")
        tree = parser.parse_expression()
        if not parser.stream.eos:
            raise SyntaxFault(f"one expression ends before {parser.stream.current.value!r}")
    return tree


@lru_cache(maxsize=8192)
def parse_text(source: str) -> Sequence[str | nodes.Expr]:
    """Return the parts of a text with `{{ }}`: plain text and trees. Raises SyntaxFault."""
    with _explained():
        tokens = _GRAMMAR.lex(source) if "{%" in _bounded(source) or "{#" in source else ()
        if any(kind in ("block_begin", "comment_begin", "raw_begin") for _, kind, _ in tokens):
            raise SyntaxFault("only {{ }} is filled in; {% %} and {# #} are not part of the language")
        body = Parser(_GRAMMAR, source).parse().body
    parts: list[str | nodes.Expr] = []
    for output in body:
        if not isinstance(output, nodes.Output):
            raise SyntaxFault("only {{ }} is filled in")
        parts.extend(part.data if isinstance(part, nodes.TemplateData) else part for part in output.nodes)
    return parts


@contextmanager
def _explained(hint: str = "") -> Iterator[None]:
    try:
        yield
    except TemplateError as error:
        what = (error.message or "broken").replace("'end of template'", "end").replace("end of template", "end")
        raise SyntaxFault(f"{what}{hint}") from None
    except RecursionError:
        raise SyntaxFault("it is nested too deeply") from None
    except ValueError as error:
        raise SyntaxFault(str(error).split(";")[0]) from None


def is_template(text: str) -> bool:
    """Return whether a text may contain something to fill in or to refuse."""
    return "{{" in text or "{%" in text or "{#" in text


def _bounded(source: str) -> str:
    if len(source) > MAX_SOURCE:
        raise SyntaxFault(f"it has more than {MAX_SOURCE:,} characters")
    return source


def check_name(name: str, what: str) -> str:
    """Return `name`, unless it is one of Python's own names. Raises SyntaxFault."""
    if "__" in name:
        raise SyntaxFault(f"{what} {name!r}: two underscores are not allowed")
    return name


def known(name: str, table: Iterable[str], what: str) -> str:
    """Return `name`, if it is in the language. Raises SyntaxFault with the nearest known name."""
    names = list(table)
    if name in names:
        return name
    raise SyntaxFault(f"unknown {what} {name[:40]!r}{did_you_mean(name, names)}")


def literal(node: nodes.Node | None, what: str) -> str:
    """Return the text of a literal. Raises SyntaxFault: names of filters and tests cannot be computed."""
    if isinstance(node, nodes.Const) and isinstance(node.value, str):
        return node.value
    raise SyntaxFault(f"{what} must be written as a literal text")


def as_each(name: str, args: Sequence[Any], named: Sequence[Any]) -> Sequence[nodes.Expr]:
    """Return value and condition of the `each` that one of LOOPS stands for, over items with the name ITS.

    Raises:
        SyntaxFault: The attribute or the name of a filter or test is missing, or computed.
    """
    item: nodes.Expr = nodes.Name(ITS, "load")
    if name == "map" and args:
        return [nodes.Filter(item, literal(args[0], "map's filter"), args[1:], named, None, None)]
    if name == "map":
        if [keyword.key for keyword in named] != ["attribute"]:
            raise SyntaxFault("map needs a filter's name, or attribute=")
        return [attribute_node(item, named[0].value)]
    subject = item
    if name == "selectattr":
        if not args:
            raise SyntaxFault("selectattr needs an attribute")
        subject, args = attribute_node(item, args[0]), args[1:]
    test = nodes.Test(subject, literal(args[0], f"{name}'s test"), args[1:], named, None, None) if args else subject
    return [item, nodes.Not(test) if name == "reject" else test]


def attribute_node(item: nodes.Expr, attribute: Any) -> nodes.Expr:
    """Return `item.owner.name` for `owner.name`."""
    is_index = isinstance(attribute, nodes.Const) and type(attribute.value) is int
    path = str(attribute.value) if is_index else literal(attribute, "an attribute")
    for key in path.split("."):
        if key.isdecimal():
            item = nodes.Getitem(item, nodes.Const(int(key)), "load")
        else:
            item = nodes.Getattr(item, key, "load")
    return item


_signature = lru_cache(maxsize=256)(inspect.signature)


def check_arguments(name: str, function: Callable[..., Any], given: int, keywords: Iterable[str]) -> None:
    """Check a call's arguments, so many by place and these by name, against the signature of the function.

    Raises:
        SyntaxFault: Too few, too many or unknown arguments.
    """
    try:
        _signature(function).bind(None, *[None] * given, **dict.fromkeys(keywords))
    except TypeError as error:
        raise SyntaxFault(f"{name}: {error}") from None


def no_spread(node: Any) -> None:
    """Refuse `f(*list)` and `f(**object)`. Raises SyntaxFault."""
    if node.dyn_args is not None or node.dyn_kwargs is not None:
        raise SyntaxFault("arguments cannot be spread with * or **")


def describe(node: nodes.Node) -> str:
    """Return a value's text in the expression, for messages."""
    if isinstance(node, nodes.Name):
        return node.name
    if isinstance(node, nodes.Getattr):
        return f"{describe(node.node)}.{node.attr}"
    if isinstance(node, nodes.Getitem):
        key = repr(node.arg.value) if isinstance(node.arg, nodes.Const) else describe(node.arg)
        return f"{describe(node.node)}[{key}]"
    if isinstance(node, nodes.Filter):
        return f"{describe(node.node)} | {node.name}" if node.node is not None else node.name
    if isinstance(node, nodes.Call):
        return f"{describe(node.node)}(...)"
    return "the value"


StatePath = tuple[str, ...]
CALLS = nodes.Name("calls", "load")


class Reads(NamedTuple):
    """What one expression reads.

    Attributes:
        places: Paths of the state, each with the member that is tested, as in `'bills' in state.trays`, or with
            None for all of it. A computed key ends a path: everything below counts as read.
        calls: Whether it reads the calls.
        texts: The text literals in it.
        positions: The calls that it names by their position, as in `calls[0]`.
    """

    places: frozenset[tuple[StatePath, str | None]]
    calls: bool
    texts: frozenset[str]
    positions: frozenset[int]


@lru_cache(maxsize=8192)
def reads_of(source: str) -> Reads:
    """Return what an expression reads of `state` and `before`, which calls, and its text literals."""
    tree = parse_expression(source)
    names = {node.name for node in tree.find_all(nodes.Name)} | {getattr(tree, "name", None)}
    texts = [node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)]
    items = [node for node in (tree, *tree.find_all(nodes.Getitem)) if isinstance(node, nodes.Getitem)]
    keys = [item.arg.value for item in items if item.node == CALLS and isinstance(item.arg, nodes.Const)]
    positions = frozenset(key for key in keys if type(key) is int)
    return Reads(frozenset(_reads(tree)), "calls" in names, frozenset(texts), positions)


def paths_in(parts: Iterable[str | nodes.Expr]) -> frozenset[StatePath]:
    """Return all paths of `state` and `before` that the parts of an expression or a text read."""
    return frozenset(path for part in parts if not isinstance(part, str) for path, _ in _reads(part))


def _reads(node: nodes.Node) -> Iterator[tuple[StatePath, str | None]]:
    member, inner = None, node
    if isinstance(node, nodes.Compare) and [operand.op for operand in node.ops] in (["in"], ["notin"]):
        member = _text(node.expr)
        inner = node.ops[0].expr if member is not None else node
    place = _state_path(inner)
    if place is not None:
        yield tuple(str(key) for key in takewhile(lambda key: key is not None, place[0])), member
    for child in node.iter_child_nodes() if place is None else place[1]:
        yield from _reads(child)


def _state_path(node: nodes.Node) -> tuple[list[str | None], list[nodes.Node]] | None:
    """Return the keys from the state to a value, None for a computed one, and the other expressions in its path."""
    if isinstance(node, nodes.Name):
        return ([], []) if node.name in ("state", "before") else None
    keys: list[str | None]
    if isinstance(node, nodes.Getattr | nodes.Getitem):
        owner, others = node.node, [node.arg] if isinstance(node, nodes.Getitem) else []
        keys = [node.attr if isinstance(node, nodes.Getattr) else _text(node.arg)]
    elif isinstance(node, nodes.Call) and getattr(node.node, "name", "") == "at" and node.args:
        owner, *others = [*node.args, *(named.value for named in node.kwargs)]
        path = node.args[1] if len(node.args) > 1 else None
        keys = [_text(item) for item in path.items] if isinstance(path, nodes.List) else [None]
    else:
        return None
    found = _state_path(owner)
    return found and ([*found[0], *keys], [*others, *found[1]])


def _text(node: nodes.Node | None) -> str | None:
    return node.value if isinstance(node, nodes.Const) and isinstance(node.value, str) else None
