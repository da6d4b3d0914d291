"""The memory of earlier rehearsals: calls and results in the metadata of the answer's message.

Metadata travel with a message through a parent's conversation, so that standalone and embedded rehearsals remember
alike. They may come back changed: an entry that is no valid call is ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage

from ..errors import PatchConflict
from ..state import VERSION, CallStatus, JsonObject, Step, SupposedFact, Verdict
from ..values.digest import digest
from ..values.notes import notes_of
from ..values.patch import find, tokens
from ..values.places import as_text
from .formatting import clip_texts, cut, format_call, format_json, text_of
from .reply import find_storage_problem

NAME = "gecko"
NOTHING_DONE = "Rehearsal failed; nothing was done."
NO_ANSWER = "The rehearsal ended without an answer."
MOST_CALLS = 100
MOST_PLACES = 100
"""Most made-up places that are remembered; if there are more, the whole state counts as made up."""
SHARES = 6
SHORTEST_SHARE = 800
REASON_CHARS = 500

_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])|\n+")
_ASKS = re.compile(r"[?\uff1f\u061f][ *_\"'`)]*$")
_POINTER = re.compile(r"(?:/(?:[^/~]|~[01])*)*")


def answer_message(
    answer: str,
    verdict: Verdict,
    steps: Sequence[Step],
    *,
    budget: int,
    supposed: Sequence[str] = (),
    state: JsonObject | None = None,
    checklist: str = "",
) -> AIMessage | None:
    """Return the message that a rehearsal adds to the conversation, None if it has no text.

    A failed one states only that nothing was done and why; no calls are remembered. One that asks the user remembers
    only the calls before its first change, which hold in the kept state. If it has changes, which are dropped, only the
    questions of its answer are kept.

    Args:
        answer: The planner's answer.
        verdict: The verdict on the chosen attempt.
        steps: The attempt's steps.
        budget: Most characters of the remembered calls; the latest are kept.
        supposed: JSON Pointers to the made-up places of the task state after the attempt.
        state: That task state.
        checklist: Digest of a parent's checklist, so that it is not used again for the next task.
    """
    word = verdict["status"]
    if word == "failed":
        answer = f"{NOTHING_DONE}\n{cut(verdict['feedback'], budget=REASON_CHARS)}".strip()
    unchanged = takewhile(lambda step: "outcome" not in step or step["outcome"]["patch"] == [], steps)
    lasting = {"accepted": steps, "needs_user": [*unchanged], "failed": []}[word]
    if word == "needs_user" and len(lasting) < len(steps):
        ran = [step for step in steps[len(lasting) :] if "outcome" in step]
        undone = [f"Not done: {format_call(step['call'])}" for step in ran if step["outcome"]["patch"] != []]
        answer = "\n".join([*undone, *(each for each in _SENTENCE.split(answer) if _ASKS.search(each))])
    metadata: JsonObject = {"v": VERSION, "verdict": word, "made_up": len(notes_of(verdict, "made_up"))}
    metadata |= remember_calls(lasting, budget=budget)
    metadata |= {"notes": rules} if (rules := notes_of(verdict, "may_refuse")) and word != "failed" else {}
    if checklist:
        metadata["checklist"], answer = checklist, answer or NO_ANSWER
    if supposed:
        paths = [*supposed] if len(supposed) <= MOST_PLACES else [""]
        marks, keys = [_fingerprint(state, path) for path in paths], [*(state or {})][:MOST_PLACES]
        metadata["supposed"] = {"digest": digest(state or {}), "paths": paths, "marks": marks, "keys": keys}
    return AIMessage(answer, name=NAME, response_metadata={NAME: metadata}) if answer else None


def last_checklist(messages: Sequence[AnyMessage]) -> str:
    """Return the digest of the checklist given to the conversation's last rehearsal, "" if unknown."""
    for message in reversed(messages):
        if isinstance(message, AIMessage) and message.name == NAME:
            return str(_metadata(message).get("checklist", ""))
    return ""


