"""Models from names: what is built, and what a user is told who has something missing."""

import socket
from types import SimpleNamespace

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda

from gecko_graph.errors import ModelError
from gecko_graph.models import factory
from gecko_graph.models.answer import answer
from gecko_graph.models.ask import Ask, PlannerAsk, QuestionId
from gecko_graph.models.factory import Models, chat_model
from gecko_graph.models.prompts import variables_of
from gecko_graph.models.roles import SearchWords
from gecko_graph.testing import recorded


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("model", "words"), [
    ("gpt-5-mini", "write 'provider:name', for example 'openai:gpt-5-mini'"),
    ("", "write 'provider:name'"), ("openai:gpt-5-mini", "set OPENAI_API_KEY"),
    ("anthropic:claude", "pip install (langchain )?langchain-anthropic"),
    ("opnai:gpt-5-mini", r"unknown provider 'opnai' \(did you mean openai\?\)(?!.*pip)"),
    ("mistral:large", r"did you mean mistralai\?\)(?!.*pip)"), (3, "got int"),
    ("acme:large", r"unknown provider 'acme'; known: openai, (?!.*pip)"),
    (recorded() | RunnableLambda(len), "got RunnableSequence"),
    (RunnableLambda(len).with_retry(), "got RunnableRetry"),
    (recorded().with_fallbacks([RunnableLambda(len)]), "got RunnableWithFallbacks"),
])  # fmt: skip
def test_a_users_mistake_is_told_with_what_to_do(model, words):
    with pytest.raises(ModelError, match=words):
        Models(model)


def test_an_unknown_role_is_told_with_the_roles_there_are_and_an_address_is_a_whole_one():
    with pytest.raises(ModelError, match=r"'juge'.*planner, validator"):
        Models(juge=recorded())
    with pytest.raises(ModelError, match="base_url 'localhost:8000': write the whole address"):
        chat_model("openai:qwen3", base_url="localhost:8000")


def test_openai_needs_no_key_where_there_is_an_address_also_in_the_environment(monkeypatch):
    model = chat_model("openai:qwen3", base_url="http://localhost:8000/v1")
    assert model.openai_api_base == "http://localhost:8000/v1"
    assert model.openai_api_key.get_secret_value() == "none"
    assert (model.request_timeout, model.max_retries, model.stream_usage) == (120.0, 2, True)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:8000/v1")
    assert str(chat_model("openai:qwen3").root_client.base_url) == "http://localhost:8000/v1/"


@pytest.mark.parametrize(
    ("name", "zero"), [("gpt-4.1-mini", True), ("qwen3", True), ("gpt-5-mini", False), ("o3", False)]
)
def test_temperature_is_zero_where_the_model_takes_one(monkeypatch, name, zero):
    monkeypatch.setenv("OPENAI_API_KEY", "mine")
    assert (chat_model(f"openai:{name}").temperature == 0) is zero
    assert chat_model("openai:qwen3", temperature=0.7).temperature == 0.7


def with_langchain(monkeypatch, init):
    monkeypatch.setattr(factory, "find_spec", lambda name: object())
    monkeypatch.setattr(factory, "import_module", lambda name: SimpleNamespace(init_chat_model=init))


def test_other_providers_go_through_langchain_where_it_is_installed(monkeypatch):
    seen = {}

    def init(name, **options):
        seen.update(options, name=name)
        return recorded()

    with_langchain(monkeypatch, init)
    assert chat_model("ollama:qwen3", base_url="http://localhost:1")._llm_type == "recorded"
    assert seen == {"name": "qwen3", "model_provider": "ollama", "base_url": "http://localhost:1"}


@pytest.mark.parametrize(
    ("init", "words"), [(lambda name, **_: object(), "no chat model"), (lambda name, **_: 1 / 0, "by zero")]
)
def test_another_provider_must_give_a_chat_model(monkeypatch, init, words):
    with_langchain(monkeypatch, init)
    with pytest.raises(ModelError, match=words):
        chat_model("odd:name")


def test_one_name_is_built_once_also_of_contexts_and_only_so_many_are_kept(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "mine")
    models = Models("openai:gpt-4o", judge="openai:gpt-4o", planner="openai:gpt-4.1")
    assert models.get("judge") is models.get("validator")
    assert models.get("planner").model_name == "gpt-4.1"
    assert models.chosen("openai:gpt-5-mini") is models.chosen("openai:gpt-5-mini")
    for number in range(2 * factory.MOST_CHOSEN):
        models.chosen(f"openai:gpt-{number}")
    assert len(models._chosen) <= factory.MOST_CHOSEN


def test_the_time_that_a_model_may_take_can_be_given(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    assert chat_model("openai:gpt-5-mini", timeout_s=7).request_timeout == 7
    assert Models("openai:gpt-5-mini", timeout_s=600.0).get("judge").request_timeout == 600
    for wrong in (0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ModelError, match="give the seconds that a reply may take"):
            chat_model("openai:gpt-5-mini", timeout_s=wrong)


def test_a_server_that_is_not_there_is_a_failure(monkeypatch):
    monkeypatch.setattr(factory, "MAX_RETRIES", 0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        (reply,) = answer([PlannerAsk([HumanMessage("hi")], [], QuestionId())], Models("openai:local", base_url=url))
    assert reply.value is None
    assert "onnection" in reply.failure


def test_two_who_listen_hear_both():
    """A dialogue of training data counts its costs by listening: the caller's own listener goes on to hear."""
    heard = []

    def listen(name):
        def led(ask, dialogue):
            reply = yield from dialogue
            heard.append((name, ask.role))
            return reply

        return led

    models = Models(recorded(searcher=[{"words": "a"}])).listening(listen("first")).listening(listen("second"))
    (reply,) = answer(
        [Ask("searcher", dict.fromkeys(variables_of("searcher"), "x"), SearchWords, QuestionId())], models
    )
    assert reply.value.words == "a"
    assert heard == [("first", "searcher"), ("second", "searcher")]
