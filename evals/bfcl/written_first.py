"""A planner whose first words were written down, and whose other words are a live model's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from gecko_graph.models.recorded import RecordedModel

_FREE = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}


class WrittenFirst(BaseChatModel):
    """Answer with what was written at the beginning of a first attempt; from then on a live model speaks.

    So what a model once answered goes through the rehearsal: what comes after complaints and feedback is another's.

    Args:
        first: Gives what was written down; its words cost nothing.
        then: Gives all others.
        messages: Messages of the first attempt that were written down; None: all of it.
        turns: Turns of the thread whose first attempt was written down; None: every one.
    """

    first: RecordedModel
    then: BaseChatModel
    messages: int | None = 1
    turns: int | None = None

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
        """Bind tools for both speakers."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        metadata = _metadata(run_manager)
        return self._result(metadata, self._bound(metadata, kwargs).invoke(messages, {"metadata": metadata}, stop=stop))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        metadata = _metadata(run_manager)
        return self._result(
            metadata, await self._bound(metadata, kwargs).ainvoke(messages, {"metadata": metadata}, stop=stop)
        )

    def _bound(self, metadata: dict[str, Any], kwargs: dict[str, Any]) -> Runnable[LanguageModelInput, AIMessage]:
        speaker: BaseChatModel = self.first if self._is_written(metadata) else self.then
        tools = kwargs.get("tools")
        return speaker.bind_tools(tools) if tools else speaker

    def _is_written(self, metadata: dict[str, Any]) -> bool:
        turn, attempt, question = (
            int(metadata.get(f"gecko_{key}", least)) for key, least in (("turn", 0), ("attempt", 1), ("question", 0))
        )
        known = (self.turns is None or turn < self.turns) and (self.messages is None or question < self.messages)
        return attempt == 1 and known

    def _result(self, metadata: dict[str, Any], message: AIMessage) -> ChatResult:
        if self._is_written(metadata):
            message = message.model_copy(update={"usage_metadata": dict(_FREE)})
        return ChatResult(generations=[ChatGeneration(message=message)])


def _metadata(run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None) -> dict[str, Any]:
    return dict((run_manager.metadata if run_manager else None) or {})
