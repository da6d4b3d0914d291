"""Trace the values of a plan by rule to the task, the conversation, the given state, a result, or a model.

A value is *stated* if a source contains it, whole or in parts, in a normal form (`finding`); all such sources are
named. It is *derived* if one operation on known values gives it (`derived`), and else *chosen*: by a rung that invented
it, by the model that wrote a supposed place of the state, or by the planner. Repetitions of a choice, and results that
a rule computes from a supposed state, are chosen as well. Values that the tool's schema offers, and ordinary words in
prose, need no source and have no origins; in prose only figures, names and identifiers do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from ..errors import PatchConflict
from ..models.formatting import text_of
from ..models.memory import NAME, is_made_up, is_written, rung_of
from ..state import RUNTIME, Json, JsonObject, Note, Origins, Step
from ..tools.descriptions import PROSE_WORDS, Offered, ParameterField, content_words, offered_by
from ..tools.spec import ToolSpec
from ..values.finding import NUMBERING, TEXT_CHARS, Atom, atoms_of, canonical, fold, forms_of, holds_words, whole_form
from ..values.notes import note, notes_of, on_call
from ..values.origins import Mark, OriginMap, is_supposed
from ..values.patch import find, tokens
from ..values.places import Place, excerpt, pointer, scalars
from .derived import TWO_WAYS, Knowledge, list_lengths
from .given import Sources, numbers_made_up, search_state, tallies_of
from .heard import Number, Result
from .rung import DECIDING, clock
from .sentences import find_simulated

MOST_ORIGINS = 4
MOST_VALUES = 100_000  # read of one result; a planner sees far fewer

_NAMES = re.compile(r"(?<![.!?:;\n\"'(\u2022*-])[^\S\n]([A-Z][a-z]{2,}(?: [A-Z][a-z]+)*)")
_SPOKEN = re.compile(r"(?i)\b(?:(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)(?:[ ,-]{1,2}|\b)){2,}")
_MOMENTS = re.compile(r"(?i)(jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]*|\w{3,6}day")
_CLOCKS = {"", "/now", "/runtime_state", "/runtime_state/now"}
_IDENTIFYING = re.compile(r"\d\d|@")
"""An unknown key that matches is a thing's key, not a field, and is traced as a value."""
_ENDS_OF_DAY = ("0:00", "00:00", "23:59")


class Traced(NamedTuple):
    """Origins by call id and argument pointer, and notes `made_up`, `unsupported`, `ambiguous`, `simulated`."""

    origins: Origins
    notes: list[Note]


def trace(
    steps: Sequence[Step], sources: Sources, parameters_of: Callable[[str], JsonObject], *, origins: bool = True
) -> Traced:
    """Return the origins of the plan's arguments and of statements in the answer; without `origins` only chosen values.

    The state is searched only for values without another source, and for values that simulated results repeat.
    `parameters_of` maps a tool's name to its arguments' schema, which must not be mutated.
    """
    traced = _Trace(sources, parameters_of).run(steps, origins=origins)
    values = [each["data"]["value"] for each in notes_of(traced.notes, "made_up", "unsupported")]
    if sources.state and values and "" not in sources.supposed:
        parts = {form for value in values for atom in atoms_of(value) for form in (*atom.forms, whole_form(str(value)))}
        wanted = parts | {f"{sign}{form}" for form in parts if form[:1].isdigit() for sign in "-±"}
        groups = {form[1:] for form in parts if form[0] == "#"} - parts
        found = [*search_state(sources.state, wanted | groups | numbers_made_up(steps), {*sources.supposed})]
        counters = [*tallies_of(sources.state, {*sources.supposed})]
        known = {form: [mark] for form, mark in found if form in wanted}
        known |= {f"#{form}": [mark] for form, mark in found if form in groups}
        repeated = {(form, mark.place[-1]): mark for form, mark in found if mark.place}
        trace = _Trace(sources, parameters_of, known, repeated=repeated)
        trace.known.counters = counters
        return trace.run(steps, origins=origins) if found or counters else traced
    return traced


