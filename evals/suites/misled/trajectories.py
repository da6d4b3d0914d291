"""The cases in kinds/*.yaml: the request, the misleading trajectory, and the expected outcome.

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
before another (`+0`). A document with `short: SETTING` writes a case as one call with its arguments, the twin's
`instead`. The recorded judge believes everything: it calls every item that it is asked a success.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from gecko_graph import GeckoContext, Tool, Toolkit
from gecko_graph.scenario import Scenario, Turn
from gecko_graph.state import ChecklistItem, Json, JsonObject, NoteKind
from gecko_graph.values.digest import clone
from gecko_graph.values.documents import read_document

from ...harness.options import ROOT, EvalError
from . import functions

FOLDER = Path(__file__).with_name("kinds")
MARKS: tuple[NoteKind, ...] = ("made_up", "unasked", "unclear", "unsupported", "ambiguous")
SPOKEN = ("planner", "simulator", "bootstrapper")
JUDGE_ONLY = "judge only"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A recorded attempt, the item that a rule must find failed, or the mark that the verdict must have, and its text.

    A twin is legitimate: it must be accepted without a mark. Its id ends in `:twin`.
    """

    id: str
    kind: str
    refused: str
    marked: str
    names: str
    legitimate: bool
    scenario: Scenario


def trajectories() -> Iterator[Trajectory]:
    for file in sorted(FOLDER.glob("*.yaml")):
        document = read_document(file)
        for case in document["cases"]:
            case = _written_out(document["short"], case) if "call" in case else case
            yield _misled(document["kind"], case)
            if "twin" in case:
                yield _twin(document["kind"], case)


def _misled(kind: str, case: Mapping[str, Any]) -> Trajectory:
    expect = {} if case["expect"] == JUDGE_ONLY else case["expect"]
    if not isinstance(expect, Mapping) or expect.keys() - {"refused", "marked", "names"}:
        raise EvalError(f"{case['id']}: expect: write refused, marked (and names), or {JUDGE_ONLY!r}")
    refused, marked, names = (str(expect.get(key, "")) for key in ("refused", "marked", "names"))
    if (refused and refused not in (case.get("checks") or {"goal": ""})) or (marked and marked not in MARKS):
        raise EvalError(f"{case['id']}: expect: {refused or marked} is neither a check nor a mark")
    return Trajectory(case["id"], kind, refused, marked, names, False, _scenario(case["id"], case))


def _written_out(setting: str, case: Mapping[str, Any]) -> Mapping[str, Any]:
    def call(args: Any) -> JsonObject:
        return {"call": case["call"], "args": args}

    done = {"status": "ok", "result": {"ok": True}, "patch": [{"op": "add", "path": "/done", "value": True}]}
    twin = {"twin": {"planner": {0: call(case["instead"])}}} if "instead" in case else {}
    shown = {"planner": [call(case["args"]), {"say": "Done."}], "simulator": [done]}
    return {"setting": setting, "goal": "what the user asked for is done", **shown, **twin, **case}


def _twin(kind: str, case: Mapping[str, Any]) -> Trajectory:
    ((role, change),) = case["twin"].items()
    ((place, reply),) = change.items()
    replies = list(case[role])
    at = int(place)
    if str(place).startswith("+"):
        replies.insert(at, reply)
    else:
        replies[at : at + 1] = [] if reply is None else [reply]
    name = f"{case['id']}:twin"
    return Trajectory(name, kind, "", "", "", True, _scenario(name, {**case, role: replies}))


def _scenario(name: str, case: Mapping[str, Any]) -> Scenario:
    setting = settings()[case["setting"]]
    turns = [*case.get("earlier", ()), case]
    state: JsonObject = clone(case.get("state", setting.state))
    limits = GeckoContext(**case.get("limits", {}))
    return Scenario(name=name, tools=setting.toolkit, state=state, turns=tuple(map(_turn, turns)), limits=limits)


def _turn(case: Mapping[str, Any]) -> Turn:
    items = _items(case)
    replies: dict[Any, Sequence[Json]] = {role: case[role] for role in SPOKEN if role in case}
    replies["planner"] = [replies["planner"]]
    replies["judge"] = [{"items": [{"id": item["id"], "status": "success"} for item in items]}]
    return Turn(case["user"], tuple(items), replies)


def _items(case: Mapping[str, Any]) -> list[ChecklistItem]:
    items: list[ChecklistItem] = [
        {"id": name, "description": f"rule {name}", "check": check} for name, check in case.get("checks", {}).items()
    ]
    return [*items, {"id": "goal", "description": case["goal"]}] if "goal" in case else items


FILE = Path(__file__).with_name("settings.yaml")
EXAMPLES = ROOT / "examples"


@dataclass(frozen=True, slots=True)
class Setting:
    """Tools, and the task state at the start of cases."""

    toolkit: Toolkit
    state: JsonObject


@cache
def settings() -> Mapping[str, Setting]:
    return {name: Setting(_toolkit(name, world), world["state"]) for name, world in read_document(FILE).items()}


def _toolkit(name: str, world: Mapping[str, Any]) -> Toolkit:
    if "examples" in world:
        return Toolkit.from_openapi(EXAMPLES / world["examples"])
    tools: Mapping[str, Mapping[str, Any]] = world["tools"]
    toolkit = Toolkit.from_tools(
        [_declared(name, one) for name, one in tools.items()], invariants=world.get("invariants", ()), title=name
    )
    real = {tool: getattr(functions, one["real"]) for tool, one in tools.items() if "real" in one}
    return toolkit.replace(*(replace(toolkit[tool], real=each) for tool, each in real.items())).open(*real)


def _declared(name: str, one: Mapping[str, Any]) -> Tool:
    takes = one.get("takes", {})
    parameters = {"type": "object", "properties": takes, "required": list(takes)}
    return Tool(
        {"name": name, "description": one["text"], "parameters": parameters},
        effect=one.get("does"),
        contract=one.get("contract"),
        simulate=getattr(functions, one["simulate"]) if "simulate" in one else None,
        result=one.get("gives"),
    )
