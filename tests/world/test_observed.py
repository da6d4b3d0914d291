"""Reads that run for real in a rehearsal: who may, what they show of the task state, and when they are stale."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph import GeckoContext, Tool, Toolkit, World
from gecko_graph.errors import ToolkitError
from gecko_graph.values.notes import notes_of
from gecko_graph.world.rung import Answer
from gecko_graph.world.rungs import lay_over
from tests.doubts import texts

RETURNS = {"returns": "{{ state.orders[args.id] }}"}
OBSERVES = {"observes": [{"op": "add", "path": ["orders", "{{ args.id }}"], "value": "{{ result }}"}]}
CANCEL = {
    "requires": [{"check": "args.id in state.orders", "error": "unknown order"}],
    "effects": [{"op": "replace", "path": ["orders", "{{ args.id }}", "status"], "value": "cancelled"}],
    "returns": {"ok": True},
}


class Shop:
    """A real service; a rehearsal reads it and never writes to it."""

    def __init__(self):
        self.orders = {"7": {"status": "open", "item": "pen"}, "8": {"status": "open", "item": "ink"}}
        self.calls = []

    def get_order(self, id: str) -> dict:
        """Return an order."""
        self.calls.append(id)
        return self.orders[id]

    def list_orders(self) -> list:
        """List the orders."""
        return [{"id": id, **order} for id, order in self.orders.items()]

    def cancel(self, id: str) -> dict:
        """Cancel an order."""
        raise AssertionError("a rehearsal never gets here")


def world(
    shop=None, *, orders=None, get=None, cancel=CANCEL, contracts=None, reads="real", simulate=None, invariants=()
):
    shop = shop or Shop()
    known = {"get_order": get or {}, **({"cancel": cancel} if cancel else {}), **(contracts or {})}
    tools = [Tool(shop.get_order, effect="read", simulate=simulate), Tool(shop.list_orders, effect="read")]
    tools.append(Tool(shop.cancel, effect="write"))
    toolkit = Toolkit.from_tools(tools, invariants=invariants).with_contracts({"contracts": known})
    return World(toolkit, state={"orders": orders if orders is not None else {}}, context=GeckoContext(reads=reads))


def called(world, name, **args):
    return world.call({"name": name, "args": args})["outcome"]


def test_reads_run_for_real_where_their_user_stated_the_effect():
    shop = Shop()
    for reads, rung in (("simulated", "schema"), ("real", "real")):
        outcome = called(world(shop, reads=reads), "get_order", id="7")
        assert (outcome["rung"], outcome["simulated"]) == (rung, rung != "real")
    assert shop.calls == ["7"]
    gated = {"requires": [{"check": "args.id == '8'", "error": "not yours"}]}
    assert called(world(shop, get=gated), "get_order", id="7")["result"] == "not yours"
    assert shop.calls == ["7"], "a precondition gates a real read"


def claimed(**more):
    from langchain_core.tools import StructuredTool

    tool = StructuredTool.from_function(Shop().get_order, metadata={"readOnlyHint": True})
    return Toolkit.from_tools([Tool(tool, **more)])


@pytest.mark.parametrize(
    ("more", "rung"),
    [
        ({}, "schema"),
        ({"contract": {"requires": [{"check": "args.id != ''", "error": "which?"}]}}, "schema"),
        ({"effect": "read"}, "real"),
        ({"contract": {"observes": []}}, "real"),
    ],
)
def test_an_effect_that_a_server_only_claims_opens_nothing(more, rung):
    tools = claimed(**more)
    outcome = called(World(tools, state={}, context=GeckoContext(reads="real")), "get_order", id="7")
    assert tools["get_order"].effect == "read"
    assert outcome["rung"] == rung


def test_a_write_and_an_unknown_effect_never_run_whatever_the_context_says():
    shop = Shop()
    for effect in (None, "write"):
        toolkit = Toolkit.from_tools([Tool(shop.cancel, effect=effect)])
        outcome = called(World(toolkit, state={}, context=GeckoContext(reads="real")), "cancel", id="7")
        assert outcome["simulated"]
        with pytest.raises(ToolkitError, match="only reads can be opened"):
            toolkit.open("cancel")
    toolkit = Toolkit.from_tools([Tool(shop.cancel, effect="write", contract={"observes": []})])
    assert any("only reads observe" in each.message for each in toolkit.problems)


# observes ------------------------------------------------------------------------------------------------------------


def test_what_a_real_read_shows_is_booked_beside_the_change():
    shop = world(get=OBSERVES)
    outcome = called(shop, "get_order", id="7")
    assert outcome["patch"] == []
    assert outcome["observed"] == [{"op": "add", "path": "/orders/7", "value": {"status": "open", "item": "pen"}}]
    assert shop.state["orders"]["7"]["item"] == "pen"
    assert "observed" not in called(shop, "get_order", id="7")  # known already
    assert called(shop, "cancel", id="7")["status"] == "ok"
    assert World.restore(world(get=OBSERVES)._nodes[0].keywords["toolkit"], shop.snapshot()).state == shop.state


def test_an_observation_that_cannot_be_booked_leaves_the_result_and_is_marked():
    for observes in (
        [{"op": "add", "path": ["orders", "7"], "value": "{{ result.missing }}"}],
        [{"op": "remove", "path": ["nowhere", "7"]}],
    ):
        outcome = called(world(get={"observes": observes}), "get_order", id="7")
        assert outcome["result"]["item"] == "pen"
        assert "observed" not in outcome
        assert "what it shows cannot be evaluated" in texts(outcome, "unclear")[0]
    shop = world(get=OBSERVES, invariants=[{"check": "len(state.orders) == 0", "error": "no orders today"}])
    outcome = called(shop, "get_order", id="7")  # it never breaks an invariant
    assert (outcome["status"], shop.state) == ("ok", {"orders": {}})
    assert texts(outcome, "undocumented") == ["its observation is not booked: no orders today"]


# a read after a simulated write --------------------------------------------------------------------------------------


def test_read_write_read_of_the_same_object_shows_the_write():
    shop = world(get={**RETURNS, **OBSERVES})
    called(shop, "get_order", id="7")
    called(shop, "cancel", id="7")
    outcome = called(shop, "get_order", id="7")
    assert outcome["result"] == {"status": "cancelled", "item": "pen"}
    assert (outcome["rung"], outcome["simulated"]) == ("contract", True)
    assert "own changes" in outcome["passed"][-1]["reason"]
    assert not notes_of(outcome, "stale")
    assert shop.state["orders"]["7"]["status"] == "cancelled"


def test_a_real_read_of_something_untouched_is_not_marked():
    for get in ({**RETURNS, **OBSERVES}, OBSERVES):
        shop = world(orders={"7": {"status": "open"}, "8": {"status": "open"}}, get=get)
        called(shop, "cancel", id="7")
        outcome = called(shop, "get_order", id="8")
        assert (outcome["rung"], notes_of(outcome, "stale")) == ("real", [])
        assert outcome["observed"] == [{"op": "add", "path": "/orders/8/item", "value": "ink"}]


def test_a_read_is_stale_where_the_changes_cannot_be_laid_over_it():
    real = Shop()
    real.orders["7"]["status"] = "shipped"  # the state knows it as open
    shop = world(real, orders={"7": {"status": "open"}}, get={**RETURNS, **OBSERVES})
    called(shop, "cancel", id="7")
    outcome = called(shop, "get_order", id="7")
    assert (outcome["rung"], len(texts(outcome, "stale")), outcome["result"]["status"]) == ("real", 1, "shipped")
    assert shop.state["orders"]["7"] == {"status": "cancelled"}  # the attempt's own change is not overwritten


def test_a_read_that_no_rule_describes_is_stale_after_any_write():
    shop = world(orders={"7": {"status": "open"}})
    assert not notes_of(called(shop, "list_orders"), "stale")
    called(shop, "cancel", id="9")  # refused: it changed nothing
    assert not notes_of(called(shop, "list_orders"), "stale")
    called(shop, "cancel", id="7")
    assert texts(called(shop, "list_orders"), "stale")


VALUES = st.recursive(
    st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(real=VALUES, without=VALUES, shown=VALUES)
def test_laying_over_gives_the_changed_value_wherever_it_gives_one(real, without, shown):
    laid = lay_over(Answer("ok", real), Answer("ok", without), Answer("ok", shown))
    if real == without:
        assert laid is not None
        assert laid.result == shown
    elif laid is not None and isinstance(shown, dict) and isinstance(without, dict):
        changed = [key for key in {*shown, *without} if shown.get(key, ...) != without.get(key, ...)]
        for key in changed:
            if not isinstance(shown.get(key), dict) or not isinstance(without.get(key), dict):
                assert laid.result.get(key, ...) == shown.get(key, ...)


@pytest.mark.parametrize("check", ["args.id in default(state.orders, {})", "defined(state.orders)"])
def test_what_only_reads_show_is_unknown_and_not_empty_before_the_first(check):
    last = {"op": "replace", "path": ["last", "order"], "value": "{{ result }}"}
    observes = {"observes": [*OBSERVES["observes"], last]}
    contract = {**CANCEL, "requires": [{"check": check, "error": "unknown order"}]}
    tools = [Tool(Shop().get_order, effect="read"), Tool(Shop().cancel, effect="write")]
    toolkit = Toolkit.from_tools(tools).with_contracts({"contracts": {"get_order": observes, "cancel": contract}})
    world = World(toolkit, state={}, context=GeckoContext(reads="real"))
    before = called(world, "cancel", id="7")
    assert "state.orders has not been read" in texts(before, "unclear")[0]
    assert "violations" not in before
    assert called(world, "get_order", id="7")["observed"]
    assert world.state["orders"] == {"7": Shop().orders["7"]}
    assert world.state["last"] == {"order": Shop().orders["7"]}, "a value to replace that was never there"
    assert called(world, "cancel", id="7")["status"] == "ok"
