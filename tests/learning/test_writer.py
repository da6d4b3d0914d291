"""A model proposes, data refutes: what of a contract writer's reply stands, and what becomes of a bad one."""

import re

import pytest

from gecko_graph import Models
from gecko_graph.cli.tools import converse
from gecko_graph.contracts.language.functions import FUNCTIONS
from gecko_graph.contracts.language.things import THINGS
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.learning.writer import ROUNDS, drafts_of, estimate, kind_of_check, propose_rules
from gecko_graph.models.prompts import Prompts
from gecko_graph.testing import recorded, reply_to
from gecko_graph.values.observation import Observation

from . import library
from .shop import rows, toolkit

RIGHT = {"check": "args.item in state.stock", "error": {"error": "no item '{{ args.item }}'"}}
WRONG = {"check": "args.count < 5", "error": "too many"}
UNSEEN = {"check": "args.count < 1000", "error": "no more than 1000"}


def asked(replies, *, count=400, some=None):
    learned = learn_contracts(toolkit(), some if some is not None else rows(count))
    notes = converse(propose_rules(toolkit(), learned), Models(recorded(contract_writer=list(replies))))
    written = [one for one in learned.contracts["buy"]["requires"] if one.get("evidence", {}).get("by") == "model"]
    return learned, written, notes


def few():
    """Lawful calls, and two refusals of a kind: too few for the miner."""
    every = rows(300)
    lawful = [row for row in every if row.status == "ok"]
    return lawful + [row for row in every if "no item" in str(row.result)][:2]


def test_the_second_round_sees_what_speaks_against_the_first():
    learned = learn_contracts(toolkit(), rows(400))
    questions = propose_rules(toolkit(), learned)
    (first,) = next(questions)
    assert first.variables["counter"] == ""
    assert "no item" in first.variables["errors"]
    (second,) = questions.send([reply_to(first, {"requires": [WRONG]})])
    assert "refuses a call that was done" in second.variables["counter"]
    with pytest.raises(StopIteration):
        questions.send([reply_to(second, {"requires": [UNSEEN]})])
    assert next(one["id"] for one in learned.contracts["buy"]["requires"]) == "written-1"


def test_what_rows_refute_is_dropped_what_the_miner_knows_not_said_again_and_a_silent_model_named():
    _, written, notes = asked([{"requires": [WRONG]}, {"requires": [WRONG]}])
    assert (written, "1 proposed rules are refuted" in notes[0]) == ([], True)
    assert asked([{"requires": [RIGHT]}])[1] == []
    learned, _, notes = asked([], count=100)
    assert (bool(notes), bool(learned.contracts)) == (True, True)


def test_nothing_is_established_without_rows():
    _, written, _ = asked([{"requires": [UNSEEN]}])
    (one,) = written
    assert (one["evidence"]["status"], one["evidence"]["for"]) == ("proposed", 0)
    assert "error" not in one
    _, (other,), _ = asked([{"requires": [RIGHT]}], some=few())
    assert (other["evidence"]["status"], other["evidence"]["for"]) == ("proposed", 2)


def test_enough_rows_establish_a_rule_of_a_trusted_kind():
    some = [row for row in rows(400) if row.status == "ok" or "no item" in str(row.result)]
    learned = learn_contracts(toolkit(), some)
    (draft,) = drafts_of(toolkit(), learned)
    tried = draft._tried({**RIGHT})
    assert (tried["evidence"]["status"], tried["error"]) == ("established", RIGHT["error"])
    other = draft._tried({**RIGHT, "check": "args.item in state.stock and args.count > 0"})
    assert other["evidence"]["status"] == "proposed"


@pytest.mark.parametrize(
    "reply",
    [
        {"requires": [{"check": "args.item in", "error": "?"}]},
        {"requires": [{"check": "args.nothing > 1", "error": "?"}]},
        {"effects": [{"op": "explode"}]},
        {"requires": "none"},
        "not JSON",
        {"requires": [{"check": "secret()", "error": "?"}], "returns": "{{ oops("},
    ],
)
def test_a_bad_reply_is_data(reply):
    before = learn_contracts(toolkit(), rows(200)).contracts
    learned, written, _ = asked([reply] * 4, count=200)
    assert written == []
    assert learned.contracts == before


def test_effects_that_the_miner_does_not_know_are_kept_while_rows_agree():
    some = few()
    learned = learn_contracts(toolkit(), some)
    mined = learned.contracts["buy"]
    real = {part: mined[part] for part in ("effects", "returns")}
    for part in real:
        mined["evidence"][part] = {"status": "unknown", "for": 0}
    del mined["effects"], mined["returns"]
    wrong = [{"op": "remove", "path": ["stock", "{{ args.item }}"]}]
    replies = [{"effects": wrong}, real]
    converse(propose_rules(toolkit(), learned), Models(recorded(contract_writer=replies)))
    made = learned.contracts["buy"]
    assert made["effects"] == real["effects"]
    assert made["evidence"]["effects"]["by"] == "model"
    assert made["evidence"]["returns"]["status"] == "proposed"


