"""`demo`, `run` and `do`: rehearse, show the run, and carry out the approved plan."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace as Options
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from rich.console import Console
from rich.text import Text

from ..conversation.scenario import Turn
from ..display.words import clean, prose
from ..errors import GeckoError
from ..graph import Gecko
from ..models.usage import PromptLog
from ..scenario import Recorder, Scenario, examples, order_service, shipped
from ..scenario.play import compose_agent, identify, read_statuses, unanswered
from ..tools.problems import find_size_problems
from ..values.documents import format_document
from ..values.notes import notes_of
from ..world.turn import asks_undo, undo_message
from . import saved
from .inputs import build_models, check_files, is_real, live_roles, load_scenario, next_task, screen, write_text
from .turns import is_carried_out, run_turns

NO_ANSWER = 3
WAITS = 4
SHOWN = 3
Outputs = Sequence[Mapping[str, Any]]


def demo(options: Options) -> int:
    console = screen()
    if options.list:
        for name, file in examples().items():
            console.print(Text.assemble((f"{name:<10}", "bold"), prose(Scenario.load(file).turns[0].user)))
            console.print(Text(f"{'':<10}{file}", "dim"))
        return 0
    name = options.name or next(iter(examples()))
    scenario = shipped(name)
    console.print(Text(f"{scenario.where}: recorded replies, no key, no network", "dim"))
    check_files([], {"--html": options.html})
    if options.yes and name != "order":
        raise GeckoError(f"--yes approves what `demo order` would do; the example {name!r} does nothing real")
    saver = InMemorySaver()
    with ExitStack() as stack:
        service = stack.enter_context(order_service()) if name == "order" else None
        played = replace(scenario, tools=service.toolkit()) if service else scenario
        gecko = compose_agent(played, checkpointer=saver) if service else played.gecko(checkpointer=saver)
        outputs = run_turns(played, gecko, console, thread=name, yes=options.yes)
        code = _compare(outputs[-1], service, console) if service else exit_code(outputs)
    if options.html:
        saved.write_page(options.html, list(saved.read_turns(saver, name)), title=name)
    return code


def _compare(output: Mapping[str, Any], service: Any, console: Console) -> int:
    """Print whether the service's state equals the agent's; 0 if it does, also if nothing was approved."""
    agrees = output["task_state"] == service.state()
    state = f"the agent's state {'equals' if agrees else 'differs from'} the service's database"
    console.print(Text(f"{len(service.log())} changes in the service's log; {state}", "green" if agrees else "red"))
    return 0 if agrees and output["rehearsal"]["verdict"]["status"] == "accepted" else 1


def undo(options: Options) -> int:
    """Undo a saved run's real calls, in a new turn."""
    return do(options, undo=True)


def do(options: Options, *, undo: bool = False) -> int:
    """Continue a saved run with its own command, in its own folder: ask about its plan, and carry it out."""
    with saved.open_reader(options.file) as saver:
        saved.check_thread(saver, options.file, options.thread)
        command = saved.read_command(saver, options.thread)
    if command is None:
        other = "rehearse its task in another thread with --server URL; resume an agent of your own by invoke(None)"
        raise GeckoError(f"{options.file}: the thread {options.thread!r} was rehearsed without real calls: {other}")
    own: Any = {"undo": undo, "save": str(Path(options.file).absolute()), "thread": options.thread, "yes": options.yes}
    with suppress(OSError):
        os.chdir(command["folder"])
    return run(Options(**{**command, **own, "resume": True}))


