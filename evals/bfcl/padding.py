"""A task state among much else: entries like its own beside them, and applications that the task is not about."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from gecko_graph.state import Json, JsonObject

from .classes import FILES
from .influence import Path

ALIKE = 20
"""Entries that each collection gets beside the task's own, half of them before, half of them behind."""

_FOLDERS = 24
_WORDS = (
    "amber",
    "basin",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "harbor",
    "island",
    "juniper",
    "kettle",
    "lagoon",
    "meadow",
    "north",
    "orchard",
    "pepper",
    "quarry",
    "river",
    "saddle",
    "timber",
    "umber",
    "valley",
    "willow",
    "yarrow",
    "zephyr",
    "budget",
    "invoice",
    "meeting",
    "sketch",
    "letter",
    "ledger",
    "survey",
    "journal",
)


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
        words = " ".join(self._dice.choices(_WORDS, k=max(2, length // 6)))
        return words[: max(length, 8)]

    def _folders(self, root: JsonObject) -> JsonObject:
        """Return folders beside the task's own, with files of the same names and other content among theirs."""
        own = list(_file_names(root))
        more: JsonObject = {}
        for number in range(_FOLDERS):
            names = {f"{self._dice.choice(_WORDS)}_{n}.txt" for n in range(6)}
            names |= {self._dice.choice(own)} if own else set()
            files = {name: {"type": "file", "content": self._text(300)} for name in sorted(names)}
            more[f"{self._dice.choice(_WORDS)}_{number}"] = {"type": "directory", "contents": files}
        items = list(more.items())
        return {**root, "contents": dict([*items[::2], *root["contents"].items(), *items[1::2]])}

    def _others(self, size: int) -> JsonObject:
        """Return applications that no call is about, of so many characters in all."""
        made: JsonObject = {"CalendarAPI": {"owner": "usr_48213", "events": []}, "NotesAPI": {"notebooks": {}}}
        number, left = 0, size
        while left > 0:
            number += 1
            event = {"id": number, "title": self._text(24), "status": self._dice.choice(["open", "closed"])}
            event |= {"day": self._dice.randrange(28), "place": self._dice.choice(_WORDS), "note": self._text(120)}
            page = {"title": self._text(20), "content": self._text(260), "tags": self._dice.choices(_WORDS, k=3)}
            made["CalendarAPI"]["events"].append(event)
            made["NotesAPI"]["notebooks"].setdefault(self._dice.choice(_WORDS), {})[f"page {number}"] = page
            left -= len(json.dumps(event)) + len(json.dumps(page)) + 20
        return made


def _file_names(folder: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for name, each in folder["contents"].items():
        found += [name] if each["type"] == "file" else _file_names(each)
    return found
