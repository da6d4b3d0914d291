"""Claims as milestones: held or broken by rule, decided by the role, unknown without one."""

from __future__ import annotations

import pytest

from gecko_graph import GeckoError, Models, Scenario
from gecko_graph.conversation.milestones.entry import read_entry
from gecko_graph.conversation.milestones.format import MilestoneEntry, SourceEntry, find_values
from gecko_graph.scenario.cases.result import run_case
from gecko_graph.testing import recorded, scripted

TOOLS = [{"name": "set_wifi", "parameters": {"type": "object", "properties": {"on": {"type": "boolean"}}}}]


def scenario(*claims, **more):
    return Scenario.from_dict(
        {
            "version": 1,
            "name": "wifi",
            "tools": TOOLS,
            "user": {"goal": "Have the wifi turned off.", "opening": "Turn the wifi off.", "script": [{"end": True}]},
            "milestones": [{"id": "told", "message": {"claims": list(claims)}, **more}],
        }
    )


OFF = {"says": "the wifi is off"}
VAGUE = "The router's radio has gone quiet."


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("I have turned the wifi off.", "passed"),
        ("The wifi is still on.", "failed"),
        (VAGUE, "unknown"),
        ("", "failed"),
    ],
)
def test_an_answer_is_judged_by_rule(answer, status):
    found = run_case(scenario(OFF), scripted({"say": answer}))
    assert (found.status, found.passed) == (status, status == "passed")


def test_a_broken_claim_says_which_sentence_it_was_compared_with():
    (told,) = run_case(scenario(OFF), scripted({"say": "Hello. The wifi is still on."})).milestones
    (missed,) = told["missed"]
    assert (missed["part"], missed["place"], missed["wanted"]) == ("claim", "says", OFF["says"])
    assert (missed["found"], missed.get("unsure")) == ("The wifi is still on.", None)


@pytest.mark.parametrize(("met", "status"), [(True, "passed"), (False, "failed")])
def test_the_role_decides_what_the_rule_leaves_open_and_is_quoted(met, status):
    reply = {"sentence": VAGUE, "reason": "It says so in other words.", "met": met}
    judge = recorded(claim_judge=[reply])
    found = run_case(scenario(OFF), scripted({"say": VAGUE}), model=Models(claim_judge=judge))
    assert found.status == status
    verdict = {"claim": OFF, "verdict": "holds" if met else "broken", "sentence": VAGUE, "reason": reply["reason"]}
    assert found.record["score"]["claims"] == [verdict]
    assert found.record["score"]["usage"]["claim_judge"]["calls"] == 1


def test_the_role_is_not_asked_what_the_rule_has_decided():
    found = run_case(
        scenario(OFF), scripted({"say": "The wifi is off."}), model=Models(claim_judge=recorded(claim_judge=[]))
    )
    assert (found.status, "claims" in found.record["score"]) == ("passed", False)


def test_a_reply_that_cannot_be_read_leaves_the_claim_unknown():
    judge = recorded(claim_judge=[{"nothing": 1}] * 5)
    found = run_case(scenario(OFF), scripted({"say": VAGUE}), model=Models(claim_judge=judge))
    assert found.status == "unknown"


def test_one_unsure_claim_among_what_is_right_never_passes():
    found = run_case(scenario(OFF, threshold=0.2), scripted({"say": VAGUE}))
    assert found.status == "unknown"


def test_a_failure_elsewhere_is_a_failure():
    both = scenario(OFF, {"says": "the router was restarted at 15:00"})
    assert run_case(both, scripted({"say": f"{VAGUE} I restarted the router at 16:00."})).status == "failed"


@pytest.mark.parametrize("claims", [[], [{}], [{"says": "a", "denies": "b"}], [{"say": "a"}], [{"says": "!"}]])
def test_a_claim_is_exactly_one_sentence(claims):
    with pytest.raises(GeckoError, match="claims"):
        read_entry(MilestoneEntry, {"message": {"claims": claims}}, where="milestones[0]")


def test_an_answer_may_show_a_number_of_a_result_with_up_to_three_decimals():
    message = {"calls": [{"name": "rate", "result": {"rate": 1.23456}}]}
    source = SourceEntry(milestone="m", call="rate", path=["rate"], name="x")
    found = find_values(message, source=source, rounded=True)
    assert [each["x"] for each in found] == [1.23456, "1", "1.2", "1.23", "1.235"]
