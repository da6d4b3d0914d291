"""Whether the tools' contracts can be evaluated on a task state at all, tried before any call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..contracts.contract import Contract
from ..contracts.run import ContractRun
from ..errors import EvaluationFailed, RunFailure
from ..generator.maker import make_value
from ..schemas.rules import accepts, rules_of
from ..state import Call, Json, JsonObject
from ..toolkit import Toolkit, ToolSpec
from .rung import clock

MAX_KEYS = 6


def try_contracts(toolkit: Toolkit, state: JsonObject, *, seed: int) -> list[str]:
    """Return why contracts cannot be evaluated on a state, a line each; a requirement that is false is no reason.

    A tool is tried with arguments that fit its schema, made up and taken from the state. Unlikely arguments
    may be at fault themselves: so only what fails with all of them counts, and what fails with a key of the state where
    made-up arguments do not. An invariant that is false counts: no change could be committed.
    """
    tried = ((tool.name, _try_contract(tool, tool.contract, state, seed)) for tool in toolkit if tool.contract)
    found = [f"{name}: {why}" for name, why in tried if why]
    for invariant in toolkit.invariants:
        try:
            broken = invariant.violation(state, state)
        except EvaluationFailed as failure:
            broken = str(failure).rpartition("#/")[2]
        found += [broken] if broken else []
    return found


def _try_contract(tool: ToolSpec, contract: Contract, state: JsonObject, seed: int) -> str | None:
    try:
        made = make_value(tool.parameters, seed=seed, key=tool.name)
    except RunFailure:
        return None
    least = {name: made[name] for name in tool.parameters.get("required", ()) if name in made}
    plain = [_failure(tool, contract, args, state) for args in (least, made)]
    keyed = [_failure(tool, contract, args, state) for args in _vary_keys(tool.parameters, made, state)]
    if all([*plain, *keyed]):
        return plain[0]
    return next(filter(None, keyed), None if any(plain) else _find_unnamed_list(tool, contract, made, state))


def _find_unnamed_list(tool: ToolSpec, contract: Contract, made: JsonObject, state: JsonObject) -> str | None:
    """Return the list that a contract wants as an object: with named members, the call that it refuses would pass."""
    for name, part in list(state.items())[:MAX_KEYS]:
        if isinstance(part, list) and (key := _first_key(part)) is not None:
            named = {**state, name: {key: part[0]}}
            for args in _vary_keys(tool.parameters, made, {name: part}):
                run = _run(tool, contract, args, named)
                allowed = run.refusal() is None and not run.unclear
                if allowed and _run(tool, contract, args, state).refusal():
                    return f"state.{name} is a list; its members are looked up by name: an object, {{{key!r}: ...}}"
    return None


def _run(tool: ToolSpec, contract: Contract, args: JsonObject, state: JsonObject) -> ContractRun:
    call: Call = {"id": "trial", "name": tool.name, "args": args}
    return contract.open(args=args, parameters=tool.parameters, state=state, call=call, now=clock(state), seed=0)


def _failure(tool: ToolSpec, contract: Contract, args: JsonObject, state: JsonObject) -> str | None:
    run = _run(tool, contract, args, state)
    try:
        if run.refusal() is None and not run.unclear:
            run.answer()
    except EvaluationFailed as failure:
        return str(failure).rpartition(f"{tool.name}): ")[2]
    return run.unclear[0] if run.unclear else None


def _vary_keys(parameters: JsonObject, made: JsonObject, state: JsonObject) -> Iterator[JsonObject]:
    """Yield the arguments with a key of the state wherever a schema takes it, once for each of the first parts."""
    rules = {name: rules_of(parameters).evolve(schema=rule) for name, rule in parameters.get("properties", {}).items()}
    for key in list(filter(None, map(_first_key, state.values())))[:MAX_KEYS]:
        yield made | {name: key for name in made if name in rules and accepts(rules[name], key)}


def _first_key(part: Json) -> str | None:
    """Return a name by which a tool could ask for the first item in a part of the state."""
    if isinstance(part, Mapping):
        return next(iter(part), None)
    first = part[0] if isinstance(part, list) and part and isinstance(part[0], Mapping) else {}
    return next((value for value in first.values() if isinstance(value, str)), None)
