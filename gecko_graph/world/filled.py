"""What a contract knows of an answer beside what it leaves open, which the next rung makes: held to what is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..contracts.language.sandbox import Hole
from ..contracts.run import ContractAnswer
from ..schemas.complaints import find_faults
from ..schemas.rules import accepts, rules_of
from ..schemas.subschemas import follow
from ..state import Filled, Json, JsonObject, Outcome, Patch
from ..values.patch import apply_patch, tokens
from .rung import Answer, Pass, RungRequest, standing

NO_RESULT = "the contract does not say what it returns"
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Held:
    """An answer of a contract whose result is open, on its way to the rung that completes it.

    Args:
        known: What the contract knows.
        request: What the next rungs are asked: what a read shows after the call, by a schema that holds what is known.
    """

    known: ContractAnswer
    request: RungRequest

    @classmethod
    def of(cls, request: RungRequest, known: ContractAnswer) -> Held:
        """Return it; the contract's change is known to apply."""
        schema = request.tool.result
        narrowed = _narrow({} if schema is None else schema, known.result, dict(_written(known.patch)), schema or {})
        tool = replace(request.tool, effect="read", result=narrowed or None)
        state = request.state if request.tool.reads else apply_patch(request.state, known.patch)
        return cls(known, replace(request, tool=tool, state=state))

    def check(self, reply: Answer | Pass) -> Answer | Pass:
        """Return a rung's answer if it agrees with what is known, without what nobody has asked for."""
        if isinstance(reply, Pass):
            return reply
        if reply.status == "error":
            return Pass("it answered with an error; by the contract the call succeeds")
        schema = self.request.tool.result or {}
        reply = replace(reply, result=_trim(reply.result, self.known.result, schema, schema))
        found = find_faults(schema, reply.result)
        return Pass(f"it contradicts what the contract knows: {'; '.join(found[:3])}") if found else reply


def complete(held: Held | None, outcome: Outcome) -> Outcome:
    """Return the outcome of a call, the contract's with another rung's result where it has left its own open."""
    if held is None:
        return outcome
    filled: Filled = {"rung": outcome["rung"], "invented": outcome.pop("invented", False)}
    filled["places"] = dict(held.known.holes)
    known = held.known.result
    if isinstance(known, dict) and isinstance(outcome["result"], dict):
        filled["places"] |= {f"/{key}": "the schema requires it" for key in outcome["result"] if key not in known}
    marks: Any = standing(held.request.contract) if held.request.contract else {}
    outcome = {**outcome, "rung": "contract", "patch": held.known.patch, "filled": filled}
    return {**outcome, **marks}


def _narrow(schema: Any, known: Json, written: JsonObject, root: JsonObject) -> Any:
    """Return a schema that allows only what is known, and in what is open the written values of the same names."""
    if isinstance(known, Hole):
        return _agree(schema, written, root, 0)
    more: JsonObject = {"const": known}
    if isinstance(known, dict) and _is_open(known):
        wanted = {**dict.fromkeys(_resolve(schema, root).get("required", ()), Hole("")), **known}
        inner = {
            key: _narrow(_name(key, each, written, root, schema), each, written, root) for key, each in wanted.items()
        }
        more = {"type": "object", "properties": inner, "required": [*known]}
    elif isinstance(known, list) and _is_open(known):
        items = _resolve(schema, root).get("items", True)
        inner_list = [_narrow(items, each, written, root) for each in known]
        more = {"type": "array", "prefixItems": inner_list, "minItems": len(known), "maxItems": len(known)}
    return {**schema, "allOf": [*schema.get("allOf", ()), more]} if isinstance(schema, dict) and schema else more


def _trim(made: Json, known: Json, schema: Any, root: JsonObject) -> Json:
    """Return a value without the keys that neither the contract names nor the schema requires."""
    if not isinstance(known, dict) or not isinstance(made, dict):
        return made
    rules = _resolve(schema, root)
    kept = {key: each for key, each in made.items() if key in known or key in rules.get("required", ())}
    below = rules.get("properties", {})
    return {key: _trim(each, known.get(key), below.get(key, True), root) for key, each in kept.items()}


def _is_open(value: Any) -> bool:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, Hole) or any(map(_is_open, members))


def _name(key: str, known: Json, written: JsonObject, root: JsonObject, schema: Any) -> Any:
    """Return the schema of a member, that of the value written under its name where the member is open."""
    rule = _resolve(schema, root).get("properties", {}).get(key, True)
    fits = isinstance(known, Hole) and key in written and accepts(rules_of(root).evolve(schema=rule), written[key])
    return {"const": written[key]} if fits else rule


def _agree(schema: Any, written: JsonObject, root: JsonObject, depth: int) -> Any:
    found = _resolve(schema, root)
    rules = rules_of(root)
    same: JsonObject = {}
    for key, rule in found.get("properties", {}).items() if depth < _DEEPEST else ():
        if key in written and accepts(rules.evolve(schema=rule), written[key]):
            same[key] = {"const": written[key]}
        elif "properties" in _resolve(rule, root) and (inner := _agree(rule, written, root, depth + 1)) is not rule:
            same[key] = inner
    return {**schema, "allOf": [*schema.get("allOf", ()), {"properties": same}]} if same else schema


def _resolve(schema: Any, root: JsonObject) -> JsonObject:
    for _ in range(_DEEPEST):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            break
        schema = follow(root, schema["$ref"])
    return schema if isinstance(schema, dict) else {}


def _written(patch: Patch) -> Iterator[tuple[str, Json]]:
    """Yield the scalars that a patch writes under one name, where it writes one alone under that name."""
    found: dict[str, list[Json]] = {}

    def look(name: str, value: Json) -> None:
        if isinstance(value, dict):
            for key, each in value.items():
                look(key, each)
        elif not isinstance(value, list) and value not in found.setdefault(name, []):
            found[name].append(value)

    for operation in patch:
        if "value" in operation:
            look((tokens(operation["path"]) or [""])[-1], operation["value"])
    yield from ((name, values[0]) for name, values in found.items() if len(values) == 1)
