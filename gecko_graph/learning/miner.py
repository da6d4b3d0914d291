"""The miner: what one tool's rows say of it, as a contract with its evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Any, cast

from ..contracts.contract import Contract
from ..errors import ContractError
from ..state import Json, JsonObject
from ..tools import ToolSpec
from ..values.digest import digest
from ..values.observation import HOLE, Observation, is_masked, without_masked
from ..values.patch import tokens
from ..values.places import as_text
from .changes import Lawful, Program, cover, find_effects, shape_of
from .conditions import MOST_SEEN, PROSE, Documented, build_conditions, forms_of, numbers_in, of_items, places
from .explain import Explainer, richer
from .rules import ESTABLISHED, EXCEPTIONS, PROPOSED, Rule, Sample, find_region, find_rules, said, weigh
from .terms import MISSING, Term, build_terms, grouped, quote

CHUNK, MOST_PARTS = 12, 6
"""Conditions in one clause, for an expression has a limit; values of an argument that may be branches."""

_BRACES = r"\{[{%]"
OUTSIDE, UNLEARNED = "outside of what was seen", "its result was not learned"


@dataclass(slots=True)
class _Rows:
    """The rows of a tool, and what is drawn from them."""

    tool: ToolSpec
    branches: Sequence[str]
    rows: Sequence[Observation]
    args: list[JsonObject]
    sample: Sample
    holes: dict[str, Term] = field(default_factory=dict)

    @classmethod
    def of(cls, tool: ToolSpec, found: Sequence[tuple[str, Observation]], documented: Documented) -> _Rows:
        branches, rows = [branch for branch, _ in found], [row for _, row in found]
        properties = tool.parameters.get("properties", {})
        defaults = {name: rule.get("default") if isinstance(rule, dict) else None for name, rule in properties.items()}
        args = [{**defaults, **{key: _known(each) for key, each in row.args.items()}} for row in rows]
        states = [MISSING if row.before is None else _known(row.before) for row in rows]
        about = (str(rule.get("description", "")) for rule in properties.values() if isinstance(rule, dict))
        documented = {**documented, PROSE: numbers_in(tool.description, *about)}
        terms = build_terms(args, states, "state")
        lawful = sum(1 << at for at, branch in enumerate(branches) if not branch)
        starts = [row.question if row.before is None else digest(row.before) for row in rows]
        lists = (term for term in terms if term.of == "argument" and term.where("list"))
        conditions = [*build_conditions(terms), *(one for many in lists for one in of_items(many, states))]
        sample = Sample(lawful, [row.digest[:12] for row in rows], starts, terms, conditions, documented)
        return cls(tool, branches, rows, args, sample)

    def lawful(self) -> Lawful:
        """Return what the lawful rows show; what a tool that only reads has changed is known to be nothing."""
        some = {at: self.rows[at] for at in places(self.sample.lawful)}
        befores = {at: row.before for at, row in some.items() if row.before is not None}
        afters = {at: row.before if row.change is None and self.tool.reads else row.after for at, row in some.items()}
        known = {at: after for at, after in afters.items() if after is not None}
        results = {at: row.result for at, row in some.items()}
        return Lawful(dict(enumerate(self.args)), befores, known, results, _parts(self.sample))

    def kinds(self) -> list[tuple[str, int]]:
        """Return the kinds of refusals with their rows, the most frequent first.

        Kinds whose messages differ in one word are one where a term has that word: `order is shipped`, `is cancelled`.
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
        """Return what in the state is the word of each kind, wherever it is known."""
        seen = {at: word for kind, word in words.items() for at in places(found[kind])}
        for term in (term for term in self.sample.terms if term.of != "argument"):
            known = {at: word for at, word in seen.items() if term.values[at] is not MISSING}
            right = [word for at, word in known.items() if term.values[at] == word]
            if {*right} == {*words.values()} and len(right) >= (1 - EXCEPTIONS) * len(known):
                return term
        return None


def _known(value: Json) -> Any:
    """Return a value without what was masked in it, MISSING for an unknown one."""
    if isinstance(value, dict):
        return without_masked(value)
    return MISSING if is_masked(value) else value


