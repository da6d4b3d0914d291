"""Complete a contract's partial answer by the next rung, and check it against the known part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any

from ..contracts.language.sandbox import OpenPart
from ..contracts.run import ContractAnswer, find_holes
from ..schemas.complaints import find_faults
from ..schemas.reading import Said
from ..schemas.rules import accepts, rules_of
from ..state import Filled, Json, JsonObject, Outcome, Patch
from ..values.patch import apply_patch, tokens
from .rung import Answer, Pass, RungRequest, evidence_mark

NO_RESULT = "the contract does not say what it returns"
NOWHERE = OpenPart("it is not in the real result")
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class PartialAnswer:
    """A contract's answer with an open result, for the rung that completes it.

    Args:
        known: The contract's partial answer.
        request: The request to the next rungs: a read after the call, whose schema allows only the known values.
    """

    known: ContractAnswer
    request: RungRequest

    @classmethod
    def of(cls, request: RungRequest, known: ContractAnswer) -> PartialAnswer:
        narrowed = _narrow(request.tool.result or {}, known.result, _written(known.patch))
        tool = replace(request.tool, effect="read", result=narrowed or None)
        state = request.state if request.tool.reads else apply_patch(request.state, known.patch)
        return cls(known, replace(request, tool=tool, state=state))

    def check(self, reply: Answer | Pass) -> Answer | Pass:
        """Return a rung's answer without unrequired keys, if it agrees with the known part; else a Pass."""
        if isinstance(reply, Pass):
            return reply
        if reply.status == "error":
            return Pass("it answered with an error; by the contract the call succeeds")
        schema = self.request.tool.result or {}
        reply = replace(reply, result=_trim(reply.result, self.known.result, schema, schema))
        found = find_faults(schema, reply.result)
        return Pass(f"it contradicts what the contract knows: {'; '.join(found[:3])}") if found else reply


def complete(held: PartialAnswer | None, outcome: Outcome) -> Outcome:
    """Return a call's outcome; for a partial answer the contract's outcome with another rung's result."""
    if held is None:
        return outcome
    filled: Filled = {"rung": outcome["rung"], "invented": outcome.pop("invented", False)}
    filled["places"] = dict(held.known.holes)
    known = held.known.result
    if isinstance(known, dict) and isinstance(outcome["result"], dict):
        filled["places"] |= {f"/{key}": "the schema requires it" for key in outcome["result"] if key not in known}
    marks: Any = evidence_mark(held.request.contract) if held.request.contract else {}
    outcome = {**outcome, "rung": "contract", "patch": held.known.patch, "filled": filled}
    return {**outcome, **marks}


def fill_really(answer: ContractAnswer, real: Json, root: JsonObject) -> ContractAnswer:
    """Return a contract's answer with its open parts filled from the real result.

    Values that the effects write under the same name are kept, as if another rung filled the result.
    """
    written = _written(answer.patch)

    def pick(value: Any, name: str) -> Any:
        return value if value is None or isinstance(value, dict | list | OpenPart) else written.get(name, value)

    def part(known: Any, value: Any, schema: Any, name: str = "") -> Any:
        if isinstance(known, OpenPart):
            is_object = isinstance(value, dict)
            return {key: pick(each, key) for key, each in value.items()} if is_object else pick(value, name)
        if not find_holes(known):
            return known
        said = Said(schema, root)
        if isinstance(known, list):
            others = chain(value if isinstance(value, list) else (), repeat(NOWHERE))
            pairs = enumerate(zip(known, others, strict=False))
            items = [part(each, other, said.member(index).schema) for index, (each, other) in pairs]
            return [each for each in items if not isinstance(each, OpenPart)]
        there = value if isinstance(value, dict) else {}
        wanted = {**dict.fromkeys(said.required(), NOWHERE), **known}
        inner = {key: part(each, there.get(key, NOWHERE), said.member(key).schema, key) for key, each in wanted.items()}
        return {key: each for key, each in inner.items() if not isinstance(each, OpenPart)}

    return answer._replace(result=part(answer.result, real, root), holes={})


def _narrow(root: JsonObject, known: Json, written: JsonObject) -> Any:
    """Return a schema that allows only known values, and in open parts the written values of the same names."""
    rules = rules_of(root)

    def part(schema: Any, value: Any, name: str, depth: int) -> Any:
        said = Said(schema, root)
        below, required = {name: said.member(name).schema for name in said.names()}, said.required()
        if isinstance(value, OpenPart):
            if name in written and accepts(rules.evolve(schema=schema), written[name]):
                return {"const": written[name]}
            members = below.items() if depth < _DEEPEST else ()
            inner = {key: new for key, each in members if (new := part(each, value, key, depth + 1)) is not each}
            more: JsonObject = {"properties": inner} if inner else {}
        elif isinstance(value, dict) and find_holes(value):
            wanted = {**dict.fromkeys(required, OpenPart("")), **value}
            inner = {key: part(below.get(key, True), each, key, depth) for key, each in wanted.items()}
            more = {"type": "object", "properties": inner, "required": [*value]}
        elif isinstance(value, list) and find_holes(value):
            items = [part(said.member(index).schema, each, "", depth) for index, each in enumerate(value)]
            more = {"type": "array", "prefixItems": items, "minItems": len(value), "maxItems": len(value)}
        else:
            more = {"const": value}
        if not more or not schema or not isinstance(schema, dict):
            return more or schema
        return {**schema, "allOf": [*schema.get("allOf", ()), more]}

    return part(root, known, "", 0)


def _trim(made: Json, known: Json, schema: Any, root: JsonObject) -> Json:
    """Return a value without keys that neither the contract names nor the schema requires."""
    if not isinstance(known, dict) or not isinstance(made, dict):
        return made
    said = Said(schema, root)
    required = said.required()
    kept = {key: each for key, each in made.items() if key in known or key in required}
    return {key: _trim(each, known.get(key), said.member(key).schema, root) for key, each in kept.items()}


def _written(patch: Patch) -> JsonObject:
    """Return the scalars that a patch writes, by name, if there is only one value of the name."""
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
    return {name: values[0] for name, values in found.items() if len(values) == 1}
