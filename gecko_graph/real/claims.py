"""Claims: rows written before each real call that may change something. They say who makes it, and form the journal.

A row's key is computed, never random. Two processes, a double click, a repeated message, a resume and a fork thus all
reach the same row: only one of them makes the call. The others get its result, an error while it is under way, or a
doubt. The key is also sent to services as the idempotency key.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

from langchain_core.messages import AnyMessage

from ..errors import GeckoError, StateError
from ..models.ask import FunctionCall, Reply
from ..models.formatting import cut, one_line
from ..models.node import running_config
from ..state import VERSION, Call, CallStatus, Json, JsonObject, Step
from ..values.digest import digest
from ..values.places import as_text
from ..world.records import ExecutedCall, unchanged
from .home import Home, TurnKey
from .ledger import CallLedger, MemoryLedger, find_ledger
from .questions import Standing, find_begin, find_delivery, find_path, is_saved_at

LEDGER_S = 30.0
"""Time limit of a ledger statement, in seconds."""
MOST_TRIES = 6
"""Most tries of a call that can be repeated: a read, or a write with an idempotency key."""
BACKOFF_S = 0.2
"""Seconds before the second try; each further wait is twice as long."""
LONGEST_WAIT_S = 20.0
MARGIN_S = 2.0
"""Seconds after its time limit during which a call still counts as under way."""
KEY_CHARS = 32
OPEN, CLOSED, ENDED, ANSWERS = "open:", "closed:", "ended:", "answers:"
"""Scopes of rows: calls of turns without an answer, calls that need no further attention, calls of ended turns of an
agent that begins each turn without its state, and answered questions."""

DECIDED = ("ok", "error", "left")
"""Final statuses of a call; `left`: in doubt, and a person left it so."""
LONGEST_RESULT = 300
MADE = ("ok", "answered")
"""Statuses of calls with a valid result, of the tool or of a person."""

UNKNOWN = "It is not known whether this call took effect. Do not make it again: the user decides about it."

RUNNING = set[str]()
"""Owners of claims whose calls this process is making."""
UNDER_WAY = (
    "{tool} is under way in another run of this thread, which began it {ago:.0f} s ago; it is not made twice. Go on in "
    "{left:.0f} s (invoke(None)): then it has a result or is a doubt"
)
NOT_DURABLE = (
    "{tool} changes something, and the call would not be recorded: give the agent, or the graph around it, "
    "a checkpointer, and run it with durability='sync' or 'async'"
)
BEGUN_AGAIN = (
    "a retry policy around the agent, or a node that runs it twice, has begun this task again after it had made real "
    "calls: remove the policy, and continue with invoke(None)"
)

_paths: dict[tuple[str, str], str] = {}
"""Path by thread and namespace (with task ids); it never changes."""

Steps: TypeAlias = Generator[list[FunctionCall], list[Reply], Any]


class Claims(NamedTuple):
    """The claims of one turn at one place of a thread."""

    ledger: CallLedger
    standing: Standing
    path: str
    turn: str
    task: str

    @property
    def answers(self) -> str:
        """Scope of the turn's answered questions."""
        return f"{ANSWERS}{self.path}:{self.turn}"

    def key_of(self, call: Call, number: int) -> str:
        return digest([self.standing.thread_id, self.path, self.turn, call["name"], call["args"], number])[:KEY_CHARS]

    def take(self, call: Call, number: int, timeout_s: float) -> Steps:
        """Claim a call; return its row and whether to make the call here.

        Equal calls of a turn have a `number`. A call made before the thread was deleted becomes a doubt, since it is
        not part of the new thread.

        Raises:
            StateError: Another run is making the call.
        """
        key = self.key_of(call, number)
        row: JsonObject = {
            "v": VERSION, "rev": 1, "key": key, "call": call, "turn": self.turn, "tries": 1,
            "run": self.standing.run, "task": self.task, "started_at": time.time(),
        }  # fmt: skip
        if (yield from self._own(row, timeout_s, self.ledger.claim, key, OPEN + self.path)):
            return row, True
        known = yield from self.look(key)
        if known["status"] == "paused":  # the tool has raised an interrupt itself
            return (yield from self.retake(known, timeout_s, tries=0)), True
        if (yield from self._find_deleted([known])):
            yield from use(self.ledger.move, self.standing.thread_id, [key], OPEN + self.path)
            known = yield from self.settle(known, status="doubt", deleted=True)
        return known, False

    @property
    def here(self) -> JsonObject:
        """The fields of a row whose question was answered in this thread, so that both are saved."""
        return {"root": self.standing.root, "saved": bool(self.standing.root), "deleted": False}

    def _place(self) -> JsonObject:
        """Return the checkpoint that a call begins from, and whether it is saved until the thread is deleted.

        The call waits until it is saved: a run that continues without it would not know of the call.
        """
        is_saved = self.standing.durability == "sync" or is_saved_at(self.standing)
        is_kept = bool(self.standing.root) and not isinstance(self.ledger, MemoryLedger)  # not deleted with the thread
        return self.here | {"saved": is_kept and is_saved}

    def _find_deleted(self, rows: Sequence[JsonObject]) -> Steps:
        """Return the keys of calls made before the thread was deleted: the saver has no checkpoint of them."""
        if not any(row.get("saved") for row in rows):
            return []
        begun = yield from use(find_begin, self.standing)
        return [row["key"] for row in rows if row.get("saved") and row["root"] < begun]

    def keep_living(self, rows: Sequence[JsonObject]) -> Steps:
        """Return rows of the existing thread; close those from before its deletion."""
        if deleted := (yield from self._find_deleted(rows)):
            yield from self.close(deleted)
        return [row for row in rows if row["key"] not in deleted]

    def _own(self, row: JsonObject, timeout_s: float, write: Any, *place: str) -> Steps:
        """Write a row that begins a call, and return whether that succeeded; otherwise the call does not run here."""
        row["owner"], is_ours = f"{OWN[0]} {uuid4().hex}", False

        def begin() -> bool:  # one thread waits for the checkpoint and writes
            row.update(self._place(), status="claimed", began=time.time())
            row["until"] = row["began"] + timeout_s + MARGIN_S
            return bool(write(self.standing.thread_id, *place, row))

        RUNNING.add(row["owner"])  # before others can find the row
        try:
            is_ours = yield from use(begin)
        finally:
            if not is_ours:
                RUNNING.discard(row["owner"])
        return is_ours

    def look(self, key: str) -> Steps:
        """Return the row of a key. Raises StateError if its call is under way."""
        (row,) = yield from use(self._read, key=key)
        check_over(row)
        return row

    def retake(self, row: JsonObject, timeout_s: float, *, tries: int = 1) -> Steps:
        """Claim the call of a row once more. Raises StateError if another run has done so."""
        new = {**row, "rev": row["rev"] + 1, "tries": row["tries"] + tries}
        if not (yield from self._own(new, timeout_s, self.ledger.swap, row["key"])):
            yield from self.look(row["key"])
            raise StateError(UNDER_WAY.format(tool=row["call"]["name"], ago=0, left=timeout_s))
        return new

    def settle(self, row: JsonObject, **fields: Any) -> Steps:
        """Write a call's outcome, unless another run has written one since."""
        new = {**row, "rev": row["rev"] + 1, "until": 0.0, **fields}
        yield from use(self.ledger.swap, self.standing.thread_id, row["key"], new)
        return new

    def find_open(self) -> Steps:
        """Return the rows of turns without an answer, the oldest first.

        Raises:
            StateError: A call is under way, or this task was started again after it had made real calls.
        """
        rows: list[JsonObject] = yield from use(self._read, OPEN + self.path)
        if self.standing.is_repeated:
            ended = yield from use(self._read, CLOSED + self.path)
            own = [row for row in (*rows, *ended) if row["run"] == self.standing.run]
            if any(row["turn"] != self.turn and row["task"] == self.task for row in own):
                raise StateError(BEGUN_AGAIN)
        for row in rows:
            check_over(row)
        return sorted(rows, key=lambda row: row["started_at"])

    def has(self, call: Call) -> Steps:
        """Return whether a call was claimed in a turn without an answer, whatever its outcome."""
        rows = yield from use(self._read, OPEN + self.path)
        return any(row["call"] == call for row in rows)

    def find_ended(self) -> Steps:
        """Return the rows of ended turns of an agent that another graph calls, each time without its state.

        There are two lists: rows of earlier deliveries, and of this one, if the graph has run the agent before.
        """
        if not self.standing.graph:
            return [], []
        rows: list[JsonObject] = yield from use(self._read, ENDED + self.path)
        is_run = any(row["turn"] == self.turn for row in rows)
        begun = (yield from use(find_delivery, self.standing)) if is_run else "~"
        rows.sort(key=lambda row: row["started_at"])
        return [row for row in rows if row["root"] < begun], [row for row in rows if row["root"] >= begun]

    def end(self, keys: Sequence[str]) -> Steps:
        """Move the rows of an ended turn's calls to their scope."""
        if self.standing.graph and keys:
            yield from use(self.ledger.move, self.standing.thread_id, keys, ENDED + self.path)

    def close(self, keys: Sequence[str]) -> Steps:
        """Move the rows of calls that an answer has reported to their scope."""
        yield from use(self.ledger.move, self.standing.thread_id, keys, CLOSED + self.path)

    def _read(self, scope: str = "", key: str = "") -> list[JsonObject]:
        before = {*RUNNING}  # calls that end from here on count as under way
        rows = self.ledger.read(self.standing.thread_id, scope=scope, key=key)
        under_way = before | RUNNING
        return [{**row, "gone": row["owner"] not in under_way and is_left(row["owner"])} for row in rows]


