"""Locations in a contract: the path of a part, for messages, and the names that its expressions may use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from ...errors import ContractError, did_you_mean
from .expression import Expression, one_line
from .inference import TEXT, Inference, Names

Step = str | int


def raise_error(error: ContractError) -> NoReturn:
    """Raise it: what a location reports to where the first mistake ends everything."""
    raise error


class Origin(NamedTuple):
    """Where a contract stands in a file; parts that begin with `x-contract-` stand at the file's root."""

    file: str
    tokens: tuple[Step, ...]

    def find_line(self, path: tuple[Step, ...]) -> int | None:
        """Return the line of a part of the contract; None where there is no such file."""
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
        names: Each name with what is known of its value.
        path: The part's keys and indexes in the contract.
        origin: Where the contract stands.
        report: Takes what can never be evaluated; without it expressions are not examined for that.
    """

    where: str
    names: Names
    path: tuple[Step, ...] = ()
    origin: Origin | None = None
    report: Callable[[ContractError], None] | None = None

    def at(self, step: Step) -> Location:
        """Return the location one step deeper."""
        where = f"{self.where}[{step}]" if isinstance(step, int) else f"{self.where}.{step}"
        return Location(where, self.names, (*self.path, step), self.origin, self.report)

    def part(self, *steps: Step) -> Location:
        """Return the location of a part of a whole contract."""
        return Location(f"{self.where}: {'.'.join(map(str, steps))}", self.names, steps, self.origin, self.report)

    def with_names(self, /, **names: Any) -> Location:
        """Return the location with further names in scope."""
        return Location(self.where, {**self.names, **names}, self.path, self.origin, self.report)

    def error(self, why: str) -> ContractError:
        """Build an error about this location."""
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
        return self._compiled(source, is_text=False)

    def compile_text(self, source: str) -> Expression:
        """Compile a text with `{{ }}`. Raises ContractError."""
        return self._compiled(source, is_text=True)

    def _compiled(self, source: str, *, is_text: bool) -> Expression:
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
        """Report what can never be evaluated here."""
        if self.report is not None:
            self.report(self.error(why))
