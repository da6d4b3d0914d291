"""The benchmark's executable classes as the `python` rung: each call runs on an instance made from the task state.

The task state is `{class: its attributes, ..., "runtime_state": {...}}`. For each call a fresh instance is made from
that JSON, called, and read back; only the JSON is kept. The runtime state has what the classes keep besides their
public attributes: private ones, the position of the random source, sets and numbers as keys, shared folders.
"""

from __future__ import annotations

import copy
import inspect
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from gecko_graph.state import Json, JsonObject
from gecko_graph.values.places import pointer

from . import package
from .folders import read_folders, write_folders

FILES = "GorillaFileSystem"
RUNTIME = "runtime_state"

_LEFT_OUT = ("_api_description", "_random", "_current_dir")


class Classes:
    """The classes of one task, with its initial configuration; of methods of the same name the later class's is called.

    `long_context` loads the benchmark's padding, which makes answers long.
    """

    def __init__(self, names: Sequence[str], config: Mapping[str, Any], *, long_context: bool = False) -> None:
        self.names = tuple(names)
        self._config = config
        self._long_context = long_context
        self._kinds = {name: class_of(name) for name in names}
        self._starts: dict[str, Any] = {}
        self.initial_state = self.read(self.load())
        self.owners = {tool: name for name in names for tool in methods(name)}

    def load(self) -> dict[str, Any]:
        """Return new instances with the task's configuration, loaded as the benchmark loads them."""
        stateless = package.load(package.BACKENDS).STATELESS_CLASSES
        made = {name: kind() for name, kind in self._kinds.items()}
        for name, instance in made.items():
            if name not in stateless:
                instance._load_scenario(copy.deepcopy(self._config.get(name, {})), long_context=self._long_context)
            if hasattr(instance, "_random"):
                self._starts[name] = instance._random.getstate()
        return made

    def read(self, instances: Mapping[str, Any]) -> JsonObject:
        """Return the task state of instances made here or by the benchmark."""
        state: JsonObject = {}
        for name, instance in instances.items():
            self._read_one(name, instance, state)
        return state

    def instances(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._make(name, state) for name in self.names}

    def simulate(self, tool: str) -> Callable[..., Json]:
        owner = self.owners[tool]

        def run(state: JsonObject, /, **args: Any) -> Json:
            instance = self._make(owner, state)
            answer = told(getattr(instance, tool), {**unshared(owner, tool), **args})
            self._read_one(owner, instance, state)
            return answer

        return run

    def real(self, tool: str, instances: Mapping[str, Any]) -> Callable[..., Json]:
        """Return the tool as a function on these instances, which it changes."""
        owner = self.owners[tool]

        def run(**args: Any) -> Json:
            return told(getattr(instances[owner], tool), {**unshared(owner, tool), **args})

        return run

    def signature(self, tool: str) -> inspect.Signature:
        return inspect.signature(methods(self.owners[tool])[tool])

    def _make(self, name: str, state: Mapping[str, Any]) -> Any:
        instance = self._kinds[name]()
        hidden = state.get(RUNTIME, {}).get(name, {})
        values = dict(state.get(name, {}))
        if name == FILES:
            write_folders(instance, values, hidden.get("links"), module_of(name))
            values = {key: value for key, value in values.items() if key not in ("tree", "cwd")}
        whole = decode({**values, **hidden.get("private", {})}, hidden.get("kinds", {}))
        vars(instance).update(whole)
        if name in self._starts:
            instance._random = CountedRandom(self._starts[name], hidden.get("drawn", 0))
        return instance

    def _read_one(self, name: str, instance: Any, state: JsonObject) -> None:
        kinds: Kinds = {}
        values = {key: value for key, value in vars(instance).items() if key not in _LEFT_OUT and key != "root"}
        made = encode(values, kinds)
        private = {key: made.pop(key) for key in list(made) if key.startswith("_")}
        hidden: JsonObject = {"private": private, "kinds": kinds}
        if name == FILES:
            folders, links = read_folders(instance, module_of(name))
            made, hidden = {**folders, **made}, {**hidden, "links": links}
        if name in self._starts and (drawn := words_drawn(instance._random, self._starts[name])):
            hidden["drawn"] = drawn
        state[name] = made
        runtime = state.setdefault(RUNTIME, {})
        if kept := {key: value for key, value in hidden.items() if value}:
            runtime[name] = kept
        else:
            runtime.pop(name, None)


def told(method: Callable[..., Any], args: Mapping[str, Any]) -> Json:
    """Return a method's answer as the benchmark writes it: objects unchanged, anything else and exceptions as text.

    The benchmark has no errors apart from answers: a method that raises may have changed its instance, and the change
    stays.
    """
    try:
        answer = method(**args)
    except Exception as error:  # noqa: BLE001 - the benchmark's classes raise anything
        return f"Error during execution: {error}"
    if not isinstance(answer, dict):
        return str(answer)
    try:
        made: Json = json.loads(json.dumps(answer))
    except (TypeError, ValueError):
        return str(answer)
    return made


