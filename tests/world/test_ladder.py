"""The ladder: the first rung that fits answers, says so, and what it invents of a read is remembered."""

from __future__ import annotations

import pytest

from gecko_graph.context import LADDER
from gecko_graph.models.ask import Ask, Reply, Work
from gecko_graph.tools.spec import ToolExample
from gecko_graph.world.commit import commit
from gecko_graph.world.ladder import climb, run_concurrently

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
        "examples": (ToolExample({}, {"rate": 4.0}),),
        "has_simulator": True,
    } | less


@pytest.mark.parametrize("rung", LADDER)
def test_the_best_rung_of_the_ladder_answers_and_says_so(question, told, rung):
    asked = question(**everything(), ladder=LADDER[LADDER.index(rung) :])
    replies = [{"status": "ok", "result": {"rate": 5.0}}] if rung == "model" else []
    outcome = told(climb(asked), replies).value
    assert outcome["rung"] == rung
    assert outcome["simulated"] == (rung != "real")
    assert outcome["passed"] == []
    if rung != "schema":
        assert outcome["result"] == {"rate": float(LADDER.index(rung) + 1)}


def test_rungs_that_pass_say_why(question, told):
    asked = question(effect="read", result=RESULT, has_simulator=True)
    outcome = told(climb(asked), [Reply(None, "the server is down")]).value
    assert outcome["rung"] == "schema"
    assert [each["rung"] for each in outcome["passed"]] == ["real", "contract", "python", "example", "model"]
    assert "the server is down" in outcome["passed"][-1]["reason"]


@pytest.mark.parametrize("wrong", [{"rate": "high"}, {}, "1.25", None])
@pytest.mark.parametrize("by", ["contract", "python"])
def test_a_written_result_that_breaks_the_documented_schema_is_kept_and_marked(question, told, wrong, by):
    written = everything(simulate=lambda state: wrong, contract={"returns": wrong}, opened=False, has_simulator=False)
    outcome = told(climb(question(**written, ladder=("real", by, "schema")))).value
    assert (outcome["status"], outcome["rung"], outcome["result"]) == ("ok", by, wrong)
    (mark,) = outcome["undocumented"]
    assert mark.startswith("the result breaks its schema: ")
    assert "unclear" not in outcome  # that is a condition which cannot be evaluated


@pytest.mark.parametrize("wrong", [{"rate": float("nan")}, {"rate": float("inf")}])
def test_a_result_that_is_not_json_never_leaves_the_ladder(question, told, wrong):
    asked = question(
        **everything(simulate=lambda state: wrong, contract=None, opened=False, has_simulator=False),
        ladder=("real", "python", "schema"),
    )
    outcome = told(climb(asked)).value
    assert outcome["rung"] == "schema"
    assert isinstance(outcome["result"]["rate"], int | float)
    assert [each["rung"] for each in outcome["passed"]] == ["real", "python"]


def test_an_error_has_a_form_of_its_own(question, told):
    def fails(state):
        raise ValueError("unknown currency")

    outcome = told(climb(question(**everything(simulate=fails), ladder=("python",)))).value
    assert (outcome["status"], outcome["result"]) == ("error", "ValueError: unknown currency")


def test_where_no_rung_answers_the_call_is_an_error(question, told):
    outcome = told(climb(question(ladder=("python", "example")))).value
    assert (outcome["status"], outcome["rung"], outcome["patch"]) == ("error", "none", [])
    assert len(outcome["passed"]) == 2


