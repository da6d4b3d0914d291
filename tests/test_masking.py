"""Secrets in error texts, endpoint settings and what is shown: masked wherever they go. Data stays as it is."""

from __future__ import annotations

import itertools
import json

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from evals.harness.command import head_of, options_of, parser_of
from evals.harness.runner import failure
from evals.suites.speed import Speed
from gecko_graph import GeckoContext, GeckoError, Toolkit, create_gecko, format_run
from gecko_graph.cli import main
from gecko_graph.errors import PatchConflict
from gecko_graph.masking import MASK, mask
from gecko_graph.models import factory
from gecko_graph.models.failure import failure_of
from gecko_graph.testing import failing, recorded
from tests import desk
from tests.cli.command import SHOP
from tests.secrets_to_mask import LOOK_ALIKES, SECRETS, WORD

CONFIG = {"configurable": {"thread_id": "secret"}}


def raising(text):
    def simulate(state, **_):
        raise RuntimeError(text)

    return simulate


def rehearse(tools, planner, saver, **models):
    gecko = create_gecko(
        tools, models={"planner": planner, **models}, checkpointer=saver, context=GeckoContext(max_retries=1)
    )
    return gecko, list(gecko.stream(desk.inputs(), CONFIG, stream_mode=["custom", "updates", "values"], subgraphs=True))


def everything(gecko, streamed, saver):
    """All that a run leaves behind, as text."""
    state = gecko.get_state(CONFIG).values
    shown = format_run(state)
    stored = itertools.chain(saver.blobs.values(), *(each.values() for each in saver.writes.values()))
    kept = [repr(each) for each in stored] + [repr(saver.storage)]
    return [repr(streamed), repr(state), str(shown), shown._repr_html_(), *kept]


@pytest.mark.parametrize("text", SECRETS)
def test_what_a_tool_raises_is_masked_wherever_it_goes(text):
    def weigh(paper: str) -> int:
        """Weigh a paper."""
        raise ValueError(text)

    tools = Toolkit.from_tools([*desk.FUNCTIONS, weigh], simulate={"look": raising(text)}, effects={"weigh": "read"})
    calls = [{"call": "look"}, {"call": "weigh", "args": {"paper": "invoice"}}, {"say": "Done."}]
    saver = InMemorySaver()
    gecko, streamed = rehearse(tools.open("weigh"), recorded(planner=[calls, calls]), saver)
    steps = gecko.get_state(CONFIG).values["rehearsal"]["attempts"][0]["steps"]
    assert [step["outcome"]["rung"] for step in steps] == ["python", "real"]
    assert all(step["outcome"]["status"] == "error" and MASK in step["outcome"]["result"] for step in steps)
    assert [where for where in everything(gecko, streamed, saver) if WORD in where] == []


@pytest.mark.parametrize("text", SECRETS)
def test_what_a_model_raises_is_masked_wherever_it_goes(text):
    saver, broken = InMemorySaver(), failing(RuntimeError(text))
    gecko, streamed = rehearse(desk.toolkit(), broken, saver, judge=broken, bootstrapper=broken)
    run = gecko.get_state(CONFIG).values["rehearsal"]
    assert MASK in run["attempts"][0]["stop_reason"]
    assert [where for where in everything(gecko, streamed, saver) if WORD in where] == []


@pytest.mark.parametrize("text", SECRETS)
def test_what_a_model_raises_is_masked_on_the_command_line(text, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(factory, "chat_model", lambda model, **_: failing(RuntimeError(text)))
    file = tmp_path / "out.json"
    address = f"http://ann:{WORD}@127.0.0.1:1/v1"
    assert (
        main(["run", SHOP, "--model", "openai:any", "--base-url", address, "--json", str(file)]) == 3
    )  # no model answered
    told = capsys.readouterr()
    assert WORD not in told.out + told.err + file.read_text()
    assert "http://ann:…@127.0.0.1:1/v1" in told.out


@pytest.mark.parametrize("text", SECRETS)
def test_an_errors_own_words_are_masked(text):
    for error in (GeckoError(text), PatchConflict(text)):
        assert WORD not in f"{error} {error!r} {error.args}"
    assert WORD not in failure_of(RuntimeError("x" * 280 + " " + text)), "half a secret is one, too"
    assert WORD not in failure(RuntimeError(text))
    assert WORD[:8] not in failure_of(RuntimeError("x" * 270 + " " + text))


@pytest.mark.parametrize("text", SECRETS)
def test_a_masked_text_stays_as_it_is(text):
    assert mask(mask(text)) == mask(text) != text
    assert mask(f"({text})").startswith("(")


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_what_only_looks_like_a_secret_stays(text):
    for whole in (text, f"cannot find {text}.", json.dumps({"id": text}), f"({text})"):
        assert mask(whole) == whole


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
