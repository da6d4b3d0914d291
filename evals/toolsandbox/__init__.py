"""ToolSandbox's method: conversations on the phone, and the scorer compared with the benchmark's public code."""

from .suite import ToolSandbox

SUITE = ToolSandbox
