"""ToolSpec: one tool with its schemas, contract and functions; and names that every provider accepts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..contracts.contract import Contract
from ..contracts.derived import DerivedContract
from ..state import Json, JsonObject
from .lessons import Lessons

Effect = Literal["read", "write"]

NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class ToolExample:
    """A recorded result of a read for these arguments."""

    args: JsonObject
    result: Json


@dataclass(frozen=True, slots=True)
class HttpBinding:
    """The HTTP operation of a tool, and the locations of its arguments. OpenAPI's defaults are left out."""

    method: str
    path: str
    places: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Argument name to location (`path`, `query`, `querystring`, `header`, `cookie` or `body`) and name there; the name
    of a whole body is ''."""
    styles: dict[str, JsonObject] = field(default_factory=dict)
    """Argument name to `style`, `explode`, `allowReserved` and `content` (a media type), if not the default."""
    body: JsonObject = field(default_factory=dict)
    """The request body: its `media` type, whether it is `required` (if its members do not imply that), the `encoding`
    of its members, whether it is `closed` (undeclared members are not allowed)."""
    server: JsonObject | None = None
    """The server object, `url` and `variables`; the first if there are several."""
    security: tuple[dict[str, JsonObject], ...] = ()
    """Alternatives, each a set of required security schemes by name; `{}` requires none."""
    responses: dict[str, JsonObject] = field(default_factory=dict, repr=False, compare=False)
    """Responses by code (`404`, `4XX`, `default`): `media`, `schema` and named `examples`, or nothing."""


@dataclass(frozen=True, slots=True)
class Source:
    """The place of a tool in its OpenAPI document."""

    document: JsonObject
    """Exported by `to_openapi`; shared by all tools of the document."""
    slot: tuple[str, str]
    """Path and method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """One tool. Immutable.

    Args:
        name: The tool's name, as the planner calls it.
        description: Its purpose, for the planner.
        parameters: JSON Schema 2020-12 of the argument object.
        result: JSON Schema of a successful result; None if the source has none.
        effect: `read` or `write`; None if unknown, which is treated as a write.
        contract: Pre- and postconditions, effects and result as a function of the task state (ToolGate, section 3.2).
        derived: A contract derived from a document alone: it answers simulated calls, and refuses no real call.
        examples: Recorded results.
        simulate: `simulate(state, **args)`: computes the answer on a copy of the task state, which it may change.
        real: The real function. Never used to simulate a call.
        opened: Whether the user allows a rehearsal to run `real`; only reads can be opened.
        binding: The operation of an OpenAPI document.
        tags: Its groups in the source, for `Toolkit.select`.
        stated: Whether the user stated the effect; False if it is only claimed by a server's annotations.
        idempotency: The argument that takes an idempotency key, or `header:<name>` of an HTTP tool. The executor fills
            it; it is not among `parameters`.
        refuses: Whether an error result of `real` guarantees that nothing was done. By default a write's is in doubt.
        accepts: Checks valid arguments against the real function's own types; returns path, expected, got.
        source: The document that it was read from.
        lessons: Lessons from real calls, while an agent runs.
    """

    name: str
    description: str = ""
    parameters: JsonObject = field(default_factory=lambda: dict(NO_PARAMETERS))
    result: JsonObject | None = None
    effect: Effect | None = None
    contract: Contract | None = None
    derived: DerivedContract | None = None
    examples: tuple[ToolExample, ...] = ()
    simulate: Callable[..., Any] | None = None
    real: Callable[..., Any] | None = None
    opened: bool = False
    binding: HttpBinding | None = None
    tags: tuple[str, ...] = ()
    stated: bool = False
    idempotency: str | None = None
    refuses: bool = False
    accepts: Callable[[JsonObject], Sequence[tuple[str, str, str]]] | None = field(
        default=None, repr=False, compare=False
    )
    source: Source | None = field(default=None, repr=False, compare=False)
    lessons: Lessons | None = field(default=None, repr=False, compare=False)

    @property
    def key_argument(self) -> str | None:
        """The keyword of `real` that takes an idempotency key; None if the tool takes none."""
        is_header = self.idempotency is not None and self.idempotency.startswith("header:")
        return "idempotency_key" if is_header else self.idempotency

    @property
    def about(self) -> str:
        """The description for models; method and path if an OpenAPI document has none."""
        return self.description or (f"{self.binding.method.upper()} {self.binding.path}" if self.binding else "")

    @property
    def reads(self) -> bool:
        """Whether the tool is known to change nothing."""
        return self.effect == "read"

    @property
    def is_learned(self) -> bool:
        """Whether its requirements were learned; they only warn, and a person may overrule them."""
        return self.has_learned and not (self.contract and self.contract.guards)

    @property
    def has_learned(self) -> bool:
        """Whether a part of its contract was learned."""
        return self.lessons is not None and self.lessons.is_learned

    @property
    def has_learned_answers(self) -> bool:
        """Whether the effects and result of its contract were learned, without a written part."""
        data = self.contract.data if self.contract else {}
        return self.has_learned and {"effects", "returns"} & data.keys() <= data.get("evidence", {}).keys()

    @property
    def trusted(self) -> bool:
        """Whether the user stated that it changes nothing; real calls need no review and may be repeated."""
        return self.reads and (self.stated or self.opened)


def read_tags(tags: Any) -> tuple[str, ...]:
    """Return the tags of a source without duplicates; values that are not text are left out."""
    return tuple(dict.fromkeys(tag for tag in tags if isinstance(tag, str))) if isinstance(tags, list | tuple) else ()


VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")
LONGEST = 64

VARIABLE = re.compile(r"\{([^{}]+)\}")
"""A variable of a path or of a server's address."""


def valid_name(name: str) -> str:
    """Return the name with characters that providers reject replaced: `math.hypot` becomes `math_hypot`.

    A long name is cut, and gets a hash of the whole name as its end, so that names stay distinct.
    """
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name)
    plain = plain if plain == name else plain.strip("_")
    plain = plain or "tool"
    if len(plain) <= LONGEST:
        return plain
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{plain[: LONGEST - 9]}_{mark}"


def operation_name(method: str, path: str) -> str:
    """Return a name for an operation without one: `get /pets/{petId}` becomes `get_pets_by_petId`."""
    words = VARIABLE.sub(r"by_\1", path)
    return valid_name(f"{method.lower()}_{words.strip('/')}" if words.strip("/") else f"{method.lower()}_root")


def path_variables(path: str) -> list[str]:
    """Return the variables of a path template, in order, without duplicates."""
    return list(dict.fromkeys(VARIABLE.findall(path)))


def unique_name(name: str, taken: Container[str]) -> str:
    """Return the name, with a numeric suffix if it is taken: `ls`, `ls_2`, `ls_3`."""
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        end = f"_{number}"
        candidate = f"{name[: LONGEST - len(end)]}{end}"
    return candidate


def provider_names(names: Sequence[str]) -> dict[str, str]:
    """Return for each name one that every provider accepts; valid names are kept."""
    given = {name: name for name in names if VALID.fullmatch(name)}
    taken = {*given}
    for name in names:
        if name not in given:
            given[name] = unique_name(valid_name(name), taken)
            taken.add(given[name])
    return given


def format_names(names: Sequence[str]) -> str:
    """Return the first eight names, and the number of the others."""
    return (", ".join(names[:8]) or "none") + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def as_function(name: str, description: str, parameters: JsonObject) -> JsonObject:
    """Return an OpenAI function dict."""
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}
