"""A label beside an output, by rules: schemas, contracts from the same fork, a goal."""

from collections import Counter

import pytest

from gecko_graph import Models, Tool, Toolkit
from gecko_graph.models.roles import ItemJudgement, LabelReply
from gecko_graph.testing import recorded
from gecko_graph.training.checks import Checker
from gecko_graph.training.expand import CONSTRAINTS, write_variants
from gecko_graph.training.files import read_rows
from gecko_graph.training.pairs import _ORDER as ORDER
from gecko_graph.training.pairs import Pairs
from gecko_graph.training.pairs import _agree as agree
from tests.training.shelf import STATE, TOOLKIT, call, said, sample

TWO, NINE, NOTE = call("take", item="pen", count=2), call("take", item="pen", count=9), call("note", text="x")
ONE, LOOK = call("take", item="pen"), call("look", item="pen")


def takes(*counts):
    return [call("take", item="pen", count=count) for count in counts]


def output(*calls, text="", problem=None):
    made = {"id": "one", "calls": [*calls], "text": text, "perplexity": None}
    return made | ({"problem": problem} if problem else {})


def goal_of(pens):
    state = [{"at": "shelf", "snapshot": [{"pen": pens, "ink": 5}]}]
    return {"milestones": [{"id": "end", "last": True, "state": state}]}


def decide(label, said_, later=(), **more):
    found = Pairs(Checker(TOOLKIT), Models()).decide(sample(*label, state=STATE, **more), said_, later)
    return found and (found.outcome, found.by)


@pytest.mark.parametrize(
    ("label", "made", "expected"),
    [
        ([TWO], output(TWO), ("MASTERED", "rules")),
        ([TWO], output(NINE), ("PRED_WRONG", "world")),
        ([TWO], output(call("fly")), ("PRED_WRONG", "rules")),
        ([TWO], output(problem="no JSON"), ("PRED_WRONG", "rules")),
        ([NINE], output(call("take", item="pen", count=8)), ("BOTH_WRONG", "world")),
        ([NINE], output(TWO), None),  # only the label fails: asked
        ([TWO], output(ONE, ONE), None),  # ends are equal, results are not
        ([ONE], output(call("take", item="pen", count=1.0), text="here"), ("MASTERED", "rules")),
        ([ONE, NOTE], output(NOTE, ONE), ("MASTERED", "rules")),
        ([ONE], output(call("take", count=1, item="pen"), LOOK), None),  # nothing answers `look`
        ([], output(NOTE), None),
        (takes(2, -1, 0), output(*takes(1, 1, -1)), ("BOTH_CORRECT", "world")),  # 1, 2 and 2 are left
        (takes(2, -1, 0), output(*takes(1, 0, 0)), None),
    ],
)
def test_rules_first_and_the_rest_is_asked(label, made, expected):
    assert decide(label, made) == expected


@pytest.mark.parametrize(("answer", "expected"), [([], None), (["pen"], ("BOTH_CORRECT", "world"))])
def test_what_comes_to_nothing_is_asked_about(answer, expected):
    def find(text: str) -> list[str]:
        """Find items."""
        raise NotImplementedError

    tools = Toolkit.from_tools([Tool(find, effect="read", contract={"returns": answer})])
    row = {**sample(call("find", text="pen"), state=STATE), "tools": tools.as_openai()}
    found = Pairs(Checker(tools), Models()).decide(row, output(call("find", text="pens")))
    assert (found and (found.outcome, found.by)) == expected


def test_a_goal_decides_and_the_later_labels_are_played_after_each():
    assert decide([TWO], output(ONE), goal=goal_of(1)) == ("PRED_WRONG", "world")
    assert decide([TWO], output(ONE), goal=goal_of(2)) == ("LABEL_WRONG", "world")
    assert decide([TWO], output(ONE), goal=goal_of(0)) == ("BOTH_WRONG", "world")
    assert decide([TWO], output(ONE, ONE), goal=goal_of(1)) == ("BOTH_CORRECT", "world")
    assert decide([TWO], output(problem="no JSON"), goal=goal_of(1)) == ("PRED_WRONG", "world")
    messages = said("take 2 pen", (TWO, {"left": 1}))
    later = [sample(ONE, messages=messages, state=STATE, goal=goal_of(0))]
    assert decide([TWO], output(ONE), later, goal=goal_of(0)) == ("PRED_WRONG", "world")
    assert decide([TWO], output(ONE), later, goal=goal_of(1)) == ("LABEL_WRONG", "world")


def test_four_variants_an_error_each_under_another_constraint(tmp_path):
    reply = {"messages": [{"role": "user", "content": "one pen"}], "label": [ONE]}
    error = {**sample(TWO), "verdict": {"wrong": [NINE], "said": "", "analysis": "too many"}}
    errors = [{**error, "id": "a"}, {**error, "id": "b"}]
    models = Models(variant_writer=recorded({"variant_writer": [reply] * 8}))
    counts = write_variants(errors, models, tmp_path / "drafts.jsonl", each=4, turn=0, tell=lambda _: None)
    rows = [*read_rows(tmp_path / "drafts.jsonl")]
    assert counts == {"written": 8, "unreadable": 0}
    assert Counter(row["from"][-1]["variant_of"] for row in rows) == {"a": 4, "b": 4}
    assert [row["from"][-1]["constraint"] for row in rows] == [1, 2, 3, 4] * 2
    assert len({*CONSTRAINTS}) == 4


BOTH_SO = "The first: so The second: so"


def judged(first, second, **more):
    pairs = zip(("first", "second"), (first, second), strict=True)
    return LabelReply(items=[ItemJudgement(id=id_, reason="so", status=status, **more) for id_, status in pairs])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (judged("success", "failed"), judged("failed", "success"), ("PRED_WRONG", "model", f"{ORDER} The second: so")),
        (judged("failed", "failed"), judged("failed", "failed"), ("BOTH_WRONG", "model", f"{ORDER} {BOTH_SO}")),
        (judged("success", "success"), judged("success", "success"), ("BOTH_CORRECT", "model", "")),
        (judged("success", "failed"), judged("success", "failed"), ("DISAGREED", "model", "")),
        (judged("success", "unknown"), judged("failed", "success"), ("UNDECIDED", "model", "")),
        (judged("success", "failed", unsure=True), judged("failed", "success"), ("UNDECIDED", "model", "")),
        (LabelReply(items=[]), judged("failed", "success"), ("UNDECIDED", "nobody", "no reply")),
        (None, judged("failed", "success"), ("UNDECIDED", "nobody", "no reply")),
    ],
)
def test_what_two_replies_say_of_a_label_and_an_output(one, other, expected):
    assert agree(one, other) == expected
