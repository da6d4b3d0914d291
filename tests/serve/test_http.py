"""Each operation under its method and path: what succeeds, what fails, what is refused, what is preferred."""

import pytest

from gecko_graph import Toolkit
from gecko_graph.serve.operations import HttpOperations
from tests.tools.small_documents import answering, body, document

from .conftest import client_of, world_of

ERROR = {"type": "object", "required": ["message"], "properties": {"message": {"type": "string"}, "at": {}}}
PET = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "nullable": True}}}
OF_PET, OF_ERROR = {"$ref": "#/components/schemas/Pet"}, {"$ref": "#/components/schemas/Error"}
KNOWN = [{"check": "args.name in state.pets", "error": "there is no such pet"}]
GET = {
    "operationId": "getPet",
    "x-contract": {"returns": {"name": "{{ args.name }}"}, "requires": KNOWN},
    **answering(OF_PET, examples={"tom": {"value": {"name": "Tom"}}}),
}
GET["responses"]["404"] = {"$ref": "#/components/responses/Missing"}
DELETE = {
    "operationId": "deletePet",
    "security": [{"Key": []}, {"Bear": []}],
    "x-contract": {"effects": [{"op": "remove", "path": ["pets", "{{ args.name }}"]}], "requires": KNOWN},
    "responses": {"204": {"description": "-"}},
}
NAME = [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}]
KEYS = {"Key": {"type": "apiKey", "in": "query", "name": "key"}, "Bear": {"type": "http", "scheme": "bearer"}}
DOCUMENT = document(
    {
        "/pets/{name}": {"parameters": NAME, "get": GET, "delete": DELETE},
        "/pets": {"post": {"operationId": "addPet", **body(OF_PET), **answering(OF_PET, code="201")}},
    },
    servers=[{"url": "https://pets.example/v2"}],
    components={
        "schemas": {"Error": ERROR, "Pet": PET},
        "responses": {"Missing": answering(OF_ERROR)["responses"]["200"]},
        "securitySchemes": KEYS,
    },
)
DOCUMENT["info"]["title"] = "pets"


@pytest.fixture
def pets():
    return client_of(world_of(Toolkit.from_openapi(DOCUMENT), {"pets": {"Rex": {}}}))


async def test_with_the_base_path_and_without(pets):
    for path in ("/pets/Rex", "/v2/pets/Rex"):
        answer = await pets.get(path)
        assert (answer.status_code, answer.json()) == (200, {"name": "Rex"})
        assert answer.headers["x-gecko-rung"] == "contract"
        assert answer.headers["x-gecko-made-up"] == "false"
    assert (await pets.get("/cats")).status_code == 404
    answer = await pets.put("/pets/Rex")
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET")


async def test_a_tools_own_error_goes_out_in_the_documents_schema_where_it_has_one(pets):
    answer = await pets.get("/pets/Tom")
    assert answer.status_code == 404
    assert answer.json()["message"] == "there is no such pet"
    answer = await pets.delete("/pets/Tom", headers={"authorization": "Bearer x"})
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"] == "there is no such pet"


async def test_any_credential_does_where_one_is_demanded_and_none_is_kept(pets):
    assert (await pets.delete("/pets/Rex")).status_code == 401
    answer = await pets.delete("/pets/Rex", params={"key": "sesame-open"})
    assert answer.status_code == 204
    assert not answer.content
    assert "sesame-open" not in (await pets.get("/_gecko/sessions/default/snapshot")).text


async def test_what_the_validator_refuses_is_422_with_complaints(pets):
    wrong = [{"json": each} for each in ({"name": 7}, {}, [1])]
    for given in (*wrong, {"content": b"{"}, {"json": {"name": "x"}, "params": {"q": "1"}}):
        answer = await pets.post("/pets", **given)
        assert answer.status_code == 422
        assert answer.json()["complaints"]


async def test_members_that_a_body_leaves_open_are_told_and_a_media_type_that_is_not_read_is_415(pets):
    answer = await pets.post("/pets", json={"name": "Ada", "colour": "red"})
    assert (answer.status_code, answer.headers["x-gecko-ignored"]) == (201, "colour")
    assert answer.headers["x-gecko-made-up"] == "true"
    assert (await pets.post("/pets", content=b"<a/>", headers={"content-type": "application/xml"})).status_code == 415


async def test_prefer_as_prism_has_it(pets):
    named = await pets.get("/pets/Zoe", headers={"prefer": "code=200, example=tom"})
    assert named.json() == {"name": "Tom"}
    missing = await pets.get("/pets/Rex", headers={"prefer": "code=404"})
    assert missing.status_code == 404
    assert isinstance(missing.json()["message"], str)
    assert (await pets.get("/pets/Rex", headers={"prefer": "code=418"})).status_code == 404
    assert (await pets.get("/pets/Rex", headers={"prefer": "return=minimal"})).status_code == 200


async def test_tools_that_are_no_operations_are_posted_by_name():
    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    toolkit = Toolkit.from_tools([add])
    client = client_of(world_of(toolkit), prefix="/api")
    for path in ("/add", *toolkit.to_openapi()["paths"]):
        assert (await client.post(f"/api{path}", json={"a": 1})).status_code == 200
    assert (await client.post("/api/add", json={"a": "x"})).status_code == 422
    assert (await client.post("/api/add", json=[1])).status_code == 422
    assert (await client.post("/add", json={"a": 1})).status_code == 404


def test_paths_that_collide_with_ours_are_told():
    taken = {**DOCUMENT, "paths": {"/mcp": {"get": {"operationId": "look", "responses": {}}}}}
    assert HttpOperations(Toolkit.from_openapi(taken)).notes
    assert not HttpOperations(Toolkit.from_openapi(taken), prefix="/api").notes
    assert not HttpOperations(Toolkit.from_openapi(DOCUMENT)).notes


async def test_the_page_can_name_what_is_served_and_each_call():
    client = client_of(world_of(Toolkit.from_openapi(DOCUMENT)))
    named = (await client.get("/_gecko/operations")).json()
    assert named["title"] == "pets"
    assert named["operations"]["getPet"] == "GET /pets/{name}"
    page = (await client.get("/_gecko/")).text
    assert "<h1" in page
    assert "@media (max-width" in page

    def look(at: str) -> str:
        """Look."""
        return at

    named = (await client_of(world_of(Toolkit.from_tools([look]))).get("/_gecko/operations")).json()
    assert named == {"title": "", "operations": {"look": "POST /look"}}
