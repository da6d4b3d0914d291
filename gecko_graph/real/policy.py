"""`interrupt_on`: the calls of a plan that a person is asked about, and those that are refused.

The decision depends only on checkpointed values, so a resumed run decides as before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from ..contracts.language.expression import Expression, Scope
from ..errors import EvaluationFailed, GeckoError, did_you_mean
from ..state import JsonObject
from ..tools import Toolkit
from ..tools.spec import ToolSpec
from ..values.notes import notes_of, place_of, tell
from ..world.records import PlannedCall, ReviewWord

WORDS: tuple[ReviewWord, ...] = ("allow", "ask", "refuse")
DecisionWord = Literal["approve", "edit", "reject", "respond"]
DECISIONS = get_args(DecisionWord)
FORMS = (
    "'writes', 'all', 'none', rules such as [{'tool': 'get_*', 'then': 'allow'}, {'tool': 'pay', 'when': 'args.amount "
    "> 100', 'then': 'ask'}], or LangChain's dict such as {'pay': True, 'refund': {'allowed_decisions': ['approve']}}"
)

Form = TypeVar("Form", bound=BaseModel)


class Strict(BaseModel):
    """A form of user input: no unknown keys, and no type conversion."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ReviewRule(Strict):
    """One rule: the decision on the calls of some tools."""

    tool: str = "*"
    when: str = ""
    then: ReviewWord
    reason: str = ""
    _condition: Expression | None = PrivateAttr(None)

    def word(self, args: JsonObject, state: JsonObject) -> tuple[ReviewWord, str] | None:
        """Return the decision on a call of such a tool with the reason; None if the condition is false."""
        try:
            holds = self._condition is None or self._condition.is_true(Scope({"args": args, "state": state}))
        except EvaluationFailed as error:
            return "ask", f"a rule's condition cannot be evaluated: {error}"
        return (self.then, self.reason or f"a rule for {self.tool}: {self.then}") if holds else None


class NamedTool(Strict):
    """The settings of LangChain's `HumanInTheLoopMiddleware` for a tool that needs approval, without functions."""

    allowed_decisions: list[DecisionWord] = Field(min_length=1)
    description: str = "it is named in interrupt_on"


class ReviewPolicy(Strict):
    """The calls that are reviewed, and how long an approval is valid."""

    rules: Any = "writes"
    """As written by the user: a word, a list of rules, or LangChain's dict."""
    max_age: float = Field(3600.0, gt=0)
    needs_id: bool = False
    """True if every answer must name its question; else the first one of a turn may omit it."""
    risk: bool = False
    """True if the role `risk` judges writes before a person is asked about them."""
    _rules: list[ReviewRule] = PrivateAttr(default_factory=list)
    _named: dict[str, NamedTool | None] = PrivateAttr(default_factory=dict)

    @classmethod
    def load(cls, given: Any, toolkit: Toolkit) -> ReviewPolicy:
        """Return the policy for a value of `interrupt_on` of `create_gecko_agent`.

        Raises:
            GeckoError: It is not a policy, a tool's setting cannot be used, or no tool has the name.
            ContractError: A condition cannot be parsed.
        """
        names = {*given} & {*cls.model_fields} if isinstance(given, Mapping) else set()
        has_options = bool(names - {"risk"})  # a tool may be called `risk`
        policy = read(cls, given if has_options else {"rules": given}, "interrupt_on")
        rules = policy.rules
        if isinstance(rules, list | tuple) and rules:
            policy._rules = [read_rule(each, f"interrupt_on: rule {n}", toolkit) for n, each in enumerate(rules, 1)]
        elif isinstance(rules, Mapping) and rules:
            named = {toolkit.resolve(str(name)): each for name, each in rules.items()}
            policy._named = {name: read_tool(each, name, toolkit) for name, each in named.items()}
        elif rules not in ("writes", "all", "none"):
            raise GeckoError(f"interrupt_on: expected {FORMS}, got {rules!r}")
        return policy

    @property
    def may_ask(self) -> bool:
        return bool(self.rules != "none")

    def allowed(self, tool: str) -> Sequence[str]:
        named = self._named.get(tool)
        return named.allowed_decisions if named else DECISIONS

    def word(self, planned: PlannedCall, tool: ToolSpec, state: JsonObject) -> tuple[ReviewWord, str]:
        """Return the decision on a call, and the reason.

        A call with an argument of several possible sources always needs a person. A write needs one if it depends on
        something invented or on a condition that could not be evaluated; if no person may be asked, it is refused, also
        if an argument was only computed. A rule can allow it. A refusal by a learned rule is left to a person.
        """
        if tool.real is None:
            return "refuse", "the tool has no real function"
        word, reason = self._own_word(planned["call"]["args"], tool, state)
        if word == "ask" and self.risk and not tool.reads and (risk := planned.get("risk")):
            word, reason = risk["word"], risk["reason"]
        if word == "allow" and (overruled := notes_of(planned, "overruled")):
            return ("ask" if self.may_ask else "refuse"), tell(overruled[0])
        if word != "allow":
            return word, reason
        if planned["ambiguous"]:
            return "ask", "the source of an argument is not certain"
        if not self._rules and not tool.trusted and (doubt := find_doubt(planned, derived=not self.may_ask)):
            return ("ask" if self.may_ask else "refuse"), doubt
        return "allow", ""

    def _own_word(self, args: JsonObject, tool: ToolSpec, state: JsonObject) -> tuple[ReviewWord, str]:
        if self._rules:
            found = [rule.word(args, state) for rule in self._rules if fnmatchcase(tool.name, rule.tool)]
            return next((each for each in reversed(found) if each), ("ask", "no rule applies to it"))
        if self._named:
            named = self._named.get(tool.name)
            return ("ask", named.description) if named else ("allow", "")
        if self.rules == "all":
            return "ask", "every call is reviewed"
        if self.rules == "none" or tool.trusted:
            return "allow", ""
        return "ask", "it changes something" if tool.effect == "write" else "it is not known to only read"


