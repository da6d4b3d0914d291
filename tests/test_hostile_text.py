"""Regular expressions over text of models and tools are linear: each of these took minutes where it was not."""

from __future__ import annotations

from time import process_time

import pytest

from gecko_graph.conversation.score import find_statements
from gecko_graph.errors import ToolkitError
from gecko_graph.masking import mask
from gecko_graph.scenario import read_toolkit
from gecko_graph.schemas.formats import FORMATS
from gecko_graph.tools.functions import read_docstring

SIZE = 25_000  # what took minutes for 100,000 still takes seconds
PIECES = [
    "a", "1", " ", "-", ".", ":", "://a:", "a:", "token", "token: a ", "token:", 'password="', "cookie: a", "bearer ",
    "basic a", "authorization: ", "-----BEGIN ", "eyJa.", "eyJ-", "AKIA", "?key=", "\\\"", "sk-", "api ", "secret", "@",
    "--password ", "--a-", "://a1",
]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_masking(piece):
    start = process_time()
    assert mask(piece * (SIZE // len(piece)))
    assert process_time() - start < 2


@pytest.mark.parametrize("piece", ["a", "1", "a.", "%41", "[", ":", "\\", "P1"])
@pytest.mark.parametrize("name", FORMATS)
def test_formats(name, piece):
    assert FORMATS[name](piece * SIZE) in (True, False)


@pytest.mark.parametrize("text", ["\n" * 65_000, " " * 65_000, "\t\n" * 30_000, "{" * 65_000])
def test_sniffing_a_file_of_tools(tmp_path, text):
    (tmp_path / "tools.yaml").write_text(text)
    with pytest.raises(ToolkitError):
        read_toolkit(tmp_path / "tools.yaml")


@pytest.mark.parametrize("line", [":param a" + "a" * SIZE, ":param " + "a " * SIZE, "Args:\n  a" + " " * SIZE + "b"])
def test_docstrings(line):
    assert read_docstring(line).arguments == {}


@pytest.mark.parametrize("piece", ["a", "\n", " ", "1", "1. ", "\n1", "a.", "?"])
def test_statements_of_an_answer(piece):
    find_statements(piece * SIZE)


def test_questions_and_numbers_of_lists_are_no_statements():
    text = "Is it? It is. Or\nnot? 3.5 km?? \n\n 1. Ann\n2) Ben, 3. floor"
    assert find_statements(text).split() == ["It", "is.", "Or", "Ann", "Ben,", "3.", "floor"]
