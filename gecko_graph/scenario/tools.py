"""Read toolkits from files and modules: OpenAPI documents, lists of tool descriptions, `module:NAME`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..conversation.milestones.format import MilestoneEntry
from ..errors import GeckoError, ScenarioError, ToolkitError, did_you_mean
from ..tools import Toolkit
from ..tools.function_dicts import tool_descriptions
from ..values.documents import parse_document, read_document, read_text

_OPENAPI = frozenset({"openapi", "swagger", "asyncapi"})
_IN_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def is_in_module(name: object) -> bool:
    return isinstance(name, str) and bool(_IN_MODULE.fullmatch(name))


def find_module(given: str) -> str | None:
    """Return `module:NAME` for a Python file or module that is named in another way, else None."""
    place, _, attribute = given.partition(":")
    stem = Path(place.removesuffix(".py"))
    is_python = place.endswith(".py") or (not stem.exists() and Path(f"{place.replace('.', '/')}.py").is_file())
    module = ".".join(stem.parts if not stem.is_absolute() else stem.parts[-1:])
    written = f"{module}:{attribute or 'NAME'}"
    return written if is_python and written != given else None


def load_name(name: str, *, what: str, folder: Path | None = None) -> Any:
    """Return the attribute that `module:NAME` names; the working folder and `folder` are searched first.

    Raises:
        GeckoError: The module cannot be imported, has no such attribute, or hides the file of that name in a searched
            folder.
    """
    module, _, attribute = name.partition(":")
    places = [Path.cwd(), *([folder.resolve()] if folder else [])]
    sys.path[:0] = [place for place in map(str, places) if place not in sys.path]
    try:
        found = import_module(module)
    except Exception as error:
        raise GeckoError(f"{what} {name}: {module} cannot be imported: {type(error).__name__}: {error}") from error
    files = (place / f"{module.replace('.', '/')}.py" for place in places)
    file, imported = next((each for each in files if each.is_file()), None), getattr(found, "__file__", None)
    if file and (imported is None or not file.samefile(imported)):
        raise GeckoError(f"{what} {name}: {file} is hidden by {imported or 'a built-in module'}: rename it")
    if not hasattr(found, attribute):
        known = [each for each in dir(found) if not each.startswith("_")]
        raise GeckoError(f"{what} {name}: {module} has no {attribute!r}{did_you_mean(attribute, known)}")
    return getattr(found, attribute)


def read_toolkit(path: str | Path, *, folder: Path | None = None, allow_remote: bool = False) -> Toolkit:
    """Read tools from a file: an OpenAPI document, or function dicts as YAML, JSON or JSON lines.

    Args:
        path: The file; or `-` for the standard input; or, with `allow_remote`, an `https` address of an OpenAPI
            document; or `module:NAME` of a Toolkit or of any input of `Toolkit.from_tools`.
        folder: A folder to search for modules besides the working folder.
        allow_remote: Whether an address and references to the web are followed.

    Raises:
        GeckoError: A module cannot be imported, or has no such attribute.
        ToolkitError: The file is missing, broken or neither of these; or the module's attribute contains no tools.
    """
    if module := find_module(str(path)):
        raise ToolkitError(f"{path}: name Python tools by module and attribute: {module}")
    if is_in_module(path):
        found = load_name(str(path), what="tools", folder=folder)
        try:
            return found if isinstance(found, Toolkit) else Toolkit.from_tools(found, title=str(path).partition(":")[0])
        except ToolkitError as error:
            raise ToolkitError(f"tools {path}: {error}") from None
    if "://" in str(path):
        return Toolkit.from_openapi(str(path), allow_remote=allow_remote)
    file = Path(path)
    document = _read_document(file)
    if isinstance(document, dict) and document.keys() & _OPENAPI:
        source = document if str(path) == "-" else file
        return Toolkit.from_openapi(source, parsed=document, allow_remote=allow_remote)
    if isinstance(document, dict) and {"turns", "tools"} <= document.keys():
        raise ToolkitError(f"{file} is a scenario, which includes its tools and tasks: use gecko-graph run {file}")
    described = tool_descriptions(document, where=str(file))
    if not described:
        raise ToolkitError(f"{file}: it contains no tools")
    return Toolkit.from_tools(described, title=file.stem)


def toolkit_of(tools: Any, *, folder: Path, where: str, allow_outside: bool = False) -> Toolkit:
    """Read the tools of a scenario: a path relative to its folder, `module:NAME`, a document, or function dicts.

    Raises:
        ScenarioError: There is no such file or name, or it is outside the folder and `allow_outside` is False.
        ToolkitError: They cannot be read.
    """
    if is_in_module(tools) and not (folder / tools).exists():
        try:
            return read_toolkit(tools, folder=folder)
        except GeckoError as error:
            raise ScenarioError(f"{where}: {error}") from None
    if isinstance(tools, str):
        return read_toolkit(_find_file(tools, "tools", folder=folder, where=where, allow_outside=allow_outside))
    try:
        return Toolkit.from_openapi(tools) if isinstance(tools, dict) else Toolkit.from_tools(tools)
    except ToolkitError as error:
        raise ToolkitError(f"{where}: tools: {error}") from None


def add_contracts(
    toolkit: Toolkit, contracts: Any, *, folder: Path, where: str, allow_outside: bool = False
) -> Toolkit:
    """Add a scenario's contracts: a path relative to its folder, the content of such a file, or a list of both.

    Raises:
        ScenarioError: There is no such file, or it is outside the folder and `allow_outside` is False.
        ToolkitError: They cannot be read, or name a tool that the toolkit does not have.
        ContractError: A contract is wrong.
    """
    for one in contracts if isinstance(contracts, list) else [contracts]:
        if not isinstance(one, str | dict):
            raise ScenarioError(f"{where}: contracts: expected a path or an object, got {type(one).__name__}")
        if isinstance(one, str):
            one = _find_file(one, "contracts", folder=folder, where=where, allow_outside=allow_outside)
        toolkit = toolkit.with_contracts(one)
    return toolkit


def check_names(toolkit: Toolkit, names: Sequence[str], *, where: str) -> None:
    """Raise ScenarioError if a scenario names a tool that its toolkit does not have."""
    for number, name in enumerate(names):
        if name not in toolkit:
            raise ScenarioError(f"{where}[{number}]: unknown tool {name!r}{did_you_mean(name, toolkit.names)}")


def check_calls(toolkit: Toolkit, entries: Sequence[MilestoneEntry], *, where: str) -> None:
    """Raise ScenarioError if a milestone names a tool or an argument that the toolkit does not have."""
    for number, entry in enumerate(entries):
        calls, place = entry.call or [], f"{where}[{number}]"
        check_names(toolkit, [call.name for call in calls], where=f"{place}.call")
        check_names(toolkit, [entry.source.call] if entry.source and entry.source.call else [], where=f"{place}.from")
        for at, call in enumerate(calls):
            parameters = toolkit[call.name].parameters
            known = parameters.get("properties", {})
            unknown = [
                name for name in call.args if name not in known and not parameters.get("additionalProperties", True)
            ]
            if unknown:
                hint = did_you_mean(unknown[0], known)
                raise ScenarioError(f"{place}.call[{at}].args: {call.name} has no argument {unknown[0]!r}{hint}")


def _find_file(name: str, key: str, *, folder: Path, where: str, allow_outside: bool) -> Path:
    file = folder / name
    try:
        is_inside = file.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # too long, a loop of links, or a null character
        raise ScenarioError(f"{where}: {key}: {name!r} is not a valid file name") from None
    if not allow_outside and not is_inside:
        raise ScenarioError(
            f"{where}: {key}: {name} is outside the scenario's folder; to read it use --allow-outside, or "
            "allow_outside=True in Python"
        )
    if not file.is_file():
        raise ScenarioError(f"{where}: {key}: no such file: {file} (paths are relative to the scenario's folder)")
    return file


def _read_document(file: Path) -> Any:
    if str(file) == "-":
        return parse_document(sys.stdin.buffer.read().decode("utf-8-sig", "replace"), where="the standard input")
    if file.suffix != ".jsonl":
        return read_document(file)
    lines = read_text(file).splitlines()
    return [parse_document(line, where=f"{file} line {number}") for number, line in enumerate(lines, 1) if line.strip()]
