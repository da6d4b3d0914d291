"""The kind of each operation, with its things and the reason; `unknown` if the document does not tell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from .paths import COUNTING, LISTING, VAR, Operation, Paths, Things, names_item
from .shapes import SchemaShape, matching, plain, singular

Word = Literal[
    "list", "count", "read", "create", "update", "replace", "upsert", "remove", "remove all",
    "read one", "update one", "remove one", "view", "action", "unknown",
]  # fmt: skip

_LOOKING = re.compile(r"(get|list|search|find|query|count|fetch|read|check|validate|preview|simulate)(?![a-z])", re.I)
_SEVERAL = re.compile(r"batch|bulk|import|many|multiple", re.IGNORECASE)

_CHANGING = re.compile(
    r"\W*((partially|bulk) )?(updat|mutat|modif|edit|chang|renam|restor|replac)\w*(?!.*\b(creat|insert))", re.IGNORECASE
)
_MAKING = re.compile(r"\b(add|creat|insert|put|set|link|assign|attach|associat|register|upload|grant)\w*\b", re.I)
"""A first sentence: of a PUT that changes a thing which is there, or that makes one."""

STATEFUL: frozenset[Word] = frozenset(
    ("list", "count", "read", "create", "update", "replace", "upsert", "remove", "remove all",
     "read one", "update one", "remove one")
)  # fmt: skip
"""Kinds of operations that a state can answer."""


@dataclass(frozen=True)
class Kind:
    """The kind of an operation on the collection `things`, or on the single thing at its own path."""

    word: Word
    why: str
    things: Things | None = None
    by: tuple[str, ...] = ()
    """The way to the member whose value the path gives, for a list of a part of the things, or a new one in it."""


def find_kinds(paths: Paths) -> dict[str, Kind]:
    """Return the kind of each operation with a path, by tool name, and note which things operations create."""
    kinds = {one.tool.name: (one, _decide(one, paths)) for one in paths.operations}
    for _, kind in kinds.values():
        if kind.things and kind.word in ("create", "upsert"):
            kind.things.is_made = True
    shown = {id(kind.things) for _, kind in kinds.values() if kind.word in ("read", "list")}
    for name, (one, kind) in kinds.items():
        things = kind.things
        is_change = kind.word in ("remove", "update", "replace")
        if things and is_change and not (things.is_made or things.of or id(things) in shown):
            word: Word = "action" if VAR in one.slot[:-1] else "unknown"  # it may change the item above it
            kinds[name] = one, Kind(word, f"{one.method.upper()} of an item that no operation makes or shows")
    by_name = {True: " (by the tool's name)", False: ""}
    return {name: replace(kind, why=kind.why + by_name[one.by_name]) for name, (one, kind) in kinds.items()}


def _decide(one: Operation, paths: Paths) -> Kind:
    if one.method == "head":
        item = paths.things.get(one.slot[:-1]) if one.slot[-1:] == (VAR,) else None
        return Kind("read" if item else "view", "HEAD answers without content", item)
    if (found := paths.things.get(one.slot[:-1])) and one.slot[-1:] == (VAR,):
        return _of_item(one, found, paths)
    found = paths.things.get(one.slot)
    shape = found.shape if found and not found.each else one.lists if one.method == "get" and not found else None
    if shape is not None and (flat := paths.flat(one.slot, shape)):
        return replace(_of_all(one, flat[0]), by=flat[1])
    if found:
        return _of_all(one, found)
    for rule in (_below_collection, _of_plural, _part_of_item, _of_one):
        if kind := rule(one, paths):
            return kind
    return _of_several(one, paths) or _of_nothing(one)


def _of_item(one: Operation, found: Things, paths: Paths) -> Kind:
    method, of = one.method, found.of or found
    if method == "get":
        return _reading(one, found, paths)
    if method == "delete":
        return Kind("remove", "DELETE of an item", found)
    if method == "patch" and one.body.types != {"array"}:
        return Kind("update", "PATCH of an item merges", found)
    if method == "put":
        responses = one.tool.binding.responses if one.tool.binding else {}
        if _may_make(one) and (responses.keys() & {"201", "404"} == {"201"} or not {"post", "put"} & of.at.keys()):
            return Kind("upsert", "PUT of an item may make it", found)
        whole = bool(one.body.at(one.body.holds(of.fields) or ()).required & of.fields.keys())
        return Kind("replace" if whole else "update", "PUT of an item", found)
    if method == "post" and "patch" not in found.each and _shares(one, of):
        return Kind("update", "POST of an item with its fields, and no PATCH", found)
    return Kind("action", f"{method.upper()} of an item does something to it", found)


def _may_make(one: Operation) -> bool:
    """Return whether a PUT of an item may make it: its description says so, or 201, or no 404 is documented."""
    said = re.split(r"[.\n]", one.tool.description.strip(), maxsplit=1)[0] or one.tool.name
    responses = one.tool.binding.responses if one.tool.binding else {}
    if _CHANGING.match(said):
        return False
    return "404" not in responses or "201" in responses or _MAKING.search(said) is not None


def _reading(one: Operation, found: Things, paths: Paths) -> Kind:
    above = paths.things.get(one.slot[:-2])
    listed = one.lists if one.result.types != {"object"} or one.result.listed else None
    names = {plain(found.variable), plain(one.slot[-2])}
    field = next((name for name in listed.fields if plain(name) in names), None) if listed else None
    if listed is not None and field and above and above.shape.holds(listed.fields) == ():
        return Kind("list", "GET of the items with a value that the path names", above, by=(field,))
    if one.result.fields and not (listed is not None and "array" in one.result.types):
        return Kind("read", "GET of an item by another key" if found.of else "GET of an item", found)
    return Kind("view" if listed or one.is_answered else "unknown", "GET of an item whose answer has no fields")


def _of_all(one: Operation, found: Things) -> Kind:
    method = one.method
    if method == "get":
        if one.result.mapped:
            return Kind("list", "GET of a collection gives its items by their keys", found)
        if one.lists is not None:
            return Kind("list", "GET of a collection gives a list", found)
        return Kind("view", "GET of a collection gives no list of its items")
    if method == "post":
        return _making(one, found) or Kind("action", "POST of a collection shows no item, id or fields of one", found)
    if method in ("put", "patch") and found.key and found.key in one.body.fields:
        return Kind("update", f"{method.upper()} of a collection names the item in its body", found)
    is_item = found.key is not None and one.result.holds(found.fields) is not None
    if method == "put" and "post" not in found.at and is_item and _may_make(one):
        return Kind("create", "PUT of a collection answers with its item, and there is no POST", found)
    if method == "delete" and not one.asked and "get" in found.at:
        return Kind("remove all", "DELETE of a whole collection", found)
    return Kind("action", f"{method.upper()} of a whole collection", found)


def _making(one: Operation, found: Things) -> Kind | None:
    is_item = one.result.holds(found.fields) == ()  # an order with its `items` is no list
    if not is_item and one.lists is not None and found.shape.holds(one.lists.fields) == ():
        return Kind("action", "POST of a collection makes several items at once", found)
    if one.result.holds(found.fields) is not None:
        return Kind("create", "POST of a collection answers with its item", found)
    where = one.result.holds({found.key}) if found.key else None
    if where is not None and found.key in one.result.at(where).fields:
        return Kind("create", "POST of a collection answers with the id", found)
    if found.key and names_item(one, found):
        return Kind("create", "POST of a collection names the id", found)
    if one.body.holds(found.fields) is not None:
        return Kind("create", "POST of a collection sends the fields of an item", found)
    return None


def _shares(one: Operation, found: Things) -> bool:
    """Return whether an operation sends fields of an item, or sends any fields and answers with the item."""
    sent = [name for name, field in matching(one.body.fields, found.fields).items() if field != found.key]
    answers = one.result.holds(found.fields) is not None
    return bool(sent) and (answers or 2 * len(sent) >= len(one.body.fields))


def _below_collection(one: Operation, paths: Paths) -> Kind | None:
    """Return the kinds of `/pets/search`, `/pets/count`, `/pets_count` and `/pets/findByStatus`."""
    found, last = paths.things.get(one.slot[:-1]), one.slot[-1] if one.slot else ""
    if one.method == "get" and (beside := _counted(one, paths)) and counter_of(one.result) is not None:
        return Kind("count", "counts the items of the collection beside it", beside)
    if found is None or one.method not in ("get", "post"):
        return None
    if plain(last) in COUNTING and (counter_of(one.result) is not None):
        return Kind("count", "counts the items of a collection", found)
    if one.lists is None or not one.lists.fields or not found.fields:
        return None
    is_alike = found.shape.holds(one.lists.fields) == ()
    if plain(last) in LISTING and (one.method == "get" or is_alike):
        return Kind("list", "searches a collection", found)
    filters = {plain(name) for name in found.fields} & {plain(name) for name in one.asked}
    if one.method == "get" and is_alike and (filters or plain(last).startswith(("find", "search", "list", "by"))):
        return Kind("list", "GET below a collection gives a list of its items", found)
    return None


def _counted(one: Operation, paths: Paths) -> Things | None:
    """Return the collection whose items `/pets_count` or `/petCount` counts."""
    *above, last = one.slot or ("",)
    if not (word := plain(last)).endswith("count"):
        return None
    beside = ((slot[-1], things) for slot, things in paths.things.items() if [*slot[:-1]] == above)
    return next((things for name, things in beside if word[:-5] in (plain(name), plain(singular(name)))), None)


def counter_of(shape: SchemaShape) -> tuple[str, ...] | None:
    """Return the path of a count in a result."""
    if shape.types and shape.types <= {"integer", "number"}:
        return ()
    numbers = [name for name, each in shape.fields.items() if each.types and each.types <= {"integer", "number"}]
    return (numbers[0],) if len(numbers) == 1 == len(shape.fields) or numbers[:1] in (["count"], ["total"]) else None


def _of_plural(one: Operation, paths: Paths) -> Kind | None:
    """Return the kinds of `GET /pets` and `POST /pets` if an item is `/pet/{id}`."""
    if not one.slot or one.slot[-1] == VAR:
        return None
    found = paths.things.get((*one.slot[:-1], singular(one.slot[-1])))
    if found is None or one.method in found.at:
        return None
    if one.method == "get" and one.lists is not None and found.shape.holds(one.lists.fields) is not None:
        return Kind("list", "GET of the plural of a collection", found)
    return _making(one, found) if one.method == "post" else None


def _part_of_item(one: Operation, paths: Paths) -> Kind | None:
    """Return the kind of a PUT or PATCH below an item that sends some of its fields and answers with the whole item."""
    found = paths.things.get(one.slot[:-2])
    if found is None or one.slot[-2] != VAR or one.method not in ("put", "patch") or "get" in paths.slots[one.slot]:
        return None
    sent, last = matching(one.body.fields, found.fields), plain(one.slot[-1])
    is_part = one.result.holds(found.fields) is not None or last in map(plain, sent.values())
    if is_part and sent and len(sent) == len(one.body.fields):
        return Kind("update", f"{one.method.upper()} below an item sends fields of it", found)
    return None


def _of_one(one: Operation, paths: Paths) -> Kind | None:
    """Return the kind of an operation on the single thing at a path, which GET reads and which has no items."""
    there = paths.slots[one.slot]
    read = there.get("get")
    if read is None or not read.result.fields or read.result.mapped or "array" in read.result.types:
        return None
    fields = read.result.fields
    changing = [
        other
        for method, other in there.items()
        if method in ("put", "patch") or (method == "post" and _changes(other, fields))
    ]
    listed = read.result.listed
    if not changing or (listed and listed[1].fields and not matching(changing[0].body.fields, fields)):
        return None
    if one is read:
        return Kind("read one", "GET of one thing that is changed at the same path")
    if one in changing:
        return Kind("update one", f"{one.method.upper()} of one thing that GET reads")
    return Kind("remove one", "DELETE of one thing that is set at the same path") if one.method == "delete" else None


def _of_several(one: Operation, paths: Paths) -> Kind | None:
    """Return the kind of a write such as `/pets/batch`, which may make, change or remove several items."""
    found, last = paths.things.get(one.slot[:-1]), one.slot[-1] if one.slot else ""
    names = ("ids", "items", *map(plain, one.slot[-2:-1]))
    lists = [name for name, each in one.body.fields.items() if "array" in each.types and plain(name).endswith(names)]
    sends_many = lists or "array" in one.body.types
    if found and one.method != "get" and not _LOOKING.match(last) and (sends_many or _SEVERAL.search(last)):
        return Kind("action", "a write below a collection may change several of its items", found)
    return None


def _changes(one: Operation, fields: Mapping[str, SchemaShape]) -> bool:
    """Return whether a POST changes the thing that GET reads at its path: it sends its fields, or answers with them."""
    sent = matching(one.body.fields, fields)
    return bool(one.body.fields) and (one.result.holds(fields) == () or 2 * len(sent) >= len(one.body.fields))


def _of_nothing(one: Operation) -> Kind:
    method = (one.tool.binding.method if one.tool.binding else one.method).upper()
    if one.method == "get":
        return Kind("view", f"{method} of something that no operation here creates or changes")
    if one.method == "post" and one.slot and _LOOKING.match(one.slot[-1]) and one.result.types:
        return Kind("view", "POST whose path says that it only looks")
    return Kind("action", f"{method} of no collection, item or single thing")


def find_hindrance(kind: Kind, shaped: Mapping[str, bool]) -> str:
    """Return why no contract can be derived for an operation of known kind; "" if one can."""
    things = kind.things.of or kind.things if kind.things else None
    if things is None or kind.word == "action":
        return ""
    if not shaped.get(things.root, True):
        return f"the state keeps {things.root} in another form than objects by key"
    return "" if things.key else "no member of an item identifies it"
