"""The resources of each service that is compared with its derived state: paths, bodies, filters, pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from gecko_graph.state import Json, JsonObject

from .walk import Draw, Resource

DATABASES = "/api/v2/tenants/{}/databases"
POOLS = "/work_pools/{}/queues"


def _of(make: Callable[[int], JsonObject]) -> Draw:
    """Return a body that depends only on its number."""
    return lambda source, number, mark: make(number)


def _flow(make: Callable[[int, str], JsonObject], resource: str = "flows") -> Draw:
    """Return a body that names a flow, or a thing of another resource, if there is one."""

    def body(source: Random, number: int, mark: Callable[[str], str | None]) -> JsonObject | None:
        found = mark(resource)
        return make(number, found) if found else None

    return body


def _one(name: str, resource: str, ask: Callable[[str], JsonObject]) -> Draw:
    """Return a filter for a member of one thing."""

    def asks(source: Random, number: int, mark: Callable[[str], str | None]) -> JsonObject | None:
        found = mark(resource)
        return ask(f"{found.split('.')[0]}.{name}>") if found else None

    return asks


def _prefect(name: str, body: Draw, changes: Draw | None, member: str = "name", **more: Json) -> Resource:
    base = f"/{name}/"
    return Resource(
        f"POST {base}", base + "{}", body, changes=changes, lists=f"POST {base}filter", pages=("limit", "offset"),
        asks=_one(member, name, lambda mark: {name: {member: {"any_": [mark]}}}), **more,
    )  # fmt: skip


def _langgraph(name: str, key: str, body: Draw, changes: Draw, **more: Json) -> Resource:
    return Resource(
        f"POST /{name}", f"/{name}/{{}}", body, key, changes, lists=f"POST /{name}/search",
        counts=f"POST /{name}/count", pages=("limit", "offset"), **more,
    )  # fmt: skip


def _sometimes(member: str, digits: str, body: JsonObject) -> Draw:
    """Return a body with one of three values in its metadata, half of the time with the caller's own id."""

    def draw(source: Random, number: int, mark: Callable[[str], str | None]) -> JsonObject:
        own: JsonObject = {member: f"{digits * 8}-{digits * 4}-4{digits * 3}-8{digits * 3}-{number:012d}"}
        return {**body, "metadata": {"k": source.randint(1, 3)}, **(own if source.random() < 0.5 else {})}

    return draw


def _any(*made: Callable[[int], JsonObject]) -> Draw:
    return lambda source, number, mark: source.choice(made)(number)


def _metadata(source: Random, number: int, mark: Callable[[str], str | None]) -> JsonObject:
    return {"metadata": {"k": source.randint(1, 3)}}


LANGGRAPH: Mapping[str, Resource] = {
    "assistants": _langgraph(
        "assistants", "assistant_id", _sometimes("assistant_id", "1", {"graph_id": "agent", "name": "a"}),
        _any(lambda n: {"name": f"u{n}"}, lambda n: {"metadata": {f"z{n}": 1}}, lambda n: {"description": f"d{n}"}),
        asks=_metadata,
    ),
    "threads": _langgraph(
        "threads", "thread_id", _sometimes("thread_id", "2", {}), _of(lambda n: {"metadata": {f"z{n}": 1}}),
        asks=_metadata,
    ),
    "runs": Resource(
        "POST /threads/{}/runs", "/threads/{}/runs/{}",
        _of(lambda n: {"assistant_id": "agent", "input": {"x": f"t{n}"}, "metadata": {"m": n}}), "run_id",
        lists="GET /threads/{}/runs", pages=("limit", "offset"), above="threads",
    ),
    "crons": Resource(
        "POST /runs/crons", "/runs/crons/{}",
        _of(lambda n: {"assistant_id": "agent", "schedule": "0 0 1 1 *", "input": {"x": "c"}, "metadata": {"m": n}}),
        "cron_id", _any(lambda n: {"enabled": False}, lambda n: {"schedule": "5 0 1 1 *"}),
        lists="POST /runs/crons/search", counts="POST /runs/crons/count", pages=("limit", "offset"),
    ),
}  # fmt: skip

