"""Invariants: conditions on every state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..state import Json, JsonObject, Violation
from .clauses import Clause, is_shared
from .contract import shape_below
from .language.examine import ANY, AnyShape
from .language.expression import Location, Origin, Scope, raise_error
from .language.syntax import StatePath
from .lets import LazyLets, Lets, find_used_lets, load_lets
from .run import BASE, read_mount, subtree


@dataclass(frozen=True, slots=True, repr=False)
class Invariant:
    """A condition on every state: `{check, error}` over `state` and `before`; made by `Invariant.load`."""

    data: JsonObject
    _clause: Clause = field(compare=False)
    _lets: Lets = field(compare=False)
    _at: tuple[str, ...] = field(compare=False, default=())
    _paths: frozenset[StatePath] | None = field(compare=False, default=None)
    """The paths of the state that it reads; None if it reads all, or compares with the state before."""
    _source: Mapping[str, Any] = field(compare=False, default_factory=dict)
    """The arguments of `load`."""

    @classmethod
    def load(
        cls,
        data: Mapping[str, Any],
        *,
        lets: Mapping[str, Any] | None = None,
        where: str,
        origin: Origin | None = None,
        state: AnyShape = ANY,
    ) -> Invariant:
        """Check an invariant.

        Args:
            data: `check` and `error`, optionally `when`, `at` (as in a contract) and `let`, which replaces `lets`.
            lets: The document's `x-contract-let`; lets that need more than the state cannot be used here.
            where: Document and place, for messages.
            origin: The file and the place in it, for the line in messages.
            state: The known shape of the task state.

        Raises:
            ContractError: Names document, place, line and reason.
        """
        place = Location(where, dict.fromkeys(("state", "before"), ANY), origin=origin)
        place.check_fields(data, ("check", "error"), ("when", "id", "kind", "at", "let"))
        shared = dict(data.get("let", lets) or {})
        at = read_mount(data.get("at"), place.at("at"))
        here = shape_below(state, at)
        place = replace(place, names={"state": here, "before": here}, report=raise_error)
        own = {key: data[key] for key in data if key not in ("at", "let")}
        loaded, _ = load_lets({}, shared, replace(place, names=dict.fromkeys(BASE, ANY)))
        clause = Clause(own, place.with_names(**dict.fromkeys(loaded, ANY)), part="invariant")
        needed = {name: loaded[name] for name in find_used_lets(clause.expressions, loaded)}
        for name, let in needed.items():
            beyond = sorted({used for source in let.expressions for used in source.names} & BASE - {"state", "before"})
            if beyond:
                raise place.error(f"the let {name!r} uses {beyond[0]!r}, not available in an invariant")
        expressions = [*clause.expressions, *(each for let in needed.values() for each in let.expressions)]
        paths = frozenset[StatePath]().union(*(expression.code.paths for expression in expressions))
        known = None if any("before" in expression.names for expression in expressions) else paths
        return cls(dict(data), clause, needed, at, known, {"lets": lets, "where": where, "origin": origin})

    def __reduce__(self) -> Any:
        return partial(Invariant.load, self.data, **self._source), ()

    def __repr__(self) -> str:
        return f"Invariant({self.data.get('check')})"

    def is_touched(self, before: Json, after: Json) -> bool:
        """Return whether a change may affect its value: not if the states share all that it reads."""
        old, new = subtree(before, self._at), subtree(after, self._at)
        return self._paths is None or not all(is_shared(old, new, path) for path in self._paths)

    def violation(self, before: Json, after: Json) -> str | None:
        """Return why the state `after` violates it, as text, or None; lets are evaluated on `after`.

        Raises:
            EvaluationFailed: It cannot be evaluated on this state.
        """
        scope = Scope({"state": subtree(after, self._at), "before": subtree(before, self._at)})
        LazyLets(self._lets, scope)
        return self._clause.error_text(scope) if self._clause.fails(scope) else None

    def record(self, error: str) -> Violation:
        return self._clause.violation(error)
