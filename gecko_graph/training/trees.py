"""Context and constraint trees (LoopTool, section 3.1 and appendix G): drawing leaf paths, and what a path demands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

from ..errors import GeckoError, did_you_mean
from ..state import JsonObject
from ..tools import Toolkit
from ..values.documents import read_document

LeafPath: TypeAlias = tuple[str, ...]

SHIPPED = Path(__file__).parent / "trees"
PARTS = ("number of parameters", "types that occur", "nesting", "type of the result", "statuses of errors")
"""Of a path of a constraint tree."""

_TYPES = {"string", "integer", "number", "boolean", "array", "object", "null"}
_NESTINGS = {
    "flat": None,
    "list of texts": ("array", "string"),
    "object": ("", "object"),
    "list of objects": ("array", "object"),
    "object in object": ("object", "object"),
}
"""A word of constraint trees to a type and the one around it."""


class Demand(NamedTuple):
    """What a leaf path of a constraint tree demands of a tool."""

    number: range
    """Of parameters, at the top level."""
    types: frozenset[str]
    """That occur among the parameters, nested ones included."""
    nesting: str
    returns: str
    errors: frozenset[int]
    """The statuses of those that are described."""

    @classmethod
    def of(cls, path: LeafPath) -> Demand:
        """Return what a path demands. Raises ValueError where one of its parts is not of the known form."""
        number, types, nesting, returns, errors = path
        least, most = map(int, number.split("-"))
        wanted = frozenset(types.split("+"))
        if nesting not in _NESTINGS or not {*wanted, returns} <= _TYPES or least > most:
            raise ValueError("one of its parts is unknown")
        statuses = frozenset[int]() if errors == "none" else frozenset(map(int, errors.split("+")))
        return cls(range(least, most + 1), wanted, nesting, returns, statuses)


class Trees(NamedTuple):
    """The trees of a domain, as the paths of their leaves."""

    name: str
    context: list[LeafPath]
    constraints: list[LeafPath]


def read_trees(domain: str) -> Trees:
    """Return the trees of a shipped domain, or of a YAML file with `context` and `constraints`.

    Raises:
        GeckoError: There is no such domain or file, or its trees are broken; the message names the place.
    """
    shipped = {file.stem: file for file in sorted(SHIPPED.glob("*.yaml"))}
    file = shipped.get(domain) or Path(domain)
    if not file.exists():
        raise GeckoError(f"unknown domain {domain!r}{did_you_mean(domain, shipped)}: {', '.join(shipped)}, or a file")
    document, found = read_document(file), list[list[LeafPath]]()
    for part, depth in (("context", 3), ("constraints", len(PARTS))):
        paths = [*_find_paths(document.get(part) if isinstance(document, Mapping) else None)]
        if not paths or any(len(path) != depth for path in paths):
            raise GeckoError(f"{file}: {part}: expected leaves at depth {depth}")
        found.append(paths)
    for path in found[1]:
        try:
            Demand.of(path)
        except ValueError as error:
            raise GeckoError(f"{file}: constraints: {' / '.join(path)}: {error}") from None
    return Trees(file.stem, *found)


def _find_paths(tree: Any) -> Iterator[LeafPath]:
    if isinstance(tree, Mapping):
        yield from ((str(name), *path) for name, below in tree.items() for path in _find_paths(below))
    elif isinstance(tree, list):
        yield from ((str(leaf),) for leaf in tree)


def draw_paths(trees: Trees, seed: int) -> Iterator[tuple[LeafPath, LeafPath]]:
    """Yield a path of each tree, independently: leaves are equally likely, none comes twice before all were used."""
    return zip(_draw(trees.context, f"{seed}/context"), _draw(trees.constraints, f"{seed}/constraints"), strict=True)


def _draw(leaves: list[LeafPath], seed: str) -> Iterator[LeafPath]:
    for turn in count():
        yield from Random(f"{seed}/{turn}").sample(leaves, len(leaves))


def find_faults(tool: JsonObject, demand: Demand) -> Iterator[str]:
    """Yield what a written tool's schemas and errors lack of what a path demands."""
    try:
        Toolkit.from_tools([tool])
    except GeckoError as error:
        yield str(error)
        return
    yield from (f"parameters: {fault}" for fault in _find_parameter_faults(tool["parameters"], demand))
    if (kind := tool["result"].get("type")) != demand.returns:
        yield f"result: expected type {demand.returns}, got {kind}"
    if (statuses := {each["status"] for each in tool["errors"]}) != demand.errors:
        yield f"errors: expected the statuses {sorted(demand.errors)}, got {sorted(statuses)}"


def _find_parameter_faults(parameters: JsonObject, demand: Demand) -> Iterator[str]:
    properties = parameters.get("properties", {})
    types = {*_find_types(properties.values())}
    if len(properties) not in demand.number:
        yield f"{len(properties)} where {demand.number[0]} to {demand.number[-1]} are demanded"
    for name in (name for name, each in properties.items() if not str(each.get("description", "")).strip()):
        yield f"{name} has no description"
    for name in set(parameters.get("required", ())) - properties.keys():
        yield f"{name} is required and not described"
    if missing := demand.types - {kind for _, kind in types}:
        yield f"no {', '.join(sorted(missing))} among the types"
    is_flat = not any(kind in ("array", "object") for _, kind in types)
    if not (is_flat if demand.nesting == "flat" else _NESTINGS[demand.nesting] in types):
        yield f"expected {demand.nesting}"


def _find_types(schemas: Any, outer: str = "") -> Iterator[tuple[str, str]]:
    """Yield the type of each schema, with that of the one around it, and those of their members."""
    for each in schemas:
        if isinstance(each, Mapping):
            yield outer, (kind := str(each.get("type")))
            yield from _find_types([*each.get("properties", {}).values(), each.get("items")], kind)
