"""Carry out an approved plan, one real call at a time: call_tool, resolve_doubt, sync (paper, step 5).

A call that may change something is first claimed in the ledger. If a run finds a claim without a result, it is unknown
whether the call took effect: the call is in doubt, and never simply repeated.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from functools import partial
from itertools import count
from typing import Any

from langgraph.errors import GraphInterrupt

from ..errors import GeckoError
from ..events import event
from ..models.ask import AnyAsk, Reply
from ..models.formatting import cut
from ..models.node import NodeScope
from ..real.bindings import find_difference, resolve
from ..real.claims import (
    DECIDED,
    MADE,
    MARGIN_S,
    NOT_DURABLE,
    Claims,
    Steps,
    entry_of,
    find_claims,
    find_pause,
    running,
    unmade_entry,
    wait,
)
from ..real.decisions import settle_doubt
from ..real.home import Home
from ..real.learned import share
from ..real.policy import WORDS, ReviewPolicy
from ..real.preview import preview_digest
from ..schemas.complaints import describe_complaint, find_complaints
from ..state import VERSION, Call, JsonObject, Step
from ..tools import Toolkit
from ..tools.real import is_undecided, run_real
from ..tools.spec import ToolSpec
from ..values.digest import digest
from ..values.notes import notes_of
from ..values.observation import Observer
from ..values.patch import apply_patch, booked_patch
from ..world.booking import REASON_CHARS, booked, observe_call
from ..world.records import Departure, ExecutedCall, PlannedCall, Preview, unchanged
from ..world.refusals import is_same_call
from ..world.rung import gate, request_of
from .channels import AgentState, as_attempt, calls_left, has_moved, last_entry

MOST_DEPARTURES = 3
"""Most rehearsals per turn of the remaining calls after a departing real result."""


def call_tool(state: AgentState, scope: NodeScope, *, toolkit: Toolkit, policy: ReviewPolicy, home: Home) -> Steps:
    """Make the plan's next call once, with its real arguments, or record why it is not made.

    Raises GeckoError if there is no ledger for the claim, or another run is making the call.
    """
    preview = state["preview"]
    if preview is None or not is_approved(state, preview, policy):
        return {"approval": None}
    planned = calls_left(state)[0]
    if "answered" in planned:
        return {"journal": [unmade_entry(planned["call"], status="answered", result=planned["answered"], by="person")]}
    made = [each for each in state["journal"] if each["status"] in MADE]
    results = {each["call"]["id"]: each.get("result") for each in made}
    sent, departure = resolve(planned, results)
    call, tool = sent["call"], toolkit[sent["call"]["name"]]
    word, reason = policy.word({**planned, "call": call}, tool, state["task_state"])
    if WORDS.index(word) > WORDS.index(planned["review"]):  # stricter than in the plan
        departure = departure or {"code": "policy", "message": reason}
    departure = (
        departure or find_departure(planned, call, state, scope, toolkit) or find_difference(planned, call, results)
    )
    if departure:
        return {"journal": [unmade_entry(call, status="skipped", departure=departure)]}
    if tool.trusted:
        row: JsonObject = {"call": call, "key": "", "owner": "", "tries": 1, "started_at": time.time()}
        return (yield from make_call(tool, row, scope, None))
    same = [each for each in (*state["unreported"], *state["journal"]) if is_same_call(each["call"], call)]
    if left := [each for each in same if each["status"] == "in_doubt" and "ended_at" in each]:
        return {"journal": [{**left[0], "call": call}]}  # a person left it in doubt: not made again
    claims = yield from claims_of(state, tool, home)
    number = 1 + sum(is_same_call(each["call"], call) for each in state["journal"] if each["key"])
    row, is_ours = yield from claims.take(call, number, scope.context.tool_timeout_s)
    if not is_ours:  # made before, by a run that is missing in this state
        return {"journal": [{**entry_of(row), "call": call}]}
    return (yield from make_call(tool, row, scope, claims))


def claims_of(state: AgentState, tool: ToolSpec, home: Home) -> Steps:
    """Return the claims of the turn. Raises GeckoError if calls would not be stored durably."""
    claims = yield from find_claims(state["messages"], home)
    if claims is None or claims.standing.durability == "exit":
        raise GeckoError(NOT_DURABLE.format(tool=tool.name))
    return claims


def is_approved(state: AgentState, preview: Preview, policy: ReviewPolicy) -> bool:
    """Return whether this exact plan was approved, recently enough, for the current task state."""
    approval, digest_now = state["approval"], preview_digest(preview["calls"], preview["start_digest"])
    if approval is None or approval["digest"] != digest_now:
        return False
    return time.time() <= approval["at"] + policy.max_age and not has_moved(state)


def find_departure(
    planned: PlannedCall, call: Call, state: AgentState, scope: NodeScope, toolkit: Toolkit
) -> Departure | None:
    """Return why a call must not be made now: its real arguments violate the schema, or the state its precondition.

    Learned rules that the plan overruled do not count: a person has decided.
    """
    if complaints := find_complaints(toolkit[call["name"]], call["args"]):
        wrong = "; ".join(map(describe_complaint, complaints[:3]))
        return {"code": "binding", "message": wrong}
    request = request_of(call, as_attempt(state), scope, toolkit)
    _, refusal = gate(request, overruled=bool(notes_of(planned, "overruled")))
    return {"code": "precondition", "message": str(refusal.result)} if refusal else None


def make_call(tool: ToolSpec, row: JsonObject, scope: NodeScope, claims: Claims | None) -> Steps:
    """Make a call, store its result if it was claimed, and return its journal entry.

    A read is retried; so is a call that the service was too busy for. With an idempotency key, a later error leaves
    open what the first try did.
    """
    call, limit = row["call"], scope.context.tool_timeout_s
    scope.emit(event("gecko.execute", attempt=0, call=call))
    with running(row):
        try:
            for number in count(1):
                answer, late = yield from run_real(tool, call["args"], limit, key=row["key"], call_id=call["id"])
                pause = find_pause(number, answer.retry_after, is_free=late and tool.trusted)
                if pause is None:
                    break
                if claims:
                    row = yield from claims.settle(row, until=time.time() + pause + limit + MARGIN_S)
                yield from wait(pause)
        except GraphInterrupt:
            if claims:
                yield from claims.settle(row, status="paused")
            raise
        late = late or bool(tool.key_argument and answer.status == "error" and row["tries"] > 1)
        fields = {"status": answer.status, "result": answer.result, "by": "tool", "ended_at": time.time()}
        fields["undecided"] = is_undecided(answer)
        if claims:
            row = yield from claims.settle(row, **({"status": "doubt"} if late else fields))
    entry = entry_of(row if claims else row | fields)
    if entry["status"] != "in_doubt":
        scope.emit(event("gecko.executed", attempt=0, call=call, status=entry["status"], result=answer.result))
    return {"journal": [entry]}


def resolve_doubt(state: AgentState, scope: NodeScope, *, toolkit: Toolkit, policy: ReviewPolicy, home: Home) -> Steps:
    """Resolve a call with unknown effect, by its idempotency key or by a person."""
    entry = last_entry(state)
    assert entry is not None
    tool, limit = toolkit[entry["call"]["name"]], scope.context.tool_timeout_s
    claims = yield from claims_of(state, tool, home)
    row = yield from claims.look(entry["key"])
    if row["status"] in DECIDED:  # decided by another run
        return {"journal": [{**entry_of(row), "call": entry["call"]}]}
    if row["status"] == "paused" and not state.get("found"):
        row, is_ours = (yield from claims.retake(row, limit)), True
    else:
        settle = partial(settle_doubt, is_keyed=bool(tool.idempotency), needs_id=policy.needs_id)
        row, is_ours = yield from settle(claims, row, toolkit, limit)
    return (yield from make_call(tool, row, scope, claims)) if is_ours else {"journal": [entry_of(row)]}


def sync(
    state: AgentState, scope: NodeScope, *, toolkit: Toolkit, observer: Observer | None = None
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Apply the last real call's changes, record its drift, and decide whether to rehearse the remaining calls again.

    The change is computed by the tool's contract or `simulate` function from the real arguments and state; else the
    rehearsed change is used if the real result agrees, with made-up values replaced by real ones; else a model
    describes it. Reality is never refused: a change that violates a schema, postcondition or invariant is applied as
    far as possible, and ends the plan.
    """
    entry = last_entry(state)
    assert entry is not None
    preview = None if state.get("found") else state.get("preview")
    calls = preview["calls"] if preview else []
    planned = next((each for each in calls if each["call"]["id"] == entry["call"]["id"]), None)
    if entry["status"] == "answered":
        return answered(state, entry, planned)
    if entry["status"] not in ("ok", "error"):
        return departed(state, entry, entry.get("departure"))
    request = request_of(entry["call"], as_attempt(state), scope, toolkit)
    outcome, departure = yield from booked(request, entry, planned, scope, toolkit)
    yield from share(toolkit.select(names=request.tool.name))
    step: Step = {"v": VERSION, "call": entry["call"], "outcome": outcome}
    after = apply_patch(state["task_state"], booked_patch(outcome))
    if observer and entry.get("by") != "person":  # here, because calls found after a crash pass here too
        known: Any = {"start": state["turn_start_state"], "supposed": state.get("supposed") or []}
        yield [observe_call(observer, toolkit, step, state["steps"], **known)]
    scope.emit(event("gecko.sync", attempt=0, call=entry["call"], patch=outcome["patch"], drift=entry["drift"]))
    tool, known = request.tool.name, state.get("fidelity") or {}
    counted = {"calls": 0, "drifted": 0} | known.get(tool, {})
    counted = {"calls": counted["calls"] + 1, "drifted": counted["drifted"] + bool(entry["drift"])}
    update: dict[str, Any] = {
        "task_state": after,
        "steps": [*state["steps"], step],
        "fidelity": {**known, tool: counted},
    }
    if "violations" in outcome or state.get("real_digest"):
        update["real_digest"] = digest(after)
    return {**update, "journal": [entry], **departed({**state, "steps": update["steps"]}, entry, departure)}


