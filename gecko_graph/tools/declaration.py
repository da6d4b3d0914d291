"""Apply a user's declarations to tools: single `Tool`s, files of contracts, and several toolkits joined."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ..contracts.contract import Contract
from ..contracts.derived import DerivedContract
from ..contracts.invariant import Invariant
from ..contracts.language.examine import of_state
from ..contracts.language.expression import Location, Origin
from ..errors import ToolkitError, did_you_mean
from ..schemas.strict import check_schema
from ..schemas.subschemas import rebuild
from ..state import JsonObject
from ..values.places import pointer
from .problems import Problem
from .spec import Effect, ToolExample, ToolSpec, format_names
from .typed import Types


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool with declarations that its source lacks; fields left out keep the source's values.

    Args:
        source: A function, LangChain tool, Pydantic class, function dict (OpenAI, BFCL, MCP) or ToolSpec; or the name
            of a tool in a toolkit, for `Toolkit.declare`. A function becomes the real tool and does not run in a
            rehearsal unless you `open` it.
        name: Replaces the source's name.
        effect: `read` or `write`.
        contract: A contract as in `x-contract`.
        simulate: `simulate(state, **args)`: computes the answer on a copy of the task state.
        examples: Recorded answers: `{"args": ..., "result": ...}`.
        result: JSON Schema of the result.
        idempotency: The argument that carries the idempotency key, or `header:<name>`; the executor fills it.
        refuses: True if an error result of this write means that nothing was changed. By default that is left open.
    """

    source: Any
    _: KW_ONLY
    name: str | None = None
    effect: Effect | None = None
    contract: Mapping[str, Any] | None = None
    simulate: Callable[..., Any] | None = None
    examples: Iterable[ToolExample | Mapping[str, Any]] | None = None
    result: JsonObject | None = None
    idempotency: str | None = None
    refuses: bool | None = None


def _apply(tool: ToolSpec, declared: Tool) -> ToolSpec:
    if declared.idempotency is not None:
        tool = _with_key(tool, declared.idempotency)
    given: dict[str, Any] = {"name": declared.name, "result": declared.result, "refuses": declared.refuses}
    if declared.effect is not None:
        if declared.effect not in ("read", "write"):
            raise ToolkitError(f"{tool.name}: effect must be 'read' or 'write', not {declared.effect!r}")
        given |= {"effect": declared.effect, "stated": True}
    if declared.examples is not None:
        given["examples"] = tuple(_read_example(tool.name, one) for one in declared.examples)
    if declared.simulate is not None:
        _check_simulation(declared.simulate, tool)
        given["simulate"] = Types(declared.simulate, after=1).around(declared.simulate)
    return replace(tool, **{key: value for key, value in given.items() if value is not None})


def by_name(tools: Iterable[ToolSpec]) -> dict[str, ToolSpec]:
    """Return tools by name. Raises ToolkitError."""
    found: dict[str, ToolSpec] = {}
    for tool in tools:
        if not isinstance(tool, ToolSpec):
            raise ToolkitError(f"expected a ToolSpec, got {type(tool).__name__}; convert it with Toolkit.from_tools")
        if not tool.name.strip():
            raise ToolkitError("a tool has no name")
        if tool.name in found:
            raise ToolkitError(f"two tools are called {tool.name!r}; rename one of them")
        if tool.opened:
            check_openable(tool)
        found[tool.name] = _with_real_of(tool) if tool.binding and tool.real else tool
    facts = {name: fact_of(tool) for name, tool in found.items()}
    for name, tool in found.items():
        if tool.contract is not None and tool.contract.reads_calls:
            found[name] = replace(tool, contract=tool.contract.knowing(facts))
    return found


def fact_of(tool: ToolSpec) -> tuple[str, JsonObject]:
    """Return the key of a verified result of the tool, and the result's schema (ToolGate, equation 2)."""
    return (tool.contract.fact if tool.contract is not None else "") or tool.name, tool.result or {}


def _with_real_of(tool: ToolSpec) -> ToolSpec:
    """Return the tool; its HTTP function uses the declarations that were added later."""
    from .openapi.client import HttpFunction  # here, because it imports yaml

    real = tool.real.of(tool) if isinstance(tool.real, HttpFunction) else tool.real
    return tool if real is tool.real else replace(tool, real=real)


def check_known(name: str, known: Collection[str], action: str) -> None:
    """Raise ToolkitError if no tool has this name."""
    if name not in known:
        raise ToolkitError(f"{action}: {name_unknown(name, known)}")


def name_unknown(name: str, known: Collection[str]) -> str:
    """Return a message on an unknown tool, with a similar name or the known ones."""
    hint = did_you_mean(str(name), known) or f"; known tools: {format_names(list(known))}"
    return f"unknown tool {name!r:.200}{hint}"


