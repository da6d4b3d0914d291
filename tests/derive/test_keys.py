"""The key of a thing that is made: its form, who gives it, and that changes keep it."""

import re

import pytest

from .documents import PET_IN, TEXT, WHOLE, described, document, op, thing
from .test_living import ok


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        ({"type": "string", "pattern": "^VA[0-9a-fA-F]{32}$"}, r"VA[0-9a-f]{32}"),
        ({"type": "string", "format": "uuid"}, r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
        ({"type": "string", "pattern": "(?i)^[0-9a-f]{8}-[1-5][0-9a-f]{3}$"}, r"[0-9a-f]{8}-1[0-9a-f]{3}"),
        ({"type": "string"}, r"pet_\w+"),
        ({"type": "integer"}, r"1"),
    ],
)
def test_new_keys_have_the_form_that_the_schema_wants(living, schema, form):
    made = ok(living(described(key=schema))("make", name="Flo"))
    assert re.fullmatch(form, str(made["id"]))


@pytest.mark.parametrize(
    "path",
    [
        {"type": "string", "format": "uuid"},
        {"type": "string", "pattern": "^bank_[a-zA-Z0-9]+$"},
        {"type": "string", "pattern": "^[A-F0-9]{24}$"},
        {"type": "string", "pattern": r"^\d{4,}-b$"},
    ],
)
def test_a_thing_that_was_made_is_found_by_a_path_that_alone_gives_the_form_of_keys(living, path):
    given = described(key=TEXT)
    given["paths"]["/pets/{id}"]["parameters"][0]["schema"] = path
    call = living(given)
    keys = [ok(call("make", name=name))["id"] for name in ("Flora", "Rex")]
    assert [ok(call("one", id=key))["name"] for key in keys] == ["Flora", "Rex"]
    given["paths"]["/pets/{id}"]["parameters"][0]["schema"] = {"type": "integer"}
    call = living(given)
    key = ok(call("make", name="Flora"))["id"]  # figures: the path wants a number, and the thing shows a text
    assert (type(key), ok(call("one", id=int(key)))["name"]) == (str, "Flora")


@pytest.mark.parametrize(("schema", "is_sent_whole", "other"), [(TEXT, False, "other"), (WHOLE, True, 77)])
def test_a_change_that_sends_another_id_changes_no_id(living, schema, is_sent_whole, other):
    pet = thing(() if is_sent_whole else ["id", "name"], name=TEXT, id=schema)
    given = described(key=schema)
    given["paths"]["/pets/{id}"]["put"] = op("change", body=pet, gives=pet)
    if is_sent_whole:  # the body is the thing that was sent to make it
        given["paths"]["/pets/{id}"]["parameters"][0]["schema"] = WHOLE
        given["paths"]["/pets"]["post"] = op("make", body=pet, gives=pet)
    call = living(given)
    key = ok(call("make", name="Flora"))["id"]
    ok(call("change", id_path=key, id_body=other, name="Rex"))
    assert ok(call("all")) == [{"id": key, "name": "Rex"}] == [ok(call("one", id=key))]


@pytest.mark.parametrize(
    ("about", "answers", "makes"),
    [
        ("Update a team.", {"200", "404"}, False),
        ("Update a team", {"200"}, False),
        ("Bulk mutate teams", {"200"}, False),
        ("Create or update a team.", {"200", "404"}, True),
        ("Add a team", {"204", "404"}, True),
        ("", {"201", "404"}, True),
        ("", {"200"}, True),
        ("", {"200", "404"}, False),
    ],
)
def test_a_put_makes_a_thing_if_the_document_says_so(living, about, answers, makes):
    team = thing(["slug", "name"], slug=TEXT, name=TEXT)
    put = op("team", body=thing(name=TEXT), gives=team) | {"description": about}
    put["responses"] = {code: put["responses"]["200"] if code < "300" else {"description": ""} for code in answers}
    member = thing(["id"], id=TEXT)
    there = {
        "/teams/{slug}": {"put": put, "get": op("one", gives=team)},
        "/teams/{slug}/members": {"post": op("join", gives=member)},
        "/teams/{slug}/members/{id}": {"get": op("member", gives=member)},
    }
    call = living(document(there))
    assert ("teams" in call.world.state) is makes  # else nothing is known of teams, and no member is refused
    assert call("join", slug="a")["status"] == ("error" if makes else "ok")
    if makes:
        ok(call("team", slug="a", name="A"))
        assert ok(call("one", slug="a")) == {"slug": "a", "name": "A"}


def test_a_name_is_no_key_if_the_path_wants_another_form(living):
    given = described(key=TEXT)  # and nothing is said of the answer to what is made
    given["paths"]["/pets"]["post"]["responses"]["200"] = {"description": ""}
    given["paths"]["/pets/{id}"]["parameters"][0]["schema"] = {"type": "string", "pattern": "^pet_[0-9]+$"}
    call = living(given)
    call("make", name="Flora")
    (made,) = ok(call("all"))
    assert (made["name"], ok(call("one", id=made["id"]))) == ("Flora", made)
    content = {"application/json": {"schema": thing(data=PET_IN)}}  # a body that is optional
    given = described(key=TEXT)
    given["paths"]["/pets"]["post"]["requestBody"] = {"content": content}
    assert ok(living(given)("make"))["id"]
