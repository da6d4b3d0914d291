"""The arguments of the command line."""

from __future__ import annotations

import argparse
from typing import Any

from .. import __version__
from .hints import HintingParser, ScreenFormatter

_MAIN = """\
Rehearse an agent's tool calls before anything real is touched: a plan that has been seen to work,
the state that it leads to, and the reasons for the attempts that did not.
"""

_MAIN_EXAMPLES = """\
examples:
  gecko-graph demo                                      # a whole rehearsal, without a key or a network
  gecko-graph run case.yaml                             # a scenario with recorded replies
  gecko-graph run case.yaml --model openai:gpt-5-mini   # the same, with a live model
  gecko-graph run api.yaml --task TEXT --model NAME     # a task with the tools of an OpenAPI document
  gecko-graph do runs.sqlite monday                     # carry out a saved run, for real
  gecko-graph record api.yaml --task TEXT --model NAME --out case.yaml    # the same, kept as a scenario
  gecko-graph tools api.yaml                            # an OpenAPI document's tools, and what it does not define

exit code:
  0    accepted
  1    not accepted
  2    a mistake in the command or its files
  3    the model did not answer (address, key, limits of its provider)
  4    what would be done waits for a decision
  130  interrupted
"""

_DEMO_EXAMPLES = """\
examples:
  gecko-graph demo              # files: a wrong folder, found by the checklist, then right
  gecko-graph demo order        # rehearse, show the plan, ask, then do it against a real service on this machine
  gecko-graph demo shop         # a contract refuses an order that the credit does not cover
  gecko-graph demo calendar     # a wrong date is refused, then the user must be asked (exit code 1)
  gecko-graph demo --html run.html   # the same as a page for a browser
  gecko-graph demo --list       # all of them, with their files: copy one to begin with
"""

_RUN_EXAMPLES = """\
examples:
  gecko-graph run case.yaml
  gecko-graph run case.yaml --html run.html
  gecko-graph run case.yaml --model openai:gpt-5-mini --json result.json
  gecko-graph run case.yaml --model openai:qwen3 --base-url http://localhost:8000/v1
  gecko-graph run case.yaml --model openai:gpt-5-mini --role-model judge=openai:gpt-5
  gecko-graph run case.yaml --save runs.sqlite --thread monday
  gecko-graph run case.yaml --save runs.sqlite --thread monday --resume
  gecko-graph run api.yaml --task "Cancel my last order" --state state.json --model openai:gpt-5-mini
  gecko-graph run api.yaml --task "The one of Monday" --model openai:gpt-5-mini --save runs.sqlite --resume
  gecko-graph run api.yaml --task TEXT --model NAME --server URL --auth ApiKey=env:KEY --reads real --save runs.sqlite

knobs (--set KEY=VALUE, as often as you like; the default in brackets, null for none):
{knobs}

Without --model a scenario's recorded replies are used. --resume continues a saved run where it was interrupted;
finished attempts are not repeated. A finished run of a --task continues with the next --task: a conversation.
With --server or --reads real the accepted plan is shown, asked about, and carried out.
"""

_DO_EXAMPLES = """\
examples:
  gecko-graph do runs.sqlite monday          # shows the plan, asks, and carries it out
  gecko-graph do runs.sqlite monday --yes    # without asking, but for a call in doubt
"""

_RECORD_EXAMPLES = """\
examples:
  gecko-graph record api.yaml --task TEXT --model openai:gpt-5-mini --out case.yaml
  gecko-graph record case.yaml --model openai:gpt-5-mini --out recorded.yaml
  gecko-graph run case.yaml             # plays it: no key, no network

A reply that names an identifier which an earlier result made refers to it, as {{ calls[0].result.id }}, so that
the scenario plays under other seeds too. Knobs (--set): see gecko-graph run --help.
"""

_TEST_EXAMPLES = """\
examples:
  gecko-graph test cases --agent my_agent:build                 # my_agent.py has build(tools)
  gecko-graph test cases --agent openai:gpt-5-mini --user-model openai:gpt-5-mini --trials 4
  gecko-graph test cases --agent http://localhost:8000/v1 --html report.html
  gecko-graph test cases --agent my_agent:build --augment all --save done.jsonl

A case is a scenario with a user, in a file NAME.gecko.yaml. With --save the same command goes on where it was stopped.
Exit code 0 if every conversation passes, 1 if one does not.
"""

_TOOLS_EXAMPLES = """\
examples:
  gecko-graph tools api.yaml            # an OpenAPI 3.0 or 3.1 document
  gecko-graph tools functions.json      # OpenAI, MCP or BFCL function descriptions; .jsonl too
  gecko-graph tools api.yaml --state state.json    # try every contract on an example of the task state
"""

_CONVERT_EXAMPLES = """\
examples:
  gecko-graph convert functions.json -o openapi.json
  gecko-graph convert functions.json -o openapi.yaml --model openai:gpt-5-mini

With --model, a model writes the missing result schemas. Without -o the document goes to the standard output.
"""

