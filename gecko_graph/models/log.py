"""A log of every prompt and reply, as JSON lines: a LangChain callback handler.

```python
gecko.invoke(inputs, {"callbacks": [PromptLog("prompts.jsonl")]})
```

A `prompt` line is written before the model is asked, a `reply` line when it has answered, each at once: the file is
whole after a kill. Both have the question's `id` and place (`role`, `turn`, `attempt`, `question`). Secrets are masked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from ..errors import GeckoError
from ..masking import mask
from .failure import failure_of
from .usage import add_all, count


class PromptLog(BaseCallbackHandler):
    """Appends every prompt and reply of a run to a file.

    Args:
        file: The file; created if it is missing.

    Raises:
        GeckoError: The file cannot be written.
    """

    run_inline = True  # in the order of what happens, also under `ainvoke`

    def __init__(self, file: str | Path) -> None:
        self._file = Path(file)
        self._lock = Lock()
        self._open: dict[UUID, tuple[float, dict[str, Any]]] = {}
        self._tools: dict[str, str] = {}
        try:
            self._file.open("a", encoding="utf-8").close()
        except OSError as error:
            raise GeckoError(f"{file}: the log cannot be written: {error.strerror}") from None

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Write the prompt. Tools that an earlier prompt has shown are named by its id, in `tools_of`."""
        metadata = kwargs.get("metadata") or {}
        place = {key: metadata.get(f"gecko_{key}") for key in ("role", "turn", "attempt", "question")}
        self._open[run_id] = time.monotonic(), place
        prompt = {"model": metadata.get("ls_model_name"), "messages": [_read(one) for one in messages[0]]}
        self._write("prompt", run_id, place, {**prompt, **self._read_tools(kwargs, run_id)})

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Write the reply with its tokens."""
        generations = [one for batch in response.generations for one in batch if isinstance(one, ChatGeneration)]
        spent = add_all([count(one.message) for one in generations])
        tokens = {"input": spent["input_tokens"], "output": spent["output_tokens"]}
        self._end(run_id, {"reply": [_read(one.message) for one in generations], "tokens": tokens})

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Write why there is no reply."""
        self._end(run_id, {"error": failure_of(error) if isinstance(error, Exception) else type(error).__name__})

    def _end(self, run_id: UUID, fields: dict[str, Any]) -> None:
        begun, place = self._open.pop(run_id, (time.monotonic(), {}))
        self._write("reply", run_id, place, {**fields, "ms": round((time.monotonic() - begun) * 1_000)})

    def _read_tools(self, kwargs: dict[str, Any], run_id: UUID) -> dict[str, Any]:
        tools = (kwargs.get("invocation_params") or {}).get("tools")
        if not tools:
            return {}
        first = self._tools.setdefault(json.dumps(tools, default=str, sort_keys=True), str(run_id))
        return {"tools": tools} if first == str(run_id) else {"tools_of": first}

    def _write(self, kind: str, run_id: UUID, place: dict[str, Any], fields: dict[str, Any]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        head = {"event": kind, "id": str(run_id), "time": now, **place}
        try:
            line = json.dumps(_mask({**head, **fields}), default=str)
        except Exception as error:  # noqa: BLE001 - the boundary to models: a reply may hold anything, at any depth
            line = json.dumps({**head, "error": f"it cannot be written: {type(error).__name__}"})
        with self._lock, self._file.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def _read(message: BaseMessage) -> dict[str, Any]:
    """Return what a message holds, in the words of LangChain's own format."""
    names = ("name", "tool_calls", "invalid_tool_calls", "tool_call_id")
    parts = {name: getattr(message, name, None) for name in names}
    return {"type": message.type, "content": message.content, **{key: part for key, part in parts.items() if part}}


def _mask(value: Any, name: str = "") -> Any:
    """Mask the texts in a value; one that a key names as a secret shows it only beside that key."""
    if isinstance(value, dict):
        return {_mask(str(key)): _mask(part, str(key)) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_mask(part, name) for part in value]
    if not isinstance(value, str):
        return value
    head = f'{name}": "' if name else ""
    masked = mask(head + value)
    return masked.removeprefix(head) if masked.startswith(head) else mask(value)
