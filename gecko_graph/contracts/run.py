"""One call under one contract: the checked parts, and their answer to the call."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from ..errors import EvaluationFailed, NotKnown, NotRead
from ..state import Json, JsonObject, Operation, Patch, Violation
from ..values.origins import Untrusted, is_doubtful
from ..values.patch import tokens
from ..values.places import as_text, pointer, scalars
from .clauses import (
    STATUSES,
    Clause,
    Effect,
    PatchBuilder,
    load_effects,
    load_list,
    read_follows,
    read_http,
    read_requires,
    status_of,
)
from .language.examine import ANY
from .language.expression import Expression, Location, Scope
from .language.sandbox import OpenPart
from .language.template import Template, strip_blanks
from .language.things import marks_of
from .lets import LazyLets, Lets, find_used_lets, load_lets

BASE = frozenset(("args", "call", "before", "now", "state", "calls", "facts"))
"""Names available to every expression of a contract."""

NEEDS_CALL = frozenset(("args", "call"))
SHOWN = "shown"
"""Key of the runtime state: partly shown collections to the common values of each part's things."""
FAILED = "a condition of this tool does not hold"
_FIELDS = (
    "at", "let", "requires", "effects", "returns", "ensures", "observes", "evidence", "fact", "compensates", "answers",
)  # fmt: skip


class Shared(NamedTuple):
    """The parts that a document's contracts share, as written."""

    lets: Mapping[str, Any]
    requires: Mapping[str, Any]


class Refusal(NamedTuple):
    """A failed requirement: the tool's own error, the changes made in spite of it, and all failed requirements."""

    error: Json
    patch: Patch
    violations: Sequence[Violation] = ()
    reason: str = ""
    """Why the call is refused, if its error is unknown; then `error` is this text, or a neutral sentence."""
    http: Mapping[str, Json] = MappingProxyType({})
    blanks: Mapping[str, str] = MappingProxyType({})


class ContractAnswer(NamedTuple):
    """Result and patch of a call whose requirements are met.

    `holes` are the places of OpenParts in the result, with the reason. `blanks` are the places of placeholders for
    unknown values, likewise; `http` is the HTTP response.
    """

    result: Json
    patch: Patch
    holes: Mapping[str, str] = {}
    blanks: Mapping[str, str] = MappingProxyType({})
    http: Mapping[str, Json] = MappingProxyType({})


Word: TypeAlias = Literal["yes", "no", "unknown"]


class Admissibility(NamedTuple):
    """Whether a tool may be called in a state, and why not: its own error, or conditions that cannot be evaluated.

    `more` are the errors of the other failed requirements; `kind` is that of the first. ToolGate, equations 9 and 16,
    with a third value for requirements that cannot be evaluated.
    """

    word: Word
    reason: str = ""
    more: tuple[str, ...] = ()
    kind: str = "tool"


