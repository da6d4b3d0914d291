"""The commands with their options, defined once for parsing, completion, suggestions and help."""

from __future__ import annotations

import sys

import click

from .. import __version__
from .data_arguments import data
from .options import FILE, Commands, choice, complete_examples, html, json, mapped, model, role_model, start

COMPLETION_VARIABLE = "_GECKO_GRAPH_COMPLETE"


@click.group(cls=Commands, context_settings={"max_content_width": 120, "help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="gecko-graph %(version)s")
def cli() -> None:
    """Rehearse an agent's tool calls before anything real is touched.

    The result is a plan that has worked in simulation, the state after it, and the reasons why other attempts
    failed.
    """


@cli.command(module="running")
@click.argument("name", required=False, shell_complete=complete_examples)
@click.option("--yes", is_flag=True, help="Example `order`: approve the plan without asking.")
@click.option("--list", is_flag=True, help="List the examples and the paths of their files.")
@html
def demo() -> None:
    """Run an example, without a key or a network."""


@cli.command(module="running")
@click.argument("file", type=FILE, required=False)
@click.option("--allow-outside", is_flag=True, help="Also read tools outside the scenario's folder.")
@click.option("--task", metavar="TEXT", help="The user's task, instead of a scenario; FILE contains the tools.")
@click.option("--state", metavar="FILE", type=FILE, help="The task state that a --task starts from, as JSON or YAML.")
@choice
@model
@click.option("--timeout", metavar="SECONDS", type=float, help="Longest wait for one reply (OpenAI's: 120).")
@role_model
@click.option("--set", metavar="KEY=VALUE", multiple=True, help="A knob, for example max_retries=1; see below.")
@click.option("--save", metavar="FILE", type=FILE, help="Save every step in this SQLite file.")
@click.option("--thread", metavar="NAME", help="The run's name in the file (the scenario's).")
@click.option("--resume", is_flag=True, help="Continue a saved run.")
@click.option("--record", metavar="FILE", type=FILE, help="Write the run as a scenario that plays without a model.")
@click.option("--log", metavar="FILE", type=FILE, help="Append every prompt and reply as JSON lines, masked.")
@html
@json
@click.option("--write-state", metavar="FILE", type=FILE, help="Write the start state (given or made up), for editing.")
@click.option("--server", metavar="URL", help="Server of real calls, instead of the document's server.")
@click.option(
    "--auth", metavar="SCHEME=env:NAME", multiple=True, help="A credential's environment variable (repeatable)."
)
@click.option("--reads", type=click.Choice(["simulated", "real"]), help="real: make reads for real while rehearsing.")
@click.option("--yes", is_flag=True, help="Approve a plan without asking, if it uses no made-up values.")
@start
def run() -> None:
    """Rehearse a scenario, or a task with tools."""


@cli.command(module="running")
@click.argument("file", type=FILE)
@click.argument("thread")
@click.option("--yes", is_flag=True, help="Approve the plan without asking.")
def do() -> None:
    """Carry out a saved run for real.

    THREAD is the run's name in FILE, the file of --save. Each approved call is made exactly once.
    """


@cli.command(module="running")
@click.argument("file", type=FILE)
@click.argument("thread")
@click.option("--yes", is_flag=True, help="Approve the plan without asking.")
def undo() -> None:
    """Undo the real calls of a saved run.

    Calls that revert its last changes are searched, shown, and made once you approve. THREAD is the run's name in FILE,
    the file of --save.
    """


_agent = "module:factory (from tools to an agent), provider:name, or a server's address."


@cli.command(module="test")
@click.argument("cases", type=FILE, nargs=-1, required=True)
@click.option("--agent", metavar="AGENT", required=True, help=_agent)
@click.option("--user-model", metavar="NAME", help="provider:name that plays the users, instead of scripts.")
@click.option("--play", is_flag=True, help="Play the user of each case yourself: type or pipe in the messages.")
@click.option("--simulator-model", metavar="NAME", help="provider:name that simulates calls that no rule can answer.")
@click.option("--trials", metavar="N", type=click.IntRange(1), default=1, help="Conversations per case (1).")
@click.option("--augment", metavar="NAME", multiple=True, help="Make the tools harder, by name; all, or faults.")
@click.option("--at-once", metavar="N", type=click.IntRange(1), default=4, help="Parallel conversations (4).")
@mapped
@model
@role_model
@click.option("--save", metavar="FILE", type=FILE, help="Save finished conversations as JSON lines.")
@html
@json
def test() -> None:
    """Test an agent with simulated users and tools.

    CASES are scenarios with a user, or folders of *.gecko.yaml. --model audits the users.
    """


@cli.command("new-case", module="new_case")
@click.argument("tools", type=FILE)
@click.option("--agent", metavar="AGENT", help=_agent)
@click.option("--user-model", metavar="NAME", help="provider:name that plays the user, instead of you.")
@click.option("--base-url", metavar="URL", help="Address of an OpenAI-compatible server.")
@click.option("--goal", metavar="TEXT", help="The user's goal (by default the first message).")
@click.option("--state", metavar="FILE", type=FILE, help="The task state at the start, as JSON or YAML.")
@click.option("--from", "source", metavar="FILE", type=FILE, help="A case to replay, or a file of saved runs.")
@click.option("--thread", metavar="NAME", help="Name of the saved run (default: the last one).")
@click.option("-o", "output", metavar="FILE", type=FILE, help="The case, NAME.gecko.yaml (default: the goal's name).")
def new_case() -> None:
    """Record one good conversation as a test case.

    TOOLS is module:NAME (a list of tools, or a Toolkit), an OpenAPI document, or a file of function descriptions.
    """


@cli.command(module="tools")
@click.argument("spec", type=FILE)
@click.option("--state", metavar="FILE", type=FILE, help="An example task state: evaluate every contract on it.")
@choice
def tools() -> None:
    """Show tools, and what their source leaves undefined.

    SPEC is an OpenAPI document, a file of function descriptions, or module:NAME.
    """


@cli.command(module="tools")
@click.argument("source", metavar="IN", type=FILE)
@click.option("-o", "output", metavar="OUT", type=FILE, default="-", help="A .json or .yaml file (-: stdout).")
@choice
@model
def convert() -> None:
    """Write tools as an OpenAPI 3.1 document.

    IN is a file of function descriptions, or an OpenAPI document.
    """


@cli.command(module="learn")
@click.argument("spec", type=FILE, required=False)
@click.argument("rows", type=FILE, nargs=-1)
@click.option("-o", "output", metavar="FILE", type=FILE, help="The contracts, NAME.contracts.yaml.")
@choice
@model
@click.option("--server", metavar="URL", help="Server of the calls in HAR files, instead of the document's server.")
@click.option("--probe", metavar="URL", help="A sandbox: make further calls there to learn more.")
@click.option("--probes", metavar="N", type=click.IntRange(1), default=200, help="Most calls to the sandbox (200).")
@mapped
@click.option(
    "--auth", metavar="SCHEME=env:NAME", multiple=True, help="A credential's environment variable (repeatable)."
)
@click.option("--review", metavar="FILE", type=FILE, help="Accept, edit or drop a file's proposals.")
@click.option("--accept", metavar="ID", multiple=True, help="With --review: accept without asking (repeatable).")
@click.option("--drop", metavar="ID", multiple=True, help="With --review: drop without asking (repeatable).")
@click.option("--html", metavar="FILE", type=FILE, help="With --review: write the proposals as a page.")
def learn() -> None:
    """Learn contracts from rows of real calls, and compare existing contracts with the rows."""


cli.add_command(data)


@cli.command(module="serve")
@click.argument("spec", type=FILE, required=False)
@click.option("--state", metavar="FILE", type=FILE, help="The task state at the start of a session.")
@click.option("--scenario", metavar="FILE", type=FILE, help="A scenario: its tools, state and milestones.")
@click.option("--save", metavar="FILE", type=FILE, help="Save sessions in this SQLite file, or postgresql://...")
@click.option("--workers", metavar="N", type=click.IntRange(1), default=1, help="Processes (1); more need a database.")
@click.option("--host", metavar="HOST", default="127.0.0.1", help="Not loopback: needs --token (127.0.0.1).")
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), default=8021, help="0: any free port (8021).")
@click.option("--token", metavar="TOKEN", envvar="GECKO_TOKEN", help="Required X-Gecko-Token header; or $GECKO_TOKEN.")
@click.option("--origin", metavar="URL", multiple=True, help="Another site that may send requests (repeatable).")
@click.option("--prefix", metavar="PATH", default="", help="Mount the document's paths below this path.")
@click.option("--mcp", is_flag=True, help="Serve MCP on standard input and output, no HTTP.")
@click.option("--gecko", is_flag=True, help="Add MCP tools that preview, undo and rehearse.")
@click.option("--sessions", metavar="N", type=click.IntRange(1), default=10_000, help="Most sessions (10000).")
@click.option("--idle", metavar="SECONDS", type=float, default=3600, help="Close sessions idle for so long (3600).")
@click.option("--timeout", "call_s", metavar="SECONDS", type=float, default=30, help="Longest time of a call (30).")
@choice
@model
@click.option("--server", metavar="URL", help="Server of real calls, instead of the document's server.")
@click.option(
    "--auth", metavar="SCHEME=env:NAME", multiple=True, help="A credential's environment variable (repeatable)."
)
@click.option("--reads", type=click.Choice(["simulated", "real"]), help="real: make reads for real.")
@click.option("--upstream", metavar="URL", help="The real service: calls are forwarded to it, and simulated too.")
@click.option("--record", metavar="FILE", type=FILE, help="With --upstream: append a row per call, for `learn`.")
@click.option("--no-simulation", is_flag=True, help="With --upstream: only forward and record; loopback only.")
@click.option("--allow-writes", is_flag=True, help="With --upstream --ledger FILE: forward writes too.")
@click.option("--ledger", metavar="FILE", type=FILE, help="SQLite file: makes a write with a key once.")
@click.option("--proxy", metavar="SERVER", help="An MCP server's address or command, instead of SPEC.")
@click.option("--open", "opened", metavar="NAME", multiple=True, help="With --proxy: a read to forward (repeatable).")
@start
def serve() -> None:
    """Serve tools as an environment of isolated sessions, over HTTP and MCP.

    SPEC is an OpenAPI document, a file of function descriptions, or module:TOOLS.
    """


@cli.command(module="tools")
@click.argument("spec", type=FILE)
@click.option("-o", "output", metavar="OUT", type=FILE, default="-", help="A .json or .yaml file (-: stdout).")
@click.option("--state", metavar="FILE", type=FILE, help="A task state whose keys the contracts use.")
@choice
def derive() -> None:
    """Derive contracts from a document: the effects of its operations on a state.

    The kind of each operation, with the reason, is written to standard error.
    """


@cli.command(module="saved")
@click.argument("file", type=FILE)
@click.argument("thread", required=False)
@click.option("--blame", metavar="PATH", help="Show the call that wrote a value of the state: /orders/7.")
@html
def history() -> None:
    """Show a saved run's attempts, steps and state changes.

    THREAD is the run's name in FILE, the file of --save; without it all runs are listed. The file is not changed.
    """


@cli.command()
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the completion script of a shell (bash, zsh or fish)."""
    from click.shell_completion import get_completion_class

    if kind := get_completion_class(shell):
        sys.stdout.write(kind(cli, {}, "gecko-graph", COMPLETION_VARIABLE).source())
    return 0
