"""What toolkits are joined from: contracts of a file, below a key of the task state, beside any source of tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..contracts.contract import Contract, Invariant
from ..contracts.language.location import Location, Origin
from ..contracts.language.shapes import of_state
from ..errors import ToolkitError
from ..schemas.subschemas import rebuild
from ..schemas.well_formed import check_schema
from ..state import JsonObject
from ..values.patch import pointer
from .spec import ToolSpec
from .stated import by_name, check_effect, check_known, read_examples, stated_effects, with_keys

Mount = str | Sequence[str]


class Parts(NamedTuple):
    """What a toolkit is made of."""

    tools: Sequence[ToolSpec]
    lets: Mapping[str, Any]
    invariants: Sequence[Invariant]
    state_schema: JsonObject | None = None


def read_parts(tools: Sequence[ToolSpec], given: Mapping[str, Any], rules: Mapping[str, Any]) -> Parts:
    """Return tools with what `Toolkit.from_tools` is given of each, and the rules that they share.

    Raises:
        ToolkitError: Something names a tool that does not exist, or cannot be used.
        ContractError: A contract or an invariant is wrong.
    """
    plain, trust = with_keys(tools, given["idempotency"]), given["trust_hints"]
    named = {key: _named(key, given[key]) for key in ("contracts", "simulate", "effects", "examples", "results")}
    fields: dict[str, Mapping[str, Any]] = {
        "simulate": named["simulate"],
        "result": named["results"],
        "effect": {name: check_effect(name, one) for name, one in named["effects"].items()},
        "stated": dict.fromkeys(by_name(plain) if trust else named["effects"], True),
        "refuses": dict.fromkeys(given["refuses"], True),
        "examples": {name: read_examples(name, some) for name, some in named["examples"].items()},
    }
    from .functions import check_simulation  # here, because it imports yaml

    made = with_fields(plain, fields)
    for tool in made:
        if tool.name in named["simulate"]:
            check_simulation(named["simulate"][tool.name], tool)
    return load_rules(Parts(made, {}, ()), {"contracts": named["contracts"], **rules})


def _named(key: str, given: Any) -> Mapping[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise ToolkitError(f"{key}: expected {{'tool name': ...}}, got {type(given).__name__}")
    return given or {}


def read_contracts(parts: Parts, source: str | Path | Mapping[str, Any], *, at: Mount | None) -> Parts:
    """Return tools with the contracts of a file, and what else it holds. Raises ToolkitError, ContractError."""
    from ..values.documents import read_document  # here, because it imports yaml

    where = "contracts" if isinstance(source, Mapping) else str(source)
    document = source if isinstance(source, Mapping) else read_document(source)
    fields = ("contracts", "at", "let", "requires", "invariants", "state")
    data = Location(where, {}).check_fields(document, (), fields)
    for key, kind in (("contracts", Mapping), ("let", Mapping), ("requires", Mapping), ("invariants", list)):
        if key in data and not isinstance(data[key], kind):
            raise ToolkitError(f"{where}: {key}: expected {'a list' if kind is list else 'an object'}")
    return load_rules(parts, data, at=data.get("at") if at is None else at, document=where)


def load_rules(parts: Parts, data: Mapping[str, Any], *, at: Mount | None = None, document: str = "") -> Parts:
    """Return tools with contracts, and what these share: `contracts`, `let`, `requires`, `invariants` and `state`.

    `data` are the rules as they were written in `document`: their `state` is what stands at the keys `at` of the task
    state. Where they have no schema of it, that of the parts counts.
    """
    begin, lines = f"{document}: " if document else "", Origin(document, ("state",)).find_line
    lets, contracts, given = data.get("let") or {}, data.get("contracts", {}), data.get("state")
    loaded = {
        name: Contract.load(
            _mounted(one, at),
            lets=lets,
            requires=data.get("requires"),
            where=f"{begin}contract of {name}",
            origin=Origin(document, ("contracts", name)),
        )
        for name, one in contracts.items()
    }
    where = f"{begin}{'state' if document else 'state_schema'}"
    state = None if given is None else check_schema(given, where=where, line_of=lines)
    schema = _schema_below(state, at)
    known = of_state(parts.state_schema if schema is None else schema)
    stated = dict.fromkeys(stated_effects(contracts), True)
    made = with_fields(parts.tools, {"contract": loaded, "stated": stated}, where=begin)
    for tool in made:
        if tool.name in loaded:
            loaded[tool.name].fit(tool.parameters, state=known)
    invariants = [
        Invariant.load(
            _mounted(one, at),
            lets=lets,
            where=f"{begin}invariants[{index}]",
            origin=Origin(document, ("invariants", index)),
            state=known,
        )
        for index, one in enumerate(data.get("invariants") or [])
    ]
    return Parts(made, lets, invariants, schema)


def join(parts: Sequence[Parts], *, at: Mount | None = None) -> Parts:
    """Return all parts as one, below some keys of the task state. Raises ContractError."""
    invariants = [
        Invariant.load(
            {**({"let": one.lets} if one.lets else {}), **_mounted(each.data, at)}, where=f"invariants[{number}]"
        )
        for number, (one, each) in enumerate((one, each) for one in parts for each in one.invariants)
    ]
    lets = {name: let for one in reversed(parts) for name, let in one.lets.items()}
    tools = [_below(tool, at) for one in parts for tool in one.tools]
    return Parts(tools, lets, invariants, _schema_below(_join_schemas([one.state_schema for one in parts]), at))


def _join_schemas(schemas: Sequence[JsonObject | None]) -> JsonObject | None:
    """Return the schema of a state that fulfils all of these."""
    found: list[JsonObject] = []
    for schema in schemas:
        found += [schema] if schema is not None and schema not in found else []
    if len(found) <= 1:
        return found[0] if found else None
    return {"allOf": [_moved(one, f"/allOf/{index}") for index, one in enumerate(found)]}


def _schema_below(schema: JsonObject | None, at: Mount | None) -> JsonObject | None:
    """Return the schema of a state that fulfils this one below some keys."""
    for key in reversed([at] if isinstance(at, str) else at or ()) if schema is not None else ():
        below = {key: _moved(schema, pointer(["properties", key]))}
        schema = {"type": "object", "properties": below, "required": [key]}
    return schema


def _moved(schema: Any, above: str) -> Any:
    """Return a schema as it is to be written at a place of another one: its references lead from the root."""
    if not isinstance(schema, dict):
        return schema
    moved = rebuild({key: one for key, one in schema.items() if key != "$id"}, lambda one: _moved(one, above))
    return {**moved, "$ref": f"#{above}{moved['$ref'][1:]}"} if "$ref" in moved else moved


def with_fields(
    tools: Sequence[ToolSpec], fields: Mapping[str, Mapping[str, Any]], *, where: str = ""
) -> list[ToolSpec]:
    """Return the tools with other fields: field of a spec to tool name to value. Raises ToolkitError."""
    known = by_name(tools)
    for key, of in fields.items():
        for name in of:
            check_known(name, known, f"{where}{key}")
    return [replace(tool, **{key: of[tool.name] for key, of in fields.items() if tool.name in of}) for tool in tools]


def _below(tool: ToolSpec, at: Mount | None) -> ToolSpec:
    contract = tool.contract
    if contract is None or at is None:
        return tool
    where = f"contract of {tool.name}"
    return replace(tool, contract=Contract.load(_mounted(contract.data, at), lets=contract.lets, where=where))


def _mounted(data: Any, at: Mount | None) -> Any:
    """Return a contract or an invariant below some keys; what is no object is left to be refused."""
    if at is None or not isinstance(data, Mapping):
        return data
    outer, inner = ([one] if isinstance(one, str) else one for one in (at, data.get("at", [])))
    return {**data, "at": [*outer, *inner]}
