"""Scenarios: one file for a whole case. Tools, state, turns, checklists, limits, and what the models would have said.

```yaml
version: 1
name: file-the-report
tools: files.openapi.yaml         # beside the scenario; or an OpenAPI document, or a list of function dicts, inline
state: {cwd: [documents]}
turns:
  - user: Make a folder temp.
    checklist:
      - {id: temp, description: there is a folder temp, check: "'temp' in state.tree"}
    replies:                      # for the planner one list an attempt, for other roles one reply a question
      planner:
        - [{call: mkdir, args: {name: temp}}, {say: Done.}]
limits: {max_retries: 3}          # any field of GeckoContext
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.types import Checkpointer

from ..context import GeckoContext
from ..documents import read_document
from ..errors import ScenarioError, ToolkitError
from ..graph import Gecko, Model, create_gecko
from ..models.recorded import RecordedModel
from ..state import ChecklistItem, Json, JsonObject, Role
from ..task_state.digest import clone
from ..toolkit import Toolkit
from .format import read_scenario
from .tools import toolkit_of


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the conversation.

    Args:
        user: What the user says.
        checklist: What must hold at the end; empty where a model writes it.
        replies: What speaks where no model is given, by role.
    """

    user: str
    checklist: tuple[ChecklistItem, ...] = ()
    replies: Mapping[Role, Sequence[Json]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole case, checked when it is loaded. Made by `load` and `from_dict`.

    Args:
        name: Its name, also of the thread that it runs on.
        tools: Its toolkit.
        state: The task state at the start.
        turns: What the user says, turn by turn.
        limits: The run's knobs.
        where: Where it was read, for messages.
        tools_file: Where its tools were read, if they stand in a file of their own.
    """

    name: str
    tools: Toolkit
    state: JsonObject
    turns: tuple[Turn, ...]
    limits: GeckoContext
    where: str = "scenario"
    tools_file: Path | None = None

    @classmethod
    def load(cls, path: str | Path, *, allow_outside: bool = False) -> Scenario:
        """Read a scenario from a YAML or JSON file.

        Args:
            path: The file.
            allow_outside: Read a file of tools outside the scenario's folder, too.

        Raises:
            ScenarioError: The file is missing, broken or incomplete; the message names file and place.
            ToolkitError: Its tools cannot be read.
        """
        file = Path(path)
        try:
            document = read_document(file)
        except ToolkitError as error:
            raise ScenarioError(str(error)) from None
        return cls.from_dict(document, where=str(file), folder=file.parent, allow_outside=allow_outside)

    @classmethod
    def from_dict(
        cls, data: Any, *, where: str = "scenario", folder: str | Path = ".", allow_outside: bool = False
    ) -> Scenario:
        """Read a scenario from plain JSON values.

        Args:
            data: The scenario as its file holds it.
            where: What to call it in messages.
            folder: What a path in `tools` is relative to.
            allow_outside: Take a path that leads out of the folder, too.

        Raises:
            ScenarioError: Something is wrong; the message names the place.
            ToolkitError: Its tools cannot be read.
        """
        read = read_scenario(data, where=where)
        tools = toolkit_of(read.tools, folder=Path(folder), where=where, allow_outside=allow_outside)
        turns = tuple(Turn(turn.user, turn.items(), turn.replies) for turn in read.turns)
        file = Path(folder) / read.tools if isinstance(read.tools, str) else None
        return cls(read.name, tools, read.state, turns, read.limits, where, file)

    def toolkit(self) -> Toolkit:
        """The scenario's tools."""
        return self.tools

    def context(self) -> GeckoContext:
        """The scenario's limits."""
        return self.limits

    def models(self) -> dict[Role, BaseChatModel]:
        """A recorded model for each role that the scenario has replies for."""
        model = RecordedModel(turns=[{str(role): said for role, said in turn.replies.items()} for turn in self.turns])
        roles = dict.fromkeys(role for turn in self.turns for role, replies in turn.replies.items() if replies)
        return dict.fromkeys(roles, model)

    def inputs(self, turn: int = 0) -> dict[str, Any]:
        """The graph's input for a turn, from 0. The state goes in with the first; later turns find what was left."""
        given: dict[str, Any] = {"messages": [("user", self.turns[turn].user)]}
        if turn == 0:
            given["task_state"] = clone(self.state)
        if self.turns[turn].checklist:
            given["checklist"] = [dict(item) for item in self.turns[turn].checklist]
        return given

    def gecko(
        self,
        *,
        model: Model | None = None,
        models: Mapping[Role, Model] | None = None,
        base_url: str | None = None,
        timeout_s: float | None = None,
        checkpointer: Checkpointer = None,
    ) -> Gecko:
        """The graph that rehearses this scenario.

        Args:
            model: Speaks in place of every recorded reply.
            models: Speak in place of single roles' recorded replies.
            base_url: Address of an OpenAI-compatible server, for models given as text.
            timeout_s: Seconds that a model given as text may take for a reply.
            checkpointer: Keeps the snapshots.

        Raises:
            ScenarioError: Nobody plans, or nobody says what must hold.
            ModelError: A model cannot be built.
        """
        spoken: dict[Role, Model] = {} if model is not None else dict(self.models())
        spoken.update(models or {})
        if model is None:
            self._check_spoken(models or {})
        is_recorded = model is None and "planner" not in (models or {})
        return create_gecko(
            self.tools,
            model=model,
            models=spoken,
            base_url=base_url,
            timeout_s=timeout_s,
            context=self._recorded_limits() if is_recorded else self.limits,
            checkpointer=checkpointer,
        )

    def _recorded_limits(self) -> GeckoContext:
        """No more rounds than a planner's replies are written for: the others could only say that there are none."""
        attempts = max(len(turn.replies.get("planner", ())) for turn in self.turns)
        rounds = ceil(attempts / self.limits.parallel_attempts)
        return self.limits.model_copy(update={"max_retries": min(self.limits.max_retries, rounds - 1)})

    def _check_spoken(self, models: Mapping[Role, Model]) -> None:
        for number, turn in enumerate(self.turns):
            here = f"{self.where}: turns[{number}]"
            if "planner" not in models and not turn.replies.get("planner"):
                raise ScenarioError(
                    f"{here}.replies: nobody plans: write replies for the planner, or name a model (--model)"
                )
            if not turn.checklist and "checklist" not in models and not turn.replies.get("checklist"):
                raise ScenarioError(
                    f"{here}: nobody says what must hold: give it a checklist, or name a model (--model)"
                )
