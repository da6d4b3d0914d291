"""Toolkit: an immutable set of tools, with its sources and exports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..contracts.invariant import Invariant
from ..errors import ToolkitError, install
from ..schemas.strict import check_schema
from ..state import JsonObject
from . import declaration
from .check import Calls, Rejection, Unclear, check_call, read_call
from .crossing import Crossing
from .declaration import Tool, ToolkitParts, by_name, check_known, check_openable, name_unknown
from .problems import Problem, find_problems, find_size_problems, select_tools
from .spec import ToolSpec, as_function, format_names, provider_names

if TYPE_CHECKING:
    import httpx
    from langchain_core.tools import BaseTool


class Toolkit:
    """An immutable, ordered set of tools.

    Args:
        tools: The tools, with distinct names.
        lets: Expressions that the contracts share (`x-contract-let`), as data for `to_openapi`.
        invariants: Conditions on every task state.
        state_schema: JSON Schema 2020-12 of every task state.
        title: The toolkit's title.
        broken: The unreadable parts of the tools' source, for `problems`.

    Raises:
        ToolkitError: A name is missing or duplicate, or a tool is opened that must not be.
    """

    def __init__(
        self,
        tools: Iterable[ToolSpec],
        *,
        lets: Mapping[str, Any] | None = None,
        invariants: Iterable[Invariant] = (),
        state_schema: JsonObject | None = None,
        title: str = "",
        broken: Iterable[Problem] = (),
    ) -> None:
        self._tools = MappingProxyType(by_name(tools))
        self.lets: JsonObject = dict(lets or {})
        self.invariants = tuple(invariants)
        self.state_schema = None if state_schema is None else check_schema(state_schema, where="state_schema")
        self.title = title
        self.broken = tuple(broken)

    @classmethod
    def from_openapi(
        cls,
        source: str | Path | Mapping[str, Any],
        *,
        server: str | Mapping[str, str] | None = None,
        auth: Mapping[str, str | Callable[[], str]] | str | None = None,
        client: httpx.Client | None = None,
        allow_remote: bool = False,
        parsed: JsonObject | None = None,
    ) -> Toolkit:
        """Return the operations of an OpenAPI 3.0 to 3.2 or Swagger 2.0 document as tools.

        Path, query, header, cookie and body parameters become one argument object. If several have the same name, each
        gets its location as a suffix (`id_path`, `id_body`); a body that is not a plain object is one argument, `body`.
        Credentials are not arguments. If a server is known, `real` sends the request.

        Args:
            source: Path of a YAML or JSON file, or the document; if `allow_remote` is True also an `https` address.
            server: Address of the server, in place of the document's, or values for its server variables.
            auth: Security scheme to credential: the value (`user:password` for basic), `env:NAME` or a function that
                returns it. `"env:PREFIX_"` takes all from environment variables `PREFIX_<SCHEME>`.
            client: Sends the requests instead of the default client, with its own timeouts, proxies and certificates.
            allow_remote: Whether references to the web are followed (`https` only). References to files are read only
                inside the document's own folder.
            parsed: The file's parsed content, if the caller has it (a pipe can be read only once).

        Raises:
            ToolkitError: It is not an OpenAPI document, or no operation is complete. Other broken parts are left
                out and listed in `problems`.
        """
        from .openapi.client import add_functions
        from .openapi.importer import read_openapi

        read = read_openapi(source, allow_remote=allow_remote, parsed=parsed)
        tools = add_functions(read.tools, server=server, auth=auth, client=client)
        return cls(**read._replace(tools=tools)._asdict())

    @classmethod
    def from_mcp(
        cls,
        server: Any,
        *,
        headers: Mapping[str, str | Callable[[], str]] | None = None,
        auth: Any = None,
        env: Mapping[str, str | Callable[[], str]] | None = None,
        prefix: str = "",
        trust_hints: bool = False,
        timeout_s: float = 30.0,
    ) -> Toolkit:
        """Return the tools of one or several MCP servers, with their real functions (extra `mcp`).

        A server's hint (`readOnlyHint`) does not count as the user's statement: the tool is rehearsed as a read, but
        reviewed and executed as a write. `close()`, leaving `with` or the end of the process closes the connections.

        Args:
            server: An http(s) address, a command as a list, a server object of the `mcp` package, `{"command", "args",
                "env", "cwd"}` or `{"url", "headers", "auth"}`; or several by name, the prefix of their tools.
            headers: HTTP header to a text, `env:NAME` or a function, read at each use.
            auth: Bearer token, given likewise, or an `httpx2.Auth`, such as the client's OAuth providers.
            env: Environment variables of a command, given likewise; little else is inherited.
            prefix: Prefix of the tools' names, before `_`.
            trust_hints: Whether the server's hints on effects count as stated.
            timeout_s: Seconds for a call, and for opening a connection.

        Raises:
            GeckoError: The extra is not installed, there is no connection, or the tools cannot be listed.
        """
        given = {"headers": headers, "auth": auth, "env": env, "prefix": prefix, "trust_hints": trust_hints}
        specs, problems = _load_mcp().read_servers(server, given | {"timeout_s": timeout_s})
        return cls(specs, broken=problems)

    @classmethod
    async def afrom_mcp(cls, server: Any, **options: Any) -> Toolkit:
        """Read as `from_mcp`, without blocking the event loop; also an open `Client` or `ClientSession` of the loop."""
        specs, problems = await _load_mcp().aread_servers(server, options)
        return cls(specs, broken=problems)

    @classmethod
    def from_tools(
        cls,
        tools: Iterable[Any],
        *,
        lets: Mapping[str, Any] | None = None,
        requires: Mapping[str, Any] | None = None,
        invariants: Sequence[Mapping[str, Any]] = (),
        state_schema: JsonObject | None = None,
        title: str = "",
    ) -> Toolkit:
        """Read functions, Pydantic classes, LangChain tools, function dicts and ToolSpecs as tools.

        Args:
            tools: The tools; wrap one in `Tool` to declare more of it.
            lets: Expressions that the contracts share, as in `x-contract-let`.
            requires: Requirements that the contracts share, as in `x-contract-requires`.
            invariants: `{check, error}` over `state` and `before`, checked at every change.
            state_schema: JSON Schema 2020-12 of every task state, as in `x-state`.
            title: The toolkit's title.

        Raises:
            ToolkitError: An item is not a tool, cannot be read, or has an invalid declaration.
            ContractError: A contract or an invariant is invalid.
        """
        from .functions import read_tools

        specs, declared = read_tools(tools)
        rules = {"let": lets, "invariants": invariants, "state": state_schema}
        parts = declaration.load_rules(ToolkitParts(specs, title=title), rules)
        return cls(**declaration.add_declared(parts, declared, requires)._asdict())

    def __reduce__(self) -> Any:
        return partial(Toolkit, **self._parts()._asdict() | {"tools": Crossing(self)}), ()

    def __getitem__(self, name: str) -> ToolSpec:
        if name not in self._tools:
            raise KeyError(name_unknown(name, self._tools))
        return self._tools[name]

    def get(self, name: str) -> ToolSpec | None:
        """Return the tool of that name, or None."""
        return self._tools.get(name)

    def is_read(self, name: str) -> bool:
        """Return whether a tool is known to change nothing."""
        return name in self._tools and self._tools[name].reads

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __repr__(self) -> str:
        return f"Toolkit({f'{self.title!r}: ' if self.title else ''}{format_names(self.names)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names, in order."""
        return tuple(self._tools)

    @cached_property
    def state_keys(self) -> frozenset[str]:
        """The keys of the task state that the tools' contracts name."""
        return frozenset(key for tool in self if tool.contract is not None for key in tool.contract.state_keys)

    @cached_property
    def observing(self) -> tuple[ToolSpec, ...]:
        """The tools whose real results reveal parts of the task state, by their contracts."""
        return tuple(tool for tool in self if tool.contract is not None and tool.contract.observed)

    @cached_property
    def problems(self) -> list[Problem]:
        """The gaps, contradictions and ineffective parts of the tools' sources."""
        return [*find_size_problems(list(self)), *self.broken, *find_problems(self)]

    def open(self, *names: str) -> Toolkit:
        """Return the toolkit with these reads opened: a rehearsal may run their real functions.

        Raises:
            ToolkitError: A tool is unknown, is not known to be a read, or has no real function.
        """
        for name in names:
            if not isinstance(name, str):
                raise ToolkitError(f"open: expected tool names, open('a', 'b'), got {type(name).__name__}")
            check_known(name, self._tools, "cannot open")
            check_openable(self[name])
        return self.replace(*(replace(self[name], opened=True) for name in names))

    def select(
        self,
        *,
        names: Iterable[str] | str = (),
        match: Iterable[str] | str = (),
        tags: Iterable[str] | str = (),
        paths: Iterable[str] | str = (),
    ) -> Toolkit:
        """Return the toolkit with some of its tools, in their order; lets, invariants and title are kept.

        A tool must match one pattern of each kind that is given.

        Args:
            names: Tool names.
            match: Globs of tool names: `issues_*`.
            tags: Tags of the source, or globs of tags.
            paths: Globs of an OpenAPI document's paths: `/repos/**`; `*` stays within a segment.

        Raises:
            ToolkitError: A pattern matches nothing, or no tool matches all kinds; the message suggests similar names.
        """
        chosen = select_tools(list(self), {"names": names, "match": match, "tags": tags, "paths": paths}, self.broken)
        kept = {tool.name for tool in chosen}
        broken = [each for each in self.broken if each.tool in kept]
        return self._of(self._parts()._replace(tools=chosen, broken=broken))

    def _parts(self) -> ToolkitParts:
        return ToolkitParts(list(self), self.lets, self.invariants, self.state_schema, self.title, self.broken)

    def _of(self, parts: ToolkitParts) -> Toolkit:
        return Toolkit(**parts._asdict())

    def replace(self, *specs: ToolSpec) -> Toolkit:
        """Return the toolkit with tools of the same names replaced. Raises ToolkitError for unknown names."""
        changed = {spec.name: spec for spec in specs}
        for name in changed:
            check_known(name, self._tools, "cannot replace")
        return self._of(self._parts()._replace(tools=[changed.get(tool.name, tool) for tool in self]))

    def declare(self, *tools: Tool) -> Toolkit:
        """Return the toolkit with further declarations: `toolkit.declare(Tool("pay", effect="write"), ...)`.

        Contracts use the toolkit's lets and state schema.

        Raises:
            ToolkitError: A tool is unknown, or a declaration is invalid.
            ContractError: A contract is invalid.
        """
        return self._of(declaration.add_declared(self._parts(), tools))

    def with_contracts(
        self, source: str | Path | Mapping[str, Any], *, at: str | Sequence[str] | None = None
    ) -> Toolkit:
        """Return the toolkit with the contracts of a file; each replaces its tool's contract.

        Args:
            source: A YAML or JSON file, or its content: `contracts` (tool name to contract) and, shared by them, `let`,
                `invariants` and `state`, the schema of their state; `at` as below.
            at: A key of the task state, or a list of keys: the contracts' `state` is the value there.

        Raises:
            ToolkitError: The file cannot be read, or names an unknown tool.
            ContractError: A contract or an invariant is invalid.
        """
        rules = self._parts()._replace(tools=(), broken=())
        return self._of(declaration.join([rules, declaration.read_contracts(self._parts(), source, at=at)]))

    def mount(self, at: str | Sequence[str]) -> Toolkit:
        """Return the toolkit with its contracts and invariants below a key of the task state, or a list of keys."""
        return self._of(declaration.join([self._parts()], at=at))

    def merge(self, *others: Toolkit) -> Toolkit:
        """Return one toolkit of this one and others, on one task state; also as `a + b`.

        Raises:
            ToolkitError: Two tools have the same name.
        """
        return self._of(declaration.join([one._parts() for one in (self, *others)]))

    def __add__(self, other: Toolkit) -> Toolkit:
        return self.merge(other)

    def close(self) -> None:
        """Close the connections of the tools' real functions (`from_mcp`), also for toolkits derived from this one."""
        for one in {getattr(tool.real, "background", None) for tool in self} - {None}:
            one.close()  # type: ignore[union-attr]

    def __enter__(self) -> Toolkit:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def to_openapi(self) -> JsonObject:
        """Return an OpenAPI document from which `from_openapi` reads the same tools.

        It is the document that the tools were read from, with later changes, or a new one of version 3.1. Parts that
        plain OpenAPI cannot express are under `x-gecko`. The functions `real` and `simulate` are not exported.
        """
        from .openapi.exporter import write_openapi

        return write_openapi(self._parts())

    def as_openai(self) -> list[JsonObject]:
        """Return OpenAI function dicts for `bind_tools`, under names that every provider accepts; see `resolve`."""
        return [as_function(self._provider_names[tool.name], tool.about, tool.parameters) for tool in self]

    def resolve(self, provider_name: str) -> str:
        """Return the tool's own name for a name from `as_openai`; any other name is returned unchanged."""
        return provider_name if provider_name in self else self._own_names.get(provider_name, provider_name)

    def check(
        self,
        call: Mapping[str, Any],
        state: JsonObject,
        *,
        unclear: Unclear = "pass",
        calls: Calls = (),
        untrusted: Sequence[str] = (),
    ) -> Rejection | None:
        """Check a call before it is made: its arguments, and its contract's preconditions in a task state.

        The gate of every rehearsed and real call (ToolGate, section 3.4), without a model and without a run.

        Args:
            call: `{"name", "args"}` as in LangChain, or a form of OpenAI's, with `arguments`; the name may be one of
                `as_openai`.
            state: The task state before the call.
            unclear: Whether a call passes or is refused if a condition cannot be evaluated in this state.
            calls: The turn's earlier calls, for contracts that name `calls`: `{"name", "args", "status", "result"}`.
            untrusted: JSON Pointers to supposed places of the state, for contracts that use `trusted`.

        Returns:
            None if the call may be made; else `{"complaints": [...]}` about its form, or the tool's own error in
            this state with all broken preconditions, `{"error": ..., "violations": [...]}`.
        """
        given = {key: call[key] for key in call if key not in ("id", "call_id")} if isinstance(call, Mapping) else call
        own, complaint = read_call(given, taken=(), number=1)
        if complaint:
            return {"complaints": [complaint]}
        own["name"] = self.resolve(own["name"])
        return check_call(own, state, self.get(own["name"]), unclear=unclear, calls=calls, untrusted=untrusted)

    def as_tools(self, *, timeout_s: float = 30.0) -> list[BaseTool]:
        """Return LangChain tools that run the real functions, each call within `timeout_s` seconds.

        Their names are those of `as_openai`. Results are JSON; an error, also of a tool without a real function, is a
        message with `status="error"`.
        """
        from .real import as_tool

        return [as_tool(tool, seen, timeout_s=timeout_s) for tool, seen in zip(self, self.as_openai(), strict=True)]

    @cached_property
    def _provider_names(self) -> dict[str, str]:
        return provider_names(self.names)

    @cached_property
    def _own_names(self) -> dict[str, str]:
        return {given: name for name, given in self._provider_names.items()}


def _load_mcp() -> Any:
    try:
        return import_module(".mcp", __package__)
    except ImportError as error:
        raise ToolkitError(f"MCP needs the official client, 2.x: {install('mcp')} ({error})") from None
