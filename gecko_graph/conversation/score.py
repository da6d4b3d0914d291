"""score: a finished conversation's score, its user's faults, and the snapshots for both.

Milestones are matched to snapshots, one per message between the parties, from the user's first one on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage

from ..models.ask import AnyAsk, Ask, QuestionId, Reply
from ..models.formatting import format_conversation, text_of
from ..models.node import NodeScope
from ..models.roles import AuditReply, ClaimReply
from ..models.usage import add_usage
from ..state import Json, JsonObject, Note, Step, Usage
from ..tools import Toolkit
from ..values.finding import NUMBERING, Leaves, atoms_of, spell
from ..values.notes import notes_of
from ..values.patch import booked_patch, fold_patches, tokens
from ..values.places import clock, scalars
from ..world.derived import list_lengths
from ..world.given import Sources
from ..world.provenance import is_planned, trace
from .channels import ConversationState, End, JudgedClaim, Leak, Status, read_calls, read_envelope, select_view
from .english import WORDS, phrase, topic_of
from .milestones.constraints import is_reached
from .milestones.goal import Goal, Score
from .milestones.measures import NONE, Verdicts, claim_key
from .milestones.tables import MESSAGE, REST, SEEN, WRITES, Snapshot, Table, find_table
from .quantities import find_figures
from .user import CLOCK, UserEntry, describe_user, find_leaks

CONVERSATION_CHARS = 40_000
_LETTERS, _CAMEL = re.compile(r"[^\W\d_]+"), re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
LEAST_WORD, LONGEST = 4, 400
_QUESTION = re.compile(r"(?<![^.!?\n])[^.!?\n]*+\?")  # anchored at the sentence's beginning, to stay linear


def score(
    state: ConversationState,
    scope: NodeScope,
    *,
    goal: Goal,
    tables: list[str],
    toolkit: Toolkit,
    spec: UserEntry,
    kept: Verdicts,
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Score the conversation by its milestones, and let the auditor check the user, if there is one.

    `kept` are earlier verdicts on claims, which are not asked for again.
    """
    messages, world = state.get("messages", []), state["world"]
    trajectory = build_trajectory(messages, world, tables, toolkit, kept)
    found, claims, spent = yield from judge_claims(goal, trajectory, scope)
    end, leaks = state.get("end") or "max_messages", find_leaks(state, spec.must_not_say)
    calls = [step for step in world["log"] if step["call"]["name"] != CLOCK]
    failed = sum("outcome" not in step or step["outcome"]["status"] == "error" for step in calls)
    result: Any = {
        **found,
        "status": find_status(found, end, leaks),
        "end": end,
        "reason": state.get("reason", ""),
        "turns": sum(read_envelope(message)["sender"] != "system" for message in messages),
        "calls": len(calls),
        "failed_calls": failed,
        "races": state.get("races", 0),
        "leaks": leaks,
        "usage": add_usage(add_usage(state.get("usage", {}), world["usage"]), spent),
        **({"claims": claims} if claims else {}),
    }
    if scope.has_model("auditor"):
        shown = format_conversation(select_view(state["messages"], "user"), budget=CONVERSATION_CHARS)
        variables = {**describe_user(spec), "conversation": shown}
        (reply,) = yield [Ask("auditor", variables, AuditReply, QuestionId())]
        result["usage"] = add_usage(result["usage"], {"auditor": reply.usage})
        if isinstance(reply.value, AuditReply):
            result["audit"] = reply.value.model_dump()
    return {"score": result}


