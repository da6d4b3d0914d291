"""The commands of `data`, with their options."""

from __future__ import annotations

import click

from .options import CONTRACTS, FILE, Commands, choice, mapped, model, role_model, several

models = several(model, role_model)
seed = click.option("--seed", metavar="N", type=int, default=0, help="Seed of all random choices (0).")
toolkit = several(
    click.option("--toolkit", metavar="SPEC", type=FILE, help="The tools that execute the calls of rows with a state."),
    click.option("--contracts", metavar="FILE", type=FILE, multiple=True, help=CONTRACTS),
)
shards = click.option(
    "--shards", metavar="N", type=click.IntRange(1), help="Rows in so many files, in a folder with a manifest."
)
ABLATIONS = ["no-high-ppl", "no-judge", "no-expansion", "high-ppl-replace", "repeat-errors"]


@click.group(cls=Commands)
def data() -> None:
    """Check and make training data (docs/training.md)."""


@data.command(module="data")
@click.argument("file", metavar="ROWS", type=FILE)
@click.option(
    "-o", "output", metavar="OUT", type=FILE, required=True, help="Output: the rows with verdicts, .jsonl or .parquet."
)
@toolkit
@click.option("--answers", metavar="FILE", type=FILE, help="Of BFCL's rows: the answers, a second file.")
@click.option("--to", type=click.Choice(["openai", "trl", "dpo", "sharegpt", "nemo-gym"]), help="Another row shape.")
@click.option(
    "--truth", metavar="COLUMN", help="A column that says which rows are right: how well they are told apart."
)
@shards
@mapped
@models
def verify() -> None:
    """Check the labels of a data set's rows: keep, drop, fix or open, each with reasons."""


@data.command(module="data")
@click.argument("spec", type=FILE)
@click.option("--state", metavar="FILE", type=FILE, multiple=True, required=True, help="A start state (repeatable).")
@click.option("-o", "output", metavar="FOLDER", type=FILE, required=True, help="Folder for tasks and samples.")
@click.option("-n", "count", metavar="N", type=click.IntRange(1), default=1000, help="Number of tasks (1000).")
@seed
@click.option("--to", type=click.Choice(["nemo-gym"]), help="Also write rows for NeMo Gym: nemo-gym.jsonl.")
@shards
@mapped
@choice
@models
def tasks() -> None:
    """Make tasks from contracts: a start state, a request, a goal that was executed, and a solution."""


@data.command(module="data")
@click.argument("seeds", type=FILE)
@click.option("-o", "output", metavar="FOLDER", type=FILE, required=True, help="Folder for each iteration's files.")
@click.option("--base", metavar="MODEL", required=True, help="The first model, as the trainer names it.")
@click.option("--train", metavar="COMMAND", required=True, help="Trains {model} on {data}, writes {out}.")
@click.option("--probe", metavar="WHAT", required=True, help="Source of the trained model's outputs; see below.")
@toolkit
@click.option("--eval", metavar="FILE", type=FILE, help="Held-out rows, scored after each training.")
@click.option("--iterations", metavar="N", type=click.IntRange(1), default=4, help="Number of trainings (4).")
@click.option("--variants", metavar="N", type=click.IntRange(0, 4), default=4, help="New rows per error (4).")
@click.option("--discard-both-correct", is_flag=True, help="As in algorithm 1; by default perplexity decides.")
@click.option("--ablation", type=click.Choice(ABLATIONS), help="Leave out a part (LoopTool, table 4).")
@seed
@models
def loop() -> None:
    """Train, probe, judge, expand, mix: adapt the data to the model's errors (LoopTool)."""


@data.command(module="data")
@click.argument("domain")
@click.option("-o", "output", metavar="FILE", type=FILE, required=True, help="The OpenAPI document.")
@click.option("-n", "count", metavar="N", type=click.IntRange(1), default=50, help="Number of tools (50).")
@seed
@models
def tools() -> None:
    """Generate tools that do not exist yet, each for a path through two trees (LoopTool)."""


@data.command(module="data")
@click.argument("document", type=FILE)
@click.option("-o", "output", metavar="FOLDER", type=FILE, required=True, help="Folder for rows and cases.")
@click.option("-n", "count", metavar="N", type=click.IntRange(1), default=100, help="Dialogues to keep (100).")
@click.option("--assistant", metavar="NAME", help="The assistant's model (default: the role planner's).")
@seed
@click.option("--at-once", metavar="N", type=click.IntRange(1), default=4, help="Parallel dialogues (4).")
@shards
@mapped
@click.option("--to", type=click.Choice(["openai", "trl", "sharegpt", "nemo-gym"]), help="Also write this row format.")
@click.option("--yes", is_flag=True, help="Continue without asking after the cost estimate.")
@choice
@models
def dialogues() -> None:
    """Plan dialogues about tools, play them, and verify each step (LoopTool)."""
