"""Prompts: one Markdown file per role, rendered strictly, with all foreign text fenced as data.

A file has two parts, separated by a line `<!-- user -->`: the constant system message (first, because providers cache
prefixes), and the variable part. After `<!-- questions -->` come the questions for a decision model: a text shared by
all, then one question per line. A comment `{# needs task, call #}` lists the variables that a user's own prompt must
use. Roles that judge or check a call do not see secrets: they only need to know whether two passwords are equal.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import StrictUndefined, Template, meta
from jinja2.sandbox import SandboxedEnvironment

from ..errors import GeckoError
from ..state import ROLES, Role

BLIND: frozenset[Role] = frozenset({"validator", "checklist", "judge", "risk"})
"""Roles that do not see secrets. The others make, answer or apply the calls that contain them."""

_NAMES = (
    r"pass(?:word|wd|code|phrase)|pwd|pin(?:[_ -]?code)?|cv[vc]2?|(?:client|shared)[_ -]?secret|secret[_ -]?key"
    r"|(?:api|access|private)[_ -]?key|(?:credit|debit)?[_ -]?card[_ -]?(?:number|no)"
)
_NAME_PARTS = ("pass", "pwd", "pin", "cvv", "cvc", "secret", "key", "card")
"""Each secret name contains one of these."""
_BEFORE = r"(?:\w{1,40}[_-]|[a-z0-9]{1,40}(?=[A-Z]))?"
_NAMED = re.compile(rf"^{_BEFORE}(?i:{_NAMES})$")
_MEMBER = re.compile(rf"\"{_BEFORE}(?i:{_NAMES})\": (?:\"((?:[^\"\\]|\\.){{3,200}})\"|(\d{{3,20}}))")
_SAID = re.compile(
    rf"(?i)\b(?:{_NAMES})\b(?: (?:is|of|to|as))?[ :=]{{1,3}}[\"'`]?(?=\S{{0,60}}\d)([^\s\"'`,;]{{4,60}})"
)
_CARD = re.compile(r"(?<![\w.])\d(?:[ -]?\d){12,18}(?![\w.])")


def is_secret(name: str) -> bool:
    """Return whether an argument with this name is a secret: a password, a PIN, a card number."""
    return _NAMED.match(name) is not None


def hide_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Return a prompt's variables with secrets replaced by `(secret 1)` etc.; equal secrets get equal numbers."""
    found = dict.fromkeys(value for text in variables.values() if text for value in _find(text))
    if not found:
        return {**variables}
    names = {value: f"(secret {number})" for number, value in enumerate(found, 1)}
    longest = sorted(map(re.escape, found), key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(longest)})(?!\w)")
    return {key: pattern.sub(lambda match: names[match[0]], text) for key, text in variables.items()}


@lru_cache(maxsize=64)
def _find(text: str) -> tuple[str, ...]:
    """Return the secrets in a text; cached, because task and tools recur in every call."""
    cards = [match[0] for match in _CARD.finditer(text) if _is_card(match[0])]
    low = text.lower()
    if text.isascii() and not any(part in low for part in _NAME_PARTS):
        return tuple(cards)  # the patterns with names take ten times as long
    members = [first or second for first, second in _MEMBER.findall(text)]
    said = [value.rstrip(".?)") for value in _SAID.findall(text)]
    return *members, *said, *cards


def _is_card(text: str) -> bool:
    """Return whether digits are a card number by their Luhn checksum (ISO/IEC 7812-1)."""
    digits = [int(each) for each in reversed(text) if each.isdigit()]
    return sum(each if place % 2 == 0 else sum(divmod(2 * each, 10)) for place, each in enumerate(digits)) % 10 == 0


