"""The rows of a tool with their terms, conditions, kinds of refusals, and the changes of successful rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Any

from ..contracts.run import partly_shown
from ..state import Json, JsonObject
from ..tools import ToolSpec
from ..values.difference import make_patch
from ..values.digest import digest
from ..values.observation import HOLE, Observation, is_masked, without_masked
from ..world.shown import without_marks
from .changes import Lawful
from .conditions import PROSE, Documented, are_any, build_conditions, numbers_in, of_items, places
from .counts import build_counts, build_times
from .rules import EXCEPTIONS, PROPOSED, Sample
from .terms import MISSING, Term, build_terms, grouped

MOST_PARTS = 6
"""Most values of an argument that may be branches."""

Alike = Iterable[tuple[ToolSpec, Sequence[tuple[str, Observation]]]]
"""Tools with similar refusals, with their rows."""


@dataclass(slots=True)
class Rows:
    """The rows of a tool, and the values computed from them."""

    tool: ToolSpec
    branches: Sequence[str]
    rows: Sequence[Observation]
    args: list[JsonObject]
    sample: Sample
    holes: dict[str, Term] = field(default_factory=dict)
    others: Callable[[], Sequence[Rows]] = tuple
    """Returns the rows joined with those of each tool with similar refusals, by their common arguments; own ones
    first."""

    @classmethod
    def of(
        cls,
        tool: ToolSpec,
        found: Sequence[tuple[str, Observation]],
        documented: Documented,
        names: Collection[str] | None = None,
    ) -> Rows:
        branches, rows = [branch for branch, _ in found], [_without_marks(row) for _, row in found]
        properties = tool.parameters.get("properties", {})
        properties = {key: each for key, each in properties.items() if names is None or key in names}
        defaults = {name: rule.get("default") if isinstance(rule, dict) else None for name, rule in properties.items()}
        given = ({key: each for key, each in row.args.items() if names is None or key in names} for row in rows)
        args = [{**defaults, **{key: known_value(each) for key, each in some.items()}} for some in given]
        states = [MISSING if row.before is None else known_value(row.before) for row in rows]
        about = (str(rule.get("description", "")) for rule in properties.values() if isinstance(rule, dict))
        documented = {**documented, PROSE: numbers_in(tool.description, *about)}
        terms = build_terms(args, states, "state")
        counts = build_counts(terms, [partly_shown(row.before or {}) for _, row in found])
        lawful = sum(1 << at for at, branch in enumerate(branches) if not branch)
        starts = [row.question if row.before is None else digest(row.before) for row in rows]
        lists = (term for term in terms if term.of == "argument" and term.where("list"))
        conditions = [*build_conditions(terms), *(one for many in lists for one in of_items(many, states))]
        conditions += are_any(counts)
        terms = [*terms, *build_times(terms), *counts]
        sample = Sample(lawful, [row.digest[:12] for row in rows], starts, terms, conditions, documented)
        return cls(tool, branches, rows, args, sample)

    def lawful(self) -> Lawful:
        """Return the changes in the successful rows; a tool that only reads has changed nothing."""
        some = {at: self.rows[at] for at in places(self.sample.lawful)}
        befores = {at: row.before for at, row in some.items() if row.before is not None}
        afters = {at: row.before if row.change is None and self.tool.reads else row.after for at, row in some.items()}
        known = {at: after for at, after in afters.items() if after is not None}
        results = {at: row.result for at, row in some.items()}
        return Lawful(dict(enumerate(self.args)), befores, known, results, _parts(self.sample))

    def kinds(self) -> list[tuple[str, int]]:
        """Return the kinds of refusals with their rows, the most frequent first.

        Kinds that differ in one word are merged if a term has that word: `order is shipped`, `is cancelled`.
        """
        found = grouped((at, branch) for at, branch in enumerate(self.branches) if branch)
        alike: dict[tuple[str, str], dict[str, str]] = {}
        for kind in sorted(found):
            for word in re.finditer(r"[^\W\d_]+", kind):
                alike.setdefault((kind[: word.start()], kind[word.end() :]), {})[kind] = word[0]
        for (before, after), words in alike.items():
            is_new = len(words) > 1 and words.keys() <= found.keys()
            if is_new and (term := self._find_word(words, found)):
                found[kind := before + HOLE + after] = reduce(or_, (found.pop(each) for each in words))
                self.holes[kind] = term
        return sorted(found.items(), key=lambda pair: (-pair[1].bit_count(), pair[0]))

    def _find_word(self, words: Mapping[str, str], found: Mapping[str, int]) -> Term | None:
        """Return the term of the state whose value is the kind's word, by the rows that know it."""
        seen = {at: word for kind, word in words.items() for at in places(found[kind])}
        for term in (term for term in self.sample.terms if term.of != "argument"):
            known = {at: word for at, word in seen.items() if term.values[at] is not MISSING}
            right = [word for at, word in known.items() if term.values[at] == word]
            if {*right} == {*words.values()} and len(right) >= (1 - EXCEPTIONS) * len(known):
                return term
        return None


def _without_marks(row: Observation) -> Observation:
    """Return a row whose state lacks the record of shown parts, which no rule is about."""
    if row.before is None:
        return row
    before, was = without_marks(row.before), row.after
    after = was if was is None else without_marks(was)
    change = row.change if after is was else make_patch(before, after)
    return replace(row, before=before, change=change)


def known_value(value: Json) -> Any:
    """Return a value without its masked parts; MISSING if it is masked itself."""
    if isinstance(value, dict):
        return without_masked(value)
    return MISSING if is_masked(value) else value


def beside(whole: Rows, found: Sequence[tuple[str, Observation]], others: Alike) -> Iterator[Rows]:
    """Yield a tool's rows joined with those of each other tool, by their common arguments."""
    for other, rows in others:
        own, theirs = (one.parameters.get("properties", {}) for one in (whole.tool, other))
        if names := own.keys() & theirs.keys():
            yield Rows.of(whole.tool, [*found, *rows], whole.sample.documented, names)


def _parts(sample: Sample) -> list[int]:
    """Return parts of the successful rows that may be branches: by few values of an argument, or simple conditions."""
    found: list[int] = []
    for term in (term for term in sample.terms if term.of == "argument"):
        values = grouped((at, repr(term.values[at])) for at in places(sample.lawful))
        found += values.values() if len(values) <= MOST_PARTS else ()
    plain = [one for one in sample.conditions if one.kind in ("membership", "flag", "existence")]
    sides = [one.true & sample.lawful for one in sorted(plain, key=lambda one: (one.cost, one.check))]
    return [*found, *(side for side in dict.fromkeys(sides) if side.bit_count() >= PROPOSED)][: 6 * MOST_PARTS]
