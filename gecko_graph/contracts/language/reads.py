"""What a checklist item's check reads, by its source: paths of the state, and whether the calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from jinja2 import nodes

from .syntax import parse_expression

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
    member = None
    if isinstance(node, nodes.Compare) and [operand.op for operand in node.ops] in (["in"], ["notin"]):
        member = _text(node.expr)
    inner = node.ops[0].expr if member is not None and isinstance(node, nodes.Compare) else node
    place = _state_path(inner)
    if place is not None:
        yield place[0], member
    children = node.iter_child_nodes() if place is None else _other_expressions(inner)
    for child in children:
        yield from _reads(child)


def _state_path(node: nodes.Node) -> tuple[StatePath, bool] | None:
    """Return the literal keys from the state to a value, and whether more may follow; None for other values."""
    if isinstance(node, nodes.Name):
        return ((), True) if node.name in ("state", "before") else None
    owner = _owner(node)
    found = None if owner is None else _state_path(owner)
    if found is None:
        return None
    keys, whole = found
    for key in _keys(node):
        whole = whole and key is not None
        keys = (*keys, key) if whole and key is not None else keys
    return keys, whole


def _owner(node: nodes.Node) -> nodes.Node | None:
    """Return the owner of a part: `a` for `a.b`, `a['b']` and `at(a, path)`."""
    if isinstance(node, nodes.Getattr | nodes.Getitem):
        return node.node
    if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Name) and node.node.name == "at":
        return node.args[0] if node.args else None
    return None


def _keys(node: Any) -> list[str | None]:
    if isinstance(node, nodes.Call):
        path = node.args[1] if len(node.args) > 1 else None
        return [_text(item) for item in path.items] if isinstance(path, nodes.List) else [None]
    return [node.attr if isinstance(node, nodes.Getattr) else _text(node.arg)]


def _text(node: nodes.Node) -> str | None:
    return node.value if isinstance(node, nodes.Const) and isinstance(node.value, str) else None


def _other_expressions(node: nodes.Node) -> Iterator[nodes.Node]:
    """Yield the expressions in a path besides its owners: computed keys, a path, a default."""
    while (owner := _owner(node)) is not None:
        yield from (child for child in node.iter_child_nodes() if child is not owner)
        node = owner