def check_openable(tool: ToolSpec) -> None:
    """Raise ToolkitError if a rehearsal must not run the tool's real function."""
    if not tool.reads:
        hint = f"if it is one, declare it: Tool({tool.name!r}, effect='read')"
        raise ToolkitError(f"cannot open {tool.name!r}: only reads can be opened; {hint}")
    if tool.real is None:
        hint = "; its document names no server: pass from_openapi(..., server='https://...')" if tool.binding else ""
        raise ToolkitError(f"cannot open {tool.name!r}: it has no real function that its arguments can run{hint}")


def _with_key(tool: ToolSpec, key: str) -> ToolSpec:
    """Return the tool without the idempotency key among its arguments."""
    places = tool.binding.places if tool.binding else {}
    if key.startswith("header:") and tool.binding is None:
        raise ToolkitError(f"idempotency: {tool.name!r} is called without headers: name one of its arguments")
    taken = {key, *(name for name, (place, wire) in places.items() if f"{place}:{wire}" == key)}
    properties = tool.parameters.get("properties", {})
    if not key.startswith("header:") and key not in properties:
        raise ToolkitError(f"idempotency: {tool.name!r} has no argument {key!r}{did_you_mean(key, properties)}")
    parameters = {**tool.parameters, "properties": {name: one for name, one in properties.items() if name not in taken}}
    if "required" in parameters:
        parameters["required"] = [name for name in parameters["required"] if name not in taken]
    return replace(tool, idempotency=key, parameters=parameters)


