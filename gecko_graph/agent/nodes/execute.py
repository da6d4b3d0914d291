"""Execution of an approved plan, one real call at a time: `call_tool`, `resolve_doubt`.

What may change something is claimed in the ledger before it is called. Who finds the claim of a call without a result
cannot know whether it took effect: it is in doubt, and never simply made again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from langgraph.errors import GraphInterrupt

from ...errors import GeckoError
from ...events import event
from ...models.ask import Work
from ...models.node import NodeScope
from ...real.claims import MARGIN_S, NOT_DURABLE, Claims, Steps, entry_of, find_claims, running
from ...real.decisions import DOUBT_DECISIONS, IN_DOUBT, ask_person, settled_by
from ...real.holes import find_difference, resolve
from ...real.journal import unmade_entry
from ...real.ledger import CallLedger
from ...real.policy import WORDS, ReviewPolicy
from ...real.preview import preview_digest
from ...schemas.complaints import find_complaints, find_faults
from ...state import Call, JsonObject
from ...tools import Toolkit
from ...tools.real import run_real
from ...tools.spec import ToolSpec
from ...world.contract import gate
from ...world.records import Departure, ExecutedCall, Preview
from ...world.rung import Answer
from ..channels import AgentState, build_request, calls_left, has_moved, last_entry

MOST_TRIES = 6
"""Tries of a call that can be made again: a read, or a write with an idempotency key."""
BACKOFF_S = 0.2
"""Seconds before the second try; each further wait is twice as long."""
LONGEST_WAIT_S = 20.0
ODD_TRIES = 3
"""Tries after which an answer that breaks its schema is taken as it is: the document may be what is wrong."""


def call_tool(
    state: AgentState, scope: NodeScope, *, toolkit: Toolkit, policy: ReviewPolicy, ledger: CallLedger | None
) -> Steps:
    """Make the plan's next call with its real arguments, once; or say why it is not made.

    Raises GeckoError where there is nothing to claim it in, or another run makes it at this moment.
    """
    preview = state["preview"]
    if preview is None or not is_approved(state, preview, policy):
        return {"approval": None}
    planned = calls_left(state)[0]
    if "answered" in planned:
        return {"journal": [unmade_entry(planned["call"], status="answered", result=planned["answered"], by="person")]}
    made = [each for each in state["journal"] if each["status"] in ("ok", "answered")]
    results = {each["call"]["id"]: each.get("result") for each in made}
    sent, departure = resolve(planned, results)
    call, tool = sent["call"], toolkit[sent["call"]["name"]]
    word, reason = policy.word({**planned, "call": call}, tool, state["task_state"])
    if WORDS.index(word) > WORDS.index(planned["review"]):  # it allows less
        departure = departure or {"code": "policy", "message": reason}
    departure = departure or find_departure(call, state, scope, toolkit) or find_difference(planned, call, results)
    if departure:
        return {"journal": [unmade_entry(call, status="skipped", departure=departure)]}
    if tool.trusted:
        scope.emit(event("gecko.execute", attempt=0, call=call))
        entry: ExecutedCall = {"call": call, "status": "in_doubt", "key": "", "tries": 1, "started_at": time.time()}
        answer, _ = yield from tried(tool, entry, scope, again_in)
        return booked_entry(entry, answer, scope)
    same = [each for each in (*state["unreported"], *state["journal"]) if is_equal(each["call"], call)]
    if left := [each for each in same if each["status"] == "in_doubt" and "ended_at" in each]:
        return {"journal": [{**left[0], "call": call}]}  # a person has left it so: it is not made again in this turn
    claims = yield from claims_of(state, tool, ledger)
    number = 1 + sum(is_equal(each["call"], call) for each in state["journal"] if each["key"])
    row, is_ours = yield from claims.take(call, number, scope.context.tool_timeout_s)
    if not is_ours:  # made before, by a run that this state does not know of
        return {"journal": [{**entry_of(row), "call": call}]}
    return (yield from make_call(tool, row, scope, claims))


def claims_of(state: AgentState, tool: ToolSpec, ledger: CallLedger | None) -> Steps:
    """Return the claims of the turn. Raises GeckoError where what is called would be forgotten."""
    claims = yield from find_claims(state["messages"], ledger)
    if claims is None or claims.standing.durability == "exit":
        raise GeckoError(NOT_DURABLE.format(tool=tool.name))
    return claims


def is_equal(one: Call, other: Call) -> bool:
    """Return whether two calls are the same, whatever their ids."""
    return one["name"] == other["name"] and one["args"] == other["args"]


def is_approved(state: AgentState, preview: Preview, policy: ReviewPolicy) -> bool:
    """Return whether this very plan was approved, lately enough, for the task state that is there."""
    approval, digest_now = state["approval"], preview_digest(preview["calls"], preview["start_digest"])
    if approval is None or approval["digest"] != digest_now:
        return False
    return time.time() <= approval["at"] + policy.max_age and not has_moved(state)


def find_departure(call: Call, state: AgentState, scope: NodeScope, toolkit: Toolkit) -> Departure | None:
    """Return why a call must not be made now: its real arguments break the schema, or the state its precondition."""
    if complaints := find_complaints(toolkit[call["name"]], call["args"]):
        wrong = "; ".join(f"{each['path']}: expected {each['expected']}, got {each['got']}" for each in complaints[:3])
        return {"code": "binding", "message": wrong}
    _, refusal = gate(build_request(call, state, scope, toolkit))
    return {"code": "precondition", "message": str(refusal.result)} if refusal else None


def make_call(tool: ToolSpec, row: JsonObject, scope: NodeScope, claims: Claims) -> Steps:
    """Make a call that was claimed, write what became of it, and return its entry."""
    entry = entry_of(row)
    scope.emit(event("gecko.execute", attempt=0, call=entry["call"]))

    def wait_claimed(seconds: float) -> Steps:
        nonlocal row
        row = yield from claims.settle(row, until=time.time() + seconds + scope.context.tool_timeout_s + MARGIN_S)
        yield from again_in(seconds)

    with running(row):
        try:
            answer, late = yield from tried(tool, entry, scope, wait_claimed)
        except GraphInterrupt:
            yield from claims.settle(row, status="paused")
            raise
        fields = {"result": answer.result, "by": "tool", "ended_at": time.time()}
        yield from claims.settle(row, **({"status": "doubt"} if late else {"status": answer.status, **fields}))
    return {"journal": [entry]} if late else booked_entry(entry, answer, scope)


def booked_entry(entry: ExecutedCall, answer: Answer, scope: NodeScope) -> dict[str, Any]:
    """Return the update that keeps what a call came to."""
    made: ExecutedCall = {**entry, "status": answer.status, "result": answer.result, "by": "tool"}
    scope.emit(event("gecko.executed", attempt=0, call=entry["call"], status=made["status"], result=answer.result))
    return {"journal": [{**made, "ended_at": time.time()}]}


def tried(tool: ToolSpec, entry: ExecutedCall, scope: NodeScope, again: Callable[[float], Steps]) -> Steps:
    """Return the tool's answer, and whether it is open what came of the call.

    A read is tried again; so is what a service was too busy to do. With an idempotency key an answer that breaks its
    schema, and an error of a later try, leave open what was done: the call is made again with the same key.
    """
    for number in range(1, MOST_TRIES + 1):
        call, limit = entry["call"], scope.context.tool_timeout_s
        answer, late = yield from run_real(tool, call["args"], limit, key=entry["key"], call_id=call["id"])
        is_free = answer.retry_after is not None or (late and tool.trusted)
        if not is_free or number == MOST_TRIES:
            break
        yield from again(max(answer.retry_after or 0, BACKOFF_S * 2 ** (number - 1)))
    if not tool.key_argument or late:
        return answer, late
    is_odd = answer.status == "ok" and tool.result is not None and bool(find_faults(tool.result, answer.result))
    return answer, entry["tries"] > 1 if answer.status == "error" else is_odd and entry["tries"] < ODD_TRIES


def again_in(seconds: float) -> Steps:
    """Wait, at most `LONGEST_WAIT_S` seconds."""
    yield [Work(function=time.sleep, args=(min(seconds, LONGEST_WAIT_S),), timeout_s=2 * LONGEST_WAIT_S)]


def resolve_doubt(
    state: AgentState, scope: NodeScope, *, toolkit: Toolkit, policy: ReviewPolicy, ledger: CallLedger | None
) -> Steps:
    """Resolve a call of which it is not known whether it took effect.

    With an idempotency key it is made again with the same key; else a person says what became of it: `happened`, with
    its result; `make_now`, as it did not; `skip`: leave it.
    """
    entry = last_entry(state)
    assert entry is not None
    tool, limit = toolkit[entry["call"]["name"]], scope.context.tool_timeout_s
    claims = yield from claims_of(state, tool, ledger)
    row = yield from claims.look(entry["key"])
    if row["status"] in ("ok", "error", "left"):  # another run has resolved it
        return {"journal": [{**entry_of(row), "call": entry["call"]}]}
    if tool.idempotency and row["tries"] < MOST_TRIES:
        yield from again_in(BACKOFF_S * 2 ** (row["tries"] - 1))
    elif row["status"] != "paused" or state.get("found"):
        ask = partial(ask_person, allowed=DOUBT_DECISIONS, needs_id=policy.needs_id)
        (decision,) = yield from ask([entry["call"]], [IN_DOUBT.format(tool=tool.name)], toolkit, claims)
        if decision["type"] != "make_now":
            return {"journal": [entry_of((yield from claims.settle(row, **settled_by(decision))))]}
    return (yield from make_call(tool, (yield from claims.retake(row, limit)), scope, claims))
