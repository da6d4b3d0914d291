"""The suite `truth`: its figures on recorded turns."""

from evals.suites.truth import MOST_QUESTIONS
from evals.truth.marks import measure_marks, tell_marks
from evals.truth.questions import read_questions


def test_all_that_the_suite_expects_of_the_marks_holds(shared_data):
    told = tell_marks(measure_marks(shared_data, most=20))
    assert len(told.figures) == 3
    assert [each.text for each in told.expectations if not each.holds] == []


def test_of_the_recorded_questions_few_are_left(read_jsonl):
    questions = list(read_questions(read_jsonl("live_replies_3.jsonl.gz")))
    assert len(questions) == 64
    assert sum(bool(each.ask()) for each in questions) <= MOST_QUESTIONS
