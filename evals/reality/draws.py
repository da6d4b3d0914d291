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
WRITES = {"sqlite": 52, "postgres": 75, "memory": 210}
"""About how often an undisturbed run of the agent with one call writes to its saver."""


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
        setting, plan = dealt("setting", SETTINGS, seed), dealt("plan", list(PLANS), seed)
        saver = dealt("saver", ["sqlite", "sqlite", "postgres", "memory"], seed)
        most = round(WRITES[saver] * (1.0 if plan == "one" else 1.5) * (0.4 if is_middleware(setting) else 1.0))
        service = [("service", dice.randint(1, 4), dice.choice(["before", "in", "after"])) for _ in range(2)]
        writes = [("saver", dice.randint(1, most), dice.choice(["before", "after"])) for _ in range(3)]
        points = dealt("points", [service, writes, service[:1] + writes[:1]], seed)
        return cls(
            seed,
            setting=setting,
            saver=saver,
            plan=plan,
            end=end,
            points=tuple(points) if end != "none" else (),
            two=dealt("two", [True, False, False, False], seed),
            tools=dealt("tools", ["python", "http", "mcp"], seed),
            review=dealt("review", ["writes", "none"], seed),
            batch=dealt("batch", [True, False], seed),
            keyed=dealt("keyed", [True, False, False], seed),
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
        return is_middleware(self.setting)


def is_middleware(setting: str) -> bool:
    """Return whether a setting is one of `GeckoMiddleware`'s modes."""
    return setting.startswith(("preview", "guard"))
