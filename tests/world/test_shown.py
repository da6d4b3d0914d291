"""What reads have shown: all of a collection, one thing by its key, those of some arguments; an empty result is one."""

import pytest

from gecko_graph import Tool, Toolkit, World
from gecko_graph.contracts.language.coverage import find_unshown, uses_of
from gecko_graph.contracts.language.sandbox import Scope
from gecko_graph.contracts.language.syntax import parse_expression
from gecko_graph.values.notes import notes_of
from gecko_graph.world.shown import forget_shown, note_shown
from tests.doubts import texts

BILLS = {"B1": {"id": "B1", "owner": "O2", "amount": 132.5}}
LISTS = [{"for_each": "result", "as": "one", "op": "add", "path": ["bills", "{{ one.id }}"], "value": "{{ one }}"}]
SUM = "sum(b.amount for b in state.bills.values() if b.owner == args.owner) <= 100"


def clinic(check=SUM, observes=LISTS, bills=None):
    there = BILLS if bills is None else bills

    def list_bills(owner: str = "") -> list[dict]:
        """List open bills, of an owner or all."""
        return [each for each in there.values() if owner in ("", each["owner"])]

    def book(owner: str, bill: str = "") -> dict:
        """Book an appointment."""
        raise RuntimeError

    contract = {"requires": [{"check": check, "error": "open bills"}], "returns": {"owner": "{{ args.owner }}"},
                "effects": [{"op": "add", "path": ["booked"], "value": "{{ args.owner }}"}]}  # fmt: skip
    tools = [
        Tool(list_bills, effect="read", contract={"observes": observes}),
        Tool(book, effect="write", contract=contract),
    ]
    return World(Toolkit.from_tools(tools).open("list_bills"), state={})


def called(world, name, **args):
    return world.call({"name": name, "args": args})["outcome"]


@pytest.mark.parametrize(
    ("read", "owner", "status"),
    [
        ([{"owner": "O2"}], "O2", "refused"),
        ([{"owner": "O3"}], "O3", "ok"),  # an empty result is a result
        ([{"owner": "O2"}], "O9", "unknown"),  # one owner's bills say nothing of another's
        ([{"owner": "O3"}, {"owner": "O9"}], "O9", "ok"),
        ([{}], "O9", "ok"),  # all of them
        ([{}], "O2", "refused"),
        ([], "O2", "unknown"),
    ],
)
def test_a_guard_holds_as_far_as_reads_have_shown(read, owner, status):
    world = clinic()
    for args in read:
        called(world, "list_bills", **args)
    outcome = called(world, "book", owner=owner)
    found = "ok" if outcome["status"] == "ok" else "unknown" if notes_of(outcome, "unclear") else "refused"
    assert found == status
    if found == "unknown":
        assert "has not been read" in texts(outcome, "unclear")[0]
        assert "list_bills would tell" in texts(outcome, "unclear")[0]


@pytest.mark.parametrize(
    "check",
    [
        "not any(b.owner == args.owner and b.amount > 100 for b in state.bills.values())",
        "all(b.owner != args.owner or b.amount < 100 for b in state.bills.values())",
        "sum(1 for b in state.bills.values() if args.owner == b.owner and b.amount > 100) == 0",
        "sum(one.amount for one in state.bills.values() if one.owner == args.owner) <= 100",
    ],
)
def test_other_ways_to_ask_for_the_same(check):
    world = clinic(check)
    called(world, "list_bills", owner="O3")
    assert called(world, "book", owner="O3")["status"] == "ok"
    assert notes_of(called(world, "book", owner="O9"), "unclear")
    called(world, "list_bills", owner="O2")
    assert not notes_of(called(world, "book", owner="O2"), "unclear")


def test_what_a_read_no_longer_lists_is_gone_and_only_that():
    bills = {**BILLS, "B2": {"id": "B2", "owner": "O3", "amount": 5}}
    world = clinic(bills=bills)
    called(world, "list_bills", owner="O2")
    called(world, "list_bills", owner="O3")
    del bills["B1"]
    called(world, "list_bills", owner="O2")
    assert list(world.state["bills"]) == ["B2"]
    assert called(world, "book", owner="O2")["status"] == "ok"


