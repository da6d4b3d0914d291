"""Infer which parts of the state reads show: lists of things that other calls name, and single things."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..contracts.run import partly_shown
from ..state import Json, JsonObject
from ..tools import Toolkit, ToolSpec
from ..values.observation import Observation
from .terms import is_key, member, stable_fields

PAGED = re.compile(r"limit|page|offset|cursor", re.I)
"""Parameters of reads that show neither a whole collection nor all things that share a value."""

LEAST = 2
"""Least number of things with distinct keys in a collection."""


def with_observes(toolkit: Toolkit, rows: Iterable[Observation]) -> Toolkit:
    """Return the toolkit with `observes` for reads without a contract whose results contain things that calls name.

    Rows that are read with this toolkit include the state that these reads have shown.

    Args:
        toolkit: The tools; a read must have the `effect` read.
        rows: Observations of them, in any order.
    """
    results: dict[str, list[tuple[JsonObject, Json]]] = {}
    named: dict[str, set[str]] = {}
    for row in (row for row in rows if row.tool in toolkit):
        named.setdefault(row.tool, set()).update(str(each) for each in row.args.values() if is_key(each))
        if row.status == "ok" and toolkit[row.tool].reads and toolkit[row.tool].contract is None:
            results.setdefault(row.tool, []).append((row.args, row.result))
    keys: dict[str, str] = {}
    found: dict[str, JsonObject] = {}
    for name, some in results.items():
        others = set[str]().union(*(each for other, each in named.items() if other != name))
        if said := _lists(toolkit[name], [result for _, result in some], others):
            collection, keys[collection], found[name] = said
    for name in results.keys() - found.keys():
        if (place := _place_of(toolkit[name])) and (key := keys.get(place)):
            things = [result for _, result in results[name]]
            if all(isinstance(thing, dict) and is_key(thing.get(key)) for thing in things):
                found[name] = _effect(place, f"{{{{ {member('result', key)} }}}}", "{{ result }}")
    return toolkit.with_contracts({"contracts": {name: {"observes": [found[name]]} for name in sorted(found)}})


def _lists(tool: ToolSpec, results: Sequence[Json], named: set[str]) -> tuple[str, str, JsonObject] | None:
    """Return the collection that a read's results list, its things' key, and the `observes` effect."""
    within = next(_members(results), "")
    lists = [result.get(within) if isinstance(result, dict) else result for result in results]
    things = [thing for some in lists if isinstance(some, list) for thing in some]
    place, is_paged = _place_of(tool), any(PAGED.search(name) for name in tool.parameters.get("properties", {}))
    if is_paged or not place or not things or not all(isinstance(thing, dict) for thing in things):
        return None
    for key in sorted(stable_fields(things), key=lambda each: (each != "id", not each.lower().endswith("id"))):
        columns = [[thing.get(key) for thing in some] for some in lists if isinstance(some, list)]
        is_own = all(all(map(is_key, each)) and len({*map(str, each)}) == len(each) for each in columns)
        if is_own and len(met := {str(each) for some in columns for each in some}) >= LEAST and met & named:
            loop = {"for_each": member("result", within) if within else "result", "as": "one"}
            return place, key, {**loop, **_effect(place, f"{{{{ {member('one', key)} }}}}", "{{ one }}")}
    return None


def _members(results: Sequence[Json]) -> Iterator[str]:
    for result in results if all(isinstance(one, dict) for one in results) else ():
        for key, each in result.items() if isinstance(result, dict) else ():
            if isinstance(each, list) and each and isinstance(each[0], dict):
                yield key


def _effect(place: str, key: str, value: str) -> JsonObject:
    return {"op": "add", "path": [place, key], "value": value}


def _place_of(tool: ToolSpec) -> str:
    """Return the noun of a tool's things: by its path, else by its name without the verb."""
    if tool.source is not None:
        words = [part for part in tool.source.slot[0].split("/") if part and not part.startswith("{")]
        return words[-1] if words else ""
    _, *words = re.findall(r"[A-Z]?[a-z0-9]+", tool.name)
    return "_".join(words).lower()


def reads_of(toolkit: Toolkit, args: Mapping[str, Any], state: JsonObject) -> Iterator[tuple[ToolSpec, JsonObject]]:
    """Yield the reads that would show unknown parts of a state's collections, for a call with these arguments."""
    partly = partly_shown(state)
    for tool in toolkit.observing:
        needed = tool.parameters.get("required", ())
        places = tool.contract.observed if tool.contract and all(name in args for name in needed) else ()
        held = ((place[0], state.get(place[0])) for place in places)
        if any(key in partly or one is None or (isinstance(one, dict) and {} in one.values()) for key, one in held):
            yield tool, {name: args[name] for name in needed}


def unread_before(toolkit: Toolkit, rows: Sequence[Observation]) -> list[str]:
    """Return the reads that most of these calls of a write lacked, so that their part of the state was unknown."""
    asked = [{tool.name for tool, _ in reads_of(toolkit, row.args, row.before or {})} for row in rows]
    names = sorted(set[str]().union(*asked))
    return [name for name in names if 2 * sum(name in some for some in asked) > len(rows)]
