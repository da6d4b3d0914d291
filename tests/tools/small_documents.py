"""Small OpenAPI documents, made of what a test is about."""

from functools import cache
from pathlib import Path
from types import MappingProxyType

from gecko_graph.errors import ToolkitError
from gecko_graph.tools import Toolkit


@cache
def real_toolkits(folder: Path):
    """The toolkits of the recorded documents by path, read once; a text where one is refused."""

    def load(path):
        try:
            return Toolkit.from_openapi(path)
        except ToolkitError as error:
            return str(error)

    return MappingProxyType({path: load(path) for path in sorted((folder / "openapi").iterdir())})


def document(paths, *, version="3.0.3", **more):
    return {"openapi": version, "info": {"title": "T", "version": "1"}, "paths": paths, **more}


def read_one(operation, *, method="get", path="/x", **more):
    (tool,) = Toolkit.from_openapi(document({path: {method: {"responses": {}, **operation}}}, **more))
    return tool


def body(schema, *, media="application/json", **more):
    return {"requestBody": {"required": True, "content": {media: {"schema": schema}}, **more}}


def answering(schema, *, code="200", **media):
    return {"responses": {code: {"description": "", "content": {"application/json": {"schema": schema, **media}}}}}
