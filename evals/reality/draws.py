"""The run of the matrix for a seed. Choices are dealt like cards, so that their values come equally often."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from gecko_graph.state import JsonObject

T = TypeVar("T")

EMBEDDED = ("node", "node", "two deep", "in a tool", "preview in a node", "guard in a node")
SETTINGS = ("alone", "alone", "alone", "preview", "preview", "guard", *EMBEDDED)
"""The agent's setting; `preview` and `guard` are modes of `GeckoMiddleware` in LangChain's `create_agent`."""
PLANS: dict[str, list[tuple[str, str, int]]] = {
    "one": [("pay", "ann", 11)],
    "several": [("pay", "ann", 11), ("pay", "bob", 22), ("cancel", "ann", 0)],
    "equal": [("pay", "ann", 11), ("pay", "ann", 11), ("pay", "bob", 22)],
}
"""The wanted events. A cancellation needs its payment's identifier, which only the real result has."""
EXTRAS = {
    "preview": "none spent spent edited edited edited summary summary copied pruned served",
    "guard": "none spent spent spent summary summary copied copied pruned pruned served",
    "preview in a node": "none spent spent edited edited summary summary",
    "guard in a node": "none spent spent summary summary",
    "in a tool": "none none spent edited",
    "alone": "none none none spent edited copied pruned undone undone undone served",
    "": "none none none spent edited copied pruned served",
}
"""Additional features of a run, by setting; the empty key is for all other settings.

`spent`: a contract guards the balance, and the planner tries to pay beyond it; `edited`: the person edits; `summary`:
LangChain's `SummarizationMiddleware` is used as well, and the message is sent again; `copied`, `pruned`: the planner
tries to pay beyond the balance in a second turn, on a copy of the newest checkpoint, or after all others were deleted;
`undone`: the user asks for undo twice; `served`: no agent, but two users behind one server (`served.py`).
"""
FUNDED = ("spent", "edited", "copied", "pruned", "undone")
THIRD_TOOL = {"edited": "gift", "undone": "refund"}
"""A third tool of some runs: the rules refuse gifts, and refunds undo payments."""
EDITS: dict[str, tuple[str, JsonObject]] = {
    "lawful": ("pay", {"to": "ann", "amount": 10}),
    "against a rule": ("pay", {"to": "mallory", "amount": 11}),
    "against the contract": ("pay", {"to": "ann", "amount": 1000}),
    "against the schema": ("pay", {"to": "ann", "amount": "11 euros"}),
    "another tool": ("gift", {"to": "ann", "amount": 11}),
}
"""The edit of the first payment to ann, by kind."""
RULES = [
    {"tool": "*", "then": "ask"},
    {"tool": "pay", "when": "args.to == 'mallory'", "then": "refuse", "reason": "nobody knows mallory"},
    {"tool": "gift", "then": "refuse", "reason": "no gifts"},
]
"""The review policy of runs in which the person edits."""
BEYOND = ("pay", "yolanda", 11)
"""A payment that the balance does not allow once all wanted payments are made."""
LEFT = 5
"""The balance left then."""
ENDS = ("none", "kill", "kill", "kill", "kill", "kill", "cancel", "time-out")
WRITES = {"sqlite": 52, "postgres": 75, "memory": 210}
"""Approximate number of writes to the saver by an undisturbed run of the agent with one call."""