@cache
def methods(name: str) -> dict[str, Callable[..., Any]]:
    shared_defaults(name)  # recorded before the first call changes them
    found = inspect.getmembers(class_of(name)(), predicate=inspect.ismethod)
    return {key: method for key, method in found if not key.startswith("_")}


@cache
def shared_defaults(name: str) -> dict[str, dict[str, Any]]:
    """Return, by method, the parameters with a mutable default such as `tags=[]`, each with its original value.

    Python creates such a default once and shares it between all instances. Attempts must not affect each other, so each
    call gets a copy, and `forget` restores the originals.
    """
    found: dict[str, dict[str, Any]] = {}
    for method, function in inspect.getmembers(class_of(name), predicate=inspect.isfunction):
        given = {
            key: copy.deepcopy(each.default)
            for key, each in inspect.signature(function).parameters.items()
            if isinstance(each.default, list | dict | set)
        }
        if given:
            found[method] = given
    return found


def unshared(name: str, method: str) -> dict[str, Any]:
    return copy.deepcopy(shared_defaults(name).get(method, {}))


def forget(names: Iterable[str]) -> None:
    """Restore the classes' original defaults, as in a new process."""
    for name in names:
        for method, given in shared_defaults(name).items():
            function = getattr(class_of(name), method)
            written = inspect.signature(function).parameters.values()
            function.__defaults__ = tuple(
                copy.deepcopy(given[each.name]) if each.name in given else each.default
                for each in written
                if each.default is not each.empty
            )


@cache
def module_of(name: str) -> ModuleType:
    return package.load(package.load(package.BACKENDS).CLASS_FILE_PATH_MAPPING[name])


def class_of(name: str) -> Any:
    return getattr(module_of(name), name)


# Python values as JSON and back without loss; types that JSON cannot represent are noted in `kinds`, by JSON pointer


Kinds = dict[str, str]
"""Type by JSON pointer: `set` or `tuple`; with the prefix `#`, `int` if the last token is a number."""


def encode(value: Any, kinds: Kinds, *, place: tuple[str | int, ...] = ()) -> Json:
    """Return the value as JSON and add the types that JSON cannot represent to `kinds`."""
    if isinstance(value, dict):
        return _encode_object(value, kinds, place)
    if isinstance(value, set | tuple):
        kinds[pointer(place)] = type(value).__name__
        value = sorted(value, key=repr) if isinstance(value, set) else value
    if isinstance(value, list | tuple):
        return [encode(item, kinds, place=(*place, index)) for index, item in enumerate(value)]
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"{type(value).__name__} at {pointer(place)} cannot be represented in JSON")


def _encode_object(value: Mapping[Any, Any], kinds: Kinds, place: tuple[str | int, ...]) -> Json:
    made: dict[str, Json] = {}
    for key, item in value.items():
        name = key
        if not isinstance(key, str):
            # 1 and "1" may both be keys: the class reads old keys from JSON and adds new ones
            name = f"{key} (int)" if str(key) in value else str(key)
            kinds[f"#{pointer((*place, name))}"] = "int"
        made[name] = encode(item, kinds, place=(*place, name))
    return made


def decode(value: Json, kinds: Mapping[str, str], *, place: tuple[str | int, ...] = ()) -> Any:
    """Return the original value of `encode`, sharing nothing with the JSON."""
    if isinstance(value, dict):
        return {
            _key(name, kinds.get(f"#{pointer((*place, name))}")): decode(item, kinds, place=(*place, name))
            for name, item in value.items()
        }
    if isinstance(value, list):
        items = [decode(item, kinds, place=(*place, index)) for index, item in enumerate(value)]
        kind = kinds.get(pointer(place))
        return set(items) if kind == "set" else tuple(items) if kind == "tuple" else items
    return value


def _key(name: str, kind: str | None) -> str | int:
    return int(name.removesuffix(" (int)")) if kind == "int" else name


# a random source whose position is one number, so that it fits into a task state


class CountedRandom(random.Random):
    """Draws like `random.Random` from another source's start state, and counts the 32-bit words drawn."""

    def __init__(self, start: Any, drawn: int = 0) -> None:
        super().__init__(0)
        self.setstate(start)
        if drawn:
            super().getrandbits(32 * drawn)
        self.drawn = drawn

    def random(self) -> float:
        self.drawn += 2
        return super().random()

    def getrandbits(self, k: int, /) -> int:
        """Draw as the base class does, using a word for each 32 bits or part of them."""
        self.drawn += -(-k // 32)
        return super().getrandbits(k)


def words_drawn(source: random.Random, start: Any) -> int:
    """Return how many words a source has drawn since `start`, its state right after seeding."""
    if isinstance(source, CountedRandom):
        return source.drawn
    state = source.getstate()
    # the last number is the position in a block of 624 words; a new source is at the end of a block
    drawn = 0 if state == start else int(state[1][-1])
    if CountedRandom(start, drawn).getstate() != state:
        raise ValueError("the random source has another start, or has drawn more than 624 words")
    return drawn
