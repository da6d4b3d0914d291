"""Greedy capability probing (paper, section 4.2): what a policy does with each row, and how sure it is of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NotRequired, cast

from langchain_core.messages import AIMessage
from typing_extensions import TypedDict

from ..errors import GeckoError
from ..models.answer import answer
from ..models.ask import PlannerAsk, Where
from ..models.client import bind_within
from ..models.factory import Models, chat_model
from ..state import JsonObject
from .calls import read_call, read_call_texts
from .checks import to_langchain
from .journal import Journal
from .rows import read_lines
from .samples import LabelCall, Sample
from .shapes import ROW_ERRORS, reason_of

AT_ONCE = 16
LONGEST = 1_024
"""Tokens of an output (paper, table 5)."""


class Output(TypedDict):
    """What a policy did with a row; `perplexity` is None where it is unknown."""

    id: str
    calls: list[LabelCall]
    text: str
    perplexity: float | None
    problem: NotRequired[str]
    """Why its calls cannot be read."""


def is_address(probe: object) -> bool:
    """Return whether a probe is the address of a server."""
    return isinstance(probe, str) and probe.startswith(("http://", "https://"))


def is_file(probe: object) -> bool:
    """Return whether a probe is a file of outputs: neither an address, nor a command, nor a function."""
    return isinstance(probe, Path) or (isinstance(probe, str) and not is_address(probe) and "{out}" not in probe)


def find_perplexity(logprobs: Sequence[Any] | None, tokens: int | None = None) -> float | None:
    """Return the perplexity of an output (equation 3), thinking included; None where log-probabilities are missing.

    Args:
        logprobs: The natural log-probability of each token of the output.
        tokens: How many tokens the output has: with fewer log-probabilities, a part of it is not known.
    """
    if not logprobs or (tokens is not None and len(logprobs) < tokens):
        return None
    values = [float(each) for each in logprobs if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(values) < len(logprobs) or not all(-math.inf < value <= 0 for value in values):
        return None
    mean = -sum(values) / len(values)
    return math.exp(mean) if mean < 700 else None  # more is no number


def read_output(row: Mapping[str, Any]) -> Output:
    """Return the output of a row `{"id", "output", "logprobs"?, "tokens"?}`; calls that cannot be read are a problem.

    `output` is text with `<tool_call>` marks, or a message in OpenAI's form.

    Raises:
        ValueError: The row is none of these.
    """
    said = row.get("output")
    if not isinstance(row.get("id"), str) or not isinstance(said, str | Mapping):
        raise ValueError("expected id, and output: a text or a message")
    perplexity = find_perplexity(row.get("logprobs"), row.get("tokens"))
    text = said if isinstance(said, str) else str(said.get("content") or "")
    made: Output = {"id": row["id"], "calls": [], "text": text, "perplexity": perplexity}
    try:
        given = [] if isinstance(said, str) else said.get("tool_calls") or []
        calls, text = ([read_call(each) for each in given], text) if given else read_call_texts(text)
    except ROW_ERRORS as error:
        return {**made, "problem": reason_of(error)}
    return {**made, "calls": cast("list[LabelCall]", calls), "text": text}


def read_outputs(file: Path, ids: Iterable[str]) -> Iterator[Output]:
    """Yield the outputs of a file, in the order of the ids.

    Raises:
        GeckoError: The file cannot be read, a line is broken, or its ids are not those asked for.
    """
    found: dict[str, Output] = {}
    for line in read_lines(file):
        try:
            output = read_output(line.read())
            if output["id"] in found:
                raise ValueError(f"the id {output['id']} a second time")
        except ROW_ERRORS as error:
            raise GeckoError(f"{file}:{line.number}: {reason_of(error)}") from None
        found[output["id"]] = output
    wanted = list(ids)
    missing, others = [each for each in wanted if each not in found], found.keys() - {*wanted}
    if missing or others:
        example = missing[0] if missing else min(others)
        raise GeckoError(
            f"{file}: {len(missing)} rows of the data have no output, {len(others)} outputs are of other rows, "
            f"for example {example!r}"
        )
    return (found[each] for each in wanted)


def ask_policy(
    address: str, model: str, samples: Iterable[Sample], file: Path, of: str, tell: Callable[[int], None]
) -> None:
    """Write the outputs of a policy behind an OpenAI-compatible address, greedily; a stopped one is gone on with.

    Raises:
        GeckoError: The server does not answer, or refuses a row.
    """

    def bind(chat: Any) -> Any:
        return chat.bind(logprobs=True, max_tokens=LONGEST)

    policy = Models(bind_within(chat_model(f"openai:{model}", base_url=address, temperature=0), bind))
    with Journal(file, of) as journal:
        known = {entry["id"] for entry in journal.read()}
        left = (sample for sample in samples if sample["id"] not in known)
        while some := list(islice(left, AT_ONCE)):
            asks = [PlannerAsk([*to_langchain(one["messages"])], one["tools"], Where()) for one in some]
            for one, reply in zip(some, answer(asks, policy), strict=True):
                if not isinstance(reply.value, AIMessage):
                    raise GeckoError(f"probe: {address} on row {one['id']}: {reply.failure}; the same command goes on")
                journal.write(json.dumps(_as_row(one["id"], reply.value), ensure_ascii=False))
            journal.flush()
            known |= {one["id"] for one in some}
            tell(len(known))
        journal.finish(lambda entry: [entry])


def _as_row(id_: str, said: AIMessage) -> JsonObject:
    """Return a reply as a row that `read_output` takes; calls that were no JSON stay text."""
    calls: list[Any] = [{"name": each["name"], "arguments": each["args"]} for each in said.tool_calls]
    calls += [{"name": each["name"], "arguments": each["args"]} for each in said.invalid_tool_calls]
    tokens = (said.response_metadata.get("logprobs") or {}).get("content") or []
    usage: Any = said.usage_metadata or {}
    made = {"id": id_, "output": {"content": said.text, "tool_calls": calls}}
    return {**made, "logprobs": [each.get("logprob") for each in tokens], "tokens": usage.get("output_tokens")}
