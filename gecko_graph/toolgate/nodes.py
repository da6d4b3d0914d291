"""The nodes of forward execution in the order of ToolGate's algorithm 1: reasoner, reranker, arguments, verify, accept.

Between verify and accept, `state_updater` commits the call, checked by Q and the invariants. `conclude` ends the turn.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, ToolCall

from ..context import GeckoContext
from ..contracts.run import Admissibility
from ..errors import StateError
from ..events import event
from ..models.ask import AnyAsk, Ask, PlannerAsk, QuestionId, Reply
from ..models.conversation import (
    build_call_messages,
    build_conversation,
    build_step_message,
    has_open_calls,
    merge_neighbours,
    replace_calls,
)
from ..models.focus import focus_words
from ..models.formatting import (
    format_conversation,
    format_policy,
    format_steps,
    format_tool_lines,
    text_of,
)
from ..models.memory import NAME, answer_message
from ..models.node import NodeScope
from ..models.prompts import Prompts
from ..models.roles import Ranking, Reasoning
from ..models.view import view
from ..nodes.planner import render_prompt
from ..nodes.threads import OTHER_RUN, look_for_other_runs
from ..retrieval.index import document_of, split_words, texts_of
from ..retrieval.search import ToolSearch, teach
from ..state import Call, Category, JsonObject, Role, Taught, Verdict
from ..tools import Toolkit
from ..tools.spec import ToolSpec, valid_name
from ..values.digest import digest
from ..values.notes import notes_of
from ..values.origins import find_untrusted, trusted_part
from ..world.provenance import is_planned
from ..world.rung import find_closed, format_closed, untrusted_of
from ..world.turn import (
    TakenIds,
    assign_id,
    check_start,
    earlier,
    read_calls,
    spent_budget,
    states_of,
    stop,
)
from .channels import Candidate, ForwardState, GateRejection, ToolGateState, build_record
from .gates import (
    CLEARED,
    OUT,
    check,
    close_need,
    complain,
    find_out,
    format_undone,
    give_up,
    is_refused_again,
    read_rejection,
)

MOST_TRIES = 3
"""The most refused calls of one candidate for one need."""
CONVERSATION_VIEWS = 4
ADMITTED = Admissibility("yes")

Steps: TypeAlias = Generator[list[AnyAsk], list[Reply], dict[str, Any]]


def reasoner(state: ForwardState, scope: NodeScope, *, toolkit: Toolkit, gated: Sequence[ToolSpec]) -> Steps:
    """Ask for the next need, or end with the answer or a reason (ToolGate, section 3.3).

    The model sees the request, the conversation, the trusted state and the committed calls with their results, but no
    rejected calls. It sees the tools only if there are at most `max_tools`. After the last call that `max_steps`
    allows, it is asked once more for its answer.

    Args:
        state: The state of the run.
        scope: The node's scope.
        toolkit: The tools.
        gated: The tools that a task state may not admit, whatever their arguments.
    """
    if spent := spent_budget(state, scope.context):
        return stop(spent["code"], spent["message"])
    budget, now, steps = scope.context.view_chars, state["task_state"], state.get("steps", [])
    untrusted = untrusted_of(state)
    closed = find_closed(gated, now, seed=scope.context.seed, steps=steps, untrusted=untrusted)
    known, committed = trusted_part(now, untrusted()), [step for step in steps if is_planned(step)]
    lines = [(tool.name, tool.about) for tool in toolkit] if len(toolkit) <= scope.context.max_tools else []
    variables = {
        "task": state["task"],
        "policy": format_policy(state["conversation"], budget=budget),
        "conversation": format_conversation(earlier(state["conversation"]), budget=budget // 2),
        "tools": format_tool_lines(lines, budget=budget // 2) if lines else "",
        "state": view(known, focus=focus_words(state["task"]), budget=budget) if known else "",
        "gated": format_closed(closed, budget=budget // 4),
        "results": format_steps(committed, budget=budget) if committed else "",
        "undone": format_undone(state.get("needs", []), budget=budget // 2),
    }
    (reply,) = yield [Ask("reasoner", variables, Reasoning, where_of(state, "reasoner"))]
    if not isinstance(reply.value, Reasoning):
        return stop("reasoner_failed", f"the reasoner did not answer: {reply.failure}")
    if not (need := reply.value.need.strip()):
        return {"need": "", **stop("answered", "answered", reply.value.answer.strip())}
    if len(steps) >= scope.context.max_steps:
        return stop("max_steps", f"max_steps: {scope.context.max_steps} calls were tried")
    return {"need": need}


def where_of(state: ForwardState, role: Role) -> QuestionId:
    return QuestionId(turn=state["turn"], attempt=state["number"], question=state.get("asked", {}).get(role, 0))


def reranker(
    state: ForwardState,
    scope: NodeScope,
    *,
    toolkit: Toolkit,
    gated: Sequence[ToolSpec],
    search: ToolSearch,
    strict: bool = False,
) -> Steps:
    """Rank the tools for the need and leave out those that the state does not admit (ToolGate, equations 7 to 10).

    Without a model, or if no tool is admitted, the order is that of retrieval. `gated` is as for `reasoner`, `strict`
    as for `create_toolgate`; `search` finds the tools if there are many.
    """
    need, context, steps = state["need"], scope.context, state.get("steps", [])
    closed = find_closed(gated, state["task_state"], seed=context.seed, steps=steps, untrusted=untrusted_of(state))
    out = dict.fromkeys(find_out(steps), Admissibility("no", OUT)) if strict else {}
    closed = {**closed, **out}
    taught = teach(state.get("taught", []), served(state))
    found = yield from retrieve(need, toolkit, closed, search, context, taught)
    if len(found) > 1 and found.keys() - closed.keys() and scope.has_model("reranker"):
        lines = format_tool_lines(((name, describe(toolkit[name])) for name in found), budget=2 * context.view_chars)
        where, known = where_of(state, "reranker"), {"need": need, "tools": lines}
        (reply,) = yield [Ask("reranker", known, Ranking, where, ids=tuple(found), band=context.band)]
        found = read_ranking(reply.value, found) if isinstance(reply.value, Ranking) else found
    ranked = weigh(found, closed)
    if context.selection == "sample":
        ranked = draw(ranked, random.Random(f"{context.seed} {state['turn']} {len(steps)} {need}"))
    rejections = [reject(each, closed, out) for each in ranked if each["admissible"] != "yes"]
    left = [each["tool"] for each in ranked if each["admissible"] == "yes"]
    scope.emit(event("gecko.need", attempt=state["number"], need=need, candidates=ranked, rejections=rejections))
    update: Any = {"ranked": ranked, "candidates": left, "rejections": rejections, "tries": 0}
    return update if left else {**update, **give_up({**state, **update})}


def reject(one: Candidate, closed: Mapping[str, Admissibility], out: Collection[str]) -> GateRejection:
    """Return why a tool is not a candidate: P does not hold in this state, or Q has refused one of its results."""
    tool, reason = one["tool"], one.get("reason", "")
    if tool in out:
        return {"tool": tool, "phase": "Q", "reason": reason}
    category: Category = "policy" if closed[tool].kind == "policy" else "state_dependency"
    return {"tool": tool, "phase": "P", "reason": reason, "category": category}


def served(state: ForwardState) -> list[tuple[str, str]]:
    """Return the met needs of the run, each with the tool of its call."""
    tools = {step["call"]["id"]: step["call"]["name"] for step in state.get("steps", [])}
    return [(each["need"], tools[each["call"]]) for each in state.get("needs", []) if "call" in each]


def retrieve(
    need: str,
    toolkit: Toolkit,
    closed: Collection[str],
    search: ToolSearch,
    context: GeckoContext,
    taught: Sequence[Taught] = (),
) -> Generator[list[AnyAsk], list[Reply], dict[str, float]]:
    """Return the tools that may serve a need, best first, with scores (equation 7); of a small toolkit all tools.

    Of a large one the tools that fit, closed ones included, and as many that the state admits: the closed ones show why
    a need cannot be met.
    """
    if not search.is_needed(context):
        words = set(split_words(need))
        shared = {tool.name: len(words.intersection(document_of(*texts_of(tool)))) for tool in toolkit}
        return {name: 1.0 + score for name, score in sorted(shared.items(), key=lambda pair: -pair[1])}
    names = yield from search.find(need, context.top_k, context, taught=taught)
    if closed:
        admitted = [name for name in toolkit.names if name not in closed]
        names += yield from search.find(need, context.top_k, context, allowed=admitted, taught=taught)
    return {name: 1 / place for place, name in enumerate(dict.fromkeys(names), 1)}


def describe(tool: ToolSpec) -> str:
    takes = ", ".join(tool.parameters.get("properties", {}))
    return f"{tool.about} Takes {takes}." if takes else tool.about


def read_ranking(ranking: Ranking, found: Mapping[str, float]) -> dict[str, float]:
    """Return the scores of a model's ranking, best first, without unknown tools and scores of 0."""
    scores = {each.name: each.score for each in reversed(ranking.tools) if each.name in found and each.score > 0}
    return dict(sorted(reversed(scores.items()), key=lambda pair: -pair[1]))


