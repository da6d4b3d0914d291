"""Whether a schema says only what validation checks: for a schema that guards, nothing of it may be ignored."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NoReturn

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from ..errors import ContractError
from ..state import JsonObject
from .findings import find_non_json, findings, path_tokens
from .pattern import compile_pattern
from .rules import Same
from .subschemas import LISTS, MAPS, SINGLES, follow, mentions

Tokens = tuple[str | int, ...]

_WHY_NO_PATTERN = "this pattern cannot be checked: backreferences and lookbehind are not read"


def check_schema(schema: Any, *, where: str) -> JsonObject:
    """Return a JSON Schema 2020-12, checked: every part of it can be checked, and every reference stays inside it.

    Args:
        schema: The schema; a checked one is known by the object itself, so never change it in place.
        where: Document and place of the schema, for messages.

    Raises:
        ContractError: It is not one; the message names document, place and reason.
    """
    if not isinstance(schema, dict):
        raise ContractError(f"{where}: expected a JSON Schema as an object, got {type(schema).__name__}")
    _check(Same(schema), where)
    return schema


@lru_cache(maxsize=256)
def _check(key: Same, where: str) -> None:
    schema = key.schema
    if found := find_non_json(schema):
        _fail(where, tuple(path_tokens(found.path)), f"expected {found.expected}, got {found.got}")
    if error := best_match(Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema)):
        found = next(findings(error))
        _fail(where, tuple(error.absolute_path), f"expected {found.expected}, got {found.got}")
    for place, part in _parts(schema, ()):
        for keyword, why in _unchecked(schema, part, is_root=not place):
            _fail(where, (*place, keyword), why)
    if mentions(schema, "patternProperties") and mentions(schema, "unevaluatedProperties"):
        _fail(where, (), "patternProperties and unevaluatedProperties together cannot be checked; use one of them")


def _fail(where: str, place: Tokens, why: str) -> NoReturn:
    raise ContractError(f"{where}{''.join(f'/{token}' for token in place)}: {why}")


def _parts(schema: Any, place: Tokens) -> Iterator[tuple[Tokens, JsonObject]]:
    """Yield each schema object in a schema with its place."""
    if not isinstance(schema, dict):
        return
    yield place, schema
    for key, value in schema.items():
        inner: dict[Any, Any] = {}
        if key in MAPS:
            inner = {(key, name): one for name, one in value.items()}
        elif key in LISTS:
            inner = {(key, index): one for index, one in enumerate(value)}
        elif key in SINGLES:
            inner = {(key,): value}
        for more, one in inner.items():
            yield from _parts(one, (*place, *more))


def _unchecked(root: JsonObject, part: JsonObject, *, is_root: bool) -> Iterator[tuple[str, str]]:
    """Yield the keywords of one schema object that validation would ignore, with the reason."""
    for key in ("$ref", "$dynamicRef"):
        if key in part and not str(part[key]).startswith("#"):
            yield key, f"{part[key]!r} is outside of the schema, and is never fetched: write it under $defs"
        elif key in part and follow(root, part[key]) is None:
            yield key, f"{part[key]!r} leads nowhere: write #/$defs/NAME"
    if "$id" in part and not is_root:
        yield "$id", "only the whole schema may have an $id"
    if "pattern" in part and compile_pattern(part["pattern"]) is None:
        yield "pattern", _WHY_NO_PATTERN
    if any(compile_pattern(source) is None for source in part.get("patternProperties", ())):
        yield "patternProperties", _WHY_NO_PATTERN
