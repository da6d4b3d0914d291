"""Names for tools: every provider takes them, each is given once, and they stay as they are."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.tools.names import provider_names, valid_name

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@given(st.lists(st.text(min_size=1, max_size=80), unique=True, max_size=12))
def test_every_provider_takes_the_names_and_each_is_given_once(names):
    found = provider_names(names)
    assert list(found) != [] or names == []
    assert set(found) == set(names)
    assert len(set(found.values())) == len(names)
    assert all(VALID.fullmatch(one) for one in found.values())
    assert all(found[name] == name for name in names if VALID.fullmatch(name))


@given(st.text(max_size=200))
def test_a_name_is_valid_and_stays_so(name):
    assert VALID.fullmatch(valid_name(name))
    assert valid_name(valid_name(name)) == valid_name(name)