def weigh(scores: Mapping[str, float], closed: Mapping[str, Admissibility]) -> list[Candidate]:
    """Return the candidates with their probabilities (equation 9); 0 for tools that the state does not admit."""
    total = sum(score for name, score in scores.items() if name not in closed)
    ranked: list[Candidate] = []
    for name, score in scores.items():
        word, reason, *_ = closed.get(name, ADMITTED)
        p = score / total if word == "yes" else 0.0
        ranked.append({"tool": name, "p": p, "admissible": word, **({"reason": reason} if reason else {})})  # type: ignore[typeddict-item]
    return ranked


def draw(ranked: Sequence[Candidate], dice: random.Random) -> list[Candidate]:
    """Return the candidates in the order of draws without replacement, by their probabilities (equation 9)."""
    left, drawn = [each for each in ranked if each["p"] > 0], list[Candidate]()
    while left:
        (chosen,) = dice.choices(range(len(left)), [each["p"] for each in left])
        drawn.append(left.pop(chosen))
    return [*drawn, *(each for each in ranked if each["p"] == 0)]


def arguments(
    state: ForwardState,
    scope: NodeScope,
    *,
    toolkit: Toolkit,
    tools: list[JsonObject],
    prompts: Prompts,
    strict: bool = False,
) -> Steps:
    """Ask the planner's model for the call of the first candidate.

    A step is added if the model declines, or (unless `strict`, which excludes the tool) if Q has refused this call's
    result in this state. `tools` are the function dicts of the toolkit; the model sees the candidate's.
    """
    context, steps, name = scope.context, state.get("steps", []), state["candidates"][0]
    ended: dict[str, Any] = {"needs": [close_need(state)]}
    if spent := spent_budget(state, context):
        return ended | stop(spent["code"], spent["message"])
    if len(steps) >= context.max_steps:
        return ended | stop("max_steps", f"max_steps: {context.max_steps} calls were tried")
    bound = [tool for tool in tools if toolkit.resolve(tool["function"]["name"]) == name]
    messages = build_messages(state, scope, prompts)
    (reply,) = yield [PlannerAsk(messages=messages, tools=bound, where=where_of(state, "planner"))]
    taken = TakenIds(state["conversation"], steps)
    if not isinstance(reply.value, AIMessage):
        return ended | stop("planner_failed", f"the planner did not answer: {reply.failure}")
    message, calls = read_calls(reply.value, taken=taken)
    fitting = [call for call in calls if toolkit.resolve(call["name"]) == name]
    if not fitting:
        made: Call = {"id": assign_id(None, taken), "name": name, "args": {}}
        step = complain(made, text_of(message).strip() or "no call was made")
        return {"pending": [], "steps": [step], "tries": MOST_TRIES}
    call: Call = {**fitting[0], "name": name}
    if not strict and is_refused_again(call, steps):
        return {"pending": [], "steps": [complain(call)]}
    scope.emit(event("gecko.call", attempt=state["number"], call=call))
    sent = [each for each in message.tool_calls if each["id"] == call["id"]]
    return {"pending": [call], "trace": [replace_calls(message, sent)]}


