"""Knobs: a mistake in one is told with the knob, what it takes and what was given."""

from __future__ import annotations

import pytest

from gecko_graph import GeckoContext
from gecko_graph.errors import GeckoError


@pytest.mark.parametrize(
    ("knobs", "parts"),
    [
        ({"max_retry": 1}, ("'max_retry'", "did you mean max_retries?")),
        ({"max_retries": -1}, ("max_retries", "greater than or equal to 0", "-1")),
        ({"seed": "x", "max_steps": 0}, ("seed", "integer", "max_steps")),
    ],
)
def test_a_mistake_in_a_context_is_a_gecko_error(knobs, parts):
    with pytest.raises(GeckoError) as caught:
        GeckoContext(**knobs)
    assert [part for part in parts if part not in str(caught.value)] == []