def mine(
    tool: ToolSpec, found: Sequence[tuple[str, Observation]], documented: Documented
) -> tuple[JsonObject, list[str]]:
    """Return what a tool's rows say of it as a contract, and what they have not shown.

    Args:
        tool: The tool.
        found: Its rows, each with its branch: "" for a lawful one, else the kind of its refusal.
        documented: Constants that the tools' documents name.
    """
    whole, unknown = _Rows.of(tool, found, documented), list[str]()
    refusing, doubts = _requirements(whole, unknown)
    seen = whole.sample.lawful.bit_count()
    refusals = {kind: rows.bit_count() for kind, rows in whole.kinds()}
    # `touches`, of the state: what else it changes where its effects are not known
    touched = {tokens(each["path"])[0] for row in whole.rows for each in row.change or () if each["path"]}
    evidence: JsonObject = {"rows": len(found), "lawful": seen, "refusals": refusals, "touches": sorted(touched)}
    if seen < PROPOSED:
        doubts = ["False"]
        unknown.append(f"only {seen} lawful calls were seen")
        refusing += _never(whole) if not seen and len(found) >= PROPOSED else ()
        parts: JsonObject = {}
    else:
        doubts += _forms(whole)
        parts = _answers(whole, unknown, evidence, doubts)
    requires = [*refusing, *_passing(doubts)]
    return _loadable(tool, {**parts, "requires": requires}, evidence, unknown), unknown


def _requirements(whole: _Rows, unknown: list[str]) -> tuple[list[JsonObject], list[str]]:
    """Return the clauses of refusals, and conditions outside of which nothing is known."""
    found: list[tuple[Rule, int, Json]] = []
    explainer = Explainer(whole.sample.terms, has_tables=False)
    rare = 0
    for kind, rows in whole.kinds():
        error = _error(whole, kind, rows, explainer)
        rules, left = find_rules(whole.sample, rows, re.findall(r"args\.\w+", as_text(error)))
        found += [(rule, rows, error) for rule in rules]
        if left.bit_count() > EXCEPTIONS * rows.bit_count():
            if not rules and rows.bit_count() >= PROPOSED:
                unknown.append(f"{rows.bit_count()} refusals without a known reason: {kind}")
            rare |= left
        # of other constants than those that were seen an open rule says nothing
        rare |= reduce(or_, (rule.rows for rule in rules if rule.best.is_open), 0)
    doubts = _apart(whole.sample, whole.sample.lawful, rare)
    clauses: list[JsonObject] = []
    while found:
        # the first clause that fails gives the error: it must not fail where calls met another one
        first = min(
            found, key=lambda one: sum((rows & one[0].best.fails & ~one[1]).bit_count() for _, rows, _ in found)
        )
        found.remove(first)
        made, needs = _clauses(whole.sample, first[0], first[2], f"refusal-{len(clauses) + 1}")
        clauses += made
        doubts += needs
    return clauses, list(dict.fromkeys(doubts))


def _never(whole: _Rows) -> list[JsonObject]:
    """Return the warning of a tool that was refused each time: a call that is lawful may not have been tried yet."""
    count, (kind, rows) = len(whole.rows), whole.kinds()[0]
    told = f"refused each of {count} times, {rows.bit_count()} of them by {re.sub(_BRACES, HOLE, kind)}"
    evidence = weigh("never", count, len({*whole.sample.starts}), [], is_clear=False, lawful=0, rivals=0)
    return [{"id": "never-done", "check": "False", **said(told, evidence), "evidence": evidence}]


def _clauses(sample: Sample, rule: Rule, error: Json, name: str) -> tuple[list[JsonObject], list[str]]:
    """Return a rule's clauses, and what all lawful calls had so that it could be evaluated."""
    some = [rule.best, *(rule.rivals if rule.evidence["status"] != "refuted" else ())]
    guards = list(dict.fromkeys(guard for one in some for guard in one.guards))
    when = {"when": " and ".join(guards)} if guards else {}
    checks = [f"({one.check})" if " " in one.check else one.check for one in some]
    head: JsonObject = {"id": name, **when, "check": " or ".join(checks)}
    made = [{**head, **said(error, rule.evidence), "evidence": rule.evidence}]
    if len(some) > 1:
        made.append({"id": f"{name}-rivals", **when, "check": " and ".join(checks), "pass": "rival rules disagree"})
    unseen = [guard for one in some if not sample.lawful & ~one.known for guard in one.guards]
    return made, unseen


