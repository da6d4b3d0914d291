"""Record a run with live models as a scenario that plays to the same results without a model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from ..conversation.scenario import Scenario, Turn
from ..errors import ScenarioError, ToolkitError
from ..masking import mask
from ..models.ask import Dialogue, ModelAsk, Reply
from ..models.conversation import replace_calls
from ..models.factory import ModelsLike
from ..models.formatting import text_of
from ..models.recorded import call_prefix, planner_message
from ..models.reply import raw_text
from ..state import ROLES, VERSION, Json, JsonObject, Role
from ..tools.reading import read_toolkit
from ..values.documents import format_document, parse_document
from ..values.places import map_texts
from .play import OnEvent, play, unanswered

NO_REPLY = "(no reply)"
"""Recorded if a model did not reply; it is invalid as a reply."""

_LIVE_ONLY = {"token_budget", "time_budget_s", "reads"}
"""Limits that may stop a replay earlier than the run (recorded models use other tokens and time), or need real
tools."""


@dataclass(slots=True)
class Recorder:
    """Collects the replies of one run: `scenario.gecko(model=..., listen=recorder.listen)`, then `write`.

    The planner's call ids are replaced by those of a recorded model, because new identifiers are derived from them.
    """

    scenario: Scenario
    _heard: dict[tuple[int, Role, int, int], Json] = field(default_factory=dict)
    """Replies by turn, role, attempt and question."""

    def listen(self, ask: ModelAsk, dialogue: Dialogue) -> Dialogue:
        """Run a dialogue to its end and save its reply, after a repair the repaired one."""
        wrote: Any = None
        try:
            call = next(dialogue)
            while True:
                wrote = yield call
                call = dialogue.send(wrote)
        except StopIteration as done:
            reply: Reply = done.value
        place = (ask.where.turn, ask.role, ask.where.attempt, ask.where.question)
        if ask.role != "planner":
            raw = NO_REPLY if isinstance(wrote, Exception) else raw_text(wrote)
            is_read = isinstance(reply.value, BaseModel)
            self._heard[place] = reply.value.model_dump(exclude_unset=True) if is_read else raw
        elif isinstance(reply.value, AIMessage):
            entry = _planner_reply(reply.value)
            self._heard[place] = entry
            made = planner_message(entry, prefix=call_prefix(place[0], place[2], place[3]))
            calls = {"invalid_tool_calls": made.invalid_tool_calls}
            return Reply(replace_calls(reply.value, made.tool_calls).model_copy(update=calls), None, reply.usage)
        return reply

    def write(self, target: str | Path, outputs: Sequence[Mapping[str, Any]], *, force: bool = False) -> list[str]:
        """Write the scenario to a .yaml, .yml or .json file and play it.

        Args:
            target: The file.
            outputs: The graph's outputs, one per turn of the run.
            force: Whether to replace an existing file.

        Returns:
            A line for each difference between the results of the play and the run.

        Raises:
            ScenarioError: A turn was not answered, or the file exists or cannot be written.
        """
        file = check_target(target, force=force)
        if not outputs or (reason := unanswered(outputs[-1])):
            raise ScenarioError(f"{file}: not written: the run is incomplete: {reason if outputs else 'no turn'}")
        text = format_document(self.document(file.parent, turns=len(outputs)), file.suffix)
        try:
            data = parse_document(text, where=str(file))
        except ToolkitError as error:
            raise ScenarioError(f"not written: it could not be read again: {error}") from None
        played = Scenario.from_dict(data, where=str(file), folder=file.parent, allow_outside=True)
        gecko = played.gecko(checkpointer=InMemorySaver())
        found = _differences(outputs, list(play(played, gecko, thread_id=played.name)))
        try:
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ScenarioError(f"{file}: cannot be written: {error.strerror}") from None
        return found

    def document(self, folder: Path, *, turns: int) -> JsonObject:
        """Return the content of the scenario's file; its tools are a path relative to `folder`, or inline."""
        scenario = self.scenario
        replies = [self._replies(turn) for turn in range(turns)]
        shown = [
            {"user": turn.user, "checklist": _checklist(turn), "replies": each}
            for turn, each in zip(scenario.turns, replies, strict=False)
        ]
        limits = scenario.limits.model_dump(mode="json", exclude_defaults=True, exclude=_LIVE_ONLY)
        case = {
            "state": scenario.state,
            "turns": [{key: each for key, each in turn.items() if each} for turn in shown],
        }
        return {
            "version": VERSION,
            "name": scenario.name,
            "tools": _tools(scenario, folder),
            **map_texts(case, lambda text: mask(text.encode("utf-8", "replace").decode()), keys=True),
            **({"limits": limits} if limits else {}),
        }

    def _replies(self, turn: int) -> JsonObject:
        """Return a turn's replies by role, each at its index; a skipped index gets an empty reply."""
        roles: dict[str, list[dict[str, Json]]] = {}
        for (number, role, attempt, question), reply in sorted(self._heard.items(), key=lambda each: each[0]):
            if number == turn:
                index = attempt - 1 if role in ("planner", "judge") else question
                replies = roles.setdefault(role, [])
                replies += [{} for _ in range(index + 1 - len(replies))]
                replies[index][str(question if role == "planner" else attempt)] = reply
        return {
            role: [list(each.values()) if role == "planner" else _entry(each) for each in roles[role]]
            for role in ROLES
            if role in roles
        }