def run(options: Options) -> int:
    scenario = load_scenario(options)
    console, thread = screen(stderr=options.json == "-"), options.thread or scenario.name
    recorder = Recorder(scenario) if options.record else None
    acts = is_real(options, scenario.limits) and not recorder
    _print_head(scenario, options, console, acts=acts)
    opened: Any = nullcontext(InMemorySaver())
    if options.save:
        opened = saved.open_saver(options.save, new=not options.resume)
    with opened as saver:
        listen = recorder.listen if recorder else None
        models, command = build_models(options), saved.describe_command(options) if acts else {}
        gecko = (
            compose_agent(scenario, model=models, checkpointer=saver).with_config(metadata=command)
            if acts
            else scenario.gecko(model=models, checkpointer=saver, listen=listen)
        )
        gecko = gecko.with_config(callbacks=[PromptLog(options.log)]) if options.log else gecko
        earlier: list[str] = []
        if options.resume:
            scenario, earlier = _check_saved(scenario, options, gecko, thread, acts=acts)
        if "failed" in earlier:
            console.print(Text(f"warning      turn {earlier.index('failed') + 1} of this run failed before", "yellow"))
        how: Any = {"thread": thread, "resume": options.resume, "live": live_roles(options), "yes": options.yes}
        try:
            outputs = run_turns(scenario, gecko, console, **how)
        except KeyboardInterrupt:
            is_saved = isinstance(saver, SqliteSaver) and thread in saved.list_threads(saver)
            raise KeyboardInterrupt(is_saved) from None
        if options.html:
            saved.write_page(options.html, list(saved.read_turns(saver, thread)), title=thread)
    if hint := _build_hint(options, scenario, outputs):
        console.print(Text(f"hint         {clean(hint)}", "yellow"))
    if recorder:
        _write_recording(recorder, options.record, outputs, console)
    _write_results(options, scenario, outputs)
    return NO_ANSWER if unanswered(outputs[-1], live_roles(options)) else exit_code(outputs, earlier)


def exit_code(outputs: Outputs, earlier: Sequence[str] = ()) -> int:
    """Return 0 if the last turn was accepted (and carried out, if required) and no earlier turn failed.

    An earlier turn with a question to the user was answered by the next one.
    """
    if any("__interrupt__" in output for output in outputs):
        return WAITS
    words = [*earlier, *(output["rehearsal"]["verdict"]["status"] for output in outputs)]
    done = all(output["execution"]["status"] == "done" for output in outputs if is_carried_out(output))
    return 0 if done and words and words[-1] == "accepted" and "failed" not in words else 1


def _print_head(scenario: Scenario, options: Options, console: Console, *, acts: bool) -> None:
    """Print problems of the tools, and the address of real calls."""
    sizes = find_size_problems(list(scenario.tools)) if "planner" in live_roles(options) else []
    broken = scenario.tools.broken
    messages = [problem.message for problem in sizes]
    messages += [f"{problem.tool}: {problem.message}" for problem in broken[:SHOWN]]
    if len(broken) > SHOWN:
        messages.append(f"{len(broken) - SHOWN} more parts cannot be read (gecko-graph tools lists them)")
    for message in messages:
        console.print(Text(f"warning      {clean(message)}", "yellow"))
    if acts:
        auth = [entry.replace("=env:", " from $") for entry in options.auth]
        names = ", ".join([options.server or "the document's server", *auth])
        console.print(Text(clean(f"for real     {names}; writes only after your approval"), "dim"))


def _check_saved(
    scenario: Scenario, options: Options, gecko: Gecko, thread: str, *, acts: bool
) -> tuple[Scenario, list[str]]:
    """Return the scenario to resume a thread with, and the verdicts of its finished turns."""
    saver: Any = gecko.checkpointer
    saved.check_thread(saver, options.save, thread)
    if acts != bool(saved.read_command(saver, thread)):
        why = "was rehearsed without real calls" if acts else "makes real calls: continue it with `gecko-graph do`"
        raise GeckoError(f"{options.save}: the thread {thread!r} {why}")
    state = gecko.get_state({"configurable": {"thread_id": thread}})
    said = [each for each in state.values.get("messages", []) if isinstance(each, HumanMessage)]
    undone = [asks_undo([each]) for each in said]
    if vars(options).get("undo") and state.tasks and not (undone and undone[-1]):
        # continuing would, with --yes, carry out the very plan that shall be undone
        again = shlex.join(["gecko-graph", "do", options.save, thread])
        raise GeckoError(
            f"{options.save}: the thread {thread!r} is not finished: nothing is undone; to continue: {again}"
        )
    if any(undone) or vars(options).get("undo"):
        scenario = _add_undo(scenario, options, said, is_new=bool(options.undo) and not state.tasks)
    elif options.task is not None:
        scenario = next_task(scenario, options, state)
    identify(scenario, state, thread, resume=True)
    return scenario, read_statuses(gecko, thread)


