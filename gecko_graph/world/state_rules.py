"""What every task state fulfils: its schema and the invariants (ToolGate, section 3.2 and equation 21).

And whether the tools' contracts can be evaluated on a task state at all, tried before any call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from random import Random
from time import thread_time
from typing import NamedTuple

from jsonschema import ValidationError
from jsonschema.protocols import Validator

from ..contracts.contract import Contract, Invariant
from ..contracts.language.examine import Example
from ..contracts.run import ContractRun
from ..errors import EvaluationFailed, NotKnown, RunFailure, StateError
from ..schemas.findings import Finding, findings
from ..schemas.made_up import make_value
from ..schemas.rules import Same, accepts, check, rules_of
from ..schemas.strict import check_change, leave_room
from ..state import RUNTIME, Call, Json, JsonObject, Violation
from ..tools import Toolkit, ToolSpec
from ..values.patch import apply_patch
from ..values.places import clock, scalars_of

INVARIANT_SECONDS = 1.0
"""Processor time that the invariants of one call may take; what is left of them then is not checked, so it fails."""
MOST_FAULTS = 5

MAX_KEYS = 6
MOST_VALUES = 40
MOST_TRIES = 200
"""Values of the state with which a tool is tried, and how often."""
_OFTEN = 0.8


class StateRules(NamedTuple):
    """The schema of every task state, and the invariants. With a schema every state is known to fulfil both."""

    schema: JsonObject | None = None
    invariants: Sequence[Invariant] = ()

    @classmethod
    def of(cls, toolkit: Toolkit) -> StateRules:
        """Return the rules of a toolkit's task state."""
        return cls(toolkit.state_schema, toolkit.invariants)

    def check_start(self, state: JsonObject, *, what: str, is_whole: bool = True) -> None:
        """Check a given start state (ToolGate, equation 21: Inv(S0)), to which runtime variables may still be added.

        Raises:
            StateError: It breaks the schema or an invariant; the message names them.
        """
        if broken := self.broken(state, is_whole=is_whole):
            raise StateError(f"{what}: {'; '.join(broken)}. No run begins from such a state: mend it")

    def broken(self, state: JsonObject, *, is_whole: bool = True, is_strict: bool = False) -> list[str]:
        """Return what a whole state breaks.

        Without a schema, or in a state that is not whole, an invariant that cannot be evaluated yet is left to the
        first change, unless it is to be strict.
        """
        found = [one for one in self._find(state) if is_whole or not one.path.startswith(f"$.{RUNTIME}")]
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
        """Return what of a state breaks the schema, a line each."""
        return _lines(self._find(state))

    def _find(self, state: Json) -> list[Finding]:
        return [] if self.schema is None else _found(check(_compile(Same(self.schema)), state))

    def violations(self, before: JsonObject, after: JsonObject) -> list[Violation]:
        """Return what a new state breaks; what reality had broken before is not blamed on the change.

        Of a state with a schema only what the change touches is checked: places that it does not share with the state
        before, and invariants that read them.
        """
        if after is before:
            return []
        found: list[Violation] = [
            {"clause": "x-state", "kind": "tool", "part": "state", "error": f"the new state breaks its schema: {fault}"}
            for fault in self._change_faults(before, after)
        ]
        started = thread_time()
        for number, invariant in enumerate(self.invariants):
            if thread_time() - started > INVARIANT_SECONDS:
                left = f"{len(self.invariants) - number} of {len(self.invariants)} were not checked"
                return [*found, invariant.record(f"the invariants take too long: {left}")]
            if self.schema is None or invariant.is_touched(before, after):
                broken = _violation(invariant, before, after)
                found += [invariant.record(broken)] if broken else []
        return found

    def _change_faults(self, before: Json, after: Json) -> list[str]:
        if self.schema is None:
            return []
        rules = _compile(Same(self.schema))
        found = _found(check_change(rules, before, after))
        known = _found(check_change(rules, after, before)) if found else []
        return _lines([one for one in found if one not in known])


NO_RULES = StateRules()


@lru_cache(maxsize=256)
def _compile(key: Same) -> Validator:
    return rules_of(leave_room(key.schema))


def _found(errors: Iterator[ValidationError]) -> list[Finding]:
    return list(dict.fromkeys(finding for error in islice(errors, MOST_FAULTS) for finding in findings(error)))


def _lines(found: Sequence[Finding]) -> list[str]:
    return [f"at {path}: expected {expected}, got {got}" for path, expected, got in found]


def _violation(invariant: Invariant, before: JsonObject, after: JsonObject) -> str | None:
    try:
        broken = invariant.violation(before, after)
    except EvaluationFailed as failure:
        return f"an invariant cannot be evaluated: {failure}"
    if broken:
        with suppress(EvaluationFailed):  # what the state before breaks already is not the call's fault
            return None if invariant.violation(before, before) is not None else broken
    return broken


