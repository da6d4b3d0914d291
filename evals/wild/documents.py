"""OpenAPI documents as published: operations, corners, examples, requests.

Formats are asserted here, and annotations to `jsonschema`: of examples of answers, those that break one are listed.
Examples are judged by `jsonschema` as well, on the document as it is: references as they are written, `nullable` and
exclusive bounds in the words of 2020-12, and what is read-only in a request, or write-only in an answer, not required.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator, FormatChecker, ValidationError, validators
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from gecko_graph import Toolkit
from gecko_graph.errors import ToolkitError
from gecko_graph.schemas.complaints import find_complaints, find_faults
from gecko_graph.schemas.made_up import Impossible, make_value
from gecko_graph.schemas.subschemas import DATA
from gecko_graph.state import Json, JsonObject
from gecko_graph.tools.openapi.documents import METHODS
from gecko_graph.tools.openapi.request import CannotSend, build_request
from gecko_graph.tools.openapi.request_reader import CannotRead, read_request
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.values.difference import json_equal
from gecko_graph.values.digest import open_json
from gecko_graph.values.documents import parse_document

from ..harness.figures import Case, Record, Table, share
from ..harness.options import EvalError, Options
from ..harness.suite import Expectation, Summary

FOLDERS = ("openapi_wild", "openapi")
ADDRESS = "urn:document"
SERVER = "https://api.example"
HIDDEN = {"request": "readOnly", "response": "writeOnly"}
MAX_ERRORS = 3
REFUSED = ("refused_alone", "refused_child", "refused_media", "refused")
FORMATS = FormatChecker(())
FORMATS.checks("date-time", (ValueError,))(lambda text: not isinstance(text, str) or bool(datetime.fromisoformat(text)))


def cases(options: Options) -> Iterator[Case]:
    """Yield a case for each document."""
    for name in FOLDERS:
        folder = options.data / name
        if not folder.is_dir():
            raise EvalError(
                f"no folder {name} in {options.data}: it comes with the recorded data (--data DIR says where)"
            )
        for path in sorted(folder.iterdir()):
            yield Case(path.name, path, group="documents")


def run(case: Case) -> JsonObject:
    """Return what a document holds, and what of it is read and accepted."""
    path: Path = case.data
    is_packed = path.suffix == ".gz"
    text = gzip.decompress(path.read_bytes()).decode() if is_packed else path.read_text()
    document = parse_document(text, where=path.name)
    operations = {(path, method) for path, method, _ in operations_of(document)}
    found: JsonObject = {"operations": len(operations), "loaded": 0}
    try:
        toolkit = Toolkit.from_openapi(document if is_packed else path)
    except ToolkitError as error:
        return {**found, "refused": str(error).replace(str(path.parent), ".")}
    tools = {(one.binding.path, one.binding.method): one for one in toolkit if one.binding}
    corners = [f"{each.tool}: {each.message}" for each in toolkit.broken if "open" in each.message.partition(" ")[0]]
    found |= {"loaded": len(tools), "lost": sorted(" ".join(one) for one in operations - tools.keys())}
    found |= {"corners": len(corners), "open": corners}
    judge = Judge(document)
    found |= tally("request", [*request_examples(document, tools, judge)])
    found |= tally("response", [*response_examples(document, tools, judge)])
    return {**found, **round_trips(toolkit)}


def operations_of(document: JsonObject) -> Iterator[tuple[str, str, JsonObject]]:
    """Yield path, method and operation of each operation of a document."""
    for path, item in (document.get("paths") or {}).items():
        if isinstance(item, dict):
            more = item.get("additionalOperations") or {}
            path = path if path.startswith("/") else f"/{path}"
            yield from ((path, key, one) for key, one in item.items() if key in METHODS and isinstance(one, dict))
            yield from ((path, key, one) for key, one in more.items())


class Judge:
    """`jsonschema` on a document."""

    def __init__(self, document: JsonObject) -> None:
        self._document = document
        is_old = str(document.get("openapi", "")).startswith("3.0")
        resource = DRAFT202012.create_resource(reworded(document, is_old=is_old))
        self._registry: Any = Registry().with_resource(ADDRESS, resource)
        self._names = {one: frozenset(flagged(document, one)) for one in HIDDEN.values()}

    def follow(self, value: Any) -> Any:
        """Return what a reference within the document leads to."""
        while isinstance(value, dict) and str(value.get("$ref", "")).startswith("#/"):
            place: Any = self._document
            for token in str(value["$ref"]).split("/")[1:]:
                place = place.get(token.replace("~1", "/").replace("~0", "~")) if isinstance(place, dict) else None
            value = place
        return value

    def accepts(self, schema: Any, value: Json, direction: str, formats: FormatChecker | None = None) -> bool | None:
        """Return whether a value fits; None where the schema cannot be judged."""
        hidden = self._names[HIDDEN[direction]]

        def required(validator: Any, names: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
            missing = [name for name in names if name not in instance] if isinstance(instance, dict) else []
            yield from (ValidationError(name) for name in missing if name not in hidden)

        kind: Any = validators.extend(Draft202012Validator, {"required": required})  # type: ignore[no-untyped-call]
        is_old = str(self._document.get("openapi", "")).startswith("3.0")
        try:
            return bool(
                kind(reworded(schema, is_old=is_old), registry=self._registry, format_checker=formats).is_valid(value)
            )
        except (Unresolvable, RecursionError, ValueError, TypeError, AttributeError):
            return None

    def breaks_child(self, schema: Any, value: Json, direction: str) -> bool:
        """Return whether a value, or a part of it, does not fit the schema that its discriminator names."""
        if isinstance(value, list):
            items = [one["items"] for one in self._parts(schema) if "items" in one]
            return any(self.breaks_child(rule, each, direction) for rule in items for each in value)
        parts = list(self._parts(schema)) if isinstance(value, dict) else []
        named = [child for one in parts if (child := self._child_of(one, value))]
        if any(self._lacks(child, value, direction) for child in named):
            return True
        if any(self.accepts(child, value, direction, FORMATS) is False for child in named):
            return True
        rules = [one.get("properties") or {} for part in [*parts, *named] for one in self._parts(part)]
        pairs = [(one[name], each) for one in rules for name, each in value.items() if name in one] if rules else []
        return any(self.breaks_child(rule, each, direction) for rule, each in pairs)

    def _lacks(self, schema: JsonObject, value: JsonObject, direction: str) -> bool:
        """Return whether a member is missing that this very schema requires, and does not hide."""
        parts = list(self._parts(schema))
        needed = {name for one in parts for name in one.get("required") or ()}
        rules = [each for one in parts for each in (one.get("properties") or {}).items()]
        hidden = {name for name, rule in rules if self.follow(rule).get(HIDDEN[direction]) is True}
        return bool(needed - hidden - value.keys())

    def _parts(self, schema: Any) -> Iterator[JsonObject]:
        rule = self.follow(schema)
        if isinstance(rule, dict):
            yield rule
            for key in ("allOf", "anyOf", "oneOf"):
                for one in rule.get(key) or ():
                    yield from self._parts(one)

    def _child_of(self, rule: JsonObject, value: JsonObject) -> JsonObject | None:
        given = rule.get("discriminator")
        name = value.get(str(given.get("propertyName"))) if isinstance(given, dict) else None
        if name is None or not isinstance(given, dict):
            return None
        child = str((given.get("mapping") or {}).get(name) or name)
        return {"$ref": child if "/" in child else f"#/components/schemas/{child}"}


def reworded(value: Any, *, is_old: bool) -> Any:
    """Return schemas in the words of 2020-12."""
    if isinstance(value, list):
        return [reworded(each, is_old=is_old) for each in value]
    if not isinstance(value, dict):
        return value
    if is_old and isinstance(value.get("$ref"), str):
        value = {"$ref": value["$ref"]}
    new = {key: each if key in DATA else reworded(each, is_old=is_old) for key, each in value.items()}
    if new.pop("nullable", None) is True and isinstance(new.get("type"), str):
        new["type"] = [new["type"], "null"]
        new |= {"enum": [*new["enum"], None]} if "enum" in new else {}
    if str(new.get("$ref", "")).startswith("#"):
        new["$ref"] = ADDRESS + new["$ref"]
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(new.get(exclusive), bool) and new.pop(exclusive) and bound in new:
            new[exclusive] = new.pop(bound)
    return new


def flagged(value: Any, key: str) -> Iterator[str]:
    """Yield the names of properties that are read-only, or write-only, somewhere."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in members:
        if isinstance(each, dict) and any(one.get(key) is True for one in (each, *dicts(each.get("allOf")))):
            yield str(name)
        yield from flagged(each, key)


