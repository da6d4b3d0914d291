"""A run of the matrix from its message to its end: processes, answers, and what the bank's log makes of it."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph.state import JsonObject
from gecko_graph.waiting import AT_ONCE, AWAITED, Driver, finish

from .agents import ended_of, graph_of, task_of
from .bank import PARAMETERS, Bank, Client, toolkit_of, wanted_of
from .draws import Draw
from .fates import Counted, append, saver_of

MOST_STEPS = 40
MOST_REFUSED = 4
"""Refusals in a row after which the message is sent again; after twice as many the run is not settled."""
MOST_S = 60.0
"""Seconds that a run may take."""
WAIT_S = 0.2
"""Seconds that a refused process waits, as another one's call may be under way."""
PROCESS_S = 15.0
"""Seconds that one process may take."""
STAGGER_S = 0.01
DOUBTS = (("happened", "make_now", "skip"), ("respond", "approve", "reject"))
"""How it is said of a call in doubt that it happened, that it is to be made now, and that it is left as it is."""


class Run:
    """One run: its folder holds the saver's file, the bank's log, counts of writes, and its story."""

    def __init__(self, draw: Draw, folder: Path, address: str | None) -> None:
        self.draw, self.folder, self.bank = draw, folder, Bank(folder, draw)
        self.place = address if draw.saver == "postgres" and address else str(folder / "saver")
        self.memory = InMemorySaver()
        self.config: Any = {"configurable": {"thread_id": folder.name}}
        self.identifier = None if draw.message == "no id" else "message-1"
        self.refused = 0
        self.answered: Counter[str] = Counter()
        self.count: Counter[str] = Counter()

    def finish(self) -> JsonObject:
        """Go on until the run is over; what it came to."""
        begun, over, resent = time.monotonic(), None, False
        answer, message = None, False
        while over is None and self.count["steps"] < MOST_STEPS and time.monotonic() - begun < MOST_S:
            reports = self.step(answer, message)
            report: JsonObject = next(filter(None, reports), {})
            self.note(reports, report)
            over = report.get("over")
            answer = report.get("answer") if self.draw.again and answer is None else None
            is_due = self.draw.message == "same id" and over is not None
            message = not resent and (is_due or (self.draw.message != "none" and self.count["stopped"] > 0))
            resent = resent or message
            over = None if message or answer is not None else over
            if self.refused:
                time.sleep(WAIT_S)
                message = message or self.refused == MOST_REFUSED
                if self.refused > 2 * MOST_REFUSED:
                    break
        return self.judge(over)

    def note(self, reports: Sequence[JsonObject | None], report: JsonObject) -> None:
        """Count what a step was, and how many steps in a row were refused."""
        self.count["stopped"] += sum(not each or each["stopped"] for each in reports)
        self.count[report.get("kind", "")] += 1
        self.count["unnamed"] += report.get("unnamed", 0)
        self.answered.update(report.get("questions", []))
        failed = all(each is not None and each["error"] for each in reports)
        self.refused = self.refused + 1 if failed else 0

    def judge(self, over: JsonObject | None) -> JsonObject:
        """Return what the bank's log makes of how the run ended."""
        done, wanted = self.bank.done(), wanted_of(self.draw)
        status, doubts = (over["status"], over["doubts"]) if over else ("unsettled", [])
        missing = (wanted - done).total()
        says_done = status == "done"
        unnamed = self.count["unnamed"] + (status == "in_doubt" and not all(map(is_named, doubts or [{}])))
        return {
            "doubled": (done - wanted).total(),
            "lost": missing if status in ("done", "nothing") else 0,
            "false_done": says_done and (done != wanted or bool(doubts)),
            "ended": status,
            "unnamed": unnamed,
            "processes": self.count["processes"],
            "stopped": self.count["stopped"],
            "reviews": self.count["review"],
            "doubts": self.count["doubt"],
        }

    def step(self, answer: JsonObject | None, message: bool) -> list[JsonObject | None]:
        """Have one process or two look at the thread and go on; what they report, None where they ended."""
        self.count["steps"] += 1
        number = 2 if self.draw.two and answer is None and not self.refused else 1
        self.count["processes"] += number
        append(self.folder / "story", f"step {self.count['steps']}")
        go_on = in_threads if self.draw.saver == "memory" else in_processes
        return go_on(self, number, answer, message)

    def play(self, fate: Counted, wait: Callable[[], int], answer: JsonObject | None, message: bool) -> JsonObject:
        """Look at the thread and go on, as one process does."""
        if self.draw.is_async:
            return asyncio.run(self.go_on(AWAITED, fate, wait, answer, message))
        return finish(self.go_on(AT_ONCE, fate, wait, answer, message))

    async def go_on(
        self, driver: Driver, fate: Counted, wait: Callable[[], int], answer: JsonObject | None, message: bool
    ) -> JsonObject:
        """Look at the thread, and give it what it waits for. A message without an id is sent by one process alone."""
        toolkit = toolkit_of(self.draw, Client(self.draw, self.bank, fate))
        async with saver_of(self.draw, fate, self.place) as saver:
            graph = graph_of(self.draw, toolkit, saver)
            look = partial(driver.do, graph.get_state, graph.aget_state, self.config)
            seen = await look()
            known = await driver.do(text_of, atext_of, saver, self.config) if seen.interrupts else ""
            given, report = self.choose(seen, answer, message, known)
            if wait() and report["kind"] == "message" and not self.identifier:
                return report
            fate.tell(f" {report['kind']} {given.resume if isinstance(given, Command) else ''}")
            if report["kind"] != "over":
                report |= await self.invoke(driver, graph, given, fate)
                seen = await look()
            if seen.created_at and not seen.tasks:  # `next` leaves out tasks that have written
                status, doubts = ended_of(self.draw, seen.values)
                report["over"] = {"status": status, "doubts": doubts}
        fate.tell(f" {report['error'] or report['over'] or 'asks'}")
        return report

    async def invoke(self, driver: Driver, graph: Any, given: Any, fate: Counted) -> JsonObject:
        """Run the graph, until it pauses, ends, fails or is stopped; then it goes on without a word."""
        try:
            if driver.is_async:
                await stoppable(self.draw, fate, graph.ainvoke(given, self.config))
            else:
                graph.invoke(given, self.config)
        except Stopped:
            fate.stop = None
            return {**(await self.invoke(driver, graph, None, fate)), "stopped": True}
        except Exception as error:  # noqa: BLE001 - what a process says as it ends
            return {"error": f"{type(error).__name__}: {error}"[:300], "stopped": False}
        return {"error": "", "stopped": False}

    def choose(self, seen: Any, answer: JsonObject | None, message: bool, known: str) -> tuple[Any, JsonObject]:
        """Return what the graph is given, and the report on it so far."""
        report: JsonObject = {"kind": "over", "over": None, "error": "", "stopped": False}
        task = task_of(self.draw, self.identifier)
        if answer is not None:
            return Command(resume=answer), {**report, "kind": "again"}
        if not seen.created_at or (message and (seen.tasks or self.identifier)):
            return task, {**report, "kind": "message"}
        if seen.interrupts:
            return self.answer(seen.interrupts, report, known)
        return None, {**report, "kind": "goes on" if seen.tasks else "over"}

    def answer(self, interrupts: Any, report: JsonObject, known: str) -> tuple[Any, JsonObject]:
        """Return the person's answer to what is asked, addressed as drawn; by its id where it is asked again."""
        bodies, questions, unnamed, kind = {}, [], 0, "review"
        for each in interrupts:
            request, actions = each.value, each.value["action_requests"]
            allowed = request["review_configs"][0]["allowed_decisions"]
            words = next((said for said in DOUBTS if {*said} == {*allowed}), None)
            if words:
                kind, unnamed = "doubt", unnamed + sum(not is_named(action) for action in actions)
            decisions = [self.decide(action, words, known) if words else {"type": "approve"} for action in actions]
            questions.append(json.dumps([allowed, *([action["name"], action["args"]] for action in actions)]))
            is_known = self.answered[questions[-1]] > 0 or len(interrupts) > 1
            echoed = {"id": request["id"]} if "id" in request and (is_known or self.draw.address == "question") else {}
            bodies[each.id] = {**echoed, "decisions": decisions}
        resume = bodies if self.draw.address == "interrupt" or is_known else next(iter(bodies.values()))
        more = {"kind": kind, "answer": resume, "questions": questions, "unnamed": unnamed}
        return Command(resume=resume), {**report, **more}

    def decide(self, action: JsonObject, words: tuple[str, str, str], known: str) -> JsonObject:
        """Return what a person says of a call in doubt who looks into the bank's log.

        Of equal calls the one in doubt is that whose identifier the thread does not hold.
        """
        happened, make_now, skip = words
        if self.draw.leaves:
            return {"type": skip}
        name, args = action["name"], {key: value for key, value in action["args"].items() if key != "key"}
        log = [each for each in self.bank.log() if each["name"] == name]
        made = [each["result"] for each in log if args.items() <= {**each, **each["result"]}.items()]
        new = [result for result in made if result["payment_id"] not in known]
        wanted = wanted_of(self.draw)[name, args.get("to"), args.get("amount")]
        if new or (made and len(made) >= wanted):
            return {"type": happened, "message": json.dumps([*made, *new][-1])}
        return {"type": make_now}


