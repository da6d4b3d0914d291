"""What is hard to learn of services: words of the state in messages, lists of objects, limits that documents name."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from gecko_graph import Tool, Toolkit, World
from gecko_graph.learning.learn import Learned, learn_contracts
from gecko_graph.state import Call
from gecko_graph.values.observation import Observation
from gecko_graph.world.rung import Answer


def cancel(order: str) -> dict:
    """Cancel an open order."""
    raise NotImplementedError


def place(lines: list[dict[str, Any]]) -> dict:
    """Order items."""
    raise NotImplementedError


def fill(litres: int) -> dict:
    """Fill the tank. It holds up to 50 litres."""
    raise NotImplementedError


def refund(order: str) -> dict:
    """Refund an order."""
    raise NotImplementedError


TOOLKIT = Toolkit.from_tools([Tool(each, effect="write") for each in (cancel, place, fill, refund)])


def learn(
    tool: str, draw: Callable[[Random], tuple[dict, dict]], error: Callable[[dict, dict], str | None], count: int = 200
) -> Learned:
    """Learn from random calls, each with its state; `error` is what the service says of one."""
    source, rows = Random(0), list[Observation]()
    for _ in range(count):
        args, state = draw(source)
        said = error(args, state)
        result: Any = {"error": said} if said else {"done": True}
        rows.append(Observation(tool, args, "error" if said else "ok", result, state, []))
    return learn_contracts(TOOLKIT, rows)


def rules(learned: Learned, tool: str) -> list[dict]:
    return [clause for clause in learned.contracts[tool]["requires"] if "evidence" in clause]


def said_of(learned: Learned, tool: str, args: dict, state: dict) -> Any:
    spec: Any = learned.apply(TOOLKIT)[tool]
    run = spec.contract.open(args=args, parameters=spec.parameters, state=state, call={}, now=None, seed=0)
    refusal = run.refusal()
    return refusal.error if refusal else run.unknown


def test_kinds_that_differ_in_a_word_of_the_state_are_one():
    def draw(source: Random) -> tuple[dict, dict]:
        orders = {f"o{n}": {"status": source.choice(["open", "shipped", "cancelled", "lost"])} for n in range(5)}
        return {"order": source.choice(list(orders))}, {"orders": orders}

    def error(args: dict, state: dict) -> str | None:
        status = state["orders"][args["order"]]["status"]
        return None if status == "open" else f"order is {status}"

    learned = learn("cancel", draw, error)
    (rule,) = rules(learned, "cancel")
    assert "open" in rule["check"]
    assert learned.unknown["cancel"] == []
    told = said_of(learned, "cancel", {"order": "o1"}, {"orders": {"o1": {"status": "lost"}}})
    assert "order is lost" in str(told)


@pytest.mark.parametrize("enough", ["known", "stocked"])
def test_what_every_item_of_a_list_must_fulfil_is_learned(enough):
    def draw(source: Random) -> tuple[dict, dict]:
        table = {sku: {"stock": source.randint(1, 9)} for sku in source.sample("abcdefgh", 6)}
        skus = "abcdefgh" if enough == "known" else "".join(table)
        lines = [{"sku": source.choice(skus), "quantity": source.randint(1, 9)} for _ in range(source.randint(1, 3))]
        return {"lines": lines}, {"products": table, "number": source.randint(1, 10**9)}

    def error(args: dict, state: dict) -> str | None:
        for line in args["lines"]:
            if line["sku"] not in state["products"]:
                return "no such product"
            if enough == "stocked" and line["quantity"] > state["products"][line["sku"]]["stock"]:
                return "too few"
        return None

    (rule, *_) = rules(learn("place", draw, error), "place")
    kind = {"known": "membership", "stocked": "comparison"}[enough]
    assert (rule["evidence"]["kind"], rule["evidence"]["status"]) == (kind, "established")
    assert rule["check"].startswith("(all(one.")
    assert rule["check"].endswith(" for one in args.lines))")


def test_a_limit_that_the_document_names_may_refuse():
    def draw(source: Random) -> tuple[dict, dict]:
        return {"litres": source.randint(0, 40)}, {"level": source.randint(0, 50)}

    def error(args: dict, state: dict) -> str | None:
        return "too much" if args["litres"] + state["level"] > 50 else None

    (rule,) = rules(learn("fill", draw, error), "fill")
    assert (rule["evidence"]["kind"], rule["evidence"]["status"]) == ("documented", "established")


def test_a_tool_that_was_never_done_warns_and_refuses_nothing():
    learned = learn("refund", lambda source: ({"order": "x"}, {"n": source.random()}), lambda *_: "not now", 20)
    (rule,) = rules(learned, "refund")
    assert rule["evidence"]["status"] == "proposed"
    assert "20 times" in rule["pass"]
    assert "error" not in rule


def look() -> dict:
    """Show what is there."""
    raise NotImplementedError


WHOLE = {"op": "add", "path": ["items"], "value": "{{ result }}"}
BY_KEY = {"op": "add", "path": ["items", "{{ one }}"], "value": "{{ result[one] }}"}
THINGS = {"for_each": "result.keys()", "as": "one", "do": [BY_KEY]}
TEA = {"tea": {"stock": 3}}


@pytest.mark.parametrize(
    ("observes", "start", "seen", "left"),
    [
        (WHOLE, {}, TEA, {}),  # that there is no cup is not known any more
        (WHOLE, {"mine": 1}, TEA, {"mine": 1}),
        (WHOLE, {"items": {}}, TEA, {"items": {"tea": {}}}),  # was given
        (THINGS, {"mine": 1}, TEA, {"mine": 1, "items": {"tea": {}}}),
        (THINGS, {"mine": 1}, {"shelf": TEA, "drawer": {}}, {"mine": 1}),
        (THINGS, {"mine": 1}, {"shelf": TEA, **TEA}, {"mine": 1, "items": {"tea": {}}}),
    ],
)
def test_what_only_reads_have_shown_is_unknown_after_a_write_until_it_is_read_again(observes, start, seen, left):
    tools = Toolkit.from_tools([Tool(look, effect="read"), Tool(cancel, effect="write")])
    world = World(tools.with_contracts({"contracts": {"look": {"observes": [observes]}}}), state=start)

    def made(name: str, result: Any, **args: Any) -> Any:
        read = name == "look" or "error" in result
        answer = Answer("error" if "error" in result else "ok", result, [] if read else None)
        world.record(Call(id=f"call_{len(world.log)}", name=name, args=args), answer)
        return world.state

    for _ in range(2):
        assert made("look", seen) == {**start, "items": seen}
        assert made("cancel", {"error": "no"}, order="a") == {**start, "items": seen}
        assert made("cancel", {"done": True}, order="a") == left
        assert made("cancel", {"done": True}, order="b") == left


def test_refusals_in_a_state_of_which_nothing_is_known_speak_for_no_rule_and_against_none():
    def draw(source: Random) -> tuple[dict, dict]:
        names = [f"o{number}" for number in source.sample(range(1000), 6)]
        world.update(names=names[:3])
        known = {"orders": {name: {} for name in names[:3]}} if source.random() < 0.6 else {}
        return {"order": source.choice(names)}, known

    world: dict = {}
    learned = learn("cancel", draw, lambda args, _: None if args["order"] in world["names"] else "unknown order")
    (rule,) = (each for each in rules(learned, "cancel") if each["evidence"]["kind"] == "membership")
    assert rule["evidence"]["status"] == "established"
    assert said_of(learned, "cancel", {"order": "o1"}, {"orders": {"o2": {}}}) == {"error": "unknown order"}
    assert said_of(learned, "cancel", {"order": "o1"}, {}) != "unknown order"
