"""Derive milestones from a successful conversation: the goals for other good conversations on the same task.

The calls are repeated, which shows what matters: calls that fail without an earlier call depend on it, and columns that
differ with other random values cannot be in a milestone. There is a milestone for each write with lasting values, or
that such a write needs; for each answer with values from results; and for the end, at which exactly these rows have
changed. The order of other calls is left open.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage

from ..errors import GeckoError
from ..models.formatting import text_of
from ..state import Json, JsonObject, Step
from ..tools import Toolkit
from ..values.digest import clone
from ..values.finding import Leaves
from ..values.origins import is_supposed
from ..values.patch import booked_patch
from ..values.places import pointer, scalars
from ..world.derived import list_lengths
from ..world.given import Sources
from ..world.provenance import is_planned, trace
from .changed import UNWATCHED, Rerun, TableChange, attribute, compare_table, find_differences, find_tables
from .channels import find_user_texts, is_answer, read_envelope
from .milestones.agreement import asks_to_know
from .milestones.format import build_goal
from .milestones.goal import Goal, Score
from .milestones.measures import mentions
from .milestones.tables import REST, find_names, find_table
from .score import build_trajectory, find_computed, find_grounded, find_named, find_statements, find_taken
from .user import CLOCK

SHORTEST = 2
_CONDITION = re.compile(r"\b(?:if|unless|whether|when|in case|depending|otherwise)\b", re.I)
_TITLE = re.compile(r"^(?:dr|mrs?|ms|prof)\b\.? ", re.I)
SUCCESS = 1.0 - 1e-9
"""Least score of a successful conversation on a derived goal, whose milestones are met completely or not at all."""


def derive_milestones(toolkit: Toolkit, conversation: Mapping[str, Any]) -> Goal:
    """Derive milestones from one successful conversation.

    Args:
        toolkit: Its tools; those that write need contracts or functions.
        conversation: The output of `create_conversation`: `messages` and `world`.

    Returns:
        A goal that scores this conversation, and others with the same outcome, 1.0.

    Raises:
        GeckoError: A call fails when it is repeated, for example since a model had answered it; or the conversation
            does not meet one of its own milestones, which is named.
    """
    return build_goal(describe_milestones(toolkit, conversation), [], conversation["world"]["start"])


def describe_milestones(
    toolkit: Toolkit, conversation: Mapping[str, Any], *, clock_stands: bool = False
) -> list[JsonObject]:
    """Derive milestones as `derive_milestones` does, in the form of a scenario's file.

    With `clock_stands` they are for worlds with a fixed clock, so that values computed from it are wanted literally.
    """
    written = clone(_Derivation(toolkit, conversation, clock_stands=clock_stands).describe())
    score = score_conversation(build_goal(written, [], conversation["world"]["start"]), toolkit, conversation)
    if missed := next((each for each in score["milestones"] if each["similarity"] < SUCCESS), None):
        parts = "; ".join(each["place"] or each["part"] for each in missed.get("missed", ()))
        raise GeckoError(f"milestones: the conversation itself does not reach {missed['id']} ({parts}): take another")
    return written


def score_conversation(goal: Goal, toolkit: Toolkit, conversation: Mapping[str, Any]) -> Score:
    world = conversation["world"]
    tables = find_names(world["start"], goal.tables)
    return goal.score(build_trajectory(conversation["messages"], world, tables, toolkit))


class _Derivation:
    def __init__(self, toolkit: Toolkit, conversation: Mapping[str, Any], *, clock_stands: bool) -> None:
        if not isinstance(conversation, Mapping) or not {"messages", "world"} <= conversation.keys():
            given = type(conversation).__name__
            raise GeckoError(f"expected the output of a conversation's graph, got {given} without one")
        world = conversation["world"]
        self._messages: Sequence[AnyMessage] = conversation["messages"]
        self._start: JsonObject = world["start"]
        self._log: list[Step] = world["log"]
        self._same = Rerun(toolkit, self._start, self._log).run()
        made_up = (step for step in self._log if "outcome" in step and step["outcome"]["patch"])
        made_up = (step for step in made_up if is_supposed(step["outcome"]))
        if failed := self._same.find_failed() or next(made_up, None):
            name = failed["call"]["name"]
            raise GeckoError(f"milestones: {name} has another result when it is called again; write a contract for it")
        self._drawn = Rerun(toolkit, self._start, self._log, seed=1).run()
        later = Rerun(toolkit, self._start, self._log, seed=1, minutes=0 if clock_stands else 1).run()
        self._other = self._drawn if later.find_failed() else later
        self._grounded = find_grounded(self._messages, self._log, toolkit)
        self._end: JsonObject = self._same.states[-1]
        self._changers = [
            number
            for number, step in enumerate(self._same.steps, 1)
            if is_planned(step) and booked_patch(step["outcome"]) and step["call"]["name"] != CLOCK
        ]
        self._read = dict(self._find_results())
        called = {self._log[number - 1]["call"]["name"] for number in self._read}
        self._readers = [tool.name for tool in toolkit if tool.reads or tool.name in called]
        self._user_texts = find_user_texts(self._messages)
        said = [message for message in self._messages if read_envelope(message)["sender"] == "user"]
        sources = Sources(conversation=said, state={}, reading=toolkit.names)
        self._traced = [step for step in self._log if step["call"]["name"] in toolkit]
        self._origins = trace(self._traced, sources, lambda name: toolkit[name].parameters).origins

    def describe(self) -> list[JsonObject]:
        """Return the milestones: writes, answers, the end."""
        enabled, free = self._find_enabled()
        again = self._other.states[0], self._other.states[-1]
        tables = find_tables(self._start, self._end, free, again)
        changes = [compare_table(at, self._start, self._end, again) for at in tables]
        writes = self._find_writes(changes)
        ids = {number: f"{self._log[number - 1]['call']['name']}_{number}" for number in sorted(writes)}
        looked = {
            number: f"{self._log[number - 1]['call']['name']}_{number}" for number in self._find_conditions(writes)
        }
        made: list[JsonObject] = [
            {"id": id_, "after": [], "call": {"name": self._log[number - 1]["call"]["name"]}, "unchanged": []}
            for number, id_ in looked.items()
        ]
        made += [
            {
                "id": ids[number],
                "after": [*looked.values(), *(ids[at] for at in sorted(writes) if number in enabled.get(at, ()))],
                "state": writes[number],
                **self._describe_read(number, [at for at in self._changers if number in enabled.get(at, ())]),
                "unchanged": [],
            }
            for number in sorted(writes)
        ]
        for count, (entry, numbers) in enumerate(self._find_answers(writes), 1):
            before = [ids[other] for other in sorted(writes) if enabled.get(other, set()) & numbers]
            made.append({"id": f"answer_{count}", "after": before, **entry, "unchanged": []})
        if not made:
            raise GeckoError("milestones: the agent has changed and answered nothing: use a successful conversation")
        if "mentions" not in made[-1].get("message", {"mentions": []}):
            made[-1]["after"] = [each["id"] for each in made[:-1]]
        return [*made, self._describe_end(changes, free)]

    def _find_enabled(self) -> tuple[dict[int, set[int]], set[str]]:
        """Return for each write the calls that fail without it, and the tables that only store positions for writes."""
        enabled: dict[int, set[int]] = {}
        free: set[str] = set()
        for number in self._changers:
            later = self._same.steps[number:]
            without = self._same.without(number - 1)
            pairs = list(enumerate(zip(later, without, strict=True), number + 1))
            enabled[number] = {at for at, (one, other) in pairs if is_planned(one) and not is_planned(other)}
            if any(_is_elsewhere(one, other) for _, (one, other) in pairs):
                free |= set(self._find_pointers(number))
        kept = {number for number in self._changers if not set(self._find_changed(number)) <= free}
        return {number: enabled[number] for number in kept}, free

    def _find_changed(self, number: int) -> list[str]:
        return find_tables(self._same.states[number - 1], self._same.states[number])

    def _find_pointers(self, number: int) -> Iterator[str]:
        """Yield the tables that a step has changed, if all of them are scalars or lists of scalars."""
        tables, states = self._find_changed(number), self._same.states[number - 1 : number + 1]
        rows = [row for at in tables for state in states for row in find_table(state, at)]
        if all(set(row) == {"value"} and not isinstance(row["value"], dict | list) for row in rows):
            yield from tables

    def _find_writes(self, changes: Sequence[TableChange]) -> dict[int, list[JsonObject]]:
        """Return the lasting changes of each step, as a milestone's state."""
        writes: dict[int, list[JsonObject]] = {}
        for change in changes:
            measures = self._choose_measures(change)
            for number, rows in attribute(self._start, self._same.steps, change).items():
                entry = {"at": change.at, "includes": rows, **_used(measures, rows)}
                writes.setdefault(number, []).append(entry)
            for number in self._changers if change.describe()[0] == "removal" else ():
                before, after = (find_table(self._same.states[at], change.at) for at in (number - 1, number))
                if gone := [row for row in change.gone if row in before and row not in after]:
                    writes.setdefault(number, []).append({"at": change.at, "lacks": gone})
        return writes

    def _choose_measures(self, change: TableChange) -> dict[str, str]:
        """Return `paraphrase` for columns with texts in the agent's own words."""
        quoted = {str(value) for _, value in scalars([self._start, [_result(step) for step in self._log]])}
        cells = ((column, value) for _, row in change.new for column, value in row.items())
        texts = ((column, value) for column, value in cells if isinstance(value, str) and " " in value.strip())
        own = {column for column, value in texts if value not in quoted and not self._is_quoted(value)}
        return dict.fromkeys(sorted(own), "paraphrase")

    def _is_quoted(self, value: str) -> bool:
        marks = ("''", '""', "``", "\u201c\u201d", "\u2018\u2019")
        return any(f"{mark[0]}{value}{mark[1]}" in " ".join(self._user_texts) for mark in marks)

    def _find_answers(self, writes: Mapping[int, Json]) -> Iterator[tuple[JsonObject, set[int]]]:
        """Yield the values that the answers need, and the calls that gave them.

        In a turn without writes the answer must depend on some read; the last answer is always a milestone.
        """
        known: list[Json] = [*writes.values(), *(self._log[number - 1]["call"]["args"] for number in sorted(writes))]
        mentioned: list[Json] = []
        begun, wanted, is_told, said = 0, None, False, ""
        for message in self._messages:
            until = read_envelope(message)["steps"]
            until = len(self._log) if until is None else until
            if read_envelope(message)["sender"] == "user":
                said = text_of(message)
                known, begun = [*known, said], until
            elif is_answer(message) and text_of(message).strip():
                turn, wrote = range(begun, until), any(begun < number <= until for number in writes)
                wanted, taken, used = self._describe_answer(message, said, [known, mentioned], turn)
                mentioned += taken
                is_told = bool(wanted.keys() - {"claims"} or (wanted and (wrote or asks_to_know(said))))
                calls = [number for number in self._read if begun < number <= until]
                if not (writes or wanted.keys() - {"claims"}) and self._is_seen(message, turn.stop):
                    wanted = {**wanted, "unseen": []}
                if calls and not wrote and "seen" not in wanted:
                    yield {"call": [{"name": name} for name in self._readers]}, {calls[-1]}
                if is_told:
                    yield {"message": {"sender": "agent", "recipient": "user", **wanted}}, used
        if wanted is not None and not is_told:
            yield {"message": {"sender": "agent", "recipient": "user", **wanted}}, set()

    def _describe_answer(
        self, message: AnyMessage, asked: str, before: Sequence[Sequence[Json]], turn: range
    ) -> tuple[JsonObject, list[Json], set[int]]:
        """Return an answer's needs: the values that it takes from results, and the calls that have them.

        It must mention the values of fields that the user has asked for by name; if it takes only one value, that one.
        A value of an earlier answer (`before` are the known and the mentioned values) is needed only if the turn has
        read it again.
        """
        known, mentioned = before
        text, results = find_statements(text_of(message)), [*self._read_until(turn.stop).values()]
        again = [result for at, result in self._read.items() if at - 1 in turn]
        found = find_taken(text, results, known)
        taken = [value for value in found if value not in mentioned or mentions(again, value, {}) == 1.0]
        everything: list[Json] = [*known, *found, *(_result(step) for step in self._log[: turn.stop])]
        taken += find_computed(text, everything) if results else []
        named = find_named(asked, [_result(step) for step in self._log[: turn.stop]], taken)
        needed = named or (taken if len(taken) == 1 else [])
        real = self._read_until(turn.stop, grounded=True).values()
        seen = [value for value in needed if mentions([*real], value, {}) == 1.0]
        used = {at for at, result in self._read.items() if any(mentions(result, value, {}) == 1.0 for value in seen)}
        plain = [_TITLE.sub("", value) if isinstance(value, str) else value for value in needed]
        told = plain if asks_to_know(asked) else []
        kind = "agrees" if told else "answers"
        claims = [{kind: text.strip()}] if any(map(str.isalnum, text)) else []
        seen = seen if told or not any(number - 1 in turn for number in self._changers) else []
        parts = (("mentions", told), ("seen", seen), ("claims", claims))
        return {key: values for key, values in parts if values}, taken, used if told else set()

    def _is_seen(self, message: AnyMessage, until: int) -> bool:
        """Return whether all figures of an answer are from the user or from results without guesses.

        If a conversation's own calls depend on guesses, it cannot require more of others.
        """
        real = self._read_until(until, grounded=True).values()
        counted = [number for result in real for number in list_lengths(result)]
        computed = find_computed(find_statements(text_of(message)), [*self._user_texts, *real, *counted])
        return len(self._grounded) == len(self._log) and not computed

    def _read_until(self, last: int, *, grounded: bool = False) -> dict[int, Json]:
        """Return the results of reads up to a step, by number; if `grounded`, only those without made-up sources."""
        return {
            at: result
            for at, result in self._read.items()
            if at <= last and (not grounded or self._log[at - 1]["call"]["id"] in self._grounded)
        }

    def _describe_read(self, number: int, before: Sequence[int]) -> JsonObject:
        """Return the reads that a write needs: for arguments that are in results and were not given.

        Arguments of the earlier writes that it needs count as well.
        """
        read, calls = [*self._read_until(number, grounded=True).values()], [*before, number]
        args = [value for at in calls for _, value in scalars(self._log[at - 1]["call"]["args"])]
        texts = [each for each in args if isinstance(each, str)]
        texts += [each for at in calls for each in self._find_operands(at)]
        new = (value for value in texts if mentions(self._user_texts, value, {}) < 1.0)
        taken = [value for value in dict.fromkeys(new) if mentions(read, value, {}) == 1.0]
        return {"message": {"seen": taken}} if taken else {}

    def _find_operands(self, number: int) -> Iterator[str]:
        """Yield the values of results from which a write's arguments were computed."""
        for origins in self._origins.get(self._log[number - 1]["call"]["id"], {}).values():
            derived = [each for each in origins if each["kind"] == "derived" and each["from"] == "result"]
            for each in derived:
                result = _result(self._traced[each["step"] - 1])
                places = {pointer(place): value for place, value in scalars(result)}
                if isinstance(value := places.get(each["path"]), str):
                    yield value

    def _find_conditions(self, writes: Collection[int]) -> Iterator[int]:
        """Yield the reads before the first write whose results are a condition in the user's words."""
        told = Leaves([text for text in self._user_texts if _CONDITION.search(text)], keys=False)
        for number, result in self._read.items():
            texts = [value for value in result if isinstance(value, str) and len(value) > SHORTEST]
            if number < min(writes, default=0) and any(told.holds(value, "normal") for value in texts):
                yield number

    def _find_results(self) -> Iterator[tuple[int, Json]]:
        for number, (step, other) in enumerate(zip(self._same.steps, self._drawn.steps, strict=True), 1):
            if is_planned(step) and number not in self._changers and step["call"]["name"] != CLOCK:
                drawn = {place for place, _, _ in find_differences(_result(step), _result(other))}
                yield number, [value for place, value in scalars(_result(step)) if place not in drawn]

    def _describe_end(self, changes: Sequence[TableChange], free: set[str]) -> JsonObject:
        state = []
        for change in changes:
            kind, rows = change.describe()
            state.append({"at": change.at, kind: rows, **_used(self._choose_measures(change), rows)})
        rest = REST + ", ".join([*(change.at for change in changes), *sorted(free), *UNWATCHED])
        return {"id": "end", "after": [], "last": True, "state": state, "unchanged": [rest]}


def _is_elsewhere(one: Step, other: Step) -> bool:
    """Return whether a successful call has written below other paths than before."""
    if not (is_planned(one) and is_planned(other)):
        return False
    before, after = (
        {
            tuple(part for part in each["path"].split("/")[:-1] if not part.isdigit())
            for each in booked_patch(step["outcome"])
        }
        for step in (one, other)
    )
    return bool(before) and bool(after) and before != after


def _result(step: Step) -> Json:
    return step["outcome"]["result"] if "outcome" in step else None


def _used(measures: Mapping[str, str], rows: Sequence[JsonObject]) -> JsonObject:
    used = {column: measure for column, measure in measures.items() if any(column in row for row in rows)}
    return {"measures": used} if used else {}