class CheckedClauses:
    """The checked parts of a contract."""

    def __init__(self, data: Mapping[str, Any], shared: Shared, whole: Location, lets: Lets | None = None) -> None:
        whole.check_fields(data, (), _FIELDS)
        self.where = whole.where
        self.at = read_mount(data.get("at"), whole.part("at"))
        self.fact: str = data.get("fact", "")
        if not isinstance(self.fact, str):
            raise whole.part("fact").error(f"expected a text, got {self.fact!r:.40}")
        self.named, whole = load_lets(data.get("let", {}), shared.lets, whole, lets)
        self.required = [*read_requires(data.get("requires", []), shared.requires, whole)]
        self.requires = [Clause(item, place, part="requires", more=("effects",)) for item, place in self.required]
        self.effects = load_effects(data.get("effects", []), whole.part("effects"))
        self.returns = Template(data.get("returns"), whole.part("returns"))
        self.answers = "effects" in data or "returns" in data
        self.http = read_http(data.get("answers", {}), whole.part("answers"))
        self.headers = Template(self.http.get("headers", {}), whole.part("answers").at("headers"))
        self.changes = "effects" in data
        self.compensates: str = data.get("compensates", "")
        if not isinstance(self.compensates, str):
            raise whole.part("compensates").error(f"expected the name of a tool, got {self.compensates!r}")
        after = whole.with_names(result=self.returns.shape if "returns" in data else ANY)
        evidence, there = data.get("evidence", {}), whole.part("evidence")
        parts = [part for part in ("effects", "returns") if part in there.check_object(evidence)]
        self.established, self.withdrawn = read_follows(evidence.get("follows", []), there.at("follows")), set[str]()
        self.status = status_of(evidence, there) if "status" in evidence else "written"
        self.statuses = [self.status, *(status_of(evidence[part], there.at(part)) for part in parts)]
        self.ensures = [
            Clause(item, place, part="ensures")
            for item, place in load_list(data.get("ensures", []), after.part("ensures"))
        ]
        self.observes = load_effects(data.get("observes", []), after.part("observes"))
        refusing = [clause for clause in self.requires if not clause.passes]
        self.free = [clause for clause in refusing if not self.names_used(clause.condition) & NEEDS_CALL]
        """The requirements that depend neither on arguments nor call, also not through their lets."""

    @property
    def state_keys(self) -> frozenset[str]:
        """Root keys of the state in its expressions and literal paths."""
        if self.at:
            return frozenset(self.at[:1])
        effects = [*self.effects, *self.observes, *(effect for clause in self.requires for effect in clause.effects)]
        paths = (path for expression in self.with_lets(self.own_expressions()) for path in expression.code.paths)
        return frozenset(root for effect in effects for root in effect.roots) | {path[0] for path in paths if path}

    def own_expressions(self) -> list[Expression]:
        """Return the expressions of every part except the lets."""
        clauses: list[Clause | Effect] = [*self.requires, *self.ensures, *self.effects, *self.observes]
        return [*self.returns.expressions, *(each for clause in clauses for each in clause.expressions)]

    def with_lets(self, own: Collection[Expression]) -> Iterator[Expression]:
        """Yield expressions, and those of the lets that they need."""
        yield from own
        for name in find_used_lets(own, self.named):
            yield from self.named[name].expressions

    def names_used(self, own: Collection[Expression]) -> frozenset[str]:
        """Return the names in expressions, and in the lets that they need."""
        return frozenset[str]().union(*(expression.names for expression in self.with_lets(own)))


