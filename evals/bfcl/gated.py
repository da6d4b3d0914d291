"""A multi-turn task by forward execution, whole or without P or Q, by the rehearsal, and by a plain loop of calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from gecko_graph import Contract, GeckoContext, Toolkit, ToolSpec
from gecko_graph.graph import Gecko, compose
from gecko_graph.models.factory import Models
from gecko_graph.models.node import NodeFunction, NodeScope
from gecko_graph.models.recorded import RecordedModel, planner_message
from gecko_graph.nodes.state_updater import state_updater
from gecko_graph.retrieval.search import ToolSearch
from gecko_graph.state import Attempt, Json, JsonObject, Outcome, Rehearsal
from gecko_graph.toolgate import graph as toolgate
from gecko_graph.toolgate.channels import ForwardState, ToolGateRecord
from gecko_graph.toolgate.nodes.reranker import reranker
from gecko_graph.toolgate.nodes.verify import category_of_refusal, verify
from gecko_graph.world.commit import refuse

from ..suites.ablation import nodes_without
from .rehearse import Played, Player, answers, finished, unseeing
from .simulated import Stage

GATED = ("toolgate", "without P", "without Q", "without both")
LOOP, GATS = "plain loop", "GATS"
ARMS = (*GATED, GATS, LOOP)


class Follower(RecordedModel):
    """Speaks for `reasoner`, `reranker` and `planner` by calls that were written down, one turn.

    A need is the next call. Its candidates are the tools of the calls from there on, so that what was written after a
    refused call, as other arguments or with another tool, is the next try.
    """

    calls: list[JsonObject] = Field(default_factory=list)
    made: int = 0

    def _reply(
        self,
        messages: list[BaseMessage],
        run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None,
        kwargs: Mapping[str, Any],
    ) -> AIMessage:
        metadata = (run_manager.metadata if run_manager else None) or {}
        tools = kwargs.get("tools") or []
        role, tool = metadata["gecko_role"], tools[0]["function"]["name"] if tools else ""
        left = self.calls[self.made :]
        if role == "planner":
            reply = self._call(left, tool, f"written_{metadata['gecko_turn']}_{self.made}")
        else:
            names = list(dict.fromkeys(call["call"] for call in left))
            ranked = {"tools": [{"name": name, "score": 1 / place} for place, name in enumerate(names, 1)]}
            wanted = {"need": json.dumps(left[0])} if left else {"answer": "Done."}
            reply = AIMessage(json.dumps(ranked if role == "reranker" else wanted))
        return self._counted(reply, input_tokens=0, output_tokens=0)

    def _call(self, left: Sequence[JsonObject], tool: str, prefix: str) -> AIMessage:
        if not left or left[0]["call"] != tool:
            return AIMessage("Another tool was called here.")
        self.made += 1
        filled = self.fill(left[0], "", 1) if self.fill else left[0]
        return planner_message(filled, prefix=prefix)


def lenient(state: ForwardState, scope: NodeScope, *, toolkit: Toolkit, p: bool, q: bool) -> dict[str, Any]:
    """Verify without P (a call that it refuses runs, and the tool's own error is its result) or without Q.

    Without Q every result is one, the tool's own error too.
    """
    checked = verify(state, scope, toolkit=toolkit)["proposals"]
    made = []
    for before, after in zip(state["proposals"], checked, strict=True):
        outcome: Outcome = after["outcome"]
        is_refusal = before["outcome"]["status"] == "error" and before["outcome"]["rung"] == "contract"
        if is_refusal and not p:
            error, category = str(outcome["result"]), category_of_refusal(before, state)
            outcome = refuse(outcome, error, category) if q else _as_result(outcome)
        elif not q and not is_refusal:
            outcome = _as_result(outcome) if before["outcome"]["status"] == "error" else before["outcome"]
        made.append({**after, "outcome": outcome})
    return {"proposals": made}


def _as_result(outcome: Outcome) -> Outcome:
    kept = {key: value for key, value in outcome.items() if key not in ("category", "refused", "violations")}
    return cast("Outcome", {**kept, "status": "ok", "patch": []})


def without_q(toolkit: Toolkit) -> Toolkit:
    """Return the toolkit without postconditions, invariants and state schema."""

    def bare(tool: ToolSpec) -> ToolSpec:
        if tool.contract is None:
            return tool
        data = {**tool.contract.data, "ensures": []}
        return replace(tool, contract=Contract.load(data, lets=tool.contract.lets, where=tool.name))

    return Toolkit(map(bare, toolkit), lets=toolkit.lets)


def nodes_of(arm: str, toolkit: Toolkit, search: ToolSearch) -> dict[str, NodeFunction]:
    """Return the functions in the place of the nodes that an ablation takes out."""
    p, q = arm not in ("without P", "without both"), arm not in ("without Q", "without both")
    nodes: dict[str, NodeFunction] = {}
    if not (p and q):
        nodes["verify"] = partial(lenient, toolkit=toolkit, p=p, q=q)
    if not p:
        nodes["reranker"] = partial(reranker, toolkit=toolkit, gated=(), search=search)
    if not q:
        nodes["state_updater"] = partial(state_updater, toolkit=without_q(toolkit))
    return nodes


def create(
    arm: str, toolkit: Toolkit, *, models: Models, default: GeckoContext, checkpointer: BaseCheckpointSaver[Any]
) -> Gecko:
    """Return an arm's graph."""
    made: dict[str, Any] = {"models": models, "default": default, "checkpointer": checkpointer}
    if arm in GATED:
        nodes = nodes_of(arm, toolkit, ToolSearch(toolkit, None, default))
        return toolgate.compose(toolkit, replace=nodes, **made)
    if arm == GATS:
        return compose(toolkit, replace={"judge": unseeing(toolkit)} if models.has("judge") else {}, **made)
    made["default"] = default.model_copy(update={"max_retries": 0})
    return compose(toolkit, replace=nodes_without(("validation", "feedback"), toolkit), **made)


async def play_arm(
    stage: Stage, arm: str, player: Player, written: Sequence[Sequence[JsonObject]] = ()
) -> list[Played]:
    """Play a task, turn after turn, on one thread.

    Args:
        stage: The task, and whose tools answer.
        arm: One of `ARMS`.
        player: Who plays, as for `rehearse.play`.
        written: The calls of each turn, for forward execution without a live model.
    """
    config: RunnableConfig = {"configurable": {"thread_id": stage.task.id}}
    saver, state, played, seen = InMemorySaver(), stage.start, list[Played](), list[Json]()
    given: JsonObject = {"task_state": state}
    for number, turn in enumerate(stage.task.turns):
        models = dict(player.models)
        if arm in GATED and written:
            follower: BaseChatModel = Follower(calls=list(written[number]), fill=stage.redrawn.fill)
            models |= dict.fromkeys(("reasoner", "reranker", "planner"), follower)
        # the documents' result schemas are not what the classes answer: no arm checks them
        tools = Toolkit((replace(tool, result=None) for tool in player.toolkit(number)), lets={})
        graph = create(arm, tools, models=Models.bind(models=models), default=player.context, checkpointer=saver)
        inputs: JsonObject = {"messages": turn.said, **given}
        if arm == GATS and player.checklist is not None:
            inputs["checklist"] = player.checklist(number, state, seen)
        run = await graph.ainvoke(inputs, config)
        played.append(gated_turn(run["record"], state, run["task_state"]) if arm in GATED else finished(run, state))
        stage.advance(played[-1])
        state = played[-1].after
        given = {} if played[-1].accepted or arm in GATED else {"task_state": state}
        seen += answers(played[-1].chosen)
    return played


def gated_turn(record: ToolGateRecord, before: JsonObject, after: JsonObject) -> Played:
    """Return a turn of forward execution in the form of a rehearsal: one attempt, accepted where it has answered."""
    word = "accepted" if record["status"] == "answered" else "failed"
    verdict: Any = {"status": word, "score": float(word == "accepted"), "items": [], "feedback": record["reason"]}
    attempt: Attempt = {
        "v": record["v"],
        "number": 1,
        "start_digest": record["start_digest"],
        "end_digest": record["end_digest"],
        "steps": record["steps"],
        "answer": record["answer"],
        "change": record["change"],
        "usage": record["usage"],
        "stop_reason": record["reason"],
        "stop": record["stop"],
        "verdict": verdict,
    }
    rehearsal: Rehearsal = {
        "v": record["v"],
        "plan": record["plan"],
        "verdict": verdict,
        "answer": record["answer"],
        "attempts": [attempt],
        "chosen": 1,
        "usage": record["usage"],
    }
    return Played(cast("Rehearsal", {**rehearsal, "rejected": record["rejected"]}), before, after)
