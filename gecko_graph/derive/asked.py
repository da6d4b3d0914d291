"""Parameters of a list or a count (values of fields, filters, an order, pages) as expressions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..contracts.language.things import TESTS
from ..state import Json, JsonObject
from .blanks import TOTAL, Beside, blanks_of
from .expressions import arg, template
from .paths import WORD, Operation, Things, names_item
from .shapes import SchemaShape, plain, singular

LIMIT = frozenset(("limit", "perpage", "pagesize", "take", "maxresults", "size", "top", "pagelimit", "hitsperpage"))
OFFSET = frozenset(("offset", "skip", "start", "startindex", "startat", "pageoffset"))
PAGE = frozenset(("page", "pagenumber"))
AFTER = frozenset(("after", "startingafter", "afterid", "pageafter"))
_TOKENS = (f"{word}token" for word in ("", "page", "next", "pagination", "continuation", "skip"))
CURSOR = frozenset(("cursor", "startcursor", "pagecursor", "aftercursor", "marker", "pageinfo", "continue", *_TOKENS))
ORDER = frozenset(("sort", "sortby", "orderby", "order", "ordering"))
WAY = frozenset(("direction", "dir", "sortdirection", "sortdir", "sortorder", "orderdirection", "orderdir"))
SEARCH = frozenset(("q", "query", "search", "text", "keyword", "keywords", "term"))
FREE = frozenset(("fields", "expand", "include", "pretty", "format", "view", "select", "token"))
"""Names of query parameters in lower case without separators; those of `FREE` change only how a thing is shown."""

_FILTERS = frozenset(("filter", "filters", "where", "criteria", "conditions"))
_PART = re.compile(r"\b(part of|contain|substring|partial|start(s|ing)? with|prefix|fuzzy)", re.IGNORECASE)
_CONTAINS = re.compile(r"(i?contains|i?like)$")
_LIMITS = {word: sign for word, sign in TESTS.items() if sign in (">=", ">", "<=", "<")}
_NEWEST = re.compile(r"-created\w*|created\w*[ :_]desc(ending)?", re.IGNORECASE)
_WAY = re.compile(r"[:\s_]+(asc|desc)\w*$", re.IGNORECASE)
_HAS_NEXT = re.compile(r"((has|is)_?)?(more|next)(_?(page|items|results))?", re.IGNORECASE)
_IS_LAST = re.compile(r"(is_?)?last(_?page)?", re.IGNORECASE)
_CURSOR = re.compile(
    r"next(_?(page|cursor|marker|(page_?)?token))?|((end|after)_?)?cursor|after|continue|continuation_?token", re.I
)
_ADDRESS = re.compile(r"next(_?page)?_?(link|url|uri|href)", re.IGNORECASE)
_FIRST, _LAST = (re.compile(rf"{end}_?id", re.IGNORECASE) for end in ("first", "last"))
_NEXT = "page != [] and page[-1] != listed[-1]"
"""Whether items follow those of the page."""
_CREATED = re.compile(r"creat|insert", re.IGNORECASE)


def sent_fields(one: Operation, fields: Mapping[str, SchemaShape], sent: Mapping[str, str]) -> str:
    """Return an expression of the fields that a call sends, for `merged`; `sent` maps arguments to fields.

    A value that the argument's schema accepts and the field's `enum` does not list is left out.
    """
    known = {name: fields[field].first("enum") for name, field in sent.items()}
    listed = {
        name: values for name, values in known.items() if values and not one.parameters.fields[name].first("enum")
    }
    plain = {name: field for name, field in sent.items() if name not in listed}
    some = (
        f"({{{sent[name]!r}: {arg(name)}}} if {arg(name)} is not None and {arg(name)} in {values!r} else {{}})"
        for name, values in listed.items()
    )
    return ", ".join([f"sent_as({plain!r})", *some])


class Asked:
    """Expressions for the parameters of a list or a count: the matching things (`found`), and the page shown."""

    def __init__(self, one: Operation, things: Things, place: str, named: str, given: Mapping[str, str]) -> None:
        self.one, self.things = one, things
        pairs, unread = self._plain_filters()
        inner = self._inner_filters()
        inside = dict.fromkeys(name for name, _ in inner.values())
        unread = [name for name in unread if name not in inside]
        pairs |= {field: f"at(args, {[*way]!r}, None)" for field, way in inner.items()} | {**given}
        filters = ", ".join(f"{name!r}: {each}" for name, each in pairs.items())
        found = f"things_at({place}, {named}, {{{filters}}}, {self._blank(pairs)!r})"
        rest = [
            f"{{k: v for k, v in ({arg(a)} or {{}}).items() if k not in {[b for c, b in inner.values() if a == c]!r}}}"
            for a in inside
        ]
        doubt = f"sent_as({ {name: name for name in unread}!r})"
        doubt = f"merged({', '.join([doubt, *rest])})" if rest else doubt
        self.found = f"in_doubt({found}, {doubt})" if unread or rest else found
        is_plain = not (unread or rest or any(name[:1] in ("", "~", "<", ">") for name in pairs))
        self._shared = {name: f"{{{{ {each} }}}}" for name, each in pairs.items()} if is_plain else None

    def part(self, items: str) -> Json:
        """Return the field values that all things of a complete list share, as a template; null for a partial list.

        A page is complete if it is the first and not full: it has fewer items than its default size, or none.
        """
        pages = [(each, self.of(each)) for each in (OFFSET, PAGE, AFTER, CURSOR) if self.of(each) != "None"]
        limit = self.of(LIMIT)
        if self._shared is None or (limit == "None" and not pages):
            return self._shared
        size = next((each for each in self._default(LIMIT) if type(each) is int and each > 0), 1)
        starts = [f"{arg} in {[None, '', 0, *(self._default(each) if each is PAGE else ())]!r}" for each, arg in pages]
        asked = f"min({size}, {size} if {limit} is None else {limit})"
        first = {"when": " and ".join([*starts, f"len({items}) < {asked}"]), "value": self._shared}
        return {"cases": [first, {"value": None}]}

    def _default(self, names: frozenset[str]) -> list[Json]:
        return [each.first("default") for each in shapes(self.one, names)]

    def of(self, names: frozenset[str]) -> str:
        """Return the argument with one of these names, as an expression."""
        found = next((name for wire, name in self.one.asked.items() if _word(self.one, wire) in names), None)
        return arg(found) if found else "None"

    def shown(self, key: str, *, is_newest_first: bool) -> dict[str, str]:
        """Return definitions: `listed`, `found` in its order, and its requested `page`; a cursor is an item's key."""
        number, after = self.of(PAGE), f"[{key!r}, {self.of(AFTER | CURSOR)}]"
        is_spring = "totalElements" in self.one.result.fields
        if is_spring or any(0 in (each.first("default"), each.first("minimum")) for each in shapes(self.one, PAGE)):
            number = f"({number} or 0) + 1"
        pages = ", ".join([self.of(LIMIT), self.of(OFFSET), number, after])
        page = f"page_of(listed, {pages}, {self._has_order(key)})"
        return {"listed": template(f"ordered_by(found, {self._order(is_newest_first)})"), "page": template(page)}

    def beside(self, key: str) -> Beside:
        """Return the values of members beside a list: how many items there are, whether and where a page follows."""
        cursor, number = self.of(CURSOR | AFTER), self.of(PAGE)

        def told(name: str, shape: SchemaShape) -> str | None:
            end = "None" if shape.is_nullable else "''"
            is_cursor = cursor != "None" and shape.first("format") is None and not _ADDRESS.fullmatch(name)
            after = f"str(page[-1][{key!r}])" if is_cursor else f"in_doubt({end}, ['{name} is not known'])"
            for names, types, value in (
                (_HAS_NEXT, {"boolean"}, _NEXT),
                (_IS_LAST, {"boolean"}, f"not ({_NEXT})"),
                (_CURSOR, {"string"}, f"{after} if {_NEXT} else {end}"),
                (_ADDRESS, {"string"}, f"{after} if {_NEXT} else {end}"),
                (_FIRST, {"string"}, f"str(page[0][{key!r}]) if page != [] else {end}"),
                (_LAST, {"string"}, f"str(page[-1][{key!r}]) if page != [] else {end}"),
                (_CURSOR, {"integer"}, f"({number} or 1) + 1 if {_NEXT} else None" if number != "None" else ""),
            ):
                if value and names.fullmatch(name) and shape.types == types:
                    return template(value)
            is_total = TOTAL.fullmatch(name) and shape.types <= {"integer", "number"}
            return "{{ len(found) }}" if is_total else None

        return told

    def _has_order(self, key: str) -> str:
        """Return an expression: whether an order is documented or requested.

        An order by generated keys does not count.
        """
        post, (first, second) = self.things.at.get("post"), default_order(self.one)
        named = [key, f"-{key}", first, *(one for each in shapes(self.one, ORDER) for one in each.first("enum") or ())]
        is_given = post is None or names_item(post, self.things)
        unknown = [None, *(each for each in named if not is_given and plain(_WAY.sub("", str(each))) == plain(key))]
        return f"({self.of(ORDER)} or {first!r} or {self.of(WAY)} or {second!r}) not in {unknown!r}"

    def _order(self, is_newest_first: bool) -> str:
        """Return the requested order, else the documented one, else the order of the document's other lists.

        A list with a cursor begins with the newest item, as in most services.
        """
        by, way = self.of(ORDER), self.of(WAY)
        first, second = default_order(self.one)
        is_like_others = is_newest_first and any(map(_CREATED.match, self.things.fields))
        if not (first or second) and (is_like_others or self.of(CURSOR | AFTER) != "None"):
            return f"{by} or {way} or '-created', {way}"
        return f"{by} or {first!r}, {way} or {second!r}" if first or second else f"{by}, {way}"

    def _plain_filters(self) -> tuple[dict[str, str], list[str]]:
        """Return the required values of fields, and the arguments without a known meaning."""
        by, pairs, unread = {plain(name): name for name in self.things.fields}, dict[str, str](), list[str]()
        for wire, name in self.one.asked.items():
            word, pages = plain(wire), LIMIT | OFFSET
            field = by.get(word) or by.get(plain(singular(wire)))
            if not field and (part := by.get(_CONTAINS.sub("", word))):
                pairs[f"~{part}"] = arg(name)
                continue
            by_what = self._filter_of(name, "" if word in SEARCH else field or "")
            if (word in SEARCH or (field and word not in pages)) and by_what not in pairs:
                pairs[by_what] = arg(name)
            elif word in pages | PAGE | AFTER | CURSOR | ORDER | WAY | FREE:
                continue
            elif limit := _limit_of(wire, by):
                pairs[limit] = arg(name)
            else:
                unread.append(name)
        return pairs, unread

    def _inner_filters(self) -> dict[str, tuple[str, str]]:
        """Return the fields that members of an argument filter by, as in `{"flows": {"name": {"any_": [...]}}}`."""
        by, found = {plain(name): name for name in self.things.fields}, dict[str, tuple[str, str]]()
        for wire, name in self.one.asked.items():
            if plain(wire) in _FILTERS or plain(singular(wire)).endswith(plain(self.things.singular)):
                inner = self.one.parameters.fields[name].fields
                found |= {by[plain(each)]: (name, each) for each in inner if plain(each) in by}
        return found

    def _filter_of(self, name: str, field: str) -> str:
        """Return a field, with the mark `~` if the document says that a part of its text matches."""
        shape = self.one.parameters.fields[name]
        texts = (self.one.tool.description, shape.first("description"))
        is_part = shape.types == {"string"} and not shape.first("enum") and any(_PART.search(str(one)) for one in texts)
        return f"~{field}" if field and is_part else field

    def _blank(self, pairs: Mapping[str, str]) -> JsonObject:
        blank = {name: each for name, each in blanks_of(self.things.shape).items() if name in pairs}
        return {name: each for name, each in blank.items() if isinstance(each, str | int) and "{{" not in str(each)}


