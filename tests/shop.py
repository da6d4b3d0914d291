"""A shop for tests of forward execution: contracts with P and Q, and a model that acts by functions of what it sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import Field

from gecko_graph import Models, Tool, Toolkit, create_toolgate
from gecko_graph.models.recorded import RecordedModel, _role_message, planner_message

TEXT = {"type": "string", "minLength": 1}


def function(name: str, description: str, **arguments: dict) -> dict:
    parameters = {"type": "object", "properties": arguments, "required": [*arguments], "additionalProperties": False}
    return {"name": name, "description": description, "parameters": parameters}


FUNCTIONS = [
    function("open_shop", "Open the shop for customers."),
    function("sell", "Sell one item to a customer.", item=TEXT, price={"type": "number", "minimum": 0}),
    function("gift", "Give an item away for nothing.", item=TEXT),
    function("stock", "Show what is left of all items."),
]
IN_STOCK = {"check": "defined(state.stock[args.item])", "error": "there is no item {{ args.item }}"}
OPEN = {"check": "state.open", "error": "the shop is closed"}
TAKE = {"op": "replace", "path": ["stock", "{{ args.item }}"], "value": "{{ state.stock[args.item] - 1 }}"}
CONTRACTS: dict[str, dict[str, Any]] = {
    "open_shop": {"effects": [{"op": "replace", "path": ["open"], "value": True}], "returns": {"open": True}},
    "sell": {
        "requires": [OPEN, IN_STOCK],
        "effects": [TAKE, {"op": "replace", "path": ["till"], "value": "{{ state.till + args.price }}"}],
        "returns": {"sold": "{{ args.item }}"},
        "ensures": [{"check": "state.till >= before.till + 1", "error": "nothing was paid"}],
    },
    "gift": {"requires": [IN_STOCK], "effects": [TAKE], "returns": {"given": "{{ args.item }}"}},
    "stock": {"returns": "{{ state.stock }}"},
}
INVARIANTS = [
    {"check": "len([one for one in state.stock.values() if one < 0]) == 0", "error": "less than nothing is left"}
]


def start(**more: Any) -> dict[str, Any]:
    return {"open": True, "till": 0, "stock": {"pen": 1, "ink": 4}, "runtime_state": {}} | more


def toolkit(**contracts: dict) -> Toolkit:
    known = CONTRACTS | contracts
    tools = [Tool(one, contract=known.get(one["name"])) for one in FUNCTIONS]
    return Toolkit.from_tools(tools, invariants=INVARIANTS).declare(Tool("stock", effect="read"))


class Acting(RecordedModel):
    """Replies by functions: `{"reasoner": lambda number, text: ..., "planner": lambda number, text, tool: ...}`.

    `number` counts the role's questions from 0; a list in the place of a function is read by it. `seen` keeps all.
    """

    roles: Mapping[str, Any] = Field(default_factory=dict)
    seen: list[tuple[str, str]] = Field(default_factory=list)

    def _reply(self, messages, run_manager, kwargs):
        metadata = run_manager.metadata
        role, number = metadata["gecko_role"], metadata["gecko_question"]
        text = "\n".join(str(message.text) for message in messages)
        self.seen.append((role, text))
        act = self.roles[role]
        tool = kwargs["tools"][0]["function"]["name"] if kwargs.get("tools") else ""
        reply = act[number] if isinstance(act, list) else act(number, text, tool)
        if isinstance(reply, Exception):
            raise reply
        if role == "planner":
            message = planner_message(reply, prefix=f"made_{metadata['gecko_turn']}_{number}")
        else:
            message = _role_message(reply, kwargs.get("tools"))
        return self._counted(message, input_tokens=10, output_tokens=5)

    def texts(self, role: str) -> list[str]:
        return [text for who, text in self.seen if who == role]


def act(
    tools: Toolkit,
    /,
    *,
    state: dict | None = None,
    request: str = "Sell a pen for 2",
    context=None,
    strict=False,
    **roles: Any,
):
    """Run one request; returns the output and the model."""
    model = Acting(roles=roles)
    graph = create_toolgate(tools, model=Models(**dict.fromkeys(roles, model)), context=context, strict=strict)
    return graph.invoke({"messages": [("user", request)], "task_state": state or start()}), model


def by_rank(*names: str) -> Callable[..., Any]:
    return lambda number, text, tool: {"tools": [{"name": name, "score": 9 - i} for i, name in enumerate(names)]}


def one_need(need: str = "Sell a pen for 2") -> list[Any]:
    return [{"need": need}, {"answer": "Done."}]


def one(*ranked: str, tools: Toolkit | None = None, **more: Any):
    """One need, and the tools that come first for it."""
    return act(tools or toolkit(), **{"reasoner": one_need(), "reranker": by_rank(*ranked), **more})


SELL = {"call": "sell", "args": {"item": "pen", "price": 2}}
