"""What is sent is what was shown, with its holes filled by the exact real values; else it is a departure."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from gecko_graph.real.bindings import PlanResults, find_difference, resolve, template
from gecko_graph.real.description import describe_dependencies
from gecko_graph.values.notes import notes_of
from gecko_graph.values.places import as_text, scalars, value_at
from gecko_graph.world.given import Sources
from gecko_graph.world.provenance import trace
from tests.real.test_bindings import ANY, bound, planned, step, toolkit

TOOLS = toolkit({"make": "write", "find": "read"})
NAMED = st.sampled_from(["id", "order_id", "code"])
KEYS = NAMED | st.sampled_from(["total", "name", "status", "quantity", "note"])
IDS = st.sampled_from(["O-1", "O-12", "PN-SIM-1", "sim-5001", "A7", "tulip", "[1]", 7, 12, 7781])
AMOUNTS = st.sampled_from([49.0, 49.5, 1250, 3, "49.00 EUR", 0.2])
NAMES = st.sampled_from(["Lena Brandt", "confirmed", "Köln", "東京", "2024-05-15", "line\nbreak", '"quoted" `text`'])
VALUES = IDS | AMOUNTS | NAMES
REAL = VALUES | st.none() | st.booleans() | st.text(max_size=8) | st.integers() | st.just({"id": 1}) | st.just(["O-1"])
WORDS = st.sampled_from(
    ["Your order", "is on its way", "of", "euros", "code", "Dear", "[1]", "[[2]]", "``", '"', "#", "/"]
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[dict], dict[str, Any]]:
    """Draw a plan of simulated calls, whose last one holds values of the results before, and real results for it."""
    steps: list[dict] = []
    real: dict[str, Any] = {}
    for number in range(1, draw(st.integers(1, 3)) + 1):
        result = {draw(NAMED): draw(IDS), **draw(st.dictionaries(KEYS, VALUES, max_size=2))}
        mostly = st.sampled_from([True, True, False])
        real[f"c{number}"] = (
            {
                key: value if key not in ("id", "order_id", "code") and draw(mostly) else draw(REAL | IDS)
                for key, value in result.items()
            }
            if draw(st.integers(0, 9))
            else draw(REAL)
        )
        name = draw(st.sampled_from(["make", "make", "make", "find"]))
        rung = draw(st.sampled_from(["contract", "model", "python"]))
        known = [each for one in steps for _, each in scalars(one["outcome"]["result"])]
        args = draw(st.dictionaries(KEYS, st.sampled_from(known), max_size=1)) if known else {}
        steps.append(step(number, name, args, result, rung=rung))
    known = [each for one in steps for _, each in scalars(one["outcome"]["result"])]
    parts = st.lists(st.sampled_from(known).map(str) | WORDS, min_size=1, max_size=6)
    texts = st.tuples(parts, st.sampled_from([" ", ": ", ", "])).map(lambda each: each[1].join(each[0]))
    args = {"text": draw(texts), **draw(st.dictionaries(KEYS, st.sampled_from(known) | texts, max_size=2))}
    return [*steps, step(len(steps) + 1, "use", args, {})], real


def shown_of(call: dict) -> dict[str, str]:
    """Return what is shown of each argument that has holes."""
    lines = [*describe_dependencies(call, {})]
    real = [line for line in lines if " in the result of " in line and "holds only" not in line]
    return {whole(line[2:].partition(": ")[0]): line for line in real if "not certain" not in line}


def whole(path: str) -> str:
    """Return the JSON path that is shown without its beginning."""
    return path if path.startswith("/") else f"/{path}"


def expected(line: str, args: dict, real: dict[str, Any]) -> Any:
    """Return what a person who reads a line of the question expects to be sent, with these real results."""
    argument, _, said = line[2:].partition(": ")
    place = r"the real (\S+) in the result of (\w+), predicted "
    if told := re.match(rf"its value is {place}", said):
        return value_at(real[told[2]], whole(told[1]))
    text, end = json.JSONDecoder().raw_decode(said)
    stands = dict(re.findall(r"(\[+\d+\]+) is the real (\S+ in the result of \w+)", said[end:]))
    marks = re.compile("|".join(map(re.escape, stands)))

    def fill(match: re.Match[str]) -> str:
        path, _, call = stands[match[0]].partition(" in the result of ")
        return as_text(value_at(real[call], whole(path)))

    assert whole(argument) in {f"/{key}" for key in args}
    return marks.sub(fill, text)


@given(cases(), st.text(max_size=10))
def test_what_is_sent_is_what_was_shown_with_its_holes_filled(case: tuple[list[dict], dict], task: str) -> None:
    steps, real = case
    last, messages = steps[-1]["call"], [HumanMessage(task)]
    origins, notes = trace(steps, Sources(conversation=messages, state={}), lambda name: ANY)
    mine = {each["where"] for each in notes_of(notes, "made_up") if each["data"]["call"] == last["id"]}
    rests = PlanResults(steps, TOOLS, messages, {}).find(last, origins, mine)
    call = {**planned(last["args"], rests), "predicted": {}}
    reads = {each for ids in rests.reads.values() for each in ids}
    simulated = {each["call"]["id"]: each["outcome"]["result"] for each in steps}
    sent, departure = resolve(call, real)
    if departure or any(real[each] != simulated[each] for each in reads):
        return  # nothing is sent: what is left is rehearsed again
    assert find_difference(call, sent["call"], real) is None
    shown, args = shown_of(call), sent["call"]["args"]
    assert set(shown) == {argument for argument, _ in template(call)}
    for key, value in last["args"].items():
        line = shown.get(f"/{key}")
        assert args[key] == (expected(line, last["args"], real) if line else value)
        assert type(args[key]) is type(expected(line, last["args"], real) if line else value)
        if isinstance(value, str):
            assert not contradicted(literals(call, key, value), steps, real, task)


def literals(call: dict, key: str, value: str) -> list[str]:
    """Return what of an argument's text is no hole."""
    parts = dict(template(call)).get(f"/{key}", [value])
    return [each for each in parts if isinstance(each, str)]


