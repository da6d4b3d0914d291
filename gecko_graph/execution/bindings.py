"""Arguments that only reality can give: found among the plan's simulated results, resolved from the real ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage

from ..generator.naming import is_identifier
from ..leaves import Place, scalars
from ..models.formatting import format_json, text_of
from ..models.memory import recall_calls
from ..provenance import MOST_VALUES, search_state
from ..schemas.findings import json_path, path_tokens, value_at
from ..schemas.subschemas import walk
from ..spellings import atoms_of, forms_of, whole_form
from ..state import Call, Json, JsonObject, Origin, Origins, Step
from ..task_state.difference import json_equal
from ..toolkit import Toolkit
from .records import Ambiguous, Binding, Departure, PlannedCall

SHORTEST = 4
"""Characters of a text or digits of a number that is bound by equality: shorter ones are equal by chance."""
SHOWN = 80

_AMOUNT = re.compile(r"[-+]?(?:[A-Z]{3} |[$€£¥] ?)?[\d.,]+(?: ?[%€£¥$]| [A-Za-z]{1,3})?")


class Dependencies(NamedTuple):
    """What the arguments of one call rest on among the plan's simulated results."""

    bindings: list[Binding]
    ambiguous: list[Ambiguous]
    expects: list[Binding]
    reads: dict[str, str]
    """Argument to the id of the simulated read among whose results it was chosen."""

    @property
    def arguments(self) -> set[str]:
        """JSON paths of these arguments."""
        return {each["argument"] for each in (*self.bindings, *self.ambiguous, *self.expects)} | set(self.reads)


class Source(NamedTuple):
    """A place in the result of an earlier call."""

    number: int
    """Of the call, from 1."""
    call: str
    place: Place
    value: Json
    is_write: bool
    is_real: bool


class PlanResults:
    """Where an attempt's results hold the values of its later calls; a tool of unknown effect counts as a write.

    The first result that holds a value is its source; what repeats a value that was given to it, or reads it, is not.
    """

    def __init__(
        self, steps: Sequence[Step], toolkit: Toolkit, messages: Sequence[AnyMessage], state: JsonObject
    ) -> None:
        self._steps, self._toolkit = steps, toolkit
        self._places: dict[str, list[Source]] = {}
        self._named: dict[str, int] = {}
        wanted: set[str] = set()
        for number, step in enumerate(steps, 1):
            for _, value in scalars(step["call"]["args"]):
                wanted |= _keys(value)
                for form in (*forms_of(value), *_keys(value)):
                    self._named.setdefault(form, number)
            self._add(number, step)
        self._writes = [text for text, found in self._places.items() if _is_made(found[0], text)]
        self._text = "\n".join(map(text_of, messages))
        self._held = _forms_in(messages) & wanted.union(*map(_keys, self._writes))
        self._held |= {form for form, _ in search_state(state, wanted.union(*map(_keys, self._writes)), set())}

    def _add(self, number: int, step: Step) -> None:
        outcome = step.get("outcome")
        if outcome is None or (outcome["simulated"] and outcome["status"] == "error"):
            return
        call, is_write = step["call"], not self._toolkit[step["call"]["name"]].reads
        is_real = not outcome["simulated"] and not outcome.get("stale")
        for place, value in islice(scalars(outcome["result"]), MOST_VALUES):
            if value is not None and not isinstance(value, bool):
                source = Source(number, call["id"], place, value, is_write, is_real)
                self._places.setdefault(str(value), []).append(source)

    def find(self, call: Call, origins: Origins, made_up: set[str]) -> Dependencies:
        """Return what a call's arguments rest on."""
        number = next(number for number, step in enumerate(self._steps, 1) if step["call"]["id"] == call["id"])
        found, offered = Dependencies([], [], [], {}), _offered(self._toolkit[call["name"]].parameters)
        for place, value in scalars(call["args"]):
            if value is None or isinstance(value, bool) or str(value).casefold() in offered:
                continue
            parts = self._parts(value, number)
            if exact := self._sources(value, number):
                _classify(found, place, value, exact, json_path(place) in made_up)
            elif parts:
                for part, sources in parts.items():
                    _classify(found, place, part, sources, False, part=part)
            elif derived := self._derived(origins.get(call["id"], {}).get(json_path(place), ()), value, number):
                _classify(found, place, value, derived, json_path(place) in made_up, is_exact=False)
        return found

    def _sources(self, value: Json, before: int) -> list[Source]:
        """Return the places in simulated results that a value was taken from; none where something real holds it."""
        found = [source for source in self._places.get(str(value), ()) if source.number < before]
        if not found or any(source.is_real for source in found) or self._is_given(value, found[0].number):
            return []
        first = found[0]
        if not first.is_write:
            return [first]
        return [
            each
            for each in found
            if each.number == first.number or (each.is_write and not self._is_named(value, each.number))
        ]

    def _is_given(self, value: Json, number: int) -> bool:
        """Return whether conversation, state, or the arguments up to a call hold a value."""
        if isinstance(value, str) and len(value) >= SHORTEST and value in self._text:
            return True
        atoms = [{*atom.wholes} for atom in atoms_of(value)]
        held = whole_form(str(value)) in self._held or (atoms and all(forms & self._held for forms in atoms))
        return bool(held) or self._is_named(value, number)

    def _is_named(self, value: Json, number: int) -> bool:
        return any(self._named.get(form, number + 1) <= number for form in _keys(value))

    def _parts(self, value: Json, before: int) -> dict[str, list[Source]]:
        """Return the identifiers of simulated writes that a text holds among other words."""
        if not isinstance(value, str):
            return {}
        texts = [each for each in self._writes if each != value and each in value and _spot(each).search(value)]
        longest = [each for each in texts if not any(each != other and each in other for other in texts)]
        return {each: sources for each in longest if (sources := self._sources(each, before))}

    def _derived(self, origins: Sequence[Origin], value: Json, before: int) -> list[Source]:
        """Return the simulated results that a value was computed or spelt from, by provenance."""
        if not origins or any("attempt" in each or ("step" not in each and not _is_patch(each)) for each in origins):
            return []
        found: list[Source] = []
        for origin in origins:
            if "step" in origin and origin["step"] < before:
                step = self._steps[origin["step"] - 1]
                tool, outcome = self._toolkit[step["call"]["name"]], step["outcome"]
                if not outcome["simulated"] or outcome["status"] == "error":
                    return []
                place = tuple(path_tokens(origin["path"]))
                if isinstance(value_at(outcome["result"], origin["path"]), str) and not isinstance(value, str):
                    return []  # a number that can be computed from the digits of an identifier
                found.append(Source(origin["step"], step["call"]["id"], place, value, not tool.reads, False))
        return [] if not found or self._is_given(value, found[0].number) else found


