"""The official single-turn evaluator, asked through a process of its own (`single_worker.py`)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import IO, Any

from gecko_graph.state import Json

from ..harness.suite import EvalError
from . import package

WORKER = Path(__file__).with_name("single_worker.py")


class CheckerFailed(Exception):
    """The official evaluator could not judge something; a case's failure, not the user's mistake."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The official verdict on one result.

    Args:
        valid: Whether it is right.
        error_type: The evaluator's name for what is wrong; empty where nothing is.
        error: Its messages.
    """

    valid: bool
    error_type: str
    error: Sequence[str]


@dataclass(frozen=True, slots=True)
class Scored:
    """What an official score file holds for one category."""

    correct: int
    total: int
    invalid: frozenset[str]


class Checker:
    """The official evaluator. Its process starts with the first question and ends with this object.

    Args:
        python: A Python whose environment has the whole package, every vendor's SDK included; None for the package
            installed here without them.
    """

    def __init__(self, python: Path | None = None) -> None:
        self._python = python
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[bytes] | None = None
        if python is None:
            package.version()
        elif not python.is_file():
            raise EvalError(f"--official-python: there is no file {python}")

    def check(self, category: str, task: str, result: Json) -> Checked:
        """Return the verdict on one result, as it stands in a result file.

        Raises:
            EvalError: The evaluator cannot be started.
            CheckerFailed: It raised.
        """
        reply = self._ask(do="check", category=category, id=task, result=result)
        return Checked(reply["valid"], reply["error_type"] or "" if not reply["valid"] else "", reply["error"])

    def score(self, model: str, categories: Sequence[str], *, results: Path, scores: Path) -> dict[str, Scored]:
        """Let the evaluator score a model's result files and write its score files.

        Raises:
            EvalError: The evaluator cannot be started.
            CheckerFailed: It raised.
        """
        places = {"results": str(results.resolve()), "scores": str(scores.resolve())}
        reply = self._ask(do="score", model=model, categories=list(categories), **places)
        return {
            category: Scored(head["correct_count"], head["total_count"], frozenset(head["invalid"]))
            for category, head in reply.items()
        }

    def _ask(self, **request: Any) -> Any:
        with self._lock:
            process = self._process or self._start()
            reply = self._exchange(process, request)
        if "failed" in reply:
            raise CheckerFailed(f"the official evaluator: {reply['failed']}")
        return reply["said"]

    def _start(self) -> subprocess.Popen[str]:
        root = tempfile.mkdtemp(prefix="bfcl-")  # the package makes folders in the project folder that it is given
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        process = subprocess.Popen(
            [str(self._python or sys.executable), str(WORKER), *(["--whole"] if self._python else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            env={**os.environ, "BFCL_PROJECT_ROOT": root, "PYTHONIOENCODING": "utf-8"},
        )
        self._process = process
        weakref.finalize(self, _end, process, self._errors, Path(root))
        found = self._exchange(process, None).get("version")
        if found != package.VERSION:
            raise EvalError(f"{package.NAME} {found} is installed, {package.VERSION} was measured: {package.INSTALL}")
        return process

    def _exchange(self, process: subprocess.Popen[str], request: Any) -> Any:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if request is not None:
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise EvalError(f"the official evaluator ended: {self._last_words()}. {package.INSTALL}")
        return json.loads(line)

    def _last_words(self) -> str:
        if self._errors is None:
            return "it left no message"
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "it left no message")


def _end(process: subprocess.Popen[str], errors: IO[bytes], root: Path) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    errors.close()
    shutil.rmtree(root, ignore_errors=True)