def _error(whole: _Rows, kind: str, rows: int, explainer: Explainer) -> Json:
    """Return the error of refusals of one kind as a template, `…` where nothing explains a part."""
    word = whole.holes.get(kind)
    rows &= word.where("there") if word else rows
    seen = {at: whole.rows[at].result for at in places(rows)}
    value = explainer.explain(seen)
    if value is not None and (not value.needs or all("args" in need for need in value.needs)):
        return value.template
    known: Json = re.sub(_BRACES, HOLE, kind)
    with suppress(ValueError):
        return cast("Json", json.loads(str(known)))
    return known


def _apart(sample: Sample, inside: int, odd: int) -> list[str]:
    """Return what must hold, or a call may be one of the odd ones that nothing explains."""
    region = find_region(sample, inside, odd) if odd else None
    if region is not None:
        return [f"({region.whole})"]
    return ["False"] if odd.bit_count() > EXCEPTIONS / 2 * (odd | inside).bit_count() else []


def _forms(whole: _Rows) -> list[str]:
    """Return what all lawful calls have in common in their forms: outside of it nothing is known."""
    lawful = list(places(whole.sample.lawful))
    checks: list[str] = []
    for term in whole.sample.terms:
        values = [term.values[at] for at in lawful]
        if term.of == "argument" and term.text.startswith("args."):
            checks += forms_of(values, term.text)
        if term.of != "lookup" and term.cost == 1 and values in ([True] * len(values), [False] * len(values)):
            checks.append(f"defined({term.text}) and {term.text} == {values[0]}")
    return checks


def _passing(doubts: Sequence[str]) -> Iterator[JsonObject]:
    unique = list(dict.fromkeys(doubts))
    for number in range(0, len(unique), CHUNK):
        check = " and ".join(unique[number : number + CHUNK])
        yield {"id": f"forms-{number // CHUNK + 1}", "check": check, "pass": OUTSIDE}


def _answers(whole: _Rows, unknown: list[str], evidence: JsonObject, doubts: list[str]) -> JsonObject:
    """Return effects and result, as far as they are known; what effects need is added to the doubts."""
    # a call whose arguments are masked shows not what becomes of them
    masked = sum(1 << at for at, row in enumerate(whole.rows) if is_masked(row.args))
    sample = whole.sample = replace(whole.sample, lawful=whole.sample.lawful & ~masked)
    lawful = whole.lawful()
    # only of lawful calls: what is looked up has other fields where it is refused
    after, before = (
        build_terms(whole.args, [_known(some[at]) if at in some else MISSING for at in range(len(whole.rows))], root)
        for some, root in ((lawful.afters, "state"), (lawful.befores, "before"))
    )
    results = Explainer([*richer(after), *(term for term in richer(before) if "before" in term.text)])
    returned, odd = cover(lawful.find(lawful.results, shape_of, results.explain, "returns"), sample.lawful)
    returns, known = _branched(sample, returned, odd)
    changed, left = cover(find_effects(lawful, Explainer(richer(before))), sample.lawful)
    changes, needed = _branched(sample, changed, left)
    is_still = changes and not any(program.value.template for _, program in changes)
    if is_still and not whole.tool.reads and sample.lawful.bit_count() < ESTABLISHED:
        changes = None  # that nothing changes is no news of a few calls
    evidence["effects"], evidence["returns"] = _said(changes, left, sample), _said(returns, odd, sample)
    shown = {**({} if whole.tool.reads else {"changes": changes}), "returns": returns}
    unknown += [f"what it {word}" for word, one in shown.items() if one is None]
    if changes is None:
        return {}
    doubts += [*needed, *(need.replace("before", "state") for one in changed for need in one.value.needs)]
    if left.bit_count() >= PROPOSED and (region := find_region(sample, sample.lawful & ~left, left)):
        doubts.append(f"({region.whole})")  # so many odd ones are no accident where a condition tells them apart
    made: JsonObject = {}
    if not whole.tool.reads:  # also none, when its result is open
        made["effects"] = _effects(changes) if any(program.value.template for _, program in changes) else []
    apart = [_before(each) for each in (*_apart(sample, sample.lawful & ~odd, odd), *known)] if returns else []
    made["returns"] = _returns(returns, apart) if returns else {"cases": [{"pass": UNLEARNED}]}
    return made


