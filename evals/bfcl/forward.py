"""For forward execution: a service that gives wrong answers on purpose, and models that replay recorded calls.

The service answers by contracts and classes, and makes some of the answers wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from types import GeneratorType
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import Field

from gecko_graph.contracts.run import ContractAnswer
from gecko_graph.errors import EvaluationFailed
from gecko_graph.models.recorded import RecordedModel, planner_message
from gecko_graph.state import Json, JsonObject
from gecko_graph.values.difference import json_equal
from gecko_graph.values.notes import notes_of
from gecko_graph.world.ladder import RUNGS, Rungs
from gecko_graph.world.rung import Answer, Rung, RungRequest, RungResult, open_contract

RIGHT = "right"
LIES = ("empty", "of another call", "a field missing", "an old state")


def emptied(result: Json) -> Json:
    if isinstance(result, dict):
        return {key: emptied(each) for key, each in result.items()}
    return [] if isinstance(result, list) else "" if isinstance(result, str) else None


def lacking(result: JsonObject) -> Json:
    first = next(iter(result))
    return {key: each for key, each in result.items() if key != first}


@dataclass(slots=True)
class Service:
    """The service of one task's run; `said` tells which of its answers were made wrong, by the call's id."""

    seed: str
    share: float = 0.25
    said: dict[str, str] = field(default_factory=dict)
    _results: list[Json] = field(default_factory=list)

    @property
    def rungs(self) -> Rungs:
        """The ladder's rungs, with `contract` and `python` answered by this service."""
        made = {name: Rung(name, self._answering(RUNGS[name].answer)) for name in ("contract", "python")}
        return {**RUNGS, **made}

    def _answering(self, answer: Callable[[RungRequest], Any]) -> Callable[[RungRequest], Any]:
        def run(request: RungRequest) -> Generator[Any, Any, RungResult]:
            made = answer(request)
            reply: RungResult = (yield from made) if isinstance(made, GeneratorType) else made
            return self._say(request, reply) if isinstance(reply, Answer) and reply.status == "ok" else reply

        return run

    def _say(self, request: RungRequest, right: Answer) -> Answer:
        dice = Random(f"{self.seed} {len(request.steps)} {request.call['name']} {request.call['args']}")
        wrong: tuple[str, Answer | None] = (RIGHT, None)
        if dice.random() < self.share:
            first = dice.randrange(len(LIES))
            tried = ((kind, self._lie(kind, request, right)) for kind in (*LIES[first:], *LIES[:first]))
            wrong = next((each for each in tried if each[1] is not None), wrong)
        self._results.append(right.result)
        self.said[request.call["id"]] = wrong[0]
        return wrong[1] or right

    def _lie(self, kind: str, request: RungRequest, right: Answer) -> Answer | None:
        """Return the wrong answer of this kind; None if it equals the right one."""
        made = right
        if kind == LIES[0]:
            made = replace(right, result=emptied(right.result))
        elif kind == LIES[1]:
            made = replace(right, result=next(reversed(self._results), right.result))
        elif kind == LIES[2]:
            made = (
                replace(right, result=lacking(right.result))
                if isinstance(right.result, dict) and right.result
                else right
            )
        else:
            old = self._outdated(request)
            made = replace(right, result=old.result, patch=old.patch) if old is not None else right
            if right.patch and (old is None or json_equal(old.patch, right.patch)):
                made = replace(right, patch=[])
        same = json_equal(made.result, right.result) and json_equal(made.patch, right.patch)
        return None if same else made

    def _outdated(self, request: RungRequest) -> ContractAnswer | None:
        """Return the contract's answer in the state at the start of the turn."""
        if request.tool.contract is None or not request.tool.contract.answers:
            return None
        run = open_contract(replace(request, state=request.before))
        try:
            return run.answer() if run.refusal() is None and not run.unclear else None
        except EvaluationFailed:
            return None


def stopped(said: Mapping[str, str], steps: list[Any]) -> dict[str, list[int]]:
    """Return, by kind of answer, how many there were and how many of them were refused."""
    counts: dict[str, list[int]] = {}
    for step in steps:
        if step["call"]["id"] in said and "outcome" in step:
            found = counts.setdefault(said[step["call"]["id"]], [0, 0])
            found[0] += 1
            is_refused = bool(notes_of(step["outcome"], "refused"))
            found[1] += is_refused and step["outcome"]["status"] == "error"
    return counts


# recorded calls as forward execution's models


class Follower(RecordedModel):
    """Replays one turn of recorded calls as the roles `reasoner`, `reranker` and `planner`.

    A need is the next call, stated once. Its candidates are the tools of the calls from there on, so that the calls
    recorded after a refused one (other arguments or another tool) are the next tries.
    """

    calls: list[JsonObject] = Field(default_factory=list)
    made: int = 0
    asked: int = -1
    """The index of the last needed call; if it was not made, it is skipped."""

    def _reply(
        self,
        messages: list[BaseMessage],
        run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None,
        kwargs: Mapping[str, Any],
    ) -> AIMessage:
        metadata = (run_manager.metadata if run_manager else None) or {}
        tools = kwargs.get("tools") or []
        role, tool = metadata["gecko_role"], tools[0]["function"]["name"] if tools else ""
        if role == "reasoner":
            self.made += self.made == self.asked
            self.asked = self.made
        left = self.calls[self.made :]
        if role == "planner":
            reply = self._call(left, tool, f"written_{metadata['gecko_turn']}_{self.made}")
        else:
            names = list(dict.fromkeys(call["call"] for call in left))
            ranked = {"tools": [{"name": name, "score": 1 / place} for place, name in enumerate(names, 1)]}
            wanted = {"need": json.dumps(left[0])} if left else {"answer": "Done."}
            reply = AIMessage(json.dumps(ranked if role == "reranker" else wanted))
        return self._counted(reply, input_tokens=0, output_tokens=0)

    def _call(self, left: Sequence[JsonObject], tool: str, prefix: str) -> AIMessage:
        if not left or left[0]["call"] != tool:
            return AIMessage("Another tool was called here.")
        self.made += 1
        filled = self.fill(left[0], "", 1) if self.fill else left[0]
        return planner_message(filled, prefix=prefix)
