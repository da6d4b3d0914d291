"""What a run shows while it goes on: a live tree on a terminal, plain lines in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Any, Protocol

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from ..state import Rehearsal
from . import words
from .story import Draft, Story, events_of, is_over, is_whole, opening_events, waits_for
from .tree import attempt_tree, closing

REFRESHES_A_SECOND = 8


class Progress(Protocol):
    """Shows one turn while it goes on: `with progress(console) as shown: shown.take(event)`."""

    def __enter__(self) -> Progress:
        """Begin to show."""

    def __exit__(self, *failure: object) -> None:
        """Leave on the screen what there is."""

    def take(self, event: Mapping[str, Any]) -> None:
        """Show one event."""

    def sum_up(self, rehearsal: Rehearsal) -> None:
        """Show what it has come to, once it is over."""


def progress(console: Console) -> Progress:
    """A live tree where the console is a terminal, else plain lines."""
    return LiveTree(console) if console.is_terminal and not console.is_dumb_terminal else PlainLines(console)


class LiveTree:
    """Attempts grow on the screen. One that is over is printed for good and scrolls away; only open ones are redrawn.

    So what is redrawn fits the screen: of a long attempt its end.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._story = Story()
        self._open: dict[int, Draft] = {}
        self._lock = Lock()  # the picture is drawn by a thread of its own
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

    def take(self, event: Mapping[str, Any]) -> None:
        """Show one event."""
        if not event["attempt"]:  # of the turn as a whole
            for word, text in event_lines(event):
                self._console.print(Text(f"{word} {words.clean(text)}", "dim"))
            return
        with self._lock:
            draft = self._story.take(event)
            if not is_over(draft):
                self._open[draft["number"]] = draft
                return
            was_open = self._open.pop(draft["number"], None) is not None
        if was_open and is_whole(draft):
            self._live.refresh()  # what is printed goes above the last picture, which must not hold it any more
            self._console.print(attempt_tree(draft))

    def sum_up(self, rehearsal: Rehearsal) -> None:
        """Show what it has come to, and before that the attempts of which only a part was seen, as after a resume."""
        seen = {draft["number"] for draft in self._story.attempts if is_whole(draft)}
        for attempt in rehearsal["attempts"]:
            if attempt["number"] not in seen:
                self._console.print(attempt_tree(attempt))
        self._console.print(closing(rehearsal))

    def _picture(self) -> RenderableType:
        with self._lock:
            return self._drawn(list(self._open.values()))

    def _drawn(self, drafts: list[Draft]) -> RenderableType:
        waiting = "; ".join(dict.fromkeys(filter(None, map(waits_for, drafts))))
        doing = f"waiting for {words.clean(words.cut(waiting, 60))}" if waiting else "thinking"
        self._spinner.update(text=Text(doing, "dim"), style="dim")
        return _Tail(Group(*(attempt_tree(draft) for draft in drafts), self._spinner))


class _Tail:
    """The last lines of a renderable, as many as the screen holds."""

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


def show(console: Console, attempts: Iterable[Draft], rehearsal: Rehearsal | None, *, waiting: str = "") -> None:
    """Show what is over, or was interrupted: trees on a terminal, else plain lines.

    Args:
        console: Where to.
        attempts: Attempts, finished or not.
        rehearsal: What they came to; None where they did not.
        waiting: What an unfinished attempt is waiting for.
    """
    plain = PlainLines(console)
    for event in opening_events(rehearsal or {}):
        plain.take(event)
    for attempt in attempts:
        if console.is_terminal:
            console.print(attempt_tree(attempt, waiting=waiting))
        else:
            for event in events_of(attempt):
                plain.take(event)
    if rehearsal is not None and console.is_terminal:
        console.print(closing(rehearsal))
    elif rehearsal is not None:
        plain.sum_up(rehearsal)


