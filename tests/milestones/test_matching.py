"""The best mapping of milestones to snapshots: equal to brute force, and fast."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("scipy")

from gecko_graph.conversation.milestones import Goal, Snapshot
from gecko_graph.conversation.milestones.constraints import START, Constraint, Milestone


@dataclass(frozen=True, slots=True)
class Fixed(Constraint):
    """A constraint whose similarity to each snapshot is given."""

    values: tuple[float, ...] = field(default=())

    def compare(self, now: Snapshot, then: Snapshot | None) -> float:
        return self.values[now["message"][0]["number"]]


def snapshots(states: Sequence[Sequence[int]]) -> list[Snapshot]:
    return [
        {"message": [{"number": number}], **{f"t{at}": [{"x": value}] for at, value in enumerate(state)}}
        for number, state in enumerate(states)
    ]


def brute_force(milestones: Sequence[Milestone], trajectory: Sequence[Snapshot]) -> float:
    """Return the best sum over all mappings of which each milestone before another has an earlier snapshot."""
    earlier = {each.id: set(each.after) for each in milestones}
    for _ in milestones:
        earlier = {name: set.union(before, *(earlier[one] for one in before)) for name, before in earlier.items()}
    best = 0.0
    for places in _mappings([each.id for each in milestones], len(trajectory)):
        if all(places[one] < at for name, at in places.items() for one in earlier[name] if one in places):
            matched = [each for each in milestones if each.id in places]
            found = [each.compare(trajectory, places[each.id], places) for each in matched]
            best = max(best, sum(found)) if all(found) else best  # what is alike by 0 is matched to nothing
    return best


def _mappings(names: Sequence[str], length: int) -> Iterator[dict[str, int]]:
    for chosen in itertools.product((None, *range(length)), repeat=len(names)):
        used = [at for at in chosen if at is not None]
        if len(used) == len(set(used)):
            yield {name: at for name, at in zip(names, chosen, strict=True) if at is not None}


similarities = st.sampled_from([0.0, 0.0, 0.3, 0.5, 1.0])


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[Milestone, ...], list[Snapshot]]:
    count, length = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    trajectory = snapshots(
        draw(st.lists(st.lists(st.integers(0, 1), min_size=2, max_size=2), min_size=length, max_size=length))
    )
    milestones = []
    for number in range(count):
        after = tuple(str(one) for one in range(number) if draw(st.booleans()))
        values = tuple(draw(st.lists(similarities, min_size=length, max_size=length)))
        references = [*after, START] if draw(st.booleans()) else []
        kinds = st.sampled_from(["guardrail", "update", "addition"])
        more = [
            Constraint(
                draw(st.sampled_from(["t0", "t1"])),
                draw(kinds),
                ({"x": 1},),
                reference=draw(st.sampled_from(references)),
            )
            for _ in range(draw(st.integers(0, 2)) if references else 0)
        ]
        milestones.append(Milestone(str(number), (Fixed("message", values=values), *more), after))
    return tuple(milestones), trajectory


@given(cases())
@settings(max_examples=60, deadline=None)
def test_the_mapping_is_as_good_as_the_best_of_all(case: tuple[tuple[Milestone, ...], list[Snapshot]]) -> None:
    milestones, trajectory = case
    score = Goal(milestones).score(trajectory)
    assert score["milestone_similarity"] == pytest.approx(
        brute_force(milestones, trajectory) / len(milestones), abs=1e-9
    )
    assert "inexact" not in score
    places = {each["id"]: each["snapshot"] for each in score["milestones"] if each["snapshot"] is not None}
    assert len(set(places.values())) == len(places)
    for each in milestones:
        if each.id in places:
            found = next(one["similarity"] for one in score["milestones"] if one["id"] == each.id)
            assert each.compare(trajectory, places[each.id], places) == pytest.approx(found)
