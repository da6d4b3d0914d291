"""ToolIndex: words, the gate, fusion, rerankers, and a cache that is never trusted."""

import builtins
import pickle

import numpy as np
import pytest
from langchain_core.documents import BaseDocumentCompressor
from langchain_core.embeddings import Embeddings

from gecko_graph import GeckoError, Toolkit, ToolSpec
from gecko_graph.retrieval import ToolIndex, index
from gecko_graph.retrieval.index import split_words


def tool(name, description="", **arguments):
    properties = {key: {"type": "string", "description": text} for key, text in arguments.items()}
    return ToolSpec(name=name, description=description, parameters={"type": "object", "properties": properties})


TOOLS = [
    tool("getWeatherForecast", "The forecast for a place.", city="Name of the city"),
    tool("list_invoices", "Invoices of a customer.", customerIDs="Whose", status="open or paid"),
    tool("math.hypot", "Length of a vector.", x="first", y="second"),
    tool("delete_invoice", "Remove an invoice for good.", invoice_id="Which"),
]


def names(found):
    return [each.name for each in found]


@pytest.mark.parametrize(("text", "words"), [
    ("getUserIDs_v2", ["get", "user", "id", "2"]), ("HTTPServerError", ["http", "server", "error"]),
    ("list-all.cities/{cityId}", ["list", "all", "city", "city", "id"]),
    ("boxes, classes and statuses", ["box", "class", "statuse"]),
    ("the address of a bus", ["address", "bus"]), ("天気 v3", ["天", "気", "3"]), ("", []),
])  # fmt: skip
def test_words(text, words):
    assert split_words(text) == words


def test_the_best_comes_first_and_nothing_without_a_common_word():
    built = ToolIndex.build(Toolkit(TOOLS))
    assert names(built.search("weather forecasts for cities"))[0] == "getWeatherForecast"
    assert {*names(built.search("invoice"))} == {"list_invoices", "delete_invoice"}
    assert built.search("quantum entanglement") == built.search("") == built.search("invoice", 0) == []
    assert names(built.search("invoice of a customer", 1)) == ["list_invoices"]
    scores = [each.score for each in built.search("invoice of a customer, for good")]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 0


def test_the_gate_leaves_out_what_is_not_allowed():
    built = ToolIndex.build(TOOLS)
    assert names(built.search("invoice", allowed={"list_invoices", "no such tool"})) == ["list_invoices"]
    assert built.search("invoice", allowed=()) == []


class Meanings(Embeddings):
    """Vectors by hand: money is one direction, weather the other."""

    def __init__(self, width=2):
        self.asked, self.width = [], width

    def embed_documents(self, texts):
        self.asked += texts
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        text = text.lower()
        vector = [float("invoice" in text or "bill" in text), float("weather" in text or "rain" in text), 0.01]
        return vector[: self.width]


def test_embeddings_find_what_shares_no_word_and_both_rankings_count():
    built = ToolIndex.build(TOOLS, embeddings=Meanings())
    assert names(built.search("will it rain", 1)) == ["getWeatherForecast"]
    assert ToolIndex.build(TOOLS).search("will it rain") == []
    assert names(built.search("bill: remove it for good"))[0] == "delete_invoice"
    assert names(built.search("bill", allowed=["list_invoices"])) == ["list_invoices"]


@pytest.mark.parametrize(
    "given_vectors", [[[1.0]], [["x"]] * 4, [[1.0]] * 3 + [[1.0, 2.0]], [[float("nan")]] * 4, None]
)
def test_embeddings_that_are_no_vectors(given_vectors):
    class Odd(Meanings):
        def embed_documents(self, texts):
            return given_vectors

    with pytest.raises(GeckoError, match="expected 4 vectors"):
        ToolIndex.build(TOOLS, embeddings=Odd())


class Backwards(BaseDocumentCompressor):
    """Keeps two, in another order, and one that nobody gave."""

    def compress_documents(self, documents, query, callbacks=None):
        strange = documents[0].model_copy(update={"metadata": {"name": "made_up"}})
        return [strange, *reversed(documents)][:3]


def test_a_reranker_orders_and_drops_and_adds_nothing():
    built = ToolIndex.build(TOOLS, reranker=Backwards())
    plain = names(ToolIndex.build(TOOLS).search("invoice vector length"))
    assert names(built.search("invoice vector length")) == plain[::-1][:2]
    assert built.search("nothing of the kind") == []


def test_a_cache_is_used_again_but_not_vectors_of_another_model(tmp_path, monkeypatch):
    built = ToolIndex.build(TOOLS, cache=tmp_path / "kept", embeddings=Meanings())
    monkeypatch.setattr(index, "document_of", lambda *texts: pytest.fail("was built anew"))
    meanings = Meanings()
    again = ToolIndex.build(TOOLS, cache=tmp_path / "kept", embeddings=meanings)
    assert len(meanings.asked) == 1
    assert again.search("invoice of rain") == built.search("invoice of rain")
    monkeypatch.undo()
    ToolIndex.build(TOOLS, cache=tmp_path, embeddings=Meanings())
    other = Meanings(width=3)
    ToolIndex.build(TOOLS, cache=tmp_path, embeddings=other)
    assert len(other.asked) == 5


def kept_file(folder):
    (file,) = folder.glob("*-words.npz")
    return file


def rewrite(file, **parts):
    with np.load(file) as kept:
        np.savez(file, **{**{name: kept[name] for name in kept.files}, **parts})


class Bomb:
    def __reduce__(self):
        return builtins.exec, ("raise SystemExit('unpickled')",)


@pytest.mark.parametrize("spoil", [
    lambda file: file.write_bytes(file.read_bytes()[:-200]), lambda file: file.write_bytes(pickle.dumps(Bomb())),
    lambda file: rewrite(file, digest=np.asarray("another")),
    lambda file: rewrite(file, data=np.asarray([Bomb()], dtype=object)),
    lambda file: rewrite(file, indices=np.full(1000, 10**6, "int32")),
    lambda file: rewrite(file, num_docs=np.asarray(3)),
    lambda file: rewrite(file, words=np.frombuffer(b"[1, 2]", "uint8")),
])  # fmt: skip
def test_a_broken_cache_is_built_anew(tmp_path, spoil):
    right = ToolIndex.build(TOOLS, cache=tmp_path).search("invoice of a customer")
    spoil(kept_file(tmp_path))
    assert ToolIndex.build(TOOLS, cache=tmp_path).search("invoice of a customer") == right
    with np.load(kept_file(tmp_path)) as file:
        assert len(file["data"]) == len(file["indices"])


def test_a_cache_that_is_no_folder_and_without_the_extra(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(GeckoError, match="cache: expected a folder"):
        ToolIndex.build(TOOLS, cache=tmp_path / "file")
    monkeypatch.setattr(index, "is_installed", lambda: False)
    with pytest.raises(GeckoError, match=r"pip install '.\[retrieval\]'"):
        ToolIndex.build(TOOLS)
