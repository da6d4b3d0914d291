"""Cost of the agent on a real shop (real reads, simulated writes), compared with LangChain's agent with human review.

The service and the tasks are outside the repository (`../shared/repros/exact/shop`). One scripted model plays all roles
of both agents: it acts on the results that it sees, as a strong model did (`live_replies_2.jsonl.gz`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import Field

from gecko_graph import GeckoContext, Toolkit, create_gecko_agent
from gecko_graph.models.recorded import RecordedModel, _role_message, planner_message, prompt_tokens
from gecko_graph.state import JsonObject
from gecko_graph.values.places import map_scalars

from ..harness.figures import Record, Table
from ..harness.options import EvalError
from ..harness.suite import Expectation

SHOP = Path(__file__).resolve().parents[3] / "shared" / "repros" / "exact" / "shop"
SYSTEM = "You are the back office assistant of a small outdoor shop."
TASKS = ("T1", "T2b", "T3", "T4", "T5", "T6", "T7")
READING = ("T4", "T5")
"""The tasks without writes."""
MOST, MOST_READING = 2.0, 1.2
"""The most that the agent may cost relative to LangChain's: in all, and on tasks without writes."""

MAJA, DEAR, REGARDS = ("searchCustomers", {"name": "Maja Lind"}), "Dear Maja Lind,\n\n", "\n\nKind regards"
SHIPPED = "shipped it express with {carrier} and e-mailed her the tracking code {createShipment[trackingCode]}."


def _shipping(query: str, sku: str, quantity: int, carrier: str) -> list[Any]:
    text = f"{DEAR}your order {{createOrder[orderId]}} is on its way: {{createShipment[trackingCode]}}{REGARDS}"
    lines = [{"sku": sku, "quantity": quantity}]
    return [
        [MAJA, ("searchProducts", {"query": query})],
        [("createOrder", {"customerId": "C-31", "lines": lines})],
        [("createShipment", {"orderId": "{createOrder[orderId]}", "carrier": carrier, "express": True})],
        [("sendEmail", {"customerId": "C-31", "subject": "Your order {createOrder[orderId]}", "text": text})],
        "I ordered it for Maja Lind (order {createOrder[orderId]}), " + SHIPPED.replace("{carrier}", carrier),
    ]


COUPON = {"customerId": "C-31", "subject": "An apology", "text": f"{DEAR}your coupon: {{createCoupon[code]}}{REGARDS}"}
PLANS: Mapping[str, Sequence[Any]] = {
    "Order two of the cheapest": [
        [MAJA, ("searchProducts", {"query": "headlamp"})],
        [("createOrder", {"customerId": "C-31", "lines": [{"sku": "HL-120", "quantity": 2}]})],
        "I ordered two Headlamp Pocket 120 for Maja Lind (C-31): order {createOrder[orderId]}.",
    ],
    "Order a trail stove": _shipping("trail stove", "ST-1", 1, "PostNord"),
    "Order two gas canisters": _shipping("gas canister", "GC-230", 2, "DHL"),
    "Make Maja Lind a coupon": [
        [MAJA],
        [("createCoupon", {"customerId": "C-31", "percent": 20})],
        [("sendEmail", COUPON)],
        "I made Maja Lind a coupon of 20 percent, {createCoupon[code]}, and e-mailed her the code.",
    ],
    "Cancel Jonas's order": [
        [("searchCustomers", {"name": "Jonas"})],
        [("listOrders", {"customerId": "C-44"}), ("listOrders", {"customerId": "C-45"})],
        "Two customers are called Jonas, each with one open order: O-7F31 and O-90AC. Which shall I cancel?",
    ],
    "Lower the price": [
        [("searchProducts", {"query": "trail stove"})],
        "I can't change prices: no tool does. It costs {searchProducts[products][0][price]} euros.",
    ],
    "Which of Elin Dahl's": [
        [("searchCustomers", {"name": "Elin Dahl"})],
        [("listOrders", {"customerId": "C-58", "status": "open"})],
        "Not shipped yet: {listOrders[orders][0][orderId]}, {listOrders[orders][1][orderId]}.",
    ],
    "Cancel the smaller one": [
        [
            ("cancelOrder", {"orderId": "O-5B02"}),
            ("updateAddress", {"customerId": "C-58", "address": "Storgatan 5, Umea"}),
        ],
        "Done: Elin Dahl's order O-5B02 is cancelled, and her address is now Storgatan 5, Umea.",
    ],
}
"""The steps of each task's plan, by the start of the task's text: calls of one message each, then the answer."""


class StrongModel(RecordedModel):
    """Plays every role, and a plain agent; `log` has the role and prompt tokens of each call."""

    log: list[tuple[str, int]] = Field(default_factory=list)

    def _reply(self, messages: list[BaseMessage], run_manager: Any, kwargs: Mapping[str, Any]) -> AIMessage:
        metadata = (run_manager.metadata if run_manager else None) or {}
        role = str(metadata.get("gecko_role", "planner"))
        if role == "planner":
            message = planner_message(next_words(messages), prefix=f"call_{run_manager.run_id}"[:24])
        else:
            message = _role_message(REPLIES[role](str(messages[-1].text)), kwargs.get("tools"))
        self.log.append((role, prompt_tokens(messages, kwargs)))
        return message