def _limit_of(wire: str, by: Mapping[str, str]) -> str:
    """Return the comparison that a parameter means, `>=price` for `min_price` or `price_gte`; "" if none."""
    words = [word.lower() for word in WORD.findall(wire)]
    for sign, rest in ((_LIMITS.get(words[-1]), words[:-1]), (_LIMITS.get(words[0]), words[1:])) if words[1:] else ():
        names = ("".join(rest) + ending for ending in ("", "at", "on", "date", "time"))
        if sign and (field := next((by[name] for name in names if name in by), None)):
            return sign + field
    return ""


def shapes(one: Operation, names: frozenset[str]) -> list[SchemaShape]:
    return [one.parameters.fields[name] for wire, name in one.asked.items() if _word(one, wire) in names]


def _word(one: Operation, wire: str) -> str:
    """Return a parameter's plain name; `order` beside `sort` or `sort_by` is a direction."""
    is_way = plain(wire) == "order" and any(plain(each) in ORDER - {"order"} for each in one.asked)
    return "direction" if is_way else plain(wire)


def default_order(one: Operation) -> tuple[Json, Json]:
    """Return the default field and direction of a list's order; None if undocumented."""
    by, way = ([each.first("default") for each in shapes(one, names)] for names in (ORDER, WAY))
    return next(filter(None, by), None), next(filter(None, way), None)


def is_newest_first(one: Operation) -> bool:
    """Return whether a list begins with the newest item by its documented order."""
    return one.lists is not None and bool(_NEWEST.fullmatch(" ".join(str(each) for each in default_order(one) if each)))
