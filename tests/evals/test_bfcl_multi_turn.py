"""BFCL multi-turn: the real classes as a rung, ground truth, sabotage, recorded trajectories, a live planner."""

from __future__ import annotations

import asyncio
import json
import random
from importlib import metadata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals import bfcl, datasets
from evals.__main__ import main
from evals.bfcl import package
from evals.bfcl.arms import by_record, by_truth, spoilt
from evals.bfcl.calls import NoCall, read_call, write_call
from evals.bfcl.codec import decode, encode
from evals.bfcl.draws import CountedRandom, words_drawn
from evals.bfcl.oracle import as_json, checklist, literal, public, truth_of
from evals.bfcl.sabotage import KINDS, Scene, spoil
from evals.bfcl.tasks import FILE, read_tasks, task_of
from evals.bfcl_multi_turn import RECORDED, MultiTurn
from evals.options import Options, Planner
from evals.suite import EvalError
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.world.expression import Scope, check_expression

BASE = "multi_turn_base"
MISSED = "multi_turn_miss_func"


@pytest.fixture(scope="module")
def official():
    """The official package; the test is skipped where it is not installed."""
    pytest.importorskip("mpmath", reason=package.INSTALL)
    try:
        return package.version()
    except EvalError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def tasks(official, shared_data):
    """Every task of the file, by id."""
    return {task.id: task for task in read_tasks(shared_data, bfcl.MULTI_TURN)}


@pytest.fixture
def some_tasks(tasks):
    """A task for each mixture of classes, and those whose truth breaks the documents."""
    mixtures = {tuple(task.classes): task for task in tasks.values() if task.category == BASE}
    return list(mixtures.values())[::4]


def play(coroutine):
    return asyncio.run(coroutine)


# the official package


