"""References in recorded replies: `{{ calls[0].result.id }}` stands for what an earlier call of the same run returned.

They are filled in only where a scenario has `references: true`. Between the braces stands an expression of the contract
language over two names; a text that holds `{{` itself is written with `{{ "{{" }}`.

| name | what |
| --- | --- |
| `calls` | the attempt's calls that ran before the reply, from 0: `name`, `args`, `status`, `result`, `rung` |
| `turns` | earlier turns, from 0, each with the `calls` that the conversation remembers |
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from ..contracts.language.expression import Expression, Scope
from ..errors import ContractError, EvaluationFailed
from ..leaves import as_text, map_scalars, map_texts, scalars
from ..models.formatting import text_of
from ..models.memory import recall_calls, rung_of
from ..models.node import NODE_STATE
from ..simulation.rung import answered_calls
from ..state import Json, JsonObject

NAMES = frozenset({"calls", "turns"})
ESCAPED = '{{ "{{" }}'
CONSTANT_RUNGS = frozenset({"model", "example"})
"""Rungs whose results do not change with the seed: a simulator's are recorded."""

Made: TypeAlias = dict[tuple[type, Json], tuple[int, str]]
"""Type and value to the number of the call that made it (-1 in an earlier turn), and the expression for its place."""

_NAME = re.compile(r"(?!.*__)[A-Za-z]\w*", re.ASCII)


def fill(reply: Json, where: str, attempt: int) -> Json:
    """Return a reply with its references filled in from the run of the node that asks; `where` is for messages.

    Raises:
        EvaluationFailed: A reference names nothing that the run has, or cannot be read.
    """
    return _filled(reply, where, cache(lambda: known_calls(NODE_STATE.get(), attempt)))


def check_references(reply: Json, where: str) -> Iterator[str]:
    """Yield what is wrong with the form of a reply's references, each with its place."""
    for place, text in scalars(reply, keys=True):
        if isinstance(text, str):
            try:
                _parts(text, where + "".join(_step(each) for each in place))
            except ContractError as error:
                yield str(error)


def known_calls(state: Mapping[str, Any], attempt: int) -> JsonObject:
    """Return `calls` and `turns` as a node's state has them."""
    steps = state.get("steps")
    if steps is None:
        steps = next((each["steps"] for each in state.get("unjudged") or () if each["number"] == attempt), ())
    rungs = [step["outcome"]["rung"] for step in steps if "outcome" in step]
    calls = [{**call, "rung": rung} for call, rung in zip(answered_calls(steps), rungs, strict=True)]
    return {
        "calls": calls,
        "turns": _earlier_turns(state.get("conversation") or recall_calls(state.get("messages", ()))),
    }


