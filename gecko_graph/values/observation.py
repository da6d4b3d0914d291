"""Observations: what a real call came to, one JSON line each; written masked, read without losing the rest."""

from __future__ import annotations

import json
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
"""Where the rows of real calls go: a file, to which each is added, or a function that is given it, masked."""

ROW_VERSION = 1
HOLE = "…"
NAMED = 20
"""Bad rows of each cause that are named; the others are counted."""

_KINDS = {"tool": str, "args": dict, "status": str, "source": str, "versions": dict, "shown": list, "later": list}
_KINDS |= {"before": dict, "change": list, "lessons": list}
_FIELDS = ("tool", "args", "status", "result", "before", "change", "shown", "later", "source", "versions", "lessons")


@dataclass(frozen=True, slots=True)
class Observation:
    """One call that was really made.

    Args:
        tool: The tool's name.
        args: The arguments as they were sent.
        status: `ok` or `error`.
        result: The result, or the error.
        before: The trusted part of the task state before; None if nothing is known of it.
        change: The JSON Patch by which `before` is known to have changed; None if that is not known.
        shown: The reads of the same thread before it, each `{"name", "args", "result"}`.
        later: Those after it, until something was written.
        source: Where the row comes from: a file, a thread.
        versions: What answered, such as `{"api": "1.2"}`: rows of different versions may contradict one another.
        lessons: What the agent that made it took from it, each `{"part", "says", "status"}`: what is proposed of which
            part of the tool's contract, or which rule it has closed or refuted.
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
        """The state after the call; None if it is not known."""
        if self.before is None or self.change is None:
            return None
        after: JsonObject = apply_patch(self.before, self.change)
        return after

    @property
    def digest(self) -> str:
        """The same for two observations of the same call in the same state with the same answer."""
        return digest([self.tool, self.args, self.before, self.status, self.result, self.change])

    @property
    def question(self) -> str:
        """The same for two observations of the same call in the same state."""
        return digest([self.tool, self.args, self.before])

    def to_row(self, *, masked: bool = True) -> JsonObject:
        """Return the row, masked unless it stays in this process; keys that say nothing are left out."""
        row = {key: getattr(self, key) for key in _FIELDS}
        known = (*_FIELDS[:4], *(key for key in ("before", "change") if row[key] is not None))
        kept = {key: value for key, value in row.items() if key in known or value}
        whole: JsonObject = {"v": ROW_VERSION, **kept}
        return mask_values(whole) if masked else whole

    @classmethod
    def from_row(cls, row: Any) -> Observation:
        """Return the observation of a row. Raises ValueError with the cause if it is none."""
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
    """Return a text that errors of one kind share: without what is quoted, words with digits, its arguments."""
    text = as_text(error)
    for value in sorted(
        {str(each) for each in args.values() if isinstance(each, str | int | float)}, key=len, reverse=True
    ):
        if len(value) > 2 or (value and not value.isalnum()):
            text = text.replace(value, HOLE)
    return re.sub(rf"{HOLE}(?:[\s,]*{HOLE})+", HOLE, re.sub(r"'[^']*'|\[[^\]]*\]|[\w.:-]*\d[\w.:-]*", HOLE, text))[:300]


def mask_values(value: Json) -> Json:
    """Return JSON with `…` in place of what looks like a secret, also by its name."""
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
    """Return whether something in a value was masked, so that equal values may have been different ones."""
    return any(isinstance(each, str) and MASK in each for each in scalars_of(value))


def without_masked(value: Any) -> Any:
    """Return JSON whose objects are without the members that were masked: nothing is known of them."""
    if isinstance(value, list):
        return [without_masked(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: without_masked(each) for key, each in value.items() if not (isinstance(each, str) and MASK in each)}


@dataclass(slots=True)
class BadRows:
    """Rows that cannot be used: how many by cause, and the first of each by name."""

    counts: Counter[str] = field(default_factory=Counter)
    named: dict[str, list[str]] = field(default_factory=dict)

    def add(self, cause: str, where: str) -> None:
        self.counts[cause] += 1
        if len(known := self.named.setdefault(cause, [])) < NAMED:
            known.append(where)

    def merge(self, other: BadRows) -> None:
        """Take what another one has counted."""
        self.counts.update(other.counts)
        for cause, names in other.named.items():
            self.named[cause] = [*self.named.get(cause, ()), *names][:NAMED]

    def lines(self) -> list[str]:
        more = {cause: self.counts[cause] - len(names) for cause, names in self.named.items()}
        return [
            f"{count:,} rows: {cause}: {', '.join(self.named[cause])}{f' and {more[cause]:,} more' * bool(more[cause])}"
            for cause, count in self.counts.most_common()
        ]


def write_rows(file: str | Path, rows: Iterable[Observation], *, add: bool = False) -> int:
    """Write observations, or add them to a file; return how many. Raises OSError."""
    count = 0
    with Path(file).open("a" if add else "w", encoding="utf-8") as target:
        for row in rows:
            target.write(json.dumps(row.to_row(), ensure_ascii=False) + "\n")
            count += 1
    return count


class Observer:
    """Takes the rows of real calls as they end. It never raises: what is observed does not depend on it.

    Raises:
        GeckoError: The target is neither a file's name nor a function.
    """

    everywhere: ClassVar[Observer | None] = None
    """Takes the rows if none is named: pytest's."""

    def __init__(self, target: Observe) -> None:
        if not (callable(target) or isinstance(target, str | Path)):
            raise GeckoError(f"observe: expected a file, or a function that takes a row, got {type(target).__name__}")
        self.target = target

    @classmethod
    def of(cls, given: Observe) -> Observer | None:
        """Return the observer of what a user has named, or that of the whole process; None if there is neither."""
        return cls.everywhere if given is None else cls(given)

    def __call__(self, make: Callable[[], Observation]) -> None:
        """Take the row that a function makes; in a file it is there, in one write, when this returns."""
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
    """Return the observation of a step that was really made.

    Args:
        step: The step, which has an outcome.
        done: The steps before it.
        start: The task state before these.
        reads: Whether a tool, by its name, only reads.
        supposed: JSON Pointers into `start` of what is only supposed.
        taught: True if what it changed is what a learned contract says, which is no evidence.
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