PREFECT: Mapping[str, Resource] = {
    "flows": _prefect(
        "flows", _of(lambda n: {"name": f"flow{n}", "tags": ["x"]}), _of(lambda n: {"tags": [f"t{n}"]}),
        counts="POST /flows/count", aliases={"/flows/name/{}": "name"},
    ),
    "flow_runs": _prefect(
        "flow_runs", _flow(lambda n, flow: {"flow_id": flow, "name": f"run{n}", "parameters": {"p": n}}),
        _of(lambda n: {"name": f"renamed{n}"}), counts="POST /flow_runs/count",
    ),
    "variables": _prefect(
        "variables", _of(lambda n: {"name": f"var{n}", "value": n}), _of(lambda n: {"value": f"v{n}"}),
        counts="POST /variables/count", aliases={"/variables/name/{}": "name"},
    ),
    "work_pools": _prefect(
        "work_pools", _of(lambda n: {"name": f"pool{n}", "type": "process", "description": "d"}),
        _of(lambda n: {"description": f"u{n}"}), counts="POST /work_pools/count", key="name", absent="nopool",
    ),
    "queues": Resource(
        f"POST {POOLS}", f"{POOLS}/{{}}", _of(lambda n: {"name": f"q{n}", "description": "d"}), "name",
        _of(lambda n: {"description": f"u{n}"}), lists=f"POST {POOLS}/filter", pages=("limit", "offset"),
        above="work_pools", absent="noqueue",
    ),
    "concurrency_limits": replace(
        _prefect(
            "concurrency_limits",
            lambda source, n, mark: {"tag": f"tag{n}", "concurrency_limit": source.randint(1, 5)}, None,
            aliases={"/concurrency_limits/tag/{}": "tag"},
        ),
        asks=None,
    ),
    "artifacts": _prefect(
        "artifacts", _of(lambda n: {"key": f"key{n}", "type": "markdown", "data": "hello", "description": "d"}),
        _of(lambda n: {"data": f"d{n}"}), "key", counts="POST /artifacts/count",
    ),
    "block_types": _prefect(
        "block_types", _of(lambda n: {"name": f"bt{n}", "slug": f"bt{n}"}), _of(lambda n: {"description": f"u{n}"}),
        "slug", aliases={"/block_types/slug/{}": "slug"},
    ),
    "deployments": _prefect(
        "deployments", _flow(lambda n, flow: {"flow_id": flow, "name": f"dep{n}", "tags": ["y"]}),
        _of(lambda n: {"description": f"u{n}"}), counts="POST /deployments/count",
    ),
}  # fmt: skip

CHROMA: Mapping[str, Resource] = {
    "tenants": Resource(
        "POST /api/v2/tenants", "/api/v2/tenants/{}", _of(lambda n: {"name": f"tenant{n}"}), "name",
        _of(lambda n: {"resource_name": f"rn{n}"}), removes=False, absent="nobody", unkept=("resource_name",),
    ),
    "databases": Resource(
        f"POST {DATABASES}", f"{DATABASES}/{{}}", _of(lambda n: {"name": f"db{n}"}), "name",
        lists=f"GET {DATABASES}", pages=("limit", "offset"), above="tenants", absent="nodb",
    ),
    "collections": Resource(
        f"POST {DATABASES}/{{}}/collections", f"{DATABASES}/{{}}/collections/{{}}",
        _of(lambda n: {"name": f"coll{n}", "metadata": {"k": f"m{n}"}}), "id",
        _of(lambda n: {"new_metadata": {"z": f"n{n}"}}), "PUT", f"GET {DATABASES}/{{}}/collections",
        f"GET {DATABASES}/{{}}/collections_count", None, ("limit", "offset"), "databases",
        {f"{DATABASES}/{{}}/collections/by-id/{{}}": "id"}, real={"GET": "name", "DELETE": "name"},
    ),
}  # fmt: skip

