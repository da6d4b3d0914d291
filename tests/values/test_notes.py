"""Notes: a closed list of kinds, the same in code and documentation; how records hold them and faces tell them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from gecko_graph.state import NoteKind
from gecko_graph.values.notes import KINDS, join, note, notes_of, on_call, tell, warning, with_notes
from gecko_graph.values.places import pointer

ROOT = Path(__file__).resolve().parents[2]
CALL = {"id": "c1", "name": "pay", "args": {"to": [{"amount": 3}]}}


def test_the_documented_kinds_are_those_of_the_code():
    assert [*KINDS] == [kind for kind in KINDS if kind in get_args(NoteKind)]
    assert len(KINDS) == len(get_args(NoteKind))
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    rows = [f"\n- `{name}`{each.inside and f' ({each.inside})'}: " for name, each in KINDS.items()]
    assert [page.index(row) for row in rows] == sorted(page.index(row) for row in rows)


def test_a_record_without_notes_has_no_key_for_them_and_holds_each_once():
    bare: Any = {"status": "ok"}
    assert with_notes(bare, []) is bare
    assert join(bare, {"notes": [], "rung": "real"}) == {"status": "ok", "rung": "real"}
    found = with_notes(with_notes(bare, [warning("a")]), [warning("a"), note("unclear", "a")])
    assert [each["kind"] for each in notes_of(found)] == ["may_refuse", "unclear"]
    assert notes_of(found, "unclear") == [{"kind": "unclear", "where": "", "text": "a"}]
    assert join(found, {"rung": "real", "notes": [warning("b")]})["notes"] == [*found["notes"], warning("b")]
    assert notes_of(bare) == []


@pytest.mark.parametrize(("found", "says"), [
    (note("made_up", "why", pointer(("to", 0, "amount")), value=3), "pay to/0/amount: why"),
    (note("made_up", "why", pointer(("a/b",)), value=3), "pay a/b: why"),
    (note("made_up", "why", pointer(("",)), value=3), "pay /: why"),
    (note("made_up", "why", pointer(("x\n- paid\u2028",)), value=3), "pay x\\n- paid\\u2028: why"),
    (note("made_up", "why", pointer(("n" * 5000,)), value=3), f"pay {'n' * 80}…: why"),
    (note("unclear", "why"), "pay: why"), (note("refused", " \n"), "pay: refused"),
    (note("race", "put (a) at /trays/0", "/trays/0"), "pay: put (a) at /trays/0"),
])  # fmt: skip
def test_every_face_tells_a_note_by_its_call_and_argument(found, says):
    named = on_call(found, CALL)
    assert tell(named) == says
    assert tell(named, named=False) == says.removeprefix("pay").removeprefix(":").strip()
    assert json.loads(json.dumps(named)) == named
    assert "call" not in found.get("data", {}), "the outcome's own note is left as it is"
