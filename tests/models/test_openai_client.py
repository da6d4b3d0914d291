"""The true client path: ChatOpenAI over a local transport, in every way that a server may answer."""

from __future__ import annotations

import json
from dataclasses import replace

import httpx
import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from gecko_graph.context import GeckoContext
from gecko_graph.errors import NoReply
from gecko_graph.models.factory import Models
from gecko_graph.models.node import as_node
from gecko_graph.models.roles import Checklist, Judgement, SemanticVerdict, SimulatedEffect, SimulatedResponse

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
    models = Models.bind(fake.chat())
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
    models = Models.bind(fake.chat())
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


async def test_an_ask_s_own_schema_is_bound_once_for_each_schema(server, ask_for, answer_all):
    fake = server(lambda body: dict(SAID))
    models = Models.bind(fake.chat())
    own = replace(ask_for("simulator", reply=SimulatedResponse), schema=OWN)
    other = replace(own, schema={**OWN, "properties": {}})
    await answer_all([own, other, own], models)
    schemas = [body["response_format"]["json_schema"]["schema"] for body in fake.bodies]
    assert [schema["properties"] for schema in schemas].count({}) == 1
    assert all("JSON Schema" not in body["messages"][0]["content"] for body in fake.bodies)


async def test_a_server_that_refuses_the_own_schema_is_told_it_in_words_and_the_way_stays(server, ask_for, answer_all):
    def behave(body):
        return refuses("pattern") if "pattern" in json.dumps(body["response_format"]) else dict(SAID)

    fake = server(behave)
    models = Models.bind(fake.chat())
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
    (reply,) = await answer_all([ask_for("checklist")], Models.bind(fake.chat()))
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
    models = Models.bind(fake.chat())
    (first,) = await answer_all([ask_for("validator")], models)
    (second,) = await answer_all([ask_for("validator")], models)
    assert (first.usage["calls"], second.usage["calls"]) == (2, 1)
    assert second.failure is None
    assert "response_format" not in fake.bodies[-1]


