"""Pages of a list: the next cursor, the next page's number, members that say whether more follow."""

import pytest

from .documents import TEXT, WHOLE, document, many, op, thing
from .test_living import blanks, ok

BOOK = thing(["id", "name"], id=WHOLE, name=TEXT)
MAYBE, YES = {"type": ["string", "null"]}, {"type": "boolean"}
CURSOR = [("cursor", "string"), ("limit", "integer"), ("sort", "string")]


def books(call, query, **beside):
    """Make five books of a document whose list has these parameters and members; return a function that lists them."""
    envelope = thing(["items"], items=many(BOOK), **beside)
    there = {
        "/books": {
            "get": op("list", query=query, gives=envelope),
            "post": op("make", body=thing(name=TEXT), gives=BOOK),
        }
    }
    call = call(document(there))
    for name in "abcde":
        ok(call("make", name=name))
    return lambda **args: call("list", **args)


@pytest.mark.parametrize(
    ("by", "beside", "read", "end"),
    [
        ("cursor", {"next_cursor": MAYBE}, lambda page: page["next_cursor"], None),
        ("page_token", {"nextPageToken": TEXT}, lambda page: page["nextPageToken"], ""),
        ("cursor", {"meta": thing(next_cursor=TEXT, has_more=YES)}, lambda page: page["meta"]["next_cursor"], ""),
        ("start_cursor", {"next_cursor": MAYBE}, lambda page: page["next_cursor"], None),
        ("continue", {"metadata": thing(**{"continue": TEXT})}, lambda page: page["metadata"]["continue"], ""),
        ("pagination_token", {"meta": thing(next_token=TEXT)}, lambda page: page["meta"]["next_token"], ""),
        ("page[after]", {"page": thing(after_cursor=TEXT)}, lambda page: page["page"]["after_cursor"], ""),
        ("after", {"paging": thing(next=thing(after=TEXT))}, lambda page: page["paging"]["next"]["after"], ""),
    ],
)
def test_a_cursor_leads_through_all_pages(living, by, beside, read, end):
    show, names, cursor = books(living, [(by, "string"), *CURSOR[1:]], **beside), [], None
    for _ in range(3):
        page = ok(show(limit=2, sort="name", **({by: cursor} if cursor else {})))
        names += [book["name"] for book in page["items"]]
        cursor = read(page)
    assert (names, cursor) == (list("abcde"), end)
    assert read(ok(show())) == end


def test_a_cursor_that_no_page_has_given_leaves_doubt(living):
    show = books(living, CURSOR, next_cursor=MAYBE)
    assert blanks(show(limit=2, sort="name", cursor="2")) == set()
    assert "" in blanks(show(limit=2, sort="name", cursor="dXNlcjo1"))
    assert "" in blanks(show(limit=0))


def test_a_page_says_whether_more_follow(living):
    query = [("page", "integer"), ("page_size", "integer"), ("sort", "string")]
    beside = {"has_next": YES, "last": YES, "next_page": {"type": ["integer", "null"]}, "total": WHOLE}
    show = books(living, query, **beside)
    told = [
        {name: page[name] for name in beside}
        for page in (ok(show(page=at, page_size=2, sort="name")) for at in (1, 2, 3))
    ]
    assert told == [
        {"has_next": True, "last": False, "next_page": 2, "total": 5},
        {"has_next": True, "last": False, "next_page": 3, "total": 5},
        {"has_next": False, "last": True, "next_page": None, "total": 5},
    ]


def test_the_address_of_a_next_page_is_in_doubt(living):
    address = {"type": ["string", "null"], "format": "uri"}
    show = books(living, [("page", "integer"), ("page_size", "integer"), ("ordering", "string")], next=address)
    first, last = (show(page=at, page_size=3, ordering="name") for at in (1, 2))
    assert blanks(first)
    assert (ok(last)["next"], blanks(last)) == (None, set())


def test_a_search_finds_texts_at_any_depth(living):
    by = thing(name=TEXT, tags=many(TEXT))
    book, new = thing(["id"], id=WHOLE, name=TEXT, by=by), thing(name=TEXT, by=by)
    there = {"get": op("list", query=[("q", "string")], gives=many(book)), "post": op("make", body=new, gives=book)}
    call = living(document({"/books": there}))
    ok(call("make", name="a", by={"name": "Ann", "tags": ["poet"]}))
    ok(call("make", name="b", by={"name": "Bo"}))
    assert [[each["name"] for each in ok(call("list", q=word))] for word in ("POET", "bo", "x")] == [["a"], ["b"], []]


def test_beside_a_cursor_an_address_is_in_doubt_and_ids_of_the_ends_are_known(living):
    beside = {"links": thing(next=TEXT), "first_id": MAYBE, "last_id": MAYBE, "has_more": YES}
    shown = books(living, [("after_id", "string"), *CURSOR[1:]], **beside)(limit=2, sort="name", after_id="2")
    assert [ok(shown)[name] for name in ("first_id", "last_id", "has_more")] == ["3", "4", True]
    assert (ok(shown)["links"], blanks(shown)) == ({"next": ""}, {""})
