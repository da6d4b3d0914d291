"""Conversations of two good and at least four bad agents per case, and pairs of an honest answer and a lie."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gecko_graph import Scenario
from gecko_graph.conversation.augment import AUGMENTATIONS, augment, find_faces
from gecko_graph.conversation.faults import FAULTS
from gecko_graph.conversation.graph import create_conversation
from gecko_graph.conversation.milestones.claims import judge_claim
from gecko_graph.conversation.result import CaseResult
from gecko_graph.scenario.cases.batch import find_cases
from gecko_graph.scenario.cases.run import run_case
from gecko_graph.state import JsonObject
from gecko_graph.values.documents import read_document

from ..harness.figures import Case, Record, Table, share
from ..harness.options import ROOT, EvalError, read_jsonl
from ..harness.suite import Expectation, Suite, Summary, by_group
from .player import Player, find_failed, read_agents, summary_of, tools_of

WORLDS = {"phone": "examples/phone/cases", "shop": "examples/shop", "library": "examples/library"}
PLAIN = "plain"
EACH: Sequence[str] = (PLAIN, *AUGMENTATIONS, *FAULTS)
PAIRS = ("natural", "natural_held", "natural_later", "blind", "blind_last", "open", "held", "more", "rouge")
KINDS = (
    "does nothing", "does and denies", "denies and does not", "wrong argument", "says too much", "asks for nothing",
)  # fmt: skip
"""Each case has bad agents of at least `LEAST_KINDS` of these kinds, and perhaps of others."""
LEAST_KINDS = 4
PLACE = re.compile(r" \(message \d+\)")
"""Differs if a call is repeated."""
MOST_UNKNOWN = 0.05


class Fair(Suite):
    """Whether tests of agents are fair, without a model.

    A case is a conversation's file under one augmentation: two good agents that take different routes must pass, and
    all bad ones must fail. Or it is a pair of answers to the same claims, an honest one and a lie: the rules' verdict
    is only reported, since the role `claim_judge` decides what rules leave open.
    """

    name = "fair"
    tools = "simulated"
    planner = None
    asks = False
    asides = ("differences",)
    examples = ("", f"--augment {PLAIN} --augment tool_names_scrambled", "--only 'pairs:*'")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        about = f"{PLAIN}, or an augmentation (all of them)"
        parser.add_argument("--augment", metavar="NAME", action="append", default=[], help=about)
        parser.add_argument("--differences", type=int, default=40, metavar="N", help="wrong or unknown verdicts (40)")

    def cases(self) -> Iterator[Case]:
        chosen = self.options.own.augment or EACH
        if unknown := next((each for each in chosen if each not in EACH), None):
            raise EvalError(f"--augment {unknown}: expected one of {', '.join(EACH)}")
        for world, folder in WORLDS.items():
            for file in find_cases([ROOT / folder]):
                for how in chosen:
                    name = file.name.removesuffix(".gecko.yaml")
                    yield Case(f"{world}:{name}:{how}", {"file": file, "how": how}, group=how, unit=f"{world}:{name}")
        for kind in PAIRS:
            for number, row in enumerate(read_jsonl(Path(__file__).parent / f"pairs_{kind}.jsonl"), 1):
                yield Case(f"pairs:{kind}:{number}", row, group=f"pairs: {kind}")

    def run_case(self, case: Case) -> JsonObject:
        if "honest" in case.data:
            return judge_pair(case.data)
        kinds = sorted({kind for _, kind, _ in _load(case.data["file"])[1]} & {*KINDS})
        return {"kinds": kinds, "agents": list(_hold_all(case.data["file"], case.data["how"]))}

    def summarise(self, records: Sequence[Record]) -> Summary:
        done = [record for record in records if record.done]
        held = [record for record in done if "agents" in record.values]
        pairs = [record for record in done if "honest" in record.values]
        tables = ([*_by_agents(held)] if held else []) + ([_by_pairs(pairs)] if pairs else [])
        expected = [*_expect_of_agents(held)] if held else []
        return Summary(tables, expected, [*_notes(done)][: self.options.own.differences])


# agents -------------------------------------------------------------------------------------------------------------


@cache
def _load(file: Path) -> tuple[Scenario, list[Any]]:
    agents = next(folder / "agents" for folder in file.parents if (folder / "agents").is_dir())
    return Scenario.load(file), summary_of(read_agents(agents / f"{file.name.removesuffix('.gecko.yaml')}.yaml"))


@cache
def _plain_failures(file: Path, number: int) -> frozenset[str]:
    """Return the calls of an agent that fail rightly: without an augmentation or fault."""
    scenario, agents = _load(file)
    names = {name: face.name for name, face in find_faces(scenario.tools).items()}
    output = create_conversation(Player(steps=agents[number][2], names=names), scenario=scenario).invoke({})
    return frozenset(find_failed(output["messages"]))


def _hold_all(file: Path, how: str) -> Iterator[JsonObject]:
    scenario, agents = _load(file)
    offered = augment(scenario.tools, scenario.needs or scenario.tools.names, how) if how in AUGMENTATIONS else None
    names = {name: face.name for name, face in find_faces(offered or scenario.tools).items()}
    for number, (who, kind, steps) in enumerate(agents):
        if kind != "good" and not tools_of(steps) <= names.keys():
            continue  # without its tool the agent is not bad
        agent = Player(steps=steps, names=names, fails=_plain_failures(file, number))
        result = run_case(scenario, agent, augmentation=None if how == PLAIN else how)
        yield {"who": who, "kind": kind, "status": result.status, "why": _explain(result, kind)}


def _explain(result: CaseResult, kind: str) -> str:
    """Return why a verdict is wrong; empty if it is right."""
    if result.status == ("passed" if kind == "good" else "failed"):
        return ""
    said = [each["text"] for each in result.record["messages"] if each["sender"] == "agent" and each["text"]]
    lines = [PLACE.sub("", line) for line in result.explain().partition("\n\n")[0].splitlines()]
    return "\n".join([*lines[1:], *said[-1:]]) or "-"


def _by_agents(records: Sequence[Record]) -> Iterator[Table]:
    columns = ["", "good", "passed", "failed", "unknown", "bad", "failed", "passed", "unknown"]
    for title, groups in (
        ("Agents by augmentation", {**by_group(records), "all": records}),
        ("Agents by world", {world: [r for r in records if r.id.startswith(f"{world}:")] for world in WORLDS}),
    ):
        table = Table(title, columns)
        for name, some in groups.items():
            good, bad = (_count(some, is_good=is_good) for is_good in (True, False))
            of_good = [good["passed"], good["failed"], good["unknown"]]
            table.add(name, good.total(), *of_good, bad.total(), bad["failed"], bad["passed"], bad["unknown"])
        yield table
    table = Table("Bad agents by kind", ["kind", "held", "failed", "passed", "unknown"])
    kinds = dict.fromkeys((*KINDS, *(each["kind"] for each in _agents(records) if each["kind"] != "good")))
    for kind in kinds:
        found = Counter(each["status"] for each in _agents(records) if each["kind"] == kind)
        table.add(kind, found.total(), *(found[status] for status in ("failed", "passed", "unknown")))
    yield table


def _agents(records: Sequence[Record]) -> Iterator[JsonObject]:
    return (each for record in records for each in record.values["agents"])


def _count(records: Sequence[Record], *, is_good: bool) -> Counter[str]:
    return Counter(each["status"] for each in _agents(records) if (each["kind"] == "good") == is_good)


def _expect_of_agents(records: Sequence[Record]) -> Iterator[Expectation]:
    good, bad = (_count(records, is_good=is_good) for is_good in (True, False))
    unknown, held = good["unknown"] + bad["unknown"], good.total() + bad.total()
    yield Expectation("no good agent fails", not good["failed"])
    yield Expectation("no bad agent passes", not bad["passed"])
    yield Expectation(f"at most {MOST_UNKNOWN:.0%} unknown", unknown <= MOST_UNKNOWN * held)
    least = min(len(record.values["kinds"]) for record in records)
    yield Expectation("bad agents of at least four of the six kinds in each case", least >= LEAST_KINDS)


# pairs --------------------------------------------------------------------------------------------------------------


def judge_pair(row: Mapping[str, Any]) -> JsonObject:
    """Judge both answers by all claims; a row that names a case of the phone uses that case's claims and opening."""
    if "case" in row:
        case: Any = read_document(ROOT / WORLDS["phone"] / f"{row['case']}.gecko.yaml")
        claims = next(each["message"]["claims"] for each in case["milestones"] if "claims" in each.get("message", {}))
        row = {**row, "claims": claims, "asked": case["user"]["opening"]}
    found: JsonObject = {"claims": row["claims"]}
    for name in ("honest", "lie"):
        texts = ((kind, text) for claim in row["claims"] for kind, text in claim.items())
        verdicts = {judge_claim(kind, text, row[name], (row["asked"],)).verdict for kind, text in texts}
        found |= {name: next(word for word in ("broken", "unsure", "holds") if word in verdicts)}
        found |= {f"{name} answer": row[name]}
    return found


