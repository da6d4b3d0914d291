"""Planners of single-turn tasks that need no model: written calls, and written calls with a live model after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from gecko_graph.models.recorded import RecordedModel
from gecko_graph.state import JsonObject

NOTHING_MORE = "There is nothing more to call."
"""What written calls end with: nothing was recorded after them."""


def written(calls: Sequence[JsonObject], *, text: str) -> RecordedModel:
    """A planner that makes these calls in one message and then is done; without calls it says the text."""
    said: list[JsonObject] = [{"calls": list(calls)}, {"say": NOTHING_MORE}] if calls else [{"say": text}]
    return RecordedModel(turns=[{"planner": [said]}])


class WrittenFirst(BaseChatModel):
    """Says what was written as the first message of the first attempt; from then on a live model speaks.

    So what a model once answered goes through the rehearsal: what comes after complaints and feedback is another's.

    Args:
        first: Says the first message.
        then: Says all others.
    """

    first: RecordedModel
    then: BaseChatModel

    @property
    def _llm_type(self) -> str:
        return "written-first"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools; they reach whichever of the two speaks."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        speaker, config = self._speaker(run_manager, kwargs)
        return _result(speaker.invoke(messages, config, stop=stop))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        speaker, config = self._speaker(run_manager, kwargs)
        return _result(await speaker.ainvoke(messages, config, stop=stop))

    def _speaker(
        self, run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None, kwargs: dict[str, Any]
    ) -> tuple[Runnable[LanguageModelInput, AIMessage], RunnableConfig]:
        told = dict((run_manager.metadata if run_manager else None) or {})
        is_first = (int(told.get("gecko_attempt", 1)), int(told.get("gecko_question", 0))) == (1, 0)
        speaker: BaseChatModel = self.first if is_first else self.then
        tools = kwargs.get("tools")
        return (speaker.bind_tools(tools) if tools else speaker), {"metadata": told}


def _result(message: BaseMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])
