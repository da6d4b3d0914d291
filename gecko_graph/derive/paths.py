"""Collections of things in a toolkit's paths or tool names, with their items and the items' keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..tools.spec import VARIABLE, ToolSpec
from .shapes import IDENTIFYING, SchemaShape, matching, plain, singular

Slot = tuple[str, ...]
"""The segments of a path, with `{}` for a variable."""

VAR = "{}"
WORDS: Mapping[str, frozenset[str]] = {
    "post": frozenset(("create", "add", "new", "insert")),
    "patch": frozenset(("update", "edit", "modify")),
    "delete": frozenset(("delete", "remove", "destroy")),
    "get": frozenset(("get", "show", "view", "fetch", "retrieve", "read", "detail", "details")),
}
"""Verbs in a path or a tool's name that mean a method, by method."""

LISTING = frozenset(("list", "all", "index", "search", "find", "query", "filter", "paginate"))
COUNTING = frozenset({"count", "total"})
_KEYS = re.compile(r"^(\w+)\(['\"]?(\{[^{}]+\})['\"]?\)$")
_EMPTY = re.compile(r"api|rest|v\d+[a-z0-9.]*|\d+(\.\d+)*", re.IGNORECASE)
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass
class Operation:
    """A tool with its method, its path (with `{}` for each variable) and the arguments of the path."""

    tool: ToolSpec
    method: str
    slot: Slot
    variables: tuple[str, ...]
    by_name: bool = False
    """Whether its path was made up from its name, as for a tool of an MCP server."""

    @property
    def places(self) -> Mapping[str, tuple[str, str]]:
        """Location and wire name of each argument."""
        return self.tool.binding.places if self.tool.binding else {}

    @property
    def is_answered(self) -> bool:
        """Whether a successful response has content, including bytes."""
        responses = self.tool.binding.responses if self.tool.binding else {}
        return any(each.get("media") for code, each in responses.items() if code.startswith("2"))

    @cached_property
    def result(self) -> SchemaShape:
        return SchemaShape.of(self.tool.result)

    @cached_property
    def parameters(self) -> SchemaShape:
        return SchemaShape.of(self.tool.parameters)

    @cached_property
    def sent(self) -> dict[str, str]:
        """The argument for each member of the body, by wire name; for a whole body the name is ""."""
        if self.by_name:
            return {name: name for name in self.parameters.fields if name not in self.variables}
        return {wire: name for name, (place, wire) in self.places.items() if place == "body"}

    @property
    def is_merge_patch(self) -> bool:
        return self.tool.binding is not None and "merge-patch" in self.tool.binding.body.get("media", "")

    @property
    def is_restoring(self) -> bool:
        return self.method != "get" and re.match("restore|undelete|recover", "".join(self.slot[-1:]), re.I) is not None

    @property
    def wires(self) -> list[tuple[str, str]]:
        """The wire name and the argument of each variable of the path."""
        return [(self.places.get(name, ("", name))[1], name) for name in self.variables]

    @cached_property
    def asked(self) -> dict[str, str]:
        """The arguments of the query and the body, by wire name."""
        return {wire: name for name, (place, wire) in self.places.items() if place == "query"} | self.sent

    @cached_property
    def body(self) -> SchemaShape:
        whole = self.sent.get("")
        fields = self.parameters.fields
        if whole is not None:
            return fields[whole]
        shape = SchemaShape(True, None)
        shape.fields = {wire: fields[name] for wire, name in self.sent.items() if name in fields}
        shape.required = frozenset(wire for wire, name in self.sent.items() if name in self.parameters.required)
        shape.types = frozenset({"object"})
        return shape

    @cached_property
    def lists(self) -> SchemaShape | None:
        """The shape of the items of a returned list or map; None if it returns neither."""
        found = self.result.listed
        return found[1] if found else self.result.mapped


