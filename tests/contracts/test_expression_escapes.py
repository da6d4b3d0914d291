"""Ways out of an expression: each ends at load, or in data, and never in Python."""

from __future__ import annotations

import pytest

from gecko_graph.contracts.language.expression import Expression, Location, Scope
from gecko_graph.contracts.language.template import Template
from gecko_graph.errors import ContractError, EvaluationFailed

SECRET = "root:x:0:0"

AT_LOAD = {
    "dunder attribute": "''.__class__.__mro__[1].__subclasses__()",
    "dunder attribute of the state": "state.__class__", "dunder name": "__import__",
    "attr filter": "state | attr('__class__')",
    "dunder name of an item": "all(True for __import__ in [1])",
    "an item called as the state": "all(True for state in [1])",
    "a function's globals": "date.__globals__",
    "lambda that climbs": "sorted([state], key=lambda s: s.__class__)",
    "format method": "'{0.__class__}'.format(state)", "function as a value": "[walk, at]",
    "lipsum's globals": "lipsum.__globals__['os'].popen('id').read()",
    "statement": "{% set x = 1 %}", "smuggled statement": "1 }}{% set x = 1 %}{{ 2", "comment": "1\n# set x = 1",
    "mutating append": "state.list.append(1)", "spread of a list": "max(*state.list)",
    "spread in a list": "[*state.list]",
    "spread of an object": "shift('2024-01-01', **state)", "call of a call": "walk(state)()",
    "method that is not listed": "'a'.encode()", "filter by variable": "state | (args.text)", "walrus": "(x := 1)",
    "star target": "[a for *a in state.list]",
    "attribute as a target": "[1 for state.x in state.list]",
    "await": "await state", "yield": "(yield state)", "async loop": "[x async for x in state.list]",
    "conversion in a text": "f'{state!r}'", "format in a text": "f'{1:{state}}'",
    "dunder in a text": "f'{state.__class__}'",
    "dunder through another letter": "state._\uff3fclass_\uff3f",
    "lambda with a default": "sorted([1], key=lambda x=state: x)",
    "lambda called": "(lambda: 1)()", "type as a value": "[str]", "getattr": "getattr(state, 'keys')",
    "eval": "eval('1')", "bytes": "b'a'", "complex": "1j", "ellipsis": "...", "matrix": "state @ state",
    "shift of bits": "1 << 100000", "invert": "~1", "power": "2 ** 1000000", "callable test": "callable(walk)",
    "keyword that is the engine's": "len([1], scope=1)",
}  # fmt: skip

UNDEFINED_OR_WRONG = {
    "method as a value": "'abc'.lower", "generator's frame by name": "(str(one) for one in state.list).gi_frame",
    "method by a computed item": "state['po' + 'p']", "dunder by a computed item": "state['__cla' + 'ss__']",
    "dunder by path": "at(state, ['__class__'])", "printf": "'%c' % 65",
    "method of a value that is no text": "state.split('a')",
}  # fmt: skip

HARMLESS = {
    "a key that is called like a method": ("state.keys", "mine"),
    "an argument with an expression in it": ("args.text", "{{ 7*7 }}"),
    "a text that looks like a dunder": ("'__class__' in ['__class__']", True),
}


def scope() -> Scope:
    return Scope(
        {
            "state": {"list": [1, 2], "keys": "mine", "items": [1], "secret": SECRET},
            "args": {"text": "{{ 7*7 }}", "statement": "{% set x = 1 %}"},
        }
    )


def evaluate(source: str):
    values = scope()
    return Expression.compile(source, names=values.values, where="f: tool t: here").evaluate(values)


@pytest.mark.parametrize("source", AT_LOAD.values(), ids=AT_LOAD)
def test_an_escape_is_refused_at_load_also_in_a_text(source):
    with pytest.raises(ContractError, match=r"^f: tool t: here: "):
        Expression.compile(source, names=scope().values, where="f: tool t: here")
    text = source if source.startswith("{%") else f"a {{{{ {source} }}}} b"
    with pytest.raises(ContractError, match=r"^f: tool t: here: "):
        Template(text, Location("f: tool t: here", dict.fromkeys(scope().values)))


@pytest.mark.parametrize("source", UNDEFINED_OR_WRONG.values(), ids=UNDEFINED_OR_WRONG)
def test_what_is_no_key_of_a_plain_object_is_undefined(source):
    with pytest.raises(EvaluationFailed, match=r"undefined|needs a"):
        evaluate(source)


@pytest.mark.parametrize(("source", "value"), HARMLESS.values(), ids=HARMLESS)
def test_data_stays_data(source, value):
    assert evaluate(source) == value


def test_python_s_own_objects_in_a_scope_are_not_climbed():
    class Leaky:
        secret = SECRET

    values = Scope({"state": {"object": Leaky(), "function": Leaky.__init__}})
    for source in (
        "state.object.secret",
        "state.function.secret",
        "state['object']['secret']",
        "at(state, ['object', 'secret'])",
    ):
        with pytest.raises(EvaluationFailed, match="undefined"):
            Expression.compile(source, names=("state",), where="t").evaluate(values)
    with pytest.raises(EvaluationFailed, match="Leaky is not a JSON value"):
        Expression.compile("state.object", names=("state",), where="t").evaluate(values)