def judge_claims(
    goal: Goal, trajectory: Sequence[Snapshot], scope: NodeScope
) -> Generator[list[AnyAsk], list[Reply], tuple[Score, list[JudgedClaim], Usage]]:
    """Score a conversation; the role `claim_judge`, if it has a model, decides the claims that rules leave open.

    It may overrule a rule's `broken`, and is asked about that only if nothing else is missed. A verdict may change the
    message that matches a milestone, so it is asked until no claim is open.
    """
    asked: list[JudgedClaim] = []
    usage: Usage = {}
    failed: set[str] = set()
    while True:
        found = goal.score(trajectory)
        open_ = dict(_find_undecided(found, trajectory)) if scope.has_model("claim_judge") else {}
        open_ = {key: each for key, each in open_.items() if key not in failed}
        if not open_:
            return found, asked, usage
        replies = yield [replace(ask_claim(*each), band=scope.context.band) for each in open_.values()]
        for (key, (claim, cell)), reply in zip(open_.items(), replies, strict=True):
            usage = add_usage(usage, {"claim_judge": reply.usage})
            if not isinstance(reply.value, ClaimReply):
                failed.add(key)
                continue
            verdict = "unsure" if reply.value.unsure else "holds" if reply.value.met else "broken"
            cell["decided"][key] = [verdict, reply.value.sentence, reply.value.reason]
            quoted = reply.value.sentence, reply.value.reason
            judged: Any = {"key": key, "claim": claim, "verdict": verdict, "sentence": quoted[0], "reason": quoted[1]}
            asked.append(judged | ({} if (p := reply.value.p) is None else {"p": p}))


def _find_undecided(
    found: Score, trajectory: Sequence[Snapshot]
) -> Iterator[tuple[str, tuple[dict[str, str], JsonObject]]]:
    """Yield the undecided claims of milestones by key, with the message that each was compared with.

    A claim that is broken by rule only if no other part is missed, and the answer is not empty.
    """
    for each in found["milestones"]:
        alone = all(missed["part"] == "claim" for missed in each.get("missed", ()))
        for missed in each.get("missed", ()):
            if missed["part"] == "claim" and (alone or missed.get("unsure")) and "nearest" in each:
                claim, cell = {missed["place"]: missed["wanted"]}, trajectory[each["nearest"]][MESSAGE][0]["claims"]
                if (key := claim_key(claim, cell)) not in cell["decided"] and any(map(str.isalnum, cell["answer"])):
                    yield key, (claim, cell)


def ask_claim(claim: JsonObject, cell: JsonObject) -> Ask:
    """Build the question to the claim judge."""
    ((kind, text),) = claim.items()
    variables = {"claim": f"{kind}: {text}", "answer": cell["answer"], "asked": "\n".join(cell["asked"])}
    variables |= {"now": cell["now"], "policy": cell["policy"]}
    return Ask("claim_judge", variables, ClaimReply, QuestionId())


def find_status(found: Score, end: End, leaks: Sequence[Leak]) -> Status:
    """Return the status of a conversation.

    It passes if every milestone reaches its threshold, no minefield was hit, and the user has given nothing away;
    without milestones, if it ended by itself. It is unknown if milestones are missed only due to undecided claims.
    """
    missed = [each for each in found["milestones"] if not is_reached(each)]
    undecided = [each for each in missed if each.get("missed") and all(one.get("unsure") for one in each["missed"])]
    early = not found["milestones"] and end != "ended"
    if leaks or early or found["minefield_similarity"] or len(undecided) < len(missed):
        return "failed"
    return "unknown" if missed else "passed"


def build_trajectory(
    messages: Sequence[AnyMessage], world: JsonObject, tables: Sequence[str], toolkit: Toolkit, kept: Verdicts = NONE
) -> list[Snapshot]:
    """Return the snapshots of the tables, from the user's first message on.

    `world` is the world's final snapshot, whose log gives the states in between; `kept` are verdicts on claims.
    """
    grounded = find_grounded(messages, world["log"], toolkit) if SEEN in tables else None
    return list(_Fold(world, tables, grounded).snapshots(messages, {**kept}))


def find_grounded(messages: Sequence[AnyMessage], log: Sequence[Step], toolkit: Toolkit) -> set[str]:
    """Return the ids of the calls whose results count, i.e. not of reads with a made-up argument.

    Results derived from such reads do not count either. A failed guess has no effect, and a write's changes are
    compared anyway. Optional arguments are ignored, since they only narrow the result: limits, price ranges.
    """
    user_messages = [message for message in messages if read_envelope(message)["sender"] == "user"]
    steps = [step for step in log if step["call"]["name"] in toolkit and "outcome" in step]
    reads = {step["call"]["id"] for step in steps if is_planned(step) and not step["outcome"]["patch"]}
    doubtful: set[str] = set()
    while True:
        known = [_forget(step, doubtful) for step in steps]
        sources = Sources(conversation=user_messages, state={}, reading=toolkit.names)
        made_up = notes_of(trace(known, sources, lambda name: toolkit[name].parameters).notes, "made_up")
        guessed = {each["data"]["call"] for each in made_up if _is_required(toolkit, each)}
        if (found := guessed & reads) <= doubtful:
            return {step["call"]["id"] for step in log} - doubtful
        doubtful |= found


