"""The base of all parts of a scenario's file, `Entry`, and its error messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from ...context import GeckoContext
from ...contracts.language.expression import check_expression
from ...errors import ContractError, GeckoError, did_you_mean

PROBLEMS_SHOWN = 5


class Entry(BaseModel):
    """A part of a scenario's file; unknown keys and other types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


Model = TypeVar("Model", bound=Entry)


def read_entry(kind: type[Model], data: Any, *, where: str, error: type[GeckoError] = GeckoError) -> Model:
    """Return an entry. Raises `error` with the place of each problem, such as `turns[0].checklist[1].check`."""
    try:
        return kind.model_validate(data)
    except ValidationError as found:
        raise join_problems(where, describe_problems(found), error) from None


def join_problems(where: str, problems: Sequence[str], error: type[GeckoError]) -> GeckoError:
    shown = list(problems[:PROBLEMS_SHOWN])
    if len(problems) > len(shown):
        shown.append(f"and {len(problems) - len(shown)} more")
    return error("\n".join(f"{where}: {problem}" for problem in shown))


def describe_problems(error: ValidationError) -> list[str]:
    """Return pydantic's errors, one line each, with the place."""
    found = error.errors(include_url=False, include_context=False)
    return list(dict.fromkeys(f"{_format_place(each['loc'])}: {_format_reason(each)}" for each in found))


def _format_reason(found: ErrorDetails) -> str:
    if found["type"] == "extra_forbidden":
        kinds: list[type[BaseModel]] = [GeckoContext, *Entry.__subclasses__()]
        known = {field.alias or name for kind in kinds for name, field in kind.model_fields.items()}
        word = str(found["loc"][-1])  # the key itself is known elsewhere in the file
        return f"unknown key{did_you_mean(word, sorted(known - {word}))}"
    message = found["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return _MESSAGES.get(found["type"], message[:1].lower() + message[1:])


_MESSAGES = {
    "missing": "is missing",
    "string_pattern_mismatch": "is empty",
    "string_type": "expected text; put it in quotes",
    "list_type": "expected a list",
    "dict_type": "expected an object",
    "model_type": "expected an object",
    "too_short": "is empty",
    "string_too_short": "is empty",
}


def _format_place(where: Sequence[str | int]) -> str:
    place = ""
    for part in where:
        if part != "[key]":
            place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else part
    return place or "the whole"


def _check_expression(source: str) -> str:
    try:
        check_expression(source, where="expression")
    except ContractError as error:
        raise ValueError(str(error)) from None
    return source


Check: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_check_expression)]
"""An expression with a truth value."""
