"""Secrets in error texts, endpoint settings and what is shown: masked wherever they go. Data stays as it is."""

from __future__ import annotations

import itertools
import json

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from evals.harness.command import head_of, options_of, parser_of
from evals.harness.runner import failure
from evals.suites.speed import Speed
from gecko_graph import GeckoContext, GeckoError, Models, Tool, Toolkit, create_gecko, format_run
from gecko_graph.cli import main
from gecko_graph.errors import PatchConflict
from gecko_graph.masking import MASK, mask
from gecko_graph.models import factory
from gecko_graph.models.failure import failure_of
from gecko_graph.testing import failing, recorded
from tests import desk
from tests.cli.command import SHOP
from tests.secrets_to_mask import HEX, LOOK_ALIKES, SECRETS, SECRETS_IN_HEX, WORD

SOME = SECRETS[::9]
"""For what takes a whole run; all of them are masked by the same function."""


def create(tools, **models):
    context = GeckoContext(max_retries=1, max_steps=200)
    return create_gecko(tools, model=Models(**models), checkpointer=InMemorySaver(), context=context)


def rehearse(gecko, thread):
    """The record of a run, and all that it shows, as text."""
    config = {"configurable": {"thread_id": thread}}
    modes = ["custom", "updates", "values"]
    streamed = list(gecko.stream(desk.inputs(), config, stream_mode=modes, subgraphs=True))
    state = gecko.get_state(config).values
    shown = format_run(state)
    plain = json.dumps([streamed, state], default=lambda each: getattr(each, "__dict__", None) or repr(each))
    return state["rehearsal"], [plain, str(shown), shown._repr_html_()]


def stored(saver):
    """All that was checkpointed, as text."""
    kept = itertools.chain(saver.blobs.values(), *(each.values() for each in saver.writes.values()))
    return [repr(each) for each in kept] + [repr(saver.storage)]


def leaks(texts):
    """Where the secret still stands, with what is before it."""
    return [text[max(0, place - 60) : place] for text in texts if (place := text.find(WORD)) >= 0]


def test_what_a_tool_raises_is_masked_wherever_it_goes():
    def weigh(paper: str) -> int:
        """Weigh a paper."""
        raise ValueError(SOME[int(paper)])

    def put(state, tray, paper):
        raise RuntimeError(SOME[int(paper)])

    tools = Toolkit.from_tools([*desk.FUNCTIONS, weigh]).declare(
        Tool("put", simulate=put), Tool("weigh", effect="read")
    )
    papers = [str(number) for number in range(len(SOME))]
    calls = [{"call": "put", "args": {"tray": "letters", "paper": paper}} for paper in papers]
    calls += [{"call": "weigh", "args": {"paper": paper}} for paper in papers]
    ends = [*calls, {"say": "Done."}]
    gecko = create(tools.open("weigh"), planner=recorded(planner=[ends, ends]))
    run, shown = rehearse(gecko, "secret")
    outcomes = [step["outcome"] for attempt in run["attempts"] for step in attempt["steps"]]
    assert [each["rung"] for each in outcomes] == [*["python"] * len(SOME), *["real"] * len(SOME)] * 2
    assert [each for each in outcomes if each["status"] != "error" or MASK not in each["result"]] == []
    assert leaks([*shown, *stored(gecko.checkpointer)]) == []


def test_what_a_model_raises_is_masked_wherever_it_goes():
    broken = failing(RuntimeError())
    gecko = create(desk.toolkit(), planner=broken, judge=broken, bootstrapper=broken)
    for number, text in enumerate(SOME):
        broken.error = RuntimeError(text)
        run, shown = rehearse(gecko, str(number))
        assert MASK in run["attempts"][0]["stop_reason"], text
        assert leaks(shown) == [], text
    assert leaks(stored(gecko.checkpointer)) == []


def test_what_a_model_raises_is_masked_on_the_command_line(monkeypatch, capsys, tmp_path):
    """One is enough: what a model raises is masked before it comes there."""
    monkeypatch.setattr(factory, "chat_model", lambda model, **_: failing(RuntimeError(SECRETS[1])))
    file = tmp_path / "out.json"
    address = f"http://ann:{WORD}@127.0.0.1:1/v1"
    assert main(["run", SHOP, "--model", "openai:any", "--base-url", address, "--json", str(file)]) == 3
    told = capsys.readouterr()
    assert "are address, key and model name right?" in told.out
    assert WORD not in told.out + told.err + file.read_text()


@pytest.mark.parametrize("text", SECRETS_IN_HEX)
def test_what_only_its_place_tells_from_a_hash_is_masked(text):
    assert mask(text.format(w=HEX)).count(MASK) >= 1
    assert HEX not in mask(text.format(w=HEX))


def test_an_errors_own_words_are_masked():
    for text in SECRETS:
        for error in (GeckoError(text), PatchConflict(text)):
            assert WORD not in f"{error} {error!r} {error.args}"
        assert WORD not in failure_of(RuntimeError("x" * 280 + " " + text)), "half a secret is one, too"
        assert WORD not in failure(RuntimeError(text))
        assert WORD[:8] not in failure_of(RuntimeError("x" * 270 + " " + text))


def test_a_masked_text_stays_as_it_is():
    for text in SECRETS:
        assert mask(mask(text)) == mask(text) != text
        assert mask(f"({text})").startswith("(")


def test_what_only_looks_like_a_secret_stays():
    for text in LOOK_ALIKES:
        for whole in (text, f"cannot find {text}.", json.dumps({"id": text}), f"({text})"):
            assert mask(whole) == whole


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('{"pin": "739214"}', "739214"),
        ("cvv=123", "123"),
        ("otp: 481516", "481516"),
        ("card 4111111111111111 was declined", "4111"),
        ('{"card_number": "4111 1111 1111 1111"}', "1111"),
        ("pul-" + 4 * "a1b2c3d4e5", "a1b2"),
    ],
)
def test_a_number_is_masked_by_its_name(text, number):
    assert number not in mask(text)
    assert mask(mask(text)) == mask(text)


def test_data_is_masked_where_it_is_shown_and_nowhere_else():
    secret = f"sk-{WORD}"
    attempt = [{"call": "put", "args": {"tray": "letters", "paper": secret}}, {"call": "look"}, {"say": "Done."}]
    run = desk.gecko(attempt, context=GeckoContext(max_retries=0)).invoke(desk.inputs())
    steps = run["rehearsal"]["attempts"][0]["steps"]
    assert steps[0]["call"]["args"]["paper"] == secret
    assert steps[1]["outcome"]["result"]["trays"]["letters"] == ["from mum", secret]
    assert secret in steps[0]["outcome"]["patch"][0]["value"]
    shown = format_run(run)
    assert WORD not in f"{shown} {shown._repr_html_()}"


def test_an_endpoints_password_is_not_in_the_record_of_a_measurement():
    given = parser_of(Speed, "speed").parse_args([])
    given.base_url, given.planner = f"http://ann:{WORD}@host/v1", "recorded"
    head = head_of(Speed(options_of(Speed, given)), command="python -m evals speed")
    assert head["options"]["base_url"] == "http://ann:…@host/v1"
