"""`learn --review`: a person accepts, edits or drops proposals; what was decided is kept."""

import io
from dataclasses import replace
from functools import cache

import pytest

from gecko_graph import Toolkit
from gecko_graph.cli import learn as module
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.learning.review import find_proposals
from gecko_graph.values.documents import read_document
from tests.learning.shop import rows, toolkit


@pytest.fixture(autouse=True)
def ann(monkeypatch):
    """Who sits at the terminal."""
    monkeypatch.setenv("LOGNAME", "ann")


@cache
def proposals():
    """Contracts with three proposals: too few refusals of each kind to establish one."""
    every, kinds = rows(600), {}
    some = [row for row in every if row.status == "ok"]
    for row in every:
        if row.status == "error":
            kind = next(word for word in ("sign in", "no item", "only") if word in row.result["error"])
            kinds.setdefault(kind, []).append(row)
    for found in kinds.values():
        some += found[:6]
    return learn_contracts(toolkit(), some)


@pytest.fixture
def file(tmp_path):
    proposals().write(tmp_path / "shop.contracts.yaml")
    return tmp_path / "shop.contracts.yaml"


def clauses(file):
    return {one["id"]: one for one in read_document(file)["contracts"]["buy"]["requires"] if "evidence" in one}


def typed(monkeypatch, *lines):
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))


def test_what_is_accepted_is_established_by_name_and_a_page_shows_proposals_with_their_evidence(run, file, tmp_path):
    first, *others = clauses(file)
    page = tmp_path / "review.html"
    assert run("learn", "--review", file, "--html", page)[0] == 0
    text = page.read_text(encoding="utf-8")
    assert all(f"buy/{name}" in text for name in (first, *others))
    assert ("lawful" in text, "<script" in text) == (True, False)
    assert run("learn", "--review", file, "--accept", f"buy/{first}")[0] == 0
    one = clauses(file)[first]
    assert (one["evidence"]["status"], one["evidence"]["by"]) == ("established", "ann")
    assert ("pass" in one, isinstance(one["error"], dict)) == (False, True)
    assert {clauses(file)[each]["evidence"]["status"] for each in others} == {"proposed"}
    assert toolkit().with_contracts(file)["buy"].contract is not None


def test_each_proposal_is_asked_about(run, file, monkeypatch):
    names = list(clauses(file))
    typed(monkeypatch, "a", "e", "args.count > 0", "d")
    code, out, _ = run("learn", "--review", file)
    assert code == 0
    assert all(f"buy/{name}" in out for name in names)
    assert "[a]ccept, [e]dit, [d]rop" in out, "square brackets are letters here, not markup"
    assert "\ncheck: " in out
    found = clauses(file)
    assert found[names[0]]["evidence"]["status"] == "established"
    assert found[names[1]]["check"] == "args.count > 0"
    assert names[2] not in found
    whole = read_document(file)["contracts"]["buy"]["requires"]
    assert not any(str(each.get("id")) == f"{names[1]}-rivals" for each in whole)
    assert "0 proposals left" in out
    Toolkit.from_openapi(toolkit().to_openapi()).with_contracts(file)


def test_an_edit_that_cannot_be_loaded_is_asked_again_and_the_end_of_what_is_typed_ends_it(run, file, monkeypatch):
    name = next(iter(clauses(file)))
    typed(monkeypatch, "e", "args.count >", "x", "s", "q")
    assert run("learn", "--review", file)[0] == 0
    assert clauses(file)[name]["evidence"]["status"] == "proposed"
    typed(monkeypatch, "d")
    code, out, _ = run("learn", "--review", file)
    assert (code, "2 proposals left" in out) == (0, True)


def test_ctrl_c_loses_nothing_that_was_decided(run, file, monkeypatch):
    name = next(iter(clauses(file)))
    said = iter(["a"])

    def ask(*_):
        try:
            return next(said)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(module.Console, "input", ask)
    assert run("learn", "--review", file)[0] == 130
    assert clauses(file)[name]["evidence"]["by"] == "ann"


def test_mistakes(run, file, tmp_path):
    (tmp_path / "x.json").write_text("[1]")
    for words, said in (
        ([file, "--accept", "buy/refusal-99"], "no such proposal"),
        ([file, "--html", "missing/page.html"], "missing"),
        ([tmp_path / "x.json"], "no file of contracts"),
    ):
        code, _, err = run("learn", "--review", *words)
        assert (code, said in err) == (2, True)


def test_what_agents_propose_stands_there_too(run, file, monkeypatch):
    """Without a store: from their rows, of another process. A refusal's rule needs a check, which a person gives."""
    late = "{{ args.nowhere }} is too late"  # the service's text, never evaluated
    agent = {"part": "requires", "says": f"refused before: {late}", "status": "proposed"}
    drift = {"part": "effects", "says": "/stock: foreseen 3, really 2", "status": "proposed"}
    closed = {"part": "requires", "says": "refused before: no", "status": "closed"}
    taught = [replace(row, lessons=[agent, drift, closed]) for row in rows(20)]
    learn_contracts(toolkit(), taught).write(file)
    proposed = {one.id: one.shown() for one in find_proposals(read_document(file))}
    assert {id_: text for id_, text in proposed.items() if "/agent-" in id_} == {
        "buy/agent-1": f"part: effects\nsays: '{drift['says']}'",
        "buy/agent-2": f"part: requires\nsays: '{agent['says']}'",
    }
    code, _, said = run("learn", "--review", file, "--accept", "buy/agent-2")
    assert (code != 0, "write the condition" in said) == (True, True)
    others = len(proposed) - 2
    typed(monkeypatch, *"s" * others, "a", "e", "args.count < 9")
    assert run("learn", "--review", file)[0] == 0
    last = read_document(file)["contracts"]["buy"]["requires"][-1]
    assert (last["check"], last["evidence"]["by"]) == ("args.count < 9", "ann")
    alone = toolkit().with_contracts({"contracts": {"buy": {"requires": [last]}}})["buy"]
    more = {"parameters": alone.parameters, "state": {}, "call": {}, "now": None, "seed": 0}
    assert alone.contract.open(args={"item": "pen", "count": 9}, **more).refusal().error == late
    assert not any("/agent-" in one.id for one in find_proposals(read_document(file)))
    assert toolkit().with_contracts(file)["buy"].contract is not None
