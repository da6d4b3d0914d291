"""Read tools from Python: functions, Pydantic classes, LangChain tools, and function dicts.

A function or LangChain tool becomes the spec's `real`, which a rehearsal does not run unless the user opens it. Its
result schema comes from the return annotation if Pydantic supports the type. Parameters that a framework injects are
hidden, and filled when the tool runs; if a required one has no known source, the spec has no `real`.
"""

from __future__ import annotations

import inspect
import re
import textwrap
import types
import typing
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolArg, create_schema_from_function
from pydantic import BaseModel, PydanticUserError, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUndefinedAnnotation

from ..errors import NotMade, ToolkitError
from ..models.answer import is_async
from ..models.failure import REFUSED, is_in_doubt
from ..models.formatting import one_line
from ..schemas.subschemas import MAPS, rebuild
from ..state import JsonObject
from ..values.digest import Finding
from .crossing import find_tool, made_by, place_of
from .declaration import Tool
from .function_dicts import (
    as_parameters,
    as_schema,
    effect_of_annotations,
    spec_of_dict,
    split_declared,
    tool_descriptions,
)
from .real import CALL_ID
from .spec import ToolSpec, read_tags
from .typed import Types, by_name, find_model_faults, hints_of, optional_of

_NO_JSON = (PydanticUserError, PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUndefinedAnnotation)


def read_tools(tools: Any) -> tuple[list[ToolSpec], list[Tool]]:
    """Return the specs of a list of tools or of a mapping of function dicts, and the declarations made with them.

    Raises:
        ToolkitError: It is not a list, or an item is not a tool or cannot be read.
    """
    if isinstance(tools, type | Tool | BaseTool) or callable(tools):
        raise ToolkitError("expected a list of tools, got one tool: put it into brackets, [tool]")
    if isinstance(tools, str | bytes) or not isinstance(tools, Iterable):
        raise ToolkitError(f"expected a list of tools, got {type(tools).__name__}; for a file use Toolkit.from_openapi")
    listed = tool_descriptions(tools, where="tools") if isinstance(tools, Mapping) else tools
    given = [_with_declared(one if isinstance(one, Tool) else Tool(one), f"tools[{n}]") for n, one in enumerate(listed)]
    read = [spec_of(one.source, where=f"tools[{index}]") for index, one in enumerate(given)]
    specs = [replace(spec, name=one.name or spec.name) for spec, one in zip(read, given, strict=True)]
    return specs, [replace(one, source=spec.name, name=None) for spec, one in zip(specs, given, strict=True)]


def _with_declared(tool: Tool, where: str) -> Tool:
    """Return a tool with the declarations of its function dict that the `Tool` itself leaves out."""
    if not isinstance(tool.source, Mapping):
        return tool
    source, declared = split_declared(tool.source, where=where)
    return replace(tool, source=source, **{key: one for key, one in declared.items() if getattr(tool, key) is None})


def spec_of(tool: Any, *, where: str) -> ToolSpec:
    """Return the spec of a ToolSpec, a function dict, a Pydantic class, a LangChain tool or a function.

    Raises:
        ToolkitError: It is anything else, or cannot be read.
    """
    if isinstance(tool, ToolSpec):
        return tool
    if isinstance(tool, Mapping):
        return spec_of_dict(tool, where=where)
    if isinstance(tool, type) and issubclass(tool, BaseModel):
        return _spec_of_class(tool, where)
    if isinstance(tool, BaseTool):
        return _spec_of_langchain(tool, where)
    if callable(tool) and not isinstance(tool, type):
        return _spec_of_function(tool, where)
    raise ToolkitError(
        f"{where}: {type(tool).__name__} cannot be a tool; pass functions, LangChain tools, Pydantic classes, "
        "function dicts or ToolSpecs"
    )


def _spec_of_class(model: type[BaseModel], where: str) -> ToolSpec:
    shown = f"{where} ({model.__name__})"
    inherited = any(model.__doc__ == one.__doc__ for one in model.__mro__[1:])
    return ToolSpec(
        name=model.__name__,
        description="" if inherited else inspect.cleandoc(model.__doc__ or ""),
        parameters=_parameters_of(model, where=shown),
    )


