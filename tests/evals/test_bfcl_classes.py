"""BFCL's executable classes as a rung: the official package, values, random sources, folders, calls as text."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.bfcl.classes import CountedRandom, decode, encode, words_drawn
from evals.bfcl.oracle import public
from evals.bfcl.tasks import NoCall, read_call
from tests.evals.kept import VALUES


@given(VALUES)
@settings(max_examples=60, deadline=None)
def test_what_json_cannot_say_comes_back(value):
    kinds = {}
    made = json.loads(json.dumps(encode(value, kinds)))
    back = decode(made, json.loads(json.dumps(kinds)))
    assert back == value
    assert repr(back) == repr(value) or isinstance(value, set) or "{" in repr(value)


@given(st.integers(0, 99), st.lists(st.sampled_from(["int", "long", "float", "choice"]), max_size=30))
@settings(max_examples=30, deadline=None)
def test_a_random_source_goes_on_where_it_stood(seed, steps):
    def draw(source, kind):
        return {
            "int": lambda: source.randint(100000, 999999),
            "long": lambda: source.randint(100000000000, 999999999999),
            "float": lambda: source.uniform(-10.0, 40.0),
            "choice": lambda: source.choice("abcdefg"),
        }[kind]()

    plain, start = random.Random(seed), random.Random(seed).getstate()
    drawn = 0
    for kind in steps:
        source = CountedRandom(start, drawn)
        assert draw(source, kind) == draw(plain, kind)
        drawn = source.drawn
    assert words_drawn(plain, start) == drawn


NAMES = ["a", "b", "c.txt", "d.txt", "notes"]


def random_call(dice):
    name, other = dice.choice(NAMES), dice.choice(NAMES)
    return dice.choice(
        [
            ("cd", {"folder": dice.choice([*NAMES, "..", ".."])}),
            ("mkdir", {"dir_name": name}),
            ("touch", {"file_name": name}),
            ("echo", {"content": other, "file_name": name}),
            ("cat", {"file_name": name}),
            ("cp", {"source": name, "destination": other}),
            ("mv", {"source": name, "destination": other}),
            ("rm", {"file_name": name}),
            ("pwd", {}),
            ("ls", {}),
        ]
    )


@pytest.mark.parametrize("seed", range(2))
def test_folders_behave_from_json_as_the_living_ones(official, seed):
    from evals.bfcl.classes import FILES, Classes, class_of, told

    config = {FILES: {"root": {"top": {"type": "directory", "contents": {}}}}}
    classes = Classes([FILES], config)
    living = class_of(FILES)()
    living._load_scenario(config[FILES])
    state, dice = classes.initial_state, random.Random(seed)
    for _ in range(150):
        name, args = random_call(dice)
        answer = told(getattr(living, name), args)
        try:
            assert classes.simulate(name)(state, **args) == answer
        except ValueError:
            assert "{...}" in repr(living.root)  # a folder that holds itself
            break
        assert public(state) == public(classes.read({FILES: living}))
        state = json.loads(json.dumps(state))


@pytest.mark.parametrize("text", ["f(", "f", "a.b(1)", "f(__import__('os'))", "f(x=g(1))", ""])
def test_a_text_that_is_no_plain_call_is_never_evaluated(text):
    with pytest.raises(NoCall):
        read_call(text, signature=lambda name: None)
