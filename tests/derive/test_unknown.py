"""A start of which nothing is known, real reads, states of another shape; and that nothing real is refused."""

from dataclasses import replace

import pytest
from langchain_core.messages import HumanMessage

from gecko_graph import Rung, Toolkit, World, derive_contracts
from gecko_graph.derive.contracts import add_derived
from gecko_graph.world.provenance import trace_with
from gecko_graph.world.rung import Answer, Pass
from gecko_graph.world.shown import without_marks
from tests.doubts import values

from . import documents
from .conftest import RULES
from .documents import FASTAPI, TEXT, WHOLE, many, op, thing
from .test_living import blanks, missing, ok


def test_only_what_was_made_changed_or_removed_is_known_if_nothing_was(living):
    call = living(FASTAPI, state={})
    assert call("read_pet", pet_id=5)["rung"] == "schema"
    call("delete_pet", pet_id=5)
    assert missing(call("read_pet", pet_id=5))
    outcome = call("update_pet", pet_id=6, tag="t")
    assert (ok(outcome)["tag"], blanks(outcome)) == ("t", {"/name", "/status", "/made_at"})
    assert ok(call("read_pet", pet_id=6))["tag"] == "t"
    made = ok(call("create_pet", name="A"))
    assert made["id"] > 1000, "else it may be the id of a thing that is there"
    assert ok(call("read_pet", pet_id=made["id"])) == made
    visit = ok(call("add_visit", pet_id=made["id"], vet="V"))
    assert ok(call("list_visits", pet_id=made["id"]))["items"] == [visit]
    assert call("list_visits", pet_id=6)["rung"] == "schema"
    for partly in (call("list_pets"), call("count_pets")):
        assert partly["filled"]["places"][""] == "there may be others"


PLUGIN = thing(["Name", "Enabled"], Name=TEXT, Enabled={"type": "boolean"})
PLUGINS = documents.document(
    {
        "/plugins": {"get": op("plugins", gives=many(PLUGIN))},
        "/plugins/{name}": {"delete": op("uninstall", gives=PLUGIN)},
        "/rules": {"get": op("rules", gives=many(documents.PET_OUT))},
        "/rules/{nameorid}": {"delete": op("forget", gives=documents.PET_OUT)},
    }
)


def test_the_answer_to_a_removal_of_an_unknown_thing_has_its_key(living):
    call = living(PLUGINS)
    outcome = call("uninstall", name="x")
    assert (ok(outcome), blanks(outcome)) == ({"Name": "x", "Enabled": False}, {"/Enabled"})
    outcome = call("forget", nameorid="x")  # its id is unknown
    assert ("/id" in blanks(outcome), ok(outcome)["id"]) == (True, 0)


PETS = [{"id": 1, "name": "Flo", "tag": None, "status": "new", "made_at": "2026-01-01T00:00:00Z"}]


def with_real(document, **real):
    toolkit, _ = add_derived(Toolkit.from_openapi(document))
    return toolkit.replace(*(replace(toolkit[name], real=run, opened=True) for name, run in real.items()))


def called(world, tool, /, **args):
    return world.call({"name": tool, "args": args})["outcome"]


WHOLE_LIST = documents.document(
    {path: there for path, there in FASTAPI["paths"].items() if "pets" in path}
    | {"/api/v1/pets": {**FASTAPI["paths"]["/api/v1/pets"], "get": op(
        "list_pets", gives=many(documents.PET_OUT), query=[("status", "string")])}}
)  # fmt: skip


def test_a_whole_read_shows_what_is_there_and_what_is_not_and_a_page_is_none():
    world = World(with_real(WHOLE_LIST, list_pets=lambda **_: PETS), state={}, context=RULES)
    assert called(world, "list_pets")["rung"] == "real"
    read = called(world, "read_pet", pet_id=1)
    assert (ok(read), blanks(read)) == (PETS[0], set())
    assert missing(called(world, "read_pet", pet_id=2))
    world = World(with_real(FASTAPI, list_pets=lambda **_: PETS), state={}, context=RULES)
    called(world, "list_pets")
    assert called(world, "read_pet", pet_id=2)["rung"] == "schema"
    assert ok(called(world, "read_pet", pet_id=1)) == PETS[0]


