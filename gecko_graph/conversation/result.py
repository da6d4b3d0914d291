"""The result of a conversation as plain JSON; of several: similarity, turns, pass^k, cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb, fsum
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from ..masking import mask
from ..models.formatting import format_calls, format_json, format_single_change, text_of
from ..state import VERSION, JsonObject
from ..values.difference import net_changes
from ..values.origins import is_supposed
from ..values.patch import booked_patch, fold_patches
from .channels import Status, read_envelope
from .milestones.constraints import Missed, Reached, is_reached
from .milestones.goal import mean

VALUE_CHARS = 300


@dataclass(frozen=True, slots=True, repr=False)
class CaseResult:
    """A finished conversation. `record` is all of it as plain JSON, from which the properties are read."""

    record: JsonObject

    @property
    def score(self) -> float | None:
        """The similarity, from 0 to 1; None if nothing was scored."""
        return cast("float | None", self.record["score"]["similarity"])

    @property
    def milestones(self) -> list[Reached]:
        """The milestones with their similarity and the snapshot that each was matched to."""
        return cast("list[Reached]", self.record["score"]["milestones"])

    @property
    def status(self) -> Status:
        """Passed, failed, or unknown: nothing failed, but a claim could not be decided."""
        return cast("Status", self.record["score"]["status"])

    @property
    def passed(self) -> bool:
        """Whether every milestone reached its threshold, no minefield was hit, and the user gave no secret away."""
        return is_passed(self.record)

    @property
    def transcript(self) -> str:
        """The conversation, one line per message, call and change."""
        return "\n".join(self.lines())

    def lines(self, first: int = 0) -> list[str]:
        """Return the transcript's lines from a snapshot on, masked as in every report."""
        lines: list[str] = []
        for number, message in enumerate(self.record["messages"]):
            if number >= first:
                calls = [each.replace("called", "calls", 1) for each in message["calls"]]
                source = (
                    f"({', made up'.join([message['rung'], *[''] * message['made_up']])})" if message["rung"] else ""
                )
                text = " ".join(filter(None, [message["text"].strip(), *calls, source]))
                lines.append(f"{number:>3} {message['sender']} -> {message['recipient']}: {text or '(nothing)'}")
                lines += [f"      {change}" for change in message["changes"]]
        return list(map(mask, lines))

    def __repr__(self) -> str:
        return self.explain()

    def explain(self) -> str:
        """Return the missed milestones, and the conversation from the first of them on."""
        score = self.record["score"]
        milestones: list[Reached] = score["milestones"]
        missed = [number for number, each in enumerate(milestones) if not is_reached(each)]
        stepped = [each for each in score["minefields"] if each["similarity"] > 0]
        similarity = "unscored" if score["similarity"] is None else f"similarity {score['similarity']:.3f}"
        trial = f"trial {self.record['trial'] + 1}" if self.record["trial"] else ""
        held = ", ".join(filter(None, [self.record["case"], self.record["augmentation"], trial]))
        early = "" if score["end"] == "ended" else ": ".join(filter(None, [score["end"], score["reason"]]))
        lines = [f"{held}: {self.status}, {similarity}{'; the conversation ended early: ' if early else ''}{early}"]
        lines += [line for number in missed for line in _format_reached("missed milestone", milestones[number])]
        lines += [line for each in stepped for line in _format_reached("stepped on minefield", each)]
        lines += filter(None, [find_fault(self.record)])
        before = milestones[: missed[0]] if missed else []
        first = max((each["snapshot"] or 0 for each in before), default=0)
        return "\n".join([*lines, "", *self.lines(first)])


def find_fault(record: Mapping[str, Any]) -> str:
    """Return the user's faults, not the agent's: leaks, and the auditor's findings; "" if there are none."""
    score = record["score"]
    audit = score.get("audit") or {}
    leaks = [f"gave away {leak['text']!r} (message {leak['message']})" for leak in score["leaks"]]
    faults = [word for key, word in _FAULTS.items() if audit.get(key)]
    audited = [f"{' and '.join(faults)}: {audit['reason']}"] if faults else []
    told = [*leaks, *audited, *(["did not answer"] if score["end"] == "user_failed" else [])]
    return f"the user {'; '.join(told)}" if told else ""


def _format_reached(what: str, one: Reached) -> list[str]:
    """Return a line for a milestone, `missed milestone told: 0.412 (message 3)`, and one for each differing part."""
    place = f" (message {one['nearest']})" if "nearest" in one else ""
    return [f"{what} {one['id']}: {one['similarity']:.3f}{place}", *map(format_missed, one.get("missed", ()))]


def format_missed(missed: Missed) -> str:
    """Return the wanted and the found value in one line."""
    wanted, found = (mask(format_json(missed[key], budget=VALUE_CHARS)) for key in ("wanted", "found"))
    match missed["part"]:
        case "guard":
            return f"  {missed['place']} changed: wanted {wanted}, found {found}"
        case "order":
            reached = "not reached" if missed["found"] is None else f"reached at message {found}"
            return f"  milestone {missed['place']}: expected {missed['wanted']}, {reached}"
        case "claim":
            why = "not decided" if missed.get("unsure") else missed.get("reason") or "not said"
            return f"  {missed['place']} {wanted}: {why}" + (f"; compared with {found}" if missed["found"] else "")
    where = " ".join(filter(None, [missed["part"], missed["place"]]))
    return f"  {where}: {'forbidden' if missed['similarity'] == 1 else 'wanted'} {wanted}, found {found}"


_FAULTS = {
    "invented": "invented something",
    "left_goal": "left the goal",
    "gave_away": "gave a secret away",
    "broke_instructions": "broke the instructions",
}


