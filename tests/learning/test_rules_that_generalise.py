"""No rule names values that were met once, or single things; counts, times and other tools' refusals make rules."""

import re
from copy import deepcopy

import pytest
from langchain.agents import create_agent

from gecko_graph.learning.conditions import words_in
from gecko_graph.learning.counts import build_counts
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.learning.terms import MISSING, build_terms, is_collection
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.testing import scripted
from tests.doubts import texts

from . import library


def rules(count, **more):
    contracts = library.learned(count, **more).contracts
    found = [(name, one) for name, each in contracts.items() for one in each["requires"] if "evidence" in one]
    return {(name, re.sub(r".*detail\W+|\W+$", "", str(one.get("pass", one.get("error"))))): one for name, one in found}


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_no_rule_lists_times_or_names_a_single_thing(reads, seed):
    for one in rules(40, seed=seed, reads=reads).values():
        assert "2026-" not in one["check"], one
        assert not re.search(r'"[MBL]\d+"|\.[MBL]\d+\b', one["check"]), one


def test_what_is_looked_up_counted_or_read_from_a_clock_is_a_rule():
    found = rules(80)
    assert "state.members" in found["lend", "the book does not fit members of that kind"]["check"]
    count = found["lend", "a member has two open loans at most"]["check"]
    assert count == (
        '(len([one for one in state.loans.values() if one.member_id == args.member_id and one.status == "open"]) <= 1)'
    )
    assert "int(args.start[11:13])" in found["lend", "the library is shut then"]["check"]


def test_refusals_of_other_tools_of_the_same_kind_count():
    rows = library.rows(100)
    ended = [row for row in rows if row.tool == "extend" and "ended" in str(row.result)]
    few = [row for row in rows if row not in ended[2:]]
    contracts = learn_contracts(library.toolkit(), few).contracts
    (rule,) = [one for one in contracts["extend"]["requires"] if "evidence" in one and "ended" in str(one["pass"])]
    assert 'at(state.loans, [args.loan_id]).status == "open"' in rule["check"]
    assert rule["evidence"]["status"] == "proposed"


def test_a_count_is_known_where_reads_have_shown_all_that_it_counts():
    states = [{"loans": {"L1": {"id": "L1", "member_id": "M1"}, "L2": {"id": "L2", "member_id": "M2"}}}] * 3
    states[2] = {"loans": {"L1": {}, "L2": {"id": "L2", "member_id": "M2"}}}
    args = [{"member_id": "M1"}] * 3
    parts = [{"loans": [{"member_id": "M1"}]}, {"loans": [{"member_id": "M2"}]}, {}]
    (count, *_) = build_counts(build_terms(args, states, "state"), parts)
    assert [*count.values] == [1, MISSING, MISSING]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([{"B1": {"sum": 1}, "B2": {"sum": 2}}], True),
        ([{"ann": {"id": "ann", "age": 3}}, {"ann": {"id": "ann", "age": 4}}], True),
        ([{"ann": {"age": 3}}, {"bob": {"age": 4}}], True),
        ([{"front": {"bar": 2}, "back": {"bar": 3}}] * 2, False),
        ([{"speed": 3}], False),
        ([{}], False),
    ],
)
def test_things_of_a_collection_are_told_from_parts_of_one_thing(values, expected):
    assert is_collection(values) is expected


def test_a_message_and_a_rule_share_words_whatever_their_forms():
    both = words_in("the owner has open bills") & words_in("sum(one.amount for one in state.bills if one.ownerId)")
    assert both == {"owner", "bill"}


def test_guard_marks_a_call_that_a_proposed_rule_warns_of_and_makes_it():
    learned = deepcopy(library.learned(80).contracts)
    service = library.Library()
    real = library.served(service)
    late, early = ({"member_id": "M1", "book_id": "B1", "start": f"2026-11-03T{hour}:00"} for hour in ("20", "11"))
    reads = [{"call": name, "args": {}} for name in library.LISTS]
    said = scripted(*reads, {"call": "lend", "args": late}, {"call": "lend", "args": early}, {"say": "Done."})
    guard = GeckoMiddleware(real, mode="guard", learned={"contracts": learned})
    agent = create_agent(said, tools=real.as_tools(), middleware=[guard])
    told = [each for each in agent.invoke({"messages": [("user", "Lend it")]})["messages"] if each.type == "tool"][3:]
    marks = [texts(each.additional_kwargs["gecko"], "may_refuse") for each in told]
    assert "the hour of the start" in marks[0][0]
    assert "args." not in marks[0][0]
    assert marks[1] == []
    assert "shut" in told[0].text