def next_words(messages: Sequence[BaseMessage]) -> JsonObject:
    """Return the planner's next reply: the plan's next step, or an answer to a refusal."""
    tasks = [at for at, each in enumerate(messages) if isinstance(each, HumanMessage) and _plan_of(each)]
    since, plan = messages[tasks[-1] :], _plan_of(messages[tasks[-1]])
    if messages[-1].type == "human" and "really made" in str(messages[-1].text) and len(since) > 1:
        return {"say": "That is done."}  # the answer after the plan's real calls
    names = {call["id"]: call["name"] for each in since if isinstance(each, AIMessage) for call in each.tool_calls}
    results = [(names[each.tool_call_id], each) for each in since if isinstance(each, ToolMessage)]
    refused = [each for _, each in results if each.status == "error" or '"error":' in str(each.text)]
    if refused:
        return {"say": f"I could not do it all: {refused[-1].text}. Shall I do it in another way?"}
    found = {name: json.loads(str(each.text)) for name, each in results}
    step = next(each for each in plan if isinstance(each, str) or not {name for name, _ in each} <= found.keys())
    if isinstance(step, str):
        return {"say": step.format_map(found)}

    def fill(value: Any) -> Any:
        return value.format_map(found) if isinstance(value, str) else value

    return {"calls": [{"call": name, "args": map_scalars(args, fill)} for name, args in step]}


def _plan_of(message: BaseMessage) -> Sequence[Any]:
    return next((plan for start, plan in PLANS.items() if str(message.text).startswith(start)), ())


def simulate(prompt: str) -> JsonObject:
    """Return the simulator's reply, with the prices and stock of the prompt if they are there, else with its own."""
    call = json.loads(_section(prompt, "call"))
    name, args = call["name"], call["args"]
    if name == "createOrder":
        lines = [{**line, "price": _known(prompt, line["sku"], "price", 10.0)} for line in args["lines"]]
        if any(_known(prompt, line["sku"], "inStock", 99) < line["quantity"] for line in lines):
            return {"status": "error", "result": {"error": "not enough in stock"}, "patch": []}
        amount = round(sum(line["quantity"] * line["price"] for line in lines), 2)
        made = {"orderId": "O-1001", "customerId": args["customerId"], "status": "open", "createdOn": "2026-01-02"}
        return _added(prompt, "orders", {**made, "lines": lines, "total": amount})
    if name == "createShipment":
        codes = {"shipmentId": "S-1001", "orderId": args["orderId"], "trackingCode": "PN123456789SE"}
        return _added(prompt, "shipments", {**codes, "carrier": args["carrier"], "express": args["express"]})
    if name == "createCoupon":
        return _added(prompt, "coupons", {"code": "SORRY-20-MAJA", **args})
    if name == "sendEmail":
        return _added(prompt, "emails", {"emailId": "EM-1001"}, args)
    if name == "cancelOrder":
        some = re.search(r'\{"orderId": "O-5B02".*?"total": [\d.]+\}', prompt.replace("\\", ""))
        order = json.loads(some[0]) if some else {"orderId": "O-5B02", "customerId": "C-58", "createdOn": "2026-01-02"}
        return _added(prompt, "orders", {"lines": [], "total": 92.0, **order, "status": "cancelled"})
    shown = {"customerId": "C-58", "name": "Elin Dahl", "email": "elin@example.org"}
    return _added(prompt, "customers", {**shown, "address": args["address"]})


def _known(prompt: str, sku: str, key: str, default: float) -> float:
    found = re.search(rf'"sku": "{sku}", "name".*?"{key}": ([\d.]+)', prompt.replace("\\", ""))
    return float(found[1]) if found else default


def _section(prompt: str, name: str) -> str:
    found = re.search(rf"<{name}-(\w+)>\n(.*?)\n</{name}-\1>", prompt, re.S)
    return found[2] if found else ""


def _added(prompt: str, table: str, result: JsonObject, value: JsonObject | None = None) -> JsonObject:
    key, row = str(next(iter(result.values()))), value or result
    is_there = f'"{table}"' in _section(prompt, "state")
    add = {"path": f"/{table}/{key}", "value": row} if is_there else {"path": f"/{table}", "value": {key: row}}
    return {"status": "ok", "result": result, "patch": [{"op": "add", **add}]}


def judge(prompt: str) -> JsonObject:
    """Return the judgement: everything is done, or nothing if the attempt ends with a question."""
    stopped = _section(prompt, "answer").rstrip('"').endswith("?")
    ids = re.findall(r'"id": "([^"]+)"', _section(prompt, "items"))
    status = {"status": "unknown" if stopped else "success", "reason": "it asked" if stopped else ""}
    return {"items": [{"id": each, **status} for each in ids], "unasked_changes": [], "stopping_was_right": stopped}