def test_a_missing_package_is_told_with_one_command(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    package.version.cache_clear()
    with pytest.raises(EvalError, match=r"pip install --no-deps bfcl-eval==2026\.3\.23 mpmath"):
        package.load(package.CHECKER)
    monkeypatch.setattr(metadata, "version", lambda name: "2025.1.1")
    with pytest.raises(EvalError, match=r"bfcl-eval 2025\.1\.1 is installed"):
        package.version()
    package.version.cache_clear()


def test_a_missing_data_file_is_told(official):
    assert package.data_file("BFCL_v4_multi_turn_base.json").is_file()
    with pytest.raises(EvalError, match=r"no data file nothing\.json"):
        package.data_file("nothing.json")


# values and random sources

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=6)
KEYS = st.integers(-9, 9) | st.text(max_size=3) | st.integers(0, 9).map(str)
VALUES = st.recursive(
    SCALARS | st.sets(st.integers(0, 9), max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=12,
)


@given(VALUES)
@settings(max_examples=60, deadline=None)
def test_what_json_cannot_say_comes_back(value):
    kinds = {}
    made = json.loads(json.dumps(encode(value, kinds)))
    back = decode(made, json.loads(json.dumps(kinds)))
    assert back == value
    assert repr(back) == repr(value) or isinstance(value, set) or "{" in repr(value)


def test_a_value_that_is_no_json_is_refused():
    with pytest.raises(TypeError, match="object at /a/0"):
        encode({"a": [object()]}, {})


@given(st.integers(0, 99), st.lists(st.sampled_from(["int", "long", "float", "choice"]), max_size=30))
@settings(max_examples=30, deadline=None)
def test_a_random_source_goes_on_where_it_stood(seed, steps):
    def draw(source, kind):
        return {
            "int": lambda: source.randint(100000, 999999),
            "long": lambda: source.randint(100000000000, 999999999999),
            "float": lambda: source.uniform(-10.0, 40.0),
            "choice": lambda: source.choice("abcdefg"),
        }[kind]()

    plain, start = random.Random(seed), random.Random(seed).getstate()
    drawn = 0
    for kind in steps:
        source = CountedRandom(start, drawn)
        assert draw(source, kind) == draw(plain, kind)
        drawn = source.drawn
    assert words_drawn(plain, start) == drawn


def test_a_random_source_that_was_seeded_otherwise_is_refused():
    with pytest.raises(ValueError, match="none that began here"):
        words_drawn(random.Random(1), random.Random(2).getstate())


# the classes as a rung

NAMES = ["a", "b", "c.txt", "d.txt", "notes"]


def random_call(dice):
    name, other = dice.choice(NAMES), dice.choice(NAMES)
    return dice.choice(
        [
            ("cd", {"folder": dice.choice([*NAMES, "..", ".."])}),
            ("mkdir", {"dir_name": name}),
            ("touch", {"file_name": name}),
            ("echo", {"content": other, "file_name": name}),
            ("cat", {"file_name": name}),
            ("cp", {"source": name, "destination": other}),
            ("mv", {"source": name, "destination": other}),
            ("rm", {"file_name": name}),
            ("pwd", {}),
            ("ls", {}),
        ]
    )


@pytest.mark.parametrize("seed", range(6))
def test_folders_behave_from_json_as_the_living_ones(official, seed):
    from evals.bfcl.classes import FILES, Classes, class_of, told

    config = {FILES: {"root": {"top": {"type": "directory", "contents": {}}}}}
    classes = Classes([FILES], config)
    living = class_of(FILES)()
    living._load_scenario(config[FILES])
    state, dice = classes.initial_state, random.Random(seed)
    for _ in range(150):
        name, args = random_call(dice)
        answer = told(getattr(living, name), args)
        try:
            assert classes.simulate(name)(state, **args) == answer
        except ValueError:
            assert "{...}" in repr(living.root)  # a folder that holds itself
            break
        assert public(state) == public(classes.read({FILES: living}))
        state = json.loads(json.dumps(state))


def test_a_copied_folder_shares_its_files(official):
    """The class copies the table of names, not the files: a state that no plain tree can say."""
    from evals.bfcl.classes import FILES, RUNTIME, Classes

    classes = Classes([FILES], {FILES: {"root": {"top": {"type": "directory", "contents": {}}}}})
    state = classes.initial_state

    def call(name, **args):
        return classes.simulate(name)(state, **args)

    call("mkdir", dir_name="a")
    call("cd", folder="a")
    call("touch", file_name="f")
    call("cd", folder="..")
    assert "links" not in state[RUNTIME].get(FILES, {})
    call("cp", source="a", destination="b")
    assert "links" in state[RUNTIME][FILES]
    call("cd", folder="b")
    call("echo", content="hello", file_name="f")
    call("cd", folder="..")
    call("cd", folder="a")
    assert call("cat", file_name="f") == {"file_content": "hello"}


def test_recorded_calls_have_the_same_answers_and_states(tasks, read_jsonl):
    rows = [row for row in read_jsonl("bfcl_multiturn_calls.jsonl.gz") if row["category"] == "base"][::5]
    for row in rows:
        task = tasks[row["id"]]
        state = json.loads(json.dumps(task.real.initial_state))
        for call in (call for turn in row["turns"] for call in turn):
            answer = task.real.simulate(call["call"]["name"])(state, **call["call"]["args"])
            if call["call"]["name"] != "logarithm":  # the file keeps its number as text
                assert answer == (call["result"] if isinstance(call["result"], dict) else str(call["result"]))
        for name, part in row["final_state"].items():
            ours = {key: value for key, value in state[name].items() if key not in ("generated_ids", "long_context")}
            assert ours == {key: part[key] for key in part if key not in ("generated_ids", "long_context")}


def test_a_call_leaves_nothing_but_its_state(tasks):
    """The class has `tags=[]` in its signature: one list for all instances of the process."""
    task = next(task for task in tasks.values() if "TwitterAPI" in task.classes)
    before = json.dumps(task.real.initial_state)
    post, mention = task.real.simulate("post_tweet"), task.real.simulate("mention")
    for _ in range(2):
        state = json.loads(before)
        state["TwitterAPI"]["authenticated"] = True
        tweet = post(state, content="hello")
        assert tweet["mentions"] == []
        mention(state, tweet_id=tweet["id"], mentioned_usernames=["dana"])
    assert json.dumps(task.real.initial_state) == before


def test_what_a_class_raises_is_its_answer(tasks):
    task = next(task for task in tasks.values() if "VehicleControlAPI" in task.classes)
    answer = task.real.simulate("fillFuelTank")(json.loads(json.dumps(task.real.initial_state)), fuelAmount="full")
    assert answer.startswith("Error during execution: '<' not supported")


# calls as text


ARGUMENTS = st.dictionaries(st.sampled_from(["a", "b_c", "folder", "x1"]), VALUES.map(lambda value: encode(value, {})))


@given(ARGUMENTS)
@settings(max_examples=40, deadline=None)
def test_a_written_call_is_read_again(args):
    if "inf" not in repr(args):
        assert read_call(write_call("f", args), signature=lambda name: None) == {"call": "f", "args": args}


@pytest.mark.parametrize("text", ["f(", "f", "a.b(1)", "f(__import__('os'))", "f(x=g(1))", ""])
def test_a_text_that_is_no_plain_call_is_never_evaluated(text):
    with pytest.raises(NoCall):
        read_call(text, signature=lambda name: None)


def test_positional_arguments_have_the_methods_names(tasks):
    task = next(task for task in tasks.values() if "GorillaFileSystem" in task.classes)
    assert task.read("sort('final_report.pdf')") == {"call": "sort", "args": {"file_name": "final_report.pdf"}}


# the oracle


@given(VALUES.map(lambda value: encode(value, {})))
@settings(max_examples=60, deadline=None)
def test_a_literal_is_the_value(value):
    if "e+" in repr(value) or "inf" in repr(value) or any(ord(letter) > 0xD7FF for letter in repr(value)):
        return
    source = f"{literal(value)} == state"
    assert check_expression(source, where="test").holds(Scope({"state": value}))


def leaves(value, place=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*place, index))
    else:
        yield place


