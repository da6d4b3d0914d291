"""More tools than a planner is shown: those that fit, a tool to search for others, and the same on every restart."""

from __future__ import annotations

from functools import partial

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from gecko_graph import GeckoContext, GeckoError, Models, Toolkit, ToolSpec, create_gecko, create_gecko_agent
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.retrieval import ToolIndex, search
from tests.agents import call, thread

THINGS = ["weather", "invoice", "ticket", "room", "song", "parcel", "recipe", "lamp"]
VERBS = ["get", "delete", "list", "book", "rename", "share", "print", "count", "archive", "rate"]


def spec(name, **more):
    parameters = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    return ToolSpec(name=name, description=f"{name.replace('_', ' ')} by its id", parameters=parameters, **more)


def toolkit(*more, effect="read"):
    return Toolkit([*(spec(f"{verb}_{thing}", effect=effect) for thing in THINGS for verb in VERBS), *more])


class Bound(RecordedModel):
    """Keeps each role's questions, and the names of the tools that the planner was given."""

    names: list = Field(default_factory=list)
    asked: dict = Field(default_factory=dict)

    def bind_tools(self, tools, **kwargs):
        return super().bind_tools(tools, **kwargs).bind(bound=[tool.get("function", {}).get("name") for tool in tools])

    def _reply(self, messages, run_manager, kwargs):
        role = run_manager.metadata["gecko_role"]
        self.asked.setdefault(role, []).append("\n".join(str(message.content) for message in messages))
        if role == "planner":
            self.names.append(kwargs.get("bound", []))
        return super()._reply(messages, run_manager, kwargs)


def create(*attempts, tools=None, turns=None, create=create_gecko, index=None, **context):
    model = Bound(turns=turns or [{"planner": list(attempts)}])
    context = GeckoContext(**{"max_retries": 0, "top_k": 3, "ladder": ("schema",), **context})
    return create(tools or toolkit(), model=Models(planner=model), context=context, index=index), model


def rehearse(*replies, task="Print the invoice 7", **more):
    gecko, model = create(list(replies), **more)
    run = gecko.invoke({"messages": [("user", task)], "task_state": {"runtime_state": {}}, "checklist": ["done"]})
    return run["rehearsal"]["attempts"][0], model


def look(query):
    return call("search_tools", query=query)


DONE = {"say": "Done."}


def names_of(attempt):
    return [step["call"]["name"] for step in attempt["steps"]]


def test_the_planner_sees_what_fits_and_a_tool_to_search():
    attempt, model = rehearse(call("print_invoice", id="7"), DONE)
    first, second = model.names
    assert first[0] == "print_invoice"
    assert len(first) == 4
    assert all("invoice" in name or "print" in name for name in first[:3])
    assert first[3] == "search_tools"
    assert second == first
    assert names_of(attempt) == ["print_invoice"]


def test_what_a_search_finds_is_bound_from_then_on_and_is_no_step():
    attempt, model = rehearse(look("share a song"), call("share_song", id="1"), DONE)
    assert "share_song" not in model.names[0]
    assert model.names[1][:3] == model.names[0][:3]
    assert model.names[1][3] == "share_song"
    assert model.names[2] == model.names[1]
    assert names_of(attempt) == ["share_song"]
    assert attempt["stop"]["code"] == "answered"
    assert "share_song: share song by its id" in model.asked["planner"][1]


@pytest.mark.parametrize("args", [{}, {"query": 3}, {"query": "quantum"}])
def test_a_search_that_finds_nothing(args):
    attempt, model = rehearse({"call": "search_tools", "args": args}, DONE)
    assert "no tool fits these words" in model.asked["planner"][1]
    assert attempt["steps"] == []


def test_searches_have_an_end_and_what_they_bind_too():
    attempt, model = rehearse(*[look(thing) for thing in THINGS], *[look("song")] * 3, DONE, max_tools=14)
    assert names_of(attempt) == ["search_tools"]
    assert "complaints" in attempt["steps"][0]
    assert max(map(len, model.names)) == 15
    assert "no more tools can be given here" in model.asked["planner"][-1]
    assert ["search_tools" in names for names in model.names] == [True] * 10 + [False] * 2


def test_a_tool_that_is_not_shown_is_checked_and_run_as_any_other():
    attempt, model = rehearse(call("rate_recipe"), call("rate_recipe", id="1"), call("rate_nothing"), DONE)
    refused, made, unknown = attempt["steps"]
    assert refused["complaints"][0]["path"] == "/id"
    assert made["outcome"]["status"] == "ok"
    assert unknown["complaints"][0]["expected"] == "the name of one of the given tools"
    assert "rate_recipe" not in model.names[0]
    assert "rate_recipe" in model.names[1]
    assert "rate_nothing" not in model.names[3]


def test_without_the_extra_all_are_shown(monkeypatch):
    monkeypatch.setattr(search, "is_installed", lambda: False)
    _, model = rehearse(DONE)
    assert len(model.names[0]) == 80


