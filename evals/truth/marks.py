"""Marks on recorded turns: which right and wrong turns have one, planted values, sentences that rest on simulated reads.

The turns were rehearsed at 1b17d493 with a strong model in every role, each tool simulated by it; provenance is traced
anew. `may_refuse` is what the steps hold, with what the simulator replied and that commit had dropped.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage

from gecko_graph import Toolkit
from gecko_graph.models.memory import answer_message, open_rules, recall_calls
from gecko_graph.nodes.checks import find_may_refuse
from gecko_graph.state import Attempt, JsonObject, Step
from gecko_graph.tools.descriptions import Offered
from gecko_graph.values.origins import find_untrusted
from gecko_graph.values.places import Place, json_path, scalars
from gecko_graph.world.provenance import Traced, is_planned, trace_with

from ..harness.figures import Table
from ..harness.options import find, read_jsonl

TURNS, REPLIES = "live_turns.jsonl.gz", "live_replies_3.jsonl.gz"
DOCUMENTS = "bfcl_multiturn_func_docs.json"
PLANTED, SEED = 300, 39
BUDGET = 20_000
"""Characters of remembered calls: the default of `view_chars`."""

_CALL = re.compile(r"<call[^>]*>\s*(.*?)\s*</call", re.DOTALL)
_NAMES = ("Orsolya", "Thaddeus", "Quillon", "Ravensburg", "Ystad", "Zoraida", "Mbeki", "Halvorsen", "Xanthe", "Brno")


@dataclass(frozen=True, slots=True)
class Turn:
    """A recorded turn, with the conversation that led to it, and what of its state was made up."""

    row: JsonObject
    messages: Sequence[AnyMessage]
    supposed: Sequence[str]
    rules: Sequence[str] = ()
    """What may refuse its plan."""

    @property
    def name(self) -> str:
        """Task and turn."""
        return f"{self.row['task']}, turn {self.row['turn']}"

    @property
    def is_right(self) -> bool:
        """True where the official checker called it right."""
        return bool(self.row["officially_right"])

    @property
    def attempt(self) -> Attempt:
        """The chosen attempt."""
        rehearsal = self.row["rehearsal"]
        return next(each for each in rehearsal["attempts"] if each["number"] == rehearsal["chosen"])

    def trace(self, toolkit: Toolkit, steps: Sequence[Step] | None = None) -> Traced:
        """Trace its plan, or the same plan with other arguments."""
        attempt = self.attempt
        earlier = [each for each in self.row["rehearsal"]["attempts"] if each["number"] < attempt["number"]]
        return trace_with(
            toolkit,
            attempt["steps"] if steps is None else steps,
            answer=attempt["answer"],
            conversation=recall_calls(self.messages),
            state=self.row["before"],
            supposed=self.supposed,
            lesson=earlier[-1] if earlier else None,
        )


def read_toolkit(folder: Path) -> Toolkit:
    """Return the tools of all tasks, as they are documented: without effects."""
    return Toolkit.from_tools([*json.loads(find(DOCUMENTS, folder).read_text(encoding="utf-8")).values()])


def read_turns(folder: Path, *, arm: str = "model") -> list[Turn]:
    """Return the accepted turns of an arm, each in the conversation as the graph would have kept it."""
    dropped, turns, key = _dropped_rules(folder), list[Turn](), ""
    messages, supposed = list[AnyMessage](), list[str]()
    for row in (row for row in read_jsonl(find(TURNS, folder)) if row["arm"] == arm):
        if row["task"] != key:
            key, messages, supposed = row["task"], [], []
        messages = [*messages, HumanMessage(row["message"][1])]
        turn = Turn(row, messages, supposed)
        attempt = turn.attempt
        known = find_may_refuse(attempt["steps"], open_rules(messages))
        rules = [each["rule"] for each in known]
        for step in attempt["steps"]:
            if is_planned(step) and "may_refuse" not in step["outcome"]:
                rules += dropped.get(_key(step["call"]), ())
        turns.append(Turn(row, messages, supposed, tuple(dict.fromkeys(rules))))
        if row["status"] == "accepted":
            supposed = find_untrusted(row["before"], supposed, attempt["steps"])
        answer = answer_message(
            attempt["answer"], attempt["verdict"], attempt["steps"], budget=BUDGET, supposed=supposed
        )
        messages = [*messages, *([answer] if answer else [])]
    return [turn for turn in turns if turn.row["status"] == "accepted"]


def _key(call: Mapping[str, Any]) -> str:
    return json.dumps([call["name"], call["args"]], sort_keys=True)


def _dropped_rules(folder: Path) -> dict[str, list[str]]:
    """Return from a call to the rules that a simulator has named for a call that changed nothing."""
    found: dict[str, list[str]] = {}
    for row in read_jsonl(find(REPLIES, folder)):
        reply = row["reply"].get("json") if row["role"] == "simulator" else None
        if isinstance(reply, dict) and reply.get("may_refuse") and not reply.get("patch"):
            shown = _CALL.search(row["request"]["messages"][-1]["content"])
            if shown:
                found.setdefault(_key(json.loads(shown[1])), []).append(reply["may_refuse"])
    return found