def open_rules(messages: Sequence[AnyMessage]) -> dict[str, list[str]]:
    """Return rules, by tool, that simulated writes of earlier turns may break and no real call has settled."""
    found: dict[str, list[str]] = {}
    for message in messages:
        notes = _metadata(message).get("notes") if isinstance(message, AIMessage) else None
        for each in notes[:MOST_CALLS] if isinstance(notes, list) else ():
            data = each.get("data") if isinstance(each, dict) and each.get("kind") == "may_refuse" else None
            tool, rule = (data.get("tool"), data.get("rule")) if isinstance(data, dict) else (None, None)
            if isinstance(tool, str) and isinstance(rule, str) and rule not in found.setdefault(tool, []):
                found[tool].append(cut(rule, budget=REASON_CHARS))
        for call in _calls(message):
            found.pop(call["name"] if call["rung"] == "real" else "", None)
    return found


def remember_calls(steps: Sequence[Step], *, budget: int) -> JsonObject:
    """Return the latest calls with their results, within `budget` characters, in order, long texts cut.

    The calls are under `calls`; `whole` is set if nothing was omitted or cut, so that the answer knows no other
    results.
    """
    ran = [step for step in steps if "outcome" in step][-MOST_CALLS:]
    share = min(budget, max(SHORTEST_SHARE, budget // min(len(ran) or 1, SHARES)))
    calls: list[JsonObject] = []
    for step in reversed(ran):
        call, outcome = step["call"], step["outcome"]
        entry = {"name": call["name"], "args": call["args"], "result": outcome["result"]}
        short = {**entry, "result": format_json(outcome["result"], budget=share // 2)}
        text = clip_texts(entry, budget=share) or clip_texts(short, budget=share)
        budget -= len(text or "")
        if text is None or budget < 0:
            break
        made_up = {"made_up": True} if outcome.get("invented") else {}
        made_up |= {"wrote": True} if made_up and outcome["patch"] else {}
        made_up |= {"undecided": True} if outcome.get("undecided") else {}
        calls.append({**json.loads(text), "status": outcome["status"], "rung": outcome["rung"], **made_up})
    kept = [(call["args"], call["result"]) for call in reversed(calls)]
    whole = kept == [(step["call"]["args"], step["outcome"]["result"]) for step in steps if "outcome" in step]
    return {"calls": calls[::-1], **({"whole": True} if whole else {})}


def recall_calls(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the conversation with the calls and results of earlier rehearsals as messages before their answers."""
    recalled: list[AnyMessage] = []
    for index, message in enumerate(messages):
        calls = _calls(message)
        for number, call in enumerate(calls):  # a later call may depend on an earlier result
            name = re.sub(r"[^A-Za-z0-9_-]", "_", call["name"])[:64]
            made = ToolCall(name=name, args=call["args"], id=f"turn{index}_{number}")
            recalled.append(AIMessage("", tool_calls=[made], response_metadata={NAME: {"rung": ""}}))
            content = as_text(call["result"])
            status = "error" if call["status"] == "error" else "success"
            known = {NAME: {key: call[key] for key in ("rung", "made_up", "wrote", "undecided") if key in call}}
            recalled.append(ToolMessage(content, tool_call_id=made["id"], status=status, response_metadata=known))
        if calls:
            kept = {key: value for key, value in _metadata(message).items() if key != "calls"}
            message = message.model_copy(update={"response_metadata": {**message.response_metadata, NAME: kept}})
        recalled.append(message)
    return recalled


def supposed_places(messages: Sequence[AnyMessage], state: JsonObject) -> list[str]:
    """Return JSON Pointers to the places of a task state that the last rehearsal made up.

    If a caller has edited the state and kept all of its keys, only unchanged places count. A caller's new state is
    established.
    """
    supposed = next((_metadata(message) for message in reversed(messages) if _metadata(message)), {}).get("supposed")
    supposed = supposed if isinstance(supposed, dict) else {}
    found = [supposed.get(key) for key in ("paths", "marks", "keys")]
    paths, marks, keys = (each if isinstance(each, list) else [] for each in found)
    if supposed.get("digest") != digest(state):
        is_edited = all(isinstance(key, str) and key in state for key in keys)
        pairs = zip(paths, marks, strict=False) if is_edited else ()
        paths = [path for path, mark in pairs if mark and _fingerprint(state, path) == mark]
    return [path for path in paths if isinstance(path, str) and _POINTER.fullmatch(path)]


def _fingerprint(state: Any, path: Any) -> str:
    """Return the digest of the value at a place; "" if it is missing, empty or True."""
    try:
        value = find(state, tokens(path))
    except (PatchConflict, TypeError, AttributeError):
        return ""
    return digest(value) if value and value is not True else ""


def told_claims(messages: Sequence[AnyMessage]) -> set[str]:
    """Return the claims of real calls that the answers in a conversation report."""
    found = [_metadata(each).get("claims") for each in messages if isinstance(each, AIMessage)]
    return {key for keys in found if isinstance(keys, list) for key in keys if isinstance(key, str)}


def is_answered(messages: Sequence[AnyMessage], turn: str = "", agent: str = "") -> bool:
    """Return whether an agent that makes real calls has answered the last human message, or the turn with this id.

    `agent` is the agent's name.
    """
    records = [_metadata(each) if isinstance(each, AIMessage) else {} for each in messages]
    own = ["claims" in each and each.get("agent", agent) == agent for each in records]
    last = max((at for at, each in enumerate(messages) if isinstance(each, HumanMessage)), default=0)
    return any(own[last:]) or any(ok and each.get("answers") == turn for ok, each in zip(own, records, strict=True))


def rung_of(message: AnyMessage) -> str | None:
    """Return the rung of a recalled result, "" for a recalled call, None for other messages."""
    rung = _metadata(message).get("rung")
    return rung if isinstance(rung, str) else None


def real_results(
    recalled: Sequence[AnyMessage],
    *,
    reads: Collection[str] = (),
    now: str = "",
    rungs: Collection[str] = ("real",),
) -> list[SupposedFact]:
    """Return the results of earlier turns' real calls, from a conversation with recalled calls.

    Results after which only tools in `reads` were called have the state digest `now`; others have an unknown one.
    `rungs` are the rungs that count as real.
    """
    calls = {call["id"]: call for each in recalled if isinstance(each, AIMessage) for call in each.tool_calls}
    found: list[SupposedFact] = []
    for message in recalled:
        call = calls.get(message.tool_call_id) if isinstance(message, ToolMessage) else None
        if call and call["name"] not in reads:
            found = [{**each, "digest": ""} for each in found]
        if call and isinstance(message, ToolMessage) and rung_of(message) in rungs:
            result: Any = text_of(message)
            with suppress(ValueError, RecursionError):
                result = json.loads(result)
            status: CallStatus = "error" if message.status == "error" else "ok"
            shown = {"tool": call["name"], "args": call["args"], "status": status, "result": result}
            marks = {"undecided": True} if _metadata(message).get("undecided") else {}
            found.append({**shown, **marks, "rung": rung_of(message), "digest": now})  # type: ignore[typeddict-item]
    return found


def is_made_up(message: AnyMessage) -> bool:
    """Return whether values that occur only in this message are made up.

    This holds for results of inventing rungs, for a note on a rehearsal (`rehearsal_message`), and for the answer of a
    rehearsal all of whose results are remembered.
    """
    if isinstance(message, ToolMessage):
        marks = message.additional_kwargs.get(NAME)  # of a simulated tool of an agent (`middleware`)
        return any(isinstance(each, dict) and bool(each.get("made_up")) for each in (marks, _metadata(message)))
    is_note = isinstance(message, HumanMessage) and message.name == NAME
    return is_note or _metadata(message).get("whole") is True


def is_written(message: AnyMessage) -> bool:
    return isinstance(message, ToolMessage) and _metadata(message).get("wrote") is True


def _metadata(message: AnyMessage) -> JsonObject:
    metadata = message.response_metadata.get(NAME)
    return metadata if isinstance(metadata, dict) else {}


def _calls(message: AnyMessage) -> list[JsonObject]:
    """Return the valid calls in a message's metadata."""
    calls = _metadata(message).get("calls") if isinstance(message, AIMessage) else None
    return [call for call in calls[-MOST_CALLS:] if _is_call(call)] if isinstance(calls, list) else []


def _is_call(call: Any) -> bool:
    texts = isinstance(call, dict) and all(isinstance(call.get(key), str) for key in ("name", "status", "rung"))
    if not texts or not call["name"] or not isinstance(call.get("args"), dict) or "result" not in call:
        return False
    return find_storage_problem([call["args"], call["result"]]) is None
