"""Access to the official package `bfcl-eval`, and instructions if it is missing.

Its data, its executable classes and its multi-turn checker are used in place; nothing is copied. A full installation
takes 6.4 GB; only the package itself and, for its MathAPI, mpmath are needed here: 20 MB with one command.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType

from ..harness.options import EvalError

NAME = "bfcl-eval"
VERSION = "2026.3.23"
"""The version that all measurements here use."""

INSTALL = f"pip install --no-deps {NAME}=={VERSION} mpmath"
"""The command that installs what is needed here."""

UTILS = "eval_checker.multi_turn_eval.multi_turn_utils"
CHECKER = "eval_checker.multi_turn_eval.multi_turn_checker"
BACKENDS = "constants.executable_backend_config"


@cache
def version() -> str:
    """Return the installed version."""
    try:
        found = metadata.version(NAME)
    except metadata.PackageNotFoundError:
        raise EvalError(f"the official package {NAME} is not installed: {INSTALL}") from None
    if found != VERSION:
        raise EvalError(f"{NAME} {found} is installed, its classes and data may differ from {VERSION}: {INSTALL}")
    return found


def load(name: str) -> ModuleType:
    """Load a module of the package by its name inside it: `load("eval_checker.multi_turn_eval.multi_turn_checker")`."""
    version()
    try:
        return import_module(f"bfcl_eval.{name.removeprefix('bfcl_eval.')}")
    except ImportError as error:
        raise EvalError(f"{NAME}'s module {name} cannot be imported ({error}): {INSTALL}") from None


def data_file(name: str) -> Path:
    """Return a file of the package's data folder, such as `BFCL_v4_simple_python.json`."""
    version()
    root = load("constants").__path__[0]
    path = Path(root).parent / "data" / name
    if not path.is_file():
        raise EvalError(f"{NAME} {VERSION} has no data file {name}: {INSTALL}")
    return path
