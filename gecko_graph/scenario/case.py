"""Scenarios: one file that describes a case: tools, state, turns, checklists, limits and recorded model replies.

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
from runpy import run_path
from typing import Any

from langgraph.types import Checkpointer

from ..agent.graph import create_gecko_agent
from ..context import GeckoContext
from ..contracts.language.expression import Origin
from ..contracts.language.sandbox import Scope
from ..conversation.milestones.format import build_goal
from ..conversation.user import Case
from ..derive.contracts import with_derived
from ..errors import ContractError, EvaluationFailed, ScenarioError, ToolkitError, did_you_mean
from ..graph import Gecko, compose
from ..models.factory import Listener, Models, ModelsLike
from ..models.node import NODE_STATE
from ..models.recorded import RecordedModel
from ..schemas.strict import check_schema
from ..state import ROLES, ChecklistItem, Json, JsonObject, Role
from ..tools import Toolkit
from ..values.digest import clone
from ..values.documents import read_document
from ..values.places import map_texts
from ..world.rung import answered_calls
from ..world.state_rules import StateRules
from ..world.turn import undo_message
from ..world.world import check_setup
from .format import ScenarioEntry, compile_reference, read_scenario
from .tools import add_contracts, check_calls, check_names, is_in_module, toolkit_of
from .verdicts import read_verdicts

FIRST = "files"
"""The example that `demo` runs by default."""


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
class Scenario(Case):
    """A whole case, checked when it is loaded by `load` or `from_dict`.

    Args:
        name: Its name, and that of the thread that it runs on.
        turns: The user's messages, with their checklists and replies.
        where: Its source, for messages.
        tools_file: The file that its tools were read from, if they are not inline.
        continues: Whether it resumes a thread without repeating the start state.
        references: Whether its replies contain references (`fill`).
        categories: The groups of this conversation in a report.
    """

    name: str
    turns: tuple[Turn, ...] = ()
    where: str = "scenario"
    tools_file: Path | None = None
    continues: bool = False
    references: bool = False
    categories: tuple[str, ...] = ()

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
        cls, data: Any, *, where: str = "scenario", folder: str | Path = ".", allow_outside: bool = False
    ) -> Scenario:
        """Read a scenario from plain JSON values.

        Args:
            data: The content of a scenario's file.
            where: Its name in messages.
            folder: The folder that a path in `tools` or `contracts` is relative to.
            allow_outside: Whether such a path may lead out of the folder.

        Raises:
            ScenarioError: Something is wrong; the message names the place.
            ToolkitError: Its tools cannot be read.
            StateError: Its state breaks the tools' schema or invariants.
        """
        entry = read_scenario(data, where=where)
        places: dict[str, Any] = {"folder": Path(folder), "where": where, "allow_outside": allow_outside}
        read = toolkit_of(entry.tools, **places)
        every = _add_rules(read, entry, places)  # a minefield may name a tool that `without` removes
        tools = _leave_out(every, entry.without, where) if entry.without else every
        check_names(tools, entry.needs, where=f"{where}: needs")
        check_calls(tools, entry.milestones, where=f"{where}: milestones")
        check_calls(every, entry.minefields, where=f"{where}: minefields")
        if entry.state:
            StateRules.of(tools).check_start(entry.state, what=f"{where}: state")
        is_file = isinstance(entry.tools, str) and not is_in_module(entry.tools)
        return cls(
            name=entry.name,
            tools=with_derived(tools, entry.state, derive="derived" in entry.limits.ladder),
            state=entry.state,
            turns=tuple(Turn(turn.user, turn.items(), turn.replies) for turn in entry.turns),
            limits=entry.limits,
            where=where,
            tools_file=Path(folder) / entry.tools if is_file and tools is read else None,
            references=entry.references,
            user=entry.user,
            goal=build_goal(entry.milestones, entry.minefields, entry.state),
            categories=tuple(entry.categories),
            needs=tuple(entry.needs),
            faults=tuple(entry.faults),
        )

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
        self,
        *,
        model: ModelsLike = None,
        checkpointer: Checkpointer = None,
        listen: Listener | None = None,
        acts: bool = False,
    ) -> Gecko:
        """Return the graph that rehearses this scenario.

        Args:
            model: Replaces all recorded replies; `Models` replaces those of its roles.
            checkpointer: Saves the checkpoints.
            listen: Called with each dialogue with a model, as by a recorder.
            acts: Return the agent, which asks about its rehearsed calls and then makes them.

        Raises:
            ScenarioError: A turn has no planner, or no checklist and no model to write one.
            ModelError: A model cannot be built.
        """
        if self.user:
            raise ScenarioError(f"{self.where}: it is a conversation: use gecko-graph test or create_conversation")
        given, recorded = Models.of(model), self.models()
        self._check_replies(given)
        bound = given.replace(**{role: recorded.get(role) for role in ROLES if not given.has(role)})
        knobs = check_setup(self.tools, self.limits if given.has("planner") else self._recorded_limits())
        if acts:
            return create_gecko_agent(self.tools, model=bound, context=knobs, checkpointer=checkpointer, derive=False)
        heard = bound.listening(listen) if listen else bound
        return compose(self.tools, models=heard, default=knobs, checkpointer=checkpointer)

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


# examples shipped with the package
# -------------------------------------------------------------------------------------


def examples() -> dict[str, Path]:
    """Return the shipped scenarios by the name of their folder, `FIRST` first.

    They are inside the package, or beside it in a source checkout.

    Raises:
        ScenarioError: They are missing; the installation is broken.
    """
    package = Path(__file__).resolve().parents[1]
    for place in (package / "examples", package.parent / "examples"):
        files = (file for file in sorted(place.glob("*/*.yaml")) if file.name.count(".") == 1)
        found = {file.parent.name: file for file in files}
        if FIRST in found:
            return {FIRST: found[FIRST], **found}
    raise ScenarioError(f"no examples in {package / 'examples'}: install gecko-graph again")


def shipped(name: str = FIRST) -> Scenario:
    """Load a shipped scenario. Raises ScenarioError if no example has this name."""
    known = examples()
    if name not in known:
        raise ScenarioError(f"unknown example {name!r}{did_you_mean(name, known)}; examples: {', '.join(known)}")
    return Scenario.load(known[name])


def order_service(*args: Any, **options: Any) -> Any:
    """Return the small real service of the example `order`; enter it with `with`."""
    return service_module()["OrderService"](*args, **options)


@cache
def service_module() -> dict[str, Any]:
    """Return the module `service.py` of the example `order`, which is beside the scenario and in no package."""
    return run_path(str(examples()["order"].with_name("service.py")))  # run_path writes no compiled file there
