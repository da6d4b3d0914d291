"""Finding the tools that fit a need, of thousands (ToolGate, section 3.3): BM25 (extra `retrieval`), and embeddings."""

from __future__ import annotations

from .index import ScoredTool, ToolIndex, is_installed

__all__ = ["ScoredTool", "ToolIndex", "is_installed"]
