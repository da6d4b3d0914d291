"""The options of `run`, checked, and read as a scenario or as a task with tools; and which model answers for a role."""

from __future__ import annotations

import argparse
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langgraph.types import StateSnapshot
from pydantic import ValidationError

from ..context import GeckoContext
from ..errors import GeckoError, ModelError, ScenarioError, ToolkitError, did_you_mean
from ..models import factory
from ..models.formatting import text_of
from ..scenario import Scenario, Turn, examples, read_toolkit
from ..state import ROLES, Role
from ..tools import Toolkit
from ..tools.openapi.client import add_functions
from ..tools.openapi.credentials import read_credential, resolve_server
from ..values.documents import parse_document, read_document
from .saving import OUTPUTS

CONNECT_S = 10.0
MODEL_OPTIONS = {
    "base_url": "it is the address of the model's server",
    "timeout": "it limits one reply of the model",
    "temperature": "it is the temperature of the model",
}


def check_model_options(options: argparse.Namespace) -> None:
    """Raise GeckoError where an option of a model is given without `--model` (or `--role-model`)."""
    if options.model or read_role_models(options):
        return
    for name, use in MODEL_OPTIONS.items():
        if getattr(options, name) is not None:
            raise GeckoError(f"--{name.replace('_', '-')} needs --model: {use}")


def read_role_models(options: argparse.Namespace) -> dict[Role, str]:
    """Return the model name of each role that `--role-model ROLE=NAME` gives one. Raises ModelError."""
    by_role: dict[Role, str] = {}
    for entry in getattr(options, "role_model", None) or ():
        given, equals, name = entry.partition("=")
        role = next((role for role in ROLES if role == given), None)
        if not equals or not name:
            raise ModelError(f"--role-model {entry}: write ROLE=NAME, for example judge=openai:gpt-5-mini")
        if role is None:
            raise ModelError(
                f"--role-model {entry}: unknown role{did_you_mean(given, ROLES)}; roles: {', '.join(ROLES)}"
            )
        by_role[role] = name
    return by_role


def live_roles(options: argparse.Namespace) -> frozenset[Role]:
    """Return the roles that a live model answers for."""
    return frozenset(ROLES if options.model else read_role_models(options))


def build_models(options: argparse.Namespace) -> tuple[BaseChatModel | None, Mapping[Role, BaseChatModel]]:
    """Return the model of all roles, if any, and those of single roles; one object for each name. Raises ModelError."""
    by_role = read_role_models(options)
    how = {"base_url": options.base_url, "timeout_s": options.timeout, "temperature": options.temperature}
    built = {name: factory.chat_model(name, **how) for name in {options.model, *by_role.values()} - {None}}
    return built.get(options.model), {role: built[name] for role, name in by_role.items()}


def load_scenario(options: argparse.Namespace) -> Scenario:
    """Return the scenario that the command names, or one made of its task and tools. Raises GeckoError."""
    if options.file is not None and options.tools is not None:
        raise ScenarioError(
            f"{options.file} and --tools {options.tools}: give one of them, and the task as --task TEXT"
        )
    if options.file is not None and options.task is None:
        if options.state is not None:
            raise ScenarioError("--state belongs to a --task; a scenario holds its own state")
        if options.file in examples() and not Path(options.file).exists():
            hint = f"to run the example of this name: gecko-graph demo {options.file}"
            raise ScenarioError(f"{options.file}: no such file; {hint}")
        scenario = Scenario.load(options.file, allow_outside=options.allow_outside)
    else:
        scenario = _build_task_scenario(options)
    scenario = replace(scenario, tools_file=None) if options.contracts else scenario
    settings = [*options.set, *([f"reads={options.reads}"] if options.reads else [])]
    tools, limits = choose(scenario.tools, options), apply_settings(scenario.limits, settings)
    return replace(scenario, tools=connect(tools, options) if is_real(options, limits) else tools, limits=limits)