@pytest.mark.parametrize("part", ["effects", "returns"])
def test_a_result_needs_the_changes_and_changes_leave_the_result_open(part):
    learned = learn_contracts(toolkit(), few())
    mined = learned.contracts["buy"]
    real = {each: mined.pop(each) for each in ("effects", "returns")}
    mined["evidence"] |= {each: {"status": "unknown", "for": 0} for each in real}
    converse(propose_rules(toolkit(), learned), Models(recorded(contract_writer=[{part: real[part]}] * 2)))
    made = learned.contracts["buy"]
    if part == "effects":
        assert made["effects"] == real["effects"]
        assert [*made["returns"]["cases"][0]] == ["pass"]
    else:
        assert "returns" not in made


def test_the_cost_is_known_before():
    learned = learn_contracts(toolkit(), rows(100))
    spent = estimate(toolkit(), learned, Prompts(), "openai:gpt-5-mini")
    assert spent["calls"] == ROUNDS
    assert spent["input_tokens"] > 500
    assert spent["cost"] > 0
    assert estimate(toolkit(), learned, Prompts(), "openai:who-knows")["cost"] is None


@pytest.mark.parametrize(
    ("check", "kind"),
    [
        ("args.a in state.b", "membership"),
        ("args.a not in at(state.b, [args.c]).d", "membership"),
        ("state.signed_in", "flag"),
        ("not at(state.x, [args.y]).open", "flag"),
        ("defined(state.x)", "existence"),
        ("args.a <= at(state.stock, [args.item])", "comparison"),
        ("args.a in ['x', 'y']", "conjunction"),
        ("state.a == 'x'", "conjunction"),
        ("state.a == args.b", "conjunction"),
        ("state.a and state.b", "conjunction"),
        ("all(x > 1 for x in args.a)", "conjunction"),
    ],
)
def test_kinds_of_checks(check, kind):
    assert kind_of_check(check) == kind


def test_the_writer_sees_what_was_forgotten_a_call_of_each_tool_and_all_functions():
    draft = next(one for one in drafts_of(library.toolkit(), library.learned(60)) if one.tool.name == "extend")
    variables = draft.ask(0).variables
    assert all(f'"tool": "{name}"' in variables["examples"] for name in ("lend", "extend", "end", *library.LISTS))
    draft.rows = [("", Observation("extend", {"loan_id": "L1"}, "ok", {}, {"loans": {"L1": {}}, "cart": {}}))]
    assert '"L1": "not known any more"' in (shown := draft.ask(0).variables["state"])
    assert '"cart": {}' in shown
    before = {"jobs": {"j": {}}, "x": {}, "runtime_state": {"shown": {"/jobs": []}}}  # by the paths of a document
    draft.rows = [("", Observation("extend", {"loan_id": "L1"}, "ok", {}, before))]
    assert '"j": "not known any more"' in (shown := draft.ask(0).variables["state"])
    assert '"x": {}' in shown
    prompt = Prompts().render("contract_writer", variables)
    told = FUNCTIONS.keys() - THINGS.keys()  # without those that only derived contracts need
    assert [name for name in told if not re.search(rf"\b{name}\b", prompt.user)] == []


def test_what_was_mined_and_a_models_rule_explains_is_dropped():
    few = [row for row in library.rows(60) if "shut" not in str(row.result) or row.args["start"][11:13] != "08"]
    open_ = {
        "check": "int(args.start[11:13]) >= 9 and int(args.start[11:13]) < 17",
        "error": "the library is shut then",
    }
    learned = learn_contracts(library.toolkit(), few)

    def shut():
        rules = learned.contracts["lend"]["requires"]
        return [one["id"] for one in rules if "evidence" in one and "shut" in str(one.get("pass", one.get("error")))]

    before = shut()
    replies = [
        {"requires": [open_]} if draft.tool.name == "lend" else {} for draft in drafts_of(library.toolkit(), learned)
    ]
    converse(propose_rules(library.toolkit(), learned), Models(recorded(contract_writer=replies)))
    assert before
    assert shut() == ["written-1"]


def test_what_was_mined_and_a_written_contract_explains_is_dropped():
    one = {"check": "int(args.start[11:13]) >= 9 and int(args.start[11:13]) < 17", "error": "shut"}
    written = library.toolkit().with_contracts({"contracts": {"lend": {"requires": [one]}}})
    assert "shut then" in str(library.learned(60).contracts["lend"]["requires"])
    kept = learn_contracts(written, library.rows(60)).contracts["lend"]["requires"]
    assert "shut then" not in str(kept)
    assert "perhaps refused" in str(kept)
