"""The expression language: what it can say, what it refuses at load, what it fails on."""

from __future__ import annotations

import time

import pytest

from gecko_graph.contracts.language.expression import CHECK_NAMES, Expression, Scope, check_expression
from gecko_graph.contracts.language.sandbox import MAX_DEPTH, Fault, copy_json
from gecko_graph.contracts.language.syntax import reads_of
from gecko_graph.errors import ContractError, EvaluationFailed

STATE = {
    "cwd": ["a"],
    "items": {"1": {"qty": 2, "price": 1.5, "tags": ["x"]}, "7": {"qty": 1, "price": 10, "tags": []}},
    "names": ["Bob", "alice", "Carol"], "keys": "a key that is also a filter's name", "_id": "k1",
    "text": "one\ntwo three\n", "none": None, "flag": True, "deep": {"a": {"b": [{"c": 1}, {"c": 2}]}},
}  # fmt: skip


def evaluate(source: str, **values):
    scope = Scope({"state": STATE, **values})
    return Expression.compile(source, names=scope.values, where="f: tool t: here").evaluate(scope)


@pytest.mark.parametrize(("source", "value"), [
    ("1 == 1.0 and not 1 == '1'", True),
    ("{'a': 1} == {'a': 2} or {'a': 1} == {'b': 1} or [1] == {'a': 1} or [1, 2] == [1]", False),
    ("(1, 2)", [1, 2]), ("'ne' in state.text and 'items' in state", True),
    ("1 in state['items'] and state['items'][7].qty == 1", True),
    ("f'{state.names[0]}{state.names[-1]}'", "BobCarol"), ("state._id", "k1"),
    ("at(state, ['deep', ['a', 'b'], 1, 'c'])", 2), ("at(state, ['no', 'where'], 5)", 5),
    ("defined(at(state, ['no', 'where']))", False),
    ("[one.path for one in walk({'a': {'b': 1}, 'c': [2]})]", [["a"], ["a", "b"], ["c"], ["c", 0]]),
    ("zip([1, 2], ['a', 'b', 'c'])", [[1, "a"], [2, "b"]]),
    ("{key: value for key, value in [['a', 1], [2, 'b'], ['a', 3]]}", {"a": 3, "2": "b"}),
    ("index(state.names, 'alice')", 1),
    ("[index('abc', 'a'), index('abc', 'c'), defined(index('abc', 'x'))]", [0, 2, False]),
    ("range(1, 8, 3) + range(3, 0, -1) + range(5, 2)", [1, 4, 7, 3, 2, 1]),
    ("money(1.005)", 1.01), ("money(3 * 0.1)", 0.3), ("f\"{'xxaxx'.strip('x')}{'a//'.rstrip('/')}\"", "aa"),
    ("default(default(state.no, state.nothing), 1)", 1),
    ("len(state.names) + len(state) - len(state.text)", 3 + len(STATE) - 14),
    ("not defined(max([]))", True), ("int('12') + int(3.9) + int(True)", 16), ("float('1.5') + float(2)", 3.5),
    ("f'{fixed(1.005)} {fixed(2, 1)} {fixed(2.5, 0)}'", "1.00 2.0 2"),
    ("'-'.join(str(one) for one in ['a', 1, None])", "a-1-None"),
    ("json({'a': [1, 'ä']})", '{"a": [1, "ä"]}'), ("byte_count('äb')", 3), ("state['items'].keys()", ["1", "7"]),
    ("{'a': 1}.items()", [["a", 1]]),
    ("[state.get('nothing'), state.get('nothing', 2), state.get('flag')]", [None, 2, True]),
    ("[round(2.5), round(2.567, 1), abs(-2), bool([]), isinstance(2, (str, int))]", [2, 2.6, 2, False, True]),
    ("f'{state.names[0]} has {1 + 1}' ' and {no}'", "Bob has 2 and {no}"),
    ("len(unique([one.replace('a', new_id('n')) for one in ['a', 'a']]))", 2),
    ("len([one for one in [{'a': 1}, {}] if defined(one.a)])", 1),
    ("defined(state.no.such.thing)", False), ("'{{ 7*7 }}'", "{{ 7*7 }}"),
])  # fmt: skip
def test_what_it_can_say(source, value):
    got = evaluate(source)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(("source", "why"), [
    ("", "unexpected end"), ("{{ state }}", "leave out {{ }}"), ("1  # one", "`#` is not part of the language"),
    ("'\\d'", "no escape"), ("f'{1:>3}'", "no format: write {fixed(x, 2)}"),
    ("sorted(state, key='name')", "key=lambda one: one.field"),
    ("isinstance(state, name)", "isinstance: write isinstance(x, TYPE)"),
    ("(" * 500 + "1" + ")" * 500, "nested too deeply"), ("b'a'", "bytes is not a JSON value"),
    ("{1, 2}", "write a list"), ("nme", "unknown name 'nme' (did you mean name?)"),
    ("state.split().splits()", "unknown method 'splits' (did you mean split?)"),
    ("round(state, 1, 2, 3)", "round: too many positional arguments"),
    ("[one.replace('a') for one in state]", "replace: missing"),
    ("1e999", "not finite"), ("a" * 10_001, "more than 10,000 characters"),
    ("[" + "1, " * 600 + "1]", "more than 500 parts"),
])  # fmt: skip
def test_what_is_refused_at_load_says_where_and_why(source, why):
    with pytest.raises(ContractError) as caught:
        Expression.compile(source, names=("state", "name"), where="f.yaml: tool t: requires[0].check")
    assert str(caught.value).startswith("f.yaml: tool t: requires[0].check: ")
    assert why in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(("source", "why"), [
    ("state.no", "state.no is undefined"), ("state.deep.a.x.y", "state.deep.a.x is undefined"),
    ("[one.a for one in [{}]]", "one.a is undefined"), ("1 / 0", "division by zero"),
    ("1 in 2", "`in` needs a text, a list or an object"), ("[1][::0]", "step 0"),
    ("'a' + 1", "+ cannot add a number to a text"), ("int('abc')", "int cannot read 'abc'"),
    ("float('1e400')", "not finite"), ("sorted(state)", "needs a list, not an object"),
    ("sorted([1, 'a'])", "only numbers or only texts have an order"),
    ("unique([[1]])", "unique needs texts or numbers"),
    ("{key: value for key, value in [1]}", "a loop over key, value needs lists of 2 values, not a number"),
    ("at(state, 'cwd'.lower())", "a path needs a list, not a text"),
    ("state.names.lower()", "lower needs a text, not a list"),
    ("range(1, 2, 0)", "must not be zero"), ("4611686018427387904 * 1000", "64 bits"),
])  # fmt: skip
def test_what_fails_says_where_and_why(source, why):
    with pytest.raises(EvaluationFailed) as caught:
        evaluate(source)
    assert str(caught.value).startswith("f: tool t: here: ")
    assert why in str(caught.value)
    assert str(caught.value).endswith(f"in `{source}`")


