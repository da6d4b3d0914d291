"""Two users behind one server of `gecko-graph serve --upstream`: each write is made once, for the user who sent it."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from gecko_graph.cli import main
from gecko_graph.state import JsonObject

from .bank import Bank, document_of, wanted_of
from .draws import Draw
from .fates import Counted, append
from .killing import Killed

USERS = ("alice", "bob")
MOST_S = 30.0
"""Time limit in seconds of a user's plan."""
PATIENCE, LAST = 5, 3
"""Answers 409 or 5xx after which a write with a key counts as in doubt; refusals after which a user gives up."""
LOST, UNSENT = 0, -1
"""Instead of a status: no answer, or no connection."""
WAIT_S = 0.2


class ServerFate(Counted):
    """Kills the server that sends the bank's requests; the bank survives."""

    def pass_by(self, kind: str, number: int, when: str) -> None:
        """Kill the server if this point is drawn. Raises Killed if the request has not reached the bank."""
        if not self.is_due(kind, number, when):
            return
        self.tell(f"  the server is killed {when} write {number} of the {kind}")
        with suppress(ProcessLookupError):
            os.kill(int((self._folder / "server").read_text()), signal.SIGKILL)
        if when == "before":
            raise Killed


class Served:
    """One run: two users, the server, which is restarted after a kill, and the bank in a separate process."""

    def __init__(self, draw: Draw, folder: Path) -> None:
        self.draw, self.folder = draw, folder
        self.fate = ServerFate(replace(draw, end="cancel"), folder)  # so that no request is left with the bank
        self.bank = Bank(folder, self.fate)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def finish(self) -> JsonObject:
        upstream = ThreadingHTTPServer(("127.0.0.1", 0), service_of(self.bank))
        document, address = self.folder / "api.json", f"http://127.0.0.1:{upstream.server_port}"
        document.write_text(json.dumps(document_of(self.draw)))
        command = ["serve", str(document), "--port", str(self.port), "--upstream", address]
        command += ["--allow-writes", "--ledger", str(self.folder / "ledger.sqlite")]
        upstream.timeout = WAIT_S
        fork(partial(repeat, upstream.handle_request))
        fork(partial(self.keep_served, command))
        users = [User(self, name) for name in USERS]
        with ThreadPoolExecutor(len(users) if self.draw.two else 1) as threads:
            ended = list(threads.map(User.finish, users))
        return self.judge(users, ended)

    def keep_served(self, command: list[str]) -> None:
        """Start the server, and restart it whenever it has ended."""
        server = 0

        def look() -> None:
            nonlocal server
            if not server or os.waitpid(server, os.WNOHANG) != (0, 0):
                server = fork(partial(main, command))
                (self.folder / "server").write_text(str(server))
                append(self.folder / "starts", "")
            time.sleep(0.05)

        repeat(look)
        os.kill(server, signal.SIGKILL)

    def judge(self, users: list[User], ended: list[str]) -> JsonObject:
        counts, is_calm = Counter[str](), not self.draw.faults
        for user, how in zip(users, ended, strict=True):
            done, wanted = Counter((each["name"], each["to"], each["amount"]) for each in user.log()), self.wanted
            missing = (wanted - done).total()
            counts["doubled"] += (done - wanted).total()
            counts["lost"] += missing if how == "done" else 0
            counts["barred"] += missing if how == "not done" and is_calm else 0
            counts["false_done"] += user.was_misled or (how == "done" and done != wanted)
        status = next((how for how in ("unsettled", "not done") if how in ended), "done")
        starts = len((self.folder / "starts").read_text())
        kept = ("doubled", "let_through", "lost", "barred", "false_done", "unnamed")
        more = {"stopped": starts - 1, "processes": starts, "review": 0, "doubt": sum(user.doubts for user in users)}
        return {**{key: counts[key] for key in kept}, "ended": status, **more}

    @property
    def wanted(self) -> Counter[tuple[Any, ...]]:
        return wanted_of(self.draw)


