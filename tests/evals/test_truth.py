"""The suite `truth`: its figures on recorded turns."""

import pytest

from evals.suites.truth import MOST_QUESTIONS
from evals.truth.marks import find_lost, measure_marks, plant, read_toolkit, read_turns, tell_marks
from evals.truth.questions import read_questions


@pytest.fixture
def folder(shared_data):
    return shared_data


def test_values_are_planted_by_seed_in_arguments_that_need_a_source(folder):
    toolkit, turns = read_toolkit(folder), read_turns(folder)
    planted = plant(turns, toolkit, most=20)
    assert [each.value for each in planted] == [each.value for each in plant(turns, toolkit, most=20)]
    assert [each.value for each in planted] != [each.value for each in plant(turns, toolkit, most=20, seed=1)]
    assert find_lost(planted, toolkit) == []
    assert planted[0].turn.attempt["steps"] != planted[0].steps()


def test_all_that_the_suite_expects_of_the_marks_holds(folder):
    told = tell_marks(measure_marks(folder, most=20))
    assert len(told.figures) == 3
    assert [each.text for each in told.expectations if not each.holds] == []


def test_of_the_recorded_questions_few_are_left(read_jsonl):
    questions = list(read_questions(read_jsonl("live_replies_3.jsonl.gz")))
    assert len(questions) == 64
    assert sum(bool(each.ask()) for each in questions) <= MOST_QUESTIONS
