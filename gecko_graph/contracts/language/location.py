"""Locations in a contract: the path of a part, for messages, and the names that its expressions may use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import ContractError
from .expression import Expression
from .syntax import did_you_mean


@dataclass(frozen=True, slots=True)
class Location:
    """The location of a part of a contract, and the names that expressions there may use."""

    where: str
    names: frozenset[str]

    def at(self, step: str | int) -> Location:
        """Return the location one step deeper."""
        return Location(f"{self.where}[{step}]" if isinstance(step, int) else f"{self.where}.{step}", self.names)

    def with_names(self, *names: str) -> Location:
        """Return the location with further names in scope."""
        return Location(self.where, self.names | set(names))

    def error(self, why: str) -> ContractError:
        """Build an error about this location."""
        return ContractError(f"{self.where}: {why}")

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
        """Check that `data` is an object. Raises ContractError."""
        if not isinstance(data, Mapping):
            raise self.error(f"expected an object{of}, got {type(data).__name__}")
        return dict(data)

    def compile(self, source: Any) -> Expression:
        """Compile a bare expression. Raises ContractError, also where YAML has read it as another type."""
        if isinstance(source, bool | int | float):
            source = str(source)
        if not isinstance(source, str):
            raise self.error(f"expected an expression as a text, got {type(source).__name__}; quote it")
        return Expression.compile(source, names=self.names, where=self.where)

    def compile_text(self, source: str) -> Expression:
        """Compile a text with `{{ }}`. Raises ContractError."""
        return Expression.compile_text(source, names=self.names, where=self.where)
