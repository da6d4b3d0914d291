"""Tools from Python: functions, Pydantic classes, LangChain tools, and function dicts.

A function or a LangChain tool is a *real* one: it becomes the spec's `real` and is not run in a rehearsal unless the
user opens it. Its result schema comes from the return annotation, where Pydantic knows one. Parameters that a framework
injects are left out, and filled when the tool runs; a tool that needs another than `injected` knows has no `real`.
"""

from __future__ import annotations

import inspect
import typing
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, PydanticUserError, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUndefinedAnnotation

from ..errors import ToolkitError
from ..models.doubt import REFUSED, is_in_doubt
from ..schemas.subschemas import MAPS, rebuild
from ..state import JsonObject
from .docstrings import Docstring, read_docstring
from .function_dicts import as_parameters, as_schema, effect_of_annotations, spec_of_dict, tool_descriptions
from .injected import CALL_ID, fill, find_injected, is_from_framework
from .spec import ToolSpec, read_tags

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

_NO_JSON = (PydanticUserError, PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUndefinedAnnotation)


def specs_of(tools: Any) -> list[ToolSpec]:
    """Return the specs of a list of tools, or of a document of function dicts by name.

    Raises:
        ToolkitError: It is not a list, or something in it is not a tool or cannot be read.
    """
    if isinstance(tools, type) or _is_langchain(tools) or callable(tools):
        raise ToolkitError("expected a list of tools, got one tool: put it into brackets, [tool]")
    if isinstance(tools, str | bytes) or not isinstance(tools, Iterable):
        raise ToolkitError(f"expected a list of tools, got {type(tools).__name__}; for a file use Toolkit.from_openapi")
    listed = tool_descriptions(tools, where="tools") if isinstance(tools, Mapping) else tools
    return [spec_of(tool, where=f"tools[{index}]") for index, tool in enumerate(listed)]


def spec_of(tool: Any, *, where: str) -> ToolSpec:
    """Return the spec of a ToolSpec, a function dict, a Pydantic class, a LangChain tool or a function.

    Raises:
        ToolkitError: It is something else, or cannot be read.
    """
    if isinstance(tool, ToolSpec):
        return tool
    if isinstance(tool, Mapping):
        return spec_of_dict(tool, where=where)
    if isinstance(tool, type) and issubclass(tool, BaseModel):
        return _spec_of_class(tool, where)
    if _is_langchain(tool):
        return _spec_of_langchain(tool, where)
    if callable(tool) and not isinstance(tool, type):
        return _spec_of_function(tool, where)
    raise ToolkitError(
        f"{where}: {type(tool).__name__} cannot be a tool; pass functions, LangChain tools, Pydantic classes, "
        "function dicts or ToolSpecs"
    )


def check_simulation(function: Any, tool: ToolSpec) -> None:
    """Check that a function can simulate a tool: `simulate(state, **args)`, with all arguments and with the required.

    Raises:
        ToolkitError: It cannot be called so.
    """
    if not callable(function):
        raise ToolkitError(f"simulate for {tool.name!r}: expected a function, got {type(function).__name__}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some functions written in C have no signature to read
    known = tool.parameters.get("properties", {})
    required = [name for name in tool.parameters.get("required", []) if name in known]
    for names in (known, required):
        try:
            signature.bind({}, **dict.fromkeys(names))
        except TypeError as error:
            wanted = ", ".join(["state", *required, *(f"{name}=None" for name in known if name not in required)])
            raise ToolkitError(
                f"simulate for {tool.name!r}: {error}; it is called with the task state and then the tool's arguments "
                f"by name: def simulate({wanted})"
            ) from None


def _is_langchain(tool: Any) -> bool:
    from langchain_core.tools import BaseTool

    return isinstance(tool, BaseTool)


def _spec_of_class(model: type[BaseModel], where: str) -> ToolSpec:
    shown = f"{where} ({model.__name__})"
    inherited = any(model.__doc__ == one.__doc__ for one in model.__mro__[1:])
    return ToolSpec(
        name=model.__name__,
        description="" if inherited else inspect.cleandoc(model.__doc__ or ""),
        parameters=_parameters_of(model, where=shown),
    )


def _spec_of_function(function: Callable[..., Any], where: str) -> ToolSpec:
    from langchain_core.tools import create_schema_from_function

    name = getattr(function, "__name__", "")
    if not name or name == "<lambda>" or not hasattr(function, "__qualname__"):
        raise ToolkitError(f"{where}: a tool needs a name: write the function with def")
    shown = f"{where} ({name})"
    _check_not_positional(function, shown)
    try:
        injected = find_injected(_hints(function))
        model = create_schema_from_function(name, function, filter_args=list(injected))
    except (TypeError, ValueError, NameError, *_NO_JSON) as error:
        raise ToolkitError(f"{shown}: its signature cannot be read: {error}") from None
    docstring = read_docstring(function.__doc__)
    result = _schema_of(_return_annotation(function), where=shown)
    return ToolSpec(
        name=name,
        description=docstring.description,
        parameters=_add_descriptions(_open_for_kwargs(_parameters_of(model, where=shown), function), docstring),
        result={"description": docstring.returns, **result} if result and docstring.returns else result,
        real=_as_real(function, name, injected),
    )


def _add_descriptions(parameters: JsonObject, docstring: Docstring) -> JsonObject:
    """Return the parameters with the docstring's descriptions, where they have none themselves."""
    properties = {
        name: {"description": docstring.arguments[name], **one}
        if docstring.arguments.get(name) and isinstance(one, dict)
        else one
        for name, one in parameters.get("properties", {}).items()
    }
    return {**parameters, "properties": properties} if properties else parameters


def _check_not_positional(function: Callable[..., Any], where: str) -> None:
    for name, one in inspect.signature(function).parameters.items():
        if one.kind is one.POSITIONAL_ONLY:
            raise ToolkitError(f"{where}: the parameter {name!r} is positional only; tools are called by name")


def _open_for_kwargs(parameters: JsonObject, function: Callable[..., Any]) -> JsonObject:
    """Return the parameters without `*args`, and open where the function takes `**kwargs`."""
    for name, one in inspect.signature(function).parameters.items():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            kept = {key: value for key, value in parameters["properties"].items() if key != name}
            parameters = {**parameters, "properties": kept}
            parameters["required"] = [key for key in parameters.get("required", ()) if key != name]
        if one.kind is one.VAR_KEYWORD:
            parameters["additionalProperties"] = True
    return parameters


def _as_real(function: Callable[..., Any], name: str, injected: Mapping[str, Any]) -> Callable[..., Any] | None:
    """Return the function of a call's arguments alone; None where nothing here fills a parameter that it needs."""
    known, optional = inspect.signature(function).parameters.keys() & injected, _optional(function)
    if any(injected[key] is None for key in known - optional):
        return None
    sources = {key: one for key in known if (one := injected[key]) and (one.part != "config" or key not in optional)}
    given = partial(fill, name, sources, optional)
    is_async = inspect.iscoroutinefunction(function)
    return _by_name(lambda args: function(**given(args)), is_async=is_async) if sources else function


def _by_name(function: Callable[[JsonObject], Any], *, is_async: bool) -> Callable[..., Any]:
    async def arun(**args: Any) -> Any:
        return await function(args)

    return arun if is_async else lambda **args: function(args)


def _optional(function: Callable[..., Any]) -> set[str]:
    return {name for name, one in inspect.signature(function).parameters.items() if one.default is not one.empty}


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
        real=_as_function(tool),
    )