@dataclass
class Things:
    """A collection: its path, its items and their shape."""

    slot: Slot
    name: str
    shape: SchemaShape
    variable: str = ""
    """Name of an item's key in the path."""
    key: str | None = None
    """The member of an item that identifies it."""
    of: Things | None = None
    """The collection whose items this path finds by another key, as `/flows/name/{name}` does."""
    is_made: bool = False
    """Whether an operation creates items."""
    singular: str = ""
    root: str = ""
    """The state's root key of the collection."""
    at: Mapping[str, Operation] = field(default_factory=dict)
    """Operations on the collection, by method."""
    each: Mapping[str, Operation] = field(default_factory=dict)
    """Operations on an item, by method."""

    @property
    def fields(self) -> Mapping[str, SchemaShape]:
        return self.shape.fields

    @cached_property
    def named_by(self) -> list[SchemaShape]:
        at = self.slot.count(VAR)
        return [one.parameters.fields[one.variables[at]] for one in self.each.values() if len(one.variables) > at]

    @property
    def is_renamed(self) -> bool:
        """Whether an update may give an item another key: the caller who makes it names it, and by no id."""
        is_id = re.search(r"(id|number)$", plain(self.key or "")) is not None
        return not is_id and "post" in self.at and names_item(self.at["post"], self) is not None

    @property
    def key_shapes(self) -> list[SchemaShape]:
        """The shapes of an item's key: of its own member, then of the arguments that name it."""
        own = self.fields.get(self.key or "")
        return [*([own] if own else []), *self.named_by]


class Paths:
    """The operations of a toolkit by path and method, and the collections among them."""

    is_newest_first = False
    """Whether a list is documented to begin with the newest item; then the other lists probably do too."""

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        self.operations = [found for tool in tools if (found := _place(tool))]
        self.operations += _places_by_name([tool for tool in tools if tool.binding is None])
        self.slots: dict[Slot, dict[str, Operation]] = {}
        for one in self.operations:
            self.slots.setdefault(one.slot, {}).setdefault(one.method, one)
        for one in self.operations:
            self._move(one)
        below: dict[Slot, Operation | None] = dict.fromkeys((*slot, VAR) for slot in self.slots)
        first = {slot: next(iter(there.values())) for slot, there in self.slots.items() if there}
        for slot, one in first.items():
            below |= {slot[:end]: one for end in range(1, len(slot))}
        below |= first  # an item's own path gives the name of its key
        candidates = (self._find(item, one) for item, one in below.items())
        self.things = {found.slot: found for found in candidates if found}
        self._find_aliases()
        names = [each.name for each in self.things.values()]
        for slot, each in self.things.items():
            if names.count(each.name) > 1 and each.of is None:
                each.name = ".".join(word for word in slot if word != VAR)

    def _move(self, one: Operation) -> None:
        for method, slot in _meant(one):
            there = self.slots.get(slot, {})
            if slot != one.slot and method not in there and not (method == "patch" and "put" in there):
                if self.slots[one.slot].get(one.method) is one:
                    del self.slots[one.slot][one.method]
                one.method, one.slot = method, slot
                self.slots.setdefault(slot, {})[method] = one
                return

    def _find(self, item: Slot, one: Operation | None) -> Things | None:
        if len(item) < 2 or item[-1] != VAR or item[-2] == VAR:
            return None
        slot, each = item[:-1], self.slots.get(item, {})
        at = self.slots.get(slot, {})
        found = Things(slot, name_of(slot), _item_shape(each, at), _variable(item, one), at=at, each=each)
        found.singular = singular(re.sub(r"[{}]", "", found.name.split(".")[-1]))
        found.key = _key_of(found)
        if not found.key and found.shape.is_open and plain(found.variable).endswith("id"):
            found.key, found.shape = "id", found.shape.with_text("id")
        lists = "get" in at and at["get"].lists is not None and bool(found.fields)
        is_item = {"get", "put", "patch", "delete"} & each.keys() or (each and lists)
        return found if is_item or (found.key and "post" in at and (lists or found.variable)) else None

    def _find_aliases(self) -> None:
        for slot, each in self.things.items():
            of = self.things.get(slot[:-1])
            word = plain(re.sub(r"^by[-_]?", "", slot[-1], flags=re.IGNORECASE))
            if of and not each.at and (key := next((name for name in of.fields if plain(name) == word), None)):
                each.of, each.key = of, key

    def below(self, things: Things) -> list[Things]:
        item = (*things.slot, VAR)
        below = ((slot, one) for slot, one in self.things.items() if slot[: len(item)] == item)
        return [one for slot, one in below if slot.count(VAR) == item.count(VAR)]

    def flat(self, slot: Slot, shape: SchemaShape) -> tuple[Things, tuple[str, ...]] | None:
        """Return the collection `/tasks` with the items of `/projects/{id}/tasks`, and the way to their project's key.

        A collection with a POST of its own is such a one only if its POST sends the project.
        """
        parent = self.things.get(slot[:-2])
        for end in range(len(slot) - 3, -1, -1) if parent and slot[-1] != VAR else ():
            each = self.things.get((*slot[:end], slot[-1]))
            if parent and each and VAR not in each.slot and each.shape.holds(shape.fields) == ():
                link, post = link_of(each, parent), each.at.get("post")
                if link and (post is None or link[0] in matching(post.body.fields, each.fields).values()):
                    return each, link
        return None

    def above(self, slot: Slot) -> Iterator[tuple[Things, int]]:
        """Yield the collections above a path, each with the number of variables up to its item."""
        for end, word in enumerate(slot):
            found = self.things.get(slot[:end]) if word == VAR else None
            if found is not None:
                yield found, slot[: end + 1].count(VAR)


