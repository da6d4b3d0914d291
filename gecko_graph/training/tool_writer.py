"""Tools that do not exist yet, written by a model under two trees and checked by rule (LoopTool, section 3.1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from ..errors import GeckoError
from ..models.answer import answer
from ..models.ask import Ask, Where
from ..models.factory import Models, ModelsLike
from ..models.roles import WrittenTool
from ..state import JsonObject, Role
from ..tools import Toolkit
from ..values.digest import digest
from ..values.documents import format_document
from .expand import Near
from .journal import Journal
from .steps import go_on, once, write_text
from .trees import PARTS, Demand, LeafPath, Trees, draw_paths, find_faults, read_trees

Replied = TypeVar("Replied", bound=BaseModel)

TRIES = 2
"""Paths that are drawn at most for each tool that is wanted."""
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
    """Have tools of a domain written, each under a leaf path of both trees, as one OpenAPI document.

    A reply that breaks a rule is repaired once. The same call goes on where it was stopped.

    Args:
        domain: A shipped one (`travel`, `home`, `clinic`), or a YAML file of trees.
        output: The document.
        n: How many tools.
        model: The model of role `tool_writer`.
        seed: Another one draws other paths.
        tell: Called with how many tools are made, of how many paths.

    Returns:
        `names` of the tools; `lost`: each path that gave none, with what was wrong.

    Raises:
        GeckoError: Unknown domain, no model, or not one tool was written; the reasons of the first.
    """
    target, desk = Path(output), Desk(read_trees(domain), Models.of(model))

    def work(journal: Journal) -> JsonObject:
        paths = enumerate(islice(draw_paths(desk.trees, seed), n * TRIES))
        for asked, entry in enumerate(go_on(journal, paths, desk.write), 1):
            desk.take(entry)
            tell(len(desk.tools), asked)
            if len(desk.tools) == n:
                break
        if not desk.tools:
            raise GeckoError(f"{domain}: no tool was written: {desk.lost[0][1]}")
        document = to_document(desk.trees.name, [*desk.tools.values()])
        write_text(target, format_document(document, target.suffix or ".yaml"))
        return {"names": [*desk.tools], "lost": desk.lost}

    inputs = {"trees": [*map(list, desk.trees)], "n": n, "seed": seed, "model": model if isinstance(model, str) else ""}
    return {**once(target.parent, target.stem, [target.name], inputs, work)}


class Desk:
    """Asks for tools one after the other: the names and descriptions of those that passed are taken."""

    def __init__(self, trees: Trees, models: Models) -> None:
        models.require("tool_writer")
        self.trees, self._models, self._near = trees, models, Near()
        self.tools, self.lost = dict[str, JsonObject](), list[list[str]]()

    def write(self, left: Iterator[tuple[int, tuple[LeafPath, LeafPath]]]) -> Iterator[JsonObject]:
        """Yield the tool of each numbered pair of paths, or what is wrong with it after one repair."""
        for number, (context, path) in left:
            shown = {
                "context": " / ".join((self.trees.name, *context)),
                "demand": "\n".join(f"{part}: {word}" for part, word in zip(PARTS, path, strict=True)),
                "taken": ", ".join([*self.tools][-100:]),
            }
            check = partial(self._check, demand=Demand.of(path))
            made = ask_twice("tool_writer", shown, WrittenTool, check, self._models, number)
            tool, faults = (None, made) if isinstance(made, str) else (made.model_dump(), "")
            yield {"path": shown["context"], "tool": tool, "faults": faults}

    def take(self, entry: JsonObject) -> None:
        """Take in what a pair of paths has come to."""
        if tool := entry["tool"]:
            self.tools[tool["name"]] = tool
            self._near.add(tool["description"])
        else:
            self.lost.append([entry["path"], entry["faults"]])

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
    """Return a reply that a check has nothing against, after one repair; else what is wrong with it, a line each."""
    draft = faults = ""
    for question in (2 * number, 2 * number + 1):
        asked = Ask(role, {**variables, "draft": draft, "faults": faults}, kind, Where(question=question))
        (reply,) = answer([asked], models)
        if not isinstance(reply.value, kind):
            faults = f"no reply that can be read: {reply.failure}"
            continue
        draft = reply.value.model_dump_json()[:6_000]
        if not (faults := "\n".join(check(reply.value))):
            return reply.value
    return faults


def to_document(domain: str, tools: list[JsonObject]) -> JsonObject:
    """Return tools as an OpenAPI document: an operation each, with the errors that it may answer."""
    document = Toolkit.from_tools(tools).to_openapi()
    document["info"] = {"title": domain, "version": digest(tools)[:12]}
    for operation, tool in zip(document["paths"].values(), tools, strict=True):
        errors = {str(each["status"]): {"description": each["description"]} for each in tool["errors"]}
        operation["post"]["responses"] |= errors
    return document
