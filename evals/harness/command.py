"""The command of a suite: options, run, output, exit code."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import inspect
import json
import os
import shlex
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gecko_graph.errors import GeckoError
from gecko_graph.masking import mask
from gecko_graph.models.cache import forget_replies
from gecko_graph.state import ROLES, JsonObject, Role
from gecko_graph.values.mapping import Map, on_ray, processes

from .figures import Record
from .options import OUT, SHARED, EvalError, Options, Planner
from .report import Head, Result, provenance, publish, show, write_report
from .runner import Selection, map_cases, run_cases, select
from .suite import Suite

LIVE_AT_ONCE = 8
INTERRUPTED = 130


def run(kind: type[Suite], argv: Sequence[str], *, called: str) -> int:
    """Run a suite from its command line; `called` is the name that the user gave.

    Returns:
        0; 1 if an expectation is not met; 2 for a user's mistake; 130 if the user stopped it.
    """
    given = parser_of(kind, called).parse_args(argv)
    command = mask(shlex.join(["python", "-m", "evals", called, *_without_page(argv)]))
    try:
        return _run(kind, given, command=command)
    except (EvalError, GeckoError) as mistake:
        print(f"error: {mask(str(mistake))}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `--list | head`: the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("\nstopped; the same command resumes the run", file=sys.stderr)
        return INTERRUPTED


def _without_page(argv: Sequence[str]) -> list[str]:
    """Return the command without `--publish PAGE`, which does not affect the results."""
    kept = list(argv)
    if "--publish" in kept:
        at = kept.index("--publish")
        del kept[at : at + 2]
    return [each for each in kept if not each.startswith("--publish=")]


def _run(kind: type[Suite], given: argparse.Namespace, *, command: str) -> int:
    options = options_of(kind, given)
    options.speakers()  # report a model that cannot be built, or a missing file, before anything runs
    suite = kind(options)
    chosen = select(suite.cases(), only=options.only, limit=options.limit, seed=options.seed)
    if given.list:
        print("\n".join(f"{case.id}\t{case.group}".rstrip() for case in chosen.cases))
        return 0
    ran = measure(suite, chosen, given=given, command=command)
    write_report(ran, options.out)
    if given.publish:
        publish(ran, given.publish)
    show(ran, Console(), where=options.out / "report.md")
    return ran.exit_code


def measure(suite: Suite, chosen: Selection, *, given: argparse.Namespace, command: str) -> Result:
    """Run the cases, save each in `cases.jsonl` as soon as it is finished, and summarise.

    Model replies are saved as well (`Options.replies`): a resumed run asks no question twice.
    """
    head, options = head_of(suite, command=command), suite.options
    if given.fresh:
        forget_replies(options.replies)
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        file = (options.out / "cases.jsonl").open("w", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise EvalError(f"--out {options.out}: {error.strerror}") from None
    with file, progress(Console(stderr=True), suite.name, total=len(chosen.cases)) as shown:

        def write(kind: str, line: JsonObject) -> None:
            print(json.dumps({"kind": kind, **line}, ensure_ascii=False, allow_nan=False), file=file, flush=True)

        def keep(record: Record) -> None:
            write("case", asdict(record))
            shown(record)

        write("session", head)
        if how := find_map(given):
            records = map_cases(suite, chosen.cases, how, keep=keep)
        else:
            records = asyncio.run(run_cases(suite, chosen.cases, at_once=at_once(suite), keep=keep))
    kept = [records[case.id] for case in chosen.cases]
    return Result.of_run(suite, kept, of=chosen.of, head=head, command=command)


def find_map(given: argparse.Namespace) -> Map | None:
    """Return the map that runs the cases in other processes; None if this process runs them."""
    if given.ray is not None:
        return on_ray(given.ray or None, given.workers)
    return processes(given.workers) if given.workers else None


@contextmanager
def progress(console: Console, title: str, *, total: int) -> Iterator[Callable[[Record], None]]:
    """Show the progress of a run, in a pipe only at its end; yields a function to call with each finished case."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    lost = TextColumn("[red]{task.fields[trouble]}")
    counts: Counter[str] = Counter()
    with Progress(*columns, TimeRemainingColumn(), lost, console=console) as bar:
        task = bar.add_task(title, total=total, trouble="")

        def end(record: Record) -> None:
            counts[record.status] += 1
            bar.update(
                task, advance=1, trouble=", ".join(f"{n} {word}" for word, n in counts.items() if word != "done")
            )

        yield end


def at_once(suite: Suite) -> int:
    return suite.options.at_once or suite.at_once or (LIVE_AT_ONCE if suite.options.model_names() else 1)


def head_of(suite: Suite, *, command: str) -> Head:
    """Return the description of a run, the first line of its file of cases."""
    options = suite.options
    return {
        "suite": suite.name,
        "options": identity(type(suite), options),
        "planner": str(options.planner),
        "models": dict(options.model_names()),
        "command": command,
        **provenance(),
    }


