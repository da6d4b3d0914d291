"""trl_environment: a class for `GRPOTrainer(environment_factory=...)` of TRL 1.16; its methods are the tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from itertools import chain, count
from keyword import iskeyword
from re import sub
from typing import Any, cast
from warnings import warn

from ..conversation.milestones.tables import MESSAGE
from ..conversation.scenario import Scenario
from ..errors import GeckoError
from ..state import Json, JsonObject
from ..tools import Toolkit, ToolSpec
from ..values.places import as_text
from .env import GeckoEnv, Reward, index_tasks
from .tasks import ANSWER

TAKEN = ("reset", "get_reward")
_KINDS: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "object": dict}


def trl_environment(toolkit: Toolkit, tasks: Sequence[Scenario], *, reward: Reward = "terminal") -> type:
    """Return a class of TRL environments: `reset(**row)`, `get_reward()`, and one method per tool.

    A row of the data set names its task, `{"prompt": [...], "task": name}`; `trl_rows` makes such rows.

    Args:
        toolkit: The tools, as the policy sees them.
        tasks: Generated tasks, or scenarios with a user and a goal.
        reward: As for `GeckoEnv`; `stepwise` rewards are summed up.

    Raises:
        GeckoError: A task cannot be played, or its goal has conditions on the answer, which `get_reward` cannot see.

    Warns:
        UserWarning: A tool or argument was renamed to be valid in Python.
    """
    for name, case in index_tasks(tasks).items():
        asked = (each for one in case.goal.milestones for each in one.constraints if each.table == MESSAGE)
        if any({"claims", "content"} & row.keys() for each in asked for row in each.rows):
            raise GeckoError(f"{name}: its goal has conditions on the answer, which get_reward never sees")
    names = _name_all((tool.name for tool in toolkit), TAKEN)
    methods = {names[tool.name]: _method(tool, names[tool.name]) for tool in toolkit}
    if renamed := [f"{own} is {name}" for own, name in names.items() if own != name]:
        warn(f"tools renamed for Python: {', '.join(renamed)}", stacklevel=2)
    return type("GeckoEnvironment", (_Environment,), {**methods, "_tasks": tuple(tasks), "_reward": reward})


def trl_rows(tasks: Sequence[Scenario]) -> list[JsonObject]:
    """Return the rows of a data set for `GRPOTrainer`: a task's words as the prompt, and its name."""
    played = index_tasks(tasks).items()
    return [{"prompt": [{"role": "user", "content": case.words}], "task": name} for name, case in played]


class _Environment:
    """The base class; it creates nothing before the first reset."""

    _tasks: Sequence[Scenario] = ()
    _reward: Reward = "terminal"
    _env: GeckoEnv | None = None
    _sum = 0.0

    def reset(self, **row: Any) -> str:
        """Begin a row's episode; return the user's words, "" if the prompt contains them."""
        if self._env is None:
            self._env = GeckoEnv(self._tasks, reward=self._reward, max_steps=1 << 30)
        self._sum = 0.0
        words = str(self._env.reset(row.get("task", 0))["messages"][0]["content"])
        return "" if words in as_text(row.get("prompt", "")) or words in str(row.get("prompt", "")) else words

    def get_reward(self) -> float:
        """Return the reward if the episode ended now."""
        if self._env is None:
            return 0.0
        return self._sum + self._env.fork().step([], answer=ANSWER).reward

    def _call(self, name: str, args: JsonObject) -> str:
        if self._env is None:
            self.reset()
        env = cast("GeckoEnv", self._env)
        stepped = env.step([{"name": name, "args": args}])
        self._sum += stepped.reward
        step = env.log[-1]
        is_done = "outcome" in step and step["outcome"]["status"] == "ok"
        told: Json = step["outcome"]["result"] if is_done else {"error": stepped.observation["messages"][-1]["content"]}
        return json.dumps(told, ensure_ascii=False)


def _method(tool: ToolSpec, name: str) -> Callable[..., str]:
    """Return a tool's method. Its signature is for display; the validator checks the arguments."""
    rules, required = tool.parameters.get("properties", {}), tool.parameters.get("required", ())
    own = {python: each for each, python in _name_all(rules, ("self",)).items()}

    def method(self: _Environment, *args: Any, **kwargs: Any) -> str:
        too_many = {f"argument {at}": each for at, each in enumerate(args[len(own) :], len(own) + 1)}
        given = {**dict(zip(own, args, strict=False)), **kwargs, **too_many}
        return self._call(tool.name, {own.get(key, key): one for key, one in given.items()})

    shown = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    about = [(tool.description or name).strip(), *(["", "Args:"] if own else [])]
    for python, each in sorted(own.items(), key=lambda pair: pair[1] not in required):
        rule = rules[each] if isinstance(rules[each], dict) else {}
        default = Parameter.empty if each in required else rule.get("default")
        shown.append(Parameter(python, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=_annotate(rule)))
        about.append(f"    {python}: {_describe(rule, each)}")
    about += ["", "Returns:", "    The result as JSON."]
    method.__name__, method.__qualname__, method.__doc__ = name, f"GeckoEnvironment.{name}", "\n".join(about)
    method.__annotations__ = {each.name: each.annotation for each in shown[1:]} | {"return": str}
    method.__signature__ = Signature(shown, return_annotation=str)  # type: ignore[attr-defined]
    return method


def _annotate(rule: JsonObject) -> Any:
    kind = rule.get("type")
    if kind == "array":
        items = rule.get("items")
        return list[_annotate(items)] if isinstance(items, dict) and "type" in items else list  # type: ignore[misc]
    return _KINDS.get(kind, Any) if isinstance(kind, str) else Any


def _describe(rule: JsonObject, name: str) -> str:
    """Return one line on an argument, ending with its choices, as transformers expects."""
    text = " ".join(str(rule.get("description") or name).split())
    return f"{text} (choices: {json.dumps(rule['enum'], ensure_ascii=False)})" if "enum" in rule else text


def _name_all(own: Any, taken: Sequence[str]) -> dict[str, str]:
    """Return each name's unique Python identifier."""
    found: dict[str, str] = {}
    for each in own:
        plain = sub(r"\W", "_", each).lstrip("_")
        base = plain if plain.isidentifier() else f"x_{plain}"
        names = chain([base], (f"{base}_{number}" for number in count(2)))
        found[each] = next(name for name in names if name not in (*taken, *found.values()) and not iskeyword(name))
    return found
