"""Conversations on the phone; with `--scores`, trajectories scored by ToolSandbox's public code, scored again."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gecko_graph import Scenario
from gecko_graph.conversation.milestones.constraints import Reached
from gecko_graph.scenario.cases.batch import find_cases
from gecko_graph.scenario.cases.run import run_case
from gecko_graph.state import JsonObject
from gecko_graph.testing import scripted

from ..fair.player import read_agents
from ..harness.figures import Case, Record, Table, mean_of, share
from ..harness.options import ROOT, read_jsonl
from ..harness.suite import Expectation, Suite, Summary, by_group
from .public_code import read_goal, read_trajectory, score_publicly

FOLDER = ROOT / "examples" / "phone"
GOOD = ("good", "also")
"""The scripted agents that reach all milestones; the second uses words that rules may not be sure of."""
FILE = "toolsandbox_scores.jsonl.gz"
CLOSE = 1e-6
"""The public code computes in Float32."""

_SCORES = ("similarity", "milestone_similarity", "minefield_similarity")


class ToolSandbox(Suite):
    """Conversations of `examples/phone`; or the scorer compared with ToolSandbox's public code (`--scores`).

    Each case is run with its scripted agents: good ones, which reach all milestones, and bad ones; an agent of your own
    is run by `gecko-graph test examples/phone/cases`. With `--scores` a case is a trajectory that the public code has
    scored. It is scored as by that code (similarities and mapping must agree), and as the paper defines it; without
    milestones it is unscored, and left out of the mean.
    """

    name = "toolsandbox"
    tools = "simulated"
    planner = None
    asks = False
    asides = ("differences",)
    examples = ("", "--scores")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--scores", action="store_true", help=f"score the trajectories of {FILE} again instead")
        parser.add_argument("--differences", type=int, default=10, metavar="N", help="disagreements to list (10)")

    def cases(self) -> Iterator[Case]:
        if not self.options.own.scores:
            yield from phone_cases()
            return
        for number, row in enumerate(read_jsonl(self.options.dataset(FILE))):
            yield Case(f"{number}:{row['scenario']}:{row['variant']}", row, group=row["variant"], unit=row["scenario"])

    def run_case(self, case: Case) -> JsonObject:
        if "file" in case.data:
            return hold(case.data)
        goal, trajectory, expected = read_goal(case.data), read_trajectory(case.data), case.data["result"]
        public, paper = score_publicly(goal, trajectory), goal.score(trajectory)
        first = case.data["first_user_message_index"]
        return {
            "scores": all(_is_close(dict(public)[key], expected[key]) for key in _SCORES),
            "mapping": _is_same(public["milestones"], expected["milestone_mapping"], first)
            and _is_same(public["minefields"], expected["minefield_mapping"], first),
            "public": public["similarity"],
            "paper": paper["similarity"],
            "expected": expected["similarity"],
        }

    def tell(self, record: Record) -> str:
        values = record.values
        if "end" in values:
            similarity = "unscored" if values["similarity"] is None else f"{values['similarity']:.3f}"
            return f"{similarity}, {values['end']} {values['reason']}".strip()
        paper = "unscored" if values["paper"] is None else f"{values['paper']:.3f}"
        return f"public code {values['expected']:.3f}, here {values['public']:.3f}, by the paper {paper}"

    def summarise(self, records: Sequence[Record]) -> Summary:
        table = Table(
            "Scored trajectories, scored again",
            ["agent", "trajectories", "same scores", "same mapping", "mean, public code", "mean, paper", "unscored"],
        )
        done = [record for record in records if record.done]
        if not self.options.own.scores:
            good = [record for record in done if record.group in GOOD and record.values["similarity"] != 1]
            reached = [
                Expectation("all good scripted agents score 1.0", all(record.group != GOOD[0] for record in good)),
                Expectation("no other good route fails", all(record.values["status"] != "failed" for record in good)),
            ]
            shown = [f"{record.id}: {self.tell(record)}" for record in good]
            return Summary(list(phone_tables(done)), reached, shown)
        for name, some in (*by_group(done).items(), ("all", done)):
            _add(table, name, some)
        different = [record for record in done if not (record.values["scores"] and record.values["mapping"])]
        notes = [f"{record.id}: {self.tell(record)}" for record in different[: self.options.own.differences]]
        holds = Expectation("all scores within 1e-6 and all mappings are the public code's", not different)
        return Summary([table], [holds], notes)


def _add(table: Table, name: str, records: Sequence[Record]) -> None:
    values = [record.values for record in records]
    scored = [each["paper"] for each in values if each["paper"] is not None]
    same = (share(sum(each[key] for each in values), len(values), tools="none") for key in ("scores", "mapping"))
    paper = mean_of(scored) if scored else "-"
    table.add(
        name, len(values), *same, mean_of([each["expected"] for each in values]), paper, len(values) - len(scored)
    )


def _is_close(one: Any, other: float) -> bool:
    return one is not None and abs(one - other) <= CLOSE


def _is_same(reached: Sequence[Reached], mapping: Mapping[str, Any], first: int) -> bool:
    found = {each["id"]: (each["snapshot"], each["similarity"]) for each in reached if each["snapshot"] is not None}
    return found.keys() == mapping.keys() and all(
        at is not None and at + first == mapping[id_][0] and _is_close(similarity, mapping[id_][1])
        for id_, (at, similarity) in found.items()
    )


def phone_cases() -> Iterator[Case]:
    """Yield a case per scenario and scripted agent."""
    for file in find_cases([FOLDER / "cases"]):
        name = file.name.removesuffix(".gecko.yaml")
        facts = {"categories": list(Scenario.load(file).categories)}
        written = read_agents(FOLDER / "agents" / f"{name}.yaml")
        agents = {who: written[who] for who in GOOD if who in written}
        agents |= {f"bad {number}": each["does"] for number, each in enumerate(written["bad"], 1)}
        for who, replies in agents.items():
            data, group = {"file": str(file), "replies": replies}, who.partition(" ")[0]
            yield Case(f"phone:{name}:{who}", data, group=group, facts=facts)


def hold(data: Mapping[str, Any]) -> JsonObject:
    """Run one conversation and return its record."""
    record = run_case(Scenario.load(data["file"]), scripted(*data["replies"])).record
    score = record["score"]
    kept = {key: score[key] for key in ("similarity", "status", "end", "reason", "turns", "calls", "races")}
    return {**kept, "leaks": len(score["leaks"]), "idle": record["idle"], "messages": record["messages"]}


def phone_tables(records: Sequence[Record]) -> Iterator[Table]:
    """Yield mean similarity and turns by agent, and by category (ToolSandbox, tables 5 and 11)."""
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
