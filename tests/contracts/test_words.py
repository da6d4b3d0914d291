"""What people read of a rule is words: never its expression, and nothing where a form has no plain words."""

import pytest

from gecko_graph.contracts.words import LONGEST, describe_check

THEIRS = "one.owner_id == at(state.pets, [args.pet_id]).owner_id"


@pytest.mark.parametrize(("check", "words"), [
    ("args.quantity <= 5", "the quantity is at most 5"), ("args.item != 'ink'", "the item is not ink"),
    ("(args.item in state.stock)", "the item is among the stock"), ("no expression", ""),
    ("not (args.quantity <= 5)", "the quantity is more than 5"),
    ("state.orders[args.orderId].paid", "the paid of the order is true"),
    ("args.kind not in ['a', 'b']", "the kind is not among one of a, b"),
    ("state.currentUser is not None", "the current user is given"),
    ("at(state.orders, [args.order_id]).status == 'open'", "the status of the order is open"),
    ("args.count * args.price <= state.balance", "the count times the price is at most the balance"),
    ("not (args.a is not None and (args.b == 1 and args.c > 2))", "the b is not 1, or the c is at most 2"),
    ("int(args.start[11:13]) >= 8", "the hour of the start is at least 8"),
    ("weekday(args.start) != 'Sunday'", "the weekday of the start is not Sunday"),
    ("all(one.sku in state.items for one in args.lines)", "for each of the lines, the sku is among the items"),
    (
        f"len([one for one in state.bills.values() if {THEIRS} and one.status == 'open']) <= 1",
        "the number of bills whose owner id is the owner id of the pet and whose status is open is at most 1",
    ),
    (
        f"sum(one.amount for one in state.bills.values() if {THEIRS}) <= 100",
        "the sum of the amount of bills whose owner id is the owner id of the pet is at most 100",
    ),
    (
        "len([one for one in state.seats.values() if one.row == args.row]) != 0",
        "there are seats whose row is the row",
    ),
    ("False", ""), ("args.a < 3 < args.b", ""), ("[x for x in args.a][0]", ""),
    (" and ".join(f"args.name_{n} == {n}" for n in range(40)), ""),
])  # fmt: skip
def test_a_condition_in_words(check, words):
    assert describe_check(check) == words
    assert len(words) <= LONGEST
