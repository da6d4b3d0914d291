"""What the judge is told of a simulated result: made up is what nothing known holds, not what repeats the state."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from gecko_graph.models.formatting import format_steps
from gecko_graph.world.known import find_unknown

STATE = {"market": {"watch_list": ["NVDA", "QUAS"], "fee": 0.25}, "guess": {"code": "K-77"}}


def step(result, *, number=1, args=None, **more):
    made = {"status": "ok", "result": result, "patch": [], "rung": "model", "simulated": True, "passed": []}
    call = {"id": f"c{number}", "name": "look", "args": args or {}}
    return {"v": 1, "call": call, "outcome": {**made, "invented": True, **more}}


def told(*steps, said="Show my list, ticket 4711.", state=STATE, supposed=("/guess",)):
    messages = [HumanMessage(said), AIMessage("Is it ticket 9042?")]
    unknown = find_unknown(steps, state=state, supposed=supposed, messages=messages)
    lines = format_steps(steps, budget=4_000, sources=True, unknown=unknown).splitlines()
    return [line.partition("-> ")[2].rpartition(": ")[0].split(": {")[0].split(": [")[0] for line in lines]


@pytest.mark.parametrize(
    ("result", "source"),
    [
        ({"watchlist": ["NVDA", "QUAS"]}, "ok, simulated"),
        ({"watchlist": ["NVDA", "ZETA"]}, "ok, simulated, made up: /watchlist/1"),
        ({"fee": 0.25, "sent": True, "note": None}, "ok, simulated"),
        ({"ticket": 4711}, "ok, simulated"),
        ({"ticket": 9042}, "ok, made up"),
        ({"code": "K-77"}, "ok, made up"),
        ({"id": 55231, "to": "USR007"}, "ok, simulated, made up: /id"),
        ({"message": "Message sent to 'USR007' successfully."}, "ok, simulated"),
        ({"message": "Message sent to 'USR008' successfully."}, "ok, made up"),
        ([], "ok, simulated"),
    ],
)
def test_only_what_nothing_known_holds_is_made_up(result, source):
    assert told(step(result, args={"to": "USR007"})) == [source]


def test_a_made_up_value_is_no_source_of_a_later_one_and_a_real_one_is():
    assert told(step({"id": 812}), step({"id": 812}, number=2)) == ["ok, made up"] * 2
    real = step({"id": 812}, simulated=False, invented=False, rung="real")
    assert told(real, step({"id": 812}, number=2)) == ["ok, real", "ok, simulated"]
    (line,) = told(step({"ok": 4711, **{f"n{number}": 80_000 + number for number in range(30)}}))
    assert line == "ok, simulated, made up: /n0, /n1, /n2, /n3, /n4, …"
