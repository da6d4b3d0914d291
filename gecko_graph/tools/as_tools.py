"""A toolkit's tools as LangChain tools that run the real functions."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any
from uuid import uuid4

from langchain_core.tools import BaseTool, ToolException

from ..context import GeckoContext
from ..models.conversation import build_complaint_message
from ..models.factory import Models
from ..models.node import NodeScope, book_attempt, run_node, silent
from ..models.waiting import AT_ONCE, AWAITED, Driver, finish
from ..state import Call, JsonObject
from ..values.leaves import as_text
from .check import check_by_rule
from .real import Answer, run_real
from .spec import ToolSpec

NO_REAL = "{tool} has no real function: it can only be simulated"
IN_DOUBT = "It is not known whether the call took effect: find out before you make it again."

CLAIMED: ContextVar[JsonObject | None] = ContextVar("gecko_claimed", default=None)
"""Of a call that was claimed: its `key`; the tool notes in `doubt` whether it is open if the call took effect."""
NO_MODELS = Models.bind()
SCOPE = NodeScope(GeckoContext.model_validate({}), silent, NO_MODELS.has)


async def drive(steps: Any, driver: Driver) -> Any:
    """Do what a generator asks outside of a graph, where no model is asked, and return what it comes to."""
    return await run_node(lambda *_: steps, None, SCOPE, driver, models=NO_MODELS, book=book_attempt)


class RealTool(BaseTool):
    """A tool with its own JSON Schema; all of a call's arguments reach the function, whatever they are called."""

    spec: Any
    timeout_s: float

    def _run(self, /, **args: Any) -> Any:
        return finish(self._call(args, AT_ONCE))

    async def _arun(self, /, **args: Any) -> Any:
        return await self._call(args, AWAITED)

    async def _call(self, args: JsonObject, driver: Driver) -> Any:
        return read_answer(self.spec, *await drive(self._made(args), driver))

    def _made(self, args: JsonObject) -> Any:
        call: Call = {"id": "", "name": self.name, "args": args}
        if complaints := check_by_rule(call, self.spec):
            return Answer("error", build_complaint_message(call, complaints).text), False
        if self.spec.real is None:
            return Answer("error", NO_REAL.format(tool=self.name)), False
        key = (CLAIMED.get() or {}).get("key") or uuid4().hex
        return run_real(self.spec, args, self.timeout_s, key=key)


def as_tool(tool: ToolSpec, shown: JsonObject, *, timeout_s: float) -> RealTool:
    """Return a tool as a LangChain tool that an agent sees as OpenAI's function dict says."""
    return RealTool(
        name=shown["function"]["name"],
        description=shown["function"]["description"],
        args_schema=shown["function"]["parameters"],
        response_format="content_and_artifact",
        handle_tool_error=True,
        spec=tool,
        timeout_s=timeout_s,
    )


def read_answer(tool: ToolSpec, answer: Answer, in_doubt: bool) -> tuple[str, JsonObject]:
    """Return content and artifact, the latter as MCP has it. Raises ToolException for an error."""
    content = as_text(answer.result)
    if claimed := CLAIMED.get():
        claimed["doubt"] = in_doubt
    if answer.status == "error":
        raise ToolException(f"{content}\n{IN_DOUBT}" if in_doubt and not tool.trusted else content)
    return content, {"structured_content": answer.result}
