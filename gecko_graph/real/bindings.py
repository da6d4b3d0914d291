"""Arguments whose values only real calls give: found in the plan's simulated results, shown as holes, and filled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage

from ..models.formatting import format_json, text_of
from ..models.memory import recall_calls
from ..schemas.specimens import is_identifier, noun
from ..schemas.subschemas import walk
from ..state import Call, Json, JsonObject, Origin, Origins, Step
from ..tools import Toolkit
from ..values.difference import json_equal
from ..values.finding import atoms_of, canonical, forms_of, whole_form
from ..values.notes import notes_of
from ..values.patch import apply_patch, equal, same_value
from ..values.places import Place, as_text, place_at, pointer, pointer_tokens, scalars, short_pointer, value_at
from ..world.booking import SHORTEST, SPOT
from ..world.given import search_state
from ..world.provenance import MOST_VALUES
from ..world.records import Ambiguous, Binding, Departure, PlannedCall

SHOWN = 80

_AMOUNT = re.compile(r"[-+]?(?:[A-Z]{3} |[$€£¥] ?)?[\d.,]+(?: ?[%€£¥$]| [A-Za-z]{1,3})?")
_FIGURE = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+")
_WORD = re.compile(r"\d+|[^\W\d_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0003ffff]+|[^\W\d_]")
"""A run of digits or of letters; in scripts without spaces between words each letter alone."""


class Dependencies(NamedTuple):
    """The sources of a call's arguments in the plan's simulated results."""

    bindings: list[Binding]
    ambiguous: list[Ambiguous]
    expects: list[Binding]
    reads: dict[str, list[str]]
    """For an argument that was chosen from results of simulated reads, or contains values of them: the ids of the
    reads."""

    @property
    def arguments(self) -> set[str]:
        return {each["argument"] for each in (*self.bindings, *self.ambiguous, *self.expects)} | set(self.reads)


class BoundSource(NamedTuple):
    """A place in the simulated result of an earlier call."""

    number: int
    """The call's number, from 1."""
    call: str
    tool: str
    place: Place
    value: Json
    is_write: bool

    @property
    def name(self) -> str:
        return str(self.place[-1]) if self.place else ""

    @property
    def noun(self) -> str:
        """The kind of thing that the identifier is for: by its key, the key around it, or the tool's name."""
        return noun(" ".join(map(str, (self.tool, *self.place[-2:]))))


