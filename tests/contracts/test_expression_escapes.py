"""Ways out of an expression: each ends at load, or in data, and never in Python."""

from __future__ import annotations

import json

import pytest

from gecko_graph.contracts.language.expression import Expression, Scope
from gecko_graph.contracts.language.location import Location
from gecko_graph.contracts.language.template import Template
from gecko_graph.errors import ContractError, EvaluationFailed

SECRET = "root:x:0:0"

AT_LOAD = {
    "dunder attribute": "''.__class__.__mro__[1].__subclasses__()",
    "dunder attribute of the state": "state.__class__",
    "dunder attribute of a number": "(1).__class__.__base__",
    "dunder item": "state['__class__']",
    "dunder item of a text": "''['__class__']['__mro__']",
    "dunder name": "__import__",
    "dunder call": "__import__('os').system('id')",
    "attr filter": "state | attr('__class__')",
    "attr filter with a made-up name": "state | attr('__cla' ~ 'ss__')",
    "dunder name of an item": "all(__import__ in [1], true)",
    "dunder of an item": "any(x in [state], x.__class__)",
    "an item called as the state": "all(state in [1], true)",
    "a quantifier as a value": "[all, each]",
    "a function's globals": "date.__globals__",
    "a function of one's own with a dunder": "__price__(1)",
    "arguments of a function, spread": "between(*state.path)",
    "map by a dunder attribute": "[state] | map(attribute='__class__')",
    "map by a deep dunder attribute": "[state] | map(attribute='keys.__globals__')",
    "map with the attr filter": "[state] | map('attr', '__class__')",
    "selectattr by a dunder attribute": "[state] | selectattr('__class__')",
    "sort by a computed filter name": "[state] | map(args.text)",
    "test by a computed name": "[state] | select(args.text)",
    "format method": "'{0.__class__}'.format(state)",
    "format_map method": "'{a.__class__}'.format_map(state)",
    "format filter": "'%s' | format(state)",
    "function's globals": "walk.__globals__",
    "function as a value": "[walk, at]",
    "function in a filter": "[1] | map(walk)",
    "lipsum's globals": "lipsum.__globals__['os'].popen('id').read()",
    "cycler": "cycler.__init__.__globals__",
    "joiner": "joiner('x')",
    "namespace": "namespace(a=1)",
    "dict function": "dict(a=1)",
    "self": "self._TemplateReference__context",
    "context": "context",
    "environment": "environment",
    "loop": "loop",
    "caller": "caller()",
    "statement": "{% set x = 1 %}",
    "import": "{% import 'os' as os %}",
    "smuggled statement": "1 }}{% set x = 1 %}{{ 2",
    "smuggled import": "1 }}{% include '/etc/passwd' %}{{ 2",
    "two expressions": "1 }}{{ 2",
    "line statement": "1\n# set x = 1",
    "mutating append": "state.list.append(1)",
    "mutating update": "state.update({'a': 1})",
    "mutating pop": "state.pop('a')",
    "mutating clear": "state.list.clear()",
    "positional spread": "walk(*state.list)",
    "keyword spread": "walk(**state)",
    "spread in a filter": "state | join(*state.list)",
    "call of a call": "walk(state)()",
    "call of an item": "state['get']('a')",
    "call of a literal": "'a'()",
    "method that is not listed": "'a'.encode()",
    "join method": "','.join(state)",
    "filter by variable": "state | (args.text)",
    "power": "2 ** 1000000",
    "assignment expression": "(x := 1)",
    "lambda": "lambda: 1",
    "comprehension": "[x for x in state]",
    "f-string": "f'{state}'",
    "debug extension": "{% debug %}",
    "pprint": "state | pprint",
    "tojson of a function": "walk | tojson",
    "xmlattr": "state | xmlattr",
    "safe": "'<b>' | safe",
    "groupby": "[state] | groupby('__class__')",
    "dictsort": "state | dictsort",
    "random": "[1, 2] | random",
    "urlize": "'http://x' | urlize",
    "callable test": "walk is callable",
    "filter test": "'attr' is filter",
    "computed dunder attribute=": "[state] | map(attribute='__cla' ~ 'ss__')",
    "keyword that is the engine's": "[1] | join(scope=1)",
    "keyword that is the value": "[1] | join(value=[2])",
}  # fmt: skip

