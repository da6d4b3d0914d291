"""Contracts: a tool as a function over the task state, written as data.

A contract is a Hoare triple {P} tool {Q} (ToolGate, section 3.2): `requires` is P and decides whether the call may run
at all (section 3.4), `effects` and `returns` say what the tool does, `ensures` is Q and decides whether a result may be
committed. Unlike there, all of it is data that is checked at load: expressions and patch operations, never code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import ContractError, EvaluationFailed
from ..schemas.partial import Partial
from ..state import Call, Json, JsonObject, Patch
from .clauses import Change, Clause, Effect, load_effects, load_list
from .foreseen import foresee
from .language.expression import Expression, Missing, Scope
from .language.place import Place
from .language.template import Template
from .lets import LazyLets, Lets, load_lets, uses

BASE = frozenset(("args", "call", "before", "now", "state"))
"""What every expression of a contract may name."""

_FIELDS = ("let", "requires", "effects", "returns", "ensures")


class Refusal(NamedTuple):
    """A requirement that does not hold: the tool's own error, and what this error still changes."""

    error: Json
    patch: Patch


class ContractAnswer(NamedTuple):
    """What a contract says of a call that it lets pass."""

    result: Json
    patch: Patch


@dataclass(frozen=True, slots=True, repr=False)
class Contract:
    """A tool's contract, checked at load; made by `Contract.load`, and equal to another that says the same.

    Args:
        data: The contract as it was written.
        lets: The lets that its document shares, as they were written.
        state_keys: Root keys of the state that its expressions and literal paths name.
        arguments: Arguments that its expressions name.
        paths: Arguments that `at` takes as a whole path.
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
            data: `let`, `requires`, `effects`, `returns`, `ensures`; all optional.
            lets: The document's `x-contract-let`.
            where: Document and tool, for messages: `files.openapi.yaml: tool mkdir`.

        Raises:
            ContractError: Names document, tool, place and reason.
        """
        parts = _Parts(data, lets or {}, where)
        expressions = list(parts.needed_expressions())
        keys = frozenset(key for one in expressions for key in one.state_keys) | parts.roots
        arguments = frozenset(name for one in expressions for name in one.arguments)
        paths = frozenset(name for one in expressions for name in one.paths)
        return cls(dict(data), dict(lets or {}), keys, arguments, paths, parts)

    def __repr__(self) -> str:
        return f"Contract({', '.join(self.data)})"

    def fit(self, parameters: JsonObject, *, where: str) -> Contract:
        """The contract itself, if the tool can have every argument that it names.

        A schema that leaves arguments open, or puts itself together from others, is not looked at.

        Raises:
            ContractError: It names an argument that no call can have: a misspelling would be silently none.
        """
        composed = {"$ref", "allOf", "anyOf", "oneOf", "patternProperties"} & parameters.keys()
        known = parameters.get("properties")
        if composed or not isinstance(known, dict) or parameters.get("additionalProperties", False) is not False:
            return self
        foreign = sorted(self.arguments - known.keys())
        if foreign:
            raise ContractError(
                f"{where}: it names args.{foreign[0]}, but the tool has no such argument; "
                f"its arguments are {', '.join(sorted(known)) or 'none'}"
            )
        for name in sorted(self.paths & known.keys()):
            kind = known[name].get("type") if isinstance(known[name], dict) else None
            if isinstance(kind, str) and kind != "array":
                raise ContractError(
                    f"{where}: `at` takes args.{name} for a path, but it is no list: write [args.{name}]"
                )
        return self

    def unused_lets(self) -> list[str]:
        """Names of its own lets that nothing in it needs."""
        return sorted(set(self.data.get("let", {})) - uses(self._parts.own_expressions(), self._parts.lets))

    def constant_checks(self) -> list[str]:
        """Checks of its clauses that name nothing, and so always come out the same."""
        return [check for clause in (*self._parts.requires, *self._parts.ensures) if (check := clause.constant)]

    @property
    def ensures(self) -> bool:
        """Whether it says anything of a result."""
        return bool(self._parts.ensures)

    def foreseen(self) -> list[Partial]:
        """What is known of its results before any call, once for each of the cases; none where it only guards."""
        return foresee(self.data.get("returns")) if self._parts.answers else []

    def open(
        self, *, args: JsonObject, parameters: JsonObject, state: Json, call: Call, now: str | None, seed: int
    ) -> ContractRun:
        """Begin one call.

        Args:
            args: The call's arguments; defaults are filled in from `parameters`, absent optional ones become none.
            parameters: JSON Schema of the argument object.
            state: The task state before the call; it is not changed.
            call: The call itself.
            now: The state's clock, if it has one.
            seed: Seed of `new_id`.
        """
        clock = (
            Missing("now (the state has no clock: a text under `now` or `runtime_state.now`)") if now is None else now
        )
        values = {
            "args": {**_defaults(parameters), **args},
            "call": call,
            "before": state,
            "now": clock,
            "state": state,
        }
        return ContractRun(self._parts, Scope(values, seed=seed, call_id=lambda: _identity(call)))