def build_messages(state: ForwardState, scope: NodeScope, prompts: Prompts) -> list[BaseMessage]:
    """Return the model's messages: the conversation, the committed calls, the need, and the refused calls so far."""
    budget, steps = scope.context.view_chars, state.get("steps", [])
    instructions, need = render_prompt(prompts, need=state["need"])
    seen = build_conversation(instructions, state["conversation"], budget=CONVERSATION_VIEWS * budget)
    done = build_call_messages([step for step in steps if is_planned(step)], task=state["task"], budget=budget)
    messages = merge_neighbours([*seen, *done, *need])
    for step in steps[len(steps) - state["tries"] :]:
        call = step["call"]
        made = ToolCall(name=valid_name(call["name"]), args=call["args"], id=call["id"])
        messages.append(AIMessage("", tool_calls=[made]))
        messages.append(build_step_message(step, task=state["task"], budget=budget))
    return messages


def verify(state: ForwardState, scope: NodeScope, *, toolkit: Toolkit) -> dict[str, Any]:
    """Refuse malformed results and drop the changes of errors, so that only accepted results are committed.

    ToolGate, equations 11 and 12.
    """
    return {"proposals": [{**each, "outcome": check(each, state, toolkit)} for each in state["proposals"]]}


def accept(state: ForwardState, scope: NodeScope, *, toolkit: Toolkit, strict: bool = False) -> dict[str, Any]:
    """Close the need if the last call has met it; else try other arguments, or the next candidate.

    A refused result excludes its tool at once, refused arguments only after several tries. With `strict` any refusal by
    Q excludes the tool for the run; else the reasoner is told of a read that found nothing.
    """
    step, tries = state["steps"][-1], state["tries"]
    if is_planned(step):
        tools = [each["tool"] for each in state["ranked"]]
        before = tools[: tools.index(step["call"]["name"])]  # tools not admitted count only if they were ranked before
        tried = [each for each in state["rejections"] if "call" in each or each["tool"] in before]
        return {"needs": [{**close_need(state), "rejections": tried, "call": step["call"]["id"]}], **CLEARED}
    hands_empty = not strict and toolkit[step["call"]["name"]].reads
    rejection = read_rejection(step, declined=tries >= MOST_TRIES, hands_empty=hands_empty)
    rejections = [*state["rejections"], rejection]
    is_over = notes_of(step.get("outcome", {}), "refused") or (strict and rejection["phase"] == "Q")
    if tries + 1 < MOST_TRIES and not is_over:
        return {"rejections": rejections, "tries": tries + 1}
    update: Any = {"rejections": rejections, "candidates": state["candidates"][1:], "tries": 0}
    return update if update["candidates"] else {**update, **give_up({**state, **update})}