def choose(toolkit: Toolkit, options: argparse.Namespace) -> Toolkit:
    """Return the tools that `--only` and `--tag` choose, with the contracts of `--contracts`. Raises GeckoError."""
    for file in options.contracts:
        toolkit = toolkit.with_contracts(file)
    return toolkit.select(match=options.only, tags=options.tag) if options.only or options.tag else toolkit


def _build_task_scenario(options: argparse.Namespace) -> Scenario:
    tools = options.tools or options.file
    if tools is None or options.task is None:
        raise ScenarioError("give a scenario, or tools and a --task (gecko-graph run --help shows examples)")
    if not options.task.strip():
        raise ScenarioError("--task is empty: write what the user wants")
    if "planner" not in live_roles(options):
        raise ModelError("a --task needs a model for the planner, for example --model openai:gpt-5-mini")
    state = read_document(options.state) if options.state is not None else {}
    if not isinstance(state, dict):
        raise ScenarioError(f"{options.state}: task state: expected an object, got {type(state).__name__}")
    toolkit = read_toolkit(tools, allow_remote=options.allow_remote)
    file = Path(tools) if Path(tools).is_file() else None
    return Scenario("task", toolkit, state, (Turn(options.task),), GeckoContext(), tools, file)


def next_task(scenario: Scenario, options: argparse.Namespace, saved: StateSnapshot) -> Scenario:
    """Return the task's scenario with the thread's earlier tasks before it: it continues where the last one ended.

    Raises:
        GeckoError: The last one was interrupted, or a state is given where the thread has one.
    """
    tasks = [text_of(each) for each in saved.values.get("messages", []) if isinstance(each, HumanMessage)]
    scenario = replace(scenario, continues=options.state is None)
    if not tasks or tasks[-1].strip() == options.task.strip():
        return replace(scenario, turns=tuple(map(Turn, tasks or [options.task])))
    if saved.tasks:
        raise GeckoError(f"{options.save}: this run was interrupted: resume it with its own --task {tasks[-1]!r} first")
    if options.state is not None:
        raise GeckoError("--state: leave it out: the next task starts from the state that the last one ended with")
    return replace(scenario, turns=(*map(Turn, tasks), Turn(options.task)))


def check_files(read: Sequence[tuple[str, str | Path | None]], written: Sequence[tuple[str, str | None]]) -> None:
    """Raise GeckoError, with both names, for a file that is written and that is also read, or written to otherwise.

    Inputs and outputs have their names in messages; `-` is the standard output.
    """
    others = [(name, Path(file)) for name, file in read if file]
    for name, file in ((name, Path(file)) for name, file in written if file and file != "-"):
        for other, taken in others:
            linked = file.exists() and taken.exists() and file.samefile(taken)
            if linked or file.resolve() == taken.resolve():
                raise GeckoError(f"{name} {file}: is the same file as {other} {taken}; write to another file")
        others.append((name, file))


def check_options(options: argparse.Namespace, scenario: Scenario) -> None:
    """Raise GeckoError where two options do not go together, or one is incomplete."""
    check_model_options(options)
    inputs = [("FILE", options.file), ("--tools", options.tools), ("--state", options.state)]
    inputs += [("the scenario's tools", scenario.tools_file), *(("--contracts", file) for file in options.contracts)]
    written = [(f"--{name}".replace("_", "-"), getattr(options, name)) for name in ("save", "out", *OUTPUTS)]
    check_files(inputs, written)
    if options.resume and not options.save:
        raise GeckoError("--resume needs --save FILE: the file that the run was saved in")
    if options.yes and not is_real(options, scenario.limits):
        raise GeckoError("--yes approves real calls: it needs --server URL, or --reads real")
    if options.thread and not options.save:
        raise GeckoError("--thread needs --save FILE: it names a run in that file")
    for option, target in written:
        check_target(option, target)


