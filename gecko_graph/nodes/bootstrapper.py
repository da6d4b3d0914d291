"""bootstrapper: opens the turn, and completes or creates the task state (paper, appendix A.5)."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Overwrite

from ..context import GeckoContext
from ..errors import StateError
from ..events import event
from ..models.ask import AnyAsk, Ask, QuestionId, Reply
from ..models.focus import focus_words
from ..models.formatting import (
    cut,
    format_conversation,
    format_json,
    format_policy,
    format_tool_lines,
    join_lines,
    share_budget,
    text_of,
)
from ..models.memory import last_checklist, supposed_places
from ..models.node import NodeScope
from ..models.roles import InitialState, SearchWords
from ..models.view import view
from ..retrieval.search import ToolSearch
from ..state import RUNTIME, ChecklistItem, JsonObject, SupposedState, Taught
from ..tools import Toolkit, ToolSpec
from ..tools.descriptions import member_names, pick_tools
from ..tools.own_data import starting_state
from ..values.digest import check_json, clone, digest
from ..values.notes import note, with_notes
from ..values.places import pointer
from ..world.calls import read_state
from ..world.channels import Bookkeeping, GeckoState
from ..world.rung import runs_for_real
from ..world.state_rules import StateRules, examine_contracts
from ..world.turn import earlier, human_turns, next_turn, read_checklist, task_of

NEED_CHARS = 500


def bootstrapper(
    state: GeckoState, scope: NodeScope, *, toolkit: Toolkit, search: ToolSearch | None = None
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Choose tools if there are too many, complete the state, and clear the keys of the previous turn.

    If every read runs for real, nothing is invented: the state is the given one, even `{}`, and changes with real
    results.

    Raises:
        StateError: The given task state is not a JSON object, or violates the toolkit's schema or invariants.
        TaskError: The conversation contains no task, or the given checklist is malformed.
        ContractError: A `check` of the given checklist cannot be parsed.
    """
    task, started_at = task_of(state.get("messages", [])), time.time()
    items, mark, used = given_checklist(state, embedded=scope.embedded)
    rules = StateRules.of(toolkit)
    given, real, asked = read_given(state, scope, toolkit, rules)
    words = yield from find_words(state, task, scope, search)
    taught = (state.get("bookkeeping") or {}).get("taught", [])
    if search is not None and search.is_needed(scope.context):
        taught = yield from search.learn(taught)
    tools = yield from find_tools(state, task, words, taught, scope, toolkit, search)
    if tools is not None:
        toolkit = Toolkit(pick_tools(toolkit, tools), lets=toolkit.lets, invariants=toolkit.invariants)
    whole, unclear = given, list[str]()
    if asked:
        ask = build_ask(state, task, toolkit, scope.context, rules.schema)
        whole, unclear = yield from complete_state(whole, ask, toolkit, scope, rules)
    shown = with_notes(find_supposed(state, given, whole), [note("unclear", each) for each in unclear])
    if shown["paths"] or unclear:
        fields: JsonObject = {key: value for key, value in shown.items() if key != "paths"}
        scope.emit(event("gecko.state", attempt=0, supposed=shown["paths"], **fields))
    if items is not None:
        scope.emit(event("gecko.checklist", attempt=0, items=items, failure=""))
    opened: Bookkeeping = {
        **go_on(state),
        "supposed_state": shown if shown["paths"] or unclear else None,
        "ledger": {"turn": next_turn(state), "started_at": started_at, "usage": {}, "asked": {}},
        "offered_tools": tools,
        "search_words": [task, words],
        "taught": taught,
        "real": real,
        "items_failure": used,
        "checklist_digest": mark,
    }
    return {
        "task_state": whole,
        "supposed": shown["paths"],
        "items": items,
        "attempts": Overwrite([]),
        "bookkeeping": Overwrite(opened),
    }


def read_given(
    state: GeckoState, scope: NodeScope, toolkit: Toolkit, rules: StateRules
) -> tuple[JsonObject, bool, bool]:
    """Return the turn's given state, whether every read runs for real, and whether a model completes the state.

    Raises:
        StateError: See `bootstrapper`.
    """
    is_given = state.get("task_state") is not None
    given = read_state(state["task_state"] if is_given else {}, what="task_state")
    given = given if state.get("bookkeeping") or state.get("continued") else starting_state(toolkit, given)
    reads, is_missing = [tool for tool in toolkit if tool.reads], not is_given and not given
    real = bool(reads) and all(runs_for_real(tool, scope.context) for tool in reads)
    lacks = bool(given) or is_missing  # an empty state that the caller gives is complete
    asked = lacks and not real and not is_whole(given, toolkit) and scope.has_model("bootstrapper")
    before = state.get("continued")
    is_due = given or (rules.schema is not None and not asked and not (real and is_missing))
    if is_due and not (before and before.get("real")):
        rules.check_start(given, what="task_state", is_whole=not asked)
    return given, real, asked


