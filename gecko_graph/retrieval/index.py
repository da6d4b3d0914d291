"""ToolIndex: search of tools by words and embeddings; indexes cached in a folder.

Identifiers are split into words; plurals and stop words are ignored. A cached index is named by a digest of the tools,
checked before use, and never pickled.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import GeckoError, install
from ..models.formatting import cut, one_line
from ..schemas.subschemas import walk
from ..tools.spec import ToolSpec

if TYPE_CHECKING:
    from langchain_core.documents import BaseDocumentCompressor
    from langchain_core.embeddings import Embeddings

K1, B = 2.0, 0.6
"""BM25's saturation and length normalisation; a long list of arguments costs a tool little."""

FUSION_K, CANDIDATES, TEXT_CHARS = 60, 50, 2_000
"""The constant of reciprocal rank fusion: a rank counts as 1 / (60 + rank).

The least number of tools of each ranking that are fused and reranked. Characters of a tool that an embedding model or a
reranker reads.
"""


LEAST_SIMILARITY = 0.2
"""The least share of common words between a need and an earlier one for the earlier one's tool to be found."""


class ScoredTool(NamedTuple):
    """A tool that was found. Scores are above 0 and comparable within one search."""

    name: str
    score: float


def is_installed() -> bool:
    """Return whether the extra `retrieval` is installed."""
    return find_spec("bm25s") is not None


class ToolIndex:
    """A searchable index of a toolkit's tools, made by `ToolIndex.build`; usable from any thread."""

    def __init__(self, tools: Sequence[ToolSpec], bm25: Any, vectors: Any, embeddings: Any, reranker: Any) -> None:
        self._tools, self._bm25, self._vectors = tools, bm25, vectors
        self._embeddings, self._reranker = embeddings, reranker
        self._places = {tool.name: place for place, tool in enumerate(tools)}

    @classmethod
    def build(
        cls,
        tools: Iterable[ToolSpec],
        *,
        embeddings: Embeddings | None = None,
        reranker: BaseDocumentCompressor | None = None,
        cache: str | Path | None = None,
    ) -> ToolIndex:
        """Index tools by the words of their names, descriptions, arguments, tags and paths.

        Args:
            tools: A Toolkit, or its tools.
            embeddings: Any LangChain embeddings; if given, both rankings count, fused by reciprocal rank.
            reranker: Any LangChain document compressor; it orders the results and may drop some.
            cache: A folder for indexes, named by a digest of the tools. A broken file is rebuilt.

        Raises:
            GeckoError: The extra is not installed, the folder cannot be created, or the embeddings do not give one
                vector of numbers for each tool.
        """
        if not is_installed():
            raise GeckoError(f"searching tools needs the extra `retrieval`: {install('retrieval')}")
        listed = list(tools)
        _check_given(listed, embeddings, reranker)
        texts = [texts_of(tool) for tool in listed]
        store = None if cache is None else IndexCache.open(cache, texts)
        bm25 = import_module("bm25s").BM25(k1=K1, b=B)
        if store and (parts := store.load("words", len(listed))):
            bm25.vocab_dict = {word: number for number, word in enumerate(parts["words"])}
            bm25.scores, bm25.nonoccurrence_array = parts, None
        elif any(documents := [document_of(*each) for each in texts]):
            bm25.index(documents, show_progress=False)
            if store:
                store.save("words", bm25.scores, bm25.vocab_dict)
        else:
            bm25 = None
        embeddings = embeddings if listed else None
        vectors = None if embeddings is None else _embed_all(listed, embeddings, store)
        return cls(listed, bm25, vectors, embeddings, reranker)

    @property
    def uses_plugins(self) -> bool:
        """Whether a search runs objects that the user gave (embeddings, a reranker), which may be slow or fail."""
        return self._embeddings is not None or self._reranker is not None

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def search(self, query: str, k: int = 10, *, allowed: Collection[str] | None = None) -> list[ScoredTool]:
        """Return the tools that fit a need, best first.

        Args:
            query: The need, in plain words.
            k: The most tools to return.
            allowed: Names of the tools that may be returned (ToolGate, equation 9); None for all.
        """
        most = max(CANDIDATES, 2 * k) if self.uses_plugins else k
        found = self.match_words(query, most, allowed=allowed)
        if self._embeddings is not None:
            (vector,) = _unit_vectors([self._embeddings.embed_query(query)], 1, self._vectors.shape[1])
            found = fuse([found, self._best(self._vectors @ vector * self._mask(allowed), most)])
        if self._reranker is not None and found:
            found = self._rerank(query, found)
        return found[:k]

    def match_words(self, query: str, k: int = 10, *, allowed: Collection[str] | None = None) -> list[ScoredTool]:
        """Return the tools that fit by words alone, without embeddings or a reranker."""
        words = list(dict.fromkeys(split_words(query)))  # a repeated word does not count more
        ids = self._bm25.get_tokens_ids(words) if self._bm25 else []
        return self._best(self._bm25.get_scores_from_ids(ids, weight_mask=self._mask(allowed)), k) if ids else []

    def _mask(self, allowed: Collection[str] | None) -> Any:
        import numpy as np

        mask = np.full(len(self._tools), allowed is None, dtype="float32")
        mask[[self._places[name] for name in allowed or () if name in self._places]] = 1
        return mask

    def _best(self, scores: Any, k: int) -> list[ScoredTool]:
        best = (-scores).argsort(kind="stable")[: max(k, 0)]
        return [ScoredTool(self._tools[place].name, float(scores[place])) for place in best if scores[place] > 0]

    def _rerank(self, query: str, found: Sequence[ScoredTool]) -> list[ScoredTool]:
        from langchain_core.documents import Document

        texts = {each.name: _text_of(self._tools[self._places[each.name]]) for each in found}
        documents = [Document(text, metadata={"name": name}) for name, text in texts.items()]
        ranked = [each.metadata.get("name", "") for each in self._reranker.compress_documents(documents, query)]
        return fuse([[ScoredTool(name, 0) for name in ranked if name in texts]])


