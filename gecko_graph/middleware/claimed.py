"""The claims of the middleware's real calls: of a message that runs twice or is sent again each write is made once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage, ToolMessage
from langgraph.errors import GraphInterrupt
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from ..models.waiting import Driver
from ..real.claims import Claims, entry_of, find_claims, last_human, running
from ..real.decisions import DOUBT_DECISIONS, IN_DOUBT, ask_person, settled_by
from ..real.journal import UNKNOWN, format_call
from ..real.ledger import CallLedger
from ..state import Call, JsonObject
from ..tools import Toolkit
from ..tools.as_tools import CLAIMED, drive
from ..tools.check import check_by_rule
from ..tools.real import Answer
from ..values.leaves import as_text
from ..world.as_tools import is_same
from ..world.world import World
from .messages import read_result

ROOM = "middleware|"
DECIDED = ("ok", "error", "left")
NOT_MADE: JsonObject = {"status": "error", "result": "It did not take effect.", "by": "person"}
MOST_TRIES, BACKOFF_S = 6, 0.2
GIVEN_UP: JsonObject = {"status": "error", "result": "It was not carried out: the turn was interrupted."}


class Claimed(NamedTuple):
    """The real calls of an agent, each claimed before it is made."""

    ledger: CallLedger | None
    toolkit: Toolkit
    timeout_s: float

    async def find(self, state: Any, driver: Driver) -> Claims | None:
        """Return the claims of the turn; None without a checkpointer."""
        claims: Claims | None = await drive(find_claims(state["messages"], self.ledger, room=ROOM), driver)
        return claims

    async def ask(self, state: Any, calls: Sequence[Call], texts: Sequence[str], needs_id: bool, driver: Driver) -> Any:
        """Ask a person about calls, as `ask_person`."""
        claims = await self.find(state, driver)
        return await drive(ask_person(calls, texts, self.toolkit, claims, needs_id=needs_id), driver)

    async def make(
        self, state: Any, call: Call, here: Sequence[JsonObject], run: Callable[[], Awaitable[Any]], driver: Driver
    ) -> tuple[Any, str]:
        """Return a call's result and its key: by making it, or from the ledger where it was made before.

        `here` are the records of its message's calls so far. A call of which it is not known whether it took effect is
        asked about first. One that only reads, or that nothing could claim, is simply made.
        """
        tool = self.toolkit[call["name"]]
        claims = None if tool.trusted else await self.find(state, driver)
        if claims is None:
            return await run(), ""
        done = [
            *(state.get("gecko_journal") or ()),
            *({**record["step"], **record["step"].get("outcome", {})} for record in here),
        ]
        same = [each for each in done if is_same(each["call"], call) and each["call"]["id"] != call["id"]]
        number = 1 + sum(each.get("result") != UNKNOWN for each in same)  # one that is left in doubt is not made again
        row, is_ours = await drive(claims.take(call, number, self.timeout_s), driver)
        while is_ours or row["status"] not in DECIDED:
            if is_ours:
                result, row = await self._run(claims, row, run, driver)
                if row["status"] in DECIDED:
                    return result, row["key"]
            is_ours = bool(row.get("keyed") and tool.idempotency and row["tries"] < MOST_TRIES)
            if is_ours:  # the same key again is no second call
                await driver.do(time.sleep, asyncio.sleep, BACKOFF_S * 2 ** (row["tries"] - 1))
            else:
                (decision,) = await self._ask_doubts(claims, [call], driver)
                is_ours = decision["type"] == "make_now"
            again = claims.retake(row, self.timeout_s) if is_ours else claims.settle(row, **settled_by(decision))
            row = await drive(again, driver)
        return as_message(row, call), row["key"]

    async def _run(self, claims: Claims, row: JsonObject, run: Callable[[], Awaitable[Any]], driver: Driver) -> Any:
        """Make a call; return its result, and its row: decided, or in doubt.

        What raises, and an error that neither says that nothing was done nor refuses the arguments, is in doubt.
        """
        tool, known = self.toolkit[row["call"]["name"]], {"key": row["key"]}
        token = CLAIMED.set(known)
        with running(row):
            try:
                result = await run()
            except Exception as error:  # a tool that asks something itself runs again when it is answered
                status = "paused" if isinstance(error, GraphInterrupt) else "doubt"
                await drive(claims.settle(row, status=status), driver)
                raise
            finally:
                CLAIMED.reset(token)
            came = read_result(result)
            is_open = came.status == "error" and not tool.refuses and not check_by_rule(row["call"], tool)
            fields = {"status": came.status, "result": came.result, "by": "tool", "ended_at": time.time()}
            if known.get("doubt", is_open) or came.is_unread:
                fields = {"status": "doubt"}
            return result, await drive(claims.settle(row, keyed="doubt" in known, **fields), driver)

    async def _ask_doubts(self, claims: Claims, calls: Sequence[Call], driver: Driver) -> Any:
        texts = [f"{IN_DOUBT.format(tool=call['name'])}\n{format_call(call)}" for call in calls]
        return await drive(ask_person(calls, texts, self.toolkit, claims, allowed=DOUBT_DECISIONS), driver)

    async def recover(self, state: Any, world: World, driver: Driver) -> JsonObject | None:
        """Book the real calls that no state has, as their message was given up, and return the update that tells them.

        Of those in doubt a person says what became of them; one to make now is the model's to make again. Calls that
        the journal has are closed.
        """
        if (claims := await self.find(state, driver)) is None:
            return None
        rows = await drive(claims.find_open(), driver)
        known = {entry["key"] for entry in state.get("gecko_journal") or ()}
        if told := [row["key"] for row in rows if row["key"] in known]:
            await drive(claims.close(told), driver)
        lost = [row for row in rows if row["key"] not in known and row["call"]["name"] in self.toolkit]
        if open_ := [row for row in lost if row["status"] not in DECIDED]:
            decisions = await self._ask_doubts(claims, [row["call"] for row in open_], driver)
            for row, decision in zip(open_, decisions, strict=True):
                is_undone = decision["type"] == "make_now"
                fields = NOT_MADE | {"ended_at": time.time()} if is_undone else settled_by(decision)
                lost[lost.index(row)] = await drive(claims.settle(row, **fields), driver)
        if not lost:
            return None
        for row in (row for row in lost if row["status"] != "left"):
            await driver.do(world.record, world.arecord, row["call"], Answer(row["status"], row["result"]))
        entries = [{**entry_of(row), "result": row.get("result", UNKNOWN)} for row in lost]
        messages = [RemoveMessage(REMOVE_ALL_MESSAGES), *tell(state["messages"], lost, claims.turn)]
        return {"gecko": world.snapshot(), "gecko_journal": entries, "messages": messages}


def as_message(row: JsonObject, call: Call) -> ToolMessage:
    """Return what a call came to that was made before."""
    text = UNKNOWN if row["status"] == "left" else as_text(row["result"])
    status: Any = "success" if row["status"] == "ok" else "error"
    return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status=status)


def tell(messages: Sequence[AnyMessage], lost: Sequence[JsonObject], turn: str) -> list[AnyMessage]:
    """Return a conversation with real calls that it does not have, and with no call that was given up unanswered.

    A call whose message is there is answered behind it; others stand at the end of their turn, this one or the last.
    """
    left, told = {row["call"]["id"]: row for row in lost}, list[AnyMessage]()
    answered = {each.tool_call_id for each in messages if isinstance(each, ToolMessage)}
    for message in messages:
        told.append(message)
        calls: list[Any] = message.tool_calls if isinstance(message, AIMessage) else []
        if any(call["id"] in left for call in calls):
            given = [(call, left.pop(call["id"], None)) for call in calls if call["id"] not in answered]
            told += [as_message(row or GIVEN_UP, call) for call, row in given]
    for row in left.values():
        last, call = last_human(told), row["call"]
        place = told.index(last) if last and row["turn"] != turn else len(told)
        made = {"name": call["name"], "args": call["args"], "id": call["id"]}
        told[place:place] = [AIMessage("", tool_calls=[made]), as_message(row, call)]
    return told
