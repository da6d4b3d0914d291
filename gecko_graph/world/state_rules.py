"""Rules of every task state: its schema and the invariants (ToolGate, section 3.2 and equation 21).

Also examines before any call whether contracts can be evaluated on a task state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from time import thread_time
from typing import Any, NamedTuple

from jsonschema import ValidationError
from jsonschema.protocols import Validator

from ..contracts.contract import Contract
from ..contracts.invariant import Invariant
from ..contracts.language.examine import Example, find_misfit, of_schema
from ..contracts.language.syntax import is_template
from ..errors import ContractError, EvaluationFailed, StateError
from ..schemas.complaints import describe_finding
from ..schemas.findings import findings
from ..schemas.reading import Said
from ..schemas.rules import check, rules_of, rules_of_part
from ..schemas.strict import check_change, leave_room
from ..state import RUNTIME, Json, JsonObject, Violation
from ..tools import Toolkit, ToolSpec
from ..values.digest import Finding
from ..values.identity import cache_by_identity
from ..values.places import Place, scalars_of, short_pointer

INVARIANT_SECONDS = 1.0
"""Processor time for the invariants of one call; the remaining ones fail."""
MOST_FAULTS = 5


class StateRules(NamedTuple):
    """The schema of every task state, and the invariants. With a schema, every state is known to satisfy both."""

    schema: JsonObject | None = None
    invariants: Sequence[Invariant] = ()

    @classmethod
    def of(cls, toolkit: Toolkit) -> StateRules:
        return cls(toolkit.state_schema, toolkit.invariants)

    def check_start(self, state: JsonObject, *, what: str, is_whole: bool = True) -> None:
        """Check a given start state (ToolGate, equation 21: Inv(S0)), to which runtime variables may still be added.

        Raises:
            StateError: It violates the schema or an invariant; the message names them.
        """
        if broken := self.broken(state, is_whole=is_whole):
            raise StateError(f"{what}: {'; '.join(broken)}. A run cannot begin from such a state: correct it")

    def broken(self, state: JsonObject, *, is_whole: bool = True, is_strict: bool = False) -> list[str]:
        """Return the rules that a state violates.

        Without a schema, or if the state is not whole, an invariant that cannot be evaluated yet is skipped until the
        first change, unless `is_strict`.
        """
        found = [one for one in self._find(state) if is_whole or not one.path.startswith(f"/{RUNTIME}")]
        broken = [f"{fault} (x-state)" for fault in _lines(found)]
        is_strict = is_strict or (is_whole and self.schema is not None)
        for invariant in self.invariants:
            try:
                error = invariant.violation(state, state)
            except EvaluationFailed as failure:
                error = str(failure) if is_strict else None
            broken += [f"it breaks an invariant: {error}"] if error else []
        return broken[:MOST_FAULTS]

    def faults(self, state: Json) -> list[str]:
        """Return the schema violations of a state, one line each."""
        return _lines(self._find(state))

    def _find(self, state: Json) -> list[Finding]:
        return [] if self.schema is None else _found(check(_compile(self.schema), state))

    def violations(self, before: JsonObject, after: JsonObject) -> list[Violation]:
        """Return the rules that a new state violates and the state before did not.

        With a schema only changed parts are checked: places that the states do not share, and invariants that read
        them.
        """
        if after is before:
            return []
        found: list[Violation] = [
            {"clause": "x-state", "kind": "tool", "part": "state", "error": f"the new state breaks its schema: {fault}"}
            for fault in self._change_faults(before, after)
        ]
        started = thread_time() if len(self.invariants) > 1 else 0.0  # the clock costs as much as a small invariant
        for number, invariant in enumerate(self.invariants):
            if started and thread_time() - started > INVARIANT_SECONDS:
                left = f"{len(self.invariants) - number} of {len(self.invariants)} were not checked"
                return [*found, invariant.record(f"the invariants take too long: {left}")]
            if self.schema is None or invariant.is_touched(before, after):
                broken = _violation(invariant, before, after)
                found += [invariant.record(broken)] if broken else []
        return found

    def _change_faults(self, before: Json, after: Json) -> list[str]:
        if self.schema is None:
            return []
        rules = _compile(self.schema)
        found = _found(check_change(rules, before, after))
        known = _found(check_change(rules, after, before)) if found else []
        return _lines([one for one in found if one not in known])


NO_RULES = StateRules()


@cache_by_identity(256)
def _compile(schema: JsonObject) -> Validator:
    return rules_of(leave_room(schema))


def _found(errors: Iterator[ValidationError]) -> list[Finding]:
    return list(dict.fromkeys(finding for error in islice(errors, MOST_FAULTS) for finding in findings(error)))


def _lines(found: Sequence[Finding]) -> list[str]:
    return [describe_finding(*each) for each in found]


def _violation(invariant: Invariant, before: JsonObject, after: JsonObject) -> str | None:
    try:
        broken = invariant.violation(before, after)
    except EvaluationFailed as failure:
        return f"an invariant cannot be evaluated: {failure}"
    if broken:
        with suppress(EvaluationFailed):  # a rule that was already broken is not the call's fault
            return None if invariant.violation(before, before) is not None else broken
    return broken


def examine_contracts(toolkit: Toolkit, state: JsonObject) -> list[str]:
    """Return the parts of contracts that cannot be evaluated on an example state, or violate a declared schema.

    Nothing is called: the keys in expressions and effects are looked up in the example, and results and new values are
    checked as far as they are known before a call.
    """
    found: list[str] = []
    for tool in toolkit:
        if tool.contract is not None:
            lines = _examine(tool, tool.contract, state, toolkit.state_schema)
            found += [f"{tool.name}: {line.removeprefix(f'{tool.contract.where}: ')}" for line in dict.fromkeys(lines)]
    return found + [f"the state: {fault}" for fault in StateRules.of(toolkit).broken(state, is_strict=True)]


def _examine(tool: ToolSpec, contract: Contract, state: JsonObject, schema: JsonObject | None) -> Iterator[str]:
    told: list[ContractError] = []
    made = contract.examine(tool.parameters, state=Example([state]), report=told.append)
    yield from map(str, told)
    if made is not None and tool.result is not None and "returns" in contract.data:
        wrong = [*_find_broken(Said(tool.result, tool.result), contract.data["returns"])]
        misfit = None if wrong else find_misfit(made, of_schema(tool.result))
        yield from (f"its result breaks the tool's schema: {line}" for line in [*wrong, *filter(None, [misfit])])
    for effect in _effects_of(contract.data.get("effects", ())) if schema is not None else ():
        place, said = [*contract.at, *effect["path"]], Said(schema, schema)
        for token in place:
            said = said.member(None if token == "-" else token)
        broken = _find_broken(said, effect["value"], tuple(place))
        yield from (f"its effects break the state's schema: {line}" for line in broken)


def _effects_of(effects: Sequence[Any]) -> Iterator[JsonObject]:
    """Yield the effects that write a value to a place known before a call."""
    for effect in effects:
        yield from _effects_of(effect.get("do", ()))
        path = effect.get("path")
        if "value" in effect and isinstance(path, list) and all(type(token) is str for token in path):
            yield from [] if any(map(is_template, path)) else [effect]


def _find_broken(said: Said, value: Any, place: Place = ()) -> Iterator[str]:
    """Yield the schema violations of a written value, as far as it is known before a call."""
    if not any(is_template(each) for each in scalars_of(value, keys=True) if isinstance(each, str)) and not (
        {"for_each", "cases"} & {*scalars_of(value, keys=True)}
    ):
        wrong = _found(check(rules_of_part(rules_of(said.root), said.schema), value))
        yield from _lines([fault._replace(path=short_pointer(place) + fault.path) for fault in wrong])
    elif isinstance(value, dict) and not {"for_each", "cases"} & value.keys():
        for key, each in value.items():
            yield from () if is_template(key) else _find_broken(said.member(key), each, (*place, key))
