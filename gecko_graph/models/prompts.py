"""Prompts: one Markdown file a role, rendered strictly, with everything that others wrote fenced as data.

A file has two parts, with a line `<!-- user -->` between them: what never changes (the system message, first, because
providers cache prefixes) and what does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

from jinja2 import Environment, StrictUndefined, Template, meta

from ..state import Role

MARKER = "<!-- user -->"
_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt. `user` is empty where there is nothing to say."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class _Parts:
    system: str
    user: Template
    names: frozenset[str]


def fence(text: str, label: str) -> str:
    """Fence text as data: `<label-1f3a...>` to `</label-1f3a...>`.

    The mark is a digest of the text, taken again until the text does not hold it: no text can close its own fence, and
    equal texts have equal fences, so that providers' prefix caches hit.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair cannot be sent
    name = label + "-"
    mark = name + _digest(text)
    again = 0
    while mark in text:
        again += 1
        mark = name + _digest(f"{again}:{text}")
    return f"<{mark}>\n{text}\n</{mark}>"


def render(role: Role, variables: Mapping[str, str]) -> Prompt:
    """Render a role's prompt.

    Args:
        role: Whose prompt.
        variables: Exactly the names that the prompt uses.

    Raises:
        ValueError: A variable is missing, or one is given that the prompt does not use.
    """
    parts = _load(role)
    if variables.keys() != parts.names:
        missing, unused = sorted(parts.names - variables.keys()), sorted(variables.keys() - parts.names)
        raise ValueError(f"prompt {role!r}: missing {missing}, unused {unused}")
    return Prompt(parts.system, parts.user.render(variables).strip())


def variables_of(role: Role) -> frozenset[str]:
    """The names that a role's prompt uses."""
    return _load(role).names


def load_all() -> None:
    """Read every prompt now, so that no node reads a file while an event loop runs."""
    for role in get_args(Role):
        _load(role)


def folder() -> Path:
    """Where the prompts lie: inside the package, or beside it in a source checkout.

    Raises:
        FileNotFoundError: Neither is there; the installation is broken.
    """
    package = Path(__file__).resolve().parents[1]
    for place in (package / "prompts", package.parent / "prompts"):
        if (place / "planner.md").is_file():
            return place
    raise FileNotFoundError(f"no prompts in {package / 'prompts'}: install gecko-graph again")


@cache
def _load(role: Role) -> _Parts:
    source = (folder() / f"{role}.md").read_text(encoding="utf-8")
    system, marker, user = source.partition(f"\n{MARKER}\n")
    if not marker:
        raise ValueError(f"prompt {role!r}: no line {MARKER}")
    environment = _environment()
    if meta.find_undeclared_variables(environment.parse(system)):
        raise ValueError(f"prompt {role!r}: the part before {MARKER} may not change, so it holds no variables")
    names = meta.find_undeclared_variables(environment.parse(user))
    return _Parts(system.strip(), environment.from_string(user), frozenset(names))


@cache
def _environment() -> Environment:
    environment = Environment(undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True)
    environment.filters["fence"] = fence
    return environment


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
