"""Read YAML and JSON documents as plain JSON values.

YAML scalars follow YAML 1.2's core schema, so that `on`, `no` and `2024-09-01` stay text. Values outside JSON (NaN,
infinity, binary, tagged dates), duplicate keys and exploding aliases are refused, with line and column.
"""

from __future__ import annotations

import gc
import json
import math
import re
import stat
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer

from ..errors import ToolkitError
from .rows import reject_constant

Json = Any

MAX_BYTES = 64_000_000
MAX_ALIASED = 100_000
MAX_DEPTH = 100

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
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


def read_document(path: Path | str) -> Json:
    """Return the JSON value of a YAML or JSON file.

    Raises:
        ToolkitError: The file is missing, unreadable, no regular file, too large, not UTF-8, empty or invalid; the
            message names file, line and column.
    """
    return parse_document(read_text(path), where=str(Path(path)))


def read_text(path: Path | str) -> str:
    """Return the text of a document's file. Raises ToolkitError as `read_document` does."""
    file = Path(path)
    try:
        found = file.stat()
        is_file = stat.S_ISREG(found.st_mode)
        raw = file.read_bytes() if is_file and found.st_size <= MAX_BYTES else None
    except FileNotFoundError:
        raise ToolkitError(f"{file}: no such file") from None
    except (OSError, ValueError) as error:
        raise ToolkitError(f"{file}: cannot be read: {error}") from None
    if raw is None:
        why = "is a pipe or a device; name a file (`-` is the standard input)"
        why = "is a folder; name a YAML or JSON file in it" if stat.S_ISDIR(found.st_mode) else why
        why = f"larger than {MAX_BYTES // 1_000_000} MB; is this the right file?" if is_file else why
        raise ToolkitError(f"{file}: {why}")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        why = f"not UTF-8 (byte 0x{raw[error.start]:02x}); save it as UTF-8"
        raise ToolkitError(f"{file}:{line}:{column}: {why}") from None


def parse_document(text: str, *, where: str) -> Json:
    """Return the JSON value of a YAML or JSON text.

    Args:
        text: One document. A text that begins like JSON is first parsed as JSON.
        where: The document's name in messages, usually its file name.

    Raises:
        ToolkitError: The text is empty, invalid, or no JSON value; the message names `where`, line and column.
    """
    begins = text.lstrip()[:1]
    if not begins or begins not in '{["':
        return _parse_yaml(text, where)
    try:
        return _parse_json(text, where)
    except json.JSONDecodeError as error:
        broken = ToolkitError(f"{where}:{error.lineno}:{error.colno}: not JSON: {error.msg}")
    except _DuplicateKey:
        broken = ToolkitError(f"{where}: a key appears twice")
    try:
        return _parse_yaml(text, where)  # the YAML parser also reports a key's position
    except ToolkitError as error:
        raise (error if begins == '"' or "appears twice" in str(error) else broken) from None


def format_document(value: Json, suffix: str) -> str:
    """Return a JSON value as YAML for the suffixes .yaml and .yml, else as JSON; `parse_document` reads both."""
    if suffix not in (".yaml", ".yml"):
        return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    return str(
        yaml.dump(value, Dumper=_Dumper, default_flow_style=None, sort_keys=False, allow_unicode=True, width=120)
    )


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes long texts line by line, and quotes texts that only YAML 1.2 (not PyYAML's 1.1) reads as numbers."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, text: str) -> Any:
        is_number = _INT.fullmatch(text) or _FLOAT.fullmatch(text)
        return self.represent_scalar(_TAG + "str", text, style="'" if is_number else "|" if "\n" in text else None)


_Dumper.add_representer(str, _Dumper.represent_text)


def find_line(file: Path | str, tokens: Sequence[str | int]) -> int | None:
    """Return the line, from 1, of a value in a YAML or JSON file, or of its nearest container; None if unknown."""
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
            text, object_pairs_hook=_build_object, parse_constant=reject_constant, parse_float=_parse_finite
        )
        _check_depth(value)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError:
        raise
    except UnicodeEncodeError:
        raise ToolkitError(f"{where}: a text contains a lone surrogate (\\ud800 to \\udfff)") from None
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ToolkitError(f"{where}: {why}") from None
    return value


def _build_object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _DuplicateKey
    return value


def _parse_finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:40]} is not a finite number")
    return number


def _check_depth(value: Json) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [each for one in level for each in _members(one)]
    if level:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")


def _members(value: Json) -> Collection[Json]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


# YAML ----------------------------------------------------------------------------------------------------------------