UNDEFINED_OR_WRONG = {
    "method as a value": "'abc'.lower",
    "method of a list as a value": "state.list.append",
    "method of an object as a value": "state.get",
    "method of a number as a value": "(1).real",
    "generator's frame by name": "(state.list | map('string')).gi_frame",
    "method by item": "'abc'['lower']",
    "method by a computed item": "state['po' ~ 'p']",
    "dunder by a computed item": "state['__cla' ~ 'ss__']",
    "dunder of a text by a computed item": "''['__cla' ~ 'ss__']",
    "dunder by path": "at(state, ['__class__'])",
    "dunder by a path with a list": "at(state.list, ['__class__', '__base__'])",
    "sort attribute that is computed": "[state] | sort(attribute='__cla' ~ 'ss__')",
    "printf": "'%c' % 65",
    "format by modulo of an object": "'%(a)s' % {'a': state}",
    "method of a value that is no text": "state.split('a')",
}

HARMLESS = {
    "a key that is called like a method": ("state.keys", "mine"),
    "a key that is called like a dunder's filter": ("state.items", [1]),
    "an argument with an expression in it": ("args.text", "{{ 7*7 }}"),
    "an argument with an expression, printed": ("'<' ~ args.text ~ '>'", "<{{ 7*7 }}>"),
    "an argument with a statement in it": ("args.statement | lower", "{% set x = 1 %}"),
    "a text that looks like a dunder": ("'__class__' in ['__class__']", True),
    "a percent sign": ("'100%' ~ 's'", "100%s"),
    "braces": ("'{0.__class__}'", "{0.__class__}"),
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
def test_an_escape_is_refused_at_load(source):
    with pytest.raises(ContractError, match=r"^f: tool t: here: "):
        Expression.compile(source, names=scope().values, where="f: tool t: here")


@pytest.mark.parametrize("source", AT_LOAD.values(), ids=AT_LOAD)
def test_an_escape_in_a_text_is_refused_at_load_or_filled_in_as_data(source):
    text = source if source.startswith("{%") else f"a {{{{ {source} }}}} b"
    place = Location("f: tool t: here", dict.fromkeys(scope().values))
    if source == AT_LOAD["two expressions"]:
        assert Template.load(text, place).fill(scope()) == "a 12 b"
        return
    with pytest.raises(ContractError, match=r"^f: tool t: here: "):
        Template.load(text, place)


@pytest.mark.parametrize("source", UNDEFINED_OR_WRONG.values(), ids=UNDEFINED_OR_WRONG)
def test_what_is_no_key_of_a_plain_object_is_undefined(source):
    with pytest.raises(EvaluationFailed, match=r"undefined|needs a"):
        evaluate(source)


@pytest.mark.parametrize(("source", "value"), HARMLESS.values(), ids=HARMLESS)
def test_data_stays_data(source, value):
    assert evaluate(source) == value


@pytest.mark.parametrize(
    "source", ["state", "state.list | map('string')", "range(3)", "walk(state)", "zip([1], [2])", "{'a': (1, 2)}"]
)
def test_what_comes_out_is_plain_json(source):
    got = evaluate(source)
    assert json.loads(json.dumps(got)) == got


def test_a_message_is_never_filled_in_again():
    place = Location("t", {"args": None})
    echoed = Template.load({"error": "no such file: {{ args.text }}"}, place).fill(scope())
    assert echoed == {"error": "no such file: {{ 7*7 }}"}


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
