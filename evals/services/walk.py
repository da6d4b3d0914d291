"""Random calls on the things of a REST service, recorded once; then the same calls to another server.

A call names earlier things by a mark, `<5.id>`, which each side replaces by its own value of thing 5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx

from gecko_graph.state import Json, JsonObject

Draw = Callable[[Random, int, Callable[[str], str | None]], "JsonObject | None"]
"""Makes a body or a query from a random source, a unique number, and a function that returns the mark of a thing."""

MARK = re.compile(r"<(\d+)\.(\w+)(?:\|(\w+))?>")
WEIGHTS = {
    "create new": 20, "create doubled": 6, "read existing": 12, "read missing": 5, "read gone": 5, "list all": 12,
    "list filtered": 6, "list page": 6, "count all": 4, "update existing": 14, "update missing": 4,
    "remove existing": 8, "remove missing": 4, "remove gone": 4,
}  # fmt: skip


@dataclass(frozen=True)
class Resource:
    """The possible calls on the things of one kind.

    Args:
        make: Method and path that create one.
        one: The path of one; `{}` for the thing, after those above it.
        body: Draws a body that creates one.
        key: The member of an answer that names it.
        changes: Draws a body for PATCH (or `by`), with `{}` for the thing's name; None if nothing changes it.
        by: The method that changes it.
        lists: Method and path of the list; filters are the query of GET, or the body of POST.
        counts: Method and path that count.
        asks: Draws a filter of the list; None if there is none.
        pages: The names of the list's limit and offset; empty if it has none.
        above: The resource that it belongs to.
        aliases: Other paths to one, with the member that they name it by.
        absent: A name that nothing has; empty for a UUID.
        removes: Whether one can be removed.
        real: By method, the member by which the service finds it, if that differs from the document.
        unkept: Members that the service accepts and documents in its answers, but never returns.
    """

    make: str
    one: str
    body: Draw
    key: str = "id"
    changes: Draw | None = None
    by: str = "PATCH"
    lists: str = ""
    counts: str = ""
    asks: Draw | None = None
    pages: tuple[str, ...] = ()
    above: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)
    absent: str = ""
    removes: bool = True
    real: Mapping[str, str] = field(default_factory=dict)
    unkept: Collection[str] = ()


@dataclass
class Thing:
    """A thing that the service has created."""

    number: int
    resource: str
    above: Thing | None
    body: JsonObject
    id: Json = None
    is_there: bool = True


def resolve(value: Any, values: Mapping[int, JsonObject], *, real: bool, is_path: bool = False) -> Any:
    """Return a value with the marks of things replaced by one side's values; 'none' for a missing one."""

    def read(mark: re.Match[str]) -> Json:
        number, name, documented = mark.groups()
        return values.get(int(number), {}).get(name if real or not documented else documented, "none")

    if isinstance(value, dict):
        return {key: resolve(each, values, real=real) for key, each in value.items()}
    if isinstance(value, list):
        return [resolve(each, values, real=real) for each in value]
    if isinstance(value, str) and (whole := MARK.fullmatch(value)) and not is_path:
        return read(whole)
    return MARK.sub(lambda mark: quote(str(read(mark)), safe=""), value) if isinstance(value, str) else value


def send(client: httpx.Client, prefix: str, row: JsonObject, values: Mapping[int, JsonObject], *, real: bool) -> Any:
    """Make a row's call with one side's values and return the response and its value."""
    path = prefix + resolve(row["path"], values, real=real, is_path=True)
    body, query = (resolve(row.get(part), values, real=real) for part in ("body", "query"))
    answer = client.request(row["method"], path, json=body, params=query) if body is not None else client.request(
        row["method"], path, params=query
    )  # fmt: skip
    try:
        return answer, (answer.json() if answer.content else None)
    except ValueError:
        return answer, answer.text


def unwrapped(answer: Json, key: str) -> JsonObject:
    """Return the object of an answer that has a key: the answer or a member of it; {} if there is none."""
    if not isinstance(answer, dict):
        return {}
    inner = [each for each in answer.values() if isinstance(each, dict) and key in each]
    return inner[0] if key not in answer and inner else answer


