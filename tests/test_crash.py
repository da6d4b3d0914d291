"""A rehearsal that is killed at any write of its checkpointer, and resumed, ends as the uninterrupted one does."""

from __future__ import annotations

from contextlib import suppress

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import Tool, Toolkit
from tests import desk
from tests.agents import call, thread

READ = call("rate", currency="EUR")


def gecko(reads: list[str], fate: Fate):
    def rate(currency: str) -> dict:
        """Rate of a currency."""
        reads.append(currency)
        return {"rate": 1.25}

    tools = Toolkit([*desk.toolkit(), *Toolkit.from_tools([Tool(rate, effect="read")]).open("rate")])
    return desk.gecko([READ, *desk.WRONG], [READ, *desk.RIGHT], tools=tools, checkpointer=KillingSaver(fate))


def test_kill_at_any_write_and_resume():
    expected = gecko(whole := [], count := Fate()).invoke(desk.inputs(), thread(), durability="sync")
    assert len(whole) == 2
    killed = 0
    for point in range(2, count.count + 1, 5):
        graph = gecko(reads := [], fate := Fate(point, after=point % 2 == 1))
        with suppress(Killed):
            graph.invoke(desk.inputs(), thread(), durability="sync")
        fate.kill_at = 0
        snapshot = graph.get_state(thread())
        if not snapshot.values:
            continue  # killed before the input was stored: there is no run to resume
        killed += 1
        done = {attempt["number"]: attempt for attempt in snapshot.values.get("attempts", [])}
        again = gecko(more := [], Fate())  # another process
        again.checkpointer = graph.checkpointer
        run = again.invoke(None, thread(), durability="sync")
        assert run.get("rehearsal", snapshot.values.get("rehearsal")) == expected["rehearsal"], point
        assert graph.get_state(thread()).values["task_state"] == expected["task_state"]
        for attempt in expected["rehearsal"]["attempts"]:
            assert done.get(attempt["number"], attempt) == attempt
        assert len(more) <= 2 - len(done)
        assert len(reads + more) <= 3, "at most the one read is repeated whose result was not recorded yet"
    assert killed >= count.count // 5 - 2
