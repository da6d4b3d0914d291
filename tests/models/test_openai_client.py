"""The true client path: ChatOpenAI over a local transport, in every way that a server may answer."""

from __future__ import annotations

import json
from dataclasses import replace

import httpx
import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from gecko_graph import Models
from gecko_graph.context import GeckoContext
from gecko_graph.errors import NoReply
from gecko_graph.models.node import AskNode
from gecko_graph.models.reply import schema_of
from gecko_graph.models.roles import Checklist, SemanticVerdict, SimulatedResponse

GOOD = '{"problems": [{"argument": "city", "problem": "is a country"}]}'


def refuses(*keys):
    return httpx.Response(400, json={"error": {"message": f"{', '.join(keys)} is not supported here"}})


def tool_reply(body, arguments):
    name = body["tools"][0]["function"]["name"]
    return {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}]}


def only_schema(body):
    assert "response_format" in body
    return {"content": GOOD}


def only_tools(body):
    return refuses("response_format") if "response_format" in body else tool_reply(body, GOOD)


def only_text(body):
    if "response_format" in body or "tools" in body:
        return refuses("that")
    return {"content": f"Gladly.\n```json\n{GOOD}\n```\nAnything else?"}


@pytest.mark.parametrize(
    ("behave", "calls_first", "key"),
    [(only_schema, 1, "response_format"), (only_tools, 2, "tools"), (only_text, 3, None)],
)
async def test_a_reply_comes_down_the_ways_and_the_way_is_remembered(
    server, ask_for, answer_all, behave, calls_first, key
):
    fake = server(behave)
    models = Models(fake.chat())
    (first,) = await answer_all([ask_for("validator")], models)
    assert isinstance(first.value, SemanticVerdict)
    assert first.value.problems[0].argument == "city"
    assert first.failure is None
    assert (len(fake.bodies), first.usage["calls"]) == (calls_first, 1)
    await answer_all([ask_for("validator"), ask_for("judge")], models)
    assert len(fake.bodies) == calls_first + 3  # the judge's reply does not fit: one repair
    assert all(key in body for body in fake.bodies[calls_first:] if key)
    assert all(not {"response_format", "tools"} & body.keys() for body in fake.bodies[calls_first:] if not key)


async def test_the_schema_is_named_after_the_class_and_strict_only_where_every_shape_is_known(
    server, ask_for, answer_all
):
    fake = server(lambda body: {"content": "{}"})
    models = Models(fake.chat())
    await answer_all([ask_for("judge"), ask_for("simulator")], models)
    formats = {body["response_format"]["json_schema"]["name"]: body["response_format"] for body in fake.bodies}
    judgement, effect = formats["Judgement"]["json_schema"], formats["SimulatedEffect"]["json_schema"]
    assert judgement["strict"] is True
    assert judgement["schema"]["additionalProperties"] is False
    assert sorted(judgement["schema"]["required"]) == ["feedback", "items", "stopping_was_right", "unasked_changes"]
    assert effect["strict"] is False
    assert effect["schema"]["properties"]["result"] == {}


OWN = {"title": "SimulatedResponse", "type": "object", "properties": {"result": {"pattern": "^x"}}}
"""A schema of an ask's own, narrower than its class's."""

SAID = {"content": '{"status": "ok", "result": 1}'}


async def test_a_server_that_refuses_the_own_schema_is_told_it_in_words_and_the_way_stays(server, ask_for, answer_all):
    def behave(body):
        return refuses("pattern") if "pattern" in json.dumps(body["response_format"]) else dict(SAID)

    fake = server(behave)
    models = Models(fake.chat())
    own = replace(ask_for("simulator", reply=SimulatedResponse), schema=OWN)
    (first,) = await answer_all([own], models)
    (second,) = await answer_all([own], models)
    assert (first.usage["calls"], second.usage["calls"], len(fake.bodies)) == (1, 1, 3), "a refusal is no reply"
    assert first.value == second.value == SimulatedResponse(status="ok", result=1)
    for body in fake.bodies[1:]:
        assert body["response_format"]["json_schema"]["name"] == "SimulatedResponse"
        assert '{"pattern": "^x"}' in body["messages"][0]["content"]


