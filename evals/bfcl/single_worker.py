"""The official single-turn evaluator in a process of its own: JSON requests on stdin, replies on stdout, one a line.

Its modules import every vendor's SDK through the model registry, and pandas for its leaderboard, of which scoring a
result uses nothing. They are stood in for here, and only here: nothing leaks into the process that asks.

Requests: `{"category", "id", "result"}`.
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext, redirect_stdout
from functools import cache, partial
from importlib import import_module, metadata
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


class Evaluator:
    """The official evaluator."""

    def __init__(self) -> None:
        stand_in()
        self._runner = import_module("bfcl_eval.eval_checker.eval_runner")
        self._utils = import_module("bfcl_eval.utils")
        self._handler = Handler()
        self._entries = cache(self._load)
        config = SimpleNamespace(model_name=MODEL, is_fc_model=True, underscore_to_dot=False)
        import_module(REGISTRY).MODEL_CONFIG_MAPPING[MODEL] = config

    def check(self, *, category: str, id: str, result: Any) -> dict[str, Any]:
        """Return the verdict on one result."""
        entry, answer = self._entries(category)[id]
        if answer is None:
            verdict = self._runner._evaluate_single_relevance_entry(self._handler, id, result, entry, MODEL, category)
        else:
            enums = import_module("bfcl_eval.constants.enums")
            verdict = self._runner._evaluate_single_ast_entry(
                self._handler,
                id,
                result,
                answer,
                entry,
                MODEL,
                category,
                language=enums.Language.PYTHON,
                return_format=enums.ReturnFormat.PYTHON,
            )
        errors = [str(line) for line in verdict.get("error", ())]
        return {"valid": bool(verdict["valid"]), "error_type": verdict.get("error_type"), "error": errors}

    def _load(self, category: str) -> dict[str, tuple[Any, Any]]:
        entries = self._utils.load_dataset_entry(category, include_prereq=False, include_language_specific_hint=False)
        if self._utils.is_relevance_or_irrelevance(category):
            return {entry["id"]: (entry, None) for entry in entries}
        answers = {answer["id"]: answer["ground_truth"] for answer in self._utils.load_ground_truth_entry(category)}
        return {entry["id"]: (entry, answers[entry["id"]]) for entry in entries}


def main() -> None:
    """Answer requests until stdin ends; what the evaluator prints goes to stderr."""
    reply_to = sys.stdout
    with redirect_stdout(sys.stderr):
        evaluator = Evaluator()
        print(json.dumps({"version": metadata.version("bfcl-eval")}), file=reply_to, flush=True)
        for line in sys.stdin:
            try:
                reply: dict[str, Any] = {"said": evaluator.check(**json.loads(line))}
            except Exception as error:  # noqa: BLE001 - the boundary: every error of the evaluator goes into the reply
                reply = {"failed": f"{type(error).__name__}: {error}"}
            print(json.dumps(reply), file=reply_to, flush=True)


if __name__ == "__main__":
    main()
