"""Contracts: a tool as a function over the task state, written as data (ToolGate, paper 004, sections 3.2 to 3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..state import Call, Json, JsonObject, Patch


class Refusal(NamedTuple):
    """A requirement that does not hold: the tool's own error, and what this error still changes."""

    error: Json
    patch: Patch


class ContractAnswer(NamedTuple):
    """What a contract says of a call that it lets pass."""

    result: Json
    patch: Patch


class ContractRun:
    """One call under one contract."""

    def refusal(self) -> Refusal | None:
        """The first `requires` that fails."""
        raise NotImplementedError

    def answer(self) -> ContractAnswer | None:
        """Result and change; None where the contract says neither."""
        raise NotImplementedError

    def broken(self, result: Json, after: Json) -> str | None:
        """The first `ensures` that fails, as text."""
        raise NotImplementedError


class Contract:
    """A tool's contract, checked at load."""

    data: JsonObject
    lets: JsonObject
    state_keys: frozenset[str]

    @classmethod
    def load(cls, data: Mapping[str, Any], *, lets: Mapping[str, Any] | None = None, where: str) -> Contract:
        """Check and keep a contract. Raises ContractError."""
        raise NotImplementedError

    def open(
        self, *, args: JsonObject, parameters: JsonObject, state: Json, call: Call, now: str | None, seed: int
    ) -> ContractRun:
        """Begin one call."""
        raise NotImplementedError


class Invariant:
    """Something that holds of every state."""

    @classmethod
    def load(cls, data: Mapping[str, Any], *, lets: Mapping[str, Any] | None = None, where: str) -> Invariant:
        """Check and keep an invariant. Raises ContractError."""
        raise NotImplementedError

    def broken(self, before: Json, after: Json) -> str | None:
        """Why it does not hold, or None."""
        raise NotImplementedError
