"""The clauses of a contract: effects, preconditions and postconditions, checked at load and evaluated on a scope."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from ..errors import EvaluationFailed, PatchConflict, did_you_mean
from ..state import Json, JsonObject, Operation, Patch, Violation
from ..values.patch import apply_patch, tokens
from ..values.places import as_text, pointer
from .language.examine import ANY, AnyShape
from .language.expression import Expression, Location, Scope
from .language.operators import splice
from .language.sandbox import Fault
from .language.syntax import StatePath, is_template
from .language.template import Loop, Template
from .language.things import look
from .words import describe_check

OPERATIONS: dict[str, tuple[str, ...]] = {
    "add": ("path", "value"), "remove": ("path",), "replace": ("path", "value"), "move": ("from", "path"),
    "copy": ("from", "path"), "test": ("path", "value"), "gone": ("path",),
}  # fmt: skip
"""Operations of a JSON Patch with their required fields, and `gone`: a removal that also records that the place is
empty."""

KINDS = ("policy", "tool", "sense")
"""The kind of a clause: a house rule, a rule of the tool itself, or common sense."""

STATUSES = ("written", "established", "derived", "proposed", "refuted", "unknown")
"""The evidence of a branch: written by a person; established by rows; derived from a document; proposed or refuted by
rows; unknown without rows."""

Part = Literal["requires", "ensures", "invariant"]

MAX_OPERATIONS = 1_000
"""Most patch operations of one contract."""

_NOTHING = object()
_GUARDS = ("when", "for_each", "as", "part", "of")


def status_of(evidence: Any, place: Location) -> str:
    """Return the status of evidence: `written` if there is none. Raises ContractError."""
    status = place.check_object(evidence).get("status", "written") if evidence is not None else "written"
    if status not in STATUSES:
        raise place.at("status").error(f"expected one of {', '.join(STATUSES)}, got {status!r:.40}")
    return str(status)


def read_http(data: Any, place: Location) -> JsonObject:
    """Return `status` and `headers` of an answer's HTTP response, as written. Raises ContractError."""
    fields = place.check_fields(data, (), ("status", "headers"))
    status, headers = fields.get("status", 200), fields.get("headers", {})
    if type(status) is not int or not 200 <= status <= 599 or not isinstance(headers, Mapping):
        raise place.error("expected a status from 200 to 599, and headers as an object")
    return dict(fields)


def load_list(data: Any, place: Location) -> list[tuple[Any, Location]]:
    """Return the items of a list, each with its place. Raises ContractError."""
    if not isinstance(data, list | tuple):
        raise place.error(f"expected a list, got {type(data).__name__}")
    return [(item, place.at(number)) for number, item in enumerate(data)]


class Path:
    """A path: a list of tokens, with nested lists flattened, or one expression that returns such a list."""

    def __init__(self, data: Any, place: Location, *, is_new: bool = False) -> None:
        self.root: str | None = None
        self.is_root = isinstance(data, list | tuple) and len(data) == 1
        self.shape: AnyShape = ANY
        if isinstance(data, str):
            if len(place.compile(data, is_text=True).code.parts) != 1 or not is_template(data):
                raise place.error(
                    f'expected a list of tokens like [orders, "{{{{ args.id }}}}"], got the text {data!r}'
                )
        elif isinstance(data, list | tuple):
            _check_tokens(data, place)
            self.root = data[0] if data and isinstance(data[0], str) and "{{" not in data[0] else None
            if place.report is not None:
                self.shape = _check_place(data, place, is_new=is_new)
        else:
            raise place.error(f"expected a list of tokens or one expression, got {type(data).__name__}")
        self._tokens = Template(data, place)
        self.expressions = self._tokens.expressions

    def pointer(self, scope: Scope) -> str:
        """Return the path as a JSON Pointer. Raises EvaluationFailed."""
        try:
            return pointer(splice(scope, self._tokens.raw(scope)))
        except Fault as fault:
            raise EvaluationFailed(f"{self._tokens.where}: {fault}") from None


def _check_tokens(tokens: list[Any] | tuple[Any, ...], place: Location) -> None:
    for number, token in enumerate(tokens):
        if isinstance(token, list | tuple):
            _check_tokens(token, place.at(number))
        elif not isinstance(token, str) and type(token) is not int:
            raise place.at(number).error(f"expected a token as a text or a whole number, got {type(token).__name__}")


