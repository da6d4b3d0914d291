"""The official single-turn evaluator, for a separate process.

Its modules import every vendor's SDK through the model registry, and pandas for its leaderboard; scoring uses neither.
They are replaced by stubs here, and only in this process.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from functools import cache, partial
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

REGISTRY = "bfcl_eval.constants.model_config"
MODEL = "checked"

STUBBED = (
    "numpy",
    "pandas",
    "tqdm",
    "dotenv",
    "filelock",
    "bfcl_eval.model_handler.base_handler",
    "bfcl_eval.model_handler.utils",
)
"""Modules that the evaluator imports for purposes other than scoring: the leaderboard, other benchmarks, asking
models."""


class Stub(ModuleType):
    """A stub of a module, whose functions raise when called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return partial(refuse, f"{self.__name__}.{name}")


def refuse(name: str, *_: Any, **__: Any) -> NoReturn:
    """Raise: scoring was not expected to call this function."""
    raise RuntimeError(f"{name} is a stub and cannot be called")


class Handler:
    """Decodes the results of a model in function-calling mode: each call's name, and its arguments as JSON text."""

    def decode_ast(self, result: Any, language: Any = None, has_tool_call_tag: bool = False) -> list[dict[str, Any]]:
        """Return the calls by name; raises for a plain text, as the evaluator expects."""
        return [{name: json.loads(arguments) for name, arguments in list(call.items())[:1]} for call in result]


def add_stubs() -> None:
    for name in (*STUBBED, REGISTRY):
        sys.modules[name] = Stub(name)
    sys.modules["filelock"].__dict__["FileLock"] = nullcontext
    sys.modules[REGISTRY].__dict__["MODEL_CONFIG_MAPPING"] = {}


class CheckerFailed(Exception):
    """The official evaluator could not judge a result; the case fails, and the user is not to blame."""


def begin(root: str) -> None:
    """Prepare this process for the evaluator, with a project folder; its output goes to stderr."""
    os.environ["BFCL_PROJECT_ROOT"] = root
    sys.stdout = sys.stderr
    add_stubs()
    config = SimpleNamespace(model_name=MODEL, is_fc_model=True, underscore_to_dot=False)
    import_module(REGISTRY).MODEL_CONFIG_MAPPING[MODEL] = config


def check(category: str, task: str, result: Any) -> tuple[bool, str]:
    """Return the verdict on one result: whether it is valid, and the kind of error."""
    try:
        verdict = judge(category, task, result)
    except Exception as error:  # noqa: BLE001 - every error of the evaluator is reported
        raise CheckerFailed(f"the official evaluator: {type(error).__name__}: {error}") from None
    return bool(verdict["valid"]), "" if verdict["valid"] else verdict.get("error_type") or ""


def judge(category: str, task: str, result: Any) -> Any:
    runner, enums = (import_module(f"bfcl_eval.{name}") for name in ("eval_checker.eval_runner", "constants.enums"))
    entry, answer = entries(category)[task]
    handler, python = Handler(), {"language": enums.Language.PYTHON, "return_format": enums.ReturnFormat.PYTHON}
    if answer is None:
        return runner._evaluate_single_relevance_entry(handler, task, result, entry, MODEL, category)
    return runner._evaluate_single_ast_entry(handler, task, result, answer, entry, MODEL, category, **python)


@cache
def entries(category: str) -> dict[str, tuple[Any, Any]]:
    """Return a category's tasks by id, each with its ground truth; None if no tool fits."""
    utils = import_module("bfcl_eval.utils")
    found = utils.load_dataset_entry(category, include_prereq=False, include_language_specific_hint=False)
    if utils.is_relevance_or_irrelevance(category):
        return {entry["id"]: (entry, None) for entry in found}
    answers = {answer["id"]: answer["ground_truth"] for answer in utils.load_ground_truth_entry(category)}
    return {entry["id"]: (entry, answers[entry["id"]]) for entry in found}
