"""ToolIndex: the tools that fit a need, best first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import GeckoError
from ..models.formatting import cut, one_line
from ..tools.spec import ToolSpec
from .cache import IndexCache
from .words import document_of, split_words, texts_of

if TYPE_CHECKING:
    from langchain_core.documents import BaseDocumentCompressor
    from langchain_core.embeddings import Embeddings

K1, B = 2.0, 0.6
"""BM25's saturation and its normalisation by length: long lists of arguments are no fault of a tool."""

FUSION_K, CANDIDATES, TEXT_CHARS = 60, 50, 2_000
"""Reciprocal rank fusion: a rank counts as 1 / (60 + rank). Tools of each ranking that are fused and reranked, at
least. Characters of a tool that an embedding model or a reranker reads."""


class Found(NamedTuple):
    """A tool that fits. Scores of one search can be compared, and are above 0."""

    name: str
    score: float


def is_installed() -> bool:
    """Return whether the extra `retrieval` is installed."""
    return find_spec("bm25s") is not None


class ToolIndex:
    """The tools of a toolkit, to be searched from any thread. `ToolIndex.build` makes one."""

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
            embeddings: Any LangChain embeddings: then both rankings count, fused by reciprocal rank.
            reranker: Any LangChain document compressor: orders, and may drop, what was found.
            cache: A folder that keeps indexes, found by a digest of the tools. A broken file is built anew.

        Raises:
            GeckoError: The extra is not installed, the folder cannot be made, or the embeddings do not give one vector
                of numbers for each tool.
        """
        if not is_installed():
            raise GeckoError("searching tools needs the extra `retrieval`: pip install 'gecko-graph[retrieval]'")
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
    def asks_others(self) -> bool:
        """Whether a search runs what the user gave (embeddings, a reranker), which may take time and fail."""
        return self._embeddings is not None or self._reranker is not None

    def __contains__(self, name: object) -> bool:
        """Return whether a tool of this name can be found."""
        return name in self._places

    def search(self, query: str, k: int = 10, *, allowed: Collection[str] | None = None) -> list[Found]:
        """Return the tools that fit, best first.

        Args:
            query: What is needed, in plain words.
            k: How many at most.
            allowed: Names of the tools that may be found: the gate (ToolGate, equation 9); None for all.
        """
        most = max(CANDIDATES, 2 * k) if self.asks_others else k
        found = self.match_words(query, most, allowed=allowed)
        if self._embeddings is not None:
            (vector,) = _unit_vectors([self._embeddings.embed_query(query)], 1, self._vectors.shape[1])
            found = _fuse([found, self._best(self._vectors @ vector * self._mask(allowed), most)])
        if self._reranker is not None and found:
            found = self._rerank(query, found)
        return found[:k]

    def match_words(self, query: str, k: int = 10, *, allowed: Collection[str] | None = None) -> list[Found]:
        """Return the tools that fit by their words alone: no model is asked."""
        words = list(dict.fromkeys(split_words(query)))  # once each: a word that is repeated is not needed more
        ids = self._bm25.get_tokens_ids(words) if self._bm25 else []
        return self._best(self._bm25.get_scores_from_ids(ids, weight_mask=self._mask(allowed)), k) if ids else []

    def _mask(self, allowed: Collection[str] | None) -> Any:
        import numpy as np

        mask = np.full(len(self._tools), allowed is None, dtype="float32")
        mask[[self._places[name] for name in allowed or () if name in self._places]] = 1
        return mask

    def _best(self, scores: Any, k: int) -> list[Found]:
        best = (-scores).argsort(kind="stable")[: max(k, 0)]
        return [Found(self._tools[place].name, float(scores[place])) for place in best if scores[place] > 0]

    def _rerank(self, query: str, found: Sequence[Found]) -> list[Found]:
        from langchain_core.documents import Document

        texts = {each.name: _text_of(self._tools[self._places[each.name]]) for each in found}
        documents = [Document(text, metadata={"name": name}) for name, text in texts.items()]
        ranked = [each.metadata.get("name", "") for each in self._reranker.compress_documents(documents, query)]
        return _fuse([[Found(name, 0) for name in ranked if name in texts]])


def _check_given(tools: Sequence[object], embeddings: object, reranker: object) -> None:
    """Raise GeckoError for what can never be searched, or search."""
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
    """Return one vector of length 1 for each tool; kept ones only where the same model made the first of them."""
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


def _fuse(rankings: Iterable[Sequence[Found]]) -> list[Found]:
    """Return the tools of all rankings by reciprocal rank; of equal ones the first ranking's first."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, name in enumerate(dict.fromkeys(found.name for found in ranking), 1):
            scores[name] = scores.get(name, 0.0) + 1 / (FUSION_K + rank)
    return [Found(name, score) for name, score in sorted(scores.items(), key=lambda each: -each[1])]
