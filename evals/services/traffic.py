"""Derived contracts after real calls: learned from 300 calls of a service, tested on 600 others.

The calls were recorded by `python -m evals living --record` in evals/out/living: seed 1 to learn from, seeds 2 and 3
held out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

import httpx

from gecko_graph import Toolkit, World
from gecko_graph.derive.contracts import add_derived
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.learning.observation import known_by_reads
from gecko_graph.real.learned import teach
from gecko_graph.state import JsonObject
from gecko_graph.tools.openapi.client import read_answer
from gecko_graph.tools.openapi.request_reader import CannotRead, Operations
from gecko_graph.values.notes import notes_of
from gecko_graph.values.observation import Observation
from gecko_graph.world.rung import Answer

from ..harness.figures import Record, Table
from ..harness.options import OUT
from ..harness.suite import Expectation
from .installed import SERVICES
from .walk import resolve, unwrapped

FOLDER, HOST, LEARN, HELD = OUT / "living", "http://service", 1, (2, 3)


def recorded() -> list[str]:
    """Return the services whose calls were recorded with all three seeds."""
    return [name for name in SERVICES if all((FOLDER / f"{name}-{seed}.jsonl").is_file() for seed in (LEARN, *HELD))]


def measure(name: str) -> JsonObject:
    """Return what 300 calls of a service establish, and the predictions for the others with their drift."""
    toolkit, _ = add_derived(Toolkit.from_openapi(FOLDER / f"{name}.openapi.yaml"))
    learned = learn_contracts(toolkit, known_by_reads([*_rows(name, LEARN, toolkit)], toolkit))
    found, filled = Counter[str](), 0
    for contract in learned.contracts.values():
        rules = [each["evidence"] for each in contract.get("requires", ()) if "evidence" in each]
        found.update(f"{'document' if one.get('by') == 'document' else 'mined'} {one['status']}" for one in rules)
        filled += len(contract.get("evidence", {}).get("filled", ()))
    counts = Counter[str](filled=filled)
    for seed in HELD:
        counts.update(_tried(name, seed, teach(toolkit, {"contracts": learned.contracts})))
    return {"rules": dict(found), **counts}


def _tried(name: str, seed: int, toolkit: Toolkit) -> Iterator[str]:
    """Yield what an agent's world says about each held-out call, and how reality drifts from it."""
    world = World(toolkit)
    for row in _rows(name, seed, toolkit):
        is_lawful, call = row.status == "ok", {"name": row.tool, "args": row.args}
        rejection = world.check(call)
        yield "lawful" if is_lawful else "refused"
        if rejection and "violations" in rejection:
            yield "wrongly held back" if is_lawful else "rightly held back"
        is_still = not is_lawful or toolkit[row.tool].reads
        entry = world.record(call, Answer(row.status, row.result, [] if is_still else None))
        yield from (f"drift {one['kind']}" for one in entry["drift"])
        if notes_of(entry, "may_refuse"):
            yield "wrongly warned" if is_lawful else "rightly warned"
        yield from ("withdrawn" for _ in entry.get("refuted", ()))
    for tool in toolkit:
        for item in tool.lessons.items.values() if tool.lessons else ():
            if item["part"] == "rule":
                yield f"met: {item['status']}"


def _rows(name: str, seed: int, toolkit: Toolkit) -> Iterator[Observation]:
    """Yield the recorded calls of a service as observations; requests that are not in its document are left out."""
    service, values = SERVICES[name], dict[int, JsonObject]()
    operations = Operations(toolkit, server=HOST + service.prefix)
    for line in (FOLDER / f"{name}-{seed}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        path = HOST + service.prefix + resolve(row["path"], values, real=True, is_path=True)
        body, query = (resolve(row.get(part), values, real=True) for part in ("body", "query"))
        sent = {"json": body} if body is not None else {}
        request = httpx.Request(row["method"], path, params=query, headers=service.headers, **sent)
        if "makes" in row and row["status"] < 300:
            values[row["makes"]] = {**resolve(row["body"], values, real=True), **unwrapped(row["answer"], row["key"])}
        try:
            tool, args = operations.read(request)
        except CannotRead:
            continue
        content = b"" if row["answer"] is None else json.dumps(row["answer"]).encode()
        headers = httpx.Headers({"content-type": "application/json"})
        yield Observation(tool.name, args, *read_answer(row["status"], headers, content), source=f"{name}-{seed}")


def summarise(records: Sequence[Record], expected: list[Expectation]) -> Table:
    """Return what was established and held back by service, and the drift; add the expectations."""
    heads = ["service", "rules", "held-out: lawful", "held back", "refused", "held back", "warned rightly, wrongly"]
    heads += ["met in the run", "drift lines a call, by kind"]
    table = Table("Rules of a document, after 300 real calls", heads)
    for record in records:
        name, one = record.id.partition(":")[2], record.values
        calls = one.get("lawful", 0) + one.get("refused", 0)
        rules = ", ".join(f"{kind} {count}" for kind, count in sorted(one["rules"].items()))
        met = ", ".join(f"{key[5:]} {count}" for key, count in sorted(one.items()) if key.startswith("met: "))
        drift = {key[6:]: count / calls for key, count in one.items() if key.startswith("drift ")}
        wrong = one.get("wrongly held back", 0)
        table.add(
            name, rules, one.get("lawful", 0), wrong, one.get("refused", 0), one.get("rightly held back", 0),
            f"{one.get('rightly warned', 0)}, {one.get('wrongly warned', 0)}", met,
            ", ".join(f"{kind} {share:.3f}" for kind, share in sorted(drift.items())),
        )  # fmt: skip
        expected.append(Expectation(f"traffic, {name}: no lawful call is held back", not wrong))
    return table