def _spec_of_function(function: Callable[..., Any], where: str) -> ToolSpec:
    name = getattr(function, "__name__", type(function).__name__)
    if name == "<lambda>" or isinstance(function, partial):
        raise ToolkitError(f"{where}: a tool needs a name: write the function with def")
    said, shown = function.__doc__, f"{where} ({name})"
    if not hasattr(function, "__qualname__"):  # an object that is called
        function = type(function).__call__.__get__(function)
        said = said or function.__doc__
    hints = hints_of(function)
    injected = find_injected(hints)
    types = Types(function).without(injected)
    try:
        for key, one in inspect.signature(function).parameters.items():
            if one.kind is one.POSITIONAL_ONLY:
                raise TypeError(f"the parameter {key!r} is positional only; tools are called by name")
        model = create_schema_from_function(name, function, filter_args=list(injected))
    except (TypeError, ValueError, NameError, *_NO_JSON) as error:
        raise ToolkitError(f"{shown}: its signature cannot be read: {error}") from None
    docstring = read_docstring(said)
    result = _schema_of(hints.get("return", Any), where=shown)
    return ToolSpec(
        name=name,
        description=docstring.description,
        parameters=_add_descriptions(_open_for_kwargs(_parameters_of(model, where=shown), function), docstring),
        result={"description": docstring.returns, **result} if result and docstring.returns else result,
        real=made_by(_as_real, function, name, injected, types),
        accepts=types.find_faults if types else None,
    )


def _add_descriptions(parameters: JsonObject, docstring: Docstring) -> JsonObject:
    properties = dict(parameters.get("properties", {}))
    for name, text in docstring.arguments.items():
        if text and isinstance(properties.get(name), dict):
            properties[name] = {"description": text, **properties[name]}
    return {**parameters, "properties": properties} if properties else parameters


def _open_for_kwargs(parameters: JsonObject, function: Callable[..., Any]) -> JsonObject:
    """Return the parameters without `*args`; additional properties are allowed if the function takes `**kwargs`."""
    for name, one in inspect.signature(function).parameters.items():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            kept = {key: value for key, value in parameters["properties"].items() if key != name}
            parameters = {**parameters, "properties": kept}
            parameters["required"] = [key for key in parameters.get("required", ()) if key != name]
        if one.kind is one.VAR_KEYWORD:
            parameters["additionalProperties"] = True
    return parameters


def _as_real(
    function: Callable[..., Any], name: str, injected: Mapping[str, Any], types: Types
) -> Callable[..., Any] | None:
    """Return the function of a call's arguments alone; None if a required parameter has no known source."""
    known, optional = inspect.signature(function).parameters.keys() & injected, optional_of(function)
    if any(injected[key] is None for key in known - optional):
        return None
    sources = {key: one for key in known if (one := injected[key]) and (one.part != "config" or key not in optional)}
    given = partial(fill, name, sources, optional)
    typed = types.around(function)
    return by_name(lambda args: typed(**given(args)), is_async=is_async(function)) if sources else typed


def _spec_of_langchain(tool: BaseTool, where: str) -> ToolSpec:
    shown = f"{where} ({tool.name})"
    schema: Any = tool.tool_call_schema
    if isinstance(schema, Mapping):
        parameters = as_parameters({key: one for key, one in schema.items() if key != "description"}, where=shown)
    else:
        parameters = _parameters_of(schema, where=shown)
    parameters = _add_descriptions(parameters, read_docstring(tool.description))
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters=parameters,
        result=_langchain_result(tool, where=shown),
        effect=effect_of_annotations(tool.metadata),
        tags=read_tags(tool.tags),
        real=made_by(_as_function, *place_of(tool)),
        accepts=made_by(_find_acceptor, *place_of(tool)),
    )


