"""For existing agents: LangChain middleware, a node, a message; for `ToolNode` see `World.as_tools`.

Only `GeckoMiddleware` needs LangChain (the extra `langchain`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import install
from .pending import rehearsal_message, rehearse_pending

if TYPE_CHECKING:
    from .agent import GeckoMiddleware

__all__ = ["GeckoMiddleware", "rehearsal_message", "rehearse_pending"]


def __getattr__(name: str) -> Any:
    if name != "GeckoMiddleware":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from .agent import GeckoMiddleware
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "langchain":
            raise
        raise ImportError(f"GeckoMiddleware needs LangChain: {install('langchain')}") from None
    return GeckoMiddleware
