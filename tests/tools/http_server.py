"""A server on loopback that keeps what it was sent and answers what a test says."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Asked:
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name):
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


@dataclass
class Here:
    """`answer(asked)` gives (status, headers, body), or None to close the connection without an answer."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answer: object = lambda asked: (200, {"content-type": "application/json"}, b"{}")


@contextmanager
def serving():
    here = Here()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            here.asked.append(Asked(self.command, self.path, list(self.headers.items()), body))
            answer = here.answer(here.asked[-1])
            self.close_connection = True
            if answer is None:
                return
            status, headers, content = answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if "content-length" not in {name.lower() for name in headers}:
                self.send_header("content-length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = do_TRACE = handle_any

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    here.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield here
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def as_json(value, status=200, **headers):
    return status, {"content-type": "application/json", **headers}, json.dumps(value).encode()