_HISTORY_EXAMPLES = """\
examples:
  gecko-graph history runs.sqlite            # the threads in the file
  gecko-graph history runs.sqlite monday     # attempts, steps and state changes, also of an interrupted run
  gecko-graph history runs.sqlite monday --blame /orders/7  # which call it comes from
  gecko-graph history runs.sqlite monday --html run.html   # the same as a page for a browser
"""

_COMPLETION_EXAMPLES = """\
examples:
  gecko-graph completion bash           # in ~/.bashrc: source <(gecko-graph completion bash)
  gecko-graph completion zsh            # in ~/.zshrc, behind compinit: source <(gecko-graph completion zsh)
  gecko-graph completion fish           # in config.fish: gecko-graph completion fish | source
"""


MANY: dict[str, Any] = {"action": "append", "default": []}
"""An option that may be given several times."""


def build_parser() -> HintingParser:
    """Return the parser of all commands."""
    parser = HintingParser(prog="gecko-graph", **_format_help(_MAIN, _MAIN_EXAMPLES))
    parser.add_argument("--version", action="version", version=f"gecko-graph {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    adding = (_add_demo, _add_run, _add_do, _add_test, _add_record, _add_tools, _add_convert, _add_history)
    for add in (*adding, _add_completion):
        add(commands)
    return parser


def _format_help(description: str, examples: str) -> dict[str, Any]:
    return {
        "description": description,
        "epilog": examples,
        "formatter_class": ScreenFormatter,
        "allow_abbrev": False,
    }


def _add_demo(commands: Any) -> None:
    texts = _format_help("Run an example that comes with the package, with recorded replies.", _DEMO_EXAMPLES)
    parser = commands.add_parser("demo", help="run an example, without a key or a network", **texts)
    parser.add_argument("name", nargs="?", metavar="NAME", help="which example (files)")
    parser.add_argument("--yes", action="store_true", help="of the example `order`: approve the plan without asking")
    parser.add_argument("--list", action="store_true", help="list the examples and where their files lie")
    _add_html(parser)


def _add_run(commands: Any) -> None:
    texts = _format_help("Rehearse a scenario, or a task with the tools of any OpenAPI document.", _RUN_EXAMPLES)
    parser = commands.add_parser("run", help="rehearse a scenario, or a task with tools", **texts)
    parser.set_defaults(out=None)
    saving = _add_rehearsal(parser)
    saving.add_argument("--resume", action="store_true", help="continue a saved run")
    saving.add_argument("--write-state", metavar="FILE", help="write the start state, supposed or given, to edit")
    real = parser.add_argument_group("real calls, with the tools of an OpenAPI document")
    real.add_argument("--server", metavar="URL", help="where they go, in place of the document's server")
    about = "a security scheme's credential, from an environment variable (as often as you like)"
    real.add_argument("--auth", metavar="SCHEME=env:NAME", **MANY, help=about)
    real.add_argument("--reads", metavar="WORD", help="real: what only reads is run for real while rehearsing")
    real.add_argument("--yes", action="store_true", help="approve without asking a plan that rests on nothing made up")


def _add_do(commands: Any) -> None:
    texts = _format_help("Carry out a saved run: what was rehearsed and approved, each call once.", _DO_EXAMPLES)
    parser = commands.add_parser("do", help="carry out a saved run for real", **texts)
    parser.add_argument("file", metavar="FILE", help="the SQLite file of --save")
    parser.add_argument("thread", metavar="THREAD", help="the run's name")
    parser.add_argument("--yes", action="store_true", help="approve the plan without asking")


def _add_test(commands: Any) -> None:
    texts = _format_help("Test an agent in conversations with simulated users and tools.", _TEST_EXAMPLES)
    parser = commands.add_parser("test", help="test an agent with simulated users and tools", **texts)
    parser.add_argument("cases", nargs="+", metavar="CASES", help="scenarios with a user, or folders of *.gecko.yaml")
    agent = "module:factory (from tools to an agent), provider:name, or a server's address"
    parser.add_argument("--agent", metavar="AGENT", required=True, help=agent)
    parser.add_argument("--user-model", metavar="NAME", help="provider:name that plays the users, in place of scripts")
    parser.add_argument("--trials", metavar="N", type=int, default=1, help="conversations a case: pass^1 to pass^N (1)")
    parser.add_argument("--augment", metavar="NAME", **MANY, help="more or less telling tools, by name; or all")
    parser.add_argument("--pass-at", metavar="X", type=float, default=0.9, help="least similarity of a success (0.9)")
    parser.add_argument("--at-once", metavar="N", type=int, default=4, help="conversations that are held at once (4)")
    model = _add_model(parser, "answers for simulated tools, and audits the users")
    model.add_argument("--role-model", metavar="ROLE=NAME", action="append", help="a model of one role: auditor")
    saving = parser.add_argument_group("saving")
    saving.add_argument("--save", metavar="FILE", help="keep finished conversations in this file, one JSON a line")
    _add_html(saving)
    _add_json(saving, "tables and conversations")


def _add_record(commands: Any) -> None:
    about = "Rehearse as `run` does, and write the run as a scenario with its replies, to be played without a model."
    texts = _format_help(about, _RECORD_EXAMPLES)
    parser = commands.add_parser("record", help="rehearse, and write the run as a scenario", **texts)
    parser.set_defaults(resume=False, write_state=None, server=None, auth=[], reads=None, yes=False)
    parser.add_argument("--out", metavar="FILE", required=True, help="the scenario to write: .yaml or .json")
    parser.add_argument("--force", action="store_true", help="replace --out's file if it exists")
    _add_rehearsal(parser)


def _add_rehearsal(parser: argparse.ArgumentParser) -> Any:
    """Add what `run` and `record` share; return the group of options for saving."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="a scenario; with --task, the tools")
    parser.add_argument("--allow-outside", action="store_true", help="read tools outside the scenario's folder, too")
    task = parser.add_argument_group("a task in place of a scenario (needs --model)")
    task.add_argument("--task", metavar="TEXT", help="what the user wants")
    task.add_argument("--tools", metavar="SPEC", help="the tools, as FILE: OpenAPI document or function descriptions")
    _add_choice(parser)
    task.add_argument("--state", metavar="FILE", help="the task state at the start, as JSON or YAML")
    model = _add_model(parser, "replaces the recorded replies")
    model.add_argument("--role-model", metavar="ROLE=NAME", action="append", help="a model of one role, such as judge")
    parser.add_argument("--set", metavar="KEY=VALUE", **MANY, help="a knob, for example max_retries=1; see below")
    saving = parser.add_argument_group("saving")
    saving.add_argument("--save", metavar="FILE", help="save every step in this SQLite file")
    saving.add_argument("--log", metavar="FILE", help="append every prompt and reply as JSON lines, masked")
    saving.add_argument("--thread", metavar="NAME", help="the run's name in the file (the scenario's)")
    _add_html(saving)
    _add_json(saving, "the result")
    return saving


def _add_tools(commands: Any) -> None:
    texts = _format_help("Show the tools of a file, and what it does not define of them.", _TOOLS_EXAMPLES)
    parser = commands.add_parser("tools", help="show tools, and what their source does not define", **texts)
    parser.add_argument("spec", metavar="SPEC", help="OpenAPI document, or a file of function descriptions")
    parser.add_argument("--state", metavar="FILE", help="an example of the task state: try every contract on it")
    _add_choice(parser)


def _add_convert(commands: Any) -> None:
    texts = _format_help("Write tools as an OpenAPI 3.1 document.", _CONVERT_EXAMPLES)
    parser = commands.add_parser("convert", help="write tools as an OpenAPI 3.1 document", **texts)
    parser.add_argument("source", metavar="IN", help="a file of function descriptions, or an OpenAPI document")
    parser.add_argument("-o", "--output", metavar="OUT", default="-", help="a .json or .yaml file (-: stdout)")
    _add_choice(parser)
    _add_model(parser, "writes the missing result schemas")


def _add_history(commands: Any) -> None:
    texts = _format_help("Show what a saved run has done. The file is only read.", _HISTORY_EXAMPLES)
    parser = commands.add_parser("history", help="show a saved run's attempts, steps and state changes", **texts)
    parser.add_argument("file", metavar="FILE", help="the SQLite file of --save")
    parser.add_argument("thread", nargs="?", metavar="THREAD", help="the run's name; without it they are listed")
    parser.add_argument("--blame", metavar="PATH", help="say which call a value of the state comes from: /orders/7")
    _add_html(parser)


def _add_choice(parser: argparse.ArgumentParser) -> None:
    choice = parser.add_argument_group("some of the tools, and more about them (as often as you like)")
    choice.add_argument("--only", metavar="GLOB", **MANY, help="those of this name: 'issues_*'")
    choice.add_argument("--tag", metavar="TAG", **MANY, help="those with this tag")
    choice.add_argument("--contracts", metavar="FILE", **MANY, help="contracts in place of the tools' own")
    about = "read https addresses: that of the tools, and those that they refer to"
    choice.add_argument("--allow-remote", action="store_true", help=about)


def _add_completion(commands: Any) -> None:
    texts = _format_help("Print a script that completes commands and options in a shell.", _COMPLETION_EXAMPLES)
    parser = commands.add_parser("completion", help="print the completion script of a shell", **texts)
    parser.add_argument("shell", metavar="SHELL", help="bash, zsh or fish")


def _add_html(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--html", metavar="FILE", help="write the run as one page for a browser")


def _add_json(parser: argparse._ActionsContainer, what: str) -> None:
    parser.add_argument("--json", metavar="FILE", help=f"write {what} as JSON; - for the standard output")


def _add_model(parser: argparse.ArgumentParser, use: str) -> Any:
    model = parser.add_argument_group("model")
    model.add_argument("--model", metavar="NAME", help=f"provider:name; {use}")
    model.add_argument("--base-url", metavar="URL", help="address of an OpenAI-compatible server")
    model.add_argument("--timeout", metavar="SECONDS", type=float, help="longest wait for one reply (OpenAI's: 120)")
    model.add_argument("--temperature", metavar="NUMBER", type=float, help="randomness (OpenAI's: 0, or its only one)")
    return model
