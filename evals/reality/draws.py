"""What a seed draws: one run of the matrix. Every choice is dealt, so that its values come equally often."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

EMBEDDED = ("node", "node", "two deep", "in a tool", "preview in a node", "guard in a node")
SETTINGS = ("alone", "alone", "alone", "preview", "preview", "guard", *EMBEDDED)
"""Where the agent runs; `preview` and `guard` are modes of `GeckoMiddleware` in LangChain's `create_agent`."""
PLANS: dict[str, list[tuple[str, str, int]]] = {
    "one": [("pay", "ann", 11)],
    "several": [("pay", "ann", 11), ("pay", "bob", 22), ("cancel", "ann", 0)],
    "equal": [("pay", "ann", 11), ("pay", "ann", 11), ("pay", "bob", 22)],
}
"""What is wanted. A cancellation needs the identifier of its payment, which only reality gives."""
ENDS = ("none", "kill", "kill", "kill", "kill", "kill", "cancel", "time-out")
MOST_WRITES = 40


def dealt(name: str, values: Sequence[T], seed: int) -> T:
    """Return a seed's value; in each block of as many seeds as there are values, each is dealt once."""
    block, place = divmod(seed, len(values))
    deck = list(values)
    random.Random(f"{name} {block}").shuffle(deck)
    return deck[place]


@dataclass(frozen=True, slots=True)
class Draw:
    """One run."""

    seed: int
    setting: str
    two: bool
    """Whether two processes (of the memory saver, two threads) do each thing at the same moment."""
    saver: str
    tools: str
    review: str
    plan: str
    batch: bool
    """Whether the planner makes all payments in one message."""
    keyed: bool
    """Whether the tools take idempotency keys, which the bank honours."""
    end: str
    """How processes end early: by a kill, or by the caller, who cancels or whose time runs out."""
    points: tuple[tuple[str, int, str], ...]
    """Where they do: `saver` or `service`, the number of its write in the whole run; before, in or after it."""
    faults: float
    """Share of the requests that fail."""
    address: str
    """What an answer echoes: nothing, the interrupt's id, or the question's where it has one."""
    again: bool
    """Whether each answer is sent a second time."""
    message: str
    """What goes on after a process has ended: nothing new, or the message with the same id or with none."""
    leaves: bool
    """Whether the person leaves doubts as they are."""

    @classmethod
    def of(cls, seed: int) -> Draw:
        """Return the run of a seed."""
        dice, end = random.Random(seed), dealt("end", ENDS, seed)
        service = [("service", dice.randint(1, 4), dice.choice(["before", "in", "after"])) for _ in range(2)]
        writes = [("saver", dice.randint(1, MOST_WRITES), dice.choice(["before", "after"])) for _ in range(3)]
        return cls(
            seed,
            setting=dealt("setting", SETTINGS, seed),
            two=dealt("two", [True, False, False, False], seed),
            saver=dealt("saver", ["sqlite", "sqlite", "postgres", "memory"], seed),
            tools=dealt("tools", ["python", "http", "mcp"], seed),
            review=dealt("review", ["writes", "none"], seed),
            plan=dealt("plan", list(PLANS), seed),
            batch=dealt("batch", [True, False], seed),
            keyed=dealt("keyed", [True, False, False], seed),
            end=end,
            points=tuple(dealt("points", [service, writes, service[:1] + writes[:1]], seed)) if end != "none" else (),
            faults=dealt("faults", [0.0, 0.0, 0.25], seed),
            address=dealt("address", ["nothing", "interrupt", "question"], seed),
            again=dealt("again", [True, False], seed),
            message=dealt("message", ["none", "none", "same id", "no id"], seed),
            leaves=dealt("leaves", [True, *[False] * 7], seed),
        )

    @property
    def is_embedded(self) -> bool:
        """Whether a parent graph runs the agent."""
        return self.setting in EMBEDDED

    @property
    def is_async(self) -> bool:
        """Whether the caller awaits: only then it can cancel, or set a time limit."""
        return self.end in ("cancel", "time-out")

    @property
    def is_middleware(self) -> bool:
        """Whether LangChain's agent plans, and `GeckoMiddleware` stands between it and the tools."""
        return self.setting.startswith(("preview", "guard"))
