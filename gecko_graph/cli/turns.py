"""A run's turns on the terminal: events as they happen, an agent's questions, the results."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from langgraph.types import Command
from rich.console import Console
from rich.text import Text

from ..display.live import progress, show
from ..display.records import follow_up
from ..display.rows import ViewRow
from ..display.words import clean, prose
from ..graph import Gecko
from ..real.decisions import DOUBT_DECISIONS
from ..scenario import Scenario, play
from ..scenario.play import unanswered
from ..state import JsonObject, Role
from ..values.notes import notes_of
from ..world.turn import asks_undo
from .saved import list_given

WAKE_S = 0.5
PLAN = "carry this out? y (yes), n (no), or text (no, do this instead), Enter (decide later): "
DOUBT = "did it happen? happened (and its result), make_now, skip, Enter (decide later): "
ANSWERS = {"y": "approve", "yes": "approve", "n": "reject", "no": "reject"}


def run_turns(
    scenario: Scenario,
    gecko: Gecko,
    console: Console,
    *,
    thread: str,
    resume: Any = False,
    live: Collection[Role] = (),
    yes: bool = False,
) -> list[dict[str, Any]]:
    """Run and show the turns; return their outputs, for a finished run the last one's.

    An agent's question is asked on the terminal; an unanswered question ends the run. `yes` approves a plan that was
    shown before, and any plan without made-up values.
    """
    config: Any = {"configurable": {"thread_id": thread}}
    outputs: list[dict[str, Any]] = []
    asked, was_shown = dict[str, Any](), bool(resume and gecko.get_state(config).interrupts)
    while True:
        played = _run_in_thread(scenario, gecko, thread=thread, resume=resume, live=live)
        outputs += _show_turns(played, console, {} if resume else scenario.state, asked)
        if not outputs or "__interrupt__" not in outputs[-1]:
            break
        planned = (gecko.get_state(config).values.get("preview") or {"calls": []})["calls"]
        doubtful = (each for each in planned if each["ambiguous"] or notes_of(each, "made_up"))
        is_doubtful = any(each["review"] == "ask" for each in doubtful)
        approved = yes and (was_shown or not is_doubtful)
        if not (decided := decide(outputs[-1]["__interrupt__"][0].value, console, yes=approved)):
            break
        asked, resume, was_shown = outputs.pop(), Command(resume=decided), False
    if not outputs:
        console.print(Text(f"{clean(thread)} is already finished", "dim"))
        outputs += _show_turns([("output", dict(gecko.get_state(config).values))], console, {}, {})
    return outputs


def is_carried_out(output: Mapping[str, Any]) -> bool:
    """Return whether an agent's turn is finished; while it waits, its execution is the previous turn's."""
    return "__interrupt__" not in output and bool(output.get("execution"))


def _show_turns(
    played: Iterable[tuple[str, Any]], console: Console, given: JsonObject, asked: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Show the events, and yield the output of each turn; the first continues from the question `asked`."""
    view = progress(console)
    with ExitStack() as stack:
        for kind, value in played:
            if kind == "turn":
                if not asked:
                    show(console, {"attempts": []}, opening=[ViewRow("task", prose(value)), *list_given(given)])
                view, given = stack.enter_context(progress(console)), {}
            elif kind == "event":
                view.on_event(value)
            else:
                stack.close()
                record = {} if value["rehearsal"] == asked.get("rehearsal") else value["rehearsal"]
                follow = follow_up(value)
                execution = follow.get("execution") or {}
                view.on_result({**record, **follow})
                if execution.get("calls") or (execution and asks_undo(value["messages"])):
                    console.print(Text.assemble(("answer   ", "bold"), prose(value["messages"][-1].text)))
                asked = {}
                yield value


def _run_in_thread(
    scenario: Scenario, gecko: Gecko, *, thread: str, resume: Any, live: Collection[Role]
) -> Iterator[tuple[str, Any]]:
    """Yield a run's `(kind, value)`: `turn`, `event`, `output`; stop after a turn that no live model answered.

    The run has its own thread, so that Ctrl-C need not wait for a slow model: the thread is abandoned, and with
    `durability="sync"` no finished work is lost.
    """
    queue: SimpleQueue[tuple[str, Any]] = SimpleQueue()
    put: dict[str, Any] = {
        f"on_{kind}": lambda value, kind=kind: queue.put((kind, value)) for kind in ("event", "turn")
    }

    def work() -> None:
        try:
            for output in play(scenario, gecko, thread_id=thread, resume=resume, durability="sync", **put):
                queue.put(("output", output))
                if unanswered(output, live):
                    break
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            queue.put(("error", error))
        queue.put(("over", None))

    Thread(target=work, daemon=True, name="gecko-graph run").start()
    while True:
        with suppress(Empty):
            kind, value = queue.get(timeout=WAKE_S)  # Windows delivers Ctrl-C only between two waits
            if kind == "over":
                return
            if kind == "error":
                raise value
            yield kind, value


def decide(asked: JsonObject, console: Console, *, yes: bool) -> JsonObject | None:
    """Return the decisions on a question; None if nobody decides now. `yes` approves a plan, but no call in doubt."""
    actions: list[JsonObject] = asked["action_requests"]
    is_doubt = "happened" in asked["review_configs"][0]["allowed_decisions"]
    told = "in doubt: {}" if is_doubt else "Nothing is done yet; yes calls {} for real, in this order."
    console.print(Text(told.format(", ".join(clean(action["name"]) for action in actions)), "bold"))
    decision = {"type": "approve"} if yes and not is_doubt else _ask(console, is_doubt=is_doubt)
    return decision and {"id": asked["id"], "decisions": [decision] * len(actions)}


def _ask(console: Console, *, is_doubt: bool) -> JsonObject | None:
    """Return the decision of the person at the terminal; None if there is none, or not now."""
    if not (sys.stdin.isatty() and console.is_terminal):
        console.print(Text(f"no terminal to ask at{'' if is_doubt else '; --yes approves the plan'}", "yellow"))
        return None
    while True:
        try:
            words = console.input(Text(DOUBT if is_doubt else PLAN, "bold")).strip()
        except EOFError:  # Ctrl-D
            words = ""
        word, _, message = words.partition(" ")
        if not words:
            return None
        if not is_doubt:
            known = ANSWERS.get(words.lower())
            return {"type": known} if known else {"type": "reject", "message": words}
        if word in DOUBT_DECISIONS:
            return {"type": word, "message": message.strip()}
