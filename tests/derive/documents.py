"""Documents in the habits of several frameworks, each of a shop's things."""

from typing import Any

TEXT, WHOLE, TIME = {"type": "string"}, {"type": "integer"}, {"type": "string", "format": "date-time"}
PET = {"id": WHOLE, "name": TEXT, "tag": {"type": ["string", "null"]}, "status": {"enum": ["new", "sold"]}, "made_at": TIME}


def thing(required=(), **fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(required)}


def many(schema) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def takes(schema, where=("path",)) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def op(name, *, body=None, gives=None, query=(), status="200", errors=("404",)) -> dict[str, Any]:
    content = {"application/json": {"schema": gives}} if gives is not None else None
    answer = {"description": "", **({"content": content} if content else {})}
    asked = [{"name": each, "in": "query", "schema": {"type": kind}} for each, kind in query]
    said = {"operationId": name, "parameters": asked, "responses": {status: answer}}
    said["responses"] |= {code: {"description": ""} for code in errors}
    return said | (takes(body) if body is not None else {})


def paths(**of: Any) -> dict[str, Any]:
    return of


def document(of, version="3.1.0") -> dict[str, Any]:
    for path, there in of.items():
        names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
        there["parameters"] = [
            {"name": each, "in": "path", "required": True, "schema": WHOLE if each.endswith(("_id", "pk")) else TEXT}
            for each in names
        ]
    return {"openapi": version, "info": {"title": "shop", "version": "1"}, "paths": of}


PET_OUT = thing(["id", "name", "tag", "status", "made_at"], **PET)
PET_IN = thing(["name"], name=TEXT, tag=PET["tag"], status=PET["status"])
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
            "patch": op("update_pet", body=thing(name=TEXT, tag=PET["tag"], status=PET["status"]), gives=PET_OUT),
            "put": op("replace_pet", body=PET_IN, gives=PET_OUT),
            "delete": op("delete_pet", status="204"),
        },
        "/api/v1/pets/{pet_id}/sell": {"post": op("sell_pet", gives=PET_OUT)},
        "/api/v1/pets/{pet_id}/visits": {
            "get": op("list_visits", gives=thing(["items", "total"], items=many(thing(["id"], id=TEXT, vet=TEXT)), total=WHOLE)),
            "post": op("add_visit", body=thing(["vet"], vet=TEXT), gives=thing(["id", "vet"], id=TEXT, vet=TEXT)),
        },
        "/api/v1/pets/{pet_id}/visits/{visit}": {"get": op("read_visit", gives=thing(["id"], id=TEXT, vet=TEXT))},
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