class PlainLines:
    """One line an event, each with the number of its attempt, so that parallel ones can be told apart."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> PlainLines:
        return self

    def __exit__(self, *failure: object) -> None:
        return None

    def take(self, event: Mapping[str, Any]) -> None:
        """Print one event."""
        for word, text in event_lines(event):
            self._say(f"[{event['attempt'] or '-'}] {word:<8} {words.clean(text)}")

    def sum_up(self, rehearsal: Rehearsal) -> None:
        """Print what it has come to."""
        for word, text in closing_lines(rehearsal):
            self._say(f"{word:<12} {words.clean(text)}")

    def _say(self, line: str) -> None:
        self._console.out(line.rstrip(), highlight=False)


def closing_lines(rehearsal: Rehearsal) -> Iterator[tuple[str, str]]:
    """What a rehearsal comes to as lines."""
    verdict = words.tell_verdict(rehearsal["verdict"], plan=rehearsal["plan"])
    yield "result", f"{verdict} (attempt {rehearsal['chosen']} of {len(rehearsal['attempts'])})"
    for number, call in enumerate(rehearsal["plan"], 1):
        yield "plan", f"{number}. {words.tell_call(call, origins=rehearsal.get('origins', {}).get(call['id']))}"
    for mark in words.tell_changes(rehearsal):
        yield "state", f"{mark.sign} {mark.place} {mark.value}"
    if rehearsal["answer"] and rehearsal["verdict"]["word"] == "needs_user":
        yield "asks", words.cut(rehearsal["answer"], words.PROSE_CHARS)
    yield "cost", words.tell_usage(rehearsal["usage"])


def event_lines(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """An event as lines: a word that can be searched for, and the rest."""
    tell = _LINES.get(event["type"])
    if tell is not None:
        yield from tell(event)


def _state(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from words.tell_supposed({"supposed_state": event})


def _checklist(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for item in event["items"]:
        yield "expected", words.prose(item["description"])
    if event.get("failure"):
        yield "expected", f"nobody can say: {words.prose(event['failure'])}"


def _attempt(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "attempt", f"from state {event['digest'][:8]}"


def _call(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "call", words.tell_call(event["call"])


def _complaint(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for complaint in event["complaints"]:
        yield "refused", f"{event['call']['name']}: {words.tell_complaint(complaint)}"


def _result(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name = event["call"]["name"]
    yield event["status"], f"{name}: {words.tell_result(event['result'])} ({words.tell_source(event)})"
    for told in words.tell_passed(event["passed"]):
        yield "note", f"{name}: {told}"
    for why in event.get("unclear", ()):
        yield "unclear", f"{name}: {why}"


def _change(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name = event["call"]["name"]
    if event["refused"]:
        yield "refused", f"{name}: the change was not made: {event['refused']}"
    for mark in words.tell_patch(event["patch"] or []):
        yield "change", f"{name}: {mark.sign} {mark.place} {mark.value}".rstrip()
    for race in event.get("race", ()):
        yield "race", f"{name}: {race}"


def _verdict(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if event["answer"]:
        yield "answer", words.cut(event["answer"], words.PROSE_CHARS)
    if words.is_early(event["stop_reason"]):
        yield "stopped", event["stop_reason"]
    yield "verdict", words.tell_verdict(event["verdict"])
    for item in event["verdict"]["items"]:
        why = "; ".join(filter(None, words.tell_judged(item, event["stop_reason"])))
        yield "item", f"{item['status'].replace('_', ' ')}: {item['description']} ({why})"
    yield from words.tell_notes(event["verdict"])
    if feedback := words.tell_feedback(event["verdict"], event["stop_reason"]):
        yield "feedback", feedback


_LINES = {
    "gecko.state": _state,
    "gecko.checklist": _checklist,
    "gecko.attempt": _attempt,
    "gecko.call": _call,
    "gecko.complaint": _complaint,
    "gecko.result": _result,
    "gecko.change": _change,
    "gecko.verdict": _verdict,
}