def test_checks_hold_of_the_real_end_state_and_of_no_other(some_tasks):
    for task in some_tasks:
        truth, before = truth_of(task), task.real.initial_state
        for after, answers in zip(truth.states, truth.answers, strict=True):
            items = checklist(before, after, answers, seen=[])
            calls = [{"name": "x", "args": {}, "status": "ok", "result": answer} for answer in answers]

            def holds(state, calls=calls, before=before, items=items):
                scope = Scope({"state": state, "before": before, "calls": calls, "answer": ""})
                return all(check_expression(item["check"], where="test").holds(scope) for item in items)

            assert holds(after)
            assert not holds(after, calls=calls[1:])
            for place in random.Random(0).sample(list(leaves(after)), 5):
                other = json.loads(json.dumps(after))
                inner = other
                for token in place[:-1]:
                    inner = inner[token]
                inner[place[-1]] = "another"
                assert not holds(other), place
            before = after


def test_official_answers_are_json_where_they_are_objects():
    assert as_json('{"a": 1}') == {"a": 1}
    assert as_json("None") == "None"
    assert as_json("{no json") == "{no json"


# ground truth and sabotage


def test_ground_truth_is_officially_valid(tasks, some_tasks):
    missed = next(task for task in tasks.values() if task.category == MISSED)
    for task in [*some_tasks, missed]:
        told = play(by_truth(task, Options()))
        assert told["valid"], (task.id, told["official"])
        assert all(told["accepted"]), task.id
        assert set(told["rungs"]) <= {"python"}
        assert [len(turn) for turn in told["plan"]] == [len(turn.truth) for turn in task.turns]
        assert told["errata"] == []


@pytest.mark.parametrize(
    ("name", "why"), [("multi_turn_base_173", "wants an integer"), ("multi_turn_miss_func_49", "is not offered")]
)
def test_a_truth_that_breaks_its_documents_is_allowed_and_told(tasks, name, why):
    told = play(by_truth(tasks[name], Options()))
    assert told["valid"]
    assert len(told["errata"]) == 1
    assert why in told["errata"][0]


@pytest.mark.parametrize("first", range(0, len(KINDS), 2))
def test_a_spoilt_attempt_is_judged_as_the_real_classes_do(some_tasks, first):
    for number, task in enumerate(some_tasks[:3]):
        told = play(spoilt(task, Options(seed=first), first=first + number))
        assert told["valid"], task.id
        assert told["turns"]
        for turn in told["turns"]:
            assert turn["accepted"] == turn["done"], (task.id, turn)


