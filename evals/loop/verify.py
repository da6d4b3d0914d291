"""`verify` by schemas alone on BFCL's recorded answers: what schemas find, and what values without a source add."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gecko_graph.training.verify import verify_samples

from . import Given, Told
from .match import ANSWERS, read_answers

WRONG, FOUND = 4_266, 1_243


def measure(given: Given) -> Iterator[Told]:
    """Yield how many errors schemas find, and how often a value has no source."""
    rows = verify_samples((sample for sample, _ in read_answers(given)), truth="right").rows
    found = Counter((row["verdict"]["truth"], row["verdict"]["status"]) for row in rows)
    wrong = sum(count for (right, _), count in found.items() if not right)
    text = f"schemas find {found[False, 'drop']} of {wrong} wrong answers of {len(rows)}"
    yield Told(text, (found[False, "drop"], wrong, len(rows)) == (FOUND, WRONG, ANSWERS) if not given.limit else None)
    yield Told(f"right answers that break their own schema: {found[True, 'drop']} of {len(rows) - wrong}")
    for right, word in ((False, "wrong"), (True, "right")):
        left = found[right, "open"] + found[right, "keep"]
        yield Told(f"values without a source are in {found[right, 'open']} of the {left} {word} answers left (open)")
