"""The simulated user: what he wants, knows and must not say, and lines that he follows without a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Protocol, TypeAlias, runtime_checkable

from langchain_core.language_models import BaseChatModel
from pydantic import BeforeValidator, Field, ValidationError

from ..context import GeckoContext
from ..contracts.language.expression import Scope, check_expression
from ..errors import ContractError, EvaluationFailed, GeckoError, did_you_mean
from ..models.factory import ModelLike
from ..models.formatting import text_of
from ..state import JsonObject
from ..tools import Toolkit
from ..world.rung import answered_calls
from .channels import ConversationState, Leak
from .messages import read_envelope
from .milestones.format import Entry
from .milestones.goal import Goal

LONGEST_LINE = 4_000
LINE = "expected a text, or {say: text} or {end: true}"


class LineEntry(Entry):
    """A line of a scripted user; one whose check does not hold is left out."""

    say: str | None = Field(None, min_length=1)
    when: str | None = Field(None, min_length=1)
    end: bool = False


class ExchangeEntry(Entry):
    """A message and the answer to it, to show the user's manner."""

    user: str
    agent: str


def _line(value: Any) -> Any:
    return {"say": value} if isinstance(value, str) else value


class UserEntry(Entry):
    """The user of a scenario (ToolSandbox, section 2.2).

    `knows` is the knowledge boundary: what he may answer with. `must_not_say` is what he knows to judge the result by,
    but must not give away; a leak is found by rule. `script` makes a model unnecessary.
    """

    goal: str = Field(pattern=r"\S")
    opening: str | None = Field(None, pattern=r"\S")
    knows: list[str] = Field(default_factory=list)
    must_not_say: list[str] = Field(default_factory=list)
    demonstration: list[ExchangeEntry] = Field(default_factory=list)
    script: list[Annotated[LineEntry, BeforeValidator(_line)]] = Field(default_factory=list)
    max_messages: int = Field(30, ge=1)
    max_failures: int = Field(3, ge=1)
    minutes_a_turn: float = Field(1.0, ge=0)

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with it beyond its form."""
        for number, line in enumerate(self.script):
            if not line.end and line.say is None:
                yield f"script[{number}]: {LINE}"
            if line.when:
                try:
                    check_expression(line.when, where=f"script[{number}].when")
                except ContractError as error:
                    yield str(error)


@runtime_checkable
class Case(Protocol):
    """What a scenario says of a conversation (`scenario.Scenario`)."""

    @property
    def tools(self) -> Toolkit:
        """The tools of agent and user."""

    @property
    def state(self) -> JsonObject | None:
        """The task state at the start; None for the world's own."""

    @property
    def user(self) -> UserEntry | None:
        """The simulated user; None where the file has turns."""

    @property
    def goal(self) -> Goal:
        """Milestones and minefields."""

    @property
    def limits(self) -> GeckoContext:
        """Knobs of the world's answers."""


UserLike: TypeAlias = ModelLike | UserEntry | Mapping[str, Any] | Sequence[Any]


def read_user(user: UserLike | None, scenario: UserEntry | None) -> tuple[UserEntry, ModelLike | None]:
    """Return the user of a conversation, and the model that plays him where one was given.

    Raises:
        GeckoError: There is no goal, or something in it is wrong: names the place.
    """
    if isinstance(user, str | BaseChatModel):
        if scenario is None:
            raise GeckoError("user: a model needs a goal: pass user={'goal': ...}, models={'user': ...}, or a scenario")
        return scenario.model_copy(update={"script": []}), user
    if user is None:
        if scenario is None:
            raise GeckoError("user: expected a scenario with a user, user={'goal': ...}, or a script")
        return scenario, None
    if isinstance(user, UserEntry):
        return user, None
    written = dict(user) if isinstance(user, Mapping) else {"script": list(user)}
    base = {"goal": "follow the script"} if "script" in written else {}
    base = scenario.model_dump(exclude_unset=True) if scenario else base
    try:
        spec = UserEntry.model_validate({**base, **written})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        known = (LineEntry if "script" in first["loc"] else UserEntry).model_fields
        whys = {"extra_forbidden": f"unknown key{did_you_mean(str(first['loc'][-1]), known)}", "model_type": LINE}
        why = whys.get(first["type"], first["msg"].removeprefix("Input "))
        raise GeckoError(f"user: {'.'.join(map(str, first['loc']))}: {why}") from None
    for problem in spec.problems():
        raise GeckoError(f"user: {problem}")
    return spec, None


def find_line(script: Sequence[LineEntry], first: int, state: ConversationState) -> int:
    """Return the number of the script's next line whose check holds, from the given one on; its length where none does.

    A check sees `answer` (the agent's last message to the user), `state`, `before` (the state at the start) and
    `calls`, as a checklist's does. One that cannot be evaluated does not hold.
    """
    for number in range(first, len(script)):
        when = script[number].when
        if when is None or _holds(when, state, number):
            return number
    return len(script)


def _holds(when: str, state: ConversationState, number: int) -> bool:
    world, messages = state["world"], reversed(state.get("messages", []))
    said = (text_of(message) for message in messages if read_envelope(message)["sender"] == "agent")
    values: JsonObject = {
        "state": world["state"],
        "before": world["start"],
        "calls": answered_calls(world["log"]),
        "answer": next(said, ""),
    }
    try:
        return check_expression(when, where=f"script[{number}].when").is_true(Scope(values))
    except EvaluationFailed:
        return False


def find_leaks(state: ConversationState, must_not_say: Sequence[str]) -> list[Leak]:
    """Return which messages hold what the user must not say, in whatever letter case, spacing and punctuation."""
    secrets = [(text, _plain(text)) for text in must_not_say]
    return [
        {"message": number, "text": text}
        for number, message in enumerate(state.get("messages", ()))
        if read_envelope(message)["sender"] == "user"
        for text, plain in secrets
        if plain and f" {plain} " in f" {_plain(text_of(message))} "
    ]


def _plain(text: str) -> str:
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())