@pytest.mark.parametrize("asked", [{"status": "new"}, {"status": "sold"}])
def test_a_read_of_a_part_shows_that_part_alone(asked):
    found = [pet for pet in PETS if pet["status"] == asked["status"]]
    world = World(with_real(WHOLE_LIST, list_pets=lambda **_: found), state={}, context=RULES)
    called(world, "list_pets", **asked)
    assert called(world, "read_pet", pet_id=2)["rung"] == "schema"


@pytest.mark.parametrize(
    ("size", "asked", "shown", "is_whole"),
    [
        (2, {}, PETS, True),
        (2, {}, [PETS[0], {**PETS[0], "id": 2}], False),  # there may be others
        (2, {"limit": 9}, [PETS[0], {**PETS[0], "id": 2}], False),  # the service may show no more than its page
        (2, {"offset": 2}, PETS, False),
        (None, {"limit": 9}, PETS, False),
        (None, {}, [], True),
        (None, {"limit": 0}, [], False),
    ],
)
def test_a_first_page_that_is_not_full_is_a_whole_read(size, asked, shown, is_whole):
    listed = op("list_pets", gives=many(documents.PET_OUT), query=[("limit", "integer"), ("offset", "integer")])
    listed["parameters"][0]["schema"] |= {"default": size} if size else {}
    made = op("make_pet", body=documents.PET_IN, gives=documents.PET_OUT)
    paths = {
        "/pets": {"get": listed, "post": made},
        "/pets/{pet_id}": {"get": op("read_pet", gives=documents.PET_OUT)},
    }
    world = World(with_real(documents.document(paths), list_pets=lambda **_: shown), context=RULES)
    called(world, "list_pets", **asked)
    assert missing(called(world, "read_pet", pet_id=9)) == is_whole


def test_a_read_of_one_thing_replaces_its_blanks_and_what_was_open():
    opened = {"open": {"/pets/1": "sell_pet", "/pets/2": "sell_pet"}}
    toolkit = with_real(FASTAPI, read_pet=lambda **_: {**PETS[0], "status": "sold"})
    state = {"pets": {"1": PETS[0]}, "runtime_state": opened}
    assert "" in blanks(called(World(toolkit, state=state, context=RULES), "update_pet", pet_id=1, tag="t"))
    world = World(toolkit, state=state, context=RULES)
    assert called(world, "read_pet", pet_id=1)["rung"] == "real"
    assert world.state["runtime_state"]["open"] == {"/pets/2": "sell_pet"}
    outcome = called(world, "update_pet", pet_id=1, tag="cat")
    assert (ok(outcome), blanks(outcome)) == ({**PETS[0], "status": "sold", "tag": "cat"}, set())


# what it is beside others --------------------------------------------------------------------------------------------


def test_nothing_real_is_refused():
    toolkit, made = with_real(FASTAPI), []
    toolkit = toolkit.replace(replace(toolkit["delete_pet"], real=lambda pet_id: made.append(pet_id), stated=True))
    world, call = World(toolkit, state={"pets": {}}, context=RULES), {"name": "delete_pet", "args": {"pet_id": 9}}
    for each in (call, {"name": "read_pet", "args": {"pet_id": 1}}):
        assert toolkit.check(each, {"pets": {}}) is None
        assert world.check(each) is None
    assert missing(world.call(call)["outcome"])
    entry = world.record(call, Answer("ok", None, []))
    assert "violations" not in entry
    assert [one["kind"] for one in entry["drift"]] == ["status"]  # what was foreseen is not what is


def test_what_a_person_wrote_comes_first_and_what_was_derived_is_trusted_by_nobody():
    rule = {"check": "trusted(['pets', '1'])", "error": "only supposed"}
    name = {"returns": {**PETS[0], "name": "written"}}
    written = {"contracts": {"read_pet": name, "count_pets": {"requires": [rule], "returns": 1}}}
    toolkit, _ = add_derived(Toolkit.from_openapi(FASTAPI).with_contracts(written))
    world = World(toolkit, state={"pets": {}}, context=RULES)
    read = called(world, "read_pet", pet_id=1)
    assert (read["rung"], read["result"]["name"]) == ("contract", "written")
    assert missing(called(world, "delete_pet", pet_id=1))
    assert called(world, "create_pet", name="Flo")["result"]["id"] == 1
    assert called(world, "count_pets")["result"] == "only supposed"


