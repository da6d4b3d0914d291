"""The commands with their options, each defined once: what is parsed, completed, suggested, and shown as help."""

from __future__ import annotations

import sys
from typing import Any

import click

from .. import __version__
from .data_arguments import data
from .options import FILE, Commands, choice, complete_examples, html, json, mapped, model, role_model, run_command

COMPLETION_VARIABLE = "_GECKO_GRAPH_COMPLETE"

_MAIN = """\
examples:
  gecko-graph demo                                      a whole rehearsal, without a key or a network
  gecko-graph run case.yaml                             a scenario with recorded replies
  gecko-graph run case.yaml --model openai:gpt-5-mini   the same, with a live model
  gecko-graph run api.yaml --task TEXT --model NAME     a task with the tools of an OpenAPI document
  gecko-graph do runs.sqlite monday                     carry out a saved run, for real
  gecko-graph tools api.yaml                            a document's tools, and what it does not define

exit code:
  0    accepted
  1    not accepted
  2    a mistake in the command or its files
  3    the model did not answer (address, key, limits of its provider)
  4    what would be done waits for a decision
  5    test: nothing failed, but a claim could not be decided
  130  interrupted
"""

_DEMO = """\
examples:
  gecko-graph demo             files: a wrong folder, found by the checklist, then right
  gecko-graph demo order       rehearse, show the plan, ask, then do it against a real service on this machine
  gecko-graph demo shop        a contract refuses an order that the credit does not cover
  gecko-graph demo calendar    a wrong date is refused, then the user must be asked (exit code 1)
  gecko-graph demo --list      all of them, with their files: copy one to begin with
"""

_RUN = """\
examples:
  gecko-graph run case.yaml --html run.html
  gecko-graph run case.yaml --model openai:gpt-5-mini --role-model judge=openai:gpt-5 --json result.json
  gecko-graph run case.yaml --model openai:qwen3 --base-url http://localhost:8000/v1
  gecko-graph run case.yaml --save runs.sqlite --thread monday --resume
  gecko-graph run api.yaml --task "Cancel my last order" --state state.json --model openai:gpt-5-mini
  gecko-graph run api.yaml --task TEXT --model NAME --record case.yaml
  gecko-graph run api.yaml --task TEXT --model NAME --server URL --auth ApiKey=env:KEY --reads real --save runs.sqlite

knobs (--set KEY=VALUE, repeatable; default in brackets):
{knobs}

Without --model a scenario's recorded replies are used. --resume continues a saved run where it was interrupted;
finished attempts are not repeated. A finished run of a --task continues with the next --task: a conversation.
With --server or --reads real the accepted plan is shown, asked about, and carried out.
"""

_DO = """\
examples:
  gecko-graph do runs.sqlite monday          shows the plan, asks, and carries it out
  gecko-graph do runs.sqlite monday --yes    without asking, but for a call in doubt
"""

_TEST = """\
examples:
  gecko-graph test cases --agent my_agent:build                 my_agent.py has build(tools)
  gecko-graph test cases --agent openai:gpt-5-mini --user-model openai:gpt-5-mini --trials 4
  gecko-graph test cases --agent http://localhost:8000/v1 --html report.html
  gecko-graph test cases --agent my_agent:build --augment all --save done.jsonl

A case is a scenario with a user, in a file NAME.gecko.yaml. With --save the same command goes on where it was stopped.
Exit code 0 if every conversation passes, 1 if one fails, 5 if none fails and one is unknown.
"""

_NEW_CASE = """\
examples:
  gecko-graph new-case my_tools:TOOLS --agent my_agent:build      you type the user's messages
  gecko-graph new-case api.yaml --agent my_agent:build --state state.json -o first.gecko.yaml
  gecko-graph new-case my_tools:TOOLS --agent my_agent:build --user-model openai:gpt-5-mini --goal TEXT
  gecko-graph new-case my_tools:TOOLS --agent my_agent:build --from first.gecko.yaml
  gecko-graph new-case api.yaml --from runs.sqlite --thread monday

The case is run again at once with the same agent. Exit code 0 if it passes, 1 if it does not.
"""

_TOOLS = """\
examples:
  gecko-graph tools api.yaml                       an OpenAPI 3.0 or 3.1 document
  gecko-graph tools functions.json                 OpenAI, MCP or BFCL function descriptions; .jsonl too
  gecko-graph tools api.yaml --state state.json    examine every contract on an example of the task state
"""

