"""A run of the matrix from its message to its end: processes, answers, and the evaluation of the bank's log."""

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
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph.models.answer import AT_ONCE, AWAITED, finish
from gecko_graph.state import JsonObject

from .agents import ended_of, graph_of, task_of, words_of
from .bank import PARAMETERS, Bank, toolkit_of, wanted_of
from .draws import BEYOND, EDITS, THIRD_TOOL, Draw
from .fates import Counted, append, saver_of
from .served import Served

MOST_STEPS, MOST_SUPERSTEPS = 40, 150
MOST_REFUSED = 4
"""Successive refusals after which the message is sent again; after four times as many the run is unsettled."""
MOST_S, PROCESS_S = 60.0, 15.0
"""Time limits in seconds of a run and of one process."""
WAIT_S, STAGGER_S = 0.3, 0.01
"""Seconds that a refused process waits, since another one's call may be in progress; delay of the second of two."""
DOUBTS = (("happened", "make_now", "skip"), ("respond", "approve", "reject"))
"""Words for a call in doubt: it happened, make it now, leave it in doubt."""


class Run:
    """One run: its folder contains the saver's file, the bank's log, counts of writes, and its story."""

    def __init__(self, draw: Draw, folder: Path, address: str | None) -> None:
        self.draw, self.folder, self.bank = draw, folder, Bank(folder, Counted(draw, folder))
        self.place = address if draw.saver == "postgres" and address else str(folder / "saver.db")
        self.memory = InMemorySaver() if draw.saver == "memory" else None
        self.config: Any = {"configurable": {"thread_id": folder.name}, "recursion_limit": MOST_SUPERSTEPS}
        self.refused, self.answered, self.count, self.turn = 0, Counter[str](), Counter[str](), 0

    @property
    def identifier(self) -> str | None:
        return None if self.draw.message == "no id" else f"message-{self.turn + 1}"

    def finish(self) -> JsonObject:
        over = last = self.finish_turn()
        while last["status"] != "unsettled" and self.turn < self.draw.turns - 1:
            self.turn += 1
            if self.draw.extra != "undone":
                finish(self.carry_over())
            last = self.finish_turn()
        return self.judge(last if last["status"] == "unsettled" else over)

    def finish_turn(self) -> JsonObject:
        """Continue until the turn is finished; return how it ended."""
        begun, over, resent = time.monotonic(), None, False
        answer, message, self.refused = None, False, 0
        most, before = self.count["steps"] + MOST_STEPS, self.count["stopped"]
        while over is None and self.count["steps"] < most and time.monotonic() - begun < MOST_S:
            report = self.step(answer, message)
            over = report.get("over")
            answer = report.get("answer") if self.draw.again and answer is None else None
            is_due = self.draw.message == "same id" and over is not None
            message = not resent and (is_due or (self.draw.message != "none" and self.count["stopped"] > before))
            resent = resent or message
            over = None if message or answer is not None else over
            if self.turn and self.refused > 1:  # a later turn is judged by its real calls, not by its answer
                over = {"status": "refused", "doubts": []}
            if self.refused > 4 * MOST_REFUSED:  # well beyond the time limit of a call
                break
            message = message or self.refused == MOST_REFUSED
            time.sleep(WAIT_S if self.refused else 0)
        return over or {"status": "unsettled", "doubts": []}

    async def carry_over(self) -> None:
        """Copy the thread by its newest checkpoint, or delete all others."""
        calm = replace(self.draw, points=(), end="none")
        async with saver_of(Counted(calm, self.folder, self.memory), self.place) as saver:
            newest = saver.get_tuple(self.config)
            if self.draw.extra == "pruned":
                saver.delete_thread(self.folder.name)
            else:
                self.config |= {"configurable": {"thread_id": f"{self.folder.name}-copy"}}
            place: Any = {"configurable": {**self.config["configurable"], "checkpoint_ns": ""}}
            saver.put(place, newest.checkpoint, newest.metadata, newest.checkpoint["channel_versions"])

    def step(self, answer: JsonObject | None, message: bool) -> JsonObject:
        """Let one or two processes read the thread and continue; return the report of the first that survives."""
        number = 2 if self.draw.two and answer is None and not self.refused else 1
        self.count.update({"steps": 1, "processes": number})
        append(self.folder / "story", f"step {self.count['steps']}")
        go_on = in_threads if self.memory else in_processes
        reports = go_on(self, number, partial(self.play, answer=answer, message=message))
        report: JsonObject = next(filter(None, reports), {})
        self.count["stopped"] += sum(not each or each["stopped"] for each in reports)
        self.count.update({report.get("kind", ""): 1, **{key: report.get(key, 0) for key in ("unnamed", "edits")}})
        self.answered.update(report.get("questions", []))
        self.refused = self.refused + 1 if all(each is not None and each["error"] for each in reports) else 0
        return report

    def judge(self, over: JsonObject) -> JsonObject:
        done, wanted, status, doubts = self.bank.done(), wanted_of(self.draw), over["status"], over["doubts"]
        done -= allowed_of(self.draw, done)
        beyond, missing = done - wanted, (wanted - done).total()
        through = sum(count for each, count in beyond.items() if each not in wanted)
        is_unnamed = status == "in_doubt" and not all(map(is_named, doubts or [{}]))
        is_calm = not self.draw.faults and not self.draw.leaves and status != "unsettled"
        is_lost = status in ("done", "nothing")
        return {
            "doubled": beyond.total() - through,
            "let_through": through,
            "lost": missing if is_lost else 0,
            "barred": missing if is_calm and not is_lost else 0,
            "false_done": status == "done" and (done != wanted or bool(doubts)),
            "unnamed": self.count["unnamed"] + is_unnamed,
            "ended": status,
            **{key: self.count[key] for key in ("processes", "stopped", "review", "doubt")},
        }

    def play(self, fate: Counted, wait: Callable[[], int], **given: Any) -> JsonObject:
        """Read the thread and continue, as one process does."""
        going_on = self.go_on(fate, wait, **given)
        return asyncio.run(going_on) if self.draw.is_async else finish(going_on)

    async def go_on(
        self, fate: Counted, wait: Callable[[], int], *, answer: JsonObject | None, message: bool
    ) -> JsonObject:
        """Read the thread and send what it waits for; only one process sends a message without an id."""
        driver = AWAITED if self.draw.is_async else AT_ONCE
        bank = Bank(self.folder, fate)
        async with saver_of(fate, self.place) as saver, toolkit_of(self.draw, bank) as toolkit:
            graph = graph_of(self.draw, toolkit, saver)
            look = partial(driver.do, graph.get_state, graph.aget_state, self.config)
            seen = await look()
            known = await driver.do(text_of, atext_of, saver, self.config) if seen.interrupts else ""
            given, report = self.choose(seen, answer, message, known)
            if wait() and report["kind"] == "message" and not self.identifier:
                return report
            fate.tell(f" {report['kind']} {given.resume if isinstance(given, Command) else ''}")
            if report["kind"] != "over":
                report |= await self.invoke(graph, given, fate)
                seen = await look()
            if seen.created_at and not seen.tasks:  # `next` leaves out tasks that have written
                fate.tell(f"  told: {seen.values['messages'][-1].text[:300]!r}")
                report["over"] = dict(zip(("status", "doubts"), ended_of(self.draw, seen.values), strict=True))
        fate.tell(f" {report['error'] or report['over'] or 'asks'}")
        return report

    async def invoke(self, graph: Any, given: Any, fate: Counted) -> JsonObject:
        stopped, error = False, ""
        try:
            if self.draw.is_async:
                await stoppable(fate, graph.ainvoke(given, self.config))
            else:
                graph.invoke(given, self.config)
        except TimeoutError:
            stopped, error = True, (await self.invoke(graph, None, fate))["error"]
        except Exception as failed:  # noqa: BLE001 - a process may end with any exception
            error = f"{type(failed).__name__}: {failed}"[:300]
        return {"error": error, "stopped": stopped}

    def choose(self, seen: Any, answer: JsonObject | None, message: bool, known: str) -> tuple[Any, JsonObject]:
        report: JsonObject = {"kind": "over", "over": None, "error": "", "stopped": False}
        if answer is not None:
            return Command(resume=answer), {**report, "kind": "again"}
        if self.is_unsent(seen) or (message and (seen.tasks or self.identifier)):
            return task_of(self.draw, self.identifier, self.turn), {**report, "kind": "message"}
        if seen.interrupts:
            return self.answer(seen.interrupts, report, known)
        return None, {**report, "kind": "goes on" if seen.tasks else "over"}

    def is_unsent(self, seen: Any) -> bool:
        if not self.turn or not seen.created_at:
            return not seen.created_at
        words = words_of(self.draw, self.turn)
        return not seen.tasks and all(each.text != words for each in seen.values["messages"])

    def answer(self, interrupts: Any, report: JsonObject, known: str) -> tuple[Any, JsonObject]:
        """Return the person's answer to the questions, addressed as drawn, or by id if a question is repeated."""
        bodies, questions, unnamed, kind = {}, [], 0, "review"
        for each in interrupts:
            request, actions = each.value, each.value["action_requests"]
            allowed = request["review_configs"][0]["allowed_decisions"]
            words = next((said for said in DOUBTS if {*said} == {*allowed}), None)
            if words:
                kind, unnamed = "doubt", unnamed + sum(not is_named(action) for action in actions)
            decisions = [self.decide(each, words, known) if words else self.approve(each) for each in actions]
            questions.append(json.dumps([allowed, *([action["name"], action["args"]] for action in actions)]))
            is_known = self.answered[questions[-1]] > 0 or len(interrupts) > 1
            echoed = {"id": request["id"]} if "id" in request and (is_known or self.draw.address == "question") else {}
            bodies[each.id] = {**echoed, "decisions": decisions}
        resume = bodies if self.draw.address == "interrupt" or is_known else next(iter(bodies.values()))
        edits = json.dumps(resume).count("edited_action")
        more = {"kind": kind, "answer": resume, "questions": questions, "unnamed": unnamed, "edits": edits}
        return Command(resume=resume), {**report, **more}

    def approve(self, action: JsonObject) -> JsonObject:
        """Return the approval of a call or, if drawn, its edit: a lawful edit each time, others once."""
        is_due = self.draw.edit == "lawful" or (self.draw.edit and not self.count["edits"])
        if not is_due or [action["name"], action["args"].get("to"), action["args"].get("amount")] != ["pay", "ann", 11]:
            return {"type": "approve"}
        name, args = EDITS[self.draw.edit]
        key = {each: action["args"][each] for each in ("key",) if each in action["args"]}
        return {"type": "edit", "edited_action": {"name": name, "args": {**args, **key}}}

    def decide(self, action: JsonObject, words: tuple[str, str, str], known: str) -> JsonObject:
        """Return the decision on a call in doubt by a person who looks into the bank's log.

        Among equal calls the one in doubt is that whose identifier the thread does not contain.
        """
        happened, make_now, skip = words
        if self.draw.leaves:
            return {"type": skip}
        name, args = action["name"], {key: value for key, value in action["args"].items() if key != "key"}
        log = [each for each in self.bank.log() if each["name"] == name]
        made = [each["result"] for each in log if args.items() <= {**each, **each["result"]}.items()]
        new = [result for result in made if result["payment_id"] not in known]
        if new or (made and len(made) >= wanted_of(self.draw)[name, args.get("to"), args.get("amount")]):
            return {"type": happened, "message": json.dumps([*made, *new][-1])}
        return {"type": make_now}


