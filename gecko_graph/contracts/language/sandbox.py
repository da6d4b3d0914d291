"""Restrict access and cost of expressions.

Expressions are evaluated by closures over plain JSON values, so that attributes of Python objects are out of reach.
Every operation that can build or read large values counts its cost: bytes of text and items, and time by a clock that
is read per expression and per item.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, thread_time
from typing import Any, NoReturn, TypeVar

from ...state import Json

MAX_INT = 2**64
MAX_DEPTH = 100
"""Most levels of nesting of a value; the task state has the same limit."""

_SPACES = str.maketrans("\n\t\r", "   ")
_ITEM = 64
"""Bytes counted for one item of a list or object: its reference and a small value."""

_GRACE = 0.03
"""Seconds until a thread's own time is first read (most evaluations are over by then, and reading it costs as much as
ten operators). They are also added once at the deadline, since with a thousand parallel runs a garbage collection takes
half a second, which is not the fault of the interrupted check."""


Kind = TypeVar("Kind")


class Fault(Exception):
    """Why an expression has no value. Never leaves `contracts`: Expression turns it into EvaluationFailed."""


class Scope:
    """The names available to expressions during one call, and their shared budget.

    Args:
        values: Name to JSON value. A dict is used directly, so that a subclass can supply names lazily (`__missing__`).
        seed: Seed of `new_id`.
        call_id: Makes the identifiers of this call unique; a function if computing it is expensive.
    """

    seconds = 0.15
    """Time of one evaluation, or of one phase of a contract (its requirements, its effects, its ensures).

    The rest of 250 ms is for work that the deadline cannot interrupt (one operation in C, a garbage collection) and for
    `_GRACE`.
    """
    memory = 40_000_000
    """Upper estimate of the bytes of text and items that an evaluation may build."""
    most_items = 100_000
    """Members of one list."""

    def __init__(self, values: Mapping[str, Any], seed: int = 0, call_id: str | Callable[[], str] = "") -> None:
        self.values = values if isinstance(values, dict) else dict(values)
        self.seed = seed
        self.call_id = call_id
        self.lets: dict[str, Any] = self.values
        self.trusts: Callable[[list[str | int]], bool] | None = None
        self.holes: list[OpenPart] | None = None
        """Collects unknown parts of a value; if None, an unknown part makes the whole value unknown."""
        self.unread: frozenset[str] = frozenset()
        """Root keys of the state that only reads can show, and none has shown."""
        self.partial: Mapping[str, list[dict[str, Any]]] = {}
        """Root keys of partly shown collections, with the fields of completely shown parts."""
        self.shows: Mapping[str, str] = {}
        """Root key to the reads that would show more."""
        self.assumes = self.lists_parts = False
        """Whether unknown things are assumed to exist."""
        self.doubts: list[str] = []
        """Reasons why found values may be wrong, for the result's notes."""
        self._made: dict[str, int] = {}
        self.place = ""
        self.start()

    def start(self) -> Scope:
        """Reset the budgets of time and memory, for the next evaluation or phase of a contract; return the scope."""
        self._room = self.memory
        self._cpu: float | None = None
        self.deadline = perf_counter() + _GRACE
        return self

    def tick(self) -> None:
        """Read the clock. Raises Fault after the deadline."""
        if perf_counter() > self.deadline:
            self.late()

    def late(self) -> None:
        """Raise Fault if this thread itself has used the time; other threads may have had the processor."""
        now = thread_time()
        if self._cpu is None:
            most = self.seconds - _GRACE
            passed = perf_counter() - self.deadline + _GRACE
            self._cpu, self._excused = now - min(passed, most), passed > most
        left = self.seconds - (now - self._cpu)
        if left <= 0 and not self._excused:
            self._excused, left = True, _GRACE
            self._cpu = now + _GRACE - self.seconds
        if left <= 0:
            raise Fault(f"it takes longer than {self.seconds * 1000:.0f} ms")
        self.deadline = perf_counter() + left

    def take(self, size: int) -> None:
        """Take bytes from the memory budget. Raises Fault when it is spent."""
        self._room -= size
        if self._room < 0:
            self.spent()

    def spent(self) -> NoReturn:
        """Raise Fault: the memory budget is used up."""
        raise Fault(f"it builds more than {self.memory / 1_000_000:g} MB")

    def take_text(self, *parts: str, growth: int = 1) -> None:
        """Take the bytes of a text joined from `parts`; non-ASCII letters may become `growth` characters."""
        width = 1 if all(map(str.isascii, parts)) else 4 * growth
        self.take(width * sum(map(len, parts)))

    def take_items(self, count: int) -> None:
        """Take the bytes of a new list of `count` items. Raises Fault when it is too long."""
        if count > self.most_items:
            raise Fault(f"a list of more than {self.most_items:,} items")
        self._room -= _ITEM * count
        if self._room < 0:
            self.spent()

    def count_identifier(self) -> str:
        """Return a suffix that makes the next identifier unique in this call: `place`, and a count."""
        count = self._made.get(self.place, 0)
        self._made[self.place] = count + 1
        return f"{self.place} {count}"