def _check_place(tokens: Sequence[Any], place: Location, *, is_new: bool) -> AnyShape:
    """Return the known shape of the value at a path; report a path without a place in the state.

    In an example state the last key of a new value may be missing.
    """
    shape: AnyShape = place.names["state"]
    silent = replace(place, report=lambda _: None)
    for number, token in enumerate(tokens):
        is_literal = type(token) is int or (isinstance(token, str) and not is_template(token))
        kinds = None if is_literal else Template(token, silent).shape.kinds
        if not is_literal and (kinds is None or "a list" in kinds):
            return ANY  # it may be several tokens
        is_index = not is_literal or str(token) == "-" or str(token).isdecimal()
        found = shape.member(None if is_index else token)
        if found is None:
            hint = did_you_mean(str(token), shape.keys)
            if hint or not (is_new and shape.is_example and number == len(tokens) - 1):
                place.at(number).tell(f"the path leads nowhere: unknown key {token!r}{hint}")
            return ANY
        shape = found
    return shape


class PatchBuilder:
    """A patch under construction; each operation is applied, and the next one sees the resulting state."""

    def __init__(self, scope: Scope, state: Json, *, grows: bool = False) -> None:
        self.scope, self.grows = scope, grows
        self.state = state
        self.patch: Patch = []
        self.shown: dict[tuple[str, ...], JsonObject | None] = {}
        """Partly known collection to its newly known part; see `world/shown.py`."""

    def add(self, operation: Operation, where: str) -> None:
        """Apply one more operation. Raises EvaluationFailed if it does not apply or exceeds the limit."""
        if len(self.patch) >= MAX_OPERATIONS:
            raise EvaluationFailed(f"{where}: more than {MAX_OPERATIONS:,} operations")
        if operation["op"] == "gone":
            keys = tokens(operation["path"])
            above = tuple(keys[:-1])
            self.shown[above] = {"": [*(self.shown.get(above) or {}).get("", ()), keys[-1]]}
            if look(self.state, keys)[1] < len(keys):
                return
            operation = {"op": "remove", "path": operation["path"]}
        elif self.grows and operation["op"] in ("add", "replace"):
            operation = self._grow(operation, where)
        try:
            self.state = apply_patch(self.state, [operation])
        except PatchConflict as conflict:
            raise EvaluationFailed(f"{where}: the change does not apply: {conflict}") from None
        self.patch.append(operation)
        self.scope.values["state"] = self.state

    def _grow(self, operation: Operation, where: str) -> Operation:
        """Add missing objects on the path to an unknown place; return an addition if the place is missing."""
        *above, last = tokens(operation["path"]) or [""]
        found: Any = self.state
        for depth, key in enumerate(above, 1):
            if isinstance(found, dict) and key not in found:
                self.shown.setdefault(tuple(above[:depth]), None)
                self.add({"op": "add", "path": pointer(above[:depth]), "value": {}}, where)
                found = {key: {}}
            found = found.get(key) if isinstance(found, dict) else None
        return {**operation, "op": "add"} if isinstance(found, dict) and last not in found else operation


