"""ToolSearch: chooses the tools of a large toolkit that the planner sees, and answers its searches for more.

Tools are chosen once per turn, then only appended: attempts start alike, and the prompt's prefix stays cached. The
index does not decide which tool may be called.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Sequence
from functools import cached_property, partial
from typing import Any, TypeAlias

from langchain_core.messages import ToolMessage
from langgraph.store.base import BaseStore

from ..context import GeckoContext
from ..errors import GeckoError
from ..masking import mask
from ..models.ask import AnyAsk, FunctionCall, Reply
from ..models.formatting import cut, one_line
from ..models.node import with_store
from ..state import Call, JsonObject, Taught
from ..tools import Toolkit
from ..tools.lessons import place_of
from ..tools.spec import unique_name
from ..values.digest import digest
from .index import ToolIndex, fuse, is_installed, recall

MOST_SEARCHES = 10
"""Searches in one attempt; after them the planner has no search tool."""

MOST_TAUGHT, MOST_SHARED = 300, 10_000
"""The most pairs of a need and the tool that served it, kept in a thread, and read from a store for all threads."""
PLACE = ("gecko", "taught")

ABOUT_CHARS, NEED_CHARS = 200, 2_000
ABOUT = """Find more tools: only some of {} are given. What is found can be called from the next message on.
Search before you state that no tool fits."""
QUERY = {"type": "string", "description": "the tool's purpose, in plain words"}
PARAMETERS: JsonObject = {"type": "object", "properties": {"query": QUERY}, "required": ["query"]}

Steps: TypeAlias = Generator[list[Any], list[Reply], list[Taught]]


def teach(taught: Sequence[Taught], served: Iterable[tuple[str, str]]) -> list[Taught]:
    """Return a thread's pairs of need and tool, with those of new successful calls added; the latest are kept."""
    news: list[Taught] = [{"need": cut(need, budget=NEED_CHARS), "tool": tool} for need, tool in served]
    old = [each for each in taught if each not in news]
    return [*old, *news][-MOST_TAUGHT:]


def exchange(store: BaseStore, toolkit: Toolkit, known: Sequence[Taught]) -> list[Taught]:
    """Write the pairs that a store lacks, with secrets masked; return those of all threads, the latest last."""
    places = {place_of(tool.name, tool.parameters): tool.name for tool in toolkit}
    items = store.search(PLACE, limit=MOST_SHARED)
    found = [each for each in items if places.get(each.namespace[-1]) == each.value["tool"]]
    kept = {each.key for each in found}
    for tool, each in ((toolkit[each["tool"]], each) for each in known if each["tool"] in toolkit):
        value = {**each, "need": mask(each["need"])}
        if (key := digest(value)) not in kept:
            store.put((*PLACE, place_of(tool.name, tool.parameters)), key, value, index=False)
    by_age = sorted(found, key=lambda each: each.updated_at)
    return [{"need": each.value["need"], "tool": each.value["tool"]} for each in by_age]


