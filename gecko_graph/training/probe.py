"""User-defined trainers and probes, and a policy's output for each row: greedy probing (paper, section 4.2)."""

from __future__ import annotations

import math
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, NotRequired, TypeAlias, cast

from langchain_core.messages import AIMessage
from typing_extensions import TypedDict

from ..errors import GeckoError
from ..masking import mask
from ..models.answer import answer
from ..models.ask import PlannerAsk, QuestionId
from ..models.client import bind_within
from ..models.factory import Models, chat_model
from ..state import JsonObject
from ..values.rows import read_lines
from .call_texts import read_said, read_text
from .checks import to_langchain
from .files import read_rows, write_rows
from .match import tool_match
from .samples import LabelCall, Sample, read_call
from .shapes import ROW_ERRORS, reason_of

Maker: TypeAlias = str | Callable[[Path, str, Path], object]
"""A command, or a function of the paths of data, model and result."""

_SHOWN = 1_500
"""Last characters of a failed command's output that the message shows."""


def check_maker(what: str, maker: Maker) -> None:
    """Raise GeckoError if a command lacks a placeholder for data or result."""
    if isinstance(maker, str) and (missing := [place for place in ("{data}", "{out}") if place not in maker]):
        raise GeckoError(f"{what}: the command {maker!r} lacks {', '.join(missing)}")


def describe_maker(maker: Maker) -> str:
    """Return a trainer's or probe's identity."""
    return maker if isinstance(maker, str) else getattr(maker, "__qualname__", type(maker).__qualname__)


def run_maker(what: str, maker: Maker, data: Path, model: str, out: Path) -> None:
    """Run a command or function that writes a file or folder; the result appears whole or not at all.

    Raises:
        GeckoError: The command or function fails, or writes nothing.
    """
    new = out.with_name(f"{out.name}.new")
    for path in (new, out):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if isinstance(maker, str):
        _run(what, maker, {"{data}": str(data), "{model}": model, "{out}": str(new)})
    else:
        try:
            maker(data, model, new)
        except OSError as error:  # not raised by our own files
            raise GeckoError(f"{what}: {type(error).__name__}: {error}; rerun the same command to resume") from error
    if not new.exists() or (new.is_dir() and not any(new.iterdir())):
        raise GeckoError(f"{what}: nothing was written to {{out}} ({new})")
    new.replace(out)


def _run(what: str, command: str, places: dict[str, str]) -> None:
    words = shlex.split(command)
    for place, value in places.items():
        words = [word.replace(place, value) for word in words]
    try:
        with subprocess.Popen(words, stderr=subprocess.PIPE) as running:
            said = _pass_on(cast("IO[bytes]", running.stderr))
    except OSError as error:
        raise GeckoError(f"{what}: {words[0]}: {error.strerror}") from None
    if running.returncode:
        ended = f"{what}: {shlex.join(words)} ended with {running.returncode}; rerun the same command to resume"
        raise GeckoError(f"{ended}\n{mask(said.strip())}")


def _pass_on(stream: IO[bytes]) -> str:
    """Print a command's output while it runs, possibly for hours, and return its last part."""
    last = b""
    while chunk := stream.read1(1 << 16):  # type: ignore[attr-defined]
        last = (last + chunk)[-_SHOWN:]
        sys.stderr.write(chunk.decode("utf-8", "replace"))
        sys.stderr.flush()
    return last.decode("utf-8", "replace")


AT_ONCE = 16
LONGEST = 1_024
"""Most tokens of an output (paper, table 5)."""

Probe: TypeAlias = Maker | Path
"""The address of a server, a command or function, or a file of outputs."""


class Output(TypedDict):
    """A policy's output for a row; `perplexity` is None if unknown."""

    id: str
    calls: list[LabelCall]
    text: str
    perplexity: float | None
    problem: NotRequired[str]
    """Why its calls cannot be read."""


def as_probe(given: Probe) -> Probe:
    """Return a probe; a text that is neither address nor command is a file. Raises GeckoError."""
    if _is_address(given) or not isinstance(given, str):
        return given
    if "{out}" not in given:
        return Path(given)
    check_maker("probe", given)
    return given


def _is_address(probe: Probe) -> bool:
    return isinstance(probe, str) and probe.startswith(("http://", "https://"))