def check_target(option: str, target: str | None) -> None:
    """Raise GeckoError where the file of an option, if there is one, cannot be written; `-` is the standard output."""
    if not target or target == "-":
        return
    if Path(target).is_dir():
        raise GeckoError(f"{option} {target}: is a folder: give a file")
    if option not in ("--save", "--log") and Path(target).is_symlink():  # those are added to
        raise GeckoError(f"{option} {target}: is a link: name the file itself, which would be overwritten")
    folder = Path(target).absolute().parent
    if not os.access(folder, os.W_OK):
        why = "may not be written to" if folder.is_dir() else "does not exist"
        raise GeckoError(f"{option} {target}: cannot be written: the folder {folder} {why}")


# real calls ------------------------------------------------------------------------------------------


def is_real(options: argparse.Namespace, limits: GeckoContext) -> bool:
    """Return whether a command makes real calls: then what is accepted is asked about and carried out."""
    return bool(options.server or options.auth or limits.reads == "real")


def connect(toolkit: Toolkit, options: argparse.Namespace) -> Toolkit:
    """Return the tools with a server that is there and credentials that are set: else GeckoError, before any model."""
    auth = dict(map(_read_auth, options.auth))
    connected = toolkit.replace(*add_functions(toolkit, server=options.server, auth=auth, client=None))
    servers = {resolve_server(tool.binding.server, options.server) for tool in toolkit if tool.binding} - {None}
    if not servers:
        raise GeckoError("real calls need an OpenAPI document that names its server, or --server URL")
    for tool in toolkit:
        alternatives = tool.binding.security if tool.binding else ()
        if alternatives and not any(one.keys() <= auth.keys() for one in alternatives):
            wanted = " or ".join(" and ".join(one) for one in alternatives)
            raise GeckoError(f"{tool.name} needs a credential: give --auth SCHEME=env:NAME for {wanted}")
    for url in filter(None, servers):
        parts = urlsplit(url)
        try:
            port = parts.port or (80 if parts.scheme == "http" else 443)
            socket.create_connection((parts.hostname or "", port), CONNECT_S).close()
        except (OSError, ValueError) as error:  # ValueError: no such port, or no name
            raise GeckoError(f"server: nothing answers at {url}: {error}") from None
    return connected


def _read_auth(entry: str) -> tuple[str, str]:
    """Return scheme and source of an `--auth`; what may be a credential stands in no error."""
    scheme, _, source = entry.partition("=")
    if not scheme or not re.fullmatch(r"env:\w+", source):
        raise GeckoError("--auth: write SCHEME=env:NAME: the credential is read from the environment variable NAME")
    if not read_credential(source, f"--auth {scheme}"):
        raise GeckoError(f"--auth: the environment variable {source.removeprefix('env:')} for {scheme} is not set")
    return scheme, source


# knobs -----------------------------------------------------------------------------------------------

_MESSAGES = {
    "int_parsing": "expected a whole number",
    "float_parsing": "expected a number",
    "bool_parsing": "expected true or false",
    "tuple_type": "expected a list, such as [contract, schema]",
}


def apply_settings(limits: GeckoContext, settings: Sequence[str]) -> GeckoContext:
    """Return the knobs with each `KEY=VALUE` of `--set` applied. Raises ScenarioError."""
    changed = limits.model_dump()
    for setting in settings:
        key, equals, value = setting.partition("=")
        if key not in GeckoContext.model_fields:
            hint = did_you_mean(key, changed, cutoff=0.5)
            raise ScenarioError(f"--set {setting}: unknown knob{hint}; knobs: {', '.join(changed)}")
        if not equals or not value.strip():
            raise ScenarioError(f"--set {setting}: write {key}=VALUE; {_describe(key)}")
        try:
            changed[key] = None if value.lower() == "none" else parse_document(value, where=f"--set {key}")
            limits = GeckoContext.model_validate(changed)
        except ToolkitError as error:
            raise ScenarioError(str(error)) from None
        except ValidationError as error:
            first = error.errors()[0]
            why = _MESSAGES.get(first["type"], first["msg"].replace("Input should", "should"))
            raise ScenarioError(f"--set {setting}: {why}; {_describe(key)}") from None
    return limits


def _describe(key: str) -> str:
    return f"{key}: {GeckoContext.model_fields[key].description}"
