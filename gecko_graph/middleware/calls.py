"""The calls of an agent's message: claims of real calls, and the answers to calls that are not made.

If a message runs twice or is sent again, each of its writes is made once.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice, takewhile
from types import MappingProxyType
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage, ToolCall, ToolMessage
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

from ..contracts.clauses import tell_rule
from ..models.answer import Driver, error_text
from ..models.conversation import build_complaint_message
from ..models.failure import is_lost
from ..models.memory import NAME
from ..real.claims import (
    DECIDED,
    MARGIN_S,
    UNKNOWN,
    Claims,
    entry_of,
    find_claims,
    find_pause,
    running,
    wait,
)
from ..real.decisions import Decision, ask_doubts, settle_doubt, settled_by
from ..real.home import Home, TurnKey, last_human
from ..real.ledger import CallLedger
from ..state import Call, JsonObject, Step
from ..tools import Toolkit
from ..tools.check import Rejection, check_by_rule
from ..tools.real import CLAIMED, Answer, as_answer, block_value, drive, is_undecided, read_busy
from ..tools.spec import ToolSpec
from ..values.places import as_text
from ..world.as_tools import add_marks, find_pending, name_call
from ..world.records import ExecutedCall
from ..world.refusals import SAME, find_last, is_same_call
from ..world.refusals import tell as tell_refusal
from ..world.rung import is_real
from ..world.world import World
from .live import Live
from .turns import counted_keys

NOT_MADE: JsonObject = {"status": "error", "result": "It did not take effect.", "by": "person"}
GIVEN_UP: JsonObject = {"status": "error", "result": "It was not carried out: the turn was interrupted."}
NOT_APPROVED = "{name} was not carried out: this call was not approved as it is now."
REJECTED = "{name} was not carried out: {by}{reason}. Do not make the same call again."


class Claimed(NamedTuple):
    """The real calls of an agent, each claimed before it is made."""

    ledger: CallLedger | None
    toolkit: Toolkit
    timeout_s: float

    async def find(self, state: Any, driver: Driver) -> Claims | None:
        """Return the claims of the turn; None without a checkpointer."""
        known = state.get("gecko_turn")
        turn = TurnKey(known["id"], known["task"]) if known else None
        claims: Claims | None = await drive(find_claims(state["messages"], Home(self.ledger), turn), driver)
        return claims

    async def make(
        self, state: Any, call: Call, live: Live, before: int, run: Callable[[], Awaitable[Any]], driver: Driver
    ) -> tuple[Any, JsonObject]:
        """Return a call's result and its row: made now, or from the ledger if it was made before.

        Equal calls are distinguished by position: `before` is the number of earlier ones in the message that have not
        ended. A call with unknown effect is first asked about. A read, or a call that nothing can claim, is simply
        made.
        """
        tool = self.toolkit[call["name"]]
        claims = None if tool.trusted else await self.find(state, driver)
        if claims is None:
            return await self._try(tool, call, {"key": ""}, run, driver)
        counted = {*{**counted_keys(state), **live.keys, call["id"]: ""}.values()}
        numbers = (number for number in count(1) if claims.key_of(call, number) not in counted)
        row, is_ours = await drive(claims.take(call, next(islice(numbers, before, None)), self.timeout_s), driver)
        while not is_ours and row["status"] == "error" and row.get("undecided"):  # it was not done, and is made again
            row, is_ours = await drive(claims.take(call, next(numbers), self.timeout_s), driver)
        while True:
            if is_ours:
                result, row = await self._run(claims, row, run, driver)
            if row["status"] in DECIDED:
                live.keys.update(counted_key(call, row))
                return (result if is_ours else as_message(row, call)), row
            is_keyed = bool(row.get("keyed") and tool.idempotency)
            settling = settle_doubt(claims, row, self.toolkit, self.timeout_s, is_keyed=is_keyed)
            row, is_ours = await drive(settling, driver)

    async def has(self, state: Any, call: Call, driver: Driver) -> bool:
        claims = await self.find(state, driver)
        return claims is not None and bool(await drive(claims.has(call), driver))

    async def end(self, state: Any, driver: Driver) -> None:
        """Record that the turn of the journal's calls is finished."""
        keys = [entry["key"] for entry in state.get("gecko_journal") or () if entry["key"]]
        if keys and (claims := await self.find(state, driver)):
            await drive(claims.end(keys), driver)

    async def recall(self, state: Any, call: Call, entry: ExecutedCall, driver: Driver) -> ToolMessage:
        """Return the answer to a call that another run of its message has made and recorded."""
        claims = await self.find(state, driver) if entry["key"] else None
        return as_message(await drive(claims.look(entry["key"]), driver) if claims else entry, call)

    async def _run(self, claims: Claims, row: JsonObject, run: Callable[[], Awaitable[Any]], driver: Driver) -> Any:
        """Make a call; return its result, and its row: decided, or in doubt.

        The call is in doubt after an exception, and after an error that neither states that nothing was done nor
        rejects the arguments.
        """
        tool, known = self.toolkit[row["call"]["name"]], {"key": row["key"]}

        async def hold(pause: float) -> None:
            nonlocal row
            row = await drive(claims.settle(row, until=time.time() + pause + self.timeout_s + MARGIN_S), driver)

        with running(row):
            try:
                result, known = await self._try(tool, row["call"], known, run, driver, hold)
            except Exception as error:  # a tool with a question of its own runs again after the answer
                status = "paused" if isinstance(error, GraphInterrupt) else "doubt"
                await drive(claims.settle(row, status=status), driver)
                raise
            came = read_result(result)
            is_open = came.status == "error" and not tool.refuses and not check_by_rule(row["call"], tool)
            fields = {"status": came.status, "result": came.result, "by": "tool", "ended_at": time.time()}
            fields["undecided"] = known.get("undecided", is_undecided(came))
            if known.get("doubt", is_open) or came.is_unread:
                fields = {"status": "doubt"}
            return result, await drive(claims.settle(row, keyed="doubt" in known, **fields), driver)

    async def _try(
        self, tool: ToolSpec, call: Call, known: JsonObject, run: Callable[[], Awaitable[Any]], driver: Driver,
        hold: Callable[[float], Awaitable[None]] | None = None,
    ) -> tuple[Any, JsonObject]:  # fmt: skip
        """Return a call's result, and how it ended; busy services and reads without an answer are retried.

        As the agent does (`make_call`).
        """
        for tries in count(1):
            noted, raised = {"key": known["key"]}, None
            token = CLAIMED.set(noted)
            try:
                result = await run()
            except Exception as error:
                again, raised = read_busy(error, tool), error
                noted |= {"doubt": is_lost(error), "retry_after": again, "undecided": True}
                if isinstance(error, GraphBubbleUp) or (again is None and not (tool.trusted and is_lost(error))):
                    raise
                text = error_text(error)
                result = ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")
            finally:
                CLAIMED.reset(token)
            pause = find_pause(tries, noted.get("retry_after"), is_free=tool.trusted and noted.get("doubt", False))
            if pause is None:
                break
            if hold:
                await hold(pause)
            await drive(wait(pause), driver)
        if raised and noted["retry_after"] is None:
            raise raised
        return result, noted

    async def recover(self, state: Any, world: World, driver: Driver) -> JsonObject | None:
        """Record the real calls of abandoned messages, which no state has; return the update that reports them.

        A person decides on calls in doubt; one to make now is left to the model. Calls in the journal are closed.
        """
        if (claims := await self.find(state, driver)) is None:
            return None
        ended, now = await drive(claims.find_ended(), driver)
        rows = [*ended, *now, *await drive(claims.find_open(), driver)]
        known = {entry["key"] for entry in state.get("gecko_journal") or ()}
        if told := [row["key"] for row in rows if row["key"] in known]:
            await drive(claims.close(told), driver)
        lost = [row for row in rows if row["key"] not in known and row["call"]["name"] in self.toolkit]
        lost = with_own_ids(await drive(claims.keep_living(lost), driver), state)
        if open_ := [row for row in lost if row["status"] not in DECIDED]:
            asking = ask_doubts(open_, self.toolkit, claims)
            decisions = await drive(asking, driver)
            for row, decision in zip(open_, decisions, strict=True):
                is_undone = decision["type"] == "make_now"
                fields = NOT_MADE | {"ended_at": time.time()} if is_undone else settled_by(decision, row)
                lost[lost.index(row)] = await drive(claims.settle(row, **fields, **claims.here), driver)
        if not lost:
            return None
        # a state is stored as deltas, which may contain another process's writes at this checkpoint
        booked = {step["call"]["id"] for step in filter(is_real, world.log)}
        for row in (row for row in lost if row["status"] != "left" and row["call"]["id"] not in booked):
            more: JsonObject = {"undecided": True} if row.get("undecided") else {}
            answer = Answer(row["status"], row["result"], more=more)
            await driver.do(world.record, world.arecord, row["call"], answer, by=row.get("by", "tool"))
        entries = [{**entry_of(row), "result": row.get("result", UNKNOWN)} for row in lost]
        messages = [RemoveMessage(REMOVE_ALL_MESSAGES), *tell(state["messages"], lost, claims.turn)]
        update = {"gecko": world.snapshot(), "gecko_journal": entries, "messages": messages}
        if own := {row["key"] for row in ended}.intersection(row["key"] for row in lost):  # they come first
            update["gecko_turn"] = {**state["gecko_turn"], "since": len(state.get("gecko_journal") or ()) + len(own)}
        return update