@pytest.mark.parametrize(
    ("state", "root"), [({"Pet": {"7": {"name": "Flo"}}}, "Pet"), ({"pets": {"7": {"id": 7, "name": "Flo"}}}, "pets")]
)
def test_a_given_state_is_taken_as_it_is(living, state, root):
    call = living(FASTAPI, state=state)
    assert ok(call("read_pet", pet_id=7))["name"] == "Flo"
    assert missing(call("read_pet", pet_id=8))
    ok(call("delete_pet", pet_id=7))
    assert call.world.state[root] == {}


def test_a_state_of_another_shape_leaves_contracts_out_and_a_written_contract_gives_a_key_of_the_state():
    toolkit = Toolkit.from_openapi(FASTAPI)
    derived = derive_contracts(toolkit, {"pets": [{"id": 1}]})
    assert ("read_pet" in derived.file["contracts"], "put_label" in derived.file["contracts"]) == (False, True)
    assert "pets" in derived.left_out["read_pet"]
    effect = {"op": "add", "path": ["pet", "{{ args.pet_id }}", "sold"], "value": {}}
    assert "pet" in derive_contracts(toolkit.with_contracts({"contracts": {"sell_pet": {"effects": [effect]}}})).made
    assert derive_contracts(toolkit).file == derive_contracts(toolkit).file
    assert all(tool.derived is None for tool in toolkit), "it is pure"


def test_whoever_answers_a_write_of_unknown_effect_its_thing_is_in_doubt():
    toolkit, _ = add_derived(Toolkit.from_openapi(FASTAPI))

    def sell(request):
        sold = Answer("ok", {**PETS[0], "status": "sold"}, [])
        return sold if request.tool.name == "sell_pet" else Pass("not mine")

    world = World(toolkit, state={"pets": {}}, context=RULES, rungs=[Rung("shop", sell)])
    called(world, "create_pet", name="Flo")
    sold = called(world, "sell_pet", pet_id=1)
    assert (sold["rung"], sold["patch"]) == ("shop", []), "doubt is no change"
    assert "" in blanks(called(world, "read_pet", pet_id=1))


@pytest.mark.parametrize(("total", "is_marked"), [({"default": 730}, True), ({}, False)])
def test_a_blank_is_no_source_of_an_argument(total, is_marked):
    order = thing(["id", "name", "total"], id=WHOLE, name=TEXT, total={"type": "integer", **total})
    body = thing(["name"], name=TEXT, **({} if total else {"total": WHOLE}))
    there = {
        "/orders": {"post": op("make", body=body, gives=order)},
        "/orders/{id}": {"get": op("one", gives=order)},
        "/pay": {"post": op("pay", body=thing(amount=WHOLE))},
    }
    toolkit, _ = add_derived(Toolkit.from_openapi(documents.document(there)))
    world = World(toolkit, state={"orders": {}}, context=RULES)
    made = world.call({"name": "make", "args": {"name": "a"} | ({} if total else {"total": 730})})
    assert made["outcome"]["result"]["total"] == 730
    steps = [made, world.call({"name": "pay", "args": {"amount": 730}})]
    said = "order a, and pay it" if total else "order a of 730"
    traced = trace_with(toolkit, steps, state={"orders": {}}, conversation=[HumanMessage(said)])
    assert (730 in values({"notes": traced.notes}, "made_up")) == is_marked


@pytest.mark.parametrize(
    ("runtime", "left"),
    [({"shown": {"/pets": []}, "cwd": "/"}, {"cwd": "/"}), ({"serial": {"/pets": 2}, "open": {}}, None), ({}, None)],
)
def test_without_marks_a_state_holds_what_is_known_alone(runtime, left):
    state = {"pets": {"1": {}}, "runtime_state": runtime}
    assert without_marks(state) == {"pets": {"1": {}}} | ({"runtime_state": left} if left else {})
    assert without_marks(plain := {"pets": {}, "runtime_state": {"cwd": "/"}}) is plain
