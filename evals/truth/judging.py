"""What checklist, judge, validator and simulator are asked: recorded turns and questions, put again as they are now.

Tokens are characters by four. What a request of 1b17d493 held is read from the recorded one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from langchain_core.messages import HumanMessage

from gecko_graph import GeckoContext
from gecko_graph.models.focus import focus_words
from gecko_graph.models.formatting import format_policy, format_steps
from gecko_graph.models.prompts import Prompts, folder, variables_of
from gecko_graph.models.view import view_named
from gecko_graph.nodes.planner import is_spoken_of
from gecko_graph.retrieval.index import split_words
from gecko_graph.state import JsonObject
from gecko_graph.world.check import DIGEST_CHARS
from gecko_graph.world.known import find_unknown
from gecko_graph.world.rung import in_words
from gecko_graph.world.turn import states_of

from ..harness.figures import Table
from ..harness.options import find, read_jsonl
from ..harness.suite import Expectation
from ..suites.validation import Rules, read_rows
from .questions import TWINS, missed_twins, places_asked, read_block, read_questions, text_of_request

MOST_QUESTIONS = 20
WRONG_VALUES_FOUND = 1_398
"""Of BFCL's 2,118 answers with a wrong value those whose value 1b17d493 refused by rule, or asked about."""
MOST_GROWTH = 1.10
JUDGED_WRONG = (("multi_turn_base_114", 4), ("multi_turn_base_145", 4))
"""Attempts of arm `model` that were right and judged wrong, since the item named the sender."""
OUTCOME_ALONE = {
    "multi_turn_base_114": 'the message "NVDA and QUAS." was sent to USR007',
    "multi_turn_base_145": 'the message "Zeta Corp seems to have potential. What do you think of their recent financial'
    ' report?" is in the inbox of USR003',
}
"""Items as the checklist is told to write them now, in the place of those that were recorded."""

VIEW_CHARS = GeckoContext().view_chars
_FENCED = re.compile(r"\{\{ (\w+) \| fence\(\"(\w+)\"\) \}\}")
_WRONG = re.compile(r"Invalid value for parameter \\?'(\w+)\\?'")


class Part(NamedTuple):
    """One part of the suite `truth`: what it measures in the data's folder, and how that is told and what must hold."""

    name: str
    measure: Callable[[Path], JsonObject]
    tables: Callable[[JsonObject], Sequence[Table]]
    expectations: Callable[[JsonObject], Sequence[Expectation]] = lambda values: ()
    notes: Callable[[JsonObject], Sequence[str]] = lambda values: ()


def read(folder: Path, name: str) -> list[JsonObject]:
    """Return the rows of a recorded file. Raises EvalError if it is not there."""
    return list(read_jsonl(find(f"{name}.jsonl.gz", folder)))


# the validator


def measure_validator(folder: Path) -> JsonObject:
    """Put the recorded questions again, their wrong twins, and BFCL's answers with a wrong value."""
    questions = list(read_questions(read(folder, "live_replies_3")))
    left = [(each, asked) for each in questions if (asked := each.ask())]
    found, total = 0, 0
    for row in read_rows(folder, rules := Rules()):
        if row.is_semantic:
            total += 1
            wrong = {*_WRONG.findall(str(row.answer["official"]["error"]))}
            names = {re.split(r"[.\[]", each[2:])[0] for each in _asked_of(row)}
            found += bool(rules.against(row)) or not wrong.isdisjoint(names)
    return {
        "questions": len(questions),
        "left": [f"{each.number} {each.tool.name}: {', '.join(asked)}" for each, asked in left],
        "twins": len(TWINS),
        "missed": missed_twins(questions),
        "wrong values": total,
        "wrong values found": found,
    }


def _asked_of(row: Any) -> list[str]:
    calls = enumerate(row.answer["calls"])
    pending = [{"id": f"call-{number}", "name": each["name"], "args": each["arguments"]} for number, each in calls]
    text = "\n".join(each["content"] for each in row.task["question"] if each["role"] == "user")
    return places_asked({"pending": pending, "task": text, "number": 1, "turn": 0}, row.tools)


def tell_validator(values: JsonObject) -> list[Table]:
    """Return what is still asked."""
    table = Table("The validator's recorded questions, put again", ["what", "now", "of"])
    table.add("still asked", len(values["left"]), values["questions"])
    table.add("wrong twins refused or asked about", values["twins"] - len(values["missed"]), values["twins"])
    table.add("wrong values (BFCL) refused or asked about", values["wrong values found"], values["wrong values"])
    return [table]


