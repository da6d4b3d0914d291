"""Derived milestones on other conversations: which successes they accept, and which failures they catch."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence

from gecko_graph.conversation.derive import SUCCESS, derive_milestones, score_conversation
from gecko_graph.state import JsonObject

from ..bfcl.tasks import task_of
from ..harness.datasets import read_jsonl
from ..harness.figures import Table, share, share_of_clusters
from ..harness.suite import Case, Expectation, Record, Suite, Summary, by_group
from . import classes, phone

PHONE, CLASSES = "phone", "BFCL"
TASKS, TRUTH = "bfcl_multiturn_tasks.jsonl.gz", "bfcl_multiturn_calls.jsonl.gz"
RECORDED = "bfcl_multiturn_recorded_calls.jsonl.gz"
WANTED = 0.95


class Milestones(Suite):
    """Milestones derived from one good conversation, on others: really run, each judged by an oracle of its own.

    A case is a scenario: one of examples/phone, or a multi-turn task of BFCL. From its good conversation milestones are
    derived. Others: two models' recorded plans, bad agents, and the good one with one change. Whether they succeed is
    decided by the case's author and the state at the end (phone), or on BFCL's real classes.
    """

    name = "milestones"
    tools = "simulated"
    planner = None
    asks = False
    asides = ("differences",)
    examples = ("", "--only phone", "--each 3 --seed 1 --differences 40")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add how many changes are made, and how much is listed."""
        parser.add_argument("--each", type=int, default=1, metavar="N", help="changes of each kind to a BFCL task (1)")
        parser.add_argument("--differences", type=int, default=10, metavar="N", help="wrong verdicts to list (10)")

    def cases(self) -> Iterator[Case]:
        """Yield a case per scenario."""
        for name in phone.names():
            yield Case(f"{PHONE}:{name}", name, group=PHONE)
        rows = {row["id"]: row for row in read_jsonl(self.options.dataset(TRUTH))}
        tasks = {row["id"]: row for row in read_jsonl(self.options.dataset(TASKS)) if row["category"] == "base"}
        self._calls: dict[tuple[str, ...], list[JsonObject]] = {}
        for row in rows.values():
            self._calls.setdefault(tuple(row["classes"]), []).extend(
                call for turn in classes.plan_of(row) for call in turn
            )
        self._plans: dict[str, list[classes.Plan]] = {}
        for row in read_jsonl(self.options.dataset(RECORDED)):
            if row["id"] in tasks and len(row["turns"]) == len(tasks[row["id"]]["turns"]):
                self._plans.setdefault(row["id"], []).append(classes.plan_of(row))
        for id_, task in tasks.items():
            yield Case(f"{CLASSES}:{id_}", {"task": task, "truth": rows[id_]}, group=CLASSES)

    def run_case(self, case: Case) -> JsonObject:
        """Derive the milestones, and score the other conversations."""
        routes = self._run_phone(case) if case.group == PHONE else self._run_task(case)
        own, *others = routes
        return {"own": own, "routes": others}

    def _run_phone(self, case: Case) -> Iterator[JsonObject]:
        scenario, script = phone.load(case.data), phone.good_script(case.data)
        good = phone.converse(scenario, script)
        goal = derive_milestones(scenario.tools, good)
        seed = f"{self.options.seed}:{case.id}"
        for kind, acts in [("itself", script), *phone.bad_scripts(case.data), *phone.mutate(script, seed)]:
            made = phone.converse(scenario, acts)
            similarity = score_conversation(goal, scenario.tools, made)["similarity"] or 0.0
            yield _record(kind, phone.is_success(scenario, good, made), similarity, str(acts)[:600])

    def _run_task(self, case: Case) -> Iterator[JsonObject]:
        row, task = case.data["truth"], task_of(case.data["task"])
        texts = ["\n".join(each["content"] for each in turn["user"]) for turn in case.data["task"]["turns"]]
        tools, start, truth = classes.tools_of(tuple(row["classes"])), classes.start_of(row), classes.plan_of(row)
        good = classes.converse(tools, start, texts, truth)
        goal = derive_milestones(good["toolkit"], good)
        others = self._calls[tuple(row["classes"])]
        seed = f"{self.options.seed}:{case.id}"
        recorded = [("a recorded plan", plan) for plan in self._plans.get(row["id"], [])]
        changed = classes.mutate(truth, others, seed, self.options.own.each)
        for kind, plan in [("itself", truth), *recorded, *changed]:
            made = classes.converse(tools, start, texts, plan)
            similarity = score_conversation(goal, made["toolkit"], made)["similarity"] or 0.0
            judged = classes.judge(task, truth, plan)
            written = str([[classes.write_call(call) for call in turn] for turn in plan])
            yield {**_record(kind, judged.end, similarity, written[:600]), "official": judged.official}

    def tell(self, record: Record) -> str:
        """Return how many of its verdicts are right."""
        routes = record.values["routes"]
        return f"{sum(each['success'] == each['accepted'] for each in routes)} of {len(routes)} verdicts right"

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return what was accepted and caught, by source and by kind of change."""
        groups = by_group([record for record in records if record.done])
        tables = [_by_source(groups), *(_by_kind(name, some) for name, some in groups.items())]
        holds = []
        for name, some in groups.items():
            own = all(record.values["own"]["accepted"] for record in some)
            holds.append(Expectation(f"{name}: each derived goal accepts the conversation it came from", own))
            for word, success in (("successes accepted", True), ("failures caught", False)):
                of = [each for record in some for each in record.values["routes"] if each["success"] == success]
                right = sum(each["accepted"] == success for each in of)
                holds.append(Expectation(f"{name}: at least {WANTED:.0%} of {word}", right >= WANTED * len(of)))
            other = all(any(each["success"] for each in record.values["routes"]) for record in some)
            holds.append(Expectation(f"{name}: at least one other successful route each", other))
        return Summary(tables, holds, list(self._notes(records)))

    def _notes(self, records: Sequence[Record]) -> Iterator[str]:
        wrong = [
            f"{'rejected' if each['success'] else 'missed'}: {record.id}: {each['kind']}: {each['does']}"
            for record in records
            if record.done
            for each in record.values["routes"]
            if each["success"] != each["accepted"]
        ]
        yield from wrong[: self.options.own.differences]
        judged = [each for record in records if record.done for each in record.values["routes"] if "official" in each]
        if judged:
            same = sum(each["official"] == each["accepted"] for each in judged)
            oracle = sum(each["official"] == each["success"] for each in judged)
            yield f"BFCL's official checker, turn by turn: {same} of {len(judged)} derived verdicts are its own"
            yield f"BFCL's official checker, turn by turn: {oracle} of {len(judged)} verdicts by the end are its own"


def _record(kind: str, success: bool, similarity: float, does: str) -> JsonObject:
    accepted = similarity >= SUCCESS
    return {"kind": kind, "success": success, "accepted": accepted, "similarity": similarity, "does": does}


def _by_source(groups: Mapping[str, list[Record]]) -> Table:
    heads = ["scenarios of", "scenarios", "other conversations", "successes accepted", "failures caught"]
    table = Table("Derived milestones on other conversations (intervals over the scenarios)", heads)
    for name, some in groups.items():
        right = []
        for success in (True, False):
            parts = [[each for each in record.values["routes"] if each["success"] == success] for record in some]
            counted = [(sum(each["accepted"] == success for each in part), len(part)) for part in parts if part]
            right.append(share_of_clusters(counted, tools="simulated"))
        table.add(name, len(some), sum(len(record.values["routes"]) for record in some), *right)
    return table


def _by_kind(name: str, records: Sequence[Record]) -> Table:
    table = Table(f"{name}: by what was changed", ["change", "successes accepted", "failures caught"])
    routes = [each for record in records for each in record.values["routes"]]
    for kind in dict.fromkeys(each["kind"] for each in routes):
        right = []
        for success in (True, False):
            of = [each for each in routes if each["kind"] == kind and each["success"] == success]
            hits = sum(each["accepted"] == success for each in of)
            right.append(share(hits, len(of), tools="simulated") if of else "-")
        table.add(kind, *right)
    return table


SUITE = Milestones