def _parse_yaml(text: str, where: str) -> Json:
    reader, collects = _YamlReader(text), gc.isenabled()
    gc.disable()  # the collector would scan the 170,000 nodes of a large document repeatedly: two thirds of the time
    try:
        node = reader.get_single_node()
        if node is None:
            raise ToolkitError(f"{where}: is empty")
        return reader.build(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{where}:{mark.line + 1}:{mark.column + 1}" if mark else where
        why = ", ".join(part for part in (error.context, error.problem) if part)
        is_bare = "mapping values are not allowed" in why or "found character that cannot start" in why
        hint = "; put quotes around a text that contains ': ' or begins with a special character" if is_bare else ""
        raise ToolkitError(f"{place}: {'' if isinstance(error, _Refused) else 'not YAML: '}{why}{hint}") from None
    except yaml.YAMLError as error:
        raise ToolkitError(f"{where}: not YAML: {error}".replace("\n", " ")) from None
    finally:
        if collects:
            gc.enable()


class _YamlReader(_LOADER):  # type: ignore[misc]
    """Composes nodes in Python, with bounded depth (PyYAML's C code crashes on deep nesting), and builds values.

    A tag is "" if the document gives none and the value is not quoted.
    """

    get_single_node, compose_document = Composer.get_single_node, Composer.compose_document
    compose_scalar_node = Composer.compose_scalar_node
    compose_sequence_node, compose_mapping_node = Composer.compose_sequence_node, Composer.compose_mapping_node

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.anchors: dict[str, Any] = {}
        self._depth = 0
        self._left = MAX_ALIASED
        self._open: set[int] = set()

    def compose_node(self, parent: yaml.Node | None, index: Any) -> Any:
        self._depth += 1
        self._left += 1
        if self._depth > MAX_DEPTH and not self.check_event(yaml.ScalarEvent, yaml.AliasEvent):
            raise _refuse(self.peek_event(), f"nested more than {MAX_DEPTH} levels deep")
        node = Composer.compose_node(self, parent, index)
        self._depth -= 1
        return node

    def resolve(self, kind: type, value: Any, implicit: Any) -> str:
        return _TAG + "str" if isinstance(implicit, tuple) and not implicit[0] else ""

    def build(self, node: Any) -> Json:
        """Return a node's value; each alias gets a copy of its own. Raises MarkedYAMLError."""
        self._left -= 1
        if self._left < 0:
            raise _refuse(
                node, f"aliases repeat more than {MAX_ALIASED:,} values; write less of it, or without aliases"
            )
        if isinstance(node, yaml.ScalarNode):
            return _read_tagged(node) if node.tag else _read_plain(node)
        if node.tag not in ("", _TAG + node.id[:3]):
            raise _refuse(node, f"the tag {node.tag} is not supported")
        if id(node) in self._open:
            raise _refuse(node, "an alias in it refers to a value that contains it")
        self._open.add(id(node))
        is_list = isinstance(node, yaml.SequenceNode)
        value = [self.build(one) for one in node.value] if is_list else self._build_object(node)
        self._open.discard(id(node))
        return value

    def _build_object(self, node: yaml.MappingNode) -> Json:
        value: dict[str, Json] = {}
        merged: dict[str, Json] = {}
        for key, member in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refuse(key, "a key must be text; this one is a list or an object")
            if key.value in value:
                raise _refuse(key, f"the key {key.value[:60]!r} appears twice")
            made = self.build(member)
            if key.value != "<<" or key.tag:
                value[key.value] = made
                continue
            for source in made if isinstance(made, list) else [made]:
                if not isinstance(source, dict):
                    raise _refuse(member, "expected an object to merge with <<")
                merged = {**source, **merged}
        return {**merged, **value}


class _Refused(yaml.MarkedYAMLError):
    """Valid YAML, but no JSON value."""


def _refuse(at: Any, why: str) -> _Refused:
    return _Refused(None, None, why, at.start_mark)


def _read_tagged(node: yaml.ScalarNode) -> Json:
    if node.tag == _TAG + "str":
        return node.value
    kinds = {_TAG + "null": type(None), _TAG + "bool": bool, _TAG + "int": int, _TAG + "float": float}
    value = _read_plain(node)
    if type(value) is not kinds.get(node.tag):
        raise _refuse(node, f"the tag {node.tag} is not supported, or does not fit its value")
    return value


def _read_plain(node: yaml.ScalarNode) -> Json:
    text: str = node.value
    if text in _WORDS:
        return _WORDS[text]
    try:
        if _INT.fullmatch(text):
            number = int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
            str(number)  # raises if there are more digits than JSON can write
            return number
        if _FLOAT.fullmatch(text):
            return _parse_finite(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError as error:
        raise _refuse(node, f"not a JSON number: {error}".split(";")[0]) from None
    return text
