"""A document alone: what is made is there, is found, changed and gone; what is not known is marked."""

from functools import reduce
from operator import getitem

import pytest

from gecko_graph import Toolkit, World
from gecko_graph.values.notes import notes_of

from .conftest import RULES
from .documents import (
    DJANGO,
    FASTAPI,
    JSONAPI,
    MCP,
    RAILS,
    SPRING,
    SWAGGER,
    TEXT,
    WHOLE,
    described,
    document,
    many,
    op,
    thing,
)  # fmt: skip


def ok(outcome):
    assert (outcome["status"], outcome["rung"]) == ("ok", "derived"), outcome
    assert outcome["evidence"] == "derived"
    assert not notes_of(outcome, "undocumented")
    return outcome["result"]


def missing(outcome):
    return (outcome["status"], outcome["rung"], outcome.get("http")) == ("error", "derived", {"status": 404})


def blanks(outcome):
    return set(outcome.get("filled", {}).get("places", {}))


HABITS = [
    (FASTAPI, "create_pet", {"name": "a"}, "read_pet", "pet_id", "delete_pet", "id", ()),
    (DJANGO, "task_create", {"title": "a"}, "task_read", "pk", "task_delete", "pk", ()),
    (RAILS, "create", {"post": {"title": "a"}}, "show", "id", "destroy", "id", ("post",)),
    (SPRING, "add", {"email": "a"}, "findById", "userId", "remove", "id", ()),
    (JSONAPI, "new_article", {"data": {"type": "articles"}}, "article", "id", "drop_article", "id", ("data",)),
    (SWAGGER, "park", {"plate": "a"}, "car", "plate", "leave", "plate", ()),
]


@pytest.mark.parametrize(("habit", "make", "args", "read", "by", "remove", "key", "where"), HABITS)
def test_what_was_made_is_read_removed_and_gone(living, habit, make, args, read, by, remove, key, where):
    call = living(habit)
    made = reduce(getitem, where, ok(call(make, **args)))
    arguments = call.world.toolkit[read].parameters["properties"][by]
    name = made[key] if arguments["type"] == "integer" else str(made[key])
    assert reduce(getitem, where, ok(call(read, **{by: name}))) == made
    call(remove, **{by: name})
    assert missing(call(read, **{by: name}))
    assert missing(call(remove, **{by: name}))


def test_an_update_changes_what_is_sent_and_null_is_not_absent(living):
    call = living(FASTAPI)
    assert ok(call("create_pet", name="Flo", tag="cat"))["id"] == 1
    assert ok(call("update_pet", pet_id=1, name="Flora"))["tag"] == "cat"
    assert ok(call("update_pet", pet_id=1, tag=None))["tag"] is None
    assert "/tag" not in blanks(call("read_pet", pet_id=1))
    assert ok(call("replace_pet", pet_id=1, name="Rex"))["tag"] is None
    assert "/tag" in blanks(call("read_pet", pet_id=1))  # nothing is known of it any more
    assert missing(call("update_pet", pet_id=9, name="x"))
    ok(call("delete_pet", pet_id=1))
    assert ok(call("create_pet", name="b"))["id"] == 2, "ids are not given again"


def test_lists_are_filtered_ordered_paged_and_counted(living):
    call = living(FASTAPI)
    for name, status in (("Flo", "new"), ("Rex", "sold"), ("Ada", "sold")):
        ok(call("create_pet", name=name, status=status))

    def names(**asked):
        return [each["name"] for each in ok(call("list_pets", **asked))]

    assert names() == ["Flo", "Rex", "Ada"]
    assert names(status="sold") == ["Rex", "Ada"]
    assert names(sort="-name") == ["Rex", "Flo", "Ada"]
    assert names(sort="name:asc", limit=1, offset=1) == ["Flo"]
    assert names(sort="NAME_DESC") == ["Rex", "Flo", "Ada"]
    assert names(sort="CREATED_DESC") == ["Ada", "Rex", "Flo"]
    assert names(q="fl") == ["Flo"]
    assert ok(call("count_pets")) == 3
    assert [each["name"] for each in ok(call("search_pets", status="new"))] == ["Flo"]
    assert ok(call("read_pet_by_name", name="Ada"))["id"] == 3
    assert missing(call("read_pet_by_name", name="Nix"))
    for whole in ({}, {"limit": 3}, {"limit": 1, "sort": "name"}, {"limit": 1, "offset": 3}):
        assert "" not in blanks(call("list_pets", **whole)), whole
    for part in ({"limit": 1}, {"offset": 1}, {"limit": 1, "sort": "id"}):  # ids are made up
        assert "nothing tells the order" in call("list_pets", **part)["filled"]["places"][""], part


