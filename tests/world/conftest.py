"""How rungs and climbs are tested: a question that is easy to write, and somebody who answers."""

from types import GeneratorType
from typing import Any, NamedTuple

import pytest

from gecko_graph import GeckoContext
from gecko_graph.contracts.contract import Contract
from gecko_graph.models.answer import perform
from gecko_graph.models.ask import FunctionCall, QuestionId, Reply
from gecko_graph.testing import reply_to
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.world.rung import RungRequest


class Told(NamedTuple):
    """What came back, and what was asked for it."""

    value: Any
    asks: list


@pytest.fixture
def state():
    return {"trays": {"letters": ["from mum"]}, "count": 0}


def rung_request(*, state, args=None, facts=None, has_simulator=False, **more):
    """One call of the tool `put`: keys of a contract, of the tool and of the context are given beside each other."""
    knobs = {key: more.pop(key) for key in list(more) if key in GeckoContext.model_fields}
    if contract := more.pop("contract", None):
        more["contract"] = Contract.load(contract, where="test: tool put")
    tool = ToolSpec(**{"name": "put", "effect": "write", **more})
    return RungRequest(
        tool=tool,
        call={"id": "call_1", "name": tool.name, "args": args or {}},
        state=state,
        facts=facts or {},
        context=GeckoContext(**knobs),
        where=QuestionId(turn=0, attempt=1),
        has_simulator=has_simulator,
    )


@pytest.fixture
def question(state):
    """`question(contract={...}, effect="write", args={...}, **context)`: `rung_request` on the fixture's state."""
    return lambda *, given=None, **more: rung_request(state=state if given is None else given, **more)


@pytest.fixture
def told():
    """`told(rung(question), replies)`: functions are run, other asks get the replies in order; all must be used."""

    def drive(said, replies=()):
        if not isinstance(said, GeneratorType):
            return Told(said, [])
        waiting, asks, sent = list(replies), [], None
        while True:
            try:
                asked = said.send(sent)
            except StopIteration as done:
                assert not waiting, f"{len(waiting)} replies were not asked for"
                return Told(done.value, asks)
            asks += asked
            sent = [_worked(ask) if isinstance(ask, FunctionCall) else reply_to(ask, waiting.pop(0)) for ask in asked]

    return drive


def _worked(work):
    done = perform(work)
    return Reply(done.value, done.failure, late=done.late)
