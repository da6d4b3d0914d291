"""GRPO with TRL 1.16 and the settings of LoopTool (arXiv 2511.09148, table 5): a trainer for `gecko-graph data loop`.

pip install '.[training]' 'trl>=1.16,<2' 'transformers>=5.2' jmespath
    python train_grpo.py --data train.jsonl --model Qwen/Qwen3-0.6B --out DIR
    python train_grpo.py --toolkit api.yaml --tasks FOLDER --model Qwen/Qwen3-0.6B --out DIR

With `--data` each row is one step, and the reward is ToolMatch (equation 1). With `--tasks` the policy plays whole
tasks in a simulated world, and the reward is 1 if the goal is met.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
from datasets import Dataset
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from gecko_graph.scenario import read_toolkit
from gecko_graph.training.match import tool_match_reward
from gecko_graph.training.tasks import read_tasks
from gecko_graph.training.trl import trl_environment, trl_rows

LONGEST_PROMPT = 4_096
"""In tokens. Rows with longer prompts are left out: cutting a prompt would remove its tools first."""


def read_arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command line's options; the defaults are those of table 5."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="rows of `--to trl`: prompt, label, tools")
    parser.add_argument("--toolkit", help="with --tasks: the tools that `gecko-graph data tasks` was given")
    parser.add_argument("--tasks", type=Path, help="a folder of `gecko-graph data tasks`")
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--generations", type=int, default=12, help="outputs per prompt (12)")
    parser.add_argument("--prompts", type=int, default=128, help="prompts per step (128)")
    parser.add_argument("--completion", type=int, default=1_024, help="tokens per output (1024)")
    parser.add_argument("--epochs", type=float, default=2, help="(2)")
    parser.add_argument("--steps", type=int, default=-1, help="stop after this many steps")
    parser.add_argument("--learning-rate", type=float, default=1e-6)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(given)
    if (options.data is None) == (options.tasks is None) or (options.tasks and not options.toolkit):
        parser.error("give --data FILE, or --toolkit SPEC --tasks FOLDER")
    return options


def build_config(options: argparse.Namespace, folder: Path) -> GRPOConfig:
    """Return the settings of table 5 under TRL's names. The optimizer starts fresh each time."""
    has_gpu = torch.cuda.is_available()
    return GRPOConfig(
        output_dir=str(folder),
        num_generations=options.generations,
        per_device_train_batch_size=options.generations,
        gradient_accumulation_steps=options.prompts,
        max_completion_length=options.completion,
        temperature=1.0,
        beta=0.0,
        epsilon=0.2,
        epsilon_high=0.28,
        importance_sampling_level="token",
        learning_rate=options.learning_rate,
        num_train_epochs=options.epochs,
        max_steps=options.steps,
        max_tool_calling_iterations=12,
        seed=options.seed,
        bf16=has_gpu,
        use_cpu=not has_gpu,
        gradient_checkpointing=has_gpu,
        save_strategy="no",
        report_to="none",
        logging_steps=1,
    )


def read_rows(file: Path, tokenizer: Any) -> list[dict[str, Any]]:
    """Return rows with their prompt as text, so that each row shows its own tools."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    kept = [{key: row.get(key) for key in ("id", "label", "tools", "also")} for row in rows]
    for row, given in zip(kept, rows, strict=True):
        messages, tools = given["prompt"], json.loads(given["tools"])
        row["prompt"] = tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=False)
    return leave_out_long(kept, [len(tokenizer(row["prompt"])["input_ids"]) for row in kept])


def leave_out_long(rows: list[dict[str, Any]], lengths: Sequence[int]) -> list[dict[str, Any]]:
    """Return the rows whose prompt is short enough, and print how many are left out."""
    kept = [row for row, length in zip(rows, lengths, strict=True) if length <= LONGEST_PROMPT]
    if left_out := len(rows) - len(kept):
        print(f"{left_out} of {len(rows)} rows left out: their prompt is longer than {LONGEST_PROMPT} tokens")
    if not kept:
        raise SystemExit("no rows to train on")
    return kept


def build_trainer(options: argparse.Namespace, folder: Path, environment: type | None = None) -> GRPOTrainer:
    """Return the trainer on rows (`--data`) or on tasks."""
    tokenizer = AutoTokenizer.from_pretrained(options.model, padding_side="left")
    shared: dict[str, Any] = {"args": build_config(options, folder), "processing_class": tokenizer}
    if options.data is not None:
        rows = Dataset.from_list(read_rows(options.data, tokenizer))
        return GRPOTrainer(options.model, reward_funcs=tool_match_reward, train_dataset=rows, **shared)
    toolkit = read_toolkit(options.toolkit)
    tasks = read_tasks(options.tasks, toolkit)
    environment = environment or trl_environment(toolkit, tasks)
    rows = trl_rows(tasks)
    tools = tools_of(environment)
    prompts = [tokenizer.apply_chat_template(row["prompt"], tools=tools, add_generation_prompt=True) for row in rows]
    rows = leave_out_long(rows, [len(each["input_ids"]) for each in prompts])
    return GRPOTrainer(options.model, train_dataset=Dataset.from_list(rows), environment_factory=environment, **shared)


def tools_of(environment: type) -> list[Any]:
    """Return the methods that TRL offers as tools."""
    one = environment()
    names = (name for name in dir(environment) if not name.startswith("_") and name not in ("reset", "get_reward"))
    return [getattr(one, name) for name in names]


def train(options: argparse.Namespace, environment: type | None = None) -> GRPOTrainer:
    """Train, and write the model to `--out`, completely or not at all."""
    new = options.out.with_name(f"{options.out.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    trainer = build_trainer(options, new, environment)
    trainer.train()
    trainer.save_model(str(new))
    trainer.processing_class.save_pretrained(str(new))
    new.replace(options.out)
    return trainer


if __name__ == "__main__":
    train(read_arguments())