def trace_with(toolkit: Iterable[ToolSpec], steps: Sequence[Step], *, origins: bool = True, **begin: Any) -> Traced:
    """Trace with the schemas and contracts of these tools; `begin` are the other fields of `Sources`."""
    tools = {tool.name: tool for tool in toolkit}
    begin["reads"] = {name: each.contract.result_keys for name, each in tools.items() if each.contract is not None}
    begin["reading"] = [name for name, each in tools.items() if each.reads]
    begin["about"] = {name: each.about for name, each in tools.items()}
    return trace(steps, Sources(**begin), lambda name: tools[name].parameters if name in tools else {}, origins=origins)


def is_planned(step: Step) -> bool:
    """Return whether a step belongs to the plan: its outcome is ok."""
    return "outcome" in step and step["outcome"]["status"] == "ok"


_NOWHERE = Mark("chosen", "planner")
_KINDS = ("planner", "task", "conversation", "result", "state")
_Argument: TypeAlias = tuple[Place, Json, list[Mark]]
"""An argument's place, value, and origins."""


@dataclass(slots=True)
class _Trace:
    """The known values before each call, by form: real ones, and made-up ones."""

    sources: Sources
    parameters_of: Callable[[str], JsonObject]
    real: dict[str, list[Mark]] = field(default_factory=dict)
    made: dict[str, list[Mark]] = field(default_factory=dict)
    repeated: Mapping[tuple[str, str | int], Mark] = field(default_factory=dict)
    """A number of a simulated result, with its key, to the place of the given state that it repeats."""
    texts: list[tuple[str, Mark]] = field(default_factory=list)  # real texts with several words
    ledger: OriginMap = field(init=False)  # the task state with its made-up parts
    _unbooked: list[tuple[Step, int, int]] = field(init=False)  # (step, number, attempt): not in the ledger yet
    predicted: set[str] = field(default_factory=set)
    """Forms that a simulated write gave first: an id that the real one will assign, a status."""
    claimed: dict[str, list[Mark]] = field(default_factory=dict)  # words of other models, which are no evidence
    known: Knowledge = field(init=False)

    def __post_init__(self) -> None:
        now = clock(self.sources.state) if not _CLOCKS & {*self.sources.supposed} else None
        self.known = Knowledge(self.real, now=now or "")
        self._open()

    def run(self, steps: Sequence[Step], *, origins: bool) -> Traced:
        """Process all sources and steps in the order in which they became known."""
        self._begin()
        traced = Traced({}, [])
        for number, step in enumerate(steps, 1):
            call, arguments = step["call"], self._book(step, number)
            if not is_planned(step):
                continue
            found = traced.origins.setdefault(call["id"], {})
            for place, value, marks in arguments:
                is_chosen = bool(marks) and marks[0].kind == "chosen"
                if not origins and not is_chosen:
                    continue
                path = pointer(place)
                found[path] = [*found.get(path, ()), *(mark.origin() for mark in marks)]
                ways = dict.fromkeys(mark.shown for mark in marks if mark.shown.endswith(TWO_WAYS))
                notes = [note("ambiguous", way, pointer(place)) for way in ways]
                if is_chosen:
                    known = {"value": value, "origin": marks[0].origin()}
                    text = f"nothing real supports {excerpt(value)}"
                    notes.append(note("made_up", text, pointer(place), **known))
                traced.notes.extend(on_call(each, call) for each in notes)
        traced.notes.extend(self._unsupported([step["call"]["args"] for step in steps if is_planned(step)]))
        traced.notes.extend(find_simulated(steps, self.sources.answer))
        return traced

    def _begin(self) -> None:
        """Read the supposed state, the conversation, and the failed attempt."""
        sources = self.sources
        for path in sources.supposed:
            with suppress(PatchConflict):
                for place, value in scalars(find(sources.state, tokens(path)), keys=True):
                    self._add(value, Mark("chosen", "state", path + pointer(place)), invented=True)
        humans = [message for message in sources.conversation if isinstance(message, HumanMessage)]
        for message in sources.conversation:
            self._hear(message, is_task=message in humans[-1:])
        if sources.lesson:
            for number, step in enumerate(sources.lesson["steps"], 1):
                self._book(step, number, sources.lesson["number"])
            self._open()  # each attempt restarts from the same state

    def _open(self) -> None:
        self.ledger = OriginMap(self.sources.state).suppose(self.sources.supposed)
        self._unbooked: list[tuple[Step, int, int]] = []

    def _hear(self, message: AnyMessage, *, is_task: bool) -> None:
        """Add a message's values to the known ones; those of other models only as claims."""
        rung, text, is_model = rung_of(message), text_of(message), isinstance(message, AIMessage)
        for call in getattr(message, "tool_calls", ()) if rung is not None else ():
            self._look(call["name"], call["args"])
        at = Mark("stated", "conversation", message.id or "", rung=rung or "")
        mark = at._replace(source="task", place="") if is_task else at
        if is_model and message.name != NAME:
            for form in forms_of(text):
                self.claimed.setdefault(form, [mark._replace(kind="chosen")])
            return
        invented, result = is_made_up(message), None
        trusted = rung is None and not invented and not is_model
        if isinstance(message, ToolMessage):
            with suppress(ValueError):
                result = json.loads(text)
        elif trusted:
            self.known.said.append((text, mark))
        if is_written(message):
            self._predict(result)
        self._read(text if result is None else result, lambda _: mark, invented, trusted)

    def _read(self, result: Json, mark_at: Callable[[Place], Mark], invented: bool, trusted: bool = False) -> None:
        """Add the scalars of a result, or a text, to the known values."""
        for place, value in islice(scalars(result, keys=True), MOST_VALUES):
            self._add(value, mark_at(place), invented=invented, trusted=trusted)
        if not invented and isinstance(result, dict | list | int | float):
            self.known.results.append(Result(result, mark_at))

    def _predict(self, result: Json) -> None:
        forms = {form for _, value in scalars(result, keys=True) for form in forms_of(value)}
        self.predicted |= {form for form in forms if all(mark.source == "state" for mark in self.made.get(form, ()))}

    def _book(self, step: Step, number: int, attempt: int = 0) -> list[_Argument]:
        """Return the origins of a step's arguments, then add its result to the known values."""
        if "outcome" not in step:
            return []
        arguments, outcome = self._look(step["call"]["name"], step["call"]["args"]), step["outcome"]
        rung, invented = outcome["rung"], outcome.get("invented", False)
        written = [each.get("value") for each in outcome["patch"] or ()] if is_supposed(outcome) else []
        self._predict([outcome["result"], *written] if written else [])
        basis = self._basis(step["call"]["name"], rung)
        at = Mark("stated", "result", "", number, rung, attempt)
        filled = outcome.get("filled", {})
        holes = [*filled.get("places", ())] if filled.get("invented") else []
        if basis is None and not holes:
            self._read(outcome["result"], lambda place: at._replace(place=place), invented)
        for place, value in islice(scalars(outcome["result"], keys=True), MOST_VALUES) if basis or holes else ():
            computed = basis is not None and any(atom.is_specific for atom in atoms_of(value))
            made = any(f"{pointer(place)}/".startswith(f"{hole}/") for hole in holes)
            mark = at._replace(place=place, rung=filled["rung"] if made else rung)
            self._add(value, basis if basis and computed else mark, invented=invented or computed or made)
        self._read_repeated(outcome["result"] if invented else None)
        for operation in (outcome["patch"] or ()) if written else ():
            for _, value in scalars(operation.get("value"), keys=True):
                by = rung if invented or not outcome.get("supposed") else "model"
                self._add(value, Mark("chosen", "state", operation["path"], number, by, attempt), invented=True)
        self._unbooked.append((step, number, attempt))
        if self.ledger.has_doubts or is_supposed(outcome):  # the ledger is not needed before the first doubt
            for each, at_step, at_attempt in self._unbooked:
                with suppress(PatchConflict):
                    self.ledger.book([each], first=at_step, attempt=at_attempt)
            self._unbooked.clear()
        return arguments

    def _read_repeated(self, result: Json) -> None:
        """Add the numbers of a simulated result that repeat the given state under the same key."""
        read = scalars(result) if self.repeated else ()
        keyed = ((place[-1], each) for place, each in read if place and type(each) in (int, float))
        if known := {key: each for key, each in keyed if (canonical(each), key) in self.repeated}:
            marks = {key: self.repeated[canonical(each), key] for key, each in known.items()}
            self.known.results.append(Result(known, lambda place: marks[place[-1]]))

    def _basis(self, tool: str, rung: str) -> Mark | None:
        """Return the made-up place of the state from which a rule may have computed a result, or None."""
        if rung not in DECIDING:
            return None
        reads = self.sources.reads.get(tool) if rung == "contract" else None
        for path in self.ledger.doubtful():
            root = "" if path == "/-" else path[1:].partition("/")[0]
            if root != RUNTIME if reads is None else reads and (root in reads or "" in (root, *reads)):
                return self.ledger.at(path.removesuffix("/-"))._replace(place=path)
        return None

    def _add(self, value: Json, mark: Mark, *, invented: bool, trusted: bool = False) -> None:
        """Add a scalar; a repeated invention remains one, unless a user or a real tool repeats it (`trusted`)."""
        real, made, new = self.real, self.made, [mark]  # forms share lists, which are never mutated
        chosen = [mark._replace(kind="chosen")] if invented or made else new
        for form in forms_of(value):
            if (known := real.get(form)) is not None:
                if not invented and len(known) < MOST_ORIGINS:
                    real[form] = known + new
            elif form in made and not trusted and (invented or _is_specific(form)):
                made[form] = (made[form] + chosen)[:MOST_ORIGINS]
            elif invented:
                made[form] = chosen
            else:
                real[form] = new
        if not invented and isinstance(value, str) and " " in value:
            self.texts.append((value, mark))

    def _look(self, tool: str, args: JsonObject) -> list[_Argument]:
        """Return the origins of the arguments, and add values without a source as made up."""
        arguments: list[_Argument] = []
        self.known.about = self.sources.about.get(tool, "")
        offered, writes = offered_by(self.parameters_of(tool)), tool not in self.sources.reading
        is_deep = any(isinstance(each, dict | list) for each in args.values())
        members = scalars(args, keys=True) if is_deep or _IDENTIFYING.search(" ".join(args)) else ()
        named = [(place[:-1], key) for place, key in members if place[-1:] == (key,) and _IDENTIFYING.search(str(key))]
        for place, value in [*scalars(args), *named]:
            marks = self._origins(offered, args, place, value, writes=writes)
            if len(marks) > 1:
                marks = sorted(dict.fromkeys(marks), key=lambda mark: (mark.kind, _KINDS.index(mark.source)))
            arguments.append((place, value, marks[:MOST_ORIGINS]))
            if marks[:1] == [_NOWHERE]:
                self._add(value, _NOWHERE, invented=True)
            elif marks and marks[0].kind == "derived" and len(atoms := atoms_of(value)) == 1:
                whole = atoms[0].wholes[0]  # later values may be derived from it
                self.real.setdefault(whole, marks[:1])
                number = float(whole) if whole.replace(".", "", 1).isdecimal() else 0.0
                self.known.computed.append(Number(number, whole, marks[0]))
        return arguments

    def _origins(self, offered: Offered, args: JsonObject, place: Place, value: Json, *, writes: bool) -> list[Mark]:
        """Return the origins of a value; it is chosen if one of its parts has no source but needs one."""
        if value is None or isinstance(value, bool):
            about = offered.field(place)
            free = not value or not writes or about.must or about.default is value
            return [] if free or any(map(self._knows, about.words)) else [_NOWHERE]
        whole, atoms = whole_form(str(value)), atoms_of(value)
        if whole in self.real or offered.holds(value):
            forms = (whole, *(atoms[0].wholes if len(atoms) == 1 else ()))
            return [mark for form in forms for mark in self.real.get(form, ())]
        if len(str(value)) > TEXT_CHARS:
            return [_NOWHERE]  # its end was not read
        if found := self._phrase(str(value)):
            return [found]
        about, marks = offered.field(place), list[Mark]()  # after the common case of stated values
        is_prose = about.is_prose(str(value))
        for atom in atoms:
            stated = self._source(atom, value, about, args)
            if stated is None and self._needs_source(
                atom, value, len(atoms), about if writes and not is_prose else None
            ):
                made = (known[form] for known in (self.made, self.claimed) for form in atom.wholes if form in known)
                return next(made, [_NOWHERE])
            marks += stated or ()
        if is_prose and any(self._unknown_names(str(value))):
            return [_NOWHERE]
        return self.made[whole] if whole in self.made and len(marks) < len(atoms) else marks

    def _source(self, atom: Atom, value: Json, about: ParameterField, args: JsonObject) -> list[Mark] | None:
        stated = next((self.real[form] for form in atom.wholes if form in self.real), None)
        if stated is None and any(form in self.made for form in atom.wholes):
            return self.known.repeat(atom.wholes[0], about.name)
        return stated or self.known.derive(atom, value, about.name, about.about, args)

    def _needs_source(self, atom: Atom, value: Json, parts: int, about: ParameterField | None) -> bool:
        """Return whether a part without a source needs one: figures and identifiers, and words outside of prose.

        `about` is the argument of a write, if it is not prose.
        """
        if not atom.is_specific:
            words = {*content_words(about.about)} if about else set[str]()
            return about is not None and not all(word in words or self._knows(word) for word in atom.words)
        is_small = len(atom.wholes[0]) == 1 and (value in (0, 1) or parts >= PROSE_WORDS)
        return not is_small and atom.wholes[0] not in _ENDS_OF_DAY

    def _knows(self, word: str) -> bool:
        return not content_words(word) or any(each in self.real for each in (word, word.rstrip("s"), f"{word}s"))

    def _unknown_names(self, text: str) -> Iterator[str]:
        """Yield the names and spelt-out figures of a text that no source knows."""
        yield from (each for each in _SPOKEN.findall(text) if not self._phrase(each))
        for name in dict.fromkeys(_NAMES.findall(text)):
            if not all(_MOMENTS.fullmatch(word) or self._knows(word.casefold()) for word in name.split()):
                yield name

    def _phrase(self, value: str) -> Mark | None:
        """Return the mark of a real text that contains a value of several words verbatim."""
        part = fold(value)
        if " " not in part or not any(map(str.isalnum, part)):
            return None
        return next((mark for text, mark in self.texts if holds_words(fold(text), part)), None)

    def _unsupported(self, args: list[JsonObject]) -> Iterator[Note]:
        """Yield figures, names and identifiers of the answer that have no real source and are no list's length."""
        text, seen = NUMBERING.sub(" ", self.sources.answer), set[str]()
        if not text:
            return
        lengths = {each for result in self.known.results for each in list_lengths(result.value)}
        for atom in atoms_of(text):
            whole = atom.wholes[0]
            if not atom.is_specific or len(whole) == 1 or whole in lengths or whole in seen:
                continue
            seen.add(whole)
            known = self.predicted.intersection(atom.wholes) or any(form in self.real for form in atom.wholes)
            if known or self.known.derive(atom, text, "", "", args) or self.known.repeat(whole, ""):
                continue
            marks = next((self.made[form] for form in atom.wholes if form in self.made), [_NOWHERE])
            yield _not_supported(atom.text, marks[0])
        for name in self._unknown_names(text):
            words = name.casefold().split()
            marks = next((self.made[word] for word in words if word in self.made), [_NOWHERE])
            if not self.predicted.intersection(words):
                yield _not_supported(name, marks[0])


def _not_supported(text: str, mark: Mark) -> Note:
    return note("unsupported", f"{excerpt(text)}: nothing real says so", value=text, origin=mark.origin())


def _is_specific(form: str) -> bool:
    """Return whether a form hardly occurs twice by chance: phrases, dates, identifiers, numbers of two digits."""
    return form.startswith("=") or (len(form) > 1 and any(map(str.isdigit, form)))
