"""Many conversations: found, held several at once, each kept in a file once done, so that a stopped run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from ...conversation.agent import AgentLike
from ...conversation.milestones.measures import check_installed
from ...conversation.outside import LeftWorld
from ...errors import GeckoError
from ...models.answer import error_text
from ...models.factory import PROVIDERS
from ...state import VERSION, JsonObject
from ...values.digest import digest
from .. import Scenario
from ..tools import find_module, load_name
from .result import describe_case

Run = Callable[["Planned"], JsonObject]
Part = TypeVar("Part")
Done = TypeVar("Done")
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
        """Return what it is found by in a file of finished ones: its content, and what it is held with."""
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


def run_cases(
    planned: Sequence[Planned], run: Run, *, setting: str, file: Path | None, at_once: int
) -> Iterator[JsonObject]:
    """Yield the record of each conversation as it is done, those of the file first; an error becomes a record too.

    Records are added to the file, if any, one JSON object a line. Finished ones of another setting are held again.
    """
    finished = read_finished(file)
    known = [finished[key] for each in planned if (key := each.key(setting)) in finished]
    yield from known
    left = [each for each in planned if each.key(setting) not in finished]
    for each, future in run_at_once(left, run, at_once):
        error = future.exception()
        if isinstance(error, LeftWorld):  # so will all others
            raise error
        record = future.result() if error is None else failed_record(each, error)
        if file is not None and record["score"]["end"] != "failed":
            entry = json.dumps({"key": each.key(setting), "record": record}, ensure_ascii=False)
            try:
                with file.open("a", encoding="utf-8") as opened:
                    opened.write(f"{entry}\n")
            except OSError as error:
                raise GeckoError(f"{file}: cannot be written: {error.strerror}") from None
        yield record


def run_at_once(left: Iterable[Part], run: Callable[[Part], Done], at_once: int) -> Iterator[tuple[Part, Future[Done]]]:
    """Yield each part with what its run in a thread came to, as they are done, so many at once."""
    waiting = iter(left)
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="gecko-graph")
    try:
        futures = {pool.submit(run, each): each for each in islice(waiting, at_once)}
        while futures:
            for future in wait(futures, return_when=FIRST_COMPLETED).done:
                each = futures.pop(future)
                futures.update((pool.submit(run, one), one) for one in islice(waiting, 1))
                yield each, future
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def failed_record(planned: Planned, error: BaseException) -> JsonObject:
    """Return the record of a conversation that could not be held. Raises what is no ordinary error."""
    if not isinstance(error, Exception):
        raise error
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