def find_claims(messages: Sequence[AnyMessage], home: Home, turn: TurnKey | None = None) -> Steps:
    """Return the claims of a turn, by default the conversation's last; None outside of a graph and without a saver.

    Raises:
        GeckoError: There is no ledger.
    """
    standing = Standing.of(running_config().get("configurable", {}))
    if standing is None:
        return None
    known = standing.thread_id, standing.graph
    if standing.graph and known not in _paths:
        if len(_paths) > 1_000:
            _paths.clear()
        _paths[known] = yield from use(find_path, standing)
    path = home.room + _paths.get(known, "")
    return Claims(find_ledger(standing.saver, home.ledger), standing, path, *(turn or TurnKey.of(messages)))


def use(function: Any, *args: Any, **kwargs: Any) -> Steps:
    """Return the value of a function of the ledger or the saver. Raises GeckoError if it fails."""
    (reply,) = yield [FunctionCall(function=function, args=args, kwargs=kwargs, timeout_s=LEDGER_S)]
    if reply.failure is not None:
        raise GeckoError(f"the ledger of real calls, or the checkpointer, {reply.failure}")
    return reply.value


def check_over(row: JsonObject) -> None:
    """Raise StateError if a call is under way."""
    now = time.time()
    if row["status"] == "claimed" and not row["gone"] and (now < row["until"] or row["owner"] in RUNNING):
        left, ago = max(row["until"] - now, 0), max(now - row["began"], 0)
        raise StateError(UNDER_WAY.format(tool=row["call"]["name"], ago=ago, left=left))


