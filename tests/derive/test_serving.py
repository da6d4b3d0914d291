"""A server of a document alone: statuses, headers, the first lines and the page; contracts that choose a status."""

import json
from types import SimpleNamespace

import httpx
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from gecko_graph import Toolkit, World
from gecko_graph.cli import main
from gecko_graph.cli.serve import _build_world
from gecko_graph.serve.app import Server
from gecko_graph.serve.operations import HttpOperations
from gecko_graph.serve.responses import Responses
from gecko_graph.serve.sessions import Sessions

from . import documents
from .conftest import RULES


def options(spec, **more):
    names = "proxy state reads server model upstream record auth opened allow_remote no_derive"
    base = dict.fromkeys(names.split())
    lists = {name: [] for name in ("only", "contracts", "seed_from", "set")}
    return SimpleNamespace(**base | lists | {"spec": str(spec), **more})


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "api.json"
    path.write_text(json.dumps(documents.FASTAPI))
    return path


def client_of(world, notes=()):
    app = Server(Sessions(world), HttpOperations(world.toolkit), None, notes).build()
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


async def test_a_newcomer_creates_lists_changes_and_deletes(file, tmp_path):
    given = options(file)
    client = client_of(_build_world(given, None), given.notes)
    pets = "/api/v1/pets"
    made = await client.post(pets, json={"name": "Flo"})
    assert (made.status_code, made.headers["x-gecko-rung"]) == (201, "derived")
    assert made.headers["x-gecko-made-up"] == "/tag, /status, /made_at"
    assert [each["id"] for each in (await client.get(pets)).json()] == [1]
    assert (await client.patch(f"{pets}/1", json={"tag": "cat"})).json()["tag"] == "cat"
    assert (await client.delete(f"{pets}/1")).status_code == 204
    gone = await client.get(f"{pets}/1")  # the document knows 422 alone
    assert (gone.status_code, gone.headers["content-type"]) == (404, "application/problem+json")
    told = (await client.get("/_gecko/operations")).json()["notes"]
    assert any("empty" in line and "pets" in line for line in told)
    client = client_of(_build_world(options(file, no_derive=True), None))
    assert (await client.get("/api/v1/pets/1")).headers["x-gecko-rung"] == "schema"
    (tmp_path / "state.json").write_text(json.dumps({"pets": {"7": {"id": 7, "name": "Flo"}}}))
    client = client_of(_build_world(options(file, state=str(tmp_path / "state.json")), None))
    assert (await client.get("/api/v1/pets/7")).json()["name"] == "Flo"
    assert (await client.get("/api/v1/pets/8")).status_code == 404


async def test_what_real_reads_show_is_laid_over_an_empty_start(file, tmp_path):
    pet = {"id": 7, "name": "Flo", "tag": None, "status": "new", "made_at": "2026-01-01T00:00:00Z"}
    rows, row = tmp_path / "rows.jsonl", {"v": 1, "tool": "read_pet", "args": {"pet_id": 7}, "status": "ok"}
    others = [{**row, "status": "error", "result": "busy"}, {**row, "tool": "delete_pet", "result": None}]
    rows.write_text("".join(f"{json.dumps(each)}\n" for each in ({**row, "result": pet}, *others)))
    given = options(file, seed_from=[str(rows)])
    client = client_of(_build_world(given, None))
    assert (await client.get("/api/v1/pets")).json() == [pet]
    assert (await client.get("/api/v1/pets/8")).status_code == 404
    assert (await client.post("/api/v1/pets", json={"name": "Rex"})).json()["id"] == 8
    assert not any("empty" in note and " pets," in note for note in given.notes)


async def test_a_contract_chooses_status_and_headers():
    contract = {"returns": {"id": "x"}, "answers": {"status": 202, "headers": {"Location": "/jobs/{{ args.name }}"}}}
    refusing = {"requires": [{"check": "False", "error": "gone for good", "status": 410}], "returns": 1}
    there = {"/jobs": {"post": documents.op("begin", body=documents.thing(name=documents.TEXT))}}
    there["/jobs/{id}"] = {"get": documents.op("look", gives=documents.WHOLE, errors=("404", "422"))}
    toolkit = Toolkit.from_openapi(documents.document(there))
    world = World(toolkit.with_contracts({"contracts": {"begin": contract, "look": refusing}}), context=RULES)
    client = client_of(world)
    answer = await client.post("/jobs", json={"name": "a"})
    assert (answer.status_code, answer.headers["location"]) == (202, "/jobs/a")
    assert (await client.get("/jobs/1")).status_code == 410


@pytest.mark.parametrize("documented", [(), ("422",), ("400", "409")])
def test_what_is_not_found_is_404_whatever_is_documented(documented):
    there = {"/a/{id}": {"get": documents.op("x", gives=documents.PET_OUT, errors=documented)}}
    found, body = Responses.of(Toolkit.from_openapi(documents.document(there))["x"]).error("pet not found", tool="x")
    assert (found.status, body["status"]) == (404, 404)


def test_derive_writes_a_file_that_serve_takes(file, tmp_path, capsys):
    output = tmp_path / "api.derived.yaml"
    assert main(["derive", str(file), "-o", str(output)]) == 0
    told = capsys.readouterr().err
    assert "sell_pet: action: " in told
    assert "read_pet: read: GET of an item" in told
    toolkit = Toolkit.from_openapi(file).with_contracts(output)
    assert toolkit["read_pet"].derived.kind == "read"
    assert all(tool.contract is None for tool in toolkit)
