"""A person as the user of a conversation: a chat model whose replies are typed, or piped in."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from rich.console import Console
from rich.text import Text

from ..conversation.user import UserEntry, describe_user
from ..display.words import clean
from ..errors import GeckoError


class Person(BaseChatModel):
    """The person at the terminal, or piped `lines`: each is a message, an empty one ends the conversation."""

    console: Any
    lines: Iterator[str] | None = None
    _llm_type = "person"

    @classmethod
    def at(cls, console: Console, option: str) -> Person:
        """Return the person at the terminal. Raises GeckoError if there is neither a terminal nor a line."""
        lines = None if sys.stdin.isatty() else sys.stdin.read().splitlines()
        if lines is not None and not any(map(str.strip, lines)):
            raise GeckoError(f"{option}: no terminal, and no lines were piped in")
        console.print(Text("you write the user's messages; an empty line or Ctrl-D ends the conversation", "bold"))
        return cls(console=console, lines=None if lines is None else iter(lines))

    def greet(self, spec: UserEntry, name: str) -> None:
        """Show the goal, the knowledge and the opening of a case's user."""
        about = {"case": name, **describe_user(spec), "you": spec.opening}
        self.console.print(Text("\n".join(f"{key}: {clean(text)}" for key, text in about.items() if text), "dim"))

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Person:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if len(messages) > 2 and isinstance(messages[-1], HumanMessage):  # `greet` shows the first two
            self.console.print(Text.assemble(("agent: ", "bold"), clean(messages[-1].text, lines=True)))
        try:
            text = self.console.input(Text("you: ", "bold")) if self.lines is None else next(self.lines, "")
        except EOFError:  # Ctrl-D
            text = ""
        if self.lines is not None:
            self.console.print(Text.assemble(("you: ", "bold"), clean(text)))
        calls = [] if text.strip() else [{"name": "end_conversation", "args": {}, "id": "end"}]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text.strip(), tool_calls=calls))])
