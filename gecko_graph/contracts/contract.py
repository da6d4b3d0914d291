"""Contracts: a tool as a function over the task state, written as data.

A contract is a Hoare triple {P} tool {Q} (ToolGate, section 3.2): `requires` is P and decides whether the call may run
at all (section 3.4), `effects` and `returns` define what the tool does, `ensures` is Q and decides whether a result is
committed. Unlike there, all of it is data, checked at load: expressions and patch operations, never code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import ContractError, EvaluationFailed
from ..schemas.partial import Partial
from ..state import Call, Json, JsonObject, Patch
from ..task_state.patch import pointer
from .admissible import FAILED, Admissibility, find_free, judge_clauses, refuse_identity
from .clauses import Change, Clause, Effect, load_effects, load_list
from .foreseen import foresee
from .language.expression import Expression, Missing, Scope
from .language.location import Location
from .language.template import Template
from .lets import LazyLets, Lets, find_used_lets, load_lets

BASE = frozenset(("args", "call", "before", "now", "state"))
"""Names available to every expression of a contract."""

_FIELDS = ("at", "let", "requires", "effects", "returns", "ensures", "observes")


class Refusal(NamedTuple):
    """A failed requirement: the tool's own error, and the changes that it makes all the same."""

    error: Json
    patch: Patch


class ContractAnswer(NamedTuple):
    """Result and patch of a call whose requirements are met."""

    result: Json
    patch: Patch


@dataclass(frozen=True, slots=True, repr=False)
class Contract:
    """A tool's contract, checked at load; made by `Contract.load`, and equal to another with the same data.

    Args:
        data: The contract as written.
        lets: The shared lets of its document, as written.
        state_keys: Root keys of the state that its expressions and literal paths name.
        arguments: Arguments that its expressions name.
        paths: Arguments that `at` uses as a whole path.
    """

    data: JsonObject
    lets: JsonObject
    state_keys: frozenset[str] = field(compare=False)
    arguments: frozenset[str] = field(compare=False)
    paths: frozenset[str] = field(compare=False)
    _parts: _Parts = field(compare=False)

    @classmethod
    def load(cls, data: Mapping[str, Any], *, lets: Mapping[str, Any] | None = None, where: str) -> Contract:
        """Check a contract and everything in it.

        Args:
            data: `let`, `requires`, `effects`, `returns`, `ensures`, `observes`; all optional. With `at`, keys of the
                task state, `state` is what stands there.
            lets: The document's `x-contract-let`.
            where: Document and tool, for messages: `files.openapi.yaml: tool mkdir`.

        Raises:
            ContractError: Names document, tool, place and reason.
        """
        parts = _Parts(data, lets or {}, where)
        expressions = list(parts.needed_expressions())
        keys = frozenset(key for expression in expressions for key in expression.state_keys) | parts.roots
        keys = frozenset(parts.at[:1]) or keys
        arguments = frozenset(name for expression in expressions for name in expression.arguments)
        paths = frozenset(name for expression in expressions for name in expression.paths)
        return cls(dict(data), dict(lets or {}), keys, arguments, paths, parts)

    def __repr__(self) -> str:
        return f"Contract({', '.join(self.data)})"

    def fit(self, parameters: JsonObject, *, where: str) -> Contract:
        """Return the contract itself, after checking that the tool has every argument that it names.

        Schemas that are open or composed of others are not checked.

        Raises:
            ContractError: It names an argument that no call can have: a misspelling would silently be none.
        """
        composed = {"$ref", "allOf", "anyOf", "oneOf", "patternProperties"} & parameters.keys()
        known = parameters.get("properties")
        if composed or not isinstance(known, dict) or parameters.get("additionalProperties", False) is not False:
            return self
        foreign = sorted(self.arguments - known.keys())
        if foreign:
            raise ContractError(
                f"{where}: unknown argument args.{foreign[0]}; "
                f"the tool's arguments are {', '.join(sorted(known)) or 'none'}"
            )
        for name in sorted(self.paths & known.keys()):
            kind = known[name].get("type") if isinstance(known[name], dict) else None
            if isinstance(kind, str) and kind != "array":
                raise ContractError(
                    f"{where}: `at` expects a list as a path, but args.{name} has the type {kind}: write [args.{name}]"
                )
        return self

    def unused_lets(self) -> list[str]:
        """Return the names of its own lets that nothing in it uses."""
        return sorted(set(self.data.get("let", {})) - find_used_lets(self._parts.own_expressions(), self._parts.lets))

    def constant_checks(self) -> list[str]:
        """Return checks without names, whose value is constant."""
        return [check for clause in (*self._parts.requires, *self._parts.ensures) if (check := clause.constant)]

    def foreseen(self) -> list[Partial]:
        """Return the partly known results before any call, one per case; none where it only has requirements."""
        return foresee(self.data.get("returns")) if self._parts.answers else []

    def open(
        self, *, args: JsonObject, parameters: JsonObject, state: Json, call: Call, now: str | None, seed: int
    ) -> ContractRun:
        """Begin one call.

        Args:
            args: The call's arguments; defaults come from `parameters`, other absent ones become none.
            parameters: JSON Schema of the argument object.
            state: The task state before the call; it is not changed.
            call: The call itself.
            now: The state's clock, if it has one.
            seed: Seed of `new_id`.
        """
        values = {"args": {**_defaults(parameters), **args}, "call": call, **self._names(state, now)}
        return ContractRun(self._parts, Scope(values, seed=seed, call_id=lambda: _identity(call)))

    @property
    def is_gated(self) -> bool:
        """True if it has requirements that need no arguments."""
        return bool(self._parts.free)

    def admissible(self, state: Json, *, now: str | None, seed: int = 0) -> Admissibility:
        """Return whether the requirements that need neither arguments nor call hold in a state.

        Args:
            state: The task state; it is not changed.
            now: The state's clock, if it has one.
            seed: As for `open`.
        """
        if not self._parts.free:
            return Admissibility("yes")
        run = ContractRun(self._parts, Scope(self._names(state, now), seed=seed, call_id=refuse_identity))
        return judge_clauses(self._parts.free, run.begin, where=self._parts.where)

    def _names(self, state: Json, now: str | None) -> JsonObject:
        """Return the names that do not depend on the call, with their values."""
        no_clock = "now (the state has no clock: a text under `now` or `runtime_state.now`)"
        here = part_of(state, self._parts.at)
        return {"before": here, "now": Missing(no_clock) if now is None else now, "state": here}


