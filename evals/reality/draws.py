"""What a seed draws: one run of the matrix. Every choice is dealt, so that its values come equally often."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from gecko_graph.state import JsonObject

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
EXTRAS = {
    "preview": "none spent spent edited edited edited summary summary copied pruned served",
    "guard": "none spent spent spent summary summary copied copied pruned pruned served",
    "preview in a node": "none spent spent edited edited summary summary",
    "guard in a node": "none spent spent summary summary",
    "in a tool": "none none spent edited",
    "alone": "none none none spent edited copied pruned undone undone undone served",
    "": "none none none spent edited copied pruned served",
}
"""What else a run of a setting may have, or of any other one.

`spent`: a contract guards the balance, and the planner tries to pay beyond it; `edited`: the person edits; `summary`:
LangChain's `SummarizationMiddleware` stands beside, and the message comes again; `copied`, `pruned`: the planner tries
to pay beyond the balance in a second turn, on a copy of the newest checkpoint, or where only that was kept; `undone`:
the user clicks on undo twice; `served`: no agent, but two users behind one server (`served.py`).
"""
FUNDED = ("spent", "edited", "copied", "pruned", "undone")
THIRD_TOOL = {"edited": "gift", "undone": "refund"}
"""A third tool that some have: the rules refuse gifts, and refunds take payments back."""
EDITS: dict[str, tuple[str, JsonObject]] = {
    "lawful": ("pay", {"to": "ann", "amount": 10}),
    "against a rule": ("pay", {"to": "mallory", "amount": 11}),
    "against the contract": ("pay", {"to": "ann", "amount": 1000}),
    "against the schema": ("pay", {"to": "ann", "amount": "11 euros"}),
    "another tool": ("gift", {"to": "ann", "amount": 11}),
}
"""What the first payment to ann is edited to, by the kind of the edit."""
RULES = [
    {"tool": "*", "then": "ask"},
    {"tool": "pay", "when": "args.to == 'mallory'", "then": "refuse", "reason": "nobody knows mallory"},
    {"tool": "gift", "then": "refuse", "reason": "no gifts"},
]
"""The policy where the person edits."""
BEYOND = ("pay", "yolanda", 11)
"""A payment that the balance does not allow once all that is wanted is paid."""
LEFT = 5
"""What is left of it then."""
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
    ids: str
    """The ids of the model's calls: fresh, begun anew in each message, all the same, or none."""
    busy: int
    """How many requests the bank answers with 429 before it works."""
    retry_after: bool
    """Whether it says then when to come again."""
    extra: str
    """What else the run has, of EXTRAS."""
    edit: str
    """Which of EDITS the person makes, where it edits."""
    returns: str
    """What the contract that guards the balance knows of the result: all, all but the number, or nothing."""

    @classmethod
    def of(cls, seed: int) -> Draw:
        """Return the run of a seed."""
        dice, end = random.Random(seed), dealt("end", ENDS, seed)
        setting, plan = dealt("setting", SETTINGS, seed), dealt("plan", list(PLANS), seed)
        kind = next((kind for kind in EXTRAS if kind == setting), "")
        extra = dealt(f"extra {kind}", EXTRAS[kind].split(), seed)
        plan = "one" if extra == "undone" and plan == "several" else plan  # a cancellation's way back is a payment
        # a rehearsal plans with what is simulated of a result: of nothing it cannot
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
        """What must have happened at the end of the first turn."""
        edited = ("pay", "ann", 10) if self.edit == "lawful" else None
        return [edited if edited and each[:2] == edited[:2] else each for each in PLANS[self.plan]]

    @property
    def balance(self) -> int:
        """What may be paid, of what the plan says."""
        return LEFT + sum(amount for *_, amount in PLANS[self.plan])

    @property
    def turns(self) -> int:
        """How many turns the thread has."""
        return {"copied": 2, "pruned": 2, "undone": 3}.get(self.extra, 1)

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
