"""planner: makes the next calls, or answers (paper, section 4 and algorithm 1).

It gets the same messages as with real tools: conversation, tools, its earlier calls and their results; in a retry also
the failed attempt's calls and the judge's feedback.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from ..context import GeckoContext
from ..errors import ModelError
from ..events import event
from ..models.ask import AnyAsk, PlannerAsk, QuestionId, Reply
from ..models.conversation import build_conversation, merge_neighbours, replace_calls
from ..models.focus import focus_words
from ..models.formatting import cut, text_of
from ..models.node import NodeScope
from ..models.prompts import Prompts, fence, variables_of
from ..models.view import view
from ..retrieval.index import split_words
from ..retrieval.search import ToolSearch
from ..state import Call, JsonObject, Stop
from ..tools.descriptions import find_fitting, pick_tools
from ..tools.spec import ToolSpec
from ..values.places import clock
from ..world.channels import AttemptState
from ..world.rung import find_closed, find_masked, format_closed, untrusted_of
from ..world.turn import TakenIds, read_calls, spent_budget, stop

CONVERSATION_VIEWS = 10
"""Longest conversation, in views of the state."""

MOST_REFUSED = 3
"""Number of refusals of the same call in a row that ends the attempt."""

OF_TWO_RUNS = "two runs continued this attempt at once, and its record mixes both: it begins again"
NOW_CHARS = 80
LAST_CALLS = 3
"""Number of latest calls whose tools appear in the gate's note."""


