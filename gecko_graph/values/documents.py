"""Reading YAML and JSON documents into plain JSON values.

YAML is read with the scalars of YAML 1.2's core schema, so `on`, `no` and `2024-09-01` stay the text they look like.
Values outside JSON (NaN, infinity, binary, dates by tag), duplicate keys and aliases that multiply are refused,
with line and column.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..errors import ToolkitError
from .leaves import map_scalars

Json = Any

MAX_BYTES = 64_000_000
MAX_ALIASED = 100_000
MAX_DEPTH = 100

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "<<"
_TAG = "tag:yaml.org,2002:"
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_NUMBER_STARTS = frozenset("+-.0123456789")


def read_document(path: Path | str) -> Json:
    """Return the JSON value of a YAML or JSON file.

    Raises:
        ToolkitError: The file is missing, unreadable, no regular file, too large, not UTF-8, empty or broken; the
            message names file, line and column.
    """
    return parse_document(read_text(path), where=str(Path(path)))


def read_text(path: Path | str) -> str:
    """Return the text of a document's file. Raises ToolkitError as `read_document` does."""
    file = Path(path)
    try:
        if file.exists() and not (file.is_file() or file.is_dir()):
            raise ToolkitError(f"{file}: is a pipe or a device; name a file (`-` is the standard input)")
        if file.stat().st_size > MAX_BYTES:
            raise ToolkitError(f"{file}: larger than {MAX_BYTES // 1_000_000} MB; is this the right file?")
        raw = file.read_bytes()
    except FileNotFoundError:
        raise ToolkitError(f"{file}: no such file") from None
    except IsADirectoryError:
        raise ToolkitError(f"{file}: is a folder; name a YAML or JSON file in it") from None
    except ToolkitError:
        raise
    except (OSError, ValueError) as error:
        raise ToolkitError(f"{file}: cannot be read: {error}") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        why = f"not UTF-8 (byte 0x{raw[error.start]:02x}); save it as UTF-8"
        raise _failure(str(file), line, column, why) from None


def parse_document(text: str, *, where: str) -> Json:
    """Return the JSON value of a YAML or JSON text.

    Args:
        text: One document. JSON is tried first where it begins like JSON.
        where: Name of the document in messages, usually the file's name.

    Raises:
        ToolkitError: The text is empty, broken, or has no JSON value; the message names `where`, line and column.
    """
    begins = text.lstrip()[:1]
    if not begins:
        raise ToolkitError(f"{where}: is empty")
    if begins in '{["':
        try:
            return _parse_json(text, where)
        except json.JSONDecodeError as error:
            try:
                return _YamlReader(text, where).read()
            except ToolkitError:
                if begins == '"':
                    raise
                raise _failure(where, error.lineno, error.colno, f"not JSON: {error.msg}") from None
    return _YamlReader(text, where).read()


def _failure(where: str, line: int, column: int, why: str) -> ToolkitError:
    return ToolkitError(f"{where}:{line}:{column}: {why}")


def format_document(value: Json, suffix: str) -> str:
    """Return a JSON value as YAML that `parse_document` reads back, for the suffixes .yaml and .yml; else as JSON."""
    if suffix not in (".yaml", ".yml"):
        return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    return str(
        yaml.dump(value, Dumper=_Dumper, default_flow_style=None, sort_keys=False, allow_unicode=True, width=120)
    )


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Long texts line by line; in quotes what YAML 1.2 reads as a number and PyYAML, with its YAML 1.1, does not."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, text: str) -> Any:
        is_number = _INT.fullmatch(text) or _FLOAT.fullmatch(text)
        return self.represent_scalar(_TAG + "str", text, style="'" if is_number else "|" if "\n" in text else None)


_Dumper.add_representer(str, _Dumper.represent_text)