def test_every_attempt_begins_alike_and_what_the_turn_has_called_stays():
    given = {"messages": [("user", "Print the invoice 7")], "task_state": {"runtime_state": {}}}
    given["checklist"] = [{"check": "False"}]
    first = [look("share a song"), call("share_song", id="1"), DONE]
    gecko, model = create(first, first, max_retries=1)
    assert len(gecko.invoke(given)["rehearsal"]["attempts"]) == 2
    assert model.names[3] == [*model.names[0][:3], "share_song", "search_tools"]
    gecko, model = create(*[[look("song"), DONE]] * 2, parallel_attempts=2)
    gecko.invoke(given)
    assert len(model.names) == 4
    assert len({tuple(names) for names in model.names}) == 2


def test_a_later_turn_is_shown_what_the_conversation_has_called():
    gecko, model = create(turns=[{"planner": [[call("share_song", id="1"), DONE]]}, {"planner": [[DONE]]}])
    gecko.checkpointer = InMemorySaver()
    state = {"task_state": {"runtime_state": {}}, "checklist": [{"description": "x", "check": "True"}]}
    gecko.invoke({"messages": [("user", "Share a song")], **state}, thread())
    gecko.invoke({"messages": [("user", "Print the weather")], "checklist": state["checklist"]}, thread())
    assert "share_song" in model.names[-1]
    assert "print_weather" in model.names[-1]


def test_a_run_that_is_resumed_between_search_and_call_goes_on_alike(monkeypatch):
    replies = [look("share a song"), call("share_song", id="1"), DONE]
    whole, model = rehearse(*replies)
    gecko, resumed = create(replies)
    gecko.checkpointer = InMemorySaver()
    reply, failed = Bound._reply, []

    def broken(self, *args):
        if len(self.names) == 1 and not failed:
            failed.append(True)
            raise KeyboardInterrupt
        return reply(self, *args)

    monkeypatch.setattr(Bound, "_reply", broken)
    given = {"messages": [("user", "Print the invoice 7")], "task_state": {"runtime_state": {}}, "checklist": ["done"]}
    with pytest.raises(KeyboardInterrupt):
        gecko.invoke(given, thread())
    run = gecko.invoke(None, thread())
    attempt = run["rehearsal"]["attempts"][0]
    assert names_of(attempt) == names_of(whole)
    assert resumed.names == model.names, "the search was not made again"


class Down(Embeddings):
    def embed_documents(self, texts):
        return [[1.0, float(number)] for number, _ in enumerate(texts)]

    def embed_query(self, text):
        raise ConnectionError("the server is down")


async def test_an_embedding_server_that_is_down_leaves_the_words():
    built = ToolIndex.build(toolkit(), embeddings=Down())
    with pytest.raises(ConnectionError):
        built.search("song")
    _, model = rehearse(look("song"), DONE, index=built)
    assert model.names[0][0] == "print_invoice"
    assert {"share_song", "get_song"} & {*model.names[1]}
    gecko, model = create([DONE], index=built)
    await gecko.ainvoke({"messages": [("user", "Print the invoice 7")], "task_state": {"runtime_state": {}}})
    assert model.names[0][0] == "print_invoice"


@pytest.mark.parametrize(("tools", "given", "message"), [
    ([len], {}, "tools: expected a Toolkit, such as .*, got builtin_function_or_method"),
    ([], {"embeddings": "openai:small"}, "embeddings: expected an object with embed_documents, .*, got str"),
    ([], {"reranker": 3}, "reranker: expected an object with compress_documents, .*, got int"),
])  # fmt: skip
def test_what_can_never_search_is_refused_when_the_index_is_built(tools, given, message):
    with pytest.raises(GeckoError, match=message):
        ToolIndex.build(tools, **given)


def test_an_index_of_another_kind_or_of_other_tools_is_refused():
    with pytest.raises(GeckoError, match=r"index: expected a ToolIndex.build\(toolkit\), got list"):
        create([DONE], index=["song"])
    with pytest.raises(GeckoError, match="index: built from other tools, without"):
        create([DONE], index=ToolIndex.build(toolkit().select(names=toolkit().names[1:])))


def test_the_agent_searches_too():
    tools = Toolkit(spec(name, effect="read", stated=True, real=lambda id: {"id": id}) for name in toolkit().names)
    plan = [look("share a song"), call("share_song", id="1"), DONE]
    gecko, _ = create(plan, tools=tools, create=partial(create_gecko_agent, interrupt_on="none"))
    gecko.checkpointer = InMemorySaver()
    given = {"messages": [("user", "Print 7")], "task_state": {"runtime_state": {}}, "checklist": [{"check": "True"}]}
    run = gecko.invoke(given, thread())
    assert [entry["call"]["name"] for entry in run["execution"]["calls"]] == ["share_song"]