class Stopped(Exception):
    """What was awaited was cancelled, or its time ran out."""


async def stoppable(draw: Draw, fate: Counted, run: Any) -> None:
    """Await a run that its fate can stop. Raises Stopped."""
    loop = asyncio.get_running_loop()
    try:
        if draw.end == "cancel":
            task = asyncio.ensure_future(run)
            fate.stop = lambda: loop.call_soon_threadsafe(task.cancel)
            await task
        else:
            async with asyncio.timeout(None) as limit:
                fate.stop = lambda: loop.call_soon_threadsafe(limit.reschedule, loop.time())
                await run
                fate.stop = None
    except (asyncio.CancelledError, TimeoutError):
        raise Stopped from None


def is_named(call: JsonObject) -> bool:
    """Return whether a request or a record names one of the bank's calls."""
    return call.get("name") in PARAMETERS and {*PARAMETERS[call["name"]]} <= {*call.get("args", {})}


def text_of(saver: Any, config: Any) -> str:
    """Return what a thread's checkpoints hold, as a text to search."""
    return str([(each.checkpoint, each.pending_writes) for each in saver.list(config)])


async def atext_of(saver: Any, config: Any) -> str:
    """Return the same of a saver that is awaited."""
    return str([(each.checkpoint, each.pending_writes) async for each in saver.alist(config)])