def read(form: type[Form], given: Any, where: str) -> Form:
    """Return a user's input in this form. Raises GeckoError if it is invalid; the message has the first problem."""
    try:
        return form.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f" {each!r}:" for each in first["loc"])
        raise GeckoError(f"{where}:{place} {first['msg']}, got {first['input']!r}") from None


def read_rule(given: Any, where: str, toolkit: Toolkit) -> ReviewRule:
    """Return a rule.

    Raises:
        GeckoError: It is invalid, or matches no tool.
        ContractError: Its condition cannot be parsed.
    """
    rule = read(ReviewRule, given, where)
    if not any(fnmatchcase(each.name, rule.tool) for each in toolkit):
        hint = did_you_mean(rule.tool, toolkit.names)
        raise GeckoError(f"{where}: no tool matches {rule.tool!r}{hint}: the rule would never apply")
    if rule.when:
        rule._condition = Expression.compile(rule.when, names=("args", "state"), where=f"{where}, `when`")
    return rule


def read_tool(given: Any, name: str, toolkit: Toolkit) -> NamedTool | None:
    """Return the setting of a tool in LangChain's dict; None for a tool that needs no approval.

    Raises:
        GeckoError: The setting is invalid.
    """
    if name not in toolkit:
        raise GeckoError(f"interrupt_on: no tool {name!r}{did_you_mean(name, toolkit.names)}")
    if isinstance(given, Mapping) and "when" in given:
        raise GeckoError(f"interrupt_on: {name}: `when` is a function; write a rule, whose `when` is an expression")
    if isinstance(given, bool):
        return NamedTool(allowed_decisions=[*DECISIONS]) if given else None
    return read(NamedTool, given, f"interrupt_on: {name}")


def find_doubt(planned: PlannedCall, *, derived: bool) -> str:
    """Return the reason to doubt a call's arguments: invented, computed (`derived`) or unchecked; "" for none."""
    if made_up := notes_of(planned, "made_up"):
        return f"made up: {', '.join(map(place_of, made_up))}"
    if derived and planned.get("derived"):
        return f"computed, not stated: {'; '.join(planned['derived'])}"
    unclear = notes_of(planned, "unclear")
    return f"could not be checked: {tell(unclear[0])}" if unclear else ""
