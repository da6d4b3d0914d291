"""Expressions of the contract language, a subset of Python's over JSON values, and their locations.

They are checked against a whitelist at load, evaluated within limits, and cannot reach Python objects. `syntax` parses
them, `operators`, `builtin` and `functions` are their vocabulary, `sandbox` meters their cost; `compiler` turns a tree
into closures, `examine` infers shapes before any call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from time import perf_counter
from typing import Any, NamedTuple, NoReturn

from ...errors import ContractError, EvaluationFailed, NotRead, did_you_mean
from ...state import Json
from ...values.places import shorten
from .compiler import Code, compile_parts
from .coverage import Use, find_unshown, uses_of
from .examine import ANY, TEXT, Inference, Names
from .functions import FUNCTIONS
from .sandbox import Fault, Missing, Scope, copy_json
from .syntax import SyntaxFault, parse_expression, parse_text

__all__ = ["CHECK_NAMES", "Expression", "Missing", "Scope", "check_expression", "one_line"]

CHECK_NAMES = ("state", "before", "calls", "answer")
"""Names available to a check of a checklist."""

_FAULTS = (Fault, ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


def one_line(source: str, limit: int = 120) -> str:
    """Return a source for a message: one line, of bounded length."""
    return shorten(" ".join(source.split()), limit)


@lru_cache(maxsize=8192)
def _compile(source: str, is_text: bool) -> Code:
    return compile_parts(parse_text(source) if is_text else [parse_expression(source)])


class Expression:
    """A checked expression, or a text with `{{ }}`. Made by `compile`."""

    def __init__(self, source: str, code: Code, where: str) -> None:
        self.source = source
        self.where = where
        self.code = code
        self.names = code.names
        self._run = code.run
        self.shape = ANY if len(code.parts) == 1 else TEXT
        """The known shape of its value; an examination may refine it."""

    @classmethod
    def compile(cls, source: str, *, names: Collection[str], where: str, is_text: bool = False) -> Expression:
        """Check a bare expression, or a text with `{{ }}`; `names` are those in its scope.

        A text that is a single expression keeps the type of its value.

        Raises:
            ContractError: It cannot be parsed, is not on the whitelist, or contains an unknown name.
        """
        try:
            code = _compile(source, is_text)
        except SyntaxFault as fault:
            raise ContractError(f"{where}: {one_line(str(fault), 300)}, in `{one_line(source)}`") from None
        for name in sorted(code.names):
            if name not in names:
                raise ContractError(f"{where}: {_explain_unknown(name, names)}, in `{one_line(source)}`")
        for name in code.bound & set(names) - {"item"}:
            raise ContractError(f"{where}: the name {name!r} is already taken; choose another, in `{one_line(source)}`")
        return cls(source, code, where)

    def raw(self, scope: Scope) -> Any:
        """Return the value inside the sandbox; it may be `Missing`, and may share parts with the state.

        Raises:
            EvaluationFailed: It has no value, or exceeded its limits.
        """
        try:
            if perf_counter() > scope.deadline:
                scope.late()
            if scope.unread and (unread := scope.unread.intersection(path[0] for path in self.code.paths if path)):
                raise self._not_read(min(unread), scope)
            if scope.partial and not scope.assumes and (root := find_unshown(self.uses, scope)) is not None:
                raise self._not_read(root, scope)
            return self._run(scope)
        except _FAULTS as fault:
            raise self.failed(_explain(fault)) from None

    def _not_read(self, root: str, scope: Scope) -> NotRead:
        part = "" if root in scope.unread else " as far as this needs it"
        told = f" ({scope.shows[root]} would tell)" if root in scope.shows else ""
        return NotRead(f"{self.where}: state.{root} has not been read{part}{told}, in `{one_line(self.source)}`")

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        return uses_of(self.code.parts)

    def evaluate(self, scope: Scope) -> Json:
        """Return the value as an independent copy in plain JSON; resets the evaluation deadline.

        Raises:
            EvaluationFailed: It has no value, a part of it is undefined, or it exceeded its limits.
        """
        scope.start()
        return self.to_json(scope, self.raw(scope))

    def is_true(self, scope: Scope) -> bool:
        """Return whether the value is true; resets the evaluation deadline. Raises EvaluationFailed like `evaluate`."""
        scope.start()
        return self.test(scope)

    def test(self, scope: Scope) -> bool:
        """Return whether the value is true, within the scope's deadline. Raises EvaluationFailed."""
        value = self.raw(scope)
        if type(value) is Missing:
            raise self.failed(f"{value.what} is undefined")
        return bool(value)

    def to_json(self, scope: Scope, value: Any) -> Json:
        """Convert a raw value of this expression to plain JSON. Raises EvaluationFailed."""
        try:
            return copy_json(scope, value)
        except (Fault, RecursionError, MemoryError) as fault:
            raise self.failed(_explain(fault)) from None

    def failed(self, why: str) -> EvaluationFailed:
        """Return the failure of this expression, with its location."""
        return EvaluationFailed(f"{self.where}: {one_line(why, 300)}, in `{one_line(self.source)}`")