def test_checks_of_a_checklist():
    scope = Scope({"state": {"n": 1}, "before": {"n": 0}, "calls": [{"name": "ls"}], "answer": "Done."})
    assert check_expression("state.n > before.n and len(calls) == 1 and 'Done' in answer", where="t").is_true(scope)
    assert not check_expression("'rm' in [one.name for one in calls]", where="t").is_true(scope)
    with pytest.raises(ContractError, match="item 3: unknown name 'args'; available: answer, before, calls, state"):
        check_expression("args.x", where="item 3")
    assert CHECK_NAMES == ("state", "before", "calls", "answer")


def test_time_is_the_thread_s_own():
    scope = Scope({"state": STATE})
    scope.seconds = 0.05
    slow = Expression.compile(
        "[str(one) for one in range(90000) if str(one) in [str(other) for other in range(9000)]]", names=(), where="t"
    )
    with pytest.raises(EvaluationFailed, match="it takes longer than 50 ms"):
        slow.evaluate(scope)
    assert Expression.compile("1", names=(), where="t").evaluate(scope) == 1
    scope.start()
    time.sleep(0.06)  # as if other threads had the processor
    assert Expression.compile("len(range(10))", names=(), where="t").raw(scope) == 10


def test_values_cannot_be_nested_without_end():
    deep: list = []
    for _ in range(150):
        deep = [deep]
    for source, why in [
        ("deep", "more than 100 levels"),
        ("str(deep)", "more than 100 levels"),
        ("walk(deep)", "100 levels"),
        ("at({}, deep)", "a path needs texts"),
        ("at({}, range(101))", "a path of more than 100 tokens"),
    ]:
        with pytest.raises(EvaluationFailed, match=why):
            Expression.compile(source, names=("deep",), where="t").evaluate(Scope({"deep": deep}))


CHECK = Expression.compile("state.a == 1", names=["state"], where="test")


def burn(seconds):
    start = time.thread_time()
    while time.thread_time() - start < seconds:
        pass


