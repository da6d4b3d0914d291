"""Generate tools: leaf paths of two trees, a model's tool for each pair, checked by rules (LoopTool, section 3.1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias, TypeVar

from pydantic import BaseModel

from ..errors import GeckoError, did_you_mean
from ..models.answer import answer
from ..models.ask import Ask, QuestionId
from ..models.factory import Models, ModelsLike
from ..models.roles import WrittenTool
from ..state import JsonObject, Role
from ..tools import Toolkit
from ..values.digest import digest
from ..values.documents import format_document, read_document
from .expand import Near
from .files import once, storable, write_text

LeafPath: TypeAlias = tuple[str, ...]

SHIPPED = Path(__file__).parent / "trees"
PARTS = ("number of parameters", "types that occur", "nesting", "type of the result", "statuses of errors")
"""The parts of a constraint tree's path."""

_TYPES = {"string", "integer", "number", "boolean", "array", "object", "null"}
_NESTINGS = {
    "flat": None,
    "list of texts": ("array", "string"),
    "object": ("", "object"),
    "list of objects": ("array", "object"),
    "object in object": ("object", "object"),
}
"""Nesting words of constraint trees, each with a type and the type around it."""


class Demand(NamedTuple):
    """The requirements of a constraint tree's leaf path on a tool."""

    number: range
    """Number of top-level parameters."""
    types: frozenset[str]
    """Types that must occur among the parameters, at any depth."""
    nesting: str
    returns: str
    errors: frozenset[int]
    """Statuses of the described errors."""

    @classmethod
    def of(cls, path: LeafPath) -> Demand:
        """Parse a path. Raises ValueError if a part has an unknown form."""
        number, types, nesting, returns, errors = path
        least, most = map(int, number.split("-"))
        wanted = frozenset(types.split("+"))
        if nesting not in _NESTINGS or not {*wanted, returns} <= _TYPES or least > most:
            raise ValueError("one of its parts is unknown")
        statuses = frozenset[int]() if errors == "none" else frozenset(map(int, errors.split("+")))
        return cls(range(least, most + 1), wanted, nesting, returns, statuses)


class Trees(NamedTuple):
    """The trees of a domain, as the paths to their leaves."""

    name: str
    context: list[LeafPath]
    constraints: list[LeafPath]