class PlanResults:
    """The places in an attempt's results where values of later calls come from.

    The first result that contains a value is its source, not a result that repeats or reads a given value. A tool of
    unknown effect counts as a write. Results may be large, so only values that can occur in arguments are kept.
    """

    def __init__(
        self, steps: Sequence[Step], toolkit: Toolkit, messages: Sequence[AnyMessage], state: JsonObject
    ) -> None:
        self._steps, self._toolkit = steps, toolkit
        self._places: dict[str, list[BoundSource]] = {}
        self._texts = [_spaced("\n".join(map(text_of, messages)))]
        self._held, wanted = set[str](), set[str]()
        for step in steps:
            values = [each for _, each in scalars(step["call"]["args"]) if _key(each)]
            self._texts.append(_spaced("\n".join(map(_key, values))))
            wanted = wanted.union(*map(_keys, values))
        self._words = {word for text in self._texts[1:] for word in text.split()}
        for number, step in enumerate(steps, 1):
            self._add(number, step)
        self._spelt = {key: spaced for key in self._places if (spaced := _spaced(key)).strip()}
        for key in self._places:
            wanted |= _keys(key).union(*(atom.wholes for atom in atoms_of(key)))
        self._held |= _forms_in(messages) & wanted
        self._held |= {form for form, _ in search_state(state, wanted, set())}

    def _add(self, number: int, step: Step) -> None:
        """Keep the places of values that may occur in arguments; values of real results count as given."""
        outcome, call = step.get("outcome"), step["call"]
        if outcome is None or (outcome["simulated"] and outcome["status"] == "error"):
            return
        is_write = not self._toolkit[call["name"]].reads
        is_real = not outcome["simulated"] and not notes_of(outcome, "stale")
        for place, value in islice(scalars(outcome["result"]), MOST_VALUES):
            key = _key(value)
            if not key or not self._words.issuperset(_spaced(key).split()):
                continue
            if is_real:
                self._held |= _keys(key)
            else:
                source = BoundSource(number, call["id"], call["name"], place, value, is_write)
                self._places.setdefault(key, []).append(source)

    def find(self, call: Call, origins: Origins, made_up: set[str]) -> Dependencies:
        """Return the sources of a call's arguments."""
        number = next(number for number, step in enumerate(self._steps, 1) if step["call"]["id"] == call["id"])
        found, schemas = Dependencies([], [], [], {}), walk(self._toolkit[call["name"]].parameters)
        listed = (each for schema in schemas for each in (*(schema.get("enum") or ()), schema.get("const")))
        offered = {str(each).casefold() for each in listed if each is not None}
        for place, value in scalars(call["args"]):
            if not (key := _key(value)) or str(value).casefold() in offered or self._is_given(key, 0):
                continue
            argument, is_made_up = pointer(place), pointer(place) in made_up
            if exact := self._sources(key, number):
                name = next((each for each in reversed(place) if isinstance(each, str)), "")
                if not isinstance(value, str) and len(key) == 1 and is_identifier(name) != is_identifier(exact[0].name):
                    exact = [each for each in exact if not each.is_write]  # equal by chance
                is_text, of_text = isinstance(value, str), any(isinstance(each.value, str) for each in exact)
                fits = is_text >= of_text and any(_is_identifier(key, each, name) for each in exact)
                starts = [0] if is_text and not of_text else None  # a number written as a string
                _classify(found, argument, exact, fits=fits, starts=starts, is_made_up=is_made_up)
                continue
            seen = self._read(found, argument, value, number) if isinstance(value, str) else set()
            marks = origins.get(call["id"], {}).get(pointer(place), ())
            derived = self._derived(marks, key, number, is_text=isinstance(value, str))
            left = [each for each in derived if not {_key(each.value), each.name} & seen]
            _classify(found, argument, left, is_made_up=is_made_up)
        return found

    def _sources(self, key: str, before: int) -> list[BoundSource]:
        """Return the places in simulated results that a value was taken from; none if a real result contains it."""
        found = [source for source in self._places.get(key, ()) if source.number < before]
        if not found or self._is_given(key, found[0].number):
            return []
        first = found[0]
        if not first.is_write:
            return [first]
        made = [each for each in found if each.is_write and not self._is_in_calls(key, 1, each.number)]
        return [each for each in found if each.number == first.number or each in made]

    def _is_given(self, key: str, number: int) -> bool:
        """Return whether a value occurs in the conversation, state, real results, or arguments up to a call."""
        atoms, held = atoms_of(key), whole_form(key) in self._held or self._is_in_calls(key, 0, number)
        if atoms and (len(atoms) == 1 or all(atom.is_specific for atom in atoms)):
            held = held or all(not self._held.isdisjoint(atom.wholes) for atom in atoms)
        return held

    def _is_in_calls(self, key: str, first: int, last: int) -> bool:
        """Return whether a value occurs in the arguments of these calls; 0 is the conversation."""
        spaced = _spaced(key)
        return bool(spaced.strip()) and any(spaced in text for text in self._texts[first : last + 1])

    def _read(self, found: Dependencies, argument: str, text: str, before: int) -> set[str]:
        """Record the values of simulated results that a text contains, and return them.

        An identifier that a write created becomes a hole. All other values must be as predicted in the real results.
        """
        spelt, parts = _spaced(text), dict[str, list[int]]()
        inside = [key for key, each in self._spelt.items() if each in spelt]
        sources = {key: places for key in inside if (places := self._sources(key, before))}

        def open_hole(match: re.Match[str]) -> str:
            near = text[max(0, match.start() - SHOWN) : match.start()]
            if not any(_is_identifier(match[0], each, before=near) for each in sources[match[0]]):
                return match[0]
            parts.setdefault(match[0], []).append(match.start())
            return "\ue000"  # not part of any word

        made = sorted((key for key, places in sources.items() if places[0].is_write), key=len, reverse=True)
        rest = re.sub(SPOT.format("|".join(map(re.escape, made))), open_hole, text) if made else text
        for part, starts in parts.items():
            _classify(found, argument, sources[part], fits=True, starts=starts)
        left, covered = _spaced(rest), [*map(_spaced, parts)]
        others = {key for key in sources if _spaced(key) in left or not any(_spaced(key) in each for each in covered)}
        for key in sorted(others):
            _classify(found, argument, sources[key])
        return others | set(parts)

    def _derived(self, origins: Sequence[Origin], key: str, before: int, *, is_text: bool) -> list[BoundSource]:
        """Return the simulated results that a value was computed or reformatted from, by provenance.

        Words of a text come from many places, so its parts are found by value instead.
        """
        found: list[BoundSource] = []
        patches = [each for each in origins if "rung" in each and each["from"] == "state"]  # repeat a result
        if is_text and any("attempt" in each or ("step" not in each and each not in patches) for each in origins):
            return []
        for origin in origins:
            if origin["from"] != "result" or "attempt" in origin or origin["step"] >= before:
                continue
            step = self._steps[origin["step"] - 1]
            tool, outcome = self._toolkit[step["call"]["name"]], step["outcome"]
            path = origin["path"] if value_at(outcome["result"], origin["path"]) is not None else ""  # the path was cut
            held = value_at(outcome["result"], path)
            if not outcome["simulated"] or outcome["status"] == "error" or (isinstance(held, str) and not is_text):
                continue  # a number can be computed from the digits of an identifier
            place = place_at(outcome["result"], path)
            found.append(BoundSource(origin["step"], step["call"]["id"], tool.name, place, held, not tool.reads))
        return [] if not found or self._is_given(key, found[0].number) else found


