"""open_turn, recover, rehearse: start or continue a turn from all real calls so far, and rehearse the task."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Overwrite

from ..context import GeckoContext, context_of
from ..errors import GeckoError
from ..models.answer import AT_ONCE, AWAITED, Driver, aperform, finish, perform
from ..models.ask import FunctionCall
from ..models.memory import NAME, is_answered, last_checklist, remember_calls, told_claims
from ..models.node import NodeScope, close_record, open_record
from ..real.claims import Steps, as_step, entry_of, find_claims, tell_calls
from ..real.decisions import NO_SAVER
from ..real.home import Home, TurnKey, last_human
from ..real.learned import share
from ..real.policy import ReviewPolicy
from ..real.preview import add_undo
from ..state import VERSION, JsonObject, Rehearsal, Step
from ..tools import Toolkit
from ..tools.own_data import starting_state
from ..tools.real import drive
from ..undo import UndoFinder
from ..values.difference import json_equal
from ..values.digest import digest
from ..values.notes import notes_of
from ..values.observation import Observer
from ..values.patch import apply_fitting
from ..world.booking import observe_call
from ..world.channels import Continued, GeckoInput, Ledger
from ..world.records import ExecutedCall, Preview
from ..world.rung import is_real
from ..world.turn import asks_undo, human_turns
from .channels import (
    AgentChannels,
    AgentRecord,
    AgentState,
    booked_keys,
    is_edited,
    last_entry,
    still_supposed,
)
from .undo import find_undoable, rehearse_undo

REMEMBERED_CHARS = 8_000
"""Most characters of an interrupted turn's calls that the planner sees."""

MakePreview = Callable[[Rehearsal, JsonObject, list[Step], list[AnyMessage]], Preview | None]
"""Maps the rehearsal, its start state, the real steps and the conversation to the preview of the remaining calls."""


def open_turn(state: AgentState, scope: NodeScope, *, home: Home, toolkit: Toolkit) -> dict[str, Any]:
    """Open the turn, or continue it if its message was sent again.

    A state given again as at the turn's start has none of its real calls, which are then applied again.
    """
    messages, mark = state.get("messages", []), home.mark
    turn_id = TurnKey.of(messages).id
    is_same = bool(turn_id) and state.get("turn_id") == turn_id and state.get("agent") == mark
    is_anew = (
        state.get("turn_start_state") is not None
        and is_edited(state)
        and (is_same or json_equal(state["task_state"], state["turn_start_state"]))
    )
    known = booked_keys(state)
    journal = [entry for entry in state.get("journal") or () if not entry["key"] or entry["key"] in known]
    if is_same and not is_anew:
        update: dict[str, Any] = {"next_rehearsal_reason": "resumed", "journal": Overwrite(journal)}
    else:
        update = begin(state, None if is_anew else journal)
        if state.get("turn_start_state") is None:  # the thread's first turn
            update["turn_start_state"] = starting_state(toolkit, update["turn_start_state"])
    update |= {"lesson": None, "preview": None, "approval": None}
    own = {"turn_id": turn_id, "agent": mark, "is_over": is_answered(messages, turn_id, mark)}
    return {**update, **own, "turn": human_turns(messages), "found": []}


def begin(state: AgentState, journal: list[ExecutedCall] | None) -> dict[str, Any]:
    """Return the first update of a new turn; earlier calls without an answer remain to be reported."""
    turn = human_turns(state.get("messages", []))
    unreported: list[ExecutedCall] = []
    if journal is not None:
        is_answered = (state.get("execution") or {"turn": 0})["turn"] == state.get("turn")
        made = [entry for entry in journal if entry["tries"] and not is_answered]
        unreported = [*(state.get("unreported") or ()), *made]
    undoable = find_undoable(state) if journal is not None else None
    return {
        "unreported": unreported,
        **({"undoable": undoable} if undoable is not None else {}),
        "undoes": asks_undo(state.get("messages", [])),
        "turn_start_state": state.get("task_state") or {},
        "supposed": still_supposed(state),
        "rehearsals": {},
        "risks": {},
        "next_rehearsal_reason": "task",
        "journal": Overwrite([]),
        "steps": [],
        "ledger": {"turn": turn, "started_at": time.time(), "usage": {}, "asked": {}},
    }


