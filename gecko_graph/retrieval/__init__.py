"""Find the tools for a need among thousands (ToolGate, section 3.3) by BM25 (extra `retrieval`) and embeddings."""

from __future__ import annotations

from .index import ScoredTool, ToolIndex, is_installed

__all__ = ["ScoredTool", "ToolIndex", "is_installed"]
