"""Patterns, as `re` or ECMA-262 have them and never slow; formats, against what their RFCs say."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.schemas.complaints import find_faults
from gecko_graph.schemas.formats import EXPECTED, FORMATS, compile_pattern, fits_format

SHARED = [
    r"^[A-Z]{3}$", r"^\d{3}-\d{2}-\d{4}$", r"^(\([0-9]{3}\))?[0-9]{3}-[0-9]{4}$", r"a|b", r"a|b|", r"^(a|bc)*d?$",
    r"a{2,3}b", r"^[^abc]+$", r"[\w.-]+@[\w.-]+", r"\bab\b", r"a\Bb", r"^(?:ab)+?$", r"(?=.*\d)(?=.*[a-c])^.{2,4}$",
    r"^(?!ab)[a-d]+$", r"[\]a-]", r"[a\-c]", r"\x61\u0062", r"a.c", r"^$", r"", r"x{0}y", r"^a{2,}$", r"[^\d]",
    r"\S\s\S", r"(?i)^AB$", r"^a?b*c+$", r"{", r"a{x}", r"a{,2}", r"[.*+?]", r"\.\*", r"(a(b(c)))", r"(?P<n>a)b",
    r"(?s)a.b", r"(?<=a)b", r"^[ab]+(?<!ab)$",
]  # fmt: skip


@given(st.sampled_from(SHARED), st.text("abcdAB01 -.@x]()\n", max_size=8))
def test_as_re(source, text):
    pattern = compile_pattern(source)
    assert pattern is not None
    python = source.replace("$", r"\Z").replace("a{,2}", "a\\{,2\\}")
    assert pattern.matches(text) == bool(re.search(python, text, re.ASCII)), (source, text)


@pytest.mark.parametrize(("source", "yes", "no"), [
    (r"^\d$", ["7"], ["\u0667"]), (r"^\p{L}+$", ["né中"], ["a1"]), (r"^(?<year>\d{4})$", ["2024"], ["24"]),
    (r"^\u{1F600}$", ["😀"], ["a"]), (r"^[^]$", ["a"], []), (r"^[\w-.]+$", ["a-.b"], ["a,b"]),
    (r"^[]", [], ["", "a"]), (r"^.\s$", ["a\ufeff"], ["\u2028 "]), (r"^\p{Script=Greek}\p{Greek}$", ["λσ"], ["ab"]),
    (r"(?i)^\W$", ["-"], ["s", "K"]), (r"^(?i)a$", [], []), (r"(?i)^[a-c]é$", ["BÉ", "aé"], ["dé"]),
])  # fmt: skip
def test_as_ecma(source, yes, no):
    pattern = compile_pattern(source)
    if not yes and not no:
        assert pattern is None
        return
    assert pattern is not None
    assert [text for text in yes if not pattern.matches(text)] == []
    assert [text for text in no if pattern.matches(text)] == []


@pytest.mark.parametrize("source", [
    "(", ")", "[a", "a**", "*a", "a{3,2}", r"(a)\1", "(?>a)", "(?#a)b", "(?(1)a)", "(?P=n)", "(?R)", "a++",
    "a{2}+", "a+{2}", r"\q", r"\u12", r"\x{110000}", r"\p{Foo}", r"[b-a]", r"[\1]", "\\", "(?m)^a$", "a{30000}",
    "((a{500}){500}){500}", "[ab]{100000000}", "(((){19999}){19999}){19999}", "(" * 9_000, "(?<n a)",
])  # fmt: skip
def test_what_cannot_be_read_is_no_rule(source):
    assert compile_pattern(source) is None


@pytest.mark.slow
@pytest.mark.parametrize(("source", "text"), [
    ("(a+)+$", "a" * 2_000 + "!"), ("(x+x+)+y", "x" * 2_000), ("[a-z]{1,9000}[0-9]", "a" * 2_000),
    ("(?=(a+)+b)(?=(a+)+c)a", "a" * 2_000), ("(?:a?){900}a{900}", "a" * 900),
    ("^((a{1,500}){1,500}){1,500}$", "a" * 2_000 + "!"),
])  # fmt: skip
def test_bombs_fizzle(source, text):
    pattern = compile_pattern(source)
    assert pattern is not None
    assert pattern.matches(text) is not True  # without a limit, more than anybody can wait for


@pytest.mark.parametrize("source", ["^[a-z]$", "a+", ".", r"\d", "[^a]", r"\p{L}", "^(?!a)b$", "a{2,}"])
def test_a_form(source):
    pattern = compile_pattern(source)
    assert pattern is not None
    assert not pattern.spells_out


@given(st.text(r"ab01^$.*+?()[]{}|\dwpu,-=!<:i", max_size=12), st.text("ab01", max_size=6))
def test_any_text_is_read_or_refused(source, text):
    pattern = compile_pattern(source)
    assert pattern is None or pattern.matches(text) in (True, False)


GOOD = {
    "date": ["2024-02-29", "1999-12-31", "0001-01-01"],
    "date-time": ["2024-02-29T10:00:00Z", "2024-02-29t10:00:00.123z", "1998-12-31T15:59:60-08:00"],
    "time": ["23:59:60Z", "09:30:00+02:00", "00:29:60+00:30"],
    "email": ["ann@example.com", "a.b+c@x-y.example", '"odd name"@example.com', "a@[192.0.2.1]", "a@[IPv6:::1]"],
    "uri": [
        "https://example.com/a?b=c#d", "urn:isbn:123", "http://u:p@h:80/", "mailto:a@b.c", "http://[::1]:80/x",
        "http://[v1.a]/",
    ],
    "uri-reference": ["/a/b", "a", "", "//host/x", "//host:80/x", "?q=1", "#top"],
    "uuid": ["2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2EB8AA08-AA98-11EA-B4AA-73B441D16380"],
    "hostname": ["localhost", "a-b.example.com", "1.example"], "ipv4": ["0.0.0.0", "192.0.2.255"],
    "ipv6": ["::1", "2001:db8::1", "::ffff:192.0.2.1"],
    "duration": ["P1Y2M3DT4H5M6S", "P1W", "PT36H", "P1DT12H", "P0D"],
}  # fmt: skip
BAD = {
    "date": ["2023-02-29", "2024-2-1", "24-02-01", "2024-02-01T00:00:00Z", "20240201", "२०२४-०१-०१", "2024-02-01\n"],
    "date-time": ["2024-02-29", "2024-02-29 10:00:00Z", "2024-02-29T10:00:00", "2024-02-29T24:00:00Z", "T10:00:00Z"],
    "time": ["10:00", "10:00:00", "10:60:00Z", "10:00:00+2", "10:00:00Z\n"],
    "email": ["ann", "ann@", "@example.com", "a b@example.com", "a..b@example.com", "a@-x.com", "a@b@c"],
    "uri": [
        "example.com", "//host/x", "/a", "http://a b", "http://%zz", "http://[::1", "http://h:port/", "1http://x",
        "",
    ],
    "uri-reference": ["a b", "\\", "%2", "http://a#b#c", "/a[b"],
    "uuid": ["2eb8aa08", "2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638g"],
    "hostname": ["-a", "a_b", "a..b", "a" * 64, ".", "", "a." * 130],
    "ipv4": ["256.0.0.1", "1.2.3", "01.2.3.4", "1.2.3.4.5"], "ipv6": ["1::2::3", "::1%eth0", "12345::", "1.2.3.4"],
    "duration": ["P", "PT", "1D", "P1", "P1D2H", "P1.5D", "P1Y1W", "PT1D"],
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name):
    assert [text for text in GOOD[name] if not fits_format(name, text)] == []
    assert [text for text in BAD[name] if fits_format(name, text)] == []
    assert name in EXPECTED


CONTRADICTED = [
    {"format": "uuid", "examples": ["65f0c0ffee65f0c0ffee65f0"]},
    {"format": "uuid", "example": "65f0c0ffee65f0c0ffee65f0"},
    {"format": "date", "default": "today"},
    {"format": "ipv4", "enum": ["10.0.0.1", "any"]},
    {"format": "uri", "const": "example.com"},
    {"type": "integer", "format": "int32", "examples": [1634567890123]},
]


@pytest.mark.parametrize("rule", CONTRADICTED)
def test_a_format_that_its_schema_contradicts_is_no_rule(rule):
    rest = {key: value for key, value in rule.items() if key != "format"}
    for value in ("65f0c0ffee65f0c0ffee65f0", "today", "any", 1634567890123, "example.com"):
        assert find_faults(rule, value) == find_faults(rest, value)