class Examined(NamedTuple):
    """What an example of the task state shows of the contracts, a line each: tool, part and reason."""

    found: list[str]
    """What cannot be evaluated."""
    unreached: list[str]
    """What was not run, because the requirements refused every call that was tried."""


def examine_contracts(toolkit: Toolkit, state: JsonObject, *, seed: int = 0) -> Examined:
    """Return what of the contracts cannot be evaluated on an example of the task state.

    Every key that an expression or an effect names is looked up in the example, whatever the arguments; and each tool
    is called with arguments made up, given as examples and taken from the state: what fails with all of them is found.
    """
    found = [f"the example: {fault}" for fault in StateRules.of(toolkit).broken(state, is_strict=True)]
    unreached: list[str] = []
    for tool in toolkit:
        if tool.contract is not None:
            lines, refused = _examine(tool, tool.contract, state, StateRules.of(toolkit), seed)
            found += [f"{tool.name}: {line}" for line in lines]
            unreached += [f"{tool.name}: {refused}"] if refused else []
    return Examined(found, unreached)


def _examine(
    tool: ToolSpec, contract: Contract, state: JsonObject, rules: StateRules, seed: int
) -> tuple[list[str], str]:
    """Return what of a contract cannot be evaluated or breaks a schema, and the requirements that refuse all calls."""
    known: list[str] = []
    contract.fit(tool.parameters, state=Example([state]), report=lambda error: known.append(str(error)))
    known = list(dict.fromkeys(line.removeprefix(f"{contract.where}: ") for line in known))
    runs = [_try_call(tool, contract, args, state, rules) for args in _make_arguments(tool, state, seed)]
    lines = _find_common([run.unclear for run in runs])
    lines += _find_common([run.failed for run in runs if run.failed is not None])
    lines = [line for line in lines if not any(_place(one) == _place(line) for one in known)]
    reached = any(run.failed is not None for run in runs) or not contract.answers or lines or known
    return known + lines, "" if reached else f"refused by {', '.join(sorted({run.refused for run in runs}))}"


class _Tried(NamedTuple):
    unclear: list[str]
    failed: list[str] | None = None
    """What failed behind the requirements; None where they refuse the call."""
    refused: str = ""


def _try_call(
    tool: ToolSpec, contract: Contract, args: JsonObject, state: JsonObject, rules: StateRules | None = None
) -> _Tried:
    """Return what comes of one call; given the rules of the state, also what it answers or changes against a schema."""
    run = _open(tool, contract, args, state)
    if (refusal := run.refusal()) is not None or run.unclear:
        return _Tried(run.unclear, refused=refusal.violations[0]["clause"] if refusal else "what cannot be evaluated")
    try:
        answer = run.answer_known()
        after = state if answer is None else apply_patch(state, answer.patch)
        known = None if answer is None or answer.holes else answer
        broken = [] if known is None else run.violations(known.result, after)
    except NotKnown:
        return _Tried([])
    except EvaluationFailed as failure:
        return _Tried([], [str(failure).removeprefix(f"{contract.where}: ")])
    why = f"a postcondition cannot be evaluated: {contract.where}: "
    failed = [each["error"].removeprefix(why) for each in broken if each["error"].startswith(why)]
    if rules is not None:
        is_told = known is not None and tool.result is not None and "returns" in contract.data
        wrong = _found(check(rules_of(tool.result or {}), known.result)) if known and is_told else []
        failed += [f"its result breaks the tool's schema {line}" for line in _lines(wrong)]
        failed += [f"its effects break the state's schema {line}" for line in rules._change_faults(state, after)]
    return _Tried([], failed)


def _place(line: str) -> str:
    return line.partition(": ")[0]


def _find_common(runs: Sequence[Sequence[str]]) -> list[str]:
    parts = [{_place(line): line for line in run} for run in runs]
    return [line for part, line in (parts[0] if parts else {}).items() if all(part in other for other in parts)]


def _make_arguments(tool: ToolSpec, state: JsonObject, seed: int) -> Iterator[JsonObject]:
    """Yield arguments that fit a tool's schema, made up, given as examples, and with what stands in the state."""
    least, made = _make(tool, seed) or ({}, {})
    yield from (least, made, *(example.args for example in tool.examples))
    rules = _rules(tool)
    found = (each for each in scalars_of(state, keys=True) if each is not None)
    values = list(islice(dict.fromkeys(found), MOST_VALUES))
    parts = [part for part in state.values() if isinstance(part, dict)]
    named = [key for part in parts for key, member in part.items() if isinstance(member, dict | list)][:MOST_VALUES]
    likely = [*values, *named, *named, *named]  # what a call asks for by its name
    given = [*values, *([value] for value in values)]
    fitting = {name: [value for value in given if accepts(rules[name], value)] for name in rules}
    named_fitting = {name: [value for value in named if accepts(rules[name], value)] for name in rules}
    chance = Random(seed)
    for number in range(MOST_TRIES):
        chosen = {
            name: chance.choice(values) for name, values in fitting.items() if values and chance.random() < _OFTEN
        }
        if number % 3 == 2:
            chosen |= {name: chance.choice(keys) for name, keys in named_fitting.items() if keys}
        base = made if number % 2 else least
        nested = {
            name: _with_found(each, likely, chance) for name, each in base.items() if isinstance(each, dict | list)
        }
        inner = {name: value for name, value in nested.items() if name in rules and accepts(rules[name], value)}
        yield base | inner | chosen