def _as_function(given: BaseTool | str, attribute: str) -> Callable[..., Any] | None:
    """Return a LangChain tool as a function that returns its value, or None if a required value has no source.

    It returns a message instead if the tool has an artifact or handles its errors.
    """
    tool = find_tool(given, attribute)
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or tool._run
    schema = None if isinstance(tool.args_schema, Mapping) else tool.get_input_schema()
    injected = find_injected({**hints_of(function), **(hints_of(schema) if schema else {})})
    seen, fields = getattr(tool.tool_call_schema, "model_fields", {}), getattr(schema, "model_fields", {})
    required = {name for name, field in fields.items() if name not in seen and field.is_required()}
    if any(injected.get(name) is None for name in required):
        return None
    own = {one.part: name for name, one in injected.items() if one and one.part in ("config", "tool_call_id")}
    sources = {name: one for name, one in injected.items() if one and one.part not in own}  # LangChain fills its own
    complete = partial(fill, tool.name, sources, (fields.keys() | optional_of(function)) - required)
    handlers = {name: _as_message(getattr(tool, name)) for name in ("handle_tool_error", "handle_validation_error")}
    tool = tool.model_copy(update={name: one for name, one in handlers.items() if one})
    as_call = tool.response_format == "content_and_artifact" or "tool_call_id" in own
    runs_async = getattr(tool, "func", True) is None
    invoke = tool.ainvoke if runs_async else tool.invoke

    def run(args: JsonObject) -> Any:
        given = complete(args) if sources else args
        call = {"name": tool.name, "id": CALL_ID.get() or "rehearsal", "type": "tool_call", "args": given}
        return invoke(call if as_call else given)

    return by_name(run, is_async=runs_async)


def _find_acceptor(given: BaseTool | str, attribute: str) -> Callable[[JsonObject], list[Finding]] | None:
    """Return a check of arguments by the tool's Pydantic model; None if the tool handles validation errors itself."""
    tool = find_tool(given, attribute)
    model: Any = tool.args_schema
    seen = getattr(tool.tool_call_schema, "model_fields", {})
    is_model = isinstance(model, type) and issubclass(model, BaseModel) and not tool.handle_validation_error
    return partial(find_model_faults, model, frozenset(seen)) if is_model else None


def _as_message(handler: Any) -> Callable[[Exception], Any] | None:
    """Return a tool's error handler, wrapped to return its text as a message with the status `error`."""

    def handle(error: Exception) -> Any:
        content = handler(error) if callable(handler) else handler if isinstance(handler, str) else str(error)
        more = {} if is_in_doubt(error) else REFUSED
        return ToolMessage(content, status="error", tool_call_id="rehearsal", additional_kwargs=more)

    return handle if handler else None


def _langchain_result(tool: BaseTool, *, where: str) -> JsonObject | None:
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)._run
    annotation = hints_of(function).get("return", Any)
    if tool.response_format == "content_and_artifact":
        parts = typing.get_args(annotation)
        return {"type": "string"} if parts and parts[0] is str else None  # content blocks count as their text
    return _schema_of(annotation, where=where)


def _schema_of(annotation: Any, *, where: str) -> JsonObject | None:
    # commands and messages are addressed to the framework; they are no result
    parts = typing.get_args(annotation) or (annotation,)
    if annotation in (Any, object) or any(map(is_from_framework, parts)):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            schema = TypeAdapter(annotation).json_schema(mode="serialization")
        except (*_NO_JSON, TypeError):
            return None
    return as_schema(_strip_titles(schema), where=f"{where}, result") or None


def _parameters_of(model: Any, *, where: str) -> JsonObject:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            schema = _strip_titles(model.model_json_schema())
        except _NO_JSON as error:
            reason = str(error).split("\n", 1)[0]
            raise ToolkitError(f"{where}: an argument has a type that has no JSON Schema: {reason}") from None
    plain = {key: one for key, one in schema.items() if key not in ("title", "description")}
    return as_parameters(plain, where=f"{where}, parameters")


def _strip_titles(schema: Any) -> Any:
    """Remove the titles that Pydantic generates from names."""
    if not isinstance(schema, dict):
        return schema
    plain = rebuild(schema, _strip_titles)
    for name, one in ((name, one) for key in MAPS & plain.keys() for name, one in plain[key].items()):
        if isinstance(one, dict) and one.get("title") in (name, name.replace("_", " ").title()):
            del one["title"]
    return plain


_PART = re.compile(
    r"(?m)^(?:(Args|Arguments|Parameters|Returns?|Yields|Raises|Examples?|Notes?|Warnings?)"
    r"|:(?:param|parameter|arg)\b[^:\n]*?\b(\w+)|:(returns?|rtype|type|raises)\b[^:\n]*):"
)
_ARGUMENT = re.compile(r"(?m)^\*{0,2}(\w+) *+(?:\([^)\n]*\) *+)?:")


class Docstring(NamedTuple):
    """The parsed parts of a docstring."""

    description: str
    arguments: dict[str, str]
    returns: str


