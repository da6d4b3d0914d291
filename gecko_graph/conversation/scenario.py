"""Scenarios: the one form of a case; a file describes tools, start state, turns or a user, checklists or milestones.

```yaml
version: 1
name: file-the-report
tools: files.openapi.yaml         # beside the scenario; or module:NAME, an OpenAPI document or function dicts
contracts: more.yaml              # optional: contracts of these tools, or a list of such files
state: {cwd: [documents]}
turns:
  - user: Make a folder temp.
    checklist:
      - {id: temp, description: there is a folder temp, check: "'temp' in state.tree"}
    replies:                      # for the planner one list per attempt, for other roles one reply per question
      planner:
        - [{call: mkdir, args: {name: temp}}, {say: Done.}]
limits: {max_retries: 3}          # any field of GeckoContext
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

from langgraph.types import Checkpointer

from ..context import GeckoContext
from ..contracts.language.expression import Origin
from ..contracts.language.sandbox import Scope
from ..derive.contracts import with_derived
from ..errors import ContractError, EvaluationFailed, GeckoError, ScenarioError, ToolkitError
from ..graph import Gecko, compose
from ..models.factory import Listener, Models, ModelsLike
from ..models.node import NODE_STATE
from ..models.recorded import RecordedModel
from ..schemas.strict import check_schema
from ..state import ROLES, ChecklistItem, Json, JsonObject, Role
from ..tools import Toolkit
from ..tools.reading import is_in_module, read_toolkit
from ..values.digest import clone
from ..values.documents import read_document
from ..values.places import map_texts
from ..world.rung import answered_calls
from ..world.state_rules import StateRules
from ..world.turn import undo_message
from ..world.world import check_setup
from .faults import Fault
from .milestones.format import build_goal
from .milestones.goal import Goal
from .milestones.measures import Verdicts
from .scenario_format import (
    ScenarioEntry,
    check_calls,
    check_names,
    compile_reference,
    read_scenario,
)
from .user import UserEntry
from .verdicts import read_verdicts


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the conversation.

    Args:
        user: The user's message.
        checklist: Conditions to check at the end of the turn; if empty, a model writes them.
        replies: Recorded replies by role, used if no model is given.
        undo: Whether the user asks to undo the calls of the previous turn.
    """

    user: str
    checklist: tuple[ChecklistItem, ...] = ()
    replies: Mapping[Role, Sequence[Json]] = field(default_factory=dict)
    undo: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A case: a task in turns, a conversation to test an agent, or a task to train one.

    Args:
        name: Its name, and that of the thread that it runs on.
        tools: The tools of agent and user.
        state: The start state of the task.
        limits: Knobs of the rehearsal, or of the world's answers.
        turns: The user's messages, with their checklists and replies; empty if there is a `user`.
        user: The simulated user of a conversation.
        goal: Milestones and minefields.
        solution: Calls, `{"name", "args"}`, that lead from the start state to the goal.
        needs: Names of the tools that the task needs; the others may distract (`augment.py`).
        faults: Faults of these tools (`faults.py`).
        categories: The groups of this conversation in a report.
        verdicts: The verdicts of the role `claim_judge` by `claim_key`: verdict, sentence, reason.
        references: Whether its replies contain references (`fill`).
        continues: Whether it resumes a thread without repeating the start state.
        where: Its source, for messages.
        tools_file: The file that its tools were read from, if they are not inline.
        content: The content that it was read from by `load` or `from_dict`, as in a file.
    """

    name: str
    tools: Toolkit
    state: JsonObject = field(default_factory=dict)
    limits: GeckoContext = field(default_factory=GeckoContext)
    turns: tuple[Turn, ...] = ()
    user: UserEntry | None = None
    goal: Goal = field(default_factory=Goal)
    solution: tuple[JsonObject, ...] = ()
    needs: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    categories: tuple[str, ...] = ()
    verdicts: Verdicts = field(default_factory=dict)
    references: bool = False
    continues: bool = False
    where: str = "scenario"
    tools_file: Path | None = None
    content: JsonObject = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, path: str | Path, *, allow_outside: bool = False) -> Scenario:
        """Read a scenario from a YAML or JSON file; for a conversation, also the claim verdicts beside it.

        Args:
            path: The file.
            allow_outside: Whether tools may be read from outside the scenario's folder.

        Raises:
            ScenarioError: The file is missing, broken or incomplete; the message names file and place.
            ToolkitError: Its tools cannot be read.
        """
        file = Path(path)
        try:
            document = read_document(file)
        except ToolkitError as error:
            raise ScenarioError(str(error)) from None
        read = cls.from_dict(document, where=str(file), folder=file.parent, allow_outside=allow_outside)
        return replace(read, verdicts=read_verdicts(file)) if read.user else read

    @classmethod
    def from_dict(
        cls,
        data: Any,
        *,
        where: str = "scenario",
        folder: str | Path = ".",
        allow_outside: bool = False,
        tools: Toolkit | None = None,
    ) -> Scenario:
        """Read a scenario from plain JSON values.

        Args:
            data: The content of a scenario's file.
            where: Its name in messages.
            folder: The folder that a path in `tools` or `contracts` is relative to.
            allow_outside: Whether such a path may lead out of the folder.
            tools: Tools to use as they are, instead of those of the file.

        Raises:
            ScenarioError: Something is wrong; the message names the place.
            ToolkitError: Its tools cannot be read.
            StateError: Its state breaks the tools' schema or invariants.
        """
        entry = read_scenario(data, where=where)
        every, tools, file = (
            _read_tools(entry, Path(folder), where, allow_outside) if tools is None else (tools, tools, None)
        )
        check_names(tools, entry.needs, where=f"{where}: needs")
        check_calls(tools, entry.milestones, where=f"{where}: milestones")
        check_calls(every, entry.minefields, where=f"{where}: minefields")
        check_names(tools, [call.name for call in entry.solution], where=f"{where}: solution")
        if entry.state:
            StateRules.of(tools).check_start(entry.state, what=f"{where}: state")
        return cls(
            name=entry.name,
            tools=tools,
            state=entry.state,
            turns=tuple(Turn(turn.user, turn.items(), turn.replies) for turn in entry.turns),
            limits=entry.limits,
            where=where,
            tools_file=file,
            references=entry.references,
            user=entry.user,
            goal=build_goal(entry.milestones, entry.minefields, entry.state),
            solution=tuple(call.model_dump() for call in entry.solution),
            categories=tuple(entry.categories),
            needs=tuple(entry.needs),
            faults=tuple(entry.faults),
            content=data,
        )

    @property
    def words(self) -> str:
        """The user's first message in a conversation; "" for a task in turns."""
        return self.user.opening or self.user.goal if self.user else ""

    def models(self) -> Models:
        """Return a recorded model for each role that the scenario has replies for."""
        turns = [{str(role): replies for role, replies in turn.replies.items()} for turn in self.turns]
        model = RecordedModel(turns=turns, fill=fill if self.references else None)
        roles = dict.fromkeys(role for turn in self.turns for role, replies in turn.replies.items() if replies)
        return Models().replace(**dict.fromkeys(roles, model))

    def inputs(self, turn: int = 0) -> dict[str, Any]:
        """Return the graph's input for a turn, counted from 0; only turn 0 includes the task state."""
        said = undo_message(self.turns[turn].user) if self.turns[turn].undo else ("user", self.turns[turn].user)
        values: dict[str, Any] = {"messages": [said]}
        if turn == 0 and self.state:
            values["task_state"] = clone(self.state)
        if self.turns[turn].checklist:
            values["checklist"] = [dict(item) for item in self.turns[turn].checklist]
        return values

    def gecko(
        self, *, model: ModelsLike = None, checkpointer: Checkpointer = None, listen: Listener | None = None
    ) -> Gecko:
        """Return the graph that rehearses this scenario.

        Args:
            model: Replaces all recorded replies; `Models` replaces those of its roles.
            checkpointer: Saves the checkpoints.
            listen: Called with each dialogue with a model, as by a recorder.

        Raises:
            ScenarioError: A turn has no planner, or no checklist and no model to write one.
            ModelError: A model cannot be built.
        """
        models, knobs = self.bind(model)
        heard = models.listening(listen) if listen else models
        return compose(self.tools, models=heard, default=knobs, checkpointer=checkpointer)

    def bind(self, model: ModelsLike = None) -> tuple[Models, GeckoContext]:
        """Return the models of a run, with recorded replies for the roles that are not given, and its knobs.

        Raises:
            ScenarioError: As for `gecko`.
        """
        if self.user:
            raise ScenarioError(f"{self.where}: it is a conversation: use gecko-graph test or create_conversation")
        given, recorded = Models.of(model), self.models()
        self._check_replies(given)
        bound = given.replace(**{role: recorded.get(role) for role in ROLES if not given.has(role)})
        return bound, check_setup(self.tools, self.limits if given.has("planner") else self._recorded_limits())

    def _recorded_limits(self) -> GeckoContext:
        """Return the limits with no more rounds than there are recorded planner replies."""
        attempts = max(len(turn.replies.get("planner", ())) for turn in self.turns)
        rounds = ceil(attempts / self.limits.parallel_attempts)
        return self.limits.model_copy(update={"max_retries": min(self.limits.max_retries, rounds - 1)})

    def _check_replies(self, given: Models) -> None:
        for number, turn in enumerate(self.turns):
            needed: dict[Role, Sequence[Any]] = {"planner": (), "checklist": turn.checklist}
            for role, items in needed.items():
                if not items and not given.has(role) and not turn.replies.get(role):
                    raise ScenarioError(
                        f"{self.where}: turns[{number}].replies: no model configured for role {role!r}: record them, "
                        "or pass --model"
                    )


