"""The command in this process, Ctrl-C at a question, and a server that speaks like OpenAI's."""

import http.server
import json
import threading

import pytest

from gecko_graph.cli import main
from gecko_graph.models import factory
from gecko_graph.models.recorded import RecordedModel


@pytest.fixture
def run(capsys):
    """Run a command in this process: exit code, standard output, standard error."""

    def command(*words):
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


@pytest.fixture
def interrupt(monkeypatch):
    """Let Ctrl-C come at the n-th question to a model."""
    reply = RecordedModel._reply

    def at(number):
        asked = []

        def replying(self, *args):
            asked.append(1)
            if len(asked) == number:
                raise KeyboardInterrupt
            return reply(self, *args)

        monkeypatch.setattr(RecordedModel, "_reply", replying)

    yield at
    monkeypatch.setattr(RecordedModel, "_reply", reply)


SAID = {
    "Checklist": {"items": [{"description": "tea is in the cart"}]},
    "SemanticVerdict": {"problems": []},
    "Judgement": {"items": [{"id": "item-1", "status": "success"}], "ask_user": False, "feedback": ""},
    "CheckedToolSchema": {"description": "Say hello.", "result": {"type": "string"}, "effect": "read"},
}


def schema_name(body):
    return body.get("response_format", {}).get("json_schema", {}).get("name")


class Server:
    """Answers chat completions on this machine; `hang` makes it wait until the test is over."""

    def __init__(self):
        self.asked, self.hang, self.said = [], threading.Event(), dict(SAID)
        self.over = threading.Event()
        self.fails, self.failing = None, None  # status and body; of one reply class or of all
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                owner.asked.append(body)
                fails = owner.fails if owner.failing in (None, schema_name(body)) else None
                if owner.hang.is_set():
                    owner.over.wait(30)
                    fails = 400, b"{}"  # which no client tries again, in the middle of a later test
                status, data = fails or (200, json.dumps(owner.reply(body)).encode())
                self.send_response(status)
                self.send_header("content-type", "text/html" if data.startswith(b"<") else "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                del args

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def reply(self, body):
        role = schema_name(body)
        if role:
            message = {"content": json.dumps(self.said[role])}
        elif any(each["role"] == "tool" for each in body["messages"]):
            message = {"content": "Two packs of tea are in the cart."}
        else:
            arguments = json.dumps({"sku": "TEA-100", "quantity": 2})
            call = {"id": "c1", "type": "function", "function": {"name": "setCartLine", "arguments": arguments}}
            message = {"content": None, "tool_calls": [call]}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
        return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(factory, "MAX_RETRIES", 0)
    made = Server()
    yield made
    made.over.set()
    made.server.shutdown()
    made.server.server_close()