def read_docstring(text: str | None) -> Docstring:
    """Parse a docstring in Google's form or with `:param name:`; other text is description.

    LangChain's own parser rejects docstrings whose sections are not separated by blank lines.
    """
    description, *parts = _PART.split(inspect.cleandoc(text or ""))
    arguments, returns = dict[str, str](), ""
    for section, parameter, reported, body in zip(*(parts[number::4] for number in range(4)), strict=True):
        if parameter:
            arguments[parameter] = one_line(body)
        elif section in ("Args", "Arguments", "Parameters"):
            _, *found = _ARGUMENT.split(textwrap.dedent(body))
            arguments |= dict(zip(found[::2], map(one_line, found[1::2]), strict=True))
        elif (section or reported).lower().startswith("return"):
            returns = one_line(body)
    return Docstring(description.strip(), arguments, returns)


# parameters that LangGraph's `ToolNode` injects: runtime, state, store, config, call id ------------------------------

_KNOWN = {
    "ToolRuntime": "", "RunnableConfig": "config", "InjectedToolCallId": "tool_call_id", "InjectedState": "state",
    "InjectedStore": "store", "BaseStore": "store",
}  # fmt: skip
"""Classes that mark an injected parameter, and their attribute of the call's `ToolRuntime`."""


class InjectedSource(NamedTuple):
    """Source of an injected value: a `ToolRuntime` attribute or a field of it; the whole runtime if `part` is ""."""

    part: str
    field: str | None


def find_injected(hints: Mapping[str, Any]) -> dict[str, InjectedSource | None]:
    """Return the injected parameters with their sources; None for an unknown source."""
    found: dict[str, InjectedSource | None] = {"run_manager": None, "callbacks": None}
    for name, hint in ((key, one) for key, one in hints.items() if key != "return"):
        members = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
        parts = [(*getattr(one, "__metadata__", ()), getattr(one, "__origin__", one)) for one in members]
        for part in (part for each in parts for part in each):
            kind = part if isinstance(part, type) else type(part)
            if issubclass(kind, InjectedToolArg) or (kind is part and is_from_framework(part)):
                known = kind.__name__ in _KNOWN and is_from_framework(kind)
                source = InjectedSource(_KNOWN[kind.__name__], getattr(part, "field", None)) if known else None
                found[name] = found.get(name) or source
    return found


def is_from_framework(annotation: Any) -> bool:
    """Return whether a type is defined by LangChain or LangGraph."""
    return str(getattr(annotation, "__module__", "")).startswith(("langchain", "langgraph"))


def fill(
    tool: str, sources: Mapping[str, InjectedSource], optional: Collection[str], args: JsonObject
) -> dict[str, Any]:
    """Return a call's arguments together with the injected values from the running graph. Raises NotMade."""
    given, runtime = {name: value for name, value in args.items() if name not in sources}, _read_runtime()
    for name, source in sources.items():
        try:
            given[name] = _read(runtime, source)
        except LookupError as error:
            if name not in optional:
                raise NotMade(f"{tool} was not called: {name!r} cannot be injected: {error.args[0]}") from None
    return given


def _read_runtime() -> Any:
    """Return the `ToolRuntime` of a call in the running graph; None outside of a graph."""
    from langgraph.config import get_config
    from langgraph.prebuilt import ToolRuntime
    from langgraph.runtime import get_runtime

    try:
        config, runtime = get_config(), get_runtime()
    except (RuntimeError, KeyError):
        return None
    if runtime is None:  # a chain without a graph
        return None
    read = config["configurable"].get("__pregel_read")
    state = read(list(read.args[1]), True) if read else {}
    shared = {name: getattr(runtime, name) for name in ("context", "store", "stream_writer")}
    return ToolRuntime(state=state, config=config, tool_call_id=CALL_ID.get() or uuid4().hex, **shared)


def _read(runtime: Any, source: InjectedSource) -> Any:
    if runtime is None:
        raise LookupError("no graph is running")
    value = getattr(runtime, source.part) if source.part else runtime
    if value is None:
        raise LookupError(f"the graph was compiled without a {source.part}")
    if source.field and source.field not in value:
        raise LookupError(f"the graph's {source.part} has no {source.field!r}")
    return value[source.field] if source.field else value
