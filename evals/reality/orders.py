"""One task on the order service: its planner, a person who looks into the service's log, and the run with its kill."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from gecko_graph import GeckoContext, GeckoError, RehearsalState, create_gecko_agent
from gecko_graph.demo.service import START as BOOKS
from gecko_graph.demo.service import OrderService, plan_faults
from gecko_graph.execution import journal
from gecko_graph.state import JsonObject

from .killing import Fate, Killed, KillingSaver

TASK = "Order two mugs and one tea, and refund 5 euros of the mugs."
CHECKS = (
    "state.orders | values | selectattr('sku', 'eq', 'MUG') | map(attribute='quantity') | list == [2]",
    "state.orders | values | selectattr('sku', 'eq', 'MUG') | map(attribute='refunded') | list == [5]",
    "state.orders | values | selectattr('sku', 'eq', 'TEA') | map(attribute='quantity') | list == [1]",
)
TIMEOUT_S = 0.6
MOST_PROCESSES = 40
WRITES = 3
journal.WAIT_S = 2.0  # a killed process waits for its mark in vain


class OrderPlanner(BaseChatModel):
    """Plans what of the task is not done yet, as the conversation shows it."""

    @property
    def _llm_type(self) -> str:
        return "order-planner"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """Bind nothing: it knows the tools."""
        return self.bind()

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=next_message(messages))])


def next_message(messages: Sequence[BaseMessage]) -> AIMessage:
    """Return the next call, or the answer."""
    done = finished_calls(messages)
    orders = {args.get("sku"): result for name, args, result in done if name == "placeOrder"}
    if "MUG" in orders and "order_id" not in orders["MUG"]:  # an unusable answer: the identifier is looked up
        listed = [result for name, _, result in done if name == "listOrders"]
        found = [each for each in listed[-1].get("orders", []) if each["sku"] == "MUG"] if listed else []
        if not found:
            return call_message("listOrders", {}, len(messages))
        orders["MUG"] = found[0]
    wanted: list[tuple[str, JsonObject]] = [
        ("placeOrder", {"sku": sku, "quantity": quantity})
        for sku, quantity in (("MUG", 2), ("TEA", 1))
        if sku not in orders
    ]
    if "MUG" in orders and not any(name == "refundOrder" for name, *_ in done):
        wanted.append(("refundOrder", {"order_id": orders["MUG"]["order_id"], "amount": 5}))
    if not wanted:
        return AIMessage("Done.")
    return call_message(*wanted[0], len(messages))


def call_message(name: str, args: JsonObject, number: int) -> AIMessage:
    """Return a message that makes one call."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call_{number}_{name}"}])


def finished_calls(messages: Sequence[BaseMessage]) -> list[tuple[str, JsonObject, Any]]:
    """Return name, arguments and result of each call that was answered without an error."""
    calls = {call["id"]: call for each in messages if isinstance(each, AIMessage) for call in each.tool_calls}
    found = []
    for message in messages:
        if isinstance(message, ToolMessage) and message.status != "error" and message.tool_call_id in calls:
            call = calls[message.tool_call_id]
            result = json.loads(message.text) if message.text.startswith("{") else {}
            found.append((call["name"], call["args"], result))
    return found


@dataclass(frozen=True, slots=True)
class Draw:
    """One run, as its seed draws it."""

    seed: int
    idempotent: bool
    embedded: bool
    rate: float
    slow_s: float
    kill_share: float
    """Where in the run's writes the process ends, 0 to 1."""
    after: bool

    @classmethod
    def of(cls, seed: int) -> Draw:
        """Return the run of a seed."""
        dice = random.Random(seed)
        return cls(
            seed,
            idempotent=dice.random() < 0.5,
            embedded=dice.random() < 0.5,
            rate=dice.choice([0.0, 0.15, 0.3]),
            slow_s=dice.choice([0.0, 0.0, 0.002]),
            kill_share=dice.random(),
            after=dice.random() < 0.5,
        )


def graph_of(service: OrderService, saver: Any, draw: Draw, timeout_s: float = TIMEOUT_S) -> Any:
    """Return the agent of a new process, alone or as a parent graph's node."""
    agent = create_gecko_agent(
        service.toolkit(),
        models={"planner": OrderPlanner()},
        review="none",
        checkpointer=None if draw.embedded else saver,
        context=GeckoContext(tool_timeout_s=timeout_s),
    )
    if not draw.embedded:
        return agent

    class Parent(RehearsalState):
        checklist: list[Any]
        execution: JsonObject

    builder = StateGraph(Parent)
    builder.add_node("agent", agent)
    builder.add_edge(START, "agent")
    return builder.compile(checkpointer=saver)


def decide(service: OrderService, request: JsonObject) -> JsonObject:
    """Return the decision of a person on a call in doubt who looks into the service's log."""
    (action,) = request["action_requests"]
    operation = {"placeOrder": "place_order", "refundOrder": "refund_order"}.get(action["name"], "cancel_order")
    same = [each for each in service.log() if each["operation"] == operation and each["args"] == action["args"]]
    if not same:
        return {"type": "approve"}
    return {"type": "respond", "message": json.dumps(same[-1]["result"])}


def run(draw: Draw) -> JsonObject:
    """Run the task, kill it, go on in new processes until it ends; what it came to."""
    config: Any = {"configurable": {"thread_id": "orders"}}
    items = [{"id": str(number), "description": check, "check": check} for number, check in enumerate(CHECKS)]
    task = {"messages": [("user", TASK)], "task_state": BOOKS, "checklist": items}
    whole = Fate()
    with OrderService(idempotent=draw.idempotent) as calm:
        graph_of(calm, KillingSaver(whole), draw, timeout_s=60.0).invoke(task, config)
        wanted = calm.state()
    fate = Fate(1 + int(draw.kill_share * whole.count), after=draw.after, slow_s=draw.slow_s)
    saver, faults = KillingSaver(fate), plan_faults(seed=draw.seed, rate=draw.rate)
    with OrderService(faults, idempotent=draw.idempotent) as service:
        asked = 0
        given: Any = task
        for process in range(MOST_PROCESSES):
            with suppress(*((Killed, GeckoError) if not process else ())):
                out = graph_of(service, saver, draw).invoke(given, config)
                if "__interrupt__" not in out:
                    break
                asked += 1
                given = Command(resume={"decisions": [decide(service, out["__interrupt__"][0].value)]})
                continue
            fate.kill_at, given = 0, None if list(saver.list(config)) else task
        return {
            "asked": asked,
            "writes": len(service.log()),
            "equal": service.state() == wanted,
            "state": out["task_state"] == service.state(),
            "usable": not any(each.get("departure", {}).get("code") == "schema" for each in out["execution"]["calls"]),
            "status": out["execution"]["status"],
            "rehearsals": out["execution"]["rehearsals"],
        }
