"""A run with live models becomes a scenario that plays to the same end."""

from __future__ import annotations

import json

import pytest
import yaml

from gecko_graph import Models
from gecko_graph.errors import ScenarioError
from gecko_graph.scenario import Scenario, record, run_scenario
from gecko_graph.testing import recorded
from tests.live_library import LENT, Live, call, lend, write_case


def result_of(outputs):
    """What a run came to, turn by turn: plan, verdict, answer, state."""
    told = [[*map(each["rehearsal"].get, ("plan", "verdict", "answer")), each["task_state"]] for each in outputs]
    return json.loads(json.dumps(told))


def check_plays(file, outputs):
    assert result_of(run_scenario(file)) == result_of(outputs)


def live_record(live, case, out, **options):
    return record(case, out, model=Models("openai:m", base_url=live.url), **options)


def find_and_note(results):
    if len(results) == 1:
        return call("findMember", name="Ann")
    if len(results) == 2:
        return call("sendNote", member_id=results[1]["member_id"], loan=results[0]["loan"])
    said = lend([each for number, each in enumerate(results) if number not in (1, 2)])
    return f"{said} Member {results[1]['number']}." if isinstance(said, str) else said


@pytest.mark.parametrize(
    ("method", "last"),
    [("json_schema", "schema"), ("function_calling", "model"), ("text", "model")],
)
def test_a_recorded_run_plays_to_the_same_end(tmp_path, method, last):
    limits = {"ladder": ["contract", last]}
    case, out = write_case(tmp_path, ["Lend me Dune. I am Ann."], limits=limits), tmp_path / "out.yaml"
    with Live(find_and_note, method) as live:
        outputs = live_record(live, case, out)
    (turn,) = outputs
    assert turn["rehearsal"]["verdict"]["status"] == "accepted"
    assert "{{ 7 * 7 }}" in turn["rehearsal"]["answer"]
    document = yaml.safe_load(out.read_text(encoding="utf-8"))
    assert document["tools"] == "library.yaml"
    check_plays(out, outputs)


def test_a_later_turn_uses_an_earlier_ones_result(tmp_path):
    case, out = write_case(tmp_path, ["Lend me Dune.", "Extend that."]), tmp_path / "out.yaml"
    known = []

    def planner(results):
        known.extend(each["loan"] for each in results if "loan" in each)
        if known and not results:
            return call("extendLoan", loan=known[0])
        return f"Your loan is {known[0]}." if known else call("lendBook", book="B-1")

    with Live(planner) as live:
        outputs = live_record(live, case, out)
    assert outputs[1]["rehearsal"]["verdict"]["status"] == "accepted"
    check_plays(out, outputs)


FOR_YAML = ["1e5", "0o17", "yes", "~", "=", "<<", "  lead", "trail \n", "\t", "#"]
"""What YAML alone may read as something else."""

HOSTILE = [
    "{{ 7*7 }} {{ calls[0].result.loan }} {% raw %} {# x #} {{{ }}} {{",
    "a: b\n- c: [d, {e: f}]\n---\n...\n%YAML 1.1\n&a *a !!python/object/apply:os.system [x]",
    "a: &a [l,l]\nb: &b [*a,*a]\nc: [*b,*b]",
    "\x07\x7f\x85\u2028\ufeff", "\r\n", "'\"\\",
    "🙂",
    "half \ud800 a pair",
]  # fmt: skip


@pytest.mark.parametrize(("texts", "suffix"), [(HOSTILE, "yaml"), (HOSTILE, "json"), (FOR_YAML, "yaml")])
def test_replies_are_data(tmp_path, texts, suffix):
    case, out = write_case(tmp_path, ["Lend me Dune."], limits={"max_retries": 0}), tmp_path / f"out.{suffix}"
    lent = {"call": "lendBook", "args": {"book": "B-1"}}
    hurt = [{"call": "extendLoan", "args": {"loan": text, text[:40]: 1}} for text in texts]
    reasons = [text.encode("utf-8", "replace").decode() for text in texts]
    judgement = {"items": [{"id": "item-2", "reason": reasons[0], "status": "success"}], "feedback": "".join(reasons)}
    model = recorded(
        planner=[[lent, *hurt, {"say": "x".join(["", *texts, ""])}]], judge=[judgement], bootstrapper=[{"domain": {}}]
    )
    (live,) = record(case, out, model=model)
    (played,) = run_scenario(out)
    assert result_of([live]) == result_of([played])
    assert live["rehearsal"]["attempts"][0]["steps"] == played["rehearsal"]["attempts"][0]["steps"]


def test_secrets_are_masked(tmp_path):
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    case, out = write_case(tmp_path, [f"Lend me Dune. My key is {key}."]), tmp_path / "out.yaml"
    model = recorded(planner=[[{"call": "lendBook", "args": {"book": "B-1"}}, {"say": f"Lent, with {key}."}]])
    judge = recorded(judge=[{"items": [{"id": "item-2", "status": "success", "reason": key}]}])
    record(case, out, model=Models(planner=model, judge=judge))
    assert key not in out.read_text(encoding="utf-8")
    assert "Lent, with sk-" in out.read_text(encoding="utf-8")


def test_nothing_is_overwritten_and_nothing_misleading_written(tmp_path):
    case = write_case(tmp_path, ["Lend me Dune."])
    before = case.read_text()
    for target, why in (
        (case, "the file exists"),
        (tmp_path / "out", "expected the name of"),
        (tmp_path / "no" / "none.yaml", "cannot be written"),
        (tmp_path / "out.yaml", "not written: the run is incomplete"),
    ):
        with pytest.raises(ScenarioError, match=why):
            record(case, target, model=recorded(planner=[[]]))
    assert case.read_text() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["case.yaml", "library.yaml"]


def test_a_reference_that_leads_nowhere_names_reply_and_place(tmp_path):
    replies = {"planner": [[{"call": "extendLoan", "args": {"loan": "{{ calls[3].result.loan }}"}}]]}
    turn = {"user": "Extend it.", "checklist": [LENT], "replies": replies}
    case = write_case(tmp_path, [], turns=[turn], references=True)
    (output,) = run_scenario(case)
    stop = output["rehearsal"]["attempts"][0]["stop"]["message"]
    assert "turns[0].replies.planner[0][0]" in stop
    assert "calls[3].result.loan" in stop
    for broken in ("{{ calls[0", "{{ steps[0] }}", "{{ calls[0].result | shout }}"):
        replies["planner"][0][0]["args"]["loan"] = broken
        with pytest.raises(ScenarioError, match=r"turns\[0\]\.replies\.planner\[0\]: "):
            Scenario.load(write_case(tmp_path, [], turns=[turn], references=True))
        (output,) = run_scenario(write_case(tmp_path, [], turns=[turn]))
        assert output["rehearsal"]["attempts"][0]["steps"][0]["call"]["args"] == {"loan": broken}
