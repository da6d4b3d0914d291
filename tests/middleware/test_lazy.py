"""The core never imports LangChain, and says what to install where it is missing."""

from __future__ import annotations

import subprocess
import sys


def test_yaml_is_imported_for_documents_only():
    code = "import sys; from gecko_graph import World, create_gecko; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_langchain_is_imported_for_its_middleware_only():
    code = (
        "import sys; sys.modules['langchain'] = None\n"
        "import gecko_graph.middleware as room, gecko_graph.agent.graph, gecko_graph.tools.real\n"
        "assert room.rehearse_pending and room.rehearsal_message\n"
        "try: room.GeckoMiddleware\n"
        "except ImportError as error: print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install '.[langchain]'" in out
