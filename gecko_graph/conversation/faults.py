"""Faults: rungs at the beginning of the ladder for tools that fail, lag or return too much.

Half of the needed tools have the fault, drawn by the seed. An error changes nothing. Only reads that a contract or
`simulate` answers can lag or return too much.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

from ..models.ask import FunctionCall, Reply
from ..state import Json, JsonObject, Step
from ..tools.spec import ToolSpec
from ..values.digest import digest
from ..values.patch import booked_patch, fold_patches
from ..values.places import places
from ..world.rung import Answer, Pass, Rung, RungRequest, RungResult
from ..world.rungs import decide

Fault: TypeAlias = Literal["fails_once", "times_out", "rate_limited", "answers_late", "answers_more"]
FAULTS: Sequence[Fault] = get_args(Fault)

ERRORS: dict[str, tuple[int, str]] = {
    "fails_once": (1, "internal error: the service could not answer, try again"),
    "times_out": (1, "timeout: no answer within 30 seconds"),
    "rate_limited": (2, "too many requests: try again later"),
}
"""Number of a tool's first calls that fail, and the error."""

MOST_ROWS = 3
"""Most unrequested rows."""

Asking: TypeAlias = Generator[list[FunctionCall], list[Reply], RungResult]


def build_faults(kinds: Sequence[Fault], needed: Sequence[ToolSpec], *, seed: int) -> list[Rung]:
    return [Rung(kind, partial(_strike, kind=kind, struck=_draw(kind, needed, seed))) for kind in kinds]


def _draw(kind: Fault, needed: Sequence[ToolSpec], seed: int) -> set[str]:
    names = [tool.name for tool in needed if tool.reads or kind in ERRORS]
    return {*sorted(names, key=lambda name: digest([seed, kind, name]))[: (len(names) + 1) // 2]}


def _strike(request: RungRequest, *, kind: Fault, struck: set[str]) -> RungResult | Asking:
    if request.tool.name not in struck:
        return Pass("the tool does not have this fault")
    if kind in ERRORS:
        most, text = ERRORS[kind]
        failed = [step for step in _answered(request.steps, request.tool.name) if step["outcome"]["rung"] == kind]
        return Answer("error", text, []) if len(failed) < most else Pass("it has had this fault")
    return _lag(request) if kind == "answers_late" else _say_more(request)


def _answered(steps: Sequence[Step], name: str | None = None) -> list[Step]:
    return [step for step in steps if "outcome" in step and name in (None, step["call"]["name"])]


def _lag(request: RungRequest) -> Asking:
    """Answer a tool's first read after a write from the state before the write."""
    steps = _answered(request.steps)
    changes = [booked_patch(step["outcome"]) for step in steps]
    writes = [at for at, patch in enumerate(changes) if patch and steps[at]["outcome"]["rung"] != "clock"]  # the user's
    if not writes or _answered(steps[writes[-1] + 1 :], request.tool.name):
        return Pass("nothing has changed since")
    old = fold_patches(request.before, changes[: writes[-1]])
    answer = yield from decide(replace(request, state=old))
    return answer or Pass("no rule answers")


def _say_more(request: RungRequest) -> Asking:
    """Answer a read with additional rows of the state."""
    answer = yield from decide(request)
    if answer is None or answer.status == "error":
        return Pass("no rule answers")
    add, result = partial(_add_rows, state=request.state, seed=request.context.seed), answer.result
    if not isinstance(result, dict):
        return replace(answer, result=add(result))
    longer = {name: add(value) for name, value in result.items()}
    if longer == result:
        longer["also_found"] = add([result])[1:]
    return replace(answer, result=longer)


def _add_rows(rows: Json, *, state: JsonObject, seed: int) -> Any:
    """Return a list of objects with other objects of the state that have the same keys; other values unchanged."""
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], dict):
        return rows
    columns = rows[0].keys()
    objects = (each for _, each in places(state) if isinstance(each, dict) and columns <= each.keys())
    alike = [{name: each[name] for name in columns} for each in objects]
    others = sorted((each for each in alike if each not in rows), key=lambda each: digest([seed, each]))
    return [*rows, *others[:MOST_ROWS]]
