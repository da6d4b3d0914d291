"""`wild`: third-party documents: is every operation loaded, and is each call sent and read back?"""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gecko_graph import Toolkit
from gecko_graph.errors import ToolkitError
from gecko_graph.schemas.made_up import Impossible, make_value
from gecko_graph.state import Json, JsonObject
from gecko_graph.tools.openapi.documents import METHODS
from gecko_graph.tools.openapi.request import CannotSend, build_request
from gecko_graph.tools.openapi.request_reader import CannotRead, read_request
from gecko_graph.values.difference import json_equal
from gecko_graph.values.documents import parse_document

from ..harness.figures import Case, Record, Table, share
from ..harness.options import EvalError
from ..harness.suite import Expectation, Suite, Summary

FOLDERS = ("openapi_wild", "openapi")
SERVER = "https://api.example"
COUNTS = ("operations", "loaded", "corners", "requests", "read_back")


class Wild(Suite):
    """Wild: published third-party documents: what is loaded, what is left open, which calls are read back.

    A case is a document. What is not loaded or not read back is listed with its place.
    """

    name = "wild"
    asks = False
    tools = "none"
    examples = ("", "--only '*okta*'")

    def cases(self) -> Iterator[Case]:
        for name in FOLDERS:
            folder = self.options.data / name
            if not folder.is_dir():
                raise EvalError(
                    f"no folder {name} in {self.options.data}: it is part of the recorded data (--data DIR)"
                )
            yield from (Case(path.name, path, group="documents") for path in sorted(folder.iterdir()))

    def run_case(self, case: Case) -> JsonObject:
        return look_at(case.data)

    def summarise(self, records: Sequence[Record]) -> Summary:
        table = Table("Documents of others", ["document", "operations loaded", "corners", "calls read back"])
        done = [record for record in records if record.done]
        for name, some in [*((record.id, [record]) for record in done), ("all", done)]:
            sums = {key: sum(int(record.values.get(key, 0)) for record in some) for key in COUNTS}
            loaded, back = (
                share(sums[part], sums[whole], tools="none")
                for part, whole in (("loaded", "operations"), ("read_back", "requests"))
            )
            table.add(name, loaded, sums["corners"], back)
        notes = [f"{record.id}: refused: {record.values['refused']}" for record in done if "refused" in record.values]
        for key in ("lost", "open", "differing"):
            notes += [f"{record.id}: {key}: {one}" for record in done for one in record.values.get(key, ())]
        whole = [record.values for record in done if "refused" not in record.values]
        is_loaded = all(one["loaded"] == one["operations"] for one in whole)
        is_back = all(one["read_back"] == one["requests"] for one in whole)
        expected = [
            Expectation("every operation of a document that is read is loaded", is_loaded),
            Expectation("each request is read back as it was", is_back),
        ]
        return Summary([table], expected, notes)


def look_at(path: Path) -> JsonObject:
    """Return the content of a document, and how much of it is loaded and read back."""
    is_packed = path.suffix == ".gz"
    text = gzip.decompress(path.read_bytes()).decode() if is_packed else path.read_text()
    document = parse_document(text, where=path.name)
    operations = {*operations_of(document)}
    found: JsonObject = {"operations": len(operations), "loaded": 0}
    try:
        toolkit = Toolkit.from_openapi(document if is_packed else path)
    except ToolkitError as error:
        return {**found, "refused": str(error).replace(str(path.parent), ".")}
    tools = {(one.binding.path, one.binding.method) for one in toolkit if one.binding}
    corners = [f"{each.tool}: {each.message}" for each in toolkit.broken if "open" in each.message.partition(" ")[0]]
    found |= {"loaded": len(tools), "lost": sorted(" ".join(one) for one in operations - tools)}
    return {**found, "corners": len(corners), "open": corners, **round_trips(toolkit)}


def operations_of(document: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield path and method of each operation of a document."""
    for path, item in (document.get("paths") or {}).items():
        if isinstance(item, dict):
            more = item.get("additionalOperations") or {}
            path = path if path.startswith("/") else f"/{path}"
            yield from ((path, key) for key, one in item.items() if key in METHODS and isinstance(one, dict))
            yield from ((path, key) for key in more)


def round_trips(toolkit: Toolkit) -> JsonObject:
    """Return how many made-up calls are sent, and how many are read back unchanged."""
    wrong, made = list[str](), 0
    for tool in toolkit:
        for key in ("one", "two"):
            try:
                args: Any = make_value(tool.parameters, seed=0, key=key)
                request = build_request(tool, SERVER, args, extra={})
            except (Impossible, CannotSend) as error:
                wrong.append(f"{tool.name}: cannot be sent: {error}")
                continue
            made += 1
            try:
                back = read_request(tool, SERVER, request)
            except CannotRead as error:
                wrong.append(f"{tool.name}: cannot be read: {error}")
                continue
            for name, (place, wire) in (tool.binding.places if tool.binding else {}).items():
                is_lost = place == "path" and f"{{{wire}}}" not in (tool.binding.path if tool.binding else "")
                # not sent; lost path values are listed elsewhere
                if is_lost or (place != "body" and args.get(name, True) is None):
                    args.pop(name, None)
            args |= {name: back[name] for name, value in args.items() if is_same_file(back.get(name), value)}
            if not json_equal(back, args):
                differ = sorted(name for name in {*back, *args} if not json_equal(back.get(name), args.get(name)))
                wrong.append(f"{tool.name}: {json.dumps(differ)} differ")
    return {"requests": made, "read_back": made - sum("cannot be sent" not in one for one in wrong), "differing": wrong}


def is_same_file(back: Json, sent: Json) -> bool:
    """Return whether a `data:` URL has the bytes of a text that was sent as a file."""
    head, _, coded = back.partition(";base64,") if isinstance(back, str) else ("", "", "")
    return head.startswith("data:") and isinstance(sent, str) and b64decode(coded) == sent.encode()


SUITE = Wild