CHANGEDETECTION: Mapping[str, Resource] = {
    "tags": Resource(
        "POST /tag", "/tag/{}", _of(lambda n: {"title": f"tag{n}"}), "uuid", _of(lambda n: {"title": f"u{n}"}), "PUT",
        "GET /tags",
    ),
}  # fmt: skip

BUCKETS = "/buckets/{}"


def _kinto(path: str, above: str = "", **more: Json) -> Resource:
    return Resource(
        f"POST {path}", f"{path}/{{}}", _of(lambda n: {"data": {"title": f"t{n}", "n": n}}),
        changes=_any(lambda n: {"data": {"title": f"u{n}"}}, lambda n: {"data": {f"m{n}": [n]}}),
        lists=f"GET {path}", pages=("_limit",), above=above, **more,
    )  # fmt: skip


KINTO: Mapping[str, Resource] = {
    "buckets": _kinto("/buckets"),
    "groups": _kinto(f"{BUCKETS}/groups", "buckets", asks=_one("id", "groups", lambda mark: {"id": mark})),
    "collections": _kinto(f"{BUCKETS}/collections", "buckets"),
    "records": _kinto(
        f"{BUCKETS}/collections/{{}}/records", "collections", asks=_one("id", "records", lambda mark: {"id": mark})
    ),
}


def _phoenix(name: str, body: Draw, changes: Draw, by: str, absent: str, **more: Json) -> Resource:
    path = f"/v1/{name}"
    return Resource(
        f"POST {path}", f"{path}/{{}}", body, changes=changes, by=by, lists=f"GET {path}", pages=("limit",),
        absent=absent, **more,
    )  # fmt: skip


PHOENIX: Mapping[str, Resource] = {
    "projects": _phoenix(
        "projects", _of(lambda n: {"name": f"project{n}", "description": "d"}), _of(lambda n: {"description": f"u{n}"}),
        "PUT", "no-such-project", asks=_one("name", "projects", lambda mark: {"name_contains": mark}),
    ),
    "dataset_labels": _phoenix(
        "dataset_labels", _of(lambda n: {"name": f"label{n}", "color": "#00cc88"}),
        _any(lambda n: {"name": f"renamed{n}"}, lambda n: {"description": f"u{n}"}), "PATCH",
        "RGF0YXNldExhYmVsOjk5OTk5",
    ),
    "annotation_configs": _phoenix(
        "annotation_configs", _of(lambda n: {"name": f"config{n}", "type": "FREEFORM", "description": "d"}),
        _of(lambda n: {"name": f"renamed{n}", "type": "FREEFORM", "threshold": n}), "PUT",
        "RnJlZWZvcm1Bbm5vdGF0aW9uQ29uZmlnOjk5OTk5",
    ),
}  # fmt: skip

COLORS = ("blue", "green", "orange", "red")


def _zenml(name: str, body: Draw, changes: Draw, is_named: bool = False, **more: Json) -> Resource:
    path = f"/api/v1/{name}"
    return Resource(
        f"POST {path}", f"{path}/{{}}", body, changes=changes, by="PUT", lists=f"GET {path}", pages=("size", "page"),
        asks=_one("name", name, lambda mark: {"name": mark}),
        aliases={f"{path}/{{}}": "name"} if is_named else {}, **more,
    )  # fmt: skip


def _in_project(name: str, changes: Draw) -> Resource:
    return _zenml(name, _flow(lambda n, project: {"project": project, "name": f"{name}{n}"}, "projects"), changes)