def _classify(
    found: Dependencies,
    place: Place,
    value: Json,
    sources: Sequence[Source],
    is_made_up: bool,
    *,
    part: str = "",
    is_exact: bool = True,
) -> None:
    """Write down what an argument, or a part of its text, rests on."""
    argument = json_path(place, exact=True)
    if reads := [source for source in sources if not source.is_write]:
        found.reads[argument] = reads[0].call
        return
    bindings: list[Binding] = [
        {"argument": argument, "call": each.call, "path": json_path(each.place, exact=True)} for each in sources
    ]
    for binding in bindings if part else ():
        binding["part"] = part
    names = [*place[-1:], *(each for source in sources for each in source.place[-1:])] if not part else sources[0].place
    is_named = any(is_identifier(str(name)) for name in names)
    bindable = (
        is_exact
        and not any(isinstance(source.value, float) for source in sources)
        and (_is_specific(value) or (is_named and isinstance(value, str) and len(value) >= SHORTEST))
        and (not _is_amount(value) or is_named)
    )
    if bindable and len(bindings) == 1 and is_bindable(value, bindings[0]["path"]):
        found.bindings.append(bindings[0])
    elif bindable or is_made_up:
        found.ambiguous.append({"argument": argument, "sources": bindings})
    elif is_named or _is_specific(value, 2):
        found.expects.extend(bindings)


def _is_made(source: Source, text: str) -> bool:
    """Return whether a text that a result holds is an identifier that a simulated write made up."""
    return source.is_write and not source.is_real and _is_specific(text)


def _is_patch(origin: Origin) -> bool:
    """Return whether an origin is a simulated call's change of the state, which repeats what its result has."""
    return "rung" in origin and origin["path"].startswith("/")


def _is_specific(value: Json, shortest: int = SHORTEST) -> bool:
    """Return whether a value can be told from others by equality: it has digits, and is long enough."""
    return len(str(value)) >= shortest and any(atom.is_specific for atom in atoms_of(value))


def _is_amount(value: Json) -> bool:
    """Return whether a value may be an amount, with a unit or a currency."""
    return not isinstance(value, str) or _AMOUNT.fullmatch(value) is not None


def _keys(value: Json) -> set[str]:
    """Return the forms that find a value as a whole."""
    if value is None or isinstance(value, bool):
        return set()
    atoms = atoms_of(value)
    return {whole_form(str(value)), *(form for atom in atoms for form in atom.wholes if len(atoms) == 1)}