REPLIES: Mapping[str, Callable[[str], JsonObject]] = {
    "bootstrapper": lambda _: {"domain": {"customers": {"C-1": {"name": "Maja Lind"}}}, "runtime_state": {}},
    "checklist": lambda prompt: {"items": [{"description": f"it is done: {_section(prompt, 'task')}"}]},
    "validator": lambda _: {"problems": []},
    "simulator": simulate,
    "state_updater": lambda _: {"patch": [], "unchanged": True},
    "judge": judge,
}


def tasks() -> Sequence[str]:
    return TASKS if SHOP.is_dir() else ()


def measure(task: str) -> JsonObject:
    """Return model calls and prompt tokens of a task for both agents, and the requests that the shop got."""
    told: JsonObject = {}
    for name, run in (("ours", run_ours), ("plain", run_plain)):
        service, model = load("shop_service").Shop(), StrongModel()
        toolkit = Toolkit.from_openapi(SHOP / "shop.openapi.yaml", server=service.url)
        answers = run(toolkit, model, load("tasks").TASKS[task])
        service.server.shutdown()
        service.server.server_close()
        log = service.rows("select method, path from log")
        service.db.close()
        told[name] = {
            "calls": len(model.log),
            "tokens": sum(tokens for _, tokens in model.log),
            "roles": dict(Counter(role for role, _ in model.log)),
            "writes": [row["path"] for row in log if row["method"] != "GET"],
            "reads": sum(row["method"] == "GET" for row in log),
            "answers": answers,
        }
    return told


def run_ours(toolkit: Toolkit, model: StrongModel, turns: Sequence[str]) -> list[str]:
    """Run the turns with our agent, with real reads and every call approved, and return its answers."""
    knobs = GeckoContext(reads="real")
    return _answers(create_gecko_agent(toolkit, model=model, context=knobs, checkpointer=InMemorySaver()), turns)


def run_plain(toolkit: Toolkit, model: StrongModel, turns: Sequence[str]) -> list[str]:
    """Run the turns with LangChain's agent, with every write approved."""
    from langchain.agents import create_agent  # an extra that the other suites do not need
    from langchain.agents.middleware import HumanInTheLoopMiddleware

    asked: Any = {tool.name: True for tool in toolkit if not tool.reads}
    review: Any = HumanInTheLoopMiddleware(asked)
    tools = toolkit.as_tools()
    agent = create_agent(model, tools, system_prompt=SYSTEM, middleware=[review], checkpointer=InMemorySaver())
    return _answers(agent, turns)


def _answers(agent: Any, turns: Sequence[str]) -> list[str]:
    thread = {"configurable": {"thread_id": "1"}}
    answers = []
    for turn in turns:
        out = agent.invoke({"messages": [("user", turn)]}, thread)
        while "__interrupt__" in out:
            question = out["__interrupt__"][0]
            asked = question.value["action_requests"]
            in_doubt = "not known whether" in str(asked[0].get("description"))
            words = [{"type": "skip" if in_doubt else "approve"} for _ in asked]
            out = agent.invoke(Command(resume={question.id: {"decisions": words}}), thread)
        answers.append(str(out["messages"][-1].text))
    return answers


def load(name: str) -> Any:
    spec = spec_from_file_location(name, SHOP / f"{name}.py")
    if spec is None or spec.loader is None or not SHOP.is_dir():
        raise EvalError(f"the shop is not on this machine: {SHOP}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table(records: Sequence[Record]) -> Table:
    heads = [
        "task",
        "model calls",
        "LangChain's",
        "prompt tokens",
        "LangChain's",
        "by role",
        "real reads",
        "LangChain's",
    ]
    made = Table("The agent on a shop, beside LangChain's with human review", heads)
    for record in records:
        ours, plain = record.values["ours"], record.values["plain"]
        roles = "; ".join(f"{role} {calls}" for role, calls in ours["roles"].items())
        pairs = [each[key] for key in ("calls", "tokens") for each in (ours, plain)]
        made.add(record.facts["task"], *pairs, roles, ours["reads"], plain["reads"])
    return made


def met(records: Sequence[Record]) -> Iterator[Expectation]:
    reading = [record for record in records if record.facts["task"] in READING]
    if len(records) < len(TASKS):
        return
    for some, most, where in ((records, MOST, "in all"), (reading, MOST_READING, "where nothing is written")):
        for key, word in (("calls", "model calls"), ("tokens", "prompt tokens")):
            ours, plain = (sum(record.values[side][key] for record in some) for side in ("ours", "plain"))
            text = f"at most {most:g} times the {word} of LangChain's agent on the shop, {where}: {ours / plain:.2f}"
            yield Expectation(text, ours <= most * plain)