FAULTS = {
    "500": (lambda body: httpx.Response(500, json={"error": {"message": "boom"}}), "boom"),
    "429": (lambda body: httpx.Response(429, json={"error": {"message": "slow down"}}), "slow down"),
    "no choices": (
        lambda body: httpx.Response(200, json={"id": "r", "choices": [], "model": "m"}),
        "could not be read",
    ),
    "empty": (lambda body: {"content": ""}, "empty"),
    "null": (lambda body: {"content": None}, "empty"),
    "prose": (lambda body: {"content": "I would rather talk."}, "no JSON"),
    "half": (lambda body: {"content": '{"problems": ['}, "has no end"),
    "cut off": (lambda body: {"content": '{"problems": [', "finish": "length"}, "cut off"),
    "wrong shape": (lambda body: {"content": '{"problems": 3}'}, "problems: Input should be a valid list"),
    "huge": (lambda body: {"content": '{"problems": "' + "x" * 1_000_001 + '"}'}, "1,000,01"),
    "nested": (lambda body: {"content": '{"problems": ' + "[" * 100_000}, "has no end"),
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
    (reply,) = await answer_all([ask_for("validator")], Models.bind(fake.chat()))
    assert reply.value is None
    assert words in reply.failure
    assert "\n" not in reply.failure
    assert len(reply.failure) <= 320
    assert not reply.absent
    came = 0 if fault in ("500", "429", "no choices", "too long") else len(fake.bodies)
    assert reply.usage["calls"] == came <= 2


KEY = "sk-abc123456789"
PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><hr>nginx</body></html>"
WRONG = {
    "key": (
        401,
        b'{"error": {"message": "Incorrect key sk-abc123456789"}}',
        "401 Unauthorized (Incorrect key sk-…)",
        "OPENAI_API_KEY",
    ),
    "model": (404, b'{"error": {"message": "no such model"}}', "404 Not Found (no such model)", "the model's name"),
    "right": (403, b'{"error": {"message": "no"}}', "403 Forbidden (no)", "may use this model"),
    "address": (200, PAGE, "no model's reply (a web page)", "check base_url"),
    "gateway": (502, PAGE, "502 Bad Gateway (a web page)", "check base_url"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("role", ["planner", "validator"])
async def test_what_the_user_has_set_up_wrongly_is_raised_at_the_first_question(
    server, plan_for, ask_for, answer_all, wrong, role
):
    status, body, *words = WRONG[wrong]
    kind = "text/html" if body is PAGE else "application/json"
    fake = server(lambda _: httpx.Response(status, content=body, headers={"content-type": kind}))
    with pytest.raises(NoReply) as raised:
        await answer_all([plan_for() if role == "planner" else ask_for("validator")], Models.bind(fake.chat()))
    assert [word for word in words if word not in str(raised.value)] == []
    assert str(raised.value).startswith("model 'gpt-5-mini': ")
    assert KEY not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(fake.bodies) == 1 or status in (200, 502)


async def test_a_page_in_place_of_a_later_reply_is_a_failure(server, plan_for, answer_all):
    fake = server(lambda body: {"content": "Hello"} if len(fake.bodies) < 2 else httpx.Response(502, content=PAGE))
    models = Models.bind(fake.chat())
    (first,) = await answer_all([plan_for()], models)
    (later,) = await answer_all([plan_for()], models)
    assert (first.failure, later.value) == (None, None)
    assert "502" in later.failure


@pytest.mark.parametrize("fault", ["500", "429", "no choices", "huge", "too long"])
async def test_a_planners_fault_is_a_short_failure(server, plan_for, answer_all, fault):
    behave, words = FAULTS[fault]
    (reply,) = await answer_all([plan_for()], Models.bind(server(behave).chat()))
    assert reply.value is None
    assert words in reply.failure
    assert len(reply.failure) <= 320


@pytest.mark.parametrize("error", [httpx.ReadTimeout("slow"), httpx.ConnectError("nobody there"), ValueError("inside")])
async def test_no_exception_of_the_client_gets_out(server, ask_for, plan_for, answer_all, error):
    def behave(body):
        raise error

    models = Models.bind(server(behave).chat())
    for reply in await answer_all([ask_for("validator"), plan_for()], models):
        assert reply.value is None
        assert reply.failure


async def test_tokens_of_a_reply_that_was_cut_off_are_counted(server, ask_for, answer_all):
    fake = server(FAULTS["cut off"][0])
    (reply,) = await answer_all([ask_for("validator")], Models.bind(fake.chat()))
    assert reply.usage["input_tokens"] == 100
    assert reply.usage["cost"] == pytest.approx(4.5e-05)


async def test_a_planners_calls_and_broken_calls_come_through(server, plan_for, answer_all):
    calls = [
        {"id": "a", "type": "function", "function": {"name": "mkdir", "arguments": '{"name": "temp"}'}},
        {"id": "b", "type": "function", "function": {"name": "mkdir", "arguments": '{"name": '}},
    ]
    fake = server(lambda body: {"tool_calls": calls})
    models = Models.bind(fake.chat())
    (reply,) = await answer_all([plan_for()], models)
    assert [call["args"] for call in reply.value.tool_calls] == [{"name": "temp"}]
    assert [call["args"] for call in reply.value.invalid_tool_calls] == ['{"name": ']
    assert fake.bodies[0]["tools"][0]["function"]["name"] == "mkdir"
    await answer_all([plan_for(tools=[])], models)
    assert "tools" not in fake.bodies[-1]


class S(TypedDict):
    said: str


def asking(ask_for, plan_for):
    def node(state, scope):
        verdict, message = yield [ask_for("validator"), plan_for()]
        scope.emit({"type": "test"})
        return {"said": f"{message.value.text} {len(verdict.value.problems)}"}

    return node


def behave_both(body):
    return {"content": GOOD if "response_format" in body else "Hello there, friend"}


def graph_of(server, ask_for, plan_for):
    node = as_node(
        asking(ask_for, plan_for),
        models=Models.bind(server(behave_both).chat()),
        default=GeckoContext(),
        book=lambda update, state, accounts: update,
    )
    builder = StateGraph(S)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile()


def check_parts(parts):
    tokens = [part["data"] for part in parts if part["type"] == "messages"]
    assert "".join(message.text for message, _ in tokens) == "Hello there, friend"
    assert len(tokens) > 3
    assert {metadata["gecko_role"] for _, metadata in tokens} == {"planner"}
    assert all("gecko:planner" in metadata["tags"] for _, metadata in tokens)
    assert [part["data"] for part in parts if part["type"] == "custom"] == [{"type": "test"}]
    assert [part["data"] for part in parts if part["type"] == "updates"] == [
        {"node": {"said": "Hello there, friend 1"}}
    ]


MODES = {"stream_mode": ["messages", "custom", "updates"], "version": "v2"}


def test_only_the_planners_tokens_stream(server, ask_for, plan_for):
    check_parts(list(graph_of(server, ask_for, plan_for).stream({"said": ""}, **MODES)))


async def test_only_the_planners_tokens_stream_async(server, ask_for, plan_for):
    graph = graph_of(server, ask_for, plan_for)
    check_parts([part async for part in graph.astream({"said": ""}, **MODES)])


async def test_every_reply_class_is_a_schema_that_the_client_takes(server, ask_for, answer_all):
    replies = {
        "SimulatedEffect": {
            "status": "ok",
            "result": {"deep": [1]},
            "patch": [{"op": "add", "path": "/a", "value": None}],
        },
        "Judgement": {"items": [{"id": "1", "status": "unknown"}], "ask_user": True},
    }
    fake = server(lambda body: {"content": json.dumps(replies[body["response_format"]["json_schema"]["name"]])})
    effect, judgement = await answer_all([ask_for("simulator"), ask_for("judge")], Models.bind(fake.chat()))
    assert isinstance(effect.value, SimulatedEffect)
    assert effect.value.patch == [{"op": "add", "path": "/a", "value": None}]
    assert isinstance(judgement.value, Judgement)
    assert judgement.value.items[0].reason == ""
