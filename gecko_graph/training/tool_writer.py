"""Tools that do not exist yet, written by a model under two trees and checked by rule (LoopTool, section 3.1)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import GeckoError
from ..models.answer import answer
from ..models.ask import Ask, Where
from ..models.factory import Models, ModelsLike
from ..models.roles import WrittenTool
from ..state import JsonObject
from ..values.digest import digest
from ..values.documents import format_document
from .expand import Near
from .journal import Journal
from .steps import once, write_text
from .trees import Demand, LeafPath, draw_paths, find_faults, read_trees

TRIES = 2
"""Paths that are drawn at most for each tool that is wanted."""
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+){1,7}")
_LEAST_WORDS = 4


class Written(NamedTuple):
    """What came of the drawn paths: names of the tools, and of each path that gave none the reasons."""

    names: list[str]
    lost: list[tuple[LeafPath, list[str]]]


def write_tools(
    domain: str,
    output: str | Path,
    n: int = 50,
    *,
    model: ModelsLike,
    seed: int = 0,
    tell: Callable[[int, int], None] = lambda made, asked: None,
) -> Written:
    """Have tools of a domain written, each under a leaf path of both trees, as one OpenAPI document.

    A reply that breaks a rule is repaired once. The same call goes on where it was stopped.

    Args:
        domain: A shipped one (`travel`, `home`, `clinic`), or a YAML file of trees.
        output: The document.
        n: How many tools.
        model: The model of role `tool_writer`.
        seed: Another one draws other paths.
        tell: Called with how many tools are made, of how many paths.

    Raises:
        GeckoError: Unknown domain, no model, or not one tool was written; the reasons of the first.
    """
    trees, models, target = read_trees(domain), Models.of(model), Path(output)
    models.require("tool_writer")
    inputs = {"trees": [*map(list, trees)], "n": n, "seed": seed, "model": model if isinstance(model, str) else ""}

    def work(of: str) -> JsonObject:
        with Journal(target, of) as journal:
            entries: list[Any] = [*journal.read()]
            desk = Desk(models, [each["tool"] for each in entries if each["tool"]])
            for context, constraint in islice(draw_paths(trees, seed), len(entries), n * TRIES):
                if len(desk.tools) >= n:
                    break
                tool, faults = desk.write(trees.name, context, constraint, Where(question=2 * len(entries)))
                entries.append({"path": [context, constraint], "tool": tool, "faults": faults})
                journal.write(json.dumps(entries[-1], ensure_ascii=False))
                journal.flush()
                tell(len(desk.tools), len(entries))
            if desk.tools:  # before the journal goes: what was paid for is never in neither
                write_text(target, format_document(to_document(trees.name, desk.tools), target.suffix or ".yaml"))
            journal.drop()
        if not desk.tools:
            raise GeckoError(f"{domain}: no tool was written: {'; '.join(entries[0]['faults'])}")
        lost = [[each["path"][0], each["faults"]] for each in entries if not each["tool"]]
        return {"names": [each["name"] for each in desk.tools], "lost": lost}

    made = once(target.parent, target.stem, [target.name], inputs, work)
    return Written(made["names"], [(tuple(path), faults) for path, faults in made["lost"]])


class Desk:
    """Asks for tools one after the other; `tools` are those that passed, whose names and descriptions are taken."""

    def __init__(self, models: Models, tools: list[JsonObject]) -> None:
        self._models, self.tools = models, list[JsonObject]()
        self._near = Near(read=lambda tool: str(tool["description"]))
        for tool in tools:
            self._take(tool)

    def _take(self, tool: JsonObject) -> None:
        self.tools.append(tool)
        self._near.has(tool)

    def write(
        self, domain: str, context: LeafPath, constraint: LeafPath, where: Where
    ) -> tuple[JsonObject | None, list[str]]:
        """Return a tool for two paths, or None and what is wrong with it after one repair."""
        demand, faults, draft = Demand.of(constraint), list[str](), ""
        for again in range(2):
            shown = {"context": " / ".join((domain, *context)), "demand": describe(demand)}
            taken = ", ".join(tool["name"] for tool in self.tools[-100:])
            asked = {**shown, "taken": taken, "draft": draft, "faults": "\n".join(faults)}
            place = Where(where.turn, where.attempt, where.question + again)
            (reply,) = answer([Ask("tool_writer", asked, WrittenTool, place)], self._models)
            if not isinstance(reply.value, WrittenTool):
                faults = [f"no tool in the reply: {reply.failure}"]
                continue
            tool = reply.value.model_dump()
            draft = json.dumps(tool, ensure_ascii=False)[:6_000]
            faults = [*self._find_taken(tool), *find_faults(tool, demand)]
            if not faults:
                self._take(tool)
                return tool, []
        return None, faults

    def _find_taken(self, tool: JsonObject) -> Iterator[str]:
        name, description = tool["name"], tool["description"]
        if not _NAME.fullmatch(name):
            yield f"name: expected two to eight words in snake_case, got {name[:80]!r}"
        if same := next((each["name"] for each in self.tools if _words(each["name"]) == _words(name)), None):
            yield f"name: another tool is called {same}"
        elif self._near.has(tool, add=False):
            yield "description: another tool has nearly the same"
        if len(description.split()) < _LEAST_WORDS:
            yield f"description: expected a sentence, got {description[:80]!r}"


def _words(name: str) -> list[str]:
    return sorted(name.split("_"))


def describe(demand: Demand) -> str:
    """Return a demand as the question shows it."""
    errors = ", ".join(map(str, sorted(demand.errors))) or "none"
    return (
        f"Parameters: {demand.least} to {demand.most} at the top level.\n"
        f"Types that occur among them: {', '.join(sorted(demand.types))}.\nNesting: {demand.nesting}.\n"
        f"The result is of type: {demand.returns}.\nStatuses of errors: {errors}."
    )


def to_document(domain: str, tools: list[JsonObject]) -> JsonObject:
    """Return tools as an OpenAPI document: an operation each, with the errors that it may answer."""
    info = {"title": domain, "version": digest(tools)[:12]}
    return {"openapi": "3.1.0", "info": info, "paths": {f"/{tool['name']}": {"post": _operate(tool)} for tool in tools}}


def _operate(tool: JsonObject) -> JsonObject:
    def content(schema: JsonObject) -> JsonObject:
        return {"content": {"application/json": {"schema": schema}}}

    errors = {str(each["status"]): {"description": each["description"]} for each in tool["errors"]}
    return {
        "operationId": tool["name"],
        "description": tool["description"],
        "x-effect": tool["effect"],
        "requestBody": {"required": True, **content(tool["parameters"])},
        "responses": {"200": {"description": "Done.", **content(tool["result"])}, **errors},
    }
