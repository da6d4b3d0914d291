"""The real service behind a server: calls are forwarded, simulated in parallel, compared and recorded.

Writes are forwarded only with a ledger. A write with an idempotency key is first claimed there, and made once per
session, credential, method, URL and key; a write without a key is forwarded each time.
"""

from __future__ import annotations

import asyncio
import base64
import secrets as random
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import httpx
from starlette.requests import Request
from starlette.responses import Response

from ..errors import GeckoError, StateError
from ..models.answer import AWAITED
from ..models.failure import TOO_MANY, refuses
from ..real.claims import KEY_CHARS, Claims, Steps, running, use
from ..real.ledger import CallLedger
from ..real.questions import Standing
from ..state import VERSION, JsonObject
from ..tools.openapi.client import MAX_BYTES, read_answer
from ..tools.openapi.credentials import Credentials, Secrets
from ..tools.openapi.request import build_request
from ..tools.real import Answer, drive
from ..tools.spec import HttpBinding, ToolSpec
from ..values.digest import digest
from .identity import KEY, find_credential, key_header
from .sessions import HttpRefusal, Sessions

_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
     "transfer-encoding", "upgrade", "host", "content-length", "accept-encoding", "content-encoding", "expect",
     "x-session-id", "x-original-url", "x-rewrite-url")  # the last two give another URL to some services
)  # fmt: skip
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
_NO_WORD = (401, 403, TOO_MANY)
"""Statuses that are no answer of the operation itself."""
MAY_HAVE = "it may have taken effect: check before you send it again"
DOUBT = (
    "a write with this Idempotency-Key was begun, and it is unknown whether it took effect; it is not sent again. "
    "Check, then send it with another key"
)
IN_DOUBT, REPLAYED = "x-gecko-in-doubt", "x-gecko-replayed"


