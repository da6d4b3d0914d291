"""Documents that people write."""

from __future__ import annotations

import json
import os

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph.errors import ToolkitError
from gecko_graph.values.documents import MAX_ALIASED, parse_document, read_document

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
)


def same(a, b) -> bool:
    return type(a) is type(b) and json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


@settings(max_examples=50)
@given(st.dictionaries(st.text(min_size=1), json_values, max_size=4))
def test_yaml_written_by_pyyaml_comes_back_as_it_was(value):
    text = "# yaml\n" + yaml.safe_dump(value, default_style="'")
    assert same(parse_document(text, where="f"), json.loads(json.dumps(value)))


def test_scalars_are_those_of_yaml_1_2():
    text = """
    on: yes
    off: No
    day: 2024-09-01
    time: 12:30:45
    octal: 0o17
    not_octal: 012
    hex: 0x1F
    float: 1.
    tiny: .5
    big: 1e3
    nothing: ~
    empty:
    truth: True
    quoted: '1'
    spaced: 1_000
    200: {description: ok}
    tagged: !!str 7
    """
    assert parse_document(text, where="f") == {
        "on": "yes", "off": "No", "day": "2024-09-01", "time": "12:30:45", "octal": 15, "not_octal": 12, "hex": 31,
        "float": 1.0, "tiny": 0.5, "big": 1000.0, "nothing": None, "empty": None, "truth": True, "quoted": "1",
        "spaced": "1_000", "200": {"description": "ok"}, "tagged": "7",
    }  # fmt: skip


def test_aliases_are_copies_and_merge_keys_give_way():
    document = parse_document("a: &a {x: 1, y: [1]}\nb: {<<: *a, x: 2}\nc: *a\n", where="f")
    assert document == {"a": {"x": 1, "y": [1]}, "b": {"x": 2, "y": [1]}, "c": {"x": 1, "y": [1]}}
    document["c"]["y"].append(2)
    assert document["a"]["y"] == [1]


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("error: cd: no such file", "f:1:10", "put quotes around"),
        ("a: 1\nb: 2\na: 3\n", "f:3:1", "'a' appears twice"), ('{"a": 1,\n "a": 2}', "f:2:2", "'a' appears twice"),
        ('{"a": 1,\n "b" 2}', "f:2:6", "not JSON"), ("check: 'x' in s", "f:1:12", "not YAML"),
        ("a: .nan", "f:1:4", "not a finite number"), ("a: 1e999", "f:1:4", "not a finite number"),
        ("a: " + "9" * 5000, "f:1:4", "digits"), ('{"a": NaN}', "f", "NaN is not a JSON number"),
        ('["\\ud800"]', "f", "surrogate"), ("&a [*a]", "f:1:1", "a value that contains it"),
        ("a: !!python/object:os.system x", "f:1:4", "tag"), ("a: !!int x", "f:1:4", "tag"),
        ("a\n---\nb", "f:2:1", "another document"), ("? [a]\n: b", "f:1:3", "key must be text"),
        ("a: 1\n<<: 2", "f:2:5", "expected an object"), ("a\x00b", "f", "not YAML"),
        ("- " * 3000, "f:1:201", "100 levels"), ("[" * 200_000, "f", "nested too deeply"),
        ('{"a":' * 150 + "1" + "}" * 150, "f", "100 levels"), ("", "f", "is empty"),
        (BOMB, "f:", f"more than {MAX_ALIASED:,} values"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(text, place, why):
    with pytest.raises(ToolkitError) as caught:
        parse_document(text, where="f")
    assert str(caught.value).startswith(place)
    assert why in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: caf\xe9\n")
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    (tmp_path / "huge.yaml").write_bytes(b"")
    os.truncate(tmp_path / "huge.yaml", 65_000_000)
    assert read_document(tmp_path / "bom.yaml") == {"a": 1}
    for name, why in [
        ("none.yaml", "no such file"),
        (".", "is a folder"),
        ("huge.yaml", "larger than"),
        ("x\0y", "cannot be read"),
    ]:
        with pytest.raises(ToolkitError, match=why):
            read_document(tmp_path / name)
    with pytest.raises(ToolkitError, match=r"latin\.yaml:2:7: not UTF-8 \(byte 0xe9\)"):
        read_document(tmp_path / "latin.yaml")
