"""Context and constraint trees (LoopTool, section 3.1 and appendix G): drawing leaf paths, and what a path demands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

from ..errors import ContractError, GeckoError, did_you_mean
from ..schemas.strict import check_schema
from ..state import Json, JsonObject
from ..values.documents import read_document

LeafPath: TypeAlias = tuple[str, ...]

SHIPPED = Path(__file__).parent / "trees"
STATUSES = {"not_found": 404, "conflict": 409, "forbidden": 403, "invalid": 400, "too_many": 429}
"""Words of a constraint tree for errors, with the status that each stands for."""

TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object"})
_NESTINGS = ("flat", "list of texts", "object", "list of objects", "object in object")


class Demand(NamedTuple):
    """What a leaf path of a constraint tree demands of a tool.

    Args:
        least: Fewest parameters.
        most: Most parameters.
        types: JSON types that occur among the parameters, nested ones included.
        nesting: What a parameter is: `flat`, `list of texts`, `object`, `list of objects` or `object in object`.
        returns: JSON type of the result.
        errors: Statuses of the errors that are described; none but these.
    """

    least: int
    most: int
    types: frozenset[str]
    nesting: str
    returns: str
    errors: frozenset[int]

    @classmethod
    def of(cls, path: LeafPath) -> Demand:
        """Return what a path demands. Raises ValueError where one of its five parts is not of the known form."""
        parameters, types, nesting, returns, errors = path
        least, most = map(int, parameters.split("-"))
        wanted = frozenset(types.split("+"))
        statuses = frozenset() if errors == "none" else frozenset(STATUSES[each] for each in errors.split("+"))
        if least > most or nesting not in _NESTINGS or not {*wanted, returns} <= TYPES | {"null"}:
            raise ValueError(f"unknown: {nesting}, {returns} or {types}")
        return cls(least, most, wanted, nesting, returns, statuses)


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
    document = read_document(file)
    found = []
    for part, depth in (("context", 3), ("constraints", 5)):
        tree = document.get(part) if isinstance(document, Mapping) else None
        paths = [*_paths(tree)]
        if wrong := next((path for path in paths if len(path) != depth), None) or (None if paths else ("no leaves",)):
            raise GeckoError(f"{file}: {part}: expected paths of {depth} parts, got {' / '.join(wrong)}")
        found.append(paths)
    for path in found[1]:
        try:
            Demand.of(path)
        except (ValueError, KeyError) as error:
            raise GeckoError(f"{file}: constraints: {' / '.join(path)}: {error}") from None
    return Trees(file.stem, *found)


def _paths(tree: Any) -> Iterator[LeafPath]:
    if isinstance(tree, Mapping):
        yield from ((str(name), *path) for name, below in tree.items() for path in _paths(below))
    elif isinstance(tree, list):
        yield from ((str(leaf),) for leaf in tree)


def draw_paths(trees: Trees, seed: int) -> Iterator[tuple[LeafPath, LeafPath]]:
    """Yield a path of each tree, independently: leaves are equally likely, none comes twice before all were used."""
    return zip(_draw(trees.context, f"{seed}/context"), _draw(trees.constraints, f"{seed}/constraints"), strict=True)


def _draw(leaves: list[LeafPath], seed: str) -> Iterator[LeafPath]:
    for turn in count():
        yield from Random(f"{seed}/{turn}").sample(leaves, len(leaves))


def find_faults(tool: Mapping[str, Any], demand: Demand) -> Iterator[str]:
    """Yield what a written tool's schemas and errors lack of what a path demands."""
    try:
        for part in ("parameters", "result"):
            check_schema(tool[part], where=part)
    except ContractError as error:
        yield str(error)
        return
    yield from _find_parameter_faults(tool["parameters"], demand)
    if tool["result"].get("type") != demand.returns:
        yield f"result: expected type {demand.returns}, got {tool['result'].get('type')}"
    if (statuses := frozenset(each["status"] for each in tool["errors"])) != demand.errors:
        wanted = ", ".join(map(str, sorted(demand.errors))) or "none"
        yield f"errors: expected the statuses {wanted}, got {', '.join(map(str, sorted(statuses))) or 'none'}"


def _find_parameter_faults(parameters: JsonObject, demand: Demand) -> Iterator[str]:
    properties = parameters.get("properties", {})
    if parameters.get("type") != "object":
        yield "parameters: expected a schema of type object"
    if not demand.least <= len(properties) <= demand.most:
        yield f"parameters: {len(properties)} where {demand.least} to {demand.most} are demanded"
    for name in (name for name, each in properties.items() if not str(each.get("description", "")).strip()):
        yield f"parameters: {name} has no description"
    for name in set(parameters.get("required", ())) - properties.keys():
        yield f"parameters: {name} is required and not described"
    inner = [each for one in properties.values() for each in _schemas(one)]
    if missing := demand.types - {str(each.get("type")) for each in inner}:
        yield f"parameters: no {', '.join(sorted(missing))} among the types"
    if demand.nesting not in {_nesting(each) for each in inner} or (
        demand.nesting == "flat" and any(_nesting(each) != "flat" for each in inner)
    ):
        yield f"parameters: expected {demand.nesting}"


def _schemas(schema: Json) -> Iterator[JsonObject]:
    """Yield a schema and those of its members."""
    if isinstance(schema, dict):
        yield schema
        for each in (*schema.get("properties", {}).values(), schema.get("items")):
            yield from _schemas(each)


def _nesting(schema: JsonObject) -> str:
    members = [each.get("type") for each in schema.get("properties", {}).values() if isinstance(each, dict)]
    items = schema.get("items")
    if schema.get("type") == "array":
        kind = items.get("type") if isinstance(items, dict) else None
        return {"string": "list of texts", "object": "list of objects"}.get(str(kind), "list")
    if schema.get("type") == "object":
        return "object in object" if "object" in members else "object"
    return "flat"
