"""Find behavior that documents do not describe: dependent things disappear or appear, or values must be unique.

Each is tested on the rows like a document's rule: ten rows without a counterexample establish it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any

from ..contracts.contract import Contract
from ..derive.blanks import as_key
from ..errors import EvaluationFailed
from ..state import Json, JsonObject
from ..tools import Toolkit, ToolSpec
from ..values.difference import json_equal
from ..values.digest import digest
from ..values.observation import Observation
from ..values.places import scalars_of
from ..world.by_document import is_time
from ..world.followed import ANY_FIELD, Followed, find_followed, open_run
from .explain import escape
from .replay import NAMED, try_clause
from .rules import PROPOSED, said, weigh

MOST_COME, MOST_FIELDS = 3, 12
Found = Sequence[tuple[str, Observation]]


def find_follows(tool: ToolSpec, toolkit: Toolkit, found: Found) -> list[JsonObject]:
    """Return the things that disappear or appear with a write's own, by reads after it, by collection, with evidence.

    If several members may refer to the written thing, the one that most rows support is used.
    """
    seen = [(row, one) for branch, row in found if not branch for one in find_followed(toolkit, row)]
    rules = dict[str, tuple[tuple[bool, int], JsonObject]]()
    for root, field in dict.fromkeys((one.root, one.field) for _, one in seen if one.is_so):
        some = [(row, one) for row, one in seen if one.root == root and one.field in (field, ANY_FIELD)]
        rows = {row.digest: row for row, one in some if one.is_so}
        against = {row.digest[:12] for row, one in some if not one.is_so and row.digest not in rows}
        came = [one.came for row, one in some if one.is_so and one.came]
        kept = sorted(against)[:NAMED]
        starts = len({digest(row.before) for row in rows.values()})
        evidence = weigh("existence", len(rows), starts, kept, is_clear=True, by="reads after it")
        is_remove = tool.derived is not None and tool.derived.kind == "remove"
        do = [_going(root, field)] if is_remove else _coming(root, field, came)
        rank, name = (not kept, len(rows)), Followed(root, field, {}, True).name
        if do and len(rows) >= PROPOSED and (root not in rules or rank > rules[root][0]):
            rules[root] = rank, {"id": name, "do": do, "evidence": evidence}
    return [rule for _, rule in rules.values()]


def _going(root: str, field: str) -> JsonObject:
    """Return the effect that removes the things that refer to the removed one."""
    path = f"{{{{ [{root!r}, name] }}}}"
    loop = {"for_each": f"at(state, [{root!r}], {{}}).items()", "as": ["name", "each"]}
    return {**loop, "when": f"str(each.get({field!r})) == str(place[1])", "op": "gone", "path": path}


def _coming(root: str, field: str, came: Sequence[Mapping[str, Json]]) -> list[JsonObject]:
    """Return the effects that add the things of a new one: common values are known, the others are blanks.

    A key that differs each time is drawn, and the thing is marked open, since nobody knows it by that key.
    """
    count = min(map(len, came))
    effects: list[JsonObject] = []
    for number in range(count) if count == max(map(len, came)) <= MOST_COME else ():
        names, things = zip(*([*some.items()][number] for some in came), strict=True)
        first = things[0] if all(isinstance(each, dict) for each in things) else {}
        same = {key for key, one in first.items() if all(json_equal(each.get(key), one) for each in things)}
        known = escape({key: first[key] for key in first if key in same and key != field and not is_time(first[key])})
        named = repr(names[0]) if len({*names}) == 1 else f"new_id({root[:4].lower() + '_'!r})"
        above = "place[0][1:], place[1]" if not field else ""
        place = f"[{root!r}, {above + ', ' if above else ''}key]"
        value = {**known, **({as_key(field): "{{ place[1] }}"} if field else {})}
        opened = ["runtime_state", "open", f"{{{{ pointer_to({place}) }}}}"]
        added = [{"op": "add", "path": f"{{{{ {place} }}}}", "value": value}]
        doubt = [{"op": "add", "path": opened, "value": "the service"}] if named.startswith("new_id") else []
        effects.append({"for_each": f"[{named}]", "as": "key", "do": [*added, *doubt]})
    return effects


def find_taken(tool: ToolSpec, found: Found) -> JsonObject | None:
    """Return the rule that members of a new thing must be unique, which refusals show although no document says so.

    Members without a successful counterexample are rivals, so that only a thing with equal values in all is refused.
    """
    refused = [row for branch, row in found if branch]
    if tool.derived is None or "made" not in (let := tool.derived.data.get("let", {})) or len(refused) < PROPOSED:
        return None
    names = dict.fromkeys(name for row in refused for name in _sent(tool, let, row))
    singles = [*names][:MOST_FIELDS]
    for size in (1, 2):
        tried = [(some, *_try(tool, let, some, found)) for some in combinations(singles, size)]
        right = [some for some, _, evidence in tried if evidence["for"] >= PROPOSED and not evidence["against"]]
        if right:
            clause, evidence = _try(tool, let, tuple(dict.fromkeys(name for some in right for name in some)), found)
            is_usual = 2 * evidence["for"] >= [branch for branch, _ in found].count(evidence["says"])
            if not is_usual or len(_made_beside(tool, let, found)) < PROPOSED:
                evidence["status"] = "proposed"  # there may be another reason, such as a limit
            return {**clause, **said(escape(evidence["says"]), evidence), "evidence": evidence}
    return None


def _made_beside(tool: ToolSpec, let: JsonObject, found: Found) -> list[Observation]:
    """Return the successful rows in which the collection is known not to be empty."""
    alone = [{"check": "at(state, place[0], {}) == {}", "error": "something is there"}]
    contract = Contract.load({"let": let, "requires": alone}, where=tool.name)
    return try_clause(tool, contract, "flag", found, by="rows")[1]


def _sent(tool: ToolSpec, let: JsonObject, row: Observation) -> Iterator[str]:
    """Yield the documented members of a new thing that a call has sent, without its key."""
    returns = "{{ {k: v for k, v in made.items() if v != place[1]} }}"
    contract, given = Contract.load({"let": let, "returns": returns}, where=tool.name), scalars_of(row.args)
    sent = {repr(each) for each in given if each not in (None, "") and not isinstance(each, bool)}
    with suppress(EvaluationFailed):
        answer = open_run(contract, tool, row).assume().answer_known()
        made: Any = answer.result if answer else {}
        yield from (name for name, value in made.items() if repr(value) in sent)


def _try(tool: ToolSpec, let: JsonObject, names: Sequence[str], found: Found) -> tuple[JsonObject, JsonObject]:
    alike = " and ".join(f"each.get({name!r}) == made.get({name!r})" for name in names)
    there = f"any({alike} for each in at(state, place[0], {{}}).values())"
    given = " and ".join(f"made.get({name!r}) is not None" for name in names)
    clause: JsonObject = {"id": f"{' and '.join(names)} must be new", "when": given, "check": f"not {there}"}
    contract = Contract.load({"let": let, "requires": [{**clause, "error": "it is taken"}]}, where=tool.name)
    evidence, _ = try_clause(tool, contract, "membership", found, by="document")
    return clause, {**evidence, "by": "rows"}