def find_perplexity(logprobs: Sequence[Any] | None, tokens: int | None = None) -> float | None:
    """Return the perplexity of an output (equation 3), reasoning included; None if log-probabilities are missing.

    Args:
        logprobs: The natural log-probability of each token of the output.
        tokens: The number of tokens of the output; with fewer log-probabilities the result is None.
    """
    if not logprobs or (tokens is not None and len(logprobs) < tokens):
        return None
    values = [float(each) for each in logprobs if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(values) < len(logprobs) or not all(-math.inf < value <= 0 for value in values):
        return None
    mean = -sum(values) / len(values)
    return math.exp(mean) if mean < 700 else None  # larger values overflow


def read_output(row: Mapping[str, Any]) -> Output:
    """Return the output of a row `{"id", "output", "logprobs"?, "tokens"?}`; unreadable calls become a `problem`.

    `output` is text, with calls in any model family's syntax, or a message in OpenAI's form.

    Raises:
        ValueError: The row has another form.
    """
    said = row.get("output")
    if not isinstance(row.get("id"), str) or not isinstance(said, str | Mapping):
        raise ValueError("expected id, and output: a text or a message")
    perplexity = find_perplexity(row.get("logprobs"), row.get("tokens"))
    message = {"content": said} if isinstance(said, str) else said
    made: Output = {"id": row["id"], "calls": [], "text": read_text(message.get("content")), "perplexity": perplexity}
    try:
        calls, text = read_said(message)
    except ROW_ERRORS as error:
        return {**made, "problem": reason_of(error)}
    return {**made, "calls": cast("list[LabelCall]", [read_call(each) for each in calls]), "text": text}


def read_outputs(file: Path, ids: Iterable[str]) -> list[Output]:
    """Return a file's outputs in the order of the ids.

    Raises:
        GeckoError: The file or a line cannot be read, or its ids are not the requested ones.
    """
    found: dict[str, Output] = {}
    wanted = dict.fromkeys(ids)
    for line in read_lines(file):
        try:
            output = read_output(line.read())
            if output["id"] in found or output["id"] not in wanted:
                why = "occurs twice" if output["id"] in found else "is not in the data"
                raise ValueError(f"the id {output['id']!r} {why}")
        except ROW_ERRORS as error:
            raise GeckoError(f"{file}:{line.number}: {reason_of(error)}") from None
        found[output["id"]] = output
    if missing := [each for each in wanted if each not in found]:
        raise GeckoError(f"{file}: {len(missing)} rows of the data have no output, for example {missing[0]!r}")
    return [found[each] for each in wanted]


def is_met(sample: Sample, output: Output) -> bool:
    """Return whether an output matches the row's label (ToolMatch)."""
    is_read = not output.get("problem")
    return is_read and tool_match(output["calls"], sample["label"], sample["tools"], sample.get("also"))


def write_outputs(probe: Probe, model: str, data: Path, out: Path, replies: Path, tell: Callable[[int], None]) -> None:
    """Write a model's outputs for the rows of a file of samples; a server's replies are cached in a file.

    Raises:
        GeckoError: A server does not answer, a command fails, a file is missing, or the outputs are for other rows.
    """
    if isinstance(probe, Path):
        if not probe.is_file():
            raise GeckoError(
                f"probe: {probe} does not exist: write the outputs of {model} for each row of {data}, "
                '{"id", "output", "logprobs"}; then run the same command again'
            )
        run_maker("probe", lambda _data, _model, new: shutil.copyfile(probe, new), data, model, out)
    elif _is_address(probe):
        ask_policy(cast("str", probe), model, read_rows(data), out, replies, tell)
    else:
        run_maker("probe", probe, data, model, out)
    read_outputs(probe if isinstance(probe, Path) else out, (row["id"] for row in read_rows(data)))


def ask_policy(
    address: str, model: str, samples: Iterable[Sample], out: Path, replies: Path, tell: Callable[[int], None]
) -> None:
    """Write the greedy outputs of a policy behind an OpenAI-compatible address; its replies are cached in a file.

    Raises:
        GeckoError: The server does not answer, or rejects a row.
    """

    def bind(chat: Any) -> Any:
        return chat.bind(logprobs=True, max_tokens=LONGEST)

    policy = Models(bind_within(chat_model(f"openai:{model}", base_url=address, temperature=0), bind)).caching(replies)

    def ask() -> Iterator[JsonObject]:
        left = enumerate(samples)
        while some := list(islice(left, AT_ONCE)):
            asks = [
                PlannerAsk([*to_langchain(one["messages"])], one["tools"], QuestionId(question=at)) for at, one in some
            ]
            for (at, one), reply in zip(some, answer(asks, policy), strict=True):
                if not isinstance(reply.value, AIMessage):
                    raise GeckoError(
                        f"probe: {address} on row {one['id']}: {reply.failure}; rerun the same command to resume"
                    )
                yield _as_row(one["id"], reply.value)
                tell(at + 1)

    write_rows(out, ask())


def _as_row(id_: str, said: AIMessage) -> JsonObject:
    """Return a reply as a row for `read_output`; calls that are not JSON stay text."""
    calls = [{"name": each["name"], "arguments": each["args"]} for each in (*said.tool_calls, *said.invalid_tool_calls)]
    tokens = (said.response_metadata.get("logprobs") or {}).get("content") or []
    usage: Any = said.usage_metadata or {}
    made = {"id": id_, "output": {"content": said.text, "tool_calls": calls}}
    return {**made, "logprobs": [each.get("logprob") for each in tokens], "tokens": usage.get("output_tokens")}