REFUSING = {
    "requires": [{"check": "false", "error": {"code": 7}, "effects": [{"op": "add", "path": ["x"], "value": 1}]}]
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
    bomb = {"returns": "{{ range(100000) | map('string') | join('x') | length * 10 }}" * 40}
    outcome = told(climb(question(**everything(contract=bomb, opened=False)))).value
    assert (outcome["rung"], outcome["status"], outcome["category"]) == ("contract", "error", "state_dependency")
    assert "takes longer" in outcome["unclear"][0] or "builds more" in outcome["unclear"][0]


# supposed facts


def climbed(asked, told, *replies):
    """The outcome and the facts of a call that is answered and committed."""
    return commit(asked, told(climb(asked), replies).value)


def supposing(**more):
    return {"effect": "read", "result": RESULT, "has_simulator": True, "args": {"currency": "EUR"}} | more


def test_what_a_model_supposed_of_a_read_is_remembered(question, told):
    first = climbed(question(**supposing()), told, {"status": "ok", "result": ANSWER})
    ((key, fact),) = first.facts.items()
    assert fact["result"] == ANSWER
    again = climbed(question(**supposing(facts=first.facts)), told)
    assert again.outcome["result"] == ANSWER
    assert again.outcome["rung"] == "model"
    assert again.facts == {}
    assert "EUR" in key


def test_other_arguments_and_another_state_are_asked_anew_with_the_facts_in_the_prompt(question, told):
    facts = climbed(question(**supposing()), told, {"status": "ok", "result": ANSWER}).facts
    for other in ({"args": {"currency": "USD"}}, {"given": {"count": 1}}):
        outcome, (ask,) = told(
            climb(question(**supposing(facts=facts) | other)), [{"status": "ok", "result": {"rate": 2}}]
        )
        assert outcome["result"] == {"rate": 2}
        assert '"rate": 1.25' in ask.variables["facts"]


def test_a_supposed_error_is_a_fact_too(question, told):
    facts = climbed(question(**supposing()), told, {"status": "error", "result": "closed"}).facts
    outcome = told(climb(question(**supposing(facts=facts)))).value
    assert (outcome["status"], outcome["result"]) == ("error", "closed")


def test_writes_and_answers_by_rule_suppose_nothing(question, told):
    write = question(**supposing(effect="write"))
    assert climbed(write, told, {"status": "ok", "result": ANSWER, "patch": CHANGE}).facts == {}
    assert climbed(question(**everything()), told).facts == {}


def test_a_write_is_never_answered_from_a_fact(question, told):
    facts = climbed(question(**supposing()), told, {"status": "ok", "result": ANSWER}).facts
    write = question(**supposing(facts=facts, effect="write"))
    outcome = told(climb(write), [{"status": "ok", "result": {"rate": 3}, "patch": CHANGE}]).value
    assert outcome["result"] == {"rate": 3}


@pytest.mark.parametrize(
    ("reply", "known"),
    [
        ({"status": "ok", "result": ANSWER, "patch": []}, True),
        ({"status": "ok", "result": ANSWER, "patch": CHANGE}, False),
        ({"status": "error", "result": "closed"}, False),
    ],
)
def test_what_a_tool_of_unknown_effect_found_is_told_and_never_taken_for_an_answer(question, told, reply, known):
    asked = question(**supposing(effect=None))
    outcome, (ask,) = told(climb(asked), [reply])
    facts = commit(asked, outcome).facts
    assert '"effect": "unknown"' in ask.variables["tool"]
    assert [fact["result"] for fact in facts.values()] == ([ANSWER] if known else [])
    again, (ask,) = told(climb(question(**supposing(effect=None, facts=facts))), [reply])
    assert ('"rate": 1.25' in ask.variables["facts"]) is known
    assert again["status"] == reply["status"]


def test_a_better_rung_goes_before_a_fact(question, told):
    facts = climbed(question(**supposing()), told, {"status": "ok", "result": ANSWER}).facts
    asked = question(**supposing(facts=facts, simulate=lambda state, currency: {"rate": 9}))
    assert told(climb(asked)).value["rung"] == "python"


# several at once


def rounds(generator, answer):
    """Drive `together` and collect what was asked in each round."""
    asked, sent = [], None
    while True:
        try:
            requests = generator.send(sent)
        except StopIteration as done:
            return done.value, asked
        asked.append(requests)
        sent = [answer(request) for request in requests]


def test_climbs_ask_together_and_get_their_own_answers(question):
    def answer(request):
        if isinstance(request, Work):
            return Reply(None, "did not answer", late=True)
        wrong = request.variables["problems"] == "" and "USD" in request.variables["call"]
        value = "much" if wrong else float(request.where.question)
        return Reply(request.reply(status="ok", result={"rate": value}), None)

    climbs = [
        climb(question(**supposing(args={"currency": "EUR"}))),
        climb(question(**supposing(args={"currency": "USD"}))),
        climb(question(effect="read", contract={"returns": 1})),
        climb(question(**supposing(args={"currency": "GBP"}, simulate=print))),
    ]
    outcomes, asked = rounds(run_concurrently(climbs, asked=10), answer)
    assert [each["rung"] for each in outcomes] == ["model", "model", "contract", "model"]
    assert [[type(request) for request in each] for each in asked] == [[Ask, Ask, Work], [Ask, Ask]]
    questions = [request.where.question for each in asked for request in each if isinstance(request, Ask)]
    assert questions == [10, 11, 12, 13], "no two questions have one number"
    assert [each["result"] for each in outcomes] == [{"rate": 10.0}, {"rate": 12.0}, 1, {"rate": 13.0}]


def test_nothing_to_climb_asks_nothing():
    assert rounds(run_concurrently([]), None) == ([], [])
