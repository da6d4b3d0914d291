"""Observations: the outcome of real calls, one JSON line each, written masked; unusable rows do not stop a reader."""

from __future__ import annotations

import json
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, get_args

from ..errors import GeckoError, PatchConflict
from ..masking import MASK, mask
from ..state import CallStatus, Json, JsonObject, Patch, Step
from .digest import digest, find_non_json
from .origins import find_untrusted, trusted_part
from .patch import apply_patch, booked_patch, fold_patches
from .places import as_text, scalars_of

LOG = logging.getLogger(__name__)
Observe: TypeAlias = "str | Path | Callable[[JsonObject], Any] | None"
"""The target of rows of real calls: a file, to which each is appended, or a function that receives each, masked."""

ROW_VERSION = 1
HOLE = "…"
NAMED = 20
"""Most bad rows per cause that are listed; the others are counted."""

_KINDS = {"tool": str, "args": dict, "status": str, "source": str, "versions": dict, "shown": list, "later": list}
_KINDS |= {"before": dict, "change": list, "lessons": list}
_FIELDS = ("tool", "args", "status", "result", "before", "change", "shown", "later", "source", "versions", "lessons")


@dataclass(frozen=True, slots=True)
class Observation:
    """One real call.

    Args:
        tool: The tool's name.
        args: The arguments as sent.
        status: `ok` or `error`.
        result: The result, or the error.
        before: The trusted part of the task state before the call; None if nothing is known.
        change: The JSON Patch of `before` by the call; None if unknown.
        shown: Earlier reads of the same thread, each `{"name", "args", "result"}`.
        later: Later reads, up to the next write.
        source: The row's origin: a file, a thread.
        versions: The versions that answered, such as `{"api": "1.2"}`; rows of different versions may contradict each
            other.
        lessons: The agent's conclusions, each `{"part", "says", "status"}`: a proposal for a part of the tool's
            contract, or a rule that was closed or refuted.
    """

    tool: str
    args: JsonObject
    status: CallStatus
    result: Json
    before: JsonObject | None = None
    change: Patch | None = None
    shown: Sequence[JsonObject] = ()
    later: Sequence[JsonObject] = ()
    source: str = ""
    versions: JsonObject = field(default_factory=dict)
    lessons: Sequence[JsonObject] = ()

    @property
    def after(self) -> JsonObject | None:
        """The state after the call, None if unknown."""
        if self.before is None or self.change is None:
            return None
        after: JsonObject = apply_patch(self.before, self.change)
        return after

    @property
    def digest(self) -> str:
        """Equal for two observations of the same call in the same state with the same answer."""
        return digest([self.tool, self.args, self.before, self.status, self.result, self.change])

    @property
    def question(self) -> str:
        """Equal for two observations of the same call in the same state."""
        return digest([self.tool, self.args, self.before])

    def to_row(self, *, masked: bool = True) -> JsonObject:
        """Return the row, masked unless it stays in this process; empty keys are omitted."""
        row = {key: getattr(self, key) for key in _FIELDS}
        known = (*_FIELDS[:4], *(key for key in ("before", "change") if row[key] is not None))
        kept = {key: value for key, value in row.items() if key in known or value}
        whole: JsonObject = {"v": ROW_VERSION, **kept}
        return mask_values(whole) if masked else whole

    @classmethod
    def from_row(cls, row: Any) -> Observation:
        """Return a row's observation. Raises ValueError with the cause if it is invalid."""
        if not isinstance(row, dict) or row.get("v") != ROW_VERSION:
            raise ValueError("no observation of this version")
        for key, kind in _KINDS.items():
            if (key in row or key in _FIELDS[:3]) and not isinstance(row.get(key), kind):
                raise ValueError(f"no usable `{key}`")
        if row["status"] not in get_args(CallStatus):
            raise ValueError("no usable `status`")
        if find_non_json(row):
            raise ValueError("no JSON that can be stored")
        made = cls(**{"result": None, **{key: row[key] for key in _FIELDS if key in row}})
        try:
            _ = made.after
        except PatchConflict:
            raise ValueError("its change does not apply") from None
        return made


def kind_of(error: Json, args: Mapping[str, Any]) -> str:
    """Return a text that errors of one kind share: without quoted text, words with digits, and argument values."""
    text = as_text(error)
    for value in sorted(
        {str(each) for each in args.values() if isinstance(each, str | int | float)}, key=len, reverse=True
    ):
        if len(value) > 2 or (value and not value.isalnum()):
            text = text.replace(value, HOLE)
    return re.sub(rf"{HOLE}(?:[\s,]*{HOLE})+", HOLE, re.sub(r"'[^']*'|\[[^\]]*\]|[\w.:-]*\d[\w.:-]*", HOLE, text))[:300]


