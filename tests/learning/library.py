"""A library with rules that no document states, and threads of its calls: members, books, loans."""

from __future__ import annotations

from functools import cache, wraps
from random import Random
from typing import Any

from gecko_graph import Refused, Tool, Toolkit
from gecko_graph.learning.learn import Learned, learn_contracts
from gecko_graph.learning.observation import known_by_reads
from gecko_graph.values.observation import Observation

LISTS = {"list_members": "members", "list_books": "books", "list_loans": "loans"}


def list_members() -> list[dict]:
    """List the members."""
    raise NotImplementedError


def list_books() -> list[dict]:
    """List the books."""
    raise NotImplementedError


def list_loans(member_id: str = "") -> list[dict]:
    """List the loans, of a member or all."""
    raise NotImplementedError


def lend(member_id: str, book_id: str, start: str) -> dict:
    """Lend a book."""
    raise NotImplementedError


def extend(loan_id: str, start: str) -> dict:
    """Extend a loan."""
    raise NotImplementedError


def end(loan_id: str) -> dict:
    """End a loan."""
    raise NotImplementedError


def toolkit(*, observes: bool = True) -> Toolkit:
    """Return the tools, with what their lists show."""
    made = Toolkit.from_tools(
        [*(Tool(each, effect="read") for each in (list_members, list_books, list_loans)),
         *(Tool(each, effect="write") for each in (lend, extend, end))]
    )  # fmt: skip
    loop = {"for_each": "result", "as": "one", "op": "add", "value": "{{ one }}"}
    shown = {name: {"observes": [{**loop, "path": [place, "{{ one.id }}"]}]} for name, place in LISTS.items()}
    return made.with_contracts({"contracts": shown}) if observes else made


def served(library: Library) -> Toolkit:
    """Return the tools with a library behind them."""

    def of(function: Any) -> Any:
        @wraps(function)
        def real(**args: Any) -> Any:
            status, result = library.call(function.__name__, args)
            if status == "error":
                raise Refused(result["detail"])
            return result

        return real

    tools = [Tool(of(each), effect="read") for each in (list_members, list_books, list_loans)]
    made = Toolkit.from_tools([*tools, *(Tool(of(each), effect="write") for each in (lend, extend, end))])
    shown = {tool.name: tool.contract.data for tool in toolkit() if tool.contract}
    return made.with_contracts({"contracts": shown})


class Library:
    """The service."""

    def __init__(self) -> None:
        kinds = ["child", "adult"]
        self.members = {f"M{n}": {"id": f"M{n}", "name": f"member {n}", "kind": kinds[n % 2]} for n in range(8)}
        self.books = {f"B{n}": {"id": f"B{n}", "title": f"book {n}", "fit": kinds[: n % 2 + 1]} for n in range(6)}
        self.loans: dict[str, dict[str, Any]] = {}

    def call(self, name: str, args: dict[str, Any]) -> tuple[str, Any]:
        """Return what becomes of a call."""
        if name in LISTS:
            things = [dict(one) for one in getattr(self, LISTS[name]).values()]
            return "ok", [one for one in things if args.get("member_id", "") in ("", one.get("member_id"))]
        if (why := self._refuse(name, **args)) is not None:
            return "error", {"detail": why}
        if name == "lend":
            id_ = f"L{len(self.loans)}"
            self.loans[id_] = {"id": id_, **args, "status": "open"}
            return "ok", dict(self.loans[id_])
        self.loans[args["loan_id"]].update({"status": "ended"} if name == "end" else {"start": args["start"]})
        return "ok", dict(self.loans[args["loan_id"]])

    def _refuse(self, name: str, **args: Any) -> str | None:
        if "start" in args and not 9 <= int(args["start"][11:13]) < 17:
            return "the library is shut then"
        if name != "lend":
            return None if self.loans[args["loan_id"]]["status"] == "open" else "the loan is ended"
        if self.members[args["member_id"]]["kind"] not in self.books[args["book_id"]]["fit"]:
            return "the book does not fit members of that kind"
        mine = [one for one in self.loans.values() if one["member_id"] == args["member_id"]]
        return "a member has two open loans at most" if sum(one["status"] == "open" for one in mine) >= 2 else None


def calls(library: Library, count: int, *, seed: int = 0, reads: bool = True) -> list[tuple[str, dict[str, Any]]]:
    """Make writes, each after the reads that show what it meets; return them all, with their answers."""
    source, made = Random(seed), list[Any]()

    def do(name: str, **args: Any) -> None:
        made.append((name, args, *library.call(name, args)))

    for number in range(count):
        hour, minute = source.choice([7, 8, 9, 10, 12, 14, 16, 17, 18]), source.randrange(60)
        start = f"2026-11-{source.randint(1, 28):02}T{hour:02}:{minute:02}"
        if reads or not number:
            for name in LISTS:
                do(name)
        name = source.choice(["lend", "lend", "lend", "extend", "end"]) if library.loans else "lend"
        if name == "lend":
            member, book = source.choice([*library.members]), source.choice([*library.books])
            do(name, member_id=member, book_id=book, start=start)
        else:
            loan = {"loan_id": source.choice([*library.loans])}
            do(name, **loan, **({"start": start} if name == "extend" else {}))
    return made


def rows(count: int, tools: Toolkit | None = None, **more: Any) -> list[Observation]:
    """Return a thread's calls as rows of what its reads have shown."""
    some = [Observation(*one, source="thread") for one in calls(Library(), count, **more)]
    return list(known_by_reads(some, tools or toolkit()))


@cache
def learned(count: int, **more: Any) -> Learned:
    """Return what is learned from such rows: only to be read."""
    return learn_contracts(toolkit(), rows(count, **more))
