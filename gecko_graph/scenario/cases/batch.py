"""Many conversations: found, held by a `map`, each kept in a file once done, so that a stopped run goes on."""

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
from ...errors import GeckoError
from ...models.answer import error_text
from ...models.cache import forget_replies, of_item
from ...models.factory import PROVIDERS, Models
from ...state import VERSION, JsonObject
from ...values.digest import digest
from ...values.mapping import Map, Work
from .. import Scenario
from ..tools import find_module, load_name
from .run import describe_case, run_case

PATTERN = "*.gecko.yaml"


def find_cases(places: Sequence[str | Path]) -> list[Path]:
    """Return the scenario files of folders (`*.gecko.yaml`, also in folders below) and files, each once, in order.

    Raises:
        GeckoError: A place does not exist, or a folder has none.
    """
    found: list[Path] = []
    for place in map(Path, places):
        if not place.exists():
            raise GeckoError(f"{place}: no such file or folder")
        files = sorted(place.rglob(PATTERN)) if place.is_dir() else [place]
        if not files:
            raise GeckoError(f"{place}: no {PATTERN} in it: a case is a scenario with a user (docs/conversations.md)")
        found += [file for file in files if file not in found]
    return found


def load_agent(name: str) -> AgentLike:
    """Return the agent of a name: `module:factory`, `provider:name`, or the address of a server.

    `module` may be a file beside the caller: the working folder is searched first.

    Raises:
        GeckoError: It is none of these; the module cannot be imported, or has no such attribute.
    """
    module, _, attribute = name.partition(":")
    if written := find_module(name) or (f"{name}:NAME" if name.replace(".", "").isidentifier() else ""):
        raise GeckoError(f"agent {name!r}: write {written}, a function from tools to an agent, or provider:name")
    if not attribute.isidentifier() or module in PROVIDERS:
        return name
    return load_name(name, what="agent")  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Planned:
    """A conversation to be held."""

    scenario: Scenario
    content: str
    augmentation: str
    trial: int

    def key(self, setting: str) -> str:
        """Return its key in a file of finished conversations: its content, and the settings of its run."""
        return digest([self.scenario.where, self.content, self.augmentation, self.trial, setting])


def plan_cases(files: Sequence[Path], augmentations: Sequence[str], trials: int) -> list[Planned]:
    """Return all conversations, trial by trial.

    Raises:
        ScenarioError: A file is no scenario, or has no user.
        GeckoError: There are milestones, and the extra `milestones` is not installed.
    """
    loaded = [(Scenario.load(file), file.read_text(encoding="utf-8")) for file in files]
    if without := next((scenario for scenario, _ in loaded if scenario.user is None), None):
        raise GeckoError(f"{without.where}: it has turns and no user: to rehearse it, gecko-graph run")
    if any(scenario.goal.milestones or scenario.goal.minefields for scenario, _ in loaded):
        check_installed()
    return [
        Planned(scenario, content, augmentation, trial)
        for trial in range(trials)
        for scenario, content in loaded
        for augmentation in augmentations
    ]


def read_finished(file: Path | None) -> dict[str, JsonObject]:
    """Return the finished conversations of a file by key; a line that was cut off is left out.

    Raises:
        GeckoError: The file holds something else.
    """
    if file is None or not file.exists():
        return {}
    found: dict[str, JsonObject] = {}
    lines = file.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            found[entry["key"]] = entry["record"]
        except (ValueError, TypeError, KeyError):
            if number < len(lines):
                raise GeckoError(f"{file}: line {number} is no finished conversation: give another file") from None
    return found


@dataclass
class HoldCase(Work[Planned, JsonObject]):
    """The work: a conversation to be held to its record; an error becomes a record too.

    Args:
        agent: An agent, or its name as `load_agent` takes it.
        models: The models by role.
        user: Who plays the user; the scenario's script where left out.
        greet: Called before each conversation: with a person as its user.
    """

    agent: AgentLike
    models: Models
    user: UserLike | None = None
    greet: Callable[[Planned], None] | None = None

    def begin(self) -> Callable[[Planned], JsonObject]:
        """Load the agent."""
        agent = read_agent(load_agent(self.agent) if isinstance(self.agent, str) else self.agent, self.models)
        return partial(self._hold, self.models.keeping(agent))

    def _hold(self, agent: AgentLike, one: Planned) -> JsonObject:
        if self.greet:
            self.greet(one)
        more: Any = {"augmentation": one.augmentation or None, "trial": one.trial}
        try:
            with of_item(one.key("")):
                return run_case(one.scenario, agent, user=self.user, model=self.models, **more).record
        except LeftWorld:  # so will all others
            raise
        except Exception as error:  # noqa: BLE001 - the boundary to agents
            return failed_record(one, error)

    def lost(self, item: Planned) -> JsonObject:
        """Return the record of a conversation that has killed two workers."""
        return failed_record(item, GeckoError("its process died, twice"))


def run_cases(
    planned: Sequence[Planned], work: HoldCase, *, setting: str, file: Path | None, map: Map = map
) -> Iterator[JsonObject]:
    """Yield the record of each conversation, those of the file first.

    Records are added to the file, if any, one JSON object a line; replies of models are kept beside it until all are
    there. Finished ones of another setting are held again.
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


def failed_record(planned: Planned, error: Exception) -> JsonObject:
    """Return the record of a conversation that could not be held."""
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