def test_what_belongs_to_a_thing_needs_it_and_goes_with_it(living):
    call = living(FASTAPI)
    ok(call("create_pet", name="Flo"))
    ok(call("create_pet", name="Rex"))
    visit = ok(call("add_visit", pet_id=1, vet="V"))
    assert ok(call("list_visits", pet_id=1)) == {"items": [visit], "total": 1}
    assert ok(call("list_visits", pet_id=2))["items"] == []
    assert missing(call("add_visit", pet_id=9, vet="V"))
    ok(call("delete_pet", pet_id=1))
    assert missing(call("read_visit", pet_id=1, visit=visit["id"]))


def test_other_habits_of_filters_pages_attributes_and_conflicts(living):
    call = living(DJANGO)
    ok(call("task_create", title="a"))
    assert "" in blanks(call("task_list", colour="red")), "a filter that nothing explains"
    assert "" not in blanks(call("task_list", done=True))
    page = ok(call("task_list", page=1, page_size=1))
    assert (page["count"], len(page["results"])) == (1, 1)
    call = living(JSONAPI)
    sent = {"data": {"type": "articles", "attributes": {"title": "t"}}}
    key = ok(call("new_article", **sent))["data"]["id"]
    changed = {"data": {"type": "articles", "attributes": {"text": "x"}}}
    assert ok(call("change_article", id=key, **changed))["data"]["attributes"] == {"title": "t", "text": "x"}
    assert ok(call("articles"))["meta"] == {"total": 1}
    for habit, make, args in ((SWAGGER, "park", {"plate": "a"}), (SPRING, "add", {"email": "a"})):
        call = living(habit)
        ok(call(make, **args))
        again = call(make, **args)  # its key, or a documented conflict
        assert (again["status"], again["http"]) == ("error", {"status": 409})


def test_single_things_and_puts_that_make(living):
    call = living(FASTAPI)
    assert call("read_settings")["rung"] == "schema"  # nothing has set them
    ok(call("write_settings", theme="dark"))
    assert ok(call("read_settings"))["theme"] == "dark"
    assert missing(call("read_label", label="x"))
    ok(call("put_label", label="x", color="red"))
    ok(call("put_label", label="x", color="blue"))
    assert ok(call("read_label", label="x")) == {"label": "x", "color": "blue"}


def test_a_write_of_unknown_effect_leaves_its_thing_and_the_list_in_doubt(living):
    call = living(FASTAPI)
    ok(call("create_pet", name="Flo"))
    ok(call("create_pet", name="Rex"))
    assert "" in blanks(call("sell_pet", pet_id=1))  # what is known, in doubt
    for outcome in (call("read_pet", pet_id=1), call("list_pets")):
        assert ok(outcome)
        assert "sell_pet may have changed it" in outcome["filled"]["places"][""]
    assert "" not in blanks(call("read_pet", pet_id=2))
    assert missing(call("sell_pet", pet_id=9))


