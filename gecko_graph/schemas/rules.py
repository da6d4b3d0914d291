"""JSON Schema 2020-12 validation: `jsonschema`, adapted to calls from models.

Multiples are computed in decimal, patterns have a timeout, formats are our own, and references stay inside the
document. Malformed parts of a schema are ignored. The work of one check is bounded; a value that was not completely
checked gets the error `UNFINISHED` and is never accepted.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from ..state import Json
from ..values.digest import find_non_json
from ..values.identity import cache_by_identity
from ..values.places import map_scalars
from .formats import compile_pattern, fits_format
from .quick import Test, compile_quick
from .subschemas import is_number, mentions, tidy
from .work import COSTS, BudgetSpent, begin, find_open, is_multiple, matches, spend

USES = 4
"""Number of uses after which rules get a quick test, whose creation takes as long as some checks."""

UNFINISHED = "unfinished"
"""The `validator` of the error for a value that was not completely checked."""

Errors = Iterator[ValidationError]

_STOCK = Draft202012Validator.VALIDATORS


def check(rules: Validator, value: Json, *, is_json: bool = False) -> Errors:
    """Return the errors of `value`; the last is `UNFINISHED` if it costs too much or nests too deep.

    `is_json`: the value is known to be JSON that a checkpoint can store.
    """
    quick = _quick(rules)
    quick.uses += 1
    fits = quick.test if quick.uses >= USES else None
    if fits and (is_json or find_non_json(value) is None) and fits(value):
        return iter(())
    return explain(rules, value)


def explain(rules: Validator, value: Json) -> Errors:
    """Yield the errors of `value` as `check` does; parts that no keyword concerns are not read."""
    begin(value)
    try:
        yield from rules.iter_errors(value)
    except (BudgetSpent, RecursionError):
        yield ValidationError(UNFINISHED, validator=UNFINISHED, instance=value)
    except (Unresolvable, ValueError, TypeError, AttributeError, LookupError):
        return  # malformed in a way that `tidy` misses
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of `rpds`, called at the recursion limit
            raise
        yield ValidationError(UNFINISHED, validator=UNFINISHED, instance=value)


def accepts(rules: Validator, value: Json) -> bool:
    """Return whether the whole value was checked without an error."""
    return next(check(rules, value), None) is None


def _type(validator: Any, types: Any, instance: Json, schema: Any) -> Errors:
    spend(1)
    if not any(validator.is_type(instance, kind) for kind in ([types] if isinstance(types, str) else types)):
        yield ValidationError("type")


def _ref(validator: Any, ref: str, instance: Json, schema: Any) -> Errors:
    spend(COSTS["$ref"](ref))
    here, open_ = (id(schema), id(instance)), find_open()
    if here in open_:
        return  # it refers to itself on the same value, and so adds nothing
    open_.add(here)
    try:
        yield from _STOCK["$ref"](validator, ref, instance, schema) or ()
    except Unresolvable:
        return
    finally:
        open_.discard(here)


def _any_of(validator: Any, options: list[Any], instance: Json, schema: Any) -> Errors:
    failed = _failures(validator, options, instance)
    if len(failed) == len(options):
        yield ValidationError("anyOf", context=[error for errors in failed for error in errors])


def _one_of(validator: Any, options: list[Any], instance: Json, schema: Any) -> Errors:
    failed = _failures(validator, options, instance)
    if len(failed) == len(options):
        yield ValidationError("oneOf", context=[error for errors in failed for error in errors])
    elif len(failed) < len(options) - 1:
        yield ValidationError("oneOf: several")


def _failures(validator: Any, options: list[Any], instance: Json) -> list[list[ValidationError]]:
    spend(len(options))
    tried = (list(validator.descend(instance, option, schema_path=index)) for index, option in enumerate(options))
    return [errors for errors in tried if errors]


def _required(validator: Any, names: list[str], instance: Json, schema: Any) -> Errors:
    if isinstance(instance, dict):
        yield from (ValidationError("required", path=[name]) for name in names if name not in instance)


def _dependent_required(validator: Any, wanted: Mapping[str, list[str]], instance: Json, schema: Any) -> Errors:
    if not isinstance(instance, dict):
        return
    for name, others in wanted.items():
        if name in instance:
            yield from (ValidationError("required", path=[other]) for other in others if other not in instance)


def _pattern(validator: Any, source: str, instance: Json, schema: Any) -> Errors:
    if isinstance(instance, str) and (pattern := compile_pattern(source)) and not matches(pattern, instance):
        yield ValidationError("pattern")


def _pattern_properties(validator: Any, rules: Mapping[str, Any], instance: Json, schema: Any) -> Errors:
    if not isinstance(instance, dict):
        return
    for source, rule in rules.items():
        for name in instance:
            if (pattern := compile_pattern(source)) and matches(pattern, name):
                yield from validator.descend(instance[name], rule, path=name, schema_path=source)


def _additional_properties(validator: Any, rule: Any, instance: Json, schema: Any) -> Errors:
    if not isinstance(instance, dict):
        return
    spend(len(instance) * len(schema.get("patternProperties", ())))
    for name in extra_names(instance, schema):
        if rule is False:
            yield ValidationError("additionalProperties", path=[name], instance=instance[name])
        else:
            yield from validator.descend(instance[name], rule, path=name)


def extra_names(names: Iterable[str], schema: Mapping[str, Any]) -> list[str]:
    """Return the names that neither `properties` nor `patternProperties` covers."""
    known = schema.get("properties", {})
    patterns = [compile_pattern(source) for source in schema.get("patternProperties", {})]
    return [
        name
        for name in names
        if name not in known and not any(pattern is None or pattern.matches(name) for pattern in patterns)
    ]


def member_rules(names: Collection[str], schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    known = schema.get("properties", {})
    yield from ((name, known[name]) for name in names if name in known)
    if "patternProperties" not in schema and "additionalProperties" not in schema:
        return
    for source, rule in schema.get("patternProperties", {}).items():
        pattern = compile_pattern(source)
        yield from ((name, rule) for name in names if pattern and pattern.matches(name))
    if "additionalProperties" in schema:
        yield from ((name, schema["additionalProperties"]) for name in extra_names(names, schema))


def _multiple_of(validator: Any, step: float, instance: Json, schema: Any) -> Errors:
    if is_number(instance) and not is_multiple(instance, step):
        yield ValidationError("multipleOf")


def _enum(validator: Any, values: list[Json], instance: Json, schema: Any) -> Errors:
    spend(COSTS["enum"](values))
    # not the stock rule, which prints the value
    if not (instance in values if isinstance(instance, str) else canonical(instance) in map(canonical, values)):
        yield ValidationError("enum")


def _unique_items(validator: Any, wanted: bool, instance: Json, schema: Any) -> Errors:
    if wanted and isinstance(instance, list) and len({canonical(item) for item in instance}) < len(instance):
        yield ValidationError("uniqueItems")


def canonical(value: Json) -> str:
    """Return equal texts for values that JSON Schema considers equal: 1 and 1.0, but not 1 and true."""
    plain = map_scalars(value, lambda each: int(each) if isinstance(each, float) and each.is_integer() else each)
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def _format(validator: Any, name: str, instance: Json, schema: Any) -> Errors:
    if not fits_format(name, instance):
        yield ValidationError("format")


StrictValidator: Any = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    validators={
        "$ref": _ref, "$dynamicRef": _ref, "type": _type, "anyOf": _any_of, "oneOf": _one_of, "required": _required,
        "dependentRequired": _dependent_required, "pattern": _pattern, "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties, "multipleOf": _multiple_of, "enum": _enum,
        "uniqueItems": _unique_items, "format": _format,
    },
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("number", lambda _, value: is_number(value)),
)  # fmt: skip


@cache
def _kind(*, has_patterns: bool, has_ids: bool) -> Any:
    """Return the validator class for a schema with or without `patternProperties` and `$id`."""
    # the stock rule for unevaluatedProperties matches patternProperties with `re`
    changed = {"unevaluatedProperties": lambda *_: None} if has_patterns else {}
    kind = validators.extend(StrictValidator, validators=changed)  # type: ignore[no-untyped-call]
    if not has_ids:
        kind.descend = _descend
    return kind


def _descend(
    rules: Any, instance: Json, schema: Any, path: Any = None, schema_path: Any = None, resolver: Any = None
) -> Errors:
    """Return the errors of a part; unlike the stock method it does not recreate the part's rules at each visit.

    For schemas without `$id`, all of whose references have one base: `resolver` is the rules' own.
    """
    del resolver

    def place(error: ValidationError) -> ValidationError:
        error.path.extendleft([] if path is None else [path])
        error.schema_path.extendleft([] if schema_path is None else [schema_path])
        return error

    return map(place, rules_of_part(rules, schema).iter_errors(instance))


@cache_by_identity(4096)
def rules_of(schema: Any) -> Validator:
    """Return the compiled rules of a schema, cached by identity: never change a schema in place."""
    try:
        clean = tidy(schema)
        text = repr(clean)  # nearly no schema has one of these keywords
        has = {key: key in text and mentions(clean, key) for key in ("patternProperties", "$id")}
        kind = _kind(has_patterns=has["patternProperties"], has_ids=has["$id"])
        rules: Validator = kind(clean, registry=Registry())
    except (RecursionError, Unresolvable, ValueError, TypeError, AttributeError, LookupError):
        rules = StrictValidator(True)
    return rules


@cache_by_identity(16_384)
def rules_of_part(rules: Validator, schema: Any) -> Validator:
    made: Validator = rules.evolve(schema=schema)
    return made


def quick_test(rules: Any) -> Test | None:
    """Return a test that is true only if `explain` finds no error; None if there is none."""
    return compile_quick(rules.schema, lambda reference: rules._resolver.lookup(reference).contents)


class _Quick:
    """The quick test of compiled rules, created on demand, and their number of uses."""

    def __init__(self, rules: Any) -> None:
        self._rules, self.uses = rules, 0

    @cached_property
    def test(self) -> Test | None:
        return quick_test(self._rules)


@cache_by_identity(16_384)
def _quick(rules: Validator) -> _Quick:
    return _Quick(rules)
