"""The contract of an operation of known kind, as data."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..state import Json, JsonObject
from .asked import Asked, sent_fields
from .blanks import YES, around, as_key, blank_of, blanks_of, new_key, with_blanks
from .expressions import arg, exists, opening, place_of, template
from .kinds import Kind, counter_of
from .paths import VAR, Operation, Paths, Things, either_of, link_of, name_of, names_item
from .shapes import SchemaShape, matching, plain
from .verbs import changes_of

_TWICE = frozenset(("getorcreate", "ifexists", "existok", "ifnotexists"))
"""Names of request members that allow a thing to exist already; without them a second one is an error."""
_UNIQUE = frozenset(("name", "slug", "key", "email", "username"))
_AGAIN = re.compile(r"already exists?,[^.]*return", re.IGNORECASE)
_MERGES = re.compile(r"\bmerge", re.IGNORECASE)
_NOTHING = SchemaShape(True, None)


class ContractWriter:
    """Writes the contract of one operation; each kind has a method of its name."""

    def __init__(self, paths: Paths, one: Operation, kind: Kind) -> None:
        self.paths, self.one, self.kind, self.result = paths, one, kind, one.result
        self.things: Things = (kind.things.of or kind.things) if kind.things else Things((), "", _NOTHING)
        self.key, self.depth = self.things.key or "", self.things.slot.count(VAR)
        self.shelf, self.id = place_of(self.things.root, one.variables[: self.depth]), ""
        self.let: JsonObject = {}
        given = f"{{{kind.by[1]!r}: {arg(one.variables[-1])}}}" if kind.by[1:] else ""
        self.by = {kind.by[0]: given or arg(one.variables[-1])} if kind.by else {}
        self.requires = [*self._above()]
        self.where = one.result.holds(self.things.fields) if self.things.fields else None
        if kind.word == "remove" and YES & {plain(name) for name in {*one.result.fields} - {*self.things.fields}}:
            self.where = None  # the result confirms the removal and is not the removed thing

    @property
    def named(self) -> str:
        """An expression of a thing that has only its key, with a value of the key's type."""
        types = self.things.fields.get(self.key, _NOTHING).types
        return repr({self.key: 0 if types & {"integer", "number"} else ""})

    def write(self) -> JsonObject | None:
        """Return the contract without its evidence; None if there is none."""
        written: JsonObject | None = getattr(self, f"_{self.kind.word.replace(' ', '_')}", lambda: None)()
        if written and "effects" in written and self.kind.word not in ("remove all", "update one", "remove one"):
            written["effects"] = [*written["effects"], *self._open_embedded()]
        parts = {"let": self.let, "requires": self.requires, **(written or {})}
        return written and {key: each for key, each in parts.items() if each not in ({}, [])}

    def shows(self) -> JsonObject:
        """Return the depth of a thing's path, and the paths in the result of the thing and of a new key."""
        is_new, name = self.kind.word == "create", self._key_in_result
        found: JsonObject = {"depth": self.things.slot.count(VAR) + 2}
        if self.where is not None and self.kind.word in ("create", "update", "replace", "upsert"):
            return {**found, "thing": [*self.where], **({"key": [*self.where, self.key]} if is_new else {})}
        return {**found, "key": [name]} if is_new and name else found

    def _open_embedded(self) -> Iterator[JsonObject]:
        """Yield effects that open the thing above if it shows these things, and the things below that were sent."""
        for above, depth in self.paths.above(self.things.slot):
            if (name := self.things.slot[-1]) in above.fields and len(above.slot) + 2 == len(self.things.slot):
                yield opening(f"{place_of(above.root, self.one.variables[:depth])} + [{name!r}]", self.one)
        for each in self.paths.below(self.things) if self.kind.word != "remove" else ():
            if (sent := self.one.sent.get(each.slot[-1])) is not None:
                yield opening(self._below(each), self.one) | {"when": f"{arg(sent)} is not None"}

    def _above(self) -> Iterator[JsonObject]:
        """Yield the requirement that the things above in the path exist, as far as operations create them."""
        for above, depth in self.paths.above(self.one.slot[:-2] if self.one.is_restoring else self.one.slot):
            if above.is_made and not above.of and above not in (self.things, self.kind.things):
                yield exists(place_of(above.root, self.one.variables[:depth]), above)

    def _find(self) -> None:
        """Define `place`, the path of the call's thing, and require that it exists."""
        by, is_in_path = self.kind.things, len(self.one.variables) > self.depth
        named = self.one.variables[self.depth] if is_in_path else self.one.sent[names_item(self.one, self.things) or ""]
        name, theirs = arg(named), by.key if by and by.of else None
        if other := theirs or either_of(named, self.things):  # another identifying member than the key
            self.let["found"] = template(f"things_at({self.shelf}, {self.named}, {{{other!r}: {name}}}, {{}})")
            is_id = "" if theirs else f"{name} if {name} in at(state, {self.shelf}, {{}}) else "
            name = f"{is_id}at(found, [0, {self.key!r}], '')"
        self.id, self.let["place"] = name, template(f"[{self.shelf}, {name}]")
        self.requires.append(exists("place", self.things))

    # results and sent values ----------------------------------------------------------------------------------------

    def _thing(self, value: str = "") -> Json:
        """Return the result of a call about a thing: the thing, its key, or blanks."""
        if self.where is not None or (self.kind.word == "read" and self.result.fields):
            blank = blanks_of(self.result.at(self.where or ()))
            value = value or f"thing_at(place, {self.named})"
            return around(self.result, self.where or (), with_blanks(template(value), blank))
        if not (self.result.types or self.result.fields):
            return None
        if (named := self._key_in_result) and self.id:
            return with_blanks({as_key(named): template(self.id)}, blanks_of(self.result))
        return with_blanks({}, blank_of(self.result))

    @property
    def _key_in_result(self) -> str | None:
        by = {plain(name): name for name in self.result.fields}
        return by.get(plain(self.key)) or by.get(plain(self.things.variable))

    def _sent(self) -> tuple[str, list[str], str]:
        """Return an expression of the sent fields, their names, and an argument of `merged` with fields to merge."""
        one, fields = self.one, self.things.fields
        where = one.body.holds(fields) or ()
        if "" in one.sent and not one.body.fields:  # bytes or a string
            return "{}", [], ""
        if where or "" in one.sent:
            way = [one.sent[""], *where] if "" in one.sent else [one.sent[where[0]], *where[1:]]
            names = [*one.body.at(where).fields]
            deep = names if one.is_merge_patch else ["attributes"] * ("attributes" in names)
            return f"(at(args, {way!r}, {{}}) or {{}})", names, f", {deep!r}" if deep else ""
        pairs = matching(one.body.fields, fields).items()
        found = {one.sent[wire]: field for wire, field in pairs if one.body.fields[wire].may_be(fields[field])}
        about = {field: str(one.parameters.fields[arg].first("description")) for arg, field in found.items()}
        deep = [field for field, text in about.items() if one.is_merge_patch or _MERGES.search(text)]
        return sent_fields(one, fields, found), [*found.values()], f", {deep!r}" if deep else ""

    def _defaults(self) -> JsonObject:
        sent = self.one.body.at(self.one.body.holds(self.things.fields) or ()).fields
        found = {field: sent[wire].first("default") for wire, field in matching(sent, self.things.fields).items()}
        return {field: each for field, each in found.items() if each is not None}

    def _base(self) -> str:
        """Return an expression of the members of a thing that its path gives, with its key."""
        by = {plain(name): name for name in self.things.fields}
        given = {by.get(plain(wire)): arg(name) for wire, name in self.one.wires[: self.depth]} | self.by
        known = [f"{name!r}: {arg}" for name, arg in given.items() if name not in (None, self.key)]
        return f"{{{', '.join([*known, f'{self.key!r}: {self.id}'])}}}"

    def _filter(self) -> Asked:
        """Define `found`, the things that a call lists."""
        asked = Asked(self.one, self.things, self.shelf, self.named, self.by)
        self.let["found"] = template(asked.found)
        return asked

    def _list(self) -> JsonObject | None:
        if self.one.lists is None:
            return None
        asked = self._filter()
        self.let |= asked.shown(self.key, is_newest_first=self.paths.is_newest_first)
        if self.result.listed is None:  # an object of things by their keys
            return {"returns": template(f"{{str(each[{self.key!r}]): each for each in page}}")}
        where = self.result.listed[0]
        each = with_blanks("{{ each }}", blanks_of(self.one.lists))
        result = around(self.result, where, {"for_each": "page", "as": "each", "value": each}, asked.beside(self.key))
        place = template(f"[{self.shelf}, each[{self.key!r}]]")
        items = f"at(result, {[*where]!r})"
        seen = {"for_each": items, "as": "each", "of": template(self.shelf), "part": asked.part(items)}
        return {"returns": result, "observes": [{**seen, "op": "add", "path": place, "value": "{{ each }}"}]}

    def _count(self) -> JsonObject:
        self._filter()
        return {"returns": around(self.result, counter_of(self.result) or (), "{{ len(found) }}")}

    def _read(self) -> JsonObject | None:
        self._find()
        thing = f"at(result, {[*(self.where or ())]!r}"  # some services answer null for a missing thing
        seen = {
            "op": "add",
            "path": "{{ place }}",
            "value": template(f"{thing})"),
            "when": f"{thing}, None) is not None",
        }
        return {"returns": self._thing(), "observes": [seen]}

    def _create(self) -> JsonObject:
        named, prefix = names_item(self.one, self.things), f"{self.things.singular[:4].lower()}_"
        new, effects = template(new_key(self.things.key_shapes, prefix, self.shelf)), list[JsonObject]()
        if "new_number" in new:
            place = ["runtime_state", "serial", template(f"pointer_to({self.shelf})")]
            effects = [{"op": "add", "path": place, "value": "{{ id }}"}]
        self.id, self.let = "id", {"id": new, "place": template(f"[{self.shelf}, id]")}
        if named:
            given = f"at(args, {[self.one.sent[''], named] if '' in self.one.sent else [self.one.sent[named]]!r}, None)"
            own = {"when": f"{given} not in [None, '', 0]", "value": template(given)}
            self.let["id"] = {"cases": [own, {"value": new}]}
        self._require_new(named)
        there = ", at(state, place, {})" if isinstance(self.let["id"], dict) else ""
        known = f"{self._defaults()!r}, {self._base()}, {self._sent()[0]}, {{{self.key!r}: id}}{there}"
        self.let["made"] = template(f"merged({known})")
        below = [
            {"op": "add", "path": template(self._below(each)), "value": {}} for each in self.paths.below(self.things)
        ]
        effects = [{"op": "add", "path": "{{ place }}", "value": "{{ made }}"}, *below, *effects]
        return {"effects": effects, "returns": self._thing()}

    def _require_new(self, named: str | None) -> None:
        """Require that a thing is new: by a key that the call gives, or by a unique name if 409 is documented.

        If a path finds a thing by its name (`/flows/name/{name}`), a second thing of the same name returns the first
        one, in doubt unless the description says so.
        """
        name = self.things.singular
        exists = {"id": f"{name} is new", "error": f"{name} already exists", "status": 409}
        binding, pairs = self.one.tool.binding, matching(self.one.body.fields, self.things.fields).items()
        may = f"{self._allows_existing} or " if self._allows_existing else ""
        is_refused = may or (binding and "409" in binding.responses)
        names = _UNIQUE if is_refused else {each.key for each in self.paths.things.values() if each.of is self.things}
        wire, field = next((pair for pair in pairs if pair[1] in names), (None, ""))
        if named:
            self.requires.append({"check": f"{may}not exists_at(place, False)", **exists})
        elif wire in self.one.sent:
            filters = f"{{{field!r}: {arg(self.one.sent[wire])}}}"
            self.let["same"] = template(f"things_at({self.shelf}, {self.named}, {filters}, {{}})")
            if is_refused:
                self.requires.append({"check": f"{may}same == []", **exists})
            if may or not is_refused:
                doubts = [] if may or _AGAIN.search(self.one.tool.description) else ["its name may have to be new"]
                first = template(f"in_doubt(same[0][{self.key!r}], {doubts!r})")
                known = {"when": f"{self._allows_existing or True} and same != []", "value": first}
                self.let["id"] = {"cases": [known, {"value": self.let["id"]}]}

    @property
    def _allows_existing(self) -> str:
        """Return the expression that is true if a call allows an existing thing; "" if no call can."""
        found = next((name for wire, name in self.one.sent.items() if plain(wire) in _TWICE), None)
        return f"{arg(found)} not in [None, False, 'raise', 'error', 'fail']" if found else ""

    def _below(self, each: Things) -> str:
        return f"[{', '.join([repr(each.root), *map(arg, self.one.variables[: self.depth]), self.id])}]"

    def _update(self) -> JsonObject:
        self._find()
        sent, names, deep = self._sent()
        old = "at(state, place, {})"
        if self.kind.word in ("replace", "upsert"):
            old = f"{{k: v for k, v in {old}.items() if k not in {names!r}}}, {self._defaults()!r}"
        base = self._base() if self.kind.word == "upsert" else f"{{{self.key!r}: {self.id}}}"
        same = "" if self.things.is_renamed else f", {{{self.key!r}: at(state, place + [{self.key!r}], {self.id})}}"
        merged = template(f"merged({base}, {old}, {sent}{same}{deep})")
        return {"effects": [{"op": "add", "path": "{{ place }}", "value": merged}], "returns": self._thing()}

    _replace = _update

    def _upsert(self) -> JsonObject:
        written = self._update()
        self.requires.pop()  # a missing thing is created
        return written

    def _remove(self) -> JsonObject:
        self._find()
        self.let["old"] = template(f"thing_at(place, {self.named})")
        below = self.paths.below(self.things)
        opened = ["place", *(f"place + [{each.slot[-1]!r}]" for each in below if each.slot[-1] in self.things.fields)]
        paths = ["{{ place }}", *(template(self._below(each)) for each in below)]
        paths += (opening(each, self.one)["path"] for each in opened)
        effects = [{"op": "gone", "path": path} for path in paths]
        return {"effects": [*effects, *self._mark_references()], "returns": self._thing("old")}

    def _mark_references(self) -> Iterator[JsonObject]:
        """Yield effects that mark references to a removed thing as open: a service may remove, keep or refuse them."""
        word, key = plain(self.things.singular), plain(self.key)
        names = {word + key, key if key.startswith(word) else ""}
        for other in self.paths.things.values():
            if VAR not in other.slot and other.key and other is not self.things:
                ways = [(field,) for field in other.fields if plain(field) in names and field != other.key]
                for way in ways or filter(None, [link_of(other, self.things)]):
                    each = {"for_each": f"at(state, [{other.root!r}], {{}}).items()", "as": ["name", "each"]}
                    each["when"] = f"str(at(each, {[*way]!r}, None)) == str({self.id})"
                    yield each | opening(f"[{other.root!r}, name]", self.one)

    def _remove_all(self) -> JsonObject:
        return {"effects": [{"op": "add", "path": template(self.shelf), "value": {}}], "returns": self._thing("{}")}

    def _read_one(self) -> JsonObject:
        shape = self.paths.slots[self.one.slot]["get"].result
        self.let = {"place": template(place_of(name_of(self.one.slot), self.one.variables))}
        self.things, known = Things((), "", shape), with_blanks("{{ thing_at(place, {}) }}", blanks_of(shape))
        if self.kind.word == "read one":
            self.requires.append({"check": "exists_at(place)", "pass": "nothing has set it"})
            return {"returns": known, "observes": [{"op": "add", "path": "{{ place }}", "value": "{{ result }}"}]}
        is_same = self.result.holds(shape.fields) == () and self.kind.word != "remove one"
        has_result = bool(self.result.types or self.result.fields)
        shown = known if is_same else with_blanks({}, blank_of(self.result)) if has_result else None
        sent, _, deep = self._sent()
        value = template(f"merged(at(state, place, {{}}), {sent}{deep})")
        changed = {"op": "add", "path": "{{ place }}", "value": value}
        gone = {"op": "gone", "path": "{{ place }}"}
        return {"effects": [gone if self.kind.word == "remove one" else changed], "returns": shown}

    _update_one = _remove_one = _read_one

    def _action(self) -> JsonObject | None:
        """Return a contract for a write of unknown effect: its thing, and all above it, may have changed."""
        above = [(one, depth) for one, depth in self.paths.above(self.one.slot) if not one.of]
        places = [place_of(one.root, self.one.variables[:depth]) for one, depth in above]
        shown: Json = {"cases": [{"pass": "the document does not say what it does"}]}
        if self.kind.things and self.depth == len(self.one.variables):
            places.append(place_of(self.kind.things.root, self.one.variables))
        elif above and not self.one.is_restoring and (where := self.result.holds(above[-1][0].fields)) is not None:
            self.where, self.things, self.key = where, above[-1][0], above[-1][0].key or ""
        if self.key and self.where is not None and self.key in self.result.at(self.where).fields and above:
            shown = self._thing(f"thing_at({places[-1]}, {self.named})")  # known so far; open from now on
        self.let, opened = {}, [opening(place, self.one) for place in places]
        if above and (changes := self._changes(above[-1][0])):
            item = places[len(above) - 1]
            more: JsonObject = {"op": "add", "when": f"exists_at({item}, False)"}
            sets = [
                more | {"path": template(f"{item} + [{name!r}]"), "value": template(repr(value))}
                for name, value in changes.items()
            ]
            opened = [*sets, *opened]
            shown = shown if "cases" not in shown or self.result.types else None
        return {"effects": opened, "returns": shown} if opened else None

    def _changes(self, things: Things) -> JsonObject:
        """Return what the word at the end of the path says of an item: `cancel` sets its status `cancelled`."""
        rest = self.one.slot[len(things.slot) + 1 :]
        return changes_of(rest[-1], things) if rest and VAR not in rest and self.one.method != "get" else {}
