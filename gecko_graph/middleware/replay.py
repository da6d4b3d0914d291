"""The simulated calls of a message as they were sent: another middleware may have edited, answered or stopped some."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage

from ..models.waiting import Driver
from ..state import JsonObject
from ..world.as_tools import add_marks, build_message, is_same
from ..world.world import World


def number(records: Sequence[JsonObject], first: int) -> list[JsonObject]:
    """Return a world's records with their places in its log."""
    return [{**record, "at": at, "usage": {}} for at, record in enumerate(records, first)]


async def answer_as_sent(
    world: World, calls: Sequence[Any], state: Any, driver: Driver, *, is_serial: bool
) -> tuple[list[JsonObject], int]:
    """Have a world at the state's snapshot answer calls; return their records, and how many keep their answers.

    Those before the first that differs from what was simulated do: no model is asked about them again.
    """
    first, known = len(state["gecko"]["log"]), (state.get("gecko_batch") or {"answers": ()})["answers"]
    pairs = takewhile(lambda pair: is_same(pair[0], pair[1]["call"]), zip(calls, known, strict=False))
    kept = [answer["record"] for _, answer in pairs]
    if not is_serial and len(kept) < len(calls):
        kept = []  # the others are answered in the same state as these
    world.replay(kept)
    await driver.do(world.call_all, world.acall_all, world.read_calls(calls[len(kept) :]))
    return number(world.records(first), first), len(kept)


def correct_messages(
    messages: Sequence[AnyMessage], sent: Sequence[JsonObject], records: Sequence[JsonObject]
) -> list[ToolMessage]:
    """Return the tool messages whose answers are others now, under their ids.

    What another middleware has put around an answer stays; a message that does not hold the answer is its own.
    """
    by_id, corrected = {message.id: message for message in messages}, []
    for note, record in zip(sent, records, strict=True):
        message = by_id.get(note["message"])
        old, new = (build_message(note["call"], step) for step in (note["record"]["step"], record["step"]))
        if isinstance(message, ToolMessage) and isinstance(message.content, str):
            update: JsonObject = {"content": message.content.replace(old.text, new.text)}
            update["status"] = new.status if message.status == old.status else message.status
            corrected.append(add_marks(message.model_copy(update=update), new.additional_kwargs["gecko"]))
    return corrected
