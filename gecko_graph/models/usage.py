"""What models cost: tokens always, US dollars where a price is known.

An unknown price makes a sum unknown: `None + 0.01` is None, never a bill that leaves something out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, NamedTuple, TypeGuard

from langchain_core.messages import AIMessage, BaseMessage

from ..state import RoleUsage, Usage


class Price(NamedTuple):
    """US dollars for a million tokens."""

    input: float
    output: float


# List prices of November 2025, without discounts for cached input: an estimate. `prices=` overrides them.
PRICES: Mapping[str, Price] = {
    "gpt-5": Price(1.25, 10.0),
    "gpt-5-mini": Price(0.25, 2.0),
    "gpt-5-nano": Price(0.05, 0.4),
    "gpt-4.1": Price(2.0, 8.0),
    "gpt-4.1-mini": Price(0.4, 1.6),
    "gpt-4.1-nano": Price(0.1, 0.4),
    "gpt-4o": Price(2.5, 10.0),
    "gpt-4o-mini": Price(0.15, 0.6),
    "o3": Price(2.0, 8.0),
    "o4-mini": Price(1.1, 4.4),
}


def no_usage() -> RoleUsage:
    """Return the usage of a role that was never asked."""
    return {"calls": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0}


MOST_TOKENS = 10**9
"""More than any call uses: sums of what is booked stay within the 64 bits that a checkpoint can keep."""

_DIGITS = 9  # rounding every sum to as many digits makes its order not matter


def count(message: BaseMessage | None, *, prices: Mapping[str, Price] = PRICES) -> RoleUsage:
    """Count one model call that was replied to.

    Args:
        message: The reply; None where it is not a message.
        prices: Price by model name. A dated name (`gpt-4o-2024-08-06`) has the price of the name it begins with.

    Returns:
        One call with its tokens, 0 where the provider sends none or nonsense. The cost is None where the
        model's price or the tokens are unknown.
    """
    usage: Any = message.usage_metadata if isinstance(message, AIMessage) else None
    given, generated = map((usage if isinstance(usage, Mapping) else {}).get, ("input_tokens", "output_tokens"))
    if message is None or not (is_count(given) and is_count(generated)):
        return {"calls": 1, "input_tokens": 0, "output_tokens": 0, "cost": None}
    metadata = message.response_metadata or {}
    counted = count_tokens(given, generated, model_name=str(metadata.get("model_name", "")), prices=prices)
    return {**counted, "estimated": True} if metadata.get("estimated_usage") is True else counted


def is_count(value: Any) -> TypeGuard[int]:
    """Return whether a value is a number of tokens that one call can have used."""
    return type(value) is int and 0 <= value <= MOST_TOKENS


def count_tokens(
    input_tokens: int, output_tokens: int, *, model_name: str, prices: Mapping[str, Price] = PRICES
) -> RoleUsage:
    """Count one model call by its tokens. No tokens cost nothing, whatever the price: a call that failed."""
    price = price_of(model_name, prices=prices)
    cost = None if price is None else _money(input_tokens * price.input / 1e6 + output_tokens * price.output / 1e6)
    if not input_tokens and not output_tokens:
        cost = 0.0
    return {"calls": 1, "input_tokens": input_tokens, "output_tokens": output_tokens, "cost": cost}


def price_of(model_name: str, *, prices: Mapping[str, Price] = PRICES) -> Price | None:
    """Return the price of a model by its own name, or by the name that its dated name begins with."""
    if model_name in prices:
        return prices[model_name]
    known = [name for name in prices if model_name.startswith(f"{name}-") and model_name[len(name) + 1 :][:2] == "20"]
    return prices[max(known, key=len)] if known else None


def add_usage(a: Usage, b: Usage) -> Usage:
    """Sum by role. Commutative and associative; `{}` adds nothing; a cost of None makes the sum None."""
    both = {**a, **b, **{role: _add(a[role], b[role]) for role in a.keys() & b.keys()}}
    return dict(sorted(both.items())) if len(both) > 1 else both


def total(usage: Usage) -> RoleUsage:
    """Sum over all roles."""
    return add_all(usage.values())


def add_all(parts: Iterable[RoleUsage]) -> RoleUsage:
    """Sum of some roles' or calls' usage."""
    return reduce(_add, parts, no_usage())


def _add(a: RoleUsage, b: RoleUsage) -> RoleUsage:
    known = a["cost"] is not None and b["cost"] is not None
    spent: RoleUsage = {
        "calls": a["calls"] + b["calls"],
        "input_tokens": a["input_tokens"] + b["input_tokens"],
        "output_tokens": a["output_tokens"] + b["output_tokens"],
        "cost": _money((a["cost"] or 0.0) + (b["cost"] or 0.0)) if known else None,
    }
    if a.get("estimated") or b.get("estimated"):
        spent["estimated"] = True
    return spent


def _money(dollars: float) -> float:
    return round(dollars, _DIGITS)