def _add_undo(scenario: Scenario, options: Options, said: Sequence[HumanMessage], *, is_new: bool) -> Scenario:
    given = [Turn(each.text) for each in said if not asks_undo([each])] if options.task is not None else scenario.turns
    rest, undoing = iter(given), Turn(str(undo_message().text), undo=True)
    turns = [undoing if asks_undo([each]) else next(rest, undoing) for each in said]
    return replace(scenario, turns=(*turns, *([undoing] if is_new else [])), continues=True)


def _build_hint(options: Options, scenario: Scenario, outputs: Outputs) -> str:
    """Return a hint at the next command, "" if it is obvious."""
    if "__interrupt__" in outputs[-1]:
        command = shlex.join(["gecko-graph", "do", str(options.save), options.thread or scenario.name])
        further = f"to continue: {command}" if options.save else "--save FILE keeps it for do"
        return f"the plan waits for a decision; {further}"
    if reason := unanswered(outputs[-1], live_roles(options)):
        again = " with --resume" if options.save else "; --save FILE keeps finished work"
        return f"{reason}; are address, key and model name right? To retry: the same command{again}"
    rehearsal = outputs[-1]["rehearsal"]
    if rehearsal["verdict"]["status"] == "accepted" and not rehearsal["plan"]:
        tried = any(each["steps"] for each in rehearsal["attempts"] if each["number"] == rehearsal["chosen"])
        return f"the plan is empty: no tool call {'worked' if tried else 'was needed'}"
    if notes_of(rehearsal["verdict"], "made_up") and scenario.limits.reads != "real":
        names = ", ".join([tool.name for tool in scenario.tools if tool.reads][:SHOWN])
        real = f"read for real, by {names} (--reads real --server URL), or " if names else ""
        true = "the true state as --state FILE (--write-state FILE writes the supposed one, to edit)"
        return f"it uses made-up values: {real}give {true if options.task is not None else 'the true state'}"
    execution = outputs[-1].get("execution", {}) if is_carried_out(outputs[-1]) else {}
    if options.save and any(each["status"] == "found" for each in execution.get("undo", ())):
        return f"to undo it: {shlex.join(['gecko-graph', 'undo', options.save, options.thread or scenario.name])}"
    if options.task is None or rehearsal["verdict"]["status"] != "needs_user":
        return ""
    first = "" if options.save else "--save FILE, then "
    return f"to answer: the same command with {first}--resume and the answer as --task"


def _write_recording(recorder: Recorder, out: str, outputs: Outputs, console: Console) -> None:
    if unanswered(outputs[-1]):
        console.print(Text(f"recorded     nothing: {out} is not written, because a model did not answer", "yellow"))
        return
    differences = recorder.write(out, outputs)
    inside = Path(recorder.scenario.tools_file or out).resolve().is_relative_to(Path(out).resolve().parent)
    command = shlex.join(["gecko-graph", "run", out, *([] if inside else ["--allow-outside"])])
    console.print(Text(f"recorded     {out}; to run it without a model: {command}"))
    for difference in differences:
        console.print(Text(f"hint         the run without a model differs: {clean(difference)}", "yellow"))


def _write_results(options: Options, scenario: Scenario, outputs: Outputs) -> None:
    turns = [
        {
            "messages": [{"type": message.type, "content": message.content} for message in output["messages"]],
            "rehearsal": output["rehearsal"],
            "task_state": output["task_state"],
            **({"execution": output["execution"]} if is_carried_out(output) else {}),
        }
        for output in outputs
    ]
    if options.json:
        document = {"scenario": scenario.name, "start_state": scenario.state, "turns": turns}
        write_text("--json", options.json, json.dumps(document, ensure_ascii=False, indent=1) + "\n")
    if target := options.write_state:
        supposed = outputs[0]["rehearsal"].get("supposed_state") or {"state": {}}
        text = format_document({**scenario.state, **supposed["state"]}, Path(target).suffix)
        write_text("--write-state", target, text)
