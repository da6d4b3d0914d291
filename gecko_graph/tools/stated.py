"""What a user states of single tools: names, effects, examples, idempotency keys, and that they may be opened."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import ToolkitError, did_you_mean
from .names import format_names
from .openapi.client import HttpFunction
from .spec import Effect, ToolExample, ToolSpec


def by_name(tools: Iterable[ToolSpec]) -> dict[str, ToolSpec]:
    """Return the tools of a toolkit by name. Raises ToolkitError."""
    found: dict[str, ToolSpec] = {}
    for tool in tools:
        if not isinstance(tool, ToolSpec):
            raise ToolkitError(f"expected a ToolSpec, got {type(tool).__name__}; Toolkit.from_tools takes others")
        if not tool.name.strip():
            raise ToolkitError("a tool has no name")
        if tool.name in found:
            raise ToolkitError(f"two tools are called {tool.name!r}; rename one of them")
        if tool.opened:
            check_openable(tool)
        is_changed = isinstance(tool.real, HttpFunction) and tool.real.of(tool) is not tool.real
        found[tool.name] = replace(tool, real=tool.real.of(tool)) if is_changed else tool  # type: ignore[union-attr]
    return found


def with_key(tool: ToolSpec, key: str) -> ToolSpec:
    """Return a tool whose idempotency key is no longer among its arguments. Raises ToolkitError."""
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


def with_keys(tools: Sequence[ToolSpec], keys: Mapping[str, str] | None) -> list[ToolSpec]:
    """Return the tools with idempotency keys: tool name to argument. Raises ToolkitError."""
    for name in keys or {}:
        check_known(name, by_name(tools), "idempotency")
    return [with_key(tool, keys[tool.name]) if keys and tool.name in keys else tool for tool in tools]


def check_known(name: str, known: Collection[str], action: str) -> None:
    """Raise ToolkitError where there is no tool of that name."""
    if name not in known:
        hint = did_you_mean(name, known) or f"; known tools: {format_names(list(known))}"
        raise ToolkitError(f"{action}: unknown tool {name!r}{hint}")


def check_openable(tool: ToolSpec) -> None:
    """Raise ToolkitError for a tool whose real function a rehearsal must not run."""
    if not tool.reads:
        raise ToolkitError(
            f"cannot open {tool.name!r}: only reads can be opened; if it is one, pass effects={{...: 'read'}}"
        )
    if tool.real is None:
        hint = "; its document names no server: pass from_openapi(..., server='https://...')" if tool.binding else ""
        raise ToolkitError(f"cannot open {tool.name!r}: it has no real function that its arguments can run{hint}")


def check_effect(name: str, effect: Any) -> Effect:
    """Return a tool's effect. Raises ToolkitError."""
    if effect not in ("read", "write"):
        raise ToolkitError(f"effects: {name!r} must be 'read' or 'write', not {effect!r}")
    checked: Effect = effect
    return checked


def stated_effects(contracts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the tools whose effect is stated by a contract that says what they do, and no change.

    A contract that only guards a call states no effect: what a server claims of the tool stays a claim.
    """
    return [name for name, one in contracts.items() if {"returns", "observes"} & one.keys() and not one.get("effects")]


def read_examples(name: str, examples: Iterable[ToolExample | Mapping[str, Any]]) -> tuple[ToolExample, ...]:
    """Return a tool's given answers. Raises ToolkitError."""
    return tuple(read_example(name, one) for one in examples)


def read_example(name: str, example: ToolExample | Mapping[str, Any]) -> ToolExample:
    """Return a tool's given answer. Raises ToolkitError."""
    if isinstance(example, ToolExample):
        return example
    if (
        not isinstance(example, Mapping)
        or example.keys() != {"args", "result"}
        or not isinstance(example["args"], Mapping)
    ):
        raise ToolkitError(f"examples: each of {name!r} must be {{'args': {{...}}, 'result': ...}}")
    return ToolExample(dict(example["args"]), example["result"])