class ContractRun:
    """One call under one contract. Its lets are evaluated once, on the state before the call.

    `unclear` lists the requirements that `refusal` could not evaluate, with reasons. `unknown` is the reason why a
    `pass` leaves the tool's behavior open; the unclear ones are then in `skipped`. `status` is the weakest evidence
    behind the last answer or refusal. `warned` are broken learned rules that only warn. A run leaves no reference
    cycle, which would keep its state alive.
    """

    def __init__(self, parts: CheckedClauses, scope: Scope) -> None:
        self.unclear: list[str] = []
        self.skipped: list[str] = []
        self.unknown: str | None = None
        self.warned: list[Violation] = []
        self.status = parts.status
        self.found: dict[tuple[str, ...], JsonObject | None] = {}
        """The effects' statements on collections that are not known as a whole."""
        self.changed: tuple[Patch, Json] = [], None
        """The last answer's patch and the resulting state; None if the contract covers a part of the state."""
        self._parts = parts
        self._scope = scope
        self._before = scope.values["state"]
        self._lets = LazyLets(parts.named, scope)
        self.trust(tuple)

    def trust(self, untrusted: Untrusted) -> ContractRun:
        """Set the supposed places for `trusted`, and return the run."""
        at = self._parts.at  # not `self`: that would be a reference cycle
        self._scope.trusts = lambda path: not is_doubtful([*at, *path], untrusted())
        return self

    def assume(self, **lets: Json) -> ContractRun:
        """Assume that unknown things exist, set the known values of lets, and return the run."""
        self._scope.assumes = True
        self._lets.update(lets)
        return self

    def list_parts(self) -> ContractRun:
        """Let a list of a partly known collection have the known things, in doubt, and return the run."""
        self._scope.lists_parts = True
        return self

    def without(self, unread: Collection[tuple[str, ...]], shows: Mapping[tuple[str, ...], str]) -> ContractRun:
        """Leave open the parts that need these unread places, and return the run; `shows` names the reads."""
        depth, at = len(self._parts.at), self._parts.at
        self._scope.unread = frozenset(path[depth] for path in unread if path[:depth] == at)
        self._scope.shows = {path[depth]: names for path, names in shows.items() if path[:depth] == at}
        return self

    def refusal(self, *, learned: bool = True, without: Collection[str] = ()) -> Refusal | None:
        """Return the first failed requirement (ToolGate, section 3.4), its changes, and all that failed.

        Each is evaluated by itself: one that cannot be evaluated goes to `unclear`, and the others are still checked.
        With `learned` False learned ones are skipped, since the call has succeeded; so are those in `without`, by `id`,
        which real calls have refuted.
        """
        self.unclear, self.unknown, self.warned = [], None, []
        held = (clause for clause in self._parts.requires if clause.name not in without)
        found = self.failed(clause for clause in held if learned or not clause.evidence)
        if (first := next(found, None)) is None:
            if self.unknown is not None:
                self.skipped, self.unclear = self.unclear, []
            return None
        self.status, self.unknown = first.status, None
        error, patch = self.explain(first), list[Operation]()
        reason, self.unknown = as_text(error) if first.is_open else self.unknown or "", None
        try:
            patch = [] if error is FAILED else self._change(first.effects)
        except EvaluationFailed as failure:
            self._note(failure)
        unclear = [*self.unclear]
        broken = [first.violation(error), *(clause.violation(self.explain(clause)) for clause in found)]
        self.unclear = unclear
        return Refusal(error, patch, broken, reason, first.answers, self._doubted())

    def failed(self, clauses: Iterable[Clause]) -> Iterator[Clause]:
        """Yield the failed requirements; those that cannot be evaluated go to `unclear`."""
        scope: Scope | None = None
        for clause in clauses:
            scope = self._begin(self._before) if scope is None else scope.start()
            try:
                if not clause.fails(scope):
                    continue
                if not clause.passes:
                    scope = None  # whoever takes the clause may evaluate its changes, which change the names
                    yield clause
                    continue
                text = clause.error_text(scope)
                self.unknown = self.unknown or text
                if clause.evidence:
                    self.warned.append(clause.violation(text))
            except EvaluationFailed as failure:
                if clause.passes:
                    self.unknown = self.unknown or str(failure)
                else:
                    self._note(failure)

    def explain(self, clause: Clause) -> Json:
        """Return a failed requirement's error; a neutral sentence if it cannot be evaluated."""
        try:
            return clause.error(self._scope)
        except EvaluationFailed as failure:
            self._note(failure)
            return FAILED

    def _note(self, failure: EvaluationFailed) -> None:
        if isinstance(failure, NotKnown) and not isinstance(failure, NotRead):
            self.unknown = self.unknown or str(failure)
        else:
            self.unclear.append(str(failure).removeprefix(f"{self._parts.where}: "))

    def judge(self) -> Admissibility:
        """Return whether the requirements without arguments are met; a failed one outweighs an unclear one."""
        if failed := [*self.failed(self._parts.free)]:
            first, *more = (as_text(self.explain(clause)) for clause in failed)
            return Admissibility("no", first, tuple(more), failed[0].kind)
        is_known = not self.unclear or self.unknown is not None
        return Admissibility("yes") if is_known else Admissibility("unknown", "; ".join(self.unclear[:3]))

    def answer(self) -> ContractAnswer | None:
        """Return result and patch of a call whose requirements are met; None if the contract defines neither.

        Raises:
            EvaluationFailed: They cannot be evaluated on this state, or the patch does not apply to it.
            NotKnown: The contract leaves the answer open, by `pass`.
        """
        answer = self.answer_known()
        if answer is not None and answer.holes:
            raise NotKnown(next(iter(answer.holes.values())))
        return answer

    def answer_known(self) -> ContractAnswer | None:
        """Return the known parts of result and patch, like `answer`, with OpenParts in the result.

        Raises NotKnown if neither effects nor any part of the result are known.
        """
        if not self._parts.answers:
            return None
        if self.unknown is not None:
            raise NotKnown(self.unknown)
        self.status = max(self._parts.statuses, key=STATUSES.index, default="written")
        self._begin(self._before)
        patch = self._change(self._parts.effects)
        result, is_open = self._parts.returns.fill_known(self._scope)
        result, places = strip_blanks(result) if self._parts.returns.has_blanks else (result, ())
        blanks = self._doubted() | dict.fromkeys(map(pointer, places), "nothing is known of it")
        holes = find_holes(result) if is_open else {}
        if holes and not self._parts.changes and not any(type(each) is not OpenPart for _, each in scalars(result)):
            raise NotKnown(next(iter(holes.values())))
        http = {**self._parts.http, "headers": self._parts.headers.fill(self._scope)} if self._parts.http else {}
        return ContractAnswer(result, patch, holes, blanks, http)

    def _doubted(self) -> dict[str, str]:
        return dict.fromkeys(self._scope.doubts and [""], "; ".join(dict.fromkeys(self._scope.doubts)))

    def violations(self, result: Json, after: Json) -> list[Violation]:
        """Return all violated postconditions of `ensures` (ToolGate, section 3.2), after a call with a rung's result.

        A postcondition that cannot be evaluated counts as violated.
        """
        found: list[Violation] = []
        scope = self._begin(subtree(after, self._parts.at), result=result) if self._parts.ensures else self._scope
        for clause in self._parts.ensures:
            try:
                if clause.fails(scope.start()):
                    found.append(clause.violation(clause.error_text(scope)))
            except EvaluationFailed as failure:
                found.append(clause.violation(f"a postcondition cannot be evaluated: {failure}"))
        return found

    def observe(self, result: Json) -> Patch:
        """Return a real result's observation of the state, by `observes`.

        Raises:
            EvaluationFailed: It cannot be evaluated on this state, or the patch does not apply to it.
        """
        scope = self._begin(self._before, result=result)
        scope.unread, scope.partial = frozenset(), {}
        return self._change(self._parts.observes, grows=True)

    def shown(self, result: Json) -> dict[tuple[str, ...], JsonObject | None]:
        """Return for each collection the common values of the shown part, {} for all things; None for single things.

        Raises:
            EvaluationFailed: It cannot be evaluated on this state.
        """
        scope = self._begin(self._before, result=result)
        scope.unread, scope.partial = frozenset(), {}
        given = {name: each for name, each in scope.values["args"].items() if each not in (None, "", [])}
        found: dict[tuple[str, ...], JsonObject | None] = {}
        for effect in (each for each in self._parts.observes if each.applies(scope)):
            if (place := effect.collection(scope)) is not None:
                found[(*self._parts.at, *place)] = effect.part(scope, given)
            for root in effect.roots:
                part = {} if root in effect.whole else effect.part(scope, given)
                place = (*self._parts.at, root)
                found[place] = part if part is not None else found.get(place)
        return found

    def _begin(self, state: Json, **more: Json) -> Scope:
        self._scope.values = self._lets.names(state=state, **more)
        return self._scope.start()

    def _change(self, effects: list[Effect], *, grows: bool = False) -> Patch:
        is_derived = self._parts.status == "derived"
        change, above = PatchBuilder(self._scope, self._before, grows=grows or is_derived), pointer(self._parts.at)
        for effect in effects:
            effect.apply(change)
        self.found = change.shown
        if not above:
            is_same = all(one["op"] != "copy" for one in change.patch)  # copies in one patch are limited
            self.changed = change.patch if is_same else [], change.state
            return change.patch
        return [{**one, **{key: above + one[key] for key in ("path", "from") if key in one}} for one in change.patch]


