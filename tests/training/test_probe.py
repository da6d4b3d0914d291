"""What a policy does with rows: read in whatever form, asked of a server, and how sure it is."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from gecko_graph import GeckoError
from gecko_graph.training.probe import ask_policy, find_perplexity, read_output, read_outputs
from tests.training.loops import label_of
from tests.training.shelf import sample


class Killed(BaseException):
    pass


@pytest.mark.parametrize("logprobs", [None, [], [None], ["x"], [float("nan")], [0.5], [True], [-1e9, -1e9]])
def test_perplexity_is_equation_3_over_the_whole_output_and_unknown_if_probabilities_are_missing(logprobs):
    assert find_perplexity(logprobs) is None
    assert find_perplexity([-0.5, -1.5]) == pytest.approx(2.718281828)
    assert find_perplexity([-0.5, -1.5], tokens=3) is None


def test_outputs_are_read_in_whatever_form_and_others_are_refused(tmp_path):
    text = '<think>Well.</think><tool_call>{"name": "a", "arguments": {}}</tool_call>'
    assert read_output({"id": "1", "output": text})["calls"] == [{"name": "a", "arguments": {}}]
    assert "problem" in read_output({"id": "1", "output": "<tool_call>{</tool_call>"})
    with pytest.raises(ValueError, match="expected id"):
        read_output({"id": "1"})
    file = tmp_path / "said.jsonl"
    for lines, said in (
        ([], "1 rows of the data have no output, for example 'a'"),
        ([{"id": "a", "output": ""}, {"id": "b", "output": ""}], ":2: the id 'b' is not in the data"),
        ([{"id": "a", "output": ""}] * 2, ":2: the id 'a' occurs twice"),
        ([7], ":1: unknown shape"),
    ):
        file.write_text("".join(json.dumps(each) + "\n" for each in lines))
        with pytest.raises(GeckoError, match=said):
            list(read_outputs(file, ["a"]))


class Policy(BaseHTTPRequestHandler):
    """An OpenAI-compatible server that calls `take`, and says how sure it is."""

    asked: ClassVar[list[dict]] = []

    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(given)
        function = {"name": "take", "arguments": '{"item": "ink", "count": 1}'}
        calls = [{"id": "c", "type": "function", "function": function}]
        said = {"role": "assistant", "content": None, "tool_calls": calls}
        choice = {"index": 0, "message": said, "finish_reason": "tool_calls"}
        choice["logprobs"] = {"content": [{"token": "x", "logprob": -0.7, "bytes": None, "top_logprobs": []}] * 2}
        usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
        whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
        body = json.dumps(whole | {"choices": [choice], "usage": usage})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


def test_a_server_is_asked_greedily_and_gone_on_with(tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Policy)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(done):
        if done == 16:
            raise Killed

    address, out = f"http://127.0.0.1:{server.server_port}/v1", tmp_path / "out.jsonl"
    rows = [{**sample(label_of("r1")), "id": str(at)} for at in range(20)]
    try:
        with pytest.raises(Killed):
            ask_policy(address, "m", rows, out, tmp_path / "replies", stop)
        assert len(Policy.asked) == 16
        ask_policy(address, "m", rows, out, tmp_path / "replies", lambda _: None)
    finally:
        server.shutdown()
        server.server_close()
    assert len(Policy.asked) == 20
    first = Policy.asked[0]
    assert (first["temperature"], first["logprobs"], first["model"], len(first["tools"])) == (0, True, "m", 3)
    found = list(read_outputs(out, [each["id"] for each in rows]))
    assert found[0]["calls"] == [{"name": "take", "arguments": {"item": "ink", "count": 1}}]
    assert found[0]["perplexity"] == pytest.approx(2.013752707)
