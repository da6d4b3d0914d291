"""Check and read the inputs of commands: files, models, a scenario or a task with tools; and the console."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace as Options
from typing import Any
from urllib.parse import urlsplit

from langchain_core.messages import HumanMessage
from langgraph.types import StateSnapshot
from pydantic import ValidationError
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from ..context import LADDER, GeckoContext
from ..derive.contracts import with_derived
from ..display.text import hang
from ..errors import GeckoError, ModelError, ScenarioError, StateError, ToolkitError, did_you_mean
from ..learning.readers import read_file
from ..models.factory import Models
from ..models.formatting import text_of
from ..scenario import Scenario, Turn, examples, read_toolkit
from ..scenario.recorder import check_target
from ..state import ROLES, JsonObject, Role
from ..tools import Toolkit
from ..tools.openapi.client import add_functions
from ..tools.openapi.credentials import read_credential, resolve_server
from ..values.documents import parse_document, read_document
from ..values.mapping import Map, on_ray, processes
from ..values.observation import BadRows, is_masked, without_masked
from ..world.rung import Answer
from ..world.world import World
from .options import HERE

CONNECT_S = 10.0
OUTPUTS = ("json", "html", "log", "write_state")
NEEDS = {"base_url": "model", "timeout": "model", "resume": "save", "thread": "save"}
RULES = tuple(rung for rung in LADDER if rung != "model")
UNRECORDED = ("resume", "server", "auth", "yes")


def check_needs(options: Options) -> None:
    """Raise GeckoError if an option is given without the option that it needs."""
    for name, other in NEEDS.items():
        is_there = getattr(options, other, None) or (other == "model" and getattr(options, "role_model", None))
        if getattr(options, name, None) not in (None, False) and not is_there:
            raise GeckoError(f"--{name.replace('_', '-')} needs --{other} {'FILE' if other == 'save' else 'NAME'}")


def live_roles(options: Options) -> frozenset[Role]:
    return frozenset(ROLES if options.model else options.role_model)


def build_models(options: Options) -> Models:
    """Return the models that the options name. Raises ModelError."""
    by_role, timeout_s = getattr(options, "role_model", {}), getattr(options, "timeout", None)
    return Models(options.model, base_url=options.base_url, timeout_s=timeout_s, **by_role)


def load_scenario(options: Options) -> Scenario:
    """Return the scenario that the command names, or one made from its task and tools.

    Raises:
        GeckoError: Two options exclude each other, one is incomplete, or a file cannot be written.
    """
    check_needs(options)
    if options.record:
        if given := next((name for name in UNRECORDED if getattr(options, name)), None):
            raise GeckoError(f"--record needs a whole rehearsal without real calls: leave --{given} out")
        check_target(options.record)
    scenario = _read_scenario(options) if options.task is None else _build_task(options)
    scenario = replace(scenario, tools_file=None) if options.contracts else scenario
    settings = [*options.set, *([f"reads={options.reads}"] if options.reads else [])]
    tools, limits = choose(scenario.tools, options), apply_settings(scenario.limits, settings)
    if getattr(options, "no_derive", False):
        limits = limits.model_copy(update={"ladder": tuple(rung for rung in limits.ladder if rung != "derived")})
    if options.task is not None:
        tools = with_derived(tools, scenario.state, derive="derived" in limits.ladder)
        scenario = replace(scenario, state=seed(tools, scenario.state, options) or {})
    scenario = replace(scenario, tools=connect(tools, options) if is_real(options, limits) else tools, limits=limits)
    inputs = [("FILE", options.file), ("--state", options.state), ("the scenario's tools", scenario.tools_file)]
    inputs += [("--contracts", file) for file in options.contracts]
    inputs += [("--seed-from", file) for file in getattr(options, "seed_from", ())]
    outputs = ("save", "record", *OUTPUTS)
    check_files(inputs, {f"--{name}".replace("_", "-"): getattr(options, name) for name in outputs})
    if options.yes and not is_real(options, scenario.limits):
        raise GeckoError("--yes approves real calls: it needs --server URL, or --reads real")
    return scenario


def choose(toolkit: Toolkit, options: Options) -> Toolkit:
    """Return the tools selected by `--only`, with the contracts of `--contracts`. Raises GeckoError."""
    for file in options.contracts:
        toolkit = toolkit.with_contracts(file)
    return toolkit.select(match=options.only) if options.only else toolkit


def read_state(file: str | None) -> JsonObject:
    """Return the task state in a file, {} without a file. Raises StateError if it is no object."""
    state = read_document(file) if file is not None else {}
    if not isinstance(state, dict):
        raise StateError(f"--state {file}: expected an object, got {type(state).__name__}")
    return state


def seed(toolkit: Toolkit, state: JsonObject | None, options: Options) -> JsonObject | None:
    """Return the start state with the results of the real reads in `--seed-from`.

    Raises GeckoError if a file has none.
    """
    files = getattr(options, "seed_from", ())
    world = World(toolkit, state=state, context=GeckoContext(semantic_validation=False, ladder=RULES), derive=False)
    for file in files:
        rows = read_file(file, bad := BadRows(), toolkit, server=options.server)
        reads = [row for row in rows if row.tool in toolkit and toolkit.is_read(row.tool) and row.status == "ok"]
        if not reads:
            raise GeckoError("; ".join([f"--seed-from {file}: it contains no real read of these tools", *bad.lines()]))
        for row in (each for each in reads if not is_masked(each.args)):
            world.record({"name": row.tool, "args": row.args}, Answer("ok", without_masked(row.result), []))
    return world.state if files else state


def _read_scenario(options: Options) -> Scenario:
    if options.file is None:
        raise ScenarioError("give a scenario, or tools and a --task (gecko-graph run --help shows examples)")
    if given := next((name for name in ("state", "seed_from") if getattr(options, name, None)), None):
        raise ScenarioError(f"--{given.replace('_', '-')} needs --task; a scenario has its own state")
    if options.file in examples() and not Path(options.file).exists():
        hint = f"to run the example of this name: gecko-graph demo {options.file}"
        raise ScenarioError(f"{options.file}: no such file; {hint}")
    return Scenario.load(options.file, allow_outside=options.allow_outside)


def _build_task(options: Options) -> Scenario:
    if options.file is None:
        raise ScenarioError("give a scenario, or tools and a --task (gecko-graph run --help shows examples)")
    if not options.task.strip():
        raise ScenarioError("--task is empty: write the user's task")
    if "planner" not in live_roles(options):
        raise ModelError("a --task needs a model for the planner, for example --model openai:gpt-5-mini")
    state = read_state(options.state)
    toolkit = read_toolkit(options.file, allow_remote=options.allow_remote)
    file = Path(options.file) if Path(options.file).is_file() else None
    return Scenario(
        name="task", tools=toolkit, state=state, turns=(Turn(options.task),), where=options.file, tools_file=file
    )


def next_task(scenario: Scenario, options: Options, saved: StateSnapshot) -> Scenario:
    """Return the task's scenario, preceded by the thread's earlier tasks if the last one is finished.

    Raises:
        GeckoError: The last task was interrupted, or a state is given although the thread has one.
    """
    tasks = [text_of(each) for each in saved.values.get("messages", []) if isinstance(each, HumanMessage)]
    scenario = replace(scenario, continues=options.state is None)
    if not tasks or tasks[-1].strip() == options.task.strip():
        return replace(scenario, turns=tuple(map(Turn, tasks or [options.task])))
    if saved.tasks:
        raise GeckoError(f"{options.save}: this run was interrupted: first resume it with --task {tasks[-1]!r}")
    if options.state is not None:
        raise GeckoError("--state: leave it out: the next task starts from the last task's end state")
    return replace(scenario, turns=(*map(Turn, tasks), Turn(options.task)))


# screen and files -----------------------------------------------------------------------------------


class Screen(Console):
    """A console for untrusted text: without markup. The text after a label wraps below itself."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects; a text with a label (`hint         ...`) is printed as a table of both."""
        shown = (each if self.soft_wrap or not isinstance(each, Text) else hang(each) for each in objects)
        super().print(*shown, **options)

    def on_broken_pipe(self) -> None:
        """Raise, so that `main` can exit quietly; rich would end the process."""
        raise BrokenPipeError


