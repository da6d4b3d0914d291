"""What a list is asked by: filters with operators, orders that a document promises, a thing twice, counts beside."""

from typing import Any

import pytest

from gecko_graph import Toolkit, World
from gecko_graph.derive.contracts import add_derived
from gecko_graph.state import JsonObject

BOOK = {
    "type": "object",
    "required": ["id", "title"],
    "properties": {
        "id": {"type": "string"},
        "title": {"type": "string"},
        "tags": {"type": "object"},
        "pages": {"type": "integer"},
        "created_at": {"type": "string", "format": "date-time"},
    },
}


def body(**properties: Any) -> JsonObject:
    schema = {"type": "object", "properties": properties}
    return {"content": {"application/json": {"schema": schema}}}


def answer(schema: JsonObject) -> JsonObject:
    return {"200": {"description": "ok", "content": {"application/json": {"schema": schema}}}}


def document(*, query: JsonObject | None = None, search: JsonObject | None = None, **more: Any) -> JsonObject:
    made = body(title={"type": "string"}, tags={"type": "object"}, pages={"type": "integer"}, **more)
    asked = [{"name": name, "in": "query", "schema": schema} for name, schema in (query or {}).items()]
    paths: JsonObject = {
        "/books": {
            "get": {"operationId": "list", "parameters": asked, "responses": answer({"type": "array", "items": BOOK})},
            "post": {"operationId": "make", "requestBody": made, "responses": answer(BOOK)},
        },
        "/books/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {"operationId": "read", "responses": answer(BOOK)},
        },
        "/books_count": {"get": {"operationId": "count", "responses": answer({"type": "integer"})}},
    }
    if search is not None:
        found = answer({"type": "array", "items": BOOK})
        paths["/books/search"] = {"post": {"operationId": "search", "requestBody": body(**search), "responses": found}}
    return {"openapi": "3.0.3", "info": {"title": "Books", "version": "1"}, "paths": paths}


def books(made: JsonObject) -> World:
    toolkit, derived = add_derived(Toolkit.from_openapi(made))
    world = World(toolkit, state={key: {} for key in derived.made})
    for title, pages in (("Emma", 3), ("Dune", 9), ("Ulysses", 5)):
        call(world, "make", title=title, pages=pages, tags={"set": pages // 4, "own": title})
    return world


def call(world: World, tool: str, /, **args: Any) -> Any:
    outcome: Any = world.call({"name": tool, "args": args})["outcome"]
    assert outcome["rung"] == "derived"
    return outcome["result"]


def titles(world: World, tool: str, /, **args: Any) -> list[str]:
    return [each["title"] for each in call(world, tool, **args)]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"title": {"any_": ["Emma", "Dune"]}}, ["Emma", "Dune"]),
        ({"title": {"not_any_": ["Emma"]}}, ["Dune", "Ulysses"]),
        ({"title": {"like_": "%ul%"}}, ["Ulysses"]),
        ({"pages": {"$eq": 9}}, ["Dune"]),
        ({"pages": 5}, ["Ulysses"]),
        ({"tags": {"set": 1}}, ["Ulysses"]),
        ({"title": {"any_": None}}, ["Emma", "Dune", "Ulysses"]),
    ],
)
@pytest.mark.parametrize("name", ["books", "filter"])
def test_filters_in_an_object_have_operators_or_members(name: str, wanted: JsonObject, found: list[str]) -> None:
    fields = {"type": "object", "properties": {"title": {}, "pages": {}, "tags": {"type": "object"}}}
    world = books(document(search={name: fields}, query={"title_contains": {"type": "string"}}))
    assert titles(world, "search", **{name: wanted}) == found
    outcome: Any = world.call({"name": "search", "args": {name: {"mood": "merry"}}})["outcome"]
    assert outcome["filled"]["places"] == {"": "mood is not applied"}
    assert titles(world, "list", title_contains="UN") == ["Dune"], "a part of a text, as the name says"
    assert call(world, "count") == 3


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"sort": {"type": "string", "default": "TITLE_ASC"}}, ["Dune", "Emma", "Ulysses"]),
        ({"sort_by": {"default": "pages"}, "sort_order": {"default": "desc"}}, ["Dune", "Ulysses", "Emma"]),
        ({"order": {"type": "string", "default": "-created_at"}}, ["Ulysses", "Dune", "Emma"]),
        ({"limit": {"type": "integer"}, "cursor": {"type": "string"}}, ["Ulysses", "Dune", "Emma"]),
        ({"limit": {"type": "integer"}, "offset": {"type": "integer"}}, ["Emma", "Dune", "Ulysses"]),
    ],
)  # fmt: skip
def test_a_list_has_the_order_that_its_document_promises(query: JsonObject, found: list[str]) -> None:
    assert titles(books(document(query=query)), "list") == found


def test_the_order_of_one_list_is_that_of_the_others_unless_it_is_asked_for() -> None:
    order = {
        "sort_by": {"type": "string", "default": "created_at"},
        "sort_order": {"type": "string", "default": "desc"},
    }
    bare = {"sort_by": {"type": "string"}, "sort_order": {"type": "string"}}
    world = books(document(query=order, search=bare))
    assert titles(world, "search") == ["Ulysses", "Dune", "Emma"]
    assert titles(world, "search", sort_by="title") == ["Dune", "Emma", "Ulysses"]


