"""Draws docs/demo.svg from a run of `gecko-graph demo`: `python docs/demo.py`."""

import io
import re
from pathlib import Path

from langgraph.checkpoint.memory import InMemorySaver
from rich.console import Console
from rich.text import Text

from gecko_graph.display.rows import list_rows
from gecko_graph.display.text import draw
from gecko_graph.scenario import play, shipped

scenario = shipped("files")
(run,) = play(scenario, scenario.gecko(checkpointer=InMemorySaver()), thread_id="demo")
console = Console(record=True, width=104, file=io.StringIO(), highlight=False, emoji=False)
console.print(Text("$ gecko-graph demo", "bold"))
for row in list_rows(run["rehearsal"]):
    console.print(draw(row))
svg = console.export_svg(title="gecko-graph demo", unique_id="demo")
svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # a picture that loads nothing
Path(__file__).with_name("demo.svg").write_text("\n".join(map(str.rstrip, svg.splitlines())) + "\n", "utf-8")
