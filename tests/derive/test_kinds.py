"""What each operation is taken for, in documents of several habits, and why; `unknown` if a document does not tell."""

import pytest

from gecko_graph import Toolkit
from gecko_graph.derive.kinds import find_kinds
from gecko_graph.derive.paths import Paths
from gecko_graph.tools.function_dicts import tool_descriptions

from . import documents
from .documents import MCP, PET_IN, PET_OUT, TEXT, document, many, op, thing


def kinds_of(toolkit):
    return {name: kind.word for name, kind in find_kinds(Paths(toolkit)).items()}


FASTAPI = {
    "list_pets": "list", "create_pet": "create", "count_pets": "count", "search_pets": "list",
    "read_pet_by_name": "read", "read_pet": "read", "update_pet": "update", "replace_pet": "replace",
    "delete_pet": "remove", "sell_pet": "action", "list_visits": "list", "add_visit": "create", "read_visit": "read",
    "read_settings": "read one", "write_settings": "update one", "read_label": "read", "put_label": "upsert",
}  # fmt: skip
DJANGO = {
    "task_list": "list", "task_create": "create", "task_read": "read", "task_replace": "replace",
    "task_update": "update", "task_delete": "remove",
}  # fmt: skip
RAILS = {"index": "list", "create": "create", "show": "read", "update": "update", "destroy": "remove"}
SPRING = {
    "findAll": "list", "add": "create", "findById": "read", "edit": "update", "remove": "remove", "findByEmail": "list"
}  # fmt: skip
JSONAPI = {
    "articles": "list", "new_article": "create", "article": "read", "change_article": "update", "drop_article": "remove"
}  # fmt: skip
SWAGGER = {"cars": "list", "park": "create", "car": "read", "leave": "remove"}


@pytest.mark.parametrize("habit", ["FASTAPI", "DJANGO", "RAILS", "SPRING", "JSONAPI", "SWAGGER"])
def test_operations_have_a_kind_in_many_habits(habit):
    assert kinds_of(Toolkit.from_openapi(getattr(documents, habit))) == globals()[habit]


def test_tools_without_paths_are_placed_by_their_names():
    found = find_kinds(Paths(Toolkit.from_tools(tool_descriptions(MCP, where="mcp"))))
    assert {name: kind.word for name, kind in found.items()} == {
        "create_issue": "create", "get_issue": "read", "update_issue": "update", "list_issues": "list",
        "delete_issue": "remove",
    }  # fmt: skip
    assert all("name" in kind.why for kind in found.values())


@pytest.mark.parametrize(
    ("put", "body"), [("replace", thing(["name"], name=TEXT)), ("update", PET_IN | {"required": []})]
)
def test_a_put_replaces_if_it_requires_something(put, body):
    each = {"get": op("read", gives=PET_OUT), "put": op("x", body=body, gives=PET_OUT)}
    made = {"post": op("make", body=PET_IN, gives=PET_OUT)}
    toolkit = Toolkit.from_openapi(document({"/pets": made, "/pets/{id}": each}))
    assert kinds_of(toolkit)["x"] == put


IDS, PETS = thing(ids=many(TEXT)), {"/pets/{id}": {"get": op("read", gives=PET_OUT)}}


@pytest.mark.parametrize(
    ("path", "method", "operation", "word"),
    [
        ("/search", "post", op("x", body=thing(q=TEXT), gives=TEXT), "view"),
        ("/me", "get", op("x", gives=PET_OUT), "view"),
        ("/a/{id}", "delete", op("x"), "unknown"),  # nothing makes or shows one
        ("/a/{id}", "patch", op("x", body=PET_IN, gives=PET_OUT), "unknown"),
        ("/a/{id}/send", "post", op("x"), "action"),
        # a verb behind an item is an action whatever it answers, and one that only looks leaves nothing open
        *((path, "post", op("x", gives=PET_OUT), "action") for path in ("/pets/{id}/cancel", "/pets/{id}:cancel")),
        *((f"/pets/{{id}}/{verb}", "post", op("x", gives=TEXT), "view")
          for verb in ("query", "search", "get", "get_schedule", "count", "validate")),
        ("/pets/{id}/delete", "post", op("x", body=IDS), "action"),  # removes what belongs to it
        ("/pets/{id}/delete", "post", op("x"), "remove"),
    ],
)  # fmt: skip
def test_operations_of_other_habits(path, method, operation, word):
    more = {} if path.startswith("/a/") else PETS
    assert kinds_of(Toolkit.from_openapi(document({path: {method: operation}, **more})))["x"] == word


def test_odata_keys_and_versions_in_a_path_are_no_obstacle():
    everything = {"get": op("all", gives=thing(value=many(PET_OUT)))}
    there = {"/odata/v4.0/Customers": everything, "/odata/v4.0/Customers({id})": {"get": op("one", gives=PET_OUT)}}
    assert kinds_of(Toolkit.from_openapi(document(there))) == {"all": "list", "one": "read"}
