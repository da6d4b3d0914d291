"""Rungs of a user's own: where they are tried, what they may do, and that none of them breaks a run."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from gecko_graph import GeckoContext, GeckoError, Rung, Tool, Toolkit, create_gecko
from gecko_graph.context import LADDER
from gecko_graph.models.ask import Ask, FunctionCall
from gecko_graph.models.roles import SimulatedResponse
from gecko_graph.world.ladder import RUNGS, climb, ladder_of, rungs_of
from gecko_graph.world.rung import Answer, Pass
from tests import desk


def cached(request):
    return Answer("ok", {"trays": "cached"}, [])


def names(own, ladder=LADDER):
    return [rung.name for rung in ladder_of(GeckoContext(ladder=ladder), rungs_of(own))]


def test_the_order_is_the_ladder_s_and_rungs_that_it_does_not_name_come_after_real():
    own = [Rung("cache", cached), Rung("replay", cached)]
    assert names([]) == list(LADDER)
    assert names(own) == ["real", "cache", "replay", *LADDER[1:]]
    assert names(own, ("model", "replay")) == ["cache", "model", "replay"]
    assert names(own, ("cache", "contract", "real")) == ["cache", "contract", "real", "replay"]
    assert names([Rung("model", cached)]) == list(LADDER)


async def waits(request):
    return Pass("later")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rungs_of([cached]), "rungs: expected a Rung, got function"),
        (lambda: rungs_of([Rung("a", cached), Rung("a", cached)]), "rungs: two rungs are called 'a'"),
        (lambda: Rung("a", waits), r"must not be async: yield \[FunctionCall"),
        (lambda: Rung("", cached), r"Rung\('', .*\): expected a name and a function"),
        (lambda: names([], ("contracts",)), "ladder: unknown rung 'contracts'; the rungs are real, contract, python"),
        (lambda: ladder_of(GeckoContext.model_construct(ladder=()), RUNGS), "ladder: it is empty"),
        (
            lambda: create_gecko(desk.toolkit(), context=GeckoContext(ladder=("cash",)), rungs=[Rung("cache", cached)]),
            "ladder: unknown rung 'cash'; the rungs are real, .*, schema, cache",
        ),
    ],
)
def test_mistakes_are_refused_by_name(make, message):
    with pytest.raises(GeckoError, match=message):
        make()


def test_an_own_rung_answers_and_contexts_and_records_hold_its_name():
    gecko = desk.gecko([{"call": "look"}, *desk.RIGHT], rungs=[Rung("cache", lambda request: cached(request)
                       if request.tool.reads else Pass("caches reads only"))])  # fmt: skip
    context = GeckoContext(ladder=("real", "python", "cache"))
    outcomes = [each["outcome"] for each in gecko.invoke(desk.inputs())["rehearsal"]["attempts"][0]["steps"]]
    assert [each["rung"] for each in outcomes] == ["cache", "python", "python"]
    assert outcomes[1]["passed"][1] == {"rung": "cache", "reason": "caches reads only"}
    assert GeckoContext.model_validate_json(context.model_dump_json()) == context
    again = desk.gecko([{"call": "look"}, *desk.RIGHT], context=context, rungs=[Rung("cache", cached)])
    assert again.invoke(desk.inputs())["rehearsal"]["attempts"][0]["steps"][0]["outcome"]["rung"] == "python"


def driven(question, told, rung, *replies, **more):
    """The outcome where this rung is asked before the schema rung."""
    asked = question(ladder=(rung.name, "schema"), **{"effect": "read", **more})
    return told(climb(asked, rungs_of([rung])), replies)


def asks_first(request):
    (reply,) = yield [Ask("simulator", {}, SimulatedResponse, request.where)]
    (done,) = yield (FunctionCall(function=lambda: reply.value.result + 1),)
    return Answer("ok", done.value, [])


def test_a_rung_may_ask_models_and_run_functions(question, told):
    outcome, asks = driven(question, told, Rung("own", asks_first, invents=True), {"status": "ok", "result": 1})
    assert (outcome["rung"], outcome["result"], outcome["invented"]) == ("own", 2, True)
    assert [type(ask) for ask in asks] == [Ask, FunctionCall]


GARBAGE = [
    (lambda request: 1 / 0, "the rung failed: ZeroDivisionError: division by zero"),
    (lambda request: (each for each in ["a"]), "the rung failed: TypeError: expected it to yield lists of Ask and "),
    (lambda request: None, "expected an Answer or a Pass with a reason from the rung, got NoneType"),
    (lambda request: Pass(None), "expected an Answer or a Pass with a reason from the rung, got one without"),
    (lambda request: Answer("fine", 1, []), "the rung's Answer must have the status 'ok' or 'error', and a list"),
    (lambda request: Answer("ok", object(), []), "the result: the root is "),
    (lambda request: Answer("ok", 1, [{"op": "add", "path": "/x", "value": {1}}]), "the change: /0/value is "),
]


@pytest.mark.parametrize(("answer", "reason"), GARBAGE)
def test_whatever_a_rung_raises_or_returns_is_data(question, told, answer, reason):
    outcome = driven(question, told, Rung("own", answer)).value
    assert (outcome["rung"], outcome["status"]) == ("schema", "ok")
    (note,) = outcome["passed"]
    assert note["rung"] == "own"
    assert note["reason"].startswith(reason)
    outcome = driven(question, told, Rung("own", answer, simulated=False)).value
    assert (outcome["rung"], outcome["status"], outcome["simulated"]) == ("own", "error", False)
    assert outcome["result"].startswith(reason)


def test_interrupt_in_a_rung_pauses_the_run():
    def asks_a_person(request):
        return Answer("ok", {"answer": interrupt("look?")}, [])

    gecko = desk.gecko(
        [{"call": "look"}, *desk.RIGHT], rungs=[Rung("python", asks_a_person)], checkpointer=InMemorySaver(),
        tools=Toolkit.from_tools(desk.FUNCTIONS).declare(Tool("look", effect="read")),
        context=GeckoContext(max_retries=0),
    )  # fmt: skip
    thread = {"configurable": {"thread_id": "a"}}
    assert gecko.invoke(desk.inputs(), thread)["__interrupt__"][0].value == "look?"
    gecko.invoke(Command(resume="yes"), thread)
    for _ in range(2):
        run = gecko.invoke(Command(resume="no"), thread)
    (first, *_) = run["rehearsal"]["attempts"][0]["steps"]
    assert first["outcome"]["result"] == {"answer": "yes"}


def test_a_record_does_not_change_with_the_objects_that_a_tool_keeps(question, told):
    kept = []

    def put(state):
        state["trays"]["new"] = {"papers": []}
        kept.append(state)
        return state["trays"]["new"]

    def own(request):
        kept.append({"papers": []})
        return Answer("ok", kept[-1], [{"op": "add", "path": "/x", "value": kept[-1]}])

    for asked, rungs in (
        (question(simulate=put, ladder=("python",)), RUNGS),
        (question(ladder=("own",)), rungs_of([Rung("own", own)])),
    ):
        outcome = told(climb(asked, rungs)).value
        before = str(outcome)
        kept[-1].get("trays", {}).get("new", kept[-1])["papers"].append("later")
        assert str(outcome) == before


# a result that was refused is gone


def test_a_refused_result_leaves_no_fact_and_no_trace():
    rate = desk.function("rate", "Rate of a currency.", "currency")
    contract = {"ensures": [{"check": "result < 5", "error": "no rate is that high"}]}
    tools = Toolkit.from_tools([Tool(rate, effect="read", contract=contract)])
    read = {"call": "rate", "args": {"currency": "EUR"}}
    replies = [{"status": "ok", "result": number} for number in (774_186_555, 1.25)]
    gecko = desk.gecko(
        tools=tools, turns=[{"planner": [[read, read, read, {"say": "Read."}]], "simulator": replies}],
        context=GeckoContext(max_retries=0), checkpointer=InMemorySaver(),
    )  # fmt: skip
    thread = {"configurable": {"thread_id": "a"}}
    steps = gecko.invoke(desk.inputs(), thread)["rehearsal"]["attempts"][0]["steps"]
    results = [step["outcome"]["result"] for step in steps]
    assert results == ["refused: no rate is that high", 1.25, 1.25]
    values = gecko.get_state(thread).values
    assert [fact["result"] for fact in values["bookkeeping"]["facts"].values()] == [1.25]
    assert "774186555" not in str({key: value for key, value in values.items()})
