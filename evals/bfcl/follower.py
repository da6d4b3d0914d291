"""Calls that were written down as forward execution's models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import Field

from gecko_graph.models.recorded import RecordedModel, planner_message
from gecko_graph.state import JsonObject


class Follower(RecordedModel):
    """Speaks for `reasoner`, `reranker` and `planner` by calls that were written down, one turn.

    A need is the next call, once. Its candidates are the tools of the calls from there on, so that what was written
    after a refused call, as other arguments or with another tool, is the next try.
    """

    calls: list[JsonObject] = Field(default_factory=list)
    made: int = 0
    asked: int = -1
    """The call that was needed last: one that was not made by then cannot be."""

    def _reply(
        self,
        messages: list[BaseMessage],
        run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None,
        kwargs: Mapping[str, Any],
    ) -> AIMessage:
        metadata = (run_manager.metadata if run_manager else None) or {}
        tools = kwargs.get("tools") or []
        role, tool = metadata["gecko_role"], tools[0]["function"]["name"] if tools else ""
        if role == "reasoner":
            self.made += self.made == self.asked
            self.asked = self.made
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