CUSTOMER = thing(id=WHOLE, name=TEXT)
ORDER = thing(id=WHOLE, customerId=WHOLE)
SHOP = document(
    {
        "/customers": {"post": op("sign_up", body=thing(name=TEXT), gives=CUSTOMER)},
        "/customers/{id}": {"get": op("customer", gives=CUSTOMER), "delete": op("leave")},
        "/orders": {
            "get": op("orders", gives=many(ORDER)),
            "post": op("order", body=thing(customerId=WHOLE), gives=ORDER),
        },
        "/orders/{id}": {"get": op("one_order", gives=ORDER), "delete": op("cancel")},
    }
)


def test_what_names_a_removed_thing_is_in_doubt_until_it_is_removed_too(living):
    call = living(SHOP)
    for name in ("Ada", "Bob"):
        customer = ok(call("sign_up", name=name))["id"]
        ok(call("order", customerId=customer))
    ok(call("leave", id="1"))
    assert "leave may have changed it" in call("one_order", id="1")["filled"]["places"][""]
    assert "" in blanks(call("orders"))
    assert "" not in blanks(call("one_order", id="2"))
    ok(call("cancel", id="1"))
    assert "" not in blanks(call("orders"))


def test_tools_of_an_mcp_server_live_by_their_names(living):
    call = living(MCP)
    where = {"owner": "o", "repo": "r"}
    assert ok(call("create_issue", **where, title="T"))["number"] == 1
    ok(call("update_issue", **where, issue_number=1, state="closed"))
    assert ok(call("list_issues", **where))["issues"] == [{"number": 1, "title": "T", "state": "closed"}]
    assert ok(call("list_issues", owner="o", repo="other"))["issues"] == []
    assert blanks(call("delete_issue", **where, issue_number=1)) == {"/ok"}
    assert missing(call("get_issue", **where, issue_number=1))
    assert call.world.toolkit["get_issue"].derived.data["evidence"]["by"] == "name"


@pytest.mark.parametrize(
    ("text", "found"), [("A part of its name.", 1), ("Names that contain this", 1), ("Its name.", 0)]
)
def test_a_filter_by_a_part_of_a_text_is_one_if_the_document_says_so(living, text, found):
    call = living(described(text))
    ok(call("make", name="Flora"))
    assert len(ok(call("all", name="flo"))) == found
    assert len(ok(call("all", name="Flora"))) == 1


def test_a_value_that_a_things_schema_does_not_list_is_not_kept(living):
    states = {"type": "string", "enum": ["open", "sold"]}
    pet = thing(["id", "name"], id=WHOLE, name=TEXT, status=states)
    given = described()
    given["paths"]["/pets"]["post"] = op("make", body=thing(name=TEXT), gives=pet)
    given["paths"]["/pets/{id}"] = {
        "get": op("one", gives=pet),
        "patch": op("change", body=thing(status=TEXT), gives=pet),
        "parameters": given["paths"]["/pets/{id}"]["parameters"],
    }
    call = living(given)
    key = str(ok(call("make", name="Flo"))["id"])
    for sent, kept in (("sold", "sold"), ("", "sold"), ("open", "open")):
        ok(call("change", id=key, status=sent))
        assert ok(call("one", id=key))["status"] == kept


def test_an_object_of_things_by_their_keys_is_a_list(living):
    tag = thing(["uuid", "title"], uuid=TEXT, title=TEXT)
    by_key, made = {"type": "object", "additionalProperties": tag}, thing(uuid=TEXT)
    there = {
        "/tags": {"get": op("all", gives=by_key)},
        "/tag": {"post": op("make", body=thing(["title"], title=TEXT), gives=made)},
        "/tag/{uuid}": {"get": op("one", gives=tag), "delete": op("drop", status="204")},
    }  # fmt: skip
    call = living(document(there))
    key = ok(call("make", title="a"))["uuid"]
    assert ok(call("all")) == {key: {"uuid": key, "title": "a"}}
    ok(call("drop", uuid=key))
    assert ok(call("all")) == {}


