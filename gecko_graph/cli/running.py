"""`demo` and `run`: rehearse, and show what happens."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from rich.console import Console
from rich.text import Text

from ..display.live import Progress, progress
from ..display.words import clean, prose
from ..errors import GeckoError
from ..graph import Gecko
from ..models.log import PromptLog
from ..scenario import Recorder, Scenario, examples, play, shipped
from ..scenario.identity import check_same, has_identity
from ..scenario.play import read_verdicts, unanswered
from ..scenario.recorder import check_target as check_record_target
from ..state import JsonObject, Role
from ..toolkit.selection import find_size_problems
from . import saving
from .history import read_turns, show_given, write_page
from .models import build_models, live_roles, read_role_models
from .options import check_options, check_target, load_scenario, next_task
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
    if unanswered(outputs[-1]):
        console.print(
            Text(f"recorded     nothing: {options.out} is not written, since a model did not answer", "yellow")
        )
        return
    differences = recorder.write(options.out, outputs, force=options.force)
    inside = (
        Path(recorder.scenario.tools_file or options.out).resolve().is_relative_to(Path(options.out).resolve().parent)
    )
    command = shlex.join(["gecko-graph", "run", options.out, *([] if inside else ["--allow-outside"])])
    console.print(Text(f"recorded     {options.out}; without a model: {command}"))
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
    """Return what the user can do next, or nothing."""
    if reason := unanswered(outputs[-1], live_roles(options)):
        again = " with --resume" if options.save else "; --save FILE keeps finished work"
        return f"{reason}; {_suggest_cause(options)} To ask again: the same command{again}"
    rehearsal = outputs[-1]["rehearsal"]
    if rehearsal["verdict"]["word"] == "accepted" and not rehearsal["plan"]:
        return "the plan is empty: no tool call was needed"
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
    if not has_identity(saved):
        message = "this run was saved by an older version: whether tools and scenario are the same cannot be checked"
        console.print(Text(f"warning      {message}", "yellow"))
    if "failed" in earlier:
        console.print(Text(f"warning      turn {earlier.index('failed') + 1} of this run failed before", "yellow"))
    return scenario, earlier


class _TurnDisplay:
    """Shows each turn while it runs."""

    def __init__(self, console: Console, given: JsonObject) -> None:
        self._console = console
        self._given = given
        self._stack = ExitStack()
        self._progress: Progress | None = None

    def __enter__(self) -> _TurnDisplay:
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def begin(self, task: str) -> None:
        """Show the task of a turn that begins, and the state that the first one starts from."""
        self._console.print(Text.assemble(("task ", "bold"), prose(task)))
        show_given(self._console, self._given)
        self._given = {}
        self._progress = self._stack.enter_context(progress(self._console))

    def take(self, event: dict[str, Any]) -> None:
        """Show an event."""
        if self._progress is not None:
            self._progress.on_event(event)

    def end(self, output: Mapping[str, Any]) -> None:
        """Show the result of a turn."""
        self._stack.close()
        (self._progress or progress(self._console)).on_result(output["rehearsal"])


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
    with _TurnDisplay(console, {} if resume else scenario.state) as display:
        handlers: dict[str, Callable[[Any], None]] = {
            "turn": display.begin,
            "event": display.take,
            "output": display.end,
        }
        for kind, value in _run_in_thread(scenario, gecko, thread=thread, resume=resume, live=live):
            handlers[kind](value)
            if kind == "output":
                outputs.append(value)
        if not outputs:
            console.print(Text(f"{clean(thread)} was finished before", "dim"))
            outputs.append(_read_finished(gecko, thread))
            display.end(outputs[0])
    return outputs


def _run_in_thread(
    scenario: Scenario, gecko: Gecko, *, thread: str, resume: bool, live: Collection[Role]
) -> Iterator[tuple[str, Any]]:
    """Yield `(kind, value)` of a run: `turn`, `event`, `output`. A turn that no live model answers is the last one.

    It runs in a thread of its own, so that Ctrl-C need not wait for a slow model: the thread is abandoned, and with
    `durability="sync"` nothing that was done is lost.
    """
    queue: SimpleQueue[tuple[str, Any]] = SimpleQueue()

    def work() -> None:
        try:
            turns = play(
                scenario,
                gecko,
                thread_id=thread,
                on_event=lambda event: queue.put(("event", event)),
                on_turn=lambda task: queue.put(("turn", task)),
                resume=resume,
                durability="sync",
            )
            for output in _stop_at_unanswered(turns, live):
                queue.put(("output", output))
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            queue.put(("error", error))
        queue.put(("over", None))

    Thread(target=work, daemon=True, name="gecko-graph run").start()
    while True:
        try:
            kind, value = queue.get(timeout=WAKE_S)  # Windows delivers Ctrl-C only between two waits
        except Empty:
            continue
        if kind == "error":
            raise value
        if kind == "over":
            return
        yield kind, value


def _stop_at_unanswered(turns: Iterator[dict[str, Any]], live: Collection[Role]) -> Iterator[dict[str, Any]]:
    for output in turns:
        yield output
        if unanswered(output, live):
            return


def _read_finished(gecko: Gecko, thread: str) -> dict[str, Any]:
    return dict(gecko.get_state({"configurable": {"thread_id": thread}}).values)


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
    text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    saving.write_text("--json", target, text)
