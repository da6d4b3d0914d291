"""The cases in kinds/*.yaml: what is asked for, what is done instead, and what has to come of it.

```yaml
kind: silent failure
about: what the cases have in common
cases:
  - id: valve-without-pump
    misled: what is wrong, in a sentence
    setting: garden                       # of settings.yaml; `state:` replaces its state
    user: Water the north bed.
    goal: the north bed was watered       # an item without a check: the judge's
    checks: {open: state.beds.north.open == 20}
    planner: [{call: set_valve, args: {...}}, {say: Done.}]      # and `simulator:`, as in a scenario
    expect: {refused: open}               # or {marked: made_up, names: text in the mark}, or `judge only`
    twin: {planner: {+0: {call: pump_on}}}
```

A twin is the legitimate trajectory that differs by one step: one reply of one role replaced, left out (null), or put in
before another (`+0`). The recorded judge believes whatever it is told: it calls every item that it is asked a success.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gecko_graph import GeckoContext
from gecko_graph.documents import read_document
from gecko_graph.scenario import Scenario, Turn
from gecko_graph.state import ChecklistItem, Json, JsonObject
from gecko_graph.task_state.digest import clone

from ...harness.suite import EvalError
from .settings import settings

FOLDER = Path(__file__).with_name("kinds")
MARKS = ("made_up", "unasked_changes", "unclear")
SPOKEN = ("planner", "simulator", "bootstrapper")
JUDGE_ONLY = "judge only"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A recorded attempt and what has to become of it.

    Args:
        id: Its name; a twin's ends in `:twin`.
        kind: How it misleads.
        refused: The item that a rule must find failed; empty for none.
        marked: The verdict's mark that it must carry; empty for none.
        names: What the mark must speak of.
        legitimate: True for a twin: it must be accepted without a mark.
        scenario: What is played.
    """

    id: str
    kind: str
    refused: str
    marked: str
    names: str
    legitimate: bool
    scenario: Scenario

    @property
    def only_judge(self) -> bool:
        """True where no rule can see what is wrong."""
        return not (self.legitimate or self.refused or self.marked)


def trajectories() -> Iterator[Trajectory]:
    """All cases, each followed by its twin."""
    for file in sorted(FOLDER.glob("*.yaml")):
        document = read_document(file)
        for told in document["cases"]:
            yield _misled(document["kind"], told)
            if "twin" in told:
                yield _twin(document["kind"], told)


def _misled(kind: str, told: Mapping[str, Any]) -> Trajectory:
    expect = {} if told["expect"] == JUDGE_ONLY else told["expect"]
    if not isinstance(expect, Mapping) or expect.keys() - {"refused", "marked", "names"}:
        raise EvalError(f"{told['id']}: expect: write refused, marked (and names), or {JUDGE_ONLY!r}")
    refused, marked, names = (str(expect.get(key, "")) for key in ("refused", "marked", "names"))
    if (refused and refused not in told["checks"]) or (marked and marked not in MARKS):
        raise EvalError(f"{told['id']}: expect: {refused or marked} is neither a check nor a mark")
    return Trajectory(told["id"], kind, refused, marked, names, False, _scenario(told["id"], told))


def _twin(kind: str, told: Mapping[str, Any]) -> Trajectory:
    ((role, change),) = told["twin"].items()
    ((place, reply),) = change.items()
    said = list(told[role])
    at = int(place)
    if str(place).startswith("+"):
        said.insert(at, reply)
    else:
        said[at : at + 1] = [] if reply is None else [reply]
    name = f"{told['id']}:twin"
    return Trajectory(name, kind, "", "", "", True, _scenario(name, {**told, role: said}))


def _scenario(name: str, told: Mapping[str, Any]) -> Scenario:
    setting = settings()[told["setting"]]
    turns = [*told.get("earlier", ()), told]
    state: JsonObject = clone(told.get("state", setting.state))
    return Scenario(name, setting.toolkit, state, tuple(map(_turn, turns)), GeckoContext(**told.get("limits", {})))


def _turn(told: Mapping[str, Any]) -> Turn:
    items = _items(told)
    said: dict[Any, Sequence[Json]] = {role: told[role] for role in SPOKEN if role in told}
    said["planner"] = [said["planner"]]
    said["judge"] = [{"items": [{"id": item["id"], "status": "success"} for item in items]}]
    return Turn(told["user"], tuple(items), said)


def _items(told: Mapping[str, Any]) -> list[ChecklistItem]:
    items: list[ChecklistItem] = [
        {"id": name, "description": f"rule {name}", "check": check} for name, check in told.get("checks", {}).items()
    ]
    return [*items, {"id": "goal", "description": told["goal"]}] if "goal" in told else items