def test_each_kind_of_sabotage_does_what_it_says(tasks):
    task = tasks["multi_turn_base_2"]
    calls = [task.read(call) for call in task.turns[0].truth]
    scene = Scene(task, 0, task.real.initial_state)
    made = {}
    for number, kind in enumerate(KINDS):
        name, made[kind] = spoil(calls, scene=scene, first=number, seed="0")
        assert name == kind
    names = [call["call"] for call in calls]
    assert names == ["cd", "touch"]
    assert len(made["dropped"]) == 1
    assert len(made["doubled"]) == 3
    assert [call["call"] for call in made["wrong order"]] == names[::-1]
    assert made["wrong value"] != calls
    assert [call["call"] for call in made["wrong value"]] == names
    assert 7 in [value for call in made["wrong type"] for value in call["args"].values()]
    assert any(call["call"].endswith("_all") for call in made["unknown tool"])
    assert made["whole"] == calls
    assert made["extra read"][1:] == calls
    assert made["extra read"][0]["call"] in scene.reads()
    assert {"pwd", "ls"} <= set(scene.reads())
    assert not {"cd", "touch"} & set(scene.reads())


def test_a_kind_that_cannot_be_gives_way_to_the_next(tasks):
    task = tasks["multi_turn_base_2"]
    one = [task.read(task.turns[1].truth[0])]
    scene = Scene(task, 1, truth_of(task).states[0])
    order = list(KINDS).index("wrong order")
    assert spoil(one, scene=scene, first=order, seed="0")[0] == "wrong value"


# recorded trajectories


def recorded(shared_data, wanted):
    rows = {row["id"]: row for row in datasets.read_jsonl(shared_data / FILE)}
    for row in datasets.read_jsonl(shared_data / RECORDED):
        name = f"{row['task_id']}:{row['model'][:5]}"
        if name in wanted:
            yield name, row, task_of(rows[row["task_id"]], other=row["v3_task"])


CASES = {
    # states equal, verdicts equal: a valid one, an invalid one, one that was ended by force
    "multi_turn_miss_param_2:Sales": ("", "", ""),
    "multi_turn_base_29:Sales": ("", "", ""),
    "multi_turn_base_154:Sales": ("", "", ""),
    # a call that breaks its document, and one of a tool that is not offered
    "multi_turn_miss_func_9:Sales": ("the validator refused", "the validator refused", ""),
    "multi_turn_miss_func_8:Sales": ("the validator refused", "", ""),
    # a tool of the old task is gone
    "multi_turn_miss_func_121:Sales": ("", "the old task's truth", ""),
    # the recording ran on older classes; it was checked against an older truth
    "multi_turn_base_109:Sales": ("", "", "the classes that the recording ran on"),
    "multi_turn_miss_param_169:Sales": ("", "", "every answer is the same today"),
}


def test_recorded_trajectories_end_where_the_real_classes_do(official, shared_data):
    seen = {}
    for name, row, task in recorded(shared_data, CASES):
        told = play(by_record(task, Options(), row=row))
        seen[name] = told
        causes = (told["state_cause"], told["verdict_cause"], told["recorded_cause"])
        for cause, wanted in zip(causes, CASES[name], strict=True):
            assert cause.startswith(wanted) if wanted else not cause, (name, told)
        assert (told["same"] == told["turns"]) == (not told["state_cause"])
    assert seen.keys() == CASES.keys()
    assert seen["multi_turn_miss_param_2:Sales"]["ours"]
    assert not seen["multi_turn_base_154:Sales"]["ours"]
    assert seen["multi_turn_miss_func_8:Sales"]["refused"]


def test_with_nothing_refused_the_states_are_the_real_ones(official, shared_data):
    for name, row, task in recorded(shared_data, ["multi_turn_miss_func_8:Sales", "multi_turn_miss_func_121:Sales"]):
        told = play(by_record(task, Options(), row=row, unchecked=True))
        assert told["same"] == told["turns"], (name, told)


# the command


def command(shared_data, tmp_path, *words):
    return main(["bfcl", "--data", str(shared_data), "--out", str(tmp_path / "out"), *words])


def test_the_command_leaves_plans_in_the_official_format(official, shared_data, tmp_path, capsys):
    assert command(shared_data, tmp_path, "--category", f"{BASE},{MISSED}", "--limit", "3") == 0
    assert "Ground truth as planner" in capsys.readouterr().out
    files = list((tmp_path / "out" / "result").iterdir())
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert len(lines) == 3
    assert all(isinstance(call, str) for line in lines for turn in line["result"] for step in turn for call in step)


