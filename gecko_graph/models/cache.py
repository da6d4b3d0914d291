"""A file of paid model replies: resumed work asks no question twice (LangChain's LLM cache)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from platform import node
from threading import Lock
from typing import Any

from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, message_to_dict, messages_from_dict
from langchain_core.outputs import ChatGeneration, Generation

from ..errors import GeckoError
from ..values.digest import digest

CACHED = "gecko_cached"
"""Key in a reply's metadata: the reply comes from the cache."""

_UNASKED = ("usage_metadata", "response_metadata", "id")

_ITEM: ContextVar[str] = ContextVar("gecko_item", default="")
ASKED: ContextVar[tuple[str, int, int, int]] = ContextVar("gecko_asked", default=("", 0, 0, 0))
"""Role, turn, attempt and question of the current ask."""


class Unkept(GeckoError):
    """A reply could not be cached: the work stops, because this is no failure of the model."""


@contextmanager
def of_item(name: str) -> Iterator[None]:
    """Ask for one item of the work: equal questions of different items have replies of their own."""
    token = _ITEM.set(f"{_ITEM.get()}/{name}")
    try:
        yield
    finally:
        _ITEM.reset(token)


class ReplyCache(BaseCache):
    """Replies in an SQLite file, keyed by model, prompt, item and place in the run, so that samples stay different.

    Threads and processes of one machine share a file; each machine has its own, as required by SQLite's WAL mode.

    Args:
        file: The file; created with the first question.
    """

    def __init__(self, file: str | Path) -> None:
        self._name, self._file, self._lock = Path(file), Path(f"{file}.{node()}"), Lock()
        self._opened: sqlite3.Connection | None = None

    def __reduce__(self) -> Any:
        return ReplyCache, (self._name,)

    def _run(self, statement: str, *values: str) -> list[Any]:
        try:
            with self._lock:
                if self._opened is None:
                    self._file.parent.mkdir(parents=True, exist_ok=True)
                    self._opened = sqlite3.connect(self._file, 60, isolation_level=None, check_same_thread=False)
                    self._opened.execute("PRAGMA journal_mode=WAL")
                    self._opened.execute("PRAGMA synchronous=NORMAL")
                    self._opened.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT)")
                return self._opened.execute(statement, values).fetchall()
        except (OSError, sqlite3.Error) as error:
            raise Unkept(f"{self._file}: cannot be written: {error}; rerun the same command to resume") from None

    def __del__(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def lookup(self, prompt: str, llm_string: str) -> list[Generation] | None:
        found = self._run("SELECT reply FROM replies WHERE key = ?", _key(prompt, llm_string))
        if not found:
            return None
        (message,) = messages_from_dict([json.loads(found[0][0])])
        message.response_metadata[CACHED] = True
        return [ChatGeneration(message=message)]

    def update(self, prompt: str, llm_string: str, return_val: Sequence[Generation]) -> None:
        message = getattr(return_val[0], "message", None)
        if isinstance(message, AIMessage):
            reply = json.dumps(message_to_dict(message), default=str)
            self._run("INSERT OR REPLACE INTO replies VALUES (?, ?)", _key(prompt, llm_string), reply)

    def clear(self, **kwargs: Any) -> None:
        self._run("DELETE FROM replies")


def forget_replies(file: str | Path) -> None:
    for each in Path(file).parent.glob(f"{Path(file).name}.*"):
        each.unlink(missing_ok=True)


def _key(prompt: str, llm_string: str) -> str:
    """Return the key of a reply: the messages without usage, metadata and ids."""
    with suppress(ValueError, TypeError, LookupError, AttributeError):
        read = [(each["id"], each["kwargs"].items()) for each in json.loads(prompt)]
        plain = [(kind, {key: each for key, each in parts if key not in _UNASKED}) for kind, parts in read]
        prompt = json.dumps(plain, sort_keys=True)
    return digest([llm_string, prompt, _ITEM.get(), *ASKED.get()])


def with_cache(model: Any, cache: ReplyCache) -> Any:
    """Return a chat model with the cache; other models, and those with a cache of their own, unchanged."""
    is_free = isinstance(model, BaseChatModel) and model.cache is None
    return model.model_copy(update={"cache": cache}) if is_free else model


def without_cache(model: Any) -> Any:
    """Return a chat model that bypasses any cache but a `ReplyCache`, which tells equal prompts apart."""
    if not isinstance(model, BaseChatModel) or isinstance(model.cache, ReplyCache):
        return model
    return model.model_copy(update={"cache": False})
