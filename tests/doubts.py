"""What tests look for in the notes of a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gecko_graph.state import NoteKind
from gecko_graph.values.notes import notes_of


def texts(record: Mapping[str, Any], *kinds: NoteKind) -> list[str]:
    """Return the texts of a record's notes of these kinds."""
    return [each["text"] for each in notes_of(record, *kinds)]


def values(record: Mapping[str, Any], *kinds: NoteKind) -> list[Any]:
    """Return the values that a record's notes of these kinds are about."""
    return [each["data"]["value"] for each in notes_of(record, *kinds)]