def find_process(pid: int) -> str:
    """Return an identity of a running process on Linux: boot id, pid namespace, pid and start time; else ""."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        state, *fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return "" if state in "ZX" else f"{boot} {os.readlink('/proc/self/ns/pid')} {pid} {fields[18]}"
    except OSError:
        return ""


OWN = [find_process(os.getpid())]
"""The identity of this process."""


def _after_fork() -> None:
    RUNNING.clear()
    OWN[0] = find_process(os.getpid())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def is_left(owner: str) -> bool:
    """Return whether a claim's process has ended or, if it is this one, no longer makes the call; False if unknown."""
    known, own = owner.rpartition(" ")[0], OWN[0]
    if not known or known.split(" ")[:2] != own.split(" ")[:2]:
        return False
    return known == own or find_process(int(known.split(" ")[2])) != known


def find_pause(tries: int, retry_after: float | None, *, is_free: bool) -> float | None:
    """Return the seconds to wait before a call is tried again; None if it is not tried again.

    `retry_after` is not None if a service was too busy. `is_free` is True if a repetition has no effect.
    """
    if tries >= MOST_TRIES or not (is_free or retry_after is not None):
        return None
    return float(max(retry_after or 0, BACKOFF_S * 2 ** (tries - 1)))


def wait(seconds: float) -> Steps:
    yield [FunctionCall(function=time.sleep, args=(min(seconds, LONGEST_WAIT_S),), timeout_s=2 * LONGEST_WAIT_S)]


