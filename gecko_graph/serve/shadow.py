"""The real service behind a server: calls pass on, are simulated beside it, compared and recorded.

A write passes only where it is claimed in a ledger first. The same write is one of the same session with the same
`Idempotency-Key`; without one, an equal request whose answer has not been handed out. It is never sent twice.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import httpx
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response

from ..errors import GeckoError, StateError
from ..models.answer import AWAITED
from ..models.failure import TOO_MANY, refuses
from ..real.claims import KEY_CHARS, Claims, running
from ..real.ledger import CallLedger
from ..real.questions import Standing
from ..state import JsonObject
from ..tools.openapi.client import MAX_BYTES, read_answer
from ..tools.openapi.credentials import Credentials, Secrets
from ..tools.openapi.request import build_request
from ..tools.real import Answer, drive
from ..tools.spec import HttpBinding, ToolSpec
from ..values.digest import digest
from .sessions import Refused, Sessions

KEY = "idempotency-key"
_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
     "transfer-encoding", "upgrade", "host", "content-length", "accept-encoding", "content-encoding", "expect",
     "x-session-id")
)  # fmt: skip
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
_NO_WORD = (401, 403, TOO_MANY)
"""Statuses that say nothing of the call itself."""
SURE_S = 10.0
"""Seconds after which an answer that was handed out is taken as read. A client may still fail over it: the official MCP
client asks for the tools' schemas before it returns a result."""
DOUBT = (
    "a write like this one was begun, and it is not known whether it took effect; it is not sent again. Find out, then "
    "send it with another Idempotency-Key"
)


class Heard(NamedTuple):
    """An answer of the service."""

    status: int
    headers: list[tuple[str, str]]
    content: bytes

    def respond(self, note: Mapping[str, str], then: BackgroundTask | None = None) -> Response:
        """Return it as an answer of ours."""
        response = Response(self.content, self.status, background=then)
        own = [(name, value) for name, value in response.headers.items() if name == "content-length"]
        pairs = [*self.headers, *note.items(), *(own if self.status not in (204, 304) else ())]
        response.raw_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
        return response


class Sender(NamedTuple):
    """Whose a write is, and its key, if there is one: what makes it the same as another."""

    name: str
    key: str = ""


class Passed(NamedTuple):
    """A call that passed on: what it came to, what is told of it, a write's claim until its answer is handed out."""

    heard: Heard
    answer: Answer
    note: dict[str, str]
    claim: tuple[Claims, JsonObject] | None