def record(
    scenario: Scenario | str | Path,
    target: str | Path,
    *,
    model: ModelsLike = None,
    force: bool = False,
    on_event: OnEvent | None = None,
) -> list[dict[str, Any]]:
    """Run all turns of a scenario as `run_scenario` does, and write them with the replies as a new scenario.

    Arguments and outputs are those of `run_scenario`; `target` is a .yaml, .yml or .json file, which `force`
    overwrites.

    Raises:
        ScenarioError: The file exists or cannot be written, a turn was not answered, or the written file plays to other
            results, for example because tools are Python functions.
        ModelError: A model cannot be built.
    """
    scenario = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    check_target(target, force=force)
    recorder = Recorder(scenario)
    gecko = scenario.gecko(model=model, checkpointer=InMemorySaver(), listen=recorder.listen)
    outputs = list(play(scenario, gecko, thread_id=scenario.name, on_event=on_event))
    if found := recorder.write(target, outputs, force=force):
        raise ScenarioError("\n".join(f"{target}: written, but a play of it differs: {each}" for each in found))
    return outputs


def check_target(target: str | Path, *, force: bool = False) -> Path:
    """Return the target as a path that can be written. Raises ScenarioError, with advice."""
    file = Path(target)
    if file.suffix not in (".yaml", ".yml", ".json"):
        raise ScenarioError(f"{file}: expected the name of a .yaml, .yml or .json file")
    if file.is_dir() or not os.access(file.absolute().parent, os.W_OK):
        raise ScenarioError(f"{file}: cannot be written: {'it is a folder' if file.is_dir() else 'check its folder'}")
    if file.exists() and not force:
        raise ScenarioError(f"{file}: the file exists; choose another name, or delete it")
    return file


def _planner_reply(message: AIMessage) -> JsonObject:
    calls: list[JsonObject] = [{"call": call["name"], "args": call["args"]} for call in message.tool_calls]
    calls += [
        {"call": call.get("name") or "", "malformed": call.get("args") or " "} for call in message.invalid_tool_calls
    ]
    return {"say": text_of(message)} if not calls else calls[0] if len(calls) == 1 else {"calls": calls}


def _entry(by_attempt: Mapping[str, Json]) -> Json:
    return {"by_attempt": dict(by_attempt)} if len(by_attempt) > 1 else next(iter(by_attempt.values()), NO_REPLY)


def _checklist(turn: Turn) -> list[Json]:
    plain = [{"id": f"item-{n}", "description": item["description"]} for n, item in enumerate(turn.checklist, 1)]
    return [
        item["description"] if item == bare else dict(item) for item, bare in zip(turn.checklist, plain, strict=True)
    ]


def _tools(scenario: Scenario, folder: Path) -> Json:
    if scenario.tools_file is not None:
        file = Path(scenario.tools_file)
        if file.is_file() and [tool.name for tool in read_toolkit(file)] == [tool.name for tool in scenario.tools]:
            return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()
    return scenario.tools.to_openapi()


def _differences(outputs: Sequence[Mapping[str, Any]], played: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return how a play's results differ from the run's; secrets may be masked in either."""
    return [
        f"turns[{number}]: the {key} differs"
        for number, (run, again) in enumerate(zip(map(_result, outputs), map(_result, played), strict=True))
        for key in run
        if run[key] != again[key] and map_texts(run[key], mask, keys=True) != map_texts(again[key], mask, keys=True)
    ]


def _result(output: Mapping[str, Any]) -> JsonObject:
    rehearsal = output["rehearsal"]
    return {
        "verdict": rehearsal["verdict"]["status"],
        "plan": [[call["name"], call["args"]] for call in rehearsal["plan"]],
        "answer": rehearsal["answer"],
        "task state": output["task_state"],
    }