class ServiceAnswer(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    content: bytes

    def respond(self, note: Mapping[str, str]) -> Response:
        response = Response(self.content, self.status)
        own = [(name, value) for name, value in response.headers.items() if name == "content-length"]
        pairs = [*self.headers, *note.items(), *(own if self.status not in (204, 304) else ())]
        response.raw_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
        return response


class RequestedCall(NamedTuple):
    """A request's operation, its arguments (None if unreadable), and the method that counts.

    `sender` is the session that a write's idempotency `key` belongs to.
    """

    tool: ToolSpec | None
    args: JsonObject | None
    method: str
    reads: bool
    sender: str = ""
    key: str = ""


class Passed(NamedTuple):
    """A forwarded call: its response, its result, and further headers."""

    heard: ServiceAnswer
    answer: Answer
    note: dict[str, str]


@dataclass(slots=True)
class Upstream:
    """The service that calls are forwarded to.

    Args:
        url: Its address, to which an operation's path is appended.
        ledger: The ledger that claims writes; without it no write is forwarded.
        simulate: Whether each call is also simulated and compared.
        credentials: Credentials of calls over MCP; HTTP requests bring their own.
        timeout_s: Time limit of an answer.
    """

    url: str
    ledger: CallLedger | None = None
    simulate: bool = True
    credentials: Credentials | None = None
    timeout_s: float = 30.0
    client: httpx.AsyncClient | None = None
    counts: Counter[str] = field(default_factory=Counter)
    drifted: Counter[str] = field(default_factory=Counter)

    async def answer(
        self, request: Request, path: str, wanted: RequestedCall, sessions: Sessions, name: str
    ) -> Response:
        """Forward a request.

        Raises HttpRefusal: 400 for an invalid key, 403 for a forbidden write, 409 for a write that may have been made,
        422 for a key of another request, 502, 504.
        """
        sent = self._read(request, path, await request.body())
        wanted = wanted._replace(sender=name, key="" if wanted.reads else _read_key(request, wanted.tool))
        passed = await self._pass_on(sent, wanted, sessions, name, Secrets())
        return passed.heard.respond({"x-gecko-rung": "real", "x-gecko-simulated": "false"} | passed.note)

    async def call(self, tool: ToolSpec, args: JsonObject, sessions: Sessions, name: str, key: str) -> Passed:
        """Forward a call that did not arrive over HTTP.

        Raises HttpRefusal as `answer` does, NotMade if a credential is missing, CannotSend.
        """
        bound = tool if tool.binding else replace(tool, binding=HttpBinding("post", f"/{quote(tool.name)}"))
        sent = build_request(bound, self.url, args, extra={key_header(tool): key} if key else {})
        security = tool.binding.security if tool.binding else ()
        secrets = self.credentials.choose(security, tool.name) if self.credentials else Secrets()
        wanted = RequestedCall(tool, args, sent.method, tool.reads, name, key)
        return await self._pass_on(sent, wanted, sessions, name, secrets)

    async def close(self) -> None:
        if self.client is not None:
            await self.client.aclose()

    def summary(self) -> str:
        """Return the counts of forwarded and of drifted calls, in one line."""
        drifted = ", ".join(f"{tool} {count}" for tool, count in self.drifted.most_common(20) if count)
        compared = f", {self.counts['compared']} compared, {self.drifted.total()} drifted" if self.simulate else ""
        return f"{self.counts['calls']} calls forwarded to {self.url}{compared}{f' ({drifted})' if drifted else ''}"

    # passing on --------------------------------------------------------------------------------------

    async def _pass_on(
        self, sent: httpx.Request, wanted: RequestedCall, sessions: Sessions, name: str, secrets: Secrets
    ) -> Passed:
        await sessions.get(name)
        secrets.apply(sent)
        heard, note = (await self._send(sent), {}) if wanted.reads else await self._write(sent, wanted)
        status, result = read_answer(heard.status, httpx.Headers(heard.headers), heard.content)
        answer = Answer(status, secrets.remove(result))
        if REPLAYED not in note:
            self.counts["calls"] += 1
            note |= await self._compare(wanted, heard.status, answer, sessions, name)
        return Passed(heard, answer, note)

    def _read(self, request: Request, path: str, content: bytes) -> httpx.Request:
        parts = unquote(unquote(path)).replace("\\", "/").split("/")
        if "#" in path or any(part.partition(";")[0] in (".", "..") for part in parts):
            raise HttpRefusal(400, "the URL cannot be forwarded")
        query = request.scope["query_string"].decode("latin-1")
        named = {one.strip().lower() for one in request.headers.get("connection", "").split(",")} | _HOP_BY_HOP
        pairs = ((name.decode("latin-1"), value) for name, value in request.headers.raw)
        kept = [(name, value) for name, value in pairs if name not in named and not name.startswith("x-gecko-")]
        try:
            url = httpx.URL(self.url.rstrip("/") + path + (f"?{query}" if query else ""))
        except (httpx.InvalidURL, ValueError):
            raise HttpRefusal(400, "the URL cannot be forwarded") from None
        given = [(name.encode("latin-1"), value) for name, value in kept]
        return httpx.Request(request.method, url, headers=[*given, (b"accept-encoding", b"identity")], content=content)

    async def _send(self, sent: httpx.Request) -> ServiceAnswer:
        """Send a request. Raises HttpRefusal, whose cause is the error."""
        if self.client is None:  # no connection is reused: a stale one would leave a write in doubt
            limits = httpx.Limits(max_keepalive_connections=0)
            self.client = httpx.AsyncClient(trust_env=False, follow_redirects=False, limits=limits)
        sent.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), self.timeout_s)
        try:
            async with asyncio.timeout(self.timeout_s):
                return await self._exchange(self.client, sent)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise HttpRefusal(504, f"the service did not answer within {self.timeout_s:g} s") from error
        except httpx.HTTPError as error:
            raise HttpRefusal(
                502, f"the service cannot be reached, or its answer is invalid ({type(error).__name__})"
            ) from error

    async def _exchange(self, client: httpx.AsyncClient, sent: httpx.Request) -> ServiceAnswer:
        response, content = await client.send(sent, stream=True), b""
        try:
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > MAX_BYTES:
                    raise httpx.ReadError("too large")
        finally:
            await response.aclose()
        client.cookies.clear()
        named = {one.strip().lower() for one in response.headers.get("connection", "").split(",")} | _HOP_BY_HOP
        pairs = ((name.lower(), value) for name, value in response.headers.multi_items())
        named |= {"date", "server"}  # our server sets these
        kept = [(name, value) for name, value in pairs if name not in named and not name.startswith("x-gecko-")]
        root = "{0.scheme}://{0.netloc}".format(urlsplit(self.url))
        own = [(name, value.removeprefix(root) if name == "location" else value) for name, value in kept]
        return ServiceAnswer(response.status_code, own, content)

    # writes ------------------------------------------------------------------------------------------

    async def _write(self, sent: httpx.Request, wanted: RequestedCall) -> tuple[ServiceAnswer, dict[str, str]]:
        if self.ledger is None:
            raise HttpRefusal(403, "writes are not forwarded: start with --allow-writes and --ledger FILE")
        if wanted.key:
            return await self._write_once(sent, *await drive(_claim_of(self.ledger, sent, wanted), AWAITED))
        heard = await self._make(sent)
        return heard, {IN_DOUBT: "true"} if _is_open(heard.status) else {}

    async def _write_once(self, sent: httpx.Request, claims: Claims, call: Any) -> tuple[ServiceAnswer, dict[str, str]]:
        try:
            row, is_ours = await drive(claims.take(call, 1, self.timeout_s), AWAITED)
        except StateError:
            raise HttpRefusal(409, "the same write is running; it is not sent twice") from None
        with running(row):
            if row["call"]["id"] != call["id"]:
                if is_ours:  # the claimed call was refused, and may be sent again
                    await drive(claims.settle(row, status="paused"), AWAITED)
                raise HttpRefusal(422, "the Idempotency-Key was used for another request")
            if not is_ours and row["status"] != "ok":
                raise HttpRefusal(409, DOUBT, {IN_DOUBT: "true"})
            if not is_ours:
                head = [(name, value) for name, value in row["head"]]
                return ServiceAnswer(row["result"], head, base64.b64decode(row["body"])), {REPLAYED: "true"}
            try:
                heard = await self._make(sent)
            except HttpRefusal as refused:
                if isinstance(refused.__cause__, _UNSENT):
                    await drive(claims.settle(row, status="paused"), AWAITED)
                raise
            status = "left" if _is_open(heard.status) else "paused" if heard.status >= 400 else "ok"
            kept = [pair for pair in heard.headers if pair[0] in ("content-type", "location")]
            body = base64.b64encode(heard.content).decode()
            await drive(claims.settle(row, status=status, result=heard.status, head=kept, body=body), AWAITED)
        return heard, {IN_DOUBT: "true"} if status == "left" else {}

    async def _make(self, sent: httpx.Request) -> ServiceAnswer:
        """Send a write. Raises HttpRefusal, which states if the write may have taken effect."""
        try:
            return await self._send(sent)
        except HttpRefusal as refused:
            if isinstance(refused.__cause__, _UNSENT):
                raise
            raise HttpRefusal(refused.status, f"{refused}: {MAY_HAVE}", {IN_DOUBT: "true"}) from None

    # comparing ---------------------------------------------------------------------------------------

    async def _compare(
        self, wanted: RequestedCall, code: int, answer: Answer, sessions: Sessions, name: str
    ) -> dict[str, str]:
        """Record a call, and return whether it matched the simulation. The answer is sent even if this fails."""
        tool, args = wanted.tool, wanted.args
        if tool is None or args is None or 300 <= code < 400:
            return {}
        if not (code < 300 or refuses(code) or code == 409) or code in _NO_WORD:
            return {}  # not an answer of the operation itself
        call = {"id": "", "name": tool.name, "args": args}
        try:
            if not self.simulate:
                await sessions.record(name, call, answer)
                return {}
            drift = await sessions.shadow(name, call, answer)
        except (GeckoError, LookupError) as error:
            sys.stderr.write(f"gecko-graph serve: {tool.name} was not compared: {type(error).__name__}\n")
            return {"x-gecko-drift": "unknown"} if self.simulate else {}
        self.counts["compared"] += 1
        self.drifted[tool.name] += bool(drift)
        return {"x-gecko-drift": str(len(drift))}


