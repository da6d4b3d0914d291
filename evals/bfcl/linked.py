"""BFCL's file system as objects that know one another, for the rung `python`.

A tree of names says nearly all of it. Not all: a copied folder shares what is in it with the first one, what was in
a moved folder still calls the old one its parent, a folder can be moved into itself and is gone, and a file called
`.` hides behind its folder. There the contracts of `examples/files` pass, and these functions answer. How the objects
are linked stands in the state as `_links`, beside `tree` and `cwd`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

from langchain_core.messages import ToolMessage

from gecko_graph.state import JsonObject

from .folders import read_folders, write_folders

LINKS = "_links"


class File:
    """A file: its name and text."""

    def __init__(self, name: str, content: str = "") -> None:
        self.name, self.content = name, content


class Directory:
    """A folder: its name, the folder it was made in, and what is in it by name."""

    def __init__(self, name: str, parent: Directory | None = None) -> None:
        self.name, self.parent = name, parent
        self.contents: dict[str, Any] = {}


class Refusal(Exception):
    """The tool's own error."""


def run(tool: Callable[..., Any], state: JsonObject, /, *, below: str, **args: Any) -> Any:
    """Answer a call on the file system below a key of the task state."""
    part, system = state[below], SimpleNamespace()
    write_folders(system, part, part.get(LINKS), sys.modules[__name__])
    try:
        answer = tool(system, **args)
    except Refusal as refusal:
        block: Any = {"type": "text", "text": json.dumps({"error": str(refusal)})}
        return ToolMessage([block], status="error", tool_call_id="")
    folders, links = read_folders(system, sys.modules[__name__])
    part.update(folders)
    part.pop(LINKS, None)
    if links is not None:
        part[LINKS] = links
    return answer


def pwd(system: Any) -> JsonObject:
    """Name the folders up to the top, as each calls its parent."""
    names, folder = [], system._current_dir
    while folder is not None:
        names.append(folder.name)
        folder = folder.parent
    return {"current_working_directory": "/" + "/".join(names[::-1])}


def ls(system: Any, a: bool = False) -> JsonObject:
    """List the working folder."""
    return {"current_directory_content": [name for name in system._current_dir.contents if a or name[:1] != "."]}


def cd(system: Any, folder: str) -> JsonObject:
    """Go one folder down, up, or to the top."""
    to = folder.rstrip("/") or "/"
    if to == "..":
        if system._current_dir.parent is None:
            is_top = system._current_dir is system.root
            raise Refusal(
                "Current directory is already the root. Cannot go back." if is_top else "cd: ..: No such directory"
            )
        system._current_dir = system._current_dir.parent
        return {}
    if to not in (".", "/") and "/" in to:
        raise Refusal(f"cd: {to}: Unsupported path. Only one folder level at a time is supported.")
    system._current_dir = _folder_at(system, to, "cd")
    return {"current_working_directory": system._current_dir.name}


def mkdir(system: Any, dir_name: str) -> None:
    """Make a folder."""
    _check_new(system, dir_name, f"mkdir: cannot create directory '{dir_name}'")
    system._current_dir.contents[dir_name] = Directory(dir_name, system._current_dir)


def touch(system: Any, file_name: str) -> None:
    """Make a file."""
    _check_new(system, file_name, f"touch: cannot touch '{file_name}'")
    system._current_dir.contents[file_name] = File(file_name)


def echo(system: Any, content: str, file_name: str | None = None) -> JsonObject | None:
    """Write a file, or show the text."""
    if not file_name:
        return {"terminal_output": content}
    _check_letters(file_name, f"echo: cannot write to '{file_name}'")
    if file_name not in system._current_dir.contents:
        raise Refusal(f"echo: cannot write to '{file_name}': No such file")
    item = _item(system, file_name)
    if not isinstance(item, File):
        raise Refusal(f"echo: cannot write to '{file_name}': Is a directory")
    item.content = content
    return None


def cat(system: Any, file_name: str) -> JsonObject:
    """Show a file."""
    _check_letters(file_name, f"cat: '{file_name}'")
    item = _item(system, file_name)
    if not isinstance(item, File):
        raise Refusal(f"cat: '{file_name}': {'Is a directory' if item else 'No such file or directory'}")
    return {"file_content": item.content}


def find(system: Any, path: str = ".", name: str | None = None) -> JsonObject:
    """Name what is below a folder, by a part of the name."""
    start = _folder_at(system, path, "find")
    below = ((place, item) for place, item in _below(start, path.rstrip("/")))
    return {"matches": [place for place, key in below if name is None or name in key]}


def wc(system: Any, file_name: str, mode: str = "l") -> JsonObject:
    """Count lines, words or letters."""
    if mode not in ("l", "w", "c"):
        raise Refusal(f"wc: invalid mode '{mode}'")
    text = _text(system, file_name, "wc")
    count = len(text.splitlines() if mode == "l" else text.split() if mode == "w" else text)
    return {"count": count, "type": {"l": "lines", "w": "words", "c": "characters"}[mode]}


def sort(system: Any, file_name: str) -> JsonObject:
    """Show a file's lines in order."""
    return {"sorted_content": "\n".join(sorted(_text(system, file_name, "sort").splitlines()))}


def grep(system: Any, file_name: str, pattern: str) -> JsonObject:
    """Show a file's lines that hold a text."""
    return {"matching_lines": [line for line in _text(system, file_name, "grep").splitlines() if pattern in line]}


