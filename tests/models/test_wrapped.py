"""Models within retries, fallbacks, bindings and configurable ones: tools and schemas reach the model inside."""

from __future__ import annotations

import httpx
import pytest
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import ConfigurableField
from pydantic import Field

from gecko_graph import GeckoError, Models, Toolkit, create_gecko, create_toolgate
from gecko_graph.conversation.graph import create_conversation
from tests.models.conftest import Server

MKDIR = {"id": "1", "name": "mkdir", "args": {"name": "a"}}


class Named(BaseChatModel):
    """Calls what is bound to it, and says who it is; fails so many times before."""

    name: str = "first"
    fails: list[int] = Field(default_factory=lambda: [0])

    @property
    def _llm_type(self):
        return "named"

    def bind_tools(self, tools, **kwargs):
        return self.bind(tools=tools)

    def _generate(self, messages, stop=None, run_manager=None, tools=(), **kwargs):
        if self.fails[0]:
            self.fails[0] -= 1
            raise ConnectionError("once more")
        call = MKDIR
        if not any(tool.get("function") for tool in tools):
            call = {
                "id": "1",
                "name": "SemanticVerdict",
                "args": {"problems": [{"argument": self.name, "problem": "x"}]},
            }
        message = AIMessage(self.name, tool_calls=[call] if tools else [])
        return ChatResult(generations=[ChatGeneration(message=message)])


def broken():
    return Named(fails=[99])


NAME, WHICH = ConfigurableField(id="name"), ConfigurableField(id="which")
WRAPPED = {
    "bound": (lambda: Named().bind(stop=["x"]), {}, "first"),
    "retry": (lambda: Named(fails=[1]).with_retry(wait_exponential_jitter=False), {}, "first"),
    "fallbacks": (lambda: broken().with_fallbacks([Named(name="second")]), {}, "second"),
    "fields": (lambda: Named().configurable_fields(name=NAME), {"name": "other"}, "other"),
    "alternatives": (lambda: Named().configurable_alternatives(WHICH, b=Named(name="b")), {"which": "b"}, "b"),
    "default": (lambda: Named().configurable_alternatives(WHICH, b=broken()), {}, "first"),
    "nested": (lambda: broken().with_retry(stop_after_attempt=1).with_fallbacks([Named(name="second")]), {}, "second"),
}


@pytest.mark.parametrize("kind", WRAPPED)
async def test_tools_and_structured_replies_reach_the_model_inside(kind, answer_all, ask_for, plan_for):
    make, configurable, name = WRAPPED[kind]
    config = {"configurable": configurable}
    (planned,) = await answer_all([plan_for()], Models(make()), config)
    (checked,) = await answer_all([ask_for("validator")], Models(make()), config)
    assert (planned.failure, planned.value.content, planned.value.tool_calls[0]["name"]) == (None, name, "mkdir")
    assert [each.argument for each in checked.value.problems] == [name]


async def test_a_model_that_is_made_at_each_call_is_taken(answer_all, ask_for, plan_for):
    def behave(body):
        if body.get("tools"):
            function = {"name": "mkdir", "arguments": '{"name": "a"}'}
            return {"tool_calls": [{"id": "1", "type": "function", "function": function}]}
        return {"content": '{"problems": []}'}

    fake = Server(behave)
    client = httpx.Client(transport=httpx.MockTransport(fake))
    aclient = httpx.AsyncClient(transport=httpx.MockTransport(fake))
    options = {"api_key": "unused", "http_client": client, "http_async_client": aclient}
    model = init_chat_model("gpt-5-mini", model_provider="openai", configurable_fields=("model",), **options)
    config = {"configurable": {"model": "gpt-5"}}
    models = Models(model)
    planned, checked = await answer_all([plan_for(), ask_for("validator")], models, config)
    assert planned.value.tool_calls[0]["args"] == {"name": "a"}
    assert checked.value.problems == []
    assert checked.usage["output_tokens"] == 10
    assert {body["model"] for body in fake.bodies} == {"gpt-5"}
    assert {key for body in fake.bodies for key in body} >= {"tools", "response_format"}


@pytest.mark.parametrize("create", [create_gecko, create_toolgate])
def test_every_factory_takes_a_wrapped_model(create):
    toolkit = Toolkit.from_tools([{"name": "mkdir", "parameters": {"type": "object", "properties": {}}}])
    assert create(toolkit, model=Named().with_retry())
    assert create_conversation(Named().with_retry(), toolkit, user=["Hello"])
    with pytest.raises(GeckoError, match="got CompiledStateGraph"):
        create(toolkit, model=create(toolkit, model=Named()))