class Walk:
    """Draws calls by a seed, makes them on a service, and keeps each as a row with its status and answer."""

    def __init__(self, client: httpx.Client, prefix: str, resources: Mapping[str, Resource], seed: int) -> None:
        self.client, self.prefix, self.resources, self.random = client, prefix, resources, Random(seed)
        self.rows: list[JsonObject] = []
        self.things: list[Thing] = []
        self.values: dict[int, JsonObject] = {}

    def go(self, count: int) -> list[JsonObject]:
        """Return the rows of this many calls, or a few more."""
        for name in self.resources:
            for _ in range(2):
                self._create(name, None)
        while len(self.rows) < count:
            name = self.random.choice([*self.resources])
            what = self.random.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
            verb, _, case = what.partition(" ")
            getattr(self, f"_{verb}")(name, case)
        return self.rows

    def _call(self, name: str, verb: str, case: str, call: str, **more: Any) -> tuple[int, Any]:
        method, _, path = call.partition(" ")
        row: JsonObject = {"n": len(self.rows), "res": name, "kind": f"{verb} {case}", "method": method, "path": path}
        row |= {key: each for key, each in more.items() if each is not None}
        answer, value = send(self.client, self.prefix, row, self.values, real=True)
        self.rows.append({**row, "status": answer.status_code, "answer": value})
        return answer.status_code, value

    def _pick(self, name: str, is_there: bool = True) -> Thing | None:
        some = [one for one in self.things if one.resource == name and one.is_there is is_there]
        return self.random.choice([one for one in some if not is_there or self._stands(one)] or [None])

    def _stands(self, one: Thing | None) -> bool:
        return one is None or (one.is_there and self._stands(one.above))

    def _mark(self, name: str) -> str | None:
        one = self._pick(name)
        return f"<{one.number}.{self.resources[name].key}>" if one else None

    def _path(self, path: str, one: Thing | None, last: str = "", method: str = "") -> str:
        """Return a path with the marks of a thing (or another name in its place) and of those above it."""
        marks = list[str]()
        while one:
            rule = self.resources[one.resource]
            mark = f"<{one.number}.{rule.key}>"
            if method in rule.real and not marks:
                mark = f"<{one.number}.{rule.real[method]}|{rule.key}>"
            marks, one = [last if last and not marks else mark, *marks], one.above
        for mark in marks:
            path = path.replace("{}", mark, 1)
        return path

    def _create(self, name: str, case: str | None) -> None:
        rule = self.resources[name]
        first = self._pick(name) if case == "doubled" else None
        above = first.above if first else self._pick(rule.above) if rule.above else None
        body = first.body if first else rule.body(self.random, len(self.rows), self._mark)
        if body is None or (rule.above and above is None) or (case == "doubled" and first is None):
            return
        number = len(self.things)
        status, answer = self._call(
            name, "create", case or "new", self._path(rule.make, above), body=body, makes=number, key=rule.key
        )
        value = {**resolve(body, self.values, real=True), **unwrapped(answer, rule.key)}
        one = Thing(number, name, above, body, value.get(rule.key), is_there=False)
        self.things.append(one)
        known = [
            other.id for other in self.things if other.resource == name and other.above is above and other.is_there
        ]
        if status < 300 and one.id is not None and one.id not in known:
            self.values[number], one.is_there = value, True
            for other in self.things[:-1]:
                if (other.resource, other.above, other.id) == (name, above, one.id):
                    other.resource = ""  # its id names another thing from now on
        else:
            one.resource = ""  # not a new thing, so no call is about it

    def _item(self, name: str, verb: str, case: str, method: str, body: JsonObject | None = None) -> Thing | None:
        one = self._pick(name, case != "gone")
        if one is None:
            return None
        rule = self.resources[name]
        absent = (rule.absent or str(UUID(int=self.random.getrandbits(128), version=4))) if case == "missing" else ""
        path, last = rule.one, absent
        if verb == "read" and rule.aliases and self.random.random() < 0.4:
            path, member = self.random.choice([*rule.aliases.items()])
            last = ("no-such-thing" if member != rule.key else absent) if absent else f"<{one.number}.{member}>"
        method_ = "" if path != rule.one else method
        call = f"{method} {self._path(path, one, last, method_)}"
        if body:
            named = last or f"<{one.number}.{rule.key}>"
            body = {member: named if value == "{}" else value for member, value in body.items()}
        status, _ = self._call(name, verb, case, call, body=body, about=one.number, key=rule.key)
        return one if status < 300 else None

    def _read(self, name: str, case: str) -> None:
        self._item(name, "read", case, "GET")

    def _again(self, name: str, case: str, one: Thing, sent: JsonObject | None = None) -> None:
        rule = self.resources[name]
        path = self._path(rule.one, one, "", "GET")
        self._call(name, "read", case, f"GET {path}", about=one.number, key=rule.key, sent=sent)

    def _update(self, name: str, case: str) -> None:
        rule = self.resources[name]
        body = rule.changes(self.random, len(self.rows), self._mark) if rule.changes else None
        one = self._item(name, "update", case, rule.by, body) if body else None
        if one and case == "existing":
            self._again(name, "after update", one, body)

    def _remove(self, name: str, case: str) -> None:
        one = self._item(name, "remove", case, "DELETE") if self.resources[name].removes else None
        if one and case == "existing":
            one.is_there = False
            for each in self.things:
                each.is_there = each.is_there and self._stands(each)
            self._again(name, "after remove", one)

    def _list(self, name: str, case: str, verb: str = "list") -> None:
        rule = self.resources[name]
        call = rule.lists if verb == "list" else rule.counts
        above = self._pick(rule.above) if rule.above else None
        if not call or (rule.above and above is None):
            return
        asked: JsonObject | None = {}
        if case == "filtered":
            asked = rule.asks(self.random, len(self.rows), self._mark) if rule.asks else None
        elif case == "page":
            asked = {name: self.random.randint(1 - at, 3) for at, name in enumerate(rule.pages)} or None
        if asked is None:
            return
        own = [one.number for one in self.things if one.resource == name and one.above is above]
        part = {"body" if call.startswith("POST") else "query": asked}
        self._call(name, verb, case, self._path(call, above), own=own, key=rule.key, **part)

    def _count(self, name: str, case: str) -> None:
        self._list(name, case, "count")