MARKER, QUESTIONS = "<!-- user -->", "<!-- questions -->"
_DIGITS = 8
_NEEDS = re.compile(r"\{# needs (.+) #\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    system: str
    user: str


@dataclass(frozen=True)
class _Parts:
    """A parsed prompt file; its template is compiled on first use."""

    system: str
    text: str
    questions: str
    given: frozenset[str] | None = None

    @cached_property
    def names(self) -> frozenset[str]:
        """The variables that it uses, or may use."""
        return _variables(self.text) if self.given is None else self.given

    @cached_property
    def user(self) -> Template:
        return _environment().from_string(self.text)


def fence(text: str, label: str) -> str:
    """Fence text as data: `<label-1f3a...>` to `</label-1f3a...>`.

    The mark is a digest of the text, repeated until the text does not contain it, so that no text can close its own
    fence. Equal texts have equal fences, so that providers' prefix caches match.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate cannot be encoded
    name = label + "-"
    mark = name + _digest(text)
    again = 0
    while mark in text:
        again += 1
        mark = name + _digest(f"{again}:{text}")
    return f"<{mark}>\n{text}\n</{mark}>"


class Prompts:
    """The prompts of all roles, read once: no node reads a file in an event loop.

    Args:
        given: A folder of your own prompts, `NAME.md`; other roles keep the built-in prompt.

    Raises:
        GeckoError: A file of an unknown role, an unknown or missing variable, or an invalid template.
    """

    def __init__(self, given: str | Path | None = None) -> None:
        self._parts: Mapping[Role, _Parts] = _built_in() if given is None else {**_built_in(), **_own(Path(given))}
        self._bare: dict[Role, Prompt] = {}

    def render(self, role: Role, variables: Mapping[str, str]) -> Prompt:
        """Render a role's prompt with exactly the variables of the built-in one.

        Raises:
            ValueError: A variable is missing or unknown.
        """
        parts = self._parts[role]
        if variables.keys() != parts.names:
            missing, unused = sorted(parts.names - variables.keys()), sorted(variables.keys() - parts.names)
            raise ValueError(f"prompt {role!r}: missing {missing}, unused {unused}")
        if any(variables.values()):
            return Prompt(parts.system, parts.user.render(variables).strip())
        if role not in self._bare:  # most planner calls have no variables
            self._bare[role] = Prompt(parts.system, parts.user.render(variables).strip())
        return self._bare[role]

    def questions(self, ask: Any) -> list[str]:
        """Return the questions of a role's file for a decision model, each with the shared text."""
        template = _environment().from_string(self._parts[ask.role].questions)
        first, *questions = template.render(ids=ask.ids).strip().splitlines()
        return [f"{each} {first}" for each in questions]

    def check_shows(self, role: Role, name: str) -> None:
        """Check that a role's prompt shows a variable that only some graphs need.

        Raises:
            GeckoError: The prompt does not show it.
        """
        probe = f"the {name}"
        if probe not in self.render(role, {**dict.fromkeys(variables_of(role), ""), name: probe}).user:
            raise GeckoError(f"prompts: {role}.md: the variable {name!r} is missing, but this graph needs it")


def variables_of(role: Role) -> frozenset[str]:
    return _built_in()[role].names


def required_of(role: Role) -> frozenset[str]:
    """Return the variables that a user's own prompt of a role must use."""
    found = _NEEDS.search(_built_in()[role].text)
    return frozenset(found[1].split(", ")) if found else frozenset()


def folder() -> Path:
    """Return the folder of the prompts: inside the package, or next to it in a source checkout.

    Raises:
        FileNotFoundError: There is none; the installation is broken.
    """
    package = Path(__file__).resolve().parents[1]
    for place in (package / "prompts", package.parent / "prompts"):
        if (place / "planner.md").is_file():
            return place
    raise FileNotFoundError(f"no prompts in {package / 'prompts'}: install gecko-graph again")


@cache
def _built_in() -> Mapping[Role, _Parts]:
    return MappingProxyType({role: _load(folder() / f"{role}.md") for role in ROLES})


def _own(place: Path) -> dict[Role, _Parts]:
    try:
        files = sorted(path for path in place.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise GeckoError(f"prompts: {place} is not a folder that can be read ({error.strerror})") from None
    roles = {f"{role}.md": role for role in ROLES}
    if strange := [path for path in files if path.name not in roles]:
        raise GeckoError(f"prompts: {strange[0]} is not the prompt of a role; expected {', '.join(roles)}")
    return {roles[path.name]: _load_checked(path, roles[path.name]) for path in files}


def _load_checked(path: Path, role: Role) -> _Parts:
    """Load a user's own prompt, and test it with short and with empty texts."""
    known = variables_of(role)
    try:
        parts = _load(path)
        if _variables(parts.system):
            raise ValueError(f"the part before {MARKER} is constant and must not have variables")
        if unknown := sorted(parts.names - known):
            raise ValueError(f"unknown variable {unknown[0]!r}; the {role} has {', '.join(sorted(known))}")
        if missing := sorted(required_of(role) - parts.names):
            raise ValueError(f"the variable {missing[0]!r} is missing, but the {role} needs it")
        for text in ("x", ""):
            parts.user.render(dict.fromkeys(known, text))
        _environment().from_string(parts.questions).render(ids=("x",))
    except Exception as error:  # noqa: BLE001 - a template can raise anything
        raise GeckoError(f"prompts: {path}: {' '.join(str(error).split())}") from None
    return _Parts(parts.system, parts.text, parts.questions or _built_in()[role].questions, known)


def _load(path: Path) -> _Parts:
    system, marker, user = path.read_text(encoding="utf-8").partition(f"\n{MARKER}\n")
    if not marker:
        raise ValueError(f"expected a line {MARKER}")
    user, _, questions = user.partition(f"\n{QUESTIONS}\n")
    return _Parts(system.strip(), user, questions)


def _variables(text: str) -> frozenset[str]:
    return frozenset(meta.find_undeclared_variables(_environment().parse(text)))


@cache
def _environment() -> SandboxedEnvironment:
    environment = SandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["fence"] = fence
    return environment


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
