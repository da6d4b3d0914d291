"""Documents in the habits of several frameworks, each of a shop's things."""

import re
from typing import Any

TEXT, WHOLE, TIME = {"type": "string"}, {"type": "integer"}, {"type": "string", "format": "date-time"}
TAG, STATUS, FLAG = {"type": ["string", "null"]}, {"enum": ["new", "sold"]}, {"type": "boolean"}
PET = {"id": WHOLE, "name": TEXT, "tag": TAG, "status": STATUS, "made_at": TIME}


def thing(required=(), **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(required)}


def many(schema) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def op(name, *, body=None, gives=None, query=(), status="200", errors=("404",)) -> dict[str, Any]:
    content = {"application/json": {"schema": gives}} if gives is not None else None
    answer = {"description": "", **({"content": content} if content else {})}
    asked = [{"name": each, "in": "query", "schema": {"type": kind}} for each, kind in query]
    said = {"operationId": name, "parameters": asked, "responses": {status: answer}}
    said["responses"] |= {code: {"description": ""} for code in errors}
    taken = {"required": True, "content": {"application/json": {"schema": body}}}
    return said | ({"requestBody": taken} if body is not None else {})


def document(of, version="3.1.0") -> dict[str, Any]:
    for path, there in of.items():
        names = re.findall(r"\{(\w+)\}", path)
        there["parameters"] = [
            {"name": each, "in": "path", "required": True, "schema": WHOLE if each.endswith(("_id", "pk")) else TEXT}
            for each in names
        ]
    return {"openapi": version, "info": {"title": "shop", "version": "1"}, "paths": of}


PET_OUT = thing(["id", "name", "tag", "status", "made_at"], **PET)
PET_IN = thing(["name"], name=TEXT, tag=TAG, status=STATUS)
VISIT = thing(["id"], id=TEXT, vet=TEXT)
PAGED = [("limit", "integer"), ("offset", "integer"), ("status", "string"), ("q", "string"), ("sort", "string")]

FASTAPI = document(
    {
        "/api/v1/pets": {
            "get": op("list_pets", gives=many(PET_OUT), query=PAGED, errors=("422",)),
            "post": op("create_pet", body=PET_IN, gives=PET_OUT, status="201", errors=("422",)),
        },
        "/api/v1/pets/count": {"get": op("count_pets", gives=WHOLE)},
        "/api/v1/pets/search": {"post": op("search_pets", body=thing(status=TEXT), gives=many(PET_OUT))},
        "/api/v1/pets/by-name/{name}": {"get": op("read_pet_by_name", gives=PET_OUT)},
        "/api/v1/pets/{pet_id}": {
            "get": op("read_pet", gives=PET_OUT, errors=("422",)),
            "patch": op("update_pet", body=thing(name=TEXT, tag=TAG, status=STATUS), gives=PET_OUT),
            "put": op("replace_pet", body=PET_IN, gives=PET_OUT),
            "delete": op("delete_pet", status="204"),
        },
        "/api/v1/pets/{pet_id}/sell": {"post": op("sell_pet", gives=PET_OUT)},
        "/api/v1/pets/{pet_id}/visits": {
            "get": op("list_visits", gives=thing(["items", "total"], items=many(VISIT), total=WHOLE)),
            "post": op("add_visit", body=thing(["vet"], vet=TEXT), gives=thing(["id", "vet"], id=TEXT, vet=TEXT)),
        },
        "/api/v1/pets/{pet_id}/visits/{visit}": {"get": op("read_visit", gives=VISIT)},
        "/api/v1/settings": {
            "get": op("read_settings", gives=thing(["theme", "size"], theme=TEXT, size=WHOLE)),
            "put": op("write_settings", body=thing(theme=TEXT, size=WHOLE), gives=thing(theme=TEXT, size=WHOLE)),
        },
        "/api/v1/labels/{label}": {
            "get": op("read_label", gives=thing(["label"], label=TEXT, color=TEXT)),
            "put": op("put_label", body=thing(["color"], color=TEXT), gives=thing(label=TEXT, color=TEXT)),
        },
    }
)

TITLED = {"title": TEXT, "done": FLAG}
TASK, TASK_IN = thing(["pk"], pk=WHOLE, **TITLED), thing(["title"], **TITLED)
TASKS = thing(["count", "results"], count=WHOLE, next=TAG, results=many(TASK))
ASKED = "page:integer page_size:integer ordering:string search:string done:boolean colour:string"
DJANGO = document(
    {
        "/tasks/": {
            "get": op("task_list", gives=TASKS, query=[each.split(":") for each in ASKED.split()]),
            "post": op("task_create", body=TASK_IN, gives=TASK, status="201"),
        },
        "/tasks/{pk}/": {
            "get": op("task_read", gives=TASK),
            "put": op("task_replace", body=TASK_IN, gives=TASK),
            "patch": op("task_update", body=thing(**TITLED), gives=TASK),
            "delete": op("task_delete", status="204"),
        },
    },
    "3.0.3",
)

