"""The ladder: the first rung that fits answers, says so, and what it invents of a read is remembered."""

import pytest

from gecko_graph.context import LADDER
from gecko_graph.contracts.derived import DerivedContract
from gecko_graph.tools.spec import ToolExample
from gecko_graph.values.notes import notes_of
from gecko_graph.world.commit import commit
from gecko_graph.world.ladder import climb
from tests.doubts import texts

RESULT = {
    "type": "object",
    "properties": {"rate": {"type": "number"}},
    "required": ["rate"],
    "additionalProperties": False,
}
ANSWER = {"rate": 1.25}
CHANGE = [{"op": "add", "path": "/rate", "value": 1}]


def everything(**less):
    """A read that every rung could answer."""
    return {
        "effect": "read",
        "result": RESULT,
        "opened": True,
        "real": lambda: {"rate": 1.0},
        "contract": {"returns": {"rate": "{{ 2.0 }}"}},
        "simulate": lambda state: {"rate": 3.0},
        "derived": DerivedContract({"evidence": {"status": "derived"}, "returns": {"rate": "{{ 4.0 }}"}}, "t"),
        "examples": (ToolExample({}, {"rate": 5.0}),),
        "has_simulator": True,
    } | less


@pytest.mark.parametrize("rung", LADDER)
def test_the_best_rung_of_the_ladder_answers_and_says_so(question, told, rung):
    asked = question(**everything(), ladder=LADDER[LADDER.index(rung) :])
    replies = [{"status": "ok", "result": {"rate": 6.0}}] if rung == "model" else []
    outcome = told(climb(asked), replies).value
    assert outcome["rung"] == rung
    assert outcome["simulated"] == (rung != "real")
    assert outcome["passed"] == []
    if rung != "schema":
        assert outcome["result"] == {"rate": float(LADDER.index(rung) + 1)}
    outcome = told(climb(question(ladder=("python", "example")))).value  # none of them answers
    assert (outcome["status"], outcome["rung"], outcome["patch"]) == ("error", "none", [])
    assert len(outcome["passed"]) == 2


@pytest.mark.parametrize("wrong", [{"rate": "high"}, {}, "1.25", None])
@pytest.mark.parametrize("by", ["contract", "python"])
def test_a_written_result_that_breaks_the_documented_schema_is_kept_and_marked(question, told, wrong, by):
    written = everything(simulate=lambda state: wrong, contract={"returns": wrong}, opened=False, has_simulator=False)
    outcome = told(climb(question(**written, ladder=("real", by, "schema")))).value
    assert (outcome["status"], outcome["rung"], outcome["result"]) == ("ok", by, wrong)
    (mark,) = texts(outcome, "undocumented")
    assert mark.startswith("the result breaks its schema: ")
    assert not notes_of(outcome, "unclear")  # that is a condition which cannot be evaluated


REFUSING = {
    "requires": [{"check": "False", "error": {"code": 7}, "effects": [{"op": "add", "path": ["x"], "value": 1}]}]
}


@pytest.mark.parametrize("ladder", [(rung,) for rung in LADDER])
def test_a_broken_precondition_is_the_tool_s_error_whichever_rung_would_answer(question, told, ladder):
    ran = []
    asked = question(**everything(contract=REFUSING, real=lambda: ran.append(1)), ladder=ladder)
    outcome = told(climb(asked)).value
    assert (outcome["status"], outcome["result"], outcome["rung"]) == ("error", {"code": 7}, "contract")
    assert outcome["patch"] == [{"op": "add", "path": "/x", "value": 1}]
    assert ran == []


def test_a_contract_that_explodes_ends_in_time_and_is_an_error(question, told):
    bomb = {"returns": "{{ len('x'.join(str(one) for one in range(100000))) * 10 }}" * 40}
    outcome = told(climb(question(**everything(contract=bomb, opened=False)))).value
    assert (outcome["rung"], outcome["status"], outcome["category"]) == ("contract", "error", "state_dependency")
    assert "takes longer" in texts(outcome, "unclear")[0] or "builds more" in texts(outcome, "unclear")[0]


# supposed facts


def climbed(asked, told, *replies):
    """The outcome and the facts of a call that is answered and committed."""
    return commit(asked, told(climb(asked), replies).value)


def supposing(**more):
    return {"effect": "read", "result": RESULT, "has_simulator": True, "args": {"currency": "EUR"}} | more


def test_what_a_model_supposed_of_a_read_is_remembered_for_its_arguments_and_state(question, told):
    first = climbed(question(**supposing()), told, {"status": "ok", "result": ANSWER})
    ((key, fact),) = first.facts.items()
    assert fact["result"] == ANSWER
    again = climbed(question(**supposing(facts=first.facts)), told)
    assert again.outcome["result"] == ANSWER
    assert again.outcome["rung"] == "model"
    assert again.facts == {}
    assert "EUR" in key
    for other in ({"args": {"currency": "USD"}}, {"given": {"count": 1}}):
        asked = question(**supposing(facts=first.facts) | other)
        outcome, (ask,) = told(climb(asked), [{"status": "ok", "result": {"rate": 2}}])
        assert outcome["result"] == {"rate": 2}
        assert '"rate": 1.25' in ask.variables["facts"]
    write = question(**supposing(effect="write"))  # writes and answers by rule suppose nothing
    assert climbed(write, told, {"status": "ok", "result": ANSWER, "patch": CHANGE}).facts == {}
    assert climbed(question(**everything()), told).facts == {}


@pytest.mark.parametrize(
    ("reply", "known"),
    [
        ({"status": "ok", "result": ANSWER, "patch": []}, True),
        ({"status": "ok", "result": ANSWER, "patch": CHANGE}, False),
        ({"status": "error", "result": "closed"}, False),
    ],
)
def test_what_a_tool_of_unknown_effect_found_answers_an_equal_call_if_it_changed_nothing(question, told, reply, known):
    asked = question(**supposing(effect=None))
    outcome, (ask,) = told(climb(asked), [{**reply, "may_refuse": "must a desk be open?"}])
    facts = commit(asked, outcome).facts
    assert '"effect": "unknown"' in ask.variables["tool"]
    assert [fact["result"] for fact in facts.values()] == ([ANSWER] if known else [])
    again, asks = told(climb(question(**supposing(effect=None, facts=facts))), [] if known else [reply])
    assert (len(asks), again["status"]) == (0 if known else 1, reply["status"])
    assert notes_of(again, "may_refuse") == notes_of(outcome, "may_refuse") or not known, "the doubt is no smaller"
    changed = question(**supposing(effect=None, facts=facts), given={"count": 1})
    _, (ask,) = told(climb(changed), [reply])
    assert ('"rate": 1.25' in ask.variables["facts"]) is known
    told(climb(question(**supposing(effect="write", facts=facts))), [{**reply, "patch": CHANGE}])  # acts each time