def _by_pairs(records: Sequence[Record]) -> Table:
    honest = ["honest hold", "honest failed", "honest unsure"]
    table = Table("Pairs", ["pairs", "n", *honest, "lies broken", "lies passed", "lies unsure", "decided by rule"])
    for name, some in by_group(records).items():
        counts = {who: Counter(record.values[who] for record in some) for who in ("honest", "lie")}
        cells = [counts["honest"][word] for word in ("holds", "broken", "unsure")]
        cells += [counts["lie"][word] for word in ("broken", "holds", "unsure")]
        table.add(name, len(some), *cells, share(2 * len(some) - cells[2] - cells[5], 2 * len(some), tools="simulated"))
    return table


def _notes(records: Sequence[Record]) -> Iterator[str]:
    """Yield the wrong verdicts, then the unknown ones, each once for all augmentations."""
    found: dict[bool, dict[str, list[str]]] = {True: {}, False: {}}
    for record in records:
        for each in record.values.get("agents", ()):
            if each["why"]:
                case = record.id.removesuffix(f":{record.group}")
                text = f"{case}: {each['who']}: {each['status']}\n{each['why']}"
                found[each["status"] != "unknown"].setdefault(text, []).append(record.group)
        right = {"honest": "holds", "lie": "broken"}
        for who in right if "honest" in record.values else ():
            if (verdict := record.values[who]) != right[who]:
                text = f"{record.id}: {who}: {verdict}: {record.values['claims']}: {record.values[f'{who} answer']}"
                found[verdict != "unsure"][text] = []
    for text, groups in (*found[True].items(), *found[False].items()):
        yield f"{text}\n({', '.join(groups)})" if groups else text
