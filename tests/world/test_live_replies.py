"""The simulator's replies of a live model (`../shared/data`): each is still taken as it was, without a repair."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from gecko_graph import GeckoContext
from gecko_graph.models.ask import Where
from gecko_graph.models.structured import read_reply
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.world.model import model_rung
from gecko_graph.world.rung import Answer, RungRequest

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "data" / "live_replies.jsonl.gz"
FENCED = re.compile(r"<(\w+)-[0-9a-f]{8}>\n(.*?)\n</\1-[0-9a-f]{8}>", re.DOTALL)


def asked_and_said():
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for row in rows:
        if row["role"] == "simulator":
            told = dict(FENCED.findall(row["request"]["messages"][1]["content"]))
            yield told, row["reply"]["json"]


@pytest.mark.skipif(not RECORDED.exists(), reason="no recorded evaluation data beside the project")
def test_live_replies_need_no_repair_and_keep_result_and_patch():
    count = 0
    for told, said in asked_and_said():
        tool, call = json.loads(told["tool"]), json.loads(told["call"])
        known = tool.pop("effect")
        effect = None if known == "unknown" else known
        request = RungRequest(
            tool=ToolSpec(**tool, effect=effect), call={"id": "1", **call}, state=json.loads(told["state"]), facts={},
            context=GeckoContext(view_chars=12_000), where=Where(), has_simulator=True,
        )  # fmt: skip
        rung = model_rung(request)
        (ask,) = next(rung)
        with pytest.raises(StopIteration) as done:
            rung.send([type("Said", (), {"value": read_reply(said, ask.reply), "failure": None})])
        assert done.value.value == Answer(said["status"], said["result"], said.get("patch", []))
        count += 1
    assert count == 75
