"""The commands of `data`, with their options."""

from __future__ import annotations

from typing import Any

import click

from .options import CONTRACTS, FILE, Commands, choice, mapped, model, role_model, run_command, several

_VERIFY = """\
examples:
  gecko-graph data verify rows.jsonl -o good.jsonl
  gecko-graph data verify rows.jsonl -o good.parquet --toolkit api.yaml --contracts api.contracts.yaml --workers 4
  gecko-graph data verify rows.jsonl -o pairs.jsonl --to dpo --model openai:gpt-5-mini
  gecko-graph data verify 'rows/*.parquet' -o verified --shards 8 --ray

ROWS is a file, a folder, or a glob in quotes. The same command goes on where it was stopped. Exit code 2 only where
nothing could be read.
"""

_TASKS = """\
examples:
  gecko-graph data tasks api.yaml --state state.json -o tasks
  gecko-graph data tasks api.yaml --contracts api.contracts.yaml --state a.json --state b.json -n 200 -o tasks

Each task is a case, NAME.gecko.yaml, and its solution rows of samples.jsonl. The same command goes on where it stopped.
"""

_LOOP = """\
examples:
  gecko-graph data loop rows.jsonl -o out --base Qwen/Qwen3-0.6B --probe http://localhost:8000/v1 \\
    --train 'python examples/training/train_grpo.py --data {data} --model {model} --out {out}' --model openai:gpt-5-mini

{data}, {model} and {out} are filled in: rows for TRL, the model to begin with, where the new one goes. --probe is an
address, a command ({data}: samples, {out}: outputs), or a file of outputs with {iteration} in its name. The same
command goes on where it was stopped.
"""

_TOOLS = """\
examples:
  gecko-graph data tools travel -n 50 --model openai:gpt-5-mini -o travel.yaml
  gecko-graph data tools my-domain.yaml -n 20 --role-model tool_writer=openai:gpt-5 -o tools.yaml

DOMAIN is travel, home or clinic, or a YAML file with a context tree (domain, scenario, function) and a constraint
tree. The same command goes on where it was stopped.
"""

_DIALOGUES = """\
examples:
  gecko-graph data dialogues travel.yaml -n 100 --model openai:gpt-5-mini -o dialogues --to trl
  gecko-graph data dialogues api.yaml --model openai:gpt-5 --assistant openai:gpt-5-mini -o dialogues

After two dialogues it tells what ten cost, and asks. The same command goes on where it was stopped.
"""

models = several(model, role_model)
seed = click.option(
    "--seed", metavar="N", type=int, default=0, help="With another seed, all that is drawn differs (0)."
)
toolkit = several(
    click.option("--toolkit", metavar="SPEC", type=FILE, help="The tools that make the calls of rows with a state."),
    click.option("--contracts", metavar="FILE", type=FILE, multiple=True, help=CONTRACTS),
)
ABLATIONS = ["no-high-ppl", "no-judge", "no-expansion", "high-ppl-replace", "repeat-errors"]


@click.group(cls=Commands)
def data() -> None:
    """Check and make training data (docs/training.md)."""


@data.command(epilog=_VERIFY)
@click.argument("file", metavar="ROWS", type=FILE)
@click.option(
    "-o", "output", metavar="OUT", type=FILE, required=True, help="The rows with verdicts, .jsonl or .parquet."
)
@toolkit
@click.option("--answers", metavar="FILE", type=FILE, help="Of BFCL's rows: the answers, a second file.")
@click.option("--to", type=click.Choice(["openai", "trl", "dpo", "sharegpt", "nemo-gym"]), help="Another row shape.")
@click.option(
    "--truth", metavar="COLUMN", help="A column that says which rows are right: how well they are told apart."
)
@click.option(
    "--shards", metavar="N", type=click.IntRange(1), help="So many files, with a manifest, in the folder OUT."
)
@mapped
@models
def verify(**given: Any) -> int:
    """Check the labels of a data set's rows: keep, drop, fix or open, each with reasons."""
    return run_command("data", given)


@data.command(epilog=_TASKS)
@click.argument("spec", type=FILE)
@click.option("--state", metavar="FILE", type=FILE, multiple=True, required=True, help="A state to begin with.")
@click.option("-o", "output", metavar="FOLDER", type=FILE, required=True, help="Where tasks and samples are written.")
@click.option("-n", "count", metavar="N", type=click.IntRange(1), default=1000, help="Tasks (1000).")
@seed
@click.option("--to", type=click.Choice(["nemo-gym"]), help="Also rows for `serve --tasks`: nemo-gym.jsonl.")
@mapped
@choice
@models
def tasks(**given: Any) -> int:
    """Make tasks from contracts: a start state, words, a goal that was tried, and a solution."""
    return run_command("data", given)


@data.command(epilog=_LOOP)
@click.argument("seeds", type=FILE)
@click.option("-o", "output", metavar="FOLDER", type=FILE, required=True, help="Where each iteration's files go.")
@click.option("--base", metavar="MODEL", required=True, help="The model to begin with, as the trainer takes it.")
@click.option("--train", metavar="COMMAND", required=True, help="Trains {model} on {data}, writes {out}.")
@click.option("--probe", metavar="WHAT", required=True, help="What asks the trained model about rows.")
@toolkit
@click.option("--eval", metavar="FILE", type=FILE, help="Held-out rows, scored after each training.")
@click.option("--iterations", metavar="N", type=click.IntRange(1), default=4, help="Trainings (4).")
@click.option("--variants", metavar="N", type=click.IntRange(0, 4), default=4, help="New rows for each error (4).")
@click.option("--discard-both-correct", is_flag=True, help="As algorithm 1 has it; else perplexity decides.")
@click.option("--ablation", type=click.Choice(ABLATIONS), help="Leave a part out (LoopTool, table 4).")
@seed
@models
def loop(**given: Any) -> int:
    """Train, probe, judge, expand, mix: the data follow the model (LoopTool)."""
    return run_command("data", given)


@data.command(epilog=_TOOLS)
@click.argument("domain")
@click.option("-o", "output", metavar="FILE", type=FILE, required=True, help="The OpenAPI document.")
@click.option("-n", "count", metavar="N", type=click.IntRange(1), default=50, help="Tools (50).")
@seed
@models
def tools(**given: Any) -> int:
    """Have tools written that do not exist yet, each under a path of two trees (LoopTool)."""
    return run_command("data", given)


@data.command(epilog=_DIALOGUES)
@click.argument("document", type=FILE)
@click.option("-o", "output", metavar="FOLDER", type=FILE, required=True, help="Where rows and cases are written.")
@click.option("-n", "count", metavar="N", type=click.IntRange(1), default=100, help="Dialogues to keep (100).")
@click.option("--assistant", metavar="NAME", help="The assistant's model (that of the role planner).")
@seed
@click.option("--at-once", metavar="N", type=click.IntRange(1), default=4, help="Dialogues played at once (4).")
@mapped
@click.option("--to", type=click.Choice(["openai", "trl", "sharegpt", "nemo-gym"]), help="Also rows of this shape.")
@click.option("--yes", is_flag=True, help="Go on without asking once costs are known.")
@choice
@models
def dialogues(**given: Any) -> int:
    """Have dialogues about tools planned, played and verified step by step (LoopTool)."""
    return run_command("data", given)
