"""`view`: what a prompt's view of a padded state still holds of what BFCL's recorded calls change.

A view is read back from its text alone: marks of things left out show nothing.
"""

from __future__ import annotations

import json
import random
import re
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gecko_graph.context import GeckoContext
from gecko_graph.models.focus import focus_words
from gecko_graph.models.view import view
from gecko_graph.state import Json, JsonObject
from gecko_graph.values.patch import apply_patch, tokens

from ..harness.figures import Case, Record, Table, share
from ..harness.options import read_jsonl
from ..harness.suite import Expectation, Suite, Summary

FILE = "bfcl_multiturn_calls.jsonl.gz"
FILES = "GorillaFileSystem"
WANTED = 0.99
SIZE = 100_000
"""Characters of a padded state."""
ALIKE = 20
"""Entries that each collection gets beside the task's own, half of them before, half of them behind."""
FOLDERS = 24
WORDS = "amber basin cedar delta ember fjord grove harbor island juniper kettle lagoon meadow orchard pepper".split()  # noqa: SIM905

_TEXT = r'"(?:[^"\\]|\\.)*"'
_CUT = rf"{_TEXT} … [\d,]+ of [\d,]+ characters left out … {_TEXT}"
_NAMES = rf"(?:{_CUT}|{_TEXT})(?:, (?:{_CUT}|{_TEXT}))*(?:, …)?"
_PARTS = re.compile(
    rf"(?P<cut>{_CUT})|{_TEXT}"
    rf"|(?P<keys>… [\d,]+(?: more)? keys?(?: \(of [\d,]+\))?(?:: {_NAMES})?)"
    r"|… items? (?P<first>\d+)(?: to (?P<last>\d+))? \(of \d+\)"
    rf"|(?P<items>… [\d,]+ items?(?:, the first with {_NAMES})?)|(?P<index>\d+: )"
)
LEFT_OUT = "…"
"""What stands in the place of each thing that a view does not show whole."""

Path = tuple[str | int, ...]


