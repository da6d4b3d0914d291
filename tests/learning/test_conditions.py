"""Conditions and templates say in the contract language what they said of the rows."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph.contracts.language.examine import ANY
from gecko_graph.contracts.language.expression import Location, Scope
from gecko_graph.contracts.run import BASE
from gecko_graph.learning.conditions import build_conditions, conjoined, constants, documented_in, forms_of
from gecko_graph.learning.explain import fit_text
from gecko_graph.learning.rules import chance_of
from gecko_graph.learning.terms import MISSING, Term, build_terms
from gecko_graph.values.observation import kind_of

PLACE = Location("test", dict.fromkeys(BASE, ANY))
KEY = st.sampled_from(["a", "b", "1", ""])
SCALAR = KEY | st.integers(-2, 3) | st.booleans() | st.none() | st.floats(-2, 2).map(lambda x: round(x, 2))
KEYS = st.lists(KEY, max_size=3)
RECORD = st.fixed_dictionaries({"left": st.integers(0, 3), "on": st.booleans()})
ARGS = st.fixed_dictionaries({"key": KEY | st.integers(0, 2) | st.none(), "count": st.integers(-2, 4), "many": KEYS})
STATE = st.fixed_dictionaries(
    {
        "open": st.booleans(),
        "count": st.integers(-1, 3),
        "names": KEYS,
        "records": st.dictionaries(KEY, RECORD, max_size=3),
        "here": SCALAR,
    },
    optional={"odd": st.dictionaries(KEY, SCALAR, max_size=2)},
)


def holds(check: str, args: dict, state: dict) -> bool:
    return PLACE.compile(check).test(Scope({"args": args, "state": state, "before": state}))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(ARGS, STATE), min_size=3, max_size=6))
def test_the_language_agrees_with_the_bits_wherever_the_guards_hold(rows):
    args, states = [list(column) for column in zip(*rows, strict=True)]
    terms = build_terms(args, states, "state")
    for one in [*build_conditions(terms), *constants(terms, 1, 2)]:
        for at, (given_args, state) in enumerate(rows):
            if one.known >> at & 1:
                assert all(holds(f"({guard})", given_args, state) for guard in one.guards), one
                assert holds(one.check, given_args, state) == bool(one.true >> at & 1), one


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(ARGS, STATE), min_size=3, max_size=5), st.data())
def test_conditions_joined_hold_where_their_bits_say_so(rows, data):
    args, states = [list(column) for column in zip(*rows, strict=True)]
    some = build_conditions(build_terms(args, states, "state"))
    chosen = data.draw(st.lists(st.sampled_from(some), min_size=2, max_size=3))
    one = conjoined(chosen, (1 << len(rows)) - 1)
    for at, (given_args, state) in enumerate(rows):
        if all(each.known >> at & 1 for each in chosen):
            assert holds(one.check, given_args, state) == bool(one.true >> at & 1), one


@settings(max_examples=60, deadline=None)
@given(st.lists(SCALAR | st.lists(SCALAR, max_size=2), min_size=1, max_size=5))
def test_forms_hold_of_the_values_they_come_from(values):
    for check in forms_of(values, "args.x"):
        assert all(holds(check, {"x": value}, {}) for value in values), check


@given(st.lists(st.tuples(st.text("ab ", min_size=1, max_size=4), st.integers(0, 99)), min_size=3, max_size=5))
def test_a_text_with_holes_gives_every_text(rows):
    terms = [
        Term("args.who", [who for who, _ in rows], 1, "argument"),
        Term("args.count", [count for _, count in rows], 1, "argument"),
    ]
    texts = {at: f"{who}: {count} left." for at, (who, count) in enumerate(rows)}
    found = fit_text(texts, terms)
    if found is not None:
        for at, text in texts.items():
            made = str(found.template)
            for term in terms:
                made = made.replace("{{ " + term.text + " }}", str(term.values[at]))
            assert made == text


def test_errors_of_one_kind_share_a_text_and_ids_and_times_make_no_kinds():
    first, second = (kind_of({"error": f"no item '{item}'"}, {"item": item}) for item in ("pen", "ink"))
    assert first == second != kind_of({"error": "sign in"}, {})
    times = (("9f1c-aa", "2026-11-23T10:00"), ("b7", "2025-01-02T07:30"))
    first, second = (kind_of({"error": f"request {id_} failed at {at}"}, {}) for id_, at in times)
    assert first == second


def test_more_rows_leave_less_to_chance():
    chances = [chance_of(count, count, 50, 1000) for count in (1, 3, 10)]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] > 1 > 0.05 > chances[1]


def test_what_stands_where_one_works_is_a_term():
    states = [{"tree": {"root": {"in": {name: {"in": {"x": {"size": 1}}}}}}, "at": ["root", name]} for name in "abc"]
    terms = build_terms([{"file": "x"}] * 3, states, "state")
    found = next(term for term in terms if term.path)
    assert found.values == [{"x": {"size": 1}}] * 3
    assert MISSING not in next(term for term in terms if term.text.endswith(".size")).values


def test_only_counts_of_the_state_become_conditions_of_their_own():
    states = [{"left": 2, "price": 1.5}, {"left": 0, "price": 2.5}]
    checks = {one.check for one in build_conditions(build_terms([{"count": 1}, {"count": 0}], states, "state"))}
    assert {"args.count != 0", "state.left != 0", "state.price != 0"} & checks == {"state.left != 0"}


def test_constants_that_documents_name_are_read():
    schema = {
        "properties": {
            "mode": {"type": "string", "description": "How: 'fast' or 'slow'."},
            "days": {"type": "array", "items": {"enum": ["mon", 1]}},
            "count": {"minimum": 2},
        }
    }
    found = {("mode", "fast"), ("mode", "slow"), ("days", "mon"), ("days", 1), ("count", 2)}
    assert set(documented_in(schema)) == found
