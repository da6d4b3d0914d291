"""Run many conversations through a `map`; each finished one is saved, so that a stopped run can be resumed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...conversation.agent import AgentLike, read_agent
from ...conversation.milestones.measures import check_installed
from ...conversation.outside import LeftWorld
from ...conversation.user import UserLike
from ...conversation.verdicts import read_appended
from ...errors import GeckoError
from ...models.answer import error_text
from ...models.cache import forget_replies, of_item
from ...models.factory import PROVIDERS, Models
from ...state import VERSION, JsonObject
from ...tools.reading import find_module, load_name
from ...values.digest import digest
from ...values.mapping import Map, Work
from .. import Scenario
from .run import describe_case, run_case

PATTERN = "*.gecko.yaml"


def find_cases(places: Sequence[str | Path]) -> list[Path]:
    """Return the scenario files among files and folders (`*.gecko.yaml`, recursively), each once, in order.

    Raises:
        GeckoError: A place does not exist, or a folder has none.
    """
    found: list[Path] = []
    for place in map(Path, places):
        if not place.exists():
            raise GeckoError(f"{place}: no such file or folder")
        files = sorted(place.rglob(PATTERN)) if place.is_dir() else [place]
        if not files:
            raise GeckoError(f"{place}: no {PATTERN} inside: a case is a scenario with a user (docs/conversations.md)")
        found += [file for file in files if file not in found]
    return found


def load_agent(name: str) -> AgentLike:
    """Return the agent of a name: `module:factory`, `provider:name`, or the address of a server.

    The working folder is searched first, so `module` may be a file there.

    Raises:
        GeckoError: The name is none of these, or the module cannot be imported or has no such attribute.
    """
    module, _, attribute = name.partition(":")
    if written := find_module(name) or (f"{name}:NAME" if name.replace(".", "").isidentifier() else ""):
        raise GeckoError(f"agent {name!r}: write {written}, a function from tools to an agent, or provider:name")
    if not attribute.isidentifier() or module in PROVIDERS:
        return name
    return load_name(name, what="agent")  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A conversation to run."""

    scenario: Scenario
    content: str
    augmentation: str
    trial: int

    def key(self, setting: str) -> str:
        """Return its key in a file of finished conversations: a digest of its content and settings."""
        return digest([self.scenario.where, self.content, self.augmentation, self.trial, setting])


def plan_cases(files: Sequence[Path], augmentations: Sequence[str], trials: int) -> list[PlannedCase]:
    """Return all conversations, trial by trial.

    Raises:
        ScenarioError: A file is not a scenario, or has no user.
        GeckoError: There are milestones, and the extra `milestones` is not installed.
    """
    loaded = [(Scenario.load(file), file.read_text(encoding="utf-8")) for file in files]
    if without := next((scenario for scenario, _ in loaded if scenario.user is None), None):
        raise GeckoError(f"{without.where}: it has turns but no user: rehearse it with gecko-graph run")
    if any(scenario.goal.milestones or scenario.goal.minefields for scenario, _ in loaded):
        check_installed()
    return [
        PlannedCase(scenario, content, augmentation, trial)
        for trial in range(trials)
        for scenario, content in loaded
        for augmentation in augmentations
    ]


def read_finished(file: Path | None) -> dict[str, JsonObject]:
    """Return the finished conversations of a file by key. Raises GeckoError if it contains something else."""
    if file is None or not file.exists():
        return {}
    problem = "is not a finished conversation: choose another file"
    return dict(read_appended(file, lambda entry: (entry["key"], entry["record"]), problem))


@dataclass
class CaseWork(Work[PlannedCase, JsonObject]):
    """Runs a conversation and returns its record; an error also gives a record.

    Args:
        agent: An agent, or its name for `load_agent`.
        models: The models by role.
        user: Who plays the user; by default the scenario's script.
        greet: Called before each conversation with a human user.
    """

    agent: AgentLike
    models: Models
    user: UserLike | None = None
    greet: Callable[[PlannedCase], None] | None = None

    def begin(self) -> Callable[[PlannedCase], JsonObject]:
        """Load the agent."""
        agent = read_agent(load_agent(self.agent) if isinstance(self.agent, str) else self.agent, self.models)
        return partial(self._hold, self.models.keeping(agent))

    def _hold(self, agent: AgentLike, one: PlannedCase) -> JsonObject:
        if self.greet:
            self.greet(one)
        more: Any = {"augmentation": one.augmentation or None, "trial": one.trial}
        try:
            with of_item(one.key("")):
                return run_case(one.scenario, agent, user=self.user, model=self.models, **more).record
        except LeftWorld:  # all other cases would fail alike
            raise
        except Exception as error:  # noqa: BLE001 - agents may raise anything
            return failed_record(one, error)

    def lost(self, item: PlannedCase) -> JsonObject:
        """Return the record of a conversation that killed two worker processes."""
        return failed_record(item, GeckoError("its process died twice"))


def run_cases(
    planned: Sequence[PlannedCase], work: CaseWork, *, setting: str, file: Path | None, map: Map = map
) -> Iterator[JsonObject]:
    """Yield the record of each conversation, those already in the file first.

    Records are appended to the file, if any, one JSON object per line. Model replies are cached beside it until all
    conversations are finished. Conversations that finished with other settings run again.
    """
    finished = read_finished(file)
    yield from (finished[key] for each in planned if (key := each.key(setting)) in finished)
    left = [each for each in planned if each.key(setting) not in finished]
    replies = Path(f"{file}.replies")
    if file is not None:
        work = replace(work, models=work.models.caching(replies))
    for each, record in zip(left, map(work, left), strict=True):
        if file is not None and record["score"]["end"] != "failed":
            entry = json.dumps({"key": each.key(setting), "record": record}, ensure_ascii=False)
            try:
                with file.open("a", encoding="utf-8") as opened:
                    opened.write(f"{entry}\n")
            except OSError as error:
                raise GeckoError(f"{file}: cannot be written: {error.strerror}") from None
        yield record
    forget_replies(replies)


def failed_record(planned: PlannedCase, error: Exception) -> JsonObject:
    """Return the record of a conversation that could not be run."""
    score: JsonObject = {
        "v": VERSION,
        "similarity": 0.0,
        "status": "failed",
        "end": "failed",
        "reason": error_text(error),
    }
    empty: Mapping[str, Any] = {"milestones": [], "minefields": [], "leaks": [], "usage": {}}
    counts = dict.fromkeys(("turns", "calls", "failed_calls", "races"), 0)
    head = describe_case(planned.scenario, planned.augmentation, planned.trial)
    return {**head, "idle": None, "score": {**score, **empty, **counts}, "messages": []}
