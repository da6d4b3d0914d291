"""reasoner: the next need or the answer, from the trusted state and the committed calls alone."""

from __future__ import annotations

from functools import partial

import pytest

from gecko_graph import GeckoContext
from gecko_graph.testing import drive
from gecko_graph.toolgate.nodes import reasoner
from gecko_graph.values.notes import note
from gecko_graph.world.rung import find_gated
from tests import shop

NODE = partial(reasoner, toolkit=shop.toolkit(), gated=find_gated(shop.toolkit()))


def test_it_sees_what_is_true_and_nothing_that_was_refused(attempt, step):
    gone = step(
        "sell",
        {"item": "pen"},
        "refused: nothing was paid",
        status="error",
        notes=[note("refused", "nothing was paid")],
    )
    state = attempt(task_state=shop.start(open=False), steps=[gone, step("gift", {"item": "ink"}, {"given": "ink"})])
    driven = drive(NODE, state, [{"need": " Open the shop. "}])
    seen = driven.asks[0].variables
    assert "nothing was paid" not in str(seen)
    assert seen["results"] == '1. gift({"item": "ink"}) -> ok: {"given": "ink"}'
    assert seen["gated"] == "sell: the shop is closed"
    assert '"till": 0' in seen["state"]
    assert driven.update == {"need": "Open the shop."}


@pytest.mark.parametrize("steps", [2, 5])
def test_after_the_last_call_only_an_answer_counts(attempt, step, steps):
    state, knobs = attempt(steps=[step()] * steps), GeckoContext(max_steps=2)
    assert drive(NODE, state, [{"need": "More."}], context=knobs).update["stop"]["code"] == "max_steps"
    assert drive(NODE, state, [{"answer": "Done."}], context=knobs).update["stop"]["code"] == "answered"


def test_no_reply_ends_it_with_the_reason(attempt):
    update = drive(NODE, attempt(), [RuntimeError("down")]).update
    assert update["stop"] == {"code": "reasoner_failed", "message": "the reasoner did not answer: down"}


def test_what_a_model_supposed_of_the_state_is_not_shown(attempt):
    before = shop.start(till="UNTRUE", stock={"pen": 1, "ink": "UNTRUE"})
    state = attempt(before=before, task_state=before, supposed=["/till", "/stock/ink"])
    seen = drive(NODE, state, [{"answer": "-"}]).asks[0].variables["state"]
    assert '"pen": 1' in seen
    assert "UNTRUE" not in seen
    all_of_it = attempt(before=before, task_state=before, supposed=[""])
    assert drive(NODE, all_of_it, [{"answer": "-"}]).asks[0].variables["state"] == ""
