"""What the options of `run` ask for: which scenario, or which task with which tools; and what is wrong with them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from langchain_core.messages import HumanMessage
from langgraph.types import StateSnapshot
from pydantic import ValidationError

from ..context import GeckoContext
from ..documents import parse_document, read_document
from ..errors import GeckoError, ModelError, ScenarioError, ToolkitError
from ..models.formatting import text_of
from ..scenario import Scenario, Turn, examples, read_toolkit


def scenario_of(options: argparse.Namespace) -> Scenario:
    """The scenario that the command names, or the one that a task and tools make.

    Raises:
        GeckoError: Both or neither are given, or something in them is wrong.
    """
    if options.file is not None and options.tools is not None:
        raise ScenarioError(
            f"{options.file} and --tools {options.tools}: name one of both; what the user wants goes behind --task"
        )
    if options.file is not None and options.task is None:
        if options.state is not None:
            raise ScenarioError("--state is for a task; a scenario has a state of its own")
        _check_example(options.file)
        read = Scenario.load(options.file, allow_outside=options.allow_outside)
    else:
        read = _of_task(options)
    return replace(read, limits=_knobs(read.limits, options.set))


def _check_example(file: str) -> None:
    if file in examples() and not Path(file).exists():
        raise ScenarioError(f"{file}: no such file; the example of this name: gecko-graph demo {file}")


def _of_task(options: argparse.Namespace) -> Scenario:
    tools = options.tools or options.file
    if tools is None or options.task is None:
        raise ScenarioError("name a scenario, or tools and a --task (gecko-graph run --help shows examples)")
    if not options.task.strip():
        raise ScenarioError("--task is empty: say what the user wants")
    if options.model is None:
        raise ModelError("a task needs a model that plans: --model openai:gpt-5-mini, for example")
    state = read_document(options.state) if options.state is not None else {}
    if not isinstance(state, dict):
        raise ScenarioError(f"{options.state}: the task state must be an object, not {type(state).__name__}")
    return Scenario("task", read_toolkit(tools), state, (Turn(options.task),), GeckoContext(), tools)


def next_task(scenario: Scenario, options: argparse.Namespace, saved: StateSnapshot) -> Scenario:
    """The task's scenario with what was said before in its thread: another task than the last one goes on from there.

    Raises:
        GeckoError: The last one was interrupted, or a state is given where the thread has one.
    """
    said = [text_of(each) for each in saved.values.get("messages", []) if isinstance(each, HumanMessage)]
    if not said or said[-1].strip() == options.task.strip():
        return scenario
    if saved.tasks:
        raise GeckoError(f"{options.save}: this run was interrupted: resume it with its own --task {said[-1]!r} first")
    if options.state is not None:
        raise GeckoError("--state: the next task begins from the state that the last one left: leave it out")
    return replace(scenario, turns=(*map(Turn, said), Turn(options.task)))


def check_address(options: argparse.Namespace) -> None:
    """Look at `--base-url` and `--timeout`.

    Raises:
        GeckoError: There is no model that they are for.
    """
    if options.base_url and not options.model:
        raise GeckoError("--base-url is the address of a model: give --model as well")
    if options.timeout is not None and not options.model:
        raise GeckoError("--timeout is how long a model may take: give --model as well")


def check_files(read: Sequence[tuple[str, str | Path | None]], written: Sequence[tuple[str, str | None]]) -> None:
    """Look for a file that is written although the same command reads it, or writes something else to it.

    Args:
        read: What the command reads: a name for it in messages, and its file.
        written: What it writes, likewise; `-` is the standard output.

    Raises:
        GeckoError: There is one; both names are in the message.
    """
    others = [(name, Path(file)) for name, file in read if file]
    for name, file in ((name, Path(file)) for name, file in written if file and file != "-"):
        for other, taken in others:
            linked = file.exists() and taken.exists() and file.samefile(taken)
            if linked or file.resolve() == taken.resolve():
                raise GeckoError(f"{name} {file}: is the same file as {other} {taken}; write to another one")
        others.append((name, file))


def check_options(options: argparse.Namespace, scenario: Scenario) -> None:
    """Look for what does not go together.

    Raises:
        GeckoError: Something does not.
    """
    check_address(options)
    named = [("FILE", options.file), ("--tools", options.tools), ("--state", options.state)]
    read = [*named, ("the scenario's tools", scenario.tools_file)]
    check_files(read, [("--save", options.save), ("--json", options.json)])
    if options.resume and not options.save:
        raise GeckoError("--resume needs --save FILE: the file that the run was kept in")
    if options.thread and not options.save:
        raise GeckoError("--thread names a run in a file: give --save FILE as well")
    target = Path(options.json) if options.json and options.json != "-" else None
    if target is not None and target.is_dir():
        raise GeckoError(f"--json {target}: is a folder; name a file")
    if target is not None and not os.access(target.absolute().parent, os.W_OK):
        raise GeckoError(f"--json {target}: cannot be written")


# knobs -----------------------------------------------------------------------------------------------

_WORDS = {
    "int_parsing": "should be a whole number",
    "float_parsing": "should be a number",
    "bool_parsing": "should be true or false",
    "tuple_type": "should be a list, such as [contract, schema]",
}


def _knobs(limits: GeckoContext, settings: Sequence[str]) -> GeckoContext:
    changed = limits.model_dump()
    for setting in settings:
        key, equals, value = setting.partition("=")
        if key not in GeckoContext.model_fields:
            raise ScenarioError(f"--set {setting}: {_unknown(key)}")
        if not equals or not value.strip():
            raise ScenarioError(f"--set {setting}: write {key}=VALUE; {_about(key)}")
        try:
            changed[key] = None if value.lower() == "none" else parse_document(value, where=f"--set {key}")
            limits = GeckoContext.model_validate(changed)
        except ToolkitError as error:
            raise ScenarioError(str(error)) from None
        except ValidationError as error:
            found = error.errors()[0]
            why = _WORDS.get(found["type"], found["msg"].replace("Input should", "should"))
            raise ScenarioError(f"--set {setting}: {why}; {_about(key)}") from None
    return limits


def _unknown(key: str) -> str:
    known = list(GeckoContext.model_fields)
    near = get_close_matches(key, known, n=1, cutoff=0.5)
    meant = f", perhaps {near[0]!r} is meant" if near else ""
    return f"there is no such knob{meant}; there are {', '.join(known)}"


def _about(key: str) -> str:
    return f"{key}: {GeckoContext.model_fields[key].description}"