def _classify(
    found: Dependencies,
    argument: str,
    sources: Sequence[BoundSource],
    *,
    fits: bool = False,
    starts: Sequence[int] | None = None,
    is_made_up: bool = False,
) -> None:
    """Record the source of an argument, or of a part of its text; it `fits` if it is an identifier."""
    if reads := [source.call for source in sources if not source.is_write]:
        found.reads[argument] = [*dict.fromkeys([*found.reads.get(argument, ()), *reads])]
        return
    where: Any = {"argument": argument} if starts is None else {"argument": argument, "starts": [*starts]}
    bindings: list[Any] = [
        {**where, "call": each.call, "path": pointer(each.place), "predicted": each.value} for each in sources
    ]
    if fits and len(sources) == 1 and not any(isinstance(token, int) for token in sources[0].place):
        found.bindings.append(bindings[0])
    elif sources and (fits or is_made_up):
        found.ambiguous.append({"argument": argument, "sources": bindings})
    else:
        found.expects.extend(each for each in bindings if each not in found.expects)


def _is_identifier(text: str, source: BoundSource, name: str | None = None, *, before: str = "") -> bool:
    """Return whether a text is the identifier at a place by name or form, and not equal by chance.

    `name` is the argument's name if the text is its whole value; otherwise the text occurs in a longer one, after
    `before`.
    """
    if isinstance(source.value, bool) or not isinstance(source.value, str | int) or str(source.value) != text:
        return False
    own, is_long = is_identifier(source.name), len(text) >= SHORTEST
    other = name is not None and is_identifier(name)
    # a word needs two of these three signs, a number also matching nouns, or all three
    if not _AMOUNT.fullmatch(text):
        return any(atom.is_specific for atom in atoms_of(text)) or (name is not None and own + other + is_long > 1)
    if name is None:
        return own and (is_long or noun(before) == source.noun != "")
    agrees = not noun(name) or not source.noun or noun(name) == source.noun
    return own + other + is_long + agrees > 2


def _key(value: Json) -> str:
    """Return a scalar's key for searches, the same for equal numbers; "" for values that are not searched."""
    if value is None or isinstance(value, bool | dict | list):
        return ""
    return value if isinstance(value, str) else canonical(value)


def _spaced(text: str) -> str:
    """Return the words of a text between single spaces, for searches of one text in another by whole words."""
    plain = _FIGURE.sub(lambda match: canonical(match[0]), text.casefold())
    return f" {' '.join(_WORD.findall(plain))} "


def _keys(value: Json) -> set[str]:
    atoms = atoms_of(value)
    return {whole_form(str(value)), *(form for atom in atoms for form in atom.wholes if len(atoms) == 1)}


