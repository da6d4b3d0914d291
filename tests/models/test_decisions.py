"""Decision models beside chat models: what they are asked, how their probabilities are read, and what is booked."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.decisions import Choice, Noul
from langchain_core.messages import AIMessage

from gecko_graph import ChatDecisionModel, GeckoContext, GeckoError, ModelError, Models, Toolkit, create_gecko
from gecko_graph.models import roles
from gecko_graph.models.answer import aanswer, answer
from gecko_graph.models.ask import Ask, QuestionId
from gecko_graph.models.chat_decisions import read_logprobs
from gecko_graph.models.prompts import variables_of
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.testing import recorded
from tests.deciding import Decider, openai

FORMS = [
    ("judge", roles.Judgement, ("item-1", "item-2")), ("validator", roles.SemanticVerdict, ("/name",)),
    ("claim_judge", roles.ClaimReply, ()), ("reranker", roles.Ranking, ("pay", "refund")),
    ("risk", roles.RiskReply, ()), ("label_judge", roles.LabelReply, ("first", "second")),
]  # fmt: skip


def ask(role, reply, ids=(), band=(0.2, 0.8)):
    shown = {name: f"the {name}" for name in variables_of(role)}
    return Ask(role, shown, reply, QuestionId(), ids=ids, band=band)


def reply_of(model, *given, **more):
    return answer([ask(*given, **more)], Models(**{given[0]: model}))[0]


@pytest.mark.parametrize(("role", "reply", "ids"), FORMS)
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, None])
def test_every_form_is_asked_in_one_request_and_read(role, reply, ids, p):
    model = Decider(say=p)
    one = reply_of(model, role, reply, ids)
    assert one.failure is None
    assert isinstance(one.value, reply)
    assert len({shown for shown, _ in model.asked}) == 1
    assert all(line.strip() for _, line in model.asked)
    assert one.usage == {"calls": 1, "input_tokens": 100, "output_tokens": 1, "cost": 0.000027}
    assert asyncio.run(aanswer([ask(role, reply, ids)], Models(**{role: model}))) == [one]


@pytest.mark.filterwarnings("ignore:The class `OpenAIDecisions`")
@pytest.mark.parametrize(("role", "reply", "ids"), FORMS)
def test_openai_s_own_is_asked_the_same(role, reply, ids):
    model, sent = openai(0.95)
    own = Decider(say=0.95)
    one, other = reply_of(model, role, reply, ids), reply_of(own, role, reply, ids)
    assert one.value == other.value
    assert one.usage["input_tokens"] == 40
    assert [each["instructions"] for each in sent[0]["questions"]] == [question for _, question in own.asked]
    refusing, _ = openai(None)
    assert reply_of(refusing, role, reply, ids).value == reply_of(Decider(say=None), role, reply, ids).value


BAND = [(0.0, False), (0.19, False), (0.2, None), (0.5, None), (0.8, None), (0.81, True), (1.0, True), (None, None)]


@pytest.mark.parametrize(("p", "holds"), BAND)
def test_the_band_divides_yes_unsure_and_no(p, holds):
    model = Decider(say=p)
    item = reply_of(model, *FORMS[0][:2], ("a",)).value.items[0]
    assert (item.unsure, item.p) == (holds is None, p)
    assert item.status == ("success" if holds else "failed")
    assert [each.unsure for each in reply_of(model, *FORMS[1]).value.problems] == ([] if holds else [holds is None])
    claim = reply_of(model, *FORMS[2]).value
    assert (claim.met, claim.unsure) == (bool(holds), holds is None)
    assert len(reply_of(model, *FORMS[3]).value.tools) == (0 if holds is False else 2)
    risk = reply_of(model, *FORMS[4]).value
    assert (risk.risky, risk.unsure) == (holds is not False, holds is None)
    label = reply_of(Decider(say=[0.9, p]), *FORMS[5]).value
    judged = [(each.id, each.status == "success", each.unsure) for each in label.items]
    assert judged == [("first", True, False), ("second", bool(holds), holds is None)]


@pytest.mark.parametrize("say", [RuntimeError("overloaded"), ValueError("no"), TimeoutError()])
def test_a_model_that_fails_is_data(say):
    one = reply_of(Decider(say=lambda *_: say), *FORMS[0])
    assert one.value is None
    assert type(say).__name__ in one.failure


def test_wrapped_models_and_unknown_tokens():
    model = Decider(say=0.9, usage=None)
    one = reply_of(model.with_retry().with_config(tags=["a"]), *FORMS[2])
    assert one.value.met
    assert one.usage["cost"] is None
    both = Decider(say=lambda *_: RuntimeError("away")).with_fallbacks([model])
    assert reply_of(both, *FORMS[2]).value.met


def test_secrets_are_not_shown():
    model = Decider()
    known = dict.fromkeys(variables_of("risk"), "") | {"call": "pay(password is hunter2-99)", "task": "pay"}
    answer([Ask("risk", known, roles.RiskReply, QuestionId())], Models(risk=model))
    assert "hunter2" not in model.asked[0][0]


@pytest.mark.parametrize("role", ["planner", "simulator", "user", "model"])
def test_it_speaks_for_no_role_that_writes(role):
    with pytest.raises(ModelError, match=r"a decision model can only speak for .*judge.*risk"):
        Models(**{role: Decider()})


def test_the_band_of_a_context():
    assert GeckoContext(band=[0.3, 0.6]).band == (0.3, 0.6)
    for wrong in ([0.9, 0.1], [-0.1, 0.5], [0.5, 1.1], [0.5], "no", [float("nan"), 0.5]):
        with pytest.raises(GeckoError, match="band"):
            GeckoContext(band=wrong)


# a rehearsal


TRAY = {"type": "object", "properties": {"tray": {"type": "string"}}}
TOOL = {"name": "file", "description": "File a letter", "parameters": TRAY}


def planned():
    filed = {"status": "ok", "result": "done", "patch": [{"op": "add", "path": "/trays/bills", "value": 1}]}
    return recorded(
        planner=[[{"call": "file", "args": {"tray": "bills"}}, {"say": "Filed."}]] * 4,
        checklist=[{"items": ["the letter is filed"]}],
        bootstrapper=[{"domain": {"trays": {}}}],
        simulator=[filed] * 9,
    )


def run(judge, **knobs):
    gecko = create_gecko(
        Toolkit.from_tools([TOOL]), model=Models(planned(), judge=judge, validator=None), context=GeckoContext(**knobs)
    )
    return gecko.invoke({"messages": [("user", "File the letter under bills")]})["rehearsal"]


def items(p):
    return lambda shown, question: p if "item" in question else 0.01


@pytest.mark.parametrize(("p", "word", "status", "attempts"), [
    (0.95, "accepted", "success", 1), (0.6, "needs_user", "unsure", 1), (None, "needs_user", "unsure", 1),
    (0.1, "failed", "failed", 2),
])  # fmt: skip
def test_an_item_within_the_band_is_unsure_shown_and_not_tried_again(p, word, status, attempts):
    made = run(Decider(say=items(p)), max_retries=1)
    verdict = made["verdict"]
    assert (verdict["status"], len(made["attempts"])) == (word, attempts)
    (item,) = verdict["items"]
    assert (item["status"], item.get("p"), item["by"]) == (status, p, "model")
    assert item["reason"] == {0.6: "p 0.60", None: "the decision model did not answer", 0.1: "p 0.10"}.get(p, "")
    assert made["usage"]["judge"]["calls"] == attempts


# chat models as decision models


YES_OR_NO = {"state": "a", "questions": {"q": Noul(instructions="Is it?")}}


class Sampled(RecordedModel):
    """Replies one after the other."""

    replies: list[str]

    def _reply(self, messages, run_manager, kwargs):
        return AIMessage(self.replies.pop(0), usage_metadata={"input_tokens": 3, "output_tokens": 1, "total_tokens": 4})


UNDECIDED = ("maybe", "There is no item of that name.", "I have yes and no for you to choose from")


def test_a_chat_model_is_sampled_and_what_is_none_or_no_yes_or_no_is_refused():
    model = ChatDecisionModel(
        Sampled(replies=["Yes.", "No, it is not.", "**yes**", "<think>no, no</think> The answer is yes.", *UNDECIDED]),
        samples=7,
    )
    made = model.invoke(YES_OR_NO)
    assert made.nouls["q"].noul == 0.75
    assert made.usage["input_tokens"] == 21
    other = ChatDecisionModel(Sampled(replies=["perhaps", "who knows"]), samples=2)
    assert other.invoke(YES_OR_NO).answers == {}
    with pytest.raises(ModelError, match="expected a chat model, got Decider"):
        ChatDecisionModel(Decider())
    model, asked = ChatDecisionModel(Sampled(replies=[])), Choice(instructions="?", criteria={"a": None})
    with pytest.raises(ValueError, match="answers Noul questions, not choice"):
        model.invoke({"state": "", "questions": {"q": asked}})


def token(text, p, *others):
    return {"token": text, "logprob": p, "top_logprobs": [{"token": one, "logprob": each} for one, each in others]}


@pytest.mark.parametrize(("content", "p"), [
    ([token("Yes", -0.1, ("Yes", -0.1), (" no", -2.4))], 0.909),
    ([token("No", -0.05, ("No", -0.05), ("yes", -3.0), (" Yes", -4.0))], 0.066),
    ([token("<think>", 0.0), token("no", 0.0), token("</think>", 0.0), token("\n", 0.0), token("no", 0.0)], 0.0),
    ([token("<think>", 0.0), token("\n", 0.0), token("no", 0.0)], None), ([], None), ([token("yes", -0.1)], 0.905),
    ([token("yes", -0.1, ("yes", -0.1), ("The", -5.0))], 0.993),
    ([token("The", -1.2, ("The", -1.2), ("Yes", -4.0), ("No", -4.1), ("I", -5.0))], 0.525),
    ([token("There", -0.01, ("There", -0.01), ("Yes", -7.0)), token(" is", 0.0), token(" no", 0.0)], None),
    (None, None),
])  # fmt: skip
def test_logprobs_of_yes_and_no(content, p):
    found = read_logprobs({"logprobs": {"content": content}} if content is not None else {})
    assert found == (None if p is None else pytest.approx(p, abs=1e-3))


def test_logprobs_are_asked_for_where_the_client_has_them(monkeypatch):
    from langchain_openai import ChatOpenAI

    sent = []

    def reply(self, messages, stop=None, run_manager=None, **kwargs):
        from langchain_core.outputs import ChatGeneration, ChatResult

        sent.append(kwargs)
        metadata = {"logprobs": {"content": [token("yes", -0.1, ("yes", -0.1), ("no", -2.4))]}}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("yes", response_metadata=metadata))])

    monkeypatch.setattr(ChatOpenAI, "_generate", reply)
    model = ChatDecisionModel(ChatOpenAI(model="gpt-4.1-mini", api_key="key"))
    made = model.invoke(YES_OR_NO)
    assert made.nouls["q"].noul == pytest.approx(0.909, abs=1e-3)
    assert (len(sent), sent[0]["logprobs"], sent[0]["top_logprobs"]) == (1, True, 20)
