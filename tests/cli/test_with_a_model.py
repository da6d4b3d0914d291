"""Tasks with a model, on a server that speaks like OpenAI's."""

import json
import signal
import subprocess
import time

import pytest
import yaml

from gecko_graph.scenario import shipped
from tests import forked
from tests.cli.command import COMMAND, ENVIRONMENT, SHOP, SHOP_API, mistake
from tests.cli.conftest import schema_name


def test_a_task_with_a_model_is_carried_on_by_another_task(run, server, tmp_path):
    (tmp_path / "state.yaml").write_text(yaml.safe_dump(shipped("shop").state))
    file = tmp_path / "runs.sqlite"
    saved = ("--model", "openai:any", "--base-url", server.url, "--save", file)
    begun = ("run", SHOP_API, "--task", "Put tea into my cart.", *saved)
    code, out, _ = run(*begun, "--state", tmp_path / "state.yaml", "--json", tmp_path / "out.json")
    assert code == 0, out
    assert '[1] ok       setCartLine: {"lines": {"TEA-100"' in out
    state = json.loads((tmp_path / "out.json").read_text())["turns"][0]["task_state"]
    assert state["cart"]["TEA-100"] == {"name": "Mint tea, 100 g", "quantity": 2, "amount": 12.4}
    assert {body["model"] for body in server.asked} == {"any"}
    asked = len(server.asked)
    code, out, _ = run(*begun, "--resume")
    assert out.startswith("task is already finished\nresult       accepted")
    assert (code, len(server.asked)) == (0, asked), "the same task is not done again"
    code, out, _ = run("run", SHOP_API, "--task", "Is it in?", *saved, "--resume", "--json", tmp_path / "out.json")
    assert code == 0
    assert out.startswith("[-] task     Is it in?\n")
    assert len(server.asked) > asked
    (turn,) = json.loads((tmp_path / "out.json").read_text())["turns"]
    assert [each["content"] for each in turn["messages"][::2]] == ["Put tea into my cart.", "Is it in?"]
    assert turn["task_state"]["cart"]["TEA-100"]["quantity"] == 2
    assert "  2 turns, accepted, 1 of 1: Is it in?" in run("history", file)[1]
    words = ("run", SHOP_API, "--task", "And mugs.", *saved, "--resume", "--state", tmp_path / "state.yaml")
    assert mistake(run(*words)).startswith("--state: leave it out")


@pytest.mark.parametrize("saved", [True, False])
def test_a_question_is_followed_by_how_to_answer_it(run, server, tmp_path, monkeypatch, saved):
    asking = {"items": [{"id": "item-1", "status": "unknown"}], "ask_user": True, "feedback": ""}
    monkeypatch.setitem(server.said, "Judgement", asking)
    words = [
        "run",
        SHOP_API,
        "--task",
        "Buy tea.",
        "--model",
        "openai:any",
        "--base-url",
        server.url,
        "--set",
        "max_retries=0",
    ]
    code, out, _ = run(*words, *(["--save", tmp_path / "runs.sqlite"] if saved else []))
    assert code == 1
    assert "needs the user" in out
    hint = out.splitlines()[-1]
    assert hint.startswith("hint ")
    assert all(part in hint for part in ("to answer", "--resume", "--task", "" if saved else "--save FILE"))


KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
DEAD = {
    "401": (401, b'{"error": {"message": "Incorrect API key provided: %s"}}' % KEY.encode()),
    "429": (429, b'{"error": {"message": "You exceeded your current quota"}}'),
    "html": (200, b"<html><body>Welcome to nginx</body></html>"),
}
WORDS = {
    "401": "401 Unauthorized (Incorrect API key",
    "429": "exceeded your current quota",
    "html": "(a web page): check base_url",
}


@pytest.mark.parametrize("how", DEAD)
def test_a_dead_endpoint_has_its_own_exit_code_and_resume_asks_again(run, server, tmp_path, how):
    (tmp_path / "state.yaml").write_text(yaml.safe_dump(shipped("shop").state))
    words = ("run", SHOP_API, "--task", "Put tea into my cart.", "--state", tmp_path / "state.yaml")
    words = (*words, "--model", "openai:any", "--base-url", server.url, "--save", tmp_path / "runs.sqlite")
    server.fails = DEAD[how]
    code, out, err = run(*words)
    assert code == 3, out
    if how in ("401", "html"):  # nothing but the user can mend it: one line, at the first question
        assert len(server.asked) <= 3
        assert len(err.splitlines()) == 1
        assert WORDS[how] in err
    else:
        hint = out.splitlines()[-1]
        assert hint.startswith("hint ")
        assert WORDS[how] in hint
        assert hint.endswith("To retry: the same command with --resume")
    assert KEY not in out + err
    assert run(*words, "--resume")[0] == 3
    server.fails = None
    code, out, _ = run(*words, "--resume")
    assert code == 0, out
    assert out.startswith("[-] task     Put tea into my cart.\n")
    asked = len(server.asked)
    code, out, _ = run(*words, "--resume")
    assert (code, len(server.asked)) == (0, asked), "what was answered is not asked again"
    assert "1 turn, accepted" in run("history", tmp_path / "runs.sqlite")[1]


def test_a_role_may_have_a_model_of_its_own_and_the_others_their_recorded_replies(run, server, tmp_path):
    words = ("run", SHOP, "--role-model", "planner=openai:mine", "--base-url", server.url)
    run(*words, "--set", "max_retries=0")
    assert {body["model"] for body in server.asked} == {"mine"}
    server.asked.clear()
    words = ("run", SHOP_API, "--task", "Buy tea.", "--model", "openai:any", "--base-url", server.url)
    run(*words, "--role-model", "judge=openai:strict", "--set", "max_retries=0")
    by_model = {body["model"]: schema_name(body) for body in server.asked}
    assert by_model["strict"] == "Judgement"
    assert len(by_model) == 2


@pytest.mark.slow
def test_ctrl_c_does_not_wait_for_the_model(server, tmp_path):
    server.hang.set()
    words = ["run", SHOP, "--model", "openai:any", "--base-url", server.url, "--save", str(tmp_path / "runs.sqlite")]
    child = forked.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    for _ in range(300):
        if server.asked:
            break
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=25)
    assert child.returncode == 130
    assert "--resume" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "said"), [(["--timeout", "0.2"], "timed out"), (["--set", "time_budget_s=0.5"], "time_budget_s")]
)
def test_a_server_that_stalls_holds_nobody_up(run, server, words, said):
    server.hang.set()
    begun = time.monotonic()
    code, out, _ = run("run", SHOP_API, "--task", "Buy.", "--model", "openai:any", "--base-url", server.url, *words)
    assert time.monotonic() - begun < 15, "the server stalls for 30 s"
    assert (code, said in out.splitlines()[-1]) == (3, True)