def _check_simulation(function: Any, tool: ToolSpec) -> None:
    """Raise ToolkitError if `function(state, **args)` rejects all arguments of a tool, or only the required ones."""
    if not callable(function):
        raise ToolkitError(f"simulate for {tool.name!r}: expected a function, got {type(function).__name__}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some functions written in C have no signature to read
    known = tool.parameters.get("properties", {})
    required = [name for name in tool.parameters.get("required", []) if name in known]
    for names in (known, required):
        try:
            signature.bind({}, **dict.fromkeys(names))
        except TypeError as error:
            wanted = ", ".join(["state", *required, *(f"{name}=None" for name in known if name not in required)])
            raise ToolkitError(f"simulate for {tool.name!r}: {error}; write it as def simulate({wanted})") from None


def _read_example(name: str, example: ToolExample | Mapping[str, Any]) -> ToolExample:
    if isinstance(example, ToolExample):
        return example
    known = example if isinstance(example, Mapping) else {}
    if known.keys() != {"args", "result"} or not isinstance(known["args"], Mapping):
        raise ToolkitError(f"examples: each of {name!r} must be {{'args': {{...}}, 'result': ...}}")
    return ToolExample(dict(known["args"]), known["result"])


Mount = str | Sequence[str]


class ToolkitParts(NamedTuple):
    """The arguments of a `Toolkit`."""

    tools: Sequence[ToolSpec]
    lets: Mapping[str, Any] = MappingProxyType({})
    invariants: Sequence[Invariant] = ()
    state_schema: JsonObject | None = None
    title: str = ""
    broken: Sequence[Problem] = ()


def add_declared(
    parts: ToolkitParts, declared: Iterable[Tool], requires: Mapping[str, Any] | None = None
) -> ToolkitParts:
    """Return the parts with declarations applied to the tools that they name.

    Raises:
        ToolkitError: A tool is unknown, or a declaration is invalid.
        ContractError: A contract is invalid.
    """
    made, contracts = by_name(parts.tools), dict[str, Any]()
    for one in declared:
        if not isinstance(one, Tool) or not isinstance(one.source, str):
            raise ToolkitError(f"declare: expected Tool('name', ...), a tool of the toolkit, got {one!r:.80}")
        check_known(one.source, made, "declare")
        made[one.source] = tool = _apply(made[one.source], one)
        if one.contract is not None:
            contracts[tool.name] = one.contract
    rules = {"contracts": contracts, "let": parts.lets, "requires": requires}
    return parts._replace(tools=load_rules(parts._replace(tools=list(made.values())), rules).tools)


def read_contracts(parts: ToolkitParts, source: str | Path | Mapping[str, Any], *, at: Mount | None) -> ToolkitParts:
    """Return the tools with the contracts of a file, and its shared rules. Raises ToolkitError, ContractError."""
    from ..values.documents import read_document  # here, because it imports yaml

    where = "contracts" if isinstance(source, Mapping) else str(source)
    document = source if isinstance(source, Mapping) else read_document(source)
    fields = ("contracts", "at", "let", "requires", "invariants", "state", "proposals")  # proposals: a person decides
    data = Location(where, {}).check_fields(document, (), fields)
    for key, kind in (("contracts", Mapping), ("let", Mapping), ("requires", Mapping), ("invariants", list)):
        if key in data and not isinstance(data[key], kind):
            raise ToolkitError(f"{where}: {key}: expected {'a list' if kind is list else 'an object'}")
    return load_rules(parts, data, at=data.get("at") if at is None else at, document=where)


def load_rules(
    parts: ToolkitParts, data: Mapping[str, Any], *, at: Mount | None = None, document: str = ""
) -> ToolkitParts:
    """Return the tools with the contracts of `data`, and its rules `let`, `requires`, `invariants` and `state`.

    `data["state"]` is the schema of the task state below the keys `at`; by default the parts' schema is used.
    `document` is the file's name, for messages.
    """
    begin, lets, schema, given = f"{document}: " if document else "", data.get("let") or {}, None, data.get("state")
    if given is not None:
        where = f"{begin}{'state' if document else 'state_schema'}"
        lines = Origin(document, ("state",)).find_line
        schema = _schema_below(check_schema(given, where=where, line_of=lines), at)
    known, made = of_state(parts.state_schema if schema is None else schema), by_name(parts.tools)
    for name, one in data.get("contracts", {}).items():
        where, origin = f"{begin}contract of {name}", Origin(document, ("contracts", name))
        check_known(name, made, f"{begin}contract")
        contract = Contract.load(
            _mounted(one, at), lets=lets, requires=data.get("requires"), where=where, origin=origin
        )
        if contract.is_derived:
            made[name] = replace(made[name], derived=DerivedContract(contract.data, where))
            continue
        contract.fit(made[name].parameters, state=known)
        # a contract that only guards a call states no effect: a server's own claim about the tool remains a claim
        is_read = {"returns", "observes"} & one.keys() and not one.get("effects")
        made[name] = replace(made[name], contract=contract, stated=made[name].stated or bool(is_read))
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
    return parts._replace(tools=list(made.values()), lets=lets, invariants=invariants, state_schema=schema)


def join(parts: Sequence[ToolkitParts], *, at: Mount | None = None) -> ToolkitParts:
    """Return all parts as one, mounted at keys of the task state, with the first one's title. Raises ContractError."""
    rules = [{**({"let": one.lets} if one.lets else {}), **each.data} for one in parts for each in one.invariants]
    loaded = [Invariant.load(_mounted(one, at), where=f"invariants[{number}]") for number, one in enumerate(rules)]
    lets = {name: let for one in reversed(parts) for name, let in one.lets.items()}
    tools = [_below(tool, at) for one in parts for tool in one.tools]
    schemas = [one.state_schema for one in parts if one.state_schema is not None]
    different = [one for number, one in enumerate(schemas) if one not in schemas[:number]]
    schema = next(iter(different), None)
    if len(different) > 1:
        schema = {"allOf": [_moved(one, f"/allOf/{index}") for index, one in enumerate(different)]}
    broken = [problem for one in parts for problem in one.broken]
    return ToolkitParts(tools, lets, loaded, _schema_below(schema, at), parts[0].title, broken)


def _schema_below(schema: JsonObject | None, at: Mount | None) -> JsonObject | None:
    """Return the schema of a state that has this schema's document below some keys."""
    for key in reversed([at] if isinstance(at, str) else at or ()) if schema is not None else ():
        below = {key: _moved(schema, pointer(["properties", key]))}
        schema = {"type": "object", "properties": below, "required": [key]}
    return schema


def _moved(schema: Any, above: str) -> Any:
    """Return a schema for a place inside another schema: its references are rewritten to start at the new root."""
    if not isinstance(schema, dict):
        return schema
    moved = rebuild({key: one for key, one in schema.items() if key != "$id"}, lambda one: _moved(one, above))
    return {**moved, "$ref": f"#{above}{moved['$ref'][1:]}"} if "$ref" in moved else moved


def _below(tool: ToolSpec, at: Mount | None) -> ToolSpec:
    if tool.contract is None or at is None:
        return tool
    data, where = _mounted(tool.contract.data, at), f"contract of {tool.name}"
    return replace(tool, contract=Contract.load(data, lets=tool.contract.lets, where=where))


def _mounted(data: Any, at: Mount | None) -> Any:
    """Return a contract or an invariant mounted at keys; the loader rejects anything but an object later."""
    if at is None or not isinstance(data, Mapping):
        return data
    outer, inner = ([one] if isinstance(one, str) else one for one in (at, data.get("at", [])))
    return {**data, "at": [*outer, *inner]}
