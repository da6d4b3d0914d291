"""Toolkit: an immutable set of tools, where they come from and where they can be written to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..contracts.contract import Invariant
from ..errors import ToolkitError
from ..schemas.well_formed import check_schema
from ..state import JsonObject
from .check import Calls, Rejection, Unclear, check_call, read_call
from .mcp import load_reader
from .names import format_names, provider_names
from .parts import Parts, join, read_contracts, read_parts
from .problems import Problem, find_problems
from .selection import find_size_problems, select_tools
from .spec import Effect, ToolExample, ToolSpec
from .stated import by_name, check_known, check_openable, with_keys

if TYPE_CHECKING:
    import httpx
    from langchain_core.tools import BaseTool


class Toolkit:
    """An immutable set of tools, in order.

    Args:
        tools: The tools; no two may have the same name.
        lets: `x-contract-let`, shared by the contracts, as data: written back by `to_openapi`.
        invariants: Conditions on every task state.
        state_schema: JSON Schema 2020-12 of every task state.
        title: Title of the whole.
        broken: What could not be read of the tools' source, for `problems`.

    Raises:
        ToolkitError: A name is missing or given twice, or a tool is opened that must not be.
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
        idempotency: Mapping[str, str] | None = None,
        client: httpx.Client | None = None,
        allow_remote: bool = False,
        parsed: JsonObject | None = None,
    ) -> Toolkit:
        """Return the operations of an OpenAPI 3.0 or 3.1 document as tools.

        Path, query, header, cookie and body parameters become one argument object. Where several have the same name,
        each gets its place behind it (`id_path`, `id_body`); a body that is not a plain object is one argument, `body`.
        The tool's `binding` says where each argument travels. Credentials are no arguments. Where a server is known,
        `real` sends the request; as every real function it runs only where it is opened or approved.

        Args:
            source: Path of a YAML or JSON file, or the document as a dict; where `allow_remote` is True also an `https`
                address.
            server: Address that calls go to, in place of the document's, or values for its server variables.
            auth: Security scheme to credential: the value (`user:password` for basic), `env:NAME` or a function that
                returns it. `"env:PREFIX_"` takes all from environment variables `PREFIX_<SCHEME>`.
            idempotency: Tool name to the argument (or `header:<name>`) that takes an idempotency key. A header
                parameter `Idempotency-Key` is found without.
            client: Sends the requests in place of our own: its time limits, proxies and certificates hold.
            allow_remote: Whether references to the web are followed (`https` only). References to files are read only
                inside the document's own folder.
            parsed: What the file holds, where it has been read already (a pipe can be read only once).

        Raises:
            ToolkitError: It is not an OpenAPI 3.0 or 3.1 document, or no operation can be read whole; the message names
                the place. What else is broken is left out and listed in `problems`.
        """
        from .openapi.client import add_functions
        from .openapi.importer import read_openapi

        read = read_openapi(source, allow_remote=allow_remote, parsed=parsed)
        plain = cls(with_keys(read.tools, idempotency))
        tools = add_functions(plain, server=server, auth=auth, client=client)
        rules = Parts(tools, read.lets, read.invariants, read.state_schema)._asdict()
        return cls(**rules, title=read.title, broken=read.problems)

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
        """Return the tools of an MCP server, or of several, with their real functions (extra `mcp`).

        What a server claims of a tool (`readOnlyHint`) its user has not stated: it is rehearsed as a read, but reviewed
        and executed as a write. Add contracts, effects and the rest by `Toolkit.from_tools(toolkit, effects=...)`.
        `close()`, leaving `with` or the end of the process ends the connections.

        Args:
            server: An http(s) address, a command as a list, a server object of the `mcp` package, `{"command", "args",
                "env", "cwd"}` or `{"url", "headers", "auth"}`; or several by name, which begins their tools' names.
            headers: HTTP header to a text, `env:NAME` or a function, read at each use.
            auth: Bearer token, given likewise, or an `httpx2.Auth`, such as the client's OAuth providers.
            env: Environment variable of a command to its value, given likewise; little else is inherited.
            prefix: What the tools' names begin with, before `_`.
            trust_hints: Whether effects that the server claims count as stated.
            timeout_s: Seconds for a call, and for opening a connection.

        Raises:
            GeckoError: The extra is not installed, there is no connection, or the tools cannot be listed.
        """
        given = {"headers": headers, "auth": auth, "env": env, "prefix": prefix, "trust_hints": trust_hints}
        specs, problems = load_reader().read_servers(server, given | {"timeout_s": timeout_s})
        return cls(specs.values(), broken=problems)

    @classmethod
    async def afrom_mcp(cls, server: Any, **options: Any) -> Toolkit:
        """Read as `from_mcp`, without blocking the event loop; or an open `Client` or `ClientSession` of that loop."""
        specs, problems = await load_reader().aread_servers(server, options)
        return cls(specs.values(), broken=problems)

    @classmethod
    def from_tools(  # noqa: PLR0913 - one keyword for each thing that a function cannot say of itself
        cls,
        tools: Iterable[Any],
        *,
        contracts: Mapping[str, Mapping[str, Any]] | None = None,
        lets: Mapping[str, Any] | None = None,
        requires: Mapping[str, Any] | None = None,
        invariants: Sequence[Mapping[str, Any]] = (),
        state_schema: JsonObject | None = None,
        simulate: Mapping[str, Callable[..., Any]] | None = None,
        effects: Mapping[str, Effect] | None = None,
        examples: Mapping[str, Sequence[ToolExample | Mapping[str, Any]]] | None = None,
        results: Mapping[str, JsonObject] | None = None,
        idempotency: Mapping[str, str] | None = None,
        refuses: Collection[str] = (),
        trust_hints: bool = False,
        title: str = "",
    ) -> Toolkit:
        """Read functions, Pydantic classes, LangChain tools, function dicts (OpenAI, BFCL, MCP) and ToolSpecs as tools.

        Args:
            tools: The tools. A function is kept as the tool's real one and never run unless you `open` it.
            contracts: Tool name to contract, as `x-contract` has it.
            lets: What the contracts share, as `x-contract-let` has it.
            requires: Requirements that they share, as `x-contract-requires` has them.
            invariants: `{check, error}` over `state` and `before`, of every change.
            state_schema: JSON Schema 2020-12 of every task state, as `x-state` has it.
            simulate: Tool name to `simulate(state, **args)`, which answers from a copy of the task state.
            effects: Tool name to `read` or `write`.
            examples: Tool name to given answers, as `{"args": ..., "result": ...}`.
            results: Tool name to the JSON Schema of its result, in the place of what its source says.
            idempotency: Tool name to the argument that takes an idempotency key: the executor fills it.
            refuses: Names of writes whose error results say that nothing was done; else they leave that open.
            trust_hints: Whether effects that the tools' own annotations claim count as stated by you.
            title: Title of the whole.

        Raises:
            ToolkitError: Something is not a tool, cannot be read, or names a tool that does not exist.
        """
        from .functions import specs_of

        fields = {"contracts": contracts, "simulate": simulate, "effects": effects, "examples": examples}
        more = {"results": results, "idempotency": idempotency, "refuses": refuses, "trust_hints": trust_hints}
        rules = {"let": lets, "requires": requires, "invariants": invariants, "state": state_schema}
        return cls(**read_parts(specs_of(tools), {**fields, **more}, rules)._asdict(), title=title)

    def __getitem__(self, name: str) -> ToolSpec:
        return self._tools[name]

    def get(self, name: str) -> ToolSpec | None:
        """Return the tool of that name, or None."""
        return self._tools.get(name)

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
    def problems(self) -> list[Problem]:
        """What the tools' sources leave open, contradict, or write in vain."""
        return [*find_size_problems(list(self)), *self.broken, *find_problems(self)]

    def open(self, *names: str) -> Toolkit:
        """Return the toolkit with the real functions of these reads opened: a rehearsal may run them.

        Raises:
            ToolkitError: There is no such tool, it is not known to be a read, or it has no real function that arguments
                alone can run.
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
        """Return the toolkit with some of its tools, in their order; lets, invariants and title stay.

        Of one kind any pattern may match; of several kinds each must.

        Args:
            names: Tool names.
            match: Globs of tool names: `issues_*`.
            tags: Tags, as the source has them, or globs of tags.
            paths: Globs of an OpenAPI document's paths: `/repos/**`; `*` is within a segment.

        Raises:
            ToolkitError: A pattern matches nothing, or no tool matches all kinds; near names are in the message.
        """
        chosen = select_tools(list(self), {"names": names, "match": match, "tags": tags, "paths": paths}, self.broken)
        kept = {tool.name for tool in chosen}
        return self._of(self._parts()._replace(tools=chosen), [each for each in self.broken if each.tool in kept])

    def _parts(self) -> Parts:
        return Parts(list(self), self.lets, self.invariants, self.state_schema)

    def _of(self, parts: Parts, broken: Iterable[Problem] | None = None) -> Toolkit:
        known = self.broken if broken is None else broken
        return Toolkit(**parts._asdict(), title=self.title, broken=known)

    def replace(self, *specs: ToolSpec) -> Toolkit:
        """Return the toolkit with these tools in place of those of the same names. Raises ToolkitError for others."""
        changed = {spec.name: spec for spec in specs}
        for name in changed:
            check_known(name, self._tools, "cannot replace")
        return self._of(self._parts()._replace(tools=[changed.get(tool.name, tool) for tool in self]))

    def with_contracts(
        self, source: str | Path | Mapping[str, Any], *, at: str | Sequence[str] | None = None
    ) -> Toolkit:
        """Return the toolkit with the contracts of a file; each takes the place of one that its tool has.

        Args:
            source: A YAML or JSON file, or its content: `contracts` (tool name to contract) and, shared by them, `let`,
                `invariants` and `state`, the schema of their state; `at` as below.
            at: A key of the task state, or a list of keys: the contracts' `state` is what stands there.

        Raises:
            ToolkitError: The file cannot be read, or names a tool that does not exist.
            ContractError: A contract or an invariant is wrong.
        """
        return self._of(join([self._parts()._replace(tools=()), read_contracts(self._parts(), source, at=at)]))

    def mount(self, at: str | Sequence[str]) -> Toolkit:
        """Return the toolkit with its contracts and invariants below a key of the task state, or a list of keys."""
        return self._of(join([self._parts()], at=at))

    def merge(self, *others: Toolkit) -> Toolkit:
        """Return one toolkit of this one and others, on one task state; also as `a + b`.

        Raises:
            ToolkitError: Two tools have one name.
        """
        broken = [problem for one in (self, *others) for problem in one.broken]
        return self._of(join([one._parts() for one in (self, *others)]), broken)

    def __add__(self, other: Toolkit) -> Toolkit:
        return self.merge(other)

    def close(self) -> None:
        """End the connections of the tools' real functions (`from_mcp`), also for toolkits made from this one."""
        for one in {getattr(tool.real, "background", None) for tool in self} - {None}:
            one.close()  # type: ignore[union-attr]

    def __enter__(self) -> Toolkit:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def to_openapi(self) -> JsonObject:
        """Return an OpenAPI document; `from_openapi` reads the same tools from it.

        It is the document that the tools were read from, with what has been changed since, else one of version 3.1.
        What plain OpenAPI cannot express stands under `x-gecko`. Functions cannot be written: `real` and `simulate` are
        missing from what is read back.
        """
        from .openapi.exporter import write_openapi

        return write_openapi(**self._parts()._asdict(), title=self.title)

    def as_openai(self) -> list[JsonObject]:
        """Return OpenAI function dicts for `bind_tools`, under names that every provider takes: see `resolve`."""
        names = self._provider_names
        shown = ({"name": names[t.name], "description": t.about, "parameters": t.parameters} for t in self)
        return [{"type": "function", "function": each} for each in shown]

    def resolve(self, provider_name: str) -> str:
        """Return the tool's own name for a name from `as_openai`; any other name is returned as it is."""
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
        """Check a call before it is made for real: its arguments, and its contract's precondition in a task state.

        The gate of every rehearsed and real call (ToolGate, section 3.4), without a model and without a run.

        Args:
            call: `{"name", "args"}`, such as a LangChain tool call; the name may be one of `as_openai`.
            state: The task state before the call.
            unclear: What becomes of a call whose condition cannot be evaluated in this state.
            calls: The turn's calls before it, for contracts that name `calls`: `{"name", "args", "status", "result"}`.
            untrusted: JSON Pointers to what is only supposed of the state, for contracts that use `trusted`.

        Returns:
            None where the call may be made; else `{"complaints": [...]}` about its form, or the tool's own error in
            this state with all broken preconditions, `{"error": ..., "violations": [...]}`.
        """
        own, complaint = read_call({**call, "id": None}, taken=(), number=1)
        if complaint:
            return {"complaints": [complaint]}
        own["name"] = self.resolve(own["name"])
        return check_call(own, state, self.get(own["name"]), unclear=unclear, calls=calls, untrusted=untrusted)

    def as_tools(self, *, timeout_s: float = 30.0) -> list[BaseTool]:
        """Return LangChain tools that run the real functions, under names that every provider takes.

        Results are JSON; an error is a message with `status="error"`, also of a tool that has no real function: those
        can only be simulated.

        Args:
            timeout_s: Seconds that one call may take.
        """
        from .as_tools import as_tool

        return [as_tool(tool, seen, timeout_s=timeout_s) for tool, seen in zip(self, self.as_openai(), strict=True)]

    @cached_property
    def _provider_names(self) -> dict[str, str]:
        return provider_names(self.names)

    @cached_property
    def _own_names(self) -> dict[str, str]:
        return {given: name for name, given in self._provider_names.items()}
