"""What a prompt's view of a padded state still holds of what the real tools touch."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from gecko_graph.context import GeckoContext
from gecko_graph.models.view.view import focus_words, view
from gecko_graph.state import JsonObject

from ..bfcl.influence import Path, Touched, touched
from ..bfcl.padding import ALIKE, Padding
from ..bfcl.shown import CUT, Shown, holds, names, read
from ..bfcl.tasks import Task, read_tasks
from ..harness.figures import Table, share
from ..harness.suite import Case, EvalError, Expectation, Record, Suite, Summary, by_group

WANTED = 0.99
MISSES = 40
CATEGORIES = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param")


class Views(Suite):
    """Views: on BFCL's ground-truth calls, whether the view of a padded state holds what the real class touches.

    A case is a task, its ground truth played on the real classes. Before each call the state is padded: each collection
    gets entries like its own, the file system folders with files of the same names, and applications stand beside them
    that the task is not about. The view is the one that the simulator's prompt carries: of the default budget, its
    focus the call. It must hold each place that the call reads or changes, a scalar whole.

    A place is read where another value there makes the real class answer or change something else. Places are those of
    the task's own state: with padding in it, a list of all messages is as long as one likes.
    """

    name = "view"
    asks = False
    tools = "real"
    planner = None
    examples = ("--limit 20", "--budget 3000", "--size 1000000 --limit 10")

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Add sizes and categories."""
        add = parser.add_argument
        add("--category", default="multi_turn_base", metavar="A,B", help=f"of {', '.join(CATEGORIES)} (the first)")
        add("--size", type=int, default=100_000, metavar="N", help="characters of a padded state (100000)")
        add("--budget", type=int, default=GeckoContext().view_chars, metavar="N", help="characters of a view (default)")

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._categories = options.own.category.split(",")
        if unknown := set(self._categories) - set(CATEGORIES):
            raise EvalError(f"--category {', '.join(sorted(unknown))}: there are {', '.join(CATEGORIES)}")
        if options.own.budget < 500:
            raise EvalError("--budget: a view has at least 500 characters")

    def cases(self) -> Iterable[Case]:
        """Yield a case per task."""
        for task in read_tasks(self.options.data, self._categories):
            yield Case(task.id, task, group=task.category)

    def run_case(self, case: Case) -> JsonObject:
        """Play the ground truth, and look at the view before each call."""
        task: Task = case.data
        state = task.real.initial_state
        calls: list[JsonObject] = []
        for number, text in enumerate(text for turn in task.turns for text in turn.truth):
            call = task.read(text)
            calls.append(self._look(task, state, call, number=number))
            state = _after(task, state, call)
        return {"calls": calls, "rungs": {"python": len(calls)}}

    def _look(self, task: Task, state: JsonObject, call: JsonObject, *, number: int) -> JsonObject:
        own = self.options.own
        padding = Padding(state, size=own.size, seed=self.options.seed * 1000 + number)
        text = view(padding.state, focus=focus_words(call["call"], call["args"]), budget=own.budget)
        shown = read(text)
        places = touched(task.real, state, call)
        missed = [each for each in places if not _is_held(shown, each, padding)]
        return {
            "tool": call["call"],
            "class": task.real.owners[call["call"]],
            "places": len(places),
            "chars": len(text),
            "missed": [[_path_text(each.path), each.how, _cause(shown, padding.moved(each.path))] for each in missed],
            **({"args": call["args"]} if missed else {}),
        }

    def tell(self, record: Record) -> str:
        """Return a record in one line."""
        calls = record.values["calls"]
        missed = [each["tool"] for each in calls if each["missed"]]
        return f"{len(calls)} calls, missed in {len(missed)}" + (f": {', '.join(missed)}" if missed else "")

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return held calls by class, misses by cause, and each miss."""
        own = self.options.own
        lost = sum(not record.done for record in records)
        calls = [(record.id, each) for record in records if record.done for each in record.values["calls"]]
        touching = [each for _, each in calls if each["places"]]
        table = Table(
            f"Calls whose view of {own.budget:,} characters holds all that they touch",
            ["class", "held", "calls", "places", "places missed"],
            note=f"States padded to {own.size:,} characters; {len(calls) - len(touching)} calls touch nothing and do "
            f"not count. Each collection has {ALIKE} more entries like its own.",
        )
        for name in [*sorted({each["class"] for each in touching}), "all"]:
            some = [each for each in touching if name in (each["class"], "all")]
            held = sum(not each["missed"] for each in some)
            places, missed = (sum(map(of, some)) for of in (_places, _missed))
            table.add(name, share(held, len(some), tools="real"), len(some), places, missed)
        held = sum(not each["missed"] for each in touching)
        tasks = Table("Tasks of whose calls every view holds all", ["category", "tasks"])
        for group, each in by_group(records).items():
            whole = [record for record in each if record.done and not any(c["missed"] for c in record.values["calls"])]
            tasks.add(group, share(len(whole), len(each), tools="real"))
        holds_all = bool(touching) and held >= WANTED * len(touching) and not lost
        return Summary(
            [table, tasks],
            [Expectation(f"the view holds all that a call touches for at least {WANTED:.0%} of the calls", holds_all)],
            _misses(calls),
        )


SUITE = Views


def _after(task: Task, state: JsonObject, call: JsonObject) -> JsonObject:
    """Return the state after a call of the real class."""
    made = dict(state)
    made["runtime_state"] = dict(state.get("runtime_state", {}))
    task.real.simulate(call["call"])(made, **call["args"])
    return made


def _is_held(shown: Any, place: Touched, padding: Padding) -> bool:
    path = padding.moved(place.path)
    if place.how == "member":
        return names(shown, path)
    value: Any = padding.state
    for token in path:
        value = value[token]
    return holds(shown, path, value=value)


def _cause(shown: Any, path: Path) -> str:
    """Return why a view does not hold a place."""
    for depth, token in enumerate(path):
        if not isinstance(shown, Shown):
            return "the text around it is cut" if shown is CUT else "another value is shown"
        if token not in shown.entries:
            return "left out of a container that is shown" if depth == len(path) - 1 else "its container is left out"
        shown = shown.entries[token]
    return "its text is cut" if shown is CUT else "not whole"


def _places(call: JsonObject) -> int:
    return int(call["places"])


def _missed(call: JsonObject) -> int:
    return len(call["missed"])


def _path_text(path: Path) -> str:
    return "/".join(map(str, path))


def _misses(calls: Sequence[tuple[str, JsonObject]]) -> list[str]:
    """Return misses by cause, then call by call."""
    missed = [(case, each) for case, each in calls if each["missed"]]
    causes = Counter(cause for _, each in missed for _, _, cause in each["missed"])
    lines = [f"{count} places missed: {cause}" for cause, count in causes.most_common()]
    for case, each in missed[:MISSES]:
        places = "; ".join(f"{path} ({how}): {cause}" for path, how, cause in each["missed"][:3])
        more = f"; {len(each['missed']) - 3} more" if len(each["missed"]) > 3 else ""
        lines.append(f"{case}: {each['tool']}({each['args']}): {places}{more}")
    return lines + ([f"{len(missed) - MISSES} more calls"] if len(missed) > MISSES else [])
