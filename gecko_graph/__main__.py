"""`python -m gecko_graph`: the same as the command `gecko-graph`."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