def _check_given(tools: Sequence[object], embeddings: object, reranker: object) -> None:
    """Raise GeckoError for tools that cannot be indexed, or for an object without the needed method."""
    if wrong := next((each for each in tools if not isinstance(each, ToolSpec)), None):
        raise GeckoError(f"tools: expected a Toolkit, such as Toolkit.from_tools([...]), got {type(wrong).__name__}")
    for name, given, method in (
        ("embeddings", embeddings, "embed_documents"),
        ("reranker", reranker, "compress_documents"),
    ):
        if given is not None and not hasattr(given, method):
            raise GeckoError(
                f"{name}: expected an object with {method}, such as LangChain's, got {type(given).__name__}"
            )


def _text_of(tool: ToolSpec) -> str:
    return cut(one_line(". ".join(filter(None, texts_of(tool)))), budget=TEXT_CHARS)


def _embed_all(tools: Sequence[ToolSpec], embeddings: Embeddings, store: IndexCache | None) -> Any:
    """Return one unit vector for each tool; cached ones if this model gives the first tool the same vector."""
    texts = [_text_of(tool) for tool in tools]
    if store and (kept := store.load("vectors", len(tools))):
        first, known = _unit_vectors(embeddings.embed_documents(texts[:1]), 1), kept["vectors"]
        if first.shape[1:] == known.shape[1:] and first[0] @ known[0] > 0.999:
            return known
    vectors = _unit_vectors(embeddings.embed_documents(texts), len(texts))
    if store:
        store.save("vectors", {"vectors": vectors})
    return vectors


def _unit_vectors(given: Any, count: int, width: int | None = None) -> Any:
    import numpy as np

    try:
        vectors = np.atleast_1d(np.asarray(given, dtype="float32"))
    except (TypeError, ValueError):
        vectors = np.asarray([np.nan])
    if vectors.shape != (count, width or vectors.shape[-1]) or not np.isfinite(vectors).all():
        expected = f"{count} vectors of {width or 'equally many'} numbers"
        raise GeckoError(f"embeddings: expected {expected}, got values of shape {vectors.shape}")
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def fuse(rankings: Iterable[Sequence[ScoredTool]]) -> list[ScoredTool]:
    """Return the tools of all rankings by reciprocal rank; ties keep the order of the first ranking."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, name in enumerate(dict.fromkeys(found.name for found in ranking), 1):
            scores[name] = scores.get(name, 0.0) + 1 / (FUSION_K + rank)
    return [ScoredTool(name, score) for name, score in sorted(scores.items(), key=lambda each: -each[1])]


def recall(need: str, taught: Iterable[Mapping[str, Any]], allowed: Collection[str] | None = None) -> list[ScoredTool]:
    """Return the tools that served needs in similar words before, the most similar first.

    `taught` are pairs of `need` and `tool`.
    """
    words = frozenset(split_words(need))
    scores: dict[str, float] = {}
    for each in taught:
        if allowed is None or each["tool"] in allowed:
            other = frozenset(split_words(each["need"]))
            shared = len(words & other) / max(1, len(words | other))
            scores[each["tool"]] = max(shared, scores.get(each["tool"], 0.0))
    best = sorted(scores.items(), key=lambda each: -each[1])
    return [ScoredTool(name, score) for name, score in best if score >= LEAST_SIMILARITY]


# words ---------------------------------------------------------------------------------------------------

NAME_WEIGHT, DESCRIPTION_WEIGHT = 3, 2
"""The weight of words of the name and the description, relative to words of arguments, tags and path."""

MOST_PARTS = 40
"""The most subschemas of one tool that are read; deeper parts of large bodies distinguish tools less."""

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_WORD = re.compile(rf"[{_CJK}]|\d+|[A-Z]{{2,}}(?=s(?![a-z]))|[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z{_CJK}]+")

_SMALL = """a an and are as at be but by for if in into is it no not of on or such that the their then there these they
this to was will with"""
_STOP = frozenset(_SMALL.split())


def split_words(text: str) -> list[str]:
    """Return a text's words in lower case: `getUserIDs_v2` gives `get`, `user`, `id`, `2`."""
    words = (word.lower() for word in _WORD.findall(text))
    return [_singular(word) for word in words if word not in _STOP and (len(word) > 1 or not "a" <= word <= "z")]


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word[:-1]