class Effect:
    """One operation, or several under one guard (`do`), optionally for each item of a list."""

    def __init__(self, data: Any, place: Location) -> None:
        self._where = place.where
        self._op, needed = _read_operation(data, place)
        self._loop = Loop(data, place) if "for_each" in data else None
        for key in ("as", "part", "of"):
            if key in data and self._loop is None:
                raise place.at(key).error("only with `for_each`")
        self._part = Template(data["part"], place.at("part")) if "part" in data else None
        self._of = Path(data["of"], place.at("of")) if "of" in data else None
        self._is_whole_list = self._loop is not None and "when" not in data
        inner = self._loop.inner if self._loop else place
        self._when = place.at("when").compile(data["when"]) if "when" in data and self._loop is None else None
        self._do = load_effects(data["do"], inner.at("do")) if "do" in needed else []
        self._from = Path(data["from"], inner.at("from")) if "from" in needed else None
        is_new = self._op in ("add", "move", "copy")
        self._path = Path(data["path"], inner.at("path"), is_new=is_new) if "path" in needed else None
        self._value = Template(data["value"], inner.at("value")) if "value" in needed else None
        wanted, given = self._path.shape if self._path else ANY, self._value.shape if self._value else ANY
        if wanted.kinds and given.kinds and not wanted.is_example and not wanted.kinds & given.kinds:
            expected, got = (" or ".join(sorted(kinds)) for kinds in (wanted.kinds, given.kinds))
            inner.at("value").tell(f"expected {expected}, as the schema of the task state has it, got {got}")
        self.expressions = tuple(self._all_expressions())
        self.roots = {path.root for path in (self._from, self._path) if path and path.root is not None}
        self.roots.update(*(effect.roots for effect in self._do))
        self.whole = {path.root for path in (self._path,) if path and path.root is not None and path.is_root}
        self.whole.update(*(effect.whole for effect in self._do))

    def _all_expressions(self) -> Iterator[Expression]:
        if self._when is not None:
            yield self._when
        for part in (self._loop, self._of, self._from, self._path, self._value, *self._do):
            if part is not None:
                yield from part.expressions

    def collection(self, scope: Scope) -> tuple[str, ...] | None:
        """Return the place of the things that a read lists, if `of` states it. Raises EvaluationFailed."""
        return tuple(tokens(self._of.pointer(scope))) if self._of else None

    def part(self, scope: Scope, args: JsonObject) -> JsonObject | None:
        """Return the common values of the things that a read has listed: its `part`, else its arguments.

        {} if it lists all of the collection; None if it was no list, or is filtered. Raises EvaluationFailed.
        """
        if self._part is not None:
            written = self._part.fill(scope)
            return (
                {key: each for key, each in written.items() if each is not None} if isinstance(written, dict) else None
            )
        return args if self._is_whole_list else None

    def apply(self, change: PatchBuilder) -> None:
        """Add the operations to a change, on the state so far. Raises EvaluationFailed."""
        if self._loop is not None:
            for _ in self._loop.rounds(change.scope):
                self._apply_once(change)
        elif self.applies(change.scope):
            self._apply_once(change)

    def applies(self, scope: Scope) -> bool:
        """Return whether its own guard is true; items that a loop skips do not count. Raises EvaluationFailed."""
        return self._when is None or self._when.test(scope)

    def _apply_once(self, change: PatchBuilder) -> None:
        for effect in self._do:
            effect.apply(change)
        if self._path is None:
            return
        operation: Operation = {"op": self._op}
        if self._from is not None:
            operation["from"] = self._from.pointer(change.scope)
        operation["path"] = self._path.pointer(change.scope)
        if self._value is not None:
            operation["value"] = self._value.fill(change.scope)
        change.add(operation, self._where)


def _read_operation(data: Any, place: Location) -> tuple[str, tuple[str, ...]]:
    """Return the operation's name and its required fields. Raises ContractError."""
    if isinstance(data, Mapping) and "do" in data:
        place.check_fields(data, ("do",), _GUARDS)
        return "do", ("do",)
    if not isinstance(data, Mapping) or "op" not in data:
        raise place.error(f"expected an object with `op` ({', '.join(OPERATIONS)}) or `do`")
    op = data["op"]
    if not isinstance(op, str) or op not in OPERATIONS:
        raise place.at("op").error(f"expected one of {', '.join(OPERATIONS)}, got {op!r}")
    place.check_fields(data, ("op", *OPERATIONS[op]), _GUARDS)
    return op, OPERATIONS[op]


def load_effects(data: Any, place: Location) -> list[Effect]:
    return [Effect(item, where) for item, where in load_list(data, place)]


def read_follows(data: Any, place: Location) -> list[JsonObject]:
    """Return the established effects that follow a success, each `{id, do, evidence}`. Raises ContractError."""
    found: list[JsonObject] = []
    for each, there in load_list(data, place):
        there.check_fields(each, ("id", "do", "evidence"))
        load_effects(each["do"], there.at("do"))
        found += [each] if status_of(each["evidence"], there.at("evidence")) == "established" else []
    return found


