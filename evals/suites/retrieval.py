"""`retrieval`: whether the tools that a task needs are found among many (ToolGate, section 3.3)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from gecko_graph import Toolkit
from gecko_graph.retrieval import ToolIndex, is_installed
from gecko_graph.retrieval.index import fuse, recall, split_words, texts_of
from gecko_graph.state import JsonObject, Taught
from gecko_graph.tools.spec import ToolSpec

from ..harness.figures import Case, Measured, Record, Table, mean_of, share
from ..harness.options import EvalError, find, read_jsonl
from ..harness.suite import Expectation, Suite, Summary, by_group

TOP = (1, 5, 10)
METHODS = {
    "chosen": "ToolIndex, weights chosen on the other half",
    "ours": "ToolIndex as shipped, weights chosen on all queries",
    "taught": "ToolIndex as shipped, taught by the needs of the other half's tasks",
    "plain": "bm25s on the raw text",
}
TUNED, HELD_OUT = "chosen on", "held out"
"""The halves of the queries, drawn by the seed: weights are chosen on the first, figures are published for the
second."""
BFCL, TURNS = "BFCL", "BFCL, people's turns"

DOCUMENTS = "bfcl_multiturn_func_docs.json"


class Weights(NamedTuple):
    """The weights of words in a tool's name and description, and BM25's two parameters."""

    name: int
    description: int
    k1: float
    b: float


GRID = [Weights(*each) for each in product((1, 2, 3, 4), (1, 2, 3), (0.9, 1.2, 1.5, 2.0, 2.5), (0.4, 0.6, 0.75, 0.9))]


@dataclass(frozen=True, slots=True)
class Query:
    """A need in words, and the names of the right tools."""

    id: str
    group: str
    text: str
    right: tuple[str, ...]
    unit: str = ""
    """Queries of one unit are in the same half: a task, whose turns are about the same things."""


class Catalogue:
    """Tools with their raw texts and queries; searched by our index and by plain bm25s."""

    def __init__(self, tools: Sequence[ToolSpec], raw: Sequence[str], queries: Sequence[Query]) -> None:
        self.tools, self.raw, self.queries = tools, raw, queries

    @cached_property
    def _index(self) -> ToolIndex:
        return ToolIndex.build(self.tools)

    @cached_property
    def _plain(self) -> Any:
        bm25 = import_module("bm25s").BM25()
        bm25.index(_plain_words(self.raw), show_progress=False)
        return bm25

    @cached_property
    def _words(self) -> list[list[list[str]]]:
        return [[split_words(text) for text in texts_of(tool)] for tool in self.tools]

    def weighted(self, weights: Weights) -> ToolIndex:
        bm25 = import_module("bm25s").BM25(k1=weights.k1, b=weights.b)
        texts = [weights.name * name + weights.description * about + others for name, about, others in self._words]
        bm25.index(texts, show_progress=False)
        return ToolIndex(self.tools, bm25, None, None, None)

    def choose(self, seed: int) -> Weights:
        """Return the weights of the grid with the best Recall@1, @5 and @10 on the unpublished half."""
        queries = [query for query in self.queries if half_of(query, seed) == TUNED]

        def quality(weights: Weights) -> float:
            found = self._recalls(self.weighted(weights), queries)
            return fmean(found) if found else 0.0

        return max(GRID, key=quality)

    def _recalls(self, index: ToolIndex, queries: Sequence[Query]) -> list[float]:
        found = []
        for query in queries:
            names = [each.name for each in index.search(query.text, TOP[-1])]
            found += [fmean(right in names[:k] for right in query.right) for k in TOP]
        return found

    def lessons(self, seed: int) -> list[Taught]:
        """Return what the queries of the first half teach: which tool serves which need."""
        asked = (query for query in self.queries if half_of(query, seed) == TUNED)
        return [{"need": query.text, "tool": tool} for query in asked for tool in query.right]

    def search(
        self, method: str, text: str, *, chosen: ToolIndex | None = None, taught: Sequence[Taught] = ()
    ) -> list[str]:
        if method == "taught":
            found = fuse([self._index.search(text, TOP[-1]), recall(text, taught)])
            return [each.name for each in found[: TOP[-1]]]
        if method != "plain":
            index = chosen if method == "chosen" and chosen else self._index
            return [found.name for found in index.search(text, TOP[-1])]
        k = min(TOP[-1], len(self.tools))
        (places,), (scores,) = self._plain.retrieve(_plain_words([text]), k=k, show_progress=False)
        return [self.tools[place].name for place, score in zip(places, scores, strict=True) if score > 0]


def half_of(query: Query, seed: int) -> str:
    named = query.unit or f"{query.id}:{query.text}"
    return HELD_OUT if sha256(f"{seed}:{named}".encode()).digest()[0] % 2 else TUNED


def _raw(source: Any) -> str:
    return json.dumps(source, ensure_ascii=False)


def _plain_words(texts: Sequence[str]) -> Any:
    return import_module("bm25s").tokenize(texts, stopwords="en", return_ids=False, show_progress=False)


def read_bfcl(path: Path) -> Catalogue:
    """Return BFCL's distinct tools, the first of each name, and its tasks that choose among several functions."""
    functions: dict[str, JsonObject] = {}
    queries = []
    for row in read_jsonl(path):
        for function in row["functions"]:
            functions.setdefault(function["name"], function)
        if "multiple" in row["category"]:
            text = "\n".join(message["content"] for message in row["question"] if message["role"] == "user")
            right = tuple(dict.fromkeys(name for answer in row["possible_answer"] for name in answer))
            queries.append(Query(row["task_id"], row["category"], text, right))
    tools = list(Toolkit.from_tools(functions.values()))
    return Catalogue(tools, [_raw(function) for function in functions.values()], queries)


