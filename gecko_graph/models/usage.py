"""A log of prompts and replies, and the models' usage: tokens always, dollars if prices are known.

An unknown price makes a sum unknown: `None + 0.01` is None.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeGuard
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from ..errors import GeckoError
from ..state import RoleUsage, Usage
from ..values.observation import mask_values
from .drawing import escape
from .failure import failure_of


class PromptLog(BaseCallbackHandler):
    """Appends every prompt and reply of a run to a file.

    Args:
        file: The file; created if missing.

    Raises:
        GeckoError: The file cannot be written.
    """

    run_inline = True  # in the order of events, also under `ainvoke`

    def __init__(self, file: str | Path) -> None:
        self._file = Path(file)
        self._lock = Lock()
        self._open: dict[UUID, tuple[float, dict[str, Any]]] = {}
        self._tools: dict[str, str] = {}
        try:
            self._file.open("a", encoding="utf-8").close()
        except OSError as error:
            raise GeckoError(f"{file}: the log cannot be written: {error.strerror}") from None

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Write the prompt. Tools that an earlier prompt listed are referred to by its id, in `tools_of`."""
        metadata = kwargs.get("metadata") or {}
        place = {key: metadata.get(f"gecko_{key}") for key in ("role", "turn", "attempt", "question")}
        self._open[run_id] = time.monotonic(), place
        prompt = {"model": metadata.get("ls_model_name"), "messages": [_read(one) for one in messages[0]]}
        self._write("prompt", run_id, place, {**prompt, **self._read_tools(kwargs, run_id)})

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        generations = [one for batch in response.generations for one in batch if isinstance(one, ChatGeneration)]
        spent = add_all([count(one.message) for one in generations])
        tokens = {"input": spent["input_tokens"], "output": spent["output_tokens"]}
        self._end(run_id, {"reply": [_read(one.message) for one in generations], "tokens": tokens})

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id, {"error": failure_of(error) if isinstance(error, Exception) else type(error).__name__})

    def _end(self, run_id: UUID, fields: dict[str, Any]) -> None:
        begun, place = self._open.pop(run_id, (time.monotonic(), {}))
        self._write("reply", run_id, place, {**fields, "ms": round((time.monotonic() - begun) * 1_000)})

    def _read_tools(self, kwargs: dict[str, Any], run_id: UUID) -> dict[str, Any]:
        tools = (kwargs.get("invocation_params") or {}).get("tools")
        if not tools:
            return {}
        first = self._tools.setdefault(json.dumps(tools, default=str, sort_keys=True), str(run_id))
        return {"tools": tools} if first == str(run_id) else {"tools_of": first}

    def _write(self, kind: str, run_id: UUID, place: dict[str, Any], fields: dict[str, Any]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        head = {"event": kind, "id": str(run_id), "time": now, **place}
        try:
            line = escape(json.dumps(mask_values({**head, **fields}), default=str, ensure_ascii=False))
        except Exception as error:  # noqa: BLE001 - the boundary to models: a reply may contain anything, at any depth
            line = json.dumps({**head, "error": f"it cannot be written: {type(error).__name__}"})
        with self._lock, self._file.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def _read(message: BaseMessage) -> dict[str, Any]:
    """Return a message's content in LangChain's format."""
    names = ("name", "tool_calls", "invalid_tool_calls", "tool_call_id")
    parts = {name: getattr(message, name, None) for name in names}
    return {"type": message.type, "content": message.content, **{key: part for key, part in parts.items() if part}}


class Price(NamedTuple):
    """US dollars per million tokens."""

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
    return {"calls": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0}


MOST_TOKENS = 10**9
"""More than any call uses, so that sums stay within the 64 bits that a checkpoint can store."""

_DIGITS = 9  # rounding every sum makes its order irrelevant


def count(message: BaseMessage | None, *, prices: Mapping[str, Price] = PRICES) -> RoleUsage:
    """Count one answered model call.

    Args:
        message: The reply; None if it is no message.
        prices: Price by model name. A dated name (`gpt-4o-2024-08-06`) has the price of its prefix.

    Returns:
        One call with its tokens, 0 if the provider sends none or invalid ones. The cost is None if the price or the
        tokens are unknown.
    """
    usage: Any = message.usage_metadata if isinstance(message, AIMessage) else None
    given, generated = map((usage if isinstance(usage, Mapping) else {}).get, ("input_tokens", "output_tokens"))
    if message is None or not (is_count(given) and is_count(generated)):
        return {"calls": 1, "input_tokens": 0, "output_tokens": 0, "cost": None}
    metadata = message.response_metadata or {}
    counted = count_tokens(given, generated, model_name=str(metadata.get("model_name", "")), prices=prices)
    return {**counted, "estimated": True} if metadata.get("estimated_usage") is True else counted


def is_count(value: Any) -> TypeGuard[int]:
    """Return whether a value is a plausible number of tokens of one call."""
    return type(value) is int and 0 <= value <= MOST_TOKENS


def count_tokens(
    input_tokens: int, output_tokens: int, *, model_name: str, prices: Mapping[str, Price] = PRICES
) -> RoleUsage:
    """Count one model call by its tokens. Without tokens the cost is 0: the call failed."""
    price = price_of(model_name, prices=prices)
    cost = None if price is None else _money(input_tokens * price.input / 1e6 + output_tokens * price.output / 1e6)
    if not input_tokens and not output_tokens:
        cost = 0.0
    return {"calls": 1, "input_tokens": input_tokens, "output_tokens": output_tokens, "cost": cost}


def price_of(model_name: str, *, prices: Mapping[str, Price] = PRICES) -> Price | None:
    if model_name in prices:
        return prices[model_name]
    known = [name for name in prices if model_name.startswith(f"{name}-") and model_name[len(name) + 1 :][:2] == "20"]
    return prices[max(known, key=len)] if known else None


def add_usage(a: Usage, b: Usage) -> Usage:
    """Sum by role. Commutative and associative; a cost of None makes the sum None."""
    both = {**a, **b, **{role: _add(a[role], b[role]) for role in a.keys() & b.keys()}}
    return dict(sorted(both.items())) if len(both) > 1 else both


def total(usage: Usage) -> RoleUsage:
    return add_all(usage.values())


def add_all(parts: Iterable[RoleUsage]) -> RoleUsage:
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


def tokens_of(error: Exception) -> tuple[int, int]:
    """Return input and output tokens of a reply that the client discarded, for example one truncated at its limit."""
    usage: Any = getattr(getattr(error, "completion", None), "usage", None)
    given, made = getattr(usage, "prompt_tokens", 0), getattr(usage, "completion_tokens", 0)
    return (given, made) if is_count(given) and is_count(made) else (0, 0)
