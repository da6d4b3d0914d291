"""GeckoEnv and trl_environment: episodes of a task, what they are worth, and what the policy is shown."""

import inspect
import json
import re
from typing import get_type_hints

import pytest

from gecko_graph import GeckoError, Scenario, Toolkit
from gecko_graph.training.env import REFUSED_COST, GeckoEnv
from gecko_graph.training.tasks import CHAINED
from gecko_graph.training.trl import trl_environment, trl_rows
from tests.phone import FOLDER, load
from tests.training.shop import SHOP, made


def tasks():
    return made(4)


def solve(env, task):
    observation = env.reset(task.name)
    rewards = [env.step([call]).reward for call in task.solution]
    return observation, [*rewards, env.step(answer="Done.").reward]


class TestEpisodes:
    @pytest.mark.parametrize("reward", ["terminal", "stepwise"])
    def test_a_solution_is_worth_one(self, reward):
        env = GeckoEnv(tasks(), reward=reward)
        for task in tasks():
            _, rewards = solve(env, task)
            begun = 0.0 if reward == "terminal" else env.reset(task.name) and env._reached
            assert sum(rewards) == pytest.approx(1.0 - begun)
            assert all(isinstance(each, float) for each in rewards)
            env.reset(task.name)
            stepped = env.step(answer="Done.")  # with nothing done
            assert (stepped.done, stepped.info["success"]) == (True, False)
            assert stepped.reward == 0.0

    def test_each_step_toward_the_goal_is_worth_something_and_a_refused_call_costs(self):
        env = GeckoEnv(tasks(), reward="stepwise")
        task = next(each for each in tasks() if CHAINED in each.categories)
        _, rewards = solve(env, task)
        assert sum(each > 0 for each in rewards) >= 2
        env.reset(0)
        assert env.step([{"name": "placeOrder", "args": {"nonsense": 1}}]).reward == pytest.approx(-REFUSED_COST)

    def test_all_members_of_a_group_begin_alike(self):
        env = GeckoEnv(tasks())
        first = env.reset(0)
        begun = env.step([{key: tasks()[0].solution[0][key] for key in ("name", "args")}]).info
        assert env.reset(0) == first
        assert env.log == []
        assert env.step([]).info["start_digest"] == begun["start_digest"]

    def test_a_seed_draws_a_task(self):
        env = GeckoEnv(tasks())
        assert len({env.reset(seed=at)["messages"][0]["content"] for at in range(30)}) > 3
        assert env.reset(seed=4) == env.reset(seed=4)

    def test_a_fork_goes_its_own_way(self):
        env, task = GeckoEnv(tasks()), tasks()[0]
        env.reset(task.name)
        other = env.fork()
        for call in task.solution:
            other.step([call])
        assert env.log == []
        assert other.step(answer="Done.").reward == 1.0
        assert env.step(answer="Done.").reward == 0.0

    def test_an_answer_or_too_many_steps_end_it(self):
        env = GeckoEnv(tasks(), max_steps=2)
        env.reset(0)
        assert not env.step([]).done
        stepped = env.step([])
        assert stepped.done
        assert env.step([]) == (stepped.observation, 0.0, True, stepped.info)

    def test_calls_of_one_step_are_one_message(self):
        env = GeckoEnv(tasks())
        env.reset(0)
        two = [{"function": {"name": "showCart", "arguments": "{}"}}, {"name": "showAccount", "arguments": {}}]
        messages = env.step(two).observation["messages"]
        assert [each["role"] for each in messages] == ["user", "assistant", "tool", "tool"]
        assert [each["tool_call_id"] for each in messages[2:]] == [each["id"] for each in messages[1]["tool_calls"]]

    def test_authored_cases_are_tasks_too(self):
        env = GeckoEnv([SHOP, load("wifi-off")])
        assert SHOP.user.opening in env.reset("two-teas")["messages"][0]["content"]
        assert env.step([{"name": "findProducts"}]).reward == 0.0

    def test_the_policy_never_sees_the_goal(self):
        env = GeckoEnv(tasks(), reward="stepwise")
        for task in tasks():
            env.reset(task.name)
            marker = [each["id"] for each in task.content["milestones"]]
            shown = [env.reset(task.name), *(env.step([call])._replace(reward=0) for call in task.solution)]
            text = json.dumps(shown)
            assert "milestone" not in text
            assert not any(f'"{each}"' in text for each in marker)

    def test_mistakes_are_told(self):
        for bad in ([], [1], [Scenario.load(FOLDER.parent / "files" / "file-the-report.yaml")], [SHOP, SHOP]):
            with pytest.raises(GeckoError, match="tasks"):
                GeckoEnv(bad)
        with pytest.raises(GeckoError, match="reward"):
            GeckoEnv(tasks(), reward="much")
        with pytest.raises(GeckoError, match="no task"):
            GeckoEnv(tasks()).reset("task-x")
        with pytest.raises(GeckoError, match="reset"):
            GeckoEnv(tasks()).step([])


