"""`demo` and `run`: rehearse, and show it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from ..scenario import Scenario, examples, play, shipped
from ..scenario.play import unanswered
from . import saving
from .asked import check_options, next_task, scenario_of
from .screen import screen

WAKE_S = 0.5
NO_ANSWER = 3


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run; `saved` tells whether there is something to go on with."""

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
    return exit_code(_play(scenario, scenario.gecko(checkpointer=InMemorySaver()), console, thread=name))


def run(options: argparse.Namespace) -> int:
    """Rehearse a scenario or a task."""
    scenario = scenario_of(options)
    check_options(options, scenario)
    thread = options.thread or scenario.name
    console = screen(stderr=options.json == "-")
    opened = saving.saver(options.save, new=not options.resume) if options.save else nullcontext(InMemorySaver())
    with opened as saver:
        reached = {"base_url": options.base_url, "timeout_s": options.timeout}
        gecko = scenario.gecko(model=options.model, checkpointer=saver, **reached)
        if options.save:
            _check_thread(saver, options, thread)
        if options.resume and options.task is not None:
            scenario = next_task(scenario, options, gecko.get_state({"configurable": {"thread_id": thread}}))
        try:
            live = options.model is not None
            done = _play(scenario, gecko, console, thread=thread, resume=options.resume, live=live)
        except KeyboardInterrupt:
            raise Interrupted(isinstance(saver, SqliteSaver) and thread in saving.threads(saver)) from None
    if hint := _hint(options, done):
        console.print(Text(f"hint         {clean(hint)}", "yellow"))
    if options.json:
        _write_json(options.json, scenario, done)
    return NO_ANSWER if options.model is not None and unanswered(done[-1]) else exit_code(done)


def exit_code(outputs: Sequence[Mapping[str, Any]]) -> int:
    """0 where the last turn is accepted and none before it failed: one that had to ask was answered by the next."""
    words = [output["rehearsal"]["verdict"]["word"] for output in outputs]
    return 0 if words and words[-1] == "accepted" and "failed" not in words else 1


def _hint(options: argparse.Namespace, outputs: Sequence[Mapping[str, Any]]) -> str:
    """What to do next, where that is not plain."""
    if options.model is not None and (reason := unanswered(outputs[-1])):
        again = " with --resume" if options.save else "; --save FILE keeps what is done"
        return f"{reason}; {_where_to_look(options)} To ask again: the same command{again}"
    if options.task is None or outputs[-1]["rehearsal"]["verdict"]["word"] != "needs_user":
        return ""
    if options.save:
        return "to answer: the same command with --resume, without --state, and the answer behind --task"
    return "to be able to answer, keep the run with --save FILE; then --resume and the answer behind --task"


def _where_to_look(options: argparse.Namespace) -> str:
    if options.base_url:
        return (
            f"does an OpenAI-compatible server listen at {options.base_url} (most want /v1 at "
            f"the end), and does it know the model {options.model.partition(':')[2]!r}?"
        )
    return f"are the key, the network and the name {options.model!r} right?"


def _check_thread(saver: Any, options: argparse.Namespace, thread: str) -> None:
    names = saving.threads(saver)
    if options.resume and thread not in names:
        raise GeckoError(f"{options.save}: no thread {thread!r} to resume; {saving.known(saver)}")
    if not options.resume and thread in names:
        raise GeckoError(
            f"{options.save}: the thread {thread!r} holds a run already: go on with it (--resume), or name another one "
            "(--thread NAME)"
        )


class _Stage:
    """Shows turn after turn, each while it goes on."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._turn = ExitStack()
        self._shown: Progress | None = None

    def __enter__(self) -> _Stage:
        return self

    def __exit__(self, *failure: object) -> None:
        self._turn.close()

    def begin(self, task: str) -> None:
        """A turn begins."""
        self._console.print(Text.assemble(("task ", "bold"), prose(task)))
        self._shown = self._turn.enter_context(progress(self._console))

    def take(self, event: dict[str, Any]) -> None:
        """Something happened."""
        if self._shown is not None:
            self._shown.on_event(event)

    def end(self, output: Mapping[str, Any]) -> None:
        """The turn is over."""
        self._turn.close()
        (self._shown or progress(self._console)).on_result(output["rehearsal"])


def _play(
    scenario: Scenario, gecko: Gecko, console: Console, *, thread: str, resume: bool = False, live: bool = False
) -> list[dict[str, Any]]:
    """All turns' outputs; of a run that is finished already, the last one's."""
    outputs: list[dict[str, Any]] = []
    with _Stage(console) as stage:
        acts: dict[str, Callable[[Any], None]] = {"turn": stage.begin, "event": stage.take, "output": stage.end}
        for kind, told in _told(scenario, gecko, thread=thread, resume=resume, live=live):
            acts[kind](told)
            if kind == "output":
                outputs.append(told)
        if not outputs:
            console.print(Text(f"{clean(thread)} was finished before", "dim"))
            outputs.append(_finished(gecko, thread))
            stage.end(outputs[0])
    return outputs


def _told(scenario: Scenario, gecko: Gecko, *, thread: str, resume: bool, live: bool) -> Iterator[tuple[str, Any]]:
    """What a run tells: `turn`, `event`, `output`. A turn that no live model answers is the last one.

    It runs in a thread of its own, so that Ctrl-C need not wait for a model that is slow to answer: the thread is left
    behind, and with `durability="sync"` nothing that was done is lost.
    """
    said: SimpleQueue[tuple[str, Any]] = SimpleQueue()

    def work() -> None:
        try:
            turns = play(
                scenario,
                gecko,
                thread_id=thread,
                on_event=lambda event: said.put(("event", event)),
                on_turn=lambda task: said.put(("turn", task)),
                resume=resume,
                durability="sync",
            )
            for output in _until_unanswered(turns) if live else turns:
                said.put(("output", output))
        except BaseException as error:  # noqa: BLE001 - carried to the main thread, and raised there
            said.put(("error", error))
        said.put(("over", None))

    Thread(target=work, daemon=True, name="gecko-graph run").start()
    while True:
        try:
            kind, told = said.get(timeout=WAKE_S)  # Windows hears Ctrl-C only between two waits
        except Empty:
            continue
        if kind == "error":
            raise told
        if kind == "over":
            return
        yield kind, told


def _until_unanswered(turns: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for output in turns:
        yield output
        if unanswered(output):
            return


def _finished(gecko: Gecko, thread: str) -> dict[str, Any]:
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
    text = json.dumps({"scenario": scenario.name, "turns": turns}, ensure_ascii=False, indent=1) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise GeckoError(f"--json {target}: {error.strerror}") from None