@contextmanager
def bound(values: dict[str, Any], *names: str) -> Iterator[None]:
    """Restore the values of these names afterwards."""
    outer = {name: values[name] for name in names if name in values}
    try:
        yield
    finally:
        for name in names:
            values.pop(name, None)
        values.update(outer)


def shown(what: str | ast.expr) -> str:
    """Return a text, or an expression's source; only for messages, since unparsing is slow."""
    return what if isinstance(what, str) else ast.unparse(what)


class Missing:
    """The value of an absent name, key or index. Only `defined`, `default` and `at` accept it."""

    __slots__ = ("_what",)

    def __init__(self, what: str | ast.expr) -> None:
        self._what = what

    @property
    def what(self) -> str:
        """The absent part, as written in the expression."""
        return shown(self._what)

    def fail(self) -> NoReturn:
        """Raise Fault, naming the missing part."""
        raise Fault(f"{self.what} is undefined")

    def __bool__(self) -> bool:
        self.fail()


@dataclass(frozen=True, slots=True)
class OpenPart:
    """A part of a result that the contract leaves open, with the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Blank:
    """A placeholder of an unknown value that gives a result its form."""

    value: Json


def require(value: Any) -> Json:
    """Return the value itself, unless it is missing. Raises Fault."""
    if type(value) is Missing:
        value.fail()
    return value


_KINDS: dict[type, str] = {
    type(None): "None", bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list",
    dict: "an object", Missing: "something undefined",
}  # fmt: skip


_PLAIN = frozenset((type(None), bool, int, float))
"""Types whose values need no copy."""


def kind(value: Any) -> str:
    """Return a value's type, for messages."""
    return _KINDS.get(type(value), type(value).__name__)


def _needs(name: str, wanted: type[Kind]) -> Callable[[Any, str], Kind]:
    def check(value: Any, what: str) -> Kind:
        if type(value) is wanted:
            return value
        raise Fault(f"{what} needs {name}, not {kind(require(value))}")

    return check


# each returns a value of its type, and otherwise raises Fault that names `what` needs it
a_text = _needs("a text", str)
a_list: Callable[[Any, str], list[Json]] = _needs("a list", list)
an_object: Callable[[Any, str], dict[str, Json]] = _needs("an object", dict)


def a_number(value: Any, what: str) -> int | float:
    """Return `value` if it is a number. Raises Fault, naming `what`."""
    if type(value) is int or type(value) is float:
        return value
    raise Fault(f"{what} needs a number, not {kind(require(value))}")


def a_small_int(value: Any, what: str, limit: int) -> int:
    """Return `value` if it is an integer within ±limit. Raises Fault."""
    if type(value) is int and -limit <= value <= limit:
        return value
    raise Fault(f"{what} needs a whole number of at most {limit}")


def measure(scope: Scope, value: Json, depth: int = 0) -> None:
    """Take the bytes for printing `value` in advance, since shared parts can make the text grow exponentially.

    Raises:
        Fault: It is too large, too deep, or contains an undefined part.
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
        require(value)


def _printed_size(value: str) -> int:
    """Return the bytes for a text inside a printed value: escapes, and simultaneous pieces and copies."""
    width = 4 if value.isascii() else 16
    escapes = sum(map(value.count, "\n\t\r\\'\""))
    return width * (len(value) + escapes + 2) if value.translate(_SPACES).isprintable() else 10 * width * len(value) + 2


def text(scope: Scope, value: Any) -> str:
    """Format a value as text: numbers and objects as Python prints them. Raises Fault."""
    if type(value) is str:
        return value
    measure(scope, value)
    return str(value)


def join(scope: Scope, parts: list[str], glue: str = "") -> str:
    """Join texts; all texts are built here. Raises Fault."""
    scope.take_text(*parts, *[glue] * (len(parts) - 1))
    return glue.join(parts)


def concatenate(scope: Scope, *values: Json) -> str:
    """Concatenate values as text. Raises Fault."""
    return join(scope, [text(scope, value) for value in values])


def copy_json(scope: Scope, value: Any, depth: int = 0) -> Json:
    """Copy a value out of the sandbox: plain JSON of bounded size, shared with nothing. Raises Fault."""
    if isinstance(value, str):
        scope.take(len(value) if value.isascii() else 4 * len(value))
        return value
    is_list = isinstance(value, list)
    if is_list or isinstance(value, dict):
        if depth >= MAX_DEPTH:
            raise Fault(f"a value nested more than {MAX_DEPTH} levels deep")
        scope.tick()
        scope.take(_ITEM * len(value) + _ITEM)
        size, made = 0, list[Json]()
        for member in value if is_list else value.values():
            if type(member) is str:  # inline for speed: most members are texts
                size += len(member) if member.isascii() else 4 * len(member)
            elif type(member) not in _PLAIN:
                member = copy_json(scope, member, depth + 1)
            made.append(member)
        scope.take(size)
        return made if is_list else dict(zip(value, made, strict=True))
    if type(require(value)) in _PLAIN or type(value) in (OpenPart, Blank):
        return value
    raise Fault(f"{type(value).__name__} is not a JSON value")
