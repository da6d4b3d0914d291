"""Conversations on the phone of `examples/phone`: with an agent of one's own, or the scripted ones of each case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gecko_graph import Scenario
from gecko_graph.conversation.agents import AgentLike
from gecko_graph.models.factory import chat_model
from gecko_graph.scenario.cases.find import find_cases, load_agent
from gecko_graph.scenario.cases.result import run_case
from gecko_graph.state import JsonObject
from gecko_graph.testing import scripted
from gecko_graph.tools.augment import AUGMENTATIONS
from gecko_graph.values.documents import read_document

from ..harness.datasets import ROOT
from ..harness.figures import Table, mean_of
from ..harness.suite import Case, EvalError, Record

FOLDER = ROOT / "examples" / "phone"
AS_WRITTEN = "as written"
GOOD = ("good", "also")
"""The scripted agents that reach all milestones; the others lose what their file says."""


def phone_cases(agent: str | None, augmentations: Sequence[str]) -> Iterator[Case]:
    """Yield a case for each scenario under each augmentation; without an agent for each scripted one instead."""
    for file in find_cases([FOLDER / "cases"]):
        name = file.name.removesuffix(".gecko.yaml")
        facts = {"categories": list(Scenario.load(file).categories)}
        if agent:
            for each in augmentations or [AS_WRITTEN]:
                data = {"file": str(file), "augmentation": each}
                yield Case(f"phone:{name}:{each}", data, group=each, unit=name, facts=facts)
            continue
        for who, replies in scripted_agents(name):
            yield Case(
                f"phone:{name}:{who}", {"file": str(file), "replies": replies}, group=who.partition(" ")[0], facts=facts
            )


def scripted_agents(name: str) -> Iterator[tuple[str, list[JsonObject]]]:
    """Yield the scripted agents of a case, with what they reply."""
    written: Any = read_document(FOLDER / "agents" / f"{name}.yaml")
    yield from ((who, written[who]) for who in GOOD if who in written)
    yield from ((f"bad {number}", each["does"]) for number, each in enumerate(written["bad"], 1))


def check_options(own: Any) -> None:
    """Raise EvalError for an augmentation that there is not, or options that need an agent."""
    if unknown := next((each for each in own.augment if each not in AUGMENTATIONS), None):
        raise EvalError(f"--augment {unknown}: there are {', '.join(AUGMENTATIONS)}")
    if not own.agent and (own.augment or own.user_model):
        raise EvalError("--augment and --user-model need an --agent: the scripted ones know their names and users")


def hold(data: Mapping[str, Any], own: Any) -> JsonObject:
    """Hold one conversation and return its record."""
    agent: AgentLike = scripted(*data["replies"]) if "replies" in data else load_agent(own.agent)
    augmentation = data.get("augmentation", AS_WRITTEN)
    record = run_case(
        Scenario.load(data["file"]),
        agent,
        user=chat_model(own.user_model) if own.user_model else None,
        augmentation=None if augmentation == AS_WRITTEN else augmentation,
    ).record
    score = record["score"]
    kept = {key: score[key] for key in ("similarity", "end", "reason", "turns", "calls", "races")}
    return {**kept, "leaks": len(score["leaks"]), "idle": record["idle"], "messages": record["messages"]}


def phone_tables(records: Sequence[Record]) -> Iterator[Table]:
    """Yield mean similarity and turns by agent or augmentation and by category (ToolSandbox, tables 5 and 11)."""
    groups: dict[str, list[Record]] = {record.group: [] for record in records}
    for record in records:
        categories = () if record.group in ("also", "bad") else record.facts["categories"]
        for name in (record.group, *categories):
            groups.setdefault(name, []).append(record)
    columns = ["", "held", "similarity", "doing nothing", "turns", "calls", "races", "leaks"]
    table = Table("Conversations on the phone", columns)
    for name, some in groups.items():
        means = _means(some, "similarity", "idle", "turns", "calls")
        table.add(name, len(some), *means, *_sums(some, "races", "leaks"))
    yield table


def _means(records: Sequence[Record], *keys: str) -> list[Any]:
    found = ([record.values[key] for record in records if record.values[key] is not None] for key in keys)
    return [mean_of(values, tools="simulated") if values else "-" for values in found]


def _sums(records: Sequence[Record], *keys: str) -> list[int]:
    return [sum(record.values[key] for record in records) for key in keys]