def _is_required(toolkit: Toolkit, made_up: Note) -> bool:
    return tokens(made_up["where"])[0] in toolkit[made_up["data"]["tool"]].parameters.get("required", ())


def _forget(step: Step, doubtful: Collection[str]) -> Step:
    """Return a step without its arguments if it failed, and without its result if that is doubtful."""
    call, outcome = step["call"], step["outcome"]
    if not is_planned(step):
        return {**step, "call": {**call, "args": {}}}
    return {**step, "outcome": {**outcome, "result": None}} if call["id"] in doubtful else step


class _Fold:
    def __init__(self, world: JsonObject, tables: Sequence[str], grounded: Collection[str] | None) -> None:
        self._log: list[Step] = world["log"]
        self._state: JsonObject = world["start"]
        self._names, self._done = [name for name in tables if name != SEEN], 0
        self._writes: list[JsonObject] = []
        self._tables = {name: find_table(self._state, name) for name in self._names}
        self._grounded, self._seen, self._guessed = grounded, list[Json](), list[Json]()

    def snapshots(self, messages: Sequence[AnyMessage], decided: JsonObject) -> Iterator[Snapshot]:
        asked: list[str] = []
        policy = "\n".join(text_of(each) for each in messages if read_envelope(each)["sender"] == "system")
        for number, message in enumerate(messages):
            envelope = read_envelope(message)
            if envelope["sender"] == "system":
                continue
            steps = self._go_to(envelope["steps"])
            done = [step for step in steps if is_planned(step)] if isinstance(message, ToolMessage) else []
            row: JsonObject = {
                "sender": envelope["sender"],
                "recipient": envelope["recipient"],
                "content": text_of(message),
                "calls": [{**_read_call(step["call"]), "result": step["outcome"]["result"]} for step in done],
                "attempts": self._find_attempts(message, messages[number + 1 :]),
            }
            asked += [row["content"]] if row["sender"] == "user" else []
            if (row["sender"], row["recipient"]) == ("agent", "user"):
                known: JsonObject = {"now": clock(self._state) or "", "policy": policy, "decided": decided}
                row["claims"] = {"answer": row["content"], "asked": [*asked], **known}
            if self._grounded is not None:
                self._tables[SEEN] = [self._note_seen(row, steps, self._grounded)]
            yield {**self._tables, MESSAGE: [row], WRITES: self._writes}

    def _note_seen(self, message: JsonObject, steps: Sequence[Step], grounded: Collection[str]) -> JsonObject:
        """Return the row of `SEEN` after a message with its calls."""
        texts = [message["content"]] if message["sender"] == "user" else []
        ran = [(step["call"], step["outcome"]) for step in steps if "outcome" in step]
        real = [outcome["result"] for call, outcome in ran if call["id"] in grounded and not outcome["patch"]]
        self._seen = [*self._seen, *texts, *real]
        self._guessed = [*self._guessed, *(call["name"] for call, _ in ran if call["id"] not in grounded)]
        figures = find_statements(message["content"]) if message["recipient"] == "user" else ""
        counted = [number for result in self._seen for number in list_lengths(result)]
        return {"texts": self._seen, "unseen": [*self._guessed, *find_computed(figures, [*self._seen, *counted])]}

    def _find_attempts(self, message: AnyMessage, later: Sequence[AnyMessage]) -> list[JsonObject]:
        """Return the calls of a message, under the tools' own names if they were answered."""
        answers = [each for each in later if isinstance(each, ToolMessage)]
        aside = {each.tool_call_id for each in answers if read_envelope(each)["sender"] == "agent"}
        made = [call for call in read_calls(message) if call["id"] not in aside]
        if not made:
            return []
        over = next((read_envelope(each)["steps"] for each in later if not isinstance(each, ToolMessage)), None)
        answered = self._log[self._done : over]
        return list(map(_read_call, [step["call"] for step in answered] or made))

    def _go_to(self, steps: int | None) -> list[Step]:
        """Advance the state by a message's calls, and return these."""
        new = self._log[self._done : steps] if steps is not None else []
        self._done += len(new)
        self._writes = []
        for step in new:
            if "outcome" in step and (patch := booked_patch(step["outcome"])):
                before, self._state, tables = self._state, fold_patches(self._state, [patch]), dict(self._tables)
                self._tables |= {name: self._same_or_new(name, before) for name in self._names}
                changed = {name: (rows, self._tables[name]) for name, rows in tables.items()}
                changed = {name: both for name, both in changed.items() if both[0] is not both[1]}
                self._writes += [{**_read_call(step["call"]), "tables": changed}] if is_planned(step) else []
        return new

    def _same_or_new(self, name: str, before: JsonObject) -> Table:
        root = name.partition(".")[0]
        unchanged = before.get(root) is self._state.get(root) and root in before and not name.startswith(REST)
        return self._tables[name] if unchanged else find_table(self._state, name)


