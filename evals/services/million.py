"""`python -m evals.services.million ROWS`: generated rows of one tool, how long they take and how much memory."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from random import Random
from time import monotonic

from gecko_graph import Toolkit
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.state import JsonObject
from gecko_graph.values.observation import Observation

SCHEMA = {"type": "object", "properties": {"item": {"type": "string"}, "count": {"type": "integer"}}}
BUY = {"name": "buy", "description": "Buy items.", "parameters": {**SCHEMA, "required": ["item", "count"]}}


def rows(count: int) -> Iterator[Observation]:
    """Yield calls of a shop, each in a state of its own; a message in a hundred has words of its own."""
    source = Random(0)
    for number in range(count):
        stock: JsonObject = {f"item-{source.randint(1, 40)}": source.randint(1, 9) for _ in range(8)}
        item, wanted = f"item-{source.randint(1, 40)}", source.randint(1, 9)
        before: JsonObject = {"stock": stock, "sold": number}
        left: int = stock.get(item, 0)
        args: JsonObject = {"item": item, "count": wanted}
        if left >= wanted and number % 100:
            change = [
                {"op": "replace", "path": f"/stock/{item}", "value": left - wanted},
                {"op": "replace", "path": "/sold", "value": number + wanted},
            ]
            yield Observation("buy", args, "ok", {"left": left - wanted}, before, change)
            continue
        word = "".join(source.choices("abcdefgh", k=6))
        why = f"only {left} of '{item}' left" if item in stock else f"no item '{item}'"
        yield Observation("buy", args, "error", why if number % 100 else f"{word} is closed", before, [])


if __name__ == "__main__":
    begun = monotonic()
    learned = learn_contracts(Toolkit.from_tools([BUY]), rows(int(sys.argv[1])))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2  # of Linux, in KiB
    told = {"seconds": monotonic() - begun, "gib": peak, "rules": learned.count_rules(), "notes": learned.notes}
    print(json.dumps(told))
