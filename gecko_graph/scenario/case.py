"""Scenarios: one file for a whole case. Tools, state, turns, checklists, limits, and recorded replies of the models.

```yaml
version: 1
name: file-the-report
tools: files.openapi.yaml         # beside the scenario; or an OpenAPI document, or a list of function dicts, inline
contracts: more.yaml              # optional: contracts of these tools, or a list of such files
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

from ..agent.graph import create_gecko_agent
from ..context import GeckoContext
from ..contracts.language.location import Origin
from ..conversation.milestones.format import build_goal
from ..conversation.milestones.goal import Goal
from ..conversation.users import UserEntry
from ..errors import ScenarioError, ToolkitError
from ..graph import Gecko, Model, compose
from ..models.factory import Listener, Models
from ..models.recorded import RecordedModel
from ..schemas.well_formed import check_schema
from ..state import ChecklistItem, Json, JsonObject, Role
from ..tools import Toolkit
from ..values.digest import clone
from ..values.documents import read_document
from ..world.state_rules import StateRules
from ..world.world import check_setup
from .format import read_scenario
from .references import fill
from .tools import add_contracts, check_calls, check_names, toolkit_of


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the conversation.

    Args:
        user: The user's message.
        checklist: What must hold at the end; empty if a model writes it.
        replies: Recorded replies by role, used where no model is given.
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
        turns: The user's messages, with their checklists and replies.
        limits: The run's knobs.
        where: Its source, for messages.
        tools_file: The file that its tools were read from, if they are not inline.
        continues: True if it resumes a thread whose start state it does not repeat.
        references: Whether its replies hold references (`references.py`).
        user: The simulated user of a conversation, which has no turns.
        goal: Milestones and minefields of a conversation.
        categories: What a report groups conversations by.
        needs: Names of the tools that the task needs; the others may distract (`toolkit/augment.py`).
    """

    name: str
    tools: Toolkit
    state: JsonObject
    turns: tuple[Turn, ...]
    limits: GeckoContext
    where: str = "scenario"
    tools_file: Path | None = None
    continues: bool = False
    references: bool = False
    user: UserEntry | None = None
    goal: Goal = field(default_factory=Goal)
    categories: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @classmethod
    def load(cls, path: str | Path, *, allow_outside: bool = False) -> Scenario:
        """Read a scenario from a YAML or JSON file.

        Args:
            path: The file.
            allow_outside: Also read a file of tools outside the scenario's folder.

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
            data: The content of a scenario's file.
            where: Its name in messages.
            folder: The folder that a path in `tools` or `contracts` is relative to.
            allow_outside: Also accept a path that leads out of the folder.

        Raises:
            ScenarioError: Something is wrong; the message names the place.
            ToolkitError: Its tools cannot be read.
            StateError: Its state breaks the tools' schema or invariants.
        """
        entry = read_scenario(data, where=where)
        tools = toolkit_of(entry.tools, folder=Path(folder), where=where, allow_outside=allow_outside)
        file = Path(folder) / entry.tools if isinstance(entry.tools, str) else None
        if entry.contracts is not None:
            tools = add_contracts(tools, entry.contracts, folder=Path(folder), where=where, allow_outside=allow_outside)
            file = None
        if entry.state_schema is not None:
            lines = Origin(where, ("state_schema",)).find_line
            schema = check_schema(entry.state_schema, where=f"{where}: state_schema", line_of=lines)
            tools, file = tools.with_contracts({"state": schema}), None
        every = tools  # a minefield may name a tool that is withheld
        if entry.without:
            check_names(tools, entry.without, where=f"{where}: without")
            if not (kept := [name for name in tools.names if name not in entry.without]):
                raise ScenarioError(f"{where}: without: expected some tools to be left")
            tools, file = tools.select(names=kept), None
        check_names(tools, entry.needs, where=f"{where}: needs")
        check_calls(tools, entry.milestones, where=f"{where}: milestones")
        check_calls(every, entry.minefields, where=f"{where}: minefields")
        if entry.state:
            StateRules.of(tools).check_start(entry.state, what=f"{where}: state")
        turns = tuple(Turn(turn.user, turn.items(), turn.replies) for turn in entry.turns)
        return cls(
            entry.name, tools, entry.state, turns, entry.limits, where, file, references=entry.references,
            user=entry.user, goal=build_goal(entry.milestones, entry.minefields, entry.state),
            categories=tuple(entry.categories), needs=tuple(entry.needs),
        )  # fmt: skip

    def toolkit(self) -> Toolkit:
        """Return the scenario's tools."""
        return self.tools

    def context(self) -> GeckoContext:
        """Return the scenario's limits."""
        return self.limits

    def models(self) -> dict[Role, BaseChatModel]:
        """Return a recorded model for each role that the scenario has replies for."""
        turns = [{str(role): replies for role, replies in turn.replies.items()} for turn in self.turns]
        model = RecordedModel(turns=turns, fill=fill if self.references else None)
        roles = dict.fromkeys(role for turn in self.turns for role, replies in turn.replies.items() if replies)
        return dict.fromkeys(roles, model)

    def inputs(self, turn: int = 0) -> dict[str, Any]:
        """Return the graph's input for a turn, from 0; only the first holds the task state."""
        values: dict[str, Any] = {"messages": [("user", self.turns[turn].user)]}
        if turn == 0 and self.state:
            values["task_state"] = clone(self.state)
        if self.turns[turn].checklist:
            values["checklist"] = [dict(item) for item in self.turns[turn].checklist]
        return values

    def gecko(
        self,
        *,
        model: Model | None = None,
        models: Mapping[Role, Model] | None = None,
        base_url: str | None = None,
        timeout_s: float | None = None,
        checkpointer: Checkpointer = None,
        listen: Listener | None = None,
        acts: bool = False,
    ) -> Gecko:
        """Return the graph that rehearses this scenario.

        Args:
            model: Replaces every recorded reply.
            models: Replace single roles' recorded replies.
            base_url: Address of an OpenAI-compatible server, for models given as text.
            timeout_s: Seconds that a model given as text may take for a reply.
            checkpointer: Keeps the snapshots.
            listen: Each dialogue with a model is led through it, as by a recorder.
            acts: Return the agent, which asks about what it has rehearsed, and carries it out.

        Raises:
            ScenarioError: A turn has no planner, or no checklist and no model to write one.
            ModelError: A model cannot be built.
        """
        if self.user:
            raise ScenarioError(f"{self.where}: is a conversation: use gecko-graph test, or create_conversation")
        bound: dict[Role, Model] = {} if model is not None else dict(self.models())
        bound.update(models or {})
        if model is None:
            self._check_replies(models or {})
        is_recorded = model is None and "planner" not in (models or {})
        knobs = check_setup(self.tools, self._recorded_limits() if is_recorded else self.limits)
        if acts:
            return create_gecko_agent(
                self.tools, model=model, models=bound, context=knobs, base_url=base_url, checkpointer=checkpointer
            )
        clients = Models.bind(model, bound, base_url=base_url, timeout_s=timeout_s)
        heard = clients.listening(listen) if listen else clients
        return compose(self.tools, models=heard, default=knobs, checkpointer=checkpointer)

    def _recorded_limits(self) -> GeckoContext:
        """Return limits with no more rounds than there are recorded planner replies for."""
        attempts = max(len(turn.replies.get("planner", ())) for turn in self.turns)
        rounds = ceil(attempts / self.limits.parallel_attempts)
        return self.limits.model_copy(update={"max_retries": min(self.limits.max_retries, rounds - 1)})

    def _check_replies(self, models: Mapping[Role, Model]) -> None:
        for number, turn in enumerate(self.turns):
            here = f"{self.where}: turns[{number}]"
            if "planner" not in models and not turn.replies.get("planner"):
                raise ScenarioError(
                    f"{here}.replies: no model configured for role 'planner': write replies, or give a --model"
                )
            if not turn.checklist and "checklist" not in models and not turn.replies.get("checklist"):
                raise ScenarioError(
                    f"{here}: no checklist, and no model configured for role 'checklist': write one, or give a --model"
                )