def test_a_whole_collection_is_emptied(living):
    clear = {"operationId": "clear", "responses": {"204": {"description": ""}}}
    there = SWAGGER["paths"]["/cars"] | {"delete": clear}
    call = living({**SWAGGER, "paths": {**SWAGGER["paths"], "/cars": there}})
    ok(call("park", plate="a"))
    ok(call("clear"))
    assert ok(call("cars")) == []
    assert missing(call("car", plate="a"))


HOSTILE = [
    {"m": {"type": "string", "default": "{{ 1 + 1 }}"}},
    {"m": {"enum": ["{{ x }}", "b"]}},
    {"{{ args.name }}": TEXT},
    {"for_each": TEXT, "cases": TEXT, "blank": TEXT, "known": TEXT},
    {'it\'s "}}"': TEXT},
    {"m": {"type": "object", "default": {"a": {"b": {}}}}},
]


@pytest.mark.parametrize("fields", HOSTILE)
@pytest.mark.parametrize("envelope", ["cases", "{{ 1 }}", "for_each"])
def test_texts_of_a_document_are_data(living, fields, envelope):
    pet = thing(["id", "name", *fields], id=WHOLE, name=TEXT, **fields)
    everything = {
        "get": op("all", gives=thing([envelope], **{envelope: many(pet)})),
        "post": op("make", body=thing(["name"], name=TEXT, **fields), gives=pet),
    }
    call = living(document({"/pets": everything, "/pets/{id}": {"get": op("one", gives=pet)}}))
    made = ok(call("make", name="{{ 1 + 1 }}"))
    assert made["name"] == "{{ 1 + 1 }}"
    assert set(made) == {"id", "name", *fields}
    assert ok(call("all")) == {envelope: [made]}
    assert ok(call("one", id="1")) == made


def test_an_order_by_several_members_and_a_name_in_the_place_of_an_id(living):
    box = thing(["id", "name"], id=TEXT, name=TEXT, size=WHOLE)
    listed = op("list_boxes", gives=many(box))
    by = {"type": "array", "items": TEXT, "default": ["id"]}  # as Airflow 3 has it
    listed["parameters"] = [{"name": "order_by", "in": "query", "schema": by}]
    made = op("make_box", body=thing(["name"], name=TEXT, size=WHOLE), gives=box)
    where = [{"name": "box_name_or_id", "in": "path", "required": True, "schema": TEXT}]  # as ZenML has it
    one = {"get": op("read_box", gives=box), "delete": op("drop_box"), "parameters": where}
    of = {"/boxes": {"get": listed, "post": made}, "/boxes/{box_name_or_id}": one}
    call = living({"openapi": "3.1.0", "info": {"title": "boxes", "version": "1"}, "paths": of})
    ids = {name: ok(call("make_box", name=name, size=size))["id"] for name, size in (("a", 1), ("c", 1), ("b", 2))}
    assert [each["name"] for each in ok(call("list_boxes", order_by=["-size", "name"]))] == ["b", "a", "c"]
    assert ok(call("read_box", box_name_or_id="c")) == ok(call("read_box", box_name_or_id=ids["c"]))
    assert ok(call("drop_box", box_name_or_id="c")) is None
    assert missing(call("read_box", box_name_or_id=ids["c"]))
    assert missing(call("read_box", box_name_or_id="c"))


def test_a_world_of_a_document_keeps_what_is_made_and_marks_a_list_of_which_it_knows_a_part():
    world, other = (World(Toolkit.from_openapi(FASTAPI), context=RULES, derive=each) for each in (True, False))

    def call(tool, world=world, /, **args):
        return world.call({"name": tool, "args": args})["outcome"]

    assert call("list_pets")["rung"] == "schema"  # nothing is known
    made = ok(call("create_pet", name="a"))
    listed = call("list_pets")
    assert (ok(listed), listed["filled"]["places"][""]) == ([made], "there may be others")
    assert ok(call("read_pet", pet_id=made["id"])) == made
    assert call("read_pet", pet_id=99)["rung"] == "schema"  # it may be there
    assert call("create_pet", other, name="a")["rung"] == "schema"
