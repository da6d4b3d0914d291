"""Written contracts made wrong in one place, and how many real calls of the tool it takes to see it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from gecko_graph import Toolkit
from gecko_graph.learning.replay import contradicted
from gecko_graph.state import JsonObject
from gecko_graph.values.documents import read_document
from gecko_graph.values.observation import Observation

from .contracted import CLASSES, FILES, FOLDER
from .observed import plain_toolkit

WITHIN = 100
"""Real calls of the tool after which a wrong place must have been seen."""


class Wrong(NamedTuple):
    """A contract with one effect or one requirement left out."""

    kind: str
    tool: str
    part: str
    place: int


def written(kind: str) -> JsonObject:
    """Return a class's written contracts as a file of contracts has them."""
    if kind == "GorillaFileSystem":
        plain = Toolkit.from_openapi(FILES)
        return {"contracts": {one.name: one.contract.data for one in plain if one.contract}, "let": plain.lets}
    document: Any = read_document(FOLDER / f"{kind}.yaml")
    return {key: value for key, value in document.items() if key in ("contracts", "let", "requires")}


def all_wrong() -> Iterator[Wrong]:
    """Yield every contract that can be made wrong so."""
    for kind in CLASSES:
        for tool, contract in written(kind)["contracts"].items():
            for part in ("requires", "effects"):
                for index, clause in enumerate(contract.get(part, [])):
                    if "pass" not in clause:
                        yield Wrong(kind, tool, part, index)


def chosen(count: int, seed: int) -> list[Wrong]:
    """Return some of them, the same under the same seed."""
    every = list(all_wrong())
    picked = Random(f"wrong:{seed}").sample(range(len(every)), min(count, len(every)))
    return [every[at] for at in sorted(picked)]


def spoilt(one: Wrong) -> Toolkit:
    """Return the class's tools with the contract made wrong."""
    data = copy.deepcopy(written(one.kind))
    contract = data["contracts"][one.tool]
    for index, each in enumerate(contract.get("requires", [])):
        if "check" in each:  # a clause keeps the name that its place gives it: another name is no other word on a call
            each.setdefault("id", f"requires[{index}]")
    contract[one.part] = [each for index, each in enumerate(contract[one.part]) if index != one.place]
    # what only checks results would name the same difference a second time
    contract.pop("ensures", None)
    return plain_toolkit(one.kind).with_contracts(data)


def calls_until_seen(one: Wrong, rows: Sequence[Observation]) -> Mapping[str, Any]:
    """Return after how many of the tool's calls the wrong place was contradicted, and how it was named.

    Only what the right contract does not contradict counts.
    """
    wrong, right = spoilt(one)[one.tool], plain_toolkit(one.kind).with_contracts(written(one.kind))[one.tool]
    for number, row in enumerate(rows[:WITHIN], 1):
        named = [found for found in contradicted(wrong, row) if found not in contradicted(right, row)]
        if named:
            return {"after": number, "named": [list(each) for each in named], "calls": min(len(rows), WITHIN)}
    return {"after": None, "named": [], "calls": min(len(rows), WITHIN)}