@contextmanager
def running(row: JsonObject) -> Iterator[None]:
    """Keep a claim marked as under way during its call."""
    try:
        yield
    finally:
        RUNNING.discard(row["owner"])


def entry_of(row: JsonObject) -> ExecutedCall:
    """Return the journal's entry of a claimed call: with its result, or in doubt."""
    kept = ["call", "key", "tries", "started_at"]
    if row["status"] in ("ok", "error"):
        kept += ["status", "result", "by", "ended_at", *(["undecided"] if row.get("undecided") else [])]
    if row["status"] == "left":
        kept += ["ended_at"]
    return {"status": "in_doubt", **{key: row[key] for key in kept}}  # type: ignore[typeddict-item]


def unmade_entry(call: Call, **fields: Any) -> ExecutedCall:
    """Return the journal's entry of a call that a person's decision or a rule prevented."""
    now = time.time()
    return {"call": call, "key": "", "tries": 0, "started_at": now, "ended_at": now, **fields}  # type: ignore[typeddict-item]


def as_step(entry: ExecutedCall) -> Step:
    """Return a real call as a step without changes, for the planner; its result may be that it is in doubt."""
    status: CallStatus = "ok" if entry["status"] in MADE else "error"
    result = UNKNOWN if entry["status"] == "in_doubt" else entry.get("result")
    outcome = unchanged(status, result, "real", simulated=False)
    if entry["status"] == "in_doubt" or entry.get("undecided"):
        outcome["undecided"] = True
    return {"v": VERSION, "call": entry["call"], "outcome": outcome}


TOLD = {
    "ok": "Done: {call}: {result}",
    "answered": "Answered by the user: {call}: {result}",
    "in_doubt": "In doubt: {call} was called, and it is not known whether it took effect.",
}


def tell_calls(calls: Sequence[ExecutedCall]) -> list[str]:
    """Return a line for each completed call, with its result, and for each call in doubt, for people and models."""
    shown = [entry for entry in calls if entry["status"] in TOLD]
    words = [{"call": format_call(entry["call"]), "result": describe_value(entry.get("result"))} for entry in shown]
    return [TOLD[entry["status"]].format_map(each) for entry, each in zip(shown, words, strict=True)]


def format_call(call: Call) -> str:
    """Return a call in one line, for people."""
    return f"{call['name']} ({describe_value(call['args'])})" if call["args"] else call["name"]


def describe_value(value: Json) -> str:
    """Return JSON as text for people, `id O-7, item pen`; for an error's body its message."""
    if isinstance(value, dict):
        messages = [value[key] for key in ("error", "message", "detail") if isinstance(value.get(key), str)]
        value = messages[0] if messages else ", ".join(f"{key} {describe_value(each)}" for key, each in value.items())
    elif isinstance(value, list):
        value = "; ".join(map(describe_value, value)) or "none"
    return cut(one_line(as_text(value)), budget=LONGEST_RESULT)
