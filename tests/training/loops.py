"""A loop over twenty rows about the shelf, of which each does what its place in the first data set says."""

import json
from pathlib import Path

from gecko_graph import Models, create_loop
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.training.loop import LoopConfig
from gecko_graph.training.mix import draw_seeds
from tests.training.shelf import STATE, TOOLKIT, call, said, sample

SEEDS = [f"r{at}" for at in range(20)]
DRAWN, FRESH, LATER, _ = draw_seeds(SEEDS, seed=0)
D1 = [id_ for id_ in SEEDS if id_ in DRAWN]
LOGPROBS = [0.1, 0.6, None, 0.4, 0.2, 1.1, 0.5, 0.5, 0.5, 0.7, 0.5, 0.5, 0.5]
"""Negative mean log-probability of what the model says to each row of D_1; None where the server gives none."""
MASTERED, REFUSED, WRONG_LABEL, BOTH, NEITHER, DISAGREED, MISSED = range(6), (6, 7), 8, 9, 10, 11, 12
"""Places in D_1: met; the contract refuses the output; then what a judge says."""
MANY, NOTED = call("take", item="pen", count=9), call("note", text="later")


def label_of(id_):
    place = D1.index(id_) if id_ in D1 else 0
    return MANY if place == NEITHER else call("take", item="ink", count=1 + int(id_[1:]) % 3)


def row(id_):
    asked = f"number {id_}: give me {1 + int(id_[1:]) % 3} ink for room {id_} please"
    return {**sample(label_of(id_), messages=said(asked), state=STATE), "id": id_}


def output_of(given):
    """What the first model does with a row, and how sure it is."""
    id_ = given["id"]
    place = D1.index(id_) if id_ in D1 else 0
    calls = [*given["label"]]
    if place in REFUSED or place == NEITHER:
        calls = [{**MANY, "arguments": {"item": "ink", "count": 50 + place}}]
    elif place >= WRONG_LABEL and id_ in D1:
        calls = [NOTED]
    return calls, [-LOGPROBS[place]] if id_ in D1 and LOGPROBS[place] is not None else None


def second_output(given):
    """What the second model does: it misses a variant, and is as sure of a row as its id is long."""
    calls = [MANY] if given["id"] == f"{D1[6]}/1.1" else [*given["label"]]
    return calls, [-len(given["id"]) / 10]


def train(data, model, out):
    out.mkdir()
    (out / "weights").write_text(f"{len(data.read_text().splitlines())} rows after {Path(model).name}")


def probe(data, model, out):
    first = Path(model).parent.name == "iteration-1"
    with out.open("w") as file:
        for line in data.read_text().splitlines():
            given = json.loads(line)
            calls, logprobs = (output_of if first else second_output)(given)
            made = {"content": "", "tool_calls": calls}
            print(json.dumps({"id": given["id"], "output": made, "logprobs": logprobs, "tokens": 1}), file=file)


def verdict(*right):
    """Return a reply on the first and the second candidate, by which of them are right, and on a label: it is."""
    words = {id_: "success" if id_ in (*right, "label") else "failed" for id_ in (*CANDIDATES, "label")}
    return {"items": [{"id": id_, "reason": "so", "status": word} for id_, word in words.items()]}


def variant(words, **arguments):
    return {"messages": [{"role": "user", "content": words}], "label": [call("take", **arguments)]}


CANDIDATES = ("first", "second")
PAIRS = [
    *(verdict("second"), verdict("first")),
    *(verdict(*CANDIDATES), verdict(*CANDIDATES)),
    *(verdict("second"), verdict("second")),
    *(verdict("first"), verdict("second")),
]
"""Of the rows at 8, 9, 11 and 12 of D_1, each in both orders."""
JUDGED = dict(zip([2 * at + again for at in (8, 9, 11, 12) for again in (0, 1)], PAIRS, strict=True))
WRITTEN = [
    variant("three pens for the office on Monday, would you", item="pen", count=3),
    variant("as much as four hundred pens for the big party", item="pen", count=400),
    variant("THREE pens for the office on Monday, would you", item="pen", count=3),
    {"messages": [], "label": []},
]
"""For the error seeds at 6, 7, 8 and 12: good, refused by the contract, nearly the first, no row."""
RIGHT = verdict()
AGAIN = [variant("two more of the pens for the kitchen of the new house", item="pen", count=2)]


def models():
    turns = [
        {"variant_writer": WRITTEN * 2, "label_judge": [RIGHT | JUDGED.get(at, {}) for at in range(2 * len(D1))]},
        {"variant_writer": AGAIN * 9, "label_judge": [RIGHT] * 9},
    ]
    model = RecordedModel(turns=turns)
    return Models(variant_writer=model, label_judge=model)


def build(folder, *, seeds=None, given=probe, trainer=train, asked=None, **more):
    file = folder.parent / "seeds-given.jsonl"
    if not file.exists():
        file.write_text("".join(json.dumps(row(id_)) + "\n" for id_ in SEEDS))
    config = {"seeds": seeds or file, "folder": folder, "base": "tiny", "iterations": 3, "toolkit": TOOLKIT}
    config |= {"variants": 1} | more
    return create_loop(LoopConfig(**config), trainer=trainer, probe=given, models=asked or models())


def read(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def table(file):
    """A data set as id, and as what each row is in it."""
    return {each["id"]: each["from"][-1]["as"] for each in read(file)}