def dicts(value: Any) -> list[JsonObject]:
    """Return the objects in what may be a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def examples_of(media: Any, judge: Judge) -> Iterator[tuple[str, Json]]:
    """Yield the examples of a media type, with their names."""
    if "example" in media:
        yield "", media["example"]
    examples = judge.follow(media.get("examples"))
    for name, one in examples.items() if isinstance(examples, dict) else ():
        example = judge.follow(one)
        if isinstance(example, dict) and "value" in example:
            yield name, example["value"]


class Example(NamedTuple):
    """An example: where it is, whether `jsonschema` accepts it, why it is not accepted here.

    `cause` is `child` where it breaks the schema that its discriminator names, which `jsonschema` does not look at, and
    `media` where its operation is read in another media type.
    """

    where: str
    known: bool | None
    why: list[str]
    cause: str = "alone"


def request_examples(
    document: JsonObject, tools: Mapping[tuple[str, str], ToolSpec], judge: Judge
) -> Iterator[Example]:
    """Yield the examples of request bodies."""
    for path, method, operation in operations_of(document):
        body = judge.follow(operation.get("requestBody")) or {}
        for kind, media in (body.get("content") or {}).items():
            for name, given in examples_of(media, judge):
                where, tool = f"{method} {path} {kind} {name}".strip(), tools.get((path, method))
                value = open_json(given)
                rule = media.get("schema", {})
                known, breaks = judge.accepts(rule, value, "request"), judge.breaks_child(rule, value, "request")
                if tool is None or tool.binding is None:
                    yield Example(where, known, ["its operation is not loaded"])
                elif kind != tool.binding.body.get("media", "application/json"):
                    yield Example(
                        where, known, [f"{tool.binding.body.get('media', 'application/json')} is read"], "media"
                    )
                else:
                    yield Example(where, known, complaints_about(tool, value), "child" if breaks else "alone")


def complaints_about(tool: ToolSpec, value: Json) -> list[str]:
    """Return what is wrong with a body, beside arguments that are made up."""
    assert tool.binding is not None
    places = tool.binding.places
    named = {wire: argument for argument, (place, wire) in places.items() if place == "body"}
    rules, args = tool.parameters.get("properties", {}), JsonObject()
    for argument in tool.parameters.get("required", ()):
        if places.get(argument, ("body", ""))[0] != "body":
            schema = {"properties": {argument: rules[argument]}, "required": [argument], "type": "object"}
            made: Any = make_value({**schema, "$defs": tool.parameters.get("$defs", {})}, seed=0, key="")
            args |= made
    if "" in named:
        args[named[""]] = value
    elif isinstance(value, dict):
        args |= {str(named.get(wire, wire)): each for wire, each in value.items()}
    else:
        return ["$: expected an object"]
    return [f"{each['path']}: expected {each['expected']}" for each in find_complaints(tool, args)]


def response_examples(
    document: JsonObject, tools: Mapping[tuple[str, str], ToolSpec], judge: Judge
) -> Iterator[Example]:
    """Yield the examples of answers."""
    for path, method, operation in operations_of(document):
        tool = tools.get((path, method))
        for code, given in (operation.get("responses") or {}).items():
            response = judge.follow(given)
            read: JsonObject = (tool.binding.responses.get(code) or {}) if tool and tool.binding else {}
            for kind, media in ((response or {}).get("content") or {}).items():
                for name, value in examples_of(media, judge) if kind == read.get("media") else ():
                    if read.get("schema") is not None:
                        shown = value if read["schema"].get("type") == "string" else open_json(value)
                        rule = media.get("schema", {})
                        known = judge.accepts(rule, shown, "response")
                        breaks = judge.breaks_child(rule, shown, "response")
                        where = f"{method} {path} {code} {name}".strip()
                        yield Example(where, known, find_faults(read["schema"], shown), "child" if breaks else "alone")


def tally(kind: str, examples: Sequence[Example]) -> JsonObject:
    """Return how many examples there are and are accepted, and those that only `jsonschema` accepts."""
    refused: dict[str, list[str]] = {key: [] for key in REFUSED}
    for one in examples:
        if one.why:
            refused[f"refused_{one.cause}" if one.known else "refused"].append(
                f"{one.where}: {'; '.join(one.why[:MAX_ERRORS])}"
            )
    counts = {
        "examples": len(examples),
        "by_jsonschema": sum(bool(one.known) for one in examples),
        "accepted": sum(not one.why for one in examples),
    }
    return {f"{kind}_{key}": value for key, value in (counts | refused).items()}


def round_trips(toolkit: Toolkit) -> JsonObject:
    """Return how many made-up calls are sent, and are read back as they were."""
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
                if is_lost or (place != "body" and args.get(name, True) is None):  # is not sent; the former is listed
                    args.pop(name, None)
            args |= {name: back[name] for name, value in args.items() if is_same_file(back.get(name), value)}
            if not json_equal(back, args):
                differ = sorted(name for name in {*back, *args} if not json_equal(back.get(name), args.get(name)))
                wrong.append(f"{tool.name}: {json.dumps(differ)} differ")
    return {"requests": made, "read_back": made - sum("cannot be sent" not in one for one in wrong), "differing": wrong}


def is_same_file(back: Json, sent: Json) -> bool:
    """Return whether a `data:` address has the bytes of a text that was sent in a file's place."""
    head, _, coded = back.partition(";base64,") if isinstance(back, str) else ("", "", "")
    return head.startswith("data:") and isinstance(sent, str) and b64decode(coded) == sent.encode()


