"""Make a toolkit harder for an agent: distracting tools, and less information on each (ToolSandbox, A.2.1).

Pure functions from toolkit to toolkit. They change what the agent sees, including complaints and errors, but not the
answers of contracts, examples and models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

from ..errors import GeckoError, did_you_mean
from ..schemas.subschemas import rebuild
from ..state import JsonObject
from ..tools.declaration import ToolkitParts, check_known
from ..tools.spec import ToolSpec, as_function, provider_names, unique_name
from ..tools.toolkit import Toolkit

HIDDEN = "hidden tool "
"""Prefix by which `resolve` hides the own name of a tool that the agent knows under another one."""

TOLD = ("description", "title", "$comment")
"""Keywords of a schema that contain prose."""


@dataclass(frozen=True, slots=True)
class Face:
    """A tool as an agent sees it."""

    name: str
    description: str
    parameters: JsonObject


class DisguisedToolkit(Toolkit):
    """A toolkit whose tools have other faces for the agent."""

    def __init__(self, toolkit: Toolkit, faces: Mapping[str, Face]) -> None:
        super().__init__(**toolkit._parts()._asdict())
        self.faces = dict(faces)

    def _of(self, parts: ToolkitParts) -> Toolkit:
        made = super()._of(parts)
        faces = {name: face for name, face in self.faces.items() if name in made}
        taken = {face.name for face in faces.values()}
        for name, face in find_faces(made).items():
            if name not in faces:
                faces[name] = replace(face, name=unique_name(face.name, taken))
                taken.add(faces[name].name)
        return DisguisedToolkit(made, faces)

    def as_openai(self) -> list[JsonObject]:
        """Return OpenAI function dicts of the faces."""
        faces = [self.faces[name] for name in self.names]
        return [as_function(each.name, self.show(each.description), self._show_all(each.parameters)) for each in faces]

    def _show_all(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        told = {key: self.show(schema[key]) for key in TOLD if isinstance(schema.get(key), str)}
        return {**rebuild(schema, self._show_all), **told}

    def resolve(self, provider_name: str) -> str:
        """Return the tool's own name for the name that the agent sees; an own name that it does not see is hidden."""
        hidden = provider_name in self and provider_name not in self._own_names
        return f"{HIDDEN}{provider_name}" if hidden else self._own_names.get(provider_name, provider_name)

    def show(self, text: str) -> str:
        """Return a text with the tools' own names replaced by those that the agent sees."""
        return self._own_pattern.sub(lambda found: self.faces[found.group()].name, text)

    @cached_property
    def _own_pattern(self) -> re.Pattern[str]:
        changed = [re.escape(name) for name, face in self.faces.items() if face.name != name]
        return re.compile(rf"(?<!\w)(?:{'|'.join(sorted(changed, key=len, reverse=True)) or '(?!)'})(?!\w)")

    @cached_property
    def _provider_names(self) -> dict[str, str]:
        return {name: face.name for name, face in self.faces.items()}


def find_faces(toolkit: Toolkit) -> dict[str, Face]:
    """Return the faces of a toolkit's tools, by their own names."""
    if isinstance(toolkit, DisguisedToolkit):
        return toolkit.faces
    names = provider_names(toolkit.names)
    return {tool.name: Face(names[tool.name], tool.description, tool.parameters) for tool in toolkit}


def show_text(toolkit: Toolkit, text: str) -> str:
    """Return a text of a tool's answer as the agent may see it."""
    return toolkit.show(text) if isinstance(toolkit, DisguisedToolkit) else text


def distract(toolkit: Toolkit, needed: Sequence[str], count: int | None) -> Toolkit:
    """Return the toolkit with the needed tools and the nearest others, in its order.

    Nearest are tools that share a tag with a needed one, then those with similar names: `count` of them, or all.

    Raises:
        ToolkitError: A needed tool is unknown.
    """
    for name in needed:
        check_known(name, {tool.name: tool for tool in toolkit}, "cannot keep")
    chosen = [toolkit[name] for name in needed]
    others = sorted((tool for tool in toolkit if tool.name not in needed), key=lambda tool: _distance(tool, chosen))
    return toolkit.select(names=[*needed, *(tool.name for tool in others[:count])])


def _distance(tool: ToolSpec, needed: Sequence[ToolSpec]) -> tuple[bool, float, str]:
    related = any(set(tool.tags) & set(each.tags) for each in needed)
    alike = max((SequenceMatcher(None, tool.name, each.name).ratio() for each in needed), default=0.0)
    return not related, -alike, tool.name


def scramble_names(toolkit: Toolkit) -> Toolkit:
    """Return the toolkit with meaningless names: the tool's first tag, or `tool`, and a number."""
    faces = find_faces(toolkit)
    plain = {name: f"{next(iter(toolkit[name].tags), 'tool')}_{n}" for n, name in enumerate(sorted(faces))}
    valid = provider_names([*plain.values()])
    return DisguisedToolkit(toolkit, {name: replace(faces[name], name=valid[one]) for name, one in plain.items()})


def remove_descriptions(toolkit: Toolkit) -> Toolkit:
    return _change(toolkit, lambda face: replace(face, description=""))


def remove_argument_descriptions(toolkit: Toolkit) -> Toolkit:
    return _change(toolkit, lambda face: replace(face, parameters=_undescribed(face.parameters)))


def remove_argument_types(toolkit: Toolkit) -> Toolkit:
    """Return the toolkit without the arguments' types; names and descriptions are kept."""

    def untyped(face: Face) -> Face:
        rules, required = (face.parameters.get(key, {}) for key in ("properties", "required"))
        told = {name: rule.get("description") if isinstance(rule, dict) else None for name, rule in rules.items()}
        properties = {name: {"description": text} if text else {} for name, text in told.items()}
        return replace(face, parameters={"type": "object", "properties": properties, "required": [*required]})

    return _change(toolkit, untyped)


def _change(toolkit: Toolkit, change: Callable[[Face], Face]) -> Toolkit:
    return DisguisedToolkit(toolkit, {name: change(face) for name, face in find_faces(toolkit).items()})


def _undescribed(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    return rebuild({key: one for key, one in schema.items() if key not in TOLD}, _undescribed)


AUGMENTATIONS: Mapping[str, tuple[int | None, Callable[[Toolkit], Toolkit] | None]] = {
    "no_distraction_tools": (0, None),
    "3_distraction_tools": (3, None),
    "10_distraction_tools": (10, None),
    "all_tools": (None, None),
    "tool_names_scrambled": (3, scramble_names),
    "tool_descriptions_removed": (3, remove_descriptions),
    "argument_descriptions_removed": (3, remove_argument_descriptions),
    "argument_types_removed": (3, remove_argument_types),
}
"""Name to number of distraction tools, and a further change; as in the paper on top of three of them."""


def augment(toolkit: Toolkit, needed: Sequence[str], name: str) -> Toolkit:
    """Return the toolkit under one of `AUGMENTATIONS`.

    Raises:
        GeckoError: The augmentation is unknown.
        ToolkitError: A needed tool is unknown.
    """
    if name not in AUGMENTATIONS:
        hint = did_you_mean(name, AUGMENTATIONS)
        raise GeckoError(f"unknown augmentation {name!r}{hint}; known: {', '.join(AUGMENTATIONS)}")
    count, change = AUGMENTATIONS[name]
    chosen = distract(toolkit, needed, count)
    return change(chosen) if change else chosen