def read_trees(domain: str) -> Trees:
    """Return the trees of a shipped domain, or of a YAML file with `context` and `constraints`.

    Raises:
        GeckoError: Unknown domain or file, or invalid trees; the message names the place.
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
    """Yield pairs of paths, drawn independently: leaves are equally likely, and none repeats before all were used."""
    return zip(_draw(trees.context, f"{seed}/context"), _draw(trees.constraints, f"{seed}/constraints"), strict=True)


def _draw(leaves: list[LeafPath], seed: str) -> Iterator[LeafPath]:
    for turn in count():
        yield from Random(f"{seed}/{turn}").sample(leaves, len(leaves))


def find_faults(tool: JsonObject, demand: Demand) -> Iterator[str]:
    """Yield the requirements of a path that a generated tool does not meet."""
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
    """Yield the types of schemas and their members, at any depth, each with the type around it."""
    for each in schemas:
        if isinstance(each, Mapping):
            yield outer, (kind := str(each.get("type")))
            yield from _find_types([*each.get("properties", {}).values(), each.get("items")], kind)


Replied = TypeVar("Replied", bound=BaseModel)

TRIES = 2
"""Most paths drawn per requested tool."""
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+){1,7}")
_LEAST_WORDS = 4


def write_tools(
    domain: str,
    output: str | Path,
    n: int = 50,
    *,
    model: ModelsLike,
    seed: int = 0,
    tell: Callable[[int, int], None] = lambda made, asked: None,
) -> JsonObject:
    """Generate tools of a domain, each for a leaf path of both trees, as one OpenAPI document.

    A reply that breaks a rule is repaired once. Run the same call again to resume.

    Args:
        domain: A shipped domain (`travel`, `home`, `clinic`), or a YAML file of trees.
        output: The document's path.
        n: Number of tools.
        model: The model of role `tool_writer`.
        seed: Seed of the drawn paths.
        tell: Called with the numbers of finished tools and of paths tried.

    Returns:
        `names` of the tools; `lost`: the paths without a tool, each with the reason.

    Raises:
        GeckoError: Unknown domain, no model, or no tool was written; with the first reason.
    """
    target, trees, models = Path(output), read_trees(domain), Models.of(model)
    models.require("tool_writer")

    def work(replies: Path) -> JsonObject:
        drafter = ToolDrafter(trees, models.caching(replies))
        for number, pair in enumerate(islice(draw_paths(trees, seed), n * TRIES)):
            drafter.write(number, *pair)
            tell(len(drafter.tools), number + 1)
            if len(drafter.tools) == n:
                break
        if not drafter.tools:
            raise GeckoError(f"{domain}: no tool was written: {drafter.lost[0][1]}")
        document = to_document(trees.name, [*drafter.tools.values()])
        write_text(target, format_document(document, target.suffix or ".yaml"))
        return {"names": [*drafter.tools], "lost": drafter.lost}

    inputs = {"trees": [*map(list, trees)], "n": n, "seed": seed, "model": model if isinstance(model, str) else ""}
    return {**once(target.parent, target.stem, [target.name], inputs, work)}


class ToolDrafter:
    """Asks for tools one by one; names and descriptions of accepted tools may not be used again."""

    def __init__(self, trees: Trees, models: Models) -> None:
        self._trees, self._models, self._near = trees, models, Near()
        self.tools, self.lost = dict[str, JsonObject](), list[list[str]]()

    def write(self, number: int, context: LeafPath, path: LeafPath) -> None:
        """Add the tool of a numbered pair of paths, or its faults after one repair."""
        shown = {
            "context": " / ".join((self._trees.name, *context)),
            "demand": "\n".join(f"{part}: {word}" for part, word in zip(PARTS, path, strict=True)),
            "taken": ", ".join([*self.tools][-100:]),
        }
        check = partial(self._check, demand=Demand.of(path))
        made = ask_twice("tool_writer", shown, WrittenTool, check, self._models, number)
        if isinstance(made, str):
            self.lost.append([shown["context"], made])
        else:
            self.tools[made.name] = storable(made.model_dump())
            self._near.add(made.description)

    def _check(self, reply: WrittenTool, demand: Demand) -> Iterator[str]:
        name, words = reply.name, sorted(reply.name.split("_"))
        if not _NAME.fullmatch(name):
            yield f"name: expected two to eight words in snake_case, got {name[:80]!r}"
        if same := next((each for each in self.tools if sorted(each.split("_")) == words), None):
            yield f"name: another tool is called {same}"
        elif self._near.has(reply.description):
            yield "description: another tool has nearly the same"
        if len(reply.description.split()) < _LEAST_WORDS:
            yield f"description: expected a sentence, got {reply.description[:80]!r}"
        yield from find_faults(reply.model_dump(), demand)


def ask_twice(
    role: Role,
    variables: Mapping[str, str],
    kind: type[Replied],
    check: Callable[[Replied], Iterable[str]],
    models: Models,
    number: int,
) -> Replied | str:
    """Return a reply that passes the check, after at most one repair; else its faults, one per line."""
    draft = faults = ""
    for question in (2 * number, 2 * number + 1):
        asked = Ask(role, {**variables, "draft": draft, "faults": faults}, kind, QuestionId(question=question))
        (reply,) = answer([asked], models)
        if not isinstance(reply.value, kind):
            faults = f"no reply that can be read: {reply.failure}"
            continue
        draft = reply.value.model_dump_json()[:6_000]
        if not (faults := "\n".join(check(reply.value))):
            return reply.value
    return faults


def to_document(domain: str, tools: list[JsonObject]) -> JsonObject:
    """Return tools as an OpenAPI document: one operation each, with its possible errors."""
    document = Toolkit.from_tools(tools).to_openapi()
    document["info"] = {"title": domain, "version": digest(tools)[:12]}
    for operation, tool in zip(document["paths"].values(), tools, strict=True):
        errors = {str(each["status"]): {"description": each["description"]} for each in tool["errors"]}
        operation["post"]["responses"] |= errors
    return document
