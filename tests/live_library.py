"""A library, and a server that speaks like OpenAI's: its planner reads identifiers from results, as live ones do."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml


def operation(name, properties, result, contract=None):
    body = {"type": "object", "properties": properties, "required": list(properties)}
    answer = {"type": "object", "properties": result, "required": list(result)}
    told = {
        "operationId": name,
        "description": f"{name} of the library.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": {"description": "ok", "content": {"application/json": {"schema": answer}}}},
    }
    if name.startswith("find"):
        del told["requestBody"]
        told["parameters"] = [{"name": key, "in": "query", "schema": each} for key, each in properties.items()]
        return {f"/{name}": {"get": told}}
    return {f"/{name}": {"post": {**told, **({"x-contract": contract} if contract else {})}}}


TEXT = {"type": "string"}
MEMBER = "3f1c1a52-0000-4000-8000-00000000abcd"
UUID = {"type": "string", "format": "uuid"}
LEND = {
    "let": {"loan": "{{ new_id('loan-') }}"},
    "requires": [{"check": "args.book in state.books", "error": "There is no book {{ args.book }}."}],
    "effects": [{"op": "add", "path": ["loans", "{{ loan }}"], "value": {"book": "{{ args.book }}", "days": 14}}],
    "returns": {"loan": "{{ loan }}"},
}
EXTEND = {
    "requires": [{"check": "args.loan in state.loans", "error": "There is no loan {{ args.loan }}."}],
    "effects": [{"op": "replace", "path": ["loans", "{{ args.loan }}", "days"], "value": 28}],
    "returns": {"days": 28},
}
PATHS = {
    **operation("lendBook", {"book": TEXT}, {"loan": TEXT}, LEND),
    **operation("extendLoan", {"loan": TEXT}, {"days": {"type": "integer"}}, EXTEND),
    **operation("findMember", {"name": TEXT}, {"member_id": UUID, "number": {"type": "integer", "minimum": 100_000}}),
    **operation("sendNote", {"member_id": UUID, "loan": TEXT}, {"note": TEXT}),
}
DOCUMENT = {"openapi": "3.1.0", "info": {"title": "Library", "version": "1"}, "paths": PATHS}
STATE = {"books": {"B-1": {"title": "Dune"}}, "loans": {}}
LENT = {"id": "lent", "description": "a book is lent", "check": "len(state.loans) == 1"}


def write_case(folder, users, **more):
    """Write tools and scenario; the checklist of each turn is a check and a text."""
    (folder / "library.yaml").write_text(yaml.safe_dump(DOCUMENT))
    entries = [{"user": user, "checklist": [LENT, "the user is told the loan's id"]} for user in users]
    case = {"version": 1, "name": "lend", "tools": "library.yaml", "state": STATE, "turns": entries} | more
    (folder / "case.yaml").write_text(yaml.safe_dump(case))
    return folder / "case.yaml"


def call(name, /, **args):
    return [(name, json.dumps(args))]


def lend(results):
    """A planner that lends, extends and answers with what the results say; `results` are those of its attempt."""
    if not results:
        return call("lendBook", book="B-1")
    loan = results[0]["loan"]
    if len(results) == 1:
        return call("extendLoan", loan=loan)
    return f"Done: your loan is {loan}, {{{{ 7 * 7 }}}}."


class Live(ThreadingHTTPServer):
    """A model behind an address. `method` is the one way to structured output that it has, `planner` its planner."""

    def __init__(self, planner=lend, method="json_schema"):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.planner, self.method, self.asked, self.replies = planner, method, [], dict(REPLIES)
        self.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.shutdown()
        self.server_close()

    def reply(self, body):
        role, structured = role_of(body)
        self.asked.append((role, body))
        if structured != self.method and role != "planner":
            return None
        if role == "planner":
            return self.plan(body["messages"])
        said = self.replies[role](body) if callable(self.replies[role]) else self.replies[role]
        text = said if isinstance(said, str) else json.dumps(said)
        if self.method == "function_calling":
            return {"content": None, "tool_calls": [tool_call("x", body["tools"][0]["function"]["name"], text)]}
        return {"content": f"Sure:\n```json\n{text}\n```" if self.method == "text" else text}

    def plan(self, messages):
        last = max(index for index, each in enumerate(messages) if each["role"] == "user")
        since = [read(each["content"]) for each in messages[last:] if each["role"] == "tool"]
        said = self.planner(since)
        if isinstance(said, str):
            return {"content": said}
        calls = [tool_call(f"fc_{len(self.asked)}_{index}", *each) for index, each in enumerate(said)]
        return {"content": "Let me see.", "tool_calls": calls}


def read(content):
    try:
        return json.loads(content)
    except ValueError:
        return {"error": content}


def judged(body):
    """Judge as told by the prompt: the loan's id stands in the answer."""
    text = body["messages"][1]["content"]
    loan = text[text.index("loan-") :][:17]
    return {"items": [{"id": "item-2", "reason": f"{loan} is named", "status": "success"}], "feedback": f"{loan}: fine"}


def simulated(body):
    """Simulate a note that repeats the loan's id."""
    text = body["messages"][1]["content"]
    loan = text[text.index("loan-") :][:17]
    patch = [{"op": "add", "path": "/notes", "value": {loan: "sent"}}]
    return {"status": "ok", "result": {"note": f"Note on {loan}"}, "patch": patch}


REPLIES = {
    "Judgement": judged,
    "SemanticVerdict": {"problems": []},
    "SimulatedEffect": simulated,
    "StateChange": {"patch": [], "unchanged": True},
    "SimulatedResponse": {"status": "ok", "result": {"member_id": MEMBER, "number": 123_456}},
    "Checklist": {"items": ["a book is lent"]},
    "InitialState": {"domain": {}, "runtime_state": {"session": "s-1"}},
}


def role_of(body):
    """Class of the wanted reply, or planner; and the method that it is asked by."""
    if "response_format" in body:
        return body["response_format"]["json_schema"]["name"], "json_schema"
    if isinstance(body.get("tool_choice"), dict):
        return body["tools"][0]["function"]["name"], "function_calling"
    system = body["messages"][0]["content"]
    named = [name for name in REPLIES if f'"title": "{name}"' in system]
    return (named[0], "text") if named else ("planner", "")


def tool_call(identifier, name, arguments):
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = self.server.reply(body)
        whole = {"error": {"message": "this server knows no such output"}}
        if message is not None:
            choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
            whole = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
            whole |= {"choices": [choice], "usage": usage}
        data = json.dumps(whole).encode()
        self.send_response(400 if message is None else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        del words
