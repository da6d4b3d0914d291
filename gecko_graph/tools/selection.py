"""Choosing some tools of many: an API of 600 operations is more than a provider takes and a prompt holds."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.util import find_spec

from ..errors import ToolkitError, did_you_mean
from .problems import Problem
from .spec import ToolSpec

MAX_TOOLS = 128
"""Tools that OpenAI takes in one request; others take about as many."""

WINDOW_TOKENS = 128_000
CHARS_PER_TOKEN = 4

_SHOWN = 5


def select_tools(
    tools: Sequence[ToolSpec], patterns: Mapping[str, Iterable[str] | str], broken: Iterable[Problem] = ()
) -> list[ToolSpec]:
    """Return the tools that match a pattern of every kind that is given, in order; see `Toolkit.select`.

    `broken` is what was left out of the source: an error for its name gives the reason.
    """
    chosen = list(tools)
    for kind, given in patterns.items():
        values_of, matches = _KINDS[kind]
        wanted = [given] if isinstance(given, str) else list(given)
        known = dict.fromkeys(value for tool in tools for value in values_of(tool))
        hit: set[str] = set()
        for pattern in wanted:
            if not isinstance(pattern, str):
                raise ToolkitError(f"select: {kind}: expected text, got {type(pattern).__name__}")
            wild = {*"*?["} & {*pattern}  # others are looked up: there may be thousands
            found = {each for each in known if matches(each, pattern)} if wild else {pattern} & known.keys()
            if not found:
                raise ToolkitError(_no_match(kind, pattern, list(known), broken))
            hit |= found
        if wanted:
            chosen = [tool for tool in chosen if not hit.isdisjoint(values_of(tool))]
    if tools and not chosen:
        kinds = ", ".join(kind for kind, given in patterns.items() if given)
        raise ToolkitError(f"select: no tool matches all of {kinds}; each of them matches others")
    return chosen


def _no_match(kind: str, pattern: str, known: list[str], broken: Iterable[Problem]) -> str:
    reason = next((f"; {problem.message}" for problem in broken if problem.tool == pattern), "")
    plain = pattern.replace("*", "")
    part = next((f" (did you mean {one}?)" for one in known if plain and plain.lower() in one.lower()), "")
    listed = ", ".join(known[:_SHOWN]) + (f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else "")
    hint = reason or did_you_mean(plain, known) or part or f"; there are {listed or 'none'}"
    return f"select: {kind}: {pattern!r} matches nothing{hint}"


def _paths_of(tool: ToolSpec) -> list[str]:
    return [tool.binding.path] if tool.binding is not None else []


def _matches(value: str, pattern: str) -> bool:
    return value == pattern or fnmatchcase(value, pattern)


def _matches_path(path: str, pattern: str) -> bool:
    """Return whether a path template matches: `*` is within a segment, `**` any number of segments."""
    parts = re.split(r"(/\*\*|\*\*|\*)", pattern)
    wild = {"/**": r"(?:/.*)?", "**": ".*", "*": "[^/]*"}
    return re.fullmatch("".join(wild.get(part, re.escape(part)) for part in parts), path) is not None


_KINDS: dict[str, tuple[Callable[[ToolSpec], Sequence[str]], Callable[[str, str], bool]]] = {
    "names": (lambda tool: [tool.name], str.__eq__),
    "match": (lambda tool: [tool.name], _matches),
    "tags": (lambda tool: tool.tags, _matches),
    "paths": (_paths_of, _matches_path),
}


def find_size_problems(tools: Sequence[ToolSpec]) -> Iterator[Problem]:
    """Yield a problem where there are more tools than providers take, or than half of a context window holds.

    With the extra `retrieval` there is none: the planner is shown those that fit.
    """
    if find_spec("bm25s") is not None:
        return
    parts = [[tool.name, tool.description, tool.parameters] for tool in tools]
    tokens = len(json.dumps(parts)) // CHARS_PER_TOKEN
    hint = "; choose some with select (--only, --tag), or have them found: pip install 'gecko-graph[retrieval]'"
    hint += _largest_groups(tools)
    if len(tools) > MAX_TOOLS:
        yield Problem("all tools", "size", f"{len(tools)} tools, and providers take {MAX_TOOLS} at most{hint}")
    if tokens > WINDOW_TOKENS // 2:
        share = f"{100 * tokens // WINDOW_TOKENS} % of a context window of {WINDOW_TOKENS // 1000}k"
        estimate = f"about {tokens // 1000}k tokens (estimated: characters / {CHARS_PER_TOKEN})"
        yield Problem("all tools", "size", f"their schemas take {estimate} of every planner prompt, {share}{hint}")


def _largest_groups(tools: Sequence[ToolSpec]) -> str:
    """Return a hint at the largest tags; where tags do not tell the tools apart, at the largest paths."""
    groups, kind = Counter(tag for tool in tools for tag in tool.tags), "tags"
    if len(groups) < 2:
        paths = ("/".join(path.split("/")[:3]) for tool in tools for path in _paths_of(tool))
        groups, kind = Counter(f"{path}/**" for path in paths), "paths"
    largest = ", ".join(f"{group} ({number})" for group, number in groups.most_common(_SHOWN))
    return f": the largest {kind} are {largest}" if groups else ""
