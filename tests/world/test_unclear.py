"""Conditions that cannot be evaluated: the others are still checked, and none fails open in silence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.world.ladder import climb
from gecko_graph.world.rung import gate
from tests.doubts import texts
from tests.world.conftest import rung_request

MISSPELT = {"check": "state.desk.open == True", "error": "the desk is closed"}
ALWAYS = {"check": "state.count == 0", "error": "something is counted"}
WHY = "requires[0].check: state.desk is undefined, in `state.desk.open == True`"


def guarded(*requires, **more):
    return {"requires": list(requires), **more}


@pytest.mark.parametrize(
    ("policy", "simulated", "rung", "status"),
    [
        (None, False, "contract", "error"),
        ("pass", False, "contract", "ok"),
        ("refuse", False, "contract", "error"),
        (None, True, "python", "ok"),
        ("pass", True, "python", "ok"),
        ("refuse", True, "contract", "error"),
    ],
)
def test_who_answers_decides_what_becomes_of_an_unclear_call(question, told, policy, simulated, rung, status):
    contract = guarded(MISSPELT, ALWAYS) if simulated else guarded(MISSPELT, ALWAYS, returns="done", effects=[])
    outcome = told(climb(question(contract=contract, simulate=lambda state: "done", unclear=policy))).value
    assert (outcome["rung"], outcome["status"]) == (rung, status)
    assert texts(outcome, "unclear") == [WHY]
    if status == "error":
        assert outcome["result"] == f"refused: a precondition could not be evaluated: {WHY}"
        assert outcome["patch"] == []


def test_an_error_that_cannot_be_filled_in_still_refuses(question, told):
    effects = [{"op": "remove", "path": ["nowhere"]}]
    contract = guarded({"check": "False", "error": "{{ 1 / state.count }}", "effects": effects}, returns="done")
    outcome = told(climb(question(contract=contract, unclear="pass"))).value
    assert (outcome["status"], outcome["result"]) == ("error", "a condition of this tool does not hold")
    assert outcome["patch"] == []
    assert len(texts(outcome, "unclear")) == 1


CLAUSES = st.lists(st.sampled_from(["holds", "breaks", "unclear"]), max_size=6)
CHECKS = {"holds": "True", "breaks": "False", "unclear": "1 / 0 > 0"}


@given(CLAUSES, st.sampled_from([None, "pass", "refuse"]))
def test_every_clause_is_checked_by_itself(kinds, policy):
    requires = [{"check": CHECKS[kind], "error": f"clause {number}"} for number, kind in enumerate(kinds)]
    asked, refusal = gate(rung_request(contract={"requires": requires}, state={}, unclear=policy))
    if "breaks" in kinds:
        first = kinds.index("breaks")
        assert refusal.result == f"clause {first}"
        assert len(asked.unclear) == kinds[:first].count("unclear")
    else:
        assert len(asked.unclear) == kinds.count("unclear")
        assert (refusal is not None) == (policy == "refuse" and "unclear" in kinds)
