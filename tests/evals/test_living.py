"""The suite `living`: the coverage of published documents."""

import pytest

from evals.harness.options import SHARED
from evals.suites import living


@pytest.mark.skipif(not (SHARED / "openapi").is_dir(), reason="the shared documents are not here")
def test_two_thirds_of_published_operations_have_a_kind(capsys):
    assert living.run(["--documents", "--draw", "1"]) == 0
    told = capsys.readouterr().out
    assert "have a kind that a state answers" in told
    assert len(told.splitlines()) > 100


def test_without_documents_it_says_so(tmp_path, capsys):
    assert living.run(["--documents", "--data", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().out
