"""ToolSandbox: the scorer beside scored trajectories of the benchmark's public code."""

from .suite import ToolSandbox

SUITE = ToolSandbox
