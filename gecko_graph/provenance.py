"""Where the values of a plan come from, by rule: the task, the conversation, the given state, a result, or a model.

A value is looked up whole before in parts, in its normal forms (`spellings`); where several sources hold it, all are
named. It is made up only where nothing real holds it: what a rung invented, a supposed place of the state, or nothing
at all (the planner's own invention, also in the answers of earlier turns); what merely repeats an invention is one as
well, and what a rule computes from a supposed state. Plain words that the planner chose, and what its tool's schema
offers, need no source: they have no origins and are not made up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from .errors import PatchConflict
from .leaves import Place, scalars
from .models.formatting import text_of
from .models.memory import is_made_up, rung_of
from .schemas.findings import json_path
from .schemas.subschemas import walk
from .schemas.well_formed import RUNTIME
from .simulation.ladder import INVENTING
from .simulation.observed import DECIDING
from .simulation.rung import clock
from .spellings import TEXT_CHARS, Atom, atoms_of, canonical, durations_of, forms_of, whole_form
from .state import Json, JsonObject, MadeUp, Origin, Origins, Step, UnjudgedAttempt
from .task_state.patch import find, pointer, tokens
from .toolkit.spec import ToolSpec

MOST_ORIGINS = 4
MOST_VALUES = 100_000
"""Values of one result that are read; a planner is shown far fewer."""
PROSE_WORDS = 4
"""A text of so many words is prose: single digits in it need no source."""
LARGEST_SCALE = 10
MOST_NUMBERS = 30
"""Of the numbers that are known, how many of the latest are tried for sums, differences, products and quotients."""

_RELATIVE = re.compile(
    r"(?i)\b(?:today|tonight|tomorrow|yesterday|weekend|\w{3,6}day|day (?:after|before)"
    r"|(?:next|this|coming|last|in|within) \w{1,12})\b"
)
_SCALE = re.compile(r"\b\d{1,2} ?(?:to|and|-|through) ?(\d{1,2})\b")
_DEFAULT = re.compile(r"(?i)default[^.;]{0,40}")
_RUNS = re.compile(r"[^\W\d_]+|\d+")
_YEAR = re.compile(r"(?:19|20)\d\d")
_FIGURE = re.compile(r"\d+(?:\.\d+|:\d\d)?")
_ADDRESS = re.compile(r"[^@:/]+@[^@:/]+")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)")
_CLOCKS = {"", "/now", "/runtime_state", "/runtime_state/now"}
_IDENTIFYING = re.compile(r"\d\d|@")
"""What a key holds that no schema names and that is looked up: it stands for a thing, not for a field."""
_ENDS_OF_DAY = ("0:00", "00:00", "23:59")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What an attempt began with.

    Args:
        conversation: Messages up to and with the task; earlier turns' results carry their rung (`models.memory`).
        state: The task state at the attempt's start.
        supposed: JSON Pointers to what a model made up of it.
        lesson: The failed attempt that the planner was shown.
        inventing: Names of the rungs that make things up.
        reads: By tool the root keys of the state that its contract computes the result from, "" for the whole.
    """

    conversation: Sequence[AnyMessage]
    state: JsonObject
    supposed: Sequence[str] = ()
    lesson: UnjudgedAttempt | None = None
    inventing: Collection[str] = INVENTING
    reads: Mapping[str, Collection[str]] = field(default_factory=dict)


def trace(
    steps: Sequence[Step], sources: Sources, parameters_of: Callable[[str], JsonObject]
) -> tuple[Origins, list[MadeUp]]:
    """Return the origins of the plan's arguments, and those arguments that are made up.

    The state is searched only for what stands nowhere else. `parameters_of` is from a tool's name to its arguments'
    schema.

    Returns:
        Call id to the argument's JSON path to its origins; and the made-up ones in the order of the plan.
    """
    origins, made_up = _Trace(sources, parameters_of).run(steps)
    if made_up and "" not in sources.supposed:
        wanted = {form for each in made_up for atom in atoms_of(each["value"]) for form in atom.forms}
        wanted |= {whole_form(str(each["value"])) for each in made_up}
        if hits := dict(search_state(sources.state, wanted, {*sources.supposed})):
            return _Trace(sources, parameters_of, {form: [mark] for form, mark in hits.items()}).run(steps)
    return origins, made_up


