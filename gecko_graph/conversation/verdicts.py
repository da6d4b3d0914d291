"""Verdicts of the role `claim_judge`, saved beside a case, so that each claim is judged by a model only once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from ..errors import ScenarioError
from ..masking import mask
from ..state import VERSION, JsonObject
from .milestones.measures import Verdicts

ENDING = ".claims.jsonl"
CASE_ENDINGS = (".gecko.yaml", ".yaml", ".yml", ".json")
VERDICTS = ("holds", "broken", "unsure")
Result = TypeVar("Result")


def verdicts_file(case: str | Path) -> Path:
    """Return the file of verdicts beside a case's file: `move.claims.jsonl` for `move.gecko.yaml`."""
    file = Path(case)
    ending = next((each for each in CASE_ENDINGS if file.name.endswith(each)), "")
    return file.with_name(file.name.removesuffix(ending) + ENDING)


def read_verdicts(case: str | Path) -> Verdicts:
    """Return the verdicts beside a case by `claim_key`; the last one counts if a key is repeated.

    Raises:
        ScenarioError: A line is not a verdict; the message names it.
    """
    with suppress(OSError):
        return dict(read_appended(verdicts_file(case), _read, "is not a verdict: delete it to judge the claim again"))
    return {}


def _read(row: Any) -> tuple[str, list[str]]:
    key, verdict, *told = (row[name] for name in ("key", "verdict", "sentence", "reason"))
    if verdict not in VERDICTS or not all(isinstance(each, str) for each in (key, *told)):
        raise ValueError("no verdict")
    return key, [verdict, *told]


def read_appended(file: Path, read: Callable[[Any], Result], problem: str) -> Iterator[Result]:
    """Yield the rows of a file of JSON lines that is appended to; a truncated last line is ignored.

    Raises:
        ScenarioError: `read` cannot read another line.
    """
    lines = file.read_bytes().decode("utf-8", "replace").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            yield read(json.loads(line))
        except (ValueError, TypeError, KeyError):
            if number < len(lines):
                raise ScenarioError(f"{file}: line {number} {problem}") from None


def keep_verdicts(case: str | Path, score: Mapping[str, Any]) -> None:
    """Add the verdicts of a conversation's score to the file beside its case; do nothing if it is not writable."""
    file = verdicts_file(case)
    lines = [json.dumps({"v": VERSION, **_mask(each)}, ensure_ascii=False) + "\n" for each in score.get("claims", ())]
    if lines and Path(case).is_file():
        with suppress(OSError), file.open("a", encoding="utf-8") as opened:  # a read-only folder is no error
            opened.write("".join(lines))


def _mask(judged: Mapping[str, Any]) -> JsonObject:
    return {**judged, **{key: mask(judged[key]) for key in ("sentence", "reason")}}
