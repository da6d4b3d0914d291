"""Places in a contract: where a part of it stands, for messages, and which names its expressions know."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import ContractError
from .expression import Expression
from .syntax import did_you_mean


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part of a contract stands, and the names that expressions there may use."""

    where: str
    names: frozenset[str]

    def at(self, step: str | int) -> Place:
        """One step deeper."""
        return Place(f"{self.where}[{step}]" if isinstance(step, int) else f"{self.where}.{step}", self.names)

    def knowing(self, *names: str) -> Place:
        """With further names in scope."""
        return Place(self.where, self.names | set(names))

    def wrong(self, why: str) -> ContractError:
        """The error that something here is wrong."""
        return ContractError(f"{self.where}: {why}")

    def fields(self, data: Any, required: Collection[str], optional: Collection[str] = ()) -> Mapping[str, Any]:
        """`data` if it is an object with these fields and no others. Raises ContractError."""
        if not isinstance(data, Mapping):
            raise self.wrong(f"must be an object with {', '.join((*required, *optional))}, not {type(data).__name__}")
        for key in data:
            if key not in required and key not in optional:
                allowed = (*required, *optional)
                hint = did_you_mean(str(key), allowed) or f"; known here: {', '.join(allowed)}"
                raise self.wrong(f"unknown key {str(key)!r}{hint}")
        for key in required:
            if key not in data:
                raise self.wrong(f"{key!r} is missing")
        return data

    def expression(self, source: Any) -> Expression:
        """A bare expression. Raises ContractError, also where YAML made something else of it."""
        if isinstance(source, bool | int | float):
            source = str(source)
        if not isinstance(source, str):
            raise self.wrong(f"must be an expression, written as a text, not {type(source).__name__}; quote it")
        return Expression.compile(source, names=self.names, where=self.where)

    def text(self, source: str) -> Expression:
        """A text with `{{ }}`. Raises ContractError."""
        return Expression.compile_text(source, names=self.names, where=self.where)
