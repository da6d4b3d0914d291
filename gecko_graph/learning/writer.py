"""Rules that a model proposes (role `contract_writer`) and that are kept unless rows refute them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ..contracts.contract import Contract
from ..contracts.language.things import marks_of
from ..contracts.run import subtree
from ..errors import ContractError
from ..models.ask import Ask, QuestionId, Reply
from ..models.formatting import cut
from ..models.prompts import Prompts
from ..models.recorded import CHARS_A_TOKEN
from ..models.roles import WrittenContract
from ..models.usage import count_tokens
from ..models.view import view
from ..state import Json, JsonObject, RoleUsage
from ..tools import Toolkit, ToolSpec
from ..tools.descriptions import describe_tool
from ..values.digest import pack
from ..values.observation import Observation, mask_values
from ..values.patch import apply_patch, tokens
from ..values.places import pointer
from ..world.followed import open_run
from .learn import Learned
from .miner import UNLEARNED
from .replay import contradicted, try_clause, without_explained
from .rules import EXCEPTIONS, PROPOSED, said

ROUNDS, COUNTER, WRITTEN_TOKENS = 2, 10, 800
MINED_CHARS, ROW_CHARS = 6_000, 700
FORGOTTEN = "not known any more"
_VALUE = r"(?:args|(?:state|at\([^()]*\))(?:\.\w+)*)\.\w+|at\([^()]*\)"
_FORMS = {
    "membership": rf"(?:{_VALUE}) (?:not )?in (?:{_VALUE})",
    "flag": rf"(?:not )?(?:{_VALUE})",
    "existence": rf"(?:{_VALUE}) is (?:not )?None|(?:not )?defined\((?:{_VALUE})\)",
    "comparison": rf"(?:{_VALUE}) [<>]=? (?:{_VALUE})",
}
"""Forms of checks that may refuse a call once enough rows confirm them."""
Questions: TypeAlias = Generator[list[Ask], Sequence[Reply], list[str]]


def propose_rules(toolkit: Toolkit, learned: Learned) -> Questions:
    """Ask a model for further rules; add those that rows do not refute.

    Yields the questions of a round and receives their replies by `send`.

    Returns:
        Lines: replies that could not be used, and the number of refuted rules.
    """
    drafts = drafts_of(toolkit, learned)
    for round_ in range(ROUNDS):
        asked = [draft for draft in drafts if not round_ or draft.counter]
        replies = (yield [draft.ask(round_ * len(drafts) + at) for at, draft in enumerate(asked)]) if asked else []
        for draft, reply in zip(asked, replies, strict=True):
            draft.take(reply)
    for draft in drafts:
        learned.contracts[draft.tool.name] = draft.merged()
    return [f"{draft.tool.name}: {note}" for draft in drafts for note in draft.notes]


def estimate(toolkit: Toolkit, learned: Learned, prompts: Prompts, model_name: str) -> RoleUsage:
    """Return the most tokens that the questions of all rounds cost, estimated from those of the first round."""
    asks = [draft.ask(0) for draft in drafts_of(toolkit, learned)]
    shown = [prompts.render(ask.role, ask.variables) for ask in asks]
    tokens = sum(len(one.system) + len(one.user) + COUNTER * ROW_CHARS // 2 for one in shown) // CHARS_A_TOKEN
    spent = count_tokens(ROUNDS * tokens, ROUNDS * WRITTEN_TOKENS * len(asks), model_name=model_name.rpartition(":")[2])
    return {**spent, "calls": ROUNDS * len(asks)}


def drafts_of(toolkit: Toolkit, learned: Learned) -> list[ContractDraft]:
    """Return a draft for each tool whose contract was learned from rows alone."""
    sample, contracts = learned.sample, {tool.name: tool.contract for tool in toolkit if tool.contract}
    mined = [
        pair for pair in learned.contracts.items() if {*getattr(contracts.get(pair[0]), "data", ())} <= {"observes"}
    ]
    rows = {name: sample.rows(name) for name in sample.tools()} if sample else {}
    lawful = (next((row for branch, row in some if not branch), None) for some in rows.values())
    examples = [_show(row, None) for row in lawful if row]
    places = {place[0] for tool in toolkit.observing if tool.contract for place in tool.contract.observed}
    return [ContractDraft(toolkit[name], rows[name], one, examples, places) for name, one in mined if name in rows]


def kind_of_check(check: str) -> str:
    return next((kind for kind, form in _FORMS.items() if re.fullmatch(form, check.strip())), "conjunction")


@dataclass(slots=True)
class ContractDraft:
    """A model's proposals for one tool, with the rows of the tool."""

    tool: ToolSpec
    rows: Sequence[tuple[str, Observation]]
    mined: JsonObject
    examples: Sequence[str] = ()
    """A successful call of each tool."""
    places: Collection[str] = ()
    """Keys of the state that only reads show."""
    clauses: list[JsonObject] = field(default_factory=list)
    parts: JsonObject = field(default_factory=dict)
    counter: list[str] = field(default_factory=list)
    """Objections to the last reply, for the next question."""
    notes: list[str] = field(default_factory=list)

    def ask(self, number: int) -> Ask:
        """Return the question: the tool's documentation, its refusals, the mined rules and the refuted proposals."""
        first = {branch: row for branch, row in reversed(self.rows)}
        counts = Counter(branch for branch, _ in self.rows if branch)
        errors = [f"{count} x {kind}: {_show(first[kind], self.places)}" for kind, count in counts.most_common()]
        # the largest known state
        state = max((row.before for _, row in self.rows if row.before), key=lambda one: len(pack(one)), default=None)
        variables = {
            "tool": "\n".join([describe_tool(self.tool), *_documented_errors(self.tool)]),
            "errors": cut("\n".join(errors), budget=MINED_CHARS),
            "state": view(_marked(mask_values(state), self.places), budget=MINED_CHARS // 2) if state else "",
            "examples": cut("\n".join(self.examples), budget=MINED_CHARS),
            "mined": cut(json.dumps(mask_values(self.mined), ensure_ascii=False), budget=MINED_CHARS),
            "counter": "\n".join(self.counter[:COUNTER]),
        }
        return Ask("contract_writer", variables, WrittenContract, QuestionId(question=number))

    def take(self, reply: Reply) -> None:
        """Test a reply on the rows; an unusable reply changes nothing."""
        self.counter, written = [], reply.value
        if not isinstance(written, WrittenContract):
            self.notes.append(f"no rules: {reply.failure or 'the model gave no answer'}")
            return
        self.clauses, self.parts, self.notes = [], {}, []
        refuted = 0
        for one in written.requires:
            rule: JsonObject = {"check": one.check, **({"when": one.when} if one.when.strip() else {})}
            try:
                clause = self._tried({**rule, "error": one.error or "refused"})
            except ContractError as error:
                self.counter.append(f"cannot be loaded: {one.check}: {error}"[:ROW_CHARS])
                continue
            refuted += clause["evidence"]["status"] == "refuted"
            self.clauses += [clause] if clause["evidence"]["status"] != "refuted" else []
        self._try_parts(written)
        self.notes += [f"{refuted} proposed rules are refuted by rows"] if refuted else []
        self.notes += [self.counter[0]] if self.counter and self.counter[0].startswith("cannot") else []

    def _tried(self, clause: JsonObject) -> JsonObject:
        """Return a clause with its evidence. Raises ContractError if it cannot be loaded."""
        contract = Contract.load({"requires": [clause]}, where=self.tool.name).fit(self.tool.parameters)
        evidence, against = try_clause(self.tool, contract, kind_of_check(clause["check"]), self.rows, by="model")
        self.counter += [
            f"`{clause['check']}` refuses a call that was done: {_show(row, self.places)}" for row in against[:2]
        ]
        says = said(clause.pop("error"), evidence)
        return {**clause, **says, "evidence": evidence}

    def _try_parts(self, written: WrittenContract) -> None:
        """Keep proposed effects and result if the miner found none and the rows do not contradict them."""
        known = self.mined.get("evidence", {})
        given = {"effects": written.effects, "returns": written.returns}
        for part in ("effects", "returns"):
            if known.get(part, {}).get("status", "unknown") != "unknown" or given[part] in (None, []):
                continue
            if part == "returns" and not (self.tool.reads or "effects" in {**self.mined, **self.parts}):
                continue  # with a result but no effects, a write would change nothing in simulations
            other = {key: self.mined[key] for key in ("let", "effects") if key in self.mined} | self.parts
            data = {**other, part: given[part], "evidence": {}}
            try:
                tool = replace(self.tool, contract=Contract.load(data, where=self.tool.name).fit(self.tool.parameters))
            except ContractError as error:
                self.counter.append(f"cannot be loaded: {part}: {error}"[:ROW_CHARS])
                continue
            some = [row for branch, row in self.rows if not branch and row.before is not None]
            wrong = [(row, place) for row in some for at, place in contradicted(tool, row) if at == part]
            self.counter += [f"{part}, otherwise at {place}: {_show(row, self.places)}" for row, place in wrong[:3]]
            if len(some) - len(wrong) >= PROPOSED and len(wrong) <= EXCEPTIONS * len(some):
                self.parts[part] = given[part]
                new_evidence = {"status": "proposed", "for": len(some) - len(wrong), "by": "model"}
                self.parts["evidence"] = {**self.parts.get("evidence", {}), part: new_evidence}

    def merged(self) -> JsonObject:
        """Return the mined contract with the proposals that rows confirm and that explain further refusals."""
        known = Contract.load(self.mined, where=self.tool.name)
        left = [row for branch, row in self.rows if branch and open_run(known, self.tool, row).refusal() is None]
        more = [one for one in self.clauses if not one["evidence"]["for"] or self._explains(one, left)]
        named = [{"id": f"written-{number}", **one} for number, one in enumerate(more, 1)]
        evidence = {**self.mined.get("evidence", {}), **self.parts.get("evidence", {})}
        open_result = {"returns": {"cases": [{"pass": UNLEARNED}]}} if "effects" in self.parts else {}
        made = {**self.mined, **open_result, **self.parts, "evidence": evidence}
        rows = [row for _, row in self.rows]
        made["requires"] = [*named, *without_explained(self.tool, self.mined.get("requires", []), named, rows)]
        try:
            Contract.load(made, where=self.tool.name).fit(self.tool.parameters)
        except ContractError as error:
            self.notes.append(str(error)[:ROW_CHARS])
            return self.mined
        return made

    def _explains(self, clause: JsonObject, rows: Sequence[Observation]) -> bool:
        contract = Contract.load({"requires": [clause]}, where=self.tool.name)
        runs = ((run := open_run(contract, self.tool, row), run.refusal()) for row in rows)
        return any(refusal is not None or run.unknown is not None for run, refusal in runs)


def _documented_errors(tool: ToolSpec) -> list[str]:
    """Return the documented descriptions of a tool's unsuccessful responses."""
    if tool.source is None:
        return []
    path, method = tool.source.slot
    answers = tool.source.document.get("paths", {}).get(path, {}).get(method, {}).get("responses", {})
    found = {code: one.get("description") for code, one in answers.items() if isinstance(one, dict)}
    return [
        f"{code}: {cut(str(about), budget=ROW_CHARS)}" for code, about in found.items() if code[:1] != "2" and about
    ]


def _marked(state: JsonObject | None, places: Collection[str]) -> JsonObject | None:
    """Return a state in which values that a write may have changed after a read are marked as not known any more."""
    for way in [[place] for place in places] + [tokens(place) for place in marks_of(state or {})]:
        things = subtree(state, tuple(way))
        if state and things and isinstance(things, dict):
            known: Json = {key: FORGOTTEN if thing == {} else thing for key, thing in things.items()}
            state = apply_patch(state, [{"op": "replace", "path": pointer(way), "value": known}])
    return state


def _show(row: Observation, places: Collection[str] | None = ()) -> str:
    shown: JsonObject = {"args": row.args, "status": row.status, "result": row.result}
    more = {"before": _marked(row.before, places), "change": row.change} if places is not None else {"tool": row.tool}
    return cut(json.dumps(mask_values({**shown, **more}), ensure_ascii=False), budget=ROW_CHARS)