def _read_call(call: Any) -> JsonObject:
    return {"name": call["name"], "args": call["args"]}


# the content of an answer --------------------------------------------------------------------------------------------


def find_statements(text: str) -> str:
    """Return a text without its questions and the numbers of its lists."""
    return NUMBERING.sub(" ", _QUESTION.sub(" ", text))


def find_taken(answer: str, results: Sequence[Json], known: Sequence[Json]) -> list[Json]:
    """Return values of results in an answer, whole values before parts, except those in `known`.

    `known` are texts of the user, and arguments of the writes.
    """
    taken: list[Json] = []
    before, found = _read(known), _read(results)
    for value in sorted(_find_whole(answer, results), key=lambda each: -len(str(each))):
        if not before.holds(value, "loose") and not (taken and _read(taken).holds(value, "loose")):
            taken.append(value)
    for atom in atoms_of(answer):
        part = spell(atom.wholes[0])
        if (
            atom.is_specific
            and part
            and found.holds(part, "loose")
            and not _read([*known, *taken]).holds(part, "loose")
        ):
            taken.append(part)
    return taken


def find_computed(answer: str, known: Sequence[Json]) -> list[Json]:
    before = _read(known)
    for phone in (each.text for each in find_figures(answer) if each.kind == "phone"):
        answer = answer.replace(phone, " ") if before.holds(phone, "loose") else answer  # its groups are no numbers
    parts = (spell(atom.wholes[0]) for atom in atoms_of(answer) if atom.is_specific)
    numbers = (part for part in parts if part and part.replace(".", "", 1).isdecimal())
    return [number for number in dict.fromkeys(numbers) if not before.holds(number, "loose")]


def find_named(asked: str, results: Sequence[Json], values: Sequence[Json]) -> list[Json]:
    """Return the values that a user has asked for, by the words of their key or by a question like `how much`."""
    words = {topic_of(each.lower()) for each in _LETTERS.findall(asked)} - {""}
    slots = (phrase([slot]).search(asked) and keys.split() for slot, keys in WORDS["keys"].items())
    words |= {topic_of(each) for found in slots if found for each in found}
    named = []
    for place, value in scalars(list(results)):
        key = next((str(each) for each in reversed(place) if isinstance(each, str)), "")
        parts = [topic_of(each.lower()) for each in _CAMEL.findall(key)]
        if parts and ({*parts} <= words or parts[-1] in words):
            named.append(value)
    held = _read(named)
    return [each for each in values if held.holds(each, "loose")]


def _read(values: Sequence[Json]) -> Leaves:
    return Leaves(values, keys=False)


def _find_whole(answer: str, results: Sequence[Json]) -> Iterator[Json]:
    seen, said = set[str](), _read([answer])
    for _, value in scalars(list(results)):
        if value is None or isinstance(value, bool) or (text := str(value)) in seen or len(text) > LONGEST:
            continue
        seen.add(text)
        if said.holds(value, "loose") and _is_telling(value, answer):
            yield value


def _is_telling(value: Json, answer: str) -> bool:
    if not isinstance(value, str) or any(atom.is_specific for atom in atoms_of(value)):
        return True
    phrase = re.escape(" ".join(value.split()))
    return len(value) >= LEAST_WORD and bool(re.search(rf"(?i)\b{phrase}\b", " ".join(answer.split())))
