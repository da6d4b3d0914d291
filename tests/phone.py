"""The phone's cases with their agents, for tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gecko_graph import Scenario, create_conversation
from gecko_graph.documents import read_document

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "phone"
CASES = sorted(file.name.removesuffix(".gecko.yaml") for file in (FOLDER / "cases").glob("*.gecko.yaml"))


@cache
def load(name):
    return Scenario.load(FOLDER / "cases" / f"{name}.gecko.yaml")


@cache
def agents(name):
    return read_document(FOLDER / "agents" / f"{name}.yaml")


def converse(agent, scenario, **more):
    """The whole output of a conversation."""
    return create_conversation(agent, scenario=scenario, **more).invoke({}, {"recursion_limit": 200})


def lost(found):
    return [each["id"] for each in found["milestones"] if each["similarity"] < 1]


def stepped_on(found):
    return [each["id"] for each in found["minefields"] if each["similarity"]]