def find_supposed(state: GeckoState, given: JsonObject, whole: JsonObject) -> SupposedState:
    """Return the parts of the state that a model invented, in this turn or earlier."""
    added = [pointer([key]) for key in whole if key not in given and (whole[key] or key != RUNTIME)]
    paths = [*carry_supposed(state, given), *added]
    made_up = clone({key: value for key, value in whole.items() if pointer([key]) in paths})
    return {"paths": paths, "state": made_up}


def go_on(state: GeckoState) -> Bookkeeping:
    """Return the bookkeeping at the start of a turn: earlier real calls and the thread's knowledge."""
    before, known = state.get("continued"), state.get("bookkeeping") or {}
    return {
        "round": -1,
        "lesson": before["lesson"] if before else None,
        "replayed": before["steps"] if before else [],
        "numbered_from": before["attempts"] if before else 0,
        "facts": known.get("facts", {}),
        "argument_verdicts": [],
    }


def given_checklist(state: GeckoState, *, embedded: bool) -> tuple[list[ChecklistItem] | None, str, str]:
    """Return the caller's checklist or None, its digest if a parent graph gave it, and why it is not used.

    A parent's keys exist as long as its thread, so a checklist of an earlier human turn would apply again.
    """
    given = state.get("checklist")
    items = None if given is None else read_checklist(given)
    mark = digest(items) if embedded and items is not None else ""
    if mark and mark == last_checklist(earlier(state["messages"])):
        return None, mark, "the given checklist was used for an earlier task: write one for this task"
    return items, mark, ""


