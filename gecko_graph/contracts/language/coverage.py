"""Whether what an expression asks of a collection has been read, where reads have shown only a part of it.

A key that is there was shown. All things of which a condition asks were shown where a read has shown a part that holds
them: `each(b in state.bills | values, b.amount, b.owner == args.owner)` needs the bills of that owner, and no others.
Every other use needs the whole collection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from jinja2 import nodes

from .compiler import compile_parts
from .operators import QUANTIFIERS, key_of, read_items
from .sandbox import Scope, a_list, bound
from .syntax import Run

_STATES = ("state", "before")
_EQUAL = ("eq", "equalto", "==")


Loops: TypeAlias = tuple[tuple[str, Run], ...]
"""The names of items, each with the list that a loop around the place goes over."""


class Use(NamedTuple):
    """What an expression asks of a collection: one key, the things with these values in their fields, or all."""

    root: str
    loops: Loops = ()
    key: Run | None = None
    fields: Mapping[str, Run] | None = None


def uses_of(parts: Sequence[str | nodes.Expr]) -> tuple[Use, ...]:
    """Return what an expression asks of the collections at the root of its state."""
    return tuple(use for part in parts if not isinstance(part, str) for use in _uses(part))


def find_unshown(uses: Sequence[Use], scope: Scope) -> str | None:
    """Return the first collection of which a use needs what no read has shown."""
    return next((use.root for use in uses if use.root in scope.partial and not _is_shown(use, scope)), None)


def _is_shown(use: Use, scope: Scope) -> bool:
    if use.loops:
        (name, items), *inner = use.loops
        for item in a_list(items(scope), name):
            scope.tick()
            with bound(scope.values, name):
                scope.values[name] = item
                if not _is_shown(use._replace(loops=tuple(inner)), scope):
                    return False
        return True
    if use.key is not None:
        held, key = scope.values["state"].get(use.root), key_of(use.key(scope))
        return isinstance(held, dict) and (not isinstance(key, str) or key in held)  # what is no key is in none
    if not use.fields:
        return False
    values = {field: run(scope) for field, run in use.fields.items()}
    return any(part and part.items() <= values.items() for part in scope.partial[use.root])


def _uses(node: nodes.Node, loops: Loops = ()) -> Iterator[Use]:
    if isinstance(node, nodes.Test) and node.name in ("defined", "undefined") and _root_of(node.node) is not None:
        return
    if (root := _root_of(node)) is not None:
        yield Use(root)
        return
    owner, key = _keyed(node)
    if (root := _root_of(owner)) is not None and key is not None:
        yield Use(root, loops, key=compile_parts([key]).run)
        yield from _uses(key, loops)
        return
    source, fields, others = _chosen(node)
    if (root := _root_of(source)) is not None:
        yield Use(root, loops, fields={name: compile_parts([value]).run for name, value in fields.items()})
    elif isinstance(node, nodes.Call) and others:
        variable, listed = read_items(getattr(node.node, "name", ""), node)
        items = cast("nodes.Expr", listed)
        yield from _uses(items, loops)
        loops = (*loops, (variable, compile_parts([items]).run))
    for child in node.iter_child_nodes() if root is None and not others else others:
        yield from _uses(child, loops)


def _root_of(node: nodes.Node | None) -> str | None:
    """Return the key of `state.key`."""
    if isinstance(node, nodes.Filter) and node.name == "default":
        return _root_of(node.node)
    if isinstance(node, nodes.Getattr | nodes.Getitem) and getattr(node.node, "name", None) in _STATES:
        key = node.attr if isinstance(node, nodes.Getattr) else getattr(node.arg, "value", None)
        return key if isinstance(key, str) else None
    return None


def _keyed(node: nodes.Node) -> tuple[nodes.Node | None, nodes.Expr | None]:
    """Return the owner and the key of `owner[key]`, `owner.key` and `key in owner`."""
    if isinstance(node, nodes.Getattr):
        return node.node, nodes.Const(node.attr)
    if isinstance(node, nodes.Getitem) and not isinstance(node.arg, nodes.Slice):
        return node.node, node.arg
    if isinstance(node, nodes.Compare) and len(node.ops) == 1 and node.ops[0].op in ("in", "notin"):
        return node.ops[0].expr, node.expr
    if isinstance(node, nodes.Call) and getattr(node.node, "name", "") == "at" and len(node.args) > 1:
        path = node.args[1]
        return (node.args[0], path.items[0]) if isinstance(path, nodes.List) and path.items else (None, None)
    return None, None


def _chosen(node: nodes.Node) -> tuple[nodes.Node | None, dict[str, nodes.Expr], list[nodes.Node]]:
    """Return the list that a loop goes over, the values that it asks for by field, and its other expressions."""
    if isinstance(node, nodes.Filter) and node.name == "selectattr" and len(node.args) == 3 and not node.kwargs:
        field, test, value = node.args
        if getattr(test, "value", None) in _EQUAL and isinstance(field, nodes.Const) and node.node is not None:
            source, _ = _listed(node.node)
            return source, {field.value: value}, [value]
    if not (isinstance(node, nodes.Call) and getattr(node.node, "name", "") in QUANTIFIERS):
        return None, {}, []
    name = str(getattr(node.node, "name", ""))
    variable, items = read_items(name, node)
    source, is_pair = _listed(items)
    condition = node.args[-1] if name != "each" or len(node.args) > 2 else None
    item: Any = ("value",) if is_pair else ()
    found = _equalities(condition, variable, item, is_denied=name == "all") if condition is not None else {}
    return source, found, [*node.args[1:]]


def _listed(node: nodes.Node) -> tuple[nodes.Node | None, bool]:
    """Return what `x | values` or `x | items` lists, and whether as pairs."""
    if isinstance(node, nodes.Filter) and node.name in ("values", "items") and not node.args:
        return node.node, node.name == "items"
    return node, False


def _equalities(node: nodes.Node, variable: str, above: tuple[str, ...], *, is_denied: bool) -> dict[str, nodes.Expr]:
    """Return the fields that must equal a value where a condition holds; with `is_denied`, where it does not."""
    if isinstance(node, nodes.Not):
        return _equalities(node.node, variable, above, is_denied=not is_denied)
    if isinstance(node, nodes.Or if is_denied else nodes.And):
        left, right = (_equalities(each, variable, above, is_denied=is_denied) for each in (node.left, node.right))
        return {**left, **right}
    if not isinstance(node, nodes.Compare) or [each.op for each in node.ops] != ["ne" if is_denied else "eq"]:
        return {}
    for one, other in ((node.expr, node.ops[0].expr), (node.ops[0].expr, node.expr)):
        path = _path(one)
        inside = {each.name for each in [other, *other.find_all(nodes.Name)] if isinstance(each, nodes.Name)}
        if path[:-1] == (variable, *above) and variable not in inside:
            return {path[-1]: other}
    return {}


def _path(node: nodes.Node) -> tuple[str, ...]:
    if isinstance(node, nodes.Name):
        return (node.name,)
    if isinstance(node, nodes.Getattr):
        return (*_path(node.node), node.attr) if _path(node.node) else ()
    return ()
