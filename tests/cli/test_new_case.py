"""`new-case` and `test --play`: from tools to a case, with a person, a model, a saved run or an old case as user."""

import io
import sqlite3

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from gecko_graph import Scenario, Toolkit, create_conversation
from gecko_graph.cli import main, new_case
from gecko_graph.conversation.milestones.format import explain
from gecko_graph.testing import scripted
from gecko_graph.tools import with_data
from tests.cli.command import FILES, mistake

pytest.importorskip("scipy")
pytest.importorskip("langchain")

TOOLS = '''
from langchain_core.tools import tool
from gecko_graph.tools import with_data

DATA = {"free": ["mon-10", "tue-11"], "bookings": []}

@tool
def free_slots(day: str) -> list[str]:
    """List a day's free slots."""
    return [slot for slot in DATA["free"] if slot.startswith(day)]

@tool
def book_slot(slot: str, name: str) -> str:
    """Book a free slot."""
    DATA["free"].remove(slot)
    DATA["bookings"].append({"slot": slot, "name": name, "note": ""})
    return slot

BARE = [free_slots, book_slot]
TOOLS = with_data(BARE, DATA)
NUMBER = 7
'''
AGENTS = """
from langchain.agents import create_agent
from gecko_graph.testing import scripted

LOOK, DONE = {"call": "free_slots", "args": {"day": "mon"}}, {"say": "Done."}
BOOK = {"call": "book_slot", "args": {"slot": "mon-10", "name": "Ana"}}

def build(tools):
    return create_agent(scripted(LOOK, BOOK, DONE, {"say": "Bye."}), tools)

def hasty(tools):
    return create_agent(scripted(LOOK, DONE, {"say": "Bye."}), tools)

def broken(tools):
    raise ValueError("no agent")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("slot_tools", "slot_agents"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)
    (tmp_path / "slot_tools.py").write_text(TOOLS)
    (tmp_path / "slot_agents.py").write_text(AGENTS)
    return tmp_path


@pytest.fixture
def says(monkeypatch, run):
    """Run a command with lines piped in."""

    def command(lines, *words):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return run(*words)

    return command


LINES = ["Book me Monday, for Ana.", "Thanks."]
NEW = ("new-case", "slot_tools:TOOLS", "--agent", "slot_agents:build")


def test_a_person_makes_a_case_that_other_agents_fail(folder, says, run):
    code, out, _ = says(LINES, *NEW)
    assert code == 0
    assert "agent: Done." in out
    assert "it passes: gecko-graph test book-me-monday-for-ana.gecko.yaml --agent slot_agents:build" in out
    case = Scenario.load("book-me-monday-for-ana.gecko.yaml")
    assert (case.user.goal, case.user.opening) == (LINES[0], LINES[0])
    assert [(line.say, line.end) for line in case.user.script] == [("Thanks.", False), (None, True)]
    assert case.state == {"free": ["mon-10", "tue-11"], "bookings": []}, "what the tools' dict holds"
    text = (folder / "book-me-monday-for-ana.gecko.yaml").read_text()
    assert "tools: slot_tools:TOOLS" in text
    assert '# The table bookings has gained, or changed to, (slot = "mon-10"' in text
    assert run("test", "book-me-monday-for-ana.gecko.yaml", "--agent", "slot_agents:hasty")[0] == 1


def test_what_is_invented_is_said_and_the_case_can_be_made_again(folder, says, run):
    code, out, _ = says(LINES, "new-case", "slot_tools:BARE", "--agent", "slot_agents:build", "-o", "a.gecko.yaml")
    assert code == 0
    assert "the answers of book_slot, free_slots are invented" in out
    text = (folder / "a.gecko.yaml").read_text()
    assert "# The milestones only name the calls: the answers of book_slot, free_slots" in text
    assert [each.id for each in Scenario.load("a.gecko.yaml").goal.milestones] == ["free_slots_1", "book_slot_2"]
    assert run("test", "a.gecko.yaml", "--agent", "slot_agents:hasty")[0] == 1
    assert run(*NEW, "--from", "a.gecko.yaml", "-o", "b.gecko.yaml")[0] == 0
    assert "invented" not in (folder / "b.gecko.yaml").read_text()
    assert Scenario.load("b.gecko.yaml").user == Scenario.load("a.gecko.yaml").user


def test_a_model_is_the_user(folder, run, monkeypatch):
    user = scripted({"say": LINES[0]}, {"call": "end_conversation"})
    monkeypatch.setattr(new_case, "Models", lambda **given: WithChat(user))
    assert "--goal is missing" in mistake(run(*NEW, "--user-model", "openai:x"))
    code, _, _ = run(*NEW, "--user-model", "openai:x", "--goal", "a slot on Monday")
    assert code == 0
    user = Scenario.load("a-slot-on-monday.gecko.yaml").user
    assert (user.goal, user.opening) == ("a slot on Monday", LINES[0])


class WithChat(new_case.Models):
    def __init__(self, user):
        super().__init__()
        self.chat = lambda name: user


def test_a_saved_run_and_a_saved_conversation_become_cases(folder, run):
    assert run("run", FILES, "--save", "runs.sqlite", "--thread", "monday")[0] == 0
    document = FILES.replace("file-the-report.yaml", "files.openapi.yaml")
    code, out, _ = run("new-case", document, "--from", "runs.sqlite", "--thread", "monday", "-o", "run.gecko.yaml")
    assert code == 0
    assert "not run again" in out
    assert "mkdir_2" in [each.id for each in Scenario.load("run.gecko.yaml").goal.milestones]

    import slot_agents
    import slot_tools

    with sqlite3.connect("talk.sqlite", check_same_thread=False) as connection:
        graph = create_conversation(
            slot_agents.build, Toolkit.from_tools(slot_tools.TOOLS), user=LINES, checkpointer=SqliteSaver(connection)
        )
        graph.invoke({"task_state": slot_tools.DATA}, {"configurable": {"thread_id": "t"}})
    connection.close()
    code, out, _ = run(*NEW, "--from", "talk.sqlite", "-o", "talk.gecko.yaml")
    assert code == 0
    assert "it passes" in out
    assert "no thread 'x'" in mistake(run(*NEW, "--from", "talk.sqlite", "--thread", "x"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["slot_tools:TOLS"], "did you mean TOOLS?"),
        (["no_such:TOOLS"], "no_such cannot be imported: ModuleNotFoundError"),
        (["slot_tools:NUMBER"], "expected a list of tools, got int"),
        (["slot_tools:book_slot"], "put it into brackets"),
        (["slot_tools:TOOLS"], "no lines were piped in"),
        (["slot_tools:TOOLS", "-o", "case.yaml"], "the name of a case must match *.gecko.yaml"),
        (["slot_tools:TOOLS", "--from", FILES], "it has no user with a script"),
    ],
)
def test_mistakes_are_found_before_anything_is_held(folder, says, words, message):
    assert message in mistake(says([], "new-case", *words, "--agent", "slot_agents:build"))
    assert not list(folder.glob("*.gecko.yaml"))


def test_no_agent_one_that_fails_and_a_file_that_exists(folder, says):
    code, out, _ = says(LINES, "new-case", "slot_tools:TOOLS", "--agent", "slot_agents:broken", "-o", "x.gecko.yaml")
    assert (code, "it has no milestones" in out) == (1, True)
    assert Scenario.load("x.gecko.yaml").user.opening == LINES[0], "nothing is lost"
    assert "# No milestones: the conversation ended early (agent_failed" in (folder / "x.gecko.yaml").read_text()
    assert "--agent is missing" in mistake(says(LINES, "new-case", "slot_tools:TOOLS"))
    (folder / "a.gecko.yaml").write_text("mine")
    assert "the file exists" in mistake(says(LINES, *NEW, "-o", "a.gecko.yaml"))
    assert (folder / "a.gecko.yaml").read_text() == "mine"
    assert says(LINES, *NEW)[0] == says(LINES, *NEW)[0] == 0
    assert (folder / "book-me-monday-for-ana-2.gecko.yaml").exists()


def test_a_person_plays_the_user_of_a_case(folder, says, run):
    assert says(LINES, *NEW, "-o", "a.gecko.yaml")[0] == 0
    code, out, _ = says(["Thank you very much."], "test", "a.gecko.yaml", "--agent", "slot_agents:build", "--play")
    assert code == 0
    assert f"goal: {LINES[0]}" in out
    assert out.index(f"you: {LINES[0]}") < out.index("agent: Done.") < out.index("you: Thank you very much.")
    refused = says([""], "test", "a.gecko.yaml", "--agent", "slot_agents:build", "--play")
    assert "--play: no terminal, and no lines were piped in" in mistake(refused)


def test_a_person_at_a_terminal_ends_by_ctrl_d(folder, monkeypatch, capsys):
    typed = iter([LINES[0]])

    def ask(console, prompt):
        if line := next(typed, ""):
            return line
        raise EOFError

    monkeypatch.setattr("sys.stdin", type("Terminal", (io.StringIO,), {"isatty": lambda self: True})())
    monkeypatch.setattr("gecko_graph.cli.inputs.Screen.input", ask)
    assert main([*NEW]) == 0
    assert [line.say for line in Scenario.load("book-me-monday-for-ana.gecko.yaml").user.script] == [None]


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"call": {"name": "pay", "args": {"n": 3}}, "after": ["a", "b"]}, "After a and b the agent calls pay(n = 3)."),
        ({"message": {"sender": "agent", "mentions": ["A", 2]}}, 'The answer names "A" and 2.'),
        ({"message": {"sender": "agent", "recipient": "user"}}, "The agent answers."),
        ({"message": {"claims": [{"says": "it is done"}]}}, 'The answer says "it is done".'),
        ({"message": {"unseen": []}}, "The answer has no figure of its own."),
        ({"message": {"content": "Hi"}}, 'The answer is like "Hi".'),
        ({"state": {"at": "a", "lacks": [{"b": 1}]}, "last": True, "unchanged": ["* except a"]},
         "At the end the table a has lost, or changed, (b = 1), and nothing else has changed."),
    ],
)  # fmt: skip
def test_a_milestone_in_a_sentence(entry, sentence):
    assert explain(entry) == sentence


def test_own_functions_answer_on_the_state_and_leave_no_trace():
    slots, log = {"a": "free"}, []

    def take(slot: str) -> str:
        """Take a slot."""
        slots[slot] = "taken"
        log.append(slot)
        if slot == "bad":
            raise ValueError("no such slot")
        return slot

    tools = Toolkit.from_tools(with_data([take], {"slots": slots, "log": log}))
    from gecko_graph import World

    world = World(tools, state={"slots": {"x": "free"}, "log": []})
    assert world.call({"name": "take", "args": {"slot": "x"}})["outcome"]["rung"] == "python"
    assert world.state == {"slots": {"x": "taken"}, "log": ["x"]}
    assert world.call({"name": "take", "args": {"slot": "bad"}})["outcome"]["status"] == "error"
    assert world.state == {"slots": {"x": "taken"}, "log": ["x"]}
    assert (slots, log) == ({"a": "free"}, [])