def read_turns(data: Path) -> Catalogue:
    """Return the tools of BFCL's eight classes, and the users' messages in its multi-turn tasks.

    Only the category `base`, because the others ask the same. A turn without calls is no query.
    """
    documents = json.loads(find(DOCUMENTS, data).read_text(encoding="utf-8"))
    functions = {name: each.get("function", each) for name, each in documents.items()}
    said = {row["id"]: row["turns"] for row in read_jsonl(find("bfcl_multiturn_tasks.jsonl.gz", data))}
    queries = []
    for row in read_jsonl(find("bfcl_multiturn_calls.jsonl.gz", data)):
        for number, turn in enumerate(row["turns"] if row["category"] == "base" else ()):
            text = "\n".join(each["content"] for each in said[row["id"]][number]["user"] if each["role"] == "user")
            right = tuple(dict.fromkeys(step["call"]["name"] for step in turn if step["call"]["name"] in functions))
            if text and right:
                queries.append(Query(f"{row['id']}:{number}", "turns", text, right, row["id"]))
    return Catalogue([*Toolkit.from_tools(functions.values())], [_raw(each) for each in functions.values()], queries)


class Retrieval(Suite):
    """Whether the tools that a task needs are among the first 1, 5 and 10 found, compared with plain bm25s.

    BFCL's distinct tools with its tasks that choose among functions. COMP@k: all right tools are among the k. The
    users' messages of its multi-turn tasks are searched among the eight classes' tools, also after the other tasks have
    taught which tools served which turns. Plain bm25s indexes the raw text.
    """

    name = "retrieval"
    asks = False
    planner = None
    at_once = 1
    examples = ("", "--only 'live_multiple*'")

    @cached_property
    def catalogues(self) -> Mapping[str, Catalogue]:
        if not is_installed():
            raise EvalError("the extra `retrieval` is not installed: pip install 'gecko-graph[retrieval]'")
        tasks = find("bfcl_tasks.jsonl.gz", self.options.data)
        turns = {TURNS: read_turns(self.options.data)} if (self.options.data / DOCUMENTS).is_file() else {}
        return {BFCL: read_bfcl(tasks), **turns}

    @cached_property
    def chosen(self) -> Mapping[str, tuple[Weights, ToolIndex]]:
        """The weights chosen on one half of each catalogue's queries, and the index with them."""
        found = {name: catalogue.choose(self.options.seed) for name, catalogue in self.catalogues.items()}
        return {name: (weights, self.catalogues[name].weighted(weights)) for name, weights in found.items()}

    @cached_property
    def taught(self) -> list[Taught]:
        return self.catalogues[TURNS].lessons(self.options.seed)

    def cases(self) -> Iterator[Case]:
        for name, catalogue in self.catalogues.items():
            for query in catalogue.queries:
                facts: JsonObject = {"of": name, "half": half_of(query, self.options.seed)}
                yield Case(f"{name}:{query.id}", (name, query), group=f"{name} {query.group}", facts=facts)

    def run_case(self, case: Case) -> JsonObject:
        name, query = case.data
        weights, index = self.chosen[name]
        ranks: JsonObject = {"weights": [*weights]}
        taught = self.taught if name == TURNS else []
        for method in METHODS:
            if method == "taught" and case.facts["half"] + name != HELD_OUT + TURNS:
                continue  # only these needs are in users' words, and need the same tools repeatedly
            found = self.catalogues[name].search(method, query.text, chosen=index, taught=taught)
            ranks[method] = [found.index(right) + 1 if right in found else 0 for right in query.right]
        return ranks

    def summarise(self, records: Sequence[Record]) -> Summary:
        columns = ["catalogue", "half", "by", *(f"Recall@{k}" for k in TOP), *(f"COMP@{k}" for k in TOP)]
        table = Table("Right tools among the first k that are found", columns)
        done = [record for record in records if record.done]
        held_out = [record for record in done if record.facts["half"] == HELD_OUT]
        expectations: list[Expectation] = []
        for name, some in by_group(held_out).items():
            _add_rows(table, name, HELD_OUT, some)
        for name, some in by_group(done, key="of").items():
            for half in (HELD_OUT, TUNED):
                rows = _add_rows(table, f"{name}, all", half, [each for each in some if each.facts["half"] == half])
                if half == HELD_OUT:
                    ours, word = (rows["taught"], ", taught") if "taught" in rows else (rows["chosen"], "")
                    holds = all(a.value >= b.value for a, b in zip(ours, rows["plain"], strict=True))
                    expectations.append(Expectation(f"{name}, held out{word}: at least what plain bm25s finds", holds))
        chosen = {record.facts["of"]: Weights(*record.values["weights"]) for record in held_out}
        notes = [f"{name}: chosen on the other half: {weights}" for name, weights in chosen.items()]
        return Summary([table], expectations, notes)


def _add_rows(table: Table, name: str, half: str, records: Sequence[Record]) -> dict[str, list[Measured]]:
    rows = {method: _row(records, method) for method in METHODS if records and method in records[0].values}
    for method, row in rows.items():
        table.add(name, half, METHODS[method], *row)
    return rows


def _row(records: Sequence[Record], method: str) -> list[Measured]:
    ranks = [record.values[method] for record in records]
    recalls = [[sum(0 < rank <= k for rank in each) / len(each) for each in ranks] for k in TOP]
    whole = [sum(all(0 < rank <= k for rank in each) for each in ranks) for k in TOP]
    return [
        *(replace(found, high=min(1.0, found.high)) for found in (mean_of(each, form="percent") for each in recalls)),
        *(share(count, len(ranks), tools="none") for count in whole),
    ]


SUITE = Retrieval
