"""References in recorded replies: whatever a model wrote comes back as it was."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph.documents import format_document, parse_document
from gecko_graph.models.node import NODE_STATE
from gecko_graph.scenario.references import check_references, fill, made_values, refer
from gecko_graph.scenario.references import known_calls as known_calls_of

ID, NUMBER = "ord_83f1", 48_213
RESULT = {"id": ID, "number": NUMBER, "same": [ID], "lines": [{"sku a": "x-1y-2"}], "few": 7, "word": "pending"}
STEP = {"call": {"id": "c", "name": "order", "args": {}}}
STEP |= {"outcome": {"status": "ok", "result": RESULT, "patch": [], "rung": "schema"}}
KNOWN = known_calls_of({"steps": [STEP]}, 1)
PIECES = st.sampled_from(
    [ID, str(NUMBER), "{{", "}}", "{", "}", '{{ "{{" }}', "{{ calls[0].result.id }}", "{%", "x-1y-2"]
)
TEXTS = st.lists(PIECES | st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=8).map("".join)
REPLIES = st.recursive(
    TEXTS | st.none() | st.booleans() | st.sampled_from([NUMBER, 7, 1.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(REPLIES)
def test_what_was_written_comes_back(reply):
    written = refer(reply, made_values(KNOWN, []), KNOWN)
    assert list(check_references(written, "here")) == []
    token = NODE_STATE.set({"steps": [STEP]})
    try:
        assert fill(written, "here", 1) == reply
    finally:
        NODE_STATE.reset(token)
    for suffix in (".yaml", ".json"):
        assert parse_document(format_document([written], suffix), where="here") == [written]


def test_only_what_a_result_made_is_referred_to():
    made = made_values(KNOWN, [])
    assert refer({"id": ID, "n": NUMBER, "few": 7}, made, KNOWN) == {
        "id": "{{ calls[0].result.id }}",
        "n": "{{ calls[0].result.number }}",
        "few": 7,
    }
    assert refer(f"Order {ID}, x{ID}", made, KNOWN) == f"Order {{{{ calls[0].result.id }}}}, x{ID}"
    assert refer("x-1y-2", made, KNOWN) == '{{ calls[0].result.lines[0]["sku a"] }}'
    assert refer(ID, made_values(KNOWN, [f"the task names {ID}"]), KNOWN) == ID
    nothing = {"calls": [], "turns": []}
    assert refer(ID, made, nothing) == ID, "the result came after the reply"
    simulated = {**KNOWN, "calls": [{**KNOWN["calls"][0], "rung": "model"}]}
    assert refer(ID, made_values(simulated, []), simulated) == ID, "what is recorded does not change with the seed"