def test_the_command_spoils_attempts(official, shared_data, tmp_path, capsys):
    assert command(shared_data, tmp_path, "--category", BASE, "--sabotage", "--limit", "3") == 0
    out = capsys.readouterr().out
    assert "sensitivity (failed, where wrong)" in out
    assert "never an accuracy of the method" in out


def test_the_command_replays_recorded_trajectories(official, shared_data, tmp_path, capsys):
    planner = f"recorded:{shared_data / RECORDED}"
    words = ["--category", BASE, "--planner", planner, "--only", "multi_turn_base_2:*,multi_turn_base_109:Sales*"]
    assert command(shared_data, tmp_path, *words) == 0
    out = capsys.readouterr().out
    assert "every disagreement is explained" in out
    assert "the classes that the recording ran on answered otherwise" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--category", "multi_turn_base,simple_python"], "two suites"),
        (["--category", "multi_turn_nothing"], "multi-turn categories are"),
        (["--category", BASE, "--sabotage", "--planner", "openai:x"], "spoils the ground truth"),
        (["--category", BASE, "--unchecked"], "is for recorded calls"),
    ],
)
def test_a_command_that_makes_no_sense_is_told(official, shared_data, tmp_path, capsys, monkeypatch, words, told):
    monkeypatch.setattr("evals.options.patient_model", lambda name, **knobs: RecordedModel())
    assert command(shared_data, tmp_path, *words) == 2
    assert told in capsys.readouterr().err


def test_missing_data_says_where_to_get_it(official, tmp_path, capsys):
    assert main(["bfcl", "--category", BASE, "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "no data set bfcl_multiturn_tasks.jsonl.gz" in capsys.readouterr().err


# a live planner


def spoken(task, *, right):
    """What a live model says: in its first attempt at the first turn the last call is missing where not `right`."""
    turns = []
    for number, turn in enumerate(task.turns):
        calls = [task.read(call) for call in turn.truth]
        first = calls if right or number else calls[:-1]
        word = "success" if right or number else "failed"
        turns.append(
            {
                "planner": [[*first, {"say": "Done."}], [*calls, {"say": "Done."}]],
                "checklist": [{"items": [{"description": "it is done"}]}],
                "judge": [
                    {"items": [{"id": "item-1", "status": word, "reason": "seen"}]},
                    {"items": [{"id": "item-1", "status": "success"}]},
                ],
                "validator": [{"problems": []}] * 20,
            }
        )
    return turns


@pytest.mark.parametrize("right", [True, False])
def test_a_live_planner_is_judged_by_a_model_and_checked_officially(tasks, tmp_path, monkeypatch, right):
    task = tasks["multi_turn_base_2"]
    model = RecordedModel(turns=spoken(task, right=right))
    monkeypatch.setattr("evals.options.patient_model", lambda name, **knobs: model)
    options = Options(
        planner=Planner("model", model="any:thing"),
        model="any:thing",
        only=(task.id,),
        out=tmp_path,
        own=type("Own", (), {"category": BASE, "sabotage": False, "unchecked": False})(),
    )
    suite = MultiTurn(options)
    case = next(case for case in suite.cases() if case.id == task.id)
    told = play(suite.run_case(case))
    assert told["valid"]
    assert told["attempts"] == len(task.turns) + (0 if right else 1)
    assert set(told["usage"]) == {"planner", "checklist", "judge", "validator"}


def test_a_plan_that_was_not_accepted_leads_to_the_next_turn(tasks, monkeypatch):
    """The judge says no to the first turn; the plan counts all the same, as it would with real tools."""
    from evals.bfcl.arms import knobs, speaker
    from evals.bfcl.rehearse import Player
    from evals.bfcl.rehearse import play as play_turns

    task = tasks["multi_turn_base_2"]
    turns = [{"planner": [[*map(task.read, turn.truth), {"say": "Done."}]]} for turn in task.turns]

    def never(turn, before, seen):
        return [{"id": "no", "description": "never", "check": "false"}]

    played = play(play_turns(task, Player(speaker(turns), knobs(Options(), 0), task.toolkit, never)))
    truth = truth_of(task)
    assert not any(each.accepted for each in played)
    assert [public(each.after) for each in played] == [public(state) for state in truth.states]