def summarise(records: Sequence[Record]) -> Summary:
    """Return a row for each document, and all that is not read or not accepted."""
    head = [
        "document",
        "operations loaded",
        "corners",
        "request examples",
        "by jsonschema",
        "answers",
        "by jsonschema",
        "read back",
    ]
    table = Table("Documents of others", head, "Accepted of all examples of bodies, and of answers that have a schema.")
    done = [record for record in records if record.done]
    for name, some in [*((record.id, [record]) for record in done), ("all", done)]:
        sums = {key: sum(int(record.values.get(key, 0)) for record in some) for key in _COUNTS}
        parts = [
            share(sums[f"{kind}_{key}"], sums[f"{kind}_examples"], tools="none")
            for kind in HIDDEN
            for key in ("accepted", "by_jsonschema")
        ]
        loaded = share(sums["loaded"], sums["operations"], tools="none")
        table.add(name, loaded, sums["corners"], *parts, share(sums["read_back"], sums["requests"], tools="none"))
    notes = [f"{record.id}: refused: {record.values['refused']}" for record in done if "refused" in record.values]
    for key in ("lost", "open", *(f"{kind}_{cause}" for kind in HIDDEN for cause in REFUSED), "differing"):
        notes += [
            f"{record.id}: {key.replace('_', ' ')}: {one}" for record in done for one in record.values.get(key, ())
        ]
    whole = [record.values for record in done if "refused" not in record.values]
    holds = {
        "every operation of a document that is read is loaded": all(
            one["loaded"] == one["operations"] for one in whole
        ),
        "each request example that jsonschema accepts is accepted, unless it breaks the child that it names": not any(
            one["request_refused_alone"] for one in whole
        ),
        "each request is read back as it was": all(one["read_back"] == one["requests"] for one in whole),
    }
    return Summary([table], [Expectation(text, is_so) for text, is_so in holds.items()], notes)


_COUNTS = (
    "operations",
    "loaded",
    "corners",
    "requests",
    "read_back",
    *(f"{kind}_{key}" for kind in HIDDEN for key in ("examples", "accepted", "by_jsonschema")),
)
