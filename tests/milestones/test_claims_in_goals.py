"""Claims as milestones: held or broken by rule, decided by the role, unknown without one."""

from __future__ import annotations

import json

import pytest
from pydantic import Field

from gecko_graph import GeckoError, Models, Scenario, create_conversation
from gecko_graph.conversation.milestones.entry import read_entry
from gecko_graph.conversation.milestones.format import MilestoneEntry, SourceEntry, find_values
from gecko_graph.conversation.verdicts import keep_verdicts
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.scenario.cases.run import run_case
from gecko_graph.testing import recorded, scripted

TOOLS = [{"name": "set_wifi", "parameters": {"type": "object", "properties": {"on": {"type": "boolean"}}}}]


class Hearing(RecordedModel):
    """A recorded model that keeps what it is shown."""

    heard: list = Field(default_factory=list)

    def _reply(self, messages, run_manager, kwargs):
        self.heard.append("\n".join(str(each.content) for each in messages))
        return super()._reply(messages, run_manager, kwargs)


def case(*claims, **more):
    user = {"goal": "Have the wifi turned off.", "opening": "Turn the wifi off.", "script": [{"end": True}]}
    told = {"id": "told", "message": {"claims": list(claims)}, **more}
    return {"version": 1, "name": "wifi", "tools": TOOLS, "user": user, "milestones": [told]}


def scenario(*claims, **more):
    return Scenario.from_dict(case(*claims, **more))


OFF = {"says": "the wifi is off"}
VAGUE = "The router's radio has gone quiet."


@pytest.mark.parametrize(("answer", "status"), [
    ("I have turned the wifi off.", "passed"), ("The wifi is still on.", "failed"), (VAGUE, "unknown"),
    ("", "failed"),
])  # fmt: skip
def test_an_answer_is_judged_by_rule(answer, status):
    found = run_case(scenario(OFF), scripted({"say": answer}))
    assert (found.status, found.passed) == (status, status == "passed")
    if status == "passed":
        silent = Models(claim_judge=recorded(claim_judge=[]))
        found = run_case(scenario(OFF), scripted({"say": answer}), model=silent)
        assert (found.status, "claims" in found.record["score"]) == (status, False), "nobody is asked"


def test_a_broken_claim_says_which_sentence_it_was_compared_with():
    (told,) = run_case(scenario(OFF), scripted({"say": "Hello. The wifi is still on."})).milestones
    (missed,) = told["missed"]
    assert (missed["part"], missed["place"], missed["wanted"]) == ("claim", "says", OFF["says"])
    assert (missed["found"], missed.get("unsure")) == ("The wifi is still on.", None)


def write_case(folder, *claims, **more):
    file = folder / "wifi.gecko.yaml"
    file.write_text(json.dumps({**case(*claims), **more}), encoding="utf-8")
    return file


@pytest.mark.parametrize(("met", "status"), [(True, "passed"), (False, "failed")])
def test_an_answer_that_was_judged_once_is_decided_without_a_model(met, status, tmp_path):
    file = write_case(tmp_path, OFF)
    assert run_case(Scenario.load(file), scripted({"say": VAGUE})).status == "unknown"
    judge = recorded(claim_judge=[{"sentence": VAGUE, "reason": "So it says.", "met": met}])
    found = run_case(Scenario.load(file), scripted({"say": VAGUE}), model=Models(claim_judge=judge))
    assert (found.status, found.record["score"]["usage"]["claim_judge"]["calls"]) == (status, 1)
    told = {"claim": OFF, "verdict": "holds" if met else "broken", "sentence": VAGUE, "reason": "So it says."}
    assert [{**each, "key": ""} for each in found.record["score"]["claims"]] == [{**told, "key": ""}]
    assert run_case(Scenario.load(file), scripted({"say": VAGUE})).status == status
    assert run_case(Scenario.load(file), scripted({"say": f"{VAGUE} Bye."})).status == "unknown"  # another answer
    (row,) = map(json.loads, (tmp_path / "wifi.claims.jsonl").read_text(encoding="utf-8").splitlines())
    assert (row["claim"], row["verdict"]) == (OFF, "holds" if met else "broken")
    silent = Models(claim_judge=recorded(claim_judge=[]))
    assert run_case(Scenario.load(file), scripted({"say": VAGUE}), model=silent).status == status  # nobody is asked


def test_a_file_of_verdicts_may_lose_its_last_line_and_without_claims_there_is_none(tmp_path):
    file = write_case(tmp_path, OFF)
    verdicts = tmp_path / "wifi.claims.jsonl"
    verdicts.write_text('{"key": "k", "verdict": "holds", "sentence": "", "reason": ""}\n{"key": "k', encoding="utf-8")
    assert Scenario.load(file).verdicts == {"k": ["holds", "", ""]}
    for line in ("[1]", '{"key": "k", "verdict": "perhaps", "sentence": "", "reason": ""}', "x"):
        verdicts.write_text(f"{line}\n\n", encoding="utf-8")
        with pytest.raises(GeckoError, match="line 1 is not a verdict"):
            Scenario.load(file)
    verdicts.unlink()
    keep_verdicts(file, {"claims": []})
    judged = {"key": "k", "claim": OFF, "verdict": "holds", "sentence": "", "reason": ""}
    keep_verdicts(tmp_path / "absent.gecko.yaml", {"claims": [judged]})
    assert [*tmp_path.iterdir()] == [file]


def test_the_role_may_overrule_what_a_rule_calls_broken_and_is_told_date_and_policy(tmp_path):
    file = write_case(tmp_path, OFF, state={"now": "2027-05-12T09:00"})
    heard = Hearing(turns=[{"claim_judge": [{"sentence": "", "reason": "It is.", "met": True}]}], heard=[])
    assert run_case(Scenario.load(file), scripted({"say": "Wifi is on."})).status == "failed"
    found = run_case(Scenario.load(file), scripted({"say": "Wifi is on."}), model=Models(claim_judge=heard))
    assert found.status == "passed"
    assert "2027-05-12T09:00" in heard.heard[0]
    other = Hearing(turns=heard.turns, heard=[])
    graph = create_conversation(scripted({"say": VAGUE}), scenario=scenario(OFF), model=Models(claim_judge=other))
    graph.invoke({"messages": [("system", "Never speak of routers.")]})
    assert "Never speak of routers." in other.heard[0]


def test_silence_fails_and_one_unsure_claim_never_passes():
    for said, replies, status in (("", [], "failed"), (VAGUE, [{"nothing": 1}] * 5, "unknown")):
        models = Models(claim_judge=recorded(claim_judge=replies))
        assert run_case(scenario(OFF), scripted({"say": said}), model=models).status == status
    assert run_case(scenario(OFF, threshold=0.2), scripted({"say": VAGUE})).status == "unknown"
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
