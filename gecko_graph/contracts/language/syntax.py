"""From source to tree: Jinja2's parser, and the checks that restrict its trees to the contract language.

Everything else in a tree (statements, powers, calls of values, `*args`) is refused at load, and so are filter
and test names that are not literal: nothing is looked up by name at run time. `compiler` makes closures of the rest.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

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
        if _has_statements(_bounded(source)):
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


def _has_statements(source: str) -> bool:
    if "{%" not in source and "{#" not in source:
        return False
    begins = ("block_begin", "comment_begin", "raw_begin")
    return any(kind in begins for _, kind, _ in _GRAMMAR.lex(source))


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


@lru_cache(maxsize=256)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


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
