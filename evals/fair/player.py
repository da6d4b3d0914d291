"""Plays an agent's steps from a file; they use tools' real names, which are translated to the names the agent sees."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

from gecko_graph.state import JsonObject
from gecko_graph.values.documents import read_document

TRIES = 4


def read_agents(file: Path) -> dict[str, Any]:
    """Return a case's agents: the steps of `good` and `also`; for `bad` a list, each with its kind and description.

    A bad agent with `says` makes the calls of `good`, then says that.
    """
    written: Any = read_document(file)
    *calls, _ = written["good"]
    bad = [{"does": [*calls, {"say": each["says"]}], **each} if "says" in each else each for each in written["bad"]]
    return {**written, "bad": [{"what": each["kind"], **each} for each in bad]}


class Player(BaseChatModel):
    """A scripted agent that adapts to the names and tools that it is offered, and repeats calls that fail by fault.

    `names` are those that the agent sees, by real name; calls of other tools are left out. `fails` are calls, as
    `"step.call"`, that fail rightly and are not repeated.
    """

    steps: Sequence[Mapping[str, Any]]
    names: Mapping[str, str]
    fails: Collection[str] | None = None
    """None: nothing is repeated."""

    @property
    def _llm_type(self) -> str:
        return "player"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        made = [each for each in messages if isinstance(each, AIMessage)]
        message = self._repeat(made[-1], find_failed(messages)) if made else None
        planned = [each for each in (self._plan(at, step) for at, step in enumerate(self.steps)) if each]
        number = sum(not any(_read(call["id"])[1] for call in each.tool_calls) for each in made)
        message = message or (planned[number] if number < len(planned) else AIMessage(""))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _plan(self, at: int, step: Mapping[str, Any]) -> AIMessage | None:
        if "say" in step:
            return AIMessage(step["say"])
        calls = [
            tool_call(name=self.names[each["call"]], args=dict(each["args"]), id=f"{at}.{number}:0")
            for number, each in enumerate(step.get("calls", [step]))
            if each["call"] in self.names
        ]
        return AIMessage("", tool_calls=calls) if calls else None

    def _repeat(self, last: AIMessage, failed: Collection[str]) -> AIMessage | None:
        calls = []
        for call in last.tool_calls:
            place, tries = _read(call["id"])
            if self.fails is not None and place in failed and place not in self.fails and tries + 1 < TRIES:
                calls.append(tool_call(name=call["name"], args=call["args"], id=f"{place}:{tries + 1}"))
        return AIMessage("", tool_calls=calls) if calls else None


def find_failed(messages: Sequence[BaseMessage]) -> set[str]:
    """Return the calls, as `"step.call"`, whose last answer was an error."""
    answers = [each for each in messages if isinstance(each, ToolMessage)]
    last = {_read(each.tool_call_id)[0]: each.status for each in answers}
    return {place for place, status in last.items() if status == "error"}


def _read(id_: str | None) -> tuple[str, int]:
    place, _, tries = (id_ or "").partition(":")
    return place, int(tries or 0)


def summary_of(agents: JsonObject) -> list[tuple[str, str, Sequence[Mapping[str, Any]]]]:
    good = [(name, "good", agents[name]) for name in ("good", "also")]
    return [*good, *((each["what"], each["kind"], each["does"]) for each in agents["bad"])]


def tools_of(steps: Sequence[Mapping[str, Any]]) -> set[str]:
    return {each["call"] for step in steps for each in step.get("calls", [step]) if "call" in each}
