"""A bank for agents' tests: real functions that count their calls, contracts that simulate them, an agent's model."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from gecko_graph import Tool, Toolkit

STATE = {"balance": 100, "transfers": {}}
CONTRACTS = {
    "transfer": {
        "let": {"number": "{{ new_id('T') }}"},
        "requires": [{"check": "args.amount <= state.balance", "error": {"error": "only {{ state.balance }} left"}}],
        "effects": [
            {"op": "replace", "path": ["balance"], "value": "{{ state.balance - args.amount }}"},
            {"op": "add", "path": ["transfers", "{{ number }}"], "value": "{{ args.amount }}"},
        ],
        "returns": {"id": "{{ number }}", "left": "{{ state.balance }}"},
        "ensures": [{"check": "result.left >= 0", "error": "the account is overdrawn"}],
    },
    "balance": {"returns": {"balance": "{{ state.balance }}"}},
}
EFFECTS = {"transfer": "write", "balance": "read"}


class Bank:
    """The real bank; `left` may be made to lie."""

    def __init__(self) -> None:
        self.money = 100
        self.calls: list[tuple] = []
        self.lie: int | None = None

    def transfer(self, to: str, amount: int) -> dict:
        """Transfer money.

        Args:
            to: Who is paid.
            amount: How much.
        """
        self.calls.append(("transfer", to, amount))
        self.money -= amount
        return {
            "id": f"real-{sum(call[0] == 'transfer' for call in self.calls)}",
            "left": self.money if self.lie is None else self.lie,
        }

    def balance(self) -> dict:
        """Return the balance."""
        self.calls.append(("balance",))
        return {"balance": self.money}

    def toolkit(self, **more: Any) -> Toolkit:
        tools = [
            Tool(getattr(self, name), effect=effect, contract=CONTRACTS.get(name)) for name, effect in EFFECTS.items()
        ]
        return Toolkit.from_tools(tools, **more)

    def bare(self) -> Toolkit:
        """The tools without contracts."""
        return Toolkit.from_tools([Tool(getattr(self, name), effect=effect) for name, effect in EFFECTS.items()])


class Chat(GenericFakeChatModel):
    """A chat model that says what is given, and takes tools."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def calls(*made: tuple) -> AIMessage:
    """Return a message with calls, each as (id, name, arguments)."""
    return AIMessage("", tool_calls=[{"id": id_, "name": name, "args": args} for id_, name, args in made])


def pay(id_: str, amount: object, to: str = "ann") -> tuple:
    return id_, "transfer", {"to": to, "amount": amount}


def look(id_: str) -> tuple:
    return id_, "balance", {}


def chat(*messages: AIMessage) -> Chat:
    return Chat(messages=iter([*messages, *(AIMessage("Done.") for _ in range(3))]))
