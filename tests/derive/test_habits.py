"""Habits of services: merge patches, lists of changes, batches, HEAD, restoring, envelopes, defaults in a wrapper."""

import pytest

from .documents import TEXT, WHOLE, document, many, op, thing
from .test_living import blanks, missing, ok

ADDRESS = thing(city=TEXT, geo=thing(lat=WHOLE, lng=WHOLE))
GUEST = thing(["id"], id=WHOLE, name=TEXT, address=ADDRESS, beds={"type": "integer", "default": 1})
GUEST_IN = thing(name=TEXT, address=ADDRESS, beds={"type": "integer", "default": 1})
CHANGES = many(thing(["op", "path"], op=TEXT, path=TEXT, value={}))


def guests(gives=GUEST, body=GUEST_IN, **more):
    """Return a document of guests; `more` holds operations by `method_path`, with `_` for the collection itself."""
    there = {
        "/guests": {"get": op("list", gives=many(GUEST)), "post": op("make", body=body, gives=gives)},
        "/guests/{id}": {"get": op("read", gives=gives), "delete": op("remove", status="204")},
    }
    for name, operation in more.items():
        method, _, path = name.partition("_")
        there.setdefault(f"/guests/{path}".replace("id", "{id}").replace("__", "/"), {})[method] = operation
    return document(there)


def patching(media, body):
    operation = op("change", gives=GUEST)
    return operation | {"requestBody": {"required": True, "content": {f"application/{media}": {"schema": body}}}}


def test_a_merge_patch_merges_objects_at_any_depth(living):
    call = living(guests(patch_id=patching("merge-patch+json", GUEST_IN)))
    ok(call("make", name="A", address={"city": "Ulm", "geo": {"lat": 1, "lng": 2}}))
    changed = ok(call("change", id="1", address={"geo": {"lat": 3}}))
    assert changed["address"] == {"city": "Ulm", "geo": {"lat": 3, "lng": 2}}
    assert ok(call("read", id="1")) == changed


def test_a_list_of_changes_leaves_the_thing_in_doubt(living):
    call = living(guests(patch_id=patching("json-patch+json", CHANGES)))
    ok(call("make", name="A"))
    changes = [{"op": "replace", "path": "/name", "value": "B"}]
    assert "" in blanks(call("change", id="1", body=changes)) & blanks(call("read", id="1"))


@pytest.mark.parametrize(("path", "body"), [("batch", many(GUEST_IN)), ("purge", thing(ids=many(WHOLE)))])
def test_after_a_write_of_several_things_all_are_in_doubt_and_so_are_missing_ones(living, path, body):
    call = living(guests(**{f"post_{path}": op("several", body=body, status="204")}))
    ok(call("make", name="A"))
    call("several", **({"body": [{"name": "B"}]} if path == "batch" else {"ids": [1]}))
    for read in (call("list"), call("read", id="1")):
        assert "several may have changed it" in read["filled"]["places"][""]
    lost = call("read", id="2")
    assert missing(lost)
    assert "" in blanks(lost)


def test_a_login_and_head_leave_no_doubt_and_what_was_removed_may_be_restored(living):
    more = {"head_id": op("look", status="200"), "post_id__restore": op("restore", gives=GUEST)}
    call = living(guests(post_login=op("login", body=thing(scopes=many(TEXT)), gives=thing(token=TEXT)), **more))
    ok(call("make", name="A"))
    call("login", scopes=["all"])  # a list in the body of another write
    assert ok(call("look", id="1")) is None
    assert missing(call("look", id="2"))
    assert not blanks(call("read", id="1"))
    ok(call("remove", id="1"))
    assert not blanks(call("read", id="1"))
    assert call("restore", id="1")["rung"] == "schema"
    lost = call("read", id="1")
    assert (missing(lost), "" in blanks(lost)) == (True, True)


def test_an_envelope_holds_the_thing_and_filters_with_two_underscores_are_filters(living):
    envelope = thing(["success", "data"], success={"type": "boolean"}, data=GUEST)
    there = guests(gives=envelope)
    there["paths"]["/guests"]["get"] = op("list", gives=many(GUEST), query=[("name__icontains", "string")])
    call = living(there)
    made = ok(call("make", name="Ada"))
    assert made["data"] == {"id": 1, "name": "Ada", "beds": 1}
    assert ok(call("read", id="1"))["data"] == made["data"]
    ok(call("make", name="Bo"))
    assert [each["name"] for each in ok(call("list", name__icontains="AD"))] == ["Ada"]


