"""What is given by keyword beside a source of tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..contracts.contract import Contract, Invariant
from ..contracts.language.shapes import of_state
from ..errors import ToolkitError
from ..schemas.well_formed import check_schema
from ..state import JsonObject
from .functions import check_simulation, specs_of
from .parts import Parts, with_fields
from .stated import by_name, check_effect, read_examples, stated_effects, with_keys


def read_parts(
    tools: Iterable[Any],
    given: Mapping[str, Any],
    *,
    lets: Mapping[str, Any] | None,
    requires: Mapping[str, Any] | None,
    invariants: Sequence[Mapping[str, Any]],
    state_schema: JsonObject | None,
) -> Parts:
    """Return tools with what `Toolkit.from_tools` is given of them. Raises ToolkitError, ContractError."""
    plain = with_keys(specs_of(tools), given["idempotency"])
    named = {key: _named(key, given[key]) for key in ("contracts", "simulate", "effects", "examples", "results")}
    stated = by_name(plain) if given["trust_hints"] else stated_effects(named["effects"], named["contracts"])
    fields: dict[str, Mapping[str, Any]] = {
        "contract": {
            name: Contract.load(one, lets=lets, requires=requires, where=f"contract of {name}")
            for name, one in named["contracts"].items()
        },
        "simulate": named["simulate"],
        "result": named["results"],
        "effect": {name: check_effect(name, one) for name, one in named["effects"].items()},
        "stated": dict.fromkeys(stated, True),
        "examples": {name: read_examples(name, some) for name, some in named["examples"].items()},
    }
    schema = None if state_schema is None else check_schema(state_schema, where="state_schema")
    shape = of_state(schema)
    loaded = [
        Invariant.load(one, lets=lets, where=f"invariants[{index}]", state=shape)
        for index, one in enumerate(invariants)
    ]
    made = with_fields(plain, fields, state_schema=schema)
    for tool in made:
        if tool.name in named["simulate"]:
            check_simulation(named["simulate"][tool.name], tool)
    return Parts(made, lets or {}, loaded, schema)


def _named(key: str, given: Any) -> Mapping[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise ToolkitError(f"{key}: expected {{'tool name': ...}}, got {type(given).__name__}")
    return given or {}
