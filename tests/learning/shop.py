"""A small real service and rows of its calls: an account, items with prices, an order book."""

import copy
from random import Random
from typing import Any

from gecko_graph import Tool, Toolkit
from gecko_graph.values.difference import make_patch
from gecko_graph.values.observation import Observation, Observer


def buy(item: str, count: int) -> dict:
    """Buy items."""
    raise NotImplementedError


def toolkit() -> Toolkit:
    return Toolkit.from_tools([Tool(buy, effect="write")])


def state(source: Random) -> dict[str, Any]:
    names = source.sample(["pen", "ink", "cup", "map", "hat"], 3)
    return {
        "signed_in": source.random() < 0.8,
        "stock": {name: source.randint(1, 9) for name in names},
        "orders": {},
        "sold": source.randint(3, 50),
    }


def real_buy(now: dict[str, Any], item: str, count: int) -> tuple[str, Any]:
    if not now["signed_in"]:
        return "error", {"error": "sign in first"}
    if item not in now["stock"]:
        return "error", {"error": f"no item '{item}'"}
    if count > now["stock"][item]:
        return "error", {"error": f"only {now['stock'][item]} left of '{item}'"}
    now["stock"][item] -= count
    now["sold"] = now["sold"] + count
    return "ok", {"item": item, "left": now["stock"][item], "message": f"bought {count} of {item}"}


def rows(count: int, *, seed: int = 0) -> list[Observation]:
    source, made = Random(seed), []
    for _ in range(count):
        before = state(source)
        args = {"item": source.choice(["pen", "ink", "cup", "map", "hat"]), "count": source.randint(1, 9)}
        after = copy.deepcopy(before)
        status, result = real_buy(after, **args)
        change = make_patch(before, after)
        made.append(Observation("buy", args, status, result, before, change, source="shop"))  # type: ignore[arg-type]
    return made


def write_rows(file, some):
    """Append observations to a file, as real calls are."""
    for row in some:
        Observer(file)(lambda row=row: row)
