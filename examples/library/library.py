"""The desk of a small library as plain LangChain tools; their own functions answer in a test's world."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from langchain_core.tools import ToolException, tool

from gecko_graph.tools import with_data

DATA: dict[str, Any] = {"today": "2027-05-12", "books": {}, "members": {}, "loans": [], "holds": []}
DAYS = 28


def _find(table: str, column: str, text: str) -> list[dict[str, Any]]:
    return [{"id": id_, **row} for id_, row in DATA[table].items() if text.lower() in row[column].lower()]


def _known(table: str, id_: str) -> dict[str, Any]:
    if id_ not in DATA[table]:
        raise ToolException(f"there is no {id_} among the {table}")
    return DATA[table][id_]  # type: ignore[no-any-return]


@tool
def find_books(title: str) -> list[dict[str, Any]]:
    """Find books by a part of their title, with the copies that can be lent."""
    return _find("books", "title", title)


@tool
def find_members(name: str) -> list[dict[str, Any]]:
    """Find members by a part of their name, with the fees that they owe in euros."""
    return _find("members", "name", name)


@tool
def list_loans(member: str) -> list[dict[str, Any]]:
    """List the loans of a member by the member's identifier, such as M-1."""
    _known("members", member)
    return [loan for loan in DATA["loans"] if loan["member"] == member]


@tool
def lend_book(book: str, member: str) -> dict[str, Any]:
    """Lend a book to a member, both by their identifiers, for four weeks."""
    if not _known("books", book)["copies"]:
        raise ToolException(f"no copy of {book} is left")
    _known("members", member)
    loan = {"book": book, "member": member, "due": str(date.fromisoformat(DATA["today"]) + timedelta(days=DAYS))}
    DATA["books"][book]["copies"] -= 1
    DATA["loans"].append(loan)
    return loan


@tool
def renew_loan(book: str, member: str) -> dict[str, Any]:
    """Renew a member's loan of a book by four weeks."""
    for loan in DATA["loans"]:
        if (loan["book"], loan["member"]) == (book, member):
            loan["due"] = str(date.fromisoformat(loan["due"]) + timedelta(days=DAYS))
            return loan  # type: ignore[no-any-return]
    raise ToolException(f"{member} has not borrowed {book}")


@tool
def hold_book(book: str, member: str) -> str:
    """Put a member on the waiting list of a book."""
    _known("books", book), _known("members", member)
    DATA["holds"].append({"book": book, "member": member})
    return f"{member} waits for {book}"


@tool
def pay_fees(member: str, amount: float) -> dict[str, Any]:
    """Book a payment of a member's fees, in euros; returns what is still owed."""
    fees = _known("members", member)["fees"]
    if amount <= 0 or amount > fees:
        raise ToolException(f"{member} owes {fees} euros")
    DATA["members"][member]["fees"] = round(fees - amount, 2)
    return {"member": member, "fees": DATA["members"][member]["fees"]}


TOOLS = with_data([find_books, find_members, list_loans, lend_book, renew_loan, hold_book, pay_fees], DATA)
