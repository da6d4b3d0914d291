#!/usr/bin/env bash
# mcp-server-sqlite 2025.4.25, mcp 2.3.0: the newest release of this server of the Model Context Protocol's own examples
# asks for `mcp>=1.6.0` without an upper bound. pip installs it with mcp 2, whose low-level Server has no decorators
# such as `list_resources` any more: the server ends with an AttributeError before it speaks. `pip check` finds nothing.
# A client sees a closed connection, which looks like its own fault. With mcp 1.30.0 the same server starts.
set -euo pipefail
cd "$(mktemp -d)"
python3 -m venv env && env/bin/pip install -q mcp-server-sqlite==2025.4.25 mcp==2.3.0
env/bin/pip show mcp-server-sqlite | grep Requires
env/bin/python -c 'from importlib.metadata import requires; print(requires("mcp-server-sqlite"))'
env/bin/pip check
if env/bin/mcp-server-sqlite --db-path test.db < /dev/null 2> told.txt; then echo "it starts now"; exit 1; fi
tail -1 told.txt
grep -q "AttributeError: 'Server' object has no attribute 'list_resources'" told.txt