def test_one_pause_as_of_a_collection_of_garbage_is_no_fault_of_the_evaluation_s():
    scope = Scope({"state": {"a": 1}})
    burn(0.25)
    assert CHECK.test(scope)
    burn(0.05)
    with pytest.raises(EvaluationFailed, match="takes longer than"):
        CHECK.test(scope)
    assert CHECK.is_true(scope), "the next evaluation has time of its own"


@pytest.mark.parametrize("nest", [lambda value: [value], lambda value: {"a": value}])
def test_a_value_leaves_the_sandbox_with_as_many_levels_as_the_limit_says_and_no_more(nest):
    value = 1
    for _ in range(MAX_DEPTH):
        value = nest(value)
    assert copy_json(Scope({}), value) == value
    with pytest.raises(Fault, match=str(MAX_DEPTH)):
        copy_json(Scope({}), nest(value))


JINJA = [
    ("state | length", "such as len(x)"),
    ("before.names | length + 1 == state.names | length", "`| length`"),
    ("state.a | money", "money(x)"), ("state.a is none", "`None`"), ("state.a is not mapping", "isinstance(x, str)"),
    ("'a' ~ 'b'", "f'{a}{b}'"), ("state.a | default(0) > 1", "default(x)"), ("state.a is 1", "=="),
    ("any(x in state.a, x.b)", "any: too many positional arguments"),
    ("state.a == true", "`True`"), ("{% if state.a %}", "{% %}"), ("state.from == 1", "['from']"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "form"), JINJA, ids=[source for source, _ in JINJA])
def test_what_only_jinja_has_is_refused_at_load_with_a_hint(source, form):
    for is_text, each in ((False, source), (True, f"it is {{{{ {source} }}}}")):
        with pytest.raises(ContractError) as caught:
            Expression.compile(each, names=("state", "args"), where="f: t", is_text=is_text)
        assert form in str(caught.value).replace("f: t: ", "").split(", in `")[0]


def test_a_name_means_again_what_it_meant_before_a_loop_that_ended_early():
    assert evaluate("[any(item > 0 for item in [1, 2]), item]", item=7) == [True, 7]
    assert evaluate("[sorted([2, 1], key=lambda item: item), item]", item=7) == [[1, 2], 7]


@pytest.mark.parametrize(("source", "places"), [
    ("'x' in state.a", {(("a",), "x")}), ("'x' in state.a.keys()", {(("a",), "x")}),
    ("'x' not in at(state, ['a', 'b'])", {(("a", "b"), "x")}), ("'x' in state.a.values()", {(("a",), None)}),
    ("'x' in state.a[args.k]", {(("a",), None)}), ("'x' in state.a.items()[0]", {(("a",), None)}),
    ("state.get('a') == before['from'].b", {(("a",), None), (("from", "b"), None)}),
    ("sum(o.x for o in state.a.values() if o.id in before.b)", {(("a",), None), (("b",), None)}),
    ("f'{state.a}' == state.b.get('c', state.d)", {(("a",), None), (("b", "c"), None), (("d",), None)}),
    ("max(state.a, key=lambda o: state.b[o])", {(("a",), None), (("b",), None)}),
])  # fmt: skip
def test_what_an_expression_reads(source, places):
    assert reads_of(source).places == places


@pytest.mark.parametrize(("source", "why"), [
    ("any((x for x in state.names), key=1)", "any: got an unexpected keyword argument 'key'"),
    ("sorted(state.names, key=lambda x: x, first=1)", "sorted: got an unexpected keyword argument 'first'"),
    ("sorted(state.names, lambda x: x)", "sorted: too many positional arguments"),
    ("max(1, 2, key=lambda x: x)", "key=lambda one: one.field"),
    ("state.names.index('a')", "unknown method 'index'"), ("[x for x in state.names if y]", "unknown name 'y'"),
    ("[x for state in state.names]", "the name 'state' is reserved"),
    ("[name for name in state.names]", "the name 'name' is already taken"),
    ("(x for x in state.names) | list", "`| list` is not part of the language: write list(x)"),
    ("len(*state.names)", "cannot be spread"), ("state.a | state.b", "`|` is not part of the language"),
    ("{**state}", "objects cannot be spread"), ("state.flag is True", "compares with None alone"),
    ("each(o in state.names, o.id)", "unknown function 'each'"),
    ("[o.id for o.x in state.names]", "`for` needs a name"),
    ("all(True for o in [1]) and o", "unknown name 'o'"),
    ("alll(o for o in [1])", "unknown function 'alll' (did you mean all?)"),
])  # fmt: skip
def test_more_that_is_refused_at_load(source, why):
    with pytest.raises(ContractError) as caught:
        Expression.compile(source, names=("state", "name"), where="f: t")
    assert why in str(caught.value)
