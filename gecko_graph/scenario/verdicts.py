"""Verdicts of the role `claim_judge`, saved beside a case, so that each claim is judged by a model only once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..conversation.milestones.measures import Verdicts
from ..errors import ScenarioError
from ..masking import mask
from ..state import VERSION, JsonObject

ENDING = ".claims.jsonl"
CASE_ENDINGS = (".gecko.yaml", ".yaml", ".yml", ".json")
VERDICTS = ("holds", "broken", "unsure")


def verdicts_file(case: str | Path) -> Path:
    """Return the file of verdicts beside a case's file: `move.claims.jsonl` for `move.gecko.yaml`."""
    file = Path(case)
    ending = next((each for each in CASE_ENDINGS if file.name.endswith(each)), "")
    return file.with_name(file.name.removesuffix(ending) + ENDING)


def read_verdicts(case: str | Path) -> Verdicts:
    """Return the verdicts beside a case by `claim_key`; the last one counts if a key is repeated.

    A truncated last line is ignored.

    Raises:
        ScenarioError: Another line is not a verdict; the message names it.
    """
    file = verdicts_file(case)
    with suppress(OSError):
        lines = file.read_bytes().decode("utf-8", "replace").splitlines()
        rows = [(number, _read(line)) for number, line in enumerate(lines, 1)]
        if broken := next((number for number, row in rows if row is None and number < len(lines)), None):
            raise ScenarioError(f"{file}: line {broken} is not a verdict: delete it to judge the claim again")
        return {row["key"]: [row["verdict"], row["sentence"], row["reason"]] for _, row in rows if row}
    return {}


def _read(line: str) -> JsonObject | None:
    try:
        row: Any = json.loads(line)
    except ValueError:
        return None
    texts = isinstance(row, dict) and all(isinstance(row.get(key), str) for key in ("key", "sentence", "reason"))
    return row if texts and row.get("verdict") in VERDICTS else None


def keep_verdicts(case: str | Path, score: Mapping[str, Any]) -> None:
    """Add the verdicts of a conversation's score to the file beside its case; do nothing if it is not writable."""
    file = verdicts_file(case)
    lines = [json.dumps({"v": VERSION, **_mask(each)}, ensure_ascii=False) + "\n" for each in score.get("claims", ())]
    if lines and Path(case).is_file():
        with suppress(OSError), file.open("a", encoding="utf-8") as opened:  # a read-only folder is no error
            opened.write("".join(lines))


def _mask(judged: Mapping[str, Any]) -> JsonObject:
    return {**judged, **{key: mask(judged[key]) for key in ("sentence", "reason")}}
