"""The miner: derive a contract with its evidence from one tool's rows."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, reduce
from operator import or_
from typing import cast

from ..contracts.contract import Contract
from ..errors import ContractError
from ..state import Json, JsonObject
from ..tools import ToolSpec
from ..values.observation import HOLE, Observation, is_masked
from ..values.patch import tokens
from ..values.places import as_text
from .changes import Program, cover, find_effects, shape_of
from .conditions import (
    MOST_SEEN,
    Documented,
    forms_of,
    places,
    words_in,
)
from .explain import Explainer, richer
from .rows import Alike, Rows, beside, known_value
from .rules import ESTABLISHED, EXCEPTIONS, PROPOSED, Rule, Sample, find_region, find_rules, said, weigh
from .terms import MISSING, Term, build_terms, quote

CHUNK = 12
"""Most conditions in one clause, since expressions are limited in size."""

_BRACES, _HOLES = r"\{[{%]", r"\{\{.*?\}\}"
OUTSIDE, UNLEARNED = "outside of the seen calls", "its result was not learned"


def mine(
    tool: ToolSpec,
    found: Sequence[tuple[str, Observation]],
    documented: Documented,
    others: Alike = (),
) -> tuple[JsonObject, list[str]]:
    """Return a contract mined from a tool's rows, and the parts that they have not shown.

    Args:
        tool: The tool.
        found: Its rows, each with its branch: "" for success, else the kind of its refusal.
        documented: Constants in the tools' documents.
        others: Tools with similar refusals, with their rows.
    """
    whole, unknown = Rows.of(tool, found, documented), list[str]()
    whole.others = cache(lambda: [*beside(whole, found, others)])
    refusing, doubts = _requirements(whole, unknown)
    seen = whole.sample.lawful.bit_count()
    refusals = {kind: rows.bit_count() for kind, rows in whole.kinds()}
    # `touches`: root keys of the state, which it may change if its effects are unknown
    touched = {tokens(each["path"])[0] for row in whole.rows for each in row.change or () if each["path"]}
    evidence: JsonObject = {"rows": len(found), "lawful": seen, "refusals": refusals, "touches": sorted(touched)}
    if seen < PROPOSED:
        doubts = ["False"]
        unknown.append(f"only {seen} successful calls were seen")
        refusing += _never(whole) if not seen and len(found) >= PROPOSED else ()
        parts: JsonObject = {}
    else:
        doubts += _forms(whole)
        parts = _answers(whole, unknown, evidence, doubts)
    requires = [*refusing, *_passing(doubts)]
    return _loadable(tool, {**parts, "requires": requires}, evidence, unknown), unknown


def _requirements(whole: Rows, unknown: list[str]) -> tuple[list[JsonObject], list[str]]:
    """Return the clauses of refusals, and conditions outside of which nothing is known."""
    found: list[tuple[Rule, int, Json]] = []
    explainer = Explainer(whole.sample.terms, has_tables=False)
    rare = 0
    for kind, rows in whole.kinds():
        error = _error(whole, kind, rows, explainer)
        about = {*re.findall(r"args\.\w+", as_text(error)), *words_in(re.sub(_HOLES, "", as_text(error)))}
        rules, left = find_rules(whole.sample, rows, about)
        if left.bit_count() > EXCEPTIONS * rows.bit_count():
            more, left = _shared_rules(whole, left, about)
            rules += more
        found += [(rule, rows, error) for rule in rules]
        if left.bit_count() > EXCEPTIONS * rows.bit_count():
            if not rules and rows.bit_count() >= PROPOSED:
                unknown.append(f"{rows.bit_count()} refusals without a known reason: {kind}")
            rare |= left
        # an open rule says nothing about constants that were not seen
        rare |= reduce(or_, (rule.rows for rule in rules if rule.best.is_open), 0)
    doubts = _apart(whole.sample, whole.sample.lawful, rare)
    clauses: list[JsonObject] = []
    while found:
        # the first failing clause gives the error, so it must not fail for calls with another error
        first = min(
            found, key=lambda one: sum((rows & one[0].best.fails & ~one[1]).bit_count() for _, rows, _ in found)
        )
        found.remove(first)
        made, needs = _clauses(whole.sample, first[0], first[2], f"refusal-{len(clauses) + 1}")
        clauses += made
        doubts += needs
    return clauses, list(dict.fromkeys(doubts))


def _shared_rules(whole: Rows, failed: int, about: Collection[str]) -> tuple[list[Rule], int]:
    """Return the rules of other tools' refusals of the same kind, if the tool has the same arguments.

    They only warn, since only the message tells that the kind is the same.
    """
    for both in whole.others():
        alike = next((rows for _, rows in both.kinds() if not failed & ~rows), 0)
        rules, left = find_rules(both.sample, alike, about) if alike & ~whole.sample.every else ([], failed)
        if rules and not failed & left:
            every = whole.sample.every
            return [one.within(every) for one in rules if one.rows & every], 0
    return [], failed


def _never(whole: Rows) -> list[JsonObject]:
    """Return the warning of a tool that was always refused; a valid call may not have been tried yet."""
    count, (kind, rows) = len(whole.rows), whole.kinds()[0]
    told = f"refused each of {count} times, {rows.bit_count()} of them by {re.sub(_BRACES, HOLE, kind)}"
    evidence = weigh("never", count, len({*whole.sample.starts}), [], is_clear=False, lawful=0, rivals=0)
    return [{"id": "never-done", "check": "False", **said(told, evidence), "evidence": evidence}]


def _clauses(sample: Sample, rule: Rule, error: Json, name: str) -> tuple[list[JsonObject], list[str]]:
    """Return a rule's clauses, and the guards that all successful calls satisfied."""
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