async def test_one_repair_round_tells_what_is_wrong_and_tokens_of_both_count(server, ask_for, answer_all):
    fake = server(
        lambda body: {"content": '{"items": "none"}' if len(fake.bodies) == 1 else '{"items": [{"description": "a"}]}'}
    )
    (reply,) = await answer_all([ask_for("checklist")], Models(fake.chat()))
    assert isinstance(reply.value, Checklist)
    assert reply.usage == {"calls": 2, "input_tokens": 200, "output_tokens": 20, "cost": 9e-05}
    said = fake.bodies[1]["messages"]
    assert [message["role"] for message in said] == ["system", "user", "assistant", "user"]
    assert said[2]["content"] == '{"items": "none"}'
    assert "items: Input should be a valid list" in said[3]["content"]
    assert '"title": "Checklist"' in said[0]["content"]


async def test_a_server_that_overlooks_response_format_is_told_the_schema_in_words_from_then_on(
    server, ask_for, answer_all
):
    def behave(body):
        told = "JSON Schema" in body["messages"][0]["content"]
        return {"content": GOOD if told else "All arguments look fine to me."}

    fake = server(behave)
    models = Models(fake.chat())
    (first,) = await answer_all([ask_for("validator")], models)
    (second,) = await answer_all([ask_for("validator")], models)
    assert (first.usage["calls"], second.usage["calls"]) == (2, 1)
    assert second.failure is None
    assert "response_format" not in fake.bodies[-1]