def _forms_in(messages: Sequence[AnyMessage]) -> set[str]:
    forms: set[str] = set()
    for message in recall_calls(messages):
        forms.update(forms_of(text_of(message)))
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            forms.update(form for _, value in scalars(call["args"]) for form in forms_of(value))
    return forms


def _offered(parameters: JsonObject) -> set[str]:
    """Return the values that a schema lists."""
    listed = [[*(schema.get("enum") or ()), schema.get("const")] for schema in walk(parameters)]
    return {str(value).casefold() for values in listed for value in values if value is not None}


def _spot(part: str) -> re.Pattern[str]:
    """Return what finds a value in a text as a word of its own."""
    return re.compile(rf"(?<![^\W_]){re.escape(part)}(?![^\W_])")


def is_bindable(value: Json, path: str) -> bool:
    """True for a value that can be told apart by equality, at a place without a list index."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return False
    return len(str(value)) >= SHORTEST and not any(isinstance(token, int) for token in path_tokens(path))


def resolve(
    planned: PlannedCall, results: Mapping[str, Json], predicted: Mapping[str, Json]
) -> tuple[Call, Departure | None]:
    """Return the call with the values that reality gave its bound arguments, and why one cannot be had.

    Of several possible sources the value is taken where all hold the same, or none differs from what was predicted.
    """
    call: Call = {**planned["call"]}

    def differs(binding: Binding) -> bool:
        real, old = results.get(binding["call"]), predicted.get(binding["call"])
        return not json_equal(value_at(real, binding["path"]), value_at(old, binding["path"]))

    for binding in filter(differs, planned.get("expects") or ()):
        return call, _departure(binding, results, "not what was predicted")
    chosen = [*planned["bindings"]]
    for each in planned["ambiguous"]:
        if any(map(differs, each["sources"])):
            if problem := _disagreement(each, results):
                return call, problem
            chosen.append(each["sources"][0])
    chosen.sort(key=lambda each: each["argument"])
    for argument, bindings in groupby(chosen, key=lambda each: each["argument"]):
        new, missing = _filled(value_at(call["args"], argument), [*bindings], results)
        if missing:
            return call, _departure(missing, results, "no value that can be used")
        call["args"] = replaced(call["args"], path_tokens(argument), new)
    return call, None


def _disagreement(ambiguous: Ambiguous, results: Mapping[str, Json]) -> Departure | None:
    """Return why none of several sources can be taken; None where all hold the same identifier."""
    sources = ambiguous["sources"]
    values = [value_at(results.get(source["call"]), source["path"]) for source in sources]
    same = all(json_equal(value, values[0]) for value in values)
    if same and all(is_bindable(values[0], source["path"]) for source in sources):
        return None
    return _departure(
        sources[0], results, "not certain to be the same" if same else "not in all places that it may be from"
    )


def _filled(old: Json, bindings: Sequence[Binding], results: Mapping[str, Json]) -> tuple[Json, Binding | None]:
    """Return an argument's value with what reality gave, and the binding that has no value of a fitting kind."""
    parts: dict[str, str] = {}
    for binding in bindings:
        new, part = value_at(results.get(binding["call"]), binding["path"]), binding.get("part")
        if isinstance(new, bool) or not isinstance(new, str | int) or new == "":
            return None, binding
        if part is None and isinstance(old, int):
            return (int(new), None) if str(new).lstrip("-").isdecimal() else (None, binding)
        if part is None:
            return str(new), None
        parts[part] = str(new)
    spots = re.compile("|".join(_spot(part).pattern for part in sorted(parts, key=len, reverse=True)))
    return spots.sub(lambda match: parts[match[0]], old), None


def _departure(binding: Binding, results: Mapping[str, Json], why: str) -> Departure:
    real = format_json(value_at(results.get(binding["call"]), binding["path"]), budget=SHOWN)
    place = f"the result of the call {binding['call']} at {binding['path']}"
    return {"code": "binding", "message": f"{binding['argument']} was taken from {place}: {real} is {why}"}


def replaced(value: Json, tokens: Sequence[str | int], new: Json) -> Any:
    """Return a copy of a value with another one at a place that it has."""
    if not tokens:
        return new
    copied = {**value} if isinstance(value, dict) else [*value]
    copied[tokens[0]] = replaced(value[tokens[0]], tokens[1:], new)  # type: ignore[index]
    return copied


def places(value: Json, here: str = "$") -> Iterator[tuple[str, Json]]:
    """Yield each value within a value, with its JSON path."""
    yield here, value
    members: Any = value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}
    for key, each in members.items():
        yield from places(each, here + json_path((key,), exact=True)[1:])
