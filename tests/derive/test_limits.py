"""Filters with limits (`min_price`, `price_lt`, `created_after`, `price[gte]`); times in one order."""

import pytest

from .documents import TEXT, TIME, document, many, op, thing
from .test_living import blanks, ok

NUMBER = {"type": "number"}
BOOK = thing(["id"], id=TEXT, name=TEXT, price=NUMBER, created_at=TIME, due=TIME)
NEW = thing(name=TEXT, price=NUMBER, created_at=TIME, due=TIME)
QUERY = [("min_price", "number"), ("maxPrice", "number"), ("price_gt", "number"), ("created_after", "string"),
         ("due_before", "string"), ("created_at_from", "string"), ("since", "string"), ("sort", "string")]  # fmt: skip
DEEP = {"name": "price", "in": "query", "style": "deepObject", "schema": thing(gte=NUMBER, lt=NUMBER)}


@pytest.fixture
def books(living):
    listing = op("list", query=QUERY, gives=many(BOOK))
    listing["parameters"].append(DEEP)
    call = living(document({"/books": {"get": listing, "post": op("make", body=NEW, gives=BOOK)}}))
    for day, name in enumerate("abc", 1):
        ok(call("make", name=name, price=day, created_at=f"2026-03-0{day}T10:00:00Z", due=f"2026-04-0{day}T10:00:00Z"))

    def names(**args):
        listed = call("list", sort="name", **args)
        return "".join(book["name"] for book in ok(listed)), blanks(listed)

    names.call = call
    return names


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ({"min_price": 2}, "bc"),
        ({"maxPrice": 2}, "ab"),
        ({"min_price": 2, "maxPrice": 2}, "b"),
        ({"price_gt": 2}, "c"),
        ({"price": {"gte": 2, "lt": 2.5}}, "b"),
        ({"created_after": "2026-03-02T11:30:00+02:00"}, "bc"),
        ({"due_before": "2026-04-02"}, "a"),
        ({"created_at_from": "2026-03-02"}, "bc"),
    ],
)
def test_a_limit_leaves_out_what_is_beyond_it(books, args, found):
    assert books(**args) == (found, set())


@pytest.mark.parametrize(
    ("args", "found"),
    [({"created_after": "2026-03-02"}, "bc"), ({"since": "2026-03-02"}, "abc")],
)
def test_a_value_on_the_day_of_a_limit_and_a_limit_of_nothing_leave_doubt(books, args, found):
    assert books(**args) == (found, {""})


def test_a_thing_without_the_value_leaves_doubt(books):
    ok(books.call("make", name="d"))
    assert books(min_price=2) == ("bc", {""})


def test_times_are_in_order_whatever_their_offset(books):
    ok(books.call("make", name="d", due="2026-04-02T11:00:00+02:00"))
    assert [book["name"] for book in ok(books.call("list", sort="due"))] == ["a", "d", "b", "c"]


def test_one_of_several_values_is_enough_and_leaves_doubt(living):
    there = {"get": op("list", query=[("ids", "string")], gives=many(BOOK)), "post": op("make", body=NEW, gives=BOOK)}
    call = living(document({"/books": there}))
    first, _, third = (ok(call("make", name=name))["id"] for name in "abc")
    listed = call("list", ids=f"{first},{third}")
    assert ([book["name"] for book in ok(listed)], blanks(listed)) == (["a", "c"], {""})