def is_passed(record: Mapping[str, Any]) -> bool:
    return bool(record["score"]["status"] == "passed")


def format_invented(tools: Iterable[str], invents: Iterable[str]) -> str:
    """Return the number and names of tools that answer with invented data; "" if none does."""
    named = sorted(set(invents))
    return f"{len(named)} of {len({*tools})} tools answer with invented data: {', '.join(named)}" if named else ""


def read_conversation(output: Mapping[str, Any], head: Mapping[str, Any] | None = None) -> CaseResult:
    plain: JsonObject = {"v": VERSION, "case": "conversation", "augmentation": "", "trial": 0, "file": "", "idle": None}
    messages = describe_messages(output["messages"], output["world"])
    found = {"categories": [], "tools": [], "invents": [], "score": output["score"], "messages": messages}
    return CaseResult({**plain, **found, **(head or {})})


def describe_messages(messages: Sequence[AnyMessage], world: JsonObject) -> list[JsonObject]:
    """Return the messages as plain JSON, each with its calls and the state's changes by it."""
    described: list[JsonObject] = []
    state, done = world["start"], 0
    for message in messages:
        envelope = read_envelope(message)
        steps = world["log"][done : envelope["steps"]] if envelope["steps"] is not None else []
        done += len(steps)
        before = state
        state = fold_patches(state, [booked_patch(step["outcome"]) for step in steps if "outcome" in step])
        last = steps[-1].get("outcome") if steps and isinstance(message, ToolMessage) else None
        described.append(
            {
                "sender": envelope["sender"],
                "recipient": envelope["recipient"],
                "text": text_of(message),
                "calls": format_calls(message) if isinstance(message, AIMessage) else [],
                "rung": last["rung"] if last else "",
                "made_up": last is not None and is_supposed(last),
                "error": isinstance(message, ToolMessage) and message.status == "error",
                "changes": [format_single_change(each) for each in net_changes(before, state)],
            }
        )
    return described


# several conversations (ToolSandbox, tables 5 and 11) ---------------------------------------------------------------

ALL = "all"


class Group(NamedTuple):
    """Means over several conversations; None if there are no values.

    `idle` is the score of doing nothing, `at_fault` the number of failures caused by the simulated user.
    """

    name: str
    held: int
    scored: int
    similarity: float | None
    idle: float | None
    passed: int
    unknown: int
    at_fault: int
    turns: float | None
    calls: float | None


class Report(NamedTuple):
    categories: list[Group]
    augmentations: list[Group]
    pass_k: list[float]
    cost: float | None
    tokens: int
    leaks: int
    at_fault: list[str]
    races: int
    failed: int
    broken: int
    invented: str


def build_report(records: Sequence[JsonObject]) -> Report:
    usages = [usage for record in records for usage in record["score"]["usage"].values()]
    costs = [usage["cost"] for usage in usages if usage.get("cost") is not None]
    return Report(
        categories=_group(records, lambda record: record["categories"] or ["(none)"]),
        augmentations=_group(records, lambda record: [record["augmentation"] or "as written"])[:-1],
        pass_k=find_pass_k(records),
        cost=fsum(costs) if costs else None,
        tokens=sum(usage["input_tokens"] + usage["output_tokens"] for usage in usages),
        leaks=sum(len(record["score"]["leaks"]) for record in records),
        at_fault=_find_at_fault(records),
        races=sum(record["score"]["races"] for record in records),
        failed=sum(record["score"]["status"] == "failed" for record in records),
        broken=sum(record["score"]["end"] in ("failed", "agent_failed", "user_failed") for record in records),
        invented=format_invented(
            *([name for record in records for name in record[key]] for key in ("tools", "invents"))
        ),
    )


def _find_at_fault(records: Sequence[JsonObject]) -> list[str]:
    """Return the failed cases in which the user was at fault."""
    return [each["case"] for each in records if each["score"]["status"] == "failed" and find_fault(each)]


def _group(records: Sequence[JsonObject], names: Callable[[JsonObject], Iterable[str]]) -> list[Group]:
    groups: dict[str, list[JsonObject]] = {}
    for record in records:
        for name in names(record):
            groups.setdefault(str(name), []).append(record)
    return [_mean(name, some) for name, some in (*sorted(groups.items()), (ALL, list(records)))]


def _mean(name: str, records: Sequence[JsonObject]) -> Group:
    scores = [record["score"] for record in records]
    similarities = [score["similarity"] for score in scores if score["similarity"] is not None]
    return Group(
        name,
        len(records),
        len(similarities),
        mean(similarities),
        mean([record["idle"] for record in records if record["idle"] is not None]),
        sum(map(is_passed, records)),
        sum(score["status"] == "unknown" for score in scores),
        len(_find_at_fault(records)),
        mean([score["turns"] for score in scores]),
        mean([score["calls"] for score in scores]),
    )


def find_pass_k(records: Sequence[JsonObject]) -> list[float]:
    """Return pass^1 to pass^n: the probability that k trials of a case all succeed (tau-bench, arXiv 2406.12045).

    n is the smallest number of trials of a case; the estimate is unbiased over the choices of k trials.
    """
    trials: dict[tuple[str, str], list[bool]] = {}
    for record in records:
        trials.setdefault((record["file"], record["augmentation"]), []).append(is_passed(record))
    least = min(map(len, trials.values()), default=0)
    return [
        fsum(comb(sum(each), k) / comb(len(each), k) for each in trials.values()) / len(trials)
        for k in range(1, least + 1)
    ]


def as_json(report: Report, records: Sequence[JsonObject]) -> Mapping[str, object]:
    tables = {name: [one._asdict() for one in getattr(report, name)] for name in ("categories", "augmentations")}
    return {**report._asdict(), **tables, "conversations": list(records)}