def contradicted(texts: list[str], steps: list[dict], real: dict, task: str) -> list:
    """Return the predicted values in what is sent as it was shown that reality contradicts, and nothing else holds."""
    held = [task]
    wrong = []
    for one in steps[:-1]:
        held += [str(each) for _, each in scalars(one["call"]["args"])]
        seen = [*held]
        for key, old in one["outcome"]["result"].items():
            word = as_text(old).removesuffix(".0")
            found = re.compile(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])")
            new = value_at(real[one["call"]["id"]], f"/{key}")
            letters = "".join(filter(str.isalnum, word)).casefold()
            is_held = any(letters in "".join(filter(str.isalnum, each)).casefold() for each in seen)
            if new != old and any(map(found.search, texts)) and not is_held:
                wrong.append((key, old, new))
            held.append(word)  # the first result that holds a value is its source
    return wrong


@pytest.mark.parametrize(
    "args",
    [
        {"id": "ord-2", "text": "Order ord-1"},
        {"id": "ord-1", "text": "Order ord-2"},
        {"id": "ord-1", "text": "order ord-1"},
        {"id": "ord-1", "text": "Order ord-1", "more": 1},
    ],
)
def test_a_call_that_differs_anywhere_but_in_its_holes_is_not_sent(args: dict) -> None:
    was = {"id": "ord-7781", "text": "Order ord-7781"}
    call = planned(was, bound({"id": "ord-7781"}, was))
    sent, _ = resolve(call, {"c1": {"id": "ord-1"}})
    assert find_difference(call, sent["call"], {"c1": {"id": "ord-1"}}) is None
    sent["call"]["args"] = args
    assert find_difference(call, sent["call"], {"c1": {"id": "ord-1"}})["code"] == "binding"
