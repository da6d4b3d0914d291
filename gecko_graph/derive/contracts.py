"""Contracts that follow from the kinds of operations: data as in contract files, with the status `derived`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from ..contracts.derived import DerivedContract
from ..state import JsonObject
from ..tools import Toolkit
from .asked import is_newest_first
from .kinds import STATEFUL, Kind, find_hindrance, find_kinds
from .paths import Paths
from .shapes import SchemaShape, plain, singular
from .writer import ContractWriter


@dataclass(frozen=True)
class Derived:
    """The contracts derived from a toolkit's document.

    Args:
        kinds: The kind of each operation with its reason, by tool name.
        left_out: Why an operation of a known kind has no contract, by tool name.
        file: A file of contracts, for `Toolkit.with_contracts`.
    """

    kinds: Mapping[str, Kind]
    left_out: Mapping[str, str]
    file: JsonObject

    @property
    def made(self) -> list[str]:
        """The state's root keys under which operations create things; they are empty in a service without data."""
        return sorted(key for key, is_made in self._roots().items() if is_made)

    def tell(self, state: JsonObject) -> list[str]:
        """Return lines of text about the derived state and its unknown parts."""
        counts = Counter(kind.word for name, kind in self.kinds.items() if name in self.file["contracts"])
        words = ", ".join(f"{word} {count}" for word, count in counts.most_common())
        empty = ", ".join(key for key in self.made if not state.get(key))
        others = ", ".join(sorted(key for key, is_made in self._roots().items() if not is_made and key not in state))
        lines = {
            f"a state was derived from the document (--no-derive leaves it out): {words}": bool(counts),
            f"empty until something is made: {empty}": bool(empty),
            f"no operation creates these, so reads of them return made-up data: {others}": bool(others),
        }
        return [line for line, is_told in lines.items() if is_told]

    def _roots(self) -> dict[str, bool]:
        things = (kind.things for name, kind in self.kinds.items() if kind.things and name in self.file["contracts"])
        return {(one.of or one).root: (one.of or one).is_made for one in things}


def derive_contracts(toolkit: Toolkit, state: JsonObject | None = None) -> Derived:
    """Derive contracts on a shared state from the paths, schemas and names of tools. Pure.

    Args:
        toolkit: The tools, of an OpenAPI document or with names such as `create_issue`.
        state: The initial task state: contracts use its keys, or are left out.

    Returns:
        The kind of each operation, with the reason, and contracts with the status `derived`: they answer in
        simulations, refuse no real call, and give way to any written or confirmed contract.
    """
    return _derive(toolkit, _find_roots(toolkit, state))


def _derive(toolkit: Toolkit, shaped: Mapping[str, bool]) -> Derived:
    paths, left, contracts = Paths(toolkit), dict[str, str](), JsonObject()
    kinds = find_kinds(paths)
    for things in paths.things.values():
        things.root = next((key for key in shaped if plain(singular(key)) == plain(singular(things.name))), things.name)
    paths.is_newest_first = any(map(is_newest_first, paths.operations))
    for one in paths.operations:
        kind, name = kinds[one.tool.name], one.tool.name
        if why := find_hindrance(kind, shaped):
            left[name] = why
        elif data := (writer := ContractWriter(paths, one, kind)).write():
            evidence = {"status": "derived", "kind": kind.word, "why": kind.why}
            evidence |= ({"by": "name"} if one.by_name else {}) | writer.shows()
            contracts[name] = {"evidence": evidence, **data}
        elif kind.word in STATEFUL:
            left[name] = "the document does not describe its response sufficiently"
    return Derived(kinds, left, {"contracts": contracts})


def add_derived(toolkit: Toolkit, state: JsonObject | None = None) -> tuple[Toolkit, Derived]:
    """Return a toolkit with derived contracts for the tools that have none, and all that was derived."""
    return _add(toolkit, frozenset(_find_roots(toolkit, state).items()))


@lru_cache(maxsize=8)
def _add(toolkit: Toolkit, roots: frozenset[tuple[str, bool]]) -> tuple[Toolkit, Derived]:
    found = _derive(toolkit, dict(sorted(roots)))
    made = {name: DerivedContract(data, f"derived of {name}") for name, data in found.file["contracts"].items()}
    bare = (tool for tool in toolkit if tool.name in made and tool.derived is None)
    return toolkit.replace(*(replace(tool, derived=made[tool.name]) for tool in bare)), found


def with_derived(toolkit: Toolkit, state: JsonObject | None = None, *, derive: bool = True) -> Toolkit:
    """Return tools with the contracts derived from their document; unchanged if they have no document."""
    return add_derived(toolkit, state)[0] if derive and any(tool.binding for tool in toolkit) else toolkit


def _find_roots(toolkit: Toolkit, state: JsonObject | None) -> dict[str, bool]:
    """Return whether each root key of the state, its schema and written contracts is a collection of objects by key."""
    schema = (toolkit.state_schema or {}).get("properties", {})
    found = dict.fromkeys(toolkit.state_keys, True)
    found |= {key: SchemaShape(each, toolkit.state_schema).types <= {"object"} for key, each in schema.items()}
    for key, each in (state or {}).items():
        found[key] = isinstance(each, dict) and all(isinstance(one, dict) for one in each.values())
    return found
