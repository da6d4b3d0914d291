"""Contracts that follow from the kinds of operations: data as a person writes it, with the status `derived`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..contracts.contract import DerivedContract
from ..schemas.made_up import Impossible, make_value
from ..state import Json, JsonObject
from ..tools import Toolkit
from .kinds import STATEFUL, Kind, counter_of, find_kinds, names_item
from .paths import Operation, Paths, Things, name_of
from .shapes import Shape, matching, plain, singular

LIMIT = frozenset(("limit", "perpage", "pagesize", "take", "maxresults", "size", "top", "count"))
OFFSET = frozenset(("offset", "skip", "start", "startindex"))
ORDER = frozenset(("sort", "sortby", "orderby", "order", "ordering"))
AFTER = frozenset(("after", "startingafter", "cursor"))
SEARCH = frozenset(("q", "query", "search", "text", "keyword", "keywords", "term"))
FREE = frozenset(
    ("fields", "expand", "include", "includes", "pretty", "format", "view", "before", "pagetoken", "select")
)
"""Names of members of requests, without case and separators; the last change no thing, only what is shown of it."""

_TOTAL = re.compile(r"(total|count|total_?(count|items|results|elements|records)|record_?count)", re.IGNORECASE)
_TIME = re.compile(
    r"(created|updated|modified|inserted|changed)(_?(at|on|time|date))?|(create|update)_?(time|date)|.*timestamp",
    re.IGNORECASE,
)
_YES = frozenset(("deleted", "removed", "success", "ok"))
_NEUTRAL: Mapping[str, Json] = {"string": "", "integer": 0, "number": 0, "boolean": False}
_BOUND = frozenset(("minLength", "pattern", "minimum", "exclusiveMinimum", "format", "multipleOf"))
_MERGES = re.compile(r"\bmerge", re.IGNORECASE)
_PAGE, _WAY = (
    frozenset(("page", "pagenumber")),
    frozenset(("direction", "sortdirection", "sortorder", "orderdirection")),
)
_LONG_AGO = "2000-01-01T00:00:00Z"
_DEEPEST = 4


@dataclass(frozen=True)
class Derived:
    """What a toolkit's document tells of its operations.

    Args:
        kinds: What each operation does, and why, by the tool's name.
        left_out: Why an operation of a known kind has no contract.
        file: A file of contracts, for `Toolkit.with_contracts`.
    """

    kinds: Mapping[str, Kind]
    left_out: Mapping[str, str]
    file: JsonObject

    @property
    def made(self) -> list[str]:
        """The root keys of the state under which operations make things: without a state they begin empty."""
        return sorted(key for key, is_made in self._roots().items() if is_made)

    @property
    def summary(self) -> list[str]:
        """What was derived, and of what nothing is known, in lines."""
        counts = Counter(kind.word for name, kind in self.kinds.items() if name in self.file["contracts"])
        if not counts:
            return []
        words = ", ".join(f"{word} {count}" for word, count in counts.most_common())
        lines = [f"a state was derived from the document (--no-derive leaves it out): {words}"]
        if self.made:
            lines.append(f"empty until something is made: {', '.join(self.made)}")
        if others := sorted(key for key, is_made in self._roots().items() if not is_made):
            lines.append(f"no operation makes these, so what is read of them is made up: {', '.join(others)}")
        return lines

    def _roots(self) -> dict[str, bool]:
        things = (kind.things for name, kind in self.kinds.items() if kind.things and name in self.file["contracts"])
        return {(one.of or one).root: (one.of or one).is_made for one in things}


def derive_contracts(toolkit: Toolkit, state: JsonObject | None = None) -> Derived:
    """Return what the paths, schemas and names of tools tell of a state that they share. Pure.

    Args:
        toolkit: The tools, of an OpenAPI document or with names such as `create_issue`.
        state: The task state that calls begin from: contracts take its keys, or are left out.

    Returns:
        The kind of each operation, with the reason, and contracts with the status `derived`: they answer in
        simulations, refuse no real call, and give way to every contract that a person wrote or real calls established.
    """
    paths = Paths(toolkit)
    kinds, left, contracts = find_kinds(paths), dict[str, str](), JsonObject()
    shaped = _find_roots(toolkit, state)
    for things in paths.things.values():
        alike = (key for key in shaped if plain(singular(key)) == plain(singular(things.name)))
        things.root = next(alike, things.name)
    for one in paths.operations:
        kind, name = kinds[one.tool.name], one.tool.name
        if why := _find_hindrance(kind, shaped):
            left[name] = why
        elif data := _Writer(paths, one, kind).write():
            contracts[name] = {"evidence": {"status": "derived", "kind": kind.word, "why": kind.why}, **data}
        elif kind.word in STATEFUL:
            left[name] = "the document does not say enough of its answer"
    return Derived(kinds, left, {"contracts": contracts})


def _find_hindrance(kind: Kind, shaped: Mapping[str, bool]) -> str:
    """Return why nothing can be derived of an operation whose kind is known; "" if something can."""
    things = kind.things.of or kind.things if kind.things else None
    if things is None or kind.word == "action":
        return ""
    if not shaped.get(things.root, True):
        return f"the state keeps {things.root} otherwise than as objects by their keys"
    return "" if things.key else "no member of an item names it"


def add_derived(toolkit: Toolkit, state: JsonObject | None = None) -> tuple[Toolkit, Derived]:
    """Return a toolkit with what is derived of its tools that nothing was derived of yet, and what that is."""
    found, where = derive_contracts(toolkit, state), "derived contract of "
    made = {name: DerivedContract(data, f"{where}{name}") for name, data in found.file["contracts"].items()}
    bare = [tool for tool in toolkit if tool.name in made and tool.derived is None]
    return toolkit.replace(*(replace(tool, derived=made[tool.name]) for tool in bare)), found


def _find_roots(toolkit: Toolkit, state: JsonObject | None) -> dict[str, bool]:
    """Return the root keys that a state, its schema and written contracts have, and whether they hold objects by keys."""
    schema = (toolkit.state_schema or {}).get("properties", {})
    found = {key: True for key in toolkit.state_keys}
    found |= {key: Shape(each, toolkit.state_schema).types in ({"object"}, frozenset()) for key, each in schema.items()}
    return found | {
        key: isinstance(each, dict) and all(isinstance(one, dict) for one in each.values())
        for key, each in (state or {}).items()
    }


def blank_of(shape: Shape, name: str, depth: int = 0) -> Json:
    """Return the plainest value that fits, for what nothing is known of: a default, null, the first choice, nothing."""
    for keyword in ("default", "const"):
        if any(keyword in part for part in shape.parts):
            return shape.first(keyword)
    if choices := shape.first("enum"):
        return None if None in choices else choices[0]
    if shape.is_nullable:
        return None
    if shape.types == {"array"} and not shape.first("minItems"):
        return []
    is_text = "string" in shape.types
    if is_text and (shape.first("format") == "date-time" or _TIME.fullmatch(name)):
        return "{{ clock('%s') }}" % _LONG_AGO
    if shape.types == {"object"}:
        return blanks_of(shape, depth + 1) if depth < _DEEPEST else {}
    if "boolean" in shape.types:
        return plain(name) in _YES
    if shape.types and not any(_BOUND & part.keys() for part in shape.parts):
        return _NEUTRAL.get(next(iter(sorted(shape.types))))
    try:
        whole = {**shape.said.schema, "$defs": (shape.said.root or {}).get("$defs", {})}
        return make_value(whole, seed=0, key=name, subject=name)
    except (Impossible, TypeError):
        return None


def blanks_of(shape: Shape, depth: int = 0) -> JsonObject:
    """Return blanks for the members that an object always has, and for those that say what they are without a value."""
    found = {}
    for name, each in shape.fields.items():
        if not each.first("writeOnly") and (name in shape.required or each.is_nullable):
            found[name] = blank_of(each, name, depth)
    return found


def _arg(name: str) -> str:
    return f"args[{name!r}]"


def _exists(place: str, things: Things) -> JsonObject:
    return {"check": f"has({place})", "error": f"{things.singular} not found", "status": 404}


class _Writer:
    """Writes the contract of one operation, by the method that is called as its kind."""

    def __init__(self, paths: Paths, one: Operation, kind: Kind) -> None:
        self.paths, self.one, self.kind, self.result = paths, one, kind, one.result
        self.things: Things = (kind.things.of or kind.things) if kind.things else Things((), "", Shape(True, None))
        self.key, self.depth = self.things.key or "", self.things.slot.count("{}")
        self.let: JsonObject = {"shelf": "{{ %s }}" % self._place_of(self.things, one.variables[: self.depth])}
        self.requires = [*self._above()]
        self.where = one.result.holds(self.things.fields) if self.things.fields else None

    def write(self) -> JsonObject | None:
        """Return the contract without its evidence; None if there is none."""
        write = getattr(self, f"_{self.kind.word.replace(' ', '_')}", None)
        written = write() if write else None
        parts = {"let": self.let, "requires": self.requires, **(written or {})}
        return written and {key: each for key, each in parts.items() if each not in ({}, [])}

    def _place_of(self, things: Things, names: Iterable[str]) -> str:
        return f"[{', '.join([repr(things.root), *map(_arg, names)])}]"

    def _above(self) -> Iterator[JsonObject]:
        """Yield that the things exist that the path leads through, as far as an operation makes them."""
        for above, depth in self.paths.above(self.one.slot):
            if above.is_made and not above.of and above not in (self.things, self.kind.things):
                yield _exists(self._place_of(above, self.one.variables[:depth]), above)

    def _find(self) -> None:
        """Let `place` be where the thing is that the call is about, which must exist."""
        by, named = self.kind.things, names_item(self.one, self.things)
        if len(self.one.variables) > self.depth:
            name = _arg(self.one.variables[self.depth])
        else:
            name = _arg(self.one.sent[named or ""])
        if by and by.of:  # another key of the same things
            self.let["found"] = f"{{{{ things(shelf, {self.key!r}, {{{by.key!r}: {name}}}, {{}}) }}}}"
            name = f"at(found, [0, {self.key!r}], '')"
        self.let["id"] = "{{ %s }}" % name
        self.let["place"] = "{{ [shelf, id] }}"
        self.requires.append(_exists("place", self.things))

    # results ---------------------------------------------------------------------------------------------------------

    def _thing(self, value: str = "") -> Json:
        """Return the result of a call about a thing: the thing, its key, or blanks."""
        value = value or f"thing(place, {self.key!r})"
        if self.where is not None or (self.kind.word == "read" and self.result.fields):
            where = self.where or ()
            blank = blanks_of(self.things.shape if self.where is not None else self.result)
            blank.pop(self.key, None)
            return _around(self.result, where, {"known": "{{ %s }}" % value, "blank": blank})
        if not (self.result.types or self.result.fields):
            return None
        by = {plain(name): name for name in self.result.fields}
        named = by.get(plain(self.key)) or by.get(plain(self.things.variable))
        if named:
            blank = {name: each for name, each in blanks_of(self.result).items() if name != named}
            return {"known": {named: "{{ id }}"}, "blank": blank}
        return {"blank": blank_of(self.result, "")}

    def _sent(self) -> tuple[str, list[str], list[str]]:
        """Return the expression of what a call sends of a thing, the fields that it may send, and those it merges."""
        one, fields = self.one, self.things.fields
        where = one.body.holds(fields) or ()
        if where or "" in one.sent:
            way = [one.sent[""], *where] if "" in one.sent else [one.sent[where[0]], *where[1:]]
            names = [*one.body.at(where).fields]
            return f"at(args, {way!r}, {{}})", names, [name for name in names if name == "attributes"]
        found = {one.sent[wire]: field for wire, field in matching(one.body.fields, fields).items()}
        deep = [
            field
            for arg, field in found.items()
            if _MERGES.search(str(one.parameters.fields[arg].first("description")))
        ]
        return f"sent({found!r})", [*found.values()], deep

    def _defaults(self) -> JsonObject:
        pairs = matching(self.one.body.fields, self.things.fields).items()
        found = {field: self.one.body.fields[wire].first("default") for wire, field in pairs}
        return {field: each for field, each in found.items() if each is not None}

    def _base(self) -> str:
        """Return the members of a thing that its path gives, as an expression."""
        by = {plain(name): name for name in self.things.fields}
        names = self.paths.wires(self.one)[: self.depth]
        found = {by[plain(wire)]: _arg(name) for wire, name in names if plain(wire) in by}
        return ", ".join(
            [*(f"{name!r}: {arg}" for name, arg in found.items() if name != self.key), f"{self.key!r}: id"]
        )

    # kinds -----------------------------------------------------------------------------------------------------------

    def _read(self) -> JsonObject | None:
        self._find()
        seen = {"op": "add", "path": "{{ place }}", "value": "{{ at(result, %r) }}" % [*(self.where or ())]}
        return {"returns": self._thing(), "observes": [seen]} if self.result.fields else None

    def _remove(self) -> JsonObject:
        self._find()
        self.let["old"] = "{{ thing(place, %r) }}" % self.key
        below = [{"op": "gone", "path": self._below(each)} for each in self.paths.below(self.things)]
        return {"effects": [{"op": "gone", "path": "{{ place }}"}, *below], "returns": self._thing("old")}

    def _below(self, each: Things) -> str:
        return f"{{{{ [{each.root!r}, {''.join(_arg(name) + ', ' for name in self.one.variables[: self.depth])}id] }}}}"

    def _remove_all(self) -> JsonObject:
        return {"effects": [{"op": "add", "path": "{{ shelf }}", "value": {}}], "returns": self._thing("{}")}

    def _create(self) -> JsonObject:
        shape, named = self.things.fields.get(self.key, Shape(True, None)), names_item(self.one, self.things)
        effects: list[JsonObject] = []
        new = "{{ new_id(%r) }}" % f"{self.things.singular[:4].lower()}_"
        if shape.types & {"integer", "number"}:
            new = "{{ new_number(shelf) }}"
            effects = [{"op": "add", "path": ["runtime_state", "serial", "{{ pointer(shelf) }}"], "value": "{{ id }}"}]
        elif shape.first("format") == "uuid":
            new = "{{ new_id('', 'xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx') }}"
        self.let["id"] = new
        if named and named in self.one.sent:
            own = {
                "when": f"sent({{{self.one.sent[named]!r}: 'id'}}) != {{}}",
                "value": "{{ %s }}" % _arg(self.one.sent[named]),
            }
            self.let["id"] = {"cases": [own, {"value": new}]}
        self.let["place"] = "{{ [shelf, id] }}"
        self._refuse_twice(named)
        sent, _, _ = self._sent()
        item = "{{ merge(%r, {%s}, %s, {%r: id}) }}" % (self._defaults(), self._base(), sent, self.key)
        below = [{"op": "add", "path": self._below(each), "value": {}} for each in self.paths.below(self.things)]
        return {
            "effects": [{"op": "add", "path": "{{ place }}", "value": item}, *below, *effects],
            "returns": self._thing(),
        }

    def _refuse_twice(self, named: str | None) -> None:
        """Require that a thing is new: by the key that a call may give, or by the name beside a documented 409."""
        exists = {"error": f"{self.things.singular} already exists", "status": 409}
        if named:
            self.requires.append({"check": "not has(place, False)", **exists})
        elif "409" in (self.one.tool.binding.responses if self.one.tool.binding else {}):
            pairs = matching(self.one.body.fields, self.things.fields).items()
            unique = next((pair for pair in pairs if pair[1] in ("name", "slug", "key", "email", "username")), None)
            if unique and unique[0] in self.one.sent:
                filters = f"{{{unique[1]!r}: {_arg(self.one.sent[unique[0]])}}}"
                self.requires.append({"check": f"things(shelf, {self.key!r}, {filters}, {{}}) == []", **exists})

    def _update(self) -> JsonObject:
        self._find()
        sent, names, deep = self._sent()
        old = "at(state, place, {})"
        if self.kind.word == "replace":
            old = f"without({old}, {names!r}), {self._defaults()!r}"
        merged = "{{ merge({%r: id}, %s, %s%s) }}" % (self.key, old, sent, f", {deep!r}" if deep else "")
        return {"effects": [{"op": "add", "path": "{{ place }}", "value": merged}], "returns": self._thing()}

    _replace = _update

    def _upsert(self) -> JsonObject:
        written = self._update()
        self.requires.pop()
        merged = written["effects"][0]["value"].replace("merge({%r: id}" % self.key, "merge({%s}" % self._base(), 1)
        return {**written, "effects": [{**written["effects"][0], "value": merged}]}

    def _list(self) -> JsonObject | None:
        found, shape = self.result.listed, self.things.shape
        if self.one.lists is None:
            return None
        filters, blank, unread = self._filters()
        self.let["found"] = "{{ things(shelf, %r, {%s}, %r) }}" % (self.key, filters, blank)
        if unread:
            self.let["found"] = (
                self.let["found"].replace("{{ ", "{{ doubted(").replace(" }}", f", sent({unread!r})) }}}}")
            )
        shown = f"page(ordered(found, {self._asked(ORDER)}, {self._asked(_WAY)}), {self._asked(LIMIT)}, {self._asked(OFFSET)}, {self._asked(_PAGE)}, [{self.key!r}, {self._asked(AFTER)}])"
        each = {"for_each": shown, "as": "each", "value": {"known": "{{ each }}", "blank": blanks_of(shape)}}
        each["value"]["blank"].pop(self.key, None)
        if found is None:  # an object of things by their keys
            return {"returns": "{{ by_key(%s, %r) }}" % (shown, self.key)}
        seen = {"for_each": "at(result, %r)" % [*found[0]], "as": "each", "op": "add", "value": "{{ each }}",
                "path": "{{ [shelf, each[%r]] }}" % self.key}  # fmt: skip
        return {"returns": _around(self.result, found[0], each, "{{ len(found) }}"), "observes": [seen]}

    def _asked(self, names: frozenset[str]) -> str:
        found = next((arg for wire, arg in self.one.asked.items() if plain(wire) in names), None)
        return _arg(found) if found else "None"

    def _filters(self) -> tuple[str, JsonObject, JsonObject]:
        """Return what a list is filtered by, as an expression, blanks of these fields, and what nothing explains."""
        fields, pairs, unread = self.things.fields, dict[str, str](), JsonObject()
        by = {plain(name): name for name in fields}
        known = LIMIT | OFFSET | ORDER | AFTER | FREE | _PAGE | _WAY
        for wire, arg in self.one.asked.items():
            field = by.get(plain(wire)) or by.get(plain(singular(wire)))
            if plain(wire) in SEARCH:
                pairs[""] = _arg(arg)
            elif field and plain(wire) not in LIMIT | OFFSET:
                pairs[field] = _arg(arg)
            elif plain(wire) not in known:
                unread[arg] = arg
        if self.kind.by:
            pairs[self.kind.by] = _arg(self.one.variables[-1])
        blanks = blanks_of(self.things.shape)
        blank = {name: blanks[name] for name in pairs if name in blanks and not isinstance(blanks[name], dict | list)}
        return ", ".join(f"{name!r}: {arg}" for name, arg in pairs.items()), blank, unread

    def _count(self) -> Json:
        filters, blank, _ = self._filters()
        self.let["found"] = "{{ things(shelf, %r, {%s}, %r) }}" % (self.key, filters, blank)
        where = counter_of(self.result) or ()
        return {"returns": _around(self.result, where, "{{ len(found) }}")}

    def _read_one(self) -> JsonObject:
        name = name_of(self.one.slot)
        self.let = {"place": "{{ %s }}" % f"[{', '.join([repr(name), *map(_arg, self.one.variables)])}]"}
        shape = self.paths.slots[self.one.slot]["get"].result
        known = {"known": "{{ thing(place, None) }}", "blank": blanks_of(shape)}
        if self.kind.word == "read one":
            self.requires.append({"check": "has(place)", "pass": "nothing has set it"})
            return {"returns": known, "observes": [{"op": "add", "path": "{{ place }}", "value": "{{ result }}"}]}
        self.things = Things((), "", shape)
        sent, names, deep = self._sent()
        old = f"at(state, place, {{}}), {sent}{f', {deep!r}' if deep else ''}"
        shown = known if self.result.holds(shape.fields) == () else {"blank": blank_of(self.result, "")}
        effects = [{"op": "add", "path": "{{ place }}", "value": "{{ merge(%s) }}" % old}]
        return {"effects": effects, "returns": shown if self.one.tool.result else None}

    _update_one = _read_one

    def _remove_one(self) -> JsonObject:
        self._read_one()
        return {
            "effects": [{"op": "gone", "path": "{{ place }}"}],
            "returns": {"blank": blank_of(self.result, "")} if self.one.tool.result else None,
        }

    def _action(self) -> JsonObject | None:
        """Return that a write of unknown effect leaves open what it is about, and what is above it."""
        above = [(one, depth) for one, depth in self.paths.above(self.one.slot) if not one.of]
        places = [self._place_of(one, self.one.variables[:depth]) for one, depth in above]
        shown: Json = {"cases": [{"pass": "the document does not say what it does"}]}
        if self.kind.things and self.kind.things.slot == self.one.slot:
            places.append(self._place_of(self.kind.things, self.one.variables))
        elif above and (where := self.result.holds(above[-1][0].fields)) is not None and above[-1][0].key:
            self.where, self.things = where, above[-1][0]  # it answers with the thing: what is known of it, in doubt
            self.key = self.things.key or ""
            shown = self._thing(f"thing({places[-1]}, {self.key!r})")
        marks = [["runtime_state", "open", f"{{{{ pointer({place}) }}}}"] for place in places]
        self.let = {}
        opened = [{"op": "add", "path": mark, "value": self.one.tool.name} for mark in marks]
        return {"effects": opened, "returns": shown} if opened else None


def _around(shape: Shape, where: tuple[str, ...], inner: Json, total: str = "") -> Json:
    """Return a value in the envelope that a result has around it; members that count it hold `total`."""
    if not where:
        return inner
    known: JsonObject = {where[0]: _around(shape.fields[where[0]], where[1:], inner, total)}
    for name, each in shape.fields.items() if total else ():
        if name != where[0]:
            counts = [below for below in each.fields if _TOTAL.fullmatch(below)]
            if counts or (_TOTAL.fullmatch(name) and each.types <= {"integer", "number"}):
                known[name] = _around(each, (counts[0],), total) if counts else total
    return {"known": known, "blank": {name: each for name, each in blanks_of(shape).items() if name not in known}}