class TestBadCalls:
    DEEP = "[" * 100_000

    @pytest.mark.parametrize(
        "calls",
        [
            None, 7, "placeOrder", {"name": "placeOrder"}, [None], [7, "x", []], [{}], [{"name": None}],
            [{"name": 3, "args": 4}],
            [{"name": "placeOrder", "args": "{"}], [{"name": "placeOrder", "arguments": "[1]"}],
            [{"name": "nope", "args": {}}],
            [{"name": "setCartLine", "args": {"sku": float("nan"), "quantity": 1 << 80}}], [{"function": 3}],
            [{"function": {"name": "placeOrder", "arguments": DEEP}}], [{"name": "\ud800", "args": {"\ud800": 1}}],
            [{"name": "x" * 10_000, "args": {"a": "b" * 100_000}}], [{"name": "placeOrder", "args": {1: 2}}],
            [{"name": "showCart", "args": None}], (each for each in [3]), {"a": {1, 2}},
            [{"name": "showCart", "args": {"a": {1}}}],
        ],
    )  # fmt: skip
    def test_whatever_is_called_is_answered(self, calls):
        env = GeckoEnv(tasks(), reward="stepwise")
        env.reset(0)
        stepped = env.step(calls)
        assert isinstance(stepped.reward, float)
        assert not stepped.done
        json.dumps(stepped.observation)
        assert len(env.log) == stepped.info["refused"] or not stepped.info["refused"]


def described(method):
    """What `transformers.utils.get_json_schema` reads of a function: hints, and Google's docstring."""
    doc = re.search(r"^(.*?)\s*(?:Args:\n(.*?))?\s*Returns:\n\s*(.*)$", inspect.getdoc(method), re.S)
    args = dict(re.findall(r"^\s*(\w+): (.*)$", doc[2] or "", re.M))
    return doc[1], args, get_type_hints(method)


class TestTrl:
    def environment(self, **more):
        return trl_environment(SHOP.tools, tasks(), **more)

    def test_methods_show_the_schema(self):
        kind = self.environment()
        for tool in SHOP.tools:
            about, args, hints = described(getattr(kind, tool.name))
            rules = tool.parameters.get("properties", {})
            assert about == tool.description
            assert args.keys() == rules.keys() == hints.keys() - {"return"}
            shown = inspect.signature(getattr(kind(), tool.name)).parameters
            assert {key for key, one in shown.items() if one.default is inspect.Parameter.empty} == set(
                tool.parameters.get("required", ())
            )
        assert get_type_hints(kind.setCartLine) == {"sku": str, "quantity": int, "return": str}

    @pytest.mark.parametrize("reward", ["terminal", "stepwise"])
    def test_an_episode(self, reward):
        env = self.environment(reward=reward)()
        for row, task in zip(trl_rows(tasks()), tasks(), strict=True):
            assert env.reset(**row) == ""  # the prompt holds the words
            before = env.get_reward()
            for call in task.solution:
                assert "error" not in json.loads(getattr(env, call["name"])(**call["args"]))
            after = env.get_reward()
            assert after == env.get_reward() > before
            assert reward == "stepwise" or (before, after) == (0.0, 1.0)

    def test_wrong_arguments_meet_the_validator_and_nothing_is_made_before_a_reset(self):
        env = self.environment()()
        assert (env.get_reward(), vars(env)) == (0.0, {})
        assert "error" not in json.loads(env.showCart())
        env.reset(**trl_rows(tasks())[0])
        put = env.setCartLine
        for told in (put(), put(1, 2, 3), put(sku=None, much="x"), env.placeOrder(a=1)):
            assert "error" in json.loads(told)
        assert env.get_reward() == 0.0

    def test_names_that_python_does_not_take_and_goals_that_ask_for_words_are_told(self):
        with pytest.raises(GeckoError, match="get_reward never sees"):
            trl_environment(SHOP.tools, [SHOP])

        def tool(name, *args):
            rules = {each: {"type": "string", "enum": ["a", "b"]} for each in args}
            return {"name": name, "description": "A tool.", "parameters": {"type": "object", "properties": rules}}

        names = ["reset", "class", "get-it", "get_it", "_hidden", "2fast", "get_reward"]
        tools = Toolkit.from_tools([tool(each, "from", "self", "a-b") for each in names])
        with pytest.warns(UserWarning, match="renamed for Python") as warned:
            kind = trl_environment(tools, tasks())
        assert all(each in str(warned[0].message) for each in names if each != "get_it")
        public = [name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")]
        assert len(public) == len(names) + 2
        own = [name for name in public if name not in ("reset", "get_reward")]
        for name in own:
            _, args, hints = described(getattr(kind, name))
            assert args.keys() == hints.keys() - {"return"}
            assert all(each.isidentifier() and text.endswith('(choices: ["a", "b"])') for each, text in args.items())