def dealt(name: str, values: Sequence[T], seed: int) -> T:
    """Return a seed's value; in each block of as many seeds as there are values, each value occurs once."""
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
    """Whether two processes (with the memory saver, two threads) act at the same moment."""
    saver: str
    tools: str
    review: str
    plan: str
    batch: bool
    """Whether the planner makes all payments in one message."""
    keyed: bool
    """Whether the tools take idempotency keys, which the bank honours."""
    end: str
    """How processes end early: killed, or cancelled or timed out by the caller."""
    points: tuple[tuple[str, int, str], ...]
    """Where they end: `saver` or `service`, the number of its write in the whole run; before, in or after it."""
    faults: float
    """Share of the requests that fail."""
    address: str
    """What an answer echoes: nothing, the interrupt's id, or the question's id if it has one."""
    again: bool
    """Whether each answer is sent a second time."""
    message: str
    """What is sent after a process has ended: nothing, or the message again with the same id or with none."""
    leaves: bool
    """Whether the person leaves calls in doubt undecided."""
    ids: str
    """The ids of the model's calls: fresh, restarting in each message, all equal, or none."""
    busy: int
    """How many requests the bank answers with 429 before it works."""
    retry_after: bool
    """Whether these answers say when to retry."""
    extra: str
    """The run's additional feature, of EXTRAS."""
    edit: str
    """The person's edit, of EDITS, if the run has one."""
    returns: str
    """What the contract that guards the balance knows of the result: all, all but the number, or nothing."""

    @classmethod
    def of(cls, seed: int) -> Draw:
        dice, end = random.Random(seed), dealt("end", ENDS, seed)
        setting, plan = dealt("setting", SETTINGS, seed), dealt("plan", list(PLANS), seed)
        kind = next((kind for kind in EXTRAS if kind == setting), "")
        extra = dealt(f"extra {kind}", EXTRAS[kind].split(), seed)
        # the undo of a cancellation would be a payment
        plan = "one" if extra == "undone" and plan == "several" else plan
        # a rehearsal plans with simulated results, so they cannot be empty
        returns = dealt("returns", ["nothing", "a part"], seed) if is_middleware(setting) else "a part"
        saver = dealt("saver", ["sqlite", "sqlite", "postgres", "memory"], seed)
        most = round(WRITES[saver] * (1.0 if plan == "one" else 1.5) * (0.4 if is_middleware(setting) else 1.0))
        service = [("service", dice.randint(1, 4), dice.choice(["before", "in", "after"])) for _ in range(2)]
        writes = [("saver", dice.randint(1, most), dice.choice(["before", "after"])) for _ in range(3)]
        points = dealt("points", [service, writes, service[:1] + writes[:1]], seed)
        return cls(
            seed,
            setting="two users, one server" if extra == "served" else setting,
            saver=saver,
            plan=plan,
            end=end,
            points=tuple(points) if end != "none" else (),
            two=dealt("two", [True, False, False, False], seed),
            tools=dealt("tools", ["python", "http", "mcp"], seed),
            review="rules" if extra == "edited" else dealt("review", ["writes", "none"], seed),
            batch=dealt("batch", [True, False], seed),
            keyed=dealt("keyed", [True, False, False], seed),
            faults=dealt("faults", [0.0, 0.0, 0.25], seed),
            address=dealt("address", ["nothing", "interrupt", "question"], seed),
            again=dealt("again", [True, False], seed),
            message="same id" if extra == "summary" else dealt("message", ["none", "none", "same id", "no id"], seed),
            leaves=dealt("leaves", [True, *[False] * 7], seed) and extra != "summary",  # a summary forgets failures
            ids=dealt("ids", ["fresh", "fresh", "fresh", "anew", "repeated", "none"], seed),
            busy=dealt("busy", [0, 0, 0, 1, 2], seed),
            retry_after=dealt("retry after", [True, False], seed),
            extra=extra,
            edit=dealt("edit", ["lawful", *EDITS], seed) if extra == "edited" else "",
            returns=returns if extra == "spent" else "all",
        )

    @property
    def is_funded(self) -> bool:
        """Whether a contract guards the balance."""
        return self.extra in FUNDED

    @property
    def wanted(self) -> list[tuple[str, str, int]]:
        """The events that must have happened by the end of the first turn."""
        edited = ("pay", "ann", 10) if self.edit == "lawful" else None
        return [edited if edited and each[:2] == edited[:2] else each for each in PLANS[self.plan]]

    @property
    def balance(self) -> int:
        return LEFT + sum(amount for *_, amount in PLANS[self.plan])

    @property
    def turns(self) -> int:
        return {"copied": 2, "pruned": 2, "undone": 3}.get(self.extra, 1)

    @property
    def is_embedded(self) -> bool:
        """Whether a parent graph runs the agent."""
        return self.setting in EMBEDDED

    @property
    def is_async(self) -> bool:
        """Whether the caller awaits the agent; only then it can cancel or set a time limit."""
        return self.end in ("cancel", "time-out")

    @property
    def is_middleware(self) -> bool:
        """Whether LangChain's agent plans, with `GeckoMiddleware` between it and the tools."""
        return is_middleware(self.setting)


def is_middleware(setting: str) -> bool:
    return setting.startswith(("preview", "guard"))