def find_words(
    state: GeckoState, task: str, scope: NodeScope, search: ToolSearch | None
) -> Generator[list[AnyAsk], list[Reply], str]:
    """Return a model's search words for tools, asked once per task; empty if no index chooses tools."""
    kept: Mapping[str, Any] = state.get("continued") or state.get("bookkeeping") or {}
    before, words = kept.get("search_words") or ["", ""]
    if before == task or search is None or not search.is_needed(scope.context) or not scope.has_model("searcher"):
        return words if before == task else ""
    budget = scope.context.view_chars
    conversation = format_conversation(earlier(state["messages"]), budget=budget // 4)
    variables = {"task": cut(task, budget=budget), "conversation": conversation}
    where = QuestionId(turn=human_turns(state["messages"]) - 1, attempt=0, question=0)
    (reply,) = yield [Ask("searcher", variables, SearchWords, where)]
    return reply.value.words if isinstance(reply.value, SearchWords) else ""


def find_tools(
    state: GeckoState,
    task: str,
    words: str,
    taught: Sequence[Taught],
    scope: NodeScope,
    toolkit: Toolkit,
    search: ToolSearch | None,
) -> Generator[list[AnyAsk], list[Reply], list[str] | None]:
    """Return the names of the tools that fit the task, then of tools called in the conversation; None for all.

    The search also uses the last human turn before the task (since "yes, do it" names no tool), the model's search
    words, and what was learned from earlier calls.
    """
    if search is None or not search.is_needed(scope.context):
        return None
    before = earlier(state["messages"])
    asked = [cut(text_of(each), budget=NEED_CHARS) for each in before if isinstance(each, HumanMessage)][-1:]
    need = "\n".join(filter(None, [words, cut(task, budget=4 * NEED_CHARS), *asked]))
    found = yield from search.find(need, scope.context.top_k, scope.context, taught=taught)
    calls = [call for each in reversed(before) if isinstance(each, AIMessage) for call in each.tool_calls]
    called = dict.fromkeys(toolkit.resolve(call["name"]) for call in calls)
    return list(dict.fromkeys([*found, *(name for name in called if name in toolkit)]))[: scope.context.max_tools]


def complete_state(
    given: JsonObject, ask: Ask, toolkit: Toolkit, scope: NodeScope, rules: StateRules
) -> Generator[list[AnyAsk], list[Reply], tuple[JsonObject, list[str]]]:
    """Return the state with a model's additions, and the problems that remain after one repair.

    If an invented state violates its schema, or contracts cannot be evaluated on it, the model is asked once more. A
    state that still violates the schema is discarded, and the given state stays.
    """
    whole, unclear, budget = given, list[str](), scope.context.view_chars
    for question in range(2):
        again = {"previous": format_json(whole, budget=budget), "problems": join_lines(unclear, budget=budget // 2)}
        shown = {**ask.variables, **again} if question else ask.variables
        (reply,) = yield [replace(ask, variables=shown, where=replace(ask.where, question=question))]
        made = merge_reply(given, reply)
        faults = find_faults(given, made, toolkit, rules)
        if not question or (made != given and len(faults) <= len(unclear)):
            whole, unclear = made, faults
        if not unclear:
            break
    if rules.schema is not None and (broken := rules.broken(whole)):
        return given, unclear or broken
    return whole, unclear


def find_faults(given: JsonObject, whole: JsonObject, toolkit: Toolkit, rules: StateRules) -> list[str]:
    if whole == given:
        return []
    if given:
        return rules.broken(whole) if rules.schema is not None else []
    return [*rules.faults(whole), *examine_contracts(toolkit, whole)]


def carry_supposed(state: GeckoState, given: JsonObject) -> list[str]:
    """Return the supposed places of earlier turns; if the caller changed the state, those that it still has."""
    if (going_on := state.get("continued")) and "supposed" in going_on:
        return going_on["supposed"]
    if last := state.get("rehearsal"):
        chosen = next(attempt for attempt in last["attempts"] if attempt["number"] == last["chosen"])
        if digest(given) in (chosen["start_digest"], chosen["end_digest"]):
            return state.get("supposed") or []
    return supposed_places(state["messages"], given)  # an embedded graph has only the conversation


def is_whole(state: Mapping[str, Any], toolkit: Toolkit) -> bool:
    """Return whether no model is needed to complete the state, by a rule.

    True if the state was completed before, or if every tool has a contract and every state key of the contracts is
    present.
    """
    if RUNTIME in state:
        return True
    if not state or not all(tool.contract for tool in toolkit):
        return False
    return toolkit.state_keys <= state.keys()


def merge_reply(state: JsonObject, reply: Reply) -> JsonObject:
    """Return the state with the model's additions. Given keys never change; an unusable reply adds nothing."""
    if not isinstance(reply.value, InitialState):
        return state
    domain = {} if state else reply.value.domain
    whole: JsonObject = {**domain, **state, RUNTIME: reply.value.runtime_state or domain.get(RUNTIME) or {}}
    try:
        check_json(whole, what="the state")
    except StateError:
        return state
    return whole


def build_ask(state: GeckoState, task: str, toolkit: Toolkit, context: GeckoContext, schema: JsonObject | None) -> Ask:
    budget = context.view_chars
    given = state.get("task_state") or {}
    messages = state["messages"]
    return Ask(
        role="bootstrapper",
        variables={
            "task": cut(task, budget=budget),
            "conversation": format_conversation(earlier(messages), budget=budget // 2),
            "policy": format_policy(messages, budget=budget // 2),
            "tools": format_tool_lines(((tool.name, describe(tool, not given)) for tool in toolkit), budget=budget),
            "contracts": "" if given else format_contracts(toolkit, budget=budget // 2),
            "state": view(given, focus=focus_words(task), budget=budget) if given else "",
            "schema": view(schema, focus=focus_words(task), budget=budget // 2) if schema is not None else "",
            "previous": "",
            "problems": "",
        },
        reply=InitialState,
        where=QuestionId(turn=human_turns(messages) - 1, attempt=0, question=0),
    )


def format_contracts(toolkit: Toolkit, *, budget: int) -> str:
    """Return the state keys of the contracts, and the contracts, whose reads and effects show the shapes."""
    rules: list[tuple[str, Any]] = [(tool.name, tool.contract.data) for tool in toolkit if tool.contract]
    if not rules:
        return ""
    rules = [*([("shared", toolkit.lets)] if toolkit.lets else []), *rules]
    keys = f"keys: {', '.join(sorted(toolkit.state_keys))}"
    return share_budget(
        lambda share: [keys, *(f"{name}: {format_json(rule, budget=3 * share)}" for name, rule in rules)], budget=budget
    )


def describe(tool: ToolSpec, whole: bool) -> str:
    """Return a tool's description; with `whole`, also the names of its parameters and result members."""
    if not whole:
        return tool.about
    takes, gives = (", ".join(member_names(schema)) for schema in (tool.parameters, tool.result))
    parts = [tool.about, f"Takes {takes}." if takes else "", f"Gives {gives}." if gives else ""]
    return " ".join(filter(None, parts))