def recover(state: AgentState, scope: NodeScope, *, toolkit: Toolkit) -> dict[str, Any]:
    """Add the next found real call to the journal, for `sync` to apply.

    A call of this turn becomes one of its steps; one of an earlier turn becomes part of the start state.
    """
    found, journal, entry = state["found"], [*state["journal"]], last_entry(state)
    update: dict[str, Any] = {"unreported": state["unreported"]}
    if entry is not None and entry["key"] == found[0]["key"]:
        done, found = found[0], found[1:]
        if done["turn"] != state["turn_id"]:
            journal.pop()
            update = {
                "unreported": [*state["unreported"], entry],
                "turn_start_state": state["task_state"],
                "supposed": still_supposed(state),
                "steps": [],
            }
        else:
            left, reason = [as_step(entry)] if entry["status"] == "in_doubt" else [], state["next_rehearsal_reason"]
            update["next_rehearsal_reason"] = "resumed" if reason == "task" else reason
            update["steps"] = [*state["steps"], *left]
    while found and found[0]["call"]["name"] not in toolkit:
        update["unreported"] = [*update["unreported"], entry_of(found[0])]
        found = found[1:]
    if found:
        entry = entry_of(found[0])
        if entry["call"]["id"] in {each["call"]["id"] for each in journal}:
            entry["call"] = {**entry["call"], "id": f"{entry['call']['id']}-{entry['key'][:8]}"}
        journal.append(entry)
    return {**update, "found": found, "journal": Overwrite(journal)}


def rehearse_node(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    preview: MakePreview,
    look: Runnable[Any, Any],
    observe: Callable[[AgentState, Rehearsal], Iterable[FunctionCall]],
    finder: UndoFinder,
    default: GeckoContext,
) -> Runnable[Any, Any]:
    """Return the node that runs the rehearsal `graph`, sync and async.

    It is not the graph itself, because the predicted end state must not become the agent's task state. First it looks
    (`look`) for missing calls in the ledger: with LangGraph's own durability a process may have ended several calls
    after the checkpoint, and no plan may be made without them. `observe` records its real reads. A turn that asks for
    an undo uses the result of `finder` instead of a rehearsal.
    """

    async def rehearse(inner: Any, given: AgentChannels, config: RunnableConfig, driver: Driver) -> dict[str, Any]:
        if found := await driver.do(look.invoke, look.ainvoke, given, config):
            return found  # type: ignore[no-any-return]
        state = cast("AgentState", open_record(given))
        state = {**state, **opening(state)}
        limit_s = context_of(get_runtime().context, default).undo_s
        if asks_undo(state["messages"]):
            out = await drive(rehearse_undo(finder, state, limit_s), driver)
        else:
            out = await driver.do(inner.invoke, inner.ainvoke, input_of(state), config)
        for work in observe(state, out["rehearsal"]):
            await driver.do(perform, aperform, work)
        update = update_of(state, out, preview)
        if update["preview"]:
            now = update.get("task_state", state["task_state"])
            update["preview"] = await drive(add_undo(update["preview"], now, finder, limit_s), driver)
        return close_record(update, AgentRecord.__annotations__)

    def run(state: AgentChannels, config: RunnableConfig) -> dict[str, Any]:
        # LangGraph draws and streams a graph that a node's own function refers to
        return finish(rehearse(graph, state, config, AT_ONCE))  # type: ignore[no-any-return]

    async def arun(state: AgentChannels, config: RunnableConfig) -> dict[str, Any]:
        return await rehearse(graph, state, config, AWAITED)

    return RunnableLambda(run, afunc=arun, name="rehearse")


def observe_reads(
    state: AgentState, rehearsal: Rehearsal, *, toolkit: Toolkit, observer: Observer | None
) -> Iterator[FunctionCall]:
    """Yield the work of writing a row for each real read of a rehearsal's attempts."""
    known = {step["call"]["id"] for step in state["steps"]}
    start: Any = {"start": state["turn_start_state"], "supposed": state.get("supposed") or []}
    for attempt in rehearsal["attempts"]:
        done = [*state["steps"]]
        for step in attempt["steps"]:
            if observer and is_real(step) and step["call"]["id"] not in known:
                yield observe_call(observer, toolkit, step, [*done], **start)
                done.append(step)


def find_missing(state: AgentState, scope: NodeScope, *, toolkit: Toolkit, policy: ReviewPolicy, home: Home) -> Steps:
    """Return the real calls of turns without an answer that the state lacks; {} if there are none.

    If no call can be claimed and nobody is asked, any saver is sufficient; a question without a saver raises
    GeckoError.
    """
    yield from share(toolkit)
    needed = policy.may_ask or not all(tool.trusted for tool in toolkit)
    claims = (yield from find_claims(state["messages"], home)) if needed else None
    if claims is None and policy.may_ask:
        raise GeckoError(NO_SAVER)
    rows: list[JsonObject] = (yield from claims.find_open()) if claims else []
    messages = told_claims(state["messages"])
    if claims and (late := [row["key"] for row in rows if row["key"] in messages]):
        yield from claims.close(late)  # the process ended after the answer
    known = booked_keys(state) | messages
    found = [row for row in rows if row["key"] not in known]
    found = (yield from claims.keep_living(found)) if claims else []
    return {"found": sorted(found, key=lambda row: row["turn"] == state["turn_id"])} if found else {}


