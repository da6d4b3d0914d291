"""The live view of a run: a tree on a terminal, plain lines in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from threading import Lock
from typing import Any, Protocol

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from . import words
from .drafts import Draft, Drafts, is_complete, list_events, list_opening_events, pending_calls
from .tree import attempt_tree, follow_up_trees, opening_row, result_block

REFRESHES_A_SECOND = 8


class Progress(Protocol):
    """The view of one running turn: `with progress(console) as view: view.on_event(event)`."""

    def __enter__(self) -> Progress:
        """Start the view."""

    def __exit__(self, *failure: object) -> None:
        """Stop the view; the screen keeps its content."""

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Show one event."""

    def on_result(self, record: Mapping[str, Any]) -> None:
        """Show the result of the turn (`Rehearsal`) and what followed it (`drafts.follow_up`), either where known."""


def progress(console: Console) -> Progress:
    """Return a live tree where the console is a terminal, else plain lines."""
    return LiveTree(console) if console.is_terminal and not console.is_dumb_terminal else PlainLines(console)


class LiveTree:
    """A growing tree: a finished attempt is printed and scrolls, only open ones, cut to the screen, are redrawn."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._drafts = Drafts()
        self._open: dict[int, Draft] = {}
        self._lock = Lock()  # rich draws the picture in its own thread
        self._spinner = Spinner("dots", style="dim")
        self._live = Live(
            get_renderable=self._picture,
            console=console,
            refresh_per_second=REFRESHES_A_SECOND,
            transient=True,
            vertical_overflow="crop",
        )

    def __enter__(self) -> LiveTree:
        self._live.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._live.stop()
        for draft in self._open.values():
            self._console.print(attempt_tree(draft, waiting="stopped here"))

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Show one event."""
        if not event["attempt"]:  # an event of the turn
            show_opening(self._console, event_lines(event))
            return
        with self._lock:
            draft = self._drafts.add(event)
            if "verdict" not in draft:
                self._open[draft["number"]] = draft
                return
            was_open = self._open.pop(draft["number"], None) is not None
        if was_open and is_complete(draft):
            self._live.refresh()  # printed text goes above the last picture, which must not show it twice
            self._console.print(attempt_tree(draft))

    def on_result(self, record: Mapping[str, Any]) -> None:
        """Show the result, and before it the attempts that were seen only in part, as after a resume."""
        seen = {draft["number"] for draft in self._drafts.attempts if is_complete(draft)}
        for attempt in record.get("attempts", ()):
            if attempt["number"] not in seen:
                self._console.print(attempt_tree(attempt))
        if "verdict" in record:
            self._console.print(result_block(record))
        for tree in follow_up_trees({"asked": record.get("asked")}):
            self._console.print(tree)
        for word, text in follow_up_lines({**record, "asked": []}):
            self._console.print(Text.assemble((f"{word} ", "bold"), words.clean(text)))

    def _picture(self) -> RenderableType:
        with self._lock:
            drafts = list(self._open.values())
            waiting = "; ".join(dict.fromkeys(filter(None, map(pending_calls, drafts))))
            status = f"waiting for {words.clean(words.cut(waiting, 60))}" if waiting else "thinking"
            self._spinner.update(text=Text(status, "dim"), style="dim")
            return _Tail(Group(*(attempt_tree(draft) for draft in drafts), self._spinner))


class _Tail:
    """The last lines of a renderable that fit the screen."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._renderable, options.update(height=None), pad=False)
        room = max(2, console.size.height - 1)
        if len(lines) > room:
            yield from console.render(Text(f"… {len(lines) - room + 1} lines above", "dim"), options)
            lines = lines[-(room - 1) :]
        for line in lines:
            yield from line
            yield Segment.line()


def show(
    console: Console, attempts: Iterable[words.Record], rehearsal: Mapping[str, Any] | None, *, waiting: str = ""
) -> None:
    """Print finished or interrupted attempts: trees on a terminal, else plain lines.

    `rehearsal` is their result, and what followed it (`drafts.follow_up`); `waiting` what an unfinished one waits for.
    """
    record: Mapping[str, Any] = rehearsal or {}
    for event in list_opening_events(record):
        show_opening(console, event_lines(event))
    if not console.is_terminal:
        plain = PlainLines(console)
        for event in chain.from_iterable(map(list_events, attempts)):
            plain.on_event(event)
        plain.on_result(record, with_calls=True)
        return
    trees = (attempt_tree(attempt, waiting=waiting) for attempt in attempts)
    result = [result_block(record)] if "verdict" in record else []
    for block in (*trees, *result, *follow_up_trees(record)):
        console.print(block)


def show_opening(console: Console, lines: Iterable[tuple[str, str]]) -> None:
    """Print labelled lines on a turn that stand before its attempts."""
    for word, text in lines:
        if console.is_terminal and not console.is_dumb_terminal:
            console.print(opening_row(word, text))
        else:
            console.out(f"[-] {word:<8} {words.clean(text)}", highlight=False)


class PlainLines:
    """One line an event, each with the number of its attempt."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> PlainLines:
        return self

    def __exit__(self, *failure: object) -> None:
        return None

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Print one event."""
        for word, text in event_lines(event):
            self._print(f"[{event['attempt'] or '-'}] {word:<8} {words.clean(text)}")

    def on_result(self, record: Mapping[str, Any], *, with_calls: bool = False) -> None:
        """Print the result, and the real calls where they were not seen as events."""
        for word, text in [*result_lines(record), *follow_up_lines(record, with_calls=with_calls)]:
            self._print(f"{word:<12} {words.clean(text)}")

    def _print(self, line: str) -> None:
        self._console.out(line.rstrip(), highlight=False)


def result_lines(rehearsal: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the result of a rehearsal as labelled lines; none where it has none."""
    if "verdict" not in rehearsal:
        return
    verdict = words.format_verdict(rehearsal["verdict"], plan=rehearsal["plan"])
    yield "result", f"{verdict} (attempt {rehearsal['chosen']} of {len(rehearsal['attempts'])})"
    for number, call in enumerate(rehearsal["plan"], 1):
        yield "plan", f"{number}. {words.format_call(call, origins=rehearsal.get('origins', {}).get(call['id']))}"
    for mark in words.format_changes(rehearsal):
        yield "state", f"{mark.sign} {mark.place} {mark.value}"
    if rehearsal["answer"] and rehearsal["verdict"]["status"] == "needs_user":
        yield "asks", words.cut(rehearsal["answer"], words.PROSE_CHARS)
    yield "cost", words.format_usage(rehearsal["usage"])