def test_a_wrapped_body_has_defaults_and_a_put_of_it_replaces(living):
    inside = thing(["name"], **GUEST_IN["properties"])
    wrapped = thing(["guest"], guest=inside)
    given = thing(guest=GUEST)
    call = living(guests(gives=given, body=wrapped, put_id=op("put", body=wrapped, gives=given)))
    assert ok(call("make", guest={"name": "A", "beds": 3}))["guest"]["beds"] == 3
    assert ok(call("put", id="1", guest={"name": "B"}))["guest"] == {"id": 1, "name": "B", "beds": 1}


def test_a_put_that_documents_201_makes_a_thing_and_replaces_it(living):
    put = op("put", body=thing(["name"], **GUEST_IN["properties"]), gives=GUEST, errors=())
    put["responses"]["201"] = put["responses"]["200"]
    made = guests(put_id=put)
    made["paths"]["/guests/{id}"]["parameters"][0]["schema"] = WHOLE
    call = living(made)
    assert ok(call("put", id=7, name="A", address={"city": "Ulm"}))["name"] == "A"
    assert ok(call("put", id=7, name="B")) == {"id": 7, "name": "B", "beds": 1}
    assert len(ok(call("list"))) == 1


@pytest.mark.parametrize("variable", ["hotelId", "id"])
def test_things_made_below_a_parent_are_those_of_the_flat_collection(living, variable):
    room = thing(["id"], id=WHOLE, hotelId=TEXT, name=TEXT)
    hotel = thing(["id"], id=TEXT, name=TEXT)
    there = {
        "/hotels": {"get": op("hotels", gives=many(hotel)), "post": op("build", body=thing(name=TEXT), gives=hotel)},
        f"/hotels/{{{variable}}}": {"get": op("hotel", gives=hotel)},
        f"/hotels/{{{variable}}}/rooms": {
            "get": op("hotel_rooms", gives=many(room)),
            "post": op("furnish", body=thing(name=TEXT), gives=room),
        },
        "/rooms": {"get": op("rooms", gives=many(room), query=[("hotelId", "string")])},
        "/rooms/{id}": {
            "get": op("room", gives=room),
            "patch": op("rename", body=thing(name=TEXT), gives=room),
            "delete": op("close", status="204"),
        },
    }
    call = living(document(there))
    one, other = (ok(call("build", name=name))["id"] for name in "ab")
    first = ok(call("furnish", **{variable: one}, name="x"))
    ok(call("furnish", **{variable: other}, name="y"))
    assert first == {"id": 1, "hotelId": one, "name": "x"} == ok(call("room", id="1"))
    ok(call("rename", id="1", name="z"))
    assert [each["name"] for each in ok(call("hotel_rooms", **{variable: one}))] == ["z"]
    assert [each["name"] for each in ok(call("rooms", hotelId=other))] == ["y"]
    ok(call("close", id="1"))
    assert ok(call("hotel_rooms", **{variable: one})) == []
    assert missing(call("furnish", **{variable: "none"}, name="x"))


def test_a_write_of_what_nothing_shows_leaves_the_thing_above_in_doubt(living):
    made = guests()
    made["paths"] |= document({"/guests/{id}/keys/{key}": {"delete": op("lock", status="204")}})["paths"]
    call = living(made)
    ok(call("make", name="A"))
    call("lock", id="1", key="k")
    assert "lock may have changed it" in call("read", id="1")["filled"]["places"][""]


LINE = thing(id=WHOLE, sku=TEXT)
ORDER = thing(["id"], id=WHOLE, name=TEXT, lines=many(LINE))
ORDERS = document(
    {
        "/orders": {
            "get": op("list", gives=many(ORDER)),
            "post": op("make", body=thing(name=TEXT, lines=many(thing(sku=TEXT))), gives=ORDER),
        },
        "/orders/{id}": {"get": op("read", gives=ORDER), "delete": op("drop", status="204")},
        "/orders/{id}/lines": {
            "get": op("lines", gives=many(LINE)), "post": op("add", body=thing(sku=TEXT), gives=LINE),
        },
        "/orders/{id}/lines/{line}": {"get": op("line", gives=LINE), "delete": op("take", status="204")},
    }
)  # fmt: skip