def _read_tools(
    entry: ScenarioEntry, folder: Path, where: str, allow_outside: bool
) -> tuple[Toolkit, Toolkit, Path | None]:
    """Return all tools of a file, those that are left `without` some, and the tools' file if nothing was changed."""
    places: dict[str, Any] = {"folder": folder, "where": where, "allow_outside": allow_outside}
    read = toolkit_of(entry.tools, **places)
    every = _add_rules(read, entry, places)  # a minefield may name a tool that `without` removes
    left = _leave_out(every, entry.without, where) if entry.without else every
    is_file = isinstance(entry.tools, str) and not is_in_module(entry.tools)
    derived = with_derived(left, entry.state, derive="derived" in entry.limits.ladder)
    return every, derived, folder / entry.tools if is_file and left is read else None


def _add_rules(tools: Toolkit, entry: ScenarioEntry, places: Mapping[str, Any]) -> Toolkit:
    """Return tools with the file's contracts and state schema."""
    if entry.contracts is not None:
        tools = add_contracts(tools, entry.contracts, **places)
    if entry.state_schema is not None:
        where = places["where"]
        lines = Origin(where, ("state_schema",)).find_line
        schema = check_schema(entry.state_schema, where=f"{where}: state_schema", line_of=lines)
        tools = tools.with_contracts({"state": schema})
    return tools