def link_of(things: Things, parent: Things) -> tuple[str, ...]:
    """Return the way to the member that names a thing's parent: `project_id`, `idProject`, `project`, or its `id`."""
    word = plain(parent.singular)
    keys, by = {plain(parent.variable), f"{word}id", f"id{word}"} - {plain(things.key or "")}, things.fields
    names = [name for name in by if plain(name) in keys] or [name for name in by if plain(name) == word]
    for name in names:
        if by[name].types <= IDENTIFYING:
            return (name,)
        if parent.key and parent.key in by[name].fields:
            return (name, parent.key)
    return ()


def names_item(one: Operation, found: Things) -> str | None:
    """Return the body's member that identifies an item: its key, or `user_id` if the key of users is `id`."""
    names = (found.key or "", f"{found.singular}{found.key}")
    return next((name for name in one.body.fields if plain(name) in map(plain, names)), None)


def name_of(slot: Slot) -> str:
    """Return the name of the things of a path."""
    return ".".join(part for part in slot if part != VAR and not _EMPTY.fullmatch(part)) or "root"


def _variable(item: Slot, one: Operation | None) -> str:
    """Return the name of an item's key in the path; "" if no path has one."""
    return one.wires[item.count(VAR) - 1][0] if one else ""


def _place(tool: ToolSpec) -> Operation | None:
    binding = tool.binding
    if binding is None:
        return None
    path, slot, names = re.split("[?#]", binding.path)[0], list[str](), list[str]()
    by_wire = {wire: name for name, (place, wire) in binding.places.items() if place == "path"}
    for segment in _segments(path):
        names += VARIABLE.findall(segment)
        slot.append(VARIABLE.sub(VAR, segment))
    if not all(name in by_wire for name in names):
        return None
    return Operation(tool, binding.method, tuple(slot), tuple(by_wire[name] for name in names))


def _segments(path: str) -> Iterator[str]:
    """Yield the parts of a path: `/users/{id}:cancel` has three, `/Users('{id}')` two."""
    for part in re.sub(r"\.(json|xml)$", "", path.rstrip("/")).split("/"):
        if keyed := _KEYS.match(part):
            yield from keyed.groups()
        elif part:
            head, colon, verb = part.rpartition(":")
            yield from (head, verb) if colon and head and "{" not in verb else (part,)


def _meant(one: Operation) -> Iterator[tuple[str, Slot]]:
    """Yield the method and path that the verb at the end of a path means."""
    *head, last = one.slot or ("",)
    for method, words in WORDS.items():
        if (one.method == "get") != (method == "get"):
            continue
        if method == "delete" and one.sent:
            continue  # it may remove parts of a thing
        if last.lower() in words and (method == "post") == (head[-1:] != [VAR]):
            yield method, tuple(head)
        elif last == VAR and head and head[-1].lower() in words and method != "post":
            yield method, (*head[:-1], VAR)
    if last.lower() in LISTING and head[-1:] != [VAR] and one.lists is not None and one.method in ("get", "post"):
        yield "get", tuple(head)


def _item_shape(each: Mapping[str, Operation], at: Mapping[str, Operation]) -> SchemaShape:
    """Return the shape of an item as results show it: on its own, else in a list."""
    listed = at["get"].lists if "get" in at else None
    names = set(listed.fields) if listed else set()
    for one in (each.get("get"), at.get("post"), each.get("patch"), each.get("put"), each.get("post")):
        if one is None or not one.result.fields or "array" in one.result.types:
            continue
        where = one.result.holds(names) if names else _unwrapped(one.result)
        if where is not None:
            return one.result.at(where)
    return listed or SchemaShape(True, None)