def screen(*, stderr: bool = False) -> Screen:
    """Return the console of standard output or error. In a pipe, lines are not wrapped."""
    in_pipe = not (sys.stderr if stderr else sys.stdout).isatty()
    return Screen(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=in_pipe)


Tell = Callable[..., None]


@contextmanager
def progress(about: str = "", *, total: int | None = None) -> Iterator[tuple[Progress, Tell]]:
    """Show the progress of long work in a terminal: yield the bar, and a function `(done, about)` that updates it."""
    console = screen(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(about, total=total)
        yield bar, lambda done, about, **more: bar.update(task, completed=done, description=about, **more)


def write_text(option: str, target: str, text: str) -> None:
    """Write the file of an option; `-` is standard output. Raises GeckoError."""
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise GeckoError(f"{option} {target}: cannot be written: {error.strerror}") from None


def find_map(options: Options, otherwise: Map = map) -> Map:
    """Return the `map` of a command: by `--ray`, `--workers`, or one process."""
    if options.ray is not None:
        return on_ray(None if options.ray == HERE else options.ray, options.workers)
    return processes(options.workers) if (options.workers or 1) > 1 else otherwise


def check_files(read: Sequence[tuple[str, str | Path | None]], written: Mapping[str, str | None]) -> None:
    """Raise GeckoError for a file that cannot be written, that is also read, or that two options write.

    The keys of inputs and outputs are their names in messages; `-` is standard output.
    """
    others = [(name, Path(file)) for name, file in read if file]
    targets = [(name, Path(file)) for name, file in written.items() if file and file != "-"]
    for name, file in targets:
        for other, taken in others:
            linked = file.exists() and taken.exists() and file.samefile(taken)
            if linked or file.resolve() == taken.resolve():
                raise GeckoError(f"{name} {file}: is the same file as {other} {taken}; write to another file")
        others.append((name, file))
        if file.is_dir():
            raise GeckoError(f"{name} {file}: is a folder, not a file")
        if name not in ("--save", "--log") and file.is_symlink():  # these are appended to
            raise GeckoError(f"{name} {file}: is a link: name the file itself, which would be overwritten")
        folder = file.absolute().parent
        if not os.access(folder, os.W_OK):
            why = "may not be written to" if folder.is_dir() else "does not exist"
            raise GeckoError(f"{name} {file}: cannot be written: the folder {folder} {why}")


# real calls ------------------------------------------------------------------------------------------


def is_real(options: Options, limits: GeckoContext) -> bool:
    """Return whether the command makes real calls: then an accepted plan is shown for approval and carried out."""
    return bool(options.server or options.auth or limits.reads == "real")


def connect(toolkit: Toolkit, options: Options) -> Toolkit:
    """Return the tools bound to a reachable server and to credentials; raise GeckoError before any model is asked."""
    auth = dict(map(read_auth, options.auth))
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
        except (OSError, ValueError) as error:  # ValueError: an invalid port or host name
            raise GeckoError(f"server: nothing answers at {url}: {error}") from None
    return connected


def read_auth(entry: str) -> tuple[str, str]:
    """Return scheme and source of an `--auth`. No error message contains a possible credential."""
    scheme, _, source = entry.partition("=")
    if not scheme or not re.fullmatch(r"env:\w+", source):
        raise GeckoError("--auth: write SCHEME=env:NAME: the credential is read from the environment variable NAME")
    if not read_credential(source, f"--auth {scheme}"):
        raise GeckoError(f"--auth: the environment variable {source.removeprefix('env:')} for {scheme} is not set")
    return scheme, source


# knobs -----------------------------------------------------------------------------------------------


def apply_settings(limits: GeckoContext, settings: Sequence[str]) -> GeckoContext:
    """Return the knobs with each `KEY=VALUE` of `--set` applied. Raises ScenarioError."""
    changed = limits.model_dump()
    for setting in settings:
        key, equals, value = setting.partition("=")
        if key not in changed:
            hint = did_you_mean(key, changed, cutoff=0.5)
            raise ScenarioError(f"--set {setting}: unknown knob{hint}; knobs: {', '.join(changed)}")
        about = f"{key}: {GeckoContext.model_fields[key].description}"
        if not equals or not value.strip():
            raise ScenarioError(f"--set {setting}: write {key}=VALUE; {about}")
        try:
            changed[key] = None if value.lower() == "none" else parse_document(value, where=f"--set {key}")
            limits = GeckoContext.model_validate(changed)
        except ToolkitError as error:
            raise ScenarioError(str(error)) from None
        except ValidationError as error:
            why = error.errors()[0]["msg"].replace("Input should", "should")
            raise ScenarioError(f"--set {setting}: {why}; {about}") from None
    return limits
