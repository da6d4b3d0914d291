"""The scorer agrees with ToolSandbox's public code on every scored trajectory."""

from __future__ import annotations

import copy

import pytest

pytest.importorskip("scipy")

from evals.toolsandbox import suite
from evals.toolsandbox.public_code import read_goal, read_trajectory, score_publicly
from gecko_graph.conversation.milestones import Goal


def compare(row):
    score = score_publicly(read_goal(row), read_trajectory(row))
    first, expected = row["first_user_message_index"], row["result"]
    return (
        all(suite._is_close(score[key], expected[key]) for key in suite._SCORES),
        suite._is_same(score["milestones"], expected["milestone_mapping"], first)
        and suite._is_same(score["minefields"], expected["minefield_mapping"], first),
    )


def test_a_wrong_score_and_a_wrong_mapping_are_found(read_jsonl):
    row = next(row for row in read_jsonl(suite.FILE) if row["variant"] == "drop_last")
    other = copy.deepcopy(row)
    other["result"]["similarity"] += 0.01
    assert compare(other) == (False, True)
    other = copy.deepcopy(row)
    other["result"]["milestone_mapping"]["0"][0] += 1
    assert compare(other) == (True, False)


def test_the_paper_s_score_is_never_higher_with_guards_and_snapshots_of_their_own(read_jsonl):
    for row in read_jsonl(suite.FILE)[::7]:
        goal, trajectory = read_goal(row), read_trajectory(row)
        paper, public = (score(goal, trajectory)["similarity"] for score in (Goal.score, score_publicly))
        assert paper is None or paper <= public + suite.CLOSE
        assert (paper is None) <= (not goal.milestones)