def planner(
    state: AttemptState,
    scope: NodeScope,
    *,
    tools: Sequence[JsonObject],
    resolve: Callable[[str], str],
    prompts: Prompts,
    gated: Sequence[ToolSpec] = (),
    search: ToolSearch | None = None,
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Ask for the next calls, or end the attempt with a reason.

    After the last call that `max_steps` allows, the planner is asked once more, for its answer.

    Args:
        state: The attempt so far.
        scope: Settings, events, models.
        tools: The toolkit as function dicts for the model.
        resolve: Returns the tool's name for a name that was shown to the model.
        prompts: All prompts.
        gated: The tools that some task states refuse whatever the arguments.
        search: Selects some of very many tools, and answers searches for others.

    Raises:
        ModelError: The planner has no model.
    """
    if not scope.has_model("planner"):
        raise ModelError("no model configured for role 'planner': pass model=... or model=Models(planner=...)")
    if (ended := find_end(state, scope.context)) is not None:
        return ended
    trace, steps = state.get("trace", []), state.get("steps", [])
    shown, searches = state.get("offered_tools"), state.get("searches", 0)
    search = None if shown is None else search
    # the trace has one message a step and a search, one with earlier calls, and those of the planner
    step = len(trace) - len(steps) - bool(state.get("replayed")) - searches
    where = QuestionId(turn=state["turn"], attempt=state["number"], question=step)
    given = search.bind(shown or (), searches) if search else tools
    bound, note = bind_tools(state, scope.context, given, resolve, pick_tools(gated, shown))
    noted = {"gate_note": note} if note != state.get("gate_note", "") else {}
    messages = build_messages(state, scope.context, prompts, note if noted else "")
    uncached = state.get("attempts_at_once", 1) > 1
    (reply,) = yield [PlannerAsk(messages=messages, tools=bound, where=where, uncached=uncached)]
    if not isinstance(reply.value, AIMessage):
        return stop("planner_failed", f"the planner did not answer: {reply.failure}")
    message, calls = read_calls(reply.value, taken=TakenIds(state["conversation"], steps))
    if not calls:
        return {"trace": [message], **take_answer(state, text_of(message).strip())}
    named: list[Call] = [{**call, "name": resolve(call["name"])} for call in calls]
    return {**noted, **(yield from take_calls(state, scope, message, named, search))}


def find_end(state: AttemptState, context: GeckoContext) -> dict[str, Any] | None:
    """Return the end of an attempt that has spent its budget or repeats a refused call; else None."""
    if spent := spent_budget(state, context):
        return stop(spent["code"], spent["message"])
    if is_of_two_runs(state.get("trace", [])):
        return stop("broken", OF_TWO_RUNS)
    if len(find_refused_run(state.get("trace", []))) >= MOST_REFUSED:
        return stop("repeated_calls", f"repeated_calls: the same call was refused {MOST_REFUSED} times in a row")
    return None


def is_of_two_runs(trace: Sequence[AnyMessage]) -> bool:
    """Return whether the trace contains results of calls that no message has made.

    This happens if two runs continued the attempt from one checkpoint: the saver kept the message of one and the calls
    of the other. The planner would then repeat those calls, and the plan would pay twice.
    """
    made: set[str | None] = set()
    for message in trace:
        if isinstance(message, AIMessage):
            made.update(call["id"] for call in message.tool_calls)
        elif isinstance(message, ToolMessage) and message.tool_call_id not in made:
            return True
    return False


def take_answer(state: AttemptState, answer: str) -> dict[str, Any]:
    """Return the end of an attempt whose planner has answered; the reason may be that calls were cut off."""
    early: Stop = state.get("stop") or {"code": "answered", "message": "answered"}
    if not answer:
        return stop("empty_reply", "the planner's reply was empty")
    return stop(early["code"], early["message"], answer)


def take_calls(
    state: AttemptState, scope: NodeScope, message: AIMessage, calls: list[Call], search: ToolSearch | None
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Answer the searches among a message's calls, and return as many of the other calls as `max_steps` allows.

    If it does not allow all, the attempt ends early, even with an answer.
    """
    room = scope.context.max_steps - len(state.get("steps", []))
    if room <= 0:
        return stop("max_steps", f"max_steps: {scope.context.max_steps} calls were made")
    shown, searches = state.get("offered_tools") or (), state.get("searches", 0)
    searched = (yield from search.answer(calls, shown, searches, scope.context)) if search else None
    calls, found = searched or (calls, {"trace": []})
    pending, lost = calls[:room], calls[room:]
    why = f"max_steps: {scope.context.max_steps} calls were made, {len(lost)} more of one message were not"
    early = {"stop": stop("max_steps", why)["stop"]} if lost else {}
    for call in pending:
        scope.emit(event("gecko.call", attempt=state["number"], call=call))
    kept = {call["id"] for call in pending} | {each.tool_call_id for each in found["trace"]}
    message = replace_calls(message, [each for each in message.tool_calls if each["id"] in kept])
    return {**found, **early, "trace": [message, *found["trace"]], "pending": pending}


def bind_tools(
    state: AttemptState,
    context: GeckoContext,
    tools: Sequence[JsonObject],
    resolve: Callable[[str], str],
    gated: Sequence[ToolSpec],
) -> tuple[list[JsonObject], str]:
    """Return the tools that the gate admits, and a note on tools that the task state refuses.

    The note contains tools that were called last, and tools that fit the task and appear in its words.
    """
    steps, now = state.get("steps", []), state["task_state"]
    closed = find_closed(gated, now, seed=context.seed, steps=steps, untrusted=untrusted_of(state)) if gated else {}
    if not closed:
        return list(tools), ""
    masked = find_masked(closed, context)
    bound = [tool for tool in tools if resolve(tool["function"]["name"]) not in masked] if masked else list(tools)
    named = {step["call"]["name"] for step in steps[-LAST_CALLS:]}
    fitting, spoken = find_fitting(gated, focus_words(state["task"])), {*split_words(state["task"])}
    named |= {name for name in fitting if is_spoken_of(name, spoken)}
    noted = {name: found for name, found in closed.items() if name in named and name not in masked}
    return bound, format_closed(noted, budget=context.view_chars // 2)


def is_spoken_of(name: str, words: Collection[str]) -> bool:
    """Return whether words contain most of a tool's name, or its last word, the object."""
    own = split_words(name)
    return bool(own) and (own[-1] in words or 2 * sum(each in words for each in own) > len(own))


def build_messages(state: AttemptState, context: GeckoContext, prompts: Prompts, gated: str = "") -> list[BaseMessage]:
    """Build all messages to the planner, constant ones first, since providers cache prefixes.

    Tools that the task state refuses change from step to step, so they are listed at the end, not with the tools.
    """
    lesson, now = state.get("lesson"), clock(state.get("before"))
    taught = {"feedback": lesson["feedback"], "attempt_log": lesson["attempt_log"]} if lesson else {}
    taught |= {"lesson": "yes" if lesson and lesson["number"] else "", "made": "yes" if state.get("replayed") else ""}
    instructions, note = render_prompt(prompts, **taught)
    if now:
        instructions += "\n\nNow:\n" + fence(cut(now, budget=NOW_CHARS), "now")
    budget = CONVERSATION_VIEWS * context.view_chars
    messages = [*build_conversation(instructions, state["conversation"], budget=budget), *note]
    seen = [*merge_neighbours(messages), *collapse_refused(state.get("trace", []))]
    summary = ""
    if context.planner_view == "summary":
        summary = view(state["task_state"], focus=focus_words(state["task"]), budget=context.view_chars)
    if summary or gated:
        seen = merge_neighbours([*seen, *render_prompt(prompts, summary=summary, gated=gated)[1]])
    return seen


def render_prompt(prompts: Prompts, **given: str) -> tuple[str, list[BaseMessage]]:
    """Return the instructions, and a note with the rest if there is any."""
    prompt = prompts.render("planner", {**dict.fromkeys(variables_of("planner"), ""), **given})
    return prompt.system, [HumanMessage(prompt.user)] if prompt.user else []


def collapse_refused(trace: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """Return the trace with a call that is refused several times at its end shown once, with its count."""
    run = find_refused_run(trace)
    if len(run) < 2:
        return trace
    *first, last = trace[run[0] : run[1]]
    content = f"{text_of(last)}\n(The same call was made {len(run)} times in a row, and refused each time.)"
    return [*trace[: run[0]], *first, last.model_copy(update={"content": content})]


def find_refused_run(trace: Sequence[AnyMessage]) -> list[int]:
    """Return the positions of the equal messages at the trace's end whose calls were all refused with the same text."""
    run: list[int] = []
    end, before = len(trace), None
    while end:
        start = end - 1
        while start and type(trace[start]) is ToolMessage:
            start -= 1
        results = trace[start + 1 : end]
        pair = (_calls(trace[start]), [text_of(each) for each in results])
        if not results or any(getattr(each, "status", "") != "error" for each in results) or pair != (before or pair):
            break
        before, end = pair, start
        run.insert(0, start)
    return run


def _calls(message: AnyMessage) -> list[tuple[str, JsonObject]]:
    return [(call["name"], call["args"]) for call in getattr(message, "tool_calls", ())]