_CONVERT = """\
examples:
  gecko-graph convert functions.json -o openapi.json
  gecko-graph convert functions.json -o openapi.yaml --model openai:gpt-5-mini

With --model, a model writes the missing result schemas. Without -o the document goes to the standard output.
"""

_LEARN = """\
examples:
  gecko-graph learn api.yaml calls.jsonl traffic.har -o api.contracts.yaml
  gecko-graph learn api.yaml calls.jsonl -o api.contracts.yaml --model openai:gpt-5-mini
  gecko-graph learn api.yaml calls.jsonl -o api.contracts.yaml --probe http://localhost:8080 --auth ApiKey=env:KEY
  gecko-graph learn --review api.contracts.yaml

Rows: observations, OpenAI messages, recorded calls (JSON lines, .gz too), HAR files. Bad rows are counted and named.
--probe makes calls that may change whatever they like: name a sandbox.
"""

_SERVE = """\
examples:
  gecko-graph serve api.yaml --state state.json            each operation under its own path, on loopback
  gecko-graph serve --scenario case.yaml --save runs.sqlite   sessions outlast the process
  gecko-graph serve api.yaml --tasks tasks                 the wires of trainers, below /_gecko/
  gecko-graph serve api.yaml --mcp --gecko                 an MCP server on standard input and output
  gecko-graph serve api.yaml --upstream URL --record rows.jsonl   a real service, compared with its simulation
  gecko-graph serve --proxy 'python server.py' --open list_orders --mcp   its writes simulated
"""

_DERIVE = """\
examples:
  gecko-graph derive api.yaml -o api.derived.yaml        kinds and reasons; `serve` and `run` derive by themselves
  gecko-graph serve api.yaml --contracts api.derived.yaml   the same, edited
"""

_HISTORY = """\
examples:
  gecko-graph history runs.sqlite                           the threads in the file
  gecko-graph history runs.sqlite monday                    attempts, steps and state changes
  gecko-graph history runs.sqlite monday --blame /orders/7  which call it comes from
  gecko-graph history runs.sqlite monday --html run.html    the same as a page for a browser
"""

_COMPLETION = """\
examples:
  gecko-graph completion bash    in ~/.bashrc: source <(gecko-graph completion bash)
  gecko-graph completion zsh     in ~/.zshrc, behind compinit: source <(gecko-graph completion zsh)
  gecko-graph completion fish    in config.fish: gecko-graph completion fish | source
"""


# commands --------------------------------------------------------------------------------------------