def _is_open(status: int) -> bool:
    """Return whether a status leaves open whether a write took effect."""
    return status >= 500 or (status >= 400 and not refuses(status))


def _read_key(request: Request, tool: ToolSpec | None) -> str:
    """Return a write's idempotency key, "" if there is none. Raises HttpRefusal if it is ambiguous."""
    for name in (key_header(tool), KEY):
        if given := request.headers.getlist(name):
            if len(given) > 1 or not given[0].strip():
                raise HttpRefusal(400, f"{name}: expected one key, which is not empty")
            return given[0].strip()
    return ""


def _claim_of(ledger: CallLedger, sent: httpx.Request, wanted: RequestedCall) -> Steps:
    """Return the claims that a write with a key belongs to, and the call to claim, whose id identifies the request.

    The ledger stores salted digests of both, which reveal nothing about a credential.
    """
    yield from use(ledger.claim, "serve", "salt", "", {"v": VERSION, "rev": 1, "salt": random.token_hex(16)})
    (found,) = yield from use(ledger.read, "serve", key="salt")
    salt, address = found["salt"], str(sent.url.copy_with(query=None))
    turn = digest([salt, find_credential(sent, wanted.tool), wanted.method, address, wanted.key])[:KEY_CHARS]
    query, content = sent.url.query.decode("latin-1"), base64.b64encode(sent.content).decode()
    call = {"id": digest([salt, query, content])[:KEY_CHARS], "name": "", "args": {}}
    return Claims(ledger, Standing(None, f"serve {wanted.sender}", "", "", {}, "sync"), "serve", turn, ""), call
