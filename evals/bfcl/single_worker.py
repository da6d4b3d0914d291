"""The official single-turn evaluator, for a process of its own.

Its modules import every vendor's SDK through the model registry, and pandas for its leaderboard, of which scoring a
result uses nothing. They are stood in for here, and only here: nothing leaks into the process that asks.
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

STOOD_IN_FOR = (
    "numpy",
    "pandas",
    "tqdm",
    "dotenv",
    "filelock",
    "bfcl_eval.model_handler.base_handler",
    "bfcl_eval.model_handler.utils",
)
"""What the evaluator imports for other things than scoring: the leaderboard, other benchmarks, asking models."""


class StandIn(ModuleType):
    """A module in name only: its functions refuse to be called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return partial(refuse, f"{self.__name__}.{name}")


def refuse(name: str, *_: Any, **__: Any) -> NoReturn:
    """Fail: something was called that scoring was not known to use."""
    raise RuntimeError(f"{name} is stood in for, and was called")


class Handler:
    """Decodes what a model in function-calling mode left behind: for each call its name and arguments as JSON text."""

    def decode_ast(self, result: Any, language: Any = None, has_tool_call_tag: bool = False) -> list[dict[str, Any]]:
        """Return the calls by name; raises where the result is a plain text, as the evaluator expects."""
        return [{name: json.loads(arguments) for name, arguments in list(call.items())[:1]} for call in result]


def stand_in() -> None:
    """Put the stand-ins where the evaluator will look for them."""
    for name in (*STOOD_IN_FOR, REGISTRY):
        sys.modules[name] = StandIn(name)
    sys.modules["filelock"].__dict__["FileLock"] = nullcontext
    sys.modules[REGISTRY].__dict__["MODEL_CONFIG_MAPPING"] = {}


class CheckerFailed(Exception):
    """The official evaluator could not judge something; a case's failure, not the user's mistake."""


def begin(root: str) -> None:
    """Make this process the evaluator's, with a project folder; what it prints goes to stderr."""
    os.environ["BFCL_PROJECT_ROOT"] = root
    sys.stdout = sys.stderr
    stand_in()
    config = SimpleNamespace(model_name=MODEL, is_fc_model=True, underscore_to_dot=False)
    import_module(REGISTRY).MODEL_CONFIG_MAPPING[MODEL] = config


def check(category: str, task: str, result: Any) -> tuple[bool, str]:
    """Return the verdict on one result: whether it is valid, and the kind of error.

    Raises:
        CheckerFailed: The evaluator raised.
    """
    try:
        verdict = judge(category, task, result)
    except Exception as error:  # noqa: BLE001 - the boundary: every error of the evaluator is told
        raise CheckerFailed(f"the official evaluator: {type(error).__name__}: {error}") from None
    return bool(verdict["valid"]), "" if verdict["valid"] else verdict.get("error_type") or ""


def judge(category: str, task: str, result: Any) -> Any:
    """Return the evaluator's own verdict."""
    runner, enums = (import_module(f"bfcl_eval.{name}") for name in ("eval_checker.eval_runner", "constants.enums"))
    entry, answer = entries(category)[task]
    handler, python = Handler(), {"language": enums.Language.PYTHON, "return_format": enums.ReturnFormat.PYTHON}
    if answer is None:
        return runner._evaluate_single_relevance_entry(handler, task, result, entry, MODEL, category)
    return runner._evaluate_single_ast_entry(handler, task, result, answer, entry, MODEL, category, **python)


@cache
def entries(category: str) -> dict[str, tuple[Any, Any]]:
    """Return a category's tasks by id, each with its ground truth; None where no tool fits."""
    utils = import_module("bfcl_eval.utils")
    found = utils.load_dataset_entry(category, include_prereq=False, include_language_specific_hint=False)
    if utils.is_relevance_or_irrelevance(category):
        return {entry["id"]: (entry, None) for entry in found}
    answers = {answer["id"]: answer["ground_truth"] for answer in utils.load_ground_truth_entry(category)}
    return {entry["id"]: (entry, answers[entry["id"]]) for entry in found}
