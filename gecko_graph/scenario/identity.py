"""What a saved run was made from: digests of its tools, start state and turns, in the metadata of its checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

from langchain_core.messages import HumanMessage
from langgraph.types import StateSnapshot

from ..errors import ScenarioError
from ..models.formatting import text_of
from ..tools import Toolkit
from ..values.digest import digest
from .case import Scenario, Turn

TOOLS, START, TURNS = "gecko_tools", "gecko_start", "gecko_turns"


def describe_identity(scenario: Scenario) -> dict[str, str]:
    """Return the digests to keep with each checkpoint of a scenario's run."""
    turns = " ".join(_digest_turn(turn) for turn in scenario.turns)
    return {TOOLS: _digest_tools(scenario.tools), START: digest(scenario.state), TURNS: turns}


def check_same(scenario: Scenario, saved: StateSnapshot) -> None:
    """Check that a scenario is what a saved run was made from.

    Raises:
        ScenarioError: It is not; the message names what differs.
    """
    if differences := list(find_differences(scenario, saved)):
        raise ScenarioError(
            f"{scenario.where}: this is not what the saved run was made from; different: {', '.join(differences)}. "
            "Resume the run with the same files and options, or start another thread"
        )


def find_differences(scenario: Scenario, saved: StateSnapshot) -> Iterator[str]:
    """Yield what of a scenario is not as in a saved run: tools, start state, turns that have begun.

    Turns that have not begun, recorded replies and limits may change; so may the start state of a scenario that
    `continues`.
    """
    before, now = saved.metadata or {}, describe_identity(scenario)
    if before.get(TOOLS) != now[TOOLS]:
        yield "the tools"
    if not scenario.continues and before.get(START) != now[START]:
        yield "the start state"
    tasks = [text_of(entry) for entry in saved.values.get("messages", []) if isinstance(entry, HumanMessage)]
    digests = str(before.get(TURNS, "")).split()
    for number in range(1, max(len(tasks), 1) + 1):
        turn = scenario.turns[number - 1] if number <= len(scenario.turns) else Turn("")
        if tasks[number - 1 : number] not in ([], [turn.user]):
            yield f"the task of turn {number}"
        elif digests[number - 1 : number] not in ([], [_digest_turn(turn)]):
            yield f"the checklist of turn {number}" if tasks else f"turn {number}"


def _digest_turn(turn: Turn) -> str:
    return digest([turn.user, [dict(item) for item in turn.checklist]])[:16]


def _digest_tools(tools: Toolkit) -> str:
    """Return a digest of what models and rungs see of the tools; their order does not count."""
    fields = {
        tool.name: digest(
            [
                [tool.description, tool.parameters, tool.result, tool.effect],
                [tool.contract.data, tool.contract.lets] if tool.contract else None,
                [[example.args, example.result] for example in tool.examples],
            ]
        )
        for tool in tools
    }
    schema = [] if tools.state_schema is None else [tools.state_schema]
    return digest([fields, [invariant.data for invariant in tools.invariants], *schema])
