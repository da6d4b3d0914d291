"""Whether a value fits a schema of plain keywords, told in a tenth of the time; what it does not tell is checked whole.

A yes is certain: `jsonschema` would find no error. A no only says that this cannot tell, so that most keywords need not
be known here, and errors are found in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from jsonschema import Draft202012Validator

from ..state import Json
from .subschemas import is_number

Test = Callable[[Json], bool]


def is_integer(value: Json) -> bool:
    """Return whether a value is an integer, as JSON Schema has it: 2.0 is one."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


IS_TYPE: Mapping[str, Test] = {
    "string": lambda value: isinstance(value, str),
    "number": is_number,
    "integer": is_integer,
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}


def compile_plain(schema: Any) -> Test:
    """Return a test of values that holds only where they fit a schema without malformed parts."""
    if isinstance(schema, bool):
        return lambda _: schema
    deciding = [keyword for keyword in schema if keyword in Draft202012Validator.VALIDATORS]
    if not _TESTS.keys() >= {*deciding}:
        return lambda _: False
    tests = [_TESTS[keyword](schema[keyword], schema) for keyword in deciding]
    return reduce(_both, tests) if tests else lambda _: True


def _both(one: Test, other: Test) -> Test:
    return lambda value: one(value) and other(value)


def _type(kinds: Any, _: Any) -> Test:
    if isinstance(kinds, str):
        return IS_TYPE[kinds]
    options = [IS_TYPE[kind] for kind in kinds]
    return lambda value: any(fits(value) for fits in options)


def _properties(rules: Mapping[str, Any], _: Any) -> Test:
    members = {name: compile_plain(rule) for name, rule in rules.items()}

    def fits(value: Json) -> bool:
        if isinstance(value, dict):
            for name, test in members.items():
                if name in value and not test(value[name]):
                    return False
        return True

    return fits


def _required(names: Sequence[str], _: Any) -> Test:
    wanted = frozenset(names)
    return lambda value: not isinstance(value, dict) or value.keys() >= wanted


def _additional_properties(rule: Any, schema: Mapping[str, Any]) -> Test:
    known, fits = schema.get("properties", {}), compile_plain(rule)
    return lambda value: not isinstance(value, dict) or all(name in known or fits(value[name]) for name in value)


def _items(rule: Any, _: Any) -> Test:
    fits = compile_plain(rule)
    return lambda value: not isinstance(value, list) or all(map(fits, value))


def _enum(values: Sequence[Json], _: Any) -> Test:
    plain = frozenset(value for value in values if isinstance(value, str) or value is None)
    return lambda value: (isinstance(value, str) or value is None) and value in plain


def _any_of(options: Sequence[Any], _: Any) -> Test:
    tests = [*map(compile_plain, options)]
    return lambda value: any(fits(value) for fits in tests)


# without `prefixItems` and `patternProperties`, `items` and `additionalProperties` hold of all that stands there
_TESTS: Mapping[str, Callable[[Any, Any], Test]] = {
    "type": _type,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional_properties,
    "items": _items,
    "enum": _enum,
    "anyOf": _any_of,
    "minimum": lambda bound, _: lambda value: not is_number(value) or value >= bound,
    "maximum": lambda bound, _: lambda value: not is_number(value) or value <= bound,
}