POST = {"title": TEXT, "body": TEXT}
POST_IN, POST_OUT = thing(["post"], post=thing(**POST)), thing(post=thing(["id"], id=WHOLE, **POST))
RAILS = document(
    {
        "/posts.json": {
            "get": op("index", gives=thing(posts=many(thing(id=WHOLE, **POST)))),
            "post": op("create", body=POST_IN, gives=POST_OUT, status="201"),
        },
        "/posts/{id}.json": {
            "get": op("show", gives=POST_OUT),
            "patch": op("update", body=POST_IN, gives=POST_OUT),
            "delete": op("destroy", status="204"),
        },
    },
    "3.0.3",
)

ROLE = {"type": "string", "default": "guest"}
USER = thing(id={"type": "string", "format": "uuid"}, email=TEXT, role=ROLE)
USERS = thing(content=many(USER), totalElements=WHOLE, totalPages=WHOLE, last=FLAG)
SPRING = document(
    {
        "/users/list": {
            "get": op("findAll", gives=USERS, query=[("page", "integer"), ("size", "integer"), ("role", "string")])
        },
        "/users/add": {"post": op("add", body=thing(["email"], email=TEXT, role=ROLE), gives=USER, errors=("409",))},
        "/users/get/{userId}": {"get": op("findById", gives=USER)},
        "/users/update/{userId}": {"put": op("edit", body=thing(role=TEXT), gives=USER)},
        "/users/delete/{userId}": {"delete": op("remove")},
        "/users/findByEmail": {"get": op("findByEmail", gives=many(USER), query=[("email", "string")])},
    },
    "3.0.1",
)

ARTICLE = thing(["type", "id"], type=TEXT, id=TEXT, attributes=thing(title=TEXT, text=TEXT))
SENT = thing(["data"], data=thing(["type"], type=TEXT, attributes=thing(title=TEXT, text=TEXT)))
JSONAPI = document(
    {
        "/articles": {
            "get": op("articles", gives=thing(["data"], data=many(ARTICLE), meta=thing(total=WHOLE))),
            "post": op("new_article", body=SENT, gives=thing(["data"], data=ARTICLE), status="201"),
        },
        "/articles/{id}": {
            "get": op("article", gives=thing(["data"], data=ARTICLE)),
            "patch": op("change_article", body=SENT, gives=thing(["data"], data=ARTICLE)),
            "delete": op("drop_article", status="204"),
        },
    }
)

CAR = {"$ref": "#/definitions/Car"}
SWAGGER: dict[str, Any] = {
    "swagger": "2.0",
    "info": {"title": "s", "version": "1"},
    "definitions": {"Car": thing(["plate"], plate=TEXT, doors=WHOLE)},
    "paths": {
        "/cars": {
            "get": {"operationId": "cars", "responses": {"200": {"description": "", "schema": many(CAR)}}},
            "post": {
                "operationId": "park",
                "parameters": [{"name": "car", "in": "body", "required": True, "schema": CAR}],
                "responses": {"200": {"description": "", "schema": CAR}, "409": {"description": ""}},
            },
        },
        "/cars/{plate}": {
            "parameters": [{"name": "plate", "in": "path", "required": True, "type": "string"}],
            "get": {"operationId": "car", "responses": {"200": {"description": "", "schema": CAR}}},
            "delete": {"operationId": "leave", "responses": {"204": {"description": ""}}},
        },
    },
}

ISSUE = thing(["number", "title"], number=WHOLE, title=TEXT, state={"enum": ["open", "closed"]})
WHERE = {"owner": TEXT, "repo": TEXT}


def tool(name, result, required, **properties: Any) -> dict[str, Any]:
    return {"name": name, "description": "", "inputSchema": thing(required, **properties), "outputSchema": result}


MCP = [
    tool("create_issue", ISSUE, ["owner", "repo", "title"], **WHERE, title=TEXT),
    tool("get_issue", ISSUE, ["owner", "repo", "issue_number"], **WHERE, issue_number=WHOLE),
    tool("update_issue", ISSUE, ["owner", "repo", "issue_number"], **WHERE, issue_number=WHOLE, title=TEXT, state=TEXT),
    tool("list_issues", thing(["issues"], issues=many(ISSUE)), ["owner", "repo"], **WHERE, state=TEXT),
    tool("delete_issue", thing(["ok"], ok=FLAG), ["owner", "repo", "issue_number"], **WHERE, issue_number=WHOLE),
    tool("search_code", thing(["hits"], hits=many(TEXT)), ["q"], q=TEXT),
]


def described(text="", key=WHOLE):
    asked = {"name": "name", "in": "query", "description": text, "schema": TEXT}
    pet = thing(["id", "name"], id=key, name=TEXT)
    everything = {
        "get": op("all", gives=many(pet)) | {"parameters": [asked]},
        "post": op("make", body=PET_IN, gives=pet),
    }
    return document({"/pets": everything, "/pets/{id}": {"get": op("one", gives=pet)}})