def _parts(sample: Sample) -> list[int]:
    """Return parts of the lawful rows that may be branches: by an argument's few values, by the plainest conditions."""
    found: list[int] = []
    for term in (term for term in sample.terms if term.of == "argument"):
        values = grouped((at, repr(term.values[at])) for at in places(sample.lawful))
        found += values.values() if len(values) <= MOST_PARTS else ()
    plain = [one for one in sample.conditions if one.kind in ("membership", "flag", "existence")]
    sides = [one.true & sample.lawful for one in sorted(plain, key=lambda one: (one.cost, one.check))]
    return [*found, *(side for side in dict.fromkeys(sides) if side.bit_count() >= PROPOSED)][: 6 * MOST_PARTS]


Branches = list[tuple[str, Program]]


def _branched(sample: Sample, programs: Sequence[Program], left: int) -> tuple[Branches | None, list[str]]:
    """Return programs, each with the condition that leads to it ("" for the last); None where none is known.

    The second value is what must hold so that one of them is: where words tell them apart, no other than those seen.
    """
    if not programs or left.bit_count() > EXCEPTIONS * sample.lawful.bit_count():
        return None, []
    found: Branches = []
    words: dict[str, Term] = {}
    remaining, waiting = sample.lawful & ~left, list(programs)
    while waiting:
        if not remaining & ~waiting[0].rows or len(waiting) == 1:
            return [*found, ("", waiting[0])], [check for one in words.values() for check in _seen_words(sample, one)]
        for program in sorted(waiting, key=lambda one: one.value.template == []):
            # a row that two programs give, such as a flag that was set already, speaks for neither
            others = 0
            for other in waiting:
                others |= other.rows if other is not program else 0
            own = program.rows & remaining & ~others
            region = find_region(sample, own, remaining & ~program.rows)
            if region and (own & ~region.true).bit_count() <= EXCEPTIONS / 2 * own.bit_count():
                found.append((_before(region.whole), program))
                words |= {term.text: term for term in region.words}
                remaining &= ~program.rows
                waiting.remove(program)
                break
        else:
            return None, []
    return found, []


def _seen_words(sample: Sample, term: Term) -> list[str]:
    """Return that a value is one that lawful calls had, where these are few."""
    seen = {quote(value) for at in places(sample.lawful) if (value := term.values[at]) is not MISSING}
    return [f"{term.text} in [{', '.join(sorted(seen))}]"] if len(seen) <= MOST_SEEN else []


def _effects(branches: Branches) -> list[JsonObject]:
    if len(branches) == 1:
        return list(cast("list[JsonObject]", branches[0][1].value.template))
    every = [(_first(branches, number), program.value.template) for number, (_, program) in enumerate(branches)]
    return [{"when": " and ".join(guards), "do": template} for guards, template in every if template]


def _first(branches: Branches, number: int) -> list[str]:
    """Return what leads to a branch and to none before it."""
    when = branches[number][0]
    return [*(f"not ({each})" for each, _ in branches[:number]), *([when] if when else [])]


def _before(text: str) -> str:
    return text.replace("state.", "before.").replace("state[", "before[")


def _returns(branches: Branches, odd: Sequence[str]) -> Json:
    if len(branches) == 1 and not branches[0][1].value.needs and not odd:
        return branches[0][1].value.template
    cases: list[JsonObject] = []
    for number, (_, program) in enumerate(branches):
        needs = " and ".join(dict.fromkeys([*odd, *_first(branches, number), *program.value.needs]))
        cases.append({"when": needs or "True", "value": program.value.template})
    return {"cases": [*cases, {"pass": OUTSIDE}]}


def _said(branches: Branches | None, left: int, sample: Sample) -> JsonObject:
    if branches is None:
        return {"status": "unknown", "for": 0}
    count = sample.lawful.bit_count() - left.bit_count()
    status = "established" if count >= ESTABLISHED else "proposed"
    return {"status": status, "for": count, "branches": len(branches), "against": sample.named(left)}


def _loadable(tool: ToolSpec, contract: JsonObject, evidence: JsonObject, unknown: list[str]) -> JsonObject:
    """Return the contract, or the part of it that can be loaded: what does not suit the tool's document is left out."""
    for part in ("", "returns", "effects", "requires"):
        if part:
            contract = {key: value for key, value in contract.items() if key != part}
            unknown.append(f"its {part} do not load")
        try:
            Contract.load(contract, where=tool.name).fit(tool.parameters)
        except ContractError as error:
            unknown.append(str(error)[:200])
            continue
        break
    return {**contract, "evidence": {**evidence, "unknown": unknown}}