class ToolSearch:
    """Finds tools for the planner and answers its searches; builds an index of words if none is given.

    Raises:
        GeckoError: The index is not a ToolIndex, or lacks one of the tools.
    """

    def __init__(self, toolkit: Toolkit, index: ToolIndex | None, default: GeckoContext) -> None:
        if index is not None and not isinstance(index, ToolIndex):
            raise GeckoError(f"index: expected a ToolIndex.build(toolkit), got {type(index).__name__}")
        if index is not None and (missing := next((name for name in toolkit.names if name not in index), None)):
            raise GeckoError(f"index: built from other tools, without {missing!r}: expected a ToolIndex.build(toolkit)")
        self._toolkit, self._index = toolkit, index
        if self.is_needed(default):
            self.index  # noqa: B018 - build it now, so that the first turn does not wait

    def is_needed(self, context: GeckoContext) -> bool:
        """Return whether there are more tools than a planner is shown, and they can be searched."""
        return len(self._toolkit) > context.max_tools and (self._index is not None or is_installed())

    @cached_property
    def index(self) -> ToolIndex:
        return self._index or ToolIndex.build(self._toolkit)

    @cached_property
    def _dicts(self) -> dict[str, JsonObject]:
        return dict(zip(self._toolkit.names, self._toolkit.as_openai(), strict=True))

    @cached_property
    def name(self) -> str:
        return unique_name("search_tools", {*self._dicts, *(each["function"]["name"] for each in self._dicts.values())})

    def learn(self, taught: Sequence[Taught], served: Iterable[tuple[str, str]] = ()) -> Steps:
        """Return a thread's pairs after successful calls, with those of all threads if the graph has a store.

        The thread's own pairs are the latest and are kept first.
        """
        known = teach(taught, served)
        shared = yield from with_store(exchange, self._toolkit, known)
        return teach(shared or [], ((each["need"], each["tool"]) for each in known))

    def bind(self, names: Sequence[str], searches: int) -> list[JsonObject]:
        """Return the function dicts of the named tools, and the search tool while searches are left."""
        search = {"name": self.name, "description": ABOUT.format(len(self._toolkit)), "parameters": PARAMETERS}
        left = [{"type": "function", "function": search}] if searches < MOST_SEARCHES else []
        return [*(self._dicts[name] for name in names if name in self._dicts), *left]

    def find(
        self,
        need: str,
        k: int,
        context: GeckoContext,
        *,
        allowed: Collection[str] | None = None,
        taught: Sequence[Taught] = (),
    ) -> Generator[list[AnyAsk], list[Reply], list[str]]:
        """Return the names of the tools that fit, best first; by words alone if the embeddings or the reranker fail.

        A tool that served a need in similar words before counts as much as a search result.
        """
        known = recall(need, [each for each in taught if each["tool"] in self.index], allowed)
        look = partial(self.index.search, need, k, allowed=allowed)
        if not self.index.uses_plugins:
            return [each.name for each in fuse([look(), known])][:k]
        (reply,) = yield [FunctionCall(function=look, timeout_s=context.tool_timeout_s)]
        found = self.index.match_words(need, k, allowed=allowed) if reply.failure is not None else reply.value
        return [each.name for each in fuse([found, known])][:k]

    def answer(
        self, calls: Sequence[Call], shown: Sequence[str], searches: int, context: GeckoContext
    ) -> Generator[list[AnyAsk], list[Reply], tuple[list[Call], JsonObject]]:
        """Return the calls other than searches, and the attempt's update with the answers to the searches.

        Found tools stay visible, up to `max_tools`. So do called tools, found or not: their next call needs the schema.
        """
        asked = [call for call in calls if call["name"] == self.name][: max(0, MOST_SEARCHES - searches)]
        others = [call for call in calls if call not in asked]
        shown, answers = list(dict.fromkeys([*shown, *(call["name"] for call in others)])), list[ToolMessage]()
        for call in asked:
            need = cut(str(call["args"].get("query") or ""), budget=NEED_CHARS)
            ranked = (yield from self.find(need, context.top_k + len(shown), context)) if need else []
            room = max(0, max(context.max_tools, context.top_k) - len(shown))
            new = [name for name in ranked if name not in shown][: min(context.top_k, room)]
            text = self._format(new, [name for name in ranked[: context.top_k] if name in shown], room)
            answers.append(ToolMessage(text, tool_call_id=call["id"], name=call["name"]))
            shown += new
        found = {"trace": answers, "offered_tools": shown, "searches": searches + len(asked)}
        return others, found

    def _format(self, new: Sequence[str], given: Sequence[str], room: int) -> str:
        functions = [self._dicts[name]["function"] for name in new if name in self._dicts]
        lines = [f"{each['name']}: {cut(one_line(each['description']), budget=ABOUT_CHARS)}" for each in functions]
        lines += [f"given already: {', '.join(given)}"] if given else []
        lines += [] if room else ["no more tools can be given here"]
        return "\n".join(lines) or "no tool fits these words"