def _leave_out(tools: Toolkit, names: Sequence[str], where: str) -> Toolkit:
    check_names(tools, names, where=f"{where}: without")
    if not (kept := [name for name in tools.names if name not in names]):
        raise ScenarioError(f"{where}: without: no tool is left")
    return tools.select(names=kept)


def fill(reply: Json, where: str, attempt: int) -> Json:
    """Return a recorded reply with its references filled in from the run of the asking node.

    `{{ calls[0].result.id }}` stands for the result of an earlier call of the attempt, so that a scenario plays with
    any seed. `calls` are the calls that ran, as in a check.

    Raises:
        EvaluationFailed: A reference is malformed or names nothing in the run.
    """
    known = cache(lambda: Scope({"calls": made_calls(NODE_STATE.get(), attempt)}))

    def fill_text(text: str) -> Json:
        try:
            return compile_reference(text, where).evaluate(known()) if "{{" in text else text
        except ContractError as error:
            raise EvaluationFailed(str(error)) from None

    return map_texts(reply, fill_text, keys=True)


def made_calls(state: Mapping[str, Any], attempt: int) -> list[JsonObject]:
    unjudged = state.get("bookkeeping", {}).get("attempts_to_judge", ())
    judged = (each["steps"] for each in unjudged if each["number"] == attempt)
    return answered_calls(state["steps"] if state.get("steps") is not None else next(judged, ()))


def toolkit_of(tools: Any, *, folder: Path, where: str, allow_outside: bool = False) -> Toolkit:
    """Read the tools of a scenario: a path relative to its folder, `module:NAME`, a document, or function dicts.

    Raises:
        ScenarioError: There is no such file or name, or it is outside the folder and `allow_outside` is False.
        ToolkitError: They cannot be read.
    """
    if is_in_module(tools) and not (folder / tools).exists():
        try:
            return read_toolkit(tools, folder=folder)
        except GeckoError as error:
            raise ScenarioError(f"{where}: {error}") from None
    if isinstance(tools, str):
        return read_toolkit(_find_file(tools, "tools", folder=folder, where=where, allow_outside=allow_outside))
    try:
        return Toolkit.from_openapi(tools) if isinstance(tools, dict) else Toolkit.from_tools(tools)
    except ToolkitError as error:
        raise ToolkitError(f"{where}: tools: {error}") from None


def add_contracts(
    toolkit: Toolkit, contracts: Any, *, folder: Path, where: str, allow_outside: bool = False
) -> Toolkit:
    """Add a scenario's contracts: a path relative to its folder, the content of such a file, or a list of both.

    Raises:
        ScenarioError: There is no such file, or it is outside the folder and `allow_outside` is False.
        ToolkitError: They cannot be read, or name a tool that the toolkit does not have.
        ContractError: A contract is wrong.
    """
    for one in contracts if isinstance(contracts, list) else [contracts]:
        if not isinstance(one, str | dict):
            raise ScenarioError(f"{where}: contracts: expected a path or an object, got {type(one).__name__}")
        if isinstance(one, str):
            one = _find_file(one, "contracts", folder=folder, where=where, allow_outside=allow_outside)
        toolkit = toolkit.with_contracts(one)
    return toolkit


def _find_file(name: str, key: str, *, folder: Path, where: str, allow_outside: bool) -> Path:
    file = folder / name
    try:
        is_inside = file.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # too long, a loop of links, or a null character
        raise ScenarioError(f"{where}: {key}: {name!r} is not a valid file name") from None
    if not allow_outside and not is_inside:
        raise ScenarioError(
            f"{where}: {key}: {name} is outside the scenario's folder; to read it use --allow-outside, or "
            "allow_outside=True in Python"
        )
    if not file.is_file():
        raise ScenarioError(f"{where}: {key}: no such file: {file} (paths are relative to the scenario's folder)")
    return file
