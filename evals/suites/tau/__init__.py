"""The airline and retail domains of tau-bench: recorded conversations, and live runs with the paper's hand-over.

Without --live the recorded conversations of gpt-4o go through the rehearsal's graph, the recorded results in place of
the tools. With --live the tasks run on the real environment of the package tau2, if that is installed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel

from gecko_graph import Toolkit
from gecko_graph.state import JsonObject, Role

from ...bfcl.averages import table_4
from ...harness.datasets import read_jsonl
from ...harness.figures import Figure, Table, mean, rate, share
from ...harness.suite import Case, EvalError, Expectation, Record, Suite, Summary, by_group
from . import live
from .replay import Conversation, conversation_of, replay

DOMAINS = ("airline", "retail")
CONVERSATIONS = "tau_airline_gpt4o.jsonl.gz"
TOOLS = "tau_tools.json"


class Tau(Suite):
    """tau-bench: real calls of gpt-4o through validator and state; live runs with rehearsals handed to the real agent.

    A case is a recorded airline conversation (retail has tools and no recordings): its calls are planned once more, the
    validator checks them, recorded results answer them, and what these say of users and reservations is booked on the
    task state. No call that really succeeded may be refused. With --model or --role-model validator=MODEL the model of
    the validator is asked too. Each call is also spoilt in up to three ways, which the rules must refuse.

    With --live a case is a task of tau2-bench on its real environment. For each message of the user the agent's task is
    rehearsed first, and all attempts with their feedback stand in its prompt as examples (paper, section 6.1); --plain
    leaves that out, for comparison.
    """

    name = "tau"
    tools = "real"
    planner = None
    examples = (
        "",
        "--live --domain retail --agent openai:gpt-4o --model openai:gpt-4o --limit 10",
        "--live --plain --trials 5",
    )

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Add what live runs need."""
        add = parser.add_argument
        add("--live", action="store_true", help="run tasks on the installed tau2-bench")
        add("--plain", action="store_true", help="live: the agent alone, nothing rehearsed")
        add("--domain", default="airline,retail", metavar="A,B", help="live: airline, retail (both)")
        add("--agent", default="openai:gpt-4o", metavar="MODEL", help="live: the real agent, and who plans rehearsals")
        add("--user", default="openai:gpt-4.1", metavar="MODEL", help="live: who plays the user (the paper's gpt-4.1)")

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        own = options.own
        self._domains = own.domain.split(",")
        if unknown := set(self._domains) - set(DOMAINS):
            raise EvalError(f"--domain {', '.join(sorted(unknown))}: there are {', '.join(DOMAINS)}")
        if own.plain and not own.live:
            raise EvalError("--plain: it is for live runs: add --live")
        self._bench = live.load() if own.live else None
        self._given: JsonObject = {} if own.live else json.loads(options.dataset(TOOLS).read_text(encoding="utf-8"))
        self._kits = {domain: Toolkit.from_tools(self._given[domain]) for domain in self._given}

    def cases(self) -> Iterable[Case]:
        """Yield the recorded conversations, or the tasks of the installed package."""
        if self._bench:
            for domain in self._domains:
                for task in self._bench.tasks(domain):
                    yield Case(f"{domain}:{task.id}", (domain, task), group=domain)
            return
        for row in read_jsonl(self.options.dataset(CONVERSATIONS)):
            conversation = conversation_of(row)
            facts = {"reward": row["reward"], "calls": len(conversation.calls)}
            yield Case(
                f"{row['domain']}:{row['task_id']}:{row['trial']}", conversation, group=row["domain"], facts=facts
            )

    def run_case(self, case: Case) -> JsonObject:
        """Replay a conversation, or run a live task."""
        if isinstance(case.data, Conversation):
            speakers = self.options.speakers()
            asked: dict[Role, BaseChatModel] = {}
            if "validator" in speakers:
                asked["validator"] = speakers["validator"]
            return replay(case.data, self._kits[case.group], models=asked, context=self.options.context(max_retries=0))
        assert self._bench is not None, "tasks come from the package"
        return live.run_task(self._bench, *case.data, options=self.options)

    def others(self) -> Mapping[str, str]:
        """Return the agent and the user of live runs."""
        own = self.options.own
        return {"agent": own.agent, "user": own.user} if own.live else {}

    def tell(self, record: Record) -> str:
        """Return a record in one line."""
        values = record.values
        if "reward" in values:
            return f"reward {values['reward']}, {values['rehearsals']} rehearsals"
        return f"{values['succeeded']} calls succeeded, {len(values['refused'])} of them refused"

    def passed(self, record: Record) -> bool:
        """Return whether a live task was solved, or no successful call of a recorded conversation was refused."""
        values = record.values
        return bool(values["reward"] >= 1) if "reward" in values else not values["refused"]

    def averages(self, records: Sequence[Record]) -> Sequence[Figure]:
        """Return the paper's table 4, of live runs."""
        return table_4(self.rates(records)) if self._bench else ()

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return false positives on real calls and the final state's agreement, or the reward of live runs."""
        return _live(records) if self._bench else self._replayed(records)

    def _replayed(self, records: Sequence[Record]) -> Summary:
        done = [record.values for record in records if record.done]
        table = Table(
            "Recorded gpt-4o calls through validator and state",
            [
                "domain",
                "refused though they succeeded",
                "refused of those that failed",
                "spoilt calls refused",
                "records held",
            ],
            note="Records held: users and reservations in the task state as the real tools gave them last.",
        )
        for domain, some in by_group(records).items():
            values = [record.values for record in some if record.done]
            count = [
                sum(each[key] for each in values)
                for key in ("succeeded", "failed", "spoilt", "found", "records", "held")
            ]
            refused, lost = (sum(len(each[key]) for each in values) for key in ("refused", "refused_failed"))
            table.add(
                domain,
                share(refused, count[0], tools="real"),
                share(lost, count[1], tools="real"),
                share(count[3], count[2], tools="real"),
                share(count[5], count[4], tools="real"),
            )
        tools = Table("Tools of the domains", ["domain", "tools", "problems"])
        for domain, kit in self._kits.items():
            tools.add(domain, len(kit), len(kit.problems))
        refused_calls = [text for each in done for text in each["refused"]]
        missed = [text for each in done for text in each["missed"]]
        differing = [text for each in done for text in each["differing"]]
        expectations = [
            Expectation(f"no call that really succeeded is refused ({len(refused_calls)} are)", not refused_calls),
            Expectation(
                f"the task state holds what the real tools gave ({len(differing)} records differ)", not differing
            ),
            Expectation(f"every spoilt call is refused ({len(missed)} are not)", not missed),
        ]
        notes = [*(f"refused: {text}" for text in refused_calls), *(f"passed: {text}" for text in missed)]
        return Summary([table, tools], expectations, [*notes, *(f"state: {text}" for text in differing)])


SUITE = Tau


def _live(records: Sequence[Record]) -> Summary:
    table = Table("Success on tau2-bench", ["domain", "success", "rehearsals a task", "attempts a task"])
    for domain, some in {**by_group(records), "all": list(records)}.items():
        success = rate(some, lambda record: record.values["reward"] >= 1)
        rehearsals = mean(some, lambda record: float(record.values["rehearsals"]))
        table.add(domain, success, rehearsals, mean(some, lambda record: float(record.values["attempts"])))
    return Summary([table])
