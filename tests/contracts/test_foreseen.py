"""What a contract's result will be, as far as it is written."""

from __future__ import annotations

import pytest

from gecko_graph.contracts.contract import Contract
from gecko_graph.schemas.partial import Partial


def foreseen(**data):
    return Contract.load(data, where="contract").foreseen()


def known(value, *unknown, open_=()):
    return Partial(value, frozenset(unknown), frozenset(open_))


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        ({"ok": True, "n": [1, "a"]}, known({"ok": True, "n": [1, "a"]})),
        ("{{ args.id }}", known(None, ())),
        ("order {{ args.id }}", known("", open_=[()])),
        ("{{ args.a }}{{ args.b }}", known("", open_=[()])),
        ({"id": "{{ args.id }}", "say": "by {{ args.id }}"}, known({"id": None, "say": ""}, ("id",), open_=[("say",)])),
        ({"{{ args.id }}": 1}, known({}, open_=[()])),
        ([{"a": "{{ args.id }}"}], known([{"a": None}], (0, "a"))),
        ({"for_each": "args.ids", "value": "{{ item }}"}, known([], open_=[()])),
        ({"a": {"cases": [{"value": 1}]}}, known({"a": None}, ("a",))),
    ],
)
def test_as_far_as_it_is_written(returns, expected):
    assert foreseen(returns=returns) == [expected]


def test_each_case_is_foreseen():
    cases = [{"when": "args.a", "value": 1}, {"value": {"cases": [{"when": "args.b", "value": "{{ args.b }}"}]}}]
    assert foreseen(returns={"cases": cases}) == [known(1), known(None, ())]


def test_effects_alone_return_null_and_a_guard_returns_nothing():
    assert foreseen(effects=[{"op": "add", "path": ["x"], "value": 1}]) == [known(None)]
    assert foreseen(requires=[{"check": "args.a", "error": "no"}]) == []