def find_line(file: Path | str, tokens: Sequence[str | int]) -> int | None:
    """Return the line, from 1, of a value in a YAML or JSON file, or of what is around it; None where it is unknown."""
    try:
        node: Any = yaml.compose(Path(file).read_text(encoding="utf-8-sig"), Loader=_LOADER)
    except (OSError, ValueError, yaml.YAMLError):
        return None
    line = None
    for token in map(str, tokens):
        if isinstance(node, yaml.MappingNode):
            members = {key.value: (key, value) for key, value in node.value}
        else:
            items = node.value if isinstance(node, yaml.SequenceNode) else []
            members = {str(index): (one, one) for index, one in enumerate(items)}
        if token not in members:
            break
        key, node = members[token]
        line = key.start_mark.line + 1
    return line


# JSON ----------------------------------------------------------------------------------------------------------------


class _DuplicateKey(Exception):
    """A duplicate key; the YAML reader locates it."""


def _parse_json(text: str, where: str) -> Json:
    try:
        value = json.loads(
            text, object_pairs_hook=_build_object, parse_constant=_reject_constant, parse_float=_parse_finite
        )
    except _DuplicateKey:
        _YamlReader(text, where).read()
        raise ToolkitError(f"{where}: a key appears twice") from None
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ToolkitError(f"{where}: {why}") from None
    _check_depth(value, where)
    if "\\ud" in text or "\\uD" in text:
        _check_surrogates(value, where)
    return value


def _build_object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _DuplicateKey
    return value


def _reject_constant(word: str) -> Json:
    raise ValueError(f"{word} is not a JSON number")


def _parse_finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:40]} is not a finite number")
    return number


def _check_surrogates(value: Json, where: str) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ToolkitError(f"{where}: a text contains half of a surrogate pair (\\ud800 to \\udfff)") from None


def _check_depth(value: Json, where: str) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
    raise ToolkitError(f"{where}: nested more than {MAX_DEPTH} levels deep")


def _children(value: Json) -> Iterator[Json]:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (member for member in members if isinstance(member, dict | list))


# YAML ----------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """A list or object that is still being read."""

    value: list[Json] | dict[str, Json]
    anchor: str | None
    started: int
    key: str | None = None
    merged: dict[str, Json] = field(default_factory=dict)


