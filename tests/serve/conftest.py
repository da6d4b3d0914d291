"""A server in this process, and clients of it. Without the extra `serve` these tests skip."""

from pathlib import Path

import httpx
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from gecko_graph import GeckoContext, Scenario, World
from gecko_graph.serve.app import Server
from gecko_graph.serve.guard import LOOPBACK, Guard
from gecko_graph.serve.operations import HttpOperations
from gecko_graph.serve.sessions import Sessions

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RULES = GeckoContext(semantic_validation=False, ladder=("contract", "python", "example", "schema"))


def shop() -> Scenario:
    return Scenario.load(EXAMPLES / "shop" / "cancel-the-mug.gecko.yaml")


def world_of(tools, state=None):
    return World(tools, state=state, context=RULES)


def client_of(base, *, case=None, prefix="", token=None, hosts=LOOPBACK, store=None, more=(), **limits):
    sessions = Sessions(base, store=store, **limits)
    app = Guard(
        Server(sessions, HttpOperations(base.toolkit, prefix=prefix), case).build(more), hosts=hosts, token=token
    )
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
    client.sessions = sessions
    return client


@pytest.fixture
def client():
    case = shop()
    return client_of(world_of(case.tools, case.state), case=case)
