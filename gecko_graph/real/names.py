"""Names of ids for people, from the state or real reads: a pet's name, an item's title."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..models.formatting import cut, one_line
from ..schemas.specimens import is_identifier, noun
from ..state import Json
from ..values.places import scalars

FIELDS = ("name", "full_name", "fullName", "display_name", "displayName", "title", "label", "subject", "email")
"""Fields that name the object around them, the best first."""
SHOWN = 60
MOST_READ = 20_000


class Names:
    """Names of things by id; none for an id of two things.

    An id of digits alone may belong to other things too, so it counts only in a field with the thing's noun: `pet_id`.
    """

    def __init__(self, state: Json, results: Iterable[tuple[str, Json]] = ()) -> None:
        self._found: dict[str, set[tuple[str, str]]] = {}
        self._left = MOST_READ
        self._read(state, "", "")
        for tool, value in results:
            is_thing = isinstance(value, list) or (isinstance(value, dict) and "id" in value)
            self._read(value, noun(tool) if is_thing else "", "")

    def _read(self, value: Json, kind: str, key: str) -> None:
        self._left -= 1
        if self._left < 0 or not isinstance(value, dict | list):
            return
        if isinstance(value, list):
            for each in value:
                self._read(each, kind, "")
            return
        name = next((value[each] for each in FIELDS if isinstance(value.get(each), str) and value[each].strip()), None)
        if name is not None:
            own = [value["id"]] if "id" in value else [key] if key else [value[each] for each in _ids_of(value)][:1]
            for each in own:
                if isinstance(each, str | int) and not isinstance(each, bool) and str(each) != name:
                    self._found.setdefault(str(each), set()).add((kind, cut(one_line(name), budget=SHOWN)))
        for member, each in value.items():
            is_thing = isinstance(each, dict) and name is None
            self._read(each, kind if is_thing and kind else noun(member), member if kind and is_thing else "")

    def of(self, field: str, value: Json) -> str:
        """Return the name of the thing whose id a field contains; empty if none is known."""
        if isinstance(value, bool) or not isinstance(value, str | int):
            return ""
        found = self._found.get(str(value), set())
        fitting = {name for kind, name in found if kind and kind == noun(field)}
        names = fitting or (set() if str(value).isdigit() else {name for _, name in found})
        return next(iter(names)) if len(names) == 1 else ""

    def list_in(self, value: Json) -> Iterator[tuple[str, str]]:
        """Yield the things whose ids occur in a value, each with its place: `Flocke`, `pet_id P3`."""
        for place, each in scalars(value):
            field = next((key for key in reversed(place) if isinstance(key, str)), "")
            if name := self.of(field, each):
                yield name, f"{field} {each}"


def _ids_of(value: dict[str, Json]) -> list[str]:
    found = [key for key in value if is_identifier(key)]
    return found if len(found) == 1 else []