class _YamlReader:
    """Builds values from the parser's events with a stack of its own: PyYAML's C composer crashes on deep nesting."""

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Json, int]] = {}
        self._nodes = 0
        self._aliased = 0
        self._documents: list[Json] = []

    def read(self) -> Json:
        """Return the one document of the text."""
        act: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: lambda event: self._begin(event, {}, "map"),
            yaml.SequenceStartEvent: lambda event: self._begin(event, [], "seq"),
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._start_document,
        }
        try:
            for event in yaml.parse(self._text, Loader=_LOADER):
                handler = act.get(type(event))
                if handler is not None:
                    handler(event)
        except yaml.MarkedYAMLError as error:
            raise self._broken(error) from None
        except yaml.YAMLError as error:
            raise ToolkitError(f"{self._where}: not YAML: {error}".replace("\n", " ")) from None
        if not self._documents:
            raise ToolkitError(f"{self._where}: is empty")
        return self._documents[0]

    def _broken(self, error: yaml.MarkedYAMLError) -> ToolkitError:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        why = ", ".join(part for part in (error.context, error.problem) if part)
        hint = ""
        if "mapping values are not allowed" in why or "found character that cannot start" in why:
            hint = "; put quotes around a text that contains ': ' or begins with a special character"
        return _failure(self._where, line, column, f"not YAML: {why}{hint}")

    def _refuse(self, event: Any, why: str) -> ToolkitError:
        return _failure(self._where, event.start_mark.line + 1, event.start_mark.column + 1, why)

    def _start_document(self, event: Any) -> None:
        if self._documents:
            raise self._refuse(event, "a second document begins here; expected one document per file")

    def _begin(self, event: Any, value: list[Json] | dict[str, Json], tag: str) -> None:
        if event.tag not in (None, "!", _TAG + tag):
            raise self._refuse(event, f"the tag {event.tag} is not supported")
        if self._stack and isinstance(self._stack[-1].value, dict) and self._stack[-1].key is None:
            raise self._refuse(event, "a key must be text; this one is a list or an object")
        if len(self._stack) >= MAX_DEPTH:
            raise self._refuse(event, f"nested more than {MAX_DEPTH} levels deep")
        self._nodes += 1
        self._stack.append(_Open(value, event.anchor, self._nodes))

    def _end(self, event: Any) -> None:
        done = self._stack.pop()
        if isinstance(done.value, dict) and done.merged:
            done.value = {**done.merged, **done.value}
        if done.anchor is not None:
            self._anchors[done.anchor] = (done.value, self._nodes - done.started + 1)
        self._place(event, done.value)

    def _scalar(self, event: Any) -> None:
        self._nodes += 1
        top = self._stack[-1] if self._stack else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            self._key(event, top)
            return
        value = self._value(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1)
        self._place(event, value)

    def _key(self, event: Any, top: _Open) -> None:
        key: str = event.value
        if key == _MERGE and event.implicit[0]:
            top.key = _MERGE
            return
        if key in top.value:
            raise self._refuse(event, f"the key {key[:60]!r} appears twice")
        if event.anchor is not None:
            self._anchors[event.anchor] = (key, 1)
        top.key = key
        assert isinstance(top.value, dict)
        top.value[key] = None

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            is_open = any(container.anchor == event.anchor for container in self._stack)
            why = "refers to a value that contains it" if is_open else "has no anchor before it"
            raise self._refuse(event, f"the alias *{event.anchor} {why}")
        value, nodes = self._anchors[event.anchor]
        self._nodes += nodes
        self._aliased += nodes
        if self._aliased > MAX_ALIASED:
            raise self._refuse(
                event, f"aliases repeat more than {MAX_ALIASED:,} values; write less of it, or without aliases"
            )
        top = self._stack[-1] if self._stack else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            raise self._refuse(event, "an alias cannot be a key")
        self._place(event, map_scalars(value, lambda each: each))

    def _place(self, event: Any, value: Json) -> None:
        if not self._stack:
            self._documents.append(value)
            return
        top = self._stack[-1]
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key == _MERGE and _MERGE not in top.value:  # in quotes it is a key as others
            self._merge(event, top, value)
            top.key = None
        else:
            assert top.key is not None
            top.value[top.key] = value
            top.key = None

    def _merge(self, event: Any, top: _Open, value: Json) -> None:
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                raise self._refuse(event, "expected an object to merge with <<")
            for key, member in source.items():
                top.merged.setdefault(key, member)

    def _value(self, event: Any) -> Json:
        text: str = event.value
        if event.tag is not None and event.tag != "!":
            return self._tagged(event, text)
        if not event.implicit[0]:
            return text
        if text in _WORDS:
            return _WORDS[text]
        return self._number(event, text) if text[0] in _NUMBER_STARTS else text

    def _number(self, event: Any, text: str) -> Json:
        try:
            if _INT.fullmatch(text):
                number = int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
                str(number)  # raises for more digits than JSON can be written with
                return number
            if _FLOAT.fullmatch(text):
                return _parse_finite(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        except ValueError as error:
            raise self._refuse(event, f"not a JSON number: {error}".split(";")[0]) from None
        return text

    def _tagged(self, event: Any, text: str) -> Json:
        tag = event.tag.removeprefix(_TAG)
        value: Json = text if tag == "str" else _WORDS.get(text, text) if tag in ("null", "bool") else None
        if tag in ("int", "float"):
            value = self._number(event, text)
            value = float(value) if tag == "float" and isinstance(value, int) else value
        expected = {"str": str, "null": type(None), "bool": bool, "int": int, "float": float}.get(tag)
        if expected is None:
            raise self._refuse(event, f"the tag {event.tag} is not supported")
        if type(value) is not expected:
            raise self._refuse(event, f"{text[:40]!r} does not fit its tag !!{tag}")
        return value