def _with_found(made: Json, values: Sequence[Json], chance: Random) -> Json:
    """Return an argument of several parts with values of the state in it: in `lines[].sku` the key of a product."""
    if isinstance(made, dict):
        return {key: _with_found(each, values, chance) for key, each in made.items()}
    if isinstance(made, list):
        return [_with_found(each, values, chance) for each in made[: chance.randint(1, 2)]]
    same = [value for value in values if type(value) is type(made)]
    return chance.choice(same) if same and chance.random() < _OFTEN else made


def _make(tool: ToolSpec, seed: int) -> tuple[JsonObject, JsonObject] | None:
    """Return made-up arguments, those that are required and all; None where none can be made."""
    try:
        made = make_value(tool.parameters, seed=seed, key=tool.name)
    except RunFailure:
        return None
    return {name: made[name] for name in tool.parameters.get("required", ()) if name in made}, made


def _rules(tool: ToolSpec) -> dict[str, Validator]:
    rules = rules_of(tool.parameters)
    return {name: rules.evolve(schema=rule) for name, rule in tool.parameters.get("properties", {}).items()}


def _open(tool: ToolSpec, contract: Contract, args: JsonObject, state: JsonObject) -> ContractRun:
    call: Call = {"id": "trial", "name": tool.name, "args": args}
    return contract.open(args=args, parameters=tool.parameters, state=state, call=call, now=clock(state), seed=0)


def try_contracts(toolkit: Toolkit, state: JsonObject, *, seed: int) -> list[str]:
    """Return why contracts cannot be evaluated on a state that a model made up, a line each.

    A tool is tried with arguments that fit its schema, made up and taken from the state. Unlikely arguments
    may be at fault themselves: so only what fails with all of them counts, and what fails with a key of the state where
    made-up arguments do not. A requirement that is false is no reason; an invariant that is false is one: no change
    could be committed.
    """
    tried = ((tool.name, _try_contract(tool, tool.contract, state, seed)) for tool in toolkit if tool.contract)
    found = [f"{name}: {why}" for name, why in tried if why]
    return found + StateRules(None, toolkit.invariants).broken(state, is_strict=True)


def _try_contract(tool: ToolSpec, contract: Contract, state: JsonObject, seed: int) -> str | None:
    if (arguments := _make(tool, seed)) is None:
        return None
    made = arguments[1]
    plain = [_failure(tool, contract, args, state) for args in arguments]
    keyed = [_failure(tool, contract, args, state) for args in _vary_keys(tool, made, state)]
    if all([*plain, *keyed]):
        return plain[0]
    return next(filter(None, keyed), None if any(plain) else _find_unnamed_list(tool, contract, made, state))


def _failure(tool: ToolSpec, contract: Contract, args: JsonObject, state: JsonObject) -> str | None:
    tried = _try_call(tool, contract, args, state)
    return next(iter(tried.unclear or tried.failed or ()), None)


def _find_unnamed_list(tool: ToolSpec, contract: Contract, made: JsonObject, state: JsonObject) -> str | None:
    """Return the list that a contract wants as an object: with named members, the call that it refuses would pass."""
    for name, part in list(state.items())[:MAX_KEYS]:
        if isinstance(part, list) and (key := _first_key(part)) is not None:
            named = {**state, name: {key: part[0]}}
            for args in _vary_keys(tool, made, {name: part}):
                run = _open(tool, contract, args, named)
                allowed = run.refusal() is None and not run.unclear
                if allowed and _open(tool, contract, args, state).refusal():
                    return f"state.{name} is a list; its members are looked up by name: an object, {{{key!r}: ...}}"
    return None


def _vary_keys(tool: ToolSpec, made: JsonObject, state: JsonObject) -> Iterator[JsonObject]:
    """Yield the arguments with a key of the state wherever a schema takes it, once for each of the first parts."""
    rules = _rules(tool)
    for key in list(filter(None, map(_first_key, state.values())))[:MAX_KEYS]:
        yield made | {name: key for name in made if name in rules and accepts(rules[name], key)}


def _first_key(part: Json) -> str | None:
    """Return a name by which a tool could ask for the first item in a part of the state."""
    if isinstance(part, Mapping):
        return next(iter(part), None)
    first = part[0] if isinstance(part, list) and part and isinstance(part[0], Mapping) else {}
    return next((value for value in first.values() if isinstance(value, str)), None)
