"""One call under one contract: its parts, checked, and what they make of the call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..errors import EvaluationFailed, NotKnown
from ..state import Json, Patch, Violation
from ..task_state.patch import pointer
from ..task_state.stamps import Untrusted, is_doubtful
from .admissible import FAILED, find_free
from .clauses import Change, Clause, Effect, load_effects, load_list
from .language.expression import Expression, Scope
from .language.location import Location
from .language.shapes import ANY
from .language.syntax import did_you_mean
from .language.template import Template
from .lets import LazyLets, Lets, find_used_lets, load_lets

BASE = frozenset(("args", "call", "before", "now", "state", "calls"))
"""Names available to every expression of a contract."""

_FIELDS = ("at", "let", "requires", "effects", "returns", "ensures", "observes")


class Shared(NamedTuple):
    """What the contracts of a document share, as written."""

    lets: Mapping[str, Any]
    requires: Mapping[str, Any]


class Refusal(NamedTuple):
    """A failed requirement: the tool's own error, the changes that it makes all the same, and all that failed."""

    error: Json
    patch: Patch
    violations: Sequence[Violation] = ()


class ContractAnswer(NamedTuple):
    """Result and patch of a call whose requirements are met."""

    result: Json
    patch: Patch


class Parts:
    """The checked clauses of a contract."""

    def __init__(self, data: Mapping[str, Any], shared: Shared, whole: Location) -> None:
        whole.check_fields(data, (), _FIELDS)
        self.where = whole.where
        self.at = read_mount(data.get("at"), whole.part("at"))
        loaded, whole = load_lets(data.get("let", {}), shared.lets, whole)
        self.lets: Lets = loaded
        self.required = [*_read_requires(data.get("requires", []), shared.requires, whole)]
        self.requires = [Clause(item, place, part="requires", more=("effects",)) for item, place in self.required]
        self.effects = load_effects(data.get("effects", []), whole.part("effects"))
        self.returns = Template.load(data.get("returns"), whole.part("returns"))
        self.answers = "effects" in data or "returns" in data
        is_known = self.answers and whole.report is not None
        result = replace(whole, report=None).infer_data(data.get("returns")) if is_known else ANY
        after = whole.with_names(result=result)
        self.ensures = [
            Clause(item, place, part="ensures")
            for item, place in load_list(data.get("ensures", []), after.part("ensures"))
        ]
        self.observes = load_effects(data.get("observes", []), after.part("observes"))
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


def _read_requires(data: Any, shared: Mapping[str, Any], whole: Location) -> Iterator[tuple[Any, Location]]:
    """Yield the requirements, each with its place; `use` names shared ones, whose `id` it is. Raises ContractError."""
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


class ContractRun:
    """One call under one contract. Its lets are evaluated once, on the state before the call.

    `unclear` lists the requirements that `refusal` could not evaluate, with the reasons; `unknown` is why the contract
    does not know what the tool does, by `pass`.
    """

    def __init__(self, parts: Parts, scope: Scope) -> None:
        self.unclear: list[str] = []
        self.unknown: str | None = None
        self._parts = parts
        self._scope = scope
        self._before = scope.values["state"]
        self._lets = LazyLets(parts.lets, scope)
        self.trust(tuple)

    def trust(self, untrusted: Untrusted) -> ContractRun:
        """Have `trusted` look among the places that are only supposed, and return the run."""
        self._scope.trusts = lambda path: not is_doubtful([*self._parts.at, *path], untrusted())
        return self

    def refusal(self) -> Refusal | None:
        """Return the first failed requirement (ToolGate, section 3.4), with the changes of its error.

        Each is evaluated by itself: one that cannot be evaluated goes to `unclear`, and the others are still checked.
        """
        self.unclear, self.unknown = [], None
        scope = self._begin(self._before)
        for number, clause in enumerate(self._parts.requires, 1):
            try:
                failed = clause.fails(scope)
                if failed and clause.passes:
                    self.unknown = self.unknown or clause.error_text(scope)
                    continue
            except EvaluationFailed as failure:
                scope = self._note(failure)
                continue
            if failed:
                first = self._build_refusal(clause, scope)
                return first._replace(violations=[clause.violation(first.error), *self._find_others(number)])
        return None

    def _find_others(self, number: int) -> Iterator[Violation]:
        """Yield the failed requirements from that number on, for the record; what cannot be evaluated is left out."""
        for clause in self._parts.requires[number:]:
            scope = self._begin(self._before)
            try:
                if clause.fails(scope) and not clause.passes:
                    yield clause.violation(clause.error(scope))
            except EvaluationFailed:
                continue

    def _note(self, failure: EvaluationFailed) -> Scope:
        """Add a failure to `unclear`, without document and tool, and begin again.

        Once the contract has said that it does not know, what cannot be evaluated is no news.
        """
        if isinstance(failure, NotKnown):
            self.unknown = self.unknown or str(failure)
        elif self.unknown is None:
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
            NotKnown: The contract does not know, by `pass`.
        """
        if not self._parts.answers:
            return None
        if self.unknown is not None:
            raise NotKnown(self.unknown)
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
        return next((clause.error_text(scope) for clause in self._parts.ensures if clause.fails(scope)), None)

    broken = violated_postcondition  # the old name

    def violations(self, result: Json, after: Json) -> list[Violation]:
        """Return all violated postconditions; one that cannot be evaluated counts as violated."""
        found: list[Violation] = []
        for clause in self._parts.ensures:
            scope = self._begin(part_of(after, self._parts.at), result=result)
            try:
                if clause.fails(scope):
                    found.append(clause.violation(clause.error_text(scope)))
            except EvaluationFailed as failure:
                found.append(clause.violation(f"a postcondition cannot be evaluated: {failure}"))
        return found

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
