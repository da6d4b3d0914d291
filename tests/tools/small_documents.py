"""Small OpenAPI documents, made of what a test is about."""

from gecko_graph.tools import Toolkit


def document(paths, *, version="3.0.3", **more):
    return {"openapi": version, "info": {"title": "T", "version": "1"}, "paths": paths, **more}


def read_one(operation, *, method="get", path="/x", **more):
    (tool,) = Toolkit.from_openapi(document({path: {method: {"responses": {}, **operation}}}, **more))
    return tool


def body(schema, *, media="application/json", **more):
    return {"requestBody": {"required": True, "content": {media: {"schema": schema}}, **more}}


def answering(schema, *, code="200", **media):
    return {"responses": {code: {"description": "", "content": {"application/json": {"schema": schema, **media}}}}}
