"""The benchmark's file system as JSON: a readable tree and cwd, and the exact objects if these are not a plain tree.

Copied and moved folders share files, and their children keep the old folder as parent, so that `cd ..` leads to a
folder that no path names. Such a state is also written as a graph of its objects (`links`).
"""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

from gecko_graph.state import JsonObject


def read_folders(system: Any, module: ModuleType) -> tuple[JsonObject, JsonObject | None]:
    """Return `{"tree", "cwd"}` of a file system, and its links if these are not enough.

    Raises ValueError if a folder contains itself, as after `cp a a`; the class itself would not terminate on it.
    """
    plain: JsonObject = {"tree": {system.root.name: _node(system.root, module)}, "cwd": _path(system)}
    links = _links(system, module)
    rebuilt = SimpleNamespace()
    try:
        write_folders(rebuilt, plain, None, module)
    except KeyError:  # the current folder is no longer in the tree
        return plain, links
    return plain, None if _links(rebuilt, module) == links else links


def write_folders(system: Any, state: JsonObject, links: JsonObject | None, module: ModuleType) -> None:
    """Set a file system's root and current folder from the values of `read_folders`."""
    if links is not None:
        _relink(system, links, module)
        return
    ((name, top),) = state["tree"].items()
    system.root = _folder(name, top, None, module)
    system._current_dir = system.root
    for token in state["cwd"][1:]:
        system._current_dir = system._current_dir.contents[token]


def _node(item: Any, module: ModuleType, *, above: tuple[int, ...] = ()) -> JsonObject:
    if isinstance(item, module.File):
        return {"type": "file", "content": item.content}
    if id(item.contents) in above:
        raise ValueError(f"folder {item.name!r} contains itself: expected a tree")
    path = (*above, id(item.contents))
    contents = {name: _node(each, module, above=path) for name, each in item.contents.items()}
    return {"type": "directory", "contents": contents}


def _folder(name: str, node: JsonObject, parent: Any, module: ModuleType) -> Any:
    made = module.Directory(name, parent)
    for key, each in node["contents"].items():
        made.contents[key] = (
            module.File(key, each["content"]) if each["type"] == "file" else _folder(key, each, made, module)
        )
    return made


def _path(system: Any) -> list[str]:
    """Return the current folder's path from the root if there is one, else the path given by its parents."""
    found = _search(system.root, system._current_dir)
    if found is not None:
        return [system.root.name, *found]
    names, folder = [], system._current_dir
    while folder is not None:
        names.append(folder.name)
        folder = folder.parent
    return names[::-1]


def _search(folder: Any, wanted: Any) -> list[str] | None:
    if folder is wanted:
        return []
    for name, each in folder.contents.items():
        if hasattr(each, "contents") and (below := _search(each, wanted)) is not None:
            return [name, *below]
    return None


def _links(system: Any, module: ModuleType) -> JsonObject:
    """Return all objects reachable from the root and the current folder, each once, numbered in the order found."""
    nodes: list[Any] = []
    shelves: list[Any] = []
    numbers: dict[int, int] = {}
    places: dict[int, int] = {}
    waiting = [system.root, system._current_dir]
    while waiting:
        item = waiting.pop(0)
        if item is None or id(item) in numbers:
            continue
        numbers[id(item)] = len(nodes)
        nodes.append(item)
        if isinstance(item, module.Directory):
            if id(item.contents) not in places:
                places[id(item.contents)] = len(shelves)
                shelves.append(item.contents)
            waiting += [item.parent, *item.contents.values()]
    records = [
        [item.name, item.content]
        if isinstance(item, module.File)
        else [item.name, numbers.get(id(item.parent)), places[id(item.contents)]]
        for item in nodes
    ]
    contents = [{name: numbers[id(each)] for name, each in shelf.items()} for shelf in shelves]
    return {"nodes": records, "contents": contents, "root": 0, "here": numbers[id(system._current_dir)]}


def _relink(system: Any, links: JsonObject, module: ModuleType) -> None:
    shelves: list[dict[str, Any]] = [{} for _ in links["contents"]]
    nodes = [module.File(*each) if len(each) == 2 else module.Directory(each[0]) for each in links["nodes"]]
    for node, record in zip(nodes, links["nodes"], strict=True):
        if isinstance(node, module.Directory):
            node.parent = None if record[1] is None else nodes[record[1]]
            node.contents = shelves[record[2]]
    for shelf, members in zip(shelves, links["contents"], strict=True):
        shelf.update({name: nodes[number] for name, number in members.items()})
    system.root, system._current_dir = nodes[links["root"]], nodes[links["here"]]