def test_a_part_may_be_written():
    part = [{**LISTS[0], "part": {"owner": "{{ args.owner or None }}"}}]
    world = clinic("sum(1 for b in state.bills.values() if b.owner == 'O3') == 0", observes=part)
    called(world, "list_bills", owner="O3")
    assert called(world, "book", owner="O1")["status"] == "ok"
    nothing = clinic(
        "sum(1 for b in state.bills.values() if b.owner == 'O3') == 0", observes=[{**LISTS[0], "when": "one.amount"}]
    )
    called(nothing, "list_bills", owner="O3")
    assert notes_of(called(nothing, "book", owner="O1"), "unclear"), "things were left out of what was listed"


CASES = [
    ("args.id in state.pets", True),
    ("args.other in state.pets", False),
    ("state.pets[args.id].name == 'Flo'", True),
    ("state.pets[args.other].name == 'Flo'", False),
    ("all(i in state.pets for i in args.ids)", True),
    ("all(f'{i}x' in state.pets for i in args.ids)", False),
    ("len(state.pets) > 0", False),
    ("defined(state.pets)", True),
    ("args.none is None or args.none in state.pets", True),
    ("sum(1 for p in state.pets.values() if p.vet == 'V1' and p.kind == 'cat') == 1", True),
    ("sum(1 for p in state.pets.values() if p.vet == 'V1') == 1", False),
    ("sum(1 for p in state.pets.values() if p.vet == 'V1' or p.kind == 'cat') == 1", False),
    ("sum(1 for p in state.pets.values() if not (p.vet == 'V1' and p.kind == 'cat')) == 1", False),
    ("all(p.vet == 'V1' and p.kind == 'cat' for p in state.pets.values())", False),
    ("any(p.vet == p.vet and p.kind == 'cat' for p in state.pets.values())", False),
    ("len(state.others) > 0", True),
    ("state.pets.get(args.id) is not None", True),
    ("state.pets.get(args.other) is None", False),
    ("state.get('pets') is not None", False),
    ("len(at(state, ['pets'])) > 0", False),
    ("args.id in state.pets.keys()", True),
    ("args.other in state.pets.keys()", False),
    ("len(state.pets.values()) > 0", False),
    ("'Flo' in [p.name for p in state.pets.values()]", False),
    ("[p.name for _, p in state.pets.items() if p.vet == 'V1' and p.kind == 'cat'] == ['Flo']", True),
    ("len({p.name: 1 for p in state.pets.values() if p.vet == 'V1' and 'cat' == p.kind}) == 1", True),
    ("sorted(state.pets.values(), key=lambda p: p.kind)[0].vet == 'V1'", False),
    ("sorted(args.ids, key=lambda i: state.pets[i].name) == ['P1']", False),
    ("all(state.pets[i].name == 'Flo' for i in args.ids if i in state.pets)", True),
    ("all(state.pets[i].name == 'Flo' for i in ['P1', 'P2'] if i != 'P2')", True),
    ("any(p.vet == v and p.kind == 'cat' for p in state.pets.values() for v in ['V1'])", False),
    ("at(state.pets, [args.id]).name == 'Flo'", True),
    ("at(state.pets, [args.other, 'name'], '') == ''", False),
    ("at(state.pets, args.ids).name == 'Flo'", False),  # nobody knows which key
    ("any(p.name for v in ['V1'] for p in state.pets.values() if p.vet == v and p.kind == 'cat')", True),
]


@pytest.mark.parametrize(("check", "shown"), CASES)
def test_uses_of_a_collection_that_is_known_in_part(check, shown):
    state = {"pets": {"P1": {"vet": "V1", "kind": "cat", "name": "Flo"}}, "others": {}}
    scope = Scope({"state": state, "args": {"id": "P1", "other": "P2", "ids": ["P1"], "none": None}})
    scope.partial = {"pets": [{"vet": "V1", "kind": "cat"}]}
    assert (find_unshown(uses_of([parse_expression(check)]), scope) is None) is shown


def test_after_a_write_that_nobody_knows_no_part_is_known():
    state = note_shown({}, [], {("pets",): {"vet": "V1"}, ("vets",): {}, ("shop", "items"): None})
    assert state == {"pets": {}, "vets": {}, "shop": {"items": {}},
                     "runtime_state": {"shown": {"/pets": [{"vet": "V1"}], "/shop/items": []}}}  # fmt: skip
    assert forget_shown(state)["runtime_state"] == {"shown": {"/pets": [], "/shop/items": []}}
    assert "runtime_state" not in note_shown({"pets": {}}, [], {("pets",): {"vet": "V1"}}), "all of it was given"