def repeat(client: httpx.Client, prefix: str, rows: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Repeat the calls of rows on another server and yield each row with its `other` status and answer."""
    theirs, ours = dict[int, JsonObject](), dict[int, JsonObject]()
    sent: dict[tuple[int, str], set[str]] = {}
    for row in (each for each in rows if each["status"] < 500):  # else the service was busy, and did nothing
        for name, value in (row.get("body") or {}).items():
            sent.setdefault((_thing_of(row), name), set()).update(value if isinstance(value, dict) else ())
        answer, value = send(client, prefix, row, ours, real=False)
        if "makes" in row:
            for values, status, made in ((theirs, row["status"], row["answer"]), (ours, answer.status_code, value)):
                if status < 300:
                    given = resolve(row["body"], values, real=values is theirs)
                    values[row["makes"]] = {**given, **unwrapped(made, row["key"])}
        marked = answer.headers.get("x-gecko-made-up") == "true"
        compared = compare(row, answer.status_code, value, (theirs, ours), sent)
        yield {**row, "other": answer.status_code, "said": value, "unknown": marked} | compared


def compare(
    row: JsonObject,
    status: int,
    value: Json,
    known: tuple[Mapping[int, JsonObject], ...],
    sent: Mapping[tuple[int, str], Collection[str]],
) -> JsonObject:
    """Compare two answers: class of status, the fields that were sent, the own things in a list.

    Of an object, the members that were ever sent are compared, because the service may add others.
    """
    found: JsonObject = {"class": row["status"] // 100 == status // 100, "exact": row["status"] == status}
    if row["status"] >= 300 or status >= 300:
        return found
    pair = [*zip((row["answer"], value), known, strict=True)]
    if row["kind"].startswith("list"):
        members = [_own(answer, row, values) for answer, values in pair]
        found |= {"members": members[0] == members[1], "lists": members}
    elif row["kind"].startswith("count"):
        found["count"] = row["answer"] == value
    elif given := row.get("sent") or row.get("body"):
        if row["key"] not in (row["answer"] or {}) and len(given) == 1 and next(iter(given)) in (row["answer"] or {}):
            (given,) = given.values()  # unwrap the envelope that the answer has too
        thing = _thing_of(row)
        seen = [
            {name: _part(each, sent.get((thing, name), ())) for name, each in unwrapped(answer, row["key"]).items()}
            for answer, _ in pair
        ]
        wrong = {
            name: [one.get(name) for one in seen]
            for name, each in given.items()
            if name in seen[0] and not MARK.search(str(each)) and seen[0][name] != seen[1].get(name, "absent")
        }
        if any(name in seen[0] for name in given):
            found |= {"given": not wrong, "wrong": wrong}
    return found


def _thing_of(row: JsonObject) -> int:
    """Return the number of the thing that a call creates or is about; -1 for a call about all."""
    return int(row["makes"] if "makes" in row else row.get("about", -1))


def _part(value: Json, names: Collection[str]) -> Json:
    return {name: value[name] for name in names if name in value} if names and isinstance(value, dict) else value


def _own(answer: Json, row: JsonObject, values: Mapping[int, JsonObject]) -> list[int]:
    """Return which of the walk's own things a list contains."""
    if isinstance(answer, dict):
        lists = [each for each in answer.values() if isinstance(each, list)]
        is_map = bool(answer) and all(isinstance(each, dict) for each in answer.values())
        named = [{row["key"]: key} | each for key, each in answer.items()] if is_map else []
        answer = named or (lists[0] if lists else [])
    ids = [str(each.get(row["key"])) for each in answer if isinstance(each, dict)] if isinstance(answer, list) else []
    return [one for one in row["own"] if one in values and str(values[one].get(row["key"])) in ids]
