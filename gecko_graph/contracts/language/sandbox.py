"""What an expression may touch and what it may cost.

Jinja2 is the grammar of the contract language; nothing of its runtime is used. Expressions are evaluated by closures
of our own over plain JSON values, so there is no attribute of a Python object to climb to, and every operation that can
build or read much counts what it takes: bytes of text and items, and time by a clock that is read per expression and
per item.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter, thread_time
from typing import Any, NoReturn

from ...state import Json

MAX_INT = 2**64
MAX_DEPTH = 100
"""Levels that a value may be nested; the task state has the same limit."""

_ESCAPED_SPACES = "\n\t\r"
_ITEM = 64
"""Bytes that one item of a list or object is taken to need: its reference and a small value."""

_GRACE = 0.03
"""Seconds that an evaluation gets once when its time is over: a thousand runs at once make a collection of garbage take
half a second, and a check that it hits has done nothing wrong."""


class Fault(Exception):
    """Why an expression has no value. Never leaves `contracts`: Expression turns it into EvaluationFailed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an evaluation may cost.

    Args:
        seconds: Time of one evaluation, or of one phase of a contract (its requirements, its effects, its ensures).
            The rest of 250 ms is for what no clock interrupts (one operation in C, a collection of the garbage that the
            evaluation has made) and for `_GRACE`.
        memory: Bytes of text and items that it may build, estimated from above.
        items: Members of one list.
        operations: Patch operations of one contract.
    """

    seconds: float = 0.15
    memory: int = 40_000_000
    items: int = 100_000
    operations: int = 1_000


LIMITS = Limits()


class Scope:
    """The names that expressions see during one call, and the budget they share.

    Args:
        values: Name to JSON value. A dict is used as it is, so that a subclass can supply names lazily (`__missing__`).
        limits: What evaluations may cost.
        seed: Seed of `new_id`.
        call_id: What makes the identifiers of this call differ from those of others; a function where that costs time.
    """

    __slots__ = (
        *("_cpu", "_excused", "_made", "_room", "call_id", "deadline", "limits", "place", "seed", "values"),
        "__weakref__",
    )

    def __init__(
        self,
        values: Mapping[str, Any],
        limits: Limits = LIMITS,
        seed: int = 0,
        call_id: str | Callable[[], str] = "",
    ) -> None:
        self.values = values if isinstance(values, dict) else dict(values)
        self.limits = limits
        self.seed = seed
        self.call_id = call_id
        self._made: dict[str, int] = {}
        self.place = ""
        self.start()

    def start(self) -> None:
        """Reset the budgets of time and memory, for the next evaluation or phase of a contract."""
        self._room = self.limits.memory
        self._cpu = thread_time()
        self._excused = False
        self.deadline = perf_counter() + self.limits.seconds

    def tick(self) -> None:
        """Read the clock. Raises Fault when the time is over."""
        if perf_counter() > self.deadline:
            self.late()

    def late(self) -> None:
        """Raise Fault if the time was really used here; other threads may have had the processor meanwhile."""
        now = thread_time()
        left = self.limits.seconds - (now - self._cpu)
        if left <= 0 and not self._excused:
            self._excused, left = True, _GRACE
            self._cpu = now + _GRACE - self.limits.seconds
        if left <= 0:
            raise Fault(f"it takes longer than {self.limits.seconds * 1000:.0f} ms")
        self.deadline = perf_counter() + left

    def take(self, size: int) -> None:
        """Take bytes from the memory budget. Raises Fault when it is spent."""
        self._room -= size
        if self._room < 0:
            self.spent()

    def spent(self) -> NoReturn:
        """Raise Fault: the memory budget is used up."""
        raise Fault(f"it builds more than {self.limits.memory / 1_000_000:g} MB")

    def take_text(self, *parts: str, growth: int = 1) -> None:
        """Take what a text put together from `parts` needs; letters beyond ASCII may become `growth` characters."""
        width = 1 if all(part.isascii() for part in parts) else 4 * growth
        self.take(width * sum(len(part) for part in parts))

    def take_items(self, count: int) -> None:
        """Take what a new list of `count` items needs. Raises Fault when it is longer than a list may be."""
        if count > self.limits.items:
            raise Fault(f"a list of more than {self.limits.items:,} items")
        self._room -= _ITEM * count
        if self._room < 0:
            self.spent()

    def next_made(self) -> str:
        """What tells the next identifier from the others of this call: `place`, and how many were made there before."""
        count = self._made.get(self.place, 0)
        self._made[self.place] = count + 1
        return f"{self.place} {count}"


class Missing:
    """The value of a name, key or index that is not there. Only `is defined`, `default` and `at` accept it."""

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what

    def fail(self) -> NoReturn:
        """Raise Fault, saying what is missing."""
        raise Fault(f"{self.what} is undefined")

    def __bool__(self) -> bool:
        self.fail()


def given(value: Any) -> Json:
    """The value itself, unless it is missing. Raises Fault."""
    if type(value) is Missing:
        value.fail()
    return value


_KINDS: dict[type, str] = {
    type(None): "none", bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list",
    dict: "an object", Missing: "something undefined",
}  # fmt: skip


_PLAIN = frozenset((type(None), bool, int, float))
"""Types whose values are settled as they are."""


def kind(value: Any) -> str:
    """What a value is, for messages."""
    return _KINDS.get(type(value), type(value).__name__)


def a_text(value: Any, what: str) -> str:
    """`value` if it is a text. Raises Fault, naming `what` needs it."""
    if isinstance(value, str):
        return value
    raise Fault(f"{what} needs a text, not {kind(given(value))}")


def a_number(value: Any, what: str) -> int | float:
    """`value` if it is a number. Raises Fault, naming `what` needs it."""
    if type(value) in (int, float):
        return value  # type: ignore[no-any-return]
    raise Fault(f"{what} needs a number, not {kind(given(value))}")


def a_list(value: Any, what: str) -> list[Json]:
    """`value` if it is a list. A text is never read letter by letter, an object never key by key. Raises Fault."""
    if isinstance(value, list):
        return value
    hint = "; `| list` gives its letters" if isinstance(value, str) else ""
    hint = "; use `| keys`, `| values` or `| items`" if isinstance(value, dict) else hint
    raise Fault(f"{what} needs a list, not {kind(given(value))}{hint}")


def an_object(value: Any, what: str) -> dict[str, Json]:
    """`value` if it is an object. Raises Fault, naming `what` needs it."""
    if isinstance(value, dict):
        return value
    raise Fault(f"{what} needs an object, not {kind(given(value))}")


def a_small_int(value: Any, what: str, limit: int) -> int:
    """`value` if it is a whole number within ±limit. Raises Fault."""
    if type(value) is int and -limit <= value <= limit:
        return value
    raise Fault(f"{what} needs a whole number of at most {limit}")


def measure(scope: Scope, value: Json, depth: int = 0) -> None:
    """Take what printing `value` needs, before it is printed: values that hold one another twice grow without bound.

    Raises:
        Fault: It is too large, too deep, or holds something undefined.
    """
    if isinstance(value, str):
        scope.take(_printed_size(value))
    elif isinstance(value, dict | list):
        if depth >= MAX_DEPTH:
            raise Fault(f"a value nested more than {MAX_DEPTH} levels deep")
        scope.tick()
        scope.take(8 * len(value) + 8)
        for key in value if isinstance(value, dict) else ():
            scope.take(_printed_size(key))
        for member in value.values() if isinstance(value, dict) else value:
            measure(scope, member, depth + 1)
    else:
        scope.take(24)
        given(value)


def _printed_size(value: str) -> int:
    """Bytes for a text inside a printed value: escapes count, and pieces, their sum and copies live at once."""
    width = 4 if value.isascii() else 16
    plain = value
    for space in _ESCAPED_SPACES:
        plain = plain.replace(space, "")
    if not plain.isprintable():
        return 10 * width * len(value) + 2
    escapes = len(value) - len(plain) + sum(value.count(quote) for quote in "\\'\"")
    return width * (len(value) + escapes + 2)


def text(scope: Scope, value: Any) -> str:
    """How a value prints in a text: numbers and objects as Python prints them, as Jinja does. Raises Fault."""
    if type(value) is str:
        return value
    measure(scope, value)
    return str(value)


def json_text(scope: Scope, value: Any) -> str:
    """A value as JSON text, keys in the order they have. Raises Fault."""
    measure(scope, value)
    return json.dumps(value, ensure_ascii=False)


def join(scope: Scope, parts: list[str], glue: str = "") -> str:
    """Put texts together. The one place where text grows. Raises Fault."""
    glued = len(glue) * max(len(parts) - 1, 0)
    width = 1 if glue.isascii() and all(part.isascii() for part in parts) else 4
    scope.take(width * (glued + sum(len(part) for part in parts)))
    return glue.join(parts)


def settle(scope: Scope, value: Any, depth: int = 0) -> Json:
    """A copy of a value that leaves the sandbox: plain JSON, shared with nothing, of bounded size. Raises Fault."""
    if isinstance(value, str):
        scope.take(len(value) if value.isascii() else 4 * len(value))
        return value
    if isinstance(value, list):
        _enter(scope, value, depth)
        return [member if type(member) in _PLAIN else settle(scope, member, depth + 1) for member in value]
    if isinstance(value, dict):
        _enter(scope, value, depth)
        return {
            key: member if type(member) in _PLAIN else settle(scope, member, depth + 1) for key, member in value.items()
        }
    if type(given(value)) in _PLAIN:
        return value
    raise Fault(f"{type(value).__name__} is no JSON value")


def _enter(scope: Scope, value: list[Json] | dict[str, Json], depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise Fault(f"a value nested more than {MAX_DEPTH} levels deep")
    scope.tick()
    scope.take(_ITEM * len(value) + _ITEM)
