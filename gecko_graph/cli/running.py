"""`demo` and `run`: rehearse, and show what happens."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from rich.console import Console
from rich.text import Text

from ..display.live import progress
from ..display.words import clean, prose
from ..errors import GeckoError
from ..graph import Gecko
from ..models.log import PromptLog
from ..scenario import Recorder, Scenario, examples, play, shipped
from ..scenario.identity import check_same
from ..scenario.play import read_verdicts, unanswered
from ..scenario.recorder import check_target as check_record_target
from ..state import Role
from ..toolkit.selection import find_size_problems
from . import saving
from .history import read_turns, show_given, write_page
from .options import build_models, check_options, check_target, live_roles, load_scenario, next_task, read_role_models
from .order import demo_order
from .screen import screen

WAKE_S = 0.5
NO_ANSWER = 3
BROKEN_SHOWN = 3


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run; `saved` is whether its thread can be resumed."""

    def __init__(self, saved: bool) -> None:
        super().__init__()
        self.saved = saved


def demo(options: argparse.Namespace) -> int:
    """Run a shipped example, or list them."""
    console = screen()
    if options.list:
        for name, file in examples().items():
            console.print(Text.assemble((f"{name:<10}", "bold"), prose(Scenario.load(file).turns[0].user)))
            console.print(Text(f"{'':<10}{file}", "dim"))
        return 0
    name = options.name or next(iter(examples()))
    scenario = shipped(name)
    console.print(Text(f"{scenario.where}: recorded replies, no key, no network", "dim"))
    check_target("--html", options.html)
    saver = InMemorySaver()
    if name == "order":
        code = demo_order(scenario, saver, console, approved=options.yes)
        if options.html:
            write_page(options.html, list(read_turns(saver, scenario.name)), title=name)
        return code
    if options.yes:
        raise GeckoError(f"--yes approves what `demo order` would do; the example {name!r} does nothing real")
    outputs = _run_turns(scenario, scenario.gecko(checkpointer=saver), console, thread=name)
    if options.html:
        write_page(options.html, list(read_turns(saver, name)), title=name)
    return exit_code(outputs)


def record(options: argparse.Namespace) -> int:
    """Rehearse as `run` does, and write the run as a scenario with recorded replies."""
    check_record_target(options.out, force=options.force)
    return run(options)


def run(options: argparse.Namespace) -> int:
    """Rehearse a scenario or a task."""
    scenario = load_scenario(options)
    check_options(options, scenario)
    recorder = Recorder(scenario) if options.out else None
    thread = options.thread or scenario.name
    console = screen(stderr=options.json == "-")
    _warn_of_tools(scenario, options, console)
    opened = saving.saver(options.save, new=not options.resume) if options.save else nullcontext(InMemorySaver())
    with opened as saver:
        gecko = _create_gecko(scenario, options, saver, recorder)
        if options.save:
            _check_thread(saver, options, thread)
        earlier: list[str] = []
        if options.resume:
            scenario, earlier = _check_saved(scenario, options, gecko, thread, console)
        try:
            live = live_roles(options)
            outputs = _run_turns(scenario, gecko, console, thread=thread, resume=options.resume, live=live)
        except KeyboardInterrupt:
            raise Interrupted(isinstance(saver, SqliteSaver) and thread in saving.threads(saver)) from None
        if options.html:
            write_page(options.html, list(read_turns(saver, thread)), title=thread)
    if hint := _build_hint(options, outputs):
        console.print(Text(f"hint         {clean(hint)}", "yellow"))
    if recorder:
        _write_recording(recorder, options, outputs, console)
    if options.json:
        _write_json(options.json, scenario, outputs)
    return NO_ANSWER if unanswered(outputs[-1], live) else exit_code(outputs, earlier)


def _create_gecko(scenario: Scenario, options: argparse.Namespace, saver: Any, recorder: Recorder | None) -> Gecko:
    model, models = build_models(options)
    listen = recorder.listen if recorder else None
    gecko = scenario.gecko(model=model, models=models, checkpointer=saver, listen=listen)
    return gecko.with_config(callbacks=[PromptLog(options.log)]) if options.log else gecko


def _write_recording(
    recorder: Recorder, options: argparse.Namespace, outputs: Sequence[Mapping[str, Any]], console: Console
) -> None:
    out = options.out
    if unanswered(outputs[-1]):
        console.print(Text(f"recorded     nothing: {out} is not written, since a model did not answer", "yellow"))
        return
    differences = recorder.write(out, outputs, force=options.force)
    inside = Path(recorder.scenario.tools_file or out).resolve().is_relative_to(Path(out).resolve().parent)
    command = shlex.join(["gecko-graph", "run", out, *([] if inside else ["--allow-outside"])])
    console.print(Text(f"recorded     {out}; without a model: {command}"))
    for difference in differences:
        console.print(Text(f"hint         played without a model it differs: {clean(difference)}", "yellow"))


def _warn_of_tools(scenario: Scenario, options: argparse.Namespace, console: Console) -> None:
    sizes = find_size_problems(list(scenario.tools)) if "planner" in live_roles(options) else []
    broken = scenario.tools.broken
    messages = [problem.message for problem in sizes]
    messages += [f"{problem.tool}: {problem.message}" for problem in broken[:BROKEN_SHOWN]]
    if len(broken) > BROKEN_SHOWN:
        messages.append(f"{len(broken) - BROKEN_SHOWN} more parts cannot be read (gecko-graph tools lists them)")
    for message in messages:
        console.print(Text(f"warning      {clean(message)}", "yellow"))


def exit_code(outputs: Sequence[Mapping[str, Any]], earlier: Sequence[str] = ()) -> int:
    """Return 0 if the last turn is accepted and none before it failed; one that had to ask was answered by the next."""
    words = [*earlier, *(output["rehearsal"]["verdict"]["word"] for output in outputs)]
    return 0 if words and words[-1] == "accepted" and "failed" not in words else 1


