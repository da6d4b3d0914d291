"""What a write that went wrong has done: nothing where it is said so, else it is open."""

from __future__ import annotations

import json

import httpx
import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException, tool
from langgraph.types import Command

import gecko_graph
from gecko_graph import GeckoError, Refused, Tool, Toolkit
from tests.agents import make_agent, thread
from tests.tools.http_server import as_json, serving
from tests.tools.real_calls import amake, make
from tests.tools.small_documents import document

SAID = ["no such account", {"code": "closed", "since": 2020}, None]


def paying(raised, **more):
    def pay(to: str) -> dict:
        """Pay."""
        raise raised

    return Toolkit.from_tools([Tool(pay, **more)])["pay"]


@pytest.mark.parametrize("said", SAID)
async def test_a_tool_s_own_word_is_the_error_result(said):
    tool = paying(Refused(said))
    for answer, in_doubt in (make(tool, {"to": "ann"}), await amake(tool, {"to": "ann"})):
        assert (answer.status, answer.result, in_doubt) == ("error", said, False)
    assert make(paying(Refused()), {"to": "ann"})[0].result == "refused"
    assert "not JSON" in make(paying(Refused(object())), {"to": "ann"})[0].result
    assert gecko_graph.Refused is Refused
    assert not issubclass(Refused, GeckoError), "it is no mistake of a user's"


def test_of_the_same_error_a_write_is_in_doubt_and_a_read_has_failed():
    assert not make(paying(KeyError("id")), {})[1], "it has not begun without its argument"
    answer, in_doubt = make(paying(KeyError("id")), {"to": "ann"})
    assert (answer.status, answer.result, in_doubt) == ("error", "KeyError: 'id'", True)
    answer, in_doubt = make(paying(KeyError("id"), effect="read"), {"to": "ann"})
    assert (answer.status, answer.result, in_doubt) == ("error", "KeyError: 'id'", False)
    assert make(paying(TimeoutError(), effect="read"), {"to": "ann"})[1], "a read that is made again"
    asked = httpx.Request("POST", "http://x")
    busy = httpx.HTTPStatusError("s", request=asked, response=httpx.Response(429, request=asked))
    answer, in_doubt = make(paying(busy), {"to": "ann"})
    assert (answer.status, answer.retry_after, in_doubt) == ("error", 0.0, False), "it is waited out"


def returns(to: str):
    """Pay."""
    return ToolMessage("closed", status="error", tool_call_id="1")


def commands(to: str):
    """Pay."""
    return Command(update={"messages": [ToolMessage("closed", status="error", tool_call_id="1")]})


@tool
def raises(to: str) -> str:
    """Pay."""
    raise ToolException("closed")


@tool
async def handles(to: str) -> str:
    """Pay."""
    raise ToolException("closed")


handles.handle_tool_error = handles.handle_validation_error = True
TOOLS = {"returns": returns, "commands": commands, "raises": raises, "handles": handles}


@pytest.mark.parametrize("name", TOOLS)
async def test_an_error_result_leaves_a_write_open_unless_the_tool_is_declared_so(name):
    for more, expected in (({}, True), ({"refuses": True}, False), ({"effect": "read"}, False)):
        spec = Toolkit.from_tools([Tool(TOOLS[name], **more)])[name]
        for answer, in_doubt in (make(spec, {"to": "ann"}), await amake(spec, {"to": "ann"})):
            assert (answer.status, in_doubt) == ("error", expected)
            assert "closed" in answer.result
    assert make(paying(KeyError("id"), refuses=True), {"to": "ann"})[1], "it raises something else"


def test_arguments_that_a_tool_refuses_itself_are_no_doubt_when_it_handles_that_either():
    answer, in_doubt = make(Toolkit.from_tools([handles])["handles"], {"to": {"no": "text"}})
    assert (answer.status, in_doubt) == ("error", False)
    assert "valid string" in answer.result


PAY = {"/pay": {"post": {"operationId": "pay", "responses": {"200": {"description": "paid"}}}}}
STATUSES = {404: False, 429: False, 409: True, 500: True}


@pytest.mark.parametrize(("status", "expected"), STATUSES.items())
def test_an_http_tool_goes_by_the_status(status, expected):
    with serving() as here:
        here.answer = lambda asked: as_json({"error": "closed"}, status)
        tool = Toolkit.from_openapi(document(PAY), server=here.url)["pay"]
        answer, in_doubt = make(tool, {})
    assert (answer.status, in_doubt, len(here.asked)) == ("error", expected, 1)
    assert answer.retry_after == (0.0 if status == 429 else None)


def test_an_http_tool_that_sent_nothing_is_no_doubt():
    with serving() as gone:
        url = gone.url
    secured = document(PAY) | {"security": [{"key": []}], "components": {"securitySchemes": {
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"}}}}  # fmt: skip
    for one in (document(PAY), secured):
        answer, in_doubt = make(Toolkit.from_openapi(one, server=url)["pay"], {})
        assert (answer.status, in_doubt) == ("error", False)


@pytest.mark.parametrize("error", [json.JSONDecodeError("cut off", "", 0), KeyError("id")], ids=["cut off", "no id"])
@pytest.mark.parametrize("keyed", [True, False], ids=["with a key", "without"])
def test_a_write_that_fails_while_it_reads_its_answer_is_not_paid_twice(error, keyed):
    paid = {}

    def pay(to: str, amount: int, key: str = "") -> dict:
        """Pay."""
        is_new = key not in paid or not keyed
        paid.setdefault(key, []).append((to, amount)) if is_new else None
        if len(paid) == 1 and is_new:
            raise error
        return {"id": "P-1"}

    tool = Tool(
        pay,
        effect="write",
        idempotency="key" if keyed else None,
        simulate=lambda state, to, amount, **_: state["paid"].append(to) or {"id": "S-9001"},
    )
    plan = [{"call": "pay", "args": {"to": "ann", "amount": 50}}, {"say": "Paid."}]
    agent = make_agent(Toolkit.from_tools([tool]), plan, plan)
    checklist = [{"description": "paid", "check": "len(state.paid) == 1"}]
    given = {"messages": [("user", "Pay ann 50")], "task_state": {"paid": []}, "checklist": checklist}
    out = agent.invoke(given, thread())
    assert [each for some in paid.values() for each in some] == [("ann", 50)], "one payment"
    if keyed:
        assert out["execution"]["status"] == "done"
    else:
        assert "not known whether it took effect" in str(out["__interrupt__"])
        assert not out.get("execution")