def _unwrapped(shape: SchemaShape) -> tuple[str, ...]:
    """Return the path of the only object in a response that wraps it."""
    is_open = next((name for name in ("data", "result") if name in shape.fields and shape.fields[name].is_open), None)
    if is_open:
        return (is_open,)
    inner = [name for name, each in shape.fields.items() if each.fields and "array" not in each.types]
    only = len(shape.fields) == 1 or (len(shape.fields) <= 4 and inner[:1] and inner[0] in ("data", "result"))
    return (inner[0],) if len(inner) == 1 and only else ()


def either_of(variable: str, things: Things) -> str | None:
    """Return the second identifying member that a variable such as `user_name_or_id` names; else None."""
    found = re.search(r"(?:^|_|-)([a-z]+)_?or_?([a-z]+)$", variable, re.IGNORECASE)
    by = {plain(name): name for name in things.fields}
    named = (by[word] for word in map(plain, found.groups() if found else ()) if word in by)
    return next((name for name in named if name != things.key), None)


def _key_of(found: Things) -> str | None:
    """Return the member that identifies an item: by the path's variable, else by usual names of such members."""
    by, word = {plain(name): name for name in found.fields}, plain(found.singular)
    last = plain(re.sub(r"^.*?(id|key|name|slug|code|number)$", r"\1", found.variable, flags=re.IGNORECASE))
    names = (plain(found.variable), plain(found.variable).removeprefix(word), "id", f"{word}id", "uid", "uuid",
             f"{word}uuid", "sid", "guid", last)  # fmt: skip
    others = ("key", "slug", "name", f"{word}name", "code", "token", "number")
    known = (by[one] for one in (*names, *others) if one in by and found.fields[by[one]].types & IDENTIFYING)
    name, post = next(known, None), found.at.get("post")
    if not name or not post or name in {*post.result.fields, *post.body.fields}:
        return name
    has_form = any(shape.first("pattern") or shape.first("format") for shape in found.named_by)
    if has_form or post.result.holds(found.fields) is not None:
        return name
    given = (each for each in ("name", "key", "slug", "code") if each in found.fields and each in post.body.required)
    return next(given, name)  # the answer omits the id, so the required name that the caller gives is the key


def _places_by_name(tools: Sequence[ToolSpec]) -> Iterator[Operation]:
    """Yield operations for tools without a path, by names such as `create_issue`, `get_issue`, `list_issues`."""
    found: dict[str, dict[str, ToolSpec]] = {}
    for tool in tools:
        words = [word.lower() for word in WORD.findall(tool.name)]
        for at, word in enumerate(words[:-1]):
            verb = next((method for method, them in WORDS.items() if word in them), "list" if word in LISTING else "")
            if verb:
                *front, last = words[at + 1 :]
                verb = "list" if verb == "get" and singular(last) != last else verb
                noun = "_".join([*front, singular(last)])
                found.setdefault(noun, {}).setdefault(verb, tool)
                break
    for noun, by in found.items():
        if len(by) > 1 and (one := by.get("get") or by.get("patch") or by.get("delete")):
            yield from _slots_of(noun, by, one)


def _slots_of(noun: str, by: Mapping[str, ToolSpec], one: ToolSpec) -> Iterator[Operation]:
    """Yield the operations of a noun; arguments that its list or creation requires too come first, then its key."""
    needed = [name for name in one.parameters.get("required", ())]
    others = [set(each.parameters.get("required", ())) for verb, each in by.items() if verb in ("list", "post")]
    above = [name for name in needed if others and all(name in each for each in others)]
    words = {"id", "number", "key", "name", "slug", "uuid", noun}
    keys = [
        name for name in needed if name not in above and {*re.split(r"[_\W]", name.lower()), plain(name)[-2:]} & words
    ]
    if not keys:
        return
    variables = (*above, keys[0])
    slot = (*[VAR] * len(above), noun)
    for verb, tool in by.items():
        takes = tool.parameters.get("properties", {})
        item = verb in ("get", "patch", "delete")
        if all(name in takes for name in (variables if item else above)):
            where = (*slot, VAR) if item else slot
            yield Operation(tool, "get" if verb == "list" else verb, where, variables if item else tuple(above), True)