def conclude(state: ToolGateState, scope: NodeScope, *, toolkit: Iterable[ToolSpec], search: ToolSearch) -> Steps:
    """Return the record, the state after every committed call, and the answer; after a failure the answer says why.

    Raises:
        StateError: The task state differs from the one that the execution started from, or another run has written to
            the thread in the meantime.
    """
    look = look_for_other_runs()
    if look and (yield [look])[0].value:
        raise StateError(OTHER_RUN)
    ran, before = state["bookkeeping"]["attempts_to_judge"][-1], state.get("task_state") or {}
    check_start(digest(before), ran["start_digest"])
    seen, after = states_of(before, ran)
    kept = ran["steps"] if ran["stop"]["code"] != "broken" else []  # a broken attempt's changes are dropped
    record = build_record(state, ran, kept, seen, toolkit)
    verdict: Verdict = {"status": "accepted", "score": 1.0, "items": [], "feedback": "", "notes": notes_of(record)}
    supposed = find_untrusted(before, state.get("supposed") or [], kept)
    done, budget = [step for step in kept if is_planned(step)], scope.context.view_chars
    message = answer_message(record["answer"], verdict, done, budget=budget, supposed=supposed, state=after)
    update: dict[str, Any] = {"record": record, "task_state": after, "supposed": supposed}
    if state["bookkeeping"]["offered_tools"] is not None:
        met = served({"steps": kept, "needs": state.get("needs") or []})
        update["bookkeeping"] = {"taught": (yield from search.learn(state["bookkeeping"].get("taught", []), met))}
    if message is None or has_open_calls(state["messages"]):
        return update
    message.response_metadata[NAME]["verdict"] = record["status"]
    return {**update, "messages": [message]}
