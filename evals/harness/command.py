"""One suite's command: its options, its run, what it shows, its exit code."""

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
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from gecko_graph.errors import GeckoError
from gecko_graph.masking import mask
from gecko_graph.state import ROLES, JsonObject, Role

from . import datasets, provenance
from .journal import VERSION, Head, Journal, OtherCode
from .options import Options, Planner
from .progress import progress
from .report import write_report
from .result import Result
from .runner import Selection, run_cases, select, to_run
from .suite import EvalError, Suite
from .terminal import show
from .trials import repeated, several

LIVE_AT_ONCE = 8
INTERRUPTED = 130


def run(kind: type[Suite], argv: Sequence[str], *, called: str) -> int:
    """Run a suite from its command line.

    Args:
        kind: The suite.
        argv: Its options.
        called: What the user calls it.

    Returns:
        0; 1 where an expectation does not hold; 2 for a user's mistake; 130 where the user stopped it.
    """
    given = parser_of(kind, called).parse_args(argv)
    command = mask(shlex.join(["python", "-m", "evals", called, *argv]))
    try:
        return _run(kind, given, command=command)
    except (EvalError, GeckoError) as mistake:
        print(f"error: {mask(str(mistake))}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `--list | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("\nstopped; what is finished is kept, and the same command goes on from there", file=sys.stderr)
        return INTERRUPTED


def _run(kind: type[Suite], given: argparse.Namespace, *, command: str) -> int:
    options = options_of(kind, given)
    options.speakers()  # a model that cannot be built, or a missing file, is reported before anything runs
    check_places(given, out=options.out)
    suite = kind(options) if options.trials == 1 else repeated(kind, options)
    chosen = select(suite.cases(), only=options.only, limit=options.limit, seed=options.seed)
    if given.list:
        print("\n".join(f"{case.id}\t{case.group}".rstrip() for case in chosen.cases))
        return 0
    chosen = several(chosen, options.trials) if options.trials > 1 else chosen
    ran = measure(suite, chosen, given=given, command=command)
    pages = [options.out / "report.html", *([given.report] if given.report else [])]
    write_report(ran, pages)
    if given.json:
        _write_json(ran.as_json(), given.json)
    if given.json != "-":
        show(ran, Console(), where=pages[-1])
    return ran.exit_code


def check_places(given: argparse.Namespace, *, out: Path) -> None:
    """Make the folders that `--out`, `--report` and `--json` name.

    Raises:
        EvalError: One cannot be made, or is itself what is to be written.
    """
    journal = None if given.list else out / "cases.jsonl"
    places = {"--out": journal, "--report": given.report, "--json": given.json if given.json != "-" else None}
    for option, place in places.items():
        if place is None:
            continue
        try:
            Path(place).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EvalError(f"{option} {place}: {error.strerror}: {error.filename}") from None
        if not os.access(Path(place).parent, os.W_OK):
            raise EvalError(f"{option} {place}: nothing may be written there")
        if Path(place).is_dir():
            raise EvalError(f"{option} {place} is a folder: name a file")


def measure(suite: Suite, chosen: Selection, *, given: argparse.Namespace, command: str) -> Result:
    """Run what the journal does not settle, and summarise."""
    options = suite.options
    head = head_of(suite, command=command)
    path = options.out / "cases.jsonl"
    with open_journal(path, head, given) as journal:
        waiting = to_run(chosen.cases, journal.finished, retry_failed=given.retry_failed)
        settled = len(chosen.cases) - len(waiting)
        console = Console(stderr=True)
        if settled:
            console.print(f"{settled} of {len(chosen.cases)} cases are finished already in {path}", highlight=False)
        with progress(console, suite.name, total=len(chosen.cases), settled=settled) as shown:
            session = run_cases(suite, waiting, at_once=at_once(suite), journal=journal, progress=shown)
            records = {**journal.finished, **asyncio.run(session)}
    kept = [records[case.id] for case in chosen.cases]
    return Result.of_run(suite, kept, of=chosen.of, sessions=journal.sessions, command=command)


def open_journal(path: Path, head: Head, given: argparse.Namespace) -> Journal:
    """Open the run's journal. Cases that ran with other code are forgotten where no model was paid for them.

    Raises:
        EvalError: It cannot be gone on with.
    """
    if given.fresh:
        return Journal(path, head, how="anew")
    try:
        return Journal(path, head, how="any code" if given.resume else "same code")
    except OtherCode:
        if head["models"]:
            raise
        print(f"the code has changed since {path} was written: begun anew (--resume goes on with it)", file=sys.stderr)
        return Journal(path, head, how="anew")


def at_once(suite: Suite) -> int:
    """Return how many cases run at once."""
    return suite.options.at_once or suite.at_once or (LIVE_AT_ONCE if models_of(suite) else 1)


def models_of(suite: Suite) -> dict[str, str]:
    """Return every live model of a run, by role or by what it does."""
    names: dict[str, str] = dict(suite.options.model_names().items())
    return names | dict(suite.others())


def head_of(suite: Suite, *, command: str) -> Head:
    """Return the first line of the run's journal."""
    options, made = suite.options, provenance.here()
    return {
        "v": VERSION,
        "suite": suite.name,
        "options": identity(type(suite), options),
        "planner": str(options.planner),
        "models": models_of(suite),
        "command": command,
        "commit": made.commit,
        "code": made.code,
        "date": made.date,
    }


def identity(kind: type[Suite], options: Options) -> JsonObject:
    """Return the options that a record depends on; a run is not gone on with under others."""
    own = {name: _plain(value) for name, value in vars(options.own).items() if name not in kind.asides}
    return {
        "planner": str(options.planner),
        "model": options.model,
        "role_models": dict(options.role_models),
        "base_url": options.base_url and mask(options.base_url),
        "max_retries": options.max_retries,
        "seed": options.seed,
        **({"trials": options.trials} if options.trials > 1 else {}),
        **({} if options.data == datasets.SHARED else {"data": str(options.data)}),
        **own,
    }


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


def options_of(kind: type[Suite], given: argparse.Namespace) -> Options:
    """Return the parsed options.

    Raises:
        EvalError: A planner that the suite does not know, a model of no role.
    """
    own = [action.dest for action in kind.own_options()]
    options = Options(
        planner=_planner(kind, given),
        model=given.model,
        role_models=dict(map(_role_model, given.role_model)),
        base_url=given.base_url,
        max_retries=given.max_retries,
        seed=given.seed,
        trials=given.trials,
        at_once=given.at_once,
        only=tuple(part for each in given.only for part in each.split(",") if part),
        limit=given.limit,
        data=given.data,
        patience_s=given.patience,
        own=argparse.Namespace(**{name: getattr(given, name) for name in own}),
    )
    return replace(options, out=given.out or default_out(kind, options))


def default_out(kind: type[Suite], options: Options) -> Path:
    """Return a folder for each set of options that records depend on, so that two runs do not meet."""
    whole = json.dumps(identity(kind, options), sort_keys=True).encode()
    return datasets.OUT / f"{kind.name}-{hashlib.sha256(whole).hexdigest()[:8]}"


def _planner(kind: type[Suite], given: argparse.Namespace) -> Planner:
    if kind.planner is None:
        return Planner("none")
    live = given.model if "model" in kind.planners else None
    planner = Planner.parse(given.planner or live or kind.planner)
    if planner.kind not in kind.planners:
        raise EvalError(f"suite {kind.name} knows no planner {planner}; it knows: {', '.join(kind.planners)}")
    return planner


def _role_model(text: str) -> tuple[Role, str]:
    role, _, model = text.partition("=")
    if role == "planner":
        raise EvalError(f"--role-model {text}: the planner's model is given with --planner")
    if role not in ROLES or not model:
        raise EvalError(f"--role-model {text}: write ROLE=provider:model; roles: {', '.join(ROLES)}")
    return role, model


def parser_of(kind: type[Suite], called: str) -> argparse.ArgumentParser:
    """Return the suite's parser: common options, its own, and examples."""
    examples = "\n".join(f"  python -m evals {called} {each}" for each in kind.examples)
    parser = argparse.ArgumentParser(
        prog=f"python -m evals {called}",
        description=textwrap.dedent(inspect.getdoc(kind) or ""),
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_cases(parser.add_argument_group("which cases"), kind)
    if kind.asks:
        _add_models(parser.add_argument_group("who speaks"), kind)
    else:
        parser.set_defaults(planner=None, model=None, role_model=[], base_url=None, max_retries=None, patience=0.0)
    _add_output(parser.add_argument_group("how it runs and what it leaves"))
    own = parser.add_argument_group("the suite's own options")
    kind.add_options(cast("argparse.ArgumentParser", own))
    return parser


def _add_cases(group: argparse._ArgumentGroup, kind: type[Suite]) -> None:
    add = group.add_argument
    add("--only", action="append", default=[], metavar="PATTERN", help="ids or groups, like 'simple_*,multiple_3'")
    add("--limit", type=_at_least(1), metavar="N", help="so many cases, drawn by the seed")
    add("--seed", type=int, default=0, metavar="N", help="of sampling and of everything made up (0)")
    add("--data", type=Path, default=datasets.SHARED, metavar="DIR", help="folder of the recorded data")
    add("--list", action="store_true", help="list the cases and run none")
    if kind.passed is Suite.passed:
        group.set_defaults(trials=1)
    else:
        add(
            "--trials",
            type=_at_least(1),
            default=1,
            metavar="N",
            help="run each case N times: pass^1 to pass^N (1)",
        )


def _add_models(group: argparse._ArgumentGroup, kind: type[Suite]) -> None:
    add = group.add_argument
    words = {"ground-truth": "ground-truth", "recorded": "recorded:FILE", "model": "provider:model"}
    if kind.planner is not None:
        kinds = " | ".join(words[each] for each in kind.planners)
        add("--planner", metavar="WHO", help=f"{kinds} ({kind.planner}, or the model where --model is given)")
    add("--model", metavar="MODEL", help="speaks for every role without one of its own: 'openai:gpt-5-mini'")
    add("--role-model", action="append", default=[], metavar="ROLE=MODEL", help="a model for one role; repeatable")
    add("--base-url", metavar="URL", help="an OpenAI-compatible server")
    add("--max-retries", type=_at_least(0), metavar="N", help="rounds after the first one (3)")
    add("--patience", type=float, default=600.0, metavar="SECONDS", help="for an endpoint in trouble, a question (600)")


def _add_output(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--at-once", type=_at_least(1), metavar="N", help=f"cases at once ({LIVE_AT_ONCE} with a live model)")
    add("--out", type=Path, metavar="DIR", help="folder of journal, summary and report (evals/out/SUITE-...)")
    add("--fresh", action="store_true", help="forget the finished cases and begin anew")
    add("--resume", action="store_true", help="go on with finished cases that ran with other code")
    add("--retry-failed", action="store_true", help="run failed cases again")
    add("--report", type=Path, metavar="FILE.html", help="write the report there as well")
    add("--json", nargs="?", const="-", metavar="FILE", help="write the summary as JSON (to the terminal)")


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        return int(text)

    return number


def _write_json(summary: JsonObject, place: str) -> None:
    text = json.dumps(summary, ensure_ascii=False, indent=1)
    if place == "-":
        print(text)
    else:
        Path(place).write_text(text + "\n", encoding="utf-8")