def _defaults(parameters: JsonObject) -> JsonObject:
    properties = parameters.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: rule.get("default") if isinstance(rule, dict) else None for name, rule in properties.items()}


def _identity(call: Call) -> str:
    """Return an identity for the call: models do reuse the identifiers of calls."""
    return f"{call['id']} {call['name']} {call['args']}"


class _Parts:
    """The checked clauses of a contract."""

    def __init__(self, data: Mapping[str, Any], shared: Mapping[str, Any], where: str) -> None:
        Location(where, frozenset()).check_fields(data, (), _FIELDS)
        self.where = where
        self.at = read_mount(data.get("at"), Location(f"{where}: at", frozenset()))
        self.lets: Lets = load_lets(data.get("let", {}), shared, where=where, base=BASE)
        names = BASE | frozenset(self.lets)
        self.requires = [
            Clause(item, place, more=("effects",))
            for item, place in load_list(data.get("requires", []), Location(f"{where}: requires", names))
        ]
        self.effects = load_effects(data.get("effects", []), Location(f"{where}: effects", names))
        self.returns = Template.load(data.get("returns"), Location(f"{where}: returns", names))
        self.ensures = [
            Clause(item, place)
            for item, place in load_list(data.get("ensures", []), Location(f"{where}: ensures", names | {"result"}))
        ]
        self.observes = load_effects(data.get("observes", []), Location(f"{where}: observes", names | {"result"}))
        self.answers = "effects" in data or "returns" in data
        self.free = find_free(self.requires, self.lets)

    @property
    def roots(self) -> frozenset[str]:
        """Root keys that literal paths name."""
        effects = [*self.effects, *self.observes, *(effect for clause in self.requires for effect in clause.effects)]
        return frozenset(root for effect in effects for root in effect.roots if root is not None)

    def own_expressions(self) -> list[Expression]:
        """Return the expressions of every part but the lets."""
        own = [*self.returns.expressions]
        for clause in (*self.requires, *self.ensures):
            own.extend(clause.expressions)
        for effect in (*self.effects, *self.observes):
            own.extend(effect.expressions)
        return own

    def needed_expressions(self) -> Iterator[Expression]:
        """Yield the contract's own expressions, and those of the lets that they need."""
        own = self.own_expressions()
        yield from own
        for name in find_used_lets(own, self.lets):
            yield from self.lets[name].expressions


