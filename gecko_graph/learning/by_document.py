"""Test derived contracts by real calls: rules are promoted or withdrawn, blanks filled."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ..contracts.contract import Contract
from ..errors import EvaluationFailed
from ..state import Json, JsonObject
from ..tools import Toolkit, ToolSpec
from ..values.difference import json_equal
from ..values.observation import Observation
from ..values.places import pointer, scalars, scalars_of
from ..world.by_document import is_time, place_of
from ..world.followed import open_run
from .follows import find_follows, find_taken
from .replay import NAMED, try_clause, without_explained
from .rules import PROPOSED

Found = Sequence[tuple[str, Observation]]


def add_document_evidence(
    tool: ToolSpec, toolkit: Toolkit, mined: JsonObject, found: Found, unknown: list[str]
) -> tuple[JsonObject, list[str]]:
    """Return the mined contract of a tool and its unknown parts, completed by evidence on its derived contract.

    Requirements become rules if rows decide on them. The evidence also has members that equal the `sent` ones or not,
    members that the service has `filled`, and effects that `follows` a success on other collections.
    """
    if tool.derived is None or (tool.contract and {"requires", "effects", "returns"} & tool.contract.data.keys()):
        return mined, unknown
    known, let, rules = tool.derived.rules(), tool.derived.data.get("let", {}), list[JsonObject]()
    for clause in known.data["requires"] if known else ():
        says = {key: each for key, each in clause.items() if key != "evidence"}
        contract = Contract.load({"let": let, "requires": [says]}, where=tool.name)
        evidence, _ = try_clause(tool, contract, clause["evidence"]["kind"], found, by="document")
        rules += [{**says, "evidence": evidence}] if evidence["for"] or evidence["against"] else []
    if taken := find_taken(tool, found):
        rules = [*without_explained(tool, rules, [taken], [row for _, row in found], let), taken]
    sure = [{**each, "evidence": {}} for each in rules if each["evidence"]["status"] == "established"]
    rest = without_explained(tool, mined.get("requires", []), sure, [row for _, row in found], let)
    told = tuple(f" a known reason: {each['evidence']['says']}" for each in rules if not each["evidence"]["against"])
    left = [line for line in unknown if not (told and line.endswith(told))]
    follows = find_follows(tool, toolkit, found)
    evidence = {**mined.get("evidence", {}), "unknown": left, **_compare(tool, found)}
    evidence |= {"follows": follows} if follows else {}
    return {
        **mined,
        **({"let": let} if rules or follows else {}),
        "requires": [*rules, *rest],
        "evidence": evidence,
    }, left


def _compare(tool: ToolSpec, found: Found) -> JsonObject:
    """Return the evidence of successful rows: on members that were `sent`, and, by place, on `filled` ones."""
    right, wrong, filled = 0, dict[str, list[str]](), dict[str, JsonObject]()
    for (place, how), seen in _seen(tool, found).items():
        if how == "sent" and tool.derived and "thing" in tool.derived.data["evidence"]:
            odd = [row for old, new, row in seen if not json_equal(old, new)]
            right += len(seen) - len(odd)
            wrong |= {place: odd[:NAMED]} if odd else {}
        if len(seen) >= PROPOSED and (made := _explain([pair for *pair, _ in seen], how == "blank")):
            filled[place] = {**made, "for": len(seen)}
    sent: JsonObject = {"sent": {"for": right, "against": wrong}} if right or wrong else {}
    return {**sent, **({"filled": filled} if filled else {})}


def _seen(tool: ToolSpec, found: Found) -> dict[tuple[str, str], list[tuple[Json, Json, str]]]:
    """Return the derived value at places of results, the real one, and the row; keyed by `sent`, `blank` or `held`."""
    values = dict[tuple[str, str], list[tuple[Json, Json, str]]]()
    for row in (row for branch, row in found if not branch and row.before is not None and tool.derived):
        with suppress(EvaluationFailed):
            answer = open_run(tool.derived.contract, tool, row).assume().answer_known()  # type: ignore[union-attr]
            real, given = {pointer(at): new for at, new in scalars(row.result)}, {*map(repr, scalars_of(row.args))}
            for path, old in ((pointer(at), old) for at, old in scalars(answer and answer.result)):
                how = "blank" if answer and path in answer.blanks else "sent" if repr(old) in given else "held"
                is_told = "*" not in (place := place_of(path)) and tool.derived.kind != "create"  # type: ignore[union-attr]
                if path in real and (is_told or how != "held"):
                    values.setdefault((place, how), []).append((old, real[path], row.digest[:12]))
    return values


def _explain(seen: Sequence[Sequence[Json]], is_blank: bool) -> JsonObject | None:
    """Return how a service fills a member, by expected and real values: equal values, a counter, or changes."""
    reals, moved = [new for _, new in seen], [new for old, new in seen if not json_equal(old, new)]
    if is_blank:
        is_alike = moved and (is_time(*reals) or all(json_equal(reals[0], each) for each in reals))
        return {"by": "value", "value": max(reals, key=str)} if is_alike else None
    if all(type(new) is int and type(old) is int and new == old + 1 for old, new in seen):
        return {"by": "counts", "value": min(reals, key=str)}
    is_moving = 2 * len(moved) >= len(seen) and not is_time(*reals)
    return {"by": "changes", "value": moved[-1]} if is_moving else None