def tell_again(result: ToolMessage, call: Call, row: JsonObject) -> Command[Any]:
    """Return the update that answers a call with its earlier outcome, and records nothing."""
    message = add_marks(result, {"simulated": False, "rung": "real", "made_up": False})
    return Command(update={"messages": [message], "gecko_turn": {"told": counted_key(call, row)}})


def counted_key(call: Call, row: JsonObject) -> dict[str, str]:
    return {} if row["status"] == "left" else {call["id"]: row["key"]}


def with_own_ids(rows: Sequence[JsonObject], state: Any) -> list[JsonObject]:
    """Return rows with unique call ids: two runs that ended early may have used the same."""
    taken, found = {entry["call"]["id"] for entry in state.get("gecko_journal") or ()}, list[JsonObject]()
    for row in rows:
        call = row["call"]
        is_free = call["id"] not in taken
        own = call if is_free else {**call, "id": f"{call['id']}-{row['key'][:8]}"}
        taken.add(own["id"])
        found.append({**row, "call": own})
    return found


def as_message(row: Mapping[str, Any], call: Call) -> ToolMessage:
    text = UNKNOWN if row["status"] == "left" else as_text(row["result"])
    status: Any = "success" if row["status"] == "ok" else "error"
    return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status=status)


def tell(messages: Sequence[AnyMessage], lost: Sequence[JsonObject], turn: str) -> list[AnyMessage]:
    """Return a conversation with its missing real calls, and with answers to abandoned calls.

    A call whose message exists is answered after it; others are added at the end of their turn, this one or the last.
    """
    answered = {each.tool_call_id for each in messages if isinstance(each, ToolMessage)}
    left = {row["call"]["id"]: row for row in lost if row["call"]["id"] not in answered}
    told = list[AnyMessage]()
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