def _forms_in(messages: Sequence[AnyMessage]) -> set[str]:
    forms: set[str] = set()
    for message in recall_calls(messages):
        forms.update(forms_of(text_of(message)))
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            forms.update(form for _, value in scalars(call["args"]) for form in forms_of(value))
    return forms


def template(planned: PlannedCall) -> Iterator[tuple[str, list[str | Binding]]]:
    """Yield each argument with holes as the approved parts of its text and the holes between them, in order.

    A call's display, its digest and the sent call all use it.
    """
    by_argument: dict[str, list[Binding]] = {}
    for each in planned["bindings"]:
        by_argument.setdefault(each["argument"], []).append(each)
    for argument, bindings in by_argument.items():
        if "starts" not in bindings[0]:
            yield argument, [bindings[0]]
            continue
        text, parts, end = value_at(planned["call"]["args"], argument), list[str | Binding](), 0
        for start, number in sorted((start, n) for n, each in enumerate(bindings) for start in each["starts"]):
            parts += [text[end:start], bindings[number]]
            end = start + len(as_text(bindings[number]["predicted"]))
        yield argument, [*parts, text[end:]]


def with_holes(planned: PlannedCall) -> JsonObject:
    """Return a call without the values of holes, with the source of each."""
    args, holes = planned["call"]["args"], dict[str, Json]()
    for argument, parts in template(planned):
        args = replaced(args, argument, None)
        holes[argument] = [each if isinstance(each, str) else [each["call"], each["path"]] for each in parts]
    return {**planned["call"], "args": args, "holes": holes}


def resolve(planned: PlannedCall, results: Mapping[str, Json]) -> tuple[PlannedCall, Departure | None]:
    """Return the call to send, or the reason not to: a real result differs from the prediction, or lacks a value.

    Only holes are filled. All other sources of an argument must be as predicted, so that the call is sent as shown.
    """
    uncertain = [source for each in planned["ambiguous"] for source in each["sources"]]
    for each in [*(planned.get("expects") or ()), *uncertain]:
        if not equal(value_at(results.get(each["call"]), each["path"]), each["predicted"], same_value):
            return planned, _departure(each, results, "not as predicted")
    return fill(planned, results)


def fill(planned: PlannedCall, results: Mapping[str, Json]) -> tuple[PlannedCall, Departure | None]:
    """Return the call with values of these results in its holes, which stay marked; or why a hole has no value."""
    args, filled = planned["call"]["args"], dict[tuple[str, str, str], Binding]()
    for argument, parts in template(planned):
        text: Any = ""
        for part in parts:
            if isinstance(part, str):
                text += part
                continue
            value = value_at(results.get(part["call"]), part["path"])
            if value in (None, "") or ("starts" in part and isinstance(value, bool | dict | list)):
                return planned, _departure(part, results, "no value that can be used")
            new: Binding = {**part, "predicted": value}
            if "starts" in part:
                new = filled.get((argument, part["call"], part["path"])) or {**new, "starts": []}
                new["starts"].append(len(text))
                value = text + as_text(value)
            filled[argument, part["call"], part["path"]], text = new, value
        args = replaced(args, argument, text)
    return {**planned, "call": {**planned["call"], "args": args}, "bindings": [*filled.values()]}, None


def find_difference(planned: PlannedCall, sent: Call, results: Mapping[str, Json]) -> Departure | None:
    approved, _ = fill(planned, results)
    is_same = json_equal(sent, approved["call"])
    return None if is_same else {"code": "binding", "message": "it is not the call that was approved"}


def _departure(binding: Binding, results: Mapping[str, Json], why: str) -> Departure:
    real = format_json(value_at(results.get(binding["call"]), binding["path"]), budget=SHOWN)
    argument, path = (short_pointer(pointer_tokens(binding[key])) for key in ("argument", "path"))
    place = f"{path or 'the whole'} of the result of the call {binding['call']}"
    return {"code": "binding", "message": f"{argument} rests on {place}: {real} is {why}"}


def replaced(value: Json, path: str, new: Json) -> Any:
    """Return a copy of a value with another one at an existing JSON Pointer."""
    return apply_patch(value, [{"op": "replace", "path": path, "value": new}])
