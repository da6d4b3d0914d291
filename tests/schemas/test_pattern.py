"""Patterns: as `re` where both dialects agree, as ECMA-262 where they do not, and never slow."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.schemas.pattern import compile_pattern

SHARED = [
    r"^[A-Z]{3}$",
    r"^\d{3}-\d{2}-\d{4}$",
    r"^(\([0-9]{3}\))?[0-9]{3}-[0-9]{4}$",
    r"a|b",
    r"a|b|",
    r"^(a|bc)*d?$",
    r"a{2,3}b",
    r"^[^abc]+$",
    r"[\w.-]+@[\w.-]+",
    r"\bab\b",
    r"a\Bb",
    r"^(?:ab)+?$",
    r"(?=.*\d)(?=.*[a-c])^.{2,4}$",
    r"^(?!ab)[a-d]+$",
    r"[\]a-]",
    r"[a\-c]",
    r"\x61\u0062",
    r"a.c",
    r"^$",
    r"",
    r"x{0}y",
    r"^a{2,}$",
    r"[^\d]",
    r"\S\s\S",
    r"(?i)^AB$",
    r"^a?b*c+$",
    r"{",
    r"a{x}",
    r"a{,2}",
    r"[.*+?]",
    r"\.\*",
    r"(a(b(c)))",
    r"(?P<n>a)b",
    r"(?s)a.b",
    r"(?<=a)b",
    r"^[ab]+(?<!ab)$",
]


@given(st.sampled_from(SHARED), st.text("abcdAB01 -.@x]()\n", max_size=8))
def test_as_re(source, text):
    pattern = compile_pattern(source)
    assert pattern is not None
    python = source.replace("$", r"\Z").replace("a{,2}", "a\\{,2\\}")
    assert pattern.matches(text) == bool(re.search(python, text, re.ASCII)), (source, text)


@pytest.mark.parametrize(
    ("source", "yes", "no"),
    [
        (r"^a$", ["a"], ["a\n"]),
        (r"^\d$", ["7"], ["\u0667"]),
        (r"^\p{L}+$", ["né中"], ["a1"]),
        (r"^\P{L}$", ["1"], ["a"]),
        (r"^\p{Lu}\p{gc=Nd}$", ["A1", "Ä٧"], ["a1"]),
        (r"^(?<year>\d{4})$", ["2024"], ["24"]),
        (r"^\u{1F600}$", ["😀"], ["a"]),
        (r"^\/a\/$", ["/a/"], ["a"]),
        (r"^[^]$", ["a"], []),
        (r"^\cJ$", ["\n"], ["J"]),
        (r"^[\b]$", ["\b"], ["b"]),
        (r"^[\w-.]+$", ["a-.b"], ["a,b"]),
        (r"^[\W_]+$", ["-_é"], ["a"]),
        (r"^[]", [], ["", "a"]),
        (r"^[[a&&b]{3}$", ["[a&"], ["acb"]),
        (r"^.\s$", ["a\ufeff"], ["\u2028 "]),
        (r"^(?:foo){e}$", ["foo{e}"], ["fo"]),
        (r"^\p{Script=Greek}\p{Greek}$", ["λσ"], ["ab"]),
        (r"(?i)^\W$", ["-"], ["s", "K"]),
        (r"\Aa\z", ["a"], ["ba"]),
        (r"^(?i)a$", [], []),
        (r"(?i)^[a-c]é$", ["BÉ", "aé"], ["dé"]),
        (r"(?i)^[^a]$", ["b"], ["A", "a"]),
    ],
)
def test_as_ecma(source, yes, no):
    pattern = compile_pattern(source)
    if not yes and not no:
        assert pattern is None
        return
    assert pattern is not None
    assert [text for text in yes if not pattern.matches(text)] == []
    assert [text for text in no if pattern.matches(text)] == []


@pytest.mark.parametrize(
    "source",
    [
        "(",
        ")",
        "[a",
        "a**",
        "*a",
        "a{3,2}",
        r"(a)\1",
        "(?>a)",
        "(?#a)b",
        "(?(1)a)",
        "(?P=n)",
        "(?R)",
        "a++",
        "a{2}+",
        "a+{2}",
        r"\q",
        r"\u12",
        r"\x{110000}",
        r"\p{Foo}",
        r"[b-a]",
        r"[\1]",
        "\\",
        "(?m)^a$",
        "a{30000}",
        "((a{500}){500}){500}",
        "[ab]{100000000}",
        "(((){19999}){19999}){19999}",
        "(" * 9_000,
        "(?<n a)",
    ],
)
def test_what_cannot_be_read_is_no_rule(source):
    assert compile_pattern(source) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("(a+)+$", "a" * 2_000 + "!"),
        ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 2_000),
        ("(x+x+)+y", "x" * 2_000),
        ("(((((a*)*)*)*)*)*b", "a" * 2_000),
        ("[a-z]{1,9000}[0-9]", "a" * 2_000),
        ("(?=(a+)+b)(?=(a+)+c)a", "a" * 2_000),
        ("(?:a?){900}a{900}", "a" * 900),
        ("^((a{1,500}){1,500}){1,500}$", "a" * 2_000 + "!"),
    ],
)
def test_bombs_fizzle(source, text):
    pattern = compile_pattern(source)
    assert pattern is not None
    assert pattern.matches(text) is not True  # without a limit, more than anybody can wait for


def test_a_long_text_that_fits_is_found_to_fit():
    pattern = compile_pattern("^[a-z]+$")
    assert pattern is not None
    assert pattern.matches("a" * 20_000)
    assert not pattern.matches("a" * 20_000 + "!")


def test_what_takes_too_long_is_not_known(monkeypatch):
    pattern = compile_pattern("^(a|aa)+$")
    assert pattern is not None
    monkeypatch.setattr("gecko_graph.schemas.pattern.MAX_SECONDS", 0.01)
    assert pattern.matches("a" * 60) is True
    assert pattern.matches("a" * 60 + "!") is None


@pytest.mark.parametrize("source", ["^(red|blue)$", "^on$", "(?i)yes|no", "^a{2}$", "colou?r"])
def test_a_list_in_disguise(source):
    pattern = compile_pattern(source)
    assert pattern is not None
    assert pattern.spells_out


@pytest.mark.parametrize("source", ["^[a-z]$", "a+", ".", r"\d", "[^a]", r"\p{L}", "^(?!a)b$", "a{2,}"])
def test_a_form(source):
    pattern = compile_pattern(source)
    assert pattern is not None
    assert not pattern.spells_out


@given(st.text(r"ab01^$.*+?()[]{}|\dwpu,-=!<:i", max_size=12), st.text("ab01", max_size=6))
def test_any_text_is_read_or_refused(source, text):
    pattern = compile_pattern(source)
    assert pattern is None or pattern.matches(text) in (True, False)
