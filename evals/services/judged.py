"""What is learned of a service, tried on threads that were held out: outcomes, and the rules that fired, by kind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import Any

from gecko_graph import Toolkit
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.state import JsonObject
from gecko_graph.values.observation import Observation, kind_of

from ..bfcl.fidelity import Recorded
from ..bfcl.learned import WARNED, add_tallies, foreseen, tally
from ..harness.figures import Table
from ..harness.options import Options
from .local import phone, shop
from .recorded import airline
from .s3 import s3
from .threads import Service

COUNTED = ("fired", "refuted", "lawful")
SERVICES = ("shop", "phone", "airline", "s3")


def measure(name: str, options: Options, threads: int) -> JsonObject:
    """Return what is learned of a service comes to; of the airline each fifth of the tasks held out in turn."""
    made = {"shop": shop, "phone": phone, "s3": s3}.get(name)
    found = [try_out(one) for one in ([made(options.seed, threads)] if made else airline(options))]
    kinds = [one.pop("kinds") for one in found]
    return {"outcomes": add_tallies(found), "kinds": kinds}


def run_million(count: int) -> JsonObject:
    """Return what learning from so many generated rows takes, in a process of its own."""
    command = [sys.executable, "-m", "evals.services.million", str(count)]
    told: JsonObject = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return {"count": count, **told}


def try_out(service: Service) -> JsonObject:
    """Learn a service from its threads and return what the learned contracts say of those held out."""
    rows = [row for thread in service.learn for row in service.rows(thread)]
    held = [row for thread in service.held for row in service.rows(thread)]
    begun = monotonic()
    learned = learn_contracts(service.toolkit, rows)
    seconds, toolkit = monotonic() - begun, learned.apply(service.toolkit)
    judged = [row for row in held if service.toolkit[row.tool].contract is None]
    found = tally(foreseen(toolkit, recorded(row)) for row in judged)
    return {"rows": len(rows), "seconds": seconds, **found, "kinds": firings(service.toolkit, learned.contracts, held)}


def recorded(row: Observation) -> Recorded:
    """Return a row as a recorded call of a class of its own, with no change where rows know of none."""
    before = row.before or {}
    after = row.after if row.after is not None else before
    raised = None if row.status == "ok" else str(row.result)
    return Recorded("service", row.tool, row.args, {"service": before}, {"service": after}, row.result, raised)


def firings(plain: Toolkit, contracts: JsonObject, rows: Iterable[Observation]) -> JsonObject:
    """Return by kind of rule and its status how many rules there are, and how many of them fired in these calls.

    `refuted` are those that fired on a call that was lawful, or refused with a message of which no rule that fired
    knows the kind; `lawful` those that fired on a lawful call. Also rules that only warn fire.
    """
    sharp = plain.with_contracts({"contracts": {name: _sharpened(one) for name, one in contracts.items()}})
    seen: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        tool = sharp.get(row.tool)
        if tool is None or tool.contract is None or row.tool not in contracts:
            continue
        call: Any = {"id": "call_1", "name": row.tool, "args": row.args}
        state: Any = row.before or {}
        run = tool.contract.open(args=row.args, parameters=tool.parameters, state=state, call=call, now=None, seed=0)
        refusal = run.refusal()
        fired = [one for one in refusal.violations if one.get("evidence")] if refusal else []
        kinds = [kind_of(one["error"], row.args) for one in fired]
        is_other = not any(kind_of(row.result, row.args).endswith(kind) for kind in kinds)
        for one in fired:
            said = seen.setdefault((row.tool, one["clause"]), set())
            said |= {"fired"} | ({"refuted", "lawful"} if row.status == "ok" else {"refuted"} if is_other else set())
    counts: dict[str, JsonObject] = {}
    for name, one in contracts.items():
        for clause in (each for each in one.get("requires", ()) if "evidence" in each):
            about = clause["evidence"]
            into = counts.setdefault(f"{about['kind']} {about['status']}", dict.fromkeys(("rules", *COUNTED), 0))
            into["rules"] += 1
            for word in seen.get((name, clause["id"]), ()):
                into[word] += 1
    return counts


def _sharpened(contract: Mapping[str, Any]) -> JsonObject:
    """Return a contract each of whose learned rules refuses, so that it is seen where they fire."""
    clauses = []
    for one in contract.get("requires", ()):
        if "evidence" in one:
            said = {"error": one["pass"].removeprefix(f"{WARNED}: ")} if "pass" in one else {}
            kept = {key: each for key, each in one.items() if key != "pass"}
            one = {**kept, **said, "evidence": {**one["evidence"], "status": "established"}}
        clauses.append(one)
    return {**contract, "requires": clauses}


def kinds_table(found: Mapping[str, Iterable[JsonObject]]) -> Table:
    """Return the table of kinds, a row for each service, kind and status."""
    table = Table("Rules by kind", ["service", "kind", "status", "rules", "fired", "refuted", "by a lawful call"])
    for service, parts in found.items():
        whole: dict[str, list[JsonObject]] = {}
        for part in parts:
            for name, counts in part.items():
                whole.setdefault(name, []).append(counts)
        for name, some in sorted(whole.items()):
            table.add(service, *name.split(" "), *add_tallies(some).values())
    return table


def outcomes_table(found: Mapping[str, JsonObject], share: Callable[[int, int], Any]) -> Table:
    """Return the table of services: what was foreseen of the held-out calls."""
    heads = ["service", "rows", "seconds", "calls", "answered", "right", "refusals", "refused", "or warned"]
    table = Table("Services, held-out threads", [*heads, "lawful refused", "lawful warned"])
    for name, one in found.items():
        lawful, warned = one["calls"] - one["refusals"], one["warned"] - one["warned_lawful"]
        met = (share(one["refusals_refused"] + more, one["refusals"]) for more in (0, warned))
        wrong = (share(one[key], lawful) for key in ("lawful_refused", "warned_lawful"))
        answers = share(one["answered"], one["calls"]), share(one["right"], one["answered"])
        table.add(name, one["rows"], f"{one['seconds']:.1f}", one["calls"], *answers, one["refusals"], *met, *wrong)
    return table
