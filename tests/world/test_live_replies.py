"""The simulator's replies of a live model (`../shared/data`): each is still taken as it was, without a repair."""

import json
import re

import pytest

from gecko_graph.models.reply import read_reply
from gecko_graph.world.model import model_rung
from gecko_graph.world.rung import Answer
from tests.world.conftest import rung_request

FENCED = re.compile(r"<(\w+)-[0-9a-f]{8}>\n(.*?)\n</\1-[0-9a-f]{8}>", re.DOTALL)


def test_live_replies_need_no_repair_and_keep_result_and_patch(read_jsonl):
    rows = [row for row in read_jsonl("live_replies.jsonl.gz") if row["role"] == "simulator"]
    assert len(rows) == 75
    for row in rows:
        told, said = dict(FENCED.findall(row["request"]["messages"][1]["content"])), row["reply"]["json"]
        tool, args, state = json.loads(told["tool"]), json.loads(told["call"])["args"], json.loads(told["state"])
        tool["effect"] = None if tool["effect"] == "unknown" else tool["effect"]
        rung = model_rung(rung_request(**tool, args=args, state=state, view_chars=12_000, has_simulator=True))
        (ask,) = next(rung)
        with pytest.raises(StopIteration) as done:
            rung.send([type("Said", (), {"value": read_reply(said, ask.reply), "failure": None})])
        assert done.value.value == Answer(said["status"], said["result"], said.get("patch", []))
