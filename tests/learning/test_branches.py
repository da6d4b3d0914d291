"""What a branch gives: of what was seen alike the likelier, and nothing where the rows have not shown it."""

from typing import Any, Literal

import pytest

from gecko_graph import Tool, Toolkit
from gecko_graph.errors import NotKnown
from gecko_graph.learning.changes import Program
from gecko_graph.learning.explain import ValueTemplate, fit_text
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.learning.miner import _returns
from gecko_graph.learning.terms import Term
from gecko_graph.values.observation import Observation


def show(part: Literal["fuel", "oil", "doors"]) -> dict:
    """Show the `fuel`, the `oil` or the `doors`."""
    raise NotImplementedError


def lock(unlock: bool) -> dict:
    """Lock the car."""
    raise NotImplementedError


CAR = Toolkit.from_tools([Tool(show, effect="read"), Tool(lock, effect="write")])


def row(tool: str, args: dict, result: Any, before: dict, *change: dict) -> Observation:
    return Observation(tool, args, "ok", result, before, list(change), source="car")


def foreseen(tool: str, rows: list[Observation], args: dict, state: dict) -> Any:
    """Return what was learned of a call's result; None where nothing is known."""
    known = learn_contracts(CAR, rows).apply(CAR)[tool]
    call: Any = {"id": "1", "name": tool, "args": args}
    run = known.contract.open(args=args, parameters=known.parameters, state=state, call=call, now=None, seed=0)
    if run.refusal() or run.unknown or run.unclear:
        return None
    try:
        answer = run.answer()
    except NotKnown:
        return None
    return answer and answer.result


def test_words_that_tell_branches_apart_are_those_that_were_seen_and_terms_those_of_the_members_name():
    rows = [
        row("show", {"part": part}, {part: n}, {"fuel": n, "oil": n}) for n in range(20) for part in ("fuel", "oil")
    ]
    state = {"fuel": 3, "oil": 4}
    assert foreseen("show", rows, {"part": "fuel"}, state) == {"fuel": 3}
    assert foreseen("show", rows, {"part": "doors"}, state) is None
    rows = [row("show", {"part": "oil"}, {"left": n, "right": n}, {"left": n, "right": n}) for n in range(12)]
    assert foreseen("show", rows, {"part": "oil"}, {"left": 3, "right": 4}) == {"left": 3, "right": 4}
    term = Term("args.name", ["ann", "bob", ""], 1, "argument")  # a text has a hole also where a value was empty
    found = fit_text({0: "no 'ann'", 1: "no 'bob'", 2: "no ''"}, [term])
    assert found.template == "no '{{ args.name }}'"


def test_a_flag_that_was_always_the_same_is_a_form():
    put = {"op": "replace", "path": "/locked", "value": True}
    rows = [row("lock", {"unlock": False}, {"locked": True}, {"locked": False, "n": n}, put) for n in range(20)]
    assert foreseen("lock", rows, {"unlock": False}, {"locked": False, "n": 2}) == {"locked": True}
    assert foreseen("lock", rows, {"unlock": True}, {"locked": False, "n": 2}) is None


@pytest.mark.parametrize(("count", "effects"), [(9, None), (10, [])])
def test_that_few_calls_of_a_write_changed_nothing_is_no_news(count, effects):
    rows = [row("lock", {"unlock": n % 2 == 0}, {"locked": True}, {"locked": True, "n": n}) for n in range(count)]
    learned = learn_contracts(CAR, rows)
    assert learned.contracts["lock"].get("effects") == effects
    assert ("what it changes" in learned.unknown["lock"]) is (effects is None)


def test_odd_rows_that_a_condition_tells_apart_are_no_accident():
    """Three of a hundred are within the exceptions; all of them unlock, so of unlocking nothing is known."""
    put = {"op": "replace", "path": "/locked", "value": True}
    odd = [{"op": "add", "path": f"/{name}", "value": name} for name in ("a", "b", "c")]
    rows = [row("lock", {"unlock": False}, {"locked": True}, {"locked": False, "n": n}, put) for n in range(100)]
    rows += [row("lock", {"unlock": True}, {"locked": True}, {"locked": False, "n": 200 + n}, odd[n]) for n in range(3)]
    assert foreseen("lock", rows, {"unlock": False}, {"locked": False, "n": 2}) == {"locked": True}
    assert foreseen("lock", rows, {"unlock": True}, {"locked": False, "n": 2}) is None


def test_a_later_branch_is_not_taken_where_an_earlier_one_holds_and_is_not_known():
    cases = _returns([("args.a", Program(ValueTemplate(1, ("args.b",)), 1)), ("", Program(ValueTemplate(2), 2))], [])[
        "cases"
    ]
    assert [each.get("when") for each in cases] == ["args.a and args.b", "not (args.a)", None]
