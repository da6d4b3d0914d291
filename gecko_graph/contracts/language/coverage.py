"""Decide whether reads have shown the parts of a collection that an expression uses.

An existing key was shown. The things of a condition were shown if a read has shown a part that contains them:
`[b.amount for b in state.bills.values() if b.owner == args.owner]` needs only the bills of that owner. Every other use
needs the whole collection.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from .compiler import compile_parts
from .operators import Rounds, find_rounds, key_of
from .sandbox import Scope
from .syntax import Run, names_of, state_path

Loop: TypeAlias = ast.ListComp | ast.GeneratorExp | ast.DictComp
Loops: TypeAlias = tuple[Rounds, ...]
"""The loops around a place, the outermost first."""


class Use(NamedTuple):
    """The use of a collection by an expression: one key, the things with these values in their fields, or all."""

    root: str
    loops: Loops = ()
    key: Run | None = None
    fields: Mapping[str, Run] | None = None


def uses_of(parts: Sequence[str | ast.expr]) -> tuple[Use, ...]:
    """Return an expression's uses of the collections at the root of its state."""
    return tuple(use for part in parts if not isinstance(part, str) for use in _uses(part))


def find_unshown(uses: Sequence[Use], scope: Scope) -> str | None:
    """Return the first collection of which a use needs an unread part, or None."""
    return next((use.root for use in uses if use.root in scope.partial and not _is_shown(use, scope)), None)


def _is_shown(use: Use, scope: Scope) -> bool:
    if use.loops:
        rounds, *inner = use.loops
        return all(_is_shown(use._replace(loops=tuple(inner)), scope) for _ in rounds(scope))
    if use.key is not None:
        held, key = scope.values["state"].get(use.root), key_of(use.key(scope))
        return isinstance(held, dict) and (not isinstance(key, str) or key in held)  # other types are never keys
    if not use.fields:
        return False
    values = {field: run(scope) for field, run in use.fields.items()}
    return any(part and part.items() <= values.items() for part in scope.partial[use.root])


def _uses(node: ast.AST, loops: Loops = ()) -> Iterator[Use]:
    match node:
        case ast.Call(func=ast.Name(id="defined"), args=[one]) if _root_of(one) is not None:
            return
        case ast.Call(func=ast.Name(id="any" | "all" as name), args=[ast.GeneratorExp() as loop]):
            yield from _uses_of_loop(loop, loops, name == "all")
        case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
            yield from _uses_of_loop(node, loops)
        case ast.Lambda():  # its argument belongs to no loop
            yield from (Use(root) for one in ast.walk(node) if (root := _root_of(one)) is not None)
        case _ if (root := _root_of(node)) is not None:
            yield Use(root)
        case _:
            owner, key, others = _keyed(node)
            if key is not None and (root := _root_of(owner)) is not None:
                yield Use(root, loops, key=_run(key))
                owner = None
            for child in filter(None, (owner, key, *others)):
                yield from _uses(child, loops)


def _uses_of_loop(node: Loop, loops: Loops, denied: bool | None = None) -> Iterator[Use]:
    """Yield the uses of a comprehension; inside `any` its value is a condition as well, inside `all` a denied one."""
    asked = [(node.elt, denied)] if denied is not None and not isinstance(node, ast.DictComp) else []
    for number, clause in enumerate(node.generators):
        own = {name for one in node.generators[number:] for name in names_of(one.target)}
        source, item = _listed(clause)
        if (root := _root_of(source)) is not None:
            fields = dict[str, ast.expr]()
            for condition, is_denied in [*((test, False) for test in clause.ifs), *asked]:
                fields |= _equalities(condition, item, own, is_denied=is_denied)
            yield Use(root, loops, fields={name: _run(value) for name, value in fields.items()})
        else:
            yield from _uses(clause.iter, loops)
        names, items = names_of(clause.target), _run(clause.iter)
        for test in clause.ifs:
            yield from _uses(test, (*loops, find_rounds("a loop", names, items)))
        passes = _run(ast.BoolOp(ast.And(), [ast.Constant(True), *clause.ifs]))
        loops = (*loops, find_rounds("a loop", names, items, passes))
    for value in [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]:
        yield from _uses(value, loops)


def _run(node: ast.expr) -> Run:
    return compile_parts([node]).run


def _root_of(node: ast.AST | None) -> str | None:
    """Return the key of `state.key`."""
    match node:
        case ast.Call(func=ast.Name(id="default"), args=[one, *_]):
            return _root_of(one)
    keys, _ = (node and state_path(node)) or ([], ())
    return keys[0] if len(keys) == 1 else None


def _keyed(node: ast.AST) -> tuple[ast.expr | None, ast.expr | None, Sequence[ast.AST]]:
    """Return owner and key of `owner[key]`, `at(owner, [key])`, `owner.get(key)`, `key in owner`, and other parts."""
    match node:
        case ast.Attribute():
            return node.value, ast.Constant(node.attr), ()
        case ast.Subscript() if not isinstance(node.slice, ast.Slice):
            return node.value, node.slice, ()
        case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[key, *others]):
            return owner, key, (*others, *node.keywords)
        case ast.Call(func=ast.Name(id="at"), args=[owner, ast.List(elts=[key, *deeper]), *others]):
            return owner, key, (*deeper, *others, *node.keywords)
        case ast.Call(func=ast.Attribute(value=owner)):
            return owner, None, (*node.args, *node.keywords)
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[owner]):
            return owner, key, ()
    return None, None, [*ast.iter_child_nodes(node)]


def _listed(clause: ast.comprehension) -> tuple[ast.expr, str | None]:
    """Return the collection of a loop, `x` of `x.values()` and `x.items()`, and its variable for each thing."""
    match clause.iter, clause.target:
        case ast.Call(func=ast.Attribute(value=owner, attr="values")), ast.Name(id=name):
            return owner, name
        case ast.Call(func=ast.Attribute(value=owner, attr="items")), ast.Tuple(elts=[_, ast.Name(id=name)]):
            return owner, name
        case source, ast.Name(id=name):
            return source, name
    return clause.iter, None


def _equalities(node: ast.expr, item: str | None, own: set[str], *, is_denied: bool | None) -> dict[str, ast.expr]:
    """Return the fields that must equal a value if a condition is true; with `is_denied`, if it is false."""
    match node:
        case ast.UnaryOp(op=ast.Not()):
            return _equalities(node.operand, item, own, is_denied=not is_denied)
        case ast.BoolOp() if isinstance(node.op, ast.Or if is_denied else ast.And):
            found = dict[str, ast.expr]()
            for each in node.values:
                found |= _equalities(each, item, own, is_denied=is_denied)
            return found
        case ast.Compare(ops=[op], comparators=[right]) if isinstance(op, ast.NotEq if is_denied else ast.Eq):
            for one, other in ((node.left, right), (right, node.left)):
                inside = {each.id for each in ast.walk(other) if isinstance(each, ast.Name)}
                match one:
                    case ast.Attribute(value=ast.Name(id=name)) if name == item and not inside & own:
                        return {one.attr: other}
    return {}
