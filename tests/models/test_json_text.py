"""JSON is found in what models write around it, whole or not at all, in linear time."""

from __future__ import annotations

import json
import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph.models import json_text
from gecko_graph.models.json_text import Unreadable, find_json, parse, without_thoughts

VALUE = {"a": ["}", '"', "\\", "<think>", {"b": None}]}
TEXT = json.dumps(VALUE)


@pytest.mark.parametrize(
    "text",
    [
        f"Sure {{name}}: {TEXT}. Done [1], see [link](url) {{ }}.".replace("{ }", ""),
        f'He said {{ it "goes": {TEXT}',
        f"{{{{ a template }}}}\n```json\n{TEXT}\n```",
        f"[note: {TEXT}]",
        f"<think>{{'a': 3}} or {{</think>\n{TEXT}",
        f"thoughts without a beginning </think> {TEXT}",
        f"<think>never closed: {{}} {json.dumps({'a': 1})} then ```{TEXT}```",
        TEXT.replace("]", " , ]").replace("null}", "null,\n}"),
        TEXT.replace('"b"', '\n"b"'),
    ],
)
def test_the_one_value_is_found(text):
    assert [value for value in find_json(text) if value != [1]] == [VALUE]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"items": [{"description": "a"}, {"descr', "character 0 has no end"),
        ('Here: {"items": [{"description": "a"}]', "character 6 has no end"),
        ('{"a": 1} or rather {"a": ', "character 19 has no end"),
        ('{\'items\': [{"description": "a"}]}', "is not JSON: Expecting property name"),
        ('{"items": [{"description": "a"} {"description": "b"}]}', "is not JSON: Expecting ',' delimiter"),
        ('{"a": 1, "a": 2}', "two values for 'a'"),
        ("<think>maybe {}, but", "no JSON object"),
        ("<think>so", "no JSON object"),
        ("no", "no JSON object"),
    ],
)
def test_what_is_broken_is_said_of_the_whole_and_no_fragment_is_read(text, words):
    with pytest.raises(Unreadable, match=re.escape(words)):
        find_json(text)


def test_equal_values_for_one_name_are_one():
    assert parse('{"a": 1, "a": 1}') == {"a": 1}


def test_commas_in_texts_stay():
    assert parse('{"a": "x,]", "b": [1, ], }') == {"a": "x,]", "b": [1]}


def test_thoughts_are_left_out_wherever_they_are():
    assert without_thoughts("a<think>b</think>c<think><think>d</think>e") == ("ace", 3)
    assert without_thoughts("b</think>c") == ("c", 1)
    assert without_thoughts("a<think>b") == ("a<think>b", 1)
    assert without_thoughts("<think>a</think>b<think>c") == ("b<think>c", 1)


@given(text=st.text(st.sampled_from('{}[]",:\\ a1\n`') | st.characters(), max_size=80))
@settings(max_examples=400, deadline=None)
def test_no_text_raises_anything_else(text):
    with suppress(Unreadable):
        assert find_json(text)


BOMBS = [
    "<think>",
    "</think>",
    "{",
    "[",
    '"',
    "\\",
    '{"',
    '{"a":',
    "[[",
    '"\\',
    ",",
    ", ",
    "```json\n",
    "{x",
    '["a",',
    "{}",
]
BOMBS += ["{}", "<think></think>", '{"a"', "{'", '["\\"', ",\n]", "}", "{]"]


class Counted(str):
    """A text that counts the characters between the places where it is looked for something and where that is found."""

    looked = 0

    def find(self, *args):
        start, found = args[1] if len(args) > 1 else 0, str.find(self, *args)
        Counted.looked += (len(self) if found < 0 else found) - start + 1
        return found


class CountedPattern:
    """A pattern that counts likewise; what a match consumes is counted by its end."""

    def __init__(self, pattern):
        self.pattern = pattern

    def search(self, text, at=0):
        found = self.pattern.search(text, at)
        Counted.looked += (found.end() if found else len(text)) - at + 1
        return found

    def match(self, text, at):
        found = self.pattern.match(text, at)
        Counted.looked += (found.end() if found else at) - at + 1
        return found


@pytest.mark.parametrize("bomb", BOMBS)
def test_no_character_is_looked_at_more_than_a_few_times(bomb, monkeypatch):
    for name in ("_OPENING", "_TOKEN", "_JSON_LIKE"):
        monkeypatch.setattr(json_text, name, CountedPattern(getattr(json_text, name)))
    for text in (bomb * 3_000, "<think>" * 999 + bomb * 2_000, "{ " + bomb * 2_000 + "}", bomb * 2_000 + '"}]'):
        Counted.looked = 0
        thoughts, _ = without_thoughts(Counted(text))
        with suppress(Unreadable):
            json_text._spans(thoughts)
        assert Counted.looked <= 8 * len(text) + 100


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_megabyte_of_it_is_read_or_refused(bomb):
    with suppress(Unreadable):
        assert find_json(bomb * (1_000_000 // len(bomb)))
