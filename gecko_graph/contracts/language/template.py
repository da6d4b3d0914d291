"""JSON values with `{{ }}` expressions, lists made by `for_each`, and choices made by `cases`.

```yaml
value: "{{ args.name }}"                                            # keeps the expression's type
value: {name: "{{ args.name }}", note: "by {{ args.user }}"}        # in any depth, in keys too
value: {for_each: state.orders.items(), as: [id, order], when: order.open, value: "{{ id }}"}
value: {cases: [{when: args.all, value: []}, {value: "{{ item }}"}]}   # the first true one, else undefined
value: {cases: [{when: known, value: 1}, {pass: not in the state}]}    # `pass`: the contract does not know
value: {known: "{{ order }}", blank: {total: 0, lines: []}}            # `blank`: the values used for unknown members
```
An object with the key `for_each` or `cases`, or with `blank` and perhaps `known`, is always one of these forms;
`{{ {'cases': 1} }}` makes one that is data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from ...errors import EvaluationFailed, NotKnown
from ...state import Json
from .compiler import constant
from .examine import ANY, LIST, TEXT, AnyShape, Plain, either, name_parts
from .expression import Expression, Location, one_line
from .operators import find_rounds, key_of
from .sandbox import MAX_DEPTH, Blank, Fault, Missing, OpenPart, Scope, a_text, copy_json, kind, require, text
from .syntax import is_name, is_template

Raw = Callable[[Scope], Any]
Loaded = tuple[Raw, AnyShape]

ITEM = "item"


class Template:
    """A JSON value with expressions to evaluate."""

    def __init__(self, data: Json, place: Location) -> None:
        loader = _Loader()
        self._raw, self.shape = loader.value(data, place, 0)
        self.expressions, self.has_blanks, self.where = tuple(loader.expressions), loader.has_blanks, place.where

    def raw(self, scope: Scope) -> Any:
        """Return the value inside the sandbox; it may be `Missing` as a whole. Raises EvaluationFailed."""
        try:
            return self._raw(scope)
        except Fault as fault:
            raise EvaluationFailed(f"{self.where}: {fault}") from None

    def fill(self, scope: Scope) -> Json:
        """Return the value as an independent copy in plain JSON. Raises EvaluationFailed."""
        try:
            filled = copy_json(scope, self._raw(scope))
            return strip_blanks(filled)[0] if self.has_blanks and scope.holes is None else filled
        except (Fault, RecursionError, MemoryError) as fault:
            raise EvaluationFailed(f"{self.where}: {fault}") from None

    def fill_known(self, scope: Scope) -> tuple[Json, bool]:
        """Return the value as `fill` does, with an OpenPart for each part left open by `pass`; and whether one is.

        Raises:
            EvaluationFailed: As `fill`.
        """
        scope.holes = []
        try:
            return self.fill(scope), bool(scope.holes)
        except NotKnown as unknown:
            return cast("Json", OpenPart(str(unknown))), True
        finally:
            scope.holes = None


class Loop:
    """`for_each`, `as` and `when`: the items of a loop; `as` is a name, or a list of names for the parts of each."""

    def __init__(self, data: Mapping[str, Any], place: Location) -> None:
        named = data.get("as", ITEM)
        names = [_loop_name(name, place) for name in (named if isinstance(named, list) and named else [named])]
        self._source = place.at("for_each").compile(data["for_each"])
        self._items = find_rounds("for_each", names, self._source.raw)
        self.inner = place.with_names(**name_parts(names, self._source.shape.member(None) or ANY))
        self._when = self.inner.at("when").compile(data["when"]) if "when" in data else None
        self.expressions = [self._source, *([self._when] if self._when else [])]

    def rounds(self, scope: Scope) -> Iterator[None]:
        """Yield once per item for which `when` is true, with the item in scope. Raises EvaluationFailed."""
        try:
            for _ in self._items(scope):
                if self._when is None or self._when.test(scope):
                    yield
        except Fault as fault:
            raise self._source.failed(str(fault)) from None


def _loop_name(name: Any, place: Location) -> str:
    if not is_name(name):
        raise place.at("as").error("must be a name, such as `order`, or a list of names")
    if name in place.names and name not in (ITEM, "calls"):
        raise place.at("as").error(f"the name {name!r} is already taken")
    return name


class _Loader:
    """Builds the closures of a value and collects its expressions."""

    def __init__(self) -> None:
        self.expressions: list[Expression] = []
        self.has_blanks = False

    def value(self, data: Any, place: Location, depth: int) -> Loaded:
        """Return the closure of a value, and its known shape."""
        if depth > MAX_DEPTH:
            raise place.error(f"nested more than {MAX_DEPTH} levels deep")
        if isinstance(data, str):
            return self._text(data, place)
        if isinstance(data, Mapping):
            return self._mapping(data, place, depth)
        if isinstance(data, list | tuple):
            return self._list(data, place, depth)
        if data is None or isinstance(data, bool | int | float):
            return constant(data), Plain(kind(data))
        raise place.error(f"{type(data).__name__} is not a JSON value")

    def _text(self, data: str, place: Location) -> Loaded:
        if not is_template(data):
            return constant(data), TEXT
        expression = self._keep(place.compile(data, is_text=True))
        return expression.raw, expression.shape

    def _keep(self, expression: Expression) -> Expression:
        self.expressions.append(expression)
        return expression

    def _mapping(self, data: Mapping[str, Any], place: Location, depth: int) -> Loaded:
        if "for_each" in data:
            return self._for_each(data, place, depth)
        if "cases" in data:
            return self._cases(data, place, depth)
        if "blank" in data and data.keys() <= {"blank", "known"}:
            return self._blank(data, place, depth)
        members, shapes = [], {}
        for key, member in data.items():
            there = place.at(str(key))
            if not isinstance(key, str):
                raise place.error(f"the key {key!r} is not a text")
            raw_key = self._text(key, there)[0] if is_template(key) else key
            value, shapes[key] = self.value(member, there, depth + 1)
            members.append((raw_key, value, there))

        def raw(scope: Scope) -> Any:
            scope.take_items(2 * len(members) + 1)
            return {
                key if type(key) is str else a_text(key_of(key(scope)), "a key"): _member(member, scope, there)  # type: ignore[operator]
                for key, member, there in members
            }

        return raw, Plain("an object", members=None if any(map(is_template, data)) else shapes)

    def _blank(self, data: Mapping[str, Any], place: Location, depth: int) -> Loaded:
        blank, _ = self.value(data["blank"], place.at("blank"), depth + 1)
        known, _ = self.value(data.get("known"), place.at("known"), depth + 1)
        self.has_blanks, names = True, {*data["blank"]} if isinstance(data["blank"], dict) else set()
        is_flat = names and not any(is_template(key) or isinstance(data["blank"][key], dict) for key in names)

        def raw(scope: Scope) -> Any:
            found = known(scope)
            is_whole = is_flat and isinstance(found, dict) and names <= found.keys()
            return found if is_whole else _fill(found, blank(scope))

        return raw if "known" in data else lambda scope: Blank(require(blank(scope))), ANY

    def _list(self, data: list[Any] | tuple[Any, ...], place: Location, depth: int) -> Loaded:
        places = [place.at(number) for number in range(len(data))]
        members = [(self.value(member, there, depth + 1)[0], there) for member, there in zip(data, places, strict=True)]

        def raw(scope: Scope) -> Any:
            scope.take_items(len(members) + 1)
            return [_member(member, scope, there) for member, there in members]

        return raw, LIST

    def _for_each(self, data: Mapping[str, Any], place: Location, depth: int) -> Loaded:
        place.check_fields(data, ("for_each", "value"), ("as", "when"))
        loop = Loop(data, place)
        self.expressions.extend(loop.expressions)
        at_value = loop.inner.at("value")
        value, shape = self.value(data["value"], at_value, depth + 1)

        def raw(scope: Scope) -> Any:
            found = [_member(value, scope, at_value) for _ in loop.rounds(scope)]
            scope.take_items(len(found))
            return found

        return raw, Plain("a list", inner=shape)

    def _cases(self, data: Mapping[str, Any], place: Location, depth: int) -> Loaded:
        cases = place.check_fields(data, ("cases",))["cases"]
        at_cases = place.at("cases")
        if not isinstance(cases, list | tuple) or not cases:
            raise at_cases.error("must be a list of {when, value}; the last one may leave out `when`")
        loaded = [
            self._case(case, at_cases.at(number), number == len(cases) - 1, depth) for number, case in enumerate(cases)
        ]
        missing = Missing("the value of `cases` when none is true")

        def raw(scope: Scope) -> Any:
            for when, value, _ in loaded:
                if when is None or when.test(scope):
                    return value(scope)
            return missing

        return raw, either([shape for _, _, shape in loaded if shape is not None])

    def _case(
        self, case: Any, place: Location, last: bool, depth: int
    ) -> tuple[Expression | None, Raw, AnyShape | None]:
        gives = "pass" if isinstance(case, Mapping) and "pass" in case else "value"
        place.check_fields(case, (gives,), ("when",))
        if "when" not in case and not last:
            raise place.error("`when` is missing: only the last case may leave it out")
        when = self._keep(place.at("when").compile(case["when"])) if "when" in case else None
        inner, shape = self.value(case[gives], place.at(gives), depth + 1)
        return (when, inner, shape) if gives == "value" else (when, _raise_not_known(inner), None)


def _fill(known: Any, blank: Any) -> Any:
    """Return the known value, with blanks for missing members."""
    if not isinstance(known, dict) or not isinstance(blank, dict):
        return known
    lacking = {key: Blank(each) for key, each in blank.items() if key not in known}
    inner = {key: _fill(known[key], each) for key, each in blank.items() if isinstance(each, dict) and key in known}
    return {**known, **inner, **lacking} if inner or lacking else known


def strip_blanks(value: Any, above: tuple[str, ...] = ()) -> tuple[Any, list[tuple[str, ...]]]:
    """Return a value with its blanks as plain values, and their places."""
    if type(value) is Blank:
        return value.value, [above]
    if not isinstance(value, dict | list):
        return value, []
    pairs = [*(value.items() if isinstance(value, dict) else enumerate(value))]
    deep = [(key, each) for key, each in pairs if isinstance(each, dict | list | Blank)]
    found = {key: strip_blanks(each, (*above, str(key))) for key, each in deep}
    places = [place for _, more in found.values() for place in more]
    plain = dict(pairs) | {key: each for key, (each, _) in found.items()}
    return plain if isinstance(value, dict) else list(plain.values()), places


def _raise_not_known(reason: Raw) -> Raw:
    def raw(scope: Scope) -> Any:
        raise NotKnown(text(scope, require(reason(scope))))

    return raw


def _member(member: Raw, scope: Scope, place: Location) -> Any:
    try:
        value = member(scope)
    except NotKnown as unknown:
        if scope.holes is None:
            raise
        scope.holes.append(OpenPart(str(unknown)))
        return scope.holes[-1]
    if type(value) is Missing:
        raise EvaluationFailed(f"{place.where}: {one_line(value.what, 300)} is undefined")
    return value