def mask_values(value: Json) -> Json:
    """Return JSON with `…` in place of likely secrets, also by their key."""
    if isinstance(value, dict):
        return {key: _mask_member(key, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [mask_values(each) for each in value]
    return mask(value) if isinstance(value, str) else value


def _mask_member(key: str, value: Json) -> Json:
    if not isinstance(value, str):
        return mask_values(value)
    line = f"{key}={value}"
    masked = mask(line)
    return mask(value) if masked == line else MASK


def is_masked(value: Json) -> bool:
    """Return whether a part of a value was masked, so that equal values may have been different."""
    return any(isinstance(each, str) and MASK in each for each in scalars_of(value))


def without_masked(value: Any) -> Any:
    """Return JSON without the masked members of objects, whose values are unknown."""
    if isinstance(value, list):
        return [without_masked(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: without_masked(each) for key, each in value.items() if not (isinstance(each, str) and MASK in each)}


@dataclass(slots=True)
class BadRows:
    """Unusable rows: counts by cause, and the first names of each cause."""

    counts: Counter[str] = field(default_factory=Counter)
    named: dict[str, list[str]] = field(default_factory=dict)

    def add(self, cause: str, where: str) -> None:
        self.counts[cause] += 1
        if len(known := self.named.setdefault(cause, [])) < NAMED:
            known.append(where)

    def merge(self, other: BadRows) -> None:
        """Add another one's counts."""
        self.counts.update(other.counts)
        for cause, names in other.named.items():
            self.named[cause] = [*self.named.get(cause, ()), *names][:NAMED]

    def lines(self) -> list[str]:
        more = {cause: self.counts[cause] - len(names) for cause, names in self.named.items()}
        return [
            f"{count:,} rows: {cause}: {', '.join(self.named[cause])}{f' and {more[cause]:,} more' * bool(more[cause])}"
            for cause, count in self.counts.most_common()
        ]


class Observer:
    """Receives the rows of real calls. It never raises, so that observed calls do not depend on it.

    Raises:
        GeckoError: The target is neither a file name nor a function.
    """

    everywhere: ClassVar[Observer | None] = None
    """The default observer of the process, set by the pytest plugin."""

    def __init__(self, target: Observe) -> None:
        if not (callable(target) or isinstance(target, str | Path)):
            raise GeckoError(f"observe: expected a file or a function, got {type(target).__name__}")
        self.target = target

    @classmethod
    def of(cls, given: Observe) -> Observer | None:
        """Return the observer for a user's argument, else that of the process; None if there is none."""
        return cls.everywhere if given is None else cls(given)

    def __call__(self, make: Callable[[], Observation]) -> None:
        """Write the row that a function makes; a file row is written in one write and synced."""
        try:
            written = make().to_row()
            if callable(self.target):
                self.target(written)
                return
            with Path(self.target or "").open("ab", buffering=0) as file:
                file.write((json.dumps(written, ensure_ascii=False) + "\n").encode("utf-8", "replace"))
                os.fsync(file.fileno())
        except Exception as error:  # noqa: BLE001 - the boundary to users' files and functions
            LOG.warning("a real call was made, and its observation could not be written: %s", mask(str(error)))


def observe_step(
    step: Step,
    done: Sequence[Step],
    *,
    start: JsonObject,
    reads: Callable[[str], bool],
    supposed: Sequence[str] = (),
    taught: bool = False,
    **more: Any,
) -> Observation:
    """Return the observation of a real step.

    Args:
        step: The step, with an outcome.
        done: The steps before it.
        start: The task state before these.
        reads: Whether a tool, by name, only reads.
        supposed: JSON Pointers to the supposed parts of `start`.
        taught: True if a learned contract determined the change, which is then no evidence.
        more: Further fields of the observation.
    """
    outcome, call = step["outcome"], step["call"]
    ran = [each for each in done if "outcome" in each]
    before: JsonObject | None = None
    try:
        state = fold_patches(start, [booked_patch(each["outcome"]) for each in ran])
        before = trusted_part(state, find_untrusted(start, supposed, ran)) if state else None
    except PatchConflict:
        LOG.debug("the state before %s is not known", call["name"])
    is_unchanged = outcome["status"] == "error" or reads(call["name"])
    is_known = is_unchanged or bool(outcome["patch"] and not outcome.get("supposed") and not taught)
    shown = [_shown(each) for each in ran if not each["outcome"]["simulated"] and reads(each["call"]["name"])]
    return Observation(
        call["name"],
        call["args"],
        outcome["status"],
        outcome["result"],
        before=before,
        change=(outcome["patch"] or []) if is_known and before is not None else None,
        shown=shown,
        **more,
    )


def _shown(step: Step) -> JsonObject:
    return {"name": step["call"]["name"], "args": step["call"]["args"], "result": step["outcome"]["result"]}
