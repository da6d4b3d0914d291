"""ToolSandbox's method: conversations on the phone, and the scorer beside the benchmark's public code."""

from .suite import ToolSandbox

SUITE = ToolSandbox
