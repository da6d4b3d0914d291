"""The options that all suites share, with the models, knobs and data files that follow from them."""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel

from gecko_graph.context import GeckoContext
from gecko_graph.models.cache import ReplyCache, with_cache
from gecko_graph.state import ROLES, Role

from .patience import patient_model


class EvalError(Exception):
    """A user's mistake, such as a missing data set or a senseless option; the message says what to do. Exit code 2."""


ROOT = Path(__file__).resolve().parents[2]

SHARED = ROOT.parent / "shared" / "data"

OUT = ROOT / "evals" / "out"


def find(name: str, folder: Path = SHARED) -> Path:
    """Return the path of a data set's file. Raises EvalError if it is missing."""
    path = folder / name
    if not path.is_file():
        raise EvalError(f"no data set {name} in {folder}: it is part of the recorded data (--data DIR)")
    return path


def read_jsonl(path: Path) -> Iterator[Any]:
    """Yield the rows of a JSONL file, gzipped if its name ends in `.gz`, one at a time."""
    number = 0
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        try:
            for number, line in enumerate(lines, 1):  # noqa: B007 - named in the error
                if line.strip():
                    yield json.loads(line)
        except (ValueError, EOFError, gzip.BadGzipFile) as error:
            raise EvalError(f"{path}: line {number} cannot be read: {error}; download the file again") from None


@dataclass(frozen=True, slots=True)
class Planner:
    """The planner of a run: the data set's own answers, recorded calls of a real model, a live model, or none."""

    kind: Literal["ground-truth", "recorded", "model", "none"]
    file: Path | None = None
    model: str = ""

    def __str__(self) -> str:
        return {"recorded": f"recorded:{self.file}", "model": self.model}.get(self.kind, self.kind)

    @classmethod
    def parse(cls, text: str) -> Planner:
        """Read `ground-truth`, `recorded:FILE` or `provider:model`."""
        if text in {"ground-truth", "none"}:
            return cls("ground-truth" if text == "ground-truth" else "none")
        kind, colon, rest = text.partition(":")
        if not (kind and colon and rest):
            raise EvalError(f"--planner {text}: write ground-truth, recorded:FILE or provider:model")
        if kind != "recorded":
            return cls("model", model=text)
        if not Path(rest).is_file():
            raise EvalError(f"--planner {text}: there is no file {rest}")
        return cls("recorded", file=Path(rest))


@dataclass(frozen=True, slots=True)
class Options:
    """The user's options; None stands for the default of the suite or of a knob."""

    planner: Planner = field(default_factory=lambda: Planner("none"))
    model: str | None = None
    role_models: Mapping[Role, str] = field(default_factory=dict)
    base_url: str | None = None
    max_retries: int | None = None
    seed: int = 0
    at_once: int | None = None
    only: tuple[str, ...] = ()
    limit: int | None = None
    data: Path = SHARED
    out: Path = Path("evals/out")
    patience_s: float = 600.0
    own: argparse.Namespace = field(default_factory=argparse.Namespace)

    def dataset(self, name: str) -> Path:
        return find(name, self.data)

    def context(self, **knobs: Any) -> GeckoContext:
        """Return the knobs of a run: the given ones, the seed, and `--max-retries`."""
        given = {} if self.max_retries is None else {"max_retries": self.max_retries}
        return GeckoContext(**{"seed": self.seed, **given, **knobs})

    def model_names(self) -> dict[Role, str]:
        names = {role: self.role_models.get(role) or self.model for role in ROLES}
        if "planner" not in self.role_models:
            names["planner"] = self.planner.model or None
        return {role: name for role, name in names.items() if name}

    def speakers(self, *, planner: BaseChatModel | None = None) -> dict[Role, BaseChatModel]:
        """Return the models by role, one object per name; `planner` replaces the live one. Raises ModelError."""
        names = self.model_names()
        chats = {name: self.chat(name) for name in dict.fromkeys(names.values())}
        made: dict[Role, BaseChatModel] = {role: chats[name] for role, name in names.items()}
        return made if planner is None else {**made, "planner": planner}

    @property
    def replies(self) -> Path:
        return self.out / "replies"

    def chat(self, name: str) -> BaseChatModel:
        """Return a chat model by name, which repeats questions to a failing endpoint and caches replies.

        Raises ModelError.
        """
        model = patient_model(name, base_url=self.base_url, patience_s=self.patience_s)
        made: BaseChatModel = with_cache(model, ReplyCache(self.replies))
        return made