def expect_validator(values: JsonObject) -> list[Expectation]:
    """Return what must hold of the questions."""
    return [
        Expectation(f"at most {MOST_QUESTIONS} questions are still asked", len(values["left"]) <= MOST_QUESTIONS),
        Expectation(f"no wrong twin is let through: {values['missed']}", not values["missed"]),
        Expectation(
            f"of BFCL's wrong values no fewer are found than at 1b17d493 ({WRONG_VALUES_FOUND})",
            values["wrong values found"] >= WRONG_VALUES_FOUND,
        ),
    ]


# repeated reads


def measure_repeated(folder: Path) -> JsonObject:
    """Find the simulator's questions about a call that an equal one had answered, as the question itself shows."""
    found = []
    for row in read(folder, "live_replies_3"):
        if row["role"] == "simulator":
            text = text_of_request(row)
            call = json.loads(read_block(text, "call"))
            lines = "\n".join(filter(None, (read_block(text, "facts"), read_block(text, "real")))).split("\n")
            facts = [json.loads(line) for line in lines if line.startswith('{"call"') and line.endswith("}")]
            for fact in (fact for fact in facts if fact["call"] == call):
                told = "asked: a change came between" if fact.get("before_a_change") else "answered by rule"
                found.append({"call": f"{call['name']}({json.dumps(call['args'])})", "now": told})
    return {"repeated": found}


def tell_repeated(values: JsonObject) -> list[Table]:
    """Return the calls that were asked again."""
    table = Table("Equal calls that the simulator was asked about again", ["call", "now"])
    for each in values["repeated"]:
        table.add(each["call"], each["now"])
    return [table]


# prompts


def measure_prompts(folder: Path) -> JsonObject:
    """Render the recorded requests as they would be now."""
    attempts = list(_attempts(read(folder, "live_turns")))
    sizes: dict[str, list[tuple[float, float]]] = {}
    widest = 0
    rows = read(folder, "live_replies_3")
    policies = (format_policy(each.state["conversation"], budget=DIGEST_CHARS) for each in read_questions(rows))
    for row in rows:
        if now := render_again(row, attempts, next(policies) if row["role"] == "validator" else ""):
            before = sum(len(str(each["content"])) for each in row["request"]["messages"])
            sizes.setdefault(row["role"], []).append((before / 4, len(now) / 4))
            widest = max(widest, len(read_block(now, "state")) if row["role"] == "judge" else 0)
    medians = {role: [median(one) for one in zip(*pairs, strict=True)] for role, pairs in sizes.items()}
    return {"medians": medians, "counts": {role: len(pairs) for role, pairs in sizes.items()}, "judge's state": widest}


def render_again(row: Mapping[str, Any], attempts: Sequence[JsonObject], policy: str = "") -> str:
    """Return a recorded request as its prompt writes it now; empty for a role that is not looked at.

    `policy` is the validator's, which was not told of any.
    """
    text, role = text_of_request(row), row["role"]
    if role == "planner":
        return _planner_again(row)
    if role not in ("checklist", "judge", "validator", "simulator"):
        return ""
    labels = dict(_FENCED.findall((folder() / f"{role}.md").read_text(encoding="utf-8")))
    given = {name: read_block(text, labels[name]) if name in labels else "" for name in variables_of(role)}
    given |= {"policy": policy} if policy else {}
    if role == "simulator":
        effect, asks = "Give status, result and patch." in text, "may_refuse:" in text
        tool = json.loads(given["tool"]) if given["tool"].startswith("{") else {}
        tool.pop("other writes", None)  # of no recorded tool the effect was declared
        shown = json.dumps(tool, ensure_ascii=False) if tool else given["tool"]
        given |= {"tool": shown, "wants": "effect" if effect else "response", "rules": "ask" if asks else ""}
    if role == "judge" and not (given := _judge_again(given, attempts)):
        return ""
    prompt = Prompts().render(role, given)
    return f"{prompt.system}\n\n{prompt.user}"


def _planner_again(row: Mapping[str, Any]) -> str:
    """Return a planner's recorded messages, of the gate's note what concerns the turn, in words."""
    text = "".join(str(each["content"]) for each in row["request"]["messages"])
    note = read_block(text, "gate")
    asked = [str(each["content"]) for each in row["request"]["messages"] if each["role"] == "user"][-1]
    words = {*split_words(asked.partition("(A note")[0])}
    kept = []
    for names, _, why in (line.partition(": ") for line in note.split("\n")):
        if some := [name for name in names.split(", ") if is_spoken_of(name, words)]:
            kept.append(f"{', '.join(some)}: {'; '.join(map(in_words, why.split('; ')))}")
    return text.replace(note, "\n".join(kept)) if note else text