def trace_with(toolkit: Iterable[ToolSpec], steps: Sequence[Step], **begin: Any) -> tuple[Origins, list[MadeUp]]:
    """Trace with the schemas and contracts of these tools; `begin` is the rest of `Sources`."""
    schemas = {tool.name: tool.parameters for tool in toolkit}
    reads = {tool.name: tool.contract.result_keys for tool in toolkit if tool.contract is not None}
    return trace(steps, Sources(**begin, reads=reads), lambda name: schemas.get(name, {}))


def is_planned(step: Step) -> bool:
    """Return whether a call's outcome is ok: it stands in the plan."""
    return "outcome" in step and step["outcome"]["status"] == "ok"


def _parents(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[:end]) for end in range(1, len(names) + 1)]


def _at(value: Json, path: str) -> Json:
    with suppress(PatchConflict):
        return find(value, tokens(path))
    return None


class _Mark(NamedTuple):
    """An origin that is not written out yet: most never are."""

    kind: str
    place: Place | str = ""
    step: int | None = None
    rung: str = ""
    attempt: int | None = None

    def origin(self) -> Origin:
        write = pointer if self.step is None else json_path
        path = self.place if isinstance(self.place, str) else write(self.place)
        more = {"step": self.step, "rung": self.rung, "attempt": self.attempt}
        origin: Any = {"from": self.kind, "path": path} | {key: value for key, value in more.items() if value}
        return origin  # type: ignore[no-any-return]


_NOWHERE = _Mark("supposed")
_KINDS = ("supposed", "task", "conversation", "result", "state")
_Argument: TypeAlias = tuple[str, Json, list[_Mark], bool]
"""An argument's JSON path, its value, where it comes from, and whether it is made up."""


def search_state(state: JsonObject, wanted: set[str], supposed: set[str]) -> Iterator[tuple[str, _Mark]]:
    """Yield the wanted forms that the state holds outside of what was made up; a large state is read once."""
    moments = any("~" in form or ":" in form for form in wanted)
    for place, value in scalars(state, keys=True):
        if value is None or isinstance(value, bool):
            continue
        if isinstance(value, str):
            low = whole_form(value)
            near = low in wanted or not wanted.isdisjoint(_RUNS.findall(low)) or (moments and low[1:2].isdigit())
        else:
            near = canonical(value) in wanted
        if near and not supposed & {*_parents(pointer(place))}:
            yield from ((form, _Mark("state", place)) for form in forms_of(value) if form in wanted)