def _build_hint(options: argparse.Namespace, outputs: Sequence[Mapping[str, Any]]) -> str:
    if reason := unanswered(outputs[-1], live_roles(options)):
        again = " with --resume" if options.save else "; --save FILE keeps finished work"
        return f"{reason}; {_suggest_cause(options)} To ask again: the same command{again}"
    rehearsal = outputs[-1]["rehearsal"]
    if rehearsal["verdict"]["word"] == "accepted" and not rehearsal["plan"]:
        tried = any(each["steps"] for each in rehearsal["attempts"] if each["number"] == rehearsal["chosen"])
        return f"the plan is empty: no tool call {'worked' if tried else 'was needed'}"
    if options.task is None or rehearsal["verdict"]["word"] != "needs_user":
        return ""
    if options.save:
        return "to answer: the same command with --resume, without --state, and the answer as --task"
    return "to answer, first save the run with --save FILE; then add --resume and the answer as --task"


def _suggest_cause(options: argparse.Namespace) -> str:
    names = dict.fromkeys(filter(None, [options.model, *read_role_models(options).values()]))
    if options.base_url:
        known = " and ".join(repr(name.partition(":")[2]) for name in names)
        return (
            f"does an OpenAI-compatible server listen at {options.base_url} (most want /v1 at "
            f"the end), and does it know the model {known}?"
        )
    return f"are the key, the network and the name {' and '.join(map(repr, names))} right?"


def _check_thread(saver: Any, options: argparse.Namespace, thread: str) -> None:
    names = saving.threads(saver)
    if options.resume and thread not in names:
        raise GeckoError(f"{options.save}: no thread {thread!r} to resume; {saving.describe_threads(saver)}")
    if not options.resume and thread in names:
        raise GeckoError(
            f"{options.save}: the thread {thread!r} already holds a run: continue it with --resume, or choose "
            "another one with --thread NAME"
        )


def _check_saved(
    scenario: Scenario, options: argparse.Namespace, gecko: Gecko, thread: str, console: Console
) -> tuple[Scenario, list[str]]:
    """Return the scenario to resume a thread with, and the verdicts of the thread's finished turns."""
    saved = gecko.get_state({"configurable": {"thread_id": thread}})
    if options.task is not None:
        scenario = next_task(scenario, options, saved)
    check_same(scenario, saved)
    earlier = read_verdicts(gecko, thread)
    if "failed" in earlier:
        console.print(Text(f"warning      turn {earlier.index('failed') + 1} of this run failed before", "yellow"))
    return scenario, earlier


def _run_turns(
    scenario: Scenario,
    gecko: Gecko,
    console: Console,
    *,
    thread: str,
    resume: bool = False,
    live: Collection[Role] = (),
) -> list[dict[str, Any]]:
    """Run and show the turns; return their outputs, of a run that was finished before the last one's."""
    outputs: list[dict[str, Any]] = []
    view, given = progress(console), {} if resume else scenario.state
    with ExitStack() as stack:
        for kind, value in _run_in_thread(scenario, gecko, thread=thread, resume=resume, live=live):
            if kind == "turn":
                console.print(Text.assemble(("task ", "bold"), prose(value)))
                show_given(console, given)
                view, given = stack.enter_context(progress(console)), {}
            elif kind == "event":
                view.on_event(value)
            else:
                stack.close()
                view.on_result(value["rehearsal"])
                outputs.append(value)
    if not outputs:
        console.print(Text(f"{clean(thread)} was finished before", "dim"))
        outputs.append(dict(gecko.get_state({"configurable": {"thread_id": thread}}).values))
        view.on_result(outputs[0]["rehearsal"])
    return outputs


def _run_in_thread(
    scenario: Scenario, gecko: Gecko, *, thread: str, resume: bool, live: Collection[Role]
) -> Iterator[tuple[str, Any]]:
    """Yield `(kind, value)` of a run: `turn`, `event`, `output`. A turn that no live model answers is the last one.

    It runs in a thread of its own, so that Ctrl-C need not wait for a slow model: the thread is abandoned, and with
    `durability="sync"` nothing that was done is lost.
    """
    queue: SimpleQueue[tuple[str, Any]] = SimpleQueue()

    def put(kind: str) -> Callable[[Any], None]:
        return lambda value: queue.put((kind, value))

    def work() -> None:
        listeners: dict[str, Any] = {"on_event": put("event"), "on_turn": put("turn")}
        try:
            for output in play(scenario, gecko, thread_id=thread, resume=resume, durability="sync", **listeners):
                queue.put(("output", output))
                if unanswered(output, live):
                    break
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            queue.put(("error", error))
        queue.put(("over", None))

    Thread(target=work, daemon=True, name="gecko-graph run").start()
    for kind, value in iter(lambda: _take(queue), ("over", None)):
        if kind == "error":
            raise value
        yield kind, value


def _take(queue: SimpleQueue[Any]) -> Any:
    while True:
        with suppress(Empty):
            return queue.get(timeout=WAKE_S)  # Windows delivers Ctrl-C only between two waits


def _write_json(target: str, scenario: Scenario, outputs: Sequence[Mapping[str, Any]]) -> None:
    turns = [
        {
            "messages": [{"type": message.type, "content": message.content} for message in output["messages"]],
            "rehearsal": output["rehearsal"],
            "task_state": output["task_state"],
        }
        for output in outputs
    ]
    document = {"scenario": scenario.name, "start_state": scenario.state, "turns": turns}
    saving.write_text("--json", target, json.dumps(document, ensure_ascii=False, indent=1) + "\n")
