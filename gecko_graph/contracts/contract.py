"""Contracts: a tool as a function over the task state, written as data.

A contract is a Hoare triple {P} tool {Q} (ToolGate, section 3.2): `requires` is P and decides whether the call may run
(section 3.4), `effects` and `returns` define the tool's behavior, `ensures` is Q and decides whether a result is
committed. Unlike in ToolGate, all of it is data that is checked at load: expressions and patch operations, no code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from ..errors import ContractError
from ..state import Call, Json, JsonObject
from ..values.digest import shallow
from ..values.origins import Untrusted
from .clauses import as_doubt
from .language.examine import ANY, AnyShape, Plain, of_schema
from .language.expression import Location, Missing, Origin, Scope, raise_error
from .language.sandbox import Fault
from .run import BASE, Admissibility, CheckedClauses, ContractRun, Shared, partly_shown, subtree

_ANSWERED = ("effects", "returns", "evidence")


class Contract(CheckedClauses):
    """A tool's contract, checked at load by `Contract.load`; equal to another one with the same data.

    Attributes:
        data: The contract as written, with the shared requirements that it uses.
        lets: The shared lets of its document, as written.
        reads_calls: Whether its expressions name `calls` or `facts`.
        where: The document and the tool, as in messages.
        at: The place of the task state at which its paths begin.
        answers: Whether it has effects or a result.
        fact: The name of a verified result of its tool in `facts`; "" for the tool's name.
        compensates: The tool whose effect it compensates without undoing it; "" for none.
    """

    def __init__(self, data: Mapping[str, Any], shared: Shared, place: Location) -> None:
        super().__init__(data, shared, place)
        self._written, self._shared, self._place = dict(data), shared, place
        self._facts: Mapping[str, tuple[str, JsonObject]] = {}
        """Tool of the toolkit to its fact's key and type."""
        self.data: JsonObject = dict(data)
        self.data |= {"requires": [item for item, _ in self.required]} if self.required else {}
        self.lets = dict(shared.lets)
        self.reads_calls = bool({"calls", "facts"} & self.names_used(self.own_expressions()) - self.named.keys())

    @classmethod
    def load(
        cls,
        data: Mapping[str, Any],
        *,
        lets: Mapping[str, Any] | None = None,
        requires: Mapping[str, Any] | None = None,
        where: str,
        origin: Origin | None = None,
    ) -> Contract:
        """Check a contract with all its parts.

        Args:
            data: `let`, `requires`, `effects`, `returns`, `ensures`, `observes`, `fact`, optional. With `at`, keys of
                the task state, `state` is the value there.
            lets: The document's `x-contract-let`.
            requires: The document's `x-contract-requires`; the contract's data includes those that it uses.
            where: Document and tool, for messages: `files.openapi.yaml: tool mkdir`.
            origin: The file and the place in it, for the line in messages.

        Raises:
            ContractError: Names document, tool, place, line and reason.
        """
        return cls(data, Shared(lets or {}, requires or {}), Location(where, dict.fromkeys(BASE, ANY), origin=origin))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Contract) and (self.data, self.lets) == (other.data, other.lets)

    def __repr__(self) -> str:
        return f"Contract({', '.join(self.data)})"

    def __reduce__(self) -> Any:
        place, changed = self._place, [(each.passes, each.status, each.evidence) for each in self.requires]
        given = {**self._shared._asdict(), "where": place.where, "origin": place.origin}
        return partial(Contract.load, self._written, **given), (), (self._facts, changed, self.withdrawn)

    def __setstate__(self, state: Any) -> None:
        """Restore the changes by real calls to its rules, in another process."""
        self._facts, _, self.withdrawn = state
        for clause, (passes, status, evidence) in zip(self.requires, state[1], strict=True):
            clause.passes, clause.status, clause.evidence = passes, status, evidence

    def fit(self, parameters: JsonObject, *, state: AnyShape = ANY) -> Contract:
        """Return the contract itself, after `examine`. Raises ContractError with the first mistake."""
        self.examine(parameters, state=state, report=raise_error)
        return self

    def examine(
        self, parameters: JsonObject, *, state: AnyShape, report: Callable[[ContractError], None]
    ) -> AnyShape | None:
        """Check its use of values with known types or keys; return the known shape of its result before any call.

        Args:
            parameters: JSON Schema of the argument object; without alternatives there are no other arguments.
            state: The known shape of the task state.
            report: Takes each expression that can never be evaluated: an argument, key or place that cannot exist, or
                operands of wrong types.
        """
        closed = {"additionalProperties": False} if isinstance(parameters.get("properties"), dict) else {}
        here = shape_below(state, self.at)
        text, call = Plain("a text"), {"name": Plain("a text"), "args": ANY}
        seen = Plain("an object", members={**call, "status": text, "result": ANY})
        names = {"args": of_schema({**closed, **parameters}), "before": here, "state": here, "now": text}
        names |= {"call": Plain("an object", members={**call, "id": text}), "calls": Plain("a list", inner=seen)}
        names["facts"] = Plain("an object", inner=Plain("an object", members={"value": ANY, "type": ANY}))
        place = replace(self._place, names=names, report=report)
        parts = CheckedClauses(self._written, self._shared, place, self.named)
        return parts.returns.shape if parts.answers else None

    def knowing(self, facts: Mapping[str, tuple[str, JsonObject]]) -> Contract:
        """Return the contract in a toolkit; `facts` are key and type of its tools' results, by tool."""
        made: Contract = shallow(self)
        made._facts = facts
        return made

    @property
    def observed(self) -> frozenset[tuple[str, ...]]:
        """The root places of its state that a real result of its tool reveals."""
        return frozenset((*self.at, root) for effect in self.observes for root in effect.roots)

    @property
    def observed_whole(self) -> frozenset[tuple[str, ...]]:
        """The places that it reveals completely: a thing missing there does not exist."""
        return frozenset((*self.at, root) for effect in self.observes for root in effect.whole)

    @property
    def result_keys(self) -> frozenset[str]:
        """Root keys of the state from which its result is computed, "" for the whole."""
        read = self.with_lets(self.returns.expressions)
        roots = frozenset(path[0] if path else "" for expression in read for path in expression.code.paths)
        return roots and (frozenset(self.at[:1]) or roots)

    def withdraw(self, check: str | None = None) -> None:
        """Disable a learned rule, or all of them, so that it only warns; for all owners of this contract."""
        for clause in self.requires:
            if clause.evidence and check in (None, clause.evidence["check"]):
                clause.passes = True
                if check is not None:
                    clause.evidence["against"] = clause.evidence.get("against") or ["a real call"]
        if check is not None and check in self.follows:
            self.withdrawn.add(check)

    def confirm(self, check: str, count: int) -> None:
        """Enable a proposed rule if further refusals have confirmed it as often as it `lacks`."""
        for clause in (each for each in self.requires if each.evidence.get("check") == check):
            lacks, is_free = clause.evidence.get("lacks"), clause.passes and not clause.evidence.get("against")
            if is_free and isinstance(lacks, int) and count >= lacks:
                clause.passes, clause.status = False, "established"
                known = clause.evidence.get("for")
                clause.evidence["for"] = count + (known if isinstance(known, int) else 0)

    @property
    def follows(self) -> dict[str, JsonObject]:
        """Established effects that follow a success, in addition to its answer, by name."""
        return {each["id"]: each for each in self.established if each["id"] not in self.withdrawn}

    @property
    def refuted(self) -> frozenset[str]:
        """The `id`s of requirements that a real call has refuted."""
        return frozenset(clause.name for clause in self.requires if clause.evidence.get("against"))

    @property
    def is_derived(self) -> bool:
        """Whether it is derived from a document alone: it answers simulated calls, and refuses no real call."""
        return self.status == "derived"

    @property
    def guards(self) -> bool:
        """Whether it has requirements that a person wrote, and that refuse."""
        return any(not clause.passes and not clause.evidence for clause in self.requires)

    def fill(self, learned: Mapping[str, Any]) -> JsonObject | None:
        """Return the contract's data completed by a learned contract; None if that adds nothing.

        Without `requires` it gets the learned ones; beside a written answer only those that refuse. Without `effects`
        and `returns` it gets both; beside written requirements, learned refusals become unknown. Below a key of the
        state (`at`) nothing was learned.
        """
        own = self.data.get("requires", [])
        clauses = [each for each in learned.get("requires", ()) if each not in own]
        if self.answers:
            clauses = [each for each in clauses if each.get("evidence", {}).get("status") == "established"]
        if "requires" in self.data:
            clauses = [] if self.answers else [as_doubt(each) for each in clauses]
        kept = {} if self.answers else {key: learned[key] for key in _ANSWERED if key in learned}
        if self.at or not (clauses or kept):
            return None
        lets = {**self.lets, **self.data.get("let", {}), **learned.get("let", {})}
        return {**self.data, **({"let": lets} if lets else {}), **kept, "requires": [*own, *clauses]}

    @property
    def returned(self) -> AnyShape | None:
        """The known shape of its result before any call; None if it only has requirements."""
        return self.returns.shape if self.answers else None

    def open(
        self,
        *,
        args: JsonObject,
        parameters: JsonObject,
        state: Json,
        call: Call,
        now: str | None,
        seed: int,
        calls: Sequence[JsonObject] = (),
    ) -> ContractRun:
        """Open the contract for one call.

        Args:
            args: The call's arguments; missing ones get defaults from `parameters`, else None.
            parameters: JSON Schema of the argument object.
            state: The task state before the call; it is not mutated.
            call: The call itself.
            now: The state's clock, if it has one.
            seed: Seed of `new_id`.
            calls: The turn's earlier calls, oldest first, each `{"name", "args", "status", "result"}`.
        """
        values = {"args": {**_defaults(parameters), **args}, "call": call, **self._names(state, now, calls)}
        # not only the id, since models reuse the ids of calls
        scope = Scope(values, seed=seed, call_id=lambda: f"{call['id']} {call['name']} {call['args']}")
        scope.partial = partly_shown(state, self.at)
        return ContractRun(self, scope)

    @property
    def is_gated(self) -> bool:
        """Whether it has requirements that do not depend on arguments."""
        return bool(self.free)

    def admissible(
        self,
        state: Json,
        *,
        now: str | None,
        seed: int = 0,
        calls: Sequence[JsonObject] = (),
        untrusted: Untrusted = tuple,
    ) -> Admissibility:
        """Return whether the requirements that depend neither on arguments nor call are met in a state.

        `untrusted` returns the supposed places of the state, for `trusted`; other arguments as for `open`.
        """
        if not self.free:
            return Admissibility("yes")
        scope = Scope(self._names(state, now, calls), seed=seed, call_id=_refuse_identity)
        scope.partial = partly_shown(state, self.at)
        return ContractRun(self, scope).trust(untrusted).judge()

    def _names(self, state: Json, now: str | None, calls: Sequence[JsonObject]) -> JsonObject:
        no_clock = "now (the state has no clock: a text under `now` or `runtime_state.now`)"
        here = subtree(state, self.at)
        known = {"before": here, "now": Missing(no_clock) if now is None else now, "state": here}
        return {**known, "calls": list(calls), "facts": self._known(calls)} if self.reads_calls else known

    def _known(self, calls: Sequence[JsonObject]) -> JsonObject:
        """Return the verified results as typed facts, the latest of each key (ToolGate, equation 2 and G.6)."""
        facts: JsonObject = {}
        for call in calls:
            if call["status"] == "ok":
                key, schema = self._facts.get(call["name"], (call["name"], {}))
                facts[key] = {"value": call["result"], "type": schema}
        return facts


def _defaults(parameters: JsonObject) -> JsonObject:
    properties = parameters.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: rule.get("default") if isinstance(rule, dict) else None for name, rule in properties.items()}


def shape_below(shape: AnyShape, at: Sequence[str]) -> AnyShape:
    """Return the known shape of the value under these keys."""
    for key in at:
        shape = shape.member(key) or ANY
    return shape


def _refuse_identity() -> NoReturn:
    raise Fault("it depends on the call")