def find_holes(result: Any, above: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the JSON Pointers of a result's open parts, each with the reason."""
    if isinstance(result, OpenPart):
        return {pointer(above): result.reason}
    members = result.items() if isinstance(result, dict) else enumerate(result) if isinstance(result, list) else ()
    return {at: why for key, each in members for at, why in find_holes(each, (*above, str(key))).items()}


def read_mount(at: Any, place: Location) -> tuple[str, ...]:
    """Return the keys of `at`: a key of the task state, or a list of keys from its root. Raises ContractError."""
    keys = (at,) if isinstance(at, str) else tuple(at or ()) if isinstance(at, list | tuple | None) else None
    if keys is None or not all(isinstance(key, str) and key for key in keys):
        raise place.error(f"expected a key of the task state, or a list of keys, got {at!r}")
    return keys


def partly_shown(state: Json, at: tuple[str, ...] = ()) -> dict[str, list[JsonObject]]:
    """Return the partly shown collections below `at`, each with the common values of its parts."""
    above = pointer(at)
    return {tokens(path)[-1]: parts for path, parts in marks_of(state).items() if path.rpartition("/")[0] == above}


def subtree(state: Json, at: tuple[str, ...]) -> Json:
    """Return the value below these keys of the task state; {} if there is none."""
    for key in at:
        state = state.get(key, {}) if isinstance(state, dict) else {}
    return state