def opening(state: AgentState) -> AgentState:
    """Return the start state of a rehearsal: the current task state if it was edited from outside."""
    if state["next_rehearsal_reason"] != "stale":
        return {}
    nothing: Any = {"patch": [], "observed": []}
    steps: list[Step] = [{**step, "outcome": {**step["outcome"], **nothing}} for step in state["steps"]]
    return {"turn_start_state": state["task_state"], "supposed": still_supposed(state), "steps": steps}


def input_of(state: AgentState) -> GeckoInput:
    """Return the rehearsal's input: the conversation, the turn's start state, and the calls since."""
    messages = tell_before(state["messages"], state["unreported"])
    given: GeckoInput = {"messages": messages}
    if state["turn_start_state"] or state.get("task_state") is not None:
        given["task_state"] = state["turn_start_state"]
    last = state.get("rehearsal") if state["rehearsals"] else None
    items = state.get("checklist")  # given with the message, even when it is sent again
    if items is None and last:
        items = last["checklist"]
    if items or (items is not None and not last):
        given["checklist"] = items
    mark = state.get("real_digest")
    is_real = state["next_rehearsal_reason"] not in ("task", "stale") or bool(state["unreported"])
    is_real = is_real or bool(mark and mark == digest(state["turn_start_state"]))
    if last or is_real or state.get("supposed"):
        going_on: Continued = {
            "steps": state["steps"],
            "lesson": state["lesson"],
            "attempts": max(attempt["number"] for attempt in last["attempts"]) if last else 0,
        }
        if last:
            going_on["search_words"] = last.get("search_words", [])
        given["continued"] = {**going_on, "real": is_real, "supposed": state.get("supposed") or []}
    return given


def tell_before(messages: Sequence[AnyMessage], calls: Sequence[ExecutedCall]) -> list[AnyMessage]:
    """Return the conversation with the real calls of turns without an answer, before the last human message."""
    if not calls:
        return [*messages]
    place = messages.index(last_human(messages))
    record = {"v": VERSION, "verdict": "partial", "made_up": 0, "checklist": last_checklist(messages)}
    record |= remember_calls([as_step(entry) for entry in calls], budget=REMEMBERED_CHARS)
    record.pop("whole", None)
    first = "(This turn was interrupted. Its real calls stay made.)"
    text = "\n".join([first, *tell_calls(calls)])
    return [*messages[:place], AIMessage(text, name=NAME, response_metadata={NAME: record}), *messages[place:]]


def book_reads(rehearsal: Rehearsal, state: JsonObject, done: Sequence[Step]) -> tuple[JsonObject, list[Step]]:
    """Return state and steps with the chosen attempt's real reads, except reads that may lack the attempt's changes."""
    attempt = next(each for each in rehearsal["attempts"] if each["number"] == rehearsal["chosen"])
    steps, known = [*done], {step["call"]["id"] for step in done}
    for step in attempt["steps"]:
        outcome = step.get("outcome")
        if outcome is None or outcome["simulated"] or notes_of(outcome, "stale") or step["call"]["id"] in known:
            continue
        observed = outcome.get("observed", [])
        after = apply_fitting(state, observed)
        steps.append(step if not observed or after is not state else {**step, "outcome": {**outcome, "observed": []}})
        state = after
    return state, steps


def update_of(state: AgentState, out: dict[str, Any], preview: MakePreview) -> dict[str, Any]:
    """Return the agent's update after a rehearsal; a model's suppositions become part of the state."""
    rehearsal: Rehearsal = out["rehearsal"]
    start, steps, why = state["turn_start_state"], state["steps"], state["next_rehearsal_reason"]
    now, update = state["task_state"] if steps else start, dict[str, Any]()
    supposed = rehearsal.get("supposed_state") if why in ("task", "resumed") else None
    if supposed:
        start, now = {**start, **supposed["state"]}, {**now, **supposed["state"]}
    if supposed or why == "task":
        update = {"supposed": supposed["paths"] if supposed else [], "task_state": now}
    now, steps = book_reads(rehearsal, now, steps)
    update |= {"task_state": now} if len(steps) > len(state["steps"]) else {}
    verdict = rehearsal["verdict"]["status"]
    ledger: Ledger = {"turn": state["turn"], "usage": rehearsal["usage"], "asked": {}}
    return {
        **update,
        "checklist": None,
        "turn_start_state": start,
        "steps": steps,
        "rehearsal": rehearsal,
        "rehearsals": {**state["rehearsals"], why: state["rehearsals"].get(why, 0) + 1},
        "next_rehearsal_reason": "",
        "lesson": None if verdict == "accepted" else state["lesson"],
        "preview": preview(rehearsal, now, steps, state["messages"]) if verdict != "failed" else None,
        "approval": None,
        "ledger": {**ledger, "started_at": time.time()},
        **({"undoable": out["undoable"]} if "undoable" in out else {}),
    }
