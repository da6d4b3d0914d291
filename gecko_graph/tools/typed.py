"""Convert a call's JSON arguments to the types in a Python function's annotations, by Pydantic."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cached_property, partial, wraps
from types import NoneType, UnionType
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from ..errors import Refused
from ..models.answer import is_async
from ..schemas.complaints import describe_finding
from ..values.digest import Finding
from ..values.places import Place, excerpt, short_pointer

_AS_JSON = (str, int, bool, list, dict, Any, object, None, NoneType, inspect.Parameter.empty)
_HOLDS = (list, dict, typing.Union, UnionType)


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a function's annotations; {} if one cannot be resolved."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return {}


class Types:
    """The parameters of a function whose types are not JSON, and defaults written as `Field(...)`."""

    def __init__(self, function: Callable[..., Any], *, after: int = 0) -> None:
        hints = hints_of(function) or hints_of(type(function).__call__)
        taken = list[inspect.Parameter]()
        with suppress(TypeError, ValueError):  # some functions written in C have no signature to read
            taken += inspect.signature(function).parameters.values()
        named = [one for one in taken[after:] if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
        self._hints = {one.name: hints[one.name] for one in named if not _is_json(hints.get(one.name))}
        self._defaults = {one.name: one.default for one in named if isinstance(one.default, FieldInfo)}
        self._hints |= {name: typing.Annotated[hints.get(name, Any), one] for name, one in self._defaults.items()}

    def without(self, names: typing.Container[str]) -> Types:
        """Remove parameters, in place; return self."""
        self._hints = {name: hint for name, hint in self._hints.items() if name not in names}
        return self

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        found = dict[str, TypeAdapter[Any]]()
        for name, hint in self._hints.items():
            try:
                found[name] = TypeAdapter(hint)
            except (PydanticUserError, TypeError, NameError):  # a type unknown to Pydantic: the function gets JSON
                continue
        return found

    def __bool__(self) -> bool:
        return bool(self._hints)

    def read(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments in the function's types. Raises Refused, since the function was not run."""
        left = {name: one for name, one in self._defaults.items() if name not in args and not one.is_required()}
        given = {name: one.get_default(call_default_factory=True, validated_data={}) for name, one in left.items()}
        if faults := self.find_faults(args):
            raise Refused("; ".join(describe_finding(*each) for each in faults))
        return {**given, **{name: self._convert(name, one) for name, one in args.items()}}

    def find_faults(self, args: Mapping[str, Any]) -> list[Finding]:
        """Return findings on arguments that fit the schema but not the function's types."""
        return [fault for name in args for fault in _faults_of(partial(self._convert, name), args[name], (name,))]

    def _convert(self, name: str, value: Any) -> Any:
        adapter = self._adapters.get(name)
        try:
            return adapter.validate_python(value) if adapter else value
        except ValidationError:  # strict types accept a date's text only in JSON mode
            return adapter.validate_json(json.dumps(value)) if adapter else value

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of JSON arguments by name; the function itself if all its types are JSON."""
        if not self:
            return function
        return wraps(function)(
            by_name(lambda args, *first: function(*first, **self.read(args)), is_async=is_async(function))
        )

    def __getstate__(self) -> dict[str, Any]:
        return {key: each for key, each in self.__dict__.items() if key != "_adapters"}


def by_name(function: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    """Return a function of keyword arguments for one of a dict of arguments."""

    async def arun(*first: Any, **args: Any) -> Any:
        return await function(args, *first)

    return arun if is_async else lambda *first, **args: function(args, *first)


def optional_of(function: Callable[..., Any]) -> set[str]:
    """Return the parameters that have defaults."""
    return {name for name, one in inspect.signature(function).parameters.items() if one.default is not one.empty}


def find_model_faults(model: type[BaseModel], shown: Collection[str], args: Mapping[str, Any]) -> list[Finding]:
    """Return findings on arguments that fit the schema but not a model; arguments outside `shown` are filled later."""
    faults = _faults_of(model.model_validate, dict(args), ())
    return [fault for fault in faults if fault.path or model.model_fields.keys() <= {*shown}]


def _faults_of(read: Callable[[Any], Any], value: Any, place: Place) -> list[Finding]:
    """Return findings on a value that `read` rejects, with places; missing arguments are filled later."""
    try:
        read(value)
    except ValidationError as error:
        errors = [
            one for one in error.errors(include_url=False) if place or len(one["loc"]) != 1 or one["type"] != "missing"
        ]
        return [_finding(one, value, place) for one in errors]
    except Exception as error:  # noqa: BLE001 - any error of a user's type or validator
        why = f"a value that the tool takes ({type(error).__name__}: {error})"
        return [Finding(short_pointer(place), why, excerpt(value))]
    return []


def _finding(error: Any, value: Any, place: Place) -> Finding:
    path = [*place]
    for token in error["loc"]:  # pydantic's loc also has names of a union's types
        if isinstance(value, dict | list) and token in (value if isinstance(value, dict) else range(len(value))):
            value = value[token]
            path.append(token)
    text = str(error["msg"])
    own = text.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return Finding(short_pointer(path), f"a value that the tool takes ({own})" if own != text else text, excerpt(value))


def _is_json(hint: Any) -> bool:
    """Return whether a type accepts JSON values unchanged."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return all(type(one) in (str, int, bool, NoneType) for one in args)
    return hint in _AS_JSON if origin is None else origin in _HOLDS and all(map(_is_json, args))