def read_result(result: ToolMessage | Command[Any], known: Mapping[str, Any] = MappingProxyType({})) -> Answer:
    """Return a real tool's answer; a text that is a JSON object or list is parsed.

    `known` states whether an error is `undecided`, which the text does not show.
    """
    answer = as_answer(result)
    if known.get("undecided"):
        answer = replace(answer, more={"undecided": True})
    if isinstance(answer.result, str):
        return replace(answer, result=block_value({"type": "text", "text": answer.result}))
    return answer


def refuse(call: ToolCall, rejection: Rejection) -> ToolMessage:
    if complaints := rejection.get("complaints"):
        message = build_complaint_message(name_call(call), complaints)
    else:
        learned = [tell_rule(each) for each in rejection.get("violations", ()) if "evidence" in each]
        content = "\n".join(learned) or as_text(rejection.get("error"))
        message = ToolMessage(content, tool_call_id=call["id"], name=call["name"], status="error")
    return add_marks(message, {"simulated": False, "rung": "contract", "made_up": False, "refused": True})


def complain_again(state: Any, call: Call, world: World, toolkit: Toolkit) -> ToolMessage | None:
    """Return the answer to a write that was really refused, if no change since is known, else None.

    Also to a call that a person has rejected in this turn.
    """
    messages, turn = state["messages"], state.get("gecko_turn") or {"id": None, "log": 0}
    since = messages[next((at for at, each in enumerate(messages) if each.id == turn["id"]), 0) :]
    now = {each["id"]: each for said in since if isinstance(said, AIMessage) for each in said.tool_calls}
    for each in (message for message in since if isinstance(message, ToolMessage)):
        is_rejected = (each.additional_kwargs.get(NAME) or {}).get("rejected")
        if is_rejected and is_same_call(now.get(each.tool_call_id, {"name": ""}), call):
            return each.model_copy(update={"tool_call_id": call["id"], "id": None})
    if toolkit.is_read(call["name"]):
        return None
    known = find_last(call, ((step, at < turn["log"]) for at, step in enumerate(world.log)), toolkit.get)
    answers = [each for each in since if isinstance(each, ToolMessage) and SAME in each.text]
    is_told = any(is_same_call(now[each.tool_call_id], call) for each in answers if each.tool_call_id in now)
    complaints = tell_refusal(call, known, is_told=is_told)
    return build_complaint_message(call, complaints) if complaints else None