@dataclass(slots=True)
class Upstream:
    """The service that calls pass on to.

    Args:
        url: Its address, to which an operation's path is added.
        ledger: Where writes are claimed; without one none passes.
        simulate: Whether each call is simulated beside it, and compared.
        credentials: Those of calls by MCP; requests bring their own.
        timeout_s: Longest time of an answer.
    """

    url: str
    ledger: CallLedger | None = None
    simulate: bool = True
    credentials: Credentials | None = None
    timeout_s: float = 30.0
    client: httpx.AsyncClient | None = None
    counts: Counter[str] = field(default_factory=Counter)
    drifted: Counter[str] = field(default_factory=Counter)
    _numbers: dict[str, int] = field(default_factory=dict)
    _going: dict[str, asyncio.Event] = field(default_factory=dict)
    """By a claim's key: its answer is on the way to the client."""
    _out: dict[str, tuple[Claims, JsonObject]] = field(default_factory=dict)
    """By a claim's key: its answer was handed out; after a kill it still stands in the ledger, for who asks again."""
    _waits: set[asyncio.Future[bool]] = field(default_factory=set)

    async def answer(
        self,
        request: Request,
        path: str,
        found: tuple[ToolSpec, JsonObject | None] | None,
        sessions: Sessions,
        name: str,
    ) -> Response:
        """Pass a request on; `found` is the operation that it is a call of, without arguments where they are unread.

        Raises Refused: 403 for a write that may not pass, 409 for one that may have passed, 502, 504.
        """
        tool, args = found or (None, None)
        sent = self._read(request, path, await request.body())
        given = request.headers.get(_key_header(tool)) or request.headers.get(KEY) or ""
        passed, then = await self._pass_on(sent, tool, args, sessions, name, Sender(name, given)), None
        if passed.claim is not None and await request.is_disconnected():
            self.keep(passed)
        elif passed.claim is not None:
            then = BackgroundTask(self.hand_out, passed)
        return passed.heard.respond({"x-gecko-rung": "real", "x-gecko-simulated": "false"} | passed.note, then)

    async def call(self, tool: ToolSpec, args: JsonObject, sessions: Sessions, name: str, sender: Sender) -> Passed:
        """Pass a call on that came by another wire, whose answer is to be handed out or kept.

        Raises Refused as `answer` does, NotMade where a credential is missing, CannotSend.
        """
        bound = tool if tool.binding else replace(tool, binding=HttpBinding("post", f"/{quote(tool.name)}"))
        sent = build_request(bound, self.url, args, extra={_key_header(tool): sender.key} if sender.key else {})
        security = tool.binding.security if tool.binding else ()
        secrets = self.credentials.choose(security, tool.name) if self.credentials else Secrets()
        return await self._pass_on(sent, tool, args, sessions, name, sender, secrets)

    async def hand_out(self, passed: Passed) -> None:
        """Note that an answer was handed out: an equal write without a key is a new one from here on.

        In the ledger that stands after SURE_S, before the next equal write, or when the server ends.
        """
        if passed.claim is not None:
            key = passed.claim[1]["key"]
            self._out[key] = passed.claim
            wait = asyncio.ensure_future(self._deliver(key, SURE_S))
            self._waits.add(wait)
            wait.add_done_callback(self._waits.discard)
        self.keep(passed)

    async def _deliver(self, key: str, after_s: float = 0.0) -> bool:
        """Note in the ledger that an answer was handed out; return whether there was one."""
        await asyncio.sleep(after_s)
        if (out := self._out.get(key)) is None:
            return False
        claims, row = out
        await drive(claims.settle(row, status="delivered", body="", head=[]), AWAITED)
        self._out.pop(key, None)
        return True

    async def close(self) -> None:
        """Note in the ledger which answers were handed out, and close the connections."""
        for key in [*self._out]:
            await self._deliver(key)
        for wait in self._waits:
            wait.cancel()
        if self.client is not None:
            await self.client.aclose()

    def keep(self, passed: Passed) -> None:
        """Note that nobody has taken an answer: who sends the write again is given it."""
        if passed.claim is not None and (going := self._going.pop(passed.claim[1]["key"], None)):
            going.set()

    def summary(self) -> str:
        """Return what passed, and what was not as simulated, in a line."""
        drifted = ", ".join(f"{tool} {count}" for tool, count in self.drifted.most_common(20) if count)
        compared = f", {self.counts['compared']} compared, {self.drifted.total()} drifted" if self.simulate else ""
        return f"{self.counts['calls']} calls passed on to {self.url}{compared}{f' ({drifted})' if drifted else ''}"

    # passing on --------------------------------------------------------------------------------------

    async def _pass_on(
        self,
        sent: httpx.Request,
        tool: ToolSpec | None,
        args: JsonObject | None,
        sessions: Sessions,
        name: str,
        sender: Sender,
        secrets: Secrets | None = None,
    ) -> Passed:
        sessions.get(name)
        what = digest([sent.method, str(sent.url), base64.b64encode(sent.content).decode()])[:KEY_CHARS]
        secrets, note = secrets or Secrets(), dict[str, str]()
        secrets.apply(sent)
        claim: tuple[Claims, JsonObject] | None = None
        if tool.reads if tool else sent.method in ("GET", "HEAD", "OPTIONS"):
            heard = await self._send(sent)
        else:
            heard, note, claim = await self._write(sent, what, sender)
        status, result = read_answer(heard.status, httpx.Headers(heard.headers), heard.content)
        answer = Answer(status, secrets.remove(result))
        if not note:
            self.counts["calls"] += 1
            note = await self._compare(tool, args, heard.status, answer, sessions, name)
        return Passed(heard, answer, note, claim)

    def _read(self, request: Request, path: str, content: bytes) -> httpx.Request:
        if any(part in (".", "..") for part in unquote(path).replace("\\", "/").split("/")):
            raise Refused(400, "the address cannot be passed on")
        query = request.scope["query_string"].decode("latin-1")
        named = {one.strip().lower() for one in request.headers.get("connection", "").split(",")} | _HOP_BY_HOP
        pairs = ((name.decode("latin-1"), value) for name, value in request.headers.raw)
        kept = [(name, value) for name, value in pairs if name not in named and not name.startswith("x-gecko-")]
        try:
            url = httpx.URL(self.url.rstrip("/") + path + (f"?{query}" if query else ""))
        except (httpx.InvalidURL, ValueError):
            raise Refused(400, "the address cannot be passed on") from None
        given = [(name.encode("latin-1"), value) for name, value in kept]
        return httpx.Request(request.method, url, headers=[*given, (b"accept-encoding", b"identity")], content=content)

    async def _send(self, sent: httpx.Request) -> Heard:
        """Send a request. Raises Refused, whose cause is the fault."""
        if self.client is None:  # each call has a connection of its own: a kept one would leave a write in doubt
            limits = httpx.Limits(max_keepalive_connections=0)
            self.client = httpx.AsyncClient(trust_env=False, follow_redirects=False, limits=limits)
        sent.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), self.timeout_s)
        try:
            async with asyncio.timeout(self.timeout_s):
                return await self._exchange(self.client, sent)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise Refused(504, f"the service has not answered within {self.timeout_s:g} s") from error
        except httpx.HTTPError as error:
            raise Refused(
                502, f"the service cannot be reached, or its answer is broken ({type(error).__name__})"
            ) from error

    async def _exchange(self, client: httpx.AsyncClient, sent: httpx.Request) -> Heard:
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
        named |= {"date", "server"}  # ours stand there
        kept = [(name, value) for name, value in pairs if name not in named and not name.startswith("x-gecko-")]
        root = "{0.scheme}://{0.netloc}".format(urlsplit(self.url))
        own = [(name, value.removeprefix(root) if name == "location" else value) for name, value in kept]
        return Heard(response.status_code, own, content)

    # writes, once ------------------------------------------------------------------------------------

    async def _write(
        self, sent: httpx.Request, what: str, sender: Sender
    ) -> tuple[Heard, dict[str, str], tuple[Claims, JsonObject] | None]:
        if self.ledger is None:
            raise Refused(403, "a write does not pass: start with --allow-writes and --ledger FILE")
        standing, is_named = Standing(None, f"serve {sender.name}", "", "", {}, "sync"), bool(sender.key)
        claims = Claims(self.ledger, standing, "serve", f"key {digest(sender.key)[:KEY_CHARS]}" if is_named else "", "")
        row, is_ours = await self._claim(claims, what, is_named=is_named)
        if not is_ours:
            if row["status"] != "ok":
                raise Refused(409, DOUBT)
            heard = Heard(row["result"], [tuple(pair) for pair in row["head"]], base64.b64decode(row["body"]))
            return heard, {"x-gecko-replayed": "true"}, self._open(claims, row, is_named=is_named)
        with running(row):
            try:
                heard = await self._send(sent)
            except Refused as refused:
                if isinstance(refused.__cause__, _UNSENT):
                    await drive(claims.settle(row, status="paused"), AWAITED)
                    raise
                raise Refused(refused.status, f"{refused}: it may have taken effect, and is not sent again") from None
            is_open = heard.status >= 500 or (heard.status >= 400 and not refuses(heard.status))
            status = "left" if is_open else "paused" if heard.status >= 400 else "ok"
            head = [pair for pair in heard.headers if pair[0] in ("content-type", "location")]
            body = base64.b64encode(heard.content).decode()
            row = await drive(claims.settle(row, status=status, result=heard.status, head=head, body=body), AWAITED)
        return heard, {}, self._open(claims, row, is_named=is_named) if status == "ok" else None

    def _open(self, claims: Claims, row: JsonObject, *, is_named: bool) -> tuple[Claims, JsonObject] | None:
        if is_named:
            return None
        self._going[row["key"]] = asyncio.Event()
        return claims, row

    async def _claim(self, claims: Claims, what: str, *, is_named: bool) -> tuple[Any, bool]:
        """Claim a write: by its key; without one it is the first of its equals whose answer nobody has."""
        known = digest([claims.standing.thread_id, what])
        number = 1 if is_named else self._numbers.get(known, 1)
        while True:
            call: Any = {"id": what, "name": "" if is_named else what, "args": {}}
            try:
                row, is_ours = await drive(claims.take(call, number, self.timeout_s), AWAITED)
            except StateError:
                raise Refused(409, "the same write is under way; it is not sent twice") from None
            if row["call"]["id"] != what:
                if is_ours:  # what it was used for was refused
                    with running(row):
                        await drive(claims.settle(row, status="paused"), AWAITED)
                raise Refused(422, "the Idempotency-Key was used for another request")
            if (going := self._going.get(row["key"])) is not None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(going.wait(), self.timeout_s)
                self._going.pop(row["key"], None)
                continue
            if is_named or is_ours or not await self._is_taken(claims, row):
                return row, is_ours
            number = self._numbers[known] = number + 1

    async def _is_taken(self, claims: Claims, row: JsonObject) -> bool:
        """Return whether the answer of a write that was made was handed out."""
        if row["status"] == "ok":
            await self._deliver(row["key"])
            row = await drive(claims.look(row["key"]), AWAITED)
        return bool(row["status"] == "delivered")

    # comparing ---------------------------------------------------------------------------------------

    async def _compare(
        self, tool: ToolSpec | None, args: JsonObject | None, code: int, answer: Answer, sessions: Sessions, name: str
    ) -> dict[str, str]:
        """Book a call, and say whether it came to what was simulated. Whatever goes wrong, the answer goes out."""
        if tool is None or args is None or 300 <= code < 400:
            return {}
        if not (code < 300 or refuses(code) or code == 409) or code in _NO_WORD:
            return {}  # which is not the tool's word
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


def _key_header(tool: ToolSpec | None) -> str:
    kind, _, header = str(tool.idempotency if tool else "").partition(":")
    return header.lower() if kind == "header" else KEY
