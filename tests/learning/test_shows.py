"""What reads show is learned from their results, and which reads around writes are missing."""

import pytest

from gecko_graph import Tool, Toolkit
from gecko_graph.learning.learn import learn_contracts
from gecko_graph.learning.probe import probe
from gecko_graph.learning.shows import reads_of, with_observes
from gecko_graph.values.observation import Observation

from . import library


def shown(toolkit):
    return {tool.name: tool.contract.data["observes"] for tool in toolkit if tool.contract}


def test_lists_of_things_that_other_calls_name_are_collections():
    rows = library.rows(40, bare := library.toolkit(observes=False))
    toolkit = with_observes(bare, rows)
    assert shown(toolkit) == {
        name: [{"for_each": "result", "as": "one", "op": "add", "path": [place, "{{ one.id }}"], "value": "{{ one }}"}]
        for name, place in library.LISTS.items()
    }
    learned = learn_contracts(toolkit, library.rows(20, toolkit))  # a file of them says so
    assert {name for name, one in learned.contracts.items() if "observes" in one} == {*library.LISTS}
    assert learned.apply(bare)["list_loans"].contract.observed == {("loans",)}


def look(**more):
    def list_items(page: int = 1, kind: str = "") -> dict:
        """List items."""

    def buy(item: str) -> dict:
        """Buy one."""

    parameters = {"type": "object", "properties": {more.get("name", "kind"): {"type": "string"}}}
    function = {"name": "list_items", "description": list_items.__doc__, "parameters": parameters}
    return Toolkit.from_tools([Tool(function, effect="read"), Tool(buy, effect="write")])


ITEMS = [{"sku": "A", "left": 1}, {"sku": "B", "left": 1}]


@pytest.mark.parametrize(
    ("toolkit", "result", "bought", "found"),
    [
        (look(), {"items": ITEMS, "total": 2}, "A", "result.items"),
        (look(), ITEMS, "A", "result"),
        (look(name="page"), ITEMS, "A", None),  # a page is no whole
        (look(), ITEMS, "Z", None),  # nobody names them
        (look(), [{"left": 1}, {"left": 1}], "1", None),  # no key
        (look(), ["A", "B"], "A", None),
        (look(), "A", "A", None),
    ],
)
def test_what_is_a_list_of_things_by_itself_or_in_a_member(toolkit, result, bought, found):
    rows = [Observation("list_items", {}, "ok", result), Observation("buy", {"item": bought}, "ok", {})]
    made = shown(with_observes(toolkit, rows))
    assert [one["for_each"] for each in made.values() for one in each] == ([found] if found else [])


@pytest.mark.parametrize("reads", [True, False])
def test_the_reads_that_would_have_taught_more_are_named(reads):
    notes = library.learned(40, seed=0, reads=reads).notes
    told = [note for note in notes if note.startswith("lend: ") and "more could be learned" in note]
    assert bool(told) is not reads
    assert all("list_members" in note for note in told)


def test_reads_of_what_is_known_are_not_named_again():
    toolkit = library.toolkit()
    known = {place: {"X1": {"id": "X1"}} for place in library.LISTS.values()}
    assert [tool.name for tool, _ in reads_of(toolkit, {}, known)] == []
    assert [tool.name for tool, _ in reads_of(toolkit, {}, {**known, "loans": {"L1": {}}})] == ["list_loans"]


def test_probes_read_what_a_write_meets():
    toolkit = library.served(library.Library())
    found = probe(toolkit, learn_contracts(toolkit, library.rows(20)), limit=60)
    assert len(found) <= 60
    writes = [row for row in found if not toolkit[row.tool].reads]
    assert writes
    assert all({"members", "books", "loans"} <= (row.before or {}).keys() for row in writes)