ZENML: Mapping[str, Resource] = {
    "projects": _zenml(
        "projects", _of(lambda n: {"name": f"project{n}", "description": "d"}),
        _any(lambda n: {"name": f"renamed{n}"}, lambda n: {"description": f"u{n}"}), is_named=True,
    ),
    "tags": _zenml(
        "tags", lambda source, n, mark: {"name": f"tag{n}", "color": source.choice(COLORS)},
        _any(lambda n: {"name": f"renamed{n}"}, lambda n: {"color": COLORS[n % 4]}),
    ),
    "secrets": _zenml(
        "secrets", _of(lambda n: {"name": f"secret{n}", "values": {"k": f"v{n}"}}),
        _any(lambda n: {"name": f"renamed{n}"}, lambda n: {"values": {"k": f"u{n}"}}),
    ),
    "components": _zenml(
        "components",
        _of(lambda n: {"name": f"component{n}", "type": "orchestrator", "flavor": "local", "configuration": {}}),
        _any(lambda n: {"name": f"renamed{n}"}, lambda n: {"labels": {f"z{n}": "x"}}),
    ),
    "users": _zenml(
        "users", _of(lambda n: {"name": f"user{n}", "is_admin": False, "full_name": "f", "password": f"word{n}"}),
        _of(lambda n: {"full_name": f"u{n}"}), is_named=True,
    ),
    "service_accounts": _zenml(
        "service_accounts", _of(lambda n: {"name": f"account{n}", "active": True, "description": "d"}),
        _any(lambda n: {"name": f"renamed{n}"}, lambda n: {"description": f"u{n}"}), is_named=True,
    ),
    "api_keys": replace(
        _zenml(
            "service_accounts/{}/api_keys", _of(lambda n: {"name": f"key{n}", "description": "d"}),
            _any(lambda n: {"name": f"renamed{n}"}, lambda n: {"active": False}), is_named=True,
            above="service_accounts",
        ),
        asks=_one("name", "api_keys", lambda mark: {"name": mark}),
    ),
    "models": _in_project("models", _any(lambda n: {"name": f"renamed{n}"}, lambda n: {"description": f"u{n}"})),
    "artifacts": _in_project("artifacts", _of(lambda n: {"name": f"renamed{n}"})),
    "pipelines": _in_project("pipelines", _of(lambda n: {"description": f"u{n}"})),
}  # fmt: skip


def _airflow(name: str, key: str, body: Draw, changes: Draw, pattern: str) -> Resource:
    path = f"/api/v2/{name}"
    return Resource(
        f"POST {path}", f"{path}/{{}}", body, key, changes, lists=f"GET {path}", pages=("limit", "offset"),
        asks=_one(key, name, lambda mark: {pattern: mark}), absent="no-such-thing",
    )  # fmt: skip


AIRFLOW: Mapping[str, Resource] = {
    "pools": _airflow(
        "pools", "name", lambda source, n, mark: {"name": f"pool{n}", "slots": source.randint(1, 5)},
        _of(lambda n: {"pool": "{}", "slots": n, "description": f"u{n}", "include_deferred": False}),
        "pool_name_pattern",
    ),
    "variables": _airflow(
        "variables", "key", _of(lambda n: {"key": f"var{n}", "value": f"v{n}", "description": "d"}),
        _any(
            lambda n: {"key": "{}", "value": f"u{n}"},
            lambda n: {"key": "{}", "value": f"u{n}", "description": f"d{n}"},
        ),
        "variable_key_pattern",
    ),
    "connections": _airflow(
        "connections", "connection_id",
        _of(lambda n: {"connection_id": f"conn{n}", "conn_type": "http", "host": f"h{n}"}),
        _any(
            lambda n: {"connection_id": "{}", "conn_type": "http", "host": f"u{n}"},
            lambda n: {"connection_id": "{}", "conn_type": "http", "port": n},
        ),
        "connection_id_pattern",
    ),
}  # fmt: skip

RESOURCES: Mapping[str, Mapping[str, Resource]] = {
    "langgraph": LANGGRAPH,
    "prefect": PREFECT,
    "chroma": CHROMA,
    "changedetection": CHANGEDETECTION,
    "kinto": KINTO,
    "phoenix": PHOENIX,
    "zenml": ZENML,
    "airflow": AIRFLOW,
}