def identity(kind: type[Suite], options: Options) -> JsonObject:
    own = {name: value for name, value in vars(options.own).items() if name not in kind.asides}
    return {
        "planner": str(options.planner),
        "model": options.model,
        "role_models": dict(options.role_models),
        "base_url": options.base_url and mask(options.base_url),
        "max_retries": options.max_retries,
        "seed": options.seed,
        **({} if options.data == SHARED else {"data": str(options.data)}),
        **cast("JsonObject", json.loads(json.dumps(own, default=str))),
    }


def options_of(kind: type[Suite], given: argparse.Namespace) -> Options:
    """Return the parsed options."""
    own = [action.dest for action in kind.own_options()]
    options = Options(
        planner=_planner(kind, given),
        model=given.model,
        role_models=dict(map(_role_model, given.role_model)),
        base_url=given.base_url,
        max_retries=given.max_retries,
        seed=given.seed,
        at_once=given.at_once,
        only=tuple(part for each in given.only for part in each.split(",") if part),
        limit=given.limit,
        data=given.data,
        patience_s=given.patience,
        own=argparse.Namespace(**{name: getattr(given, name) for name in own}),
    )
    return replace(options, out=given.out or default_out(kind, options))


def default_out(kind: type[Suite], options: Options) -> Path:
    """Return a separate folder for each set of options that records depend on."""
    whole = json.dumps(identity(kind, options), sort_keys=True).encode()
    return OUT / f"{kind.name}-{hashlib.sha256(whole).hexdigest()[:8]}"


def _planner(kind: type[Suite], given: argparse.Namespace) -> Planner:
    if kind.planner is None:
        return Planner("none")
    live = given.model if "model" in kind.planners else None
    planner = Planner.parse(given.planner or live or kind.planner)
    if planner.kind not in kind.planners:
        raise EvalError(f"suite {kind.name} has no planner {planner}; it has: {', '.join(kind.planners)}")
    return planner


def _role_model(text: str) -> tuple[Role, str]:
    role, _, model = text.partition("=")
    if role == "planner":
        raise EvalError(f"--role-model {text}: the planner's model is given with --planner")
    if role not in ROLES or not model:
        raise EvalError(f"--role-model {text}: write ROLE=provider:model; roles: {', '.join(ROLES)}")
    return role, model


def parser_of(kind: type[Suite], called: str) -> argparse.ArgumentParser:
    examples = "\n".join(f"  python -m evals {called} {each}" for each in kind.examples)
    parser = argparse.ArgumentParser(
        prog=f"python -m evals {called}",
        description=textwrap.dedent(inspect.getdoc(kind) or ""),
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_cases(parser.add_argument_group("which cases"))
    if kind.asks:
        _add_models(parser.add_argument_group("models"), kind)
    else:
        parser.set_defaults(planner=None, model=None, role_model=[], base_url=None, max_retries=None, patience=0.0)
    _add_output(parser.add_argument_group("run and output"))
    own = parser.add_argument_group("the suite's own options")
    kind.add_options(cast("argparse.ArgumentParser", own))
    return parser


def _add_cases(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--only", action="append", default=[], metavar="PATTERN", help="ids or groups, like 'simple_*,multiple_3'")
    add("--limit", type=_at_least(1), metavar="N", help="number of cases, drawn by the seed")
    add("--seed", type=int, default=0, metavar="N", help="seed of sampling and of everything made up (0)")
    add("--data", type=Path, default=SHARED, metavar="DIR", help="folder of the recorded data")
    add("--list", action="store_true", help="list the cases and run none")


def _add_models(group: argparse._ArgumentGroup, kind: type[Suite]) -> None:
    add = group.add_argument
    words = {"ground-truth": "ground-truth", "recorded": "recorded:FILE", "model": "provider:model"}
    if kind.planner is not None:
        kinds = " | ".join(words[each] for each in kind.planners)
        add("--planner", metavar="WHO", help=f"{kinds} ({kind.planner}, or the model of --model)")
    add("--model", metavar="MODEL", help="model of every role without its own, such as 'openai:gpt-5-mini'")
    add("--role-model", action="append", default=[], metavar="ROLE=MODEL", help="a model for one role; repeatable")
    add("--base-url", metavar="URL", help="an OpenAI-compatible server")
    add("--max-retries", type=_at_least(0), metavar="N", help="rounds after the first one (3)")
    add(
        "--patience",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="to repeat a question to a failing endpoint (600)",
    )


def _add_output(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--at-once", type=_at_least(1), metavar="N", help=f"cases at once ({LIVE_AT_ONCE} with a live model)")
    add("--workers", type=_at_least(1), metavar="N", help="number of processes that run cases")
    add("--ray", nargs="?", const="", metavar="ADDRESS", help="cases on a Ray cluster (docs/scale.md)")
    add("--out", type=Path, metavar="DIR", help="folder of cases, replies and report (evals/out/SUITE-...)")
    add("--publish", type=Path, metavar="PAGE", help="put the summary into this page, such as evals/reports/tau.md")
    add("--fresh", action="store_true", help="forget saved model replies and ask again")


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        return int(text)

    return number
