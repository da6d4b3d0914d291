"""Execution of an approved plan, one real call at a time: `begin_call`, `call_tool`, `resolve_doubt`.

The mark that a call was started is a superstep of its own, in the saver before the call. Who finds the mark without a
result in another process cannot know whether the call took effect: it is in doubt, and never simply made again.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any
from uuid import uuid4

from ..errors import GeckoError, StateError
from ..events import event
from ..execution.channels import AgentState, calls_left, has_moved, last_entry
from ..execution.decisions import ask_person, read_words
from ..execution.holes import find_difference, resolve
from ..execution.journal import BEGUN_AGAIN, NOT_DURABLE, Marks, look_for_earlier_tries, look_for_mark, unmade_entry
from ..execution.policy import ReviewPolicy, is_stricter
from ..execution.preview import preview_digest
from ..execution.records import Departure, ExecutedCall, Preview
from ..execution.requests import build_request
from ..models.ask import Reply, Work
from ..models.node import NodeScope
from ..schemas.complaints import find_complaints, find_faults
from ..simulation.contract import gate
from ..simulation.rung import Answer
from ..state import Call
from ..threads import OTHER_RUN, look_for_other_runs
from ..toolkit import Toolkit
from ..toolkit.real import run_real
from ..toolkit.spec import ToolSpec
from ..turn import task_of

MOST_TRIES = 6
"""Tries of a call that can be made again: a read, or a write with an idempotency key."""
BACKOFF_S = 0.2
"""Seconds before the second try; each further wait is twice as long."""
LONGEST_WAIT_S = 20.0
ODD_TRIES = 3
"""Tries after which an answer that breaks its schema is taken as it is: the document may be what is wrong."""

DOUBT_DECISIONS = ("approve", "reject", "respond")
IN_DOUBT = (
    "{tool} was called, and it is not known whether it took effect. "
    "approve: it did not; make the call now. respond: it did; your words are its result. reject: leave it as it is."
)


def begin_call(
    state: AgentState, scope: NodeScope, *, toolkit: Toolkit, policy: ReviewPolicy, marks: Marks
) -> dict[str, Any]:
    """Mark the next call as started, with its real arguments; or say why it is not made."""
    preview = state["preview"]
    if preview is None or not is_approved(state, preview, policy):
        return {"approval": None}
    planned = calls_left(state)[0]
    if "answered" in planned:
        return {"journal": [unmade_entry(planned["call"], status="answered", result=planned["answered"], by="person")]}
    made = [each for each in state["journal"] if each["status"] in ("ok", "answered")]
    results = {each["call"]["id"]: each.get("result") for each in made}
    sent, departure = resolve(planned, results)
    call = sent["call"]
    word, reason = policy.word({**planned, "call": call}, toolkit[call["name"]], state["task_state"])
    if is_stricter(word, planned["review"]):
        departure = departure or {"code": "policy", "message": reason}
    departure = departure or find_departure(call, state, scope, toolkit) or find_difference(planned, sent, results)
    if departure:
        return {"journal": [unmade_entry(call, status="skipped", departure=departure)]}
    key, token = uuid4().hex, uuid4().hex
    marks.add(token)
    scope.emit(event("gecko.execute", attempt=0, call=call))
    now = time.time()
    entry: ExecutedCall = {"call": call, "status": "started", "key": key, "token": token, "tries": 1, "started_at": now}
    return {"journal": [entry]}


def is_approved(state: AgentState, preview: Preview, policy: ReviewPolicy) -> bool:
    """Return whether this very plan was approved, lately enough, for the task state that is there."""
    approval, digest_now = state["approval"], preview_digest(preview["calls"], preview["start_digest"])
    if approval is None or approval["digest"] != digest_now:
        return False
    return policy.is_fresh(approval, now=time.time()) and not has_moved(state)


def find_departure(call: Call, state: AgentState, scope: NodeScope, toolkit: Toolkit) -> Departure | None:
    """Return why a call must not be made now: its real arguments break the schema, or the state its precondition."""
    if complaints := find_complaints(toolkit[call["name"]], call["args"]):
        wrong = "; ".join(f"{each['path']}: expected {each['expected']}, got {each['got']}" for each in complaints[:3])
        return {"code": "binding", "message": wrong}
    _, refusal = gate(build_request(call, state, scope, toolkit))
    return {"code": "precondition", "message": str(refusal.result)} if refusal else None


def call_tool(
    state: AgentState, scope: NodeScope, *, toolkit: Toolkit, marks: Marks
) -> Generator[list[Work], list[Reply], dict[str, Any]]:
    """Make the call that was marked as started, once; a read is tried again.

    Raises:
        GeckoError: The mark of a call that changes something cannot be found in a saver.
        StateError: Another run makes it, or has made it.
    """
    entry = last_entry(state)
    assert entry is not None
    tool = toolkit[entry["call"]["name"]]
    if tool.trusted:
        return (yield from make_call(tool, entry, scope))
    known = max((each.get("mark", "") for each in state["journal"]), default="")
    with marks.take(entry["token"]) as is_fresh:
        if not is_fresh:
            others = look_for_other_runs(known)
            if others and (yield [others])[0].value:
                raise StateError(OTHER_RUN)
            return {"journal": [{**entry, "status": "in_doubt"}]}
        try:
            entry = {**entry, "mark": (yield from check_mark(tool, known, task_of(state["messages"])))}
        except GeckoError:
            marks.add(entry["token"])  # it was not made
            raise
        return (yield from make_call(tool, entry, scope))


def make_call(
    tool: ToolSpec, entry: ExecutedCall, scope: NodeScope
) -> Generator[list[Work], list[Reply], dict[str, Any]]:
    """Make a call, and return what came of it."""
    answer, late = yield from tried(tool, entry, scope)
    made: ExecutedCall = {**entry, "status": answer.status, "result": answer.result, "by": "tool"}
    made |= {"status": "in_doubt"} if late and not tool.trusted else {"ended_at": time.time()}
    scope.emit(event("gecko.executed", attempt=0, call=entry["call"], status=made["status"], result=answer.result))
    return {"journal": [made]}


def check_mark(tool: ToolSpec, known: str, task: str) -> Generator[list[Work], list[Reply], str]:
    """Return the checkpoint that has the mark; raise GeckoError if it is not saved, or not this run's alone."""
    look, others = look_for_mark(), look_for_other_runs(known)
    if look is None or others is None or not (yield [look])[0].value:
        raise GeckoError(NOT_DURABLE.format(tool=tool.name))
    if (yield [others])[0].value:
        raise StateError(OTHER_RUN)
    before = None if known else look_for_earlier_tries(task)
    if before and (yield [before])[0].value:
        raise StateError(BEGUN_AGAIN)
    return str(others.args[2])