def allowed_of(draw: Draw, done: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Return events that are not in the plan but allowed."""
    if draw.extra == "undone":
        return done & Counter(("refund", *each) for _, *each in draw.wanted)
    paid = [amount for _, _, amount in done.elements()]
    return done & Counter([BEYOND] if all(type(each) is int for each in paid) and sum(paid) <= draw.balance else [])


async def stoppable(fate: Counted, run: Any) -> None:
    """Await a run that its fate can cancel or time out. Raises TimeoutError if it did."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(run)
    try:
        async with asyncio.timeout(None) as limit:
            stop = task.cancel if fate.draw.end == "cancel" else partial(limit.reschedule, loop.time())
            fate.stop = partial(loop.call_soon_threadsafe, stop)
            await task
    except asyncio.CancelledError:
        raise TimeoutError from None
    finally:
        fate.stop = None


def is_named(call: JsonObject) -> bool:
    """Return whether a request or a record names one of the bank's calls."""
    parameters = PARAMETERS | dict.fromkeys(THIRD_TOOL.values(), PARAMETERS["pay"])
    return {*parameters.get(call.get("name", ""), ["name"])} <= {*call.get("args", {})}


def answers_left_out(kept: Any) -> list[Any]:
    """Return a checkpoint's writes without the person's answers, which may have been refused."""
    return [write for write in kept.pending_writes or () if write[1] != "__resume__"]


def text_of(saver: Any, config: Any) -> str:
    """Return the content of a thread's checkpoints as a text to search."""
    return str([(each.checkpoint, answers_left_out(each)) for each in saver.list(config)])


async def atext_of(saver: Any, config: Any) -> str:
    return str([(each.checkpoint, answers_left_out(each)) async for each in saver.alist(config)])


def in_threads(run: Run, number: int, play: Callable[..., JsonObject]) -> Sequence[JsonObject | None]:
    """Let threads of one process continue at the same moment; threads of an ended process are abandoned."""
    fate, barrier = Counted(run.draw, run.folder, run.memory), Barrier(number)
    reports: list[JsonObject | None] = [None] * number

    def body(own: int) -> None:
        with suppress(BaseException):
            reports[own] = play(fate, partial(wait, barrier, own))

    threads = [Thread(target=body, args=(own,), daemon=True) for own in range(number)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PROCESS_S
    while any(each.is_alive() for each in threads) and not fate.over.is_set() and time.monotonic() < deadline:
        time.sleep(0.005)
    fate.over.set()
    return reports


def in_processes(run: Run, number: int, play: Callable[..., JsonObject]) -> Sequence[JsonObject | None]:
    barrier: Any = multiprocessing.get_context("fork").Barrier(number)
    places = [run.folder / f"report-{own}" for own in range(number)]
    children = []
    for own, place in enumerate(places):
        place.unlink(missing_ok=True)
        if not (child := os.fork()):
            try:
                report = play(Counted(run.draw, run.folder), partial(wait, barrier, own))
                place.write_text(json.dumps(report))
            except BaseException as error:  # noqa: BLE001 - the process ends here
                append(run.folder / "story", f" failed: {error!r}")
            finally:
                os._exit(0)
        children.append(child)
    deadline = time.monotonic() + PROCESS_S
    while children := [child for child in children if os.waitpid(child, os.WNOHANG) == (0, 0)]:
        time.sleep(0.003)
        for child in children if time.monotonic() > deadline else []:
            os.kill(child, signal.SIGKILL)
    return [json.loads(place.read_text()) if place.exists() else None for place in places]


def wait(barrier: Any, own: int) -> int:
    """Wait until all processes of a step are ready; return the process's number."""
    with suppress(BrokenBarrierError):
        barrier.wait(2.0)
    time.sleep(own * STAGGER_S)
    return own


def run_here(seed: int, address: str | None, folder: Path, send: Any) -> None:
    """Run in this process, which leads its own process group; send the result."""
    os.setsid()
    os.dup2(os.open(folder / "errors", os.O_WRONLY | os.O_CREAT), 2)  # the processes' output as they end
    draw = Draw.of(seed)
    values = (Served(draw, folder) if draw.extra == "served" else Run(draw, folder, address)).finish()
    story = [(folder / each).read_text() for each in ("story", "log") if (folder / each).exists()]
    send.send({**values, "story": f"{draw}\n{''.join(story)}"})


def run_apart(seed: int, address: str | None) -> JsonObject:
    """Run a seed in a process without other threads, because it forks the processes of the run."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["evals.reality.warm"])
    with TemporaryDirectory(prefix="reality-", ignore_cleanup_errors=True) as folder:
        receive, send = context.Pipe(duplex=False)
        process = context.Process(target=run_here, args=(seed, address, Path(folder), send))
        process.start()
        send.close()
        try:
            if not receive.poll(MOST_S + 2 * PROCESS_S):
                raise TimeoutError(f"the run of seed {seed} does not end")
            values: JsonObject = receive.recv()
            return values
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid or 0, signal.SIGKILL)  # including abandoned ones
            process.join()