def _earlier_turns(messages: Sequence[AnyMessage]) -> list[JsonObject]:
    turns: list[JsonObject] = []
    made: dict[str | None, JsonObject] = {}
    for message in messages:
        if isinstance(message, HumanMessage):
            turns.append({"calls": []})
        elif isinstance(message, AIMessage):
            made = {call["id"]: {"name": call["name"], "args": call["args"]} for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and turns and rung_of(message):
            try:
                result = json.loads(text_of(message))
            except ValueError:
                result = text_of(message)
            call = {**made.get(message.tool_call_id, {}), "result": result, "rung": rung_of(message)}
            turns[-1]["calls"].append(call)
    return turns


def _filled(value: Json, where: str, known: Callable[[], JsonObject]) -> Json:
    def fill_text(text: str) -> Json:
        if "{{" not in text:
            return text
        try:
            parts = _parts(text, where)
        except ContractError as error:
            raise EvaluationFailed(str(error)) from None
        scope = Scope(known())
        values = [part if isinstance(part, str) else part.evaluate(scope) for part in parts]
        if len(values) == 1:
            return values[0]
        return "".join(map(as_text, values))

    return map_texts(value, fill_text, keys=True)


def _parts(text: str, where: str) -> list[str | Expression]:
    """Return plain texts and expressions in their order. Raises ContractError."""
    parts: list[str | Expression] = []
    plain: list[str] = []
    end = 0
    while (begin := text.find("{{", end)) >= 0:
        plain.append(text[end:begin])
        if text.startswith(ESCAPED, begin):
            plain.append("{{")
            end = begin + len(ESCAPED)
        elif text.startswith("{", begin + 2):  # of three the last two open
            plain.append("{")
            end = begin + 1
        else:
            close = text.find("}}", begin)
            if close < 0:
                raise ContractError(f"{where}: a reference ends with }}}}; a text that holds {{{{ has {ESCAPED}")
            parts += filter(None, ["".join(plain)])
            parts.append(Expression.compile(text[begin + 2 : close].strip(), names=NAMES, where=where))
            plain, end = [], close + 2
    return [*parts, *filter(None, ["".join([*plain, text[end:]])])] or [""]


# recording -----------------------------------------------------------------------------------------------------------


def made_values(known: JsonObject, elsewhere: Iterable[str]) -> Made:
    """Find the values that results have brought into the run: seen there first, and hardly there by chance.

    What stands in the texts `elsewhere` (task, state, the tools' schemas), or in an earlier call's arguments, is not
    made. `known` is what `known_calls` returns.
    """
    found: Made = {}
    seen = [*elsewhere]
    turns = enumerate(known["turns"])
    sources = [(-1, f"turns[{n}].calls[{m}]", call) for n, turn in turns for m, call in enumerate(turn["calls"])]
    sources += [(number, f"calls[{number}]", call) for number, call in enumerate(known["calls"])]
    for number, path, call in sources:
        seen.append(join_texts(call.get("args")))
        places = [(place, value) for place, value in scalars(call["result"]) if _is_telling(value)]
        times = Counter((type(value), value) for _, value in places)
        for place, value in places if call["rung"] not in CONSTANT_RUNGS else ():
            key = (type(value), value)
            single = times[key] == 1 or _is_identifier(value)
            if single and key not in found and not any(str(value) in text for text in seen):
                found[key] = (number, f"{path}.result{''.join(map(_step, place))}")
        seen.append(join_texts(call["result"]))
    return found


def join_texts(value: Json) -> str:
    """Return all scalars and names of members in a value as one text, to search in."""
    return "\n".join(str(each) for _, each in scalars(value, keys=True))


def refer(reply: Json, made: Made, known: JsonObject) -> Json:
    """Return a reply with references in place of made values, and what else looks like one escaped.

    A scalar is replaced as a whole, an identifier also within a text. `fill` gives back the same reply: where it would
    not, nothing is replaced. `known` is what `known_calls` returned at the time of the reply.
    """
    at = {key: path for key, (number, path) in made.items() if number < len(known["calls"])}
    inside = {str(value): path for (_, value), path in at.items() if _is_identifier(value)}

    def refer_to(text: Json) -> Json:
        path: str | bool | None
        if not isinstance(text, str):
            path = at.get((type(text), text)) if isinstance(text, int | float) else None
            return f"{{{{ {path} }}}}" if path else text
        if path := at.get((str, text)) or (text in inside and f"{inside[text]} | string"):
            return f"{{{{ {path} }}}}"
        values = sorted((value for value in inside if value in text), key=len, reverse=True)
        if not values:
            return escape(text)
        pieces = re.split(rf"(?<!\w)({'|'.join(map(re.escape, values))})(?!\w)", text)
        pieces[::2] = map(escape, pieces[::2])
        pieces[1::2] = [f"{{{{ {inside[value]} }}}}" for value in pieces[1::2]]
        return "".join(pieces)

    referred = map_scalars(reply, refer_to, keys=True)
    try:
        if _filled(referred, "", lambda: known) == reply:
            return referred
    except EvaluationFailed:
        pass
    return map_texts(reply, escape, keys=True)


def escape(text: str) -> str:
    """Return a text that is read as it is where references are filled in."""
    return text.replace("{{", ESCAPED)


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _NAME.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"


def _is_telling(value: Json) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    return len(value) > 2 if isinstance(value, str) else abs(value) > 99 or value != int(value)


def _is_identifier(value: Json) -> bool:
    """Return True for what is an identifier wherever it stands: of four characters and more, with a digit."""
    if isinstance(value, str):
        return len(value) > 3 and any(map(str.isdigit, value)) and not any(map(str.isspace, value))
    return isinstance(value, int) and abs(value) > 999
