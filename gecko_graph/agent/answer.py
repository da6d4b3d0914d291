"""answer, close: report the calls that were made, not made, or in doubt; complete the turn's record."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from langchain_core.messages import AIMessage

from ..models.ask import AnyAsk, FunctionCall, PlannerAsk, QuestionId, Reply
from ..models.conversation import build_call_messages, build_conversation, merge_neighbours
from ..models.formatting import cut, text_of
from ..models.memory import NAME, recall_calls, remember_calls
from ..models.node import NodeScope
from ..models.prompts import Prompts
from ..nodes.planner import CONVERSATION_VIEWS, render_prompt
from ..real.claims import (
    LONGEST_RESULT,
    MADE,
    Steps,
    as_step,
    describe_value,
    find_claims,
    format_call,
    tell_calls,
)
from ..real.home import Home
from ..state import VERSION, Call, Json, JsonObject
from ..tools import Toolkit
from ..undo import UndoFinder
from ..values.notes import notes_of, tell
from ..world.booking import in_reality
from ..world.records import ExecutedCall, Execution, ExecutionWord
from ..world.turn import task_of
from .channels import AgentState, calls_left
from .undo import find_way_back, list_writes


def answer(
    state: AgentState, scope: NodeScope, *, prompts: Prompts, finder: UndoFinder, home: Home
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Give the planner's own answer with real values, or one that is written from the real results.

    Calls that were not made or are in doubt are added by rule, so that no model can omit them.
    """
    execution = execution_of(state, finder.toolkit)
    if scope.context.undo_s and not state.get("undoes") and (writes := list_writes(state)):
        work = FunctionCall(function=find_way_back, args=(finder, writes, state["task_state"], scope.context.undo_s))
        (reply,) = yield [work]
        execution["undo"] = reply.value.ways if reply.value else []
    facts = report(execution, state)
    text = own_answer(state, execution)
    if text is None:
        (reply,) = yield [ask_answer(state, scope, prompts, facts)]
        text = text_of(reply.value).strip() if isinstance(reply.value, AIMessage) else ""
    lines = [*([text] if text else tell_calls(made_of(execution["calls"]))), *facts]
    if text and state["rehearsal"]["verdict"]["status"] == "failed" and not execution["calls"]:
        lines = [*facts, f"This answer was not accepted: {text}"]  # it may claim what was only simulated
    record: JsonObject = {"v": VERSION, "verdict": execution["status"], "made_up": 0}
    record |= {"answers": state["turn_id"], "agent": home.mark}
    before = [as_step(entry) for entry in state["unreported"]]
    record |= remember_calls([*before, *state["steps"]], budget=scope.context.view_chars)
    record["claims"] = claimed_keys(state)
    record["notes"] = notes_of(state["rehearsal"]["verdict"], "may_refuse")
    message = AIMessage("\n".join(lines), name=NAME, response_metadata={NAME: record})
    return {"execution": execution, "messages": [message], "next_rehearsal_reason": ""}


def own_answer(state: AgentState, execution: Execution) -> str | None:
    """Return the planner's own answer with real values if all its calls were made as rehearsed, else None.

    "" if none of the planned calls was made: then no part of the answer is true.
    """
    rehearsal, preview, calls = state["rehearsal"], state.get("preview"), execution["calls"]
    planned = {each["call"]["id"]: each for each in preview["calls"]} if preview else {}
    given_up = any(entry["status"] in ("in_doubt", "answered") for entry in calls)
    given_up = given_up or any(entry["status"] == "refused" and entry["call"]["id"] in planned for entry in calls)
    given_up = given_up or rehearsal["verdict"]["status"] == "failed"
    is_edited = any(each["call"] not in rehearsal["plan"] for each in planned.values())
    results: list[tuple[Json, Json]] = []
    for entry in (each for each in calls if each["call"]["id"] in planned):
        given_up = given_up or entry["status"] != "ok" or bool(entry.get("drift")) or "departure" in entry
        results.append((planned[entry["call"]["id"]]["predicted"]["result"], entry.get("result")))
    made = {step["call"]["id"] for step in state["steps"]}
    given_up = given_up or any(call["id"] not in made for call in rehearsal["plan"])  # it describes simulations
    if not calls and execution["left"]:
        return ""
    if calls and (is_edited or given_up or not rehearsal["answer"]):
        return None
    return in_reality(rehearsal["answer"], results)


def made_of(calls: Sequence[ExecutedCall]) -> list[ExecutedCall]:
    return [entry for entry in calls if entry["status"] in MADE]


