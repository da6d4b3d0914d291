"""A model's endpoint whose answers follow a script."""

from __future__ import annotations

import json
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Endpoint(ThreadingHTTPServer):
    """An endpoint whose answers follow a script, a question at a time, and then are right."""

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), _Answer)
        self.script, self.asked = list(script), Counter()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request, client_address):
        """A client that hangs up is no news."""


class _Answer(BaseHTTPRequestHandler):
    def log_message(self, *words):
        """Say nothing."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        question = body["messages"][-1]["content"]
        self.server.asked[question] += 1
        turn = self.server.asked[question] - 1
        kind = self.server.script[turn] if turn < len(self.server.script) else "yes"
        whole = {
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        } | {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
        said = json.dumps(whole if kind == "yes" else {"error": {"message": "no"}})
        self.send_response(kind if isinstance(kind, int) else 200)
        for name, value in {
            "content-type": "application/json",
            "retry-after-ms": 1,
            "content-length": len(said),
        }.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(said.encode())