def _as_function(tool: BaseTool) -> Callable[..., Any] | None:
    """Return the tool as a function that gives its value; a message where it has an artifact or handles its error.

    None where it needs what no call and no graph has.
    """
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or tool._run
    schema = None if isinstance(tool.args_schema, Mapping) else tool.get_input_schema()
    injected = find_injected({**_hints(function), **(_hints(schema) if schema else {})})
    seen, fields = getattr(tool.tool_call_schema, "model_fields", {}), getattr(schema, "model_fields", {})
    required = {name for name, field in fields.items() if name not in seen and field.is_required()}
    if any(injected.get(name) is None for name in required):
        return None
    own = {one.part: name for name, one in injected.items() if one and one.part in ("config", "tool_call_id")}
    sources = {name: one for name, one in injected.items() if one and one.part not in own}  # LangChain fills its own
    complete = partial(fill, tool.name, sources, (fields.keys() | _optional(function)) - required)
    handlers = {name: _as_message(getattr(tool, name)) for name in ("handle_tool_error", "handle_validation_error")}
    tool = tool.model_copy(update={name: one for name, one in handlers.items() if one})
    as_call = tool.response_format == "content_and_artifact" or "tool_call_id" in own
    is_async = getattr(tool, "func", True) is None
    invoke = tool.ainvoke if is_async else tool.invoke

    def run(args: JsonObject) -> Any:
        given = complete(args) if sources else args
        call = {"name": tool.name, "id": CALL_ID.get() or "rehearsal", "type": "tool_call", "args": given}
        return invoke(call if as_call else given)

    return _by_name(run, is_async=is_async)


def _as_message(handler: Any) -> Callable[[Exception], Any] | None:
    """Return the handler of a tool's errors, wrapped so that its text comes in a message with the status `error`."""
    from langchain_core.messages import ToolMessage

    def handle(error: Exception) -> Any:
        content = handler(error) if callable(handler) else handler if isinstance(handler, str) else str(error)
        more = {} if is_in_doubt(error) else REFUSED
        return ToolMessage(content, status="error", tool_call_id="rehearsal", additional_kwargs=more)

    return handle if handler else None


def _langchain_result(tool: BaseTool, *, where: str) -> JsonObject | None:
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)._run
    if tool.response_format == "content_and_artifact":
        parts = typing.get_args(_return_annotation(function))
        return {"type": "string"} if parts and parts[0] is str else None  # content blocks count as their text
    return _schema_of(_return_annotation(function), where=where)


def _return_annotation(function: Callable[..., Any]) -> Any:
    """Return the return annotation; Any where there is none that can be read."""
    return _hints(function).get("return", Any)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return {}


def _schema_of(annotation: Any, *, where: str) -> JsonObject | None:
    """Return the JSON Schema of what is returned; None where it is unspecific or not JSON."""
    # a command or a message is addressed to the framework, not a result
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
            schema = model.model_json_schema() if hasattr(model, "model_json_schema") else model.schema()
        except _NO_JSON as error:
            reason = str(error).split("\n", 1)[0]
            raise ToolkitError(f"{where}: an argument has a type that has no JSON Schema: {reason}") from None
    return as_parameters(
        {key: one for key, one in _strip_titles(schema).items() if key not in ("title", "description")},
        where=f"{where}, parameters",
    )


def _strip_titles(schema: Any) -> Any:
    """Return the schema without the titles that Pydantic makes from names."""
    if not isinstance(schema, dict):
        return schema
    plain = rebuild(schema, _strip_titles)
    for key in MAPS & plain.keys():
        plain[key] = {name: _strip_title(one, name) for name, one in plain[key].items()}
    return plain


def _strip_title(schema: Any, name: str) -> Any:
    if isinstance(schema, dict) and schema.get("title") in (name, name.replace("_", " ").title()):
        return {key: one for key, one in schema.items() if key != "title"}
    return schema
