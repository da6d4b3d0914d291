"""`data loop`: train, probe, judge, expand, mix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace as Options
from typing import Any

from rich.console import Console
from rich.text import Text

from ..display.words import clean
from ..training.config import LoopConfig
from ..training.loop import create_loop
from .data import read_tools
from .inputs import build_models, check_files, check_needs, screen


def loop(options: Options) -> int:
    """Run the loop, and tell what each step has come to."""
    check_needs(options)
    check_files([("SEEDS", options.seeds), ("--eval", options.eval)], {})
    config = LoopConfig(
        seeds=Path(options.seeds), folder=Path(options.output), base=options.base, iterations=options.iterations,
        toolkit=read_tools(options), eval=Path(options.eval) if options.eval else None, variants=options.variants,
        keep_both_correct=not options.discard_both_correct, ablation=options.ablation, seed=options.seed,
    )  # fmt: skip
    models = build_models(options) if options.model or options.role_model else None
    built = create_loop(config, trainer=options.train, probe=options.probe, models=models)
    console = screen()
    with console.status("") as status:
        told: Iterator[Any] = built.stream({}, stream_mode=["updates", "custom"])
        for mode, part in told:
            if mode == "custom":
                status.update(f"iteration {part['iteration']}: {part['step']}, row {part['done']}")
                continue
            for update in part.values():
                for step, counts in update.get("counts", {}).items():
                    _show(console, step, counts)
                if set(update) == {"model"}:
                    console.print(Text.assemble((f"{'trained':<12} ", "bold"), clean(update["model"])))
    return 0


def _show(console: Console, step: str, counts: Mapping[str, Any]) -> None:
    console.print(Text.assemble((f"{step:<12} ", "bold"), ", ".join(_words(counts))))


def _words(counts: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for key, value in counts.items():
        if isinstance(value, Mapping):
            words = [f"{count:,} {name.replace('_', ' ').lower()}" for name, count in value.items()]
            found += words if key != "by" else [f"decided by: {', '.join(words)}"]
        elif isinstance(value, list):
            found += [clean(f"{where}: {reason}") for where, reason in value]
        elif value:
            found.append(f"{value:.1%} {key}" if isinstance(value, float) else f"{value:,} {key.replace('_', ' ')}")
    return found or ["nothing"]