class ContractRun:
    """One call under one contract. Its lets are evaluated once, on the state before the call.

    `unclear` lists the requirements that `refusal` could not evaluate, with the reasons.
    """

    def __init__(self, parts: _Parts, scope: Scope) -> None:
        self.unclear: list[str] = []
        self._parts = parts
        self._scope = scope
        self._before = scope.values["state"]
        self._lets = LazyLets(parts.lets, scope)

    def refusal(self) -> Refusal | None:
        """Return the first failed requirement (ToolGate, section 3.4), with the changes of its error.

        Each is evaluated by itself: one that cannot be evaluated goes to `unclear`, and the others are still checked.
        """
        self.unclear = []
        scope = self._begin(self._before)
        for clause in self._parts.requires:
            try:
                failed = clause.fails(scope)
            except EvaluationFailed as failure:
                scope = self._note(failure)
                continue
            if failed:
                return self._build_refusal(clause, scope)
        return None

    def _note(self, failure: EvaluationFailed) -> Scope:
        """Add a failure to `unclear`, without document and tool, and begin again."""
        self.unclear.append(str(failure).removeprefix(f"{self._parts.where}: "))
        return self._begin(self._before)

    def _build_refusal(self, clause: Clause, scope: Scope) -> Refusal:
        """Build the refusal of a failed clause, even if its error or effects cannot be evaluated."""
        error: Json = FAILED
        try:
            error = clause.error(scope)
            return Refusal(error, self._change(clause.effects))
        except EvaluationFailed as failure:
            self._note(failure)
            return Refusal(error, [])

    def answer(self) -> ContractAnswer | None:
        """Return result and patch of a call whose requirements are met; None where the contract defines neither.

        Raises:
            EvaluationFailed: They cannot be evaluated on this state, or the patch does not apply to it.
        """
        if not self._parts.answers:
            return None
        self._begin(self._before)
        patch = self._change(self._parts.effects)
        return ContractAnswer(self._parts.returns.fill(self._scope), patch)

    def violated_postcondition(self, result: Json, after: Json) -> str | None:
        """Return the first violated postcondition of `ensures` (ToolGate, section 3.2), as text.

        Args:
            result: The tool's result, from any rung.
            after: The state after the call.

        Raises:
            EvaluationFailed: They cannot be evaluated on this state.
        """
        scope = self._begin(part_of(after, self._parts.at), result=result)
        for clause in self._parts.ensures:
            if clause.fails(scope):
                return clause.error_text(scope)
        return None

    broken = violated_postcondition  # the old name

    def observe(self, result: Json) -> Patch:
        """Return what a real result shows of the state, by `observes`.

        Raises:
            EvaluationFailed: It cannot be evaluated on this state, or the patch does not apply to it.
        """
        self._begin(self._before, result=result)
        return self._change(self._parts.observes)

    def begin(self) -> Scope:
        """Return the names before the call, with budgets of their own."""
        return self._begin(self._before)

    def _begin(self, state: Json, **more: Json) -> Scope:
        self._scope.start()
        self._scope.values = self._lets.names(state=state, **more)
        return self._scope

    def _change(self, effects: list[Effect]) -> Patch:
        change, above = Change(self._scope, self._before), pointer(self._parts.at)
        for effect in effects:
            effect.apply(change)
        if not above:
            return change.patch
        return [{**one, **{key: above + one[key] for key in ("path", "from") if key in one}} for one in change.patch]


def read_mount(at: Any, place: Location) -> tuple[str, ...]:
    """Return the keys of `at`: a key of the task state, or a list of keys from its root. Raises ContractError."""
    keys = (at,) if isinstance(at, str) else tuple(at or ()) if isinstance(at, list | tuple | None) else None
    if keys is None or not all(isinstance(key, str) and key for key in keys):
        raise place.error(f"expected a key of the task state, or a list of keys, got {at!r}")
    return keys


def part_of(state: Json, at: tuple[str, ...]) -> Json:
    """Return what stands below these keys of the task state; an empty object where there is nothing."""
    for key in at:
        state = state.get(key, {}) if isinstance(state, dict) else {}
    return state


@dataclass(frozen=True, slots=True, repr=False)
class Invariant:
    """A condition on every state: `{check, error}` over `state` and `before`; made by `Invariant.load`."""

    data: JsonObject
    _clause: Clause = field(compare=False)
    _lets: Lets = field(compare=False)
    _at: tuple[str, ...] = field(compare=False, default=())

    @classmethod
    def load(cls, data: Mapping[str, Any], *, lets: Mapping[str, Any] | None = None, where: str) -> Invariant:
        """Check an invariant.

        Args:
            data: `check` and `error`, optionally `when`, `at` (as a contract's) and `let`, in the place of `lets`.
            lets: The document's `x-contract-let`; one that needs more than the state cannot be used here.
            where: Document and place, for messages.

        Raises:
            ContractError: Names document, place and reason.
        """
        Location(where, frozenset()).check_fields(data, ("check", "error"), ("when", "at", "let"))
        shared = dict(data.get("let", lets) or {})
        names = frozenset(("state", "before", *shared))
        at = read_mount(data.get("at"), Location(f"{where}: at", frozenset()))
        clause = Clause({key: data[key] for key in data if key not in ("at", "let")}, Location(where, names))
        loaded = load_lets({}, shared, where=where, base=BASE)
        needed = {name: loaded[name] for name in find_used_lets(clause.expressions, loaded)}
        for name, let in needed.items():
            beyond = sorted({used for source in let.expressions for used in source.names} - names)
            if beyond:
                raise ContractError(f"{where}: the let {name!r} uses {beyond[0]!r}, not available in an invariant")
        return cls(dict(data), clause, needed, at)

    def __repr__(self) -> str:
        return f"Invariant({self.data.get('check')})"

    def violation(self, before: Json, after: Json) -> str | None:
        """Return why the state `after` violates it, as text, or None; lets are evaluated on `after`.

        Raises:
            EvaluationFailed: It cannot be evaluated on this state.
        """
        scope = Scope({"state": part_of(after, self._at), "before": part_of(before, self._at)})
        LazyLets(self._lets, scope)
        return self._clause.error_text(scope) if self._clause.fails(scope) else None

    broken = violation  # the old name