FAULTS = {
    "500": (lambda body: httpx.Response(500, json={"error": {"message": "boom"}}), "boom"),
    "no choices": (
        lambda body: httpx.Response(200, json={"id": "r", "choices": [], "model": "m"}),
        "could not be read",
    ),
    "empty": (lambda body: {"content": ""}, "empty"),
    "cut off": (lambda body: {"content": '{"problems": [', "finish": "length"}, "truncated"),
    "wrong shape": (lambda body: {"content": '{"problems": 3}'}, "problems: Input should be a valid list"),
    "huge": (lambda body: {"content": '{"problems": "' + "x" * 1_000_001 + '"}'}, "1,000,01"),
    "refusal": (lambda body: {"content": None, "refusal": "I must not"}, "refused: I must not"),
    "too long": (
        lambda body: httpx.Response(400, json={"error": {"message": "too long", "code": "context_length_exceeded"}}),
        "too long",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_helpers_fault_is_a_short_failure(server, ask_for, answer_all, fault):
    behave, words = FAULTS[fault]
    fake = server(behave)
    (reply,) = await answer_all([ask_for("validator")], Models(fake.chat()))
    assert reply.value is None
    assert words in reply.failure
    assert "\n" not in reply.failure
    assert len(reply.failure) <= 320
    assert not reply.absent
    came = 0 if fault in ("500", "no choices", "too long") else len(fake.bodies)
    assert reply.usage["calls"] == came <= 2


@pytest.mark.parametrize("error", [
    {"code": 400, "message": "request (9031 tokens) exceeds the available context size (8192 tokens)"},
    {"message": "prompt is too long: 9031 tokens > 8192 maximum"},
    {"message": "ContextWindowExceededError: too much"},
])  # fmt: skip
async def test_too_long_a_prompt_is_asked_once_whatever_the_server_calls_it(server, ask_for, answer_all, error):
    """It is no refusal of the method: that is asked for again with the next prompt."""
    long = server(lambda body: httpx.Response(400, json={"error": error}))
    models, schema = Models(long.chat()), {"title": "Own", **schema_of(SemanticVerdict)}
    ask = replace(ask_for("validator"), schema=schema)
    (reply,) = await answer_all([ask], models)
    assert (reply.value, len(long.bodies)) == (None, 1)
    long.behave = only_schema
    (reply,) = await answer_all([ask], models)
    assert isinstance(reply.value, SemanticVerdict)
    assert long.bodies[-1]["response_format"] == long.bodies[0]["response_format"]


KEY = "sk-abc123456789"
PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><hr>nginx</body></html>"
WRONG = {
    "key": (401, b'{"error": {"message": "Incorrect key sk-abc123456789"}}', "401 Unauthorized (Incorrect key sk-…)",
            "OPENAI_API_KEY"),
    "model": (404, b'{"error": {"message": "no such model"}}', "404 Not Found (no such model)", "the model's name"),
    "right": (403, b'{"error": {"message": "no"}}', "403 Forbidden (no)", "may use this model"),
    "address": (200, PAGE, "no model's reply (a web page)", "check base_url"),
    "gateway": (502, PAGE, "502 Bad Gateway (a web page)", "check base_url"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("role", ["planner", "validator"])
async def test_what_the_user_has_set_up_wrongly_is_raised_at_the_first_question(
    server, plan_for, ask_for, answer_all, wrong, role
):
    status, body, *words = WRONG[wrong]
    kind = "text/html" if body is PAGE else "application/json"
    fake = server(lambda _: httpx.Response(status, content=body, headers={"content-type": kind}))
    with pytest.raises(NoReply) as raised:
        await answer_all([plan_for() if role == "planner" else ask_for("validator")], Models(fake.chat()))
    assert [word for word in words if word not in str(raised.value)] == []
    assert str(raised.value).startswith("model 'gpt-5-mini': ")
    assert KEY not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(fake.bodies) == 1 or status in (200, 502)


async def test_a_planners_calls_and_broken_calls_come_through(server, plan_for, answer_all):
    calls = [
        {"id": "a", "type": "function", "function": {"name": "mkdir", "arguments": '{"name": "temp"}'}},
        {"id": "b", "type": "function", "function": {"name": "mkdir", "arguments": '{"name": '}},
    ]
    fake = server(lambda body: {"tool_calls": calls})
    models = Models(fake.chat())
    (reply,) = await answer_all([plan_for()], models)
    assert [call["args"] for call in reply.value.tool_calls] == [{"name": "temp"}]
    assert [call["args"] for call in reply.value.invalid_tool_calls] == ['{"name": ']
    assert fake.bodies[0]["tools"][0]["function"]["name"] == "mkdir"
    await answer_all([plan_for(tools=[])], models)
    assert "tools" not in fake.bodies[-1]


class S(TypedDict):
    said: str
    usage: dict
    asked: dict


async def test_only_the_planners_tokens_stream(server, ask_for, plan_for):
    def ask(state, scope):
        verdict, message = yield [ask_for("validator"), plan_for()]
        scope.emit({"type": "test"})
        return {"said": f"{message.value.text} {len(verdict.value.problems)}"}

    fake = server(lambda body: {"content": GOOD if "response_format" in body else "Hello there, friend"})
    node = AskNode(ask, models=Models(fake.chat()), default=GeckoContext())
    graph = StateGraph(S).add_node("node", node).add_edge(START, "node").compile()
    given = {"said": ""}, None
    modes = {"stream_mode": ["messages", "custom", "updates"], "version": "v2"}
    for parts in ([*graph.stream(*given, **modes)], [part async for part in graph.astream(*given, **modes)]):
        told = {kind: [part["data"] for part in parts if part["type"] == kind] for kind in modes["stream_mode"]}
        assert "".join(message.text for message, _ in told["messages"]) == "Hello there, friend"
        assert len(told["messages"]) > 3
        assert {metadata["gecko_role"] for _, metadata in told["messages"]} == {"planner"}
        assert all("gecko:planner" in metadata["tags"] for _, metadata in told["messages"])
        assert told["custom"] == [{"type": "test"}]
        (update,) = [each["node"] for each in told["updates"]]
        assert (update["said"], update["asked"]) == ("Hello there, friend 1", {"planner": 1, "validator": 1})