def answered(state: AgentState, entry: ExecutedCall, planned: PlannedCall | None) -> dict[str, Any]:
    """Return the update after a person answered a call: its result is known, and nothing has changed.

    The remaining calls are rehearsed again if one of them depends on the predicted result.
    """
    outcome = unchanged("ok", entry.get("result"), "person", simulated=False)
    steps: list[Step] = [*state["steps"], {"v": VERSION, "call": entry["call"], "outcome": outcome}]
    departure: Departure | None = None
    if planned and planned["rehearse_after"]:
        departure = {"code": "result", "message": "the user has answered it, and later arguments rest on its result"}
    return {"steps": steps, **departed({**state, "steps": steps}, entry, departure)}


def departed(state: AgentState, entry: ExecutedCall, departure: Departure | None) -> dict[str, Any]:
    """Return the update that stops the plan and has the remaining calls rehearsed again, a bounded number of times."""
    if departure is None:
        return {}
    update: dict[str, Any] = {"journal": [{**entry, "departure": departure}]}
    if state.get("found") or state["rehearsals"].get("departed", 0) >= MOST_DEPARTURES:
        return update  # a found call is not part of a plan
    feedback = (
        f"The plan was being carried out. {entry['call']['name']} did not do what was expected: "
        f"{cut(departure['message'], budget=REASON_CHARS)}"
    )
    return {
        **update,
        "next_rehearsal_reason": "departed",
        "lesson": {"number": 0, "attempt_log": "", "feedback": feedback},
    }
