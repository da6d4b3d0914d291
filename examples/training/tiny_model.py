"""Train a tiny model on the solutions of tasks, as a start for `train_grpo.py`.

python tiny_model.py --toolkit api.yaml --tasks FOLDER --part 0.5 --out DIR

Its tokenizer knows only the tasks' own words; its chat template is TRL's for Qwen3. It is meant for tests and for a
first look at GRPO, and useless for anything else.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import trl
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from train_grpo import tools_of
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.utils import get_json_schema
from trl.chat_template_utils import get_training_chat_template

from gecko_graph.scenario import read_toolkit
from gecko_graph.training.tasks import read_tasks
from gecko_graph.training.trl import trl_environment

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MARKS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
HEAD = 32
"""Width of an attention head."""


def read_solutions(tasks: Sequence[Any], environment: type) -> Iterator[list[dict[str, Any]]]:
    """Yield each task's solution as a conversation in TRL's format: words, calls with results, answer."""
    names = {tool.name: name for tool, name in zip(tasks[0].tools, names_of(environment), strict=True)}
    for task in tasks:
        played = environment()
        played.reset(task=task.name)
        messages: list[dict[str, Any]] = [{"role": "user", "content": task.words}]
        for call in task.solution:
            function = {"name": names[call["name"]], "arguments": call["args"]}
            result = getattr(played, function["name"])(**call["args"])
            messages.append({"role": "assistant", "tool_calls": [{"type": "function", "function": function}]})
            messages.append({"role": "tool", "name": function["name"], "content": result})
        yield [*messages, {"role": "assistant", "content": "Done."}]


def names_of(environment: type) -> list[str]:
    """Return the names of the tools' methods, in the order of the tools."""
    return [name for name in vars(environment) if not name.startswith("_")]


def make_tokenizer(texts: Sequence[str], size: int) -> PreTrainedTokenizerFast:
    """Return a tokenizer trained on the texts, each digit a token, with TRL's chat template for Qwen3."""
    made = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    made.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[*SPECIAL], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>", padding_side="left"
    )
    tokenizer.add_tokens(MARKS)
    template = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"
    tokenizer.chat_template = template.read_text(encoding="utf-8")
    return tokenizer


def encode(tokenizer: Any, conversations: Sequence[Any], tools: Sequence[Any]) -> list[dict[str, Any]]:
    """Return conversations as token ids, with a mask of the assistant's tokens."""
    template = get_training_chat_template(tokenizer)
    return [
        tokenizer.apply_chat_template(
            each, tools=tools, chat_template=template, return_dict=True, return_assistant_tokens_mask=True
        )
        for each in conversations
    ]


def fit(model: Any, rows: Sequence[Any], steps: int, batch: int, rate: float, seed: int) -> float:
    """Fit a model to the assistant's tokens; return the mean of the last ten losses."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    rng, losses = random.Random(seed), list[float]()
    for _ in range(steps):
        some = [rows[rng.randrange(len(rows))] for _ in range(batch)]
        length = max(len(each["input_ids"]) for each in some)
        ids, labels, seen = (torch.full((batch, length), fill) for fill in (0, -100, 0))
        for at, each in enumerate(some):
            known = torch.tensor(each["input_ids"])
            ids[at, : len(known)], seen[at, : len(known)] = known, 1
            labels[at, : len(known)] = known.where(torch.tensor(each["assistant_masks"]) == 1, -100)
        loss = model(ids.to(device), attention_mask=seen.to(device), labels=labels.to(device)).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.to("cpu").eval()
    return sum(losses[-10:]) / len(losses[-10:])


def make(  # noqa: PLR0913 - options of a script
    toolkit: Any, tasks: Sequence[Any], out: Path, *, layers: int = 2, width: int = 128, steps: int = 300,
    batch: int = 4, rate: float = 3e-3, words: int = 2_000, seed: int = 0,
) -> float:  # fmt: skip
    """Write a model fitted to the solutions of tasks; return its loss."""
    torch.manual_seed(seed)
    environment = trl_environment(toolkit, tasks)
    conversations = list(read_solutions(tasks, environment))
    tools = tools_of(environment)
    shown = [json.dumps(get_json_schema(tool), ensure_ascii=False) for tool in tools]
    tokenizer = make_tokenizer([*shown * 8, *(json.dumps(each, ensure_ascii=False) for each in conversations)], words)
    rows = encode(tokenizer, conversations, tools)
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=width, intermediate_size=3 * width, num_hidden_layers=layers,
        num_attention_heads=width // HEAD, num_key_value_heads=width // HEAD, head_dim=HEAD, tie_word_embeddings=True,
        max_position_embeddings=8_192, pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config)
    loss = fit(model, rows, steps, batch, rate, seed)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    print(f"{sum(each.numel() for each in model.parameters()):,} parameters, {len(tokenizer)} words, loss {loss:.3f}, "
          f"at most {max(len(each['input_ids']) for each in rows)} tokens per conversation")  # fmt: skip
    return loss


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toolkit", required=True)
    parser.add_argument("--tasks", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", type=float, default=1.0, help="share of the tasks to train on, from the first (1.0)")
    for name, value in (("layers", 2), ("width", 128), ("steps", 300), ("batch", 4)):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"({value})")
    given = vars(parser.parse_args())
    known = read_toolkit(given.pop("toolkit"))
    played = read_tasks(given.pop("tasks"), known)
    make(known, played[: round(len(played) * given.pop("part"))], given.pop("out"), **given)
