"""What is imported when: help imports no graph, the core neither YAML nor LangChain, BM25 nor numpy."""

from __future__ import annotations

import subprocess
import sys

from tests.cli.command import ENVIRONMENT

CODE = """
import sys
from gecko_graph.cli import main
main(["--help"])
assert "langgraph" not in sys.modules
for name in ("langchain", "bm25s", "numpy"):
    sys.modules[name] = None
import gecko_graph
assert gecko_graph.World and gecko_graph.create_gecko
assert "yaml" not in sys.modules
[getattr(gecko_graph, name) for name in gecko_graph.__all__]
import gecko_graph.agent.graph, gecko_graph.retrieval, gecko_graph.tools.real
import gecko_graph.middleware as room
assert not gecko_graph.retrieval.is_installed()
assert room.rehearse_pending and room.rehearsal_message
try:
    room.GeckoMiddleware
except ImportError as error:
    print(error)
"""


def test_each_part_imports_what_it_needs_and_what_is_missing_is_told():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    assert "pip install '.[langchain]'" in done.stdout
