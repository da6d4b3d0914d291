"""The airline of tau-bench: recorded conversations of gpt-4o as threads, by what its reads have shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from gecko_graph import Tool, Toolkit
from gecko_graph.state import JsonObject
from gecko_graph.values.observation import Observation

from ..harness.options import Options, read_jsonl
from ..suites.tau import CONVERSATIONS, TOOLS, conversation_of, plain
from .threads import Service, by_reads

FOLDS = 5
SHOWN = {"get_user_details": ("users", "user_id"), "get_reservation_details": ("reservations", "reservation_id")}


def airline(options: Options) -> Iterator[Service]:
    """Yield the airline once for each fifth of its tasks, held out in turn."""
    tools = json.loads(options.dataset(TOOLS).read_text(encoding="utf-8"))["airline"]
    read = (*SHOWN, "search_direct_flight", "search_onestop_flight", "list_all_airports", "calculate", "think")
    tools = [Tool(one, effect="read" if one["function"]["name"] in read else "write") for one in tools]
    contracts: JsonObject = {
        name: {"observes": [{"op": "add", "path": [shelf, f"{{{{ args.{key} }}}}"], "value": "{{ result }}"}]}
        for name, (shelf, key) in SHOWN.items()
    }
    toolkit = Toolkit.from_tools(tools).with_contracts({"contracts": contracts})

    def rows(row: Any) -> list[Observation]:
        made = conversation_of(row)
        calls = [(one.name, one.args, "ok" if one.succeeded else "error", plain(one.result)) for one in made.calls]
        return by_reads(toolkit, calls, source=made.id)  # type: ignore[arg-type]

    found = list(read_jsonl(options.dataset(CONVERSATIONS)))
    folds = [sha256(f"learn:{row['task_id']}".encode()).digest()[0] % FOLDS for row in found]
    for fold in range(FOLDS):
        parts = (
            [row for row, own in zip(found, folds, strict=True) if (own == fold) is held] for held in (False, True)
        )
        yield Service(toolkit, rows, *parts)