def texts_of(tool: ToolSpec) -> tuple[str, str, str]:
    """Return a tool's name, its description, and its other searchable texts: arguments, tags, path."""
    path = [tool.binding.path] if tool.binding is not None else []
    return tool.name, tool.description, "\n".join([*tool.tags, *path, *_argument_texts(tool.parameters)])


def document_of(name: str, description: str, others: str) -> list[str]:
    """Return the words to index a tool by, from `texts_of`."""
    return NAME_WEIGHT * split_words(name) + DESCRIPTION_WEIGHT * split_words(description) + split_words(others)


def _argument_texts(schema: Any) -> Iterator[str]:
    """Yield the names, descriptions and choices of the arguments, nested ones included."""
    for one in islice(walk(schema), MOST_PARTS):
        properties, choices = one.get("properties"), one.get("enum")
        found = [*(properties if isinstance(properties, dict) else ()), one.get("description")]
        yield from (text for text in [*found, *(choices if isinstance(choices, list) else ())] if isinstance(text, str))


# indexes kept in a folder --------------------------------------------------------------------------------

FORMAT = "gecko tool index 1"
"""Change it with the words, the weights or the layout: older files are then rebuilt."""


class IndexCache(NamedTuple):
    """The cache files of one set of tools."""

    folder: Path
    digest: str

    @classmethod
    def open(cls, folder: str | Path, texts: Iterable[tuple[str, ...]]) -> IndexCache:
        """Return the cache of the tools with these texts. Raises GeckoError if the folder cannot be created."""
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise GeckoError(f"cache: expected a folder, got {str(folder)!r} ({error.strerror})") from None
        found = sha256(FORMAT.encode())
        for each in texts:
            found.update(json.dumps(each).encode())
        return cls(Path(folder), found.hexdigest()[:32])

    def save(self, kind: str, parts: Mapping[str, Any], words: Iterable[str] = ()) -> None:
        """Save an index. If the folder is not writable, nothing is saved and the index is rebuilt next time."""
        import numpy as np

        arrays: Any = {**parts, "words": np.frombuffer(json.dumps([*words]).encode(), "uint8"), "digest": self.digest}
        with suppress(OSError), NamedTemporaryFile(dir=self.folder, suffix=".tmp", delete=False) as file:
            np.savez(file, **arrays)
            file.close()
            os.replace(file.name, self.folder / f"{self.digest}-{kind}.npz")

    def load(self, kind: str, count: int) -> dict[str, Any] | None:
        """Return the index of `count` tools; None if there is none or the file is invalid."""
        import numpy as np

        try:
            content = (self.folder / f"{self.digest}-{kind}.npz").read_bytes()
            with np.load(BytesIO(content), allow_pickle=False) as file:
                parts: dict[str, Any] = {name: file[name] for name in file.files}
            parts["words"] = json.loads(parts["words"].tobytes())
            fits = _fits(parts, count) if kind == "words" else parts["vectors"].shape[:1] == (count,)
            return parts if fits and str(parts.pop("digest")) == self.digest else None
        except Exception:  # noqa: BLE001 - an invalid file of any kind is rebuilt
            return None


def _fits(parts: dict[str, Any], count: int) -> bool:
    """Return whether the parts are a valid sparse matrix of words and tools, without indices out of range."""
    data, rows, ends, words = parts["data"], parts["indices"], parts["indptr"], parts["words"]
    parts["num_docs"] = int(parts["num_docs"])
    in_order = ends[0] == 0 and ends[-1] == len(data) == len(rows) and bool((ends[1:] >= ends[:-1]).all())
    inside = parts["num_docs"] == count and rows.min() >= 0 and rows.max() < count and data.dtype == "float32"
    whole = len(ends) - 1 <= len({str(word) for word in words}) == len(words) <= len(ends)
    return bool(in_order and inside and whole)