def answer_as_decided(call: Call, decision: Decision) -> ToolMessage:
    if decision["type"] == "respond":
        return ToolMessage(decision["message"], tool_call_id=call["id"], name=call["name"])
    return reject(call, f": {decision['message']}" if decision.get("message") else "")


def reject(call: Call | ToolCall, reason: str | None, by: str = "the user rejected it") -> ToolMessage:
    """Return the answer to a call that was rejected, or without a reason, not approved as it is."""
    content = (NOT_APPROVED if reason is None else REJECTED).format(name=call["name"], reason=reason, by=by)
    message = ToolMessage(content, tool_call_id=call["id"], name=call["name"], status="error")
    return message if reason is None else add_marks(message, {"rejected": True})


def as_edited(call: ToolCall, state: Any) -> Any:
    """Return a call as edited by LangChain's `HumanInTheLoopMiddleware`; the message keeps the model's own call."""
    return {**call, **(state.get("hitl_edited_tool_calls") or {}).get(call["id"], {})}


def find_before(request: Any) -> list[Any]:
    """Return the calls before one in its message, as they will be made."""
    pending = [as_edited(call, request.state) for call in find_pending(request.state["messages"])[1]]
    return [*takewhile(lambda call: call["id"] != request.runtime.tool_call_id, pending)]


def count_beside(request: Any, live: Live) -> int:
    """Return the number of equal calls before one in its message that may be running."""
    own = request.tool_call
    return sum(is_same_call(each, own) and each["id"] not in live.keys for each in find_before(request))


def find_rehearsed(state: Any, call: ToolCall) -> Step | None:
    for answer in (state.get("gecko_batch") or {"answers": ()})["answers"]:
        if answer["call"]["id"] == call["id"] and is_same_call(answer["call"], call):
            step: Step = answer["record"]["step"]
            return step
    return None
