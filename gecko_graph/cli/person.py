"""A person as the user of a conversation: a chat model whose replies are typed at the terminal, or piped in."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from rich.console import Console
from rich.text import Text

from ..conversation.user import UserEntry
from ..display.words import clean
from ..errors import GeckoError

HOW = "you write the user's messages; an empty line or Ctrl-D ends the conversation"


class Person(BaseChatModel):
    """Who sits at the terminal. Each line is a message; one that is empty, or none, ends the conversation.

    `lines` are those that were piped in; None at a terminal.
    """

    console: Any
    lines: list[str] | None = None

    @classmethod
    def at(cls, console: Console, option: str) -> Person:
        """Return who can write. Raises GeckoError where there is neither a terminal nor a line."""
        if sys.stdin.isatty():
            return cls(console=console)
        lines = sys.stdin.read().splitlines()
        if not any(map(str.strip, lines)):
            raise GeckoError(f"{option}: there is no terminal to type at, and no lines were piped in")
        return cls(console=console, lines=lines)

    def greet(self, spec: UserEntry, title: str) -> None:
        """Show what the user of a case wants and knows, and what has been said for him."""
        parts = {"goal": [spec.goal], "you know": spec.knows, "you must not say": spec.must_not_say}
        self.console.print(Text(f"{clean(title)}: {HOW}", "bold"))
        for name, texts in parts.items():
            for text in texts:
                self.console.print(Text(f"{name}: {clean(text)}", "dim"))
        if spec.opening:
            self._print("you", spec.opening)

    @property
    def _llm_type(self) -> str:
        return "person"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Person:
        """Return the same: an empty line is the only tool."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if len(messages) > 2 and isinstance(messages[-1], HumanMessage):  # the first two are what `greet` shows
            self._print("agent", messages[-1].text)
        text = self._read().strip()
        calls = [] if text else [{"name": "end_conversation", "args": {}, "id": "end"}]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text, tool_calls=calls))])

    def _read(self) -> str:
        if self.lines is None:
            try:
                return str(self.console.input(Text("you    ", "bold")))
            except EOFError:  # Ctrl-D
                self.console.print()
                return ""
        line = self.lines.pop(0) if self.lines else ""
        self._print("you", line or "(ends the conversation)")
        return line

    def _print(self, by: str, text: str) -> None:
        self.console.print(Text.assemble((f"{by:<7}", "bold"), clean(text, lines=True)))