@pytest.mark.parametrize(("name", "no", "yes"), [("get_or_create", False, True), ("if_exists", "raise", "do_nothing")])
def test_a_request_that_may_say_so_refuses_a_thing_twice_unless_it_says_so(name: str, no: Any, yes: Any) -> None:
    schema = {"title": {"type": "string"}, name: {}}
    made = document(**{name: {}})
    made["paths"]["/books"]["post"]["requestBody"] = body(name={"type": "string"}, **schema)
    for part in (made["paths"]["/books"]["post"]["responses"], made["paths"]["/books/{id}"]["get"]["responses"]):
        named = {**BOOK, "properties": {**BOOK["properties"], "name": {"type": "string"}}}  # type: ignore[dict-item]
        part["200"]["content"]["application/json"]["schema"] = named
    toolkit, derived = add_derived(Toolkit.from_openapi(made))
    world = World(toolkit, state={key: {} for key in derived.made})
    first = call(world, "make", name="a", title="one")
    assert "exists" in str(call(world, "make", name="a"))
    assert "exists" in str(call(world, "make", name="a", **{name: no}))
    again = call(world, "make", name="a", title="two", **{name: yes})
    assert (again["id"], again["title"]) == (first["id"], "one")


def test_a_name_that_a_path_finds_one_thing_by_is_that_of_one_thing() -> None:
    made = document()
    title = {"name": "title", "in": "path", "required": True, "schema": {"type": "string"}}
    read = {"operationId": "by_title", "parameters": [title], "responses": answer(BOOK)}
    made["paths"]["/books/title/{title}"] = {"get": read}
    world = books(made)
    first = call(world, "by_title", title="Emma")
    assert call(world, "make", title="Emma", pages=8) == first
    assert titles(world, "list") == ["Emma", "Dune", "Ulysses"]


def test_things_that_the_document_leaves_open_are_named_by_the_id_of_the_path() -> None:
    open_ = {"type": "object", "additionalProperties": {}}
    whole = {
        "type": "object",
        "properties": {"data": open_, "permissions": {"type": "object", "properties": {"read": {"type": "array"}}}},
    }
    sent = body(data=open_)
    item = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    listed = {"type": "object", "properties": {"data": {"type": "array", "items": open_}}}
    paths = {
        "/records": {
            "get": {"operationId": "list", "responses": answer(listed)},
            "post": {"operationId": "make", "requestBody": sent, "responses": answer(whole)},
        },
        "/records/{id}": {
            "parameters": [item],
            "get": {"operationId": "read", "responses": answer(whole)},
            "patch": {"operationId": "change", "requestBody": sent, "responses": answer(whole)},
        },
    }  # fmt: skip
    toolkit, derived = add_derived(
        Toolkit.from_openapi({"openapi": "3.0.3", "info": {"title": "R", "version": "1"}, "paths": paths})
    )
    world = World(toolkit, state={key: {} for key in derived.made})
    made = call(world, "make", data={"a": 1})["data"]
    call(world, "change", id=made["id"], data={"b": 2})
    assert call(world, "read", id=made["id"])["data"] == {"id": made["id"], "a": 1, "b": 2}
    assert call(world, "list")["data"] == [{"id": made["id"], "a": 1, "b": 2}]


WORD = {"type": "string"}


@pytest.mark.parametrize(
    ("query", "asked", "found"),
    [
        (["sort", "order"], {"sort": "pages", "order": "desc"}, ["Dune", "Ulysses", "Emma"]),
        (["order", "sort_by"], {"sort_by": "pages", "order": "asc"}, ["Emma", "Ulysses", "Dune"]),
        (["sort", "dir"], {"sort": "pages", "dir": "desc"}, ["Dune", "Ulysses", "Emma"]),
        (["sort"], {"sort": "pages,desc"}, ["Dune", "Ulysses", "Emma"]),
        (["sort"], {"sort": "-pages,title"}, ["Dune", "Ulysses", "Emma"]),
        (["sort"], {"sort": "desc"}, ["Ulysses", "Dune", "Emma"]),
    ],
)
def test_an_order_and_its_direction(query: list[str], asked: JsonObject, found: list[str]) -> None:
    assert titles(books(document(query=dict.fromkeys(query, WORD))), "list", **asked) == found


@pytest.mark.parametrize(
    "asked",
    [
        {"sort": "author.name"},
        {"sort": "desc(pages)"},
        {"sort": "title", "cursor": "abc"},
        {"sort": "title", "page": 0, "limit": 1},
        {"title": "Emma,Dune"},
        {"title": "Emma", "titles": "Dune"},
    ],
)
def test_an_order_page_or_filter_that_is_not_understood_is_not_dropped_in_silence(asked: JsonObject) -> None:
    query = dict.fromkeys(("sort", "cursor", "title", "titles"), WORD) | {"page": {}, "limit": {}}
    outcome: Any = books(document(query=query)).call({"name": "list", "args": asked})["outcome"]
    assert "" in outcome["filled"]["places"]