class Views(Suite):
    """Views: on BFCL's recorded ground-truth calls, whether the view of a padded state holds what a call changes.

    A case is a task. Before each call the state is padded: each collection gets entries like its own, the file system
    folders with files of the same names, and applications stand beside them that the task is not about. The view is the
    one that the simulator's prompt carries: of the default budget, its focus the call. It must hold each place that the
    call changes: what is overwritten or removed, and of what is added the container.
    """

    name = "view"
    asks = False
    tools = "none"
    examples = ("--limit 20", "--budget 3000")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add the view's size."""
        budget = GeckoContext().view_chars
        parser.add_argument("--budget", type=int, default=budget, metavar="N", help="characters of a view (default)")

    def cases(self) -> Iterator[Case]:
        """Yield a case per task."""
        for task in read_jsonl(self.options.dataset(FILE)):
            yield Case(task["id"], task, group=task["id"].rpartition("_")[0])

    def run_case(self, case: Case) -> JsonObject:
        """Look at the view before each call."""
        return {"calls": list(looks(case.data, seed=self.options.seed, budget=self.options.own.budget))}

    def tell(self, record: Record) -> str:
        """Return a record in one line."""
        calls = record.values["calls"]
        return f"{len(calls)} calls, missed in {sum(bool(each['missed']) for each in calls)}"

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return held calls by class, and each miss."""
        calls = [(record.id, each) for record in records if record.done for each in record.values["calls"]]
        about = [each for _, each in calls if each["places"]]
        table = Table(
            f"Calls whose view of {self.options.own.budget:,} characters holds all that they change",
            ["class", "held", "places", "places missed"],
            note=f"States padded to {SIZE:,} characters; {len(calls) - len(about)} calls change nothing. Each "
            f"collection has {ALIKE} more entries like its own.",
        )
        for name in [*sorted({each["class"] for each in about}), "all"]:
            some = [each for each in about if name in (each["class"], "all")]
            held = share(sum(not each["missed"] for each in some), len(some), tools="none")
            table.add(name, held, sum(each["places"] for each in some), sum(len(each["missed"]) for each in some))
        held_all = sum(not each["missed"] for each in about) >= WANTED * len(about) > 0
        text = f"the view holds all that a call changes for at least {WANTED:.0%} of the calls"
        notes = [f"{case}: {each['tool']}: {', '.join(each['missed'])}" for case, each in calls if each["missed"]]
        return Summary([table], [Expectation(text, held_all)], notes)


def looks(task: Mapping[str, Any], *, seed: int, budget: int) -> Iterator[JsonObject]:
    """Yield for each recorded call of a class the number of its places, and those that its view lacks."""
    state = task["initial_state"]
    for number, step in enumerate(step for turn in task["turns"] for step in turn):
        if step["class"] is not None:
            name, args = step["call"]["name"], step["call"]["args"]
            padding = Padding(state, size=SIZE, seed=seed * 1000 + number)
            shown = read(view(padding.state, focus=focus_words(name, args), budget=budget))
            places = dict.fromkeys(changed(state, step["patch"]))
            missed = ["/".join(map(str, each)) for each in places if not is_held(shown, state, each, padding)]
            yield {"tool": name, "class": step["class"], "places": len(places), "missed": missed}
        state = apply_patch(state, step["patch"])


def changed(state: Json, patch: Sequence[Mapping[str, Any]]) -> Iterator[Path]:
    """Yield the places that a change overwrites or removes; of what it adds, the container."""
    for operation in patch:
        at, path = state, list[str | int]()
        for token in tokens(operation.get("from", operation["path"])):
            key = int(token) if isinstance(at, list) and token.isdigit() else token
            known = at if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else ()
            if key not in known:
                break
            at = at[key]
            path.append(key)
        yield tuple(path)
        state = apply_patch(state, [dict(operation)])


def is_held(shown: Any, state: Any, path: Path, padding: Padding) -> bool:
    """Return whether a view shows a place of the unpadded state: a scalar whole, a container opened."""
    for token in path:
        state = state[token]
    return holds(shown, padding.moved(path), value=state)


class Padding:
    """Pads one state.

    Args:
        state: A task state of the real classes.
        size: Characters of JSON that it is to have.
        seed: Of everything made up.

    Attributes:
        state: The padded state.
    """

    def __init__(self, state: JsonObject, *, size: int, seed: int) -> None:
        self._dice = random.Random(seed)
        self._moved: dict[Path, int] = {}
        made: JsonObject = {}
        for name, part in state.items():
            made[name] = part if name == "runtime_state" else self._application(name, part)
        others = self._others(size - len(json.dumps(made)))
        names = sorted(others)
        before = {name: others[name] for name in names[::2]}
        self.state: JsonObject = {**before, **made, **{name: others[name] for name in names[1::2]}}

    def moved(self, path: Path) -> Path:
        """Return where a place of the state is in the padded one."""
        return tuple(
            token + self._moved.get(path[:depth], 0) if isinstance(token, int) else token
            for depth, token in enumerate(path)
        )

    def _application(self, name: str, part: JsonObject) -> JsonObject:
        if name == FILES:
            return {**part, "tree": {root: self._folders(folder) for root, folder in part["tree"].items()}}
        return {key: self._collection(value, (name, key)) for key, value in part.items()}

    def _collection(self, value: Json, path: Path) -> Json:
        """Return a list or an object of records with more like its own; anything else as it is."""
        if isinstance(value, list) and value:
            half = ALIKE // 2
            self._moved[path] = half
            alike = [self._like(self._dice.choice(value)) for _ in range(ALIKE)]
            return [*alike[:half], *value, *alike[half:]]
        records = [each for each in value.values() if isinstance(each, dict | list)] if isinstance(value, dict) else []
        if not isinstance(value, dict) or not records:
            return value
        keys = [key for key in value if isinstance(value[key], dict | list)]
        more = {self._name(self._dice.choice(keys)): self._like(self._dice.choice(records)) for _ in range(ALIKE)}
        fresh = [(key, each) for key, each in more.items() if key not in value]
        return dict([*fresh[::2], *value.items(), *fresh[1::2]])

    def _like(self, value: Json) -> Json:
        """Return a value of the same form with other content."""
        if isinstance(value, dict):
            return {key: self._like(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._like(each) for each in value]
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int):
            return self._dice.randrange(10 ** max(2, len(str(value))))
        if isinstance(value, float):
            return round(value * self._dice.uniform(0.5, 2), 2)
        return self._name(value) if " " not in value else self._text(len(value))

    def _name(self, like: str) -> str:
        """Return a name of the same make: digits for digits, letters for letters."""
        swapped = (self._swapped(each) for each in like)
        return "".join(swapped)

    def _swapped(self, character: str) -> str:
        if character.isdigit():
            return str(self._dice.randrange(10))
        if not character.isalpha():
            return character
        letter = self._dice.choice("abcdefghijklmnopqrstuvwxyz")
        return letter.upper() if character.isupper() else letter

    def _text(self, length: int) -> str:
        words = " ".join(self._dice.choices(WORDS, k=max(2, length // 6)))
        return words[: max(length, 8)]

    def _folders(self, root: JsonObject) -> JsonObject:
        """Return folders beside the task's own, with files of the same names and other content among theirs."""
        own = list(_file_names(root))
        more: JsonObject = {}
        for number in range(FOLDERS):
            names = {f"{self._dice.choice(WORDS)}_{n}.txt" for n in range(6)}
            names |= {self._dice.choice(own)} if own else set()
            files = {name: {"type": "file", "content": self._text(300)} for name in sorted(names)}
            more[f"{self._dice.choice(WORDS)}_{number}"] = {"type": "directory", "contents": files}
        items = list(more.items())
        return {**root, "contents": dict([*items[::2], *root["contents"].items(), *items[1::2]])}

    def _others(self, size: int) -> JsonObject:
        """Return applications that no call is about, of so many characters in all."""
        made: JsonObject = {"CalendarAPI": {"owner": "usr_48213", "events": []}, "NotesAPI": {"notebooks": {}}}
        number, left = 0, size
        while left > 0:
            number += 1
            event = {"id": number, "title": self._text(24), "status": self._dice.choice(["open", "closed"])}
            event |= {"day": self._dice.randrange(28), "place": self._dice.choice(WORDS), "note": self._text(120)}
            page = {"title": self._text(20), "content": self._text(260), "tags": self._dice.choices(WORDS, k=3)}
            made["CalendarAPI"]["events"].append(event)
            made["NotesAPI"]["notebooks"].setdefault(self._dice.choice(WORDS), {})[f"page {number}"] = page
            left -= len(json.dumps(event)) + len(json.dumps(page)) + 20
        return made


def _file_names(folder: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for name, each in folder["contents"].items():
        found += [name] if each["type"] == "file" else _file_names(each)
    return found


def read(text: str) -> Any:
    """Return a view as JSON, with `LEFT_OUT` for texts that are not whole, for omitted items and for other keys.

    Raises:
        ValueError: The text is not a view.
    """
    return json.loads(_PARTS.sub(_plain, text))


def _plain(found: re.Match[str]) -> str:
    """Return a part of a view as JSON."""
    mark = json.dumps(LEFT_OUT)
    if found["first"]:
        return ", ".join([mark] * (int(found["last"] or found["first"]) - int(found["first"]) + 1))
    plain = {"cut": mark, "keys": f"{mark}: {mark}", "items": mark, "index": ""}
    return plain.get(found.lastgroup or "", found[0])


def holds(shown: Any, path: Sequence[str | int], *, value: Any) -> bool:
    """Return True if the view shows the value at a path, a scalar whole, a container opened."""
    for token in path:
        known = shown if isinstance(shown, dict) else range(len(shown)) if isinstance(shown, list) else ()
        if token not in known:
            return False
        shown = shown[token]
    return type(shown) is type(value) and (isinstance(value, dict | list) or bool(shown == value))


SUITE = Views