def in_threads(run: Run, number: int, *given: Any) -> list[JsonObject | None]:
    """Have threads of one process go on at the same moment; those of a process that has ended are left behind."""
    fate, barrier = Counted(run.draw, run.folder, run.memory), Barrier(number)
    reports: list[JsonObject | None] = [None] * number
    left = [*range(number)]

    def body(own: int) -> None:
        with suppress(BaseException):
            reports[own] = run.play(fate, waiting(barrier, own), *given)
        left.remove(own)

    for own in range(number):
        Thread(target=body, args=(own,), daemon=True).start()
    deadline = time.monotonic() + PROCESS_S
    while left and not fate.over.is_set() and time.monotonic() < deadline:
        time.sleep(0.005)
    fate.over.set()
    return reports


def in_processes(run: Run, number: int, *given: Any) -> list[JsonObject | None]:
    """Have processes go on at the same moment."""
    barrier: Any = multiprocessing.get_context("fork").Barrier(number)
    places = [run.folder / f"report-{own}" for own in range(number)]
    children = []
    for own, place in enumerate(places):
        place.unlink(missing_ok=True)
        if not (child := os.fork()):
            try:
                report = run.play(Counted(run.draw, run.folder), waiting(barrier, own), *given)
                place.write_text(json.dumps(report))
            except BaseException as error:  # noqa: BLE001 - the process ends
                append(run.folder / "story", f" failed: {error!r}")
            finally:
                os._exit(0)
        children.append(child)
    deadline = time.monotonic() + PROCESS_S
    while children:
        children = [child for child in children if os.waitpid(child, os.WNOHANG) == (0, 0)]
        if children and time.monotonic() > deadline:
            for child in children:
                os.kill(child, signal.SIGKILL)
        time.sleep(0.003)
    return [json.loads(place.read_text()) if place.exists() else None for place in places]


def waiting(barrier: Any, own: int) -> Callable[[], int]:
    """Return what a process calls before it goes on; it returns the process's number."""

    def wait() -> int:
        with suppress(BrokenBarrierError):
            barrier.wait(2.0)
        time.sleep(own * STAGGER_S)
        return own

    return wait


def run_here(seed: int, address: str | None, send: Any) -> None:
    """Make a run in a process of its own, which leads a group."""
    os.setsid()
    with TemporaryDirectory(prefix="reality-") as folder:
        values = Run(Draw.of(seed), Path(folder), address).finish()
        story = (Path(folder) / "story").read_text()
        log = Path(folder) / "log"
        send.send({**values, "story": story + (log.read_text() if log.exists() else "")})
    send.close()
    os._exit(0)


def run_apart(seed: int, address: str | None) -> JsonObject:
    """Make the run of a seed in a process that has no other threads: it forks those of the run."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["evals.reality.warm", "evals.reality.runs"])
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=run_here, args=(seed, address, send))
    process.start()
    send.close()
    try:
        if not receive.poll(MOST_S + 2 * PROCESS_S):
            raise TimeoutError(f"seed {seed} does not end")
        values: JsonObject = receive.recv()
        return values
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()
