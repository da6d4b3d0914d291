"""Which calls of a plan a person is asked about, and which are refused: decided from checkpointed values alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from ..contracts.language.expression import Expression, Scope
from ..errors import EvaluationFailed, GeckoError, did_you_mean
from ..state import JsonObject
from ..tools import Toolkit
from ..tools.spec import ToolSpec
from ..world.records import PlannedCall, ReviewWord

MODES = ("writes", "all", "none")
WORDS: tuple[ReviewWord, ...] = ("allow", "ask", "refuse")
RULE_KEYS = ("tool", "when", "then", "reason")
MAX_AGE = 3600.0

EXAMPLE = "[{'tool': 'get_*', 'then': 'allow'}, {'tool': 'pay', 'when': 'args.amount > 100', 'then': 'ask'}]"


class ReviewRule(NamedTuple):
    """One rule: what becomes of the calls of some tools."""

    tool: str
    then: ReviewWord
    when: Expression | None
    reason: str

    @classmethod
    def load(cls, given: Any, where: str, toolkit: Toolkit) -> ReviewRule:
        """Return a rule as it was written. Raises GeckoError, ContractError."""
        if not isinstance(given, Mapping):
            raise GeckoError(f"{where}: expected a rule as in {EXAMPLE}, got {given!r}")
        check_keys(given, RULE_KEYS, where)
        if given.get("then") not in WORDS:
            raise GeckoError(f"{where}: expected `then` to be one of {', '.join(WORDS)}, got {given.get('then')!r}")
        tool, when, reason = (given.get(key, default) for key, default in (("tool", "*"), ("when", ""), ("reason", "")))
        for key, value in (("tool", tool), ("when", when), ("reason", reason)):
            if not isinstance(value, str):
                raise GeckoError(f"{where}: expected `{key}` to be a text, got {value!r}")
        if not any(fnmatchcase(each.name, tool) for each in toolkit):
            hint = did_you_mean(tool, [each.name for each in toolkit])
            raise GeckoError(f"{where}: no tool matches {tool!r}{hint}: the rule would never apply")
        condition = Expression.compile(when, names=("args", "state"), where=f"{where}, `when`") if when else None
        return cls(tool, given["then"], condition, reason)

    def word(self, args: JsonObject, state: JsonObject) -> tuple[ReviewWord, str] | None:
        """Return what becomes of a call of such a tool, and why; None where the condition does not hold."""
        try:
            holds = self.when is None or self.when.is_true(Scope({"args": args, "state": state}))
        except EvaluationFailed as error:
            return "ask", f"a rule's condition cannot be evaluated: {error}"
        return (self.then, self.reason or f"a rule for {self.tool}: {self.then}") if holds else None


@dataclass(frozen=True, slots=True)
class ReviewPolicy:
    """Which calls are reviewed, and how long an approval holds."""

    mode: str = "writes"
    rules: tuple[ReviewRule, ...] = ()
    max_age: float = MAX_AGE
    needs_id: bool = False
    """True where every answer must name its question; else the first one of a turn may come without."""

    @classmethod
    def load(cls, given: Any, toolkit: Toolkit) -> ReviewPolicy:
        """Return the policy that a user has written: a word, a list of rules, or either with `max_age` and `needs_id`.

        Raises:
            GeckoError: It is none of them, or a rule is wrong or matches no tool.
            ContractError: A condition cannot be parsed.
        """
        more = given if isinstance(given, Mapping) else {"rules": given}
        check_keys(more, ("rules", "max_age", "needs_id"), "review")
        rules, max_age = more.get("rules", "writes"), more.get("max_age", MAX_AGE)
        needs_id = more.get("needs_id", False)
        if not isinstance(needs_id, bool):
            raise GeckoError(f"review: expected `needs_id` to be true or false, got {needs_id!r}")
        if isinstance(max_age, bool) or not isinstance(max_age, int | float) or not max_age > 0:
            raise GeckoError(f"review: expected `max_age` to be a number of seconds above 0, got {max_age!r}")
        if isinstance(rules, list | tuple) and rules:
            places = [f"review: rule {number}" for number in range(1, len(rules) + 1)]
            loaded = [ReviewRule.load(rule, where, toolkit) for rule, where in zip(rules, places, strict=True)]
            return cls("rules", tuple(loaded), max_age, needs_id)
        if not isinstance(rules, str) or rules not in MODES:
            known = f"one of {', '.join(MODES)}, or rules such as {EXAMPLE}"
            raise GeckoError(f"review: expected {known}, got {rules!r}{did_you_mean(str(rules), MODES)}")
        return cls(rules, (), max_age, needs_id)

    @property
    def may_ask(self) -> bool:
        """Whether any call may be asked about."""
        return self.mode != "none"

    def word(self, planned: PlannedCall, tool: ToolSpec, state: JsonObject) -> tuple[ReviewWord, str]:
        """Return what becomes of a call, and why.

        An argument with several possible sources is asked about whatever the policy. A write that rests on something
        made up, or on a condition that could not be evaluated, is asked about, and refused where no person is asked, as
        is there what is only derived; a rule can allow it.
        """
        if tool.real is None:
            return "refuse", "the tool has no real function"
        word, reason = self._by_rules(planned, state) if self.rules else self._by_mode(tool)
        if word != "allow":
            return word, reason
        if planned["ambiguous"]:
            return "ask", "where an argument comes from is not certain"
        if not self.rules and not tool.trusted and (doubt := find_doubt(planned, derived=self.mode == "none")):
            return ("refuse" if self.mode == "none" else "ask"), doubt
        return "allow", ""

    def _by_mode(self, tool: ToolSpec) -> tuple[ReviewWord, str]:
        if self.mode == "all":
            return "ask", "every call is reviewed"
        if self.mode == "none" or tool.trusted:
            return "allow", ""
        return "ask", "it changes something" if tool.effect == "write" else "it is not known to only read"

    def _by_rules(self, planned: PlannedCall, state: JsonObject) -> tuple[ReviewWord, str]:
        call = planned["call"]
        found = [rule.word(call["args"], state) for rule in self.rules if fnmatchcase(call["name"], rule.tool)]
        words = [each for each in found if each]
        return words[-1] if words else ("ask", "no rule applies to it")


def check_keys(given: Mapping[Any, Any], keys: Sequence[str], where: str) -> None:
    """Raise GeckoError where a mapping has other keys."""
    for key in given:
        if key not in keys:
            raise GeckoError(f"{where}: unknown key {key!r}{did_you_mean(str(key), keys)}; keys: {', '.join(keys)}")


def find_doubt(planned: PlannedCall, *, derived: bool) -> str:
    """Return what a call rests on that nothing real supports, or states (`derived`); empty where that is nothing."""
    if planned["made_up"]:
        return f"made up: {', '.join(each['argument'].removeprefix('$.') for each in planned['made_up'])}"
    if derived and planned.get("derived"):
        return f"computed, not stated: {'; '.join(planned['derived'])}"
    return f"could not be checked: {planned['unclear'][0]}" if planned.get("unclear") else ""