def test_a_thing_that_shows_the_things_below_it_is_in_doubt_after_their_changes(living):
    call = living(ORDERS)
    assert ok(call("make", name="A")) == {"id": 1, "name": "A"}
    assert not blanks(call("read", id="1"))
    ok(call("add", id="1", sku="x"))
    assert "" in blanks(call("read", id="1"))
    assert not blanks(call("lines", id="1"))
    assert ok(call("lines", id="1")) == [{"id": 1, "sku": "x"}]
    ok(call("make", name="B", lines=[{"sku": "y"}]))
    assert not blanks(call("read", id="2"))
    assert "" in blanks(call("lines", id="2"))
    call("drop", id="1")
    assert [each["name"] for each in ok(call("list"))] == ["B"]
    assert not blanks(call("list"))


PROJECT = thing(["id"], id=TEXT, name=TEXT)


@pytest.mark.parametrize("prefix", ["", "/api/v1"])
@pytest.mark.parametrize(
    ("field", "shape"), [("project_id", TEXT), ("idProject", TEXT), ("project", TEXT), ("project", PROJECT)]
)
def test_a_things_parent_is_named_in_several_ways(living, prefix, field, shape):
    task, new = thing(["id"], id=WHOLE, name=TEXT, **{field: shape}), thing(["name"], name=TEXT)
    there = {
        "/projects": {"post": op("begin", body=new, gives=PROJECT)},
        "/projects/{id}": {"get": op("project", gives=PROJECT), "delete": op("end", status="204")},
        "/projects/{id}/tasks": {"get": op("tasks", gives=many(task)), "post": op("add", body=new, gives=task)},
        "/tasks/{id}": {"get": op("task", gives=task), "patch": op("change", body=new, gives=task)},
    }
    call = living(document({f"{prefix}{path}": one for path, one in there.items()}))
    one, other = (ok(call("begin", name=name))["id"] for name in "ab")
    made = ok(call("add", id=one, name="x"))
    assert made[field] == ({"id": one} if shape is PROJECT else one)
    assert ok(call("task", id="1")) == made
    ok(call("change", id="1", name="y"))
    assert [[each["name"] for each in ok(call("tasks", id=at))] for at in (one, other)] == [["y"], []]
    ok(call("end", id=one))
    assert "" in blanks(call("task", id="1"))


def test_a_list_below_a_parent_is_a_part_of_the_flat_collection_if_its_things_name_the_parent(living):
    task = thing(["id"], id=WHOLE, name=TEXT, project_id=TEXT)
    there = {
        "/projects": {"post": op("begin", body=thing(name=TEXT), gives=PROJECT)},
        "/projects/{id}": {"get": op("project", gives=PROJECT)},
        "/projects/{id}/tasks": {"get": op("tasks", gives=many(task))},
        "/tasks": {"post": op("add", body=thing(name=TEXT, project_id=TEXT), gives=task)},
        "/tasks/{id}": {"get": op("task", gives=task)},
    }
    call = living(document(there))
    one, other = (ok(call("begin", name=name))["id"] for name in "ab")
    ok(call("add", name="x", project_id=one))
    ok(call("add", name="free"))
    assert [[each["name"] for each in ok(call("tasks", id=at))] for at in (one, other)] == [["x"], []]


STATUS = {"enum": ["open", "cancelled", "in_progress", "completed", "inactive", "active"]}


@pytest.mark.parametrize(
    ("verb", "field", "shape", "value"),
    [
        ("cancel", "status", STATUS, "cancelled"),
        ("cancellation", "status", STATUS, "cancelled"),
        ("lifecycle/deactivate", "status", STATUS, "inactive"),
        ("activate", "status", STATUS, "active"),
        ("archive", "archived", {"type": "boolean"}, True),
        ("unlock", "isLocked", {"type": "boolean"}, False),
        ("close", "open", {"type": "boolean"}, False),
        ("ship", "status", STATUS, None),
        ("notes", "note", TEXT, None),
    ],
)
def test_a_verb_below_an_item_sets_what_it_says_and_leaves_the_rest_in_doubt(living, verb, field, shape, value):
    order = thing(["id"], id=WHOLE, name=TEXT, **{field: shape})
    there = {
        "/orders": {"post": op("make", body=thing(name=TEXT), gives=order)},
        "/orders/{id}": {"get": op("read", gives=order)},
        f"/orders/{{id}}/{verb}": {"post": op("act", status="204")},
    }
    call = living(document(there))
    ok(call("make", name="a"))
    call("act", id="1")
    read = call("read", id="1")
    assert (ok(read).get(field), blanks(read)) == (value, {""})
    assert missing(call("act", id="7"))
