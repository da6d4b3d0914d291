"""Measurements of gecko_graph: `python -m evals SUITE`. Imports the package, never the reverse; not in the wheel."""