@dataclass(slots=True)
class _Trace:
    """What is known before each call, by form: what is real, and what was made up."""

    sources: Sources
    parameters_of: Callable[[str], JsonObject]
    real: dict[str, list[_Mark]] = field(default_factory=dict)
    made: dict[str, list[_Mark]] = field(default_factory=dict)
    numbers: list[str] = field(default_factory=list)
    supposed: dict[str, _Mark] = field(default_factory=dict)
    """Root keys of the state in which something is made up, "" for the whole, each with such a place."""
    offers: dict[str, tuple[frozenset[str], int]] = field(default_factory=dict)

    def run(self, steps: Sequence[Step]) -> tuple[Origins, list[MadeUp]]:
        """Read everything in the order in which it became known."""
        self._begin()
        origins: Origins = {}
        made_up: list[MadeUp] = []
        for number, step in enumerate(steps, 1):
            call, arguments = step["call"], self._book(step, number)
            if not is_planned(step):
                continue
            found = origins.setdefault(call["id"], {})
            for path, value, marks, made in arguments:
                found[path] = [*found.get(path, ()), *(mark.origin() for mark in marks)]
                if made:
                    fields = {"tool": call["name"], "argument": path, "value": value, "origin": marks[0].origin()}
                    made_up.append({"call": call["id"], **fields})  # type: ignore[typeddict-item]
        return origins, made_up

    def _begin(self) -> None:
        """Read the supposed state, the conversation, and the failed attempt."""
        sources = self.sources
        for path in sources.supposed:
            self.supposed.setdefault(path[1:].partition("/")[0], _Mark("supposed", path))
            for place, value in scalars(_at(sources.state, path), keys=True):
                self._add(value, _Mark("supposed", path + pointer(place)), invented=True)
        humans = [message for message in sources.conversation if isinstance(message, HumanMessage)]
        for message in sources.conversation:
            rung = rung_of(message)
            if isinstance(message, AIMessage) and rung is not None:
                for call in message.tool_calls:
                    self._look(call["name"], call["args"])
            mark = _Mark("task") if message in humans[-1:] else _Mark("conversation", message.id or "", rung=rung or "")
            invented = is_made_up(message, sources.inventing)
            trusted = rung is None and not invented and not isinstance(message, AIMessage)
            self._add(text_of(message), mark, invented=invented, trusted=trusted)
        for number, step in enumerate(sources.lesson["steps"] if sources.lesson else (), 1):
            self._book(step, number, sources.lesson["number"] if sources.lesson else None)

    def _book(self, step: Step, number: int, attempt: int | None = None) -> list[_Argument]:
        """Return where a step's arguments come from, then make its result known."""
        if "outcome" not in step:
            return []
        arguments, outcome = self._look(step["call"]["name"], step["call"]["args"]), step["outcome"]
        rung = outcome["rung"]
        invented = rung in self.sources.inventing
        basis = self._basis(step["call"]["name"], rung)
        for place, value in islice(scalars(outcome["result"], keys=True), MOST_VALUES):
            computed = basis is not None and any(atom.is_specific for atom in atoms_of(value))
            mark = basis if basis and computed else _Mark("result", place, number, rung, attempt)
            self._add(value, mark, invented=invented or computed)
        for operation in (outcome["patch"] or ()) if invented or outcome.get("supposed") else ():
            mark = _Mark("supposed", operation["path"], rung=rung if invented else "model")
            self.supposed.setdefault(operation["path"][1:].partition("/")[0], mark)
            for _, value in scalars(operation.get("value"), keys=True):
                self._add(value, mark, invented=True)
        return arguments

    def _basis(self, tool: str, rung: str) -> _Mark | None:
        """Return a made-up place of the state that a rule has computed a result from, as far as is known."""
        reads = self.sources.reads.get(tool) if rung == "contract" else None
        places = self.supposed.items() if rung in DECIDING else ()
        if reads is None:
            return next((mark for root, mark in places if root != RUNTIME), None)
        return next((mark for root, mark in places if reads and (root in reads or "" in (root, *reads))), None)

    def _add(self, value: Json, mark: _Mark, *, invented: bool, trusted: bool = False) -> None:
        """Make a scalar known; what repeats an invention is one, unless the user or a real tool does (`trusted`)."""
        supposed = mark._replace(kind="supposed")
        for form in forms_of(value):
            if form in self.real:
                self.real[form] += [] if invented or len(self.real[form]) >= MOST_ORIGINS else [mark]
            elif form in self.made and not trusted and (invented or _is_specific(form)):
                self.made[form] += [] if len(self.made[form]) >= MOST_ORIGINS else [supposed]
            elif invented:
                self.made[form] = [supposed]
            else:
                self.real[form] = [mark]
                if form == canonical(form) and form.replace(".", "", 1).isdecimal() and len(form) > 1:
                    self.numbers.append(form)

    def _look(self, tool: str, args: JsonObject) -> list[_Argument]:
        """Return where each argument comes from, and make known as made up what stands nowhere."""
        arguments: list[_Argument] = []
        members = [(place[:-1], key) for place, key in scalars(args, keys=True) if place[-1:] == (key,)]
        for place, value in [*scalars(args), *(each for each in members if _IDENTIFYING.search(str(each[1])))]:
            marks, made = self._origins(tool, value)
            marks = sorted(dict.fromkeys(marks), key=lambda mark: _KINDS.index(mark.kind))
            arguments.append((json_path(place), value, marks[:MOST_ORIGINS], made))
            if made and marks[0] is _NOWHERE:
                self._add(value, _NOWHERE, invented=True)
            elif marks and not made and _FIGURE.fullmatch(form := canonical(str(value))) and form not in self.real:
                self._add(value, marks[0], invented=False)  # computed: the next one may follow from it
        return arguments

    def _origins(self, tool: str, value: Json) -> tuple[list[_Mark], bool]:
        """Return where a value comes from, and whether it is made up: because one specific part of it is."""
        if value is None or isinstance(value, bool):
            return [], False
        whole, atoms, offered = whole_form(str(value)), atoms_of(value), self._offered(tool, value)
        found = [self._real(tool, atom) for atom in atoms]
        marks = [mark for marks in (self.real.get(whole), *found) for mark in marks or ()]
        if whole in self.real or offered:
            return marks if len(atoms) == 1 else self.real.get(whole, []), False
        for atom, real in zip(atoms, found, strict=True):
            if real is None and atom.is_specific and (len(atom.wholes[0]) > 1 or len(atoms) < PROSE_WORDS):
                return next((self.made[form] for form in atom.wholes if form in self.made), [_NOWHERE]), True
        if whole in self.made and not all(found):
            return self.made[whole], True
        return (marks, False) if len(whole) <= TEXT_CHARS else ([_NOWHERE], True)  # its end was not read

    def _offered(self, tool: str, value: Json) -> bool:
        """Return whether the tool's schema names a value, or a number lies on a small scale that it gives."""
        if tool not in self.offers:
            self.offers[tool] = _offers(self.parameters_of(tool))
        values, top = self.offers[tool]
        return (
            value.casefold() in values if isinstance(value, str) else canonical(value) in values or -1 <= value <= top
        )

    def _real(self, tool: str, atom: Atom) -> list[_Mark] | None:
        """Return where an atom really stands: whole before in parts before derived; None if nowhere or only made up."""
        for form in atom.wholes:
            if form in self.real:
                return self.real[form]
        if (parts := self._parts(atom, alone=True)) or any(form in self.made for form in atom.wholes):
            return parts
        near = [mark for form in atom.near for mark in self.real.get(form, ())]
        parts = self._parts(atom, alone=False) if not _ADDRESS.fullmatch(atom.wholes[0]) else None  # it is a guess
        return near or parts or self._computed(atom) or self._timed(atom) or self._without_source(tool, atom)

    def _parts(self, atom: Atom, *, alone: bool) -> list[_Mark] | None:
        """Return where an identifier's parts stand: digits specific enough `alone`, or half of its words as well."""
        words = [self.real[word] for word in atom.words if word in self.real]
        digits = [self.real[part] for part in atom.digits if part in self.real]
        if alone:
            enough = any(len(part) > 2 and not _YEAR.fullmatch(part) for part in atom.digits)
        else:
            enough = bool(words) and 2 * len(words) >= len(atom.words)
        return [marks[0] for marks in (*digits, *words)] if enough and len(digits) == len(atom.digits) else None

    def _computed(self, atom: Atom) -> list[_Mark] | None:
        """Return the two known numbers of which a number is the sum, difference, product or quotient."""
        wanted = float(atom.wholes[-1]) if atom.near else 0.0
        known = [*self.numbers[-MOST_NUMBERS:], *filter(self._is_in_task, "23456789")] if wanted else []
        for first in known:
            one = float(first)
            shares = [f"≈{canonical(f'{part:.6f}')}" for part in (wanted / one, abs(wanted / one - 1)) if part < 1]
            for other in (wanted - one, one - wanted, wanted + one, wanted / one, one / wanted, wanted * one):
                second = canonical(f"{other:.6f}")
                if second in known or self._is_in_task(second):
                    return [self.real[first][0], self.real[second][0]]
            for share in filter(self._is_in_task, shares):
                return [self.real[first][0], self.real[share][0]]
        return None

    def _is_in_task(self, form: str) -> bool:
        """Return whether the task itself holds a form, where a small number is hardly there by chance."""
        return any(mark.kind == "task" for mark in self.real.get(form, ()))

    def _timed(self, atom: Atom) -> list[_Mark] | None:
        """Return the known time from which a time follows by a duration that the user names, or by known minutes."""
        if not (wanted := _CLOCK.fullmatch(atom.wholes[0])):
            return None
        texts = [text_of(each) for each in self.sources.conversation if isinstance(each, HumanMessage)]
        durations = {minutes for text in texts for minutes in durations_of(text)}
        for form in self.real:
            if found := _CLOCK.fullmatch(form):
                apart = 60 * (int(wanted[1]) - int(found[1])) + int(wanted[2]) - int(found[2])
                if abs(apart) in durations or str(abs(apart)) in self.numbers:
                    return self.real[form][:1]
        return None

    def _without_source(self, tool: str, atom: Atom) -> list[_Mark] | None:
        """Return no marks for a default, and for a date that follows from a known one where the user words it so."""
        year, _, day = atom.wholes[0].partition("~")
        if not day:
            granted = atom.wholes[-1] in self.offers[tool][0] or atom.wholes[0] in _ENDS_OF_DAY
            return [] if granted else self._hour(atom)
        now = clock(self.sources.state) if not _CLOCKS & {*self.sources.supposed} else None
        years = {int(form[:4]) for form in (*self.real, *forms_of(now)) if form[4:5] == "~" and form[:4].isdecimal()}
        near = not year.isdecimal() or any(abs(int(year) - known) <= 1 for known in years)
        texts = (text_of(each) for each in self.sources.conversation if isinstance(each, HumanMessage))
        return [] if years and near and any(map(_RELATIVE.search, texts)) else None

    def _hour(self, atom: Atom) -> list[_Mark] | None:
        """Return where the hour of a full hour is known: 9, in the morning or in the evening."""
        hour, _, minute = atom.wholes[0].partition(":")
        hours = (hour, str(int(hour) - 12)) if minute == "00" and hour.isdecimal() else ()
        return next((self.real[each] for each in hours if each in self.real), None)


def _offers(parameters: JsonObject) -> tuple[frozenset[str], int]:
    """Return what a schema names, also in descriptions: enums, consts, defaults; and the end of its longest scale."""
    values, top = set[str](), 1
    for schema in walk(parameters):
        enum, text, names = schema.get("enum"), schema.get("description"), schema.get("properties", ())
        for value in (*(enum if isinstance(enum, list) else ()), schema.get("const"), schema.get("default"), *names):
            values.add(value.casefold() if isinstance(value, str) else canonical(str(value)))
        text = text if isinstance(text, str) else ""
        values.update(form for default in _DEFAULT.findall(text) for form in forms_of(default))
        ends = [*map(int, _SCALE.findall(text)), schema.get("maximum")]
        top = max([top, *(int(end) for end in ends if isinstance(end, int | float) and end <= LARGEST_SCALE)])
    return frozenset(values), top


def _is_specific(form: str) -> bool:
    """Return whether a form hardly occurs twice by chance: phrases, dates, identifiers, numbers of two digits."""
    return form.startswith("=") or (len(form) > 1 and any(map(str.isdigit, form)))