def _defaults(parameters: JsonObject) -> JsonObject:
    properties = parameters.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: rule.get("default") if isinstance(rule, dict) else None for name, rule in properties.items()}


def _identity(call: Call) -> str:
    """What tells this call from others: models do reuse the identifiers of calls."""
    return f"{call['id']} {call['name']} {call['args']}"


class _Parts:
    """The checked clauses of a contract."""

    def __init__(self, data: Mapping[str, Any], shared: Mapping[str, Any], where: str) -> None:
        Place(where, frozenset()).fields(data, (), _FIELDS)
        self.where = where
        self.lets: Lets = load_lets(data.get("let", {}), shared, where=where, base=BASE)
        names = BASE | frozenset(self.lets)
        self.requires = [
            Clause(item, place, more=("effects",))
            for item, place in load_list(data.get("requires", []), Place(f"{where}: requires", names))
        ]
        self.effects = load_effects(data.get("effects", []), Place(f"{where}: effects", names))
        self.returns = Template.load(data.get("returns"), Place(f"{where}: returns", names))
        self.ensures = [
            Clause(item, place)
            for item, place in load_list(data.get("ensures", []), Place(f"{where}: ensures", names | {"result"}))
        ]
        self.answers = "effects" in data or "returns" in data

    @property
    def roots(self) -> frozenset[str]:
        """Root keys that literal paths name."""
        effects = [*self.effects, *(effect for clause in self.requires for effect in clause.effects)]
        return frozenset(root for effect in effects for root in effect.roots if root is not None)

    def own_expressions(self) -> list[Expression]:
        """The expressions of every part but the lets."""
        own = [*self.returns.expressions]
        for clause in (*self.requires, *self.ensures):
            own.extend(clause.expressions)
        for effect in self.effects:
            own.extend(effect.expressions)
        return own

    def needed_expressions(self) -> Iterator[Expression]:
        """The contract's own expressions, and those of the lets that they need."""
        own = self.own_expressions()
        yield from own
        for name in uses(own, self.lets):
            yield from self.lets[name].expressions


