"""A person's review of a message's calls in `preview`; edited calls are rehearsed and judged again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import ToolCall, ToolMessage
from langgraph.config import get_config

from ..context import GeckoContext
from ..models.answer import Driver
from ..models.factory import Models
from ..models.memory import recall_calls
from ..models.node import run_node
from ..models.usage import add_usage
from ..real.decisions import ask_person, find_edited
from ..real.description import describe_calls
from ..real.policy import ReviewPolicy
from ..real.preview import add_undo
from ..real.risk import judge_risks
from ..state import Call, JsonObject, Step
from ..tools.real import SCOPE, drive
from ..undo import UndoFinder
from ..world.as_tools import name_call
from ..world.provenance import trace_with
from ..world.records import PlannedCall, Preview
from ..world.refusals import is_same_call
from ..world.world import World
from .calls import Claimed, answer_as_decided, complain_again, find_rehearsed, reject
from .pending import build_preview, find_refusal, is_refused, set_id

ANSWERED = ("reject", "respond")
NOTHING: JsonObject = {"undo": {}, "risks": {}, "usage": {}}


class Reviewer(NamedTuple):
    """Asks a person about the calls of a message."""

    claimed: Claimed
    policy: ReviewPolicy
    finder: UndoFinder
    context: GeckoContext
    models: Models

    def preview(self, steps: Sequence[Step], before: JsonObject, at: JsonObject = NOTHING) -> Preview | None:
        """Return the preview of steps, as `build_preview`, with earlier lookups."""
        return build_preview(steps, before, self.claimed.toolkit, self.policy, at["undo"], at["risks"])

    async def look_up(self, steps: Sequence[Step], state: Any, driver: Driver, known: JsonObject) -> JsonObject:
        """Return undos and risks, by id, of calls that a person is asked about, and the usage.

        `known` are earlier risks by id, which are not asked again.
        """
        before, messages = state["gecko"]["state"], state["messages"]
        if (preview := self.preview(steps, before)) is None:
            return NOTHING
        preview = await drive(add_undo(preview, before, self.finder, self.context.undo_s), driver)
        undo = {each["call"]["id"]: each["undo"] for each in preview["calls"] if "undo" in each}
        if not preview.get("unjudged"):
            return {**NOTHING, "undo": undo}
        traced = trace_with(self.claimed.toolkit, steps, conversation=recall_calls(messages), state=before)
        judged = {each["key"]: each for each in known.values()}
        asked = judge_risks(preview, before, messages, self.context, origins=traced.origins, known=judged)
        models: Any = {"models": self.models, "config": get_config()}
        risks, accounts = await run_node(lambda *_: asked, None, SCOPE, driver, **models)
        return {"undo": undo, "risks": risks, "usage": accounts.usage}

    async def review(
        self, state: Any, calls: Sequence[ToolCall], fork: Callable[[], World], driver: Driver
    ) -> JsonObject | None:
        """Return the update that approves calls, and answers those that are rejected, refused or responded to.

        After an edit the message is rehearsed again, and calls with another tool, reason or outcome are asked about
        again. That question contains the earlier decisions, because a resume runs all this again.
        """
        rehearsed = ((call, find_rehearsed(state, call)) for call in calls)
        steps = [set_id(step, call) for call, step in rehearsed if step and not is_refused(step)]
        batch = state.get("gecko_batch") or {}
        if not (preview := self.preview(steps, state["gecko"]["state"], {"undo": {}, "risks": batch.get("risks", {})})):
            return None
        may_ask = any(each["review"] == "ask" for each in preview["calls"])
        claims = await self.claimed.find(state, driver) if may_ask else None
        ahead = {key: batch.get(key, {}) for key in ("undo", "risks")}
        begun = {"steps": steps, **ahead, "decided": {}, "reasons": {}, "usage": {}}
        at: JsonObject = (await drive(find_edited(claims), driver) if claims else None) or begun
        while True:
            known, told = await self._ask(state, at, fork(), driver)
            edits = {id_: each.get("edited_action", {}) for id_, each in at["decided"].items()}
            calls_now: dict[str, Any] = {_id(each): {**each["call"], **edits.get(_id(each), {})} for each in known}
            if all(is_same_call(each["call"], calls_now[_id(each)]) for each in known):
                break
            at = await self._rehearse(at, calls_now, state, fork(), driver)
        messages, approved = [*told], dict[str, Any]()
        planned = {_id(each): each for each in known}
        for call in calls:
            decision, each = at["decided"].get(call["id"], {"type": "approve"}), planned.get(call["id"] or "")
            if decision["type"] in ANSWERED:
                messages.append(answer_as_decided(name_call(call), decision))
            elif each and each["review"] == "refuse":
                messages.append(reject(call, f": {each['reason']}", by="it is not allowed"))
            elif each and sum(one["id"] == call["id"] for one in calls) == 1:
                approved[_id(each)] = {"name": each["call"]["name"], "args": each["call"]["args"]}
        edited = [{"call": step["call"], "record": {"step": step}} for step in at["steps"] if at is not begun]
        more = {"usage": add_usage(batch["usage"], at["usage"]), "answers": [*batch["answers"], *edited]}
        return {"messages": messages, "gecko_batch": {**batch, **more, "approved": approved}}

    async def _ask(
        self, state: Any, at: JsonObject, world: World, driver: Driver
    ) -> tuple[list[PlannedCall], list[ToolMessage]]:
        """Ask about undecided calls; return those that may be made, and the answers to those refused before."""
        before = state["gecko"]["state"]
        if (preview := self.preview(at["steps"], before, at)) is None:
            return [], []
        ran = [each for each in preview["calls"] if each["predicted"]["rung"] != "validator"]
        refused = {_id(step): find_refusal(step["call"], step) for step in at["steps"] if is_refused(step)}
        told = {
            _id(each): refused.get(_id(each)) or complain_again(state, each["call"], world, self.claimed.toolkit)
            for each in ran
        }
        known = [each for each in ran if told[_id(each)] is None]
        asked = [each for each in known if each["review"] == "ask" and at["reasons"].get(_id(each)) != _reason(each)]
        if asked:
            (texts, data), kept = describe_calls(preview, known, before, world.log), at if at["decided"] else None
            shown = [texts[_id(each)] for each in asked]
            calls = [each["call"] for each in asked]
            more = {"gecko": {"calls": [data[_id(each)] for each in asked]}} | ({"edited": kept} if kept else {})
            claims, allowed = (
                await self.claimed.find(state, driver),
                [self.policy.allowed(call["name"]) for call in calls],
            )
            options: Any = {"allowed": allowed, "needs_id": self.policy.needs_id, "more": more}
            decisions = await drive(ask_person(calls, shown, self.claimed.toolkit, claims, **options), driver)
            at["decided"] |= dict(zip(map(_id, asked), decisions, strict=True))
        at["reasons"] |= {_id(each): _reason(each) for each in known}
        made = [each for each in known if at["decided"].get(_id(each), {}).get("type") not in ANSWERED]
        return made, [each for each in told.values() if each]

    async def _rehearse(
        self, at: JsonObject, calls: Mapping[str, Call], state: Any, world: World, driver: Driver
    ) -> JsonObject:
        """Return the message's preview after an edit: its current calls are simulated again."""
        made: list[Any] = [calls[_id(step)] for step in at["steps"] if _id(step) in calls]
        answered = await driver.do(world.call_all, world.acall_all, world.read_calls(made))
        steps = [set_id(step, call) for step, call in zip(answered, made, strict=True)]
        ahead = await self.look_up(steps, state, driver, at["risks"])
        spent = add_usage(at["usage"], add_usage(world.usage, ahead["usage"]))
        return {**at, **ahead, "steps": steps, "usage": spent}


def _id(each: PlannedCall | Step) -> str:
    return each["call"]["id"]


def _reason(planned: PlannedCall) -> list[str]:
    """Return the identity of a question on a call: another tool, reason or outcome is another question."""
    return [planned["call"]["name"], planned["reason"], planned["predicted"]["status"]]