def claimed_keys(state: AgentState) -> list[str]:
    return [entry["key"] for entry in (*state["unreported"], *state["journal"]) if entry["key"]]


def close(state: AgentState, scope: NodeScope, *, home: Home) -> Steps:
    """Record that the turn's calls were reported; a node of its own, after the checkpoint with the answer."""
    claims = yield from find_claims(state["messages"], home)
    if claims:
        yield from claims.close(claimed_keys(state))
    return {"unreported": []}


def ask_answer(state: AgentState, scope: NodeScope, prompts: Prompts, facts: Sequence[str]) -> PlannerAsk:
    """Return the prompt for the answer: the conversation, the real calls with results, the calls not made."""
    budget, task = scope.context.view_chars, task_of(state["messages"])
    instructions, outcome = render_prompt(prompts, outcome="\n".join(facts) or "All is done.")
    conversation = recall_calls(state["messages"])
    seen = build_conversation(instructions, conversation, budget=CONVERSATION_VIEWS * budget)
    made = build_call_messages(state["steps"], task=task, budget=budget)
    messages = merge_neighbours([*seen, *made, *outcome])
    return PlannerAsk(messages=messages, tools=[], where=QuestionId(turn=state["turn"] - 1, attempt=0))


def execution_of(state: AgentState, toolkit: Toolkit) -> Execution:
    calls, preview = list(state.get("journal") or []), state.get("preview")
    left: list[Call] = [each["call"] for each in calls_left(state)]
    if preview is None:  # the plan was not to be carried out
        made = {step["call"]["id"] for step in state["steps"]}
        plan = state["rehearsal"]["plan"]
        left = [call for call in plan if call["id"] not in made and not toolkit.is_read(call["name"])]
    planned = {each["call"]["id"] for each in preview["calls"]} if preview else set[str]()
    known = [each for each in calls if each["status"] != "refused" or each["call"]["id"] in planned]  # of the last plan
    return {
        "v": VERSION,
        "turn": state["turn"],
        "status": word_of(known, left, accepted=state["rehearsal"]["verdict"]["status"] == "accepted"),
        "digest": preview["digest"] if preview and state.get("approval") else "",
        "calls": calls,
        "left": left,
        "rehearsals": sum(state["rehearsals"].values()),
        "fidelity": state.get("fidelity") or {},
    }


def word_of(calls: Sequence[ExecutedCall], left: Sequence[Call], *, accepted: bool) -> ExecutionWord:
    if any(entry["status"] == "in_doubt" for entry in calls):
        return "in_doubt"
    if not any(entry["status"] in MADE for entry in calls):
        return "done" if accepted and not left and not calls else "nothing"
    refused = any(entry["status"] == "refused" for entry in calls)
    return "done" if accepted and not left and not refused else "partial"


def report(execution: Execution, state: AgentState) -> list[str]:
    """Return a line for each call that was not made or is in doubt, unless an equal call was made later."""
    done = [entry["call"] for entry in made_of(execution["calls"])]
    made = [(call["name"], call["args"]) for call in done]
    before = tell_calls(made_of(state["unreported"]))
    lines = ["Before, in a turn that was not finished:", *before] if before else []
    for entry in [*state["unreported"], *execution["calls"]]:
        if entry["status"] in ("error", "refused") and (entry["call"]["name"], entry["call"]["args"]) in made:
            continue
        lines += tell_calls([entry]) if entry["status"] == "in_doubt" else []
        named = format_call(entry["call"])
        lines += [
            f"Undocumented answer: {named}: {describe_value(tell(each))}" for each in notes_of(entry, "undocumented")
        ]
        if entry["status"] not in (*MADE, "in_doubt"):
            is_told = "departure" in entry and entry["departure"]["code"] != "error"
            why = entry["departure"]["message"] if is_told else entry.get("result", "")
            lines.append(f"Not done: {named}: {describe_value(why)}")
    lines += [f"Not done: {format_call(call)}" for call in execution["left"]]
    verdict = state["rehearsal"]["verdict"]
    if verdict["status"] == "failed":
        lesson = None if execution["calls"] else state.get("lesson")
        why = "\n".join([verdict["feedback"], *([lesson["feedback"]] if lesson else [])])
        lines.append(f"{'Not finished' if done else 'Nothing was done'}: {cut(why, budget=2 * LONGEST_RESULT)}")
    return [*dict.fromkeys(lines)]
