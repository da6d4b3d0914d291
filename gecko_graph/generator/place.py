"""Places in a value that is being made: what the dice, the dates and the names of a field depend on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .moments import Anchor


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a value is being made.

    Args:
        anchor: What the moments here hang on.
        trail: Names and indices from the root.
        near: Names of fields since the root or the last array item.
        names: Names of fields since the root.
        owner: What the object it stands in is called.
        scope: Trail of that object.
        refs: References that led here, as often as they did.
        in_items: True inside an array.
        tight: True where only what must be there is made.
    """

    anchor: Anchor
    trail: tuple[str | int, ...] = ()
    near: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    owner: str = ""
    scope: tuple[str | int, ...] = ()
    refs: tuple[str, ...] = ()
    in_items: bool = False
    tight: bool = False

    @property
    def name(self) -> str:
        """The nearest field's name."""
        return self.names[-1] if self.names else ""

    def member(self, name: str) -> Place:
        """The place of a member of the object here."""
        owner = self.name or self.owner
        names, near = (*self.names, name), (*self.near, name)
        return replace(self, trail=(*self.trail, name), names=names, near=near, owner=owner, scope=self.trail)
