"""Expressions of the contract language: Jinja2's, one at a time, over JSON values.

Checked and whitelisted when loaded, evaluated within limits, with no way from a value to Python. `syntax` defines what
an expression may be, `operators`, `functions` and `filters` what it may use, `sandbox` what it may cost;
`compiler` turns its tree into closures, those for operators are in `closures`.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from time import perf_counter
from typing import Any

from ...errors import ContractError, EvaluationFailed, did_you_mean
from ...state import Json
from ...values.paths import shorten
from .closures import QUANTIFIERS
from .compiler import Code, compile_parts
from .functions import FUNCTIONS
from .sandbox import LIMITS, Fault, Limits, Missing, Scope, copy_json
from .shapes import ANY
from .syntax import SyntaxFault, parse_expression, parse_text

__all__ = ["CHECK_NAMES", "LIMITS", "Expression", "Limits", "Missing", "Scope", "check_expression", "one_line"]

CHECK_NAMES = ("state", "before", "calls", "answer")
"""Names available to a check of a checklist."""

_FAULTS = (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


def one_line(source: str, limit: int = 120) -> str:
    """Return a source for a message: one line, of bounded length."""
    return shorten(" ".join(source.split()), limit)


@lru_cache(maxsize=8192)
def _compile(source: str, is_text: bool) -> Code:
    return compile_parts(parse_text(source) if is_text else [parse_expression(source)])


class Expression:
    """One checked expression, or one text with `{{ }}` filled in. Made by `compile`."""

    __slots__ = ("_run", "code", "names", "shape", "source", "where")

    def __init__(self, source: str, code: Code, where: str) -> None:
        self.source = source
        self.where = where
        self.code = code
        self.names = code.names
        self._run = code.run
        self.shape = ANY
        """What is known of its value, where it is examined."""

    @classmethod
    def compile(cls, source: str, *, names: Collection[str], where: str, is_text: bool = False) -> Expression:
        """Check a bare expression, or a text in which `{{ }}` is filled in; `names` are those in its scope.

        A text that is a single expression keeps its value's type.

        Raises:
            ContractError: It cannot be parsed, is not on the whitelist, or names something unknown.
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
        """Return the value inside the sandbox: it may be `Missing`, and may share its parts with the state.

        Raises:
            EvaluationFailed: It has no value, or exceeded its limits.
        """
        try:
            if perf_counter() > scope.deadline:
                scope.late()
            return self._run(scope)
        except Fault as fault:
            raise self.failed(str(fault)) from None
        except _FAULTS as fault:
            raise self.failed(_explain(fault)) from None

    def evaluate(self, scope: Scope) -> Json:
        """Return the value as an independent copy in plain JSON; resets the evaluation deadline.

        Raises:
            EvaluationFailed: It has no value, something in it is undefined, or it exceeded its limits.
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
        except Fault as fault:
            raise self.failed(str(fault)) from None
        except (RecursionError, MemoryError) as fault:
            raise self.failed(_explain(fault)) from None

    def failed(self, why: str) -> EvaluationFailed:
        """Build the failure of this expression, with its location."""
        return EvaluationFailed(f"{self.where}: {one_line(why, 300)}, in `{one_line(self.source)}`")


def _explain_unknown(name: str, names: Collection[str]) -> str:
    """Return what is unknown, with the nearest name: a let with parameters stands among the names as `price/2`."""
    function, _, count = name.partition("/")
    own = {each.partition("/")[0]: each.partition("/")[2] for each in names if "/" in each}
    if function in own and count:
        return f"{function} takes {own[function]} arguments, not {count}"
    if count:
        return f"unknown function {function!r:.42}{did_you_mean(function, [*FUNCTIONS, *QUANTIFIERS, *own])}"
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
    return known.get(type(fault), str(fault).split(";")[0][:200])


def check_expression(source: str, *, where: str) -> Expression:
    """Return a checklist item's check, over `state`, `before`, `calls` and `answer`. Raises ContractError."""
    return Expression.compile(source, names=CHECK_NAMES, where=where)