@click.group(
    cls=Commands, epilog=_MAIN, context_settings={"max_content_width": 120, "help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, message="gecko-graph %(version)s")
def cli() -> None:
    """Rehearse an agent's tool calls before anything real is touched.

    What comes of it is a plan that has been seen to work, the state that it leads to, and the reasons for the attempts
    that did not.
    """


@cli.command(epilog=_DEMO)
@click.argument("name", required=False, shell_complete=complete_examples)
@click.option("--yes", is_flag=True, help="Of the example `order`: approve the plan without asking.")
@click.option("--list", is_flag=True, help="List the examples and where their files lie.")
@html
def demo(**given: Any) -> int:
    """Run an example, without a key or a network."""
    return run_command("running", given)


@cli.command(epilog=_RUN)
@click.argument("file", type=FILE, required=False)
@click.option("--allow-outside", is_flag=True, help="Read tools outside the scenario's folder, too.")
@click.option("--task", metavar="TEXT", help="What the user wants, in place of a scenario: FILE holds the tools.")
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
@click.option("--write-state", metavar="FILE", type=FILE, help="Write the start state, supposed or given, to edit.")
@click.option("--server", metavar="URL", help="Where real calls go, in place of the document's server.")
@click.option("--auth", metavar="SCHEME=env:NAME", multiple=True, help="A credential's variable (repeatable).")
@click.option("--reads", type=click.Choice(["simulated", "real"]), help="real: make reads for real while rehearsing.")
@click.option("--yes", is_flag=True, help="Approve without asking a plan that rests on nothing made up.")
@click.option("--no-derive", is_flag=True, help="Of a --task: derive no state from the document alone.")
def run(**given: Any) -> int:
    """Rehearse a scenario, or a task with tools."""
    return run_command("running", given)


@cli.command(epilog=_DO)
@click.argument("file", type=FILE)
@click.argument("thread")
@click.option("--yes", is_flag=True, help="Approve the plan without asking.")
def do(**given: Any) -> int:
    """Carry out a saved run for real.

    What was rehearsed and approved is done, each call once: THREAD of the FILE of --save.
    """
    return run_command("running", given)


@cli.command()
@click.argument("file", type=FILE)
@click.argument("thread")
@click.option("--yes", is_flag=True, help="Approve the plan without asking.")
def undo(**given: Any) -> int:
    """Undo what a saved run has really done.

    Calls that take its last changes back are searched for, shown, and made once you approve: THREAD of the FILE of
    --save.
    """
    return run_command("running", given)


_agent = "module:factory (from tools to an agent), provider:name, or a server's address."


@cli.command(epilog=_TEST)
@click.argument("cases", type=FILE, nargs=-1, required=True)
@click.option("--agent", metavar="AGENT", required=True, help=_agent)
@click.option("--user-model", metavar="NAME", help="provider:name that plays the users, in place of scripts.")
@click.option("--play", is_flag=True, help="You are the user of each case: type, or pipe in, the messages.")
@click.option("--simulator-model", metavar="NAME", help="provider:name that answers for tools that no rule answers.")
@click.option("--trials", metavar="N", type=click.IntRange(1), default=1, help="Conversations a case (1).")
@click.option("--augment", metavar="NAME", multiple=True, help="Harder tools, by name; all, or faults.")
@click.option("--at-once", metavar="N", type=click.IntRange(1), default=4, help="Conversations held at once (4).")
@mapped
@model
@role_model
@click.option("--save", metavar="FILE", type=FILE, help="Keep finished conversations, one JSON a line.")
@html
@json
def test(**given: Any) -> int:
    """Test an agent with simulated users and tools.

    CASES are scenarios with a user, or folders of *.gecko.yaml. --model audits the users.
    """
    return run_command("test", given)


@cli.command("new-case", epilog=_NEW_CASE)
@click.argument("tools", type=FILE)
@click.option("--agent", metavar="AGENT", help=_agent)
@click.option("--user-model", metavar="NAME", help="provider:name that plays the user, in place of you.")
@click.option("--base-url", metavar="URL", help="Address of an OpenAI-compatible server.")
@click.option("--goal", metavar="TEXT", help="What the user wants (what is said first).")
@click.option("--state", metavar="FILE", type=FILE, help="The task state at the start, as JSON or YAML.")
@click.option("--from", "source", metavar="FILE", type=FILE, help="A case whose lines are said again, or saved runs.")
@click.option("--thread", metavar="NAME", help="Which saved run (the last one).")
@click.option("-o", "output", metavar="FILE", type=FILE, help="The case, NAME.gecko.yaml (named by what is wanted).")
def new_case(**given: Any) -> int:
    """Make a case of one conversation that went well.

    TOOLS are module:NAME (a list of tools, or a Toolkit), an OpenAPI document, or a file of function descriptions.
    """
    return run_command("new_case", given)


@cli.command(epilog=_TOOLS)
@click.argument("spec", type=FILE)
@click.option("--state", metavar="FILE", type=FILE, help="An example of the task state: examine every contract on it.")
@choice
def tools(**given: Any) -> int:
    """Show tools, and what their source does not define.

    SPEC is an OpenAPI document, a file of function descriptions, or module:NAME.
    """
    return run_command("tools", given)


@cli.command(epilog=_CONVERT)
@click.argument("source", metavar="IN", type=FILE)
@click.option("-o", "output", metavar="OUT", type=FILE, default="-", help="A .json or .yaml file (-: stdout).")
@choice
@model
def convert(**given: Any) -> int:
    """Write tools as an OpenAPI 3.1 document.

    IN is a file of function descriptions, or an OpenAPI document.
    """
    return run_command("tools", given)


@cli.command(epilog=_LEARN)
@click.argument("spec", type=FILE, required=False)
@click.argument("rows", type=FILE, nargs=-1)
@click.option("-o", "output", metavar="FILE", type=FILE, help="The contracts, NAME.contracts.yaml.")
@choice
@model
@click.option("--server", metavar="URL", help="Where the calls of HAR files went, in place of the document's server.")
@click.option("--probe", metavar="URL", help="A sandbox: make calls there that tell more.")
@click.option("--probes", metavar="N", type=click.IntRange(1), default=200, help="Calls to a sandbox at most (200).")
@mapped
@click.option("--auth", metavar="SCHEME=env:NAME", multiple=True, help="A credential's variable (repeatable).")
@click.option("--review", metavar="FILE", type=FILE, help="Accept, edit or drop a file's proposals.")
@click.option("--accept", metavar="ID", multiple=True, help="Of --review: accept without asking (repeatable).")
@click.option("--drop", metavar="ID", multiple=True, help="Of --review: drop without asking (repeatable).")
@click.option("--html", metavar="FILE", type=FILE, help="Of --review: write the proposals as a page.")
def learn(**given: Any) -> int:
    """Learn contracts from rows of real calls; written ones are held beside them."""
    return run_command("learn", given)


cli.add_command(data)


@cli.command(epilog=_SERVE)
@click.argument("spec", type=FILE, required=False)
@click.option("--state", metavar="FILE", type=FILE, help="The task state that a session begins in.")
@click.option("--scenario", metavar="FILE", type=FILE, help="A scenario: its tools, state and milestones.")
@click.option("--tasks", metavar="FOLDER", type=FILE, help="Cases that trainers play: OpenEnv, NeMo Gym.")
@click.option("--save", metavar="FILE", type=FILE, help="Keep every session in this SQLite file.")
@click.option("--host", metavar="HOST", default="127.0.0.1", help="Another than loopback needs --token (127.0.0.1).")
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), default=8021, help="0: any free one (8021).")
@click.option("--token", metavar="TOKEN", envvar="GECKO_TOKEN", help="Asked for in X-Gecko-Token; or $GECKO_TOKEN.")
@click.option("--origin", metavar="URL", multiple=True, help="Another site that may ask (repeatable).")
@click.option("--prefix", metavar="PATH", default="", help="Mount the document's paths below it.")
@click.option("--mcp", is_flag=True, help="Speak MCP on the standard input and output, no HTTP.")
@click.option("--gecko", is_flag=True, help="Add tools to MCP that preview, undo and rehearse.")
@click.option("--sessions", metavar="N", type=click.IntRange(1), default=10_000, help="Sessions at most (10000).")
@click.option("--idle", metavar="SECONDS", type=float, default=3600, help="An idle session is closed after (3600).")
@click.option("--timeout", "call_s", metavar="SECONDS", type=float, default=30, help="Longest time of a call (30).")
@choice
@model
@click.option("--server", metavar="URL", help="Where real calls go, in place of the document's server.")
@click.option("--auth", metavar="SCHEME=env:NAME", multiple=True, help="A credential's variable (repeatable).")
@click.option("--reads", type=click.Choice(["simulated", "real"]), help="real: make reads for real.")
@click.option("--upstream", metavar="URL", help="The real service: calls pass on to it, and are simulated beside it.")
@click.option("--record", metavar="FILE", type=FILE, help="With --upstream: add a row of each call, for `learn`.")
@click.option("--no-simulation", is_flag=True, help="With --upstream: only pass on and record; on loopback alone.")
@click.option("--allow-writes", is_flag=True, help="With --upstream --ledger FILE: writes pass on too.")
@click.option("--ledger", metavar="FILE", type=FILE, help="SQLite file of writes; one with a key is made once.")
@click.option("--proxy", metavar="SERVER", help="An MCP server's address or command, in place of SPEC.")
@click.option("--open", "opened", metavar="NAME", multiple=True, help="With --proxy: a read that is made (repeatable).")
@click.option("--no-derive", is_flag=True, help="Derive no state from the document alone.")
def serve(**given: Any) -> int:
    """Serve tools as an environment of isolated sessions, over HTTP and MCP.

    SPEC is an OpenAPI document, a file of function descriptions, or module:TOOLS.
    """
    return run_command("serve", given)


@cli.command(epilog=_DERIVE)
@click.argument("spec", type=FILE)
@click.option("-o", "output", metavar="OUT", type=FILE, default="-", help="A .json or .yaml file (-: stdout).")
@click.option("--state", metavar="FILE", type=FILE, help="A task state, whose keys the contracts take.")
@choice
def derive(**given: Any) -> int:
    """Derive from a document what its operations do to a state, as contracts.

    What each operation was taken for, and why, goes to the standard error.
    """
    return run_command("tools", given)


@cli.command(epilog=_HISTORY)
@click.argument("file", type=FILE)
@click.argument("thread", required=False)
@click.option("--blame", metavar="PATH", help="Say which call a value of the state comes from: /orders/7.")
@html
def history(**given: Any) -> int:
    """Show a saved run's attempts, steps and state changes.

    THREAD is the run's name in the FILE of --save; without it all are listed. The file is only read.
    """
    return run_command("saved", given)


@cli.command(epilog=_COMPLETION)
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the completion script of a shell (bash, zsh or fish)."""
    from click.shell_completion import get_completion_class

    if kind := get_completion_class(shell):
        sys.stdout.write(kind(cli, {}, "gecko-graph", COMPLETION_VARIABLE).source())
    return 0