def tried(
    tool: ToolSpec, entry: ExecutedCall, scope: NodeScope
) -> Generator[list[Work], list[Reply], tuple[Answer, bool]]:
    """Return the tool's answer, and whether it is open what came of the call.

    A read is tried again; so is what a service was too busy to do. With an idempotency key an answer that breaks its
    schema, and an error of a later try, leave open what was done: the call is made again with the same key.
    """
    for number in range(1, MOST_TRIES + 1):
        answer, late = yield from run_real(tool, entry["call"]["args"], scope.context.tool_timeout_s, key=entry["key"])
        again = answer.retry_after is not None or (late and tool.trusted)
        if not again or number == MOST_TRIES:
            break
        yield [wait(max(answer.retry_after or 0, BACKOFF_S * 2 ** (number - 1)))]
    if not tool.key_argument or late:
        return answer, late
    is_odd = answer.status == "ok" and tool.result is not None and bool(find_faults(tool.result, answer.result))
    return answer, entry["tries"] > 1 if answer.status == "error" else is_odd and entry["tries"] < ODD_TRIES


def wait(seconds: float) -> Work:
    """Return the work of waiting, at most `LONGEST_WAIT_S` seconds."""
    return Work(function=time.sleep, args=(min(seconds, LONGEST_WAIT_S),), timeout_s=2 * LONGEST_WAIT_S)


def resolve_doubt(
    state: AgentState, scope: NodeScope, *, toolkit: Toolkit, marks: Marks
) -> Generator[list[Work], list[Reply], dict[str, Any]]:
    """Resolve a call of which it is not known whether it took effect.

    With an idempotency key it is made again with the same key; else a person says what became of it: `approve`: it did
    not happen, make it now; `respond`: it happened, and this is its result; `reject`: leave it.
    """
    entry = last_entry(state)
    assert entry is not None
    again: ExecutedCall = {**entry, "status": "started", "token": uuid4().hex, "tries": entry["tries"] + 1}
    tool = toolkit[entry["call"]["name"]]
    if tool.idempotency and entry["tries"] < MOST_TRIES:
        yield [wait(BACKOFF_S * 2 ** (entry["tries"] - 1))]
        marks.add(again["token"])
        return {"journal": [again]}
    (decision,) = ask_person([entry["call"]], [IN_DOUBT.format(tool=tool.name)], toolkit, allowed=DOUBT_DECISIONS)
    if decision["type"] == "approve":
        marks.add(again["token"])
        return {"journal": [again]}
    if decision["type"] == "respond":
        result = read_words(decision["message"])
        return {"journal": [{**entry, "status": "ok", "result": result, "by": "person", "ended_at": time.time()}]}
    return {"journal": [{**entry, "status": "in_doubt", "ended_at": time.time()}]}