class ContractRun:
    """One call under one contract. Its lets are evaluated once, on the state before the call.

    `unclear` holds the requirements that `refusal` could not evaluate, each with the reason.
    """

    def __init__(self, parts: _Parts, scope: Scope) -> None:
        self.unclear: list[str] = []
        self._parts = parts
        self._scope = scope
        self._before = scope.values["state"]
        self._lets = LazyLets(parts.lets, scope)

    def refusal(self) -> Refusal | None:
        """The first requirement that does not hold (ToolGate, section 3.4), with what its error changes.

        Each is evaluated by itself: one that cannot be goes to `unclear`, and the others are still looked at.
        """
        self.unclear = []
        scope = self._begin(self._before)
        for clause in self._parts.requires:
            try:
                broken = clause.fails(scope)
            except EvaluationFailed as failure:
                scope = self._note(failure)
                continue
            if broken:
                return self._refused(clause, scope)
        return None

    def _note(self, failure: EvaluationFailed) -> Scope:
        """Keep a failure in `unclear`, without document and tool, and begin anew."""
        self.unclear.append(str(failure).removeprefix(f"{self._parts.where}: "))
        return self._begin(self._before)

    def _refused(self, clause: Clause, scope: Scope) -> Refusal:
        """The refusal by a broken clause, also where its error or effects cannot be evaluated."""
        error: Json = "a condition of this tool does not hold"
        try:
            error = clause.error(scope)
            return Refusal(error, self._change(clause.effects).patch)
        except EvaluationFailed as failure:
            self._note(failure)
            return Refusal(error, [])

    def answer(self) -> ContractAnswer | None:
        """Result and change of a call that the requirements let pass; None where the contract says neither.

        Raises:
            EvaluationFailed: They cannot be evaluated on this state, or the change does not apply to it.
        """
        if not self._parts.answers:
            return None
        self._begin(self._before)
        change = self._change(self._parts.effects)
        return ContractAnswer(self._parts.returns.fill(self._scope), change.patch)

    def broken(self, result: Json, after: Json) -> str | None:
        """The first of `ensures` that does not hold (ToolGate, section 3.2), as text.

        Args:
            result: The tool's result, whoever gave it.
            after: The state that the call would leave.

        Raises:
            EvaluationFailed: They cannot be evaluated on this state.
        """
        scope = self._begin(after, result=result)
        for clause in self._parts.ensures:
            if clause.fails(scope):
                return clause.error_text(scope)
        return None

    def _begin(self, state: Json, **more: Json) -> Scope:
        self._scope.start()
        self._scope.values = self._lets.names(state=state, **more)
        return self._scope

    def _change(self, effects: list[Effect]) -> Change:
        change = Change(self._scope, self._before)
        for effect in effects:
            effect.apply(change)
        return change


@dataclass(frozen=True, slots=True, repr=False)
class Invariant:
    """Something that holds of every state: `{check, error}` over `state` and `before`; made by `Invariant.load`."""

    data: JsonObject
    _clause: Clause = field(compare=False)
    _lets: Lets = field(compare=False)

    @classmethod
    def load(cls, data: Mapping[str, Any], *, lets: Mapping[str, Any] | None = None, where: str) -> Invariant:
        """Check an invariant.

        Args:
            data: `check` and `error`, perhaps `when`.
            lets: The document's `x-contract-let`; one that needs more than the state cannot be used here.
            where: Document and place, for messages.

        Raises:
            ContractError: Names document, place and reason.
        """
        shared = dict(lets or {})
        names = frozenset(("state", "before", *shared))
        clause = Clause(data, Place(where, names))
        loaded = load_lets({}, shared, where=where, base=BASE)
        needed = {name: loaded[name] for name in uses(clause.expressions, loaded)}
        for name, let in needed.items():
            beyond = sorted({one for source in let.expressions for one in source.names} - names)
            if beyond:
                raise ContractError(f"{where}: the let {name!r} needs {beyond[0]!r}, which an invariant does not have")
        return cls(dict(data), clause, needed)

    def __repr__(self) -> str:
        return f"Invariant({self.data.get('check')})"

    def broken(self, before: Json, after: Json) -> str | None:
        """Why the state `after` breaks it, as text, or None; lets are taken on `after`.

        Raises:
            EvaluationFailed: It cannot be evaluated on this state.
        """
        scope = Scope({"state": after, "before": before})
        LazyLets(self._lets, scope)
        return self._clause.error_text(scope) if self._clause.fails(scope) else None
