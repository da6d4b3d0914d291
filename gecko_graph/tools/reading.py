"""Read toolkits from files and modules: OpenAPI documents, lists of tool descriptions, `module:NAME`."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import GeckoError, ToolkitError, did_you_mean
from ..values.documents import parse_document, read_document, read_text
from .function_dicts import tool_descriptions
from .toolkit import Toolkit

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


def _read_document(file: Path) -> Any:
    if str(file) == "-":
        return parse_document(sys.stdin.buffer.read().decode("utf-8-sig", "replace"), where="the standard input")
    if file.suffix != ".jsonl":
        return read_document(file)
    lines = read_text(file).splitlines()
    return [parse_document(line, where=f"{file} line {number}") for number, line in enumerate(lines, 1) if line.strip()]
