"""The risk of a write, judged by its predicted effect before a person is asked; the verdict is kept with the plan."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage

from ..context import GeckoContext
from ..models.ask import Ask, QuestionId, Reply
from ..models.formatting import cut, format_json, format_policy, text_of
from ..models.roles import RiskReply
from ..state import JsonObject, Origins, Step
from ..values.digest import digest
from ..values.places import bare
from ..world.records import Preview, ReviewWord, Risk
from ..world.turn import human_turns
from .description import describe_calls, describe_effects


def judge_risks(
    preview: Preview,
    state: JsonObject,
    messages: Sequence[AnyMessage],
    context: GeckoContext,
    *,
    origins: Origins,
    done: Sequence[Step] = (),
    known: Mapping[str, Risk],
) -> Generator[list[Ask], list[Reply], dict[str, Risk]]:
    """Return the risk of each unjudged call of a preview, by call id; "ask" if the model fails.

    The same evidence is judged once: `known` contains verdicts by its digest.
    """
    budget, ids = context.view_chars, preview.get("unjudged", ())
    data = describe_calls(preview, preview["calls"], state, done).data if ids else {}
    asks: dict[str, Ask] = {}
    for planned in (each for each in preview["calls"] if each["call"]["id"] in ids):
        call = planned["call"]
        known_of = data[call["id"]]
        rests = [*describe_origins(origins.get(call["id"], {})), *known_of["notes"]]
        shown = {
            "task": cut("\n".join(text_of(each) for each in messages if isinstance(each, HumanMessage)), budget=budget),
            "policy": format_policy(messages, budget=budget // 2),
            "call": format_json({"tool": call["name"], "args": call["args"]}, budget=budget),
            "effect": "\n".join(describe_effects(known_of, planned)),
            "undo": "\n".join(known_of["undo"]),
            "origins": cut("\n".join(rests), budget=budget),
        }
        where = QuestionId(turn=human_turns(messages) - 1, question=len(known) + len(asks))
        asks[call["id"]] = Ask("risk", shown, RiskReply, where, band=context.band)
    keys = {id_: digest([*ask.variables.items()]) for id_, ask in asks.items()}
    open_ = {key: asks[id_] for id_, key in keys.items() if key not in known}
    replies: list[Reply] = (yield [*open_.values()]) if open_ else []
    found = {**known, **{key: read_risk(key, reply) for key, reply in zip(open_, replies, strict=True)}}
    return {id_: found[key] for id_, key in keys.items()}


def read_risk(key: str, reply: Reply) -> Risk:
    """Return the decision on a call by a reply; without a usable reply a person is asked."""
    given = reply.value
    if not isinstance(given, RiskReply):
        return {"key": key, "word": "ask", "reason": f"its risk was not judged: {reply.failure}"}
    word: ReviewWord = "ask" if given.unsure else "refuse" if given.risky else "allow"
    why = given.reason if given.p is None else f"p {given.p:.2f}"
    reason = f"{'its risk is unsure' if given.unsure else 'it is judged as risky'}: {why}".removesuffix(": ")
    risk: Risk = {"key": key, "word": word, "reason": "" if word == "allow" else reason}
    return risk if given.p is None else {**risk, "p": given.p}


def describe_origins(origins: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    for path, marks in origins.items():
        for mark in marks[:1]:
            words = {"planner": "nothing real gives it", "result": "from the result of a call"}
            source = words.get(mark["from"], f"from the {mark['from']}")
            yield f"- {bare(path)}: {mark['kind']}, {source}" + (f" ({mark['shown']})" if "shown" in mark else "")
