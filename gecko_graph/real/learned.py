"""Learned contracts in a running agent: they refuse and warn, and a store shares lessons between threads.

An established learned rule refuses a write, but never a read: the gate would hide results that refute the rule.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from langgraph.store.base import BaseStore

from ..errors import GeckoError
from ..models.ask import Reply
from ..models.node import with_store
from ..tools import Toolkit
from ..tools.lessons import MOST_CALLS, Lessons, place_of
from ..values.documents import read_document

MOST_SHARED = 10_000
PLACE = ("gecko", "lessons")
LearnedLike: TypeAlias = "str | Path | Mapping[str, Any] | None"


def teach(toolkit: Toolkit, learned: LearnedLike = None) -> Toolkit:
    """Return the toolkit with learned contracts for tools without a written one, and with a place for new lessons.

    Raises:
        GeckoError: The file cannot be read or used.
    """
    names: set[str] = set()
    if not isinstance(learned, str | Path | Mapping | None):
        raise GeckoError(f"learned: expected a file of contracts, or its content, got {type(learned).__name__}")
    if learned is not None:
        document: Any = learned if isinstance(learned, Mapping) else read_document(learned)
        contracts = document.get("contracts", {}) if isinstance(document, Mapping) else {}
        filled = fill_contracts(toolkit, contracts)
        names = {*filled}
        toolkit = toolkit.with_contracts({**document, "contracts": filled} if contracts else document)
    tools = []
    for tool in toolkit:
        if tool.derived and tool.contract is None and (rules := tool.derived.rules()):  # real calls test them
            tool = replace(tool, contract=rules)
            names.add(tool.name)
        if tool.name in names and tool.reads and tool.contract:
            tool.contract.withdraw()
        lessons = Lessons(place_of(tool.name, tool.parameters), is_learned=tool.name in names)
        tools.append(replace(tool, lessons=lessons))
    return toolkit.replace(*tools)


def fill_contracts(toolkit: Toolkit, learned: Mapping[str, Any]) -> dict[str, Any]:
    """Return learned contracts for tools without a written one, and written contracts with their gaps filled."""
    free = {name: each for name, each in learned.items() if name not in toolkit or toolkit[name].contract is None}
    written = {name: contract for name in learned.keys() - free.keys() if (contract := toolkit[name].contract)}
    filled = {name: made for name, contract in written.items() if (made := contract.fill(learned[name]))}
    return {name: {**free, **filled}[name] for name in learned if name in free or name in filled}


def share(toolkit: Toolkit) -> Generator[list[Any], list[Reply], None]:
    """Exchange lessons with the store of the running graph, if it has one."""
    yield from with_store(exchange, toolkit)


def exchange(store: BaseStore, toolkit: Toolkit) -> None:
    """Write lessons that the store lacks, merged with its own, and load those of others."""
    found = store.search(PLACE, limit=MOST_SHARED)
    for tool in (tool for tool in toolkit if tool.lessons):
        lessons: Any = tool.lessons
        known = {each.key: each.value for each in found if each.namespace == (*PLACE, lessons.place)}
        for key in sorted(lessons.unsaved):
            own, other = lessons.items[key], known.get(key, {"calls": ()})
            kept = {"status": "refuted"} if other.get("status") == "refuted" else {}
            known[key] = {**own, **kept, "calls": list(dict.fromkeys([*other["calls"], *own["calls"]]))[-MOST_CALLS:]}
            store.put((*PLACE, lessons.place), key, known[key], index=False)
            lessons.unsaved.discard(key)
        lessons.items.update(known)
        lessons.settle(tool.contract, may_refuse=not tool.reads)