def follow_up_lines(record: Mapping[str, Any], *, with_calls: bool = False) -> Iterator[tuple[str, str]]:
    """Yield what followed a rehearsal as labelled lines."""
    for action in record.get("asked") or ():
        yield "asks", words.format_call(action)
    if execution := record.get("execution"):
        for entry in execution["calls"] if with_calls else ():
            yield "real", words.format_call(entry["call"])
            yield from words.format_real_call(entry)
        yield "carried out", words.format_execution(execution)
        for call in execution["left"]:
            yield "left", words.format_call(call)


def event_lines(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield an event as labelled lines; none for an unknown one."""
    format_event = _LINES.get(event["type"])
    if format_event is not None:
        yield from format_event(event)


def _checklist(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for item in event["items"]:
        yield "expected", words.prose(item["description"])
    if event.get("failure"):
        yield "expected", words.prose(event["failure"])


def _complaint(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for complaint in event["complaints"]:
        yield "refused", f"{event['call']['name']}: {words.format_complaint(complaint)}"


def _result(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name = event["call"]["name"]
    yield event["status"], f"{name}: {words.format_result(event['result'])} ({words.format_source(event)})"
    for reason in words.format_passed(event["passed"]):
        yield "note", f"{name}: {reason}"
    for label, text in words.format_marks(event):
        yield label, f"{name}: {text}"


def _change(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name = event["call"]["name"]
    if event["refused"]:
        yield "refused", f"{name}: the change was not made: {event['refused']}"
    for text in words.format_violations(event.get("violations", ())):
        yield "broken", f"{name}: {text}"
    for mark in words.format_patch(event["patch"] or []):
        yield "change", f"{name}: {mark.sign} {mark.place} {mark.value}".rstrip()
    for mark in words.format_patch(event.get("observed") or []):
        yield "observed", f"{name}: {mark.place} {mark.value}".rstrip()
    for race in event.get("race", ()):
        yield "race", f"{name}: {race}"


def _verdict(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if event["answer"]:
        yield "answer", words.cut(event["answer"], words.PROSE_CHARS)
    if words.is_early(event["stop_reason"]):
        yield "stopped", event["stop_reason"]
    yield "verdict", words.format_verdict(event["verdict"])
    for item in event["verdict"]["items"]:
        why = "; ".join(filter(None, words.format_judgement(item, event["stop_reason"])))
        yield "item", f"{item['status'].replace('_', ' ')}: {item['description']} ({why})"
    yield from words.format_notes(event["verdict"])
    if feedback := words.format_feedback(event["verdict"], event["stop_reason"]):
        yield "feedback", feedback


def _need(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "need", event["need"]
    for each in event["rejections"]:
        yield "gate", f"{each['tool']}: {each['reason']}"


def _sync(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name = event["call"]["name"]
    for mark in words.format_patch(event["patch"] or []):
        yield "change", f"{name}: {mark.sign} {mark.place} {mark.value}".rstrip()
    for drift in event["drift"]:
        yield "drift", f"{name}: {words.format_drift(drift)}"


_LINES: dict[str, Callable[[Mapping[str, Any]], Iterable[tuple[str, str]]]] = {
    "gecko.state": lambda event: words.format_supposed({"supposed_state": event}),
    "gecko.checklist": _checklist,
    "gecko.attempt": lambda event: [("attempt", f"from state {event['digest'][:8]}")],
    "gecko.need": _need,
    "gecko.call": lambda event: [("call", words.format_call(event["call"]))],
    "gecko.complaint": _complaint,
    "gecko.result": _result,
    "gecko.change": _change,
    "gecko.verdict": _verdict,
    "gecko.execute": lambda event: [("real", words.format_call(event["call"]))],
    "gecko.executed": lambda event: [
        (event["status"].replace("_", " "), f"{event['call']['name']}: {words.format_result(event['result'])}")
    ],
    "gecko.sync": _sync,
}