def _error(whole: Rows, kind: str, rows: int, explainer: Explainer) -> Json:
    """Return the error of refusals of one kind as a template, with `…` for unexplained parts."""
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
    """Return the condition outside of which a call may be one of the unexplained ones."""
    region = find_region(sample, inside, odd) if odd else None
    if region is not None:
        return [f"({region.whole})"]
    return ["False"] if odd.bit_count() > EXCEPTIONS / 2 * (odd | inside).bit_count() else []


def _forms(whole: Rows) -> list[str]:
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


def _answers(whole: Rows, unknown: list[str], evidence: JsonObject, doubts: list[str]) -> JsonObject:
    """Return effects and result as far as they are known; conditions of effects are added to the doubts."""
    # masked arguments do not show their effect
    masked = sum(1 << at for at, row in enumerate(whole.rows) if is_masked(row.args))
    sample = whole.sample = replace(whole.sample, lawful=whole.sample.lawful & ~masked)
    lawful = whole.lawful()
    # terms of successful calls only: looked-up things have other fields if the call is refused
    after, before = (
        build_terms(
            whole.args, [known_value(some[at]) if at in some else MISSING for at in range(len(whole.rows))], root
        )
        for some, root in ((lawful.afters, "state"), (lawful.befores, "before"))
    )
    results = Explainer([*richer(after), *(term for term in richer(before) if "before" in term.text)])
    returned, odd = cover(lawful.find(lawful.results, shape_of, results.explain, "returns"), sample.lawful)
    returns, known = _branched(sample, returned, odd)
    changed, left = cover(find_effects(lawful, Explainer(richer(before))), sample.lawful)
    changes, needed = _branched(sample, changed, left)
    is_still = changes and not any(program.value.template for _, program in changes)
    if is_still and not whole.tool.reads and sample.lawful.bit_count() < ESTABLISHED:
        changes = None  # too few calls to conclude that nothing changes
    evidence["effects"], evidence["returns"] = _said(changes, left, sample), _said(returns, odd, sample)
    shown = {**({} if whole.tool.reads else {"changes": changes}), "returns": returns}
    unknown += [f"what it {word}" for word, one in shown.items() if one is None]
    if changes is None:
        return {}
    doubts += [*needed, *(need.replace("before", "state") for one in changed for need in one.value.needs)]
    if left.bit_count() >= PROPOSED and (region := find_region(sample, sample.lawful & ~left, left)):
        doubts.append(f"({region.whole})")  # many exceptions that a condition separates are no accident
    made: JsonObject = {}
    if not whole.tool.reads:  # [] if its result is open
        made["effects"] = _effects(changes) if any(program.value.template for _, program in changes) else []
    apart = [_before(each) for each in (*_apart(sample, sample.lawful & ~odd, odd), *known)] if returns else []
    made["returns"] = _returns(returns, apart) if returns else {"cases": [{"pass": UNLEARNED}]}
    return made


Branches = list[tuple[str, Program]]


def _branched(sample: Sample, programs: Sequence[Program], left: int) -> tuple[Branches | None, list[str]]:
    """Return programs, each with its condition ("" for the last); None if none is known.

    The second value are conditions for the choice: if words separate the programs, only seen words are known.
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
            # a row that two programs explain (such as a flag that was already set) supports neither
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
    """Return the condition that a term has a value seen in successful calls, if these are few."""
    seen = {quote(value) for at in places(sample.lawful) if (value := term.values[at]) is not MISSING}
    return [f"{term.text} in [{', '.join(sorted(seen))}]"] if len(seen) <= MOST_SEEN else []


def _effects(branches: Branches) -> list[JsonObject]:
    if len(branches) == 1:
        return list(cast("list[JsonObject]", branches[0][1].value.template))
    every = [(_first(branches, number), program.value.template) for number, (_, program) in enumerate(branches)]
    return [{"when": " and ".join(guards), "do": template} for guards, template in every if template]


def _first(branches: Branches, number: int) -> list[str]:
    """Return the conditions of a branch, including the negation of earlier ones."""
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
    """Return the contract, or its loadable part; parts that do not fit the tool's document are left out."""
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