class User:
    """One user: sends what the others send, with the same keys, and checks the bank if a write is in doubt."""

    def __init__(self, run: Served, name: str) -> None:
        self.run, self.name, self.was_misled, self.doubts = run, name, False, 0
        self.known: dict[str, str] = {}  # payee by payment number
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{run.port}", trust_env=False, timeout=5)
        self.end = 0.0

    def log(self) -> list[JsonObject]:
        return [each for each in self.run.bank.log() if each["key"].startswith(self.name)]

    def finish(self) -> str:
        self.end = time.monotonic() + MOST_S
        for number, (name, to, amount) in enumerate(self.run.draw.wanted):
            paid = [payment for payment, payee in self.known.items() if payee == to]
            args = {"to": to, "amount": amount} if name == "pay" else {"payment_id": paid[0]}
            key = "" if self.run.draw.message == "no id" else f"order-{number}"
            result = self.have_done(name, args, key)
            if result is None:
                return "not done" if time.monotonic() < self.end else "unsettled"
            self.was_misled |= result.get("account", self.name) != self.name
            self.known |= {result["payment_id"]: to} if name == "pay" else {}
            if self.run.draw.again and key:
                self.was_misled |= self.send(name, args, key)[1].get("payment_id", "") not in ("", result["payment_id"])
        return "done"

    def have_done(self, name: str, args: JsonObject, key: str) -> JsonObject | None:
        """Send a write, repeatedly with the same key until it is answered; return the result, None after giving up."""
        counts = Counter[str]()
        while time.monotonic() < self.end and counts["refused"] < LAST:
            status, told = self.send(name, args, key)
            if status == 200:
                return told
            time.sleep(WAIT_S)
            is_in_doubt = status == LOST or status == 409 or status >= 500
            counts.update({"in doubt": is_in_doubt, "refused": status != 429 and not is_in_doubt and status > 0})
            if not is_in_doubt or (key and (status == LOST or counts["in doubt"] < PATIENCE)):
                continue
            self.doubts += 1
            if made := self.look(name, args):
                return made
            counts.update({"in doubt": -counts["in doubt"], "refused": status == 409 and not key})
            key = key and f"order-{os.urandom(4).hex()}"
        return None

    def look(self, name: str, args: JsonObject) -> JsonObject | None:
        """Return the result of a write that the bank has made for this user, unknown to the user."""
        log = [each["result"] for each in self.log() if each["name"] == name and args.items() <= each["result"].items()]
        return next((result for result in log if name != "pay" or result["payment_id"] not in self.known), None)

    def send(self, name: str, args: JsonObject, key: str) -> tuple[int, JsonObject]:
        """Send a request; return its status (or LOST or UNSENT) and the answer."""
        headers = {"authorization": f"Bearer {self.name}", **({"idempotency-key": key} if key else {})}
        try:
            answer = self.client.post(f"/{name}", json=args, headers=headers)
        except httpx.ConnectError:
            return UNSENT, {}  # the server is starting
        except httpx.HTTPError as error:
            self.run.fate.tell(f" {self.name}: {name} {key}: {type(error).__name__}")
            return LOST, {}
        self.run.fate.tell(f" {self.name}: {name} {key}: {answer.status_code} {answer.text[:200]}")
        return answer.status_code, answer.json()


def fork(run: Callable[[], object]) -> int:
    if child := os.fork():
        return child
    try:
        run()
    finally:
        os._exit(0)


def repeat(work: Callable[[], object]) -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        work()


def service_of(bank: Bank) -> type[BaseHTTPRequestHandler]:
    """Return the bank as an HTTP service, which identifies its users by their credentials."""

    class Service(BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            """Log nothing."""

        def do_POST(self) -> None:
            args = json.loads(self.rfile.read(int(self.headers["content-length"])))
            who = str(self.headers["authorization"]).removeprefix("Bearer ")
            key = self.headers["idempotency-key"] or os.urandom(4).hex()
            try:
                result = bank.request(self.path.strip("/"), args, f"{who} {key}")
                answer = httpx.Response(200, json={**result, "account": who})
            except httpx.HTTPStatusError as error:
                answer = error.response
            except (httpx.HTTPError, Killed):
                return
            self.send_response(answer.status_code)
            for name in {"content-type", "content-length", "retry-after"} & {*answer.headers}:
                self.send_header(name, answer.headers[name])
            self.end_headers()
            self.wfile.write(answer.content)

    return Service