class Clause:
    """`{check, when, error, id, kind}`: a requirement, postcondition or invariant.

    A requirement's error may have effects. With `pass` instead of `error`, the contract has no answer if the check
    fails; with `open`, it refuses the call with an unknown error. A rule that evidence has not established only warns.
    """

    def __init__(self, data: Any, place: Location, *, part: Part, more: tuple[str, ...] = ()) -> None:
        others = [key for key in ("pass", "open") if part == "requires" and isinstance(data, Mapping) and key in data]
        self._says = says = others[0] if others else "error"
        place.check_fields(
            data, ("check", says), ("when", "id", "kind", "evidence", "status", *(() if others else more))
        )
        self.status = status_of(data.get("evidence"), place.at("evidence"))
        self.passes = says == "pass" or (part == "requires" and self.status in ("proposed", "refuted"))
        self.evidence = {"check": data["check"], **data["evidence"]} if data.get("evidence") else {}
        self._part, self.kind = part, data.get("kind", "tool")
        number = place.where.rstrip("]").rpartition("[" if place.where.endswith("]") else "/")[2]
        self.name = data.get("id", f"{part}s[{number}]" if part == "invariant" else f"{part}[{number}]")
        if not isinstance(self.name, str) or not self.name:
            raise place.at("id").error(f"expected a text, got {self.name!r:.40}")
        if self.kind not in KINDS:
            raise place.at("kind").error(f"expected one of {', '.join(KINDS)}, got {self.kind!r:.40}")
        self.answers = read_http({"status": data["status"]}, place) if "status" in data else {}
        self.check = place.at("check").compile(data["check"])
        self._when = place.at("when").compile(data["when"]) if "when" in data else None
        self._error = Template(data[says], place.at(says))
        self.effects = load_effects(data.get("effects", []), place.at("effects"))
        effects = (expression for effect in self.effects for expression in effect.expressions)
        self.expressions = (*self.condition, *self._error.expressions, *effects)

    @property
    def is_open(self) -> bool:
        """Whether it refuses calls with an unknown error."""
        return self._says == "open"

    @property
    def condition(self) -> list[Expression]:
        """The expressions that decide whether it fails."""
        return [self.check, *([self._when] if self._when else [])]

    def fails(self, scope: Scope) -> bool:
        """Return whether the clause applies and its check is false. Raises EvaluationFailed."""
        return (self._when is None or self._when.test(scope)) and not self.check.test(scope)

    def error(self, scope: Scope) -> Json:
        """Evaluate and return the error; if it is open, its known part as text. Raises EvaluationFailed."""
        error = self._error.fill(scope)
        return as_text(error) if self.is_open else error

    def error_text(self, scope: Scope) -> str:
        """Return the error as text, or why a requirement passes. Raises EvaluationFailed."""
        text = as_text(self._error.fill(scope))
        return f"perhaps refused: {text}" if self.passes and self._says != "pass" else text

    def violation(self, error: Json) -> Violation:
        """Return the record of a call that breaks the clause with this error."""
        found: Violation = {"clause": self.name, "kind": self.kind, "part": self._part, "error": error}
        return {**found, "evidence": {**self.evidence}} if self.evidence else found


def tell_rule(violation: Violation) -> str:
    """Return a sentence on a learned rule that a call breaks, with its evidence."""
    known, error = violation.get("evidence", {}), " ".join(as_text(violation["error"]).split())
    speaks = f"{known.get('for', 0)} refusals, {len(known.get('against', ())) or 'no'} calls against it"
    words = describe_check(str(known.get("check", "")))
    by = "its document, and" if known.get("by") == "document" else "a rule learned from"
    return f"{error} (by {by} {speaks}{f': lawful if {words}' if words else ''})"


def as_doubt(clause: Mapping[str, Any]) -> JsonObject:
    """Return a learned requirement that refuses nothing; if it fails, the contract has no answer."""
    error = clause.get("error", clause.get("open"))
    kept = {key: clause[key] for key in ("id", "when", "check") if key in clause}
    return {**kept, "pass": clause.get("pass", f"perhaps refused: {as_text(error)}")}


def is_shared(old: Json, new: Json, path: StatePath) -> bool:
    """Return whether two states share the value at a path; or the last value that exists on it."""
    for key in path:
        if not isinstance(old, dict) or not isinstance(new, dict):
            break
        old, new = old.get(key, _NOTHING), new.get(key, path)  # missing in both does not count as shared
    return old is new


def read_requires(data: Any, shared: Mapping[str, Any], whole: Location) -> Iterator[tuple[Any, Location]]:
    """Yield the requirements with their places; `use` inserts shared ones by name. Raises ContractError."""
    written = load_list(data, whole.part("requires"))
    is_shared = any(isinstance(item, Mapping) and "use" in item for item, _ in written)
    for number, (item, place) in enumerate(written):
        if not isinstance(item, Mapping) or "use" not in item:
            yield {"id": f"requires[{number}]", **item} if is_shared and isinstance(item, Mapping) else item, place
            continue
        name = place.check_fields(item, ("use",))["use"]
        if not isinstance(name, str) or name not in shared:
            hint = did_you_mean(str(name), shared) or f"; known: {', '.join(shared) or 'none'}"
            raise place.at("use").error(f"unknown shared requirement {name!r}{hint}")
        here = whole.part("x-contract-requires", name)
        group = shared[name]
        for one, there in load_list(group, here) if isinstance(group, list | tuple) else [(group, here)]:
            yield {"id": name + there.where.removeprefix(here.where), **there.check_object(one)}, there
