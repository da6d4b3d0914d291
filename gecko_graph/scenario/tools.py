"""Toolkits from files: OpenAPI documents, and lists of tool descriptions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..conversation.milestones.format import MilestoneEntry
from ..errors import ScenarioError, ToolkitError, did_you_mean
from ..tools import Toolkit
from ..tools.function_dicts import tool_descriptions
from ..values.documents import parse_document, read_document, read_text

_OPENAPI = frozenset({"openapi", "swagger", "asyncapi"})


def read_toolkit(path: str | Path, *, allow_remote: bool = False) -> Toolkit:
    """Read the tools of a file: an OpenAPI document, or tool descriptions (function dicts) as YAML, JSON or JSON lines.

    Args:
        path: The file; `-` for the standard input; with `allow_remote` also an `https` address of an OpenAPI document.
        allow_remote: Whether an address, and references to the web, are followed.

    Raises:
        ToolkitError: The file is missing or broken, or is neither.
    """
    if "://" in str(path):
        return Toolkit.from_openapi(str(path), allow_remote=allow_remote)
    file = Path(path)
    document = _read_document(file)
    if isinstance(document, dict) and document.keys() & _OPENAPI:
        source = document if str(path) == "-" else file
        return Toolkit.from_openapi(source, parsed=document, allow_remote=allow_remote)
    if isinstance(document, dict) and {"turns", "tools"} <= document.keys():
        raise ToolkitError(f"{file} is a scenario, which holds its own tools and tasks: gecko-graph run {file}")
    described = tool_descriptions(document, where=str(file))
    if not described:
        raise ToolkitError(f"{file}: it holds no tools")
    return Toolkit.from_tools(described, title=file.stem)


def toolkit_of(tools: Any, *, folder: Path, where: str, allow_outside: bool = False) -> Toolkit:
    """Read the tools of a scenario: a path relative to its folder, an OpenAPI document, or a list of function dicts.

    Raises:
        ScenarioError: There is no such file, or it is outside the folder and `allow_outside` is False.
        ToolkitError: They cannot be read.
    """
    if isinstance(tools, str):
        return read_toolkit(_find_file(tools, "tools", folder=folder, where=where, allow_outside=allow_outside))
    try:
        return Toolkit.from_openapi(tools) if isinstance(tools, dict) else Toolkit.from_tools(tools)
    except ToolkitError as error:
        raise ToolkitError(f"{where}: tools: {error}") from None


def add_contracts(
    toolkit: Toolkit, contracts: Any, *, folder: Path, where: str, allow_outside: bool = False
) -> Toolkit:
    """Add a scenario's contracts: a path as that of its tools, the content of such a file, or a list of both.

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
    """Raise ScenarioError where a scenario names a tool that its toolkit does not have."""
    for number, name in enumerate(names):
        if name not in toolkit:
            raise ScenarioError(f"{where}[{number}]: unknown tool {name!r}{did_you_mean(name, toolkit.names)}")


def check_calls(toolkit: Toolkit, entries: Sequence[MilestoneEntry], *, where: str) -> None:
    """Raise ScenarioError where a milestone names a tool or an argument that the toolkit does not have."""
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
    """Return the file that a scenario names. Raises ScenarioError."""
    file = folder / name
    try:
        is_inside = file.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # too long, a loop of links, a null character
        raise ScenarioError(f"{where}: {key}: {name!r} cannot be the name of a file") from None
    if not allow_outside and not is_inside:
        raise ScenarioError(
            f"{where}: {key}: {name} leads out of the scenario's folder; to read it: --allow-outside, in "
            "Python allow_outside=True"
        )
    if not file.is_file():
        raise ScenarioError(f"{where}: {key}: no such file: {file} (a path is relative to the scenario's folder)")
    return file


def _read_document(file: Path) -> Any:
    if str(file) == "-":
        return parse_document(sys.stdin.buffer.read().decode("utf-8-sig", "replace"), where="the standard input")
    if file.suffix != ".jsonl":
        return read_document(file)
    lines = read_text(file).splitlines()
    return [parse_document(line, where=f"{file} line {number}") for number, line in enumerate(lines, 1) if line.strip()]
