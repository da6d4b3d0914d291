"""What an agent asks and what it really did, below the rehearsal: text, page, live view."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from rich.console import Console

from gecko_graph import format_run
from gecko_graph.agent.graph import create_gecko_agent
from gecko_graph.demo.service import OrderService
from gecko_graph.display import html_page, watch
from gecko_graph.display.drafts import Drafts
from gecko_graph.display.live import show
from gecko_graph.display.page import html_part
from gecko_graph.display.tree import as_text, rehearsal_tree
from gecko_graph.events import Reader, stream_options
from gecko_graph.scenario import shipped
from tests.runs_to_show import NASTY, RUN

APPROVED = Command(resume={"decisions": [{"type": "approve"}] * 3})
THREAD = {"configurable": {"thread_id": "1"}}


def entry(name, status="ok", **more):
    return {"call": {"id": name, "name": name, "args": {"n": 1}}, "status": status, "tries": 1} | more


DRIFT = {"kind": "value", "path": "$.price", "predicted": 5, "real": 6}
EXECUTION = {
    "v": 1,
    "turn": 1,
    "status": "in_doubt",
    "digest": "d",
    "calls": [
        entry("order", result={"price": 6}, drift=[DRIFT]),
        entry("note", result="written", by="person"),
        entry("pay", "error", result="no money", departure={"code": "error", "message": "no money"}),
        entry(
            "look",
            result=[],
            departure={"code": "schema", "message": "not a list of orders"},
            undocumented=["no orders"],
        ),
        entry("ship", "skipped", departure={"code": "precondition", "message": "it is not paid"}),
        entry("mail", "in_doubt"),
    ],
    "left": [{"id": "z", "name": "close", "args": {}}],
    "rehearsals": 2,
}
ROWS = [
    ("ok", '{"price": 6}'),
    ("drift", "value $.price: predicted → real 5 → 6"),
    ("ok", "written (a person's words)"),
    ("error", "no money"),
    ("departed", "not a list of orders"),
    ("undocumented", "no orders"),
    ("skipped", "it is not paid"),
    ("in doubt", "no answer yet"),
]
OUTPUT = {"messages": [], "rehearsal": RUN, "execution": EXECUTION}


def squeezed(text):
    return " ".join(text.replace("│", " ").split())


@pytest.mark.parametrize("is_terminal", [True, False])
def test_each_real_call_says_what_came_of_it(is_terminal):
    out = io.StringIO()
    console = Console(file=out, width=200, force_terminal=is_terminal, color_system=None, legacy_windows=False)
    show(console, [], {**RUN, "execution": EXECUTION})
    for shown in (squeezed(out.getvalue()), squeezed(str(format_run(OUTPUT, width=200)))):
        assert "in doubt: 5 real calls, 1 drifted, 1 not made; 2 rehearsals" in shown
        assert all(f"{word} {text}" in shown for word, text in ROWS)
        assert "left close()" in shown
        assert shown.count("no money") == 1, "an error is its own departure"


def test_a_page_has_it_below_the_rehearsal():
    for page in (html_page(OUTPUT), format_run(OUTPUT)._repr_html_()):
        headings = [
            page.index(each) for each in ("Change of the task state</h2>", "Carried out</h2>", "2 attempts</h2>")
        ]
        assert headings == sorted(headings)
        assert "5 real calls, 1 drifted" in page
        assert "predicted → real 5 → 6" in page
        assert page.index("not made</p>") < page.index(">close<")
    assert "Carried out</h2>" not in html_page(RUN)


def test_a_page_says_first_what_was_really_done():
    asked = {"action_requests": [{"name": "pay", "args": {}, "description": "Pays:\n````\n```5```\n````\nfor it"}] * 2}
    waiting = {**OUTPUT, "__interrupt__": [SimpleNamespace(value=asked)]}
    for run, says in (
        (RUN, "Only rehearsed: nothing was done for real but 1 read<"),
        ({**RUN, "attempts": RUN["attempts"][:1]}, "Only rehearsed: nothing was done for real<"),
        (waiting, "Not done yet: 2 calls below wait for a decision<"),
        (OUTPUT, "For real: in doubt: 5 real calls, 1 drifted, 1 not made; 2 rehearsals<"),
    ):
        for page in (html_page(run), format_run(run)._repr_html_()):
            assert page.index(says) < page.index('<div class="verdict')
            assert page.count("answer in the rehearsal") == 1
    for shown in (html_page(waiting), str(format_run(waiting))):
        assert "````" not in shown
        assert shown.count("```5```") == 2


def test_texts_of_reality_are_harmless():
    drift = [{"kind": "value", "path": f"$.{NASTY}", "predicted": NASTY, "real": 6}]
    nasty = entry("x", result={NASTY: NASTY}, departure={"code": "ensures", "message": NASTY}, drift=drift)
    output = {**OUTPUT, "execution": {**EXECUTION, "calls": [nasty]}}
    asked = {
        **OUTPUT,
        "__interrupt__": [
            SimpleNamespace(value={"action_requests": [{"name": NASTY, "args": {NASTY: NASTY}, "description": NASTY}]})
        ],
    }
    for run in (output, asked):
        assert "<script>" not in html_page(run)
        assert "\x1b" not in str(format_run(run))


def test_while_a_person_is_asked_the_preview_stands_in_the_place_of_an_earlier_execution():
    request = {"action_requests": [{"name": "pay", "args": {"euros": 5}, "description": "Changes the balance."}]}
    for run in (
        {**OUTPUT, "__interrupt__": [SimpleNamespace(value=request)]},
        SimpleNamespace(value=OUTPUT, interrupts=(SimpleNamespace(value=request),)),
    ):
        for shown in (squeezed(str(format_run(run))), html_page(run)):
            assert "aiting for a decision on 1 call" in shown
            assert "Changes the balance." in shown
            assert "5 real calls" not in shown


@pytest.fixture
def agent():
    scenario = shipped("order")
    with OrderService() as service:
        yield (
            create_gecko_agent(
                service.toolkit(), models=scenario.models(), context=scenario.limits, checkpointer=InMemorySaver()
            ),
            scenario.inputs(0),
        )


def test_watched_it_pauses_with_what_it_asks_and_goes_on_with_real_calls(agent, capsys):
    graph, inputs = agent
    run = watch(graph, inputs, THREAD)
    shown = squeezed(capsys.readouterr().out)
    assert "result accepted, 3 of 3" in shown
    assert 'asks placeOrder(sku: "MUG", quantity: 2) asks placeOrder' in shown
    assert len(run["__interrupt__"]) == 1
    run = watch(graph, APPROVED, THREAD)
    shown = squeezed(capsys.readouterr().out)
    assert 'real refundOrder(order_id: "A-1001", amount: 5)' in shown
    assert "carried out done: 5 real calls, no drift" in shown
    assert "accepted" not in shown, "the rehearsal is of the run before"
    assert run["execution"]["status"] == "done"


def test_a_live_picture_is_drawn_from_the_events_of_real_calls(agent):
    graph, inputs = agent
    graph.invoke(inputs, THREAD)
    drafts, pages, texts = Drafts(), [], []

    def take(event):
        drafts.add_real(event)
        page = {"attempts": [], "execution": drafts.execution}
        pages.append(page)
        texts.append(squeezed(as_text(rehearsal_tree(page), width=200)))

    reader = Reader(take)
    for part in graph.stream(APPROVED, THREAD, **stream_options(graph)):
        reader.read(part)
    assert texts[0] == 'not over: 1 real call └── findItems(text: "mug") for real started no answer yet'
    assert "not over: 5 real calls" in texts[-1]
    assert "no answer yet" not in texts[-1]
    assert "attempt" not in html_part(pages[-1]).split("</style>")[1]
    assert set(reader.new) >= {"execution", "messages"}
    assert reader.rehearsal is None
