"""Rows of real calls: written masked, read whatever else the file holds."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph import Tool, Toolkit, World
from gecko_graph.learning.observation import observe_world
from gecko_graph.learning.readers import read_file, read_messages
from gecko_graph.masking import MASK
from gecko_graph.values.observation import BadRows, Observation
from gecko_graph.world.rung import Answer

from .shop import rows, toolkit, write_rows

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text("abc é", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz", max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text("xyz", max_size=3), JSON, max_size=3)


@given(args=OBJECTS, result=JSON, before=st.none() | OBJECTS, status=st.sampled_from(["ok", "error"]))
def test_a_row_is_read_as_it_was_written(args, result, before, status):
    row = Observation("t", args, status, result, before, None if before is None else [], source="s")
    assert Observation.from_row(json.loads(json.dumps(row.to_row()))) == row


def test_secrets_are_masked_where_they_are_written():
    row = Observation("t", {"password": "hunter2hunter2", "note": "n"}, "ok", {"token": "abcdef123456"})
    written = row.to_row()
    assert written["args"] == {"password": MASK, "note": "n"}
    assert "abcdef123456" not in json.dumps(written)
    assert row.to_row(masked=False)["args"]["password"] == "hunter2hunter2"


def test_bad_rows_are_named_and_the_others_are_read(tmp_path):
    file, some = tmp_path / "rows.jsonl", rows(3)
    write_rows(file, some)
    with file.open("a", encoding="utf-8") as more:
        more.write('{"v": 1, "tool": 7}\nno json\n[1]\n{"v": 99}\n')
        more.write(json.dumps({**some[0].to_row(), "change": [{"op": "remove", "path": "/nowhere"}]}) + "\n\n")
    write_rows(file, some[:1])
    bad = BadRows()
    assert list(read_file(file, bad)) == [*some, some[0]]
    assert sum(bad.counts.values()) == 5
    assert {f"{file}:{number}" for number in range(4, 9)} == {name for names in bad.named.values() for name in names}


@pytest.mark.parametrize("is_flat", [False, True])  # name and arguments in `function`, or beside the call's id
def test_openai_messages_are_read_with_the_reads_before(is_flat):
    def find(item: str) -> dict:
        """Find."""

    known = Toolkit.from_tools([Tool(find, effect="read")]).merge(toolkit())
    seen = {"op": "add", "path": ["stock", "{{ args.item }}"], "value": "{{ result.left }}"}
    known = known.with_contracts({"contracts": {"find": {"observes": [seen]}}})
    calls = [("find", {"item": "pen"}, '{"left": 2}'), ("buy", {"item": "pen", "count": 3}, "Error: only 2 left")]
    calls.append(("fly", {}, "{}"))
    messages: list = [{"role": "user", "content": "buy"}]
    for number, (name, args, result) in enumerate(calls):
        made = {"name": name, "arguments": args if is_flat else json.dumps(args)}
        call = {"id": str(number), **(made if is_flat else {"function": made})}
        messages.append({"role": "assistant", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": str(number), "content": result})
    messages.append({"role": "assistant", "tool_calls": [{"id": "9", "function": {"name": "buy", "arguments": "{"}}]})
    bad = BadRows()
    first, second, other = read_messages(messages, bad=bad, toolkit=known)
    assert (first.status, first.result, first.before) == ("ok", {"left": 2}, None)
    assert (second.status, second.before["stock"]) == ("error", {"pen": 2})
    assert second.shown == [{"name": "find", "args": {"item": "pen"}, "result": {"left": 2}}]
    assert other.tool == "fly"  # counted where it is learned from: none of these tools
    assert sum(bad.counts.values()) == 1


@pytest.mark.parametrize("status", ["ok", "error"])
def test_a_world_gives_what_was_really_called(status):
    sold = {"op": "replace", "path": ["sold"], "value": "{{ state.sold + args.count }}"}
    contract = {"effects": [sold], "returns": 1}
    world = World(toolkit().with_contracts({"contracts": {"buy": contract}}), state={"sold": 1})
    world.call({"name": "buy", "args": {"item": "pen", "count": 5}})
    world.record({"id": "r", "name": "buy", "args": {"item": "pen", "count": 2}}, Answer(status, {"x": 1}, []))
    (row,) = observe_world(world, source="thread")
    assert (row.status, row.before, row.source) == (status, {"sold": 6}, "thread")
    assert row.after == {"sold": 8 if status == "ok" else 6}