def du(system: Any, human_readable: bool = False) -> JsonObject:
    """Add up the bytes of all files below."""
    size: float = _bytes(system._current_dir)
    if not human_readable:
        return {"disk_usage": f"{size} bytes"}
    for unit in ("B", "KB", "MB", "GB", "TB", "PB"):
        if size < 1024 or unit == "PB":
            return {"disk_usage": f"{size:.2f} {unit}"}
        size /= 1024
    raise AssertionError


def tail(system: Any, file_name: str, lines: int = 10) -> JsonObject:
    """Show a file's last lines."""
    text = _text(system, file_name, "tail").splitlines()
    return {"last_lines": "\n".join(text[-min(lines, len(text)) :])}


def diff(system: Any, file_name1: str, file_name2: str) -> JsonObject:
    """Show where two files' lines differ."""
    texts = [_item(system, name) for name in (file_name1, file_name2)]
    if not all(isinstance(each, File) for each in texts):
        raise Refusal(f"diff: {file_name1} or {file_name2}: No such file or directory")
    one, other = (each.content.splitlines() for each in texts)
    return {"diff_lines": "\n".join(f"- {a}\n+ {b}" for a, b in zip(one, other, strict=False) if a != b)}


def mv(system: Any, source: str, destination: str) -> JsonObject:
    """Move a file or folder. A moved folder is a new one with the same things in it: they keep the old parent."""
    item, into = _from_to(system, "mv", "move", source, destination)
    del system._current_dir.contents[source]
    _put(into or system._current_dir, source if into else destination, item, lambda contents: contents)
    return {"result": f"'{source}' moved to '{destination}{'/' + source if into else ''}'"}


def cp(system: Any, source: str, destination: str) -> JsonObject:
    """Copy a file or folder. What is in a copied folder is not copied: both hold the same."""
    item, into = _from_to(system, "cp", "copy", source, destination)
    _put(into or system._current_dir, source if into else destination, item, dict)
    return {"result": f"'{source}' copied to '{destination}{'/' + source if into else ''}'"}


def rm(system: Any, file_name: str) -> JsonObject:
    """Remove a file, or a folder with all that is in it."""
    if file_name not in system._current_dir.contents:
        raise Refusal(f"rm: cannot remove '{file_name}': No such file or directory")
    del system._current_dir.contents[file_name]
    return {"result": f"'{file_name}' removed"}


def rmdir(system: Any, dir_name: str) -> JsonObject:
    """Remove an empty folder."""
    item = _item(system, dir_name)
    if not isinstance(item, Directory) or item.contents:
        why = (
            "Not a directory"
            if isinstance(item, File)
            else "Directory not empty"
            if item
            else "No such file or directory"
        )
        raise Refusal(f"rmdir: cannot remove '{dir_name}': {why}")
    del system._current_dir.contents[dir_name]
    return {"result": f"'{dir_name}' removed"}


def _item(system: Any, name: str) -> Any:
    """Return what has a name in the working folder, None where nothing has; the folder itself is behind `.`."""
    here = system._current_dir
    return None if name not in here.contents else here if name == "." else here.contents[name]


def _text(system: Any, name: str, tool: str) -> str:
    item = _item(system, name)
    if not isinstance(item, File):
        raise Refusal(f"{tool}: {name}: No such file or directory")
    return item.content


def _folder_at(system: Any, path: str, tool: str) -> Directory:
    folder: Any = system.root if path.startswith("/") else system._current_dir
    for name in [] if path in (".", "/") else path.strip("/").split("/"):
        folder = folder if name == "." else folder.contents.get(name)
        if not isinstance(folder, Directory):
            raise Refusal(f"{tool}: '{path}': No such file or directory")
    made: Directory = folder
    return made


def _below(folder: Directory, place: str) -> Iterator[tuple[str, str]]:
    for name, item in folder.contents.items():
        yield f"{place}/{name}", name
        if isinstance(item, Directory):
            yield from _below(item, f"{place}/{name}")


def _bytes(item: Any) -> int:
    return len(item.content.encode()) if isinstance(item, File) else sum(map(_bytes, item.contents.values()))


def _check_letters(name: str, begin: str) -> None:
    if set(name) & set('|/\\?%*:"><'):
        raise Refusal(f"{begin}: Invalid character")


def _check_new(system: Any, name: str, begin: str) -> None:
    _check_letters(name, begin)
    if name in system._current_dir.contents:
        raise Refusal(f"{begin}: File exists")


def _from_to(system: Any, tool: str, verb: str, source: str, destination: str) -> tuple[Any, Directory | None]:
    """Return what is moved or copied, and the folder that it goes into; none where it gets a new name."""
    item = _item(system, source)
    if item is None:
        raise Refusal(f"{tool}: cannot {verb} '{source}': No such file or directory")
    if "/" in destination:
        raise Refusal(f"{tool}: path not allowed in destination. Provide only a file or directory name.")
    into = _item(system, destination)
    if isinstance(into, File):
        raise Refusal(f"{tool}: cannot {verb} '{source}' to '{destination}': Not a directory")
    if into is not None and source in into.contents:
        raise Refusal(f"{tool}: cannot {verb} '{source}' to '{destination}/{source}': File exists")
    return item, into


def _put(folder: Directory, name: str, item: Any, taken: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    if isinstance(item, File):
        folder.contents[name] = File(name, item.content)
        return
    made = folder.contents[name] = Directory(name, folder)
    made.contents = taken(item.contents)


def simulated(below: str) -> Mapping[str, Callable[..., Any]]:
    """Return the tools as `simulate` functions, on the file system below a key of the task state."""
    tools = (pwd, ls, cd, mkdir, touch, echo, cat, find, wc, sort, grep, du, tail, diff, mv, cp, rm, rmdir)
    return {each.__name__: partial(run, each, below=below) for each in tools}
