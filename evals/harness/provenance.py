"""Where figures come from: commit, code and date of a run."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from .datasets import ROOT

# what makes records; how they are shown may change without making them old
_CODE = ("gecko_graph/**/*.py", "prompts/*.md", "evals/**/*.py", "examples/**/*.yaml")
_SHOWN = ("report", "terminal", "progress", "command", "__main__")


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a run was made with.

    Args:
        commit: Short hash, with `+changes` where files differ from it; `unknown` outside a checkout.
        code: Digest of all code, prompts and examples that records depend on.
        date: When it began, UTC, to the second.
    """

    commit: str
    code: str
    date: str


def here() -> Provenance:
    """Return the provenance of this checkout, now."""
    return Provenance(_commit(), _code(), datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%SZ"))


@cache
def _commit() -> str:
    head = _git("rev-parse", "--short=10", "HEAD")
    if not head:
        return "unknown"
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", "gecko_graph", "prompts", "evals", "examples")
    return f"{head}+changes" if changed else head


@cache
def _code() -> str:
    whole = hashlib.sha256()
    for path in sorted({path for pattern in _CODE for path in ROOT.glob(pattern)}):
        if not (path.parent.name == "evals" and path.stem.split("_")[0] in _SHOWN) and "out" not in path.parts:
            whole.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return whole.hexdigest()[:16]


def _git(*words: str, folder: Path = ROOT) -> str:
    try:
        ran = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""