def _explain_unknown(name: str, names: Collection[str]) -> str:
    """Return a message on an unknown name, with the nearest known one; a let with parameters is listed as `price/2`."""
    function, _, count = name.partition("/")
    own = {each.partition("/")[0]: each.partition("/")[2] for each in names if "/" in each}
    if function in own and count:
        return f"{function} takes {own[function]} arguments, not {count}"
    if count:
        return f"unknown function {function!r:.42}{did_you_mean(function, [*FUNCTIONS, *own])}"
    plain = sorted(each for each in names if "/" not in each)
    hint = did_you_mean(name, plain) or f"; available: {', '.join(plain)}"
    return f"unknown name {name!r}{hint}"


def _explain(fault: BaseException) -> str:
    known: dict[type[BaseException], str] = {
        ZeroDivisionError: "division by zero",
        RecursionError: "it is nested too deeply",
        MemoryError: "it needs too much memory",
        OverflowError: "a number is too large",
    }
    if isinstance(fault, KeyError):
        return f"{fault.args[0] if fault.args else 'a name'} is not available"
    return known.get(type(fault), str(fault) if isinstance(fault, Fault) else str(fault).split(";")[0][:200])


def check_expression(source: str, *, where: str) -> Expression:
    """Return a checklist item's check, over `state`, `before`, `calls` and `answer`. Raises ContractError."""
    return Expression.compile(source, names=CHECK_NAMES, where=where)


Step = str | int


def raise_error(error: ContractError) -> NoReturn:
    """Raise the error: the `report` of a location that stops at the first mistake."""
    raise error


class Origin(NamedTuple):
    """The place of a contract in a file; parts that begin with `x-contract-` are at the file's root."""

    file: str
    tokens: tuple[Step, ...]

    def find_line(self, path: tuple[Step, ...]) -> int | None:
        """Return the line of a part of the contract; None if there is no such file."""
        from ...values.documents import find_line  # here, because it imports yaml

        if not path or not str(path[0]).startswith("x-contract-"):
            return find_line(self.file, (*self.tokens, *path))
        root = str(path[0]).removeprefix("x-contract-") if self.tokens[:1] == ("contracts",) else path[0]
        return find_line(self.file, (root, *path[1:]))


@dataclass(frozen=True, slots=True)
class Location:
    """The location of a part of a contract, and the names that expressions there may use.

    Args:
        where: Document, tool and part, for messages.
        names: Each name with the known shape of its value.
        path: The part's keys and indexes in the contract.
        origin: The place of the contract in its file.
        report: Takes expressions that can never be evaluated; if None, they are not searched for.
    """

    where: str
    names: Names
    path: tuple[Step, ...] = ()
    origin: Origin | None = None
    report: Callable[[ContractError], None] | None = None

    def at(self, step: Step) -> Location:
        where = f"{self.where}[{step}]" if isinstance(step, int) else f"{self.where}.{step}"
        return Location(where, self.names, (*self.path, step), self.origin, self.report)

    def part(self, *steps: Step) -> Location:
        return Location(f"{self.where}: {'.'.join(map(str, steps))}", self.names, steps, self.origin, self.report)

    def with_names(self, /, **names: Any) -> Location:
        return Location(self.where, {**self.names, **names}, self.path, self.origin, self.report)

    def error(self, why: str) -> ContractError:
        line = self.origin.find_line(self.path) if self.origin else None
        return ContractError(f"{self.where}: {why}{f' (line {line})' if line else ''}")

    def check_fields(self, data: Any, required: Collection[str], optional: Collection[str] = ()) -> Mapping[str, Any]:
        """Check that `data` is an object with exactly these fields. Raises ContractError."""
        found = self.check_object(data, f" with {', '.join((*required, *optional))}")
        for key in data:
            if key not in required and key not in optional:
                allowed = (*required, *optional)
                hint = did_you_mean(str(key), allowed) or f"; expected one of {', '.join(allowed)}"
                raise self.error(f"unknown key {str(key)!r}{hint}")
        for key in required:
            if key not in data:
                raise self.error(f"{key!r} is missing")
        return found

    def check_object(self, data: Any, of: str = "") -> dict[str, Any]:
        if not isinstance(data, Mapping):
            raise self.error(f"expected an object{of}, got {type(data).__name__}")
        return dict(data)

    def compile(self, source: Any, *, is_text: bool = False) -> Expression:
        """Compile a bare expression, or a text with `{{ }}`. Raises ContractError."""
        if isinstance(source, bool | int | float):  # parsed by YAML
            source = str(source)
        if not isinstance(source, str):
            raise self.error(f"expected an expression as a text, got {type(source).__name__}; quote it")
        try:
            expression = Expression.compile(source, names=self.names, where="", is_text=is_text)
        except ContractError as error:
            raise self.error(str(error).removeprefix(": ")) from None
        expression.where = self.where
        if self.report is not None:
            reader = Inference(self.names, lambda why: self.tell(f"{why}, in `{one_line(source)}`"))
            shapes = [TEXT if isinstance(part, str) else reader.shape(part) for part in expression.code.parts]
            expression.shape = shapes[0] if len(shapes) == 1 else TEXT
        return expression

    def tell(self, why: str) -> None:
        """Report an expression that can never be evaluated here."""
        if self.report is not None:
            self.report(self.error(why))
