"""JSON is found in what models write around it, whole or not at all, in linear time."""

import json
import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph.models.reply import Unreadable, find_json, parse

VALUE = {"a": ["}", '"', "\\", "<think>", {"b": None}]}
TEXT = json.dumps(VALUE)


@pytest.mark.parametrize("text", [
    f"Sure {{name}}: {TEXT}. Done [1], see [link](url) {{ }}.".replace("{ }", ""),
    f'He said {{ it "goes": {TEXT}', f"{{{{ a template }}}}\n```json\n{TEXT}\n```", f"[note: {TEXT}]",
    f"<think>{{'a': 3}} or {{</think>\n{TEXT}", f"thoughts without a beginning </think> {TEXT}",
    f"<think>never closed: {{}} {json.dumps({'a': 1})} then ```{TEXT}```",
    f'<tool-af969f83>\n{{"name": "sell"}}\n</tool-af969f83>\n{TEXT}\n<state-aa03770d>\n{{"till": 0}}\nReal',
    f"<answer>{TEXT}</answer> <result-1>", TEXT.replace("]", " , ]").replace("null}", "null,\n}"),
    TEXT.replace('"b"', '\n"b"'),
])  # fmt: skip
def test_the_one_value_is_found(text):
    assert [value for value in find_json(text) if value != [1]] == [VALUE]


@pytest.mark.parametrize(("text", "words"), [
    ('{"items": [{"description": "a"}, {"descr', "character 0 has no end"),
    ('Here: {"items": [{"description": "a"}]', "character 6 has no end"),
    ('{"a": 1} or rather {"a": ', "character 19 has no end"),
    ('{\'items\': [{"description": "a"}]}', "is not JSON: Expecting property name"),
    ('{"items": [{"description": "a"} {"description": "b"}]}', "is not JSON: Expecting ',' delimiter"),
    ('{"a": 1, "a": 2}', "two values for 'a'"), ("<think>maybe {}, but", "no JSON object"),
    ("<think>so", "no JSON object"),
    ('<tool-af969f83>\n{"name": "sell"}\n</tool-af969f83>', "no JSON object"),
    ("no", "no JSON object"),
])  # fmt: skip
def test_what_is_broken_is_said_of_the_whole_and_no_fragment_is_read(text, words):
    with pytest.raises(Unreadable, match=re.escape(words)):
        find_json(text)


def test_equal_values_for_one_name_are_one_and_commas_in_texts_stay():
    assert parse('{"a": 1, "a": 1}') == {"a": 1}
    assert parse('{"a": "x,]", "b": [1, ], }') == {"a": "x,]", "b": [1]}


@pytest.mark.parametrize("text", ["<think>{1}</think>", "{1}</think>", '<think>{"b": 1}</think>a<think>[3]</think>'])
def test_what_stands_behind_the_last_thought_is_the_answer(text):
    assert find_json(text + TEXT) == [VALUE]
    value = {"a": "<tool-af969f83>", "b": {"c": "</tool-af969f83>"}}
    assert find_json(f"Here: {json.dumps(value)}") == [value], "a mark within a value is data"


@given(text=st.text(st.sampled_from('{}[]",:\\ a1\n`') | st.characters(), max_size=80))
@settings(max_examples=100, deadline=None)
def test_no_text_raises_anything_else(text):
    with suppress(Unreadable):
        assert find_json(text)


BOMBS = ["<think>", "<think></think>", "{", '"', "\\", '{"a":', "{'", "[[", '"\\', ",\n]", "```json\n", '["\\"', "{}",
         "{]", "<a-00000000>", "<a-00000000>{}</a-00000000>", "<a-00000000>[1]", "<a", "<a-00000000></"]  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS)
def test_however_much_of_it_is_read_or_refused(bomb):
    with suppress(Unreadable):
        assert find_json(bomb * (60_000 // len(bomb)))
    with suppress(Unreadable):
        assert find_json("<think>" * 999 + bomb * 5_000 + '"}]')
