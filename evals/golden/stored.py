"""Golden numbers on disk: rows in `golden.json`, what commands print as text in `commands.txt`."""

from __future__ import annotations

import json
import re

from ..harness.datasets import ROOT

ROWS, TEXTS = ROOT / "evals" / "golden.json", ROOT / "evals" / "golden" / "commands.txt"
_PROMPT = re.compile(r"^\$ gecko-graph(.*)\n", re.MULTILINE)


def read_stored() -> dict[str, dict[str, str]]:
    """Return the stored rows by part; nothing where nothing is stored."""
    stored: dict[str, dict[str, str]] = json.loads(ROWS.read_text("utf-8")) if ROWS.is_file() else {}
    if TEXTS.is_file():
        _, *parts = _PROMPT.split(TEXTS.read_text("utf-8"))
        stored["commands"] = dict(zip(map(str.strip, parts[::2]), parts[1::2], strict=True))
    return stored


def write_stored(parts: dict[str, dict[str, str]]) -> None:
    """Store the rows of all parts."""
    rows = {name: part for name, part in parts.items() if name != "commands"}
    ROWS.write_text(json.dumps(rows, ensure_ascii=False, indent=1, sort_keys=True) + "\n", "utf-8")
    texts = (f"$ gecko-graph {row}".strip() + f"\n{text}" for row, text in parts.get("commands", {}).items())
    TEXTS.write_text("".join(texts), "utf-8")
