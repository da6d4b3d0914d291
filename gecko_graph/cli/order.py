"""`demo order`: rehearse, show what would be done, ask, do it against a small real service, and compare."""

from __future__ import annotations

import sys
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from rich.console import Console
from rich.text import Text

from ..agent import create_gecko_agent
from ..demo.service import OrderService
from ..display.live import progress
from ..display.words import clean, format_call, prose
from ..events import Reader, stream_options
from ..execution.records import Execution, PlannedCall
from ..graph import Gecko
from ..scenario import Scenario

QUESTION = "carry this out? [y/N] "


def demo_order(scenario: Scenario, saver: InMemorySaver, console: Console, *, approved: bool) -> int:
    """Run the example on a service that this command starts and stops; nothing real is called before the yes."""
    with OrderService() as service:
        console.print(Text(f"a real order service: {service.url}, HTTP and SQLite, on this machine only", "dim"))
        agent = create_gecko_agent(
            service.toolkit(), models=scenario.models(), context=scenario.limits, checkpointer=saver
        )
        config: RunnableConfig = {"configurable": {"thread_id": scenario.name}}
        console.print(Text.assemble(("task ", "bold"), prose(scenario.turns[0].user)))
        output = _run(agent, scenario.inputs(0), config, console)
        if "__interrupt__" not in output:
            return 1
        preview = agent.get_state(config).values["preview"]
        _show_preview(preview["calls"], console)
        if not (approved or _is_approved(console)):
            console.print(Text(f"nothing was done: the service's log has {len(service.log())} entries", "bold"))
            return 0
        asked = output["__interrupt__"][0].value
        decisions = {"id": asked["id"], "decisions": [{"type": "approve"}] * len(asked["action_requests"])}
        output = _run(agent, Command(resume=decisions), config, console)
        return _compare(output, service, console)


def _run(agent: Gecko, given: Any, config: RunnableConfig, console: Console) -> dict[str, Any]:
    with progress(console) as view:
        reader = Reader(view.on_event)
        for part in agent.stream(given, config, **stream_options(agent)):
            reader.read(part)
    view.on_result(reader.rehearsal or {})
    return reader.output


def _show_preview(calls: list[PlannedCall], console: Console) -> None:
    console.print(Text("what would be done", "bold"))
    for number, planned in enumerate(calls, 1):
        word = planned["effect"] if planned["review"] == "allow" else planned["review"]
        line = Text.assemble((f"{number}. {word:<6}", "dim" if word == "read" else "yellow"))
        line.append(format_call(planned["call"]))
        for binding in planned["bindings"]:
            name, path = binding["argument"].removeprefix("$."), binding["path"].removeprefix("$.")
            line.append(f"\n          {name}: the {path} that the service gives an earlier call", "dim")
        console.print(line)


def _is_approved(console: Console) -> bool:
    """Ask; without a terminal only --yes approves. The end of the input (Ctrl-D) is a no."""
    if not sys.stdin.isatty() or not console.is_terminal:
        console.print(Text("no terminal to ask on; --yes approves the plan", "yellow"))
        return False
    try:
        return console.input(QUESTION, markup=False).strip().lower() in ("y", "yes")
    except EOFError:
        console.print()
        return False


def _compare(output: dict[str, Any], service: OrderService, console: Console) -> int:
    execution: Execution = output["execution"]
    console.print(Text.assemble(("answer ", "bold"), prose(output["messages"][-1].text)))
    drifts = sum(len(entry.get("drift", [])) for entry in execution["calls"])
    agrees = output["task_state"] == service.state()
    state = "equals" if agrees else "differs from"
    line = (
        f"{len(service.log())} changes in the service's log, {drifts} differences from the preview; the state that the "
        f"agent keeps {state} the service's database"
    )
    console.print(Text(line, "green" if agrees and not drifts else "red"))
    for entry in execution["calls"]:
        if "departure" in entry:
            console.print(Text(f"departed     {clean(entry['departure']['message'])}", "red"))
    return 0 if agrees and not drifts and execution["status"] == "done" else 1
