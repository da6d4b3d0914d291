"""GRPO in TRL itself, in an environment of its own: three steps of a two-layer model, by tasks and by rows.

pip install -e '.[training]' 'trl>=1.16,<2' 'transformers>=5.2' jmespath pytest pytest-asyncio hypothesis
python -m pytest tests/training/test_grpo.py
"""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="trl has an environment of its own")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "training"))

from gecko_graph.scenario import Scenario, examples
from gecko_graph.training.formats import FORMATS
from gecko_graph.training.tasks import find_samples, read_tasks, save_tasks
from gecko_graph.training.trl import trl_environment

import tiny_model  # isort: skip
import train_grpo  # isort: skip

TOOLS = str(Path(examples()["shop"]).parent / "shop.openapi.yaml")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Twenty tasks of the shop, and a model fitted to their solutions."""
    folder = tmp_path_factory.mktemp("grpo")
    toolkit = train_grpo.read_toolkit(TOOLS)
    save_tasks(folder / "tasks", toolkit, [Scenario.load(examples()["shop"]).state], 20, tools=TOOLS)
    tasks = read_tasks(folder / "tasks", toolkit)
    loss = tiny_model.make(toolkit, tasks, folder / "model", width=128, steps=300, batch=2)
    assert loss < 0.5
    return folder, toolkit, tasks


def options(folder, out, *more):
    given = ["--model", str(folder / "model"), "--out", str(folder / out), "--steps", "3", "--prompts", "2"]
    return train_grpo.read_arguments(
        [*given, "--generations", "4", "--completion", "256", "--learning-rate", "1e-4", *more]
    )


def test_three_steps_by_tasks(made):
    folder, toolkit, tasks = made
    episodes, prompts = [], []
    environment = trl_environment(toolkit, tasks, reward="stepwise")

    class Watched(environment):
        def reset(self, **row):
            prompts.append(row)
            said = super().reset(**row)
            self._now = {"task": row["task"], "start": self._env._info["start_digest"], "reward": None, "calls": 0}
            episodes.append(self._now)
            return said

        def get_reward(self):
            self._now["reward"], self._now["calls"] = super().get_reward(), len(self._env.log)
            return self._now["reward"]

    Watched.__name__ = "GeckoEnvironment"
    shown = []
    trainer = train_grpo.build_trainer(
        options(folder, "by-tasks", "--tasks", str(folder / "tasks"), "--toolkit", TOOLS), folder / "new", Watched
    )
    apply = trainer.processing_class.apply_chat_template
    trainer.processing_class.apply_chat_template = lambda *a, **k: shown.append(k.get("tools")) or apply(*a, **k)
    trainer.train()
    played = [each for each in episodes if each["reward"] is not None]
    groups = [played[at : at + 4] for at in range(0, len(played), 4)]
    assert len(groups) >= 6
    assert any(each["calls"] for each in played)
    assert all(len({each["start"] for each in group}) == 1 for group in groups)
    assert all(len({each["task"] for each in group}) == 1 for group in groups)
    assert any(len({each["reward"] for each in group}) > 1 for group in groups)
    assert {tool.__name__ for tool in shown[0]} == {tool.__name__ for tool in train_grpo.tools_of(environment)}
    logged = [each for each in trainer.state.log_history if "reward" in each]
    assert [each["rewards/GeckoEnvironment/mean"] for each in logged] == [
        pytest.approx(sum(each["reward"] for each in played[at : at + 8]) / 8, abs=1e-6) for at in range(0, 24, 8)
    ]


def test_three_steps_by_rows(made):
    folder, _, tasks = made
    rows = [made for task in tasks for row in find_samples(task) for made in FORMATS["trl"](row)]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    trainer = train_grpo.train(options(folder, "by-rows", "--data", str(folder / "train.jsonl")))
    assert (folder / "by-rows" / "config.json").is_file()
    assert not (folder / "by-rows.new").exists()
    assert sum("reward" in each for each in trainer.state.log_history) == 3


def test_long_prompts_are_left_out_and_counted(capsys):
    assert train_grpo.leave_out_long([{"a": 1}, {"a": 2}], [4_096, 4_097]) == [{"a": 1}]
    assert "1 of 2 rows left out" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        train_grpo.leave_out_long([{}], [5_000])