def _attempts(turns: Sequence[JsonObject]) -> Iterator[JsonObject]:
    for turn in turns:
        for attempt in turn["rehearsal"]["attempts"]:
            kept = {key: turn[key] for key in ("task", "arm", "turn")}
            yield {**attempt, **kept, "message": turn["message"][1], "begun": turn["before"]}


def _judge_again(given: dict[str, str], attempts: Sequence[JsonObject]) -> dict[str, str]:
    """Return a judge's variables with the evidence as it is shown now; none where the attempt was not kept."""
    calls = re.findall(r"(?m)^\d+\. (\w+)\(", given["steps"])
    for each in attempts:
        same = given["task"] == each["message"] and given["answer"] == json.dumps(each["answer"], ensure_ascii=False)
        if same and calls == [step["call"]["name"] for step in each["steps"]]:
            return {
                **given,
                **evidence_of(each, [json.loads(line)["description"] for line in given["items"].split("\n")]),
            }
    return {}


def evidence_of(attempt: JsonObject, items: Sequence[str]) -> dict[str, str]:
    """Return the steps and the state as the judge is shown them."""
    before, after = states_of(attempt["begun"], attempt)  # type: ignore[arg-type]
    words, parts = focus_words([*items], attempt["message"]), (1,) if attempt["change"] else (4, 2, 1)
    unknown = find_unknown(attempt["steps"], state=before, supposed=(), messages=[HumanMessage(attempt["message"])])
    rooms = [VIEW_CHARS // part for part in parts]
    return {
        "steps": format_steps(attempt["steps"], budget=VIEW_CHARS, sources=True, unknown=unknown),
        "state": view_named(after, focus=words, named=focus_words([*items]), budgets=rooms),
    }


def tell_prompts(values: JsonObject) -> list[Table]:
    """Return the median tokens of each role's requests."""
    table = Table("Tokens of a request, median, by role", ["role", "requests", "1b17d493", "now", "growth, %"])
    for role, (before, now) in sorted(values["medians"].items()):
        table.add(role, values["counts"][role], round(before), round(now), f"{100 * (now / before - 1):+.1f}")
    return [table]


def expect_prompts(values: JsonObject) -> list[Expectation]:
    """Return what must hold of the prompts."""
    grown = [role for role, (before, now) in values["medians"].items() if now > MOST_GROWTH * before]
    return [
        Expectation(f"no role's median grows by more than 10 %: {grown}", not grown),
        Expectation("the judge's view of the state is within its budget", values["judge's state"] <= VIEW_CHARS),
    ]


# two attempts that were right and judged wrong


def measure_requests(folder: Path) -> JsonObject:
    """Render what checklist and judge are asked now about the attempts that were right and judged wrong."""
    replies, attempts = read(folder, "live_replies_3"), list(_attempts(read(folder, "live_turns")))
    told: JsonObject = {}
    for task, turn in JUDGED_WRONG:
        attempt = next(each for each in attempts if (each["task"], each["turn"], each["arm"]) == (task, turn, "model"))
        for role in ("checklist", "judge"):
            row = next(row for row in replies if row["role"] == role and _is_of(row, attempt))
            request = render_again(row, [attempt])
            told[f"{task}, turn {turn}: {role}"] = _with_item(request, task) if role == "judge" else request
    return {"requests": told}


def _is_of(row: Mapping[str, Any], attempt: JsonObject) -> bool:
    text = text_of_request(row)
    return read_block(text, "task") == attempt["message"] and (
        row["role"] != "judge" or read_block(text, "answer") == json.dumps(attempt["answer"], ensure_ascii=False)
    )


def _with_item(request: str, task: str) -> str:
    items = read_block(request, "items")
    return request.replace(items, json.dumps({"id": "item-1", "description": OUTCOME_ALONE[task]}))


def tell_requests(values: JsonObject) -> list[Table]:
    """Return how long the requests are."""
    table = Table("Requests about attempts that were right and judged wrong", ["request", "tokens"])
    for name, text in values["requests"].items():
        table.add(name, round(len(text) / 4))
    return [table]


PARTS: Sequence[Part] = (
    Part("validator", measure_validator, tell_validator, expect_validator, lambda values: values["left"]),
    Part("repeated", measure_repeated, tell_repeated),
    Part("prompts", measure_prompts, tell_prompts, expect_prompts),
    Part(
        "requests",
        measure_requests,
        tell_requests,
        notes=lambda values: [f"{name}\n{text}" for name, text in values["requests"].items()],
    ),
)
