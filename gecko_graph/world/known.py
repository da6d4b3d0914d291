"""Find values of simulated results that have no source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from langchain_core.messages import AIMessage, AnyMessage

from ..models.formatting import text_of
from ..models.memory import is_made_up
from ..state import Json, JsonObject, Step
from ..values.finding import atoms_of, forms_of
from ..values.places import Place, pointer, scalars
from .given import search_state

MOST_VALUES = 500
PROSE_ATOMS = 3
"""Number of words from which a text is prose, of which only figures and ids need a source."""


def find_unknown(
    steps: Sequence[Step], *, state: JsonObject, supposed: Iterable[str], messages: Iterable[AnyMessage]
) -> Mapping[str, list[str]]:
    """Return for each made-up result, by its call's id, the places of values without a source.

    Sources are the attempt's start state apart from `supposed` places, earlier words of people and tools, the call's
    arguments, and results that are not made up.
    """
    made = {
        step["call"]["id"]: list(islice(scalars(step["outcome"]["result"]), MOST_VALUES))
        for step in steps
        if "outcome" in step and step["outcome"].get("invented")
    }
    if not made:
        return {}
    wanted = {form for leaves in made.values() for _, value in leaves for need in _needs(value) for form in need}
    said = (text_of(each) for each in messages if not isinstance(each, AIMessage) and not is_made_up(each))
    known = {form for text in said for form in forms_of(text)}
    known |= {form for form, _ in search_state(state, wanted, {*supposed})}
    found: dict[str, list[str]] = {}
    for step in (step for step in steps if "outcome" in step):
        call, outcome = step["call"], step["outcome"]
        if call["id"] in made:
            own = known | _forms(call["args"])
            found[call["id"]] = [pointer(place) for place, value in made[call["id"]] if not _is_known(value, own)]
        else:
            known |= _forms(outcome["result"])
    return found


def _forms(value: Json) -> set[str]:
    leaves: Iterable[tuple[Place, Json]] = islice(scalars(value, keys=True), MOST_VALUES)
    return {form for _, leaf in leaves for form in forms_of(leaf)}


def _needs(value: Json) -> list[tuple[str, ...]]:
    """Return the parts of a value that need a source, as alternative forms; of prose only figures and ids."""
    if value is None or isinstance(value, bool) or value == "":
        return []
    atoms = atoms_of(value)
    specific = [atom for atom in atoms if atom.is_specific]
    return [atom.wholes for atom in (specific if len(atoms) >= PROSE_ATOMS else atoms)]


def _is_known(value: Json, known: Collection[str]) -> bool:
    return all(any(form in known for form in forms) for forms in _needs(value))
